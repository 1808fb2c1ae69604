//! The bookkeeping of a discipline that holds packets itself.

use weir_core::{Ecn, Packet};

use crate::contract::{Backlog, DropReason, DropSink, MarkReason, Stats};

/// Backlog and statistics that always agree: every packet passes through one of these methods.
#[derive(Clone, Debug, Default)]
pub(crate) struct Accounting {
    backlog: Backlog,
    stats: Stats,
}

impl Accounting {
    /// `packet` arrived and now waits.
    pub fn arrive(&mut self, packet: &Packet) {
        self.stats.arrived.add(packet.len);
        self.backlog.packets += 1;
        self.backlog.bytes += u64::from(packet.len);
    }

    /// `packet` arrived and leaves without waiting.
    pub fn pass(&mut self, packet: &Packet) {
        self.stats.arrived.add(packet.len);
        self.stats.departed.add(packet.len);
    }

    /// `packet` no longer waits: it is on its way out, or about to be dropped.
    pub fn take(&mut self, packet: &Packet) {
        self.backlog.packets -= 1;
        self.backlog.bytes -= u64::from(packet.len);
    }

    /// `packet` waits again after a [`take`](Self::take): held for the next dequeue.
    pub fn hold(&mut self, packet: &Packet) {
        self.backlog.packets += 1;
        self.backlog.bytes += u64::from(packet.len);
    }

    /// `packet`, already taken, leaves.
    pub fn depart(&mut self, packet: &Packet) {
        self.stats.departed.add(packet.len);
    }

    /// `packet`, already taken, is dropped.
    pub fn discard(&mut self, packet: Packet, reason: DropReason, sink: &mut dyn DropSink) {
        self.stats.dropped[reason as usize].add(packet.len);
        sink.on_drop(packet, reason);
    }

    /// `packet` arrived and is dropped without waiting, and its sender is told so.
    pub fn xmit_drop(&mut self, packet: Packet, reason: DropReason, sink: &mut dyn DropSink) {
        self.stats.arrived.add(packet.len);
        self.stats.dropped[reason as usize].add(packet.len);
        sink.on_xmit_drop(packet, reason);
    }

    /// `packet` arrived and is dropped without waiting, as a signal of congestion.
    pub fn xmit_cn(&mut self, packet: Packet, reason: DropReason, sink: &mut dyn DropSink) {
        self.stats.arrived.add(packet.len);
        self.discard(packet, reason, sink);
    }

    /// Marks `packet` if its sender speaks ECN, and says whether it did.
    pub fn mark(
        &mut self,
        packet: &mut Packet,
        reason: MarkReason,
        sink: &mut dyn DropSink,
    ) -> bool {
        if !packet.ecn.can_mark() {
            return false;
        }
        packet.ecn = Ecn::Ce;
        self.count_mark(reason);
        sink.on_mark(packet, reason);
        true
    }

    /// A packet was marked.
    pub fn count_mark(&mut self, reason: MarkReason) {
        self.stats.marked[reason as usize] += 1;
    }

    /// Packets and bytes that wait now.
    pub fn backlog(&self) -> Backlog {
        self.backlog
    }

    /// Counts of all packets so far.
    pub fn stats(&self) -> Stats {
        self.stats
    }
}
