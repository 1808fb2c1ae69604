//! Counts of one way of the shaper, from the kernel's counters.

use weir_core::Framing;

use super::KernelQueue;
use crate::tc::{Counts, Reasons, wire_bytes};

/// Counters of one way of the shaper.
#[derive(Debug)]
pub(super) struct SideCounters {
    /// The device whose root holds packets back.
    pub index: u32,
    pub queue: KernelQueue,
    /// Bytes that the kernel counts a packet more than IP does.
    pub header: u32,
    pub counts: Counts,
    /// Bytes of packets that were dropped, by the mean length of those that were not.
    dropped_bytes: u64,
    /// Bytes and packets that left and came, as the kernel counts them.
    left: (u64, u64),
    came: (u64, u64),
    /// The bytes as the framing counts them.
    left_wire: u64,
    came_wire: u64,
}

/// Counts of a side so far, and its backlog; bytes as the framing counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelCounts {
    /// Bytes that left.
    pub departed_bytes: u64,
    /// Packets that left.
    pub departed_packets: u64,
    /// Bytes that came. The kernel does not tell the lengths of dropped packets: each counts as the mean.
    pub arrived_bytes: u64,
    /// Packets that came.
    pub arrived_packets: u64,
    /// Bytes that wait.
    pub backlog_bytes: u64,
    /// Packets that wait.
    pub backlog_packets: u64,
    /// Packets dropped.
    pub dropped: u64,
    /// Packets marked, as far as the discipline tells.
    pub marked: u64,
}

impl SideCounters {
    pub fn new(index: u32, queue: KernelQueue, header: u32) -> Self {
        let nothing = (0, 0);
        Self {
            index,
            queue,
            header,
            counts: Counts::default(),
            dropped_bytes: 0,
            left: nothing,
            came: nothing,
            left_wire: 0,
            came_wire: 0,
        }
    }

    /// Takes in what the kernel counts now. What came is never less than before, whatever the kernel dropped.
    pub fn count(&mut self, now: Counts, framing: Framing) {
        let before = std::mem::replace(&mut self.counts, now);
        let dropped = u64::from(now.drops.wrapping_sub(before.drops));
        self.dropped_bytes += dropped * (now.bytes / now.packets.max(1));
        let came = (
            now.bytes + u64::from(now.waiting_bytes) + self.dropped_bytes,
            now.packets + u64::from(now.waiting_packets) + u64::from(now.drops),
        );
        let more = |counted: (u64, u64), total: &mut (u64, u64)| {
            let after = (counted.0.max(total.0), counted.1.max(total.1));
            let last = std::mem::replace(total, after);
            wire_bytes(framing, self.header, after.1 - last.1, after.0 - last.0)
        };
        self.left_wire += more((now.bytes, now.packets), &mut self.left);
        self.came_wire += more(came, &mut self.came);
    }

    /// Takes in what is counted beneath its root, of which the kernel tells afterwards: what marks is there.
    pub fn count_beneath(&mut self, reasons: Reasons) {
        self.counts.reasons = self.counts.reasons.and(reasons);
    }

    /// Counts so far, and the backlog.
    pub fn told(&self, framing: Framing) -> KernelCounts {
        let Counts { packets, waiting_packets, waiting_bytes, drops, reasons, .. } = self.counts;
        let (waiting, bytes) = (u64::from(waiting_packets), u64::from(waiting_bytes));
        KernelCounts {
            departed_bytes: self.left_wire,
            departed_packets: packets,
            arrived_bytes: self.came_wire,
            arrived_packets: self.came.1,
            backlog_bytes: wire_bytes(framing, self.header, waiting, bytes),
            backlog_packets: waiting,
            dropped: drops.into(),
            marked: reasons.marks().into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_never_grows_less_and_counts_as_the_framing_does() {
        let queue = KernelQueue::new("fq_codel").unwrap();
        let mut side = SideCounters::new(1, queue, 14);
        let counts = |packets: u64, bytes, waiting: u32, waiting_bytes, drops| Counts {
            bytes,
            packets,
            waiting_packets: waiting,
            waiting_bytes,
            drops,
            ..Counts::default()
        };
        side.count(counts(10, 10 * 1514, 5, 5 * 1514, 0), Framing::ETHERNET);
        assert_eq!((side.left_wire, side.came_wire), (10 * 1538, 15 * 1538));
        // Two full packets are dropped, and 10 acknowledgements leave: each drop counts as 790 bytes.
        side.count(counts(20, 10 * 1514 + 10 * 66, 3, 3 * 1514, 2), Framing::ETHERNET);
        assert_eq!(side.left_wire, 10 * 1538 + 10 * 90);
        // 25 packets in all: 10 came since, of 10 * 66 - 2 * 1514 + 2 * 790 bytes, which is less than none.
        assert_eq!((side.came.1, side.came_wire), (25, 15 * 1538 + 10 * 84));
        let before = side.came_wire;
        side.count(counts(20, 10 * 1514 + 10 * 66, 0, 0, 5), Framing::ETHERNET);
        assert!(side.came_wire >= before);
    }
}
