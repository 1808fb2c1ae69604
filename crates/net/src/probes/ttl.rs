//! UDP with a small time to live, which a router answers with ICMP time exceeded.

use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;

use nix::sys::socket::{setsockopt, sockopt};
use socket2::{SockAddr, Socket, Type};

use super::lanes::{First, Lanes};
use super::ping_tracker::{Answer, PingTracker};
use super::sockets::{MAX_DATAGRAM_BYTES, Pinger, bound};
use crate::clock::Clock;
use crate::sys::epoll::Interest;
use crate::sys::message::{self, Icmp, Received};

/// Asks a router on the way to a server.
///
/// A ping carries its number where its payload has room for it and the router quotes it. Where not, the
/// port from which it came tells it apart.
pub(super) struct Ttl {
    /// The socket of pings that carry a number.
    numbered: Option<Socket>,
    /// Those of pings that carry none.
    lanes: Lanes,
    /// Whether the next ping's answer is expected to carry its number.
    by_number: bool,
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
        let by_number = payload >= NUMBER_BYTES;
        let open = move |first: First| {
            let port = if first == First::Yes { client.port() } else { 0 };
            open(SocketAddr::new(client.ip(), port), server, (dscp, ttl))
        };
        let mut lanes = Lanes::new(open, Interest::READ)?;
        let numbered = if by_number {
            let socket = self::open(client, server, (dscp, ttl))?;
            lanes.watch_other(&socket)?;
            Some(socket)
        } else {
            lanes.open_first()?;
            None
        };
        let v4 = server.is_ipv4();
        let (payload, buffer) = (vec![0; payload], vec![0; MAX_DATAGRAM_BYTES]);
        Ok(Self { numbered, lanes, by_number, v4, payload, buffer })
    }

    /// The answer that is at hand on the socket of numbered pings.
    fn receive_numbered(
        &mut self,
        pings: &PingTracker,
        clock: Clock,
    ) -> io::Result<Option<Answer>> {
        let Some(socket) = &self.numbered else { return Err(io::ErrorKind::WouldBlock.into()) };
        let Some(received) = next_error(socket, &mut self.buffer, self.v4)? else {
            return Ok(None);
        };
        let seq = read_number(&self.buffer[..received.len]).or_else(|| {
            // This router quotes too little. Which ping it means is sure only of one that is alone.
            let was_expected = std::mem::replace(&mut self.by_number, false);
            pings.oldest().filter(|_| was_expected && pings.under_way() == 1)
        });
        Ok(seq.map(|seq| Answer { seq, at: clock.of_stamp(received.real_ns), echo: None }))
    }

    fn receive_by_lane(&mut self, clock: Clock) -> io::Result<Option<Answer>> {
        let (lane, socket, seq) = self.lanes.ready()?;
        match next_error(socket, &mut self.buffer, self.v4) {
            Ok(Some(received)) => {
                self.lanes.give_back(lane);
                Ok(Some(Answer { seq, at: clock.of_stamp(received.real_ns), echo: None }))
            }
            // The error was taken already; the next look tells of another lane.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            other => other.map(|_| None),
        }
    }
}

impl Pinger for Ttl {
    fn fd(&self) -> BorrowedFd<'_> {
        self.lanes.fd()
    }

    fn send(&mut self, seq: u32) -> io::Result<()> {
        write_number(&mut self.payload, seq);
        if let (true, Some(socket)) = (self.by_number, &self.numbered) {
            return send(socket, &self.payload);
        }
        let (lane, socket) = self.lanes.lend(seq)?;
        match send(socket, &self.payload).and_then(|()| self.lanes.watch(lane)) {
            Ok(()) => Ok(()),
            Err(error) => {
                self.lanes.give_back(lane);
                Err(error)
            }
        }
    }

    fn receive(&mut self, pings: &PingTracker, clock: Clock) -> io::Result<Option<Answer>> {
        match self.receive_numbered(pings, clock) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.receive_by_lane(clock),
            other => other,
        }
    }
}

fn open(client: SocketAddr, server: SocketAddr, (dscp, ttl): (u8, u8)) -> io::Result<Socket> {
    let socket = bound(Type::DGRAM, None, client, dscp)?;
    if server.is_ipv4() {
        socket.set_ttl_v4(u32::from(ttl))?;
        setsockopt(&socket, sockopt::Ipv4RecvErr, &true)?;
    } else {
        socket.set_unicast_hops_v6(u32::from(ttl))?;
        setsockopt(&socket, sockopt::Ipv6RecvErr, &true)?;
    }
    socket.connect(&SockAddr::from(server))?;
    Ok(socket)
}

fn send(socket: &Socket, payload: &[u8]) -> io::Result<()> {
    match socket.send(payload) {
        // The first call after an ICMP error tells of it and sends nothing.
        Err(error) if is_of_icmp(&error) => socket.send(payload),
        other => other,
    }
    .map(|_| ())
}

/// The next "time exceeded", with what it quotes of the payload; `None` for another error.
fn next_error(socket: &Socket, buffer: &mut [u8], v4: bool) -> io::Result<Option<Received>> {
    // Else the wait would tell of the error for ever.
    let _ = socket.take_error();
    let received = message::receive_error(socket, buffer)?;
    Ok(received.icmp.is_some_and(|icmp| is_time_exceeded(icmp, v4)).then_some(received))
}

/// Writes the number of a ping, if there is room: one more, since a router may fill up with zeros what it
/// quotes (RFC 4884, section 5.1).
fn write_number(payload: &mut [u8], seq: u32) {
    if let Some(place) = payload.first_chunk_mut() {
        *place = seq.wrapping_add(1).to_be_bytes();
    }
}

/// The number in what a router quotes, if so much is there.
fn read_number(quoted: &[u8]) -> Option<u32> {
    u32::from_be_bytes(*quoted.first_chunk::<NUMBER_BYTES>()?).checked_sub(1)
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

/// At the beginning of a payload. A ping with less has no number.
pub(crate) const NUMBER_BYTES: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quoted_number_is_none_that_a_router_has_filled_up_with_zeros() {
        let mut payload = [0; 60];
        for seq in [0, 77, u32::MAX - 1] {
            write_number(&mut payload, seq);
            assert_eq!(read_number(&payload), Some(seq));
            assert_eq!(read_number(&payload[..3]), None);
        }
        assert_eq!(read_number(&[0; 128]), None);
        let mut short = [9; 3];
        write_number(&mut short, 5);
        assert_eq!(short, [9; 3]);
    }
}
