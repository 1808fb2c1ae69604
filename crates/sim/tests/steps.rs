//! A run in several steps is the run in one.

use std::collections::BTreeMap;

use weir_core::{Seed, Time};
use weir_scenario::file::{NoFiles, catalogue, resolve};
use weir_scenario::{FlowRow, LatencyRow, QueueRow, Scenario, Sink, TcpRow, ThroughputRow};
use weir_sim::Simulation;

#[derive(Default, PartialEq)]
struct Told(Vec<String>);

impl Sink for Told {
    fn latency(&mut self, row: &LatencyRow) {
        self.0.push(format!("{row:?}"));
    }
    fn throughput(&mut self, row: &ThroughputRow) {
        self.0.push(format!("{row:?}"));
    }
    fn tcp(&mut self, row: &TcpRow) {
        self.0.push(format!("{row:?}"));
    }
    fn queue(&mut self, row: &QueueRow<'_>) {
        self.0.push(format!("{row:?}"));
    }
    fn flow(&mut self, row: &FlowRow) {
        self.0.push(format!("{row:?}"));
    }
}

fn rrul() -> Scenario {
    let text = "test = \"rrul\"\nlink = \"cable-20-8\"\nqueue = [\"htb rate 95% fq_codel\"]\n\
        phases = { idle = \"300ms\", load = \"1500ms\", cooldown = \"200ms\" }\n";
    let spec = catalogue::read_file(text, "scenario").expect("it is sound");
    let mut found = resolve(&spec, &NoFiles, |_| None).expect("it can be resolved");
    found.configurations.remove(0).scenario
}

fn simulation() -> Simulation {
    Simulation::new(&rrul(), &BTreeMap::new(), Seed::new(7)).expect("it can be simulated")
}

#[test]
fn steps_give_the_rows_and_the_outcome_of_a_run_in_one() {
    let mut whole = Told::default();
    let outcome = simulation().run(&mut whole);
    assert!(outcome.complete && whole.0.len() > 1000, "{} rows", whole.0.len());
    for step_ns in [1_000_003, 70_000_000, 2_000_000_000, u64::MAX] {
        let mut told = Told::default();
        let mut run = simulation();
        let mut until = 0_u64;
        while until < 3_000_000_000 {
            until = until.saturating_add(step_ns);
            assert!(run.advance(Time::from_nanos(until), &mut told).is_continue());
        }
        assert_eq!(run.finish(&mut told), outcome, "steps of {step_ns} ns");
        assert!(told == whole, "steps of {step_ns} ns");
    }
}

#[test]
fn a_run_that_is_ended_early_is_not_complete_and_has_what_it_measured() {
    let mut told = Told::default();
    let mut run = simulation();
    let half = Time::from_nanos(1_000_000_000);
    assert!(run.advance(half, &mut told).is_continue());
    let before = told.0.len();
    let outcome = run.finish(&mut told);
    assert!(!outcome.complete);
    assert_eq!(outcome.reached, half);
    assert_eq!(told.0.len(), before + 8, "the totals of eight flows came last");
}
