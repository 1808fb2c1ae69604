//! `sfb`: stochastic fair BLUE. Every flow has a drop probability of its own, kept in a Bloom filter.
//!
//! Follows Linux `net/sched/sch_sfb.c` (Feng, Kandlur, Saha, Shin 2001). A packet falls into one bin on
//! each of eight levels; a bin that is full raises its probability, one that is empty lowers it. A flow
//! goes by the lowest of its eight probabilities, so that it suffers only if it shares every bin with
//! unresponsive flows. Two filters take turns: while one serves, the other warms up under a new hash.
//! Differs in one thing: what sits beneath is always the FIFO, and no other discipline.

use std::collections::VecDeque;

use weir_core::{Draw, Packet, Rng, Time};

use crate::Device;
use crate::book::Book;
use crate::contract::{Backlog, DropReason, Fates, MarkReason, Qdisc, Stats};
use crate::linux::JIFFY;
use crate::registry::Discipline;
use crate::tc::{Classifier, DefaultValue, Kind, Param, Params, SetUp, SetUpError};

struct Sfb {
    limit: u32,
    blue: Blue,
    /// Packets that every bin of a flow may hold.
    max: u32,
    schedule: Schedule,
    penalty_box: PenaltyBox,
    classifier: Classifier,
    filters: [Filter; 2],
    /// Which of the filters serves.
    serving: usize,
    /// Whether the other filter hears of unresponsive flows already.
    warming_up: bool,
    rng: Rng,
    packets: VecDeque<(Packet, Hashes)>,
    book: Book,
}

/// A packet's hash in each filter; 0 where that filter does not know of it.
type Hashes = [u32; 2];

/// How a bin's probability moves.
#[derive(Clone, Copy)]
struct Blue {
    /// Packets from which a bin is full.
    target: u32,
    increment: u16,
    decrement: u16,
}

/// A Bloom filter of bins under one key.
struct Filter {
    key: u64,
    bins: [[Bin; BINS]; LEVELS],
}

#[derive(Clone, Copy, Default)]
struct Bin {
    packets: u16,
    /// Probability of a drop or mark, as a fraction of [`CERTAIN`].
    probability: u16,
}

/// When the filters change places, in jiffies.
struct Schedule {
    rehash: u64,
    warm_up: u64,
    /// Of the last change; `None` before the first packet.
    since: Option<u64>,
}

/// What unresponsive flows may send together.
struct PenaltyBox {
    /// Packets a second.
    rate: u64,
    burst: u64,
    tokens: u64,
    refilled_at: u64,
}

/// What is to become of an arrival.
enum Verdict {
    Wait,
    Mark,
    Drop(DropReason),
}

impl Sfb {
    fn new(set_up: &SetUp, device: &Device) -> Result<Self, SetUpError> {
        let params = set_up.params(device)?;
        let limit = match params.number("limit")? as u32 {
            0 => device.tx_queue_len,
            limit => limit,
        };
        let (max, target) = bin_sizes(&params)?;
        let jiffies =
            |name| params.number(name).map(|ms| (ms * 1_000_000).div_ceil(JIFFY.as_nanos()));
        let fraction =
            |name| params.probability(name).map(|value| (value * f64::from(CERTAIN) + 0.5) as u16);
        let burst = params.number("penalty_burst")?;
        let mut rng = device.seed.stream("sfb");
        Ok(Self {
            limit,
            blue: Blue {
                target,
                increment: fraction("increment")?,
                decrement: fraction("decrement")?,
            },
            max,
            schedule: Schedule { rehash: jiffies("rehash")?, warm_up: jiffies("db")?, since: None },
            penalty_box: PenaltyBox {
                rate: params.number("penalty_rate")?,
                burst,
                tokens: burst,
                refilled_at: 0,
            },
            classifier: Classifier::new(&set_up.filters),
            filters: [Filter::new(&mut rng), Filter::new(&mut rng)],
            serving: 0,
            warming_up: false,
            rng,
            packets: VecDeque::new(),
            book: Book::default(),
        })
    }

    /// Lets the filters change places, or the other one warm up, if it is time.
    fn keep_schedule(&mut self, jiffy: u64) {
        let Schedule { rehash, warm_up, ref mut since } = self.schedule;
        let Some(last) = *since else {
            *since = Some(jiffy);
            self.penalty_box.refilled_at = jiffy;
            return;
        };
        if rehash == 0 {
            return;
        }
        if jiffy > last + rehash {
            self.filters[self.serving].key = self.rng.below(u64::MAX);
            self.serving ^= 1;
            self.warming_up = false;
            *since = Some(jiffy);
        } else if warm_up > 0 && jiffy + warm_up > last + rehash {
            self.warming_up = true;
        }
    }

    /// The hash of `packet` in the filter that serves: of what a filter says, else of its flow.
    fn hash(&self, packet: &Packet) -> Option<u32> {
        let filter = &self.filters[self.serving];
        if self.classifier.is_empty() {
            return Some(filter.hash(packet));
        }
        let class = self.classifier.classify(packet)?;
        let label = weir_core::FlowLabel { hash: u32::from(class.minor), ..packet.label };
        Some(label.rehashed(filter.key).max(1))
    }

    /// The bins of a packet, in every filter that knows of it.
    fn for_bins(&mut self, hashes: Hashes, change: impl Fn(&mut Bin)) {
        for (filter, hash) in self.filters.iter_mut().zip(hashes) {
            if hash != 0 {
                filter.bins(hash).for_each(&change);
            }
        }
    }

    /// Judges `packet`, and moves the probabilities of its bins.
    fn judge(&mut self, packet: &Packet, hashes: &mut Hashes, jiffy: u64) -> Verdict {
        let serving = &mut self.filters[self.serving];
        let (fewest, lowest) = serving.arrive(hashes[self.serving], self.blue);
        if u32::from(fewest) >= self.max {
            return Verdict::Drop(DropReason::Overlimit);
        }
        if lowest == CERTAIN {
            if self.warming_up {
                let other = self.serving ^ 1;
                hashes[other] = self.filters[other].hash(packet);
                self.filters[other].arrive(hashes[other], self.blue);
            }
            let passes = self.penalty_box.admits(jiffy);
            return if passes { Verdict::Wait } else { Verdict::Drop(DropReason::Penalty) };
        }
        let drawn = self.rng.below(1 << 16) as u16;
        if drawn >= lowest {
            return Verdict::Wait;
        }
        // Above one half the flow hardly responds, or all is badly congested: part of it is dropped.
        let beyond = u32::from(lowest.saturating_sub(CERTAIN / 2)) * 2;
        if u32::from(drawn) < beyond { Verdict::Drop(DropReason::Early) } else { Verdict::Mark }
    }
}

impl Filter {
    fn new(rng: &mut Rng) -> Self {
        Self { key: rng.below(u64::MAX), bins: [[Bin::default(); BINS]; LEVELS] }
    }

    /// The hash of the flow; never 0, which stands for none.
    fn hash(&self, packet: &Packet) -> u32 {
        packet.label.rehashed(self.key).max(1)
    }

    /// The bins of `hash`: four bits of it choose one on each level.
    fn bins(&mut self, hash: u32) -> impl Iterator<Item = &mut Bin> {
        self.bins
            .iter_mut()
            .enumerate()
            .map(move |(level, bins)| &mut bins[(hash >> (4 * level)) as usize % BINS])
    }

    /// Moves the probabilities of the bins of an arrival, and returns the fewest packets and the
    /// lowest probability among them.
    fn arrive(&mut self, hash: u32, blue: Blue) -> (u16, u16) {
        let mut least = (u16::MAX, u16::MAX);
        for bin in self.bins(hash) {
            if bin.packets == 0 {
                bin.probability = bin.probability.saturating_sub(blue.decrement);
            } else if u32::from(bin.packets) >= blue.target {
                bin.probability = bin.probability.saturating_add(blue.increment);
            }
            least = (least.0.min(bin.packets), least.1.min(bin.probability));
        }
        least
    }
}

impl PenaltyBox {
    /// Whether one more packet of an unresponsive flow may pass.
    fn admits(&mut self, jiffy: u64) -> bool {
        if self.rate == 0 || self.burst == 0 {
            return false;
        }
        if self.tokens < 1 {
            let age = (jiffy - self.refilled_at).min(10 * HZ);
            self.tokens = (age * self.rate / HZ).min(self.burst);
            self.refilled_at = jiffy;
            if self.tokens < 1 {
                return false;
            }
        }
        self.tokens -= 1;
        true
    }
}

/// `max` and `target`, each computed from the other where it is not written, as `tc` does.
fn bin_sizes(params: &Params) -> Result<(u32, u32), SetUpError> {
    let written =
        |name| params.try_number(name).map(|value| value.filter(|&n| n > 0).map(|n| n as u32));
    let (max, target) = (written("max")?, written("target")?);
    let max = max.unwrap_or_else(|| target.map_or(25, |target| (target * 5 + 1) / 4));
    Ok((max, target.unwrap_or_else(|| (max * 4).div_ceil(5))))
}

fn jiffies(now: Time) -> u64 {
    now.as_nanos() / JIFFY.as_nanos()
}

impl Qdisc for Sfb {
    fn enqueue(&mut self, mut packet: Packet, now: Time, fates: &mut dyn Fates) {
        if self.book.backlog().packets >= self.limit {
            return self.book.turn_away(packet, DropReason::Overlimit, fates);
        }
        self.keep_schedule(jiffies(now));
        let Some(hash) = self.hash(&packet) else {
            return self.book.turn_away(packet, DropReason::Unclassified, fates);
        };
        let mut hashes = [0; 2];
        hashes[self.serving] = hash;
        match self.judge(&packet, &mut hashes, jiffies(now)) {
            Verdict::Wait => {}
            Verdict::Mark => {
                if !self.book.mark(&mut packet, MarkReason::Early, fates) {
                    return self.book.turn_away(packet, DropReason::Early, fates);
                }
            }
            Verdict::Drop(reason) => return self.book.turn_away(packet, reason, fates),
        }
        self.for_bins(hashes, |bin| bin.packets = bin.packets.saturating_add(1));
        self.book.arrive(&packet);
        self.packets.push_back((packet, hashes));
    }

    fn dequeue(&mut self, _now: Time, _fates: &mut dyn Fates) -> Option<Packet> {
        let (packet, hashes) = self.packets.pop_front()?;
        self.for_bins(hashes, |bin| bin.packets = bin.packets.saturating_sub(1));
        self.book.take(&packet);
        self.book.depart(&packet);
        Some(packet)
    }

    fn peek(&mut self, _now: Time, _fates: &mut dyn Fates) -> Option<&Packet> {
        self.packets.front().map(|(packet, _)| packet)
    }

    fn backlog(&self) -> Backlog {
        self.book.backlog()
    }

    fn stats(&self) -> Stats {
        self.book.stats()
    }
}

pub(crate) static SFB: Discipline = Discipline {
    name: "sfb",
    summary: "stochastic fair BLUE: a drop probability a flow, kept in a Bloom filter",
    source: "Linux net/sched/sch_sfb.c; Feng, Kandlur, Saha, Shin 2001",
    params: &[
        Param {
            name: "rehash",
            aliases: &[],
            kind: Kind::Number { unit: "ms", range: (0, i32::MAX as u64) },
            default: DefaultValue::Is("600000"),
            meaning: "how long a filter serves; 0: for ever",
        },
        Param {
            name: "db",
            aliases: &[],
            kind: Kind::Number { unit: "ms", range: (0, i32::MAX as u64) },
            default: DefaultValue::Is("60000"),
            meaning: "how long before it serves a filter warms up (double buffering); 0: not at all",
        },
        Param {
            name: "limit",
            aliases: &[],
            kind: Kind::Number { unit: "packets", range: (0, u32::MAX as u64) },
            default: DefaultValue::Device("txqueuelen", |device| device.tx_queue_len.to_string()),
            meaning: "most packets that may wait in all flows together",
        },
        Param {
            name: "max",
            aliases: &[],
            kind: Kind::Number { unit: "packets", range: (0, 65_535) },
            default: DefaultValue::Absent("5/4 target, else 25"),
            meaning: "most packets of one flow",
        },
        Param {
            name: "target",
            aliases: &[],
            kind: Kind::Number { unit: "packets", range: (0, 65_535) },
            default: DefaultValue::Absent("4/5 max"),
            meaning: "packets from which a bin raises its probability",
        },
        Param {
            name: "increment",
            aliases: &[],
            kind: Kind::Probability,
            default: DefaultValue::Is("0.0005"),
            meaning: "by how much an arrival raises the probability of a full bin",
        },
        Param {
            name: "decrement",
            aliases: &[],
            kind: Kind::Probability,
            default: DefaultValue::Is("0.00005"),
            meaning: "by how much an arrival lowers the probability of an empty bin",
        },
        Param {
            name: "penalty_rate",
            aliases: &[],
            kind: Kind::Number { unit: "packets/s", range: (0, u32::MAX as u64) },
            default: DefaultValue::Is("10"),
            meaning: "what flows that do not respond may send together; 0: nothing",
        },
        Param {
            name: "penalty_burst",
            aliases: &[],
            kind: Kind::Number { unit: "packets", range: (0, u32::MAX as u64) },
            default: DefaultValue::Is("20"),
            meaning: "what they may send at once; 0: nothing",
        },
    ],
    class_params: &[],
    takes_child: false,
    examples: &[
        "sfb limit 30 target 2 increment 0.2 decrement 0.01",
        "sfb rehash 100 db 50 max 6 increment 0.4 penalty_rate 20 penalty_burst 3",
        "sfb penalty_rate 0 increment 1 target 1",
    ],
    build: |set_up, device| Ok(Box::new(Sfb::new(set_up, device)?)),
};

/// 32 bits of hash in levels of 4 bits (`SFB_LEVELS`, `SFB_NUMBUCKETS`).
const LEVELS: usize = 8;
const BINS: usize = 16;

/// `SFB_MAX_PROB`: from here on a flow does not respond.
const CERTAIN: u16 = u16::MAX;

/// Jiffies a second.
const HZ: u64 = 1_000_000_000 / JIFFY.as_nanos();

#[cfg(test)]
mod tests {
    use weir_core::{Dscp, Ecn, FlowLabel, Seed};

    use super::*;
    use crate::port::Ignore;

    fn sfb(words: &str) -> Sfb {
        Sfb::new(&SetUp::parse(&format!("sfb {words}")).unwrap(), &Device::default()).unwrap()
    }

    fn packet(flow: u32, ecn: Ecn) -> Packet {
        Packet {
            handle: 0,
            enqueued_at: Time::ZERO,
            label: FlowLabel { hash: flow, ..FlowLabel::default() },
            len: 1000,
            owner: flow,
            dscp: Dscp::BE,
            ecn,
        }
    }

    fn dropped(queue: &Sfb, reason: DropReason) -> u64 {
        queue.stats().dropped[reason as usize].packets
    }

    /// limit, max, target, increment, decrement: what `tc -d qdisc show` prints on Linux 6.12 (0.000503548
    /// is 33 of 65535, 4.57771e-05 is 3).
    #[test]
    fn parameters_are_those_that_tc_shows() {
        let cases = [
            ("", (1000, 25, 20, 33, 3)),
            ("target 10", (1000, 12, 10, 33, 3)),
            ("max 30 increment 0.01 decrement 0.001 limit 300", (300, 30, 24, 655, 66)),
        ];
        for (words, expected) in cases {
            let Sfb { limit, max, blue, .. } = sfb(words);
            let shown = (limit, max, blue.target, blue.increment, blue.decrement);
            assert_eq!(shown, expected, "{words}");
        }
        let schedule = sfb("rehash 5000 db 1001").schedule;
        assert_eq!((schedule.rehash, schedule.warm_up), (1_250, 251));
    }

    /// A flow that never lets go: its bins are full from two packets on, certain at once, and then it
    /// lives on the penalty box: 3 packets at once, 10 a second.
    #[test]
    fn an_unresponsive_flow_is_held_to_its_penalty() {
        let mut queue = sfb("target 2 max 9 increment 1 penalty_burst 3");
        let mut send = |at: Time| {
            queue.enqueue(packet(7, Ecn::Ect0), at, &mut Ignore);
            (queue.backlog().packets, dropped(&queue, DropReason::Penalty))
        };
        // Two as it likes, three on tokens.
        let first: Vec<_> = (0..7).map(|_| send(Time::from_millis(1_000))).collect();
        assert_eq!(first, [(1, 0), (2, 0), (3, 0), (4, 0), (5, 0), (5, 1), (5, 2)]);
        // 25 jiffies of 10 packets in 250 jiffies make one token.
        assert_eq!(send(Time::from_millis(1_096)), (5, 3));
        // The clock started over with the vain look at 1.096 s.
        assert_eq!(send(Time::from_millis(1_192)), (5, 4));
        assert_eq!(send(Time::from_millis(1_292)), (6, 4));
        assert_eq!(send(Time::from_millis(1_292)), (6, 5));
        // After long the burst is what counts.
        let later: Vec<_> = (0..4).map(|_| send(Time::from_millis(9_000)).0).collect();
        assert_eq!(later, [7, 8, 9, 9]);
        // Another flow is not concerned.
        queue.enqueue(packet(8, Ecn::NotEct), Time::from_millis(9_000), &mut Ignore);
        assert_eq!(queue.backlog().packets, 10);
    }

    #[test]
    fn bins_and_the_queue_have_limits() {
        let mut queue = sfb("max 3 target 3 limit 5 increment 0");
        for flow in [7, 7, 7, 7, 8, 8, 8] {
            queue.enqueue(packet(flow, Ecn::NotEct), Time::ZERO, &mut Ignore);
        }
        assert_eq!(dropped(&queue, DropReason::Overlimit), 2, "one of each flow");
        let flows: Vec<_> = std::iter::from_fn(|| queue.dequeue(Time::ZERO, &mut Ignore))
            .map(|p| p.owner)
            .collect();
        assert_eq!(flows, [7, 7, 7, 8, 8]);
        assert!(queue.filters.iter().flat_map(|f| f.bins).flatten().all(|bin| bin.packets == 0));
    }

    /// Below one half packets are marked where that can be; above, twice the excess is dropped even so.
    #[test]
    fn the_probability_marks_first_and_then_drops() {
        let shares = |probability: f64, ecn: Ecn| {
            let mut queue = sfb("target 1 max 9 increment 0 decrement 0");
            let hash = queue.filters[0].hash(&packet(7, ecn));
            let probability = (probability * 65_535.0) as u16;
            queue.filters[0].bins(hash).for_each(|bin| bin.probability = probability);
            for _ in 0..10_000 {
                queue.enqueue(packet(7, ecn), Time::ZERO, &mut Ignore);
                queue.dequeue(Time::ZERO, &mut Ignore);
            }
            let marked = queue.stats().marked[MarkReason::Early as usize];
            (dropped(&queue, DropReason::Early) as f64 / 1e4, marked as f64 / 1e4)
        };
        let near = |(dropped, marked): (f64, f64), expected: (f64, f64)| {
            assert!((dropped - expected.0).abs() < 0.015, "{dropped} dropped, not {}", expected.0);
            assert!((marked - expected.1).abs() < 0.015, "{marked} marked, not {}", expected.1);
        };
        near(shares(0.25, Ecn::NotEct), (0.25, 0.0));
        near(shares(0.25, Ecn::Ect0), (0.0, 0.25));
        near(shares(0.75, Ecn::Ect0), (0.5, 0.25));
        near(shares(0.75, Ecn::NotEct), (0.75, 0.0));
    }

    /// 1 s of service, the last 400 ms of which the other filter hears of unresponsive flows. A queued
    /// packet leaves the bins into which it came, though the key is another by then.
    #[test]
    fn filters_change_places() {
        let mut queue = sfb("rehash 1000 db 400 target 1 max 50 increment 1 penalty_burst 100");
        let keys = [queue.filters[0].key, queue.filters[1].key];
        let mut send = |ms: u64| {
            queue.enqueue(packet(7, Ecn::NotEct), Time::from_millis(ms), &mut Ignore);
            (queue.serving, queue.warming_up)
        };
        assert_eq!(send(10_000), (0, false));
        assert_eq!(send(10_600), (0, false));
        assert_eq!(send(10_604), (0, true));
        assert_eq!(send(11_000), (0, true));
        assert_eq!(send(11_004), (1, false));
        assert_eq!(send(12_004), (1, true));
        assert_eq!(send(12_008), (0, false));
        assert!(queue.filters[0].key != keys[0] && queue.filters[1].key != keys[1]);
        let in_bins = |sfb: &Sfb| {
            sfb.filters.each_ref().map(|f| f.bins[0].iter().map(|bin| bin.packets).sum::<u16>())
        };
        // The filters heard of packets 1 to 4, 6 and 7, and of 3, 4, 5 and 6.
        assert_eq!(in_bins(&queue), [6, 4]);
        while queue.dequeue(Time::from_millis(13_000), &mut Ignore).is_some() {}
        assert_eq!(in_bins(&queue), [0, 0]);
    }

    /// Four unresponsive flows spoil at most 4 of 16 bins on each of 8 levels: one flow in 65 000 shares
    /// them all.
    #[test]
    fn a_flow_suffers_only_if_all_its_bins_do() {
        let mut filter = Filter::new(&mut Seed::new(1).stream("test"));
        let blue = Blue { target: 1, increment: CERTAIN, decrement: 0 };
        for flow in 0..4 {
            let hash = filter.hash(&packet(flow, Ecn::NotEct));
            filter.bins(hash).for_each(|bin| bin.packets = 1);
            assert_eq!(filter.arrive(hash, blue).1, CERTAIN);
        }
        let innocent = Blue { target: 100, ..blue };
        for flow in 4..1_000 {
            let hash = filter.hash(&packet(flow, Ecn::NotEct));
            assert_eq!(filter.arrive(hash, innocent).1, 0, "{flow}");
        }
    }
}
