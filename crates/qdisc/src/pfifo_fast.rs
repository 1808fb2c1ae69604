//! `pfifo_fast`: three FIFOs, the first that has a packet sends it. Linux' default for decades.
//!
//! Follows Linux `net/sched/sch_generic.c` (`pfifo_fast_ops`) and `rt_tos2priority`. The band comes
//! from the old TOS bits, so that EF, CS1 and CS5 share the middle band with best effort; this is
//! what Linux does, and why DSCP alone gains nothing here.
//!
//! A band is a ring whose slots are handed back in batches (`include/linux/ptr_ring.h`), so that a full
//! one holds up to 15 packets less than `txqueuelen`.

use weir_core::{Packet, Time};

use crate::contract::{Backlog, ClassView, DropSink, Qdisc, Stats};
use crate::fifo::{Fifo, Limit};
use crate::priomap::PrioMap;
use crate::registry::Discipline;

struct PfifoFast {
    map: PrioMap,
    bands: [Band; BAND_NAMES.len()],
}

/// A FIFO in a ring.
struct Band {
    fifo: Fifo,
    slots: u32,
    /// Place of the next packet to leave (`consumer_head`).
    head: u32,
    /// First place that is not handed back yet (`consumer_tail`).
    tail: u32,
}

impl PfifoFast {
    /// The first band that has a packet.
    fn busiest(&mut self) -> Option<&mut Band> {
        self.bands.iter_mut().find(|band| band.fifo.backlog().packets > 0)
    }
}

impl Band {
    fn new(slots: u32) -> Self {
        Self { fifo: Fifo::new(Limit::Packets(slots)), slots, head: 0, tail: 0 }
    }

    fn dequeue(&mut self, now: Time, sink: &mut dyn DropSink) -> Option<Packet> {
        let packet = self.fifo.dequeue(now, sink)?;
        let batch = if BATCH > self.slots / 2 { 1 } else { BATCH };
        self.head += 1;
        if self.head - self.tail >= batch || self.head >= self.slots {
            self.tail = self.head;
        }
        if self.head >= self.slots {
            self.head = 0;
            self.tail = 0;
        }
        self.fifo.set_limit(Limit::Packets(self.slots - (self.head - self.tail)));
        Some(packet)
    }
}

impl Qdisc for PfifoFast {
    fn enqueue(&mut self, packet: &Packet, now: Time, sink: &mut dyn DropSink) {
        let band = self.map.band_of(packet);
        self.bands[band].fifo.enqueue(packet, now, sink);
    }

    fn dequeue(&mut self, now: Time, sink: &mut dyn DropSink) -> Option<Packet> {
        self.busiest()?.dequeue(now, sink)
    }

    fn peek(&mut self, now: Time, sink: &mut dyn DropSink) -> Option<&Packet> {
        self.busiest()?.fifo.peek(now, sink)
    }

    fn backlog(&self) -> Backlog {
        let mut sum = Backlog::default();
        for Band { fifo, .. } in &self.bands {
            sum.packets += fifo.backlog().packets;
            sum.bytes += fifo.backlog().bytes;
        }
        sum
    }

    fn stats(&self) -> Stats {
        let mut sum = Stats::default();
        for band in &self.bands {
            sum += band.fifo.stats();
        }
        sum
    }

    fn classes(&self, visit: &mut dyn FnMut(ClassView<'_>)) {
        for (name, Band { fifo, .. }) in BAND_NAMES.into_iter().zip(&self.bands) {
            visit(ClassView { name, backlog: fifo.backlog(), stats: fifo.stats() });
        }
    }
}

pub(crate) static PFIFO_FAST: Discipline = Discipline {
    name: "pfifo_fast",
    summary: "three FIFO bands by the old TOS bits; the lowest band that has a packet goes first",
    source: "Linux net/sched/sch_generic.c",
    params: &[],
    class_params: &[],
    takes_child: false,
    examples: &["pfifo_fast"],
    // Each band has `txqueuelen` slots.
    build: |_, device| {
        let band = || Band::new(device.tx_queue_len);
        Ok(Box::new(PfifoFast { map: PrioMap::default(), bands: [band(), band(), band()] }))
    },
};

/// Slots that are handed back together: two cache lines of pointers (`ptr_ring_init`).
const BATCH: u32 = 16;

const BAND_NAMES: [&str; 3] = ["band 0", "band 1", "band 2"];

#[cfg(test)]
mod tests {
    use weir_core::{Dscp, Ecn, FlowKey, Protocol};

    use super::*;
    use crate::contract::{DropReason, MarkReason};

    #[derive(Default)]
    struct Dropped(u32);

    impl DropSink for Dropped {
        fn on_drop(&mut self, _: Packet, _: DropReason) {
            self.0 += 1;
        }

        fn on_mark(&mut self, _: &Packet, _: MarkReason) {}
    }

    #[test]
    fn slots_are_handed_back_in_batches_of_sixteen() {
        let address = "10.0.0.1".parse().unwrap();
        let protocol = Protocol::UDP;
        let key = FlowKey { src: address, dst: address, sport: 1, dport: 2, protocol };
        let packet = Packet {
            handle: 0,
            enqueued_at: Time::ZERO,
            label: key.label(1),
            len: 1514,
            flow_id: 0,
            dscp: Dscp::new(0).unwrap(),
            ecn: Ecn::NotEct,
        };
        let band = || Band::new(100);
        let mut queue = PfifoFast { map: PrioMap::default(), bands: [band(), band(), band()] };
        let mut sink = Dropped::default();
        let mut filled = |it: &mut PfifoFast| {
            let before = sink.0;
            while sink.0 == before {
                it.enqueue(&packet, Time::ZERO, &mut sink);
            }
            it.backlog().packets
        };
        assert_eq!(filled(&mut queue), 100);
        for left in 1..16 {
            queue.dequeue(Time::ZERO, &mut Dropped::default()).unwrap();
            assert_eq!(filled(&mut queue), 100 - left, "nothing is handed back yet");
        }
        queue.dequeue(Time::ZERO, &mut Dropped::default()).unwrap();
        assert_eq!(filled(&mut queue), 100);
    }
}
