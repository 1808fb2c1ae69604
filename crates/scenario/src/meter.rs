//! Rows of throughput from counters that only grow.

use weir_core::Time;

use crate::rows::{FlowRow, ThroughputRow};

/// Bytes that a flow had delivered at its last sample, by which the next row tells what came since.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThroughputMeter {
    bytes: u64,
    wire_bytes: u64,
}

impl ThroughputMeter {
    /// The row of `flow` for the interval that ends at `t`, by which `bytes` were delivered to the application in all,
    /// in packets of `wire_bytes`; `None` if that is not known, which counts as no change. A count below its last
    /// value counts as no change too.
    pub fn row(
        &mut self,
        t: Time,
        flow: u32,
        bytes: u64,
        wire_bytes: Option<u64>,
    ) -> ThroughputRow {
        let before = *self;
        self.bytes = bytes.max(before.bytes);
        self.wire_bytes = wire_bytes.map_or(before.wire_bytes, |now| now.max(before.wire_bytes));
        ThroughputRow {
            t,
            flow,
            bytes: self.bytes - before.bytes,
            wire_bytes: self.wire_bytes - before.wire_bytes,
        }
    }

    /// Bytes delivered to the application by the last sample.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl ThroughputRow {
    /// Whether nothing arrived in its interval.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.bytes == 0 && self.wire_bytes == 0
    }
}

impl FlowRow {
    /// The totals of `flow` as its receiver knows them, without what its sender and the path's queues count: data first
    /// arrived at `first_data`, and `delivered_bytes` in all.
    #[must_use]
    pub const fn arrived(flow: u32, first_data: Option<Time>, delivered_bytes: u64) -> Self {
        Self {
            flow,
            first_data: if delivered_bytes > 0 { first_data } else { None },
            delivered_bytes,
            sent_bytes: None,
            sent_segments: None,
            retransmitted_bytes: None,
            retransmitted_segments: None,
            timeouts: None,
            loss_probes: None,
            fast_recoveries: None,
            ecn_reductions: None,
            dropped_packets: None,
            dropped_bytes: None,
            marked_packets: None,
            completed: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_add_up_to_the_counters() {
        let mut meter = ThroughputMeter::default();
        let mut row = |bytes, wire| {
            let row = meter.row(Time::from_millis(5), 3, bytes, wire);
            assert_eq!((row.t, row.flow), (Time::from_millis(5), 3));
            (row.bytes, row.wire_bytes)
        };
        assert_eq!(row(100, Some(120)), (100, 120));
        assert_eq!(row(150, Some(190)), (50, 70));
        assert_eq!(row(150, Some(190)), (0, 0));
        assert_eq!(row(160, None), (10, 0), "the kernel does not tell any more");
        assert_eq!(row(150, Some(180)), (0, 0), "counters do not go back");
        assert_eq!(row(161, Some(191)), (1, 1));
        assert_eq!(meter.bytes(), 161);
    }

    #[test]
    fn a_row_is_empty_only_without_bytes_and_packets() {
        let row = |bytes, wire_bytes| ThroughputRow { t: Time::ZERO, flow: 0, bytes, wire_bytes };
        assert!(row(0, 0).is_empty());
        assert!(!row(0, 1).is_empty() && !row(1, 0).is_empty());
    }
}
