//! Whom to probe, and when: those that were named, or the well-known and those that the traffic goes to.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::os::fd::BorrowedFd;

use weir_control::{Delay, OneWay};
use weir_core::{Duration, FlowKey, Protocol, Time};
use weir_net::{Clock, Reflector};

use crate::settings::Target;

/// All reflectors.
pub(crate) struct Reflectors {
    all: Vec<Source>,
    /// Those that were named cannot be had: they are tried again.
    missing: Vec<Target>,
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
}

struct Source {
    reflector: Reflector,
    number: u32,
    /// It was learned from traffic.
    learned: bool,
    since: Time,
    heard: Option<Time>,
}

impl Reflectors {
    /// Those of `targets`, or of the well-known and the traffic's peers if there are none.
    pub fn new(targets: &[Target], now: Time) -> Self {
        let learn = targets.is_empty();
        let well_known = || WELL_KNOWN.map(|address| Target::Icmp(IpAddr::from(address))).to_vec();
        let mut it = Self {
            all: Vec::new(),
            missing: if learn { well_known() } else { targets.to_vec() },
            learn,
            peers: BTreeMap::new(),
            mute: Vec::new(),
            looked: now,
            turn: 0,
            next: now,
            next_port: FIRST_PORT + (std::process::id() % PORTS) as u16,
            next_source: 0,
        };
        it.open_missing(now);
        it
    }

    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.all.iter().map(|source| source.reflector.fd())
    }

    /// Whether a packet with that key, as sent or as answered, is one of our probes.
    pub fn is_probe(&self, key: &FlowKey, ours: u16, there: IpAddr) -> bool {
        self.all.iter().any(|source| {
            let reflector = &source.reflector;
            reflector.key() == (key.protocol, ours) && reflector.address() == there
        })
    }

    /// The user's traffic goes to `address`, or comes from it.
    pub fn traffic_with(&mut self, address: IpAddr, bytes: u64) {
        if self.learn && (self.peers.len() < MOST_PEERS || self.peers.contains_key(&address)) {
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

    /// Those that have answered lately: their addresses.
    pub fn heard(&self, now: Time) -> impl Iterator<Item = IpAddr> {
        self.all
            .iter()
            .filter(move |it| it.heard.is_some_and(|heard| now.since(heard) < HEARD_LATELY))
            .map(|it| it.reflector.address())
    }

    /// Sends what is due and looks who is left; `every` is the pause between two probes. Returns the source
    /// that was asked and when, if one was that has answered before.
    pub fn ask(&mut self, every: Option<Duration>, clock: Clock, now: Time) -> Option<(u32, Time)> {
        if now < self.next {
            return None;
        }
        self.look_around(now);
        self.next = now + every.unwrap_or(WITHOUT_PROBES);
        every?;
        self.turn = (self.turn + 1) % self.all.len().max(1);
        let source = self.all.get_mut(self.turn)?;
        // What the kernel does not take counts as not sent: whoever does not answer is left out below.
        let sent = source.reflector.ask(clock).ok()?;
        source.heard.map(|_| (source.number, sent))
    }

    /// The next answer, without waiting.
    pub fn answer(&mut self, clock: Clock, now: Time) -> Option<Delay> {
        for source in &mut self.all {
            // An error is a reflector that cannot be reached, which is as good as silent.
            if let Ok(Some(row)) = source.reflector.answer(clock)
                && let Some(rtt) = row.rtt
            {
                source.heard = Some(now);
                let tells = source.reflector.key().0 == Protocol::UDP;
                let ways = row.up.zip(row.down).filter(|_| tells);
                let one_way = ways.map(|(up, down)| OneWay {
                    there_ns: up.as_nanos() as i64,
                    back_ns: down.as_nanos() as i64,
                });
                return Some(Delay { source: source.number, sent: row.t, rtt, one_way });
            }
        }
        None
    }

    /// Once a second: peers that answer nothing are left out, and others are tried.
    fn look_around(&mut self, now: Time) {
        if now.since(self.looked) < LOOK {
            return;
        }
        self.looked = now;
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
        let port = self.next_port;
        let reflector = match target {
            Target::Icmp(address) => Reflector::icmp(address, port),
            Target::Udp(address) => Reflector::udp(address, port),
        };
        self.next_port = FIRST_PORT + (self.next_port + 1 - FIRST_PORT) % PORTS as u16;
        let Ok(reflector) = reflector else { return false };
        let number = self.next_source;
        self.next_source += 1;
        self.all.push(Source { reflector, number, learned, since: now, heard: None });
        true
    }
}

/// Public resolvers that answer pings at many places: Cloudflare's, Google's, Quad9's.
const WELL_KNOWN: [[u8; 4]; 3] = [[1, 1, 1, 1], [8, 8, 8, 8], [9, 9, 9, 9]];
/// Reflectors of which one may lie and is outvoted.
const ENOUGH: usize = 3;
const MOST_PEERS: usize = 256;
/// Bytes within a second that make a peer worth a try: 0.2 Mbit/s.
const WORTH: u64 = 25_000;
const LOOK: Duration = Duration::from_secs(1);
/// A peer that has not answered for so long is left out.
const SILENT: Duration = Duration::from_secs(5);
const HEARD_LATELY: Duration = Duration::from_secs(3);
/// After so long, those that could not be had are tried again: networks come and go.
const RETRY: Duration = Duration::from_secs(30);
/// How soon a controller that wants no probes is asked again.
const WITHOUT_PROBES: Duration = Duration::from_millis(200);
/// Identifiers and ports of probes: below those that Linux gives away by itself (32768 on).
const FIRST_PORT: u16 = 20_000;
const PORTS: u32 = 10_000;
