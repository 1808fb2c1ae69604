//! Scenarios beyond one chain: parking lot, asymmetric return, access links, two paths with a shared hop.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use weir_core::{Seed, Time};
use weir_packet::parse;
use weir_path::CapturePoint;
use weir_scenario::file::{NoFiles, catalogue, resolve};
use weir_scenario::{FlowRow, LatencyRow, QueueRow, Scenario, Sink, ThroughputRow};
use weir_sim::{PacketTap, Simulation, check};

/// What was told: all rows in words, bytes received by flow, and round trips by probe in nanoseconds.
#[derive(Default)]
struct Told {
    rows: Vec<String>,
    bytes: BTreeMap<u32, u64>,
    round_trips: BTreeMap<u32, Vec<u64>>,
    /// Bytes that the lines carried, by hop.
    carried: BTreeMap<String, u64>,
}

impl Sink for Told {
    fn latency(&mut self, row: &LatencyRow) {
        self.rows.push(format!("{row:?}"));
        let rtt = row.rtt.map(weir_core::Duration::as_nanos);
        self.round_trips.entry(row.probe).or_default().extend(rtt);
    }
    fn throughput(&mut self, row: &ThroughputRow) {
        self.rows.push(format!("{row:?}"));
        *self.bytes.entry(row.flow).or_default() += row.bytes;
    }
    fn queue(&mut self, row: &QueueRow<'_>) {
        self.rows.push(format!("{row:?}"));
        if row.class.is_empty() {
            *self.carried.entry(row.queue.to_owned()).or_default() += row.wire_bytes;
        }
    }
    fn flow(&mut self, row: &FlowRow) {
        self.rows.push(format!("{row:?}"));
    }
}

fn scenario(text: &str) -> Scenario {
    let spec = catalogue::read_file(text, "scenario").expect("it is sound");
    let mut found = resolve(&spec, &NoFiles, |_| None).expect("it can be resolved");
    found.configurations.remove(0).scenario
}

fn run(scenario: &Scenario) -> Told {
    let mut told = Told::default();
    let simulation = Simulation::new(scenario, &BTreeMap::new(), Seed::new(1));
    assert!(simulation.expect("it can be simulated").run(&mut told).complete);
    told
}

/// A scenario on a link with these hops and routes, over plain lines of IP bytes.
fn with(flows: &str, link: &str) -> Scenario {
    scenario(&format!(
        "start_jitter = '100ms'\n[test]\nname = 't'\ntitle = 't'\nphases = {{ load = '30s' }}\n{flows}\n\
         [link]\nname = 'l'\ntitle = 'l'\n{link}"
    ))
}

/// What was captured: number of the hop, protocol and time to live, each once.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<BTreeSet<(usize, u8, u8)>>>);

impl PacketTap for Seen {
    fn packet(&mut self, hop: usize, _: Time, bytes: &[u8]) {
        let headers = parse(bytes).expect("it is a packet");
        let mut seen = self.0.lock().expect("nobody panicked");
        seen.insert((hop, headers.key.protocol.0, headers.ttl));
    }
}

fn captured(scenario: &Scenario) -> Vec<(usize, u8, u8)> {
    let (seen, hops) = (Seen::default(), scenario.path.up.len() + scenario.path.down.len());
    let numbers: Vec<usize> = (0..hops).collect();
    let mut simulation =
        Simulation::new(scenario, &BTreeMap::new(), Seed::new(1)).expect("it can be simulated");
    let tap = Box::new(seen.clone());
    simulation.capture(scenario, &numbers, CapturePoint::Departures, tap);
    assert!(simulation.run(&mut Told::default()).complete);
    let seen = seen.0.lock().expect("nobody panicked");
    seen.iter().copied().collect()
}

#[test]
fn in_a_capture_each_router_has_taken_one_off_the_time_to_live() {
    let text = include_str!("../../../scenarios/parking-lot.toml");
    let parking_lot = scenario(&text.replace("load = \"60s\"", "load = \"1s\""));
    // Hop, protocol, time to live: what goes all the way has passed a router more at each bottleneck.
    let expected = [
        (0, 1, 64),
        (0, 6, 64),
        (1, 1, 63),
        (1, 1, 64),
        (1, 6, 63),
        (1, 6, 64),
        (2, 1, 62),
        (2, 6, 62),
        (2, 6, 64),
        (3, 1, 64),
        (3, 6, 64),
    ];
    assert_eq!(captured(&parking_lot), expected);
}

#[test]
fn in_a_capture_a_routers_answer_has_passed_the_routers_between_it_and_the_client() {
    let probe = |ttl| format!("[[test.probes]]\nname = 'r{ttl}'\nkind = 'udp_ttl'\nttl = {ttl}\n");
    let hops = |way| {
        let hop = |name| format!("[[link.{way}]]\nname = '{name}'\ndelay = '1ms'\n");
        ["a", "b", "c"].map(hop).concat()
    };
    let routers = scenario(&format!(
        "[test]\nname = 't'\ntitle = 't'\nphases = {{ idle = '1s' }}\n{}{}\n[link]\nname = 'l'\ntitle = 'l'\n{}{}",
        probe(2),
        probe(3),
        hops("up"),
        hops("down"),
    ));
    let expected = [(0, 17, 2), (0, 17, 3), (1, 17, 2), (4, 1, 64), (5, 1, 63), (5, 1, 64)];
    assert_eq!(captured(&routers), expected);
}

#[test]
fn in_a_parking_lot_the_long_flow_gets_less_than_each_cross_flow() {
    let parking_lot = scenario(include_str!("../../../scenarios/parking-lot.toml"));
    let told = run(&parking_lot);
    let [long, a, b, c] = [0, 1, 2, 3].map(|flow| told.bytes[&flow]);
    assert!(long > 0 && long < a.min(b).min(c), "{long}, {a}, {b}, {c}");
    for hop in ["up/a", "up/b", "up/c"] {
        // 60 s of 10 Mbit/s.
        let share = told.carried[hop] as f64 / 75e6;
        assert!(share > 0.95, "{hop} is full for {share} of the time");
    }
    // A ping to the end passes three queues, one to exit b passes one.
    let mean = |probe| {
        let all: &Vec<u64> = &told.round_trips[&probe];
        all.iter().sum::<u64>() / all.len() as u64
    };
    assert!(mean(0) > 2 * mean(1), "{} and {} ns", mean(0), mean(1));
    assert!(run(&parking_lot).rows == told.rows, "the same to the bit");
}

#[test]
fn packets_of_a_cross_flow_pass_no_other_hop() {
    let mut alone = scenario(include_str!("../../../scenarios/parking-lot.toml"));
    alone.flows.retain(|flow| flow.name == "cross b");
    alone.probes.clear();
    let told = run(&alone);
    assert!(told.carried["up/b"] > 70_000_000, "{:?}", told.carried);
    assert_eq!((told.carried["up/a"], told.carried["up/c"]), (0, 0));
}

#[test]
fn a_ping_takes_the_delays_of_its_route_there_and_of_the_return_path() {
    let told = run(&with(
        "hosts = [{ name = 'server' }, { name = 'sky', delay = '1ms', route = 'sky' }]\n\
         probes = [{ name = 'both', kind = 'icmp' }, { name = 'sky', kind = 'icmp', host = 'sky' }]",
        "up = [{ name = 'dsl', delay = '3ms' }]\n\
         down = [{ name = 'satellite', delay = '250ms' }, { name = 'dsl', delay = '4ms' }]\n\
         routes = { sky = { down = ['satellite'] } }",
    ));
    let all = |probe: u32, ms: u64| {
        let found = &told.round_trips[&probe];
        found.len() > 100 && found.iter().all(|&rtt| rtt == 1_000_000 * ms)
    };
    assert!(all(0, 3 + 250 + 4), "{:?}", told.round_trips[&0].first());
    assert!(all(1, 3 + 250 + 2), "{:?}", told.round_trips[&1].first());
}

#[test]
fn two_clients_behind_access_links_share_a_bottleneck_of_fq_codel_evenly() {
    let told = run(&with(
        "hosts = [{ name = 'from dsl', route = 'dsl' }, { name = 'from fibre', route = 'fibre' }]\n\
         flows = [{ name = 'dsl', direction = 'up', host = 'from dsl' }, \
                  { name = 'fibre', direction = 'up', host = 'from fibre', client_host = 'second' }]",
        "up = [{ name = 'dsl', rate = '20mbit', delay = '10ms' }, { name = 'fibre', rate = '100mbit', delay = '1ms' }, \
               { name = 'shared', rate = '10mbit', delay = '5ms', queue = 'fq_codel' }]\n\
         down = [{ name = 'back', delay = '5ms' }]\n\
         routes = { dsl = { up = ['dsl', 'shared'] }, fibre = { up = ['fibre', 'shared'] } }",
    ));
    let (dsl, fibre) = (told.bytes[&0] as f64, told.bytes[&1] as f64);
    assert!((dsl / fibre - 1.0).abs() < 0.05, "{dsl} and {fibre} bytes");
    assert!(told.carried["up/shared"] as f64 / 37.5e6 > 0.95);
    let sum = told.carried["up/dsl"] + told.carried["up/fibre"];
    assert!(told.carried["up/dsl"] * 3 > sum && told.carried["up/fibre"] * 3 > sum);
}

#[test]
fn two_servers_over_two_paths_share_one_hop() {
    let told = run(&with(
        "hosts = [{ name = 'x', route = 'x' }, { name = 'y', route = 'y' }]\n\
         flows = [{ name = 'from x', direction = 'down', host = 'x' }, { name = 'from y', direction = 'down', host = 'y' }]",
        "up = [{ name = 'up', delay = '1ms' }]\n\
         down = [{ name = 'x', rate = '3mbit', delay = '5ms' }, { name = 'y', rate = '50mbit', delay = '5ms' }, \
                 { name = 'home', rate = '10mbit', queue = 'fq_codel' }]\n\
         routes = { x = { down = ['x', 'home'] }, y = { down = ['y', 'home'] } }",
    ));
    let mbit = |bytes: u64| bytes as f64 * 8.0 / 30e6;
    let [x, y, home] = ["down/x", "down/y", "down/home"].map(|hop| mbit(told.carried[hop]));
    // One is held to its own path, the other takes what is left of the hop that both share.
    assert!((2.8..=3.0).contains(&x), "{x}");
    assert!((9.5..=10.0).contains(&home), "{home}");
    assert!((x + y - home).abs() < 0.3, "{x} + {y} and {home}");
}

#[test]
fn a_route_over_all_hops_in_order_gives_the_rows_of_no_route() {
    let text = "queue = ['fq_codel']\nlink = 'cable-20-8'\ntest = 'rrul'\nphases = { idle = '300ms', load = '2s' }\n";
    let plain = scenario(text);
    let mut routed = plain.clone();
    let all = |count: usize| (0..count as u32).collect();
    routed.routes = vec![weir_scenario::Route {
        name: "all".into(),
        up: all(plain.path.up.len()),
        down: all(plain.path.down.len()),
    }];
    for host in &mut routed.hosts {
        host.route = Some(0);
    }
    let rows = run(&plain).rows;
    assert!(rows.len() > 1_000);
    assert!(run(&routed).rows == rows);
    // A second server behind another route makes all hops look their next stop up.
    routed.routes.push(weir_scenario::Route { name: "direct".into(), up: vec![], down: vec![] });
    let direct = weir_scenario::Host { name: "direct".into(), delay_ns: 1, route: Some(1) };
    routed.hosts.push(direct);
    assert!(run(&routed).rows == rows);
}

#[test]
fn a_path_that_takes_no_time_is_refused_for_the_route_that_has_it() {
    let scenario = with(
        "hosts = [{ name = 'server' }, { name = 'here', route = 'direct' }]\n\
         flows = [{ name = 'up', direction = 'up', host = 'here' }]",
        "up = [{ name = 'line', rate = '1mbit' }]\nroutes = { direct = { up = [], down = [] } }",
    );
    let says = check(&scenario).unwrap_err().to_string();
    assert!(says.starts_with("flow `up`: its round trip to `here` takes no time"), "{says}");
}
