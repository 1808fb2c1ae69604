//! `drr`: classes that take turns, each with a quantum of bytes.
//!
//! Follows Linux `net/sched/sch_drr.c` (Shreedhar and Varghese 1995). A packet that no filter takes is
//! dropped, as there. Nothing is done differently.

use std::collections::VecDeque;

use weir_core::{Packet, Time};

use crate::Device;
use crate::contract::{DropSink, Qdisc};
use crate::leaves::Leaves;
use crate::registry::Discipline;
use crate::scheduler::{Schedule, Scheduler, Sorter};
use crate::tc::{self, Classifier, NoOptions, QueueSpec, Record, SpecError, number, params};

/// Deficit round robin over those classes that have packets.
pub(crate) struct RoundRobin {
    shares: Vec<Share>,
    /// Classes with packets, in the order of their turns.
    active: VecDeque<usize>,
}

struct Share {
    quantum: u32,
    /// Bytes that the class may still send in this turn.
    deficit: u32,
    active: bool,
}

impl RoundRobin {
    pub fn new(quanta: impl IntoIterator<Item = u32>) -> Self {
        let share = |quantum| Share { quantum, deficit: 0, active: false };
        Self { shares: quanta.into_iter().map(share).collect(), active: VecDeque::new() }
    }

    /// The class whose turn it is takes part no longer.
    fn retire(&mut self) {
        if let Some(class) = self.active.pop_front() {
            self.shares[class].active = false;
        }
    }
}

impl Schedule for RoundRobin {
    fn after_enqueue(&mut self, class: usize, leaves: &mut Leaves, _: Time, _: &mut dyn DropSink) {
        let share = &mut self.shares[class];
        if !share.active && leaves.backlog_of(class).packets > 0 {
            share.active = true;
            share.deficit = share.quantum;
            self.active.push_back(class);
        }
    }

    fn next(&mut self, leaves: &mut Leaves, now: Time, sink: &mut dyn DropSink) -> Option<Packet> {
        loop {
            let class = *self.active.front()?;
            let Some(len) = leaves.peek_len(class, now, sink) else {
                if leaves.backlog_of(class).packets == 0 {
                    self.retire();
                    continue;
                }
                // A queue that holds packets back blocks the others, as in Linux.
                return None;
            };
            let share = &mut self.shares[class];
            if len > share.deficit {
                share.deficit += share.quantum;
                self.active.rotate_left(1);
                continue;
            }
            share.deficit -= len;
            let packet = leaves.dequeue(class, now, sink);
            if leaves.backlog_of(class).packets == 0 {
                self.retire();
            }
            return packet;
        }
    }
}

fn build(spec: &QueueSpec, device: &Device) -> Result<Box<dyn Qdisc>, SpecError> {
    spec.read::<NoOptions>(device)?;
    let mut quanta = Vec::new();
    for class in &spec.classes {
        let DrrClassOptions { quantum } = tc::read("drr class", &class.words, device)?;
        quanta.push(quantum.max(MIN_QUANTUM_BYTES));
    }
    let sorter = Sorter::Filters(Classifier::with_priorities(spec));
    let leaves = Leaves::read(spec, device)?;
    Ok(Scheduler::boxed(RoundRobin::new(quanta), sorter, leaves))
}

pub(crate) static DRR: Discipline = Discipline {
    name: "drr",
    summary: "classes that take turns, each with a quantum of bytes",
    source: "Linux net/sched/sch_drr.c; Shreedhar and Varghese 1995",
    params: &[],
    class_params: DrrClassOptions::PARAMS,
    takes_child: false,
    examples: &[
        "drr quantum 3000 fq_codel limit 30",
        "qdisc add dev eth0 root handle 1: drr
         class add dev eth0 parent 1: classid 1:1 drr quantum 3028
         class add dev eth0 parent 1: classid 1:2 drr
         class add dev eth0 parent 1: classid 1:3 drr quantum 300
         qdisc add dev eth0 parent 1:2 handle 20: codel limit 10 target 1ms interval 10ms
         qdisc add dev eth0 parent 1:3 handle 30: tbf rate 2mbit burst 2000 limit 9000
         filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dport 5000 0xffff flowid 1:1
         filter add dev eth0 parent 1: protocol ip prio 2 u32 match ip dport 5001 0xffff flowid 1:2
         filter add dev eth0 parent 1: protocol ip prio 3 u32 match ip dport 5002 0xffff flowid 1:3",
    ],
    build,
};

params! {
    /// Parameters of a class of `drr`.
    struct DrrClassOptions {
        /// bytes that the class may send in its turn (256 at least)
        quantum: u32 = number("bytes", 1, 1 << 20)
            .default_of("one full packet", |device| device.full_packet().to_string()),
    }
}

/// `drr_change_class` and `ets_quantum_parse` raise smaller ones in silence.
pub(crate) const MIN_QUANTUM_BYTES: u32 = 256;
