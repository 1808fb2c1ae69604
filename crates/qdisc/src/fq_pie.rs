//! `fq_pie`: flows in queues of their own, served in turn, each under PIE.
//!
//! Follows Linux `net/sched/sch_fq_pie.c`. Nothing is done differently, not even that `memory_limit` is
//! only counted there and never drops.

use weir_core::{Packet, Rng, Time};

use crate::Device;
use crate::accounting::Accounting;
use crate::contract::{Backlog, DropReason, DropSink, MarkReason, Stats};
use crate::peeked::{Peeked, TakesNext};
use crate::pie::{PieParams, PieState, Signals, Steering, UpdateTimer};
use crate::pool::{List, Pool};
use crate::registry::Discipline;
use crate::tc::{Classifier, QueueSpec, Record, SpecError, number, params, size};
use crate::turns::Turns;

struct FqPie {
    limit: u32,
    params: PieParams,
    timer: UpdateTimer,
    /// The flow at which the next part of an update starts.
    cursor: usize,
    /// Whether the update under way has changed anything.
    changed: bool,
    classifier: Classifier,
    major: u16,
    rng: Rng,

    flows: Vec<FqPieFlow>,
    turns: Turns,
    pool: Pool,
    accounting: Accounting,
}

#[derive(Clone, Default)]
struct FqPieFlow {
    packets: List,
    backlog: u64,
    pie: PieState,
}

impl FqPie {
    fn new(spec: &QueueSpec, device: &Device) -> Result<Self, SpecError> {
        let options: FqPieOptions = spec.read(device)?;
        let FqPieOptions { flows, steering, signals, .. } = options;
        Ok(Self {
            limit: options.limit,
            params: PieParams::new(&steering, &signals, options.ecn_prob, device),
            timer: UpdateTimer::new(steering.tupdate),
            cursor: 0,
            changed: false,
            classifier: Classifier::new(&spec.filters),
            major: spec.major(),
            rng: device.seed.stream("fq_pie"),
            flows: vec![FqPieFlow::default(); flows],
            turns: Turns::new(flows, options.quantum),
            pool: Pool::default(),
            accounting: Accounting::default(),
        })
    }

    fn flow_of(&self, packet: &Packet) -> Option<usize> {
        self.classifier.flow(packet, self.major, self.flows.len())
    }

    /// Makes the updates that were due since the last call, of so many flows at a time as the kernel does.
    fn catch_up(&mut self, now: Time) {
        while self.timer.fires(now) {
            let end = self.flows.len().min(self.cursor + FLOWS_AT_A_TIME);
            for flow in &mut self.flows[self.cursor..end] {
                let before = flow.pie;
                flow.pie.update(flow.backlog, &self.params);
                self.changed |= flow.pie != before;
            }
            if end < self.flows.len() {
                self.cursor = end;
                self.timer.continues();
                continue;
            }
            if !self.changed {
                self.timer.skip(now, self.flows.len().div_ceil(FLOWS_AT_A_TIME));
            }
            self.cursor = 0;
            self.changed = false;
        }
    }
}

impl TakesNext for FqPie {
    fn enqueue(&mut self, packet: &Packet, now: Time, sink: &mut dyn DropSink) {
        let mut packet = *packet;
        self.catch_up(now);
        let Some(index) = self.flow_of(&packet) else {
            return self.accounting.xmit_drop(packet, DropReason::Unclassified, sink);
        };
        let flow = &mut self.flows[index];
        let full = self.accounting.backlog().packets >= self.limit;
        let strikes = !full
            && flow.pie.strikes(packet.len, flow.backlog, &self.params, &mut self.rng)
            && !(flow.pie.may_mark(&self.params)
                && self.accounting.mark(&mut packet, MarkReason::Early, sink));
        if !full && !strikes {
            self.accounting.arrive(&packet);
            flow.backlog += u64::from(packet.len);
            self.pool.push(&mut flow.packets, &packet);
            self.turns.join(index);
        } else {
            flow.pie.on_drop();
            let reason = if full { DropReason::Overlimit } else { DropReason::Early };
            // `NET_XMIT_CN`: the sender is not told.
            self.accounting.xmit_cn(packet, reason, sink);
        }
    }

    fn run_timers(&mut self, now: Time, _sink: &mut dyn DropSink) {
        self.catch_up(now);
    }

    fn take_next(&mut self, now: Time, _sink: &mut dyn DropSink) -> Option<Packet> {
        loop {
            let index = self.turns.current()?;
            let flow = &mut self.flows[index];
            let Some(packet) = self.pool.pop(&mut flow.packets) else {
                self.turns.pass();
                continue;
            };
            self.accounting.take(&packet);
            flow.backlog -= u64::from(packet.len);
            self.turns.charge(index, packet.len);
            flow.pie.on_dequeue(&packet, flow.backlog, &self.params, now);
            return Some(packet);
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

params! {
    /// Parameters of `fq_pie`.
    pub struct FqPieOptions {
        /// most packets that may wait in all flows together
        pub limit: u32 = number("packets", 1, u32::MAX as u64).default("10240").or_0(),
        /// number of queues over which flows are hashed
        pub flows: usize = number("queues", 1, 65_536).default("1024").or_0(),
        pub steering: Steering,
        /// bytes that a flow may send in one turn (256 at least)
        pub quantum: u32 = number("bytes", 1, 1 << 20)
            .default_of("one full packet", |device| { device.full_packet().to_string() })
            .or_0(),
        /// without effect, as in Linux, which counts what exceeds it and drops nothing
        pub memory_limit: u64 = size().default("32Mb").or_0(),
        /// probability above which packets are dropped even if they could be marked
        pub ecn_prob: u8 = number("percent", 0, 100).default("10").or_0(),
        pub signals: Signals,
    }
}

pub(crate) static FQ_PIE: Discipline = Discipline {
    name: "fq_pie",
    summary: "flows in queues of their own, served in turn, each under PIE",
    source: "Linux net/sched/sch_fq_pie.c; RFC 8033",
    params: FqPieOptions::PARAMS,
    class_params: &[],
    takes_child: false,
    examples: &[
        "fq_pie limit 40 flows 4 target 1ms",
        "fq_pie ecn ecn_prob 100 flows 1 target 1ms tupdate 4ms quantum 300",
        "fq_pie flows 5000 dq_rate_estimator bytemode target 1ms",
    ],
    build: |spec, device| Ok(Box::new(Peeked::new(FqPie::new(spec, device)?))),
};

/// Flows of which one timer updates the probability (`fq_pie_timer`); the others follow a jiffy later.
const FLOWS_AT_A_TIME: usize = 2048;
