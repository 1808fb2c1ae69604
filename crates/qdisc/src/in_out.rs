//! One FIFO in which packets that a marker has let pass as IN are told from all others, and which drops
//! them early by a rule: what `rio` and `frio` share.

use std::collections::VecDeque;

use weir_core::{Packet, Time};

use crate::accounting::Accounting;
use crate::colour::Colour;
use crate::contract::{Backlog, ClassView, DropReason, DropSink, Qdisc, Stats};
use crate::early::{Average, Curve, EarlyDrop, EarlyOptions, LIMIT};
use crate::tc::{SpecError, either, params, probability, size};

/// When an arriving packet is dropped early.
pub(crate) trait EarlyRule: Send {
    /// Why a packet of that side, which arrives at `queue`, is dropped; `None` if it is not.
    fn judge(&mut self, packet: &Packet, side: InOrOut, queue: &InOutQueue) -> Option<DropReason>;

    /// A packet of that side joined the queue.
    fn joined(&mut self, packet: &Packet, side: InOrOut) {
        let _ = (packet, side);
    }

    /// A packet of that side left.
    fn left(&mut self, packet: &Packet, side: InOrOut) {
        let _ = (packet, side);
    }
}

/// A discipline of one such FIFO and a rule.
pub(crate) struct InOut<R> {
    rule: R,
    queue: InOutQueue,
}

impl<R: EarlyRule> InOut<R> {
    pub fn new(rule: R, queue: InOutQueue) -> Self {
        Self { rule, queue }
    }
}

impl<R: EarlyRule> Qdisc for InOut<R> {
    fn enqueue(&mut self, packet: &Packet, now: Time, sink: &mut dyn DropSink) {
        let side = InOrOut::of(packet);
        self.queue.sample(side, now);
        if let Some(reason) = self.rule.judge(packet, side, &self.queue) {
            return self.queue.xmit_cn(*packet, reason, sink);
        }
        if !self.queue.has_room(packet) {
            return self.queue.xmit_drop(*packet, sink);
        }
        self.rule.joined(packet, side);
        self.queue.push(*packet, side);
    }

    fn dequeue(&mut self, now: Time, _sink: &mut dyn DropSink) -> Option<Packet> {
        let packet = self.queue.pop(now)?;
        self.rule.left(&packet, InOrOut::of(&packet));
        Some(packet)
    }

    fn peek(&mut self, _now: Time, _sink: &mut dyn DropSink) -> Option<&Packet> {
        self.queue.packets.front()
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn stats(&self) -> Stats {
        let mut all = self.queue.accounting[0].stats();
        all += self.queue.accounting[1].stats();
        all
    }

    /// Shows IN and OUT as classes.
    fn classes(&self, visit: &mut dyn FnMut(ClassView<'_>)) {
        for (name, accounting) in ["in", "out"].into_iter().zip(&self.queue.accounting) {
            visit(ClassView { name, backlog: accounting.backlog(), stats: accounting.stats() });
        }
    }
}

/// Whether a packet is within its profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InOrOut {
    /// Within it: green.
    In,
    /// All else, also what was never marked.
    Out,
}

impl InOrOut {
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
    /// A queue that is empty.
    pub fn new(options: &InOutOptions) -> Self {
        let average = Average::new(&options.early);
        Self {
            limit: options.limit,
            packets: VecDeque::new(),
            accounting: [Accounting::default(), Accounting::default()],
            averages: [average.clone(), average.clone()],
            total: average,
            total_by_in: options.update_by_in,
        }
    }

    /// Brings the averages up to date with a packet that arrives and is not yet in the queue.
    fn sample(&mut self, side: InOrOut, now: Time) {
        let own = self.accounting[side as usize].backlog().bytes;
        self.averages[side as usize].sample(own, now);
        if side == InOrOut::In || !self.total_by_in {
            let all = self.backlog().bytes;
            self.total.sample(all, now);
        }
    }

    /// The average of one side's packets, in bytes.
    pub const fn average(&self, side: InOrOut) -> f64 {
        self.averages[side as usize].bytes()
    }

    /// The average of all packets, in bytes.
    pub const fn total_average(&self) -> f64 {
        self.total.bytes()
    }

    fn has_room(&self, packet: &Packet) -> bool {
        self.backlog().bytes + u64::from(packet.len) <= self.limit
    }

    fn push(&mut self, packet: Packet, side: InOrOut) {
        self.accounting[side as usize].arrive(&packet);
        self.packets.push_back(packet);
    }

    fn xmit_drop(&mut self, packet: Packet, sink: &mut dyn DropSink) {
        self.accounting[InOrOut::of(&packet) as usize].xmit_drop(
            packet,
            DropReason::Overlimit,
            sink,
        );
    }

    fn xmit_cn(&mut self, packet: Packet, reason: DropReason, sink: &mut dyn DropSink) {
        self.accounting[InOrOut::of(&packet) as usize].xmit_cn(packet, reason, sink);
    }

    fn pop(&mut self, now: Time) -> Option<Packet> {
        let packet = self.packets.pop_front()?;
        let side = InOrOut::of(&packet) as usize;
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

    fn backlog(&self) -> Backlog {
        let [inside, outside] = [0, 1].map(|side: usize| self.accounting[side].backlog());
        Backlog { packets: inside.packets + outside.packets, bytes: inside.bytes + outside.bytes }
    }
}

params! {
    /// Parameters of a queue that tells IN from OUT. The thresholds are those of Lo Monaco's thesis for
    /// 10 Mbit/s and a round trip of 200 ms, "appropriate" parameters.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct InOutOptions {
        limit: u64 = LIMIT,
        /// average of all packets above which OUT packets are dropped
        out_min: u64 = size().default("10000"),
        /// average of all packets above which all OUT packets are dropped
        out_max: u64 = size().default("200000"),
        /// probability of a drop just below `out_max`
        out_probability: f64 = probability().default("0.25"),
        /// average of IN packets above which they are dropped
        in_min: u64 = size().default("50000"),
        /// average of IN packets above which all of them are dropped
        in_max: u64 = size().default("490000"),
        /// probability of a drop just below `in_max`
        in_probability: f64 = probability().default("0.005"),
        pub early: EarlyOptions,
        /// which arrivals bring the average of all packets up to date; `in` is ns-2's way
        update_by_in as "update": bool = either(&["all", "in"]).default("all"),
    }
}

impl InOutOptions {
    /// The early drops of IN packets, in the discipline called `owner`.
    pub fn drops_of_in(&self, owner: &str) -> Result<EarlyDrop, SpecError> {
        let min = (self.in_min, "in_min");
        let max = (self.in_max, "in_max");
        let curve = Curve { min, max, probability: self.in_probability };
        EarlyDrop::new(owner, curve, &self.early)
    }

    /// The early drops of OUT packets, in the discipline called `owner`.
    pub fn drops_of_out(&self, owner: &str) -> Result<EarlyDrop, SpecError> {
        let min = (self.out_min, "out_min");
        let max = (self.out_max, "out_max");
        let curve = Curve { min, max, probability: self.out_probability };
        EarlyDrop::new(owner, curve, &self.early)
    }
}
