//! `htb`: a tree of classes with guaranteed and greatest rates, which lend to one another.
//!
//! Follows Linux `net/sched/sch_htb.c`. Three things decide who sends: *tokens* of the own rate and of
//! the ceiling put a class into one of three [modes](class::Mode); the *tree* of active classes
//! ([`tree`]) says who may send at which level; deficit round robin with the class' quantum shares
//! a level. Nothing is done differently but one: filters hang from the discipline only.

mod class;
mod tree;

use weir_core::{Duration, Packet, Time};

use self::class::HtbClassOptions;
pub use self::class::HtbClassParams;
use self::tree::{LEVELS, Tree};
use crate::Device;
use crate::contract::{Backlog, ClassView, DropSink, Qdisc, Stats};
use crate::fifo::{Fifo, Limit};
use crate::leaves::Leaves;
use crate::peeked::{Peeked, TakesNext};
use crate::registry::Discipline;
use crate::tc::{Classifier, Handle, QueueSpec, Record, SpecError, minor, number, params};

struct Htb {
    tree: Tree,
    classifier: Classifier,
    /// The leaf of packets that no filter takes; `None` sends them straight through.
    default_leaf: Option<usize>,
    /// Packets of no class; they go first and are not shaped.
    direct: Fifo,
    wake_at: Option<Time>,
}

impl Htb {
    fn new(spec: &QueueSpec, device: &Device) -> Result<Self, SpecError> {
        let HtbOptions { default, r2q, direct_qlen } = spec.read(device)?;
        let classes = class::read_all(spec, r2q, device)?;
        let tree = Tree::new(classes, Leaves::read(spec, device)?);
        let default_leaf =
            default.and_then(|minor| tree.leaves.called(Handle { major: spec.major(), minor }));
        Ok(Self {
            tree,
            classifier: Classifier::with_priorities(spec),
            default_leaf,
            direct: Fifo::new(Limit::Packets(direct_qlen)),
            wake_at: None,
        })
    }

    /// The leaf of `packet`, or `None` for straight through.
    fn leaf_of(&self, packet: &Packet) -> Option<usize> {
        match self.classifier.classify(packet) {
            // Class 0 means straight through; an inner or unknown class, the default.
            Some(class) if class.minor == 0 => None,
            Some(class) => self.tree.leaves.called(class).or(self.default_leaf),
            None => self.default_leaf,
        }
    }
}

impl TakesNext for Htb {
    fn enqueue(&mut self, packet: &Packet, now: Time, sink: &mut dyn DropSink) {
        match self.leaf_of(packet) {
            None => self.direct.enqueue(packet, now, sink),
            Some(leaf) => self.tree.enqueue(leaf, packet, now, sink),
        }
    }

    fn take_next(&mut self, now: Time, sink: &mut dyn DropSink) -> Option<Packet> {
        self.wake_at = None;
        if let Some(packet) = self.direct.dequeue(now, sink) {
            return Some(packet);
        }
        if self.tree.leaves.backlog().packets == 0 {
            return None;
        }
        // The kernel looks again after 5 s even if no class asked for it.
        let mut next_event = now + Duration::from_secs(5);
        for level in 0..LEVELS {
            if let Some(event) = self.tree.apply_due_mode_changes(level, now) {
                next_event = next_event.min(event);
            }
            for prio in self.tree.active_priorities(level) {
                let packet = self.tree.dequeue(level, prio, now, sink);
                if packet.is_some() {
                    return packet;
                }
            }
        }
        self.wake_at = self.tree.leaves.next_wake(now).into_iter().chain([next_event]).min();
        None
    }

    fn wake_at(&self) -> Option<Time> {
        self.wake_at
    }

    fn backlog(&self) -> Backlog {
        let mut backlog = self.tree.leaves.backlog();
        backlog.packets += self.direct.backlog().packets;
        backlog.bytes += self.direct.backlog().bytes;
        backlog
    }

    fn stats(&self) -> Stats {
        let mut stats = self.direct.stats();
        self.tree.leaves.add_stats(&mut stats);
        stats
    }

    fn classes(&self, visit: &mut dyn FnMut(ClassView<'_>)) {
        self.tree.leaves.show(visit);
    }
}

params! {
    /// Parameters of `htb`.
    #[derive(Clone, Copy, Debug)]
    pub struct HtbOptions {
        /// class of packets that no filter takes
        pub default: Option<u16> = minor().absent("0: unshaped"),
        /// a class' quantum is its rate in bytes/s divided by this
        pub r2q: u32 = number("divisor", 1, u32::MAX as u64).default("10"),
        /// most packets of no class that may wait
        pub direct_qlen: u32 = number("packets", 0, u32::MAX as u64)
            .default_of("txqueuelen", |device| { device.tx_queue_len.max(2).to_string() }),
    }
}

pub(crate) static HTB: Discipline = Discipline {
    name: "htb",
    summary: "classes with guaranteed and greatest rates that lend to one another",
    source: "Linux net/sched/sch_htb.c; iproute2 tc/q_htb.c",
    params: HtbOptions::PARAMS,
    class_params: HtbClassOptions::PARAMS,
    takes_child: false,
    examples: &[
        "htb rate 2mbit fq_codel limit 50",
        "htb default 1 rate 1mbit",
        "htb rate 4mbit fq maxrate 500kbit flow_limit 10",
        "qdisc add dev eth0 root handle 1: htb default 20
         class add dev eth0 parent 1: classid 1:1 htb rate 4mbit burst 1600 cburst 1600
         class add dev eth0 parent 1:1 classid 1:10 htb rate 1mbit ceil 4mbit prio 0 quantum 1514
         class add dev eth0 parent 1:1 classid 1:20 htb rate 2mbit ceil 4mbit prio 1 quantum 1514
         class add dev eth0 parent 1:1 classid 1:30 htb rate 1mbit ceil 2mbit prio 1 quantum 1514
         qdisc add dev eth0 parent 1:10 handle 10: pfifo limit 10
         qdisc add dev eth0 parent 1:20 handle 20: fq_codel limit 30
         qdisc add dev eth0 parent 1:30 handle 30: codel limit 20
         filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dport 5000 0xffff flowid 1:10
         filter add dev eth0 parent 1: protocol ip prio 2 u32 match ip dport 5001 0xffff flowid 1:30",
    ],
    build: |spec, device| Ok(Box::new(Peeked::new(Htb::new(spec, device)?))),
};
