//! UDP with a small time to live, which a router answers with ICMP time exceeded.

use std::io;
use std::net::SocketAddr;

use nix::sys::socket::{setsockopt, sockopt};
use socket2::{SockAddr, Socket, Type};

use super::message::{read_seq, write_request};
use super::ping_tracker::{Answer, PingTracker};
use super::sockets::{MAX_DATAGRAM_BYTES, Pinger, bound};
use crate::clock::Clock;
use crate::sys::message::{self, Icmp};
use crate::sys::time::monotonic_ns;

/// Asks a router on the way to a server.
pub(super) struct Ttl {
    socket: Socket,
    v4: bool,
    payload: Vec<u8>,
    buffer: Vec<u8>,
}

impl Ttl {
    pub fn new(
        client: SocketAddr,
        server: SocketAddr,
        (dscp, ttl): (u8, u8),
        payload: usize,
    ) -> io::Result<Self> {
        let socket = bound(Type::DGRAM, None, client, dscp)?;
        if server.is_ipv4() {
            socket.set_ttl_v4(u32::from(ttl))?;
            setsockopt(&socket, sockopt::Ipv4RecvErr, &true)?;
        } else {
            socket.set_unicast_hops_v6(u32::from(ttl))?;
            setsockopt(&socket, sockopt::Ipv6RecvErr, &true)?;
        }
        socket.connect(&SockAddr::from(server))?;
        let v4 = server.is_ipv4();
        Ok(Self { socket, v4, payload: vec![0; payload], buffer: vec![0; MAX_DATAGRAM_BYTES] })
    }
}

impl Pinger for Ttl {
    fn socket(&self) -> &Socket {
        &self.socket
    }

    fn send(&mut self, seq: u32) -> io::Result<()> {
        write_request(&mut self.payload, seq, monotonic_ns());
        match self.socket.send(&self.payload) {
            // The first call after an ICMP error tells of it and sends nothing.
            Err(error) if is_of_icmp(&error) => self.socket.send(&self.payload),
            other => other,
        }
        .map(|_| ())
    }

    fn receive(&mut self, pings: &PingTracker, clock: Clock) -> io::Result<Option<Answer>> {
        // Else the wait would tell of the error for ever.
        let _ = self.socket.take_error();
        let received = message::receive_error(&self.socket, &mut self.buffer)?;
        let at = clock.of_stamp(received.real_ns);
        if !received.icmp.is_some_and(|icmp| is_time_exceeded(icmp, self.v4)) {
            return Ok(None);
        }
        // A router quotes as much as it likes; the least is the UDP header alone (RFC 792).
        let seq = read_seq(&self.buffer[..received.len]).or_else(|| pings.oldest());
        Ok(seq.map(|seq| Answer { seq, at, echo: None }))
    }
}

/// "Time to live exceeded in transit" (RFC 792; RFC 4443, section 3.3).
fn is_time_exceeded(icmp: Icmp, v4: bool) -> bool {
    icmp == Icmp { kind: if v4 { 11 } else { 3 }, code: 0 }
}

/// What ICMP errors become for a socket (`icmp_err_convert` in Linux).
fn is_of_icmp(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EHOSTUNREACH | libc::ENETUNREACH | libc::ECONNREFUSED | libc::EPROTO)
    )
}
