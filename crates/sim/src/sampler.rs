//! Samples of flows, taken at fixed intervals.

use weir_core::{Seed, Time};
use weir_scenario::{Scenario, Sink, ThroughputMeter};

use crate::connection::Connection;
use crate::rows::tcp_row;

/// Totals at the last samples, by which the next ones report what came since.
#[derive(Debug)]
pub(crate) struct FlowSampler {
    /// By flow.
    meters: Vec<ThroughputMeter>,
    starts: Vec<Time>,
}

impl FlowSampler {
    pub fn new(scenario: &Scenario, seed: Seed) -> Self {
        Self {
            meters: vec![ThroughputMeter::default(); scenario.flows.len()],
            starts: (0..scenario.flows.len()).map(|n| scenario.flow_start(n, seed)).collect(),
        }
    }

    /// A row for each flow that is running, or still delivers after it stopped.
    pub fn throughput(&mut self, connections: &[Connection], now: Time, sink: &mut dyn Sink) {
        for (flow, connection) in connections.iter().enumerate() {
            let (bytes, wire) = (connection.delivered_bytes(), Some(connection.wire_bytes));
            let row = self.meters[flow].row(now, flow as u32, bytes, wire);
            let running = self.starts[flow] < now && !connection.is_stopped();
            if running || !row.is_empty() {
                sink.throughput(&row);
            }
        }
    }

    /// A row for each flow that is running.
    pub fn tcp(&self, connections: &[Connection], now: Time, sink: &mut dyn Sink) {
        for (flow, connection) in connections.iter().enumerate() {
            if self.starts[flow] >= now || connection.is_stopped() {
                continue;
            }
            sink.tcp(&tcp_row(now, flow as u32, &connection.sender_info()));
        }
    }
}
