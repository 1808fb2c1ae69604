//! `rio`: RED with IN and OUT. One FIFO in which packets that a marker has let pass as IN are dropped later
//! and less than the others.
//!
//! Follows D. Clark, W. Fang, "Explicit allocation of best-effort packet delivery service", IEEE/ACM
//! Transactions on Networking 6(4), 1998, in the form of ALTQ's `altq_rio.c`: the average for OUT is that of
//! all packets and is brought up to date by every packet, the one for IN by IN packets alone. What the
//! sources leave open is a parameter.

use weir_core::{Packet, Rng};

use crate::Device;
use crate::contract::DropReason;
use crate::early::EarlyDrop;
use crate::in_out::{EarlyRule, InOrOut, InOut, InOutOptions, InOutQueue};
use crate::registry::Discipline;
use crate::tc::{Record, SpecError, either, params};

struct Rio {
    /// The curves for IN and for OUT.
    drops: [EarlyDrop; 2],
    /// OUT is judged by its own packets instead of by all.
    out_alone: bool,
    rng: Rng,
}

impl Rio {
    fn new(options: &RioOptions, device: &Device) -> Result<Self, SpecError> {
        let RioOptions { queue, out_alone } = options;
        Ok(Self {
            drops: [queue.drops_of_in("rio")?, queue.drops_of_out("rio")?],
            out_alone: *out_alone,
            rng: device.seed.stream("rio"),
        })
    }
}

impl EarlyRule for Rio {
    fn judge(&mut self, _packet: &Packet, side: InOrOut, queue: &InOutQueue) -> Option<DropReason> {
        let average = if side == InOrOut::In || self.out_alone {
            queue.average(side)
        } else {
            queue.total_average()
        };
        self.drops[side as usize].decide(average, &mut self.rng).reason()
    }
}

params! {
    /// Parameters of `rio`.
    struct RioOptions {
        queue: InOutOptions,
        /// which packets OUT is judged by: all, or those that are OUT
        out_alone as "out_average": bool = either(&["total", "out"]).default("total"),
    }
}

pub(crate) static RIO: Discipline = Discipline {
    name: "rio",
    summary: "RED with IN and OUT: packets that a marker put out of profile are dropped first",
    source: "Clark and Fang 1998; ALTQ altq_rio.c; draft-clark-diff-svc-alloc-00, section 6.2",
    params: RioOptions::PARAMS,
    class_params: &[],
    takes_child: false,
    examples: &[
        "rio limit 30000 out_min 2000 out_max 8000 in_min 6000 in_max 20000 wq 0.2",
        "rio out_min 1000 out_max 4000 out_probability 0.5 in_min 2000 in_max 6000 wq 0.3 gentle \
         spacing wait out_average out update in",
    ],
    build: |spec, device| {
        let options: RioOptions = spec.read(device)?;
        let rule = Rio::new(&options, device)?;
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
    struct Drops(Vec<(u64, DropReason)>);

    impl DropSink for Drops {
        fn on_drop(&mut self, packet: Packet, reason: DropReason) {
            self.0.push((packet.handle, reason));
        }
        fn on_mark(&mut self, _: &Packet, _: MarkReason) {}
    }

    fn packet(handle: u64, dscp: Dscp) -> Packet {
        Packet {
            handle,
            enqueued_at: Time::ZERO,
            label: FlowLabel::default(),
            len: 1_000,
            flow_id: 0,
            dscp,
            ecn: Ecn::NotEct,
        }
    }

    fn rio(text: &str) -> Box<dyn Qdisc> {
        QueueSpec::parse(text).unwrap().build(&Device::default()).unwrap()
    }

    #[test]
    fn out_is_judged_by_all_packets_and_in_by_its_own() {
        // With a weight of 1 the averages are the queue.
        let mut queue = rio("rio out_min 3000 out_max 4000 in_min 6000 in_max 7000 wq 1 \
                             out_probability 0 in_probability 0");
        let mut drops = Drops::default();
        let green = Colour::Green.dscp(1);
        for handle in 0..4 {
            queue.enqueue(&packet(handle, green), Time::ZERO, &mut drops);
        }
        // 4000 bytes wait, all of them IN.
        queue.enqueue(&packet(4, Dscp::BE), Time::ZERO, &mut drops);
        queue.enqueue(&packet(5, Colour::Yellow.dscp(1)), Time::ZERO, &mut drops);
        for handle in 6..10 {
            queue.enqueue(&packet(handle, green), Time::ZERO, &mut drops);
        }
        let forced = DropReason::Forced;
        assert_eq!(drops.0, [(4, forced), (5, forced), (9, forced)]);
        let mut classes = Vec::new();
        queue.classes(&mut |class| {
            let dropped = class.stats.total_dropped().packets;
            classes.push((class.name.to_owned(), class.backlog.packets, dropped));
        });
        assert_eq!(classes, [("in".to_owned(), 7, 1), ("out".to_owned(), 0, 2)]);
    }

    #[test]
    fn the_average_of_all_may_wait_for_in_packets_as_in_ns_2() {
        for (update, dropped) in [("all", 3), ("in", 0)] {
            let mut queue = rio(&format!("rio out_min 2000 out_max 3000 wq 1 update {update}"));
            let mut drops = Drops::default();
            for handle in 0..6 {
                queue.enqueue(&packet(handle, Dscp::BE), Time::ZERO, &mut drops);
            }
            let forced = drops.0.iter().filter(|(_, reason)| *reason == DropReason::Forced).count();
            assert_eq!(forced, dropped, "{update}");
        }
    }

    #[test]
    fn thresholds_in_the_wrong_order_are_one_sentence() {
        let spec = QueueSpec::parse("rio out_min 5000 out_max 4000").unwrap();
        let error = spec.build(&Device::default()).err().unwrap();
        assert_eq!(
            error.to_string(),
            "rio: `out_max 4000`: write more than `out_min`, which is 5000 bytes"
        );
    }
}
