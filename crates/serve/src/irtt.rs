//! irtt's protocol.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, SystemTime};

use socket2::Socket;
use tokio::time::Instant;
use tracing::debug;
use weir_sockets::Clock;
use weir_sockets::sys::message::Received;
use weir_speedtest::protocol::irtt::{Answer, IrttRequest, Params, Stamp, Window, answer, opened};

use crate::admission::{Permit, counted_as};
use crate::data;
use crate::datagrams::{EchoOutcome, MAX_ECHO_BYTES, clock, send};
use crate::service::{Own, Service};
use crate::shared::{Shared, Test};

pub(crate) const SERVICE: Service =
    Service::Own(&Own { name: "irtt", summary: "irtt's datagrams", http: None });

/// The connections of one socket.
pub(crate) struct Irtt {
    clock: Clock,
    connections: BTreeMap<u64, Connection>,
    /// Bytes of requests to open a connection that were not answered, by address (of IPv6 by network, which is
    /// one client), and when the last came.
    credits: BTreeMap<IpAddr, (usize, Instant)>,
    cleaned: Instant,
}

struct Connection {
    _permit: Permit,
    client: SocketAddr,
    params: Params,
    window: Window,
    received: u32,
    opened: Instant,
    last: Instant,
    /// Datagrams that may come now, at the rate of the connection's interval.
    credit: f64,
    /// The test, from the first echo on: only then it is sure that the address is the client's.
    test: Option<Test>,
    /// Whether the test was refused when an echo first asked for it.
    is_refused: bool,
}

/// What a request to open a connection deserves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Deserves {
    Answer,
    /// Nothing before the next request, which pays for the answer too.
    AnotherRequest,
    /// Nothing: there are too many addresses whose requests are remembered.
    Refusal,
}

impl Irtt {
    pub fn new() -> Self {
        Self {
            clock: clock(),
            connections: BTreeMap::new(),
            credits: BTreeMap::new(),
            cleaned: Instant::now(),
        }
    }

    /// Answers a datagram if it deserves it.
    pub fn answer(
        &mut self,
        server: &Shared,
        socket: &Socket,
        from: SocketAddr,
        received: &Received,
        datagram: &mut [u8],
    ) -> EchoOutcome {
        let key = server.secret.as_ref().map(weir_speedtest::protocol::weir::Secret::as_bytes);
        let now = Instant::now();
        self.clean(now);
        match IrttRequest::parse(datagram, key) {
            None => EchoOutcome::Unknown,
            Some(IrttRequest::Open { params, and_close }) => {
                match self.deserves_answer(from.ip(), datagram.len(), now) {
                    Deserves::Answer => {}
                    Deserves::AnotherRequest => return EchoOutcome::Taken,
                    Deserves::Refusal => {
                        server.refused("irtt requests", from.ip());
                        return EchoOutcome::Limited;
                    }
                }
                let Some(reply) = self.open(server, from, params, and_close, now) else {
                    return EchoOutcome::Limited;
                };
                send(socket, &reply, received.to, from, 0)
            }
            Some(IrttRequest::Close { token }) => {
                let known = self.connections.get(&token).is_some_and(|known| known.client == from);
                if known {
                    self.connections.remove(&token);
                }
                if known { EchoOutcome::Taken } else { EchoOutcome::Unknown }
            }
            Some(IrttRequest::Echo { token, seq }) => {
                self.echo(server, socket, from, received, (token, seq, datagram))
            }
        }
    }

    /// Whether the answer to a request to open a connection may be sent. It holds a token, by which it is
    /// longer than the request; the address may be anybody's, and nobody is to get more than was sent in
    /// their name. Two requests pay for an answer: irtt's clients repeat it after a second. Addresses of
    /// this machine and its own network are answered at once.
    fn deserves_answer(&mut self, from: IpAddr, request: usize, now: Instant) -> Deserves {
        if is_near(from) {
            return Deserves::Answer;
        }
        let client = counted_as(from);
        if self.credits.len() >= MAX_CREDITS && !self.credits.contains_key(&client) {
            return Deserves::Refusal;
        }
        let (credit, last) = self.credits.entry(client).or_insert((0, now));
        (*credit, *last) = (*credit + request, now);
        if *credit < request + TOKEN_BYTES {
            return Deserves::AnotherRequest;
        }
        *credit -= request + TOKEN_BYTES;
        Deserves::Answer
    }

    fn open(
        &mut self,
        server: &Shared,
        client: SocketAddr,
        params: Params,
        and_close: bool,
        now: Instant,
    ) -> Option<Vec<u8>> {
        let key = server.secret.as_ref().map(weir_speedtest::protocol::weir::Secret::as_bytes);
        let refused = !params.same_version();
        let longest = i64::try_from(server.options.max_duration.as_nanos()).unwrap_or(i64::MAX);
        let params = params.bounded(longest, MIN_INTERVAL_NS, MAX_ECHO_BYTES as i64);
        if refused || and_close {
            return Some(opened(0, &params, true, key));
        }
        let entered = server.admission.enter_irtt(client.ip()).inspect_err(|refusal| {
            server.refused(refusal.reason(), client.ip());
            debug!(%client, %refusal, "refused");
        });
        // 0 means that there is no connection.
        let token = data::random().max(1);
        let connection = Connection {
            _permit: entered.ok()?,
            client,
            params: params.clone(),
            window: Window::default(),
            received: 0,
            opened: now,
            last: now,
            credit: BURST,
            test: None,
            is_refused: false,
        };
        self.connections.insert(token, connection);
        Some(opened(token, &params, false, key))
    }

    fn echo(
        &mut self,
        server: &Shared,
        socket: &Socket,
        from: SocketAddr,
        received: &Received,
        (token, seq, datagram): (u64, u32, &mut [u8]),
    ) -> EchoOutcome {
        let key = server.secret.as_ref().map(weir_speedtest::protocol::weir::Secret::as_bytes);
        let Some(connection) = self.connections.get_mut(&token).filter(|one| one.client == from)
        else {
            return EchoOutcome::Unknown;
        };
        if connection.test.is_none() {
            // Each echo asks again, and is no further refusal: they may come every millisecond.
            let begun = if connection.is_refused {
                server.begin_at_last("irtt", "both", from)
            } else {
                server.begin("irtt", "both", from)
            };
            connection.is_refused = begun.is_err();
            let Ok(test) = begun else { return EchoOutcome::Limited };
            connection.test = Some(test);
        }
        let now = Instant::now();
        let interval = connection.params.interval_ns.max(MIN_INTERVAL_NS) as f64;
        let earned = now.saturating_duration_since(connection.last).as_nanos() as f64 / interval;
        connection.credit = (connection.credit + earned).min(BURST);
        connection.last = now;
        if connection.credit < 1.0 || datagram.len() > MAX_ECHO_BYTES {
            return EchoOutcome::Limited;
        }
        connection.credit -= 1.0;
        connection.received = connection.received.wrapping_add(1);
        let window = connection.window.arrived(seq);
        let arrived = self.clock.of_stamp(received.real_ns);
        let leaves = self.clock.now();
        let wall = unix_ns();
        let said = Answer {
            received: connection.received,
            window,
            arrived: Stamp {
                wall: wall.saturating_sub(leaves.since(arrived).as_nanos()),
                monotonic: arrived.as_nanos(),
            },
            leaves: Stamp { wall, monotonic: leaves.as_nanos() },
        };
        let last = connection.opened.elapsed() > server.options.max_duration + GRACE;
        let length = datagram.len() as u64;
        if let Some(test) = &connection.test {
            test.passed(length);
        }
        let outcome = match answer(datagram, &connection.params, &said, last, key) {
            Some(reply) => send(socket, reply, received.to, from, connection.params.dscp as u8),
            None => EchoOutcome::Unknown,
        };
        if last {
            self.connections.remove(&token);
        }
        outcome
    }

    /// Forgets those that are silent: soon if nothing ever came from their address, later otherwise.
    fn clean(&mut self, now: Instant) {
        if now.saturating_duration_since(self.cleaned) < Duration::from_secs(1) {
            return;
        }
        self.cleaned = now;
        self.connections.retain(|_, one| {
            let silence = if one.test.is_some() { SILENCE } else { UNPROVED };
            now.saturating_duration_since(one.last) < silence
        });
        self.credits.retain(|_, (_, last)| now.saturating_duration_since(*last) < CREDIT);
    }
}

/// Whether an address is of this machine or of networks that nobody reaches from outside.
fn is_near(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(one) => one.is_loopback() || one.is_private() || one.is_link_local(),
        IpAddr::V6(one) => {
            one.is_loopback() || one.is_unique_local() || one.is_unicast_link_local()
        }
    }
}

fn unix_ns() -> u64 {
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |since| since.as_nanos() as u64)
}

/// irtt's own bounds, but for the interval, which it has at 10 ms: tests of voice send every 20 ms and
/// `irtt client -i 5ms` is what its manual calls reasonable between machines that are near.
const MIN_INTERVAL_NS: i64 = 1_000_000;
const BURST: f64 = 5.0;
const SILENCE: Duration = Duration::from_secs(65);
const GRACE: Duration = Duration::from_secs(2);
/// An address that opens a connection and says no more may not be its own.
const UNPROVED: Duration = Duration::from_secs(5);
/// By how much an answer is longer.
const TOKEN_BYTES: usize = 8;
/// Time for which unanswered requests are remembered: more than the pauses of a client that repeats, up to 8
/// s.
const CREDIT: Duration = Duration::from_secs(10);
/// About 50 bytes each.
const MAX_CREDITS: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn strangers_pay_for_the_token_by_asking_twice() {
        let mut irtt = Irtt::new();
        let now = Instant::now();
        let stranger = "203.0.113.5".parse().unwrap();
        let mut asks = |from: IpAddr| irtt.deserves_answer(from, 23, now);
        assert_eq!(asks(stranger), Deserves::AnotherRequest);
        assert_eq!(asks(stranger), Deserves::Answer);
        // 46 bytes were sent and 31 answered: the third one pays with what is left.
        assert_eq!(asks(stranger), Deserves::Answer);
        assert_eq!(asks(stranger), Deserves::AnotherRequest);
        assert_eq!(asks("192.168.1.9".parse().unwrap()), Deserves::Answer);
        assert_eq!(asks("::1".parse().unwrap()), Deserves::Answer);
    }

    #[tokio::test]
    async fn forged_addresses_do_not_take_away_what_others_have_paid() {
        let mut irtt = Irtt::new();
        let now = Instant::now();
        let mut asks = |from: IpAddr| irtt.deserves_answer(from, 23, now);
        let stranger = "203.0.113.5".parse().unwrap();
        assert_eq!(asks(stranger), Deserves::AnotherRequest);
        // A network of IPv6 is one client, whatever it calls itself.
        for one in 1..=MAX_CREDITS as u128 {
            asks(std::net::Ipv6Addr::from_bits((0x2001_0db8 << 96) | one).into());
        }
        assert_eq!(asks("203.0.113.6".parse().unwrap()), Deserves::AnotherRequest);
        for one in 0..MAX_CREDITS as u32 {
            asks(std::net::Ipv4Addr::from_bits((11 << 24) | one).into());
        }
        assert_eq!(asks("203.0.113.7".parse().unwrap()), Deserves::Refusal);
        assert_eq!(asks(stranger), Deserves::Answer, "it was there before");
    }
}
