//! The sink that takes the rows of the record while a world runs.

use weir_core::Time;

use crate::rows::{
    EmulatorRow, FlowRow, LatencyRow, MethodRow, QueueRow, ShaperRow, TcpRow, ThroughputRow,
};

/// Takes samples as they come. Rows of one table come in order of time, except that latency rows come
/// when the answer does.
pub trait Sink {
    /// A probe was answered or lost.
    fn latency(&mut self, row: &LatencyRow);
    /// Bytes of a flow arrived.
    fn throughput(&mut self, row: &ThroughputRow);
    /// The state of a flow's sender.
    fn tcp(&mut self, row: &TcpRow);
    /// The state of a queue or class.
    fn queue(&mut self, row: &QueueRow<'_>);
    /// How well a live data path kept its times.
    fn emulator(&mut self, row: &EmulatorRow);
    /// A shaper's rate, state or reason changed.
    fn shaper(&mut self, row: &ShaperRow<'_>);
    /// A speed test ended, or the run did before it.
    fn method(&mut self, row: &MethodRow<'_>);
    /// A flow's totals, once, at the end.
    fn flow(&mut self, row: &FlowRow);
    /// The run has reached `now`. Called often enough for a live view; may end the run.
    fn progress(&mut self, now: Time) -> Verdict;
}

/// Whether a run goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It does.
    Continue,
    /// It ends here; what was measured stays.
    Stop,
}
