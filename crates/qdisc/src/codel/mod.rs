//! `codel`: one FIFO, controlled delay.
//!
//! Follows Linux `net/sched/sch_codel.c` and RFC 8289; the algorithm itself is in
//! [`algorithm`](self::algorithm). Nothing is done differently.

mod algorithm;

use std::collections::VecDeque;

use weir_core::{Packet, Time};

pub(crate) use algorithm::{CodelParams, CodelQueue, CodelState, codel_dequeue};

use crate::Device;
use crate::accounting::Accounting;
use crate::contract::{Backlog, DropReason, DropSink, Stats};
use crate::peeked::{Peeked, TakesNext};
use crate::registry::Discipline;
use crate::tc::{DefaultValue, Kind, Param, Params, SetUp, SetUpError};

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
    fn new(set_up: &SetUp, device: &Device) -> Result<Self, SetUpError> {
        let params = set_up.params(device)?;
        Ok(Self {
            limit: params.number("limit")? as u32,
            params: CodelParams::read(&params, device)?,
            state: CodelState::default(),
            queue: Queue { packets: VecDeque::new(), accounting: Accounting::default() },
        })
    }
}

impl TakesNext for Codel {
    fn enqueue(&mut self, packet: Packet, _now: Time, sink: &mut dyn DropSink) {
        if self.queue.accounting.backlog().packets < self.limit {
            self.queue.accounting.arrive(&packet);
            self.queue.packets.push_back(packet);
        } else {
            self.queue.accounting.xmit_drop(packet, DropReason::Overlimit, sink);
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

pub(crate) static CODEL: Discipline = Discipline {
    name: "codel",
    summary: "controlled delay: drops from a queue whose sojourn time stays above a target",
    source: "Linux net/sched/sch_codel.c, include/net/codel_impl.h; RFC 8289",
    params: &[
        Param {
            name: "limit",
            aliases: &[],
            kind: Kind::Number { unit: "packets", range: (1, u32::MAX as u64) },
            default: DefaultValue::Is("1000"),
            meaning: "most packets that may wait",
        },
        TARGET,
        INTERVAL,
        CE_THRESHOLD,
        Param {
            name: "ecn",
            aliases: &[],
            kind: Kind::Switch { off: Some("noecn") },
            default: DefaultValue::Is("off"),
            meaning: "mark packets whose sender speaks ECN instead of dropping them",
        },
    ],
    class_params: &[],
    takes_child: false,
    examples: &["codel limit 50 target 2ms interval 20ms", "codel ecn ce_threshold 1ms limit 40"],
    build: |set_up, device| Ok(Box::new(Peeked::new(Codel::new(set_up, device)?))),
};

impl CodelParams {
    /// CoDel's parameters of a discipline that has them under their usual names.
    pub(crate) fn read(params: &Params, device: &Device) -> Result<Self, SetUpError> {
        Ok(Self::new(
            params.time("target")?.expect("a default"),
            params.time("interval")?.expect("a default"),
            params.time("ce_threshold")?,
            device.full_packet(),
            params.switch("ecn"),
        ))
    }
}

/// RFC 8289, section 4.3: 5 ms is 5 % of the interval and suits paths from 10 ms to 1 s.
pub(crate) const TARGET: Param = Param {
    name: "target",
    aliases: &[],
    kind: Kind::Time,
    default: DefaultValue::Is("5ms"),
    meaning: "sojourn time that a standing queue may reach",
};

/// RFC 8289, section 4.2: about the largest ordinary round trip.
pub(crate) const INTERVAL: Param = Param {
    name: "interval",
    aliases: &[],
    kind: Kind::Time,
    default: DefaultValue::Is("100ms"),
    meaning: "how long the target must be exceeded before the first drop",
};

pub(crate) const CE_THRESHOLD: Param = Param {
    name: "ce_threshold",
    aliases: &[],
    kind: Kind::Time,
    default: DefaultValue::Absent("never"),
    meaning: "sojourn time above which every ECN packet is marked",
};
