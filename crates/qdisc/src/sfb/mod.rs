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
use crate::accounting::Accounting;
use crate::contract::{Backlog, DropReason, DropSink, MarkReason, Qdisc, Stats};
use crate::linux::JIFFY;
use crate::registry::Discipline;
use crate::tc::{Classifier, QueueSpec, Record, SpecError, Unless0, number, params, probability};

struct Sfb {
    limit: u32,
    blue: Blue,
    /// Packets that every bin of a flow may hold.
    max: u32,
    schedule: Schedule,
    penalty_box: PenaltyBox,
    classifier: Classifier,
    filters: [Filter; 2],
    /// Number of the filter that serves, 0 or 1.
    serving: usize,
    /// Whether the other filter hears of unresponsive flows already.
    warming_up: bool,
    rng: Rng,
    packets: VecDeque<(Packet, Hashes)>,
    accounting: Accounting,
}

/// A packet's hash in each filter; `None` where that filter does not know of it.
type Hashes = [Option<u32>; 2];

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
    /// How long a filter serves; `None`: for ever.
    rehash: Option<u64>,
    /// How long before it serves a filter warms up; `None`: it does not.
    warm_up: Option<u64>,
    /// Of the last change; `None` before the first packet.
    since: Option<u64>,
}

/// Token bucket that all unresponsive flows share.
struct PenaltyBox {
    /// Packets a second.
    rate: u64,
    burst: u64,
    tokens: u64,
    /// In jiffies; `None` before the first packet.
    refilled_at: Option<u64>,
}

/// SFB's decision on an arrival.
enum SfbVerdict {
    Wait,
    Mark,
    Drop(DropReason),
}

impl Sfb {
    fn new(spec: &QueueSpec, device: &Device) -> Result<Self, SpecError> {
        let options: SfbOptions = spec.read(device)?;
        let (max, target) = options.bin_sizes();
        let jiffies = |ms: u64| (ms > 0).then(|| (ms * 1_000_000).div_ceil(JIFFY.as_nanos()));
        let (increment, decrement) = options.steps();
        let mut rng = device.seed.stream("sfb");
        Ok(Self {
            limit: options.limit.0.unwrap_or(device.tx_queue_len),
            blue: Blue { target, increment, decrement },
            max,
            schedule: Schedule {
                rehash: jiffies(options.rehash),
                warm_up: jiffies(options.db),
                since: None,
            },
            penalty_box: PenaltyBox {
                rate: options.penalty_rate,
                burst: options.penalty_burst,
                tokens: options.penalty_burst,
                refilled_at: None,
            },
            classifier: Classifier::new(&spec.filters),
            filters: [Filter::new(&mut rng), Filter::new(&mut rng)],
            serving: 0,
            warming_up: false,
            rng,
            packets: VecDeque::new(),
            accounting: Accounting::default(),
        })
    }

    /// Lets the filters change places, or the other one warm up, if it is time.
    fn keep_schedule(&mut self, jiffy: u64) {
        let Schedule { rehash, warm_up, ref mut since } = self.schedule;
        let Some(last) = *since else {
            *since = Some(jiffy);
            self.penalty_box.refilled_at = Some(jiffy);
            return;
        };
        let Some(rehash) = rehash else { return };
        if jiffy > last + rehash {
            self.filters[self.serving].key = self.rng.below(u64::MAX);
            self.serving ^= 1;
            self.warming_up = false;
            *since = Some(jiffy);
        } else if warm_up.is_some_and(|warm_up| jiffy + warm_up > last + rehash) {
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
            if let Some(hash) = hash {
                filter.bins(hash).for_each(&change);
            }
        }
    }

    /// Judges `packet` by its `hash` in the filter that serves, and moves the probabilities of its bins. Tells the
    /// verdict and the hashes of the filters that have seen the packet.
    fn judge(&mut self, packet: &Packet, hash: u32, jiffy: u64) -> (SfbVerdict, Hashes) {
        let mut hashes = [None; 2];
        hashes[self.serving] = Some(hash);
        let verdict = self.verdict(packet, hash, &mut hashes[self.serving ^ 1], jiffy);
        (verdict, hashes)
    }

    fn verdict(
        &mut self,
        packet: &Packet,
        hash: u32,
        other_hash: &mut Option<u32>,
        jiffy: u64,
    ) -> SfbVerdict {
        let serving = &mut self.filters[self.serving];
        let (fewest, lowest) = serving.arrive(hash, self.blue);
        if u32::from(fewest) >= self.max {
            return SfbVerdict::Drop(DropReason::Overlimit);
        }
        if lowest == CERTAIN {
            if self.warming_up {
                let other = &mut self.filters[self.serving ^ 1];
                let hash_there = other.hash(packet);
                other.arrive(hash_there, self.blue);
                *other_hash = Some(hash_there);
            }
            let passes = self.penalty_box.admits(jiffy);
            return if passes { SfbVerdict::Wait } else { SfbVerdict::Drop(DropReason::Penalty) };
        }
        let drawn = self.rng.below(1 << 16) as u16;
        if drawn >= lowest {
            return SfbVerdict::Wait;
        }
        // Above one half the flow hardly responds, or all is badly congested: part of it is dropped.
        let beyond = u32::from(lowest.saturating_sub(CERTAIN / 2)) * 2;
        if u32::from(drawn) < beyond {
            SfbVerdict::Drop(DropReason::Early)
        } else {
            SfbVerdict::Mark
        }
    }
}

impl Filter {
    fn new(rng: &mut Rng) -> Self {
        Self { key: rng.below(u64::MAX), bins: [[Bin::default(); BINS]; LEVELS] }
    }

    /// The hash of the flow; never 0, which in Linux stands for none.
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
            let age = self.refilled_at.replace(jiffy).map_or(0, |last| jiffy - last).min(10 * HZ);
            self.tokens = (age * self.rate / HZ).min(self.burst);
            if self.tokens < 1 {
                return false;
            }
        }
        self.tokens -= 1;
        true
    }
}

impl SfbOptions {
    /// By how much an arrival raises or lowers the probability of a bin, as fractions of 65535.
    #[must_use]
    pub fn steps(&self) -> (u16, u16) {
        let fraction = |probability: f64| (probability * f64::from(CERTAIN) + 0.5) as u16;
        (fraction(self.increment), fraction(self.decrement))
    }

    /// `max` and `target`, each computed from the other where it is not written, as `tc` does.
    #[must_use]
    pub fn bin_sizes(&self) -> (u32, u32) {
        let (Unless0(max), Unless0(target)) = (self.max, self.target);
        let max = max.unwrap_or_else(|| target.map_or(25, |target| (target * 5 + 1) / 4));
        (max, target.unwrap_or_else(|| (max * 4).div_ceil(5)))
    }
}

fn jiffies(now: Time) -> u64 {
    now.as_nanos() / JIFFY.as_nanos()
}

impl Qdisc for Sfb {
    fn enqueue(&mut self, packet: &Packet, now: Time, sink: &mut dyn DropSink) {
        let mut packet = *packet;
        if self.accounting.backlog().packets >= self.limit {
            return self.accounting.xmit_cn(packet, DropReason::Overlimit, sink);
        }
        self.keep_schedule(jiffies(now));
        let Some(hash) = self.hash(&packet) else {
            return self.accounting.xmit_cn(packet, DropReason::Unclassified, sink);
        };
        let (verdict, hashes) = self.judge(&packet, hash, jiffies(now));
        match verdict {
            SfbVerdict::Wait => {}
            SfbVerdict::Mark => {
                if !self.accounting.mark(&mut packet, MarkReason::Early, sink) {
                    return self.accounting.xmit_cn(packet, DropReason::Early, sink);
                }
            }
            SfbVerdict::Drop(reason) => return self.accounting.xmit_cn(packet, reason, sink),
        }
        self.for_bins(hashes, |bin| bin.packets = bin.packets.saturating_add(1));
        self.accounting.arrive(&packet);
        self.packets.push_back((packet, hashes));
    }

    fn dequeue(&mut self, _now: Time, _fates: &mut dyn DropSink) -> Option<Packet> {
        let (packet, hashes) = self.packets.pop_front()?;
        self.for_bins(hashes, |bin| bin.packets = bin.packets.saturating_sub(1));
        self.accounting.take(&packet);
        self.accounting.depart(&packet);
        Some(packet)
    }

    fn peek(&mut self, _now: Time, _fates: &mut dyn DropSink) -> Option<&Packet> {
        self.packets.front().map(|(packet, _)| packet)
    }

    fn backlog(&self) -> Backlog {
        self.accounting.backlog()
    }

    fn stats(&self) -> Stats {
        self.accounting.stats()
    }
}

params! {
    /// Parameters of `sfb`.
    pub struct SfbOptions {
        /// how long a filter serves; 0: for ever
        pub rehash: u64 = number("ms", 0, i32::MAX as u64).default("600000"),
        /// how long before it serves a filter warms up (double buffering); 0: not at all
        pub db: u64 = number("ms", 0, i32::MAX as u64).default("60000"),
        /// most packets that may wait in all flows together
        pub limit: Unless0<u32> = number("packets", 0, u32::MAX as u64).absent_or_0("txqueuelen"),
        /// most packets of one flow
        max: Unless0<u32> = number("packets", 0, 65_535).absent_or_0("5/4 target, else 25"),
        /// packets from which a bin raises its probability
        target: Unless0<u32> = number("packets", 0, 65_535).absent_or_0("4/5 max"),
        /// by how much an arrival raises the probability of a full bin
        increment: f64 = probability().default("0.0005"),
        /// by how much an arrival lowers the probability of an empty bin
        decrement: f64 = probability().default("0.00005"),
        /// what flows that do not respond may send together; 0: nothing
        pub penalty_rate: u64 = number("packets/s", 0, u32::MAX as u64).default("10"),
        /// what they may send at once; 0: nothing
        pub penalty_burst: u64 = number("packets", 0, u32::MAX as u64).default("20"),
    }
}

pub(crate) static SFB: Discipline = Discipline {
    name: "sfb",
    summary: "stochastic fair BLUE: a drop probability a flow, kept in a Bloom filter",
    source: "Linux net/sched/sch_sfb.c; Feng, Kandlur, Saha, Shin 2001",
    params: SfbOptions::PARAMS,
    class_params: &[],
    takes_child: false,
    examples: &[
        "sfb limit 30 target 2 increment 0.2 decrement 0.01",
        "sfb rehash 100 db 50 max 6 increment 0.4 penalty_rate 20 penalty_burst 3",
        "sfb penalty_rate 0 increment 1 target 1",
    ],
    build: |spec, device| Ok(Box::new(Sfb::new(spec, device)?)),
};

/// 32 bits of hash in levels of 4 bits (`SFB_LEVELS`, `SFB_NUMBUCKETS`).
const LEVELS: usize = 8;
const BINS: usize = 16;

/// `SFB_MAX_PROB`: from here on a flow does not respond.
const CERTAIN: u16 = u16::MAX;

/// Jiffies a second.
const HZ: u64 = 1_000_000_000 / JIFFY.as_nanos();

#[cfg(test)]
mod tests;
