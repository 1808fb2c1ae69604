//! First in, first out, with a limit in packets or bytes: `pfifo`, `bfifo`, `pfifo_head_drop`.
//!
//! Follows Linux `net/sched/sch_fifo.c`. Nothing is done differently.

use std::collections::VecDeque;

use weir_core::{Packet, Time};

use crate::Device;
use crate::accounting::Accounting;
use crate::contract::{Backlog, DropReason, DropSink, Qdisc, Stats};
use crate::registry::Discipline;
use crate::tc::{Record, nonzero_size, number, params};

/// A FIFO.
#[derive(Debug)]
pub(crate) struct Fifo {
    limit: Limit,
    packets: VecDeque<Packet>,
    accounting: Accounting,
}

/// A FIFO's limit, and which packet it drops when it is full.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Limit {
    /// At most so many packets; the arriving packet is dropped.
    Packets(u32),
    /// At most so many bytes; the arriving packet is dropped.
    Bytes(u64),
    /// At most so many packets; the oldest packet is dropped.
    PacketsDropHead(u32),
}

impl Fifo {
    pub(crate) fn new(limit: Limit) -> Self {
        Self { limit, packets: VecDeque::new(), accounting: Accounting::default() }
    }

    /// Changes when it is full; what waits stays.
    pub(crate) fn set_limit(&mut self, limit: Limit) {
        self.limit = limit;
    }

    fn has_room(&self, len: u32) -> bool {
        let backlog = self.accounting.backlog();
        match self.limit {
            Limit::Packets(limit) | Limit::PacketsDropHead(limit) => backlog.packets < limit,
            Limit::Bytes(limit) => backlog.bytes + u64::from(len) <= limit,
        }
    }
}

impl Qdisc for Fifo {
    fn enqueue(&mut self, packet: &Packet, _now: Time, sink: &mut dyn DropSink) {
        if !self.has_room(packet.len) {
            let oldest = match self.limit {
                Limit::PacketsDropHead(_) => self.packets.pop_front(),
                Limit::Packets(_) | Limit::Bytes(_) => None,
            };
            let Some(oldest) = oldest else {
                return self.accounting.xmit_drop(*packet, DropReason::Overlimit, sink);
            };
            self.accounting.take(&oldest);
            self.accounting.discard(oldest, DropReason::Overlimit, sink);
        }
        self.accounting.arrive(packet);
        self.packets.push_back(*packet);
    }

    fn pass(&mut self, packet: &Packet, _now: Time) -> bool {
        let passes = self.packets.is_empty() && self.has_room(packet.len);
        if passes {
            self.accounting.pass(packet);
        }
        passes
    }

    fn dequeue(&mut self, _now: Time, _fates: &mut dyn DropSink) -> Option<Packet> {
        let taken = self.packets.pop_front();
        if let Some(packet) = &taken {
            self.accounting.take(packet);
            self.accounting.depart(packet);
        }
        taken
    }

    fn peek(&mut self, _now: Time, _fates: &mut dyn DropSink) -> Option<&Packet> {
        self.packets.front()
    }

    fn backlog(&self) -> Backlog {
        self.accounting.backlog()
    }

    fn stats(&self) -> Stats {
        self.accounting.stats()
    }
}

params! {
    /// Parameters of `pfifo` and `pfifo_head_drop`.
    #[derive(Clone, Copy, Debug)]
    pub struct PfifoOptions {
        /// most packets that may wait
        pub limit: u32 = number("packets", 1, u32::MAX as u64)
            .default_of("txqueuelen", |device| device.tx_queue_len.to_string()),
    }
}

params! {
    /// Parameters of `bfifo`.
    #[derive(Clone, Copy, Debug)]
    pub struct BfifoOptions {
        /// most bytes that may wait
        pub limit: u64 = nonzero_size().default_of("txqueuelen full packets", |device| {
            (u64::from(device.tx_queue_len) * u64::from(device.full_packet())).to_string()
        }),
    }
}

pub(crate) static PFIFO: Discipline = Discipline {
    name: "pfifo",
    summary: "first in, first out, limited in packets",
    source: "Linux net/sched/sch_fifo.c",
    params: PfifoOptions::PARAMS,
    class_params: &[],
    takes_child: false,
    examples: &["pfifo limit 20"],
    build: |spec, device| {
        let PfifoOptions { limit } = spec.read(device)?;
        Ok(Box::new(Fifo::new(Limit::Packets(limit))))
    },
};

pub(crate) static BFIFO: Discipline = Discipline {
    name: "bfifo",
    summary: "first in, first out, limited in bytes",
    source: "Linux net/sched/sch_fifo.c",
    params: BfifoOptions::PARAMS,
    class_params: &[],
    takes_child: false,
    examples: &["bfifo limit 30000"],
    build: |spec, device| {
        let BfifoOptions { limit } = spec.read(device)?;
        Ok(Box::new(Fifo::new(Limit::Bytes(limit))))
    },
};

pub(crate) static PFIFO_HEAD_DROP: Discipline = Discipline {
    name: "pfifo_head_drop",
    summary: "first in, first out, limited in packets; a full queue drops its oldest packet",
    source: "Linux net/sched/sch_fifo.c",
    params: PfifoOptions::PARAMS,
    class_params: &[],
    takes_child: false,
    examples: &["pfifo_head_drop limit 20"],
    build: |spec, device| {
        let PfifoOptions { limit } = spec.read(device)?;
        Ok(Box::new(Fifo::new(Limit::PacketsDropHead(limit))))
    },
};

/// The FIFO that Linux puts where nothing else was asked for (a class of HTB, say).
pub(crate) fn default_leaf(device: &Device) -> Box<dyn Qdisc> {
    Box::new(Fifo::new(Limit::Packets(device.tx_queue_len.max(1))))
}
