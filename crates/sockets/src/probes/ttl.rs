//! UDP that is answered with an ICMP error: by a router where its time to live ends, or by a closed port.

use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;

use socket2::{SockAddr, Socket, Type};

use super::lanes::{First, Lanes};
use super::ping_tracker::{Answer, PingTracker};
use super::sockets::{
    MAX_DATAGRAM_BYTES, NoAnswer, Pinger, bound, heed_errors, limit, send_past_errors,
};
use crate::clock::Clock;
use crate::sys::epoll::Interest;
use crate::sys::message::{self, Received};

/// Asks a router on the way to a server, or the server.
///
/// A ping carries its number where its payload has room for it and whoever answers quotes it. Where not,
/// the port from which it came tells it apart.
pub(super) struct Ttl {
    /// The socket of pings that carry a number.
    numbered: Option<Socket>,
    /// The sockets of pings that carry no number.
    lanes: Lanes,
    /// Whether the next ping's answer is expected to carry its number.
    by_number: bool,
    answers: Answers,
    v4: bool,
    payload: Vec<u8>,
    buffer: Vec<u8>,
}

/// Messages that count as an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answers {
    /// The time to live has ended; everything else is ignored.
    TimeExceeded,
    /// That, a closed port, and a datagram; any other ICMP error is told.
    Any,
}

impl Ttl {
    /// Pings with that DSCP and time to live; the system's own if it is `None`.
    pub fn new(
        client: SocketAddr,
        server: SocketAddr,
        (dscp, ttl): (u8, Option<u8>),
        payload: usize,
        answers: Answers,
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
        Ok(Self { numbered, lanes, by_number, answers, v4, payload, buffer })
    }

    /// The answer that is at hand on the socket of numbered pings.
    fn receive_numbered(
        &mut self,
        pings: &PingTracker,
        clock: Clock,
    ) -> Result<Option<Answer>, NoAnswer> {
        let Some(socket) = &self.numbered else { return Err(io::ErrorKind::WouldBlock.into()) };
        let next = next_answer(socket, &mut self.buffer, (self.v4, self.answers))?;
        let Some(received) = next else { return Ok(None) };
        let seq = self.number_in(&received).or_else(|| {
            // So little is quoted. Which ping it means is sure only of one that is alone.
            let was_expected = std::mem::replace(&mut self.by_number, false);
            pings.oldest().filter(|_| was_expected && pings.under_way() == 1)
        });
        Ok(seq.map(|seq| answer(seq, &received, clock)))
    }

    fn receive_by_lane(&mut self, clock: Clock) -> Result<Option<Answer>, NoAnswer> {
        let (lane, socket, lent) = self.lanes.ready()?;
        match next_answer(socket, &mut self.buffer, (self.v4, self.answers)) {
            Ok(Some(received)) => {
                let seq = self.number_in(&received).unwrap_or(lent);
                if seq == lent {
                    self.lanes.give_back(lane);
                }
                Ok(Some(answer(seq, &received, clock)))
            }
            // The error was taken already; the next look tells of another lane.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => {
                self.lanes.give_back(lane);
                Err(NoAnswer::to(lent, error))
            }
            Ok(None) => Ok(None),
        }
    }

    /// The number of the ping that was received or is quoted, if so much of it is there.
    fn number_in(&self, received: &Received) -> Option<u32> {
        // A datagram carries none unless it is the ping itself.
        let is_quote = received.error.is_some() || received.len == self.payload.len();
        read_number(&self.buffer[..received.len]).filter(|_| is_quote)
    }
}

impl Pinger for Ttl {
    fn fd(&self) -> BorrowedFd<'_> {
        self.lanes.fd()
    }

    fn send(&mut self, seq: u32) -> io::Result<()> {
        write_number(&mut self.payload, seq);
        if let (true, Some(socket)) = (self.by_number, &self.numbered) {
            return send_past_errors(socket, &self.payload);
        }
        let (lane, socket) = self.lanes.lend(seq)?;
        match send_past_errors(socket, &self.payload).and_then(|()| self.lanes.watch(lane)) {
            Ok(()) => Ok(()),
            Err(error) => {
                self.lanes.give_back(lane);
                Err(error)
            }
        }
    }

    fn receive(&mut self, pings: &PingTracker, clock: Clock) -> Result<Option<Answer>, NoAnswer> {
        match self.receive_numbered(pings, clock) {
            Err(none) if none.is_yet() => self.receive_by_lane(clock),
            other => other,
        }
    }
}

fn open(
    client: SocketAddr,
    server: SocketAddr,
    (dscp, ttl): (u8, Option<u8>),
) -> io::Result<Socket> {
    let socket = bound(Type::DGRAM, None, client, dscp)?;
    if let Some(ttl) = ttl {
        limit(&socket, server.is_ipv4(), ttl)?;
    }
    heed_errors(&socket, server.is_ipv4())?;
    socket.connect(&SockAddr::from(server))?;
    Ok(socket)
}

fn answer(seq: u32, received: &Received, clock: Clock) -> Answer {
    Answer { seq, at: clock.of_stamp(received.real_ns), echo: None, by: received.error }
}

/// The next answer, with what it quotes of the payload; `None` for an ICMP error that is none and is
/// ignored.
fn next_answer(
    socket: &Socket,
    buffer: &mut [u8],
    (v4, answers): (bool, Answers),
) -> io::Result<Option<Received>> {
    // Else the wait would tell of the error for ever.
    let _ = socket.take_error();
    let received = match message::receive_error(socket, buffer) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock && answers == Answers::Any => {
            return message::receive(socket, buffer).map(Some);
        }
        other => other?,
    };
    let Some(error) = received.error else { return Ok(None) };
    match answers {
        _ if error.icmp.is_time_exceeded(v4) => Ok(Some(received)),
        Answers::Any if error.icmp.is_closed_port(v4) => Ok(Some(received)),
        Answers::Any => Err(io::Error::from_raw_os_error(error.errno)),
        Answers::TimeExceeded => Ok(None),
    }
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
