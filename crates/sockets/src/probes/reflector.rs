//! One that answers probes, asked whenever the asker likes.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::BorrowedFd;

use weir_core::{Duration, Protocol, Time};
use weir_scenario::LatencyRow;
use weir_speedtest::protocol::weir::ECHO_BYTES;

use super::connect::Connect;
use super::icmp::Icmp;
use super::ping_tracker::PingTracker;
use super::session::Session;
use super::sockets::Pinger;
use crate::addresses::EchoSession;
use crate::clock::Clock;
use crate::error::is_forbidden;

/// A host that answers probes from this one, in the namespace of the thread that made it.
pub struct Reflector {
    pinger: Box<dyn Pinger + Send>,
    pings: PingTracker,
    address: IpAddr,
    protocol: Protocol,
    port: u16,
    /// When the answer came to this host, if something here has held it back since.
    came: Option<Time>,
}

impl Reflector {
    /// Whether this user may ping nobody, not even this host: else it is an address that is forbidden, as a broadcast one is.
    #[must_use]
    pub fn icmp_is_forbidden(identifier: u16) -> bool {
        let here = IpAddr::from(Ipv4Addr::LOCALHOST);
        Self::icmp(here, identifier).is_err_and(|error| is_forbidden(&error))
    }

    /// The kernel of the host at `address`, by ICMP echo. Probes carry `identifier`, which is not 0.
    ///
    /// # Errors
    /// If this user may open neither ping sockets nor raw ones.
    pub fn icmp(address: IpAddr, identifier: u16) -> io::Result<Self> {
        let (here, there) = (anywhere(address, identifier), SocketAddr::new(address, 0));
        let protocol = if address.is_ipv4() { Protocol::ICMP } else { Protocol::ICMPV6 };
        let pinger = Box::new(Icmp::new(here, there, 0, PAYLOAD)?);
        Ok(Self {
            pinger,
            pings: PingTracker::new(0),
            address,
            protocol,
            port: identifier,
            came: None,
        })
    }

    /// A `weir serve` at `address` with which there is a session, by UDP echo with the server's times. The
    /// socket is bound to `port`.
    ///
    /// # Errors
    /// If the socket cannot be had.
    pub fn weir(address: IpAddr, port: u16, session: EchoSession) -> io::Result<Self> {
        let ends = (anywhere(address, port), SocketAddr::new(address, session.port));
        let pinger = Box::new(Session::new(ends, session.token, 0, 0, ECHO_BYTES)?);
        let protocol = Protocol::UDP;
        Ok(Self { pinger, pings: PingTracker::new(0), address, protocol, port, came: None })
    }

    /// A server at `address`, by how long a TCP connection takes to open. It comes from `port`.
    ///
    /// # Errors
    /// If the socket cannot be had.
    pub fn tcp(address: SocketAddr, port: u16) -> io::Result<Self> {
        let pinger = Box::new(Connect::new(anywhere(address.ip(), port), address)?);
        let (address, protocol) = (address.ip(), Protocol::TCP);
        Ok(Self { pinger, pings: PingTracker::new(0), address, protocol, port, came: None })
    }

    /// File descriptor that tells that an answer may be there, and whether by room to write rather than by something to
    /// read; `None` while none is waited for.
    #[must_use]
    pub fn fd(&self) -> Option<(BorrowedFd<'_>, bool)> {
        let out = self.pinger.is_writable_when_answered()?;
        Some((self.pinger.fd(), out))
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
        self.pings.forget_before(now.saturating_sub(GIVE_UP));
        let result = self.pinger.send(self.pings.next_seq());
        self.pings.sent(now, now);
        result.map(|()| now)
    }

    /// The last probe left this host at `at` only: until then something here held it back.
    pub fn left(&mut self, at: Time) {
        self.pings.left(at);
    }

    /// The answer that is about to be told came to this host at `at`.
    pub const fn came(&mut self, at: Time) {
        self.came = Some(at);
    }

    /// The next answer, without waiting. The row's probe is 0.
    ///
    /// # Errors
    /// What the kernel says of the reflector, such as that it cannot be reached.
    pub fn answer(&mut self, clock: Clock) -> io::Result<Option<LatencyRow>> {
        loop {
            match self.pinger.receive(&self.pings, clock) {
                Ok(Some(mut answer)) => {
                    // The sockets of the others tell it themselves.
                    if let Some(came) = self.came.take().filter(|_| self.protocol == Protocol::TCP)
                    {
                        answer.at = answer.at.min(came);
                    }
                    if let Some(row) = self.pings.answered(answer, Duration::MAX) {
                        return Ok(Some(row));
                    }
                }
                Ok(None) => {}
                Err(none) if none.is_yet() => return Ok(None),
                Err(none) => return Err(none.error),
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
