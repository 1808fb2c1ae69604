//! Figures of a test for programs that keep no record: latency and goodput of each phase.
//!
//! They are those of `weirlab.scores.measured`, which takes them from a record; `vectors/test-figures.json` holds both to
//! the same values.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use serde_json::{Map, Value};
use weir_core::Time;
use weir_scenario::{
    Direction, Goodput, LatencyRow, Phase, RecordSink, Scenario, Sink, ThroughputRow,
};
use weir_speedtest::figures::{mean, quantile};

use crate::plan::{IDLE, LOADED};
use crate::silence::{Heard, Unmeasured};

/// A sink that keeps what figures need: a few bytes a ping, and a few an interval of each flow.
pub struct Figures<P> {
    progress: P,
    pings: Vec<(Time, Option<f64>)>,
    arrived: Vec<ThroughputRow>,
    notes: Map<String, Value>,
    reached: Time,
}

/// Figures of a test.
#[derive(Clone, Debug, PartialEq)]
pub struct TestFigures {
    /// Pings of the phase without load.
    pub idle: Pinged,
    /// The phases with load in which pings were answered, in order: one at least.
    pub loaded: Vec<Loaded>,
    /// Phases with load that were not measured: with any, there is no grade.
    pub unmeasured: Unmeasured,
}

/// Pings of a phase, of which one was answered at least.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pinged {
    /// How many were sent.
    pub sent: usize,
    /// How many of them, or their answers, were lost.
    pub lost: usize,
    /// Mean round trip, in milliseconds.
    pub mean_ms: f64,
    /// Median round trip, in milliseconds.
    pub median_ms: f64,
}

/// A phase with load, from when the line was full until the phase's end.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    /// Name of the phase: `download`, `upload`, or `load` for both at once.
    pub phase: &'static str,
    /// Its pings.
    pub pings: Pinged,
    /// Mean round trip less that of the phase without load, in milliseconds.
    pub increase_ms: f64,
    /// Goodput of downloads, in Mbit/s; `None` without any, or without a whole interval of samples.
    pub down_mbps: Option<f64>,
    /// Goodput of uploads, in Mbit/s; `None` without any, or without a whole interval of samples.
    pub up_mbps: Option<f64>,
}

impl TestFigures {
    /// Goodput of the download by itself, or of that beside an upload where there is none, in Mbit/s.
    #[must_use]
    pub fn down_mbps(&self) -> Option<f64> {
        self.alone("download").and_then(|phase| phase.down_mbps)
    }

    /// Goodput of the upload by itself, or of that beside a download where there is none, in Mbit/s.
    #[must_use]
    pub fn up_mbps(&self) -> Option<f64> {
        self.alone("upload").and_then(|phase| phase.up_mbps)
    }

    /// The increase in the phase in which pings grew most, in milliseconds.
    #[must_use]
    pub fn worst_increase_ms(&self) -> f64 {
        self.loaded.iter().map(|phase| phase.increase_ms).fold(f64::NEG_INFINITY, f64::max)
    }

    fn alone(&self, phase: &str) -> Option<&Loaded> {
        let named = |name| self.loaded.iter().find(|one| one.phase == name);
        named(phase).or_else(|| named("load"))
    }
}

impl<P: FnMut(Time) -> ControlFlow<()>> Figures<P> {
    /// Has seen nothing yet. `progress` is told how far the test has come, and may end it.
    pub fn new(progress: P) -> Self {
        Self {
            progress,
            pings: Vec::new(),
            arrived: Vec::new(),
            notes: Map::new(),
            reached: Time::ZERO,
        }
    }

    /// Notes of the measurement on itself.
    pub const fn notes(&self) -> &Map<String, Value> {
        &self.notes
    }

    /// The figures of a test that was measured; `None` if no ping was answered without load, or none with any.
    pub fn figures(&self) -> Option<TestFigures> {
        let scenario: Scenario =
            serde_json::from_value(self.notes.get("scenario")?.clone()).ok()?;
        let span = |name: &str| scenario.phases.iter().find(|phase| phase.name == name);
        let before = span(IDLE)?;
        let idle = self.pinged(before.start_ns, before.end_ns)?;
        let loaded: Vec<Loaded> = LOADED
            .into_iter()
            .filter_map(|(name, ..)| self.loaded(&scenario, name, span(name)?, idle.mean_ms))
            .collect();
        let unmeasured = self.unmeasured(&scenario, &loaded);
        (!loaded.is_empty()).then_some(TestFigures { idle, loaded, unmeasured })
    }

    /// Phases with load that were not measured.
    fn unmeasured(&self, scenario: &Scenario, loaded: &[Loaded]) -> Unmeasured {
        let ms = |t: Time| t.as_nanos() / 1_000_000;
        let mut answers = BTreeMap::new();
        for (sent, rtt_ms) in &self.pings {
            let Some(rtt_ms) = rtt_ms else { continue };
            let came = (sent.as_nanos() as f64 / 1e6 + rtt_ms) as u64;
            let longest = answers.entry(came).or_insert(0);
            *longest = (*rtt_ms as u64).max(*longest);
        }
        let mut data: [Vec<u64>; 2] = Default::default();
        for row in self.arrived.iter().filter(|row| row.bytes > 0) {
            if let Some(flow) = scenario.flows.get(row.flow as usize) {
                data[flow.direction as usize].push(ms(row.t));
            }
        }
        let heard = Heard { answers, data };
        let is_loaded = |phase: &&Phase| LOADED.iter().any(|(name, ..)| *name == phase.name);
        let phases: Vec<Phase> = scenario.phases.iter().filter(is_loaded).cloned().collect();
        let has_pings = |name: &str| loaded.iter().any(|one| one.phase == name);
        Unmeasured::of(&phases, self.reached.as_nanos(), &heard, has_pings)
    }

    fn loaded(
        &self,
        scenario: &Scenario,
        name: &'static str,
        span: &Phase,
        idle_ms: f64,
    ) -> Option<Loaded> {
        let start_ns = (span.start_ns + SETTLING_NS).max(self.full_ns(name));
        let pings = self.pinged(start_ns, span.end_ns)?;
        let goodput =
            |way| self.goodput_mbps(&Goodput::within((start_ns, span.end_ns), scenario, way));
        Some(Loaded {
            phase: name,
            pings,
            increase_ms: pings.mean_ms - idle_ms,
            down_mbps: goodput(Direction::Down),
            up_mbps: goodput(Direction::Up),
        })
    }

    /// When the line was full in a phase; 0 if the measurement does not say.
    fn full_ns(&self, phase: &str) -> u64 {
        let ramps = self.notes.get("ramps").and_then(Value::as_array);
        let of_phase = ramps.into_iter().flatten().filter(|ramp| ramp["phase"] == phase);
        of_phase.filter_map(|ramp| ramp["full_ns"].as_u64()).max().unwrap_or(0)
    }

    fn pinged(&self, start_ns: u64, end_ns: u64) -> Option<Pinged> {
        let inside = |t: Time| (start_ns..end_ns).contains(&t.as_nanos());
        let pings: Vec<_> = self.pings.iter().filter(|(t, _)| inside(*t)).collect();
        let answered: Vec<f64> = pings.iter().filter_map(|(_, rtt_ms)| *rtt_ms).collect();
        Some(Pinged {
            sent: pings.len(),
            lost: pings.len() - answered.len(),
            mean_ms: mean(&answered)?,
            median_ms: quantile(&answered, 0.5)?,
        })
    }

    fn goodput_mbps(&self, goodput: &Goodput) -> Option<f64> {
        let counts = |row: &&ThroughputRow| goodput.counts(row.flow as usize, row.t.as_nanos());
        goodput.mbps(self.arrived.iter().filter(counts).map(|row| row.bytes).sum())
    }
}

impl<P: FnMut(Time) -> ControlFlow<()>> Sink for Figures<P> {
    fn latency(&mut self, row: &LatencyRow) {
        if row.probe == PINGS {
            self.pings.push((row.t, row.rtt.map(|rtt| rtt.as_nanos() as f64 / 1e6)));
        }
    }

    fn throughput(&mut self, row: &ThroughputRow) {
        self.arrived.push(*row);
    }

    fn progress(&mut self, now: Time) -> ControlFlow<()> {
        self.reached = self.reached.max(now);
        (self.progress)(now)
    }
}

impl<P: FnMut(Time) -> ControlFlow<()>> RecordSink for Figures<P> {
    fn note(&mut self, key: &str, value: Value) {
        self.notes.insert(key.to_owned(), value);
    }
}

/// Number of the probe that pings over the whole path; those behind it ask routers.
const PINGS: u32 = 0;

/// Slow start and the first full buffer are no state of the line: at least so much is left out.
const SETTLING_NS: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use serde_json::json;
    use weir_core::Duration;
    use weir_scenario::Flow;

    use super::*;
    use crate::TestWords;

    const VECTOR: &str = include_str!("../../../vectors/test-figures.json");

    /// The rows of the vector, as a measurement gives them.
    fn measured(vector: &Value) -> Figures<fn(Time) -> ControlFlow<()>> {
        let mut sink = Figures::new((|_| ControlFlow::Continue(())) as fn(Time) -> _);
        let mut scenario = TestWords::default().plan().unwrap().scenario;
        scenario.phases = serde_json::from_value(vector["phases"].clone()).unwrap();
        scenario.sampling.throughput_ns = vector["interval_ns"].as_u64().unwrap();
        for flow in vector["flows"].as_array().unwrap() {
            let way = if flow["direction"] == "down" { Direction::Down } else { Direction::Up };
            let at = |key: &str| Time::from_nanos(flow[key].as_u64().unwrap());
            scenario.flows.push(Flow::new("f", way, "cubic", (at("start_ns"), at("stop_ns"))));
        }
        for row in vector["latency"].as_array().unwrap() {
            sink.latency(&LatencyRow {
                t: Time::from_nanos(row["t_ns"].as_u64().unwrap()),
                probe: row["probe"].as_u64().unwrap() as u32,
                seq: 0,
                rtt: row["rtt_ns"].as_u64().map(Duration::from_nanos),
                up: None,
                down: None,
                timer_error: Duration::ZERO,
                server: None,
            });
        }
        for row in vector["throughput"].as_array().unwrap() {
            sink.throughput(&ThroughputRow {
                t: Time::from_nanos(row["t_ns"].as_u64().unwrap()),
                flow: row["flow"].as_u64().unwrap() as u32,
                bytes: row["bytes"].as_u64().unwrap(),
                wire_bytes: 0,
            });
        }
        sink.note("scenario", serde_json::to_value(&scenario).unwrap());
        sink.note("ramps", vector["ramps"].clone());
        sink
    }

    #[test]
    fn figures_are_those_of_the_vector() {
        let vector: Value = serde_json::from_str(VECTOR).unwrap();
        let figures = measured(&vector).figures().unwrap();
        let pinged = |pings: &Pinged| {
            json!({
                "sent": pings.sent, "lost": pings.lost, "mean_ms": pings.mean_ms, "median_ms": pings.median_ms,
            })
        };
        let loaded = figures.loaded.iter().map(|one| {
            let of_phase = json!({
                "pings": pinged(&one.pings), "increase_ms": one.increase_ms, "down_mbps": one.down_mbps,
                "up_mbps": one.up_mbps,
            });
            (one.phase.to_owned(), of_phase)
        });
        let found = json!({
            "idle": pinged(&figures.idle),
            "loaded": loaded.collect::<Map<String, Value>>(),
            "down_mbps": figures.down_mbps(),
            "up_mbps": figures.up_mbps(),
            "worst_increase_ms": figures.worst_increase_ms(),
        });
        assert_eq!(found, vector["figures"]);
    }

    #[test]
    fn without_answers_there_are_no_figures() {
        let mut vector: Value = serde_json::from_str(VECTOR).unwrap();
        let rows = vector["latency"].as_array_mut().unwrap();
        rows.retain(|row| row["t_ns"].as_u64().unwrap() < 4_000_000_000);
        assert_eq!(measured(&vector).figures(), None);
    }
}
