//! The time in which a TCP connection opens: from its SYN to the answer, by the kernel's own clock.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};

use socket2::{SockAddr, Socket, Type};

use super::lanes::Lanes;
use super::ping_tracker::{Answer, PingTracker};
use super::sockets::{NoAnswer, Pinger, bound};
use crate::clock::Clock;
use crate::sys::epoll::Interest;
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
        let result = begin(&self.socket, self.server);
        if result.is_err() {
            self.attempt = None;
        }
        result
    }

    fn receive(&mut self, _: &PingTracker, clock: Clock) -> Result<Option<Answer>, NoAnswer> {
        let Some((seq, began_ns)) = self.attempt else {
            return Err(io::ErrorKind::WouldBlock.into());
        };
        if let Some(error) = self.socket.take_error()? {
            self.attempt = None;
            return Err(NoAnswer::to(seq, error));
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
            Answer { seq, at, echo: None, by: None }
        }))
    }

    fn is_writable_when_answered(&self) -> Option<bool> {
        self.attempt.map(|_| true)
    }
}

/// Opens connections to a server, each with a socket and a port of its own, so that several may be under
/// way at once, and ends each by a reset.
pub(super) struct Handshakes {
    lanes: Lanes,
    server: SocketAddr,
    /// When the attempt of each lane began, on `CLOCK_MONOTONIC`.
    began_ns: BTreeMap<usize, u64>,
}

impl Handshakes {
    pub fn new(client: SocketAddr, server: SocketAddr, dscp: u8) -> io::Result<Self> {
        let open = move |_| bound(Type::STREAM, None, client, dscp);
        let mut lanes = Lanes::new(open, Interest::WRITE)?;
        lanes.open_first()?;
        Ok(Self { lanes, server, began_ns: BTreeMap::new() })
    }
}

impl Pinger for Handshakes {
    fn fd(&self) -> BorrowedFd<'_> {
        self.lanes.fd()
    }

    fn send(&mut self, seq: u32) -> io::Result<()> {
        let (lane, socket) = self.lanes.lend(seq)?;
        // One that has not opened for so long that its lane is lent again is given up.
        let result = option::abort(socket).and_then(|()| {
            let began_ns = monotonic_ns();
            begin(socket, self.server).map(|()| began_ns)
        });
        match result {
            Ok(began_ns) => {
                self.began_ns.insert(lane, began_ns);
                self.lanes.watch(lane)
            }
            Err(error) => {
                self.lanes.give_back(lane);
                Err(error)
            }
        }
    }

    fn receive(&mut self, _: &PingTracker, clock: Clock) -> Result<Option<Answer>, NoAnswer> {
        let (lane, socket, seq) = self.lanes.ready()?;
        let rtt = match socket.take_error()? {
            // Nobody answered any of its SYNs.
            Some(error) if error.kind() == io::ErrorKind::TimedOut => Ok(None),
            Some(error) => Err(NoAnswer::to(seq, error)),
            None => Ok(TcpInfo::of(socket)?.handshake()),
        };
        option::abort(socket)?;
        self.lanes.give_back(lane);
        let began_ns = self.began_ns.remove(&lane);
        // One whose SYN was sent again tells nothing: nobody knows which was answered.
        Ok(rtt?.zip(began_ns).map(|(rtt, began_ns)| {
            let at = clock.of_monotonic_ns(began_ns + rtt.as_nanos());
            Answer { seq, at, echo: None, by: None }
        }))
    }
}

/// Begins to open a connection.
fn begin(socket: &Socket, server: SocketAddr) -> io::Result<()> {
    match socket.connect(&SockAddr::from(server)) {
        Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
        _ => Ok(()),
    }
}

impl Drop for Connect {
    fn drop(&mut self) {
        // Leaves no connection behind that would keep the port.
        let _ = option::abort(&self.socket);
    }
}
