//! `frio`: RIO that counts flows as FRED does, so that an OUT packet is dropped only from a flow that can
//! bear it.
//!
//! A reconstruction. G. Lo Monaco's thesis on TCP-friendly marking names FRIO and says that it keeps state
//! of flows at the core; how it works stands in chapters that are not public. Read as "FRED on RIO": IN
//! packets meet RIO's curve for IN, OUT packets FRED's rules with RIO's thresholds for OUT. What can be read
//! otherwise is a parameter (`docs/queues/frio.md`).

use weir_core::{Packet, Rng};

use crate::Device;
use crate::contract::DropReason;
use crate::early::{EarlyDrop, EarlyVerdict};
use crate::fred::{ActiveFlows, Fairness, FairnessOptions, Holding};
use crate::in_out::{EarlyRule, InOrOut, InOut, InOutOptions, InOutQueue};
use crate::registry::Discipline;
use crate::tc::{Record, SpecError, either, params};

struct Frio {
    for_in: EarlyDrop,
    for_out: EarlyDrop,
    fairness: Fairness,
    /// A flow's OUT packets alone count as what it holds.
    out_only: bool,
    flows: ActiveFlows,
    rng: Rng,
}

impl Frio {
    fn new(options: &FrioOptions, device: &Device) -> Result<Self, SpecError> {
        let FrioOptions { queue, fairness, out_only } = options;
        Ok(Self {
            for_in: queue.drops_of_in("frio")?,
            for_out: queue.drops_of_out("frio")?,
            fairness: Fairness::new(fairness, &queue.early),
            out_only: *out_only,
            flows: ActiveFlows::default(),
            rng: device.seed.stream("frio"),
        })
    }

    fn counts(&self, side: InOrOut) -> bool {
        side == InOrOut::Out || !self.out_only
    }

    /// FRED's rules for an OUT packet above the lower threshold.
    fn judge_out(&mut self, packet: &Packet, average: f64) -> Option<DropReason> {
        let share = self.fairness.share(average, self.flows.count());
        let Holding { packets, strikes } = self.flows.holding(packet);
        let holds = f64::from(packets);
        let above_max = average >= self.for_out.max();
        if self.fairness.strikes
            && ((strikes > 1 && holds >= share) || (above_max && holds > 2.0 * share))
        {
            self.flows.strike(packet);
            return Some(DropReason::Unfair);
        }
        let least = f64::from(self.fairness.min_flow);
        if above_max {
            let dropped = !self.fairness.spare_above_max || holds >= least;
            return dropped.then_some(DropReason::Forced);
        }
        if holds < share.max(least) {
            return None;
        }
        match self.for_out.decide(average, &mut self.rng) {
            EarlyVerdict::Pass => None,
            EarlyVerdict::Early | EarlyVerdict::Forced => Some(DropReason::Early),
        }
    }
}

impl EarlyRule for Frio {
    fn judge(&mut self, packet: &Packet, side: InOrOut, queue: &InOutQueue) -> Option<DropReason> {
        let (drop, average) = match side {
            InOrOut::In => (&mut self.for_in, queue.average(InOrOut::In)),
            InOrOut::Out => {
                let average = queue.total_average();
                if average >= self.for_out.min() {
                    return self.judge_out(packet, average);
                }
                (&mut self.for_out, average)
            }
        };
        drop.decide(average, &mut self.rng).reason()
    }

    fn joined(&mut self, packet: &Packet, side: InOrOut) {
        if self.counts(side) {
            self.flows.push(packet);
        }
    }

    fn left(&mut self, packet: &Packet, side: InOrOut) {
        if self.counts(side) {
            self.flows.pop(packet);
        }
    }
}

params! {
    /// Parameters of `frio`.
    struct FrioOptions {
        queue: InOutOptions,
        fairness: FairnessOptions,
        /// which of a flow's packets in the queue count as what it holds
        out_only as "holds": bool = either(&["all", "out"]).default("all"),
    }
}

pub(crate) static FRIO: Discipline = Discipline {
    name: "frio",
    summary: "RIO that counts each flow's packets: an OUT packet is dropped only from a flow that can bear it",
    source: "a reconstruction after Lo Monaco's thesis (2000), Lin and Morris 1997, Clark and Fang 1998",
    params: FrioOptions::PARAMS,
    class_params: &[],
    takes_child: false,
    examples: &[
        "frio limit 30000 out_min 2000 out_max 8000 in_min 6000 in_max 20000 wq 0.2 minq 2",
        "frio out_min 1000 out_max 3000 out_probability 0.5 in_min 2000 in_max 6000 wq 0.3 holds out \
         above_max drop nostrikes",
    ],
    build: |spec, device| {
        let options: FrioOptions = spec.read(device)?;
        let rule = Frio::new(&options, device)?;
        Ok(Box::new(InOut::new(rule, InOutQueue::new(&options.queue))))
    },
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::colour::Colour;
    use crate::contract::{DropSink, MarkReason, Qdisc};
    use crate::tc::QueueSpec;
    use weir_core::{Dscp, Ecn, FlowLabel, Time};

    #[derive(Default)]
    struct Drops(Vec<(u16, DropReason)>);

    impl DropSink for Drops {
        fn on_drop(&mut self, packet: Packet, reason: DropReason) {
            self.0.push((packet.label.sport, reason));
        }
        fn on_mark(&mut self, _: &Packet, _: MarkReason) {}
    }

    fn fill(queue: &mut dyn Qdisc, packets: &[(u16, Dscp)]) -> Vec<(u16, DropReason)> {
        let mut drops = Drops::default();
        for &(flow, dscp) in packets {
            let label = FlowLabel { sport: flow, ..FlowLabel::default() };
            let (enqueued_at, ecn) = (Time::ZERO, Ecn::NotEct);
            let packet =
                Packet { handle: 0, enqueued_at, label, len: 1_000, flow_id: 0, dscp, ecn };
            queue.enqueue(&packet, Time::ZERO, &mut drops);
        }
        drops.0
    }

    fn frio(more: &str) -> Box<dyn Qdisc> {
        let text =
            format!("frio out_min 2000 out_max 4000 avpkt 1000 wq 1 out_probability 1 {more}");
        QueueSpec::parse(&text).unwrap().build(&Device::default()).unwrap()
    }

    #[test]
    fn above_the_curve_only_flows_with_enough_packets_lose_theirs() {
        let green = Colour::Green.dscp(1);
        let mut queue = frio("minq 3");
        // Flow 1 has three IN packets in the queue, flow 2 one.
        fill(&mut *queue, &[(1, green), (1, green), (1, green), (2, green)]);
        let next = [(1, Dscp::BE), (2, Dscp::BE), (3, Dscp::BE), (1, green)];
        assert_eq!(fill(&mut *queue, &next), [(1, DropReason::Forced)]);

        let mut out_only = frio("minq 3 holds out");
        fill(&mut *out_only, &[(1, green), (1, green), (1, green), (2, green)]);
        assert_eq!(fill(&mut *out_only, &next), []);

        let mut hard = frio("above_max drop");
        fill(&mut *hard, &[(1, green), (1, green), (1, green), (2, green)]);
        let dropped = [1, 2, 3].map(|flow| (flow, DropReason::Forced));
        assert_eq!(fill(&mut *hard, &next), dropped);
    }

    #[test]
    fn within_the_curve_flows_below_the_least_are_spared() {
        // 2999 bytes are all but the end of a curve up to probability 1.
        let mut queue = frio("minq 2 out_max 2001");
        fill(&mut *queue, &[(1, Dscp::BE), (1, Dscp::BE)]);
        assert_eq!(fill(&mut *queue, &[(2, Dscp::BE)]), []);
    }
}
