//! A request and its response over one TCP connection.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};

use socket2::{SockAddr, Socket, Type};

use super::message::write_request;
use super::ping_tracker::{Answer, PingTracker};
use super::sockets::{MAX_DATAGRAM_BYTES, NoAnswer, Pinger, bound};
use crate::clock::Clock;
use crate::sys::message;
use crate::sys::option;
use crate::sys::time::monotonic_ns;

/// Asks a server that answers each request with as many bytes. One is under way at a time; what is due
/// meanwhile is left out.
pub(super) struct Tcp {
    socket: Socket,
    server: SocketAddr,
    payload: Vec<u8>,
    buffer: Vec<u8>,
    /// Bytes of the response that are missing, while a request is under way.
    missing: usize,
}

impl Tcp {
    pub fn new(
        client: SocketAddr,
        server: SocketAddr,
        dscp: u8,
        payload: usize,
    ) -> io::Result<Self> {
        let socket = bound(Type::STREAM, None, client, dscp)?;
        socket.set_tcp_nodelay(true)?;
        let (payload, buffer) = (vec![0; payload], vec![0; MAX_DATAGRAM_BYTES]);
        Ok(Self { socket, server, payload, buffer, missing: 0 })
    }

    fn is_connected(&self) -> bool {
        self.socket.peer_addr().is_ok()
    }
}

impl Pinger for Tcp {
    fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn is_ready(&self) -> bool {
        self.missing == 0 && self.is_connected()
    }

    fn begin(&mut self) -> io::Result<()> {
        match self.socket.connect(&SockAddr::from(self.server)) {
            Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => Ok(()),
            other => other,
        }
    }

    fn send(&mut self, seq: u32) -> io::Result<()> {
        write_request(&mut self.payload, seq, monotonic_ns());
        self.missing = self.payload.len();
        // A request always fits: the one before was answered.
        let sent = self.socket.send(&self.payload)?;
        if sent < self.payload.len() { Err(io::ErrorKind::WriteZero.into()) } else { Ok(()) }
    }

    fn receive(&mut self, pings: &PingTracker, clock: Clock) -> Result<Option<Answer>, NoAnswer> {
        if let Some(error) = self.socket.take_error()? {
            return Err(error.into());
        }
        let most = self.missing.clamp(1, MAX_DATAGRAM_BYTES);
        let received = message::receive(&self.socket, &mut self.buffer[..most])?;
        if received.len == 0 {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        let at = clock.of_stamp(received.real_ns);
        self.missing = self.missing.saturating_sub(received.len);
        let seq = pings.oldest().filter(|_| self.missing == 0);
        Ok(seq.map(|seq| Answer { seq, at, echo: None, by: None }))
    }
}

impl Drop for Tcp {
    fn drop(&mut self) {
        // Leaves no connection behind that would keep the port.
        let _ = option::abort(&self.socket);
    }
}
