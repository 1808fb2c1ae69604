//! Properties of every connection: two endpoints, random operations, and a path that loses, duplicates,
//! delays and marks at random.
//!
//! A new profile or congestion control joins by its line in the registry.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use weir_core::{Draw, Duration, Ecn, Rng, Seed, Time};
use weir_scenario::Overrides;

use crate::congestion::ALGORITHMS;
use crate::endpoint::Endpoint;
use crate::profile::{PROFILES, Profile};
use crate::scoreboard::Entry;
use crate::segment::{Flags, Segment};
use crate::sender::{Sender, Wire};

#[derive(Clone, Copy, Debug)]
enum Operation {
    Write {
        end: usize,
        bytes: u64,
    },
    /// The application writes without end, until it stops.
    WriteOn {
        end: usize,
    },
    Stop {
        end: usize,
    },
    Wait {
        ms: u64,
    },
}

/// The path between the endpoints. Shares are in percent, and end with the operations.
#[derive(Clone, Debug)]
struct Path {
    delay_us: u64,
    /// The least time between two data segments of one direction.
    spacing_us: u64,
    /// Data segments that may wait for it.
    room: u64,
    /// Lost on the way from the client and from the server.
    lost: [u64; 2],
    duplicated: u64,
    /// Held up by up to that long.
    held_up: u64,
    held_up_us: u64,
    marked: u64,
}

#[derive(Clone, Debug)]
struct Case {
    changes: Overrides,
    mss: u32,
    path: Path,
    operations: Vec<Operation>,
    seed: u64,
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        4 => (0..2usize, prop_oneof![1..3_000u64, 1..200_000u64])
            .prop_map(|(end, bytes)| Operation::Write { end, bytes }),
        1 => (0..2usize).prop_map(|end| Operation::WriteOn { end }),
        1 => (0..2usize).prop_map(|end| Operation::Stop { end }),
        4 => prop_oneof![1..60u64, 1..900u64].prop_map(|ms| Operation::Wait { ms }),
    ]
}

fn path() -> impl Strategy<Value = Path> {
    let share = || prop_oneof![3 => Just(0u64), 3 => 1..5u64, 1 => 5..40u64];
    (
        (prop_oneof![50..2_000u64, 2_000..150_000u64], 150..2_000u64, 3..200u64),
        (share(), share(), share(), share(), 1..60_000u64, share()),
    )
        .prop_map(|((delay_us, spacing_us, room), faults)| {
            let (lost, lost_back, duplicated, held_up, held_up_us, marked) = faults;
            let lost = [lost, lost_back];
            Path { delay_us, spacing_us, room, lost, duplicated, held_up, held_up_us, marked }
        })
}

fn changes() -> impl Strategy<Value = Overrides> {
    let flag = || prop_oneof![4 => Just(None), 1 => any::<bool>().prop_map(Some)];
    (
        (flag(), flag(), prop_oneof![Just(None), Just(Some(true))], flag(), flag(), flag()),
        prop_oneof![2 => Just(None), 1 => (1..40u32).prop_map(Some)],
        prop_oneof![2 => Just(None), 1 => (3_000..80_000u32).prop_map(Some)],
    )
        .prop_map(|(flags, initial_window, receive_window_bytes)| {
            let (timestamps, sack, ecn, pacing, bursts, delayed_ack) = flags;
            Overrides {
                timestamps,
                sack,
                ecn,
                pacing,
                bursts,
                delayed_ack,
                initial_window,
                receive_window_bytes,
                rto_min_ns: None,
            }
        })
}

fn case() -> impl Strategy<Value = Case> {
    let mss = prop_oneof![Just(1_448u32), 100..1_448u32];
    (changes(), mss, path(), prop::collection::vec(operation(), 1..14), any::<u64>()).prop_map(
        |(changes, mss, path, operations, seed)| Case { changes, mss, path, operations, seed },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, max_shrink_iters: 200, ..Default::default() })]

    /// Every byte arrives once and in order, the counts balance after every call, and it ends.
    #[test]
    fn every_byte_arrives_once_and_in_order(case in case()) {
        for profile in PROFILES {
            for algorithm in ALGORITHMS.iter().map(|known| known.name) {
                Bench::new(&case, profile, algorithm, Time::ZERO).run(&case);
            }
        }
    }

    /// A case that starts later sends the same segments, that much later: nothing takes zero for "never".
    #[test]
    fn a_later_start_changes_nothing_but_the_time(case in case(), shifts in 1..50u64) {
        let later = Time::ZERO + GRAIN * shifts;
        for profile in PROFILES {
            for algorithm in ALGORITHMS.iter().map(|known| known.name) {
                let first = Bench::new(&case, profile, algorithm, Time::ZERO).run(&case);
                let second = Bench::new(&case, profile, algorithm, later).run(&case);
                for (number, (one, other)) in first.iter().zip(&second).enumerate() {
                    assert_eq!(one, other, "{} {algorithm}: segment {number}", profile.name);
                }
                assert_eq!(first.len(), second.len(), "{} {algorithm}", profile.name);
            }
        }
    }
}

/// A multiple of every timer's step: of the wheel's, up to timers of two minutes (2048 ms), and of the
/// ticks of all profiles (4, 10 and 500 ms).
const GRAIN: Duration = Duration::from_millis(256_000);

/// How long everything may take: longer than the longest timeout doubles up to.
const LIMIT: Duration = Duration::from_secs(3_600);

/// Two endpoints, the path between them, and a ledger beside each.
struct Bench {
    name: String,
    start: Time,
    now: Time,
    sides: [Peer; 2],
    path: Path,
    is_faulty: bool,
    random: Rng,
    under_way: BTreeMap<(Time, u64), (usize, Segment, Ecn)>,
    sent: u64,
    /// Segments that were sent, with times counted from the start.
    log: Vec<Logged>,
}

/// A segment, when it was sent and by whom.
type Logged = (Duration, usize, Segment, Ecn);

struct Peer {
    endpoint: Endpoint,
    /// Where each of its segments starts, and its length.
    stream: Vec<(u64, u16)>,
    /// The peer's segments that arrived, and how many of them without a gap.
    arrived: Vec<bool>,
    in_order: u32,
    /// Where the window ends that it has offered.
    right_edge: u64,
    /// When the last of its segments arrives.
    last_arrival: Time,
    writes_on: bool,
}

#[derive(Default)]
struct Sent(Vec<(Segment, Ecn)>);

impl Wire for Sent {
    fn send(&mut self, segment: &mut Segment, ecn: Ecn) {
        self.0.push((*segment, ecn));
    }
}

impl Bench {
    fn new(case: &Case, profile: &Profile, algorithm: &str, start: Time) -> Self {
        let name = format!("{} {algorithm}", profile.name);
        let profile = Arc::new(profile.clone().with(&case.changes));
        let side = |end: &str| {
            let random = Seed::new(case.seed).stream(end);
            let endpoint = Endpoint::new(Arc::clone(&profile), algorithm, case.mss, random);
            Peer {
                endpoint: endpoint.expect("a known congestion control"),
                stream: Vec::new(),
                arrived: Vec::new(),
                in_order: 0,
                right_edge: 0,
                last_arrival: start,
                writes_on: false,
            }
        };
        Self {
            name,
            start,
            now: start,
            sides: [side("client"), side("server")],
            path: case.path.clone(),
            is_faulty: true,
            random: Seed::new(case.seed).stream("path"),
            under_way: BTreeMap::new(),
            sent: 0,
            log: Vec::new(),
        }
    }

    fn run(mut self, case: &Case) -> Vec<Logged> {
        self.sides[1].endpoint.listen();
        self.call(0, Endpoint::connect);
        for &operation in &case.operations {
            match operation {
                Operation::Write { end, bytes } => {
                    if !self.sides[end].writes_on {
                        self.call(end, |endpoint, wire, now| endpoint.write(bytes, wire, now));
                    }
                }
                Operation::WriteOn { end } => {
                    self.sides[end].writes_on = true;
                    self.call(end, |endpoint, wire, now| endpoint.write(u64::MAX, wire, now));
                }
                Operation::Stop { end } => self.stop(end),
                Operation::Wait { ms } => self.run_until(self.now + Duration::from_millis(ms)),
            }
        }
        for end in [0, 1] {
            if self.sides[end].writes_on {
                self.stop(end);
            }
        }
        self.is_faulty = false;
        self.run_until(self.start + LIMIT);
        self.check_end();
        self.log
    }

    fn stop(&mut self, end: usize) {
        self.sides[end].writes_on = false;
        self.sides[end].endpoint.stop();
        self.check(end);
    }

    /// Runs everything that is due up to `until`.
    fn run_until(&mut self, until: Time) {
        let mut calls_at_once = 0;
        loop {
            let arrival = self.under_way.keys().next().map(|&(at, _)| (at, None));
            let timer = |end: usize| {
                self.sides[end].endpoint.next_timer().map(|at| (at.max(self.now), Some(end)))
            };
            let next =
                [arrival, timer(0), timer(1)].into_iter().flatten().min_by_key(|next| next.0);
            let Some((at, what)) = next.filter(|&(at, _)| at <= until) else { break };
            calls_at_once = if at > self.now { 0 } else { calls_at_once + 1 };
            assert!(calls_at_once < 10_000, "{}: time stands still at {at}", self.name);
            self.now = at;
            match what {
                Some(end) => self.call(end, Endpoint::on_timer),
                None => self.arrive(),
            }
        }
        self.now = until;
    }

    fn arrive(&mut self) {
        let (_, (end, segment, ecn)) = self.under_way.pop_first().expect("something arrives");
        self.call(end, |endpoint, wire, now| endpoint.on_segment(&segment, ecn, wire, now));
        let side = &mut self.sides[end];
        if segment.len > 0 && side.endpoint.is_established() {
            let number = segment.seq as usize;
            side.arrived.resize(side.arrived.len().max(number + 1), false);
            side.arrived[number] = true;
            while side.arrived.get(side.in_order as usize) == Some(&true) {
                side.in_order += 1;
            }
        }
        self.check_delivered(end);
    }

    fn call(&mut self, end: usize, act: impl FnOnce(&mut Endpoint, &mut Sent, Time)) {
        let mut sent = Sent::default();
        act(&mut self.sides[end].endpoint, &mut sent, self.now);
        for (segment, ecn) in sent.0 {
            self.check_segment(end, &segment);
            self.send(end, segment, ecn);
        }
        self.check(end);
    }

    fn send(&mut self, end: usize, segment: Segment, ecn: Ecn) {
        let start_ms = (self.start.as_nanos() / 1_000_000) as u32;
        let counted = Segment {
            ts: segment.ts - start_ms,
            ts_echo: segment.ts_echo.map(|echo| echo - start_ms),
            ..segment
        };
        self.log.push((self.now.since(self.start), end, counted, ecn));
        let mut chance = |percent: u64| self.is_faulty && self.random.below(100) < percent;
        let is_lost = chance(self.path.lost[end]);
        let copies = 1 + u64::from(chance(self.path.duplicated));
        let is_held_up = chance(self.path.held_up);
        let is_marked = ecn != Ecn::NotEct && chance(self.path.marked);
        let side = &mut self.sides[end];
        let earliest = self.now + Duration::from_micros(self.path.delay_us);
        let mut at = earliest.max(side.last_arrival);
        if segment.len > 0 {
            let spacing = Duration::from_micros(self.path.spacing_us);
            if at.since(earliest) > spacing * self.path.room {
                return;
            }
            at += spacing;
        }
        side.last_arrival = at;
        if is_lost {
            return;
        }
        if is_held_up {
            at += Duration::from_micros(self.random.below(self.path.held_up_us));
        }
        let ecn = if is_marked { Ecn::Ce } else { ecn };
        for _ in 0..copies {
            self.under_way.insert((at, self.sent), (1 - end, segment, ecn));
            self.sent += 1;
        }
    }

    /// Checks a segment that leaves: it repeats what was written, is inside the peer's window, and
    /// acknowledges what has arrived.
    fn check_segment(&mut self, end: usize, segment: &Segment) {
        let name = &self.name;
        let peer = &self.sides[1 - end];
        let peer_edge = peer.right_edge;
        let acked = segment.ack as usize;
        assert!(
            acked <= peer.stream.len(),
            "{name}: acknowledges what was never sent: {segment:?}"
        );
        let delivered = end_of(&peer.stream[..acked]);
        let side = &mut self.sides[end];
        if segment.len > 0 {
            let (number, place) = (segment.seq as usize, (segment.offset, segment.len));
            let sender = &side.endpoint.sender;
            assert!(u32::from(segment.len) <= sender.mss, "{name}: {segment:?}");
            let stop = segment.offset + u64::from(segment.len);
            assert!(stop <= peer_edge, "{name}: {segment:?} ends behind the window, {peer_edge}");
            if number == side.stream.len() {
                assert_eq!(segment.offset, end_of(&side.stream), "{name}: a gap in the stream");
                side.stream.push(place);
            }
            assert_eq!(side.stream.get(number), Some(&place), "{name}: other bytes in {number}");
        }
        let echoes = side.endpoint.profile().timestamps && segment.flags.has(Flags::ACK);
        assert_eq!(segment.ts_echo.is_some(), echoes, "{name}: {segment:?}");
        let edge = delivered + u64::from(segment.window);
        assert!(edge >= side.right_edge, "{name}: the window's right edge moves back");
        side.right_edge = edge;
    }

    fn check_delivered(&self, end: usize) {
        let stream = &self.sides[1 - end].stream;
        let bytes = end_of(&stream[..self.sides[end].in_order as usize]);
        assert_eq!(self.sides[end].endpoint.delivered_bytes(), bytes, "{}: delivered", self.name);
    }

    /// The counts of one end balance, and its timer is not overdue.
    fn check(&self, end: usize) {
        let name = &self.name;
        let endpoint = &self.sides[end].endpoint;
        let sender = &endpoint.sender;
        check_board(sender, endpoint.profile(), name);
        let info = endpoint.info();
        assert!(info.cwnd >= 1 && info.ssthresh.is_none_or(|most| most >= 2), "{name}: {info:?}");
        assert!(info.rto >= endpoint.profile().rto_min.min(info.rto), "{name}: {info:?}");
        assert!(info.rto <= endpoint.profile().rto_max, "{name}: {info:?}");
        assert!(
            sender.stream.sent <= sender.stream.buffered.end,
            "{name}: sent what is not buffered"
        );
        assert!(
            sender.stream.buffered.end <= sender.stream.written,
            "{name}: buffered what was not written"
        );
        let peer = &self.sides[1 - end];
        assert!(
            endpoint.acked_bytes() <= peer.endpoint.delivered_bytes(),
            "{name}: acked too much"
        );
        if let Some(at) = endpoint.next_timer() {
            assert!(at >= self.now, "{name}: the timer was due at {at}, now is {}", self.now);
            let from = endpoint.timer_from();
            assert!(from <= at, "{name}: the timer is due at {at}, and not from {from} on");
        }
        if sender.board.packets_out() > 0 {
            assert!(sender.timer(endpoint.profile()) < Time::MAX, "{name}: waits for nothing");
        }
    }

    fn check_end(&self) {
        let name = &self.name;
        assert!(self.under_way.is_empty(), "{name}: it never comes to rest");
        for end in [0, 1] {
            let endpoint = &self.sides[end].endpoint;
            assert!(endpoint.is_established(), "{name}: end {end} never opened");
            assert!(endpoint.is_idle(), "{name}: end {end} stalls: {:?}", endpoint.info());
            let arrived = self.sides[1 - end].endpoint.delivered_bytes();
            assert_eq!(arrived, endpoint.sender.stream.written, "{name}: end {end}");
            assert_eq!(endpoint.next_timer(), None, "{name}: end {end} at rest wants to wake");
        }
    }
}

fn end_of(stream: &[(u64, u16)]) -> u64 {
    stream.last().map_or(0, |&(start, len)| start + u64::from(len))
}

/// The counts of the scoreboard are those of its segments, and so is what is in flight.
fn check_board(sender: &Sender, profile: &Profile, name: &str) {
    let board = &sender.board;
    let entries = || (board.una()..board.nxt()).map(|seq| board.get(seq));
    let count = |is: fn(&Entry) -> bool| entries().filter(|entry| is(entry)).count() as u32;
    let (lost, sacked) = (count(Entry::lost), count(Entry::sacked));
    let resent = count(Entry::retransmitted);
    assert_eq!(board.lost_out, lost, "{name}: lost");
    assert_eq!(board.retrans_out, resent, "{name}: retransmissions under way");
    if profile.sack {
        assert_eq!(board.sacked_out, sacked, "{name}: arrived out of order");
    }
    assert!(board.left_out() <= board.packets_out(), "{name}: more left than was sent: {board:?}");
    let in_flight = board.packets_out() - board.left_out() + resent;
    assert_eq!(board.in_flight(), in_flight, "{name}: in flight");
    assert_eq!(entries().count() as u32, board.packets_out(), "{name}: packets out");
}
