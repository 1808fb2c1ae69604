//! Runs that are told to stop, and runs that would never end.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use weir_core::{Seed, Time};
use weir_scenario::{Scenario, Sink};
use weir_sim::{Simulation, check};

/// Tells the run to stop at the first opportunity.
struct Stops;

impl Sink for Stops {
    fn progress(&mut self, _: Time) -> ControlFlow<()> {
        ControlFlow::Break(())
    }
}

/// A transfer each way over lines without a rate that take so many nanoseconds.
fn without_rates(delay_ns: u64) -> Scenario {
    let line = format!(
        r#"[{{"name": "line", "queue": "pfifo", "rate": "unlimited", "delay_ns": {delay_ns}}}]"#
    );
    let flow = |direction: &str| {
        format!(
            r#"{{"name": "{direction}", "direction": "{direction}", "host": 0, "dscp": 0, "start_ns": 0,
            "stop_ns": 10000000000, "tcp": {{"profile": "linux", "congestion_control": "cubic"}}}}"#
        )
    };
    let (up, down) = (flow("up"), flow("down"));
    let text = format!(
        r#"{{"name": "t", "duration_ns": 10000000000, "phases": [],
        "path": {{"up": {line}, "down": {line}}}, "hosts": [{{"name": "server", "delay_ns": 0}}],
        "flows": [{up}, {down}], "probes": [],
        "sampling": {{"throughput_ns": 0, "tcp_ns": 0, "queue_ns": 0}},
        "ip_version": "4", "mtu_bytes": 1500}}"#
    );
    Scenario::from_json(&text).expect("it is sound")
}

#[test]
fn a_run_whose_time_hardly_moves_is_told_to_stop_by_its_work() {
    let run = Simulation::new(&without_rates(1), &BTreeMap::new(), Seed::new(1)).unwrap();
    let outcome = run.run(&mut Stops);
    assert!(!outcome.complete);
    assert!(outcome.events <= 1_000_000, "it heard after {} events", outcome.events);
    assert!(outcome.reached < Time::from_nanos(50_000_000), "it heard by time");
}

#[test]
fn a_round_trip_of_no_time_is_refused() {
    let error = check(&without_rates(0)).unwrap_err().to_string();
    assert!(error.starts_with("flow `up`: its round trip to `server` takes no time"), "{error}");
}
