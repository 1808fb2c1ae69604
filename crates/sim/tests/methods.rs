//! Foreign speed tests over simulated lines whose rate, round trip and queue are known.

use std::collections::BTreeMap;

use serde_json::Value;
use weir_core::{Duration, Seed, Time};
use weir_probe::METHODS;
use weir_sim::{Outcome, Simulation};
use weir_world::{
    EmulatorRow, FlowRow, LatencyRow, MethodRow, QueueRow, Scenario, ShaperRow, Sink, TcpRow,
    ThroughputRow, Verdict,
};

/// Everything that a run told, as words, and what the tests below look at.
#[derive(Default)]
struct Told {
    words: Vec<String>,
    results: Vec<(Option<Time>, Option<Value>)>,
    /// Longest sojourn of each sample of the queue down, in milliseconds.
    sojourns: Vec<f64>,
    in_flow: Vec<f64>,
    throughput: BTreeMap<u32, u64>,
    flows: Vec<FlowRow>,
}

fn ms(span: Duration) -> f64 {
    span.as_nanos() as f64 / 1e6
}

impl Sink for Told {
    fn latency(&mut self, row: &LatencyRow) {
        self.words.push(format!("{row:?}"));
        self.in_flow.extend(row.rtt.map(ms));
    }
    fn throughput(&mut self, row: &ThroughputRow) {
        self.words.push(format!("{row:?}"));
        *self.throughput.entry(row.flow).or_default() += row.bytes;
    }
    fn tcp(&mut self, row: &TcpRow) {
        self.words.push(format!("{row:?}"));
    }
    fn queue(&mut self, row: &QueueRow<'_>) {
        self.words.push(format!("{row:?}"));
        if row.queue.starts_with("down") && row.class.is_empty() {
            self.sojourns.extend(row.sojourn_mean.map(ms));
        }
    }
    fn emulator(&mut self, _: &EmulatorRow) {}
    fn shaper(&mut self, _: &ShaperRow<'_>) {}
    fn method(&mut self, row: &MethodRow<'_>) {
        self.words.push(format!("{row:?}"));
        let result = row.result.map(|text| serde_json::from_str(text).expect("it is JSON"));
        self.results.push((row.ended, result));
    }
    fn flow(&mut self, row: &FlowRow) {
        self.words.push(format!("{row:?}"));
        self.flows.push(*row);
    }
    fn progress(&mut self, _: Time) -> Verdict {
        Verdict::Continue
    }
}

/// One speed test over a line of so many Mbit/s each way and a round trip of 20 ms.
fn scenario(kind: &str, queue: &str, mbps: u64, seconds: u64) -> Scenario {
    let control = if kind == "ndt7" { "bbr" } else { "cubic" };
    let text = format!(
        r#"{{"name": "t", "duration_ns": {seconds}000000000, "phases": [],
        "path": {{
            "up": [{{"name": "line", "queue": "{queue}", "rate": {{"bps": {mbps}000000}}, "delay_ns": 10000000}}],
            "down": [{{"name": "line", "queue": "{queue}", "rate": {{"bps": {mbps}000000}}, "delay_ns": 10000000}}]
        }},
        "hosts": [{{"name": "server", "delay_ns": 0}}], "flows": [], "probes": [],
        "methods": [{{"name": "test", "kind": "{kind}", "host": 0, "dscp": 0, "tls": true, "start_ns": 0,
            "tcp": {{"profile": "linux", "congestion_control": "{control}"}},
            "client_congestion_control": "cubic"}}],
        "sampling": {{"throughput_ns": 100000000, "tcp_ns": 100000000, "queue_ns": 100000000}},
        "ip_version": "4", "mtu_bytes": 1500}}"#
    );
    Scenario::from_json(&text).expect("it is sound")
}

fn run(scenario: &Scenario) -> (Told, Outcome) {
    let mut told = Told::default();
    let simulation = Simulation::new(scenario, &BTreeMap::new(), Seed::new(1)).expect("it can");
    let outcome = simulation.run(&mut told);
    (told, outcome)
}

#[test]
fn explore() {
    for known in METHODS {
        for queue in ["pfifo limit 100", "pfifo limit 1000", "fq_codel"] {
            let (told, outcome) = run(&scenario(known.name, queue, 50, 120));
            let mut sojourns = told.sojourns.clone();
            sojourns.sort_by(f64::total_cmp);
            let mut in_flow = told.in_flow.clone();
            in_flow.sort_by(f64::total_cmp);
            let middle = |values: &[f64]| values.get(values.len() / 2).copied();
            println!(
                "{} {queue}: {:?} events, sojourn {:?}, in flow {:?} of {}\n{:#}",
                known.name,
                outcome.events,
                middle(&sojourns),
                middle(&in_flow),
                in_flow.len(),
                told.results.first().map_or(Value::Null, |one| serde_json::json!({
                    "ended": one.0.map(Time::as_nanos), "result": one.1
                }))
            );
        }
    }
}
