//! Measurements to several servers at once, and over both Internet protocols, on this machine.

mod common;

use std::thread;
use std::time::Duration;

use common::{Rows, request, serve, serve_at};
use weir_client::{MeasureRequest, measure};
use weir_core::Time;
use weir_scenario::{
    Application, Direction, DnsLoad, Flow, Host, IpVersion, Probe, ProbeKind, TransferRow, UdpLoad,
    WebLoad,
};
use weir_serve::Running;

fn span() -> (Time, Time) {
    (Time::from_millis(200), Time::from_millis(1_400))
}

/// A load of every kind to server number `host` over `ip`, if that is said.
fn loads(host: u32, ip_version: Option<IpVersion>) -> Vec<Flow> {
    let name = |what: &str| format!("{what} {host} {ip_version:?}");
    let of = |what: &str, direction| Flow {
        host,
        ip_version,
        ..Flow::new(name(what), direction, "reno", span())
    };
    let page = WebLoad {
        document_bytes: 20_000,
        objects: 3,
        object_bytes: 5_000,
        connections: 2,
        http2: false,
        tls: false,
        dns: true,
        every_ns: 200_000_000,
        timeout_ns: 1_000_000_000,
    };
    let voice = UdpLoad::voice(40_000_000, 20_000_000);
    vec![
        Flow { bytes: Some(100_000), ..of("up", Direction::Up) },
        Flow { bytes: Some(200_000), ..of("down", Direction::Down) },
        Flow { udp: Some(voice), ..of("voice up", Direction::Up) },
        Flow { udp: Some(voice), ..of("voice down", Direction::Down) },
        Flow { application: Some(Application::Web(page)), ..of("page", Direction::Down) },
        Flow {
            application: Some(Application::Dns(DnsLoad { every_ns: 100_000_000 })),
            ..of("names", Direction::Down)
        },
    ]
}

fn probe(host: u32, ip_version: Option<IpVersion>) -> Probe {
    Probe {
        name: format!("ping {host} {ip_version:?}"),
        kind: ProbeKind::Udp,
        host,
        tunnel: None,
        dscp: 0,
        ip_version,
        payload_bytes: 64,
        period_ns: 50_000_000,
        start_ns: 0,
        stop_ns: 1_500_000_000,
        ttl: None,
    }
}

/// A request of those loads and probes to servers at `hosts`.
fn to(hosts: &[&str], flows: Vec<Flow>, probes: Vec<Probe>, any: &Running) -> MeasureRequest {
    let mut request = request(any, flows);
    let name = |number| Host { name: format!("host {number}"), delay_ns: 1_000_000, route: None };
    request.scenario.hosts = (0..hosts.len()).map(name).collect();
    request.scenario.probes = probes;
    request.hosts = hosts.iter().map(|&words| words.to_owned()).collect();
    request
}

fn at(server: &Running) -> String {
    server.addresses()[0].to_string()
}

/// That every load of `request` came to its end, and every ping back. Of a machine that is too busy, such as one that runs
/// other tests beside this, a warning says so.
fn assert_whole(request: &MeasureRequest, rows: &Rows) {
    let warnings = rows.notes["warnings"].as_array().unwrap();
    let of_path =
        |one: &serde_json::Value| !one.as_str().unwrap().contains(": this machine was more than");
    assert!(!warnings.iter().any(of_path), "{warnings:?}");
    for (flow, row) in request.scenario.flows.iter().zip(&rows.flows) {
        assert!(row.delivered_bytes > 0, "{}", flow.name);
        if let Some(bytes) = flow.bytes {
            assert_eq!(row.delivered_bytes, bytes, "{}", flow.name);
        }
        if flow.application.is_some() {
            let number = row.flow;
            let done = |one: &&TransferRow| one.flow == number && one.outcome == "done";
            assert!(rows.transfers.iter().filter(done).count() > 3, "{}", flow.name);
        }
    }
    for number in 0..request.scenario.probes.len() {
        let own = || rows.latency.iter().filter(|row| row.probe as usize == number);
        assert_eq!(own().count(), 30, "probe {number}");
        assert!(own().all(|row| row.rtt.is_some()), "probe {number}");
        let trains = rows.notes["echoes"]["trains"].as_array().unwrap();
        let train = trains.iter().find(|train| train["probe"] == number).unwrap();
        assert_eq!(train["received"], 30, "probe {number}");
    }
}

#[test]
fn loads_and_pings_go_to_the_server_that_each_names() {
    let (near, far) = (serve(&[]), serve_at("127.0.0.2:0", &[]));
    let flows = [loads(0, None), loads(1, None)].concat();
    let probes = vec![probe(1, None), probe(0, None)];
    let request = to(&[&at(&near), &at(&far)], flows, probes, &near);
    let mut rows = Rows::default();
    assert!(measure(&request, &mut rows).unwrap().complete);
    assert_whole(&request, &rows);
    let servers = rows.notes["servers"].as_array().unwrap();
    let told: Vec<_> = servers.iter().map(|one| (&one["host"], &one["address"])).collect();
    let expected = [("host 0", at(&near)), ("host 1", at(&far))];
    assert!(told.iter().zip(&expected).all(|(told, own)| *told.0 == own.0 && *told.1 == own.1));
    assert_eq!(told.len(), 2);
    let hosts = rows.notes["scenario"]["hosts"].as_array().unwrap();
    assert!(hosts.iter().all(|host| host["delay_ns"] == 0), "how far they are is measured");
}

#[test]
fn one_server_is_measured_over_both_protocols_at_once() {
    let server = serve(&["--listen", "[::1]:0"]);
    let [v4, v6] = [0, 1].map(|place| server.addresses()[place].to_string());
    let both = [Some(IpVersion::V4), Some(IpVersion::V6)];
    let flows = both.map(|ip| loads(0, ip)).concat();
    let probes = both.map(|ip| probe(0, ip)).to_vec();
    let request = to(&[&format!("{v4},{v6}")], flows, probes, &server);
    let mut rows = Rows::default();
    assert!(measure(&request, &mut rows).unwrap().complete);
    assert_whole(&request, &rows);
    // By hand: IP and UDP headers of 28 bytes over IPv4, 48 over IPv6, around a voice packet of 172.
    for (flow, packet) in [(2, 200), (3, 200), (8, 220), (9, 220)] {
        let wire: u64 =
            rows.throughput.iter().filter(|row| row.flow == flow).map(|row| row.wire_bytes).sum();
        let packets = rows.flows[flow as usize].delivered_bytes / 172;
        assert_eq!(wire, packets * packet, "flow {flow}");
    }
    let servers = rows.notes["servers"].as_array().unwrap();
    let addresses: Vec<_> = servers.iter().map(|one| one["address"].as_str().unwrap()).collect();
    assert_eq!(addresses, [v4, v6]);
}

#[test]
fn each_server_is_asked_for_its_own_share_only() {
    let (small, large) = (serve(&["--max-udp-rate", "1mbit"]), serve_at("127.0.0.2:0", &[]));
    let flood = UdpLoad { rate_bps: 2_000_000, ..UdpLoad::voice(0, 20_000_000) };
    let load =
        |host| Flow { host, udp: Some(flood), ..Flow::new("flood", Direction::Up, "reno", span()) };
    let hosts = [at(&small), at(&large)];
    let hosts = hosts.each_ref().map(String::as_str);
    let mut rows = Rows::default();
    let much = to(&hosts, vec![load(0)], vec![], &small);
    let said = measure(&much, &mut rows).unwrap_err().to_string();
    let server = format!("server `{}`: flow `flood`: UDP loads of 2 Mbit/s", hosts[0]);
    assert!(said.starts_with(&server), "{said}");
    assert!(rows.notes.is_empty() && rows.flows.is_empty(), "nothing has begun");
    let fits = to(&hosts, vec![load(1)], vec![], &small);
    assert!(measure(&fits, &mut rows).unwrap().complete);
}

#[test]
fn a_server_that_goes_away_ends_the_run_by_its_name() {
    let (near, far) = (serve(&[]), serve_at("127.0.0.2:0", &[]));
    let flows = [loads(0, None), loads(1, None)].concat();
    let request = to(&[&at(&near), &at(&far)], flows, vec![probe(0, None)], &near);
    let mut rows = Rows::default();
    let name = at(&far);
    let leaving = thread::spawn(move || {
        thread::sleep(Duration::from_millis(900));
        drop(far);
    });
    let said = measure(&request, &mut rows).unwrap_err().to_string();
    leaving.join().unwrap();
    assert!(said.contains(&format!("server `{name}`")), "{said}");
    assert_eq!(rows.flows.len(), 12, "what was measured until then is there");
    assert!(rows.latency.iter().any(|row| row.rtt.is_some()));
}

#[test]
fn a_secret_is_for_the_servers_that_ask_for_one() {
    let file = std::env::temp_dir().join(format!("weir-secret-{}", std::process::id()));
    std::fs::write(&file, "correct horse battery").unwrap();
    let open = serve(&[]);
    let closed = serve_at("127.0.0.2:0", &["--auth", file.to_str().unwrap()]);
    std::fs::remove_file(&file).unwrap();
    let mut request = to(&[&at(&open), &at(&closed)], vec![], vec![probe(1, None)], &open);
    request.scenario.duration_ns = 500_000_000;
    let mut refused = |secret: Option<&str>| {
        request.secret = secret.map(str::to_owned);
        measure(&request, &mut Rows::default()).err().map(|error| error.to_string())
    };
    let named = format!("server `{}`", at(&closed));
    for wrong in [None, Some("wrong horse battery")] {
        let said = refused(wrong).expect("it asks for its own");
        assert!(said.starts_with(&named), "{said}");
    }
    assert_eq!(refused(Some("correct horse battery")), None);
}
