//! `fred`: RED that counts what each flow holds. Flows with few packets in the queue are spared, flows that
//! hold more than their share are held to it.
//!
//! Follows D. Lin, R. Morris, "Dynamics of random early detection", SIGCOMM 1997, as two public
//! implementations have it (J-Sim's FRED, a FRED discipline for Linux). What they do differently, and what
//! the paper leaves open, is a parameter.

use std::collections::{BTreeMap, VecDeque};

use weir_core::{FlowLabel, Packet, Rng, Time};

use crate::accounting::Accounting;
use crate::contract::{Backlog, DropReason, DropSink, Qdisc, Stats};
use crate::early::{Average, Curve, EarlyDrop, EarlyOptions, EarlyVerdict, LIMIT};
use crate::registry::Discipline;
use crate::tc::{
    Record, SpecError, either, nonzero_size, number, params, probability, size, switch,
};

struct Fred {
    limit: u64,
    rules: FredRules,
    packets: VecDeque<Packet>,
    accounting: Accounting,
}

/// FRED without its queue: what decides whether a packet may enter one.
pub(crate) struct FredRules {
    drop: EarlyDrop,
    average: Average,
    /// The average is also brought up to date as packets leave.
    on_departure: bool,
    fairness: Fairness,
    flows: ActiveFlows,
    rng: Rng,
}

/// How much of a queue a flow may hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fairness {
    /// Packets that a flow may always hold.
    pub min_flow: u32,
    /// Flows that were caught above their share are held to it from then on.
    pub strikes: bool,
    /// Above the upper threshold packets of flows within `min_flow` still pass.
    pub spare_above_max: bool,
    /// A typical packet, in bytes.
    packet: f64,
}

/// Packets and strikes of each flow in the queue. A flow is forgotten, with its strikes, when its last packet leaves.
#[derive(Debug, Default)]
pub(crate) struct ActiveFlows {
    flows: BTreeMap<FlowLabel, Holding>,
}

/// A flow's packets in the queue, and its strikes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Holding {
    pub packets: u32,
    pub strikes: u32,
}

impl Fairness {
    pub fn new(options: &FairnessOptions, early: &EarlyOptions) -> Self {
        Self {
            min_flow: options.minq,
            strikes: options.strikes,
            spare_above_max: !options.drops_above_max,
            packet: early.avpkt.into(),
        }
    }

    /// Packets that a flow holds if all share an average of so many bytes: one at least.
    pub fn share(&self, average: f64, flows: usize) -> f64 {
        (average / (self.packet * flows.max(1) as f64)).max(1.0)
    }

    /// Bytes in typical packets.
    pub fn packets(&self, bytes: f64) -> f64 {
        bytes / self.packet
    }
}

impl ActiveFlows {
    /// How many flows have packets in the queue.
    pub fn count(&self) -> usize {
        self.flows.len()
    }

    pub fn holding(&self, packet: &Packet) -> Holding {
        self.flows.get(&packet.label).copied().unwrap_or_default()
    }

    /// The flow of `packet` was caught above its share. What has nothing in the queue has no record.
    pub fn strike(&mut self, packet: &Packet) {
        if let Some(holding) = self.flows.get_mut(&packet.label) {
            holding.strikes += 1;
        }
    }

    pub fn push(&mut self, packet: &Packet) {
        self.flows.entry(packet.label).or_default().packets += 1;
    }

    pub fn pop(&mut self, packet: &Packet) {
        let holding = self.flows.get_mut(&packet.label).expect("it has a packet in the queue");
        holding.packets -= 1;
        if holding.packets == 0 {
            self.flows.remove(&packet.label);
        }
    }
}

impl FredRules {
    /// The rules of the discipline or marker called `owner`.
    ///
    /// # Errors
    /// If the thresholds are not in order.
    pub fn new(
        owner: &str,
        curve: Curve,
        options: &FredOptions,
        rng: Rng,
    ) -> Result<Self, SpecError> {
        let FredOptions { early, fairness, on_departure } = options;
        Ok(Self {
            drop: EarlyDrop::new(owner, curve, early)?,
            average: Average::new(early),
            on_departure: *on_departure,
            fairness: Fairness::new(fairness, early),
            flows: ActiveFlows::default(),
            rng,
        })
    }

    /// Whether `packet`, which arrives at a queue of `backlog` bytes, is dropped, and why (Lin and Morris
    /// 1997, appendix).
    pub fn judge(&mut self, packet: &Packet, backlog: u64, now: Time) -> Option<DropReason> {
        self.average.sample(backlog, now);
        let average = self.average.bytes();
        let above_max = average >= self.drop.max();
        let share = self.fairness.share(average, self.flows.count());
        let Holding { packets, strikes } = self.flows.holding(packet);
        let holds = f64::from(packets);
        let most = if above_max && self.fairness.spare_above_max {
            f64::from(MAX_PACKETS_PER_MANY_FLOW)
        } else {
            self.fairness.packets(self.drop.min())
        };
        if holds >= most
            || (above_max && holds > 2.0 * share)
            || (self.fairness.strikes && holds >= share && strikes > 1)
        {
            self.flows.strike(packet);
            return Some(DropReason::Unfair);
        }
        if above_max {
            return (!self.fairness.spare_above_max).then_some(DropReason::Forced);
        }
        // Only flows that are not fragile are dropped from by chance.
        let in_curve = average >= self.drop.min();
        if in_curve && holds < share.max(f64::from(self.fairness.min_flow)) {
            return None;
        }
        match self.drop.decide(average, &mut self.rng) {
            EarlyVerdict::Pass => None,
            EarlyVerdict::Early | EarlyVerdict::Forced => Some(DropReason::Early),
        }
    }

    /// `packet` is in the queue.
    pub fn entered(&mut self, packet: &Packet) {
        self.flows.push(packet);
    }

    /// `packet` has left the queue, in which `backlog` bytes are left.
    pub fn left(&mut self, packet: &Packet, backlog: u64, now: Time) {
        self.flows.pop(packet);
        if self.on_departure {
            self.average.sample(backlog, now);
        } else if backlog == 0 {
            self.average.emptied(now);
        }
    }
}

impl Qdisc for Fred {
    fn enqueue(&mut self, packet: &Packet, now: Time, sink: &mut dyn DropSink) {
        let backlog = self.accounting.backlog().bytes;
        if let Some(reason) = self.rules.judge(packet, backlog, now) {
            return self.accounting.xmit_cn(*packet, reason, sink);
        }
        if backlog + u64::from(packet.len) > self.limit {
            return self.accounting.xmit_drop(*packet, DropReason::Overlimit, sink);
        }
        self.rules.entered(packet);
        self.accounting.arrive(packet);
        self.packets.push_back(*packet);
    }

    fn dequeue(&mut self, now: Time, _fates: &mut dyn DropSink) -> Option<Packet> {
        let packet = self.packets.pop_front()?;
        self.accounting.take(&packet);
        self.accounting.depart(&packet);
        self.rules.left(&packet, self.accounting.backlog().bytes, now);
        Some(packet)
    }

    fn peek(&mut self, _now: Time, _fates: &mut dyn DropSink) -> Option<&Packet> {
        self.packets.front()
    }

    fn backlog(&self) -> Backlog {
        self.accounting.backlog()
    }

    fn stats(&self) -> Stats {
        self.accounting.stats()
    }
}

params! {
    /// Parameters of `fred`.
    struct Options {
        limit: u64 = LIMIT,
        /// average queue above which packets are dropped; also the most that a flow may hold
        min: u64 = nonzero_size().default("10000"),
        /// average queue above which only `above_max` decides
        max: u64 = size().default("200000"),
        /// probability of a drop just below `max`
        probability: f64 = probability().default("0.1"),
        rules: FredOptions,
    }
}

pub(crate) static FRED: Discipline = Discipline {
    name: "fred",
    summary: "RED that counts each flow's packets: spares small flows, holds large ones to their share",
    source: "Lin and Morris 1997",
    params: Options::PARAMS,
    class_params: &[],
    takes_child: false,
    examples: &[
        "fred min 3000 max 9000 wq 0.2 minq 2",
        "fred min 2000 max 4000 probability 0.5 wq 0.3 above_max drop on_arrival nostrikes",
    ],
    build: |spec, device| {
        let Options { limit, min, max, probability, rules } = spec.read(device)?;
        let curve = Curve { min: (min, "min"), max: (max, "max"), probability };
        Ok(Box::new(Fred {
            limit,
            rules: FredRules::new("fred", curve, &rules, device.seed.stream("fred"))?,
            packets: VecDeque::new(),
            accounting: Accounting::default(),
        }))
    },
};

params! {
    /// Parameters of FRED's rules but for the thresholds.
    pub(crate) struct FredOptions {
        early: EarlyOptions,
        fairness: FairnessOptions,
        /// bring the average up to date as packets leave, too
        on_departure: bool = switch().off_by("on_arrival").default("on"),
    }
}

params! {
    /// Parameters of what each flow may hold. Lin and Morris 1997: `minq` is 2, or 4 where buffers are large.
    pub(crate) struct FairnessOptions {
        /// packets that a flow may hold without being dropped from by chance
        minq: u32 = number("packets", 0, 65_535).default("4"),
        /// hold flows to their share that were above it more than once
        strikes: bool = switch().off_by("nostrikes").default("on"),
        /// above the upper threshold: still give each flow its few packets, or drop all
        drops_above_max as "above_max": bool =
            either(&["many_flows", "drop"]).default("many_flows"),
    }
}

/// Packets that each of many flows may hold above the upper threshold (Lin and Morris 1997, section 5).
const MAX_PACKETS_PER_MANY_FLOW: u32 = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Device;
    use crate::contract::MarkReason;
    use crate::tc::QueueSpec;
    use weir_core::{Dscp, Ecn};

    #[derive(Default)]
    struct Drops(Vec<(u16, DropReason)>);

    impl DropSink for Drops {
        fn on_drop(&mut self, packet: Packet, reason: DropReason) {
            self.0.push((packet.label.sport, reason));
        }
        fn on_mark(&mut self, _: &Packet, _: MarkReason) {}
    }

    fn packet(flow: u16) -> Packet {
        Packet {
            handle: 0,
            enqueued_at: Time::ZERO,
            label: FlowLabel { sport: flow, ..FlowLabel::default() },
            len: 1_000,
            flow_id: 0,
            dscp: Dscp::BE,
            ecn: Ecn::NotEct,
        }
    }

    fn fred(more: &str) -> Box<dyn Qdisc> {
        let text = format!("fred min 4000 max 8000 avpkt 1000 wq 1 on_arrival {more}");
        QueueSpec::parse(&text).unwrap().build(&Device::default()).unwrap()
    }

    fn fill(queue: &mut dyn Qdisc, flows: &[u16]) -> Vec<(u16, DropReason)> {
        let mut drops = Drops::default();
        for &flow in flows {
            queue.enqueue(&packet(flow), Time::ZERO, &mut drops);
        }
        drops.0
    }

    #[test]
    fn a_flow_holds_at_most_the_lower_threshold() {
        let drops = fill(&mut *fred(""), &[1; 6]);
        assert_eq!(drops, [(1, DropReason::Unfair); 2]);
    }

    #[test]
    fn a_flow_that_was_caught_twice_is_held_to_its_share() {
        let mut queue = fred("");
        // Caught twice at four packets; then two leave.
        fill(&mut *queue, &[1, 1, 1, 1, 1, 1]);
        let mut drops = Drops::default();
        queue.dequeue(Time::ZERO, &mut drops);
        queue.dequeue(Time::ZERO, &mut drops);
        // It holds two, and so does the average flow.
        assert_eq!(fill(&mut *queue, &[1]), [(1, DropReason::Unfair)]);
        let mut lenient = fred("nostrikes");
        fill(&mut *lenient, &[1, 1, 1, 1, 1, 1]);
        lenient.dequeue(Time::ZERO, &mut drops);
        lenient.dequeue(Time::ZERO, &mut drops);
        assert_eq!(fill(&mut *lenient, &[1]), []);
    }

    #[test]
    fn fragile_flows_are_spared_within_the_curve() {
        let mut queue = fred("probability 1 spacing geometric max 4001 minq 2");
        fill(&mut *queue, &[1, 2, 3, 4]);
        // The average is at the lower threshold; flow 5 is new, the others hold one of four.
        assert_eq!(fill(&mut *queue, &[5]), []);
        let mut strict = fred("probability 1 spacing geometric max 4100 minq 0");
        fill(&mut *strict, &[1, 2, 3, 4]);
        assert_eq!(fill(&mut *strict, &[5]), [], "below its share of one packet");
    }

    #[test]
    fn above_the_curve_many_flows_keep_two_packets_each() {
        let crowd: Vec<u16> = (0..8).collect();
        let mut queue = fred("minq 2");
        assert_eq!(fill(&mut *queue, &crowd), []);
        assert_eq!(fill(&mut *queue, &[0, 0, 9]), [(0, DropReason::Unfair)]);
        let mut hard = fred("above_max drop");
        fill(&mut *hard, &crowd);
        assert_eq!(fill(&mut *hard, &[9]), [(9, DropReason::Forced)]);
    }
}
