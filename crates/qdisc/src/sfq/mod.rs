//! `sfq`: stochastic fairness queueing. Flows are hashed over queues, and these take turns.
//!
//! Follows Linux `net/sched/sch_sfq.c`, with RED on each flow where it is asked for. One thing differs:
//! the time of `perturb` runs from the first packet, and to the nanosecond.

mod ranks;

use std::collections::VecDeque;

use weir_core::{Draw, Duration, Packet, Rng, Time};

use self::ranks::Ranks;
use crate::Device;
use crate::accounting::Accounting;
use crate::contract::{Backlog, DropReason, DropSink, Stats};
use crate::peeked::{Peeked, TakesNext};
use crate::red::{
    BURST, ECN, HARDDROP, PROBABILITY, Policy, RedParams, RedSettings, RedState, RedTold, burst,
    size, size_or_0, thresholds,
};
use crate::registry::Discipline;
use crate::tc::{Classifier, QueueSpec, Record, SpecError, Unless0, number, params, switch};

struct Sfq {
    limit: u32,
    depth: usize,
    quantum: i32,
    head_drop: bool,
    red: Option<(RedParams, Policy)>,
    classifier: Classifier,

    /// The flow to which each value of the hash belongs now.
    buckets: Vec<Option<u32>>,
    flows: Vec<SfqSlot>,
    ranks: Ranks,
    /// The flow that had its turn last; its successor is next.
    last: Option<u32>,

    key: u64,
    perturbation: Option<Perturbation>,
    rng: Rng,
    accounting: Accounting,
}

/// The queue of one value of the hash.
#[derive(Default)]
struct SfqSlot {
    packets: VecDeque<Packet>,
    bytes: u64,
    bucket: usize,
    /// The flow that is served after this one.
    next: u32,
    /// Bytes that the flow may still send in this turn.
    allot: i32,
    red: RedState,
}

/// A new key for the hash every so often.
struct Perturbation {
    period: Duration,
    /// `None` before the first packet.
    due: Option<Time>,
}

/// How many packets and flows there may be.
struct Sizes {
    limit: u32,
    depth: usize,
    flows: usize,
    divisor: usize,
}

impl Sfq {
    fn new(spec: &QueueSpec, device: &Device) -> Result<Self, SpecError> {
        let options: SfqOptions = spec.read(device)?;
        let Sizes { limit, depth, flows, divisor } = Sizes::of(&options)?;
        let quantum = options.quantum;
        if quantum > MAX_QUANTUM_BYTES {
            let allowed = format!("write a size up to {MAX_QUANTUM_BYTES}");
            return Err(SpecError::bad("sfq", "quantum", &quantum.to_string(), &allowed));
        }
        let period = Duration::from_millis(1_000 * options.perturb);
        let mut rng = device.seed.stream("sfq");
        Ok(Self {
            limit,
            depth,
            // A quantum below 256 would spend all time on turns; Linux raises it in silence.
            quantum: quantum.max(256) as i32,
            head_drop: options.headdrop,
            red: options.red(spec)?,
            classifier: Classifier::new(&spec.filters),
            buckets: vec![None; divisor],
            flows: std::iter::repeat_with(SfqSlot::default).take(flows).collect(),
            ranks: Ranks::new(flows, depth),
            last: None,
            key: rng.below(u64::MAX),
            perturbation: (period > Duration::ZERO).then_some(Perturbation { period, due: None }),
            rng,
            accounting: Accounting::default(),
        })
    }

    /// The bucket of `packet`: what a filter says, else its hash.
    fn bucket_of(&self, packet: &Packet) -> Option<usize> {
        if self.classifier.is_empty() {
            return Some(packet.label.rehashed(self.key) as usize & (self.buckets.len() - 1));
        }
        let number = usize::from(self.classifier.classify(packet)?.minor);
        (1..=self.buckets.len()).contains(&number).then(|| number - 1)
    }

    /// The flow of `bucket`, a fresh one if it has none; `None` if all flows are taken.
    fn flow_of(&mut self, bucket: usize) -> Option<u32> {
        if let Some(index) = self.buckets[bucket] {
            return Some(index);
        }
        let index = self.ranks.empty()?;
        self.buckets[bucket] = Some(index);
        let flow = &mut self.flows[index as usize];
        flow.bucket = bucket;
        flow.red = RedState::default();
        Some(index)
    }

    /// Appends `packet` to the flow, which joins the round if it was empty.
    fn push(&mut self, index: u32, packet: Packet) {
        let flow = &mut self.flows[index as usize];
        flow.bytes += u64::from(packet.len);
        flow.packets.push_back(packet);
        self.ranks.grow(index);
        if flow.packets.len() > 1 {
            return;
        }
        flow.allot = self.quantum;
        match self.last.replace(index) {
            None => flow.next = index,
            // At the end of the round: a flow that keeps coming back must not starve the others.
            Some(last) => {
                let first = std::mem::replace(&mut self.flows[last as usize].next, index);
                self.flows[index as usize].next = first;
            }
        }
    }

    /// RED on a flow that has packets: whether `packet` may wait, and if not, why.
    fn judge(
        &mut self,
        index: u32,
        packet: &mut Packet,
        now: Time,
        sink: &mut dyn DropSink,
    ) -> Option<DropReason> {
        let (params, policy) = self.red.as_ref()?;
        let flow = &mut self.flows[index as usize];
        let average = flow.red.update(params, flow.bytes, now);
        let verdict = flow.red.decide(params, average, &mut self.rng);
        if self.head_drop {
            // The sender hears of it sooner through the packet that leaves first.
            let head = flow.packets.front_mut().expect("a flow of a bucket has packets");
            policy.carry_out(verdict, head, &mut self.accounting, sink)?;
        }
        policy.carry_out(verdict, packet, &mut self.accounting, sink)
    }

    /// The flow is full or RED said so: the arrival goes, or with `headdrop` the flow's first packet.
    fn drop_in_flow(
        &mut self,
        index: u32,
        packet: Packet,
        reason: DropReason,
        sink: &mut dyn DropSink,
    ) {
        if !self.head_drop {
            return self.accounting.xmit_drop(packet, reason, sink);
        }
        let flow = &mut self.flows[index as usize];
        let head = flow.packets.pop_front().expect("a flow of a bucket has packets");
        self.accounting.arrive(&packet);
        flow.bytes = flow.bytes + u64::from(packet.len) - u64::from(head.len);
        flow.packets.push_back(packet);
        self.accounting.take(&head);
        self.accounting.discard(head, reason, sink);
    }

    /// The queue is full: a packet of the longest flow goes. If all flows hold one packet, the flow
    /// whose turn it is loses it.
    fn drop_from_longest(&mut self, sink: &mut dyn DropSink) {
        let (longest, length) = self.ranks.longest();
        let index = if length > 1 {
            longest.expect("a flow of that length")
        } else {
            let last = self.last.expect("the queue is full");
            let next = self.flows[last as usize].next;
            self.leave_round(last, next);
            next
        };
        let flow = &mut self.flows[index as usize];
        let packet =
            if self.head_drop { flow.packets.pop_front() } else { flow.packets.pop_back() };
        let packet = packet.expect("a flow of the round has packets");
        flow.bytes -= u64::from(packet.len);
        self.ranks.shrink(index);
        self.accounting.take(&packet);
        self.accounting.discard(packet, DropReason::Overlimit, sink);
    }

    /// `index`, which comes after `last`, has nothing left: it leaves the round and its bucket.
    fn leave_round(&mut self, last: u32, index: u32) {
        let SfqSlot { next, bucket, .. } = self.flows[index as usize];
        self.buckets[bucket] = None;
        if next == index {
            self.last = None;
        } else {
            self.flows[last as usize].next = next;
        }
    }

    /// Makes up for every perturbation that was due.
    fn perturb(&mut self, now: Time, sink: &mut dyn DropSink) {
        let Some(Perturbation { period, due }) = &mut self.perturbation else { return };
        let (period, mut at) = (*period, *due.get_or_insert(now + *period));
        while at <= now {
            self.key = self.rng.below(u64::MAX);
            if self.classifier.is_empty() && self.last.is_some() {
                self.rehash(at, sink);
            }
            at += period;
        }
        self.perturbation = Some(Perturbation { period, due: Some(at) });
    }

    /// Moves every packet to its flow under the new key, lest packets of one flow overtake each other.
    fn rehash(&mut self, now: Time, sink: &mut dyn DropSink) {
        let mut packets = Vec::new();
        for (index, flow) in self.flows.iter_mut().enumerate() {
            if flow.packets.is_empty() {
                continue;
            }
            for packet in flow.packets.drain(..) {
                self.ranks.shrink(index as u32);
                packets.push(packet);
            }
            flow.bytes = 0;
            self.buckets[flow.bucket] = None;
        }
        self.last = None;
        for packet in packets {
            let bucket = self.bucket_of(&packet).expect("nothing but the hash decides");
            let room = self
                .flow_of(bucket)
                .filter(|&index| self.flows[index as usize].packets.len() < self.depth);
            let Some(index) = room else {
                self.accounting.take(&packet);
                self.accounting.discard(packet, DropReason::Overlimit, sink);
                continue;
            };
            if let Some((params, _)) = &self.red {
                let flow = &mut self.flows[index as usize];
                flow.red.update(params, flow.bytes, now);
            }
            self.push(index, packet);
        }
    }
}

impl Sizes {
    /// The sizes as the kernel makes them fit one another (`sfq_change`).
    fn of(options: &SfqOptions) -> Result<Self, SpecError> {
        let depth = options.depth.min(MAX_DEPTH_PACKETS);
        let divisor = options.divisor;
        if !divisor.is_power_of_two() {
            return Err(SpecError::bad(
                "sfq",
                "divisor",
                &divisor.to_string(),
                "write a power of two",
            ));
        }
        let mut flows = options.flows.min(MAX_FLOWS).min(divisor);
        let mut limit = DEFAULT_LIMIT;
        if let Some(written) = options.limit {
            limit = written.min(depth * flows);
            flows = flows.min(limit);
        }
        if limit == 1 {
            return Err(SpecError::new(
                "sfq: one flow of one packet is no queue: raise `depth` or `flows`",
            ));
        }
        Ok(Self {
            limit: limit as u32,
            depth: depth as usize,
            flows: flows as usize,
            divisor: divisor as usize,
        })
    }
}

impl SfqOptions {
    /// RED on each flow, if it is asked for, with the thresholds that `tc` computes.
    fn red(&self, spec: &QueueSpec) -> Result<Option<(RedParams, Policy)>, SpecError> {
        let found = self.settings(spec)?;
        found.map(|(settings, policy)| Ok((settings.for_kernel("sfq")?, policy))).transpose()
    }

    /// What a kernel is told of RED on each flow, and the limit of a flow's bytes.
    ///
    /// # Errors
    /// If words about RED stand without `redflowlimit`, or the thresholds are out of order.
    pub fn red_told(&self, spec: &QueueSpec) -> Result<Option<(u32, RedTold)>, SpecError> {
        let found = self.settings(spec)?;
        let limit = self.redflowlimit.0.unwrap_or(0);
        found.map(|(settings, policy)| Ok((limit, settings.told("sfq", policy)?))).transpose()
    }

    fn settings(&self, spec: &QueueSpec) -> Result<Option<(RedSettings, Policy)>, SpecError> {
        let Unless0(Some(limit)) = self.redflowlimit else {
            return match spec.all_words().find(|word| RED_WORDS.contains(&word.as_str())) {
                None => Ok(None),
                Some(word) => Err(SpecError::new(format!(
                    "sfq: `{word}` is about RED on each flow, which needs `redflowlimit`"
                ))),
            };
        };
        let (min, max) = thresholds("sfq", ("redflowlimit", limit), self.min, self.max)?;
        let settings = RedSettings {
            min,
            max,
            unit: 1,
            average_packet: self.avpkt,
            burst: burst(self.burst, min, max, self.avpkt),
            probability: self.probability,
            bandwidth: None,
            gentle: false,
        };
        let policy = Policy { ecn: self.ecn, harddrop: self.harddrop, ..Policy::default() };
        Ok(Some((settings, policy)))
    }
}

impl TakesNext for Sfq {
    fn enqueue(&mut self, packet: &Packet, now: Time, sink: &mut dyn DropSink) {
        let mut packet = *packet;
        self.perturb(now, sink);
        let Some(bucket) = self.bucket_of(&packet) else {
            return self.accounting.xmit_cn(packet, DropReason::Unclassified, sink);
        };
        let known = self.buckets[bucket].is_some();
        let Some(index) = self.flow_of(bucket) else {
            return self.accounting.xmit_drop(packet, DropReason::Overlimit, sink);
        };
        if known {
            let full = self.flows[index as usize].packets.len() >= self.depth;
            let reason = self.judge(index, &mut packet, now, sink);
            if let Some(reason) = reason.or(full.then_some(DropReason::Overlimit)) {
                return self.drop_in_flow(index, packet, reason, sink);
            }
        }
        self.accounting.arrive(&packet);
        self.push(index, packet);
        if self.accounting.backlog().packets > self.limit {
            self.drop_from_longest(sink);
        }
    }

    fn run_timers(&mut self, now: Time, sink: &mut dyn DropSink) {
        self.perturb(now, sink);
    }

    /// Serves the flows in turn.
    fn take_next(&mut self, _now: Time, _sink: &mut dyn DropSink) -> Option<Packet> {
        loop {
            let last = self.last?;
            let index = self.flows[last as usize].next;
            let flow = &mut self.flows[index as usize];
            if flow.allot <= 0 {
                flow.allot += self.quantum;
                self.last = Some(index);
                continue;
            }
            let packet = flow.packets.pop_front().expect("a flow of the round has packets");
            flow.bytes -= u64::from(packet.len);
            flow.allot -= packet.len as i32;
            let emptied = flow.packets.is_empty();
            self.ranks.shrink(index);
            self.accounting.take(&packet);
            if emptied {
                self.leave_round(last, index);
            }
            return Some(packet);
        }
    }

    fn accounting(&mut self) -> Option<&mut Accounting> {
        Some(&mut self.accounting)
    }

    fn backlog(&self) -> Backlog {
        self.accounting.backlog()
    }

    fn stats(&self) -> Stats {
        self.accounting.stats()
    }
}

params! {
    /// Parameters of `sfq`.
    pub struct SfqOptions {
        /// most packets that may wait in all flows together (depth x flows at most)
        pub limit: Option<u64> = number("packets", 2, u32::MAX as u64).absent("127"),
        /// how often the hash gets a new key; 0: never
        pub perturb: u64 = number("s", 0, MAX_PERTURB_S).default("0"),
        /// bytes that a flow may send in one turn (256 at least)
        pub quantum: u32 = size().default_of("one full packet", |device| device.full_packet().to_string()).or_0(),
        /// how many values the hash has, a power of two
        pub divisor: u64 = number("values", 1, 65_536).default("1024").or_0(),
        /// most flows that may have packets waiting (65408, divisor, limit at most)
        pub flows: u64 = number("queues", 1, u32::MAX as u64).default("128").or_0(),
        /// most packets of one flow (127 at most)
        pub depth: u64 = number("packets", 1, u32::MAX as u64).default("127").or_0(),
        /// drop a flow's first packet instead of its last, and mark that first
        pub headdrop: bool = switch(),
        /// switches RED on each flow on; sets its thresholds where they are not written
        redflowlimit: Unless0<u32> = size_or_0().absent_or_0("no RED"),
        /// RED: a flow's average backlog below which nothing is dropped
        min: Unless0<u32> = size_or_0().absent_or_0("max / 3"),
        /// RED: a flow's average backlog from which everything is dropped or marked
        max: Unless0<u32> = size_or_0().absent_or_0("redflowlimit / 4"),
        /// RED: bytes of an average packet
        avpkt: u32 = size().default("1000"),
        burst: Unless0<u32> = BURST,
        probability: f64 = PROBABILITY,
        ecn: bool = ECN,
        harddrop: bool = HARDDROP,
    }
}

pub(crate) static SFQ: Discipline = Discipline {
    name: "sfq",
    summary: "stochastic fairness queueing: flows hashed over queues that take turns",
    source: "Linux net/sched/sch_sfq.c; McKenney 1990",
    params: SfqOptions::PARAMS,
    class_params: &[],
    takes_child: false,
    examples: &[
        "sfq limit 12 depth 4 quantum 600",
        "sfq limit 20 headdrop perturb 1 divisor 4 depth 6",
        "sfq redflowlimit 30000 min 1500 max 4000 burst 3 ecn headdrop flows 3 probability 0.3",
        "sfq redflowlimit 20000 min 1500 max 4000 burst 3 ecn harddrop limit 40",
        "sfq limit 3 depth 1",
    ],
    build: |spec, device| Ok(Box::new(Peeked::new(Sfq::new(spec, device)?))),
};

/// The parameters that are about RED alone.
const RED_WORDS: [&str; 7] = ["min", "max", "avpkt", "burst", "probability", "ecn", "harddrop"];

/// `SFQ_MAX_DEPTH`, also the limit where none is written.
const MAX_DEPTH_PACKETS: u64 = 127;
const DEFAULT_LIMIT: u64 = MAX_DEPTH_PACKETS;

/// `SFQ_MAX_FLOWS`.
const MAX_FLOWS: u64 = 65_536 - MAX_DEPTH_PACKETS - 1;

/// What a kernel of any length of tick takes: `INT_MAX / HZ`, with 1000 ticks a second (`sfq_change`).
const MAX_PERTURB_S: u64 = i32::MAX as u64 / 1_000;

/// 1 MiB (`sfq_change`).
const MAX_QUANTUM_BYTES: u32 = 1 << 20;

#[cfg(test)]
mod tests;
