//! Congestion controls.

use socket2::{Domain, Socket, Type};

/// Names of the congestion controls that the kernel has and lets this process use, sorted.
///
/// The kernel's list of allowed ones is `net.ipv4.tcp_allowed_congestion_control`.
pub(crate) fn usable() -> Vec<String> {
    let mut names = weir_sockets::available_congestion_controls().unwrap_or_default();
    let Ok(socket) = Socket::new(Domain::IPV4, Type::STREAM, None) else { return Vec::new() };
    names.retain(|name| socket.set_tcp_congestion(name.as_bytes()).is_ok());
    names.sort();
    names
}
