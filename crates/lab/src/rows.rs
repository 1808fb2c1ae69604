//! Rows of queues that outlive the sample, for another thread to write.

use weir_core::Time;
use weir_scenario::{
    EmulatorRow, FlowRow, LatencyRow, MethodRow, QueueRow, ShaperRow, Sink, TcpRow, ThroughputRow,
    Verdict,
};

/// A [`QueueRow`] with names of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnedQueueRow {
    pub(crate) queue: String,
    pub(crate) class: String,
    /// The row without its names.
    pub(crate) numbers: QueueRow<'static>,
}

/// Collects rows of queues.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    pub queues: Vec<OwnedQueueRow>,
}

impl Sink for Rows {
    fn queue(&mut self, row: &QueueRow<'_>) {
        let QueueRow { queue, class, .. } = *row;
        self.queues.push(OwnedQueueRow {
            queue: queue.to_owned(),
            class: class.to_owned(),
            numbers: QueueRow { queue: "", class: "", ..*row },
        });
    }

    fn latency(&mut self, _: &LatencyRow) {}
    fn throughput(&mut self, _: &ThroughputRow) {}
    fn tcp(&mut self, _: &TcpRow) {}
    fn emulator(&mut self, _: &EmulatorRow) {}
    fn shaper(&mut self, _: &ShaperRow<'_>) {}
    fn method(&mut self, _: &MethodRow<'_>) {}
    fn flow(&mut self, _: &FlowRow) {}
    fn progress(&mut self, _: Time) -> Verdict {
        Verdict::Continue
    }
}
