//! `dualpi2`: a queue for L4S and one for Classic traffic, coupled so that both get their share.
//!
//! Follows Linux `net/sched/sch_dualpi2.c` (since 6.16), iproute2 `tc/q_dualpi2.c` and RFC 9332; the
//! [`controller`](self::controller) is apart. Every packet is on its own here, as with `split_gso` there.

mod controller;

use std::collections::VecDeque;

use weir_core::{Duration, Packet, Rng, Time, units};

use self::controller::{Controller, DualPi2Verdict};
use crate::Device;
use crate::accounting::Accounting;
use crate::contract::{Backlog, DropReason, DropSink, MarkReason, Stats};
use crate::linux::truesize;
use crate::peeked::{Peeked, TakesNext};
use crate::registry::Discipline;
use crate::tc::{
    Classifier, Plain, QueueSpec, Record, SpecError, Text, number, params, percent, read_time,
    real, size, switch, time, words,
};

struct DualPi2 {
    limit: u32,
    memory_limit: u64,
    drop_at_enqueue: bool,
    any_ect: bool,
    step: Step,
    /// Packets that must wait in the L-queue when one arrives for the step to apply to it.
    min_qlen_step: usize,
    full_packet: u32,
    controller: Controller,
    classifier: Classifier,
    rng: Rng,

    low_latency: VecDeque<Low>,
    classic: VecDeque<Packet>,
    credit: Credit,
    memory: u64,
    accounting: Accounting,
}

/// A packet in the L-queue.
struct Low {
    packet: Packet,
    class: Class,
    /// Whether the step applies to it.
    step: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Classic,
    L4s,
    /// Put into the L-queue by a filter that wants neither drops nor marks (`DUALPI2_C_LLLL`).
    Untouched,
}

/// Above what every packet of the L-queue is marked.
#[derive(Clone, Copy, Debug)]
enum Step {
    Sojourn(Duration),
    Packets(usize),
}

/// Weighted round robin between the queues while both wait: the C-queue's turn is while the credit is
/// positive.
struct Credit {
    value: i64,
    initial: i64,
    classic_weight: i64,
    low_weight: i64,
}

impl DualPi2 {
    fn new(spec: &QueueSpec, device: &Device) -> Result<Self, SpecError> {
        let options: DualPi2Options = spec.read(device)?;
        if !options.split_gso {
            return Err(SpecError::new(
                "dualpi2: `no_split_gso`: every packet is on its own here; write `split_gso`",
            ));
        }
        let limit = options.limit;
        let full_packet = device.full_packet();
        let by_limit = (u64::from(limit) * 2 * u64::from(full_packet)).min(u32::MAX.into());
        let protection = options.classic_protection.round() as i64;
        Ok(Self {
            limit,
            memory_limit: options.memlimit.unwrap_or(by_limit),
            drop_at_enqueue: options.drop_enqueue,
            any_ect: options.any_ect,
            step: options.step_thresh,
            min_qlen_step: options.min_qlen_step,
            full_packet,
            controller: Controller::new(options.controller()?),
            classifier: Classifier::new(&spec.filters),
            rng: device.seed.stream("dualpi2"),
            low_latency: VecDeque::new(),
            classic: VecDeque::new(),
            credit: Credit::new(protection, full_packet),
            memory: 0,
            accounting: Accounting::default(),
        })
    }

    fn class_of(&self, packet: &Packet) -> Class {
        // The lower bit is set in ECT(1) and CE: RFC 9331, section 5.
        let l4s = if self.any_ect { 0b11 } else { 0b01 };
        if packet.ecn.bits() & l4s != 0 {
            return Class::L4s;
        }
        match self.classifier.classify(packet).map(|class| class.minor) {
            Some(1) => Class::L4s,
            Some(2) => Class::Untouched,
            _ => Class::Classic,
        }
    }

    /// Whether `packet` must be dropped by what the controller says; it is marked here if that is enough.
    fn must_drop(&mut self, packet: &mut Packet, class: Class, sink: &mut dyn DropSink) -> bool {
        if self.accounting.backlog().bytes < 2 * u64::from(self.full_packet) {
            return false;
        }
        let speaks_ecn = packet.ecn.can_mark();
        let verdict = match class {
            Class::Classic => self.controller.classic(speaks_ecn, &mut self.rng),
            Class::L4s => self.controller.l4s(speaks_ecn, &mut self.rng),
            Class::Untouched => DualPi2Verdict::Pass,
        };
        if verdict == DualPi2Verdict::Mark {
            self.accounting.mark(packet, MarkReason::Early, sink);
        }
        verdict == DualPi2Verdict::Drop
    }

    /// Whether `packet` of the L-queue must be dropped by the step; it is marked here if that is enough.
    fn step_drops(&mut self, packet: &mut Packet, now: Time, sink: &mut dyn DropSink) -> bool {
        let exceeded = match self.step {
            Step::Sojourn(most) => now.since(packet.enqueued_at) > most,
            Step::Packets(most) => self.low_latency.len() > most,
        };
        exceeded && !self.accounting.mark(packet, MarkReason::Step, sink)
    }

    /// Takes the head of the queue whose turn it is, and says what that does to the credit.
    fn take(&mut self) -> Option<(Low, i64)> {
        let both = !self.low_latency.is_empty() && !self.classic.is_empty();
        let low_turn = self.classic.is_empty() || self.credit.value <= 0;
        let low = if low_turn { self.low_latency.pop_front() } else { None };
        let (taken, weight) = match low {
            Some(low) => (low, self.credit.classic_weight),
            None => {
                let packet = self.classic.pop_front()?;
                (Low { packet, class: Class::Classic, step: false }, -self.credit.low_weight)
            }
        };
        self.accounting.take(&taken.packet);
        self.memory -= u64::from(truesize(&taken.packet));
        let change = if both { weight * i64::from(taken.packet.len) } else { 0 };
        Some((taken, change))
    }

    fn catch_up(&mut self, now: Time) {
        let low = self.low_latency.front().map(|low| low.packet.enqueued_at);
        let classic = self.classic.front().map(|packet| packet.enqueued_at);
        self.controller.catch_up([low, classic], now);
    }
}

impl Credit {
    fn new(classic_weight: i64, full_packet: u32) -> Self {
        let low_weight = 100 - classic_weight;
        let initial = i64::from(full_packet) * (classic_weight - low_weight);
        Self { value: initial, initial, classic_weight, low_weight }
    }
}

impl Plain for Step {}

/// A time or, with a unit that says so, packets.
fn read_step(text: &Text<'_>) -> Result<Step, SpecError> {
    let digits = text.text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    if ["p", "pkt", "pkts", "packet", "packets"].contains(&&text.text[digits.len()..])
        && let Ok(packets) = digits.parse()
    {
        return Ok(Step::Packets(packets));
    }
    if units::parse_time(text.text).is_err() {
        return Err(text.bad("write a time such as 1ms, or packets such as 5p"));
    }
    read_time(text).map(|time| Step::Sojourn(whole_micros(time)))
}

impl TakesNext for DualPi2 {
    fn enqueue(&mut self, packet: &Packet, now: Time, sink: &mut dyn DropSink) {
        let mut packet = *packet;
        self.catch_up(now);
        let memory = self.memory + u64::from(truesize(&packet));
        if self.accounting.backlog().packets >= self.limit {
            return self.accounting.xmit_drop(packet, DropReason::Overlimit, sink);
        }
        if memory > self.memory_limit {
            return self.accounting.xmit_drop(packet, DropReason::Overmemory, sink);
        }
        let class = self.class_of(&packet);
        if self.drop_at_enqueue && self.must_drop(&mut packet, class, sink) {
            return self.accounting.xmit_cn(packet, DropReason::Early, sink);
        }
        self.memory = memory;
        self.accounting.arrive(&packet);
        if class == Class::Classic {
            self.classic.push_back(packet);
        } else {
            let step = class == Class::L4s && self.low_latency.len() >= self.min_qlen_step;
            self.low_latency.push_back(Low { packet, class, step });
        }
    }

    fn run_timers(&mut self, now: Time, _sink: &mut dyn DropSink) {
        self.catch_up(now);
    }

    fn take_next(&mut self, now: Time, sink: &mut dyn DropSink) -> Option<Packet> {
        loop {
            let Some((Low { mut packet, class, step }, credit)) = self.take() else {
                self.credit.value = self.credit.initial;
                return None;
            };
            if !self.drop_at_enqueue && self.must_drop(&mut packet, class, sink) {
                self.accounting.discard(packet, DropReason::Early, sink);
            } else if step && self.step_drops(&mut packet, now, sink) {
                self.accounting.discard(packet, DropReason::Step, sink);
            } else {
                self.credit.value += credit;
                return Some(packet);
            }
        }
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

impl DualPi2Options {
    /// The controller's parameters: as written, or derived from round trips.
    fn controller(&self) -> Result<controller::Params, SpecError> {
        let Self { alpha, beta, target, tupdate, .. } = *self;
        let weight = |written: Option<f64>, default| {
            written.map_or(default, |it| (it * WEIGHT_STEPS) as u32)
        };
        let given = controller::Params {
            target: target.map_or(TARGET, whole_micros),
            tupdate: tupdate.map_or(TUPDATE, whole_micros),
            alpha: weight(alpha, ALPHA),
            beta: weight(beta, BETA),
            coupling: self.coupling_factor,
            drop_on_overload: self.drop_on_overload,
        };
        let (max_rtt, typical_rtt) = match (self.max_rtt, self.typical_rtt) {
            (None, None) => return Ok(given),
            (Some(max), None) => (max, max / TYPICAL_OF_MAX),
            (None, Some(typical)) => {
                let max = typical.as_nanos().saturating_mul(TYPICAL_OF_MAX);
                (Duration::from_nanos(max), typical)
            }
            (Some(max), Some(typical)) => (max, typical),
        };
        if alpha.is_some() || beta.is_some() || target.is_some() || tupdate.is_some() {
            return Err(SpecError::new(
                "dualpi2: `max_rtt` and `typical_rtt` stand for alpha, beta, target and tupdate; write \
                 either",
            ));
        }
        derived(max_rtt, typical_rtt, given)
    }
}

/// The controller for such round trips, as `tc` derives it (RFC 9332, figure 2).
fn derived(
    max_rtt: Duration,
    typical_rtt: Duration,
    given: controller::Params,
) -> Result<controller::Params, SpecError> {
    let (max, typical) = (max_rtt.as_micros(), typical_rtt.as_micros().max(1));
    let tupdate = typical.min(max / 3).max(1);
    let per_second = 1e6 / max as f64;
    let alpha = 0.1 * tupdate as f64 / max as f64 * per_second;
    let beta = 0.3 * per_second;
    if typical > max || alpha * WEIGHT_STEPS < 1.0 || beta > MAX_GAIN {
        return Err(SpecError::new(format!(
            "dualpi2: `max_rtt {max_rtt} typical_rtt {typical_rtt}`: the typical round trip must not \
             exceed the largest, and the largest must give an alpha of at least 1/256 and a beta of at \
             most {MAX_GAIN}"
        )));
    }
    Ok(controller::Params {
        target: Duration::from_micros(typical),
        tupdate: Duration::from_micros(tupdate),
        alpha: (alpha * WEIGHT_STEPS) as u32,
        beta: (beta * WEIGHT_STEPS) as u32,
        ..given
    })
}

/// `tc` hands times over in whole microseconds.
fn whole_micros(time: Duration) -> Duration {
    Duration::from_micros(time.as_micros())
}

params! {
    /// Parameters of `dualpi2`.
    struct DualPi2Options {
        /// most packets that may wait in both queues together
        limit: u32 = number("packets", 1, u32::MAX as u64).default("10000").or_0(),
        /// most memory that waiting packets may take, as the kernel accounts it
        memlimit: Option<u64> = size().or_0().absent("limit x 2 full packets"),
        /// marks of L4S packets for each square root of drops of Classic ones
        coupling_factor: u8 = number("factor", 1, 255).default("2"),
        /// wait, or length of the L-queue, above which every L4S packet is marked
        step_thresh: Step = words("time, or packets such as 5p", |_| 1, read_step).default("1ms").or_0(),
        /// packets that must wait in the L-queue for the step to apply to one that arrives
        min_qlen_step: usize = number("packets", 0, u32::MAX as u64).default("0"),
        /// on overload drop what could be marked, rather than let the queues grow
        drop_on_overload: bool = switch().off_by("overflow").default("on"),
        /// decide about packets when they arrive rather than when they leave (drop_early)
        drop_enqueue: bool = switch().off_by("drop_dequeue"),
        /// take ECT(0) for L4S too, not just ECT(1) and CE
        any_ect: bool = switch().off_by("l4s_ect"),
        /// share of the line that Classic traffic has for certain
        classic_protection: f64 = percent().default("10%"),
        /// largest round trip, from which alpha, beta, target and tupdate follow
        max_rtt: Option<Duration> = time().or_0().absent("100ms, or from typical_rtt"),
        /// typical round trip
        typical_rtt: Option<Duration> = time().or_0().absent("a sixth of max_rtt"),
        /// delay of the longer queue that the controller steers for
        target: Option<Duration> = time().or_0().absent("15ms"),
        /// time between updates of the probability
        tupdate: Option<Duration> = time().or_0().absent("16ms"),
        /// how strongly the distance from the target counts
        alpha: Option<f64> = real("1/s", 1.0 / WEIGHT_STEPS, MAX_GAIN).absent("0.16"),
        /// how strongly the change of the delay counts
        beta: Option<f64> = real("1/s", 1.0 / WEIGHT_STEPS, MAX_GAIN).absent("3.2"),
        /// cut joined packets apart first; the only way here
        split_gso: bool = switch().off_by("no_split_gso").default("on"),
    }
}

pub(crate) static DUALPI2: Discipline = Discipline {
    name: "dualpi2",
    summary: "a queue for L4S and one for Classic traffic, coupled so that both get their share",
    source: "Linux net/sched/sch_dualpi2.c (since 6.16), iproute2 tc/q_dualpi2.c; RFC 9332",
    params: DualPi2Options::PARAMS,
    class_params: &[],
    takes_child: false,
    examples: &[
        "dualpi2 limit 60 target 1ms tupdate 1ms step_thresh 500us",
        "dualpi2 drop_enqueue overflow any_ect step_thresh 3p min_qlen_step 2 max_rtt 10ms",
        "qdisc add dev eth0 root handle 1: dualpi2 classic_protection 50% memlimit 64kb
         filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dport 5000 0xffff flowid 1:1
         filter add dev eth0 parent 1: protocol ip prio 2 u32 match ip dport 5001 0xffff flowid 1:2",
    ],
    build: |spec, device| Ok(Box::new(Peeked::new(DualPi2::new(spec, device)?))),
};

/// `dualpi2_reset_default`: a margin of 10 dB with round trips of up to 100 ms.
const TARGET: Duration = Duration::from_millis(15);
const TUPDATE: Duration = Duration::from_millis(16);
/// 0.16 1/s.
const ALPHA: u32 = 41;
/// 3.2 1/s.
const BETA: u32 = 819;

/// `tc` writes alpha and beta in 1/256 per s.
const WEIGHT_STEPS: f64 = 256.0;

/// The largest that the kernel takes (`ALPHA_BETA_MAX`).
const MAX_GAIN: f64 = 8_388_607.0;

/// `RTT_TYP_TO_MAX` of `tc`.
const TYPICAL_OF_MAX: u64 = 6;
