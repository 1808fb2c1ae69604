//! Samples of flows, taken at fixed intervals.

use weir_core::{Seed, Time};
use weir_scenario::{Scenario, Sink, ThroughputMeter};

use crate::load::Load;
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

    /// A row for each flow that is running, or still delivers after it stopped; of UDP flows also what their
    /// ends count.
    pub fn throughput(&mut self, loads: &mut [Load], now: Time, sink: &mut dyn Sink) {
        for (flow, load) in loads.iter_mut().enumerate() {
            let (bytes, wire) = (load.delivered_bytes(), Some(load.wire_bytes()));
            let row = self.meters[flow].row(now, flow as u32, bytes, wire);
            let running = self.starts[flow] < now && !load.is_stopped();
            let has_sent = matches!(load, Load::Udp(stream) if stream.has_sent());
            if !running && row.is_empty() && !has_sent {
                continue;
            }
            sink.throughput(&row);
            if let Load::Udp(stream) = load {
                sink.udp(&stream.counts_row(now));
            }
        }
    }

    /// A row for each TCP flow that is running.
    pub fn tcp(&self, loads: &[Load], now: Time, sink: &mut dyn Sink) {
        for (flow, load) in loads.iter().enumerate() {
            if self.starts[flow] >= now || load.is_stopped() {
                continue;
            }
            if let Some(info) = load.sender_info() {
                sink.tcp(&tcp_row(now, flow as u32, &info));
            }
        }
    }
}
