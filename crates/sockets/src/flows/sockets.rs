//! Sockets of TCP loads, with the options that a scenario asks for.

use std::io;
use std::net::SocketAddr;

use nix::sys::socket::{setsockopt, sockopt};
use socket2::{Domain, SockAddr, Socket, Type};
use weir_core::{Duration, error_in_words};
use weir_scenario::Flow;

use crate::check::set_rto_min;
use crate::error::NetError;
use crate::load::options::{MAX_UNSENT_BYTES, congestion_control, set_dscp};
use crate::sys::option;

/// A TCP socket bound to `address` that does not block. `shared`: other sockets of this process listen on
/// the same port.
pub(crate) fn bound(address: SocketAddr, shared: bool) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    socket.set_reuse_address(true)?;
    if shared {
        socket.set_reuse_port(true)?;
    }
    socket.bind(&SockAddr::from(address))?;
    Ok(socket)
}

/// A socket at `address` that takes connections, which start out with Reno whatever the machine's default is.
///
/// An end is told its congestion control only once it is accepted, and one that paces (BBR) leaves pacing
/// switched on when another takes its place (`sk_pacing_status`, set by `bbr_init` in `net/ipv4/tcp_bbr.c`,
/// which nothing takes back). Reno is in every kernel and leaves nothing behind.
pub(crate) fn listening(address: SocketAddr, shared: bool) -> io::Result<Socket> {
    let socket = bound(address, shared)?;
    socket.set_tcp_congestion(b"reno")?;
    socket.listen(BACKLOG)?;
    Ok(socket)
}

/// Gives an end of `flow` what the scenario asks for. `sends` tells which end it is.
///
/// For an end that is accepted this comes after the handshake, which only the receive window would notice:
/// a window offered first is 64 KB at most, and takes the one asked for with the first data.
pub(crate) fn set_up(socket: &Socket, flow: &Flow, sends: bool) -> Result<(), NetError> {
    let attempt = |what: &str, result: io::Result<()>| {
        result.map_err(|error| NetError::io(format_args!("flow `{}`: {what}", flow.name), &error))
    };
    let control = &flow.tcp.congestion_control;
    attempt(&format!("congestion control `{control}`"), set_congestion_control(socket, control))?;
    attempt("DSCP", set_dscp(socket, flow.dscp))?;
    let overrides = &flow.tcp.overrides;
    if let Some(ns) = overrides.rto_min_ns
        && ns != DEFAULT_RTO_MIN_NS
    {
        attempt("rto_min", set_rto_min(socket, Duration::from_nanos(ns)))?;
    }
    if sends {
        attempt("TCP_NOTSENT_LOWAT", socket.set_tcp_notsent_lowat(MAX_UNSENT_BYTES))?;
        if overrides.pacing == Some(true) {
            attempt("pacing", set_pacing(socket))?;
        }
    } else if let Some(bytes) = overrides.receive_window_bytes {
        set_receive_window(socket, bytes)
            .map_err(|error| NetError::new(format!("flow `{}`: {error}", flow.name)))?;
    }
    Ok(())
}

/// An ordinary user may not choose every one that there is (`tcp_allowed_congestion_control`), but may keep
/// what the socket has.
fn set_congestion_control(socket: &Socket, name: &str) -> io::Result<()> {
    if congestion_control(socket)? == name {
        return Ok(());
    }
    socket.set_tcp_congestion(name.as_bytes())
}

/// Switches the stack's own pacing on, as a limit of the rate does, without limiting it.
fn set_pacing(socket: &Socket) -> io::Result<()> {
    option::set_max_pacing_rate(socket, u64::MAX)
}

/// Bounds the receive window, and reserves the buffer that it needs.
fn set_receive_window(socket: &Socket, bytes: u32) -> Result<(), String> {
    let window = i32::try_from(bytes).map_err(|_| format!("receive window {bytes}: too large"))?;
    let wanted = window.saturating_mul(BUFFER_PER_WINDOW);
    // Beyond net.core.rmem_max for those who may.
    let force = setsockopt(socket, sockopt::RcvBufForce, &(wanted as usize / 2));
    let granted = force
        .or_else(|_| socket.set_recv_buffer_size(wanted as usize / 2))
        .and_then(|()| socket.recv_buffer_size())
        .map_err(|error| format!("receive window {bytes} bytes: {}", error_in_words(&error)))?;
    // The kernel counts packets at their size in memory: half of the buffer is window, safely.
    if granted < 2 * bytes as usize {
        return Err(format!(
            "receive window {bytes} bytes: this kernel grants {} here: raise net.core.rmem_max",
            granted / 2
        ));
    }
    option::set_window_clamp(socket, window)
        .map_err(|error| format!("receive window {bytes} bytes: {}", error_in_words(&error)))
}

/// Bytes of buffer for a byte of window: packets that are not full take more memory than they carry.
const BUFFER_PER_WINDOW: i32 = 4;
/// `TCP_RTO_MIN` in Linux.
const DEFAULT_RTO_MIN_NS: u64 = 200_000_000;
/// Connections that a listener may have waiting: thousands of loads may start at once. `net.core.somaxconn` bounds it.
const BACKLOG: i32 = 16_384;

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use super::*;

    #[test]
    fn an_accepted_end_has_never_had_the_machines_own_congestion_control() {
        let listener = listening("127.0.0.1:0".parse().unwrap(), false).unwrap();
        listener.set_nonblocking(false).unwrap();
        let address = listener.local_addr().unwrap().as_socket().unwrap();
        let _near = TcpStream::connect(address).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        assert_eq!(congestion_control(&accepted).unwrap(), "reno");
    }
}
