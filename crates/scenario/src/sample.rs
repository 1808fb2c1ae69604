//! The sink that takes the rows of the record while a world runs.

use std::ops::ControlFlow;

use weir_core::Time;

use crate::rows::{
    EmulatorRow, FlowRow, LatencyRow, MethodRow, QueueRow, ShaperRow, TcpRow, ThroughputRow,
    TransferRow, UdpRow,
};

/// Takes samples as they come. Rows of one table come in order of time, except that latency rows come
/// when the answer does.
///
/// A row that an implementation does not speak of is left out, and the run goes on. An implementation that must take every
/// row, lest a record lack a table, asks the linter for that: `#[deny(clippy::missing_trait_methods)]`.
pub trait Sink {
    /// A probe was answered or lost.
    fn latency(&mut self, row: &LatencyRow) {
        let _ = row;
    }

    /// Bytes of a flow arrived.
    fn throughput(&mut self, row: &ThroughputRow) {
        let _ = row;
    }

    /// The state of a flow's sender.
    fn tcp(&mut self, row: &TcpRow) {
        let _ = row;
    }

    /// What the receiver of a UDP flow counted.
    fn udp(&mut self, row: &UdpRow) {
        let _ = row;
    }

    /// A page, name or segment that an application asked for has ended.
    fn transfer(&mut self, row: &TransferRow) {
        let _ = row;
    }

    /// The state of a queue or class.
    fn queue(&mut self, row: &QueueRow<'_>) {
        let _ = row;
    }

    /// How well a live data path kept its times.
    fn emulator(&mut self, row: &EmulatorRow) {
        let _ = row;
    }

    /// A shaper's rate, state or reason changed.
    fn shaper(&mut self, row: &ShaperRow<'_>) {
        let _ = row;
    }

    /// A speed test ended, or the run did before it.
    fn method(&mut self, row: &MethodRow<'_>) {
        let _ = row;
    }

    /// A flow's totals, once, at the end.
    fn flow(&mut self, row: &FlowRow) {
        let _ = row;
    }

    /// The run has reached `now`. Called often enough for a live view. `Break` ends the run; what was
    /// measured stays.
    fn progress(&mut self, now: Time) -> ControlFlow<()> {
        let _ = now;
        ControlFlow::Continue(())
    }
}
