//! Departures that are foreseen are those that come about: a run of which nobody looks at what leaves has the rows of
//! one of which somebody does.

use std::collections::BTreeMap;

use weir_core::{Seed, Time};
use weir_path::CapturePoint;
use weir_scenario::file::{NoFiles, catalogue, resolve};
use weir_scenario::{FlowRow, LatencyRow, QueueRow, Scenario, Sink, TcpRow, ThroughputRow};
use weir_sim::{Outcome, PacketTap, Simulation};

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

/// Somebody who looks at what leaves, and does nothing.
struct Looks;

impl PacketTap for Looks {
    fn packet(&mut self, _hop: usize, _at: Time, _bytes: &[u8]) {}
}

/// `test` over a line of `rate` with `queue`. Without framing a full packet takes a whole number of nanoseconds, so that
/// packets come, timers fire and the line is free at the same instants.
fn scenario(test: &str, rate: &str, queue: &str) -> Scenario {
    let hop = |direction: &str| {
        format!(
            "[[link.{direction}]]\nname = \"line\"\nplace = \"queue\"\nrate = \"{rate}\"\nframing = \"none\"\n\
             delay = \"5ms\"\n"
        )
    };
    let text = format!(
        "test = \"{test}\"\nqueue = [\"{queue}\"]\n\
         phases = {{ idle = \"300ms\", load = \"2s\", cooldown = \"200ms\" }}\n[link]\nname = \"l\"\ntitle = \"l\"\n{}{}",
        hop("up"),
        hop("down")
    );
    let spec = catalogue::read_file(&text, "scenario").expect("it is sound");
    let mut found = resolve(&spec, &NoFiles, |_| None).expect("it can be resolved");
    found.configurations.remove(0).scenario
}

fn run(scenario: &Scenario, looks: bool) -> (Told, Outcome) {
    let mut simulation = Simulation::new(scenario, &BTreeMap::new(), Seed::new(7)).expect("sound");
    if looks {
        simulation.capture(scenario, &[0, 1], CapturePoint::Departures, Box::new(Looks));
    }
    let mut told = Told::default();
    let outcome = simulation.run(&mut told);
    (told, outcome)
}

#[test]
fn rows_are_the_same_whether_departures_are_foreseen_or_come_about() {
    for queue in ["pfifo limit 20", "pfifo limit 1000", "bfifo limit 20000", "bfifo limit 3000"] {
        for (test, rate) in [("rrul", "1500kbit"), ("rrul", "12mbit"), ("udp_flood", "60mbit")] {
            let scenario = scenario(test, rate, queue);
            let ((foreseen, of_foreseen), (came, outcome)) =
                (run(&scenario, false), run(&scenario, true));
            let case = format!("{test} at {rate} with {queue}");
            assert_eq!(of_foreseen, outcome, "{case}");
            assert_eq!(foreseen.0.len(), came.0.len(), "{case}");
            for (one, other) in foreseen.0.iter().zip(&came.0) {
                assert_eq!(one, other, "{case}");
            }
        }
    }
}
