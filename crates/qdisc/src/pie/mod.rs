//! `pie`: one FIFO, proportional integral controller enhanced.
//!
//! Follows Linux `net/sched/sch_pie.c` and RFC 8033; the algorithm itself is in
//! [`algorithm`](self::algorithm). Nothing is done differently.

mod algorithm;

use std::collections::VecDeque;

use weir_core::{Duration, Packet, Rng, Time};

pub(crate) use algorithm::{MAX_PROB, PieParams, PieState, UpdateTimer};

use crate::Device;
use crate::accounting::Accounting;
use crate::contract::{Backlog, DropReason, DropSink, MarkReason, Stats};
use crate::peeked::{Peeked, TakesNext};
use crate::registry::Discipline;
use crate::tc::{QueueSpec, Record, SpecError, number, params, switch, time};

struct Pie {
    limit: u32,
    params: PieParams,
    state: PieState,
    timer: UpdateTimer,
    rng: Rng,
    packets: VecDeque<Packet>,
    accounting: Accounting,
}

impl Pie {
    fn new(spec: &QueueSpec, device: &Device) -> Result<Self, SpecError> {
        let PieOptions { limit, steering, signals } = spec.read(device)?;
        Ok(Self {
            limit,
            params: PieParams::new(&steering, &signals, MARK_UP_TO_PERCENT, device),
            state: PieState::default(),
            timer: UpdateTimer::new(steering.tupdate),
            rng: device.seed.stream("pie"),
            packets: VecDeque::new(),
            accounting: Accounting::default(),
        })
    }

    /// Makes the updates that were due since the last call. Nothing moved in between, so that each is what
    /// it would have been in its time.
    fn catch_up(&mut self, now: Time) {
        while self.timer.fires(now) {
            let before = self.state;
            self.state.update(self.accounting.backlog().bytes, &self.params);
            if self.state == before {
                self.timer.skip(now, 1);
            }
        }
    }
}

impl TakesNext for Pie {
    fn enqueue(&mut self, packet: &Packet, now: Time, sink: &mut dyn DropSink) {
        let mut packet = *packet;
        self.catch_up(now);
        let backlog = self.accounting.backlog();
        let full = backlog.packets >= self.limit;
        let strikes = !full
            && self.state.strikes(packet.len, backlog.bytes, &self.params, &mut self.rng)
            && !(self.state.may_mark(&self.params)
                && self.accounting.mark(&mut packet, MarkReason::Early, sink));
        if !full && !strikes {
            self.accounting.arrive(&packet);
            self.packets.push_back(packet);
        } else {
            self.state.on_drop();
            let reason = if full { DropReason::Overlimit } else { DropReason::Early };
            self.accounting.xmit_drop(packet, reason, sink);
        }
    }

    fn run_timers(&mut self, now: Time, _sink: &mut dyn DropSink) {
        self.catch_up(now);
    }

    fn take_next(&mut self, now: Time, _sink: &mut dyn DropSink) -> Option<Packet> {
        let packet = self.packets.pop_front()?;
        self.accounting.take(&packet);
        self.state.on_dequeue(&packet, self.accounting.backlog().bytes, &self.params, now);
        Some(packet)
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
    /// Parameters of `pie`.
    pub struct PieOptions {
        /// most packets that may wait
        pub limit: u32 = number("packets", 1, u32::MAX as u64).default("1000").or_0(),
        pub steering: Steering,
        pub signals: Signals,
    }
}

pub(crate) static PIE: Discipline = Discipline {
    name: "pie",
    summary: "proportional integral controller enhanced: drops at random so that the delay nears a target",
    source: "Linux net/sched/sch_pie.c, include/net/pie.h; RFC 8033",
    params: PieOptions::PARAMS,
    class_params: &[],
    takes_child: false,
    examples: &[
        "pie limit 50 target 2ms tupdate 4ms",
        "pie ecn bytemode limit 40 target 1ms alpha 32 beta 32",
        "pie dq_rate_estimator target 1ms alpha 32",
    ],
    build: |spec, device| Ok(Box::new(Peeked::new(Pie::new(spec, device)?))),
};

impl PieParams {
    /// PIE's parameters of a discipline that marks up to a probability of `percent`.
    pub(crate) fn new(
        steering: &Steering,
        signals: &Signals,
        percent: u8,
        device: &Device,
    ) -> Self {
        Self {
            target: steering.target,
            alpha: steering.alpha,
            beta: steering.beta,
            mark_up_to: signals.ecn.then_some(MAX_PROB / 100 * u64::from(percent)),
            bytemode: signals.bytemode,
            dq_rate_estimator: signals.dq_rate_estimator,
            full_packet: device.full_packet(),
        }
    }
}

params! {
    /// Parameters of PIE's controller. The defaults are those of RFC 8033, section 5.2.
    pub struct Steering {
        /// delay that the controller steers for
        pub target: Duration = time().default("15ms").or_0(),
        /// time between updates of the probability; the kernel's timer makes 20 ms of 15 ms
        pub tupdate: Duration = time().default("15ms").or_0(),
        /// how strongly the distance from the target counts
        pub alpha: u64 = number("1/16 per s", 0, 32).default("2").or_0(),
        /// how strongly the change of the delay counts
        pub beta: u64 = number("1/16 per s", 0, 32).default("20").or_0(),
    }
}

params! {
    /// Parameters of what PIE measures and does to packets.
    pub struct Signals {
        /// mark packets whose sender speaks ECN while the probability is low, instead of dropping
        /// them
        pub ecn: bool = switch().off_by("noecn"),
        /// drop short packets with a lower probability, by their length
        pub bytemode: bool = switch().off_by("nobytemode"),
        /// take the delay from the backlog and a measured drain rate instead of sojourn times
        pub dq_rate_estimator: bool = switch().off_by("no_dq_rate_estimator"),
    }
}

/// RFC 8033, section 5.1: above a probability of 10 % packets are dropped even if they could be marked.
const MARK_UP_TO_PERCENT: u8 = 10;

#[cfg(test)]
mod tests {
    use weir_core::{Dscp, Ecn};

    use super::*;
    use crate::contract::Qdisc;
    use crate::port::Ignore;

    fn pie(spec: &str) -> Peeked<Pie> {
        Peeked::new(Pie::new(&QueueSpec::parse(spec).unwrap(), &Device::default()).unwrap())
    }

    fn packet(enqueued_at: Time, ecn: Ecn) -> Packet {
        let label = weir_core::FlowLabel::default();
        Packet { handle: 0, enqueued_at, label, len: 1514, flow_id: 0, dscp: Dscp::BE, ecn }
    }

    /// Ten packets at time zero, of which the first leaves after 100 ms.
    fn waiting() -> Peeked<Pie> {
        let mut queue = pie("pie");
        for _ in 0..10 {
            queue.enqueue(&packet(Time::ZERO, Ecn::NotEct), Time::ZERO, &mut Ignore);
        }
        queue.dequeue(Time::from_millis(100), &mut Ignore).unwrap();
        queue
    }

    #[test]
    fn how_often_it_is_asked_does_not_matter() {
        let [mut often, mut once] = [waiting(), waiting()];
        for ms in 101..=2000 {
            often.discipline.catch_up(Time::from_millis(ms));
        }
        once.discipline.catch_up(Time::from_millis(2000));
        assert_eq!(often.discipline.state, once.discipline.state);
        assert!(once.discipline.state != PieState::default(), "it did move");
    }

    #[test]
    fn a_long_rest_costs_nothing_and_forgets_everything() {
        let mut queue = waiting();
        queue.discipline.catch_up(Time::from_millis(2000));
        while queue.dequeue(Time::from_millis(2000), &mut Ignore).is_some() {}
        // A year of updates would not end; after the first that change nothing the rest are left out.
        queue.discipline.catch_up(Time::ZERO + Duration::from_secs(31_536_000));
        assert_eq!(queue.discipline.state, PieState::default());
    }

    #[test]
    fn packets_are_marked_up_to_a_tenth_and_dropped_above() {
        for (prob, marked) in [(MAX_PROB / 100 * 10, 1), (MAX_PROB / 100 * 10 + 1, 0)] {
            let mut queue = pie("pie ecn");
            for _ in 0..3 {
                queue.enqueue(&packet(Time::ZERO, Ecn::Ect0), Time::ZERO, &mut Ignore);
            }
            queue.discipline.state = PieState::sure_to_strike(prob);
            queue.enqueue(&packet(Time::ZERO, Ecn::Ect0), Time::ZERO, &mut Ignore);
            let stats = queue.stats();
            assert_eq!(stats.marked[MarkReason::Early as usize], marked);
            assert_eq!(stats.dropped[DropReason::Early as usize].packets, 1 - marked);
        }
    }
}
