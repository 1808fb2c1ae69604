//! `codel`: one FIFO, controlled delay.
//!
//! Follows Linux `net/sched/sch_codel.c` and RFC 8289; the algorithm itself is in
//! [`algorithm`](self::algorithm). Nothing is done differently.

mod algorithm;

use std::collections::VecDeque;

use weir_core::{Duration, Packet, Time};

pub(crate) use algorithm::{CodelParams, CodelQueue, CodelState, codel_dequeue};

use crate::Device;
use crate::accounting::Accounting;
use crate::contract::{Backlog, DropReason, DropSink, Stats};
use crate::peeked::{Peeked, TakesNext};
use crate::registry::Discipline;
use crate::tc::{Declared, QueueSpec, Record, SpecError, number, params, switch, time};

struct Codel {
    limit: u32,
    params: CodelParams,
    state: CodelState,
    queue: Queue,
}

struct Queue {
    packets: VecDeque<Packet>,
    accounting: Accounting,
}

impl CodelQueue for Queue {
    fn pop(&mut self) -> Option<Packet> {
        let packet = self.packets.pop_front()?;
        self.accounting.take(&packet);
        Some(packet)
    }

    fn backlog_bytes(&self) -> u64 {
        self.accounting.backlog().bytes
    }

    fn accounting(&mut self) -> &mut Accounting {
        &mut self.accounting
    }
}

impl Codel {
    fn new(spec: &QueueSpec, device: &Device) -> Result<Self, SpecError> {
        let CodelOptions { limit, target, interval, ce_threshold, ecn } = spec.read(device)?;
        let full_packet = device.full_packet();
        Ok(Self {
            limit,
            params: CodelParams::new(target, interval, ce_threshold, full_packet, ecn),
            state: CodelState::default(),
            queue: Queue { packets: VecDeque::new(), accounting: Accounting::default() },
        })
    }
}

impl TakesNext for Codel {
    fn enqueue(&mut self, packet: &Packet, _now: Time, sink: &mut dyn DropSink) {
        if self.queue.accounting.backlog().packets < self.limit {
            self.queue.accounting.arrive(packet);
            self.queue.packets.push_back(*packet);
        } else {
            self.queue.accounting.xmit_drop(*packet, DropReason::Overlimit, sink);
        }
    }

    fn take_next(&mut self, now: Time, sink: &mut dyn DropSink) -> Option<Packet> {
        codel_dequeue(&mut self.queue, &mut self.state, &self.params, now, sink)
    }

    fn accounting(&mut self) -> Option<&mut Accounting> {
        Some(&mut self.queue.accounting)
    }

    fn backlog(&self) -> Backlog {
        self.queue.accounting.backlog()
    }

    fn stats(&self) -> Stats {
        self.queue.accounting.stats()
    }
}

params! {
    /// Parameters of `codel`.
    #[derive(Clone, Copy, Debug)]
    pub struct CodelOptions {
        /// most packets that may wait
        pub limit: u32 = number("packets", 1, u32::MAX as u64).default("1000").or_0(),
        pub target: Duration = TARGET,
        pub interval: Duration = INTERVAL,
        pub ce_threshold: Option<Duration> = CE_THRESHOLD,
        /// mark packets whose sender speaks ECN instead of dropping them
        pub ecn: bool = switch().off_by("noecn"),
    }
}

pub(crate) static CODEL: Discipline = Discipline {
    name: "codel",
    summary: "controlled delay: drops from a queue whose sojourn time stays above a target",
    source: "Linux net/sched/sch_codel.c, include/net/codel_impl.h; RFC 8289",
    params: CodelOptions::PARAMS,
    class_params: &[],
    takes_child: false,
    examples: &["codel limit 50 target 2ms interval 20ms", "codel ecn ce_threshold 1ms limit 40"],
    build: |spec, device| Ok(Box::new(Peeked::new(Codel::new(spec, device)?))),
};

/// RFC 8289, section 4.3: 5 ms is 5 % of the interval and suits paths from 10 ms to 1 s.
pub(crate) const TARGET: Declared<Duration> =
    time().default("5ms").or_0().means("sojourn time that a standing queue may reach");

/// RFC 8289, section 4.2: about the largest ordinary round trip.
pub(crate) const INTERVAL: Declared<Duration> = time()
    .default("100ms")
    .or_0()
    .means("how long the target must be exceeded before the first drop");

pub(crate) const CE_THRESHOLD: Declared<Option<Duration>> =
    time().absent("never").means("sojourn time above which every ECN packet is marked");
