//! `red`: random early detection.
//!
//! Follows Linux `net/sched/sch_red.c`; the algorithm is in [`algorithm`](self::algorithm), what `tc`
//! computes for it in [`settings`](self::settings). Two things differ: `adaptive` adapts (today's `tc`
//! sends it where the kernel does not look for it, so that Linux ignores it in silence), and `gentle` is
//! ours.

mod algorithm;
mod settings;

use weir_core::{Packet, Rate, Rng, Time};

pub(crate) use self::algorithm::{ADAPT_EVERY, Average, RedParams, RedState, RedVerdict};
pub use self::settings::RedTold;
pub(crate) use self::settings::{
    BANDWIDTH, BURST, ECN, HARDDROP, PROBABILITY, RedSettings, burst, size, size_or_0, thresholds,
};
use crate::Device;
use crate::accounting::Accounting;
use crate::contract::{Backlog, ClassView, DropReason, DropSink, MarkReason, Qdisc, Stats};
use crate::fifo::{Fifo, Limit};
use crate::registry::Discipline;
use crate::tc::{QueueSpec, Record, SpecError, Unless0, params, switch};

struct Red {
    params: RedParams,
    state: RedState,
    policy: Policy,
    /// When adaptive RED looks next; its timer runs from when it is made. `None` if it is not adaptive.
    adapt_at: Option<Time>,
    rng: Rng,
    child: Box<dyn Qdisc>,
    /// Accounting of packets that never reached the child, and of every mark.
    accounting: Accounting,
}

/// Policy for packets that RED picks: whether to mark, drop or keep them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Policy {
    /// Mark where the sender speaks ECN.
    pub ecn: bool,
    /// Drop from the upper threshold on, ECN or not.
    pub harddrop: bool,
    /// Let packets wait that can only be dropped.
    pub nodrop: bool,
}

impl Policy {
    /// The bits by which a kernel knows it (include/uapi/linux/pkt_sched.h).
    const fn flags(self) -> u8 {
        self.ecn as u8 | (self.harddrop as u8) << 1 | (self.nodrop as u8) << 3
    }

    /// Carries out `verdict` on `packet`, and says whether and why it is to be dropped.
    pub fn carry_out(
        self,
        verdict: RedVerdict,
        packet: &mut Packet,
        accounting: &mut Accounting,
        sink: &mut dyn DropSink,
    ) -> Option<DropReason> {
        let (may_mark, mark, drop) = match verdict {
            RedVerdict::Pass => return None,
            RedVerdict::Early => (self.ecn, MarkReason::Early, DropReason::Early),
            RedVerdict::Forced => {
                (self.ecn && !self.harddrop, MarkReason::Forced, DropReason::Forced)
            }
        };
        let spared = may_mark && (accounting.mark(packet, mark, sink) || self.nodrop);
        (!spared).then_some(drop)
    }
}

impl Red {
    fn new(spec: &QueueSpec, device: &Device) -> Result<Self, SpecError> {
        let options: RedOptions = spec.read(device)?;
        let RedOptions { limit, .. } = options;
        let policy = options.policy()?;
        let child = match &spec.child {
            Some(child) => child.build(device)?,
            None => Box::new(Fifo::new(Limit::Bytes(u64::from(limit)))),
        };
        Ok(Self {
            params: options.settings().for_kernel("red")?,
            state: RedState::default(),
            policy,
            adapt_at: options.adaptive.then_some(Time::ZERO + ADAPT_EVERY),
            rng: device.seed.stream("red"),
            child,
            accounting: Accounting::default(),
        })
    }

    /// Makes up for every step of adaptive RED that was due by `now`. What it looks at changes with
    /// arrivals, and when an idle time begins.
    fn adapt(&mut self, now: Time) {
        let Some(due) = &mut self.adapt_at else { return };
        while *due <= now {
            self.params.adapt(&self.state, *due);
            *due += ADAPT_EVERY;
        }
    }
}

impl RedOptions {
    /// What a kernel is told of these words.
    ///
    /// # Errors
    /// If they are out of order, or say together what no Linux has together.
    pub fn told(&self) -> Result<RedTold, SpecError> {
        if self.adaptive && self.nodrop {
            return Err(SpecError::new(
                "red: no Linux has `adaptive` beside `nodrop`: leave one of them out",
            ));
        }
        let told = self.settings().told("red", self.policy()?)?;
        Ok(RedTold { flags: told.flags | (self.adaptive as u8) << 2, ..told })
    }

    fn policy(&self) -> Result<Policy, SpecError> {
        let Self { ecn, harddrop, nodrop, .. } = *self;
        if nodrop && !ecn {
            return Err(SpecError::new("red: `nodrop` has a meaning only beside `ecn`"));
        }
        Ok(Policy { ecn, harddrop, nodrop })
    }

    /// The settings of `red`, with thresholds that are not written as `tc` computes them (Floyd,
    /// "RED: discussions of setting parameters", 1997).
    fn settings(&self) -> RedSettings {
        let Self { limit, min: Unless0(min), max: Unless0(max), avpkt, .. } = *self;
        let max = max.unwrap_or_else(|| min.map_or(limit / 4, |min| min.saturating_mul(3)));
        let min = min.unwrap_or(max / 3);
        RedSettings {
            min,
            max,
            unit: 1,
            average_packet: avpkt,
            burst: burst(self.burst, min, max, avpkt),
            probability: self.probability,
            bandwidth: Some(self.bandwidth),
            gentle: self.gentle,
        }
    }
}

impl Qdisc for Red {
    fn enqueue(&mut self, packet: &Packet, now: Time, sink: &mut dyn DropSink) {
        let mut packet = *packet;
        self.adapt(now);
        let average = self.state.update(&self.params, self.child.backlog().bytes, now);
        let verdict = self.state.decide(&self.params, average, &mut self.rng);
        match self.policy.carry_out(verdict, &mut packet, &mut self.accounting, sink) {
            Some(reason) => self.accounting.xmit_cn(packet, reason, sink),
            None => self.child.enqueue(&packet, now, sink),
        }
    }

    fn dequeue(&mut self, now: Time, sink: &mut dyn DropSink) -> Option<Packet> {
        let packet = self.child.dequeue(now, sink);
        if packet.is_none() {
            self.adapt(now);
            self.state.start_idling(now);
        }
        packet
    }

    fn peek(&mut self, now: Time, sink: &mut dyn DropSink) -> Option<&Packet> {
        self.child.peek(now, sink)
    }

    fn wake_at(&self) -> Option<Time> {
        self.child.wake_at()
    }

    fn backlog(&self) -> Backlog {
        self.child.backlog()
    }

    fn stats(&self) -> Stats {
        let mut stats = self.child.stats();
        stats += self.accounting.stats();
        stats
    }

    fn classes(&self, visit: &mut dyn FnMut(ClassView<'_>)) {
        self.child.classes(visit);
    }
}

params! {
    /// Parameters of `red`.
    pub struct RedOptions {
        /// most bytes that may wait
        pub limit: u32 = size(),
        /// average queue below which nothing is dropped
        min: Unless0<u32> = size_or_0().absent_or_0("max / 3"),
        /// average queue from which everything is dropped or marked
        max: Unless0<u32> = size_or_0().absent_or_0("3 min, else limit / 4"),
        /// bytes of an average packet
        avpkt: u32 = size(),
        burst: Unless0<u32> = BURST,
        probability: f64 = PROBABILITY,
        bandwidth: Rate = BANDWIDTH,
        ecn: bool = ECN,
        harddrop: bool = HARDDROP,
        /// beside `ecn`: let packets wait that cannot be marked
        nodrop: bool = switch(),
        /// move the probability so that the average stays halfway between min and max
        adaptive: bool = switch().aliases(&["adaptative"]),
        /// above max let the probability rise to 1 at twice max (not in Linux)
        gentle: bool = switch(),
    }
}

pub(crate) static RED: Discipline = Discipline {
    name: "red",
    summary: "random early detection: drops more and more as the average queue grows",
    source: "Linux net/sched/sch_red.c, include/net/red.h; Floyd and Jacobson 1993",
    params: RedOptions::PARAMS,
    class_params: &[],
    takes_child: true,
    examples: &[
        "red limit 40000 min 3000 max 9000 avpkt 1000 probability 0.1",
        "red limit 30000 min 1500 max 4500 avpkt 500 burst 8 ecn adaptive gentle bandwidth 2mbit",
        "red limit 30000 min 1000 max 3000 avpkt 500 ecn harddrop nodrop pfifo limit 5",
        "red limit 30000 avpkt 500 codel limit 30",
    ],
    build: |spec, device| Ok(Box::new(Red::new(spec, device)?)),
};

#[cfg(test)]
mod tests;
