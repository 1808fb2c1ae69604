//! Reflectors to probe: those that were named, or the well-known and those that the traffic goes to.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use nix::poll::{PollFd, PollFlags};
use nix::sys::socket::{setsockopt, sockopt};
use weir_core::{Duration, FlowKey, Protocol, Time, error_in_words};
use weir_rate_control::{Delay, Measured, OneWay};
use weir_scenario::LatencyRow;
use weir_sockets::{Clock, EchoKeeper, EchoNews, NO_ICMP, Reflector, is_forbidden};
use weir_speedtest::protocol::weir::Secret;

use crate::log::MAX_TIME_NS;
use crate::settings::Target;

/// All reflectors.
pub(crate) struct Reflectors {
    all: Vec<Source>,
    /// Targets that could not be opened, each with those that will do in its place; they are tried again.
    missing: Vec<Vec<Target>>,
    /// Sessions with servers of Weir's own protocol.
    sessions: Vec<Session>,
    /// Secret for servers that ask for one.
    secret: Option<Secret>,
    learn: bool,
    /// Whether this user may not ping at all.
    refused: bool,
    /// Bytes of the user's traffic by address on the other side, since the last look.
    peers: BTreeMap<IpAddr, u64>,
    /// Peers that did not answer.
    mute: Vec<IpAddr>,
    looked: Time,
    turn: usize,
    /// When a probe was last due and the next one is.
    last: Option<Time>,
    next: Time,
    next_port: u16,
    next_source: u32,
    /// The source that was asked last and whose probe has not left this host yet, as far as is known.
    asked: Option<u32>,
}

/// A session with a server of Weir's own protocol.
struct Session {
    server: SocketAddr,
    keeper: EchoKeeper,
    /// The number of its source while it is open.
    source: Option<u32>,
    /// Why it is not open.
    trouble: Option<String>,
    /// When it was begun.
    begun: Time,
}

struct Source {
    reflector: Reflector,
    target: Target,
    /// When its socket was opened.
    opened: Time,
    /// Priority of the reflector's socket (SO_PRIORITY), as far as it was set here.
    priority: i32,
    number: u32,
    /// The least time between two of its probes, and when the last one was sent.
    least: Duration,
    asked: Time,
    /// Whether the reflector was learned from traffic.
    learned: bool,
    /// Whether it has ever answered.
    heard: bool,
    /// When the first of the probes left that it has not answered since, and how many they are.
    waiting: Option<Time>,
    unanswered: u32,
}

impl Reflectors {
    /// Opens the reflectors of `targets`, or the well-known ones and the traffic's peers if there are none. Of a
    /// well-known one's addresses the first is taken that this host has a route to.
    ///
    /// `secret` is for servers that ask for one.
    pub fn new(targets: &[Target], secret: Option<Secret>, now: Time) -> Self {
        let learn = targets.is_empty();
        let mut it = Self {
            all: Vec::new(),
            missing: if learn {
                well_known()
            } else {
                targets.iter().map(|&it| vec![it]).collect()
            },
            sessions: Vec::new(),
            secret,
            learn,
            refused: false,
            peers: BTreeMap::new(),
            mute: Vec::new(),
            looked: now,
            turn: 0,
            last: None,
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
        source.heard.then_some((source.number, at))
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

    /// The reflectors that have answered lately, as they are named.
    pub fn heard(&self, now: Time) -> impl Iterator<Item = Target> {
        self.all.iter().filter(move |it| it.is_heard(now)).map(|it| it.target)
    }

    /// Sends what is due and looks who is left; `every` is the pause since the last probe, however long it was then. A
    /// source that does not answer has its turn only now and then, if others answer. Returns the source
    /// that was asked and when, if one was that has answered before and probes are not seen to
    /// [leave](Self::left), as `seen` says.
    pub fn ask(
        &mut self,
        every: Option<Duration>,
        seen: bool,
        clock: Clock,
        now: Time,
    ) -> Option<(u32, Time)> {
        self.look_around(now);
        let pause = every.unwrap_or(WITHOUT_PROBES);
        self.next = self.last.map_or(now, |last| last + pause);
        if now < self.next {
            return None;
        }
        (self.last, self.next) = (Some(now), now + pause);
        every?;
        self.turn = self.next_turn(now)?;
        let source = &mut self.all[self.turn];
        source.asked = now;
        source.waiting.get_or_insert(now);
        source.unanswered = source.unanswered.saturating_add(1);
        // What the kernel does not take counts as not sent: whoever does not answer is left out below.
        let sent = source.reflector.ask(clock).ok()?;
        self.asked = seen.then_some(source.number);
        (source.heard && !seen).then_some((source.number, sent))
    }

    /// Place of the source whose turn it is, if there is one.
    fn next_turn(&self, now: Time) -> Option<usize> {
        let heard = self.is_heard(now);
        let count = self.all.len();
        (1..=count).map(|ahead| (self.turn + ahead) % count).find(|&place| {
            let source = &self.all[place];
            let least = if heard && source.is_silent(now) { RETRY } else { source.least };
            now >= source.asked.saturating_add(least) || source.asked == Time::ZERO
        })
    }

    /// The next answer, without waiting.
    pub fn answer(&mut self, clock: Clock) -> Option<Delay> {
        for source in &mut self.all {
            // An error is a reflector that cannot be reached, which is as good as silent.
            if let Ok(Some(row)) = source.reflector.answer(clock)
                && let Some(rtt) = plausible(row.rtt)
            {
                (source.heard, source.waiting, source.unanswered) = (true, None, 0);
                let one_way = ways(&row, rtt);
                return Some(Delay {
                    source: source.number,
                    sent: row.t,
                    rtt,
                    one_way,
                    by: Measured::Answer,
                });
            }
        }
        None
    }

    /// Whether this host cannot ping, and which of those that were named do not answer, with why if that is known; or
    /// where nobody was named, that nobody answers.
    pub fn trouble(&self, now: Time) -> Option<String> {
        let refused = self.refused.then(|| format!("{NO_ICMP}{OTHER_PROBES}"));
        if self.learn {
            // Where there is no route to any of them, as before a network is up, there is none.
            let nobody =
                now.since(Time::ZERO) >= SILENT && self.all.iter().all(|it| it.is_silent(now));
            return refused.or_else(|| nobody.then(|| NOBODY.to_owned()));
        }
        let silent = self.all.iter().filter(|it| it.is_silent(now)).map(|it| it.target.name());
        // Those that could not even be asked for that say nothing by it.
        let askable = |target: &&Target| !(self.refused && matches!(target, Target::Icmp(_)));
        let missing = self.missing.iter().flatten().filter(askable).map(Target::name);
        let names: Vec<String> = silent.chain(missing).collect();
        let unanswered =
            (!names.is_empty()).then(|| format!("no answer to probes from {}", names.join(", ")));
        let closed = self.sessions.iter().filter_map(|session| session.trouble.clone());
        let all: Vec<String> = refused.into_iter().chain(closed).chain(unanswered).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }

    /// Once a second: peers that answer nothing are left out, and others are tried.
    fn look_around(&mut self, now: Time) {
        if now.since(self.looked) < LOOK {
            return;
        }
        self.looked = now;
        self.attend_sessions(now);
        self.reopen_silent(now);
        let Self { all, mute, .. } = self;
        all.retain(|it| {
            let leaves = it.learned && it.is_silent(now);
            if leaves {
                mute.push(it.reflector.address());
            }
            !leaves
        });
        let peers = std::mem::take(&mut self.peers);
        let known = self.heard(now).count();
        let trying = self.all.iter().filter(|it| it.learned && !it.heard).count();
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
            self.reopen_well_known(now);
            self.open_missing(now);
        }
    }

    /// Opens those anew that do not answer and were not learned from traffic: a socket keeps the address that this host had
    /// when it was opened, and the host may have another one since. They stay silent until they answer.
    fn reopen_silent(&mut self, now: Time) {
        let pause = if self.is_heard(now) { RETRY } else { RETRY_ALONE };
        let places: Vec<usize> = (0..self.all.len())
            .filter(|&place| {
                let source = &self.all[place];
                !source.learned && source.is_silent(now) && now.since(source.opened) >= pause
            })
            .collect();
        for place in places {
            let port = self.next_port();
            let source = &mut self.all[place];
            let opened = match source.target {
                Target::Icmp(address) => Reflector::icmp(address, port),
                // Each connection has a socket of its own, and a session is begun anew as a whole.
                Target::Tcp(_) | Target::Udp(_) => continue,
            };
            // Where there is no way to it just now it is tried again at the next look.
            if let Ok(reflector) = opened {
                (source.reflector, source.opened, source.priority) = (reflector, now, 0);
            }
        }
        let silent = |number| self.all.iter().any(|it| it.number == number && it.is_silent(now));
        for session in &mut self.sessions {
            let is_lost = session.source.is_some_and(silent) && now.since(session.begun) >= pause;
            if is_lost && let Ok(keeper) = EchoKeeper::start(session.server, self.secret.clone()) {
                (session.keeper, session.begun) = (keeper, now);
            }
        }
    }

    /// Where nobody answers any more, this host may have moved to a network with other routes.
    fn reopen_well_known(&mut self, now: Time) {
        if self.learn && !self.all.is_empty() && self.all.iter().all(|it| it.is_silent(now)) {
            self.all.retain(|it| it.learned);
            self.missing = well_known();
        }
    }

    fn open_missing(&mut self, now: Time) {
        let missing = std::mem::take(&mut self.missing);
        let is_missing = |addresses: &Vec<Target>| {
            !addresses.iter().any(|&target| self.open(target, false, now))
        };
        self.missing = missing.into_iter().filter(is_missing).collect();
    }

    /// Whether the reflector can be had.
    fn open(&mut self, target: Target, learned: bool, now: Time) -> bool {
        let port = self.next_port();
        let (reflector, least) = match target {
            Target::Icmp(address) => {
                let opened = Reflector::icmp(address, port);
                match &opened {
                    Ok(_) => self.refused = false,
                    Err(error) if is_forbidden(error) => {
                        self.refused = Reflector::icmp_is_forbidden(port);
                    }
                    // As where there is no IPv6 at all.
                    Err(_) => {}
                }
                (opened, Duration::ZERO)
            }
            Target::Tcp(address) => (Reflector::tcp(address, port), MIN_CONNECT_INTERVAL),
            Target::Udp(server) => {
                let keeper = EchoKeeper::start(server, self.secret.clone());
                let opened = keeper.map(|keeper| Session::new(server, keeper, now));
                self.sessions.extend(opened);
                return self.sessions.iter().any(|session| session.server == server);
            }
        };
        reflector.map(|it| self.add(it, target, least, learned, now)).is_ok()
    }

    fn add(
        &mut self,
        reflector: Reflector,
        target: Target,
        least: Duration,
        learned: bool,
        now: Time,
    ) -> u32 {
        let number = self.next_source;
        self.next_source += 1;
        let source = Source {
            reflector,
            target,
            opened: now,
            priority: 0,
            number,
            least,
            asked: Time::ZERO,
            learned,
            heard: false,
            waiting: None,
            unanswered: 0,
        };
        self.all.push(source);
        number
    }

    /// A session that was opened is a source, and one that has ended is none any more: the next has another
    /// clock.
    fn attend_sessions(&mut self, now: Time) {
        let mut sessions = std::mem::take(&mut self.sessions);
        for session in &mut sessions {
            while let Some(news) = session.keeper.news() {
                let before = session.source.take().and_then(|number| self.forget(number));
                session.trouble = match news {
                    EchoNews::Open(grant) => {
                        let port = self.next_port();
                        let reflector = Reflector::weir(session.server.ip(), port, grant.session);
                        let pause = 1_000_000_000 / u64::from(grant.rate_pps.max(1));
                        let least = Duration::from_nanos(pause);
                        let target = Target::Udp(session.server);
                        match reflector {
                            Ok(it) => {
                                let number = self.add(it, target, least, false, now);
                                session.source = Some(number);
                                self.goes_on(before.filter(|old| old.is_silent(now)));
                                None
                            }
                            Err(error) => {
                                let why = error_in_words(&error);
                                Some(format!("no probes to {}: {why}", target.name()))
                            }
                        }
                    }
                    EchoNews::Closed(why) => Some(why),
                };
            }
        }
        self.sessions = sessions;
    }

    fn forget(&mut self, number: u32) -> Option<Source> {
        let place = self.all.iter().position(|it| it.number == number)?;
        Some(self.all.remove(place))
    }

    /// What was added last is as silent as the source in whose place it is: it has not answered yet.
    fn goes_on(&mut self, silent: Option<Source>) {
        if let (Some(before), Some(now)) = (silent, self.all.last_mut()) {
            (now.waiting, now.unanswered, now.asked) =
                (before.waiting, before.unanswered, before.asked);
        }
    }

    const fn next_port(&mut self) -> u16 {
        let port = self.next_port;
        self.next_port = FIRST_PORT + (port + 1 - FIRST_PORT) % PORTS as u16;
        port
    }
}

impl Session {
    const fn new(server: SocketAddr, keeper: EchoKeeper, begun: Time) -> Self {
        Self { server, keeper, source: None, trouble: None, begun }
    }
}

impl Source {
    fn is(&self, protocol: Protocol, ours: u16, there: IpAddr) -> bool {
        self.reflector.key() == (protocol, ours) && self.reflector.address() == there
    }

    /// Whether it answers, as far as is known: one that is hardly asked is not silent for that.
    fn is_heard(&self, now: Time) -> bool {
        self.heard && self.waiting.is_none_or(|since| now.since(since) < HEARD_LATELY)
    }

    /// Whether it has left several probes without an answer, for some time.
    fn is_silent(&self, now: Time) -> bool {
        self.unanswered >= SILENT_PROBES
            && self.waiting.is_some_and(|since| now.since(since) >= SILENT)
    }
}

/// Public resolvers that answer pings at many places, each with its addresses in the order in which they are tried.
fn well_known() -> Vec<Vec<Target>> {
    let addresses = |(v4, v6): (Ipv4Addr, Ipv6Addr)| vec![IpAddr::from(v4), IpAddr::from(v6)];
    WELL_KNOWN.map(|resolver| addresses(resolver).into_iter().map(Target::Icmp).collect()).to_vec()
}

/// A round trip that can be one. The kernel's stamps are on the clock that people set: of an answer that was
/// there before that clock jumped forward, as while the machine slept, it seems that it took no time.
fn plausible(rtt: Option<Duration>) -> Option<Duration> {
    rtt.filter(|rtt| !rtt.is_zero())
}

/// The two ways of an answer whose server tells its times, on its own clock; `None` if no clock is so far from ours.
fn ways(row: &LatencyRow, rtt: Duration) -> Option<OneWay> {
    let turn = row.server?;
    let there = i128::from(turn.received_ns) - i128::from(row.t.as_nanos());
    let back = i128::from(rtt.as_nanos()) - there;
    let is_short = |way: i128| way.unsigned_abs() <= MAX_TIME_NS.into();
    let one_way = OneWay { there_ns: there as i64, back_ns: back as i64 };
    (is_short(there) && is_short(back)).then_some(one_way)
}

/// Cloudflare's, Google's and Quad9's resolvers, by IPv4 and IPv6, as each publishes them.
const WELL_KNOWN: [(Ipv4Addr, Ipv6Addr); 3] = [
    (Ipv4Addr::new(1, 1, 1, 1), Ipv6Addr::new(0x2606, 0x4700, 0x4700, 0, 0, 0, 0, 0x1111)),
    (Ipv4Addr::new(8, 8, 8, 8), Ipv6Addr::new(0x2001, 0x4860, 0x4860, 0, 0, 0, 0, 0x8888)),
    (Ipv4Addr::new(9, 9, 9, 9), Ipv6Addr::new(0x2620, 0xfe, 0, 0, 0, 0, 0, 0xfe)),
];
/// Reflectors of which one may lie and is outvoted.
const ENOUGH: usize = 3;
const MAX_PEERS: usize = 256;
/// Bytes within a second that make a peer worth a try: 0.2 Mbit/s.
const WORTH: u64 = 25_000;
const LOOK: Duration = Duration::from_secs(1);
/// Time after which one that has not answered is silent: a peer is left out, a named or well-known one loses its turn.
const SILENT: Duration = Duration::from_secs(5);
/// Probes in a row without an answer after which it is: of a line that sleeps one may be lost.
const SILENT_PROBES: u32 = 3;
/// Between two connections to one host: a load that no server notices.
const MIN_CONNECT_INTERVAL: Duration = Duration::from_millis(100);
const HEARD_LATELY: Duration = Duration::from_secs(3);
/// Time after which reflectors that could not be opened, or are silent, are tried again: networks come and go.
const RETRY: Duration = Duration::from_secs(30);
/// The same where nobody answers: this host may have another address.
const RETRY_ALONE: Duration = Duration::from_secs(10);
/// What is said where nobody was named.
const NOBODY: &str = "nobody answers probes: name a host that does with `--reflector`";
/// What else a shaper may do.
const OTHER_PROBES: &str = ", or probe by `--reflector tcp:HOST:PORT` or `udp:HOST`";
/// How soon a controller that wants no probes is asked again.
const WITHOUT_PROBES: Duration = Duration::from_millis(200);
/// Identifiers and ports of probes: below those that Linux gives away by itself (32768 on).
const FIRST_PORT: u16 = 20_000;
const PORTS: u32 = 10_000;

#[cfg(test)]
mod tests;
