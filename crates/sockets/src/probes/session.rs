//! UDP echo of a server elsewhere, in Weir's own protocol (`docs/protocol.md`).

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};

use socket2::{SockAddr, Socket, Type};
use weir_scenario::ServerTurn;
use weir_speedtest::protocol::weir::{EchoReply, EchoRequest, Token};

use super::ping_tracker::{Answer, PingTracker, Turn};
use super::sockets::{MAX_DATAGRAM_BYTES, NoAnswer, Pinger, bound};
use crate::clock::Clock;
use crate::sys::message;
use crate::sys::time::monotonic_ns;

/// Asks the echo of a session.
pub(super) struct Session {
    socket: Socket,
    token: Token,
    train: u8,
    dscp: u8,
    payload: Vec<u8>,
    buffer: Vec<u8>,
}

impl Session {
    pub fn new(
        (client, server): (SocketAddr, SocketAddr),
        token: Token,
        train: u8,
        dscp: u8,
        payload: usize,
    ) -> io::Result<Self> {
        let socket = bound(Type::DGRAM, None, client, dscp)?;
        socket.connect(&SockAddr::from(server))?;
        let (payload, buffer) = (vec![0; payload], vec![0; MAX_DATAGRAM_BYTES]);
        Ok(Self { socket, token, train, dscp, payload, buffer })
    }
}

impl Pinger for Session {
    fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn send(&mut self, seq: u32) -> io::Result<()> {
        let Self { token, train, dscp, .. } = *self;
        EchoRequest { token, train, seq, answer_tos: dscp << 2, stamp: monotonic_ns() }
            .emit(&mut self.payload);
        self.socket.send(&self.payload).map(|_| ())
    }

    fn receive(&mut self, _book: &PingTracker, clock: Clock) -> Result<Option<Answer>, NoAnswer> {
        let received = message::receive(&self.socket, &mut self.buffer)?;
        let at = clock.of_stamp(received.real_ns);
        let reply = EchoReply::parse(&self.buffer[..received.len])
            .filter(|reply| reply.token == self.token && reply.train == self.train);
        Ok(reply.map(|reply| {
            let turn = ServerTurn { received_ns: reply.received_ns, sent_ns: reply.sent_ns };
            Answer { seq: reply.seq, at, echo: Some(Turn::There(turn)), by: None }
        }))
    }
}
