//! What loopback cannot show, between network namespaces: routers, loss, DSCP, handshakes. Needs root, and
//! `ip` of iproute2 and `ping`: `cargo test -p weir-sockets --test namespaces -- --ignored --test-threads 1`.

use std::fs::File;
use std::io::Read;
use std::process::Command;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use nix::sched::{CloneFlags, setns};
use socket2::{Domain, Socket, Type};

use weir_core::{Duration, Seed, Time};
use weir_scenario::{
    Direction, Flow, FlowRow, Hop, IpVersion, LatencyRow, LineRate, Opener, Overrides, Probe,
    ProbeKind, Sampling, Scenario,
};
use weir_sockets::{Clock, EndNamespace, Sample, ScenarioEnds};

const MS: u64 = 1_000_000;

/// A client, a router and a server, in a row.
struct Net {
    name: String,
}

impl Net {
    fn new(name: &str) -> Self {
        let net = Self { name: name.to_owned() };
        for place in PLACES {
            sh(&format!("ip netns add {name}{place}; ip -n {name}{place} link set lo up"));
            net.at(place, "echo 0 9999 > /proc/sys/net/ipv4/ping_group_range");
            net.at(place, "echo 0 > /proc/sys/net/ipv6/conf/default/accept_dad");
        }
        for (left, right, subnet) in [('c', 'r', 0), ('s', 'r', 1)] {
            sh(&format!(
                "ip -n {name}{left} link add eth type veth peer name {left} netns {name}{right}"
            ));
            for (place, device, node) in
                [(left, "eth".to_owned(), 1), (right, left.to_string(), 254)]
            {
                let ip = format!("ip -n {name}{place}");
                sh(&format!("{ip} addr add 10.{subnet}.0.{node}/24 dev {device}"));
                sh(&format!("{ip} addr add fd00:0:0:{subnet}::{node:x}/64 dev {device} nodad"));
                sh(&format!("{ip} link set {device} up"));
            }
            sh(&format!("ip -n {name}{left} route add default via 10.{subnet}.0.254"));
            sh(&format!("ip -n {name}{left} route add default via fd00:0:0:{subnet}::fe"));
        }
        net.at('r', "echo 1 > /proc/sys/net/ipv4/ip_forward; echo 1 > /proc/sys/net/ipv6/conf/all/forwarding");
        net.at('r', "echo 0 > /proc/sys/net/ipv4/icmp_ratelimit; echo 10000 > /proc/sys/net/ipv4/icmp_msgs_per_sec");
        net.at('r', "echo 0 > /proc/sys/net/ipv6/icmp/ratelimit");
        // IPv6 looks for neighbours only once its own address is known to be the only one.
        for (place, address) in [('c', "fd00:0:0:1::1"), ('s', "fd00::1")] {
            net.at(place, &format!("ping -6 -c 1 -w 10 {address} > /dev/null"));
        }
        net
    }

    fn at(&self, place: char, command: &str) {
        sh(&format!("ip netns exec {}{place} sh -c '{command}'", self.name));
    }

    fn place(&self, place: char) -> EndNamespace {
        let file = File::open(format!("/run/netns/{}{place}", self.name)).unwrap();
        EndNamespace::new(move || Ok(setns(&file, CloneFlags::CLONE_NEWNET)?))
    }

    fn run(&self, scenario: &Scenario) -> (Vec<LatencyRow>, Vec<FlowRow>, weir_sockets::Totals) {
        let (sender, receiver) = mpsc::channel();
        let clock = Clock::starting_in(Duration::from_millis(50));
        let scenario = Arc::new(scenario.clone());
        let (client, server) = (self.place('c'), self.place('s'));
        let ends =
            ScenarioEnds::start(&scenario, Seed::new(1), clock, client, server, sender).unwrap();
        let totals = ends.join().unwrap();
        let (mut latency, mut flows) = (Vec::new(), Vec::new());
        for sample in receiver {
            match sample {
                Sample::Latency(row) => latency.push(row),
                Sample::Flow(row) => flows.push(row),
                Sample::Throughput(_) | Sample::Tcp(_) | Sample::Udp(_) | Sample::Transfer(_) => {}
            }
        }
        (latency, flows, totals)
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        for place in PLACES {
            let _ = Command::new("ip")
                .args(["netns", "del", &format!("{}{place}", self.name)])
                .status();
        }
    }
}

const PLACES: [char; 3] = ['c', 'r', 's'];

fn sh(command: &str) {
    assert!(Command::new("sh").args(["-c", command]).status().unwrap().success(), "{command}");
}

/// What a SYN or its answer offers.
#[derive(Debug)]
struct Syn {
    /// The client's.
    port: u16,
    dscp: u8,
    ecn: bool,
    sack: bool,
    timestamps: bool,
}

/// Takes down handshakes that pass the router on their way to or from the server.
fn watch_handshakes(place: EndNamespace, count: usize) -> JoinHandle<Vec<Syn>> {
    let (ready, is_ready) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        place.enter().unwrap();
        let all = i32::from((libc::ETH_P_ALL as u16).to_be());
        let socket = Socket::new(Domain::PACKET, Type::RAW, Some(all.into())).unwrap();
        socket.set_read_timeout(Some(std::time::Duration::from_secs(3))).unwrap();
        ready.send(()).unwrap();
        let mut seen = Vec::new();
        let mut frame = vec![0; 65_536];
        while seen.len() < count {
            let Ok(len) = (&socket).read(&mut frame) else {
                break;
            };
            // The router sees each packet twice: from the client's side, and from the server's.
            let frame = &frame[14..len];

            if frame.len() >= 40 && frame[0] == 0x45 && frame[9] == 6 && frame[33] & 2 != 0 {
                seen.extend(read_syn(frame));
            }
        }
        seen
    });
    is_ready.recv().unwrap();
    thread
}

/// Reads a packet with a SYN. Those that have been forwarded once are passed over.
fn read_syn(packet: &[u8]) -> Option<Syn> {
    if packet[8] != 64 {
        return None;
    }
    let tcp = &packet[20..];
    let answers = tcp[13] & 0x10 != 0;
    let at = if answers { 2 } else { 0 };
    let mut options = &tcp[20..usize::from(tcp[12] >> 4) * 4];
    let (mut sack, mut timestamps) = (false, false);
    while let Some(&kind) = options.first() {
        (sack, timestamps) = (sack || kind == 4, timestamps || kind == 8);
        let len = if kind == 1 { 1 } else { usize::from(options[1]) };
        options = &options[len..];
    }
    let ecn = tcp[13] & 0x40 != 0;
    let port = u16::from_be_bytes([tcp[at], tcp[at + 1]]);
    Some(Syn { port, dscp: packet[1] >> 2, ecn, sack, timestamps })
}

fn scenario(ip_version: IpVersion) -> Scenario {
    let hop = Hop::new("line", "pfifo", LineRate::Unlimited);
    Scenario {
        sampling: Sampling { throughput_ns: 100 * MS, tcp_ns: 100 * MS, queue_ns: 0 },
        ip_version,
        ..Scenario::over("namespaces", 1_000 * MS, hop.clone(), hop)
    }
}

fn probe(name: &str, kind: ProbeKind) -> Probe {
    let (period, stop) = (Duration::from_millis(10), Time::from_millis(1_000));
    let ttl = (kind == ProbeKind::UdpTtl).then_some(1);
    Probe { dscp: 46, ttl, ..Probe::new(name, kind, period, stop) }
}

fn flow(name: &str, direction: Direction, overrides: Overrides) -> Flow {
    let mut flow = Flow::new(name, direction, "cubic", (Time::ZERO, Time::from_millis(1_000)));
    flow.tcp.overrides = overrides;
    Flow { dscp: 8, bytes: Some(5_000), ..flow }
}

#[test]
#[ignore = "needs root"]
fn all_probes_are_answered_over_both_protocols() {
    let net = Net::new("weirp");
    for version in [IpVersion::V4, IpVersion::V6] {
        let mut scenario = scenario(version);
        scenario.probes = vec![
            // The first has the number 0, which a ping socket cannot have.
            probe("icmp", ProbeKind::Icmp),
            probe("icmp too", ProbeKind::Icmp),
            probe("udp", ProbeKind::Udp),
            probe("ttl", ProbeKind::UdpTtl),
            probe("tcp", ProbeKind::Tcp),
        ];
        let (rows, ..) = net.run(&scenario);
        for number in 0..5 {
            let of = || rows.iter().filter(|row| row.probe == number);
            let answered = of().filter(|row| row.rtt.is_some()).count();
            assert!(of().count() >= 95 && answered == of().count());
        }
    }
}

#[test]
#[ignore = "needs root"]
fn loads_run_over_ipv6() {
    let net = Net::new("weirs");
    let mut scenario = scenario(IpVersion::V6);
    let window = Overrides { receive_window_bytes: Some(65_536), ..Overrides::default() };
    scenario.flows = vec![
        flow("up", Direction::Up, Overrides::default()),
        flow("down", Direction::Down, window),
        Flow {
            opened_by: Opener::Server,
            ..flow("passive", Direction::Down, Overrides::default())
        },
    ];
    let (_, flows, _) = net.run(&scenario);
    for row in &flows {
        assert_eq!(row.delivered_bytes, 5_000);
    }
}

#[test]
#[ignore = "needs root"]
fn loss_is_told_apart_by_direction() {
    let net = Net::new("weirl");
    for (address, reaches_server) in [("10.1.0.1", false), ("10.0.0.1", true)] {
        sh(&format!("ip -n weirlr route add blackhole {address}/32"));
        let mut scenario = scenario(IpVersion::V4);
        scenario.probes = vec![probe("udp", ProbeKind::Udp), probe("icmp", ProbeKind::Icmp)];
        let (rows, ..) = net.run(&scenario);
        assert_eq!(rows.len(), 200);
        for row in rows {
            assert_eq!((row.rtt, row.down), (None, None));
            assert_eq!(row.up.is_some(), reaches_server && row.probe == 0);
        }
        sh(&format!("ip -n weirlr route del blackhole {address}/32"));
    }
}

#[test]
#[ignore = "needs root"]
fn a_router_that_keeps_silent_spoils_no_later_answer() {
    let net = Net::new("weiri");
    // Linux' own limit: an answer a second for each sender, after a burst of six.
    net.at('r', "echo 1000 > /proc/sys/net/ipv4/icmp_ratelimit");
    net.at('r', "echo 1000 > /proc/sys/net/ipv6/icmp/ratelimit");
    for version in [IpVersion::V4, IpVersion::V6] {
        let mut scenario = scenario(version);
        scenario.duration_ns = 3_500 * MS;
        // One number for each of them stands in a payload that the router need not quote.
        scenario.probes = [0, 3, 60]
            .map(|payload_bytes| Probe {
                payload_bytes,
                stop_ns: 3_500 * MS,
                ..probe(&format!("ttl {payload_bytes}"), ProbeKind::UdpTtl)
            })
            .to_vec();
        for number in 0..scenario.probes.len() {
            let one =
                Scenario { probes: vec![scenario.probes[number].clone()], ..scenario.clone() };
            let (rows, ..) = net.run(&one);
            let answered: Vec<_> = rows.iter().filter(|row| row.rtt.is_some()).collect();
            assert_eq!(rows.len(), 350);
            assert!((2..100).contains(&answered.len()), "{} answers", answered.len());
            // Were answers given to the oldest ping, the first would have them all.
            let last = answered.iter().map(|row| row.seq).max().unwrap();
            assert!(last as usize > 2 * answered.len(), "{version:?} {number}: {answered:?}");
        }
    }
}

#[test]
#[ignore = "needs root"]
fn each_handshake_offers_what_its_load_asks_for() {
    let net = Net::new("weirh");
    let mut scenario = scenario(IpVersion::V4);
    let (off, on) = (Some(false), Some(true));
    scenario.flows = vec![
        flow("plain", Direction::Up, Overrides::default()),
        flow(
            "no timestamps",
            Direction::Down,
            Overrides { timestamps: off, ..Overrides::default() },
        ),
        flow("no sack", Direction::Up, Overrides { sack: off, ..Overrides::default() }),
        flow("ecn", Direction::Down, Overrides { ecn: on, ..Overrides::default() }),
        flow(
            "window",
            Direction::Up,
            Overrides { receive_window_bytes: Some(65_536), ..Overrides::default() },
        ),
        flow(
            "paced",
            Direction::Up,
            Overrides { pacing: on, delayed_ack: off, ..Overrides::default() },
        ),
        flow("ecn again", Direction::Up, Overrides { ecn: on, ..Overrides::default() }),
    ];
    let watcher = watch_handshakes(net.place('r'), 2 * scenario.flows.len());
    let (_, flows, totals) = net.run(&scenario);
    let seen = watcher.join().unwrap();

    // By flow, the SYN and its answer: DSCP, ECN asked for or agreed to, SACK, timestamps.
    for (n, (sack, timestamps, ecn)) in [
        (true, true, false),
        (true, false, false),
        (false, true, false),
        (true, true, true),
        (true, true, false),
        (true, true, false),
        (true, true, true),
    ]
    .into_iter()
    .enumerate()
    {
        let of: Vec<_> = seen.iter().filter(|syn| syn.port == 10_000 + n as u16).collect();
        assert_eq!(of.len(), 2, "{of:?}");
        for syn in of {
            let offers = (syn.dscp, syn.sack, syn.timestamps, syn.ecn);
            assert_eq!(offers, (8, sack, timestamps, ecn), "{syn:?}");
        }
    }
    assert_eq!(totals.client.get("Tcp:ActiveOpens"), Some(&7));
    assert_eq!(totals.server.get("Tcp:PassiveOpens"), Some(&7));
    for row in &flows {
        assert_eq!(row.delivered_bytes, 5_000);
        assert!(row.completed.is_some());
    }
    net.at('c', "cd /proc/sys/net/ipv4; test `cat tcp_sack tcp_timestamps tcp_ecn tcp_reflect_tos | tr -d \"\\n\"` = 1120");
}
