//! Samples of flows, taken at fixed intervals.

use weir_core::{Seed, Time};
use weir_scenario::{Scenario, Sink, ThroughputRow};

use crate::connection::Connection;
use crate::rows::tcp_row;

/// Totals at the last samples, by which the next ones report what came since.
#[derive(Debug)]
pub(crate) struct FlowSampler {
    /// Delivered bytes and bytes on the wire, by flow.
    seen: Vec<(u64, u64)>,
    starts: Vec<Time>,
}

impl FlowSampler {
    pub fn new(scenario: &Scenario, seed: Seed) -> Self {
        Self {
            seen: vec![(0, 0); scenario.flows.len()],
            starts: (0..scenario.flows.len()).map(|n| scenario.flow_start(n, seed)).collect(),
        }
    }

    /// A row for each flow that is running, or still delivers after it stopped.
    pub fn throughput(&mut self, connections: &[Connection], now: Time, sink: &mut dyn Sink) {
        for (flow, connection) in connections.iter().enumerate() {
            let seen = (connection.delivered_bytes(), connection.wire_bytes);
            let before = std::mem::replace(&mut self.seen[flow], seen);
            let running = self.starts[flow] < now && !connection.is_stopped();
            if running || seen != before {
                sink.throughput(&ThroughputRow {
                    t: now,
                    flow: flow as u32,
                    bytes: seen.0 - before.0,
                    wire_bytes: seen.1 - before.1,
                });
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
