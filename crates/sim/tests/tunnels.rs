//! Traffic through a VPN, as the path sees it.

use std::collections::BTreeMap;

use weir_core::{Duration, Seed};
use weir_qdisc::DropReason;
use weir_scenario::{FlowRow, LatencyRow, QueueRow, Scenario, Sink};
use weir_sim::Simulation;

#[derive(Default)]
struct Told {
    /// Packets and bytes on the line that each queue let go.
    passed: BTreeMap<String, [u64; 2]>,
    dropped: BTreeMap<String, [u64; DropReason::ALL.len()]>,
    /// Round trips of each probe in milliseconds, in the order of sending.
    pings: BTreeMap<u32, Vec<f64>>,
    /// The sojourns in the queue up, in milliseconds, as sampled.
    sojourns: Vec<f64>,
    flows: Vec<FlowRow>,
    /// Everything of flows, probes and whole queues, as words.
    words: Vec<String>,
}

fn ms(span: Duration) -> f64 {
    span.as_nanos() as f64 / 1e6
}

impl Sink for Told {
    fn latency(&mut self, row: &LatencyRow) {
        self.words.push(format!("{row:?}"));
        self.pings.entry(row.probe).or_default().extend(row.rtt.map(ms));
    }
    fn queue(&mut self, row: &QueueRow<'_>) {
        if !row.class.is_empty() {
            return;
        }
        self.words.push(format!("{row:?}"));
        let [packets, bytes] = self.passed.entry(row.queue.to_owned()).or_default();
        *packets += row.departed_packets;
        *bytes += row.wire_bytes;
        for (sum, more) in
            self.dropped.entry(row.queue.into()).or_default().iter_mut().zip(row.dropped.0)
        {
            *sum += more;
        }
        if row.queue == "up/line" {
            self.sojourns.extend(row.sojourn_mean.map(ms));
        }
    }
    fn flow(&mut self, row: &FlowRow) {
        self.words.push(format!("{row:?}"));
        self.flows.push(*row);
    }
}

/// A load of `direction` for the whole run, with what else is to be said of it.
fn flow(name: &str, direction: &str, more: &str) -> String {
    format!(
        r#"{{"name": "{name}", "direction": "{direction}", "host": 0, "dscp": 46, "start_ns": 0,
        "stop_ns": 10000000000, "tcp": {{"profile": "linux", "congestion_control": "cubic",
        "overrides": {{"ecn": true}}}}, {more}}}"#
    )
}

/// Pings all the time, with what else is to be said of them.
fn probe(name: &str, kind: &str, more: &str) -> String {
    format!(
        r#"{{"name": "{name}", "kind": "{kind}", "host": 0, "dscp": 46, "payload_bytes": 56,
        "period_ns": 100000000, "start_ns": 0, "stop_ns": 10000000000, {more}}}"#
    )
}

const INSIDE: &str = r#""tunnel": 0"#;
const OUTSIDE: &str = r#""tunnel": null"#;

/// 8 Mbit/s and 10 ms each way behind `queue`, for ten seconds.
fn scenario(queue: &str, flows: &[String], probes: &[String]) -> Scenario {
    let line = format!(
        r#"{{"name": "line", "queue": "{queue}", "rate": {{"bps": 8000000}}, "delay_ns": 10000000}}"#
    );
    let (flows, probes) = (flows.join(","), probes.join(","));
    let text = format!(
        r#"{{"name": "t", "duration_ns": 10000000000, "phases": [],
        "path": {{"up": [{line}], "down": [{line}]}}, "hosts": [{{"name": "server", "delay_ns": 0}}],
        "tunnels": [{{"name": "vpn", "kind": "wireguard", "host": 0}}],
        "flows": [{flows}], "probes": [{probes}],
        "sampling": {{"throughput_ns": 0, "tcp_ns": 0, "queue_ns": 100000000}}, "ip_version": "4",
        "mtu_bytes": 1500}}"#
    );
    Scenario::from_json(&text).expect("it is sound")
}

fn run(scenario: &Scenario) -> Told {
    let mut told = Told::default();
    let simulation = Simulation::new(scenario, &BTreeMap::new(), Seed::new(1)).expect("it can");
    assert!(simulation.run(&mut told).complete);
    told
}

fn uploads(count: usize, more: &str) -> Vec<String> {
    (0..count).map(|number| flow(&format!("upload {number}"), "up", more)).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[test]
fn packets_on_the_line_are_longer_by_what_wireguard_adds() {
    // A ping of 84 bytes is padded to 96; 20 of IPv4, 8 of UDP and 32 of WireGuard make 156.
    let told = run(&scenario("pfifo", &[], &[probe("in", "icmp", INSIDE)]));
    assert_eq!(told.passed["up/line"], [100, 100 * 156]);
    assert_eq!(told.passed["down/line"], [100, 100 * 156]);
    let six = scenario("pfifo", &[], &[probe("in", "icmp", INSIDE)]);
    let over_six = run(&Scenario { ip_version: weir_scenario::IpVersion::V6, ..six });
    // 104 bytes to 112, and 20 more outside.
    assert_eq!(over_six.passed["up/line"], [100, 100 * 192]);
    // 1368 bytes of data with 52 of headers fill the inner MTU of 1420: 1480 outside; the SYN of 60 bytes
    // and the ACK of 52 are padded to 64.
    let upload = flow("upload", "up", r#""tunnel": 0, "bytes": 136800"#);
    let loaded = run(&scenario("pfifo", &[upload], &[]));
    assert_eq!(loaded.flows[0].delivered_bytes, 136_800);
    assert_eq!(loaded.flows[0].sent_segments, Some(100));
    assert_eq!(loaded.passed["up/line"], [102, 100 * 1480 + 2 * 124]);
}

#[test]
fn a_queue_by_flow_behind_the_tunnels_end_sees_one() {
    let flows = uploads(4, INSIDE);
    let probes = [probe("in", "udp", INSIDE)];
    let by_flow = run(&scenario("fq_codel noecn", &flows, &probes));
    let plain = run(&scenario("codel limit 10240 noecn", &flows, &probes));
    // To the last packet: there is nothing to tell apart.
    assert!(by_flow.words == plain.words);
    let (inside, sojourn) = (mean(&by_flow.pings[&0]), mean(&by_flow.sojourns));
    assert!((inside - 20.0 - sojourn).abs() < 2.0, "{inside} ms, sojourn {sojourn} ms");
}

#[test]
fn on_the_tunnels_own_machine_the_hash_inside_tells_flows_with_ports_apart() {
    let flows = uploads(4, INSIDE);
    let probes = [probe("udp", "udp", INSIDE), probe("icmp", "icmp", INSIDE)];
    let mut scenario = scenario("fq_codel noecn", &flows, &probes);
    scenario.tunnels[0].on_first_hop = true;
    let told = run(&scenario);
    // Sparse, all of them: a packet or two of each upload are in front.
    for probe in [0, 1] {
        let inside = mean(&told.pings[&probe]);
        assert!((20.3..27.0).contains(&inside), "probe {probe}: {inside} ms");
    }
    // A second hop up knows nothing of it.
    let second = scenario.path.up[0].clone();
    scenario.path.up[0] = weir_scenario::Hop {
        name: "own".into(),
        rate: weir_scenario::LineRate::Bps(100_000_000),
        delay_ns: 0,
        ..second.clone()
    };
    scenario.path.up.push(second);
    let behind = mean(&run(&scenario).pings[&0]);
    assert!(behind > 30.0, "{behind} ms");
}

#[test]
fn a_mark_outside_reaches_the_receiver_inside() {
    let told = run(&scenario("fq_codel", &uploads(2, INSIDE), &[]));
    for row in &told.flows {
        assert!(row.marked_packets > Some(5) && row.ecn_reductions > Some(5), "{row:?}");
        assert_eq!(row.dropped_packets, Some(0));
    }
}

#[test]
fn nobody_on_the_way_sees_service_classes_or_acknowledgements_inside() {
    let narrow = |more| {
        let flows = [flow("download", "down", more), flow("upload", "up", more)];
        let mut scenario = scenario("cake bandwidth 8mbit ack-filter diffserv4", &flows, &[]);
        scenario.path.down[0].queue = "pfifo".into();
        scenario.path.down[0].rate = weir_scenario::LineRate::Bps(100_000_000);
        let told = run(&scenario);
        told.dropped["up/line"][DropReason::AckFiltered as usize]
    };
    assert!(narrow(OUTSIDE) > 100);
    assert_eq!(narrow(INSIDE), 0);
    // CAKE's priority queue of `Voice` is for the one outside.
    let probes = [probe("in", "udp", INSIDE), probe("out", "udp", OUTSIDE)];
    let flows = uploads(4, INSIDE);
    let told = run(&scenario("cake bandwidth 7mbit diffserv4", &flows, &probes));
    let [inside, outside] = [0, 1].map(|probe| mean(&told.pings[&probe]));
    assert!(outside < 23.0 && inside > outside + 5.0, "{inside} and {outside} ms");
}

#[test]
fn ipsec_shows_service_classes() {
    // Of 84 bytes, with a trailer of 2, 88; 16 before and behind; 8 of UDP and 20 of IPv4.
    let mut ping = scenario("pfifo", &[], &[probe("in", "icmp", INSIDE)]);
    ping.tunnels[0].kind = weir_scenario::TunnelKind::Ipsec;
    assert_eq!(run(&ping).passed["up/line"], [100, 100 * 148]);
    let mut uploads = uploads(4, INSIDE);
    for upload in &mut uploads {
        *upload = upload.replace(r#""dscp": 46"#, r#""dscp": 0"#);
    }
    let mut loaded =
        scenario("cake bandwidth 7mbit diffserv4", &uploads, &[probe("in", "udp", INSIDE)]);
    let hidden = mean(&run(&loaded).pings[&0]);
    loaded.tunnels[0].kind = weir_scenario::TunnelKind::Ipsec;
    let shown = mean(&run(&loaded).pings[&0]);
    assert!(shown < 23.0 && hidden > shown + 5.0, "{shown} and {hidden} ms");
}

#[test]
fn what_does_not_fit_a_tunnel_is_refused() {
    let refusal = |change: fn(&mut Scenario)| {
        let mut scenario = scenario("pfifo", &uploads(1, INSIDE), &[probe("in", "udp", INSIDE)]);
        change(&mut scenario);
        scenario.check().expect_err("it is refused").to_string()
    };
    assert_eq!(
        refusal(|scenario| scenario.flows[0].tunnel = Some(3)),
        "`upload 0`: tunnel 3 does not exist (there are 1)"
    );
    assert_eq!(
        refusal(|scenario| {
            scenario.hosts.push(weir_scenario::Host {
                name: "far".into(),
                delay_ns: 5,
                route: None,
            });
            scenario.tunnels[0].host = 1;
        }),
        "`upload 0`: it goes to `server`, but its tunnel `vpn` ends at `far`: write one host for both"
    );
    assert_eq!(
        refusal(|scenario| {
            scenario.probes[0].kind = weir_scenario::ProbeKind::UdpTtl;
            scenario.probes[0].ttl = Some(1);
        }),
        "probe `in`: no router sees its time to live within a tunnel: leave `tunnel` out, or write kind icmp \
         or udp"
    );
    assert_eq!(
        refusal(|scenario| scenario.tunnels[0].client_host = 254),
        "tunnel `vpn`: client_host 254: write 0 (the client) to 253"
    );
    assert_eq!(
        refusal(|scenario| {
            scenario.tunnels[0].kind = weir_scenario::TunnelKind::Ipsec;
            scenario.tunnels[0].on_first_hop = true;
        }),
        "tunnel `vpn`: on_first_hop: only WireGuard keeps the hashes of all flows inside: leave it out"
    );
    assert_eq!(
        refusal(|scenario| scenario.tunnels.push(scenario.tunnels[0].clone())),
        "two are called tunnel `vpn`: name them apart"
    );
}
