//! Whole scenarios over loopback, which has the addresses 127.0.0.0/8: each test takes its own, so that
//! all may run at once. Nothing here depends on how fast the machine is: what has to arrive has ten times
//! the time that it takes.

use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::sync::mpsc;

use weir_core::{Duration, Seed, Time};
use weir_scenario::{
    Application, Direction, DnsLoad, Flow, FlowRow, Hop, LatencyRow, LineRate, Opener, Outcome,
    Probe, ProbeKind, Sampling, Scenario, TcpRow, ThroughputRow, TransferRow, UdpLoad, UdpPattern,
    UdpRow, WebLoad,
};
use weir_sockets::{
    Addresses, Clock, EndNamespace, NetError, Sample, ScenarioEnds, Totals,
    available_congestion_controls, check,
};

/// What a run left.
#[derive(Default)]
struct Rows {
    latency: Vec<LatencyRow>,
    throughput: Vec<ThroughputRow>,
    tcp: Vec<TcpRow>,
    udp: Vec<UdpRow>,
    transfers: Vec<TransferRow>,
    flows: Vec<FlowRow>,
}

const MS: u64 = 1_000_000;

fn scenario(duration_ms: u64) -> Scenario {
    let hop = Hop::new("line", "pfifo", LineRate::Unlimited);
    Scenario {
        sampling: Sampling { throughput_ns: 50 * MS, tcp_ns: 50 * MS, queue_ns: 0 },
        ..Scenario::over("loopback", duration_ms * MS, hop.clone(), hop)
    }
}

fn flow(name: &str, direction: Direction, span_ms: (u64, u64), bytes: Option<u64>) -> Flow {
    let span = (Time::from_millis(span_ms.0), Time::from_millis(span_ms.1));
    // Reno is the one that an ordinary user may always choose.
    Flow { bytes, ..Flow::new(name, direction, "reno", span) }
}

fn probe(name: &str, kind: ProbeKind, period_ms: u64, stop_ms: u64) -> Probe {
    let (period, stop) = (Duration::from_millis(period_ms), Time::from_millis(stop_ms));
    Probe { dscp: 46, ..Probe::new(name, kind, period, stop) }
}

/// Addresses of test number `net`, up to 15: other ones in each process.
fn addresses(net: u8) -> Addresses {
    Addresses::Others { client: address(net, 1), servers: vec![address(net, 2)] }
}

fn address(net: u8, node: u8) -> IpAddr {
    let [.., high, low] = (std::process::id() << 4).to_be_bytes();
    IpAddr::V4(Ipv4Addr::new(127, high, low | net, node))
}

fn start(scenario: Scenario, net: u8) -> Result<(ScenarioEnds, mpsc::Receiver<Sample>), NetError> {
    let (sender, receiver) = mpsc::channel();
    let clock = Clock::starting_in(Duration::from_millis(200));
    let setting = (&Arc::new(scenario), Seed::new(1), clock);
    let ends = ScenarioEnds::start_at(
        addresses(net),
        setting,
        EndNamespace::current(),
        EndNamespace::current(),
        sender,
    )?;
    Ok((ends, receiver))
}

fn collect(receiver: &mpsc::Receiver<Sample>) -> Rows {
    let mut rows = Rows::default();
    for sample in receiver.try_iter() {
        match sample {
            Sample::Latency(row) => rows.latency.push(row),
            Sample::Throughput(row) => rows.throughput.push(row),
            Sample::Tcp(row) => rows.tcp.push(row),
            Sample::Udp(row) => rows.udp.push(row),
            Sample::Transfer(row) => rows.transfers.push(row),
            Sample::Flow(row) => rows.flows.push(row),
        }
    }
    rows
}

fn run(scenario: Scenario, net: u8) -> (Rows, Totals) {
    let (ends, receiver) = start(scenario, net).unwrap();
    let totals = ends.join().unwrap();
    (collect(&receiver), totals)
}

fn goodput(rows: &Rows, flow: u32) -> u64 {
    rows.throughput.iter().filter(|row| row.flow == flow).map(|row| row.bytes).sum()
}

#[test]
fn goodput_rows_add_up_and_start_and_stop_are_kept() {
    let mut scenario = scenario(430);
    scenario.flows = vec![
        flow("up", Direction::Up, (50, 300), None),
        flow("down", Direction::Down, (100, 200), None),
    ];
    let (rows, totals) = run(scenario, 1);
    assert_eq!(rows.flows.len(), 2);
    for (flow, start, stop) in [(0, 50, 300), (1, 100, 200)] {
        let total = rows.flows[flow as usize];
        assert!(total.delivered_bytes > 0);
        assert_eq!(goodput(&rows, flow), total.delivered_bytes);
        assert!(total.sent_bytes.unwrap() >= total.delivered_bytes);
        assert!(total.first_data.unwrap() >= Time::from_millis(start));
        assert_eq!(total.completed, None);
        let of_tcp = rows.tcp.iter().filter(|row| row.flow == flow);
        for row in of_tcp {
            assert!(row.t > Time::from_millis(start) && row.t < Time::from_millis(stop));
            assert!(row.cwnd_segments > 0 && row.live.is_some());
        }
        // What was read has arrived before, with its headers.
        let mut ahead = 0;
        for row in rows.throughput.iter().filter(|row| row.flow == flow) {
            assert!(row.t > Time::from_millis(start));
            ahead += row.wire_bytes;
            assert!(ahead >= row.bytes, "{row:?}");
            ahead -= row.bytes;
        }
    }
    assert!(rows.throughput.is_sorted_by_key(|row| row.t));
    assert!(rows.tcp.is_sorted_by_key(|row| row.t));
    assert!(rows.tcp.iter().any(|row| row.srtt.is_some()));
    assert!(totals.client.get("Tcp:ActiveOpens").is_some_and(|opens| *opens >= 2));
    assert!(totals.server.get("Tcp:PassiveOpens").is_some_and(|opens| *opens >= 2));
}

#[test]
fn a_flow_of_fixed_size_delivers_exactly_that() {
    let mut scenario = scenario(2_000);
    scenario.flows = vec![
        flow("up", Direction::Up, (0, 2_000), Some(1_234_567)),
        flow("down", Direction::Down, (0, 2_000), Some(1)),
    ];
    let (rows, _) = run(scenario, 2);
    for (row, bytes) in rows.flows.iter().zip([1_234_567, 1]) {
        assert_eq!(row.delivered_bytes, bytes);
        assert_eq!(row.sent_bytes.unwrap() - row.retransmitted_bytes.unwrap(), bytes);
        assert!(row.completed.unwrap() >= row.first_data.unwrap());
        assert_eq!(goodput(&rows, row.flow), bytes);
    }
}

#[test]
fn a_server_may_open_the_connection_and_share_its_port_with_others() {
    let mut scenario = scenario(1_500);
    let opened = |name: &str, direction, by| Flow {
        opened_by: by,
        ..flow(name, direction, (0, 1_500), Some(100_000))
    };
    scenario.flows = vec![
        opened("active up", Direction::Up, Opener::Client),
        opened("passive up", Direction::Up, Opener::Server),
        opened("passive down", Direction::Down, Opener::Server),
    ];
    let (rows, _) = run(scenario, 3);
    let delivered: Vec<_> = rows.flows.iter().map(|row| row.delivered_bytes).collect();
    assert_eq!(delivered, [100_000; 3]);
}

#[test]
fn echoes_of_all_kinds_are_answered_and_ways_add_up() {
    let mut scenario = scenario(300);
    scenario.probes = vec![
        probe("udp", ProbeKind::Udp, 10, 300),
        probe("tcp", ProbeKind::Tcp, 20, 300),
        probe("udp too", ProbeKind::Udp, 1, 300),
    ];
    let (rows, _) = run(scenario, 4);
    let of = |probe: u32| rows.latency.iter().filter(move |row| row.probe == probe);
    assert_eq!(of(0).count(), 30);
    assert_eq!(of(2).count(), 300);
    assert!(of(1).count() > 0);
    for row in of(0).chain(of(2)).filter(|row| row.rtt.is_some()) {
        assert_eq!(row.rtt, Some(row.up.unwrap() + row.down.unwrap()));
    }
    for row in of(1) {
        assert_eq!((row.up, row.down), (None, None));
    }
    for probe in 0..3 {
        assert!(of(probe).filter(|row| row.rtt.is_some()).count() > 0);
    }
    // A ping leaves when it is planned or later, and says by how much.
    for row in of(0) {
        let planned = Time::from_millis(10 * u64::from(row.seq));
        assert_eq!(row.t.since(planned), row.timer_error);
    }
}

#[test]
fn the_kernel_answers_icmp_where_it_may_be_asked() {
    let mut scenario = scenario(200);
    scenario.probes =
        vec![probe("udp", ProbeKind::Udp, 50, 200), probe("icmp", ProbeKind::Icmp, 10, 200)];
    let (ends, receiver) = match start(scenario, 5) {
        Ok(started) => started,
        Err(error) => {
            // An ordinary user may be refused both kinds of socket.
            assert_eq!(error.to_string(), "probe `icmp`: opening its socket: permission denied");
            return;
        }
    };
    ends.join().unwrap();
    let rows = collect(&receiver);
    let icmp: Vec<_> = rows.latency.iter().filter(|row| row.probe == 1).collect();
    assert_eq!(icmp.len(), 20);
    assert!(icmp.iter().any(|row| row.rtt.is_some()));
    assert!(icmp.iter().all(|row| row.up.is_none()));
}

#[test]
fn the_shortest_timeout_is_the_loads_own_where_the_kernel_lets_it() {
    let mut scenario = scenario(300);
    let mut hasty = flow("hasty", Direction::Up, (0, 300), None);
    hasty.tcp.overrides.rto_min_ns = Some(50 * MS);
    scenario.flows = vec![hasty, flow("plain", Direction::Up, (0, 300), None)];
    if let Err(error) = check(&scenario, &["reno".to_owned()]) {
        // Before Linux 6.15.
        assert_eq!(
            error.to_string(),
            "flow `hasty`: rto_min 50ms: this kernel cannot change it for a socket (Linux 6.15 and \
             later can): leave it out"
        );
        return;
    }
    let (rows, _) = run(scenario, 9);
    let shortest = |flow| {
        let of = rows.tcp.iter().filter(|row| row.flow == flow && row.srtt.is_some());
        of.map(|row| row.rto).min().unwrap()
    };
    assert!(shortest(0) < Duration::from_millis(200));
    assert!(shortest(1) >= Duration::from_millis(200));
}

#[test]
fn a_thousand_flows_fit_into_one_process() {
    let mut scenario = scenario(5_000);
    let one = |n: usize| {
        let direction = if n.is_multiple_of(2) { Direction::Up } else { Direction::Down };
        flow(&format!("flow {n}"), direction, (0, 5_000), Some(10_000))
    };
    scenario.flows = (0..1_000).map(one).collect();
    let available = available_congestion_controls().unwrap();
    check(&scenario, &available).unwrap();
    let (rows, _) = run(scenario, 6);
    assert_eq!(rows.flows.len(), 1_000);
    assert!(rows.flows.iter().all(goodput_is_whole));
    let bytes: u64 = rows.throughput.iter().map(|row| row.bytes).sum();
    assert_eq!(bytes, 10_000_000);
}

fn goodput_is_whole(row: &FlowRow) -> bool {
    row.delivered_bytes == 10_000 && row.completed.is_some()
}

#[test]
fn a_run_that_is_stopped_keeps_what_was_measured() {
    let mut scenario = scenario(60_000);
    scenario.flows = vec![flow("up", Direction::Up, (0, 60_000), None)];
    scenario.probes = vec![probe("udp", ProbeKind::Udp, 10, 60_000)];
    let (ends, receiver) = start(scenario, 7).unwrap();
    let mut first = receiver.recv().unwrap();
    while !matches!(first, Sample::Throughput(row) if row.bytes > 0) {
        first = receiver.recv().unwrap();
    }
    ends.stop();
    ends.join().unwrap();
    let rows = collect(&receiver);
    assert_eq!(rows.flows.len(), 1);
    assert!(rows.flows[0].delivered_bytes > 0);
    assert!(rows.latency.iter().all(|row| row.rtt.is_some()), "nothing is taken for lost");
}

#[test]
fn a_port_in_use_is_told_in_one_sentence() {
    let server = address(8, 2);
    let taken = TcpListener::bind((server, 5001)).unwrap();
    let mut scenario = scenario(100);
    scenario.flows = vec![flow("up", Direction::Up, (0, 100), None)];
    let error = start(scenario, 8).err().unwrap();
    assert_eq!(
        error.to_string(),
        format!("flow `up`: listening on {server}:5001: address already in use")
    );
    drop(taken);
}

#[test]
fn what_sockets_cannot_do_is_refused_before_the_start() {
    let available = ["reno".to_owned(), "cubic".to_owned()];
    let error = |change: fn(&mut Scenario)| {
        let mut scenario = scenario(100);
        scenario.flows = vec![flow("up", Direction::Up, (0, 100), None)];
        scenario.probes = vec![probe("ping", ProbeKind::Udp, 10, 100)];
        change(&mut scenario);
        check(&scenario, &available).unwrap_err().to_string()
    };
    assert_eq!(
        error(|s| s.flows[0].tcp.congestion_control = "vegas".into()),
        "flow `up`: congestion control `vegas`: this kernel has reno, cubic"
    );
    assert_eq!(
        error(|s| s.flows[0].tcp.profile = "classic".into()),
        "flow `up`: profile `classic`: real sockets speak the kernel's TCP: write `linux`"
    );
    assert_eq!(
        error(|s| s.flows[0].tcp.overrides.initial_window = Some(3)),
        "flow `up`: initial_window 3: a socket cannot change it: leave it out or write 10"
    );
    assert_eq!(
        error(|s| s.probes[0].payload_bytes = 8),
        "probe `ping`: payload 8 bytes: write 24 to 65000"
    );
}

fn udp_flow(name: &str, direction: Direction, span_ms: (u64, u64), load: UdpLoad) -> Flow {
    Flow { udp: Some(load), ..flow(name, direction, span_ms, None) }
}

#[test]
fn udp_packets_leave_on_time_and_both_ends_count_them() {
    let mut scenario = scenario(1_000);
    // 500 packets a second of 400 bytes.
    let steady = UdpLoad {
        rate_bps: 1_600_000,
        payload_bytes: 400,
        pattern: UdpPattern::Constant,
        jitter_buffer_ns: None,
    };
    scenario.flows = vec![
        udp_flow("up", Direction::Up, (100, 700), steady),
        udp_flow("call", Direction::Down, (0, 1_000), UdpLoad::voice(40_000_000, 20_000_000)),
        flow("tcp", Direction::Up, (200, 400), None),
    ];
    // On the port of the UDP loads: each packet finds its own socket.
    scenario.probes = vec![probe("udp", ProbeKind::Udp, 50, 900)];
    let (rows, _) = run(scenario, 13);

    assert_eq!(rows.latency.len(), 18);
    assert!(rows.latency.iter().all(|row| row.rtt.is_some()), "the echo is on its own socket");
    assert!(rows.flows[2].delivered_bytes > 0);
    for (flow, packets, payload, header) in [(0, 300, 400, 28), (1, 50, 172, 28)] {
        let udp: Vec<_> = rows.udp.iter().filter(|row| row.flow == flow).collect();
        let received: u64 = udp.iter().map(|row| row.received_packets).sum();
        let sent = udp.iter().map(|row| row.sender.expect("it is here")).collect::<Vec<_>>();
        let skipped: u64 = sent.iter().map(|sent| sent.skipped_packets).sum();
        let sent: u64 = sent.iter().map(|sent| sent.sent_packets).sum();
        assert_eq!(sent + skipped, packets);
        let total = rows.flows[flow as usize];
        assert_eq!((total.sent_segments, total.sent_bytes), (Some(sent), Some(sent * payload)));
        assert_eq!(received, sent, "loopback loses nothing");
        assert_eq!(total.delivered_bytes, received * payload);
        assert_eq!(goodput(&rows, flow), received * payload);
        let wire = rows.throughput.iter().filter(|row| row.flow == flow).map(|row| row.wire_bytes);
        assert_eq!(wire.sum::<u64>(), received * (payload + header));
        assert!(udp.iter().all(|row| row.lost_packets == 0));
        assert!(
            udp.iter().filter_map(|row| row.delay_max).all(|delay| delay < Duration::from_secs(1))
        );
        assert_eq!(udp.iter().any(|row| row.buffer.is_some()), flow == 1);
    }
    assert!(rows.flows[0].first_data.unwrap() >= Time::from_millis(100));
}

#[test]
fn a_flood_on_a_socket_is_bounded_by_its_stop() {
    let mut scenario = scenario(600);
    let flood = UdpLoad {
        rate_bps: 1_000_000_000,
        payload_bytes: 1_200,
        pattern: UdpPattern::Constant,
        jitter_buffer_ns: None,
    };
    scenario.flows = vec![udp_flow("flood", Direction::Down, (0, 200), flood)];
    let (rows, _) = run(scenario, 14);
    let total = rows.flows[0];
    let planned = 200 * MS / (1_200 * 8);
    let sent = total.sent_segments.unwrap();
    assert!(sent > 100 && sent <= planned + 1, "{sent} of {planned}");
    let received: u64 = rows.udp.iter().map(|row| row.received_packets).sum();
    assert_eq!(total.delivered_bytes, received * 1_200);
    let lost: i64 = rows.udp.iter().map(|row| row.lost_packets).sum();
    assert!(received + lost.cast_unsigned() <= sent);
    // What was due by the stop may leave a little later, but not by much.
    let beyond = rows.udp.iter().filter(|row| row.t > Time::from_millis(400));
    assert_eq!(beyond.map(|row| row.sender.unwrap().sent_packets).sum::<u64>(), 0);
}

#[test]
fn a_udp_packet_without_room_for_its_number_is_refused() {
    let mut scenario = scenario(500);
    let load = UdpLoad {
        rate_bps: 8_000,
        payload_bytes: 15,
        pattern: UdpPattern::Constant,
        jitter_buffer_ns: None,
    };
    scenario.flows = vec![udp_flow("tiny", Direction::Up, (0, 500), load)];
    let error = check(&scenario, &[]).unwrap_err().to_string();
    assert!(
        error.starts_with("flow `tiny`: udp.payload 15") && error.ends_with("16 or more"),
        "{error}"
    );
}

#[test]
fn an_application_loads_pages_of_the_lengths_that_it_asks_for_and_looks_names_up() {
    let mut scenario = scenario(1_000);
    let page = WebLoad {
        document_bytes: 20_000,
        objects: 5,
        object_bytes: 70_000,
        connections: 3,
        http2: false,
        tls: true,
        dns: true,
        every_ns: 200 * MS,
        timeout_ns: 5_000 * MS,
    };
    let application = |name: &str, of: Application| Flow {
        application: Some(of),
        ..flow(name, Direction::Down, (100, 900), None)
    };
    scenario.flows = vec![
        application("page", Application::Web(page)),
        application("at once", Application::Web(WebLoad { http2: true, ..page })),
        application("names", Application::Dns(DnsLoad { every_ns: 100 * MS })),
        // On the address of their servers, and another port.
        flow("tcp", Direction::Up, (200, 400), None),
    ];
    let (rows, _) = run(scenario, 14);

    let done = |flow: u32| {
        let of = move |row: &&TransferRow| row.flow == flow && row.outcome == Outcome::Done.word();
        rows.transfers.iter().filter(of).collect::<Vec<_>>()
    };
    let lengths = [(0, 3 * 3_000 + 6 * 300 + 370_000), (1, 3_000 + 6 * 129 + 370_000)];
    for (flow, least) in lengths {
        let pages = done(flow);
        assert!((1..=4).contains(&pages.len()), "one every 200 ms at most: {pages:?}");
        for one in &pages {
            // Besides, 22 bytes of TLS a record of 16 KiB, and 9 of HTTP/2 a frame.
            assert!((least..least + 1_500).contains(&one.bytes), "{one:?}");
            assert_eq!(one.queries, 1);
        }
        let all: u64 =
            rows.transfers.iter().filter(|row| row.flow == flow).map(|row| row.bytes).sum();
        let delivered = rows.flows[flow as usize].delivered_bytes;
        assert!(delivered >= all, "answers to names are delivered too: {delivered} of {all}");
    }
    let names = done(2);
    assert!((1..=8).contains(&names.len()), "one every 100 ms: {names:?}");
    assert!(names.iter().all(|row| row.bytes == u64::from(Application::ANSWER_BYTES)));
}
