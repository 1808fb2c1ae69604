//! What is known of a UDP load, and its rows from what the server tells.

use weir_core::{Duration, Time};
use weir_scenario::{JitterBufferCounts, ThroughputRow, UdpRow, UdpSenderCounts};
use weir_speedtest::protocol::weir::{UdpReceived, UdpSent};

/// What is known of a UDP load besides what all have.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct UdpState {
    /// What its sender did since the last row.
    pub since: UdpSenderCounts,
    pub sent_packets: u64,
    pub skipped_packets: u64,
    pub first_data: Option<Time>,
    /// Bytes of a download that arrived here.
    pub arrived_bytes: u64,
}

impl UdpState {
    /// Its sender did this since it was last told.
    pub fn sent(&mut self, counts: UdpSenderCounts) {
        // A server may claim any number.
        let add = |to: &mut u64, more: u64| *to = to.saturating_add(more);
        add(&mut self.since.sent_packets, counts.sent_packets);
        add(&mut self.since.skipped_packets, counts.skipped_packets);
        add(&mut self.sent_packets, counts.sent_packets);
        add(&mut self.skipped_packets, counts.skipped_packets);
        self.since.late_max = self.since.late_max.max(counts.late_max);
    }
}

/// Whether rows are of a load that runs until `stop`, or tell what came or was counted later.
pub(crate) fn tells_something(row: &UdpRow, throughput: &ThroughputRow, stop: Time) -> bool {
    let rests = row.sender.is_none_or(|sender| sender == UdpSenderCounts::default());
    row.t <= stop || !throughput.is_empty() || row.lost_packets != 0 || !rests
}

/// What a sender at the server did.
pub(crate) const fn sender_counts(sent: UdpSent) -> UdpSenderCounts {
    UdpSenderCounts {
        sent_packets: sent.packets,
        skipped_packets: sent.skipped,
        late_max: Duration::from_nanos(sent.late_max_ns),
    }
}

/// What a receiver at the server counted.
pub(crate) fn udp_row(t: Time, flow: u32, received: &UdpReceived) -> UdpRow {
    let buffer = |(late_packets, playout_ns)| JitterBufferCounts {
        late_packets,
        playout_sum: Duration::from_nanos(playout_ns),
    };
    UdpRow {
        t,
        flow,
        received_packets: received.packets,
        lost_packets: received.lost,
        delay_mean: received.delay_mean_ns.map(Duration::from_nanos),
        delay_max: received.delay_max_ns.map(Duration::from_nanos),
        jitter: Duration::from_nanos(received.jitter_ns),
        buffer: received.buffer.map(buffer),
        sender: None,
    }
}
