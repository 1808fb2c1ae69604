//! UDP echo.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};

use socket2::{SockAddr, Socket, Type};

use super::message::{read_answer, write_request};
use super::ping_tracker::{Answer, PingTracker, Turn};
use super::sockets::{MAX_DATAGRAM_BYTES, NoAnswer, Pinger, bound};
use crate::clock::Clock;
use crate::sys::message;
use crate::sys::time::monotonic_ns;

/// Asks a server's echo.
pub(super) struct Udp {
    socket: Socket,
    payload: Vec<u8>,
    buffer: Vec<u8>,
}

impl Udp {
    pub fn new(
        client: SocketAddr,
        server: SocketAddr,
        dscp: u8,
        payload: usize,
    ) -> io::Result<Self> {
        let socket = bound(Type::DGRAM, None, client, dscp)?;
        socket.connect(&SockAddr::from(server))?;
        Ok(Self { socket, payload: vec![0; payload], buffer: vec![0; MAX_DATAGRAM_BYTES] })
    }
}

impl Pinger for Udp {
    fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn send(&mut self, seq: u32) -> io::Result<()> {
        write_request(&mut self.payload, seq, monotonic_ns());
        self.socket.send(&self.payload).map(|_| ())
    }

    fn receive(&mut self, _book: &PingTracker, clock: Clock) -> Result<Option<Answer>, NoAnswer> {
        let received = message::receive(&self.socket, &mut self.buffer)?;
        let at = clock.of_stamp(received.real_ns);
        Ok(read_answer(&self.buffer[..received.len]).map(|(seq, arrived, answered)| Answer {
            seq,
            at,
            echo: Some(Turn::Here {
                arrived: clock.of_monotonic_ns(arrived),
                answered: clock.of_monotonic_ns(answered),
            }),
            by: None,
        }))
    }
}
