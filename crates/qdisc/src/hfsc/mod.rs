//! `hfsc`: hierarchical fair service curves, which promise delay apart from rate.
//!
//! Follows Linux `net/sched/sch_hfsc.c` and Stoica, Zhang, Ng: "A Hierarchical Fair Service Curve
//! Algorithm for Link-Sharing, Real-Time and Priority Services", SIGCOMM 1997. The arithmetic is in
//! [`curve`], the choice of who sends in [`tree`]. Two things are done differently: filters hang from the
//! discipline only, and a leaf that drops all it has as it is asked makes room for the next at once, where
//! Linux waits for the next packet or timer.

mod curve;
mod tree;

use weir_core::{Bytes, Packet, Time, units};

use self::curve::{ServiceCurve, Shape, ticks, time};
use self::tree::{Curves, Tree};
use crate::Device;
use crate::accounting::Accounting;
use crate::contract::{Backlog, ClassView, DropReason, DropSink, Stats};
use crate::leaves::Leaves;
use crate::peeked::{Peeked, TakesNext};
use crate::registry::Discipline;
use crate::tc::{
    self, ClassSpec, Classifier, Declared, Handle, Plain, QueueSpec, Record, SpecError, Text,
    minor, params, words,
};

struct Hfsc {
    tree: Tree,
    leaves: Leaves,
    classifier: Classifier,
    default_leaf: Option<usize>,
    /// Packets that no class takes.
    unclassified: Accounting,
    wake_at: Option<Time>,
}

impl Hfsc {
    fn new(spec: &QueueSpec, device: &Device) -> Result<Self, SpecError> {
        let leaves = Leaves::read(spec, device)?;
        let mut classes = Vec::new();
        for written in &spec.classes {
            let parent = spec.classes.iter().position(|other| other.id == written.parent);
            classes.push((parent, read_curves(written, device)?));
        }
        let default_leaf = spec
            .read::<HfscOptions>(device)?
            .default
            .and_then(|minor| leaves.called(Handle { major: spec.major(), minor }));
        Ok(Self {
            tree: Tree::new(&classes),
            leaves,
            classifier: Classifier::with_priorities(spec),
            default_leaf,
            unclassified: Accounting::default(),
            wake_at: None,
        })
    }

    /// The leaf that a filter names, else the default.
    fn leaf_of(&self, packet: &Packet) -> Option<usize> {
        let named = self.classifier.classify(packet).and_then(|class| self.leaves.called(class));
        named.or(self.default_leaf)
    }

    /// The deadline of the packet that `leaf` sends next.
    fn update_deadline(
        &mut self,
        leaf: usize,
        by_guarantee: bool,
        now: Time,
        sink: &mut dyn DropSink,
    ) {
        if !self.tree.has_deadlines(leaf) {
            return;
        }
        if self.leaves.backlog_of(leaf).packets == 0 {
            return self.tree.end_deadlines(leaf);
        }
        let len = self.leaves.peek_len(leaf, now, sink);
        if self.leaves.backlog_of(leaf).packets == 0 {
            self.tree.deactivate(leaf);
        } else {
            // A leaf that holds back what it has counts as if it sent an empty packet (`qdisc_peek_len`).
            self.tree.reschedule(leaf, len.unwrap_or(0), by_guarantee);
        }
    }
}

impl TakesNext for Hfsc {
    fn enqueue(&mut self, packet: &Packet, now: Time, sink: &mut dyn DropSink) {
        let Some(leaf) = self.leaf_of(packet) else {
            return self.unclassified.xmit_drop(*packet, DropReason::Unclassified, sink);
        };
        let first = self.leaves.backlog_of(leaf).packets == 0;
        self.leaves.enqueue(leaf, packet, now, sink);
        if first && self.leaves.backlog_of(leaf).packets > 0 && !self.tree.is_active(leaf) {
            self.tree.activate(leaf, packet.len, ticks(now));
            if self.tree.has_deadlines(leaf) {
                // The deadline is this packet's: it is taken out, so that it cannot be dropped from
                // the head.
                self.leaves.peek_len(leaf, now, sink);
            }
        }
    }

    fn take_next(&mut self, now: Time, sink: &mut dyn DropSink) -> Option<Packet> {
        self.wake_at = None;
        while self.leaves.backlog().packets > 0 {
            let Some((leaf, by_guarantee)) = self.tree.next(ticks(now)) else {
                self.wake_at = self.tree.next_event().map(time);
                return None;
            };
            let before = self.leaves.backlog_of(leaf).packets;
            let packet = self.leaves.dequeue(leaf, now, sink);
            let after = self.leaves.backlog_of(leaf).packets;
            let Some(packet) = packet else {
                if after > 0 {
                    // The leaf holds its packets back by itself.
                    self.wake_at = self.leaves.next_wake(now);
                    return None;
                }
                self.tree.deactivate(leaf);
                continue;
            };
            if after == 0 && before > 1 {
                // It dropped others until none was left: that it is empty is known before it is charged.
                self.tree.deactivate(leaf);
            }
            self.tree.sent(leaf, packet.len, by_guarantee, after > 0);
            self.update_deadline(leaf, by_guarantee, now, sink);
            return Some(packet);
        }
        None
    }

    fn wake_at(&self) -> Option<Time> {
        self.wake_at
    }

    fn backlog(&self) -> Backlog {
        self.leaves.backlog()
    }

    fn stats(&self) -> Stats {
        let mut stats = self.unclassified.stats();
        self.leaves.add_stats(&mut stats);
        stats
    }

    fn classes(&self, visit: &mut dyn FnMut(ClassView<'_>)) {
        self.leaves.show(visit);
    }
}

fn read_curves(written: &ClassSpec, device: &Device) -> Result<Curves, SpecError> {
    let HfscClassOptions { sc, rt, ls, ul } = tc::read("hfsc class", &written.words, device)?;
    let curves = Curves { real_time: rt.or(sc), link_share: ls.or(sc), upper_limit: ul };
    let wrong = |what| Err(SpecError::new(format!("hfsc class `{}`: {what}", written.id)));
    if curves.upper_limit.is_some() && curves.link_share.is_none() {
        return wrong("`ul` limits link sharing: write `ls` or `sc` too");
    }
    if curves.real_time.is_none() && curves.link_share.is_none() {
        return wrong("one of `rt`, `ls` and `sc` is required");
    }
    Ok(curves)
}

/// A curve, in one of `tc`'s two forms.
fn read_curve(text: &Text<'_>) -> Result<Shape, SpecError> {
    let slope = |word: &str| {
        if units::parse_rate(word).is_ok_and(|rate| rate.as_bps() == 0) {
            return Ok(0);
        }
        let bytes = text.rate_in(word)?.as_bytes_per_sec();
        u32::try_from(bytes).map_err(|_| text.bad("the kernel takes up to 34gbit"))
    };
    let time = |word: &str| {
        let time = units::parse_time(word).map_err(|error| text.wrap(&error))?;
        u32::try_from(time.as_nanos() / 1_000)
            .map_err(|_| text.bad("times up to 4294 s are allowed"))
    };
    let size = |word: &str| units::parse_size(word).map_err(|error| text.wrap(&error));
    let curve = match text.words()[..] {
        ["m2" | "rate", m2] => ServiceCurve { m1: 0, d: 0, m2: slope(m2)? },
        ["d", d, "m2", m2] => ServiceCurve { m1: 0, d: time(d)?, m2: slope(m2)? },
        ["m1", m1, "m2", m2] => ServiceCurve { m1: slope(m1)?, d: 0, m2: slope(m2)? },
        ["m1", m1, "d", d, "m2", m2] => {
            ServiceCurve { m1: slope(m1)?, d: time(d)?, m2: slope(m2)? }
        }
        ["dmax", dmax, "rate", rate] => {
            from_delay(Bytes::new(0), time(dmax)?, text.rate_in(rate).and(slope(rate))?)
        }
        ["umax", umax, "dmax", dmax, "rate", rate] => {
            let dmax = time(dmax)?;
            if dmax == 0 {
                return Err(text.bad("`umax` needs a `dmax` above 0"));
            }
            from_delay(size(umax)?, dmax, text.rate_in(rate).and(slope(rate))?)
        }
        _ => return Err(text.bad(CURVE_FORMS)),
    };
    if curve.m1 == 0 && curve.m2 == 0 {
        return Err(text.bad("one of the two slopes must be above 0"));
    }
    if curve.m2 == 0 {
        return Err(text.bad(
            "`m2` must be above 0: the kernel's times wrap around where a curve is flat at last",
        ));
    }
    Ok(Shape::new(curve))
}

/// The curve that serves `umax` bytes within `dmax` microseconds and has `rate` in the long run
/// (`hfsc_get_sc2` of iproute2).
fn from_delay(umax: Bytes, dmax: u32, rate: u32) -> ServiceCurve {
    let slope = (1e6 * umax.get() as f64 / f64::from(dmax)).ceil();
    if dmax != 0 && slope > f64::from(rate) {
        return ServiceCurve { m1: slope as u32, d: dmax, m2: rate };
    }
    let at_rate = umax.get() * 1_000_000 / u64::from(rate);
    ServiceCurve { m1: 0, d: dmax.saturating_sub(at_rate as u32), m2: rate }
}

/// How many of `words` belong to a curve: pairs of a name and a value.
fn curve_words(words: &[&str]) -> usize {
    let names = ["m1", "d", "m2", "umax", "dmax", "rate"];
    2 * words.chunks(2).take_while(|pair| names.contains(&pair[0])).count()
}

params! {
    /// Parameters of `hfsc`.
    struct HfscOptions {
        /// class of packets that no filter takes
        default: Option<u16> = minor().absent("none: dropped"),
    }
}

pub(crate) static HFSC: Discipline = Discipline {
    name: "hfsc",
    summary: "classes with service curves, which promise delay apart from rate",
    source: "Linux net/sched/sch_hfsc.c; iproute2 tc/q_hfsc.c; Stoica, Zhang, Ng, SIGCOMM 1997",
    params: HfscOptions::PARAMS,
    class_params: HfscClassOptions::PARAMS,
    takes_child: false,
    examples: &[
        "hfsc sc rate 2mbit ul rate 3mbit fq_codel limit 50",
        "hfsc rt m1 3mbit d 20ms m2 1mbit pfifo limit 20",
        "hfsc sc rate 4mbit ul rate 4mbit fq maxrate 500kbit flow_limit 10",
        "qdisc add dev eth0 root handle 1: hfsc default 30
         class add dev eth0 parent 1: classid 1:1 hfsc ls m2 4mbit ul m2 4mbit
         class add dev eth0 parent 1:1 classid 1:10 hfsc rt umax 1500 dmax 10ms rate 500kbit ls m2 1mbit
         class add dev eth0 parent 1:1 classid 1:20 hfsc sc d 20ms m2 2mbit ul m2 3mbit
         class add dev eth0 parent 1:1 classid 1:30 hfsc rt m2 1mbit
         qdisc add dev eth0 parent 1:10 handle 10: pfifo limit 10
         qdisc add dev eth0 parent 1:20 handle 20: fq_codel limit 30
         qdisc add dev eth0 parent 1:30 handle 30: codel limit 20
         filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dport 5000 0xffff flowid 1:10
         filter add dev eth0 parent 1: protocol ip prio 2 u32 match ip dport 5001 0xffff flowid 1:20",
    ],
    build: |spec, device| Ok(Box::new(Peeked::new(Hfsc::new(spec, device)?))),
};

params! {
    /// Parameters of a class of `hfsc`.
    struct HfscClassOptions {
        /// the two in one: `rt` and `ls` of the same curve
        sc: Option<Shape> = CURVE,
        /// real time: what the class, a leaf, is served by when at the latest
        rt: Option<Shape> = CURVE,
        /// link share: by what classes share the rest
        ls: Option<Shape> = CURVE,
        /// upper limit of what link sharing gives
        ul: Option<Shape> = CURVE,
    }
}

const CURVE: Declared<Option<Shape>> =
    words("[m1 RATE] [d TIME] m2 RATE", curve_words, read_curve).absent("none");

impl Plain for Shape {}

const CURVE_FORMS: &str =
    "write `[m1 RATE] [d TIME] m2 RATE` or `[[umax SIZE] dmax TIME] rate RATE`";
