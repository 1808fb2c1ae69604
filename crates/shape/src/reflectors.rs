//! Reflectors to probe: those that were named, or the well-known and those that the traffic goes to.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use nix::poll::{PollFd, PollFlags};
use nix::sys::socket::{setsockopt, sockopt};
use weir_core::{Duration, FlowKey, Protocol, Time};
use weir_rate_control::{Delay, OneWay};
use weir_scenario::LatencyRow;
use weir_sockets::{Clock, EchoKeeper, EchoNews, Reflector};
use weir_speedtest::protocol::weir::Secret;

use crate::settings::Target;

/// All reflectors.
pub(crate) struct Reflectors {
    all: Vec<Source>,
    /// Named targets that could not be opened; they are tried again.
    missing: Vec<Target>,
    /// Sessions with servers of Weir's own protocol, each with the number of its source while it is open.
    sessions: Vec<(SocketAddr, EchoKeeper, Option<u32>)>,
    /// Secret for servers that ask for one.
    secret: Option<Secret>,
    /// Why the last session is not open.
    trouble: Option<String>,
    learn: bool,
    /// Bytes of the user's traffic by address on the other side, since the last look.
    peers: BTreeMap<IpAddr, u64>,
    /// Peers that did not answer.
    mute: Vec<IpAddr>,
    looked: Time,
    turn: usize,
    next: Time,
    next_port: u16,
    next_source: u32,
    /// The source that was asked last and whose probe has not left this host yet, as far as is known.
    asked: Option<u32>,
}

struct Source {
    reflector: Reflector,
    /// Priority of the reflector's socket (SO_PRIORITY), as far as it was set here.
    priority: i32,
    number: u32,
    /// The least time between two of its probes, and when the last one was sent.
    least: Duration,
    asked: Time,
    /// Whether the reflector was learned from traffic.
    learned: bool,
    since: Time,
    heard: Option<Time>,
}

impl Reflectors {
    /// Opens the reflectors of `targets`, or the well-known ones and the traffic's peers if there are none.
    ///
    /// `secret` is for servers that ask for one.
    pub fn new(targets: &[Target], secret: Option<Secret>, now: Time) -> Self {
        let learn = targets.is_empty();
        let well_known = || WELL_KNOWN.map(|address| Target::Icmp(IpAddr::from(address))).to_vec();
        let mut it = Self {
            all: Vec::new(),
            missing: if learn { well_known() } else { targets.to_vec() },
            sessions: Vec::new(),
            secret,
            trouble: None,
            learn,
            peers: BTreeMap::new(),
            mute: Vec::new(),
            looked: now,
            turn: 0,
            next: now,
            next_port: FIRST_PORT + (std::process::id() % PORTS) as u16,
            next_source: 0,
            asked: None,
        };
        it.open_missing(now);
        it
    }

    /// File descriptors of the reflectors' sockets, with the events to wait for.
    pub fn fds(&self) -> impl Iterator<Item = PollFd<'_>> {
        self.all.iter().filter_map(|source| source.reflector.fd()).map(|(fd, out)| {
            PollFd::new(fd, if out { PollFlags::POLLOUT } else { PollFlags::POLLIN })
        })
    }

    /// Has all probes leave with that priority (SO_PRIORITY).
    pub fn set_priority(&mut self, priority: u32) {
        let priority = priority as i32;
        for source in self.all.iter_mut().filter(|source| source.priority != priority) {
            // A connection that opens has a socket of its own each time, which is not reached here.
            let Some((socket, _)) = source.reflector.fd() else { continue };
            // Without it they wait where the user's packets do, which is worse, and no reason to end.
            let _ = setsockopt(&socket, sockopt::Priority, &priority);
            source.priority = priority;
        }
    }

    /// Whether a packet with that key, as sent or as answered, is one of our probes.
    pub fn is_probe(&self, key: &FlowKey, ours: u16, there: IpAddr) -> bool {
        self.all.iter().any(|source| source.is(key.protocol, ours, there))
    }

    /// A probe has left this host at `at`, where that is seen: the source that was asked and when, if it is
    /// the last one and of a source that has answered before.
    pub fn left(&mut self, key: &FlowKey, at: Time) -> Option<(u32, Time)> {
        let asked = self.asked?;
        let source = self.all.iter_mut().find(|source| source.number == asked)?;
        if !source.is(key.protocol, key.sport, key.dst) {
            return None;
        }
        self.asked = None;
        source.reflector.left(at);
        source.heard.map(|_| (source.number, at))
    }

    /// An answer has come to this host at `at`.
    pub fn came(&mut self, key: &FlowKey, at: Time) {
        let from = self.all.iter_mut().find(|one| one.is(key.protocol, key.dport, key.src));
        if let Some(source) = from {
            source.reflector.came(at);
        }
    }

    /// The user's traffic goes to `address`, or comes from it.
    pub fn traffic_with(&mut self, address: IpAddr, bytes: u64) {
        if self.learn && (self.peers.len() < MAX_PEERS || self.peers.contains_key(&address)) {
            *self.peers.entry(address).or_default() += bytes;
        }
    }

    /// When the next probe is due.
    pub const fn next(&self) -> Time {
        self.next
    }

    /// Whether one of them has answered lately.
    pub fn is_heard(&self, now: Time) -> bool {
        self.heard(now).next().is_some()
    }

    /// Addresses of the reflectors that have answered lately.
    pub fn heard(&self, now: Time) -> impl Iterator<Item = IpAddr> {
        self.all
            .iter()
            .filter(move |it| it.heard.is_some_and(|heard| now.since(heard) < HEARD_LATELY))
            .map(|it| it.reflector.address())
    }

    /// Sends what is due and looks who is left; `every` is the pause between two probes. Returns the source
    /// that was asked and when, if one was that has answered before and probes are not seen to
    /// [leave](Self::left), as `seen` says.
    pub fn ask(
        &mut self,
        every: Option<Duration>,
        seen: bool,
        clock: Clock,
        now: Time,
    ) -> Option<(u32, Time)> {
        if now < self.next {
            return None;
        }
        self.look_around(now);
        self.next = now + every.unwrap_or(WITHOUT_PROBES);
        every?;
        let count = self.all.len();
        let mut places = (1..=count).map(|ahead| (self.turn + ahead) % count);
        let place = places.find(|&place| {
            let source = &self.all[place];
            now >= source.asked.saturating_add(source.least) || source.asked == Time::ZERO
        })?;
        self.turn = place;
        let source = &mut self.all[place];
        source.asked = now;
        // What the kernel does not take counts as not sent: whoever does not answer is left out below.
        let sent = source.reflector.ask(clock).ok()?;
        self.asked = seen.then_some(source.number);
        source.heard.filter(|_| !seen).map(|_| (source.number, sent))
    }

    /// The next answer, without waiting.
    pub fn answer(&mut self, clock: Clock, now: Time) -> Option<Delay> {
        for source in &mut self.all {
            // An error is a reflector that cannot be reached, which is as good as silent.
            if let Ok(Some(row)) = source.reflector.answer(clock)
                && let Some(rtt) = plausible(row.rtt)
            {
                source.heard = Some(now);
                let one_way = ways(&row, rtt);
                return Some(Delay { source: source.number, sent: row.t, rtt, one_way });
            }
        }
        None
    }

    /// Why a server that was named does not answer, if one does not.
    pub fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// Once a second: peers that answer nothing are left out, and others are tried.
    fn look_around(&mut self, now: Time) {
        if now.since(self.looked) < LOOK {
            return;
        }
        self.looked = now;
        self.attend_sessions(now);
        let Self { all, mute, .. } = self;
        all.retain(|it| {
            let silent = now.since(it.heard.unwrap_or(it.since)) >= SILENT;
            if it.learned && silent {
                mute.push(it.reflector.address());
            }
            !(it.learned && silent)
        });
        let peers = std::mem::take(&mut self.peers);
        let known = self.heard(now).count();
        let trying = self.all.iter().filter(|it| it.learned && it.heard.is_none()).count();
        if self.learn && known < ENOUGH && trying == 0 {
            let unknown = |address: &IpAddr| {
                !self.mute.contains(address)
                    && self.all.iter().all(|it| it.reflector.address() != *address)
                    && !address.is_loopback()
                    && !address.is_multicast()
                    && !address.is_unspecified()
            };
            let most = peers.iter().filter(|(address, _)| unknown(address));
            if let Some((&address, _)) =
                most.filter(|&(_, &bytes)| bytes >= WORTH).max_by_key(|&(_, bytes)| bytes)
            {
                self.open(Target::Icmp(address), true, now);
            }
        }
        if now.as_nanos() / RETRY.as_nanos()
            != (now.as_nanos() + LOOK.as_nanos()) / RETRY.as_nanos()
        {
            self.mute.clear();
            self.open_missing(now);
        }
    }

    fn open_missing(&mut self, now: Time) {
        let missing = std::mem::take(&mut self.missing);
        self.missing =
            missing.into_iter().filter(|&target| !self.open(target, false, now)).collect();
    }

    /// Whether the reflector can be had.
    fn open(&mut self, target: Target, learned: bool, now: Time) -> bool {
        let port = self.next_port();
        let (reflector, least) = match target {
            Target::Icmp(address) => (Reflector::icmp(address, port), Duration::ZERO),
            Target::Tcp(address) => (Reflector::tcp(address, port), MIN_CONNECT_INTERVAL),
            Target::Udp(server) => {
                let keeper =
                    EchoKeeper::start(server, self.secret.clone()).map(|it| (server, it, None));
                self.sessions.extend(keeper);
                return self.sessions.iter().any(|(open, ..)| *open == server);
            }
        };
        reflector.map(|it| self.add(it, least, learned, now)).is_ok()
    }

    fn add(&mut self, reflector: Reflector, least: Duration, learned: bool, now: Time) -> u32 {
        let number = self.next_source;
        self.next_source += 1;
        let (asked, heard) = (Time::ZERO, None);
        let source =
            Source { reflector, priority: 0, number, least, asked, learned, since: now, heard };
        self.all.push(source);
        number
    }

    /// A session that was opened is a source, and one that has ended is none any more: the next has another
    /// clock.
    fn attend_sessions(&mut self, now: Time) {
        let mut sessions = std::mem::take(&mut self.sessions);
        for (server, keeper, source) in &mut sessions {
            while let Some(news) = keeper.news() {
                if let Some(number) = source.take() {
                    self.all.retain(|it| it.number != number);
                }
                match news {
                    EchoNews::Open(grant) => {
                        self.trouble = None;
                        let port = self.next_port();
                        let reflector = Reflector::weir(server.ip(), port, grant.session);
                        let pause = 1_000_000_000 / u64::from(grant.rate_pps.max(1));
                        let least = Duration::from_nanos(pause);
                        *source = reflector.ok().map(|it| self.add(it, least, false, now));
                    }
                    EchoNews::Closed(why) => self.trouble = Some(why),
                }
            }
        }
        self.sessions = sessions;
    }

    const fn next_port(&mut self) -> u16 {
        let port = self.next_port;
        self.next_port = FIRST_PORT + (port + 1 - FIRST_PORT) % PORTS as u16;
        port
    }
}

impl Source {
    fn is(&self, protocol: Protocol, ours: u16, there: IpAddr) -> bool {
        self.reflector.key() == (protocol, ours) && self.reflector.address() == there
    }
}

/// A round trip that can be one. The kernel's stamps are on the clock that people set: of an answer that was
/// there before that clock jumped forward, as while the machine slept, it seems that it took no time.
fn plausible(rtt: Option<Duration>) -> Option<Duration> {
    rtt.filter(|rtt| !rtt.is_zero())
}

/// The two ways of an answer whose server tells its times, on its own clock.
fn ways(row: &LatencyRow, rtt: Duration) -> Option<OneWay> {
    let turn = row.server?;
    let there_ns = turn.received_ns as i64 - row.t.as_nanos() as i64;
    Some(OneWay { there_ns, back_ns: rtt.as_nanos() as i64 - there_ns })
}

/// Public resolvers that answer pings at many places: Cloudflare's, Google's, Quad9's.
const WELL_KNOWN: [[u8; 4]; 3] = [[1, 1, 1, 1], [8, 8, 8, 8], [9, 9, 9, 9]];
/// Reflectors of which one may lie and is outvoted.
const ENOUGH: usize = 3;
const MAX_PEERS: usize = 256;
/// Bytes within a second that make a peer worth a try: 0.2 Mbit/s.
const WORTH: u64 = 25_000;
const LOOK: Duration = Duration::from_secs(1);
/// Time after which a peer that has not answered is left out.
const SILENT: Duration = Duration::from_secs(5);
/// Between two connections to one host: a load that no server notices.
const MIN_CONNECT_INTERVAL: Duration = Duration::from_millis(100);
const HEARD_LATELY: Duration = Duration::from_secs(3);
/// Time after which reflectors that could not be opened are tried again: networks come and go.
const RETRY: Duration = Duration::from_secs(30);
/// How soon a controller that wants no probes is asked again.
const WITHOUT_PROBES: Duration = Duration::from_millis(200);
/// Identifiers and ports of probes: below those that Linux gives away by itself (32768 on).
const FIRST_PORT: u16 = 20_000;
const PORTS: u32 = 10_000;

#[cfg(test)]
mod tests {
    use weir_scenario::ServerTurn;

    use super::*;

    #[test]
    fn a_round_trip_that_took_no_time_is_a_clock_that_was_set() {
        assert_eq!(plausible(Some(Duration::ZERO)), None);
        assert_eq!(plausible(Some(Duration::from_nanos(1))), Some(Duration::from_nanos(1)));
        assert_eq!(plausible(None), None);
    }

    #[test]
    fn the_ways_of_a_server_with_a_clock_of_its_own_add_up_to_the_round_trip() {
        let row = LatencyRow {
            t: Time::from_millis(5_000),
            probe: 0,
            seq: 0,
            rtt: None,
            up: None,
            down: None,
            timer_error: Duration::ZERO,
            server: Some(ServerTurn { received_ns: 1_007_000_000, sent_ns: 1_009_000_000 }),
        };
        let found = ways(&row, Duration::from_millis(10)).unwrap();
        assert_eq!(found, OneWay { there_ns: -3_993_000_000, back_ns: 4_003_000_000 });
        assert_eq!(ways(&LatencyRow { server: None, ..row }, Duration::from_millis(10)), None);
    }
}
