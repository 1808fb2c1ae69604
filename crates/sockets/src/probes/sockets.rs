//! Functions that the sockets of all probes share.

use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;

use nix::sys::socket::{setsockopt, sockopt};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use super::ping_tracker::{Answer, PingTracker};
use crate::clock::Clock;
use crate::load::options::set_dscp;

/// One train's way of asking and of being answered.
pub(super) trait Pinger: Send {
    /// File descriptor that is readable when an answer may be there.
    fn fd(&self) -> BorrowedFd<'_>;

    /// Whether another ping may be sent now.
    fn is_ready(&self) -> bool {
        true
    }

    /// The first ping is due.
    fn begin(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Sends ping number `seq`.
    fn send(&mut self, seq: u32) -> io::Result<()>;

    /// Whether an answer shows as room to write, or as something to read; `None` if none is waited for.
    fn is_writable_when_answered(&self) -> Option<bool> {
        Some(false)
    }

    /// Takes one answer. `None` if what came in was none; [`io::ErrorKind::WouldBlock`] if there is
    /// nothing.
    fn receive(&mut self, pings: &PingTracker, clock: Clock) -> Result<Option<Answer>, NoAnswer>;
}

/// What the kernel said in place of an answer.
#[derive(Debug)]
pub(super) struct NoAnswer {
    pub error: io::Error,
    /// The ping that will have none, if it is known.
    pub seq: Option<u32>,
}

impl NoAnswer {
    /// Ping number `seq` will have no answer.
    pub const fn to(seq: u32, error: io::Error) -> Self {
        Self { error, seq: Some(seq) }
    }

    /// Whether nothing came in yet.
    pub fn is_yet(&self) -> bool {
        self.error.kind() == io::ErrorKind::WouldBlock
    }
}

impl From<io::Error> for NoAnswer {
    fn from(error: io::Error) -> Self {
        Self { error, seq: None }
    }
}

impl From<io::ErrorKind> for NoAnswer {
    fn from(kind: io::ErrorKind) -> Self {
        Self::from(io::Error::from(kind))
    }
}

/// A socket bound to `address` that does not block, whose packets carry `dscp` and come with the time at
/// which the kernel took them in.
pub(super) fn bound(
    kind: Type,
    protocol: Option<Protocol>,
    address: SocketAddr,
    dscp: u8,
) -> io::Result<Socket> {
    let socket = unbound((kind, protocol), address, dscp)?;
    if kind == Type::STREAM {
        socket.set_reuse_address(true)?;
    }
    socket.bind(&SockAddr::from(address))?;
    Ok(socket)
}

/// A UDP socket as [`bound`] makes it, at an address that others of this process have too: packets go to the one that is
/// connected to their sender, and those of nobody to the one that is not connected.
pub(crate) fn shared_udp_socket(address: SocketAddr, dscp: u8) -> io::Result<Socket> {
    let socket = unbound((Type::DGRAM, None), address, dscp)?;
    socket.set_reuse_address(true)?;
    socket.bind(&SockAddr::from(address))?;
    Ok(socket)
}

fn unbound(
    (kind, protocol): (Type, Option<Protocol>),
    address: SocketAddr,
    dscp: u8,
) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), kind, protocol)?;
    socket.set_nonblocking(true)?;
    stamp(&socket)?;
    set_dscp(&socket, dscp)?;
    Ok(socket)
}

/// Asks for the time at which the kernel took packets in (socket(7)).
pub(super) fn stamp(socket: &Socket) -> io::Result<()> {
    Ok(setsockopt(socket, sockopt::ReceiveTimestampns, &true)?)
}

/// Asks for the ICMP errors that packets of this socket cause (`IP_RECVERR`, ip(7)).
pub(super) fn heed_errors(socket: &Socket, v4: bool) -> io::Result<()> {
    if v4 {
        setsockopt(socket, sockopt::Ipv4RecvErr, &true)?;
    } else {
        setsockopt(socket, sockopt::Ipv6RecvErr, &true)?;
    }
    Ok(())
}

/// Gives packets of this socket that time to live, or hop limit.
pub(super) fn limit(socket: &Socket, v4: bool, ttl: u8) -> io::Result<()> {
    if v4 { socket.set_ttl_v4(u32::from(ttl)) } else { socket.set_unicast_hops_v6(u32::from(ttl)) }
}

/// Sends a packet on a connected socket that [heeds errors](heed_errors).
pub(super) fn send_past_errors(socket: &Socket, packet: &[u8]) -> io::Result<()> {
    match socket.send(packet) {
        // The first call after an ICMP error tells of it and sends nothing.
        Err(error) if is_of_icmp(&error) => socket.send(packet),
        other => other,
    }
    .map(|_| ())
}

/// Error numbers of a socket by ICMP error (`icmp_err_convert` in Linux).
fn is_of_icmp(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(
            libc::EHOSTUNREACH
                | libc::ENETUNREACH
                | libc::ECONNREFUSED
                | libc::EPROTO
                | libc::EACCES
                | libc::EMSGSIZE
                | libc::EHOSTDOWN
                | libc::ENOPROTOOPT
                | libc::EOPNOTSUPP
                | libc::ENONET
        )
    )
}

/// Room for the longest payload, and a header before it.
pub(super) const MAX_DATAGRAM_BYTES: usize = 65_536;
