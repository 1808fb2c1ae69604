//! UDP loads and voice between this machine and a server on it.

mod common;

use common::{Rows, request, serve};
use weir_client::measure;
use weir_core::Time;
use weir_scenario::{Direction, Flow, UdpLoad, UdpPattern, UdpRow};
use weir_serve::Running;

fn load(name: &str, direction: Direction, load: UdpLoad) -> Flow {
    let span = (Time::from_millis(200), Time::from_millis(1_200));
    Flow { udp: Some(load), ..Flow::new(name, direction, "cubic", span) }
}

#[test]
fn loads_and_calls_each_way_are_sent_counted_and_told() {
    let poisson = UdpLoad {
        rate_bps: 2_000_000,
        payload_bytes: 500,
        pattern: UdpPattern::Poisson,
        jitter_buffer_ns: None,
    };
    let loads = [UdpLoad::voice(40_000_000, 20_000_000), poisson];
    let flows = Direction::ALL.into_iter().flat_map(|way| {
        loads.into_iter().enumerate().map(move |(n, one)| load(&format!("{way:?}{n}"), way, one))
    });
    let server = serve(&[]);
    let request = request(&server, flows.collect());
    let mut rows = Rows::default();
    assert!(measure(&request, &mut rows).unwrap().complete);
    for (number, flow) in request.scenario.flows.iter().enumerate() {
        let own: Vec<_> = rows.udp.iter().filter(|row| row.flow as usize == number).collect();
        let name = &flow.name;
        let sum = |of: fn(&UdpRow) -> u64| own.iter().map(|row| of(row)).sum::<u64>();
        let sent = sum(|row| row.sender.expect("both ends are known").sent_packets);
        let skipped = sum(|row| row.sender.unwrap().skipped_packets);
        let received = sum(|row| row.received_packets);
        // The simulator's times: the same packets are due here.
        let span = (flow.start(), flow.stop());
        let mut due = flow.udp.unwrap().sender(number as u32, span, weir_core::Seed::new(1));
        let planned = std::iter::from_fn(|| due.take_due(due.next()?)).count() as u64;
        assert_eq!(sent + skipped, planned, "{name}");
        let lost: i64 = own.iter().map(|row| row.lost_packets).sum();
        assert_eq!(received + lost.cast_unsigned(), sent, "{name}: loopback loses nothing");
        let delays: Vec<_> = own.iter().filter_map(|row| row.delay_max).collect();
        assert!(!delays.is_empty() && delays.iter().all(|delay| delay.as_nanos() < 1_000_000_000));
        assert_eq!(own.iter().all(|row| row.buffer.is_some()), number % 2 == 0, "{name}");
        let totals = rows.flows[number];
        let payload = u64::from(flow.udp.unwrap().payload_bytes);
        assert_eq!(totals.delivered_bytes, received * payload, "{name}");
        assert_eq!((totals.sent_segments, totals.sent_bytes), (Some(sent), Some(sent * payload)));
        let first = totals.first_data.unwrap();
        assert!(first >= flow.start() && first < Time::from_millis(1_000), "{name}: {first:?}");
        let passed = rows.throughput.iter().filter(|row| row.flow as usize == number);
        let (bytes, wire) =
            passed.fold((0, 0), |(bytes, wire), row| (bytes + row.bytes, wire + row.wire_bytes));
        assert_eq!((bytes, wire), (received * payload, received * (payload + 28)), "{name}");
    }
    assert!(rows.notes["servers"][0]["clock_drift"]["within_ns"].as_u64().unwrap() < 1_000_000_000);
}

/// Why a measurement of these flows is not made.
fn refusal(server: &Running, flows: Vec<Flow>) -> String {
    measure(&request(server, flows), &mut Rows::default()).unwrap_err().to_string()
}

#[test]
fn what_the_server_does_not_allow_is_refused_before_anything_is_sent() {
    let server = serve(&["--max-udp-rate", "3mbit"]);
    let flood = UdpLoad { rate_bps: 2_000_000, ..UdpLoad::voice(0, 20_000_000) };
    let two = |one: UdpLoad| vec![load("a", Direction::Up, one), load("b", Direction::Up, one)];
    assert_eq!(
        refusal(&server, two(flood)),
        "flow `a`: UDP loads of 4 Mbit/s and 2908 packets a second at once: this server allows one address 3 Mbit/s \
         (`weir serve --max-udp-rate`) and 50000 packets a second each way"
    );
    assert_eq!(
        refusal(&server, two(UdpLoad { payload_bytes: 31, ..flood })),
        "flow `a`: udp.payload 31: in the world net write 32 to 1472 bytes"
    );
}
