//! Probing: the rate is raised step by step until a queue shows, so that a line that became faster is found.

use weir_core::{Duration, Time};

use super::{STEADY_SPREAD, SideControl, View};
use crate::contract::{Reason, State};
use crate::quantities::{BitsPerSecond, Seconds};

/// A step of probing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    number: u32,
    pub began: Time,
    /// The rate before it.
    pub before: BitsPerSecond,
}

impl Default for Step {
    /// No step yet.
    fn default() -> Self {
        Self { number: 0, began: Time::ZERO, before: BitsPerSecond::ZERO }
    }
}

impl SideControl {
    /// Time for which a rate is held: longer where the capacity is the same time and again.
    pub(super) fn hold_time(&self) -> Duration {
        if self.is_disturbed() {
            let times = if self.line.confirmed { self.mode.confirmed_holds } else { 1.0 };
            return (self.mode.hold * times).to_duration();
        }
        let spread = self.line.spread().max(self.line.last_change().unwrap_or(1.0));
        (self.mode.hold / (1.0 + HOLD_PER_SPREAD * spread)).max(MIN_HOLD).to_duration()
    }

    /// Begins to probe with the step that fits the line.
    pub(super) fn begin_probing(&mut self, now: Time) -> (Reason, f64) {
        self.enter(State::Probing, now);
        self.step.number = self.first_step();
        self.raise(now)
    }

    /// Raises the rate step by step until a queue shows or the traffic does not use it.
    pub(super) fn probing(&mut self, view: &View<'_>) -> (Reason, f64) {
        if let Some(excess) = self.queue(view) {
            return self.back_off(excess, view);
        }
        self.line.forget(view.elapsed);
        let length = (view.feedback + STEP_SEEN).max(MIN_STEP).max(self.shows(view)).to_duration();
        let took = view.now.since(self.step.began);
        self.prove(view);
        if self.is_proven_early(took, view) {
            self.line.confirmed = false;
            self.step.number += 1;
            return self.raise(view.now);
        }
        if took < length || view.excess.is_none() {
            return (Reason::Probe, self.step_percent());
        }
        let rate = self.rate.expect("only a known rate is raised");
        let sure = self.carried(took, view);
        self.line.capacity = self.line.capacity.map(|capacity| capacity.max(sure.min(rate)));
        // Where a queue may stand unseen, a step counts only if it proved something.
        let is_blind = self.is_disturbed() && !self.is_proven();
        self.line.confirmed |= is_blind && self.step.number <= self.mode.first_step_beside_foreign;
        if is_blind || !self.is_used(took) || self.max.is_some_and(|max| rate >= max) {
            let share = self.history.load(took) / rate * 100.0;
            self.tried = view.now;
            self.rate = Some(self.rate_if_unused(rate, self.history.load(took), view));
            self.enter(State::Loaded, view.now);
            return (Reason::Unused, share);
        }
        self.step.number += 1;
        self.raise(view.now)
    }

    /// The rate after a step to `rate` of which no more than `load` was used: with some room for that to grow.
    fn rate_if_unused(
        &self,
        rate: BitsPerSecond,
        load: BitsPerSecond,
        view: &View<'_>,
    ) -> BitsPerSecond {
        let held = self.held(view.probes);
        if self.is_disturbed() {
            return rate.min(held);
        }
        if self.is_hardly_known(view) {
            return rate.min(held).max(self.at_most_max(load * UNCONFIRMED_ROOM_FACTOR));
        }
        rate.min(held.max(load * ROOM_FACTOR))
    }

    /// Whether what the line carries was measured but once, and may be far too little: over a long path a connection grows slowly,
    /// and seldom confirms it.
    fn is_hardly_known(&self, view: &View<'_>) -> bool {
        !self.line.confirmed && !self.was_rerouted(view.now) && view.feedback >= LONG_PATH
    }

    /// What the line surely carried in a step of probing that made no queue above the threshold.
    fn carried(&self, took: Duration, view: &View<'_>) -> BitsPerSecond {
        // Less a packet at each end: of several measurements the luckiest would stay.
        let error = self.packet_time() * 2.0 + self.line.foreign;
        let (rate, error) = match self.measure(view, took.max(self.load_span())) {
            Some(measured) => (measured.rate, error),
            // Where delays vary, the queue that ends a probing may never be believed, and over a long path it may never come: then
            // what crossed without one was carried, but for what may wait unseen.
            None if self.is_disturbed() || self.is_hardly_known(view) => {
                (self.history.load(took), error + view.threshold)
            }
            None => return BitsPerSecond::ZERO,
        };
        rate * (1.0 - error / Seconds::from(took)).max(0.0)
    }

    /// The step to begin with: small ones find nothing where the capacity varies or was much higher lately.
    fn first_step(&self) -> u32 {
        let base = self.line.base.unwrap_or_default();
        let far_below = |capacity| capacity < base * FAR_BELOW_SHARE;
        if !self.line.confirmed && self.line.capacity.is_some_and(far_below) {
            return MAX_FIRST_STEP;
        }
        let least = if self.is_disturbed() { self.mode.first_step_beside_foreign } else { 0 };
        ((self.line.spread() / STEADY_SPREAD) as u32).clamp(least, MAX_FIRST_STEP)
    }

    /// Raises the rate by the present step.
    fn raise(&mut self, now: Time) -> (Reason, f64) {
        self.step.began = now;
        let rate = self.rate.expect("only a known rate is raised");
        self.step.before = rate;
        self.rate = Some(self.at_most_max(rate * (1.0 + self.step_percent() / 100.0)));
        (Reason::Probe, self.step_percent())
    }

    pub(super) fn step_percent(&self) -> f64 {
        // Beyond the fifth step only a line that is known to vary is taken at a run.
        let most = STEPS_PERCENT.len() - if self.line.spread() > STEADY_SPREAD { 1 } else { 2 };
        STEPS_PERCENT[(self.step.number as usize).min(most)]
    }
}

/// Steps of probing in percent: each about twice the one before, so that the one that overshoots the line
/// overshoots little on a steady line, and four times the line is reached in nine.
const STEPS_PERCENT: [f64; 6] = [2.5, 5.0, 10.0, 20.0, 25.0, 50.0];
/// Part of a step whose delays must be seen before the next: three probes at 20 ms.
pub(super) const STEP_SEEN: Seconds = Seconds(0.06);
/// Time that a step lasts at least: five ticks.
pub(super) const MIN_STEP: Seconds = Seconds(0.1);
/// Number of the step that probing begins with at most, counted from zero: a raise of 20 %.
const MAX_FIRST_STEP: u32 = 3;
/// Divisor of the time for which a rate is held, per spread: 5 % halve it.
const HOLD_PER_SPREAD: f64 = 20.0;
/// Time for which a rate is held at least: twice the shortest step.
const MIN_HOLD: Seconds = Seconds(0.2);
/// Factor by which the load may grow where a higher rate was not used: a step of probing.
const ROOM_FACTOR: f64 = 1.25;
/// The same over a long path, on a line of which no queue has confirmed what it carries.
const UNCONFIRMED_ROOM_FACTOR: f64 = 2.0;
/// Feedback delay from which on a path is long: a connection that gains a packet in each round trip takes seconds for a step.
const LONG_PATH: Seconds = Seconds(0.08);
/// Share of the usual capacity below which the present one may be a passing weakness.
const FAR_BELOW_SHARE: f64 = 0.6;
