//! Drops and marks by queues on the path, by flow.

use weir_core::Packet;
use weir_scenario::FlowRow;

/// Counts of a flow's data packets that queues on the path dropped or marked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowDrops {
    /// Number of packets dropped.
    dropped_packets: u64,
    /// IP bytes of the dropped packets.
    dropped_bytes: u64,
    /// Number of packets marked CE.
    marked_packets: u64,
}

impl FlowDrops {
    /// Counts a data packet that was dropped.
    pub fn on_drop(&mut self, packet: &Packet) {
        self.dropped_packets += 1;
        self.dropped_bytes += u64::from(packet.ip_len());
    }

    /// Counts a data packet that was marked CE.
    pub const fn on_mark(&mut self) {
        self.marked_packets += 1;
    }

    /// The totals `row` of the flow, with these counts.
    #[must_use]
    pub const fn added_to(self, row: &FlowRow) -> FlowRow {
        FlowRow {
            dropped_packets: Some(self.dropped_packets),
            dropped_bytes: Some(self.dropped_bytes),
            marked_packets: Some(self.marked_packets),
            ..*row
        }
    }
}
