//! The time in which a TCP connection opens: from its SYN to the answer, by the kernel's own clock.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};

use socket2::{SockAddr, Socket, Type};

use super::ping_tracker::{Answer, PingTracker};
use super::sockets::{Pinger, bound};
use crate::clock::Clock;
use crate::sys::option;
use crate::sys::time::monotonic_ns;
use crate::tcp_info::TcpInfo;

/// Opens connections to a server, one after another from the same port, and ends each by a reset.
pub(super) struct Connect {
    socket: Socket,
    server: SocketAddr,
    /// Number of the attempt under way and when it began, on `CLOCK_MONOTONIC`.
    attempt: Option<(u32, u64)>,
}

impl Connect {
    pub fn new(client: SocketAddr, server: SocketAddr) -> io::Result<Self> {
        Ok(Self { socket: bound(Type::STREAM, None, client, 0)?, server, attempt: None })
    }
}

impl Pinger for Connect {
    fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// One that has not opened by now is given up.
    fn send(&mut self, seq: u32) -> io::Result<()> {
        option::abort(&self.socket)?;
        self.attempt = Some((seq, monotonic_ns()));
        match self.socket.connect(&SockAddr::from(self.server)) {
            Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => {
                self.attempt = None;
                Err(error)
            }
            _ => Ok(()),
        }
    }

    fn receive(&mut self, _: &PingTracker, clock: Clock) -> io::Result<Option<Answer>> {
        let Some((seq, began_ns)) = self.attempt else {
            return Err(io::ErrorKind::WouldBlock.into());
        };
        if let Some(error) = self.socket.take_error()? {
            self.attempt = None;
            return Err(error);
        }
        if self.socket.peer_addr().is_err() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.attempt = None;
        let rtt = TcpInfo::of(&self.socket)?.handshake();
        option::abort(&self.socket)?;
        // One whose SYN was sent again tells nothing: nobody knows which was answered.
        Ok(rtt.map(|rtt| {
            let at = clock.of_monotonic_ns(began_ns + rtt.as_nanos());
            Answer { seq, at, echo: None }
        }))
    }

    fn is_writable_when_answered(&self) -> Option<bool> {
        self.attempt.map(|_| true)
    }
}

impl Drop for Connect {
    fn drop(&mut self) {
        // Leaves no connection behind that would keep the port.
        let _ = option::abort(&self.socket);
    }
}
