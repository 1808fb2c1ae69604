//! Socket options of TCP loads.

use std::io;

use socket2::{Domain, Socket};

/// Sets the DSCP of what `socket` sends. The kernel keeps the ECN bits of TCP to itself.
///
/// # Errors
/// If the kernel refuses.
pub fn set_dscp(socket: &Socket, dscp: u8) -> io::Result<()> {
    let tos = u32::from(dscp) << 2;
    match socket.domain()? {
        Domain::IPV4 => socket.set_tos_v4(tos),
        _ => socket.set_tclass_v6(tos),
    }
}

/// The name of the congestion control of `socket`, such as `cubic`.
///
/// # Errors
/// If the kernel does not tell.
pub fn congestion_control(socket: &Socket) -> io::Result<String> {
    let name = socket.tcp_congestion()?;
    let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
    Ok(String::from_utf8_lossy(name).into_owned())
}

/// Data that waits in a sender's socket, in bytes (`TCP_NOTSENT_LOWAT`): enough to keep a path busy between two
/// wake-ups, and little enough that the buffer is never mistaken for a queue. More is handed in when half of it is sent.
pub const MAX_UNSENT_BYTES: u32 = 128 << 10;
