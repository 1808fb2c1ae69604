//! A measurement of the path to a server on this machine.

mod common;

use std::collections::BTreeMap;

use common::{Rows, serve};
use serde_json::Value;
use weir_client::{MeasureRequest, RampPhase, RampPlan, measure};
use weir_core::Time;
use weir_scenario::{Direction, Flow, Hop, LineRate, Path, Phase, Sampling, Scenario};

fn scenario(flows: Vec<Flow>) -> Scenario {
    let hop = Hop::new("line", "pfifo", LineRate::Unlimited);
    let (start_ns, end_ns) = (1_000_000_000, 2_000_000_000);
    Scenario {
        phases: vec![Phase { name: "download".into(), start_ns, end_ns }],
        path: Path { up: vec![], down: vec![] },
        flows,
        sampling: Sampling { throughput_ns: 50_000_000, tcp_ns: 50_000_000, queue_ns: 0 },
        ..Scenario::over("net", end_ns, hop.clone(), hop)
    }
}

#[test]
fn loads_may_start_in_any_order() {
    let server = serve(&[]);
    // So far behind that the server is asked for it long after the other.
    let late = (Time::from_millis(2_000), Time::from_millis(2_300));
    let first = (Time::from_millis(100), Time::from_millis(400));
    let flows = vec![
        Flow { bytes: Some(100_000), ..Flow::new("late", Direction::Up, "reno", late) },
        Flow { bytes: Some(200_000), ..Flow::new("first", Direction::Up, "reno", first) },
    ];
    let request = MeasureRequest {
        hosts: vec![server.addresses()[0].to_string()],
        ip: None,
        secret: None,
        scenario: Scenario { duration_ns: 2_500_000_000, ..scenario(flows) },
        seed: 1,
        ramp: None,
    };
    let mut rows = Rows::default();
    assert!(measure(&request, &mut rows).unwrap().complete);
    let delivered: BTreeMap<_, _> =
        rows.flows.iter().map(|row| (row.flow, row.delivered_bytes)).collect();
    assert_eq!(delivered, BTreeMap::from([(0, 100_000), (1, 200_000)]));
}

#[test]
fn loads_of_the_scenario_and_of_a_ramp_are_measured_and_rows_add_up() {
    let server = serve(&[]);
    let span = (Time::from_millis(100), Time::from_millis(900));
    // Reno is the one that an ordinary user may always choose.
    let up = Flow { bytes: Some(200_000), ..Flow::new("up", Direction::Up, "reno", span) };
    let down = Flow::new("down", Direction::Down, "reno", span);
    let phases = vec![RampPhase { phase: "download".into(), down: true, up: false }];
    let ramp = RampPlan { phases, most: 2, interval_ns: 500_000_000, congestion: None };
    let request = MeasureRequest {
        hosts: vec![server.addresses()[0].to_string()],
        ip: None,
        secret: None,
        scenario: scenario(vec![up, down]),
        seed: 1,
        ramp: Some(ramp),
    };
    let mut rows = Rows::default();
    let outcome = measure(&request, &mut rows).unwrap();
    assert!(outcome.complete, "{outcome:?}");
    assert_eq!(rows.notes["warnings"], Value::Array(vec![]));
    let flows = rows.notes["scenario"]["flows"].as_array().unwrap();
    let names: Vec<_> = flows.iter().map(|flow| flow["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["up", "down", "download 1", "download 2"]);
    let congestion = flows[2]["tcp"]["congestion_control"].as_str().unwrap();
    assert_ne!(congestion, "default", "the server names what it has");
    assert_eq!(rows.notes["ramps"][0]["direction"], "down");
    assert_eq!(rows.notes["ramps"][0]["flows"], 2);
    assert_eq!(rows.flows.len(), 4);
    for row in &rows.flows {
        let of_flow = rows.throughput.iter().filter(|one| one.flow == row.flow);
        let (bytes, wire) =
            of_flow.fold((0, 0), |(bytes, wire), one| (bytes + one.bytes, wire + one.wire_bytes));
        assert_eq!(bytes, row.delivered_bytes, "flow {}", row.flow);
        assert!(bytes > 0 && wire > bytes, "flow {}: {bytes} of {wire}", row.flow);
        assert!(row.sent_bytes.is_some_and(|sent| sent >= bytes), "flow {}", row.flow);
    }
    let upload = rows.flows.iter().find(|row| row.flow == 0).unwrap();
    assert_eq!(upload.delivered_bytes, 200_000);
    assert!(upload.completed.is_some());
    assert!(rows.tcp.iter().any(|row| row.flow == 1), "the server tells of what it sends");
}

#[test]
fn of_loads_that_run_to_the_very_end_both_ends_have_their_last_word() {
    let server = serve(&[]);
    let span = (Time::from_millis(100), Time::from_millis(2_000));
    let flows = Direction::ALL.map(|way| Flow::new(way.word(), way, "reno", span));
    // The server's samples are so far apart that none could stand in for its last word.
    let sampling = Sampling { throughput_ns: 700_000_000, tcp_ns: 700_000_000, queue_ns: 0 };
    let request = MeasureRequest {
        hosts: vec![server.addresses()[0].to_string()],
        ip: None,
        secret: None,
        scenario: Scenario { sampling, ..scenario(flows.to_vec()) },
        seed: 1,
        ramp: None,
    };
    let mut rows = Rows { ends: Some(Time::from_millis(1_200)), ..Rows::default() };
    assert!(!measure(&request, &mut rows).unwrap().complete);
    for row in &rows.flows {
        let sent = row.sent_bytes.expect("both ends have said their last");
        assert!(sent >= row.delivered_bytes, "{row:?}");
        // What had not arrived was in the buffers of this machine.
        assert!(sent - row.delivered_bytes < sent / 4, "{row:?}");
    }
}
