//! `fq`: flows in queues of their own, served in turn, each at a greatest rate.
//!
//! Follows Linux `net/sched/sch_fq.c` as of 6.12. Flows are told apart by the hash of their packets, as
//! Linux does for packets that it forwards; what Linux adds for sockets of its own machine, pacing by the
//! socket's rate and by departure times, no packet of ours carries.

mod flows;

use std::collections::{BTreeMap, VecDeque};

use weir_core::{Duration, Packet, Rate, Time};

use self::flows::{Flows, FqFlowState, jiffies};
use crate::Device;
use crate::accounting::Accounting;
use crate::contract::{Backlog, DropReason, DropSink, MarkReason, Stats};
use crate::linux::JIFFY;
use crate::peeked::{Peeked, TakesNext};
use crate::pool::{List, Pool};
use crate::priomap::{PRIOMAP, PrioMap};
use crate::registry::Discipline;
use crate::tc::{
    Plain, QueueSpec, Record, SpecError, Text, number, params, rate, short_time, switch, time,
    words,
};

struct Fq {
    params: FqParams,
    priomap: PrioMap,
    flows: Flows,
    bands: [Band; BANDS],
    /// The band that is being served.
    band: usize,
    /// Packets that need no turn: nothing else could leave when they came.
    fast: List,
    fast_packets: u32,
    /// Flows that may not send yet, by when they may; those of one instant in the order in which they came.
    throttled: BTreeMap<(Time, u64), u32>,
    throttled_so_far: u64,
    /// When the first of them may.
    next_throttled: Option<Time>,
    /// For when the timer was last set.
    timer: Option<Time>,
    wake_at: Option<Time>,
    pool: Pool,
    accounting: Accounting,
}

#[derive(Clone, Copy, Debug)]
struct FqParams {
    limit: u32,
    flow_limit: u32,
    quantum: i64,
    initial_quantum: i64,
    refill_jiffies: u64,
    orphan_mask: u32,
    /// Bytes per second; `None` for any.
    max_rate: Option<u64>,
    low_rate: u64,
    ce_threshold: Option<Duration>,
    timer_slack: Duration,
}

/// A band: flows that had nothing until now are served before the others.
struct Band {
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    credit: i64,
    quantum: i64,
    packets: u32,
}

impl Fq {
    fn new(spec: &QueueSpec, device: &Device) -> Result<Self, SpecError> {
        let options: FqOptions = spec.read(device)?;
        Ok(Self {
            params: FqParams::new(&options),
            priomap: PrioMap::read("fq", &options.priomap, BANDS as u8)?,
            flows: Flows::new(options.buckets.next_power_of_two()),
            bands: options.weights.0.map(|quantum| Band {
                new: VecDeque::new(),
                old: VecDeque::new(),
                credit: 0,
                quantum,
                packets: 0,
            }),
            band: 0,
            fast: List::default(),
            fast_packets: 0,
            throttled: BTreeMap::new(),
            throttled_so_far: 0,
            next_throttled: None,
            timer: None,
            wake_at: None,
            pool: Pool::default(),
            accounting: Accounting::default(),
        })
    }

    /// Whether a packet may leave without taking turns: nothing else can leave now.
    fn may_pass(&self, now: Time) -> bool {
        let nothing_due = self.flows.waiting as usize == self.throttled.len()
            && self.fast_packets < FAST_PACKETS
            && self.next_throttled.is_none_or(|at| at > now);
        self.params.max_rate.is_none() && (self.accounting.backlog().packets == 0 || nothing_due)
    }

    /// The first flow of the next band that has one and may send; whether it is a new one.
    fn flow_in_turn(&mut self) -> Option<(u32, bool)> {
        let mut looked = 0;
        loop {
            let current = &self.bands[self.band];
            if current.credit > 0 {
                let new = current.new.front().map(|&flow| (flow, true));
                if let Some(found) = new.or_else(|| current.old.front().map(|&flow| (flow, false)))
                {
                    return Some(found);
                }
            }
            loop {
                looked += 1;
                if looked > BANDS {
                    return None;
                }
                self.band = (self.band + 1) % BANDS;
                let next = &mut self.bands[self.band];
                next.credit = (next.credit + next.quantum).min(next.quantum);
                if next.credit > 0 {
                    break;
                }
                looked = 0;
            }
        }
    }

    /// Sends the next packet of flow `index`.
    fn send(&mut self, index: u32, now: Time, sink: &mut dyn DropSink) -> Packet {
        let flow = &mut self.flows.flows[index as usize];
        let mut packet = self.pool.pop(&mut flow.packets).expect("the flow has packets");
        flow.len -= 1;
        if flow.len == 0 {
            self.flows.waiting -= 1;
        }
        self.accounting.take(&packet);
        self.bands[self.priomap.band_of(&packet)].packets -= 1;
        let due = flow.next_packet.map_or(packet.enqueued_at, |at| at.max(packet.enqueued_at));
        if self.params.ce_threshold.is_some_and(|most| now.since(due) > most) {
            self.accounting.mark(&mut packet, MarkReason::CeThreshold, sink);
        }
        let len = i64::from(packet.len);
        flow.credit -= len;
        self.bands[self.band].credit -= len;
        if let Some(rate) = self.params.max_rate {
            flow.pace(len, rate, &self.params, now);
        }
        packet
    }

    fn leave_turn(&mut self, is_new: bool) {
        let band = &mut self.bands[self.band];
        if is_new {
            band.new.pop_front()
        } else {
            band.old.pop_front()
        };
    }

    fn join_old(&mut self, index: u32) {
        let band = self.flows.flows[index as usize].band;
        self.bands[band].old.push_back(index);
    }

    /// Puts flow `index` aside until its rate lets it send.
    fn throttle(&mut self, index: u32) {
        let at = self.flows.flows[index as usize].next_packet.expect("it is to wait");
        self.throttled_so_far += 1;
        self.throttled.insert((at, self.throttled_so_far), index);
        self.next_throttled = Some(self.next_throttled.map_or(at, |first| first.min(at)));
    }

    /// Lets the flows take turns again that may send by now.
    fn unthrottle(&mut self, now: Time) {
        if self.next_throttled.is_none_or(|at| at > now) {
            return;
        }
        self.next_throttled = None;
        while let Some((&(at, _), _)) = self.throttled.first_key_value() {
            if at > now {
                self.next_throttled = Some(at);
                break;
            }
            let (_, index) = self.throttled.pop_first().expect("there is a first");
            self.join_old(index);
        }
    }

    /// Sets the timer for the first flow that is to wait. It goes off up to `timer_slack` late, and one
    /// that is set to a moment within that time is left alone (`qdisc_watchdog_schedule_range_ns`).
    fn set_timer(&mut self) {
        let Some(at) = self.next_throttled else { return };
        let slack = self.params.timer_slack;
        let stays = self.timer.is_some_and(|timer| timer >= at && timer.since(at) <= slack);
        if !stays {
            self.timer = Some(at);
        }
        self.wake_at = self.timer.map(|timer| timer + slack);
    }
}

impl FqParams {
    fn new(options: &FqOptions) -> Self {
        let max_rate = options.maxrate.map(Rate::as_bytes_per_sec);
        Self {
            limit: options.limit,
            flow_limit: options.flow_limit,
            quantum: options.quantum.clamp(256, QUANTUM_MAX) as i64,
            initial_quantum: options.initial_quantum.into(),
            refill_jiffies: options.refill_delay.as_nanos().div_ceil(JIFFY.as_nanos()),
            orphan_mask: options.orphan_mask,
            max_rate: max_rate.filter(|_| options.pacing),
            low_rate: options.low_rate_threshold.as_bytes_per_sec(),
            ce_threshold: options.ce_threshold,
            timer_slack: options.timer_slack,
        }
    }
}

impl TakesNext for Fq {
    fn enqueue(&mut self, packet: &Packet, now: Time, sink: &mut dyn DropSink) {
        let band = self.priomap.band_of(packet);
        if self.bands[band].packets >= self.params.limit {
            return self.accounting.xmit_drop(*packet, DropReason::Overlimit, sink);
        }
        if self.may_pass(now) {
            self.accounting.arrive(packet);
            self.pool.push(&mut self.fast, packet);
            self.fast_packets += 1;
            return;
        }
        let key = packet.label.hash & self.params.orphan_mask;
        let index = self.flows.find(key, self.params.initial_quantum, now);
        let flow = &mut self.flows.flows[index as usize];
        if flow.len >= self.params.flow_limit {
            return self.accounting.xmit_drop(*packet, DropReason::Overlimit, sink);
        }
        if let FqFlowState::Detached(since) = flow.state {
            flow.state = FqFlowState::InTurn;
            // The kernel looks at the packet's band after this: a flow takes its first turn in the band of
            // the packet before, an unknown one in band 0. Nor does it lift a credit that is below zero,
            // which it compares as a number without sign.
            self.bands[flow.band].new.push_back(index);
            let rested = jiffies(now) > since + self.params.refill_jiffies;
            if rested && flow.credit >= 0 {
                flow.credit = flow.credit.max(self.params.quantum);
            }
        }
        flow.band = band;
        self.bands[band].packets += 1;
        if flow.len == 0 {
            self.flows.waiting += 1;
        }
        flow.len += 1;
        self.accounting.arrive(packet);
        self.pool.push(&mut flow.packets, packet);
    }

    fn take_next(&mut self, now: Time, sink: &mut dyn DropSink) -> Option<Packet> {
        self.wake_at = None;
        if let Some(packet) = self.pool.pop(&mut self.fast) {
            self.fast_packets -= 1;
            self.accounting.take(&packet);
            return Some(packet);
        }
        if self.accounting.backlog().packets == 0 {
            return None;
        }
        self.unthrottle(now);
        loop {
            let Some((index, is_new)) = self.flow_in_turn() else {
                self.set_timer();
                return None;
            };
            let flow = &mut self.flows.flows[index as usize];
            if flow.credit <= 0 {
                flow.credit += self.params.quantum;
                self.leave_turn(is_new);
                self.join_old(index);
                continue;
            }
            if flow.len == 0 {
                if !is_new {
                    flow.state = FqFlowState::Detached(jiffies(now) | 1);
                }
                self.leave_turn(is_new);
                if is_new {
                    // One pass through the old flows first.
                    self.join_old(index);
                }
                continue;
            }
            if flow.next_packet.is_some_and(|at| now < at) {
                self.leave_turn(is_new);
                self.throttle(index);
                continue;
            }
            return Some(self.send(index, now, sink));
        }
    }

    fn accounting(&mut self) -> Option<&mut Accounting> {
        Some(&mut self.accounting)
    }

    fn wake_at(&self) -> Option<Time> {
        self.wake_at
    }

    fn may_wake_at(&self) -> Option<Time> {
        self.wake_at.and(self.timer)
    }

    fn backlog(&self) -> Backlog {
        self.accounting.backlog()
    }

    fn stats(&self) -> Stats {
        self.accounting.stats()
    }
}

/// Bytes that each band may send in its turn.
struct Weights([i64; BANDS]);

impl Plain for Weights {}

fn read_weights(text: &Text<'_>) -> Result<Weights, SpecError> {
    let weights: Vec<i64> = text
        .words()
        .iter()
        .filter_map(|word| word.parse().ok())
        .filter(|weight| (MIN_BAND_WEIGHT..=i64::from(i32::MAX)).contains(weight))
        .collect();
    <[i64; BANDS]>::try_from(weights).map(Weights).map_err(|_| {
        let (low, high) = (MIN_BAND_WEIGHT, i32::MAX);
        text.bad(&format!("write {BANDS} numbers from {low} to {high}"))
    })
}

params! {
    /// Parameters of `fq`.
    pub struct FqOptions {
        /// most packets that may wait in a band
        pub limit: u32 = number("packets", 1, u32::MAX as u64).default("10000"),
        /// most packets of one flow that may wait
        pub flow_limit: u32 = number("packets", 1, u32::MAX as u64).default("100"),
        /// bytes that a flow may send in its turn; the kernel keeps it within 256 and 1048576
        pub quantum: u64 = number("bytes", 1, u32::MAX as u64)
            .default_of("2 full packets", |device| (2 * device.full_packet()).to_string()),
        /// bytes that a flow may send in its first turn
        pub initial_quantum: u32 = number("bytes", 0, QUANTUM_MAX)
            .default_of("10 full packets", |device| (10 * device.full_packet()).to_string()),
        /// greatest rate of each flow
        pub maxrate: Option<Rate> = rate().absent("unlimited"),
        /// up to this `maxrate` a flow waits after each packet, above it after each quantum
        pub low_rate_threshold: Rate = rate().default("550kbit"),
        /// whether flows are held to `maxrate`
        pub pacing: bool = switch().off_by("nopacing").default("on"),
        /// a flow that was empty for longer starts with a whole quantum
        pub refill_delay: Duration = time().default("40ms"),
        /// packets that leave so much later than they might have are marked
        pub ce_threshold: Option<Duration> = time().absent("off"),
        /// by how much a flow that waits for its rate may be served late
        pub timer_slack: Duration = short_time().default("10us"),
        /// how far ahead a packet's departure time may lie; no packet here has one
        pub horizon: Duration = time().default("10s"),
        /// whether a packet beyond the horizon is dropped; no packet here is
        pub horizon_drop: bool = switch().off_by("horizon_cap").default("on"),
        /// lists in which flows are looked up, rounded up to a power of two
        pub buckets: usize = number("buckets", 2, 1 << 18).default("1024").or_0(),
        /// bits of a packet's hash that tell flows apart
        pub orphan_mask: u32 = number("mask", 0, u32::MAX as u64).default("1023"),
        /// bands of flows
        _bands as "bands": u32 = number("bands", BANDS as u64, BANDS as u64).default("3"),
        priomap: Vec<String> = PRIOMAP,
        /// bytes that each band may send in its turn
        weights: Weights = words("3 numbers", |behind| BANDS.min(behind.len()), read_weights)
            .default("589824 196608 65536"),
    }
}

pub(crate) static FQ: Discipline = Discipline {
    name: "fq",
    summary: "flows in queues of their own, served in turn, each at a greatest rate",
    source: "Linux net/sched/sch_fq.c; iproute2 tc/q_fq.c",
    params: FqOptions::PARAMS,
    class_params: &[],
    takes_child: false,
    examples: &[
        "fq limit 40 flow_limit 12",
        "fq maxrate 1mbit flow_limit 15 ce_threshold 2ms",
        "fq maxrate 300kbit quantum 300 initial_quantum 1514 buckets 2 limit 30",
    ],
    build: |spec, device| Ok(Box::new(Peeked::new(Fq::new(spec, device)?))),
};

/// `FQ_BANDS` of `include/uapi/linux/pkt_sched.h`, and the least that a band may weigh.
const BANDS: usize = 3;
const MIN_BAND_WEIGHT: i64 = 16_384;
/// `fq_fastpath_check`: more packets than this would be a queue of their own.
const FAST_PACKETS: u32 = 8;
/// `fq_change` and `iq_range`.
const QUANTUM_MAX: u64 = 1 << 20;

#[cfg(test)]
mod tests;
