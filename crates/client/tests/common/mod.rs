//! A server on this machine, and what a measurement of the path to it writes.
#![allow(dead_code, reason = "every test file uses a part of it")]

use std::ops::ControlFlow;

use clap::Parser;
use serde_json::{Map, Value};
use weir_client::MeasureRequest;
use weir_core::Time;
use weir_scenario::{
    Flow, FlowRow, Hop, LatencyRow, LineRate, Path, RecordSink, Sampling, Scenario, Sink, TcpRow,
    ThroughputRow, TransferRow, UdpRow,
};
use weir_serve::{Options, Running};

/// The rows and notes of a measurement.
#[derive(Default)]
pub struct Rows {
    pub throughput: Vec<ThroughputRow>,
    pub latency: Vec<LatencyRow>,
    pub tcp: Vec<TcpRow>,
    pub udp: Vec<UdpRow>,
    pub transfers: Vec<TransferRow>,
    pub flows: Vec<FlowRow>,
    pub notes: Map<String, Value>,
    /// When the run is to be ended early.
    pub ends: Option<Time>,
}

impl Sink for Rows {
    fn throughput(&mut self, row: &ThroughputRow) {
        self.throughput.push(*row);
    }
    fn latency(&mut self, row: &LatencyRow) {
        self.latency.push(*row);
    }
    fn tcp(&mut self, row: &TcpRow) {
        self.tcp.push(*row);
    }
    fn udp(&mut self, row: &UdpRow) {
        self.udp.push(*row);
    }
    fn transfer(&mut self, row: &TransferRow) {
        self.transfers.push(*row);
    }
    fn flow(&mut self, row: &FlowRow) {
        self.flows.push(*row);
    }
    fn progress(&mut self, now: Time) -> ControlFlow<()> {
        if self.ends.is_some_and(|end| now >= end) {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}

impl RecordSink for Rows {
    fn note(&mut self, key: &str, value: Value) {
        self.notes.insert(key.to_owned(), value);
    }
}

pub fn serve(more: &[&str]) -> Running {
    serve_at("127.0.0.1:0", more)
}

pub fn serve_at(address: &str, more: &[&str]) -> Running {
    let words = ["weir serve", "--listen", address, "--without", "irtt"];
    Running::start(Options::try_parse_from([&words, more].concat()).unwrap()).unwrap()
}

pub fn request(server: &Running, flows: Vec<Flow>) -> MeasureRequest {
    let hop = Hop::new("line", "pfifo", LineRate::Unlimited);
    let scenario = Scenario {
        path: Path { up: vec![], down: vec![] },
        flows,
        start_jitter_ns: 0,
        sampling: Sampling { throughput_ns: 50_000_000, tcp_ns: 0, queue_ns: 0 },
        ..Scenario::over("net", 2_000_000_000, hop.clone(), hop)
    };
    let hosts = vec![server.addresses()[0].to_string()];
    MeasureRequest { hosts, ip: None, secret: None, scenario, seed: 1, ramp: None }
}
