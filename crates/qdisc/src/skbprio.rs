//! `skbprio`: 64 priorities; the highest is sent first, and the lowest is dropped for a higher one.
//!
//! Follows Linux `net/sched/sch_skbprio.c`. Nothing is done differently. Priorities come from the old TOS
//! bits as Linux reads them, so that 0, 2, 4 and 6 are seen.

use std::collections::VecDeque;

use weir_core::{Packet, Time};

use crate::Device;
use crate::accounting::Accounting;
use crate::contract::{Backlog, DropReason, DropSink, Stats};
use crate::linux::priority_of;
use crate::peeked::{Peeked, TakesNext};
use crate::registry::Discipline;
use crate::tc::{QueueSpec, Record, SpecError, number, params};

struct SkbPrio {
    limit: u32,
    queues: [VecDeque<Packet>; PRIORITIES],
    /// A bit for each priority whose queue has packets.
    waiting: u64,
    accounting: Accounting,
}

impl SkbPrio {
    fn new(spec: &QueueSpec, device: &Device) -> Result<Self, SpecError> {
        Ok(Self {
            limit: spec.read::<SkbPrioOptions>(device)?.limit,
            queues: std::array::from_fn(|_| VecDeque::new()),
            waiting: 0,
            accounting: Accounting::default(),
        })
    }

    fn lowest(&self) -> Option<usize> {
        (self.waiting != 0).then(|| self.waiting.trailing_zeros() as usize)
    }

    fn highest(&self) -> Option<usize> {
        self.waiting.checked_ilog2().map(|priority| priority as usize)
    }

    /// Takes what `pick` takes from the queue of `priority`.
    fn take(
        &mut self,
        priority: usize,
        pick: fn(&mut VecDeque<Packet>) -> Option<Packet>,
    ) -> Packet {
        let queue = &mut self.queues[priority];
        let packet = pick(queue).expect("the priority waits");
        if queue.is_empty() {
            self.waiting &= !(1 << priority);
        }
        self.accounting.take(&packet);
        packet
    }
}

impl TakesNext for SkbPrio {
    fn enqueue(&mut self, packet: &Packet, _now: Time, sink: &mut dyn DropSink) {
        let priority = (priority_of(packet) as usize).min(PRIORITIES - 1);
        if self.backlog().packets >= self.limit {
            let Some(lowest) = self.lowest().filter(|&lowest| lowest < priority) else {
                return self.accounting.xmit_drop(*packet, DropReason::Overlimit, sink);
            };
            // The youngest of the least important makes room.
            let victim = self.take(lowest, VecDeque::pop_back);
            self.accounting.discard(victim, DropReason::Overlimit, sink);
        }
        self.accounting.arrive(packet);
        self.queues[priority].push_back(*packet);
        self.waiting |= 1 << priority;
    }

    fn take_next(&mut self, _now: Time, _sink: &mut dyn DropSink) -> Option<Packet> {
        Some(self.take(self.highest()?, VecDeque::pop_front))
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
    /// Parameters of `skbprio`.
    pub struct SkbPrioOptions {
        /// most packets that may wait
        pub limit: u32 = number("packets", 1, u32::MAX as u64).default("64"),
    }
}

pub(crate) static SKBPRIO: Discipline = Discipline {
    name: "skbprio",
    summary: "the highest priority is sent first, and the lowest is dropped for a higher one",
    source: "Linux net/sched/sch_skbprio.c",
    params: SkbPrioOptions::PARAMS,
    class_params: &[],
    takes_child: false,
    examples: &["skbprio limit 10", "skbprio limit 1"],
    build: |spec, device| Ok(Box::new(Peeked::new(SkbPrio::new(spec, device)?))),
};

/// `SKBPRIO_MAX_PRIORITY`.
const PRIORITIES: usize = 64;
