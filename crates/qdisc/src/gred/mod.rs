//! `gred`: one FIFO, up to sixteen kinds of packets, each under a RED of its own.
//!
//! Follows Linux `net/sched/sch_gred.c`. The kinds are called virtual queues: each has its thresholds,
//! its limit, and what waits of it; the packets share one FIFO. With `grio` a virtual queue also feels
//! the averages of all with a lower `prio` (as RIO's OUT packets feel the IN packets); if two have the
//! same `prio`, all share one average of the whole (WRED).
//!
//! Linux takes the virtual queue from `skb->tc_index`, which a filter on `clsact` sets. Such filters
//! are read, and filters on the discipline itself, which Linux has not, do the same.

use std::collections::VecDeque;

use weir_core::tables::{count, joined};
use weir_core::{Packet, Rate, Rng, Time};

use crate::Device;
use crate::accounting::Accounting;
use crate::contract::{Backlog, ClassView, DropReason, DropSink, Qdisc, Stats};
use crate::red::{
    Average, BANDWIDTH, BURST, ECN, HARDDROP, PROBABILITY, Policy, RedParams, RedSettings,
    RedState, burst, size, size_or_0,
};
use crate::registry::Discipline;
use crate::tc::{
    self, Classifier, Declared, Param, QueueSpec, Record, SpecError, Unless0, number, params,
    switch,
};

struct Gred {
    /// Most bytes of packets without a virtual queue together with all others.
    limit: u64,
    /// The virtual queue of packets that name none that there is.
    default: usize,
    averaging: Averaging,
    queues: Vec<Option<VirtualQueue>>,
    /// The average and idle time that all share in WRED.
    shared: RedState,
    classifier: Classifier,
    rng: Rng,
    packets: VecDeque<(Packet, Option<usize>)>,
    /// Bytes of all packets.
    bytes: u64,
    /// Packets without a virtual queue.
    others: Accounting,
}

/// By which average a virtual queue goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Averaging {
    /// Its own.
    Own,
    /// Its own and those of all with a lower `prio`.
    Rio,
    /// One of the whole queue.
    Wred,
}

struct VirtualQueue {
    limit: u64,
    priority: u64,
    params: RedParams,
    policy: Policy,
    state: RedState,
    accounting: Accounting,
}

impl Gred {
    fn new(spec: &QueueSpec, device: &Device) -> Result<Self, SpecError> {
        let mut parts = parts_of(spec).into_iter();
        let first = parts.next().unwrap_or_default();
        let SetupOptions { gred, limit, ecn, harddrop } = tc::read("gred", &first, device)?;
        let GredOptions { vqs: count, default, grio, .. } = gred;
        let common = Policy { ecn, harddrop, nodrop: false };
        let below_count = |owner: &str, name: &str, number: usize| match number < count {
            true => Ok(number),
            false => {
                let allowed = format!("write a number below `vqs` {count}");
                Err(SpecError::bad(owner, name, &number.to_string(), &allowed))
            }
        };
        below_count("gred", "default", default)?;
        let whole = u64::from(device.tx_queue_len) * u64::from(device.full_packet());
        let limit = limit.0.map_or(whole, u64::from);
        let mut queues: Vec<Option<VirtualQueue>> =
            std::iter::repeat_with(|| None).take(count).collect();
        for words in parts {
            let options: VqOptions = tc::read("gred vq", &words, device)?;
            let number = below_count("gred vq", "vq", options.vq)?;
            let of_default = queues[default].as_ref().map(|queue| queue.priority);
            let mut queue = VirtualQueue::new(&options, common)?;
            queue.limit = queue.limit.min(limit);
            if grio && queue.priority == 0 {
                queue.priority = of_default.unwrap_or(DEFAULT_PRIORITY);
            }
            queues[number] = Some(queue);
        }
        let filters: Vec<_> = spec.filters.iter().chain(&*spec.egress).cloned().collect();
        Ok(Self {
            limit,
            default,
            averaging: Averaging::of(grio, &queues),
            queues,
            shared: RedState::default(),
            classifier: Classifier::new(&filters),
            rng: device.seed.stream("gred"),
            packets: VecDeque::new(),
            bytes: 0,
            others: Accounting::default(),
        })
    }

    /// The virtual queue of `packet`: the number that a filter gave it (0 if none did), or the default.
    fn number_of(&self, packet: &Packet) -> usize {
        let index = self.classifier.classify(packet).map_or(0, |class| usize::from(class.minor));
        let number = index % MAX_QUEUES;
        if matches!(self.queues.get(number), Some(Some(_))) { number } else { self.default }
    }

    /// The averages that weigh on a virtual queue of that priority beside its own.
    fn weight_of_others(&self, priority: u64) -> Average {
        if self.averaging != Averaging::Rio {
            return 0;
        }
        let before = self.queues.iter().flatten().filter(|queue| queue.priority < priority);
        before.filter(|queue| !queue.state.is_idle()).map(|queue| queue.state.average()).sum()
    }

    fn push(&mut self, packet: Packet, number: Option<usize>) {
        self.bytes += u64::from(packet.len);
        self.packets.push_back((packet, number));
    }

    /// A packet for which there is no virtual queue, not even the default: a plain FIFO.
    fn enqueue_unassigned(&mut self, packet: Packet, sink: &mut dyn DropSink) {
        if self.bytes + u64::from(packet.len) > self.limit {
            return self.others.xmit_drop(packet, DropReason::Overlimit, sink);
        }
        self.others.arrive(&packet);
        self.push(packet, None);
    }

    fn all_accounting(&self) -> impl Iterator<Item = &Accounting> {
        self.queues.iter().flatten().map(|queue| &queue.accounting).chain([&self.others])
    }
}

impl Averaging {
    /// Without `grio` each its own; with it, WRED if any two have the same priority.
    fn of(grio: bool, queues: &[Option<VirtualQueue>]) -> Self {
        let mut priorities: Vec<_> = queues.iter().flatten().map(|queue| queue.priority).collect();
        priorities.sort_unstable();
        match priorities.windows(2).any(|pair| pair[0] == pair[1]) {
            _ if !grio => Self::Own,
            false => Self::Rio,
            true => Self::Wred,
        }
    }
}

impl VirtualQueue {
    fn new(options: &VqOptions, common: Policy) -> Result<Self, SpecError> {
        let VqOptions { min, max, avpkt, ecn, harddrop, .. } = *options;
        let own = Policy { ecn, harddrop, nodrop: false };
        let policy = if common == Policy::default() || common == own { own } else { common };
        if own != Policy::default() && own != policy {
            return Err(SpecError::new(
                "gred vq: `ecn` and `harddrop` stand in `setup` already and hold for all; leave them \
                 out here",
            ));
        }
        let Unless0(Some(limit)) = options.limit else {
            let allowed = "write a size of at least 1 byte";
            return Err(SpecError::bad("gred vq", "limit", "0", allowed));
        };
        let settings = RedSettings {
            min,
            max,
            unit: 1,
            average_packet: avpkt,
            burst: burst(options.burst, min, max, avpkt),
            probability: options.probability,
            bandwidth: Some(options.bandwidth),
            gentle: false,
        };
        Ok(Self {
            limit: limit.into(),
            priority: options.prio,
            params: settings.for_kernel("gred vq")?,
            policy,
            state: RedState::default(),
            accounting: Accounting::default(),
        })
    }
}

/// The words of `setup`, then those of each virtual queue. In the short form a virtual queue begins
/// with `vq`; in the full form it is a `qdisc change` of its own.
fn parts_of(spec: &QueueSpec) -> Vec<Vec<String>> {
    let mut parts = vec![Vec::new()];
    for word in &spec.words {
        if VQ.param("vq", "").answers_to(word) {
            parts.push(Vec::new());
        }
        parts.last_mut().expect("there is one").push(word.clone());
    }
    parts.extend(spec.changes.iter().cloned());
    parts
}

impl Qdisc for Gred {
    fn enqueue(&mut self, packet: &Packet, now: Time, sink: &mut dyn DropSink) {
        let mut packet = *packet;
        let number = self.number_of(&packet);
        let Some(priority) = self.queues[number].as_ref().map(|queue| queue.priority) else {
            return self.enqueue_unassigned(packet, sink);
        };
        let weight = self.weight_of_others(priority);
        let wred = self.averaging == Averaging::Wred;
        let queue = self.queues[number].as_mut().expect("it was just there");
        let backlog = if wred { self.bytes } else { queue.accounting.backlog().bytes };
        if wred {
            queue.state.share_average_of(&self.shared);
        }
        let average = queue.state.update(&queue.params, backlog, now);
        if wred {
            self.shared.share_average_of(&queue.state);
        }
        let verdict = queue.state.decide(&queue.params, average + weight, &mut self.rng);
        if let Some(reason) =
            queue.policy.carry_out(verdict, &mut packet, &mut queue.accounting, sink)
        {
            return queue.accounting.xmit_cn(packet, reason, sink);
        }
        if backlog + u64::from(packet.len) > queue.limit {
            return queue.accounting.xmit_drop(packet, DropReason::Overlimit, sink);
        }
        queue.accounting.arrive(&packet);
        self.push(packet, Some(number));
    }

    fn dequeue(&mut self, now: Time, _fates: &mut dyn DropSink) -> Option<Packet> {
        let (packet, number) = self.packets.pop_front()?;
        self.bytes -= u64::from(packet.len);
        let queue = number.and_then(|number| self.queues[number].as_mut());
        let Some(queue) = queue else {
            self.others.take(&packet);
            self.others.depart(&packet);
            return Some(packet);
        };
        queue.accounting.take(&packet);
        queue.accounting.depart(&packet);
        if self.averaging == Averaging::Wred {
            if self.bytes == 0 {
                self.shared.start_idling(now);
            }
        } else if queue.accounting.backlog().bytes == 0 {
            queue.state.start_idling(now);
        }
        Some(packet)
    }

    fn peek(&mut self, _now: Time, _fates: &mut dyn DropSink) -> Option<&Packet> {
        self.packets.front().map(|(packet, _)| packet)
    }

    fn backlog(&self) -> Backlog {
        Backlog { packets: self.packets.len() as u32, bytes: self.bytes }
    }

    fn stats(&self) -> Stats {
        self.all_accounting().fold(Stats::default(), |mut sum, accounting| {
            sum += accounting.stats();
            sum
        })
    }

    fn classes(&self, visit: &mut dyn FnMut(ClassView<'_>)) {
        for (name, queue) in NAMES.into_iter().zip(&self.queues) {
            if let Some(VirtualQueue { accounting, .. }) = queue {
                visit(ClassView { name, backlog: accounting.backlog(), stats: accounting.stats() });
            }
        }
    }
}

pub(crate) static GRED: Discipline = Discipline {
    name: "gred",
    summary: "generic RED: kinds of packets with a RED each in one FIFO; with `grio`, RIO",
    source: "Linux net/sched/sch_gred.c",
    params: &joined::<_, { count(PARAMS) }>(PARAMS),
    class_params: &[],
    takes_child: false,
    examples: &[
        "gred setup vqs 2 default 1 grio limit 30000 \
         vq 0 prio 1 limit 30000 min 4000 max 12000 avpkt 1000 probability 0.1 \
         vq 1 prio 2 limit 20000 min 2000 max 6000 avpkt 1000 probability 0.2 ecn",
        "gred setup vqs 4 default 2 limit 20000 ecn vq 0 limit 9000 min 2000 max 6000 avpkt 1000",
        "qdisc add dev a root handle 1: gred setup DPs 3 default 2 grio
         qdisc change dev a root handle 1: gred limit 20000 min 2000 max 6000 avpkt 1000 DP 2 prio 4
         qdisc change dev a root handle 1: gred limit 20000 min 3000 max 6000 avpkt 1000 DP 1
         filter add dev a parent 1: u32 match ip tos 0xb8 0xfc flowid 1:1
         filter add dev a parent 1: matchall flowid 1:2",
    ],
    build: |spec, device| Ok(Box::new(Gred::new(spec, device)?)),
};

params! {
    /// Parameters of `gred` that only the discipline as a whole has.
    struct GredOptions {
        /// comes before `vqs`, `default`, `grio`, as in `tc`
        _setup as "setup": bool = switch(),
        /// how many virtual queues there may be
        vqs: usize = number("virtual queues", 1, MAX_QUEUES as u64).aliases(&["DPs"]),
        /// the virtual queue of packets that name none that there is
        default: usize = number("virtual queue", 0, MAX_QUEUES as u64 - 1),
        /// add the averages of lower prio; with equal prios, one average for all (WRED)
        grio: bool = switch(),
    }
}

params! {
    /// Parameters of the discipline as a whole, before those of its virtual queues.
    struct SetupOptions {
        gred: GredOptions,
        limit: Unless0<u32> = LIMIT,
        ecn: bool = ECN,
        harddrop: bool = HARDDROP,
    }
}

params! {
    /// Parameters of each virtual queue.
    struct VqOptions {
        vq: usize = VQ,
        /// with `grio`: its place; 0: that of the default virtual queue, else 8
        prio: u64 = number("priority", 0, 255).default("0"),
        limit: Unless0<u32> = LIMIT,
        /// average queue below which nothing is dropped
        min: u32 = size(),
        /// average queue from which everything is dropped or marked
        max: u32 = size(),
        /// bytes of an average packet
        avpkt: u32 = size(),
        burst: Unless0<u32> = BURST,
        probability: f64 = PROBABILITY,
        bandwidth: Rate = BANDWIDTH,
        ecn: bool = ECN,
        harddrop: bool = HARDDROP,
    }
}

const VQ: Declared<usize> = number("virtual queue", 0, MAX_QUEUES as u64 - 1)
    .aliases(&["DP"])
    .means("the virtual queue that the next words are about");

const LIMIT: Declared<Unless0<u32>> = size_or_0()
    .absent_or_0("txqueuelen full packets; required of a virtual queue")
    .means("most bytes that may wait, of a virtual queue or, before the first, of all");

/// The parameters of all parts: `limit`, `ecn` and `harddrop` are of both.
const PARAMS: &[&[Param]] = &[GredOptions::PARAMS, VqOptions::PARAMS];

/// `MAX_DPs`.
const MAX_QUEUES: usize = 16;

/// `GRED_DEF_PRIO`.
const DEFAULT_PRIORITY: u64 = MAX_QUEUES as u64 / 2;

const NAMES: [&str; MAX_QUEUES] = [
    "vq 0", "vq 1", "vq 2", "vq 3", "vq 4", "vq 5", "vq 6", "vq 7", "vq 8", "vq 9", "vq 10",
    "vq 11", "vq 12", "vq 13", "vq 14", "vq 15",
];

#[cfg(test)]
mod tests;
