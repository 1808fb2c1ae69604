//! `rio`: RED with IN and OUT. One FIFO in which packets that a marker has let pass as IN are dropped later
//! and less than the others.
//!
//! Follows D. Clark, W. Fang, "Explicit allocation of best-effort packet delivery service", IEEE/ACM
//! Transactions on Networking 6(4), 1998, in the form of ALTQ's `altq_rio.c`: the average for OUT is that of
//! all packets and is brought up to date by every packet, the one for IN by IN packets alone. What the
//! sources leave open is a parameter.

use std::collections::VecDeque;

use weir_core::{Packet, Rng, Time};

use crate::Device;
use crate::accounting::Accounting;
use crate::colour::Colour;
use crate::contract::{Backlog, ClassView, DropReason, DropSink, Qdisc, Stats};
use crate::early::{
    AVPKT, Average, BANDWIDTH, EarlyDrop, EarlyVerdict, GENTLE, LIMIT, SPACING, WQ,
};
use crate::registry::Discipline;
use crate::tc::{DefaultValue, Kind, Param, Params, SetUp, SetUpError};

struct Rio {
    /// The curves for IN and for OUT.
    drops: [EarlyDrop; 2],
    /// OUT is judged by its own packets instead of by all.
    out_alone: bool,
    queue: InOutQueue,
    rng: Rng,
}

/// A packet's side of the profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// Within it: green.
    In,
    /// All else, also what was never marked.
    Out,
}

impl Side {
    pub fn of(packet: &Packet) -> Self {
        match Colour::of(packet.dscp) {
            Some(Colour::Green) => Self::In,
            Some(Colour::Yellow | Colour::Red) | None => Self::Out,
        }
    }
}

/// One FIFO with separate accounting and averages of IN and OUT packets.
pub(crate) struct InOutQueue {
    limit: u64,
    packets: VecDeque<Packet>,
    accounting: [Accounting; 2],
    /// Averages of IN, of OUT, and of both together.
    averages: [Average; 2],
    total: Average,
    /// ns-2 brings the average of all up to date when an IN packet arrives, and only then.
    total_by_in: bool,
}

impl InOutQueue {
    /// Reads `limit`, `update` and what averages need.
    pub fn read(params: &Params) -> Result<Self, SetUpError> {
        let average = Average::read(params)?;
        Ok(Self {
            limit: params.some_size("limit")?.expect("a default").get(),
            packets: VecDeque::new(),
            accounting: [Accounting::default(), Accounting::default()],
            averages: [average.clone(), average.clone()],
            total: average,
            total_by_in: params.choice("update")? == "in",
        })
    }

    /// Brings the averages up to date with a packet that arrives and is not yet in the queue.
    pub fn sample(&mut self, side: Side, now: Time) {
        let own = self.accounting[side as usize].backlog().bytes;
        self.averages[side as usize].sample(own, now);
        if side == Side::In || !self.total_by_in {
            let all = self.backlog().bytes;
            self.total.sample(all, now);
        }
    }

    /// The average of one side's packets, in bytes.
    pub const fn average(&self, side: Side) -> f64 {
        self.averages[side as usize].bytes()
    }

    /// The average of all packets, in bytes.
    pub const fn total_average(&self) -> f64 {
        self.total.bytes()
    }

    pub fn has_room(&self, packet: &Packet) -> bool {
        self.backlog().bytes + u64::from(packet.len) <= self.limit
    }

    pub fn push(&mut self, packet: Packet, side: Side) {
        self.accounting[side as usize].arrive(&packet);
        self.packets.push_back(packet);
    }

    pub fn xmit_drop(&mut self, packet: Packet, sink: &mut dyn DropSink) {
        self.accounting[Side::of(&packet) as usize].xmit_drop(packet, DropReason::Overlimit, sink);
    }

    pub fn xmit_cn(&mut self, packet: Packet, reason: DropReason, sink: &mut dyn DropSink) {
        self.accounting[Side::of(&packet) as usize].xmit_cn(packet, reason, sink);
    }

    pub fn pop(&mut self, now: Time) -> Option<Packet> {
        let packet = self.packets.pop_front()?;
        let side = Side::of(&packet) as usize;
        self.accounting[side].take(&packet);
        self.accounting[side].depart(&packet);
        if self.accounting[side].backlog().packets == 0 {
            self.averages[side].emptied(now);
        }
        if self.packets.is_empty() {
            self.total.emptied(now);
        }
        Some(packet)
    }

    pub fn front(&self) -> Option<&Packet> {
        self.packets.front()
    }

    pub fn backlog(&self) -> Backlog {
        let [inside, outside] = [0, 1].map(|side: usize| self.accounting[side].backlog());
        Backlog { packets: inside.packets + outside.packets, bytes: inside.bytes + outside.bytes }
    }

    pub fn stats(&self) -> Stats {
        let mut all = self.accounting[0].stats();
        all += self.accounting[1].stats();
        all
    }

    /// Shows IN and OUT as classes.
    pub fn classes(&self, visit: &mut dyn FnMut(ClassView<'_>)) {
        for (name, accounting) in ["in", "out"].into_iter().zip(&self.accounting) {
            visit(ClassView { name, backlog: accounting.backlog(), stats: accounting.stats() });
        }
    }
}

impl Rio {
    fn new(set_up: &SetUp, device: &Device) -> Result<Self, SetUpError> {
        let params = set_up.params(device)?;
        Ok(Self {
            drops: [EarlyDrop::read(&params, IN_CURVE)?, EarlyDrop::read(&params, OUT_CURVE)?],
            out_alone: params.choice("out_average")? == "out",
            queue: InOutQueue::read(&params)?,
            rng: device.seed.stream("rio"),
        })
    }
}

impl Qdisc for Rio {
    fn enqueue(&mut self, packet: Packet, now: Time, sink: &mut dyn DropSink) {
        let side = Side::of(&packet);
        self.queue.sample(side, now);
        let average = if side == Side::In || self.out_alone {
            self.queue.average(side)
        } else {
            self.queue.total_average()
        };
        match self.drops[side as usize].decide(average, &mut self.rng) {
            EarlyVerdict::Early => self.queue.xmit_cn(packet, DropReason::Early, sink),
            EarlyVerdict::Forced => self.queue.xmit_cn(packet, DropReason::Forced, sink),
            EarlyVerdict::Pass if self.queue.has_room(&packet) => self.queue.push(packet, side),
            EarlyVerdict::Pass => self.queue.xmit_drop(packet, sink),
        }
    }

    fn dequeue(&mut self, now: Time, _fates: &mut dyn DropSink) -> Option<Packet> {
        self.queue.pop(now)
    }

    fn peek(&mut self, _now: Time, _fates: &mut dyn DropSink) -> Option<&Packet> {
        self.queue.front()
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn stats(&self) -> Stats {
        self.queue.stats()
    }

    fn classes(&self, visit: &mut dyn FnMut(ClassView<'_>)) {
        self.queue.classes(visit);
    }
}

pub(crate) static RIO: Discipline = Discipline {
    name: "rio",
    summary: "RED with IN and OUT: packets that a marker put out of profile are dropped first",
    source: "Clark and Fang 1998; ALTQ altq_rio.c; draft-clark-diff-svc-alloc-00, section 6.2",
    params: &[
        LIMIT,
        OUT_MIN,
        OUT_MAX,
        OUT_PROBABILITY,
        IN_MIN,
        IN_MAX,
        IN_PROBABILITY,
        WQ,
        AVPKT,
        BANDWIDTH,
        SPACING,
        GENTLE,
        UPDATE,
        Param {
            name: "out_average",
            aliases: &[],
            kind: Kind::Choice(&["total", "out"]),
            default: DefaultValue::Is("total"),
            meaning: "which packets OUT is judged by: all, or those that are OUT",
        },
    ],
    class_params: &[],
    takes_child: false,
    examples: &[
        "rio limit 30000 out_min 2000 out_max 8000 in_min 6000 in_max 20000 wq 0.2",
        "rio out_min 1000 out_max 4000 out_probability 0.5 in_min 2000 in_max 6000 wq 0.3 gentle \
         spacing wait out_average out update in",
    ],
    build: |set_up, device| Ok(Box::new(Rio::new(set_up, device)?)),
};

/// Names of the parameters of IN's curve, and of OUT's.
pub(crate) const IN_CURVE: [&str; 3] = ["in_min", "in_max", "in_probability"];
pub(crate) const OUT_CURVE: [&str; 3] = ["out_min", "out_max", "out_probability"];

/// The thresholds of Lo Monaco's thesis for 10 Mbit/s and a round trip of 200 ms, "appropriate" parameters.
pub(crate) const OUT_MIN: Param =
    size("out_min", "10000", "average of all packets above which OUT packets are dropped");
pub(crate) const OUT_MAX: Param =
    size("out_max", "200000", "average of all packets above which all OUT packets are dropped");
pub(crate) const OUT_PROBABILITY: Param =
    share("out_probability", "0.25", "probability of a drop just below `out_max`");
pub(crate) const IN_MIN: Param =
    size("in_min", "50000", "average of IN packets above which they are dropped");
pub(crate) const IN_MAX: Param =
    size("in_max", "490000", "average of IN packets above which all of them are dropped");
pub(crate) const IN_PROBABILITY: Param =
    share("in_probability", "0.005", "probability of a drop just below `in_max`");

pub(crate) const UPDATE: Param = Param {
    name: "update",
    aliases: &[],
    kind: Kind::Choice(&["all", "in"]),
    default: DefaultValue::Is("all"),
    meaning: "which arrivals bring the average of all packets up to date; `in` is ns-2's way",
};

const fn size(name: &'static str, default: &'static str, meaning: &'static str) -> Param {
    Param { name, aliases: &[], kind: Kind::Size, default: DefaultValue::Is(default), meaning }
}

const fn share(name: &'static str, default: &'static str, meaning: &'static str) -> Param {
    Param {
        name,
        aliases: &[],
        kind: Kind::Probability,
        default: DefaultValue::Is(default),
        meaning,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::MarkReason;
    use weir_core::{Dscp, Ecn, FlowLabel};

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
        SetUp::parse(text).unwrap().build(&Device::default()).unwrap()
    }

    #[test]
    fn out_is_judged_by_all_packets_and_in_by_its_own() {
        // With a weight of 1 the averages are the queue.
        let mut queue = rio("rio out_min 3000 out_max 4000 in_min 6000 in_max 7000 wq 1 \
                             out_probability 0 in_probability 0");
        let mut drops = Drops::default();
        let green = Colour::Green.dscp(1);
        for handle in 0..4 {
            queue.enqueue(packet(handle, green), Time::ZERO, &mut drops);
        }
        // 4000 bytes wait, all of them IN.
        queue.enqueue(packet(4, Dscp::BE), Time::ZERO, &mut drops);
        queue.enqueue(packet(5, Colour::Yellow.dscp(1)), Time::ZERO, &mut drops);
        for handle in 6..10 {
            queue.enqueue(packet(handle, green), Time::ZERO, &mut drops);
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
                queue.enqueue(packet(handle, Dscp::BE), Time::ZERO, &mut drops);
            }
            let forced = drops.0.iter().filter(|(_, reason)| *reason == DropReason::Forced).count();
            assert_eq!(forced, dropped, "{update}");
        }
    }

    #[test]
    fn thresholds_in_the_wrong_order_are_one_sentence() {
        let set_up = SetUp::parse("rio out_min 5000 out_max 4000").unwrap();
        let error = set_up.build(&Device::default()).err().unwrap();
        assert_eq!(
            error.to_string(),
            "rio: `out_max 4000`: write more than `out_min`, which is 5000 bytes"
        );
    }
}
