//! The rate on a path whose delays vary for other reasons than this side's queue.
//!
//! There a queue shows only once it is longer than what is let stand, so that the rate is raised no further than what the line
//! was proven to carry.

use weir_core::Duration;

use super::probing::{MIN_STEP, STEP_SEEN};
use super::{DISTURBED, SideControl, View};
use crate::capacity;
use crate::contract::State;
use crate::quantities::Seconds;

impl SideControl {
    /// Whether the rate limits the traffic now and then, where a path that varies is the limit otherwise.
    pub(super) fn is_used_at_times(&self) -> bool {
        self.is_disturbed() && self.history.held_back(USED_OVER) > USED_AT_TIMES
    }

    /// Whether a step of probing that began `took` ago is proven before its time is over, and may be followed by another.
    pub(super) fn is_proven_early(&self, took: Duration, view: &View<'_>) -> bool {
        let is_below_max = self.max.is_none_or(|max| self.rate.is_some_and(|rate| rate < max));
        let is_seen = took >= (view.feedback + STEP_SEEN).max(MIN_STEP).to_duration();
        self.is_disturbed() && self.is_proven() && is_seen && is_below_max
    }

    /// Whether the line is known to carry half of what the present step added.
    pub(super) fn is_proven(&self) -> bool {
        let least = self.rate.map(|rate| rate.midpoint(self.step.before));
        self.line.capacity >= least
    }

    /// Raises the capacity to what the line must have carried, where delays vary.
    pub(super) fn prove(&mut self, view: &View<'_>) {
        let Some(known) = self.line.capacity.filter(|_| self.is_disturbed()) else { return };
        // A baseline that was raised lately may be above the shortest path.
        let raised = if self.was_rerouted(view.now) {
            self.line.foreign.max(self.raised)
        } else {
            Seconds::ZERO
        };
        let error = self.packet_time() * 2.0 + raised;
        let step = match self.state {
            State::Probing => view.now.since(self.step.began),
            _ => Duration::ZERO,
        };
        let sure = capacity::at_least(self.side, view.delays, &self.history, error, step, view.now);
        if let Some(sure) = sure {
            self.line.capacity = Some(known.max(sure.min(self.rate.unwrap_or(known))));
        }
    }

    /// Takes in an excess that goes while the rate is held: it did not go for the rate's sake, so that it is no queue when it returns.
    pub(super) fn note_return(&mut self, view: &View<'_>) {
        let settled = (DISTURBED + view.feedback * 2.0).to_duration();
        if !self.is_disturbed() || view.now.since(self.entered) < settled {
            self.crest = Seconds::ZERO;
            return;
        }
        let Some(excess) = view.excess else { return };
        if self.crest > view.clear() && excess < self.crest * GONE_SHARE {
            self.line.keep_foreign(self.crest);
            self.crest = excess;
        }
        self.crest = self.crest.max(excess);
    }

    /// Time after which the queue that a step makes shows, if the line is no faster.
    pub(super) fn shows(&self, view: &View<'_>) -> Seconds {
        let step = self.step_percent() / 100.0;
        match self.is_disturbed() {
            // What is let stand is filled once; twice as much again tells a faster line from a slower one.
            true => view.threshold * 3.0 / step,
            // A step of a tenth beyond the line makes a queue that shows in this time.
            false => view.threshold / step.max(0.1),
        }
    }
}

/// Time over which a rate is used now and then, and the share of the ticks at which packets wait for it.
const USED_OVER: Duration = Duration::from_secs(1);
const USED_AT_TIMES: f64 = 0.2;
/// Share of an excess below which it has gone: less is the turn of what varies by little.
const GONE_SHARE: f64 = 0.5;
