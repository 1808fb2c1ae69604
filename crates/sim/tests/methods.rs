//! Foreign speed tests over simulated lines whose rate, round trip and queue are known.

use std::collections::BTreeMap;

use serde_json::Value;
use weir_core::{Duration, Seed, Time};
use weir_scenario::LossParams;
use weir_scenario::{
    FlowRow, LatencyRow, MethodRow, QueueRow, Scenario, Sink, TcpRow, ThroughputRow, Tunnel,
    TunnelKind,
};
use weir_sim::{Outcome, Simulation};
use weir_speedtest::METHODS;

/// Everything that a run told, as words, and what the tests below look at.
#[derive(Default)]
struct Told {
    words: Vec<String>,
    results: Vec<(Option<Time>, Option<Value>)>,
    /// Longest sojourn of each sample of the queue down, in milliseconds.
    sojourns: Vec<f64>,
    in_flow: Vec<f64>,
    in_flow_from: Vec<Time>,
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
        self.in_flow_from.push(row.t);
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
    fn method(&mut self, row: &MethodRow<'_>) {
        self.words.push(format!("{row:?}"));
        let result = row.result.map(|text| serde_json::from_str(text).expect("it is JSON"));
        self.results.push((row.ended, result));
    }
    fn flow(&mut self, row: &FlowRow) {
        self.words.push(format!("{row:?}"));
        self.flows.push(*row);
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

/// The result of a test that ended without failures.
fn result_of(told: &Told) -> &Value {
    let [(Some(_), Some(result))] = &told.results[..] else { panic!("{:?}", told.results) };
    let failures = result["failures"].as_array().expect("every method has them");
    assert!(failures.is_empty(), "{result}");
    result
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// The middle one; of nothing, there is none.
fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<_> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Goodput in Mbit/s of TLS over 50 Mbit/s: 1448 of 1500 bytes, less 22 of 16 384.
const GOODPUT: f64 = 48.2;

#[test]
fn every_method_ends_and_repeats_itself_to_the_bit() {
    for known in METHODS {
        let mut scenario = scenario(known.name, "fq_codel", 50, 50);
        scenario.start_jitter_ns = 50_000_000;
        let (first, outcome) = run(&scenario);
        assert!(outcome.complete);
        assert_eq!(result_of(&first)["method"], known.name);
        check_books(&first, known.name);
        let (second, again) = run(&scenario);
        assert!(first.words == second.words, "{}: the same seed, another record", known.name);
        assert_eq!(outcome, again);
        let other = Simulation::new(&scenario, &BTreeMap::new(), Seed::new(2)).expect("it can");
        let mut told = Told::default();
        other.run(&mut told);
        assert!(first.words != told.words, "{}: seeds must differ", known.name);
    }
}

/// Checks that the record has the bytes of a test as two flows, and its round trips as a probe.
fn check_books(told: &Told, name: &str) {
    let [down, up] = &told.flows[..] else { panic!("{:?}", told.flows) };
    assert_eq!((down.flow, up.flow), (0, 1));
    for row in [down, up] {
        assert_eq!(told.throughput[&row.flow], row.delivered_bytes, "{name}");
        assert!(row.delivered_bytes > 10_000_000, "{name}: {row:?}");
        let again = row.retransmitted_bytes.unwrap();
        assert!(row.sent_bytes.unwrap() >= row.delivered_bytes + again / 2, "{row:?}");
    }
    assert!(told.in_flow.len() > 500, "{name}: {}", told.in_flow.len());
    assert!(told.in_flow.iter().all(|&rtt| rtt >= 20.0), "{name}");
}

#[test]
fn ndt7_fills_the_line_for_ten_seconds_each_way() {
    for queue in ["pfifo limit 100", "pfifo limit 1000", "fq_codel"] {
        let (told, _) = run(&scenario("ndt7", queue, 50, 25));
        let result = result_of(&told);
        for way in ["download_mbps", "upload_mbps"] {
            let mbps = number(&result[way]);
            assert!((0.96 * GOODPUT..GOODPUT).contains(&mbps), "{queue} {way}: {mbps}");
        }
        // What its latency is: the line's own, whatever the queue does.
        let latency = number(&result["latency_ms"]);
        assert!((20.0..20.3).contains(&latency), "{queue}: {latency}");
        assert_eq!(result["truncated"]["download"], false);
        assert_eq!(result["truncated"]["upload"], false);
        // Two handshakes of 60 ms each, and the tail of a download.
        let ended = told.results[0].0.expect("it ended");
        assert!((Time::from_millis(20_120)..Time::from_millis(20_900)).contains(&ended), "{ended}");
    }
}

#[test]
fn a_test_inside_a_tunnel_carries_less_in_each_packet() {
    let mut scenario = scenario("ndt7", "fq_codel", 50, 25);
    let kind = TunnelKind::WireGuard;
    scenario.tunnels =
        vec![Tunnel { name: "vpn".into(), kind, host: 0, client_host: 0, on_first_hop: false }];
    scenario.methods[0].tunnel = Some(0);
    let (told, _) = run(&scenario);
    // 1368 bytes of 1480 instead of 1448 of 1500.
    let goodput = GOODPUT * (1368.0 / 1480.0) / (1448.0 / 1500.0);
    for way in ["download_mbps", "upload_mbps"] {
        let mbps = number(&result_of(&told)[way]);
        assert!((0.96 * goodput..goodput).contains(&mbps), "{way}: {mbps}");
    }
}

#[test]
fn the_smallest_round_trip_hides_what_the_smoothed_one_shows() {
    let mut scenario = scenario("ndt7", "pfifo limit 1000", 50, 25);
    scenario.methods[0].tcp.congestion_control = "cubic".into();
    let (told, _) = run(&scenario);
    let result = result_of(&told);
    assert!(number(&result["latency_ms"]) < 20.3);
    assert!(number(&result["srtt_ms"]) > 100.0, "{result}");
    assert!(median(told.in_flow.iter().copied()) > 100.0);
}

#[test]
fn tls_takes_one_round_trip_more() {
    let began = |tls| {
        let mut scenario = scenario("ndt7", "pfifo limit 1000", 50, 25);
        scenario.methods[0].tls = tls;
        let (told, _) = run(&scenario);
        told.in_flow_from[0].as_nanos() as f64 / 1e6
    };
    // The first message leaves the server one and a half round trips after the first SYN of the client, with
    // TLS two and a half; and 3.4 kB take 0.6 ms.
    let (plain, secured) = (began(false), began(true));
    assert!((30.0..30.5).contains(&plain), "{plain}");
    assert!((20.0..21.0).contains(&(secured - plain)), "{plain} and {secured}");
}

#[test]
fn cloudflare_s_loaded_latency_is_the_queue_s_where_it_is_shared() {
    let (told, _) = run(&scenario("cloudflare", "pfifo limit 1000", 50, 60));
    let result = result_of(&told);
    let loaded = number(&result["download_loaded_latency_ms"]);
    // While the line is full: the queue's own sojourn and the line's round trip.
    let full = told.sojourns.iter().copied().filter(|&sojourn| sojourn > 60.0);
    let truth = median(full) + 20.0;
    assert!((loaded / truth - 1.0).abs() < 0.15, "{loaded} beside {truth}");
    assert!((0.95 * GOODPUT..GOODPUT).contains(&number(&result["download_mbps"])), "{result}");

    let (fair, _) = run(&scenario("cloudflare", "fq_codel", 50, 60));
    let apart = number(&result_of(&fair)["download_loaded_latency_ms"]);
    assert!((20.0..22.0).contains(&apart), "{apart}: its probes have a flow of their own");
    assert!(median(fair.in_flow.iter().copied()) > apart + 1.0);
}

#[test]
fn responsiveness_tells_queues_apart_and_self_probes_from_foreign_ones() {
    let (deep, _) = run(&scenario("rpm", "pfifo limit 1000", 50, 60));
    let (fair, _) = run(&scenario("rpm", "fq_codel", 50, 60));
    let (deep, fair) = (result_of(&deep), result_of(&fair));
    for way in ["download", "upload"] {
        let (bad, good) = (number(&deep[way]["rpm"]), number(&fair[way]["rpm"]));
        assert!(good > 5.0 * bad, "{way}: {good} beside {bad}");
        // A foreign probe has the line for itself; a self probe waits behind its connection's load.
        let foreign = number(&fair[way]["foreign_http_ms"]);
        assert!((20.0..23.0).contains(&foreign), "{way}: {foreign}");
        assert!(number(&fair[way]["self_http_ms"]) > 2.0 * foreign, "{fair}");
        assert!((20.0..24.0).contains(&number(&fair[way]["foreign_tls_ms"])), "{fair}");
    }
}

/// The result of a test like Ookla's over 20 Mbit/s of which the way up loses a share of the packets, and of its
/// datagrams those sent.
fn loss_of(scenario: &Scenario, seed: u64) -> (f64, u64) {
    let mut told = Told::default();
    let simulation = Simulation::new(scenario, &BTreeMap::new(), Seed::new(seed)).expect("it can");
    simulation.run(&mut told);
    let result = result_of(&told);
    assert_eq!(result["missing"], Value::Array(vec![]), "{result}");
    let sent = result["datagrams"]["sent"].as_u64().expect("they are counted");
    (number(&result["packet_loss_percent"]), sent)
}

#[test]
fn ookla_s_loss_is_that_of_the_way_up() {
    let mut lossy = scenario("ookla", "fq_codel", 20, 60);
    assert_eq!(loss_of(&lossy, 1).0, 0.0);
    lossy.path.up[0].loss = Some(LossParams::Random { probability: 0.02 });
    let (mut lost, mut sent) = (0.0, 0.0);
    for seed in 1..=6 {
        let (percent, datagrams) = loss_of(&lossy, seed);
        // 15 a second, while it measures latency and both directions.
        assert!((300..400).contains(&datagrams), "{datagrams}");
        lost += percent / 100.0 * datagrams as f64;
        sent += datagrams as f64;
    }
    // The standard deviation is 0.32 %.
    let share = lost / sent;
    assert!((0.012..0.028).contains(&share), "{share}");
    // Of the way down it knows nothing; a copy is none that was lost.
    let mut other = scenario("ookla", "fq_codel", 20, 60);
    other.path.down[0].loss = Some(LossParams::Random { probability: 0.02 });
    other.path.up[0].duplicate = 0.1;
    assert_eq!(loss_of(&other, 1).0, 0.0);
}

#[test]
fn a_test_that_the_run_cuts_short_has_no_result() {
    let (told, outcome) = run(&scenario("ndt7", "fq_codel", 50, 5));
    assert!(outcome.complete);
    assert_eq!(told.results, [(None, None)]);
    let mbps = told.flows[0].delivered_bytes as f64 * 8.0 / 5e6;
    assert!((0.9 * GOODPUT..GOODPUT + 0.1).contains(&mbps), "{mbps}");
}

#[test]
fn tests_run_with_every_profile_of_tcp() {
    for profile in ["rfc", "linux22", "bsd"] {
        let mut scenario = scenario("rpm", "pfifo limit 100", 10, 60);
        scenario.methods[0].tcp.profile = profile.into();
        scenario.methods[0].tcp.congestion_control = "reno".into();
        let (told, _) = run(&scenario);
        let goodput = number(&result_of(&told)["download"]["goodput_mbps"]);
        assert!((8.0..10.0).contains(&goodput), "{profile}: {goodput}");
    }
}

#[test]
fn what_cannot_be_driven_is_refused() {
    let refusal = |change: fn(&mut Scenario)| {
        let mut scenario = scenario("rpm", "pfifo", 50, 5);
        change(&mut scenario);
        let refused = Simulation::new(&scenario, &BTreeMap::new(), Seed::new(1));
        refused.err().expect("it is refused").to_string()
    };
    let kind = refusal(|scenario| scenario.methods[0].kind = "ndt5".into());
    assert!(kind.starts_with("method `test`: method `ndt5`: there are ndt7, "), "{kind}");
    assert_eq!(
        refusal(|scenario| scenario.methods[0].tls = false),
        "method `test`: rpm needs HTTP/2 over TLS: leave `tls = false` out"
    );
    assert_eq!(
        refusal(|scenario| scenario.methods[0].client_congestion_control = "vegas".into()),
        "method `test`: unknown congestion control `vegas`: there are reno, cubic, bbr, westwood, dctcp, cdg, lp, \
         ledbat"
    );
}
