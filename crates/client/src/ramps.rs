//! Ramps: loads beyond the scenario's, as many in each direction as fill the line.

use serde_json::{Value, json};
use weir_core::{Duration, Time};
use weir_scenario::{Direction, Flow, Phase};
use weir_speedtest::{Ramp, RampSettings};

use crate::ClientError;
use crate::flow_table::MACHINES_OWN;

/// Phases in which flows are added until the line is full.
#[derive(Clone, Debug)]
pub struct RampPlan {
    /// The phases, in order. A direction that was measured before begins with as many flows as it took.
    pub phases: Vec<RampPhase>,
    /// Flows at most in each direction.
    pub most: u32,
    /// Time between two looks.
    pub interval_ns: u64,
    /// Congestion control of all flows; each machine's default if `None`.
    pub congestion: Option<String>,
}

/// A phase of a [`RampPlan`].
#[derive(Clone, Debug)]
pub struct RampPhase {
    /// The phase's name.
    pub phase: String,
    /// Whether there are downloads.
    pub down: bool,
    /// Whether there are uploads.
    pub up: bool,
}

/// The ramps of a measurement, one phase after the other.
pub(crate) struct Ramps<'p> {
    /// `None`: the measurement has none.
    plan: Option<&'p RampPlan>,
    /// Number of phases whose flows were asked for already.
    begun: usize,
    /// The ramp of each direction in the present phase.
    present: [Option<DirectionRamp>; 2],
    /// How many flows each direction took, once that is known.
    took: [Option<u32>; 2],
    /// Outcomes of the ramps that are over, as the record has them.
    outcomes: Vec<Value>,
}

/// State of the ramp by which one direction is filled with flows.
struct DirectionRamp {
    phase: String,
    ramp: Ramp,
    window: (Time, Time),
    next_look: Time,
    /// Segments that arrived since the last look. In order or not: bytes in order come in leaps, a gap's
    /// and all that waited behind it.
    segments: u64,
}

impl RampPhase {
    const fn wants(&self, direction: Direction) -> bool {
        match direction {
            Direction::Down => self.down,
            Direction::Up => self.up,
        }
    }
}

impl<'p> Ramps<'p> {
    pub const fn new(plan: Option<&'p RampPlan>) -> Self {
        Self { plan, begun: 0, present: [None, None], took: [None, None], outcomes: Vec::new() }
    }

    /// Whether the measurement has any, as the test of a line does.
    pub const fn are_planned(&self) -> bool {
        self.plan.is_some()
    }

    /// Begins the phase among `phases` that starts within `lead` of `now`, and adds flows where those before brought
    /// more: the flows that are to run beside those there are.
    ///
    /// # Errors
    /// If there is no phase of a name in the plan.
    pub fn advance(
        &mut self,
        now: Time,
        lead: Duration,
        phases: &[Phase],
    ) -> Result<Vec<Flow>, ClientError> {
        let Some(plan) = self.plan else { return Ok(Vec::new()) };
        let mut flows = Vec::new();
        if let Some(phase) = plan.phases.get(self.begun) {
            let span = phases.iter().find(|span| span.name == phase.phase);
            let Some(span) = span else {
                return Err(ClientError::new(format!("there is no phase `{}`", phase.phase)));
            };
            let window = (Time::from_nanos(span.start_ns), Time::from_nanos(span.end_ns));
            if now + lead >= window.0 {
                self.begun += 1;
                self.settle();
                for direction in DOWNLOADS_FIRST {
                    if phase.wants(direction) {
                        flows.extend(self.begin(plan, direction, &phase.phase, window));
                    }
                }
            }
        }
        for direction in DOWNLOADS_FIRST {
            flows.extend(self.look(plan, direction, now));
        }
        Ok(flows)
    }

    /// Counts `segments` that arrived at the end of a direction.
    pub const fn arrived(&mut self, direction: Direction, segments: u64) {
        if let Some(state) = &mut self.present[direction as usize] {
            state.segments += segments;
        }
    }

    /// Ends the ramps of the present phase, and keeps what they came to.
    pub fn settle(&mut self) {
        let interval_ns = self.plan.map_or(0, |plan| plan.interval_ns);
        for direction in DOWNLOADS_FIRST {
            let Some(state) = self.present[direction as usize].take() else { continue };
            self.took[direction as usize] = Some(state.ramp.flows());
            let full = state
                .ramp
                .full_after()
                .map(|looks| state.window.0.as_nanos() + u64::from(looks) * interval_ns);
            self.outcomes.push(json!({
                "phase": state.phase,
                "direction": direction.word(),
                "flows": state.ramp.flows(),
                "full_ns": full,
            }));
        }
    }

    /// Outcomes of all ramps that are over, as the record has them.
    pub fn into_outcomes(self) -> Value {
        Value::Array(self.outcomes)
    }

    /// The first flows of a direction in a phase.
    fn begin(
        &mut self,
        plan: &RampPlan,
        direction: Direction,
        phase: &str,
        window: (Time, Time),
    ) -> Vec<Flow> {
        let known = self.took[direction as usize];
        let usual = RampSettings { most: plan.most.max(1), ..RampSettings::default() };
        let settings = RampSettings { first: known.unwrap_or(usual.first), ..usual };
        let ramp = Ramp::new(settings);
        if known.is_none() {
            let next_look = window.0 + Duration::from_nanos(plan.interval_ns);
            let phase = phase.to_owned();
            self.present[direction as usize] =
                Some(DirectionRamp { phase, ramp, window, next_look, segments: 0 });
        }
        (0..ramp.flows()).map(|number| plan.flow(direction, phase, number, window)).collect()
    }

    /// The flows that come on top in a direction, if it is time to look and the last ones brought more.
    fn look(&mut self, plan: &RampPlan, direction: Direction, now: Time) -> Vec<Flow> {
        let Some(state) = &mut self.present[direction as usize] else { return Vec::new() };
        let stop = state.window.1;
        if now < state.next_look || now >= stop {
            return Vec::new();
        }
        state.next_look = now + Duration::from_nanos(plan.interval_ns);
        let added = state.ramp.interval(std::mem::take(&mut state.segments));
        let running = state.ramp.flows() - added;
        (running..running + added)
            .map(|number| plan.flow(direction, &state.phase, number, (now, stop)))
            .collect()
    }
}

impl RampPlan {
    fn flow(&self, direction: Direction, phase: &str, number: u32, span: (Time, Time)) -> Flow {
        let transfer = direction.transfer();
        let name = if phase == transfer {
            format!("{transfer} {}", number + 1)
        } else {
            format!("{transfer} {} ({phase})", number + 1)
        };
        let congestion = self.congestion.as_deref().unwrap_or(MACHINES_OWN);
        Flow::new(name, direction, congestion, span)
    }
}

const DOWNLOADS_FIRST: [Direction; 2] = [Direction::Down, Direction::Up];

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(phases: Vec<RampPhase>) -> RampPlan {
        RampPlan { phases, most: 8, interval_ns: 1_000_000_000, congestion: None }
    }

    fn phase(name: &str, down: bool, up: bool) -> RampPhase {
        RampPhase { phase: name.into(), down, up }
    }

    fn spans() -> Vec<Phase> {
        let span = |name: &str, start: u64| Phase {
            name: name.into(),
            start_ns: start * 1_000_000_000,
            end_ns: (start + 10) * 1_000_000_000,
        };
        vec![span("download", 1), span("both", 11)]
    }

    fn names(flows: &[Flow]) -> Vec<&str> {
        flows.iter().map(|flow| flow.name.as_str()).collect()
    }

    fn at(seconds: u64) -> Time {
        Time::from_millis(seconds * 1_000)
    }

    const LEAD: Duration = Duration::from_millis(500);

    #[test]
    fn flows_are_added_while_segments_grow_and_the_next_phase_begins_with_as_many() {
        let plan = plan(vec![phase("download", true, false), phase("both", true, true)]);
        let mut ramps = Ramps::new(Some(&plan));
        let advance = |of: &mut Ramps<'_>, t| of.advance(t, LEAD, &spans()).unwrap();
        assert!(advance(&mut ramps, Time::from_millis(499)).is_empty());
        let flows = advance(&mut ramps, Time::from_millis(500));
        assert_eq!(names(&flows), ["download 1", "download 2"]);
        assert_eq!((flows[0].start(), flows[0].stop()), (at(1), at(11)));
        assert_eq!(flows[0].tcp.congestion_control, MACHINES_OWN);
        ramps.arrived(Direction::Down, 1_000);
        ramps.arrived(Direction::Up, 1_000_000);
        assert!(advance(&mut ramps, Time::from_millis(1_999)).is_empty());
        let more = advance(&mut ramps, at(2));
        assert_eq!(names(&more), ["download 3", "download 4"]);
        assert_eq!((more[0].start(), more[0].stop()), (at(2), at(11)));
        for second in [3, 4] {
            ramps.arrived(Direction::Down, 1_000);
            assert!(advance(&mut ramps, at(second)).is_empty());
        }
        let both = advance(&mut ramps, Time::from_millis(10_500));
        let down = (1..=4).map(|number| format!("download {number} (both)"));
        let up = (1..=2).map(|number| format!("upload {number} (both)"));
        assert_eq!(names(&both), down.chain(up).collect::<Vec<_>>());
        ramps.settle();
        let full = json!({
            "phase": "download", "direction": "down", "flows": 4, "full_ns": 4_000_000_000u64,
        });
        let open = json!({"phase": "both", "direction": "up", "flows": 2, "full_ns": null});
        assert_eq!(ramps.into_outcomes(), json!([full, open]));
    }

    #[test]
    fn a_phase_that_is_not_there_is_told() {
        let plan = plan(vec![phase("upload", false, true)]);
        let error = Ramps::new(Some(&plan)).advance(at(0), LEAD, &spans()).unwrap_err();
        assert_eq!(error.to_string(), "there is no phase `upload`");
    }

    #[test]
    fn without_a_plan_there_are_no_flows() {
        let mut ramps = Ramps::new(None);
        assert!(ramps.advance(at(2), LEAD, &spans()).unwrap().is_empty());
        assert_eq!(ramps.into_outcomes(), json!([]));
    }
}
