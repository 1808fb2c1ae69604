//! `pfifo_fast`: three FIFOs, the first that has a packet sends it. Linux' default for decades.
//!
//! Follows Linux `net/sched/sch_generic.c` (`pfifo_fast_ops`) and `rt_tos2priority`. The band comes
//! from the old TOS bits, so that EF, CS1 and CS5 share the middle band with best effort; this is
//! what Linux does, and why DSCP alone gains nothing here.

use weir_core::{Packet, Time};

use crate::contract::{Backlog, ClassView, Fates, Qdisc, Stats};
use crate::fifo::{Fifo, Limit};
use crate::linux::priority_of_tos;
use crate::registry::Discipline;

struct PfifoFast {
    bands: [Fifo; BAND_NAMES.len()],
}

impl PfifoFast {
    /// The first band that has a packet.
    fn busiest(&mut self) -> Option<&mut Fifo> {
        self.bands.iter_mut().find(|band| band.backlog().packets > 0)
    }
}

impl Qdisc for PfifoFast {
    fn enqueue(&mut self, packet: Packet, now: Time, fates: &mut dyn Fates) {
        let band = BAND_OF_PRIORITY[usize::from(priority_of_tos(packet.tos()))];
        self.bands[band].enqueue(packet, now, fates);
    }

    fn dequeue(&mut self, now: Time, fates: &mut dyn Fates) -> Option<Packet> {
        self.busiest()?.dequeue(now, fates)
    }

    fn peek(&mut self, now: Time, fates: &mut dyn Fates) -> Option<&Packet> {
        self.busiest()?.peek(now, fates)
    }

    fn backlog(&self) -> Backlog {
        let mut sum = Backlog::default();
        for band in &self.bands {
            sum.packets += band.backlog().packets;
            sum.bytes += band.backlog().bytes;
        }
        sum
    }

    fn stats(&self) -> Stats {
        let mut sum = Stats::default();
        for band in &self.bands {
            sum += band.stats();
        }
        sum
    }

    fn classes(&self, visit: &mut dyn FnMut(ClassView<'_>)) {
        for (name, band) in BAND_NAMES.into_iter().zip(&self.bands) {
            visit(ClassView { name, backlog: band.backlog(), stats: band.stats() });
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
    // Each band holds `txqueuelen` packets.
    build: |_, device| {
        let band = || Fifo::new(Limit::Packets(device.tx_queue_len));
        Ok(Box::new(PfifoFast { bands: [band(), band(), band()] }))
    },
};

const BAND_NAMES: [&str; 3] = ["band 0", "band 1", "band 2"];

/// `prio2band` of `sch_generic.c`.
const BAND_OF_PRIORITY: [usize; 16] = [1, 2, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn low_delay_tos_goes_first_and_expedited_forwarding_does_not() {
        let band = |tos: u8| BAND_OF_PRIORITY[usize::from(priority_of_tos(tos))];
        assert_eq!(band(0x10), 0, "low delay");
        assert_eq!(band(0x08), 2, "bulk");
        for (dscp, name) in [(0, "BE"), (8, "CS1"), (40, "CS5"), (46, "EF")] {
            let expected = if name == "EF" { band(46 << 2) } else { 1 };
            assert_eq!(band(dscp << 2), expected, "{name}");
        }
        assert_eq!(
            band(46 << 2),
            1,
            "EF is 0xb8, whose TOS bits are 0x18: interactive bulk, band 1"
        );
    }
}
