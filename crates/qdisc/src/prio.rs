//! `prio`: bands of which the first that has a packet sends.
//!
//! Follows Linux `net/sched/sch_prio.c` and iproute2 `tc/q_prio.c`. Nothing is done differently.

use weir_core::{Packet, Time};

use crate::Device;
use crate::contract::{Backlog, ClassView, DropSink, Qdisc, Stats};
use crate::leaves::Leaves;
use crate::priomap::{PRIOMAP, PrioMap};
use crate::registry::Discipline;
use crate::scheduler::{Sorter, bands};
use crate::tc::{Classifier, QueueSpec, Record, SpecError, band_count, params};

struct Prio {
    bands: usize,
    sorter: Sorter,
    leaves: Leaves,
    wake_at: Option<Time>,
}

impl Prio {
    fn new(spec: &QueueSpec, device: &Device) -> Result<Self, SpecError> {
        let PrioOptions { bands: count, priomap } = spec.read(device)?;
        let map = PrioMap::default().overwritten("prio", &priomap, count)?;
        let filters = Classifier::with_priorities(spec);
        Ok(Self {
            bands: count.into(),
            sorter: Sorter::Bands(filters, map, count.into()),
            leaves: bands(spec, count.into(), device)?,
            wake_at: None,
        })
    }
}

impl Prio {
    /// The first band that has a packet and may send it.
    fn first_ready(&mut self, now: Time, sink: &mut dyn DropSink) -> Option<usize> {
        let ready = |band: &usize| self.leaves.peek_len(*band, now, sink).is_some();
        let band = (0..self.bands).find(ready);
        self.wake_at = if band.is_none() { self.leaves.next_wake(now) } else { None };
        band
    }
}

impl Qdisc for Prio {
    fn enqueue(&mut self, packet: &Packet, now: Time, sink: &mut dyn DropSink) {
        let band = self.sorter.class_of(packet, &self.leaves).expect("every packet has a band");
        self.leaves.enqueue(band, packet, now, sink);
    }

    fn dequeue(&mut self, now: Time, sink: &mut dyn DropSink) -> Option<Packet> {
        let band = self.first_ready(now, sink)?;
        self.leaves.dequeue(band, now, sink)
    }

    // Unlike most, `prio_peek` leaves the packet where it is: a more important one that comes goes first.
    fn peek(&mut self, now: Time, sink: &mut dyn DropSink) -> Option<&Packet> {
        let band = self.first_ready(now, sink)?;
        self.leaves.peek(band, now, sink)
    }

    fn wake_at(&self) -> Option<Time> {
        self.wake_at
    }

    fn backlog(&self) -> Backlog {
        self.leaves.backlog()
    }

    fn stats(&self) -> Stats {
        let mut stats = Stats::default();
        self.leaves.add_stats(&mut stats);
        stats
    }

    fn classes(&self, visit: &mut dyn FnMut(ClassView<'_>)) {
        self.leaves.show(visit);
    }
}

params! {
    /// Parameters of `prio`.
    struct PrioOptions {
        /// number of bands, which are the classes 1: and on; band 0 is class 1
        bands: u8 = band_count(2, 16).default("3"),
        priomap: Vec<String> = PRIOMAP,
    }
}

pub(crate) static PRIO: Discipline = Discipline {
    name: "prio",
    summary: "bands of which the first that has a packet sends",
    source: "Linux net/sched/sch_prio.c; iproute2 tc/q_prio.c",
    params: PrioOptions::PARAMS,
    class_params: &[],
    takes_child: false,
    examples: &[
        "prio bands 3",
        "prio bands 4 priomap 3 2 1 0 fq_codel limit 20",
        "qdisc add dev eth0 root handle 1: prio bands 3
         qdisc add dev eth0 parent 1:1 handle 10: tbf rate 1mbit burst 2000 limit 6000
         qdisc add dev eth0 parent 1:3 handle 30: codel limit 20
         filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dport 5000 0xffff flowid 1:1
         filter add dev eth0 parent 1: protocol ip prio 2 u32 match ip dport 5001 0xffff flowid 1:3",
    ],
    build: |spec, device| Ok(Box::new(Prio::new(spec, device)?)),
};
