//! `qfq`: classes that share the line by weight, near to a fluid's order, in constant time (QFQ+).
//!
//! Follows Linux `net/sched/sch_qfq.c` (Checconi, Rizzo and Valente 2013; Valente 2013). Classes of one
//! weight and packet length form [aggregates](Aggregate) of up to eight, within which they take turns;
//! the [timeline](timeline) orders aggregates by virtual times. A packet that no filter takes is dropped,
//! as there. Nothing is done differently.

mod timeline;

use std::collections::VecDeque;

use weir_core::{Packet, Time};

use self::timeline::{ONE, Timeline};
use crate::Device;
use crate::contract::{DropSink, Qdisc};
use crate::leaves::Leaves;
use crate::registry::Discipline;
use crate::scheduler::{Schedule, Scheduler, Sorter};
use crate::tc::{self, Classifier, NoOptions, QueueSpec, Record, SpecError, number, params};

struct Qfq {
    classes: Vec<Class>,
    aggregates: Vec<Aggregate>,
    timeline: Timeline,
    /// The aggregate that is being served.
    serving: Option<usize>,
    /// Most classes in an aggregate.
    most_classes: u32,
    /// Sum of the weights of all classes.
    weights: u32,
}

struct Class {
    aggregate: usize,
    /// Bytes that the class may still send in its turn within the aggregate.
    deficit: i64,
    active: bool,
}

/// Classes of one weight and one largest packet.
struct Aggregate {
    weight: u32,
    longest: u32,
    classes: u32,
    /// Bytes that the aggregate may send before the next is chosen, as often as it is chosen.
    budget: u32,
    /// The budget that it was last given, and what is left of that.
    given: u32,
    left: u32,
    /// Classes with packets, in the order of their turns.
    active: VecDeque<usize>,
}

/// The packet that the class in turn would send.
enum Head {
    Packet {
        class: usize,
        len: u32,
    },
    /// Its queue holds packets back, and so blocks the others, as in Linux.
    Withheld,
    Nothing,
}

impl Qfq {
    fn new(device: &Device) -> Self {
        let most_classes =
            1 << device.tx_queue_len.saturating_add(1).min(MAX_AGGREGATE_CLASSES).ilog2();
        Self {
            classes: Vec::new(),
            aggregates: Vec::new(),
            timeline: Timeline::new(most_classes),
            serving: None,
            most_classes,
            weights: 0,
        }
    }

    /// Adds a class without packets.
    fn add(&mut self, weight: u32, longest: u32) {
        let aggregate = self.aggregate_for(weight, longest);
        self.classes.push(Class { aggregate, deficit: i64::from(longest), active: false });
        self.resize(aggregate, self.aggregates[aggregate].classes + 1);
    }

    /// The aggregate with room for a class of that kind: the youngest one, else a new one.
    fn aggregate_for(&mut self, weight: u32, longest: u32) -> usize {
        let fits = |aggregate: &Aggregate| {
            (aggregate.weight, aggregate.longest) == (weight, longest)
                && (1..self.most_classes).contains(&aggregate.classes)
        };
        self.aggregates.iter().rposition(fits).unwrap_or_else(|| {
            let (classes, budget, given, left) = (0, 0, 0, 0);
            let active = VecDeque::new();
            self.aggregates.push(Aggregate {
                weight,
                longest,
                classes,
                budget,
                given,
                left,
                active,
            });
            self.timeline.add(weight, longest);
            self.aggregates.len() - 1
        })
    }

    /// Counts `classes` classes in `aggregate` from now on.
    fn resize(&mut self, aggregate: usize, classes: u32) {
        let it = &mut self.aggregates[aggregate];
        self.weights = self.weights + it.weight * classes - it.weight * it.classes;
        if classes > 0 {
            it.budget = classes * it.longest;
            self.timeline.set_weight(aggregate, it.weight * classes);
        }
        it.classes = classes;
        self.timeline.set_weights(self.weights);
    }

    /// Moves `class` to an aggregate for packets of up to `len` bytes (`qfq_change_agg`).
    fn lengthen(&mut self, class: usize, len: u32, leaves: &Leaves) {
        let old = self.classes[class].aggregate;
        let weight = self.aggregates[old].weight;
        let new = self.aggregate_for(weight, len);
        if self.classes[class].active {
            self.deactivate(class);
        }
        let left = self.aggregates[old].classes - 1;
        self.resize(old, left);
        if left == 0 && self.serving == Some(old) {
            self.serving = self.timeline.choose();
        }
        self.classes[class].aggregate = new;
        self.resize(new, self.aggregates[new].classes + 1);
        if leaves.backlog_of(class).packets > 0 {
            self.activate(class);
        }
    }

    /// `class` has packets: it takes part in its aggregate's turns, and the aggregate in the timeline.
    fn activate(&mut self, class: usize) {
        self.classes[class].active = true;
        let index = self.classes[class].aggregate;
        let aggregate = &mut self.aggregates[index];
        aggregate.active.push_back(class);
        if aggregate.active.len() > 1 || self.serving == Some(index) {
            return;
        }
        aggregate.give_budget();
        self.timeline.start(index, aggregate.budget);
        if self.serving.is_none() {
            self.serving = Some(index);
            self.timeline.jump_to(index);
        } else {
            self.timeline.insert(index);
        }
    }

    /// `class` has no packets any more, for another reason than that it sent them.
    fn deactivate(&mut self, class: usize) {
        self.classes[class].active = false;
        let index = self.classes[class].aggregate;
        self.aggregates[index].active.retain(|&other| other != class);
        if !self.aggregates[index].active.is_empty() {
            return;
        }
        if self.serving == Some(index) {
            self.charge(index);
            self.serving = self.timeline.choose();
        } else {
            self.timeline.remove(index);
        }
    }

    /// Gives `aggregate` the finish time of what it has really sent.
    fn charge(&mut self, aggregate: usize) {
        let Aggregate { budget, given, left, .. } = self.aggregates[aggregate];
        self.timeline.finish_after(aggregate, budget.min(given - left));
    }

    /// The packet that the class in turn in `aggregate` would send. Classes whose queues turn out empty leave.
    fn head(
        &mut self,
        aggregate: usize,
        leaves: &mut Leaves,
        now: Time,
        sink: &mut dyn DropSink,
    ) -> Head {
        while let Some(&class) = self.aggregates[aggregate].active.front() {
            if let Some(len) = leaves.peek_len(class, now, sink) {
                return Head::Packet { class, len };
            }
            if leaves.backlog_of(class).packets > 0 {
                return Head::Withheld;
            }
            self.aggregates[aggregate].active.pop_front();
            self.classes[class].active = false;
        }
        Head::Nothing
    }

    /// The aggregate that is served has used its budget or has nothing: another one's turn.
    fn next_aggregate(&mut self, serving: usize) {
        self.charge(serving);
        let aggregate = &mut self.aggregates[serving];
        aggregate.give_budget();
        if !aggregate.active.is_empty() {
            self.timeline.go_on(serving, aggregate.budget);
            self.timeline.insert(serving);
        }
        self.serving = self.timeline.choose();
    }

    /// `class` sends its packet of `len` bytes, and it is another class' turn if it may not send the next.
    fn send(
        &mut self,
        class: usize,
        len: u32,
        leaves: &mut Leaves,
        now: Time,
        sink: &mut dyn DropSink,
    ) -> Option<Packet> {
        let packet = leaves.dequeue(class, now, sink)?;
        let Class { aggregate, deficit, active } = &mut self.classes[class];
        let aggregate = &mut self.aggregates[*aggregate];
        *deficit -= i64::from(len);
        if leaves.backlog_of(class).packets == 0 {
            *active = false;
            aggregate.active.pop_front();
        } else if *deficit < i64::from(leaves.peek_len(class, now, sink).unwrap_or(0)) {
            *deficit += i64::from(aggregate.longest);
            aggregate.active.rotate_left(1);
        }
        aggregate.left = aggregate.left.saturating_sub(len);
        self.timeline.advance(len);
        Some(packet)
    }
}

impl Aggregate {
    fn give_budget(&mut self) {
        self.given = self.budget;
        self.left = self.budget;
    }
}

impl Schedule for Qfq {
    fn before_enqueue(&mut self, class: usize, len: u32, leaves: &Leaves) {
        if len > self.aggregates[self.classes[class].aggregate].longest {
            self.lengthen(class, len, leaves);
        }
    }

    fn after_enqueue(
        &mut self,
        class: usize,
        leaves: &mut Leaves,
        now: Time,
        sink: &mut dyn DropSink,
    ) {
        if leaves.backlog_of(class).packets == 0 {
            return;
        }
        let Class { aggregate, deficit, active } = &mut self.classes[class];
        let aggregate = &mut self.aggregates[*aggregate];
        if !*active {
            *deficit = i64::from(aggregate.longest);
            return self.activate(class);
        }
        // A queue that dropped its oldest packet may have a longer one to send now.
        let next = leaves.peek_len(class, now, sink).map_or(0, i64::from);
        if aggregate.active.front() == Some(&class) && *deficit < next {
            aggregate.active.rotate_left(1);
        }
    }

    fn next(&mut self, leaves: &mut Leaves, now: Time, sink: &mut dyn DropSink) -> Option<Packet> {
        loop {
            let serving = self.serving?;
            match self.head(serving, leaves, now, sink) {
                Head::Packet { class, len } if len <= self.aggregates[serving].left => {
                    return self.send(class, len, leaves, now, sink);
                }
                Head::Packet { .. } | Head::Nothing => self.next_aggregate(serving),
                Head::Withheld => return None,
            }
        }
    }
}

fn build(spec: &QueueSpec, device: &Device) -> Result<Box<dyn Qdisc>, SpecError> {
    spec.read::<NoOptions>(device)?;
    let mut qfq = Qfq::new(device);
    for class in &spec.classes {
        let options: QfqClassOptions = tc::read("qfq class", &class.words, device)?;
        // The kernel keeps the inverse, and what that says.
        let weight = ONE / (ONE / u64::from(options.weight));
        qfq.add(weight as u32, options.maxpkt);
    }
    if qfq.weights > MAX_WEIGHT_SUM {
        return Err(SpecError::new(format!(
            "qfq: the weights add up to {}; {MAX_WEIGHT_SUM} at most",
            qfq.weights
        )));
    }
    let sorter = Sorter::Filters(Classifier::with_priorities(spec));
    Ok(Scheduler::boxed(qfq, sorter, Leaves::read(spec, device)?))
}

pub(crate) static QFQ: Discipline = Discipline {
    name: "qfq",
    summary: "classes that share the line by weight, near to a fluid's order, in constant time",
    source: "Linux net/sched/sch_qfq.c; Checconi, Rizzo and Valente 2013",
    params: &[],
    class_params: QfqClassOptions::PARAMS,
    takes_child: false,
    examples: &[
        "qfq weight 5 fq_codel limit 30",
        "qdisc add dev eth0 root handle 1: qfq
         class add dev eth0 parent 1: classid 1:1 qfq weight 10
         class add dev eth0 parent 1: classid 1:2 qfq maxpkt 512
         class add dev eth0 parent 1: classid 1:3 qfq weight 10
         class add dev eth0 parent 1: classid 1:4 qfq weight 300 maxpkt 4096
         qdisc add dev eth0 parent 1:2 handle 20: codel limit 10 target 1ms interval 10ms
         qdisc add dev eth0 parent 1:3 handle 30: tbf rate 2mbit burst 2000 limit 9000
         qdisc add dev eth0 parent 1:4 handle 40: pfifo_head_drop limit 2
         filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dport 5000 0xffff flowid 1:1
         filter add dev eth0 parent 1: protocol ip prio 2 u32 match ip dport 5001 0xffff flowid 1:2
         filter add dev eth0 parent 1: protocol ip prio 3 u32 match ip dport 5002 0xffff flowid 1:3
         filter add dev eth0 parent 1: protocol ip prio 4 u32 match ip dport 5003 0xffff flowid 1:4",
    ],
    build,
};

params! {
    /// Parameters of a class of `qfq`.
    struct QfqClassOptions {
        /// share of the line against the other classes' weights
        weight: u32 = number("weight", 1, 1024).default("1"),
        /// longest packet; it is raised where a longer one comes
        maxpkt: u32 = number("bytes", 512, 1 << 16)
            .default_of("one full packet", |device| device.full_packet().to_string()),
    }
}

/// `QFQ_MAX_AGG_CLASSES`; fewer on a device with a shorter queue.
const MAX_AGGREGATE_CLASSES: u32 = 8;

/// `QFQ_MAX_WSUM`.
const MAX_WEIGHT_SUM: u32 = 64 * 1024;
