//! ICMP echo, which the server's kernel answers.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};

use socket2::{Protocol, SockAddr, Socket, Type};

use super::ping_tracker::{Answer, PingTracker};
use super::sockets::{
    MAX_DATAGRAM_BYTES, NoAnswer, Pinger, bound, heed_errors, limit, send_past_errors,
};
use crate::clock::Clock;
use crate::error::is_forbidden;
use crate::sys::message;
use crate::sys::option;

/// Asks a server's kernel.
pub(super) struct Icmp {
    socket: Socket,
    /// Whether the kernel does the header's work, or we do.
    raw: bool,
    v4: bool,
    /// Whether ICMP errors are heeded.
    errors: bool,
    identifier: u16,
    packet: Vec<u8>,
    buffer: Vec<u8>,
}

impl Icmp {
    /// A ping socket (icmp(7)), or a raw one where those are refused. The identifier stands in place of
    /// the client's port; a ping socket cannot have 0 and is given another.
    pub fn new(
        client: SocketAddr,
        server: SocketAddr,
        dscp: u8,
        payload: usize,
    ) -> io::Result<Self> {
        let identifier = client.port();
        let ping = |address| Self::open(Type::DGRAM, address, server, dscp);
        let raw = || {
            let socket = Self::open(Type::RAW, SocketAddr::new(client.ip(), 0), server, dscp)?;
            if server.is_ipv4() {
                // linux/icmp.h: nothing but echo replies.
                option::set_icmp_filter(&socket, !(1 << ECHO_REPLY_V4))?;
            }
            Ok(socket)
        };
        let (socket, raw) = if identifier == 0 {
            raw().map(|socket| (socket, true)).or_else(|_: io::Error| Ok((ping(client)?, false)))
        } else {
            ping(client).map(|socket| (socket, false)).or_else(|refused: io::Error| {
                // Where a raw one may be had and fails, that is why.
                raw()
                    .map(|socket| (socket, true))
                    .map_err(|why| if is_forbidden(&why) { refused } else { why })
            })
        }?;
        let v4 = server.is_ipv4();
        let mut packet = vec![0; HEADER + payload];
        packet[0] = if v4 { ECHO_V4 } else { ECHO_V6 };
        packet[4..6].copy_from_slice(&identifier.to_be_bytes());
        let buffer = vec![0; MAX_DATAGRAM_BYTES];
        Ok(Self { socket, raw, v4, errors: false, identifier, packet, buffer })
    }

    /// With that time to live, if there is one. A router where it ends then answers in the server's place,
    /// and any other ICMP error is told.
    pub fn with_errors(mut self, ttl: Option<u8>) -> io::Result<Self> {
        if let Some(ttl) = ttl {
            limit(&self.socket, self.v4, ttl)?;
        }
        heed_errors(&self.socket, self.v4)?;
        self.errors = true;
        Ok(self)
    }

    /// The next ICMP error that one of the pings has caused.
    fn receive_error(
        &mut self,
        pings: &PingTracker,
        clock: Clock,
    ) -> Result<Option<Answer>, NoAnswer> {
        // Else the wait would tell of the error for ever.
        let _ = self.socket.take_error();
        let received = message::receive_error(&self.socket, &mut self.buffer)?;
        let identifier = self.raw.then_some(self.identifier);
        let request = if self.v4 { ECHO_V4 } else { ECHO_V6 };
        let quoted = read_echo(&self.buffer[..received.len], request, identifier);
        let (Some(error), Some(low)) = (received.error, quoted) else { return Ok(None) };
        let seq = pings.widen(low);
        if !error.icmp.is_time_exceeded(self.v4) {
            return Err(NoAnswer { error: io::Error::from_raw_os_error(error.errno), seq });
        }
        let at = clock.of_stamp(received.real_ns);
        Ok(seq.map(|seq| Answer { seq, at, echo: None, by: Some(error) }))
    }

    fn open(kind: Type, client: SocketAddr, server: SocketAddr, dscp: u8) -> io::Result<Socket> {
        let protocol = if server.is_ipv4() { Protocol::ICMPV4 } else { Protocol::ICMPV6 };
        let socket = bound(kind, Some(protocol), client, dscp)?;
        socket.connect(&SockAddr::from(server))?;
        Ok(socket)
    }
}

impl Pinger for Icmp {
    fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn send(&mut self, seq: u32) -> io::Result<()> {
        self.packet[6..8].copy_from_slice(&(seq as u16).to_be_bytes());
        if self.raw && self.v4 {
            // The kernel does it for ping sockets and for ICMPv6.
            self.packet[2..4].fill(0);
            let sum = checksum(&self.packet);
            self.packet[2..4].copy_from_slice(&sum.to_be_bytes());
        }
        send_past_errors(&self.socket, &self.packet)
    }

    fn receive(&mut self, pings: &PingTracker, clock: Clock) -> Result<Option<Answer>, NoAnswer> {
        if self.errors {
            match self.receive_error(pings, clock) {
                Err(none) if none.is_yet() => {}
                other => return other,
            }
        }
        let received = message::receive(&self.socket, &mut self.buffer)?;
        let at = clock.of_stamp(received.real_ns);
        let mut packet = &self.buffer[..received.len];
        if self.raw && self.v4 {
            // Raw sockets of IPv4 give the IP header too.
            let header = packet.first().map_or(0, |first| usize::from(first & 0xf) * 4);
            packet = packet.get(header..).unwrap_or_default();
        }
        let identifier = self.raw.then_some(self.identifier);
        let reply = if self.v4 { ECHO_REPLY_V4 } else { ECHO_REPLY_V6 };
        let seq = read_echo(packet, reply, identifier).and_then(|low| pings.widen(low));
        Ok(seq.map(|seq| Answer { seq, at, echo: None, by: None }))
    }
}

/// The sequence number of an echo request or reply, by its type, with that identifier if one is given.
fn read_echo(packet: &[u8], kind: u8, identifier: Option<u16>) -> Option<u16> {
    let header: &[u8; HEADER] = packet.first_chunk()?;
    let word = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let ours = identifier.is_none_or(|identifier| identifier == word(4));
    (header[0] == kind && ours).then(|| word(6))
}

/// RFC 1071.
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes
        .chunks(2)
        .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)])));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// RFC 792 and RFC 4443, section 4: type, code, checksum, identifier, sequence number.
const HEADER: usize = 8;
const ECHO_V4: u8 = 8;
const ECHO_REPLY_V4: u8 = 0;
const ECHO_V6: u8 = 128;
const ECHO_REPLY_V6: u8 = 129;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_replies_to_us_count() {
        let reply = [0, 0, 0, 0, 0x12, 0x34, 0, 9, 1, 2];
        assert_eq!(read_echo(&reply, ECHO_REPLY_V4, Some(0x1234)), Some(9));
        assert_eq!(read_echo(&reply, ECHO_REPLY_V4, None), Some(9));
        assert_eq!(read_echo(&reply, ECHO_REPLY_V4, Some(1)), None);
        assert_eq!(read_echo(&reply, ECHO_REPLY_V6, None), None);
        assert_eq!(read_echo(&reply[..7], ECHO_REPLY_V4, None), None);
    }

    #[test]
    fn a_packet_with_its_checksum_sums_to_zero() {
        let mut packet = [8, 0, 0, 0, 0xab, 0xcd, 0, 1, 7];
        let sum = checksum(&packet);
        packet[2..4].copy_from_slice(&sum.to_be_bytes());
        assert_eq!(checksum(&packet), 0);
    }
}
