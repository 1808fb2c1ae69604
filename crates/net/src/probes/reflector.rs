//! One that answers probes, asked whenever the asker likes.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};

use weir_core::{Duration, Protocol, Time};
use weir_world::LatencyRow;

use super::book::Book;
use super::icmp::Icmp;
use super::message::UDP_LEAST;
use super::sockets::Pinger;
use super::udp::Udp;
use crate::clock::Clock;

/// A host that answers probes from this one, in the namespace of the thread that made it.
pub struct Reflector {
    pinger: Box<dyn Pinger + Send>,
    book: Book,
    address: IpAddr,
    protocol: Protocol,
    port: u16,
}

impl Reflector {
    /// The kernel of the host at `address`, by ICMP echo. Probes carry `identifier`, which is not 0.
    ///
    /// # Errors
    /// If this user may open neither ping sockets nor raw ones.
    pub fn icmp(address: IpAddr, identifier: u16) -> io::Result<Self> {
        let (here, there) = (anywhere(address, identifier), SocketAddr::new(address, 0));
        let protocol = if address.is_ipv4() { Protocol::ICMP } else { Protocol::ICMPV6 };
        let pinger = Box::new(Icmp::new(here, there, 0, PAYLOAD)?);
        Ok(Self { pinger, book: Book::new(0), address, protocol, port: identifier })
    }

    /// A server at `address` that answers UDP probes with its own times. The socket is bound to `port`.
    ///
    /// # Errors
    /// If the socket cannot be had.
    pub fn udp(address: SocketAddr, port: u16) -> io::Result<Self> {
        let here = anywhere(address.ip(), port);
        let pinger = Box::new(Udp::new(here, address, 0, UDP_LEAST)?);
        let (address, protocol) = (address.ip(), Protocol::UDP);
        Ok(Self { pinger, book: Book::new(0), address, protocol, port })
    }

    /// What tells that an answer may be there.
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.pinger.socket().as_fd()
    }

    /// Its address.
    #[must_use]
    pub const fn address(&self) -> IpAddr {
        self.address
    }

    /// Protocol and, on this side, port or identifier of its probes.
    #[must_use]
    pub const fn key(&self) -> (Protocol, u16) {
        (self.protocol, self.port)
    }

    /// Sends a probe: when it left.
    ///
    /// # Errors
    /// If the kernel does not take it.
    pub fn ask(&mut self, clock: Clock) -> io::Result<Time> {
        let now = clock.now();
        self.book
            .forget_before(Time::from_nanos(now.as_nanos().saturating_sub(GIVE_UP.as_nanos())));
        let result = self.pinger.send(self.book.next_seq());
        self.book.sent(now, now);
        result.map(|()| now)
    }

    /// The next answer, without waiting. The row's probe is 0.
    ///
    /// # Errors
    /// What the kernel says of the reflector, such as that it cannot be reached.
    pub fn answer(&mut self, clock: Clock) -> io::Result<Option<LatencyRow>> {
        loop {
            match self.pinger.receive(&self.book, clock) {
                Ok(Some(answer)) => {
                    if let Some(row) = self.book.answered(answer) {
                        return Ok(Some(row));
                    }
                }
                Ok(None) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }
}

const fn anywhere(like: IpAddr, port: u16) -> SocketAddr {
    let address = match like {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    SocketAddr::new(address, port)
}

/// Bytes of an ICMP probe's payload: the least that all answer.
const PAYLOAD: usize = 8;
/// An answer later than this is none.
const GIVE_UP: Duration = Duration::from_secs(5);
