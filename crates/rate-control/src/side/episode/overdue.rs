//! Answers that stay out: a line that became many times slower shows by them before it shows in any that come.

use weir_core::Duration;

use super::{MIN_DRAIN_SHARE, UNMOVED_SPAN};
use crate::capacity;
use crate::contract::{Reason, Side, State, TICK};
use crate::delays::Overdue;
use crate::quantities::{BitsPerSecond, Seconds};
use crate::side::probing::MIN_STEP;
use crate::side::{STEADY_SPREAD, SideControl, View};

impl SideControl {
    /// Lowers the rate because answers stay out: the queue is at least as long as they are late.
    ///
    /// Answers that come meanwhile, each later than the one before, tell what the line carries; until one does
    /// the answer that is awaited tells what it carries at most.
    pub(in crate::side) fn on_overdue(
        &mut self,
        overdue: Overdue,
        view: &View<'_>,
    ) -> (Reason, f64) {
        if self.state != State::BackingOff {
            self.begin_episode(view.now);
            // What is stuck may be stuck on the other side.
            self.episode.certain = view.alone;
        }
        self.note_told(view);
        self.episode.pulse = None;
        self.episode.peak = self.episode.peak.max(overdue.by);
        self.episode.tested = view.now;
        if self.drains(overdue, view) && self.line.capacity.is_some() {
            if self.is_own() {
                self.measure_queue(view);
            }
            if let Some(rate) = self.rate_while_overdue(overdue, view) {
                self.rate = Some(rate);
                return (Reason::Overdue, overdue.by.as_millis());
            }
        }
        if view.now.since(self.episode.halved) >= view.feedback.max(MIN_STEP).to_duration() {
            self.episode.halved = view.now;
            let rate = self.rate.map_or(self.episode.load, |rate| rate.min(self.episode.load));
            let share = if self.is_own() { MIN_SHARE } else { MIN_SHARE_BESIDE_OTHERS };
            let least = self.line.capacity.unwrap_or(rate) * share;
            // What answers told meanwhile may have lowered it further.
            let halved = (rate / 2.0).max(least).min(self.rate.unwrap_or(rate));
            self.rate = Some(self.bounded(halved));
        }
        (Reason::Overdue, overdue.by.as_millis())
    }

    /// Whether answers that are out tell more than those that come. They do not where these are as late, and hardly move though the
    /// rate was lowered for so long that it must show: the path became longer by more than the time in which so many probes leave.
    pub(in crate::side) fn is_news(&self, overdue: &Overdue, view: &View<'_>) -> bool {
        let lowered = view.now.since(self.episode.began);
        let shows = overdue.by + view.feedback * 2.0 + Seconds::from(UNMOVED_SPAN);
        let told = view.total + view.threshold + Seconds::from(TICK);
        let is_told = self.state == State::BackingOff
            && lowered >= shows.to_duration()
            && overdue.by <= told
            && self.is_unmoved(UNMOVED_SPAN, view);
        self.state != State::Idle && !is_told
    }

    /// Whether the rate is lowered until the queue drains that answers wait in: if it is this side's, or if it is long, for a while
    /// whoever made it, as how it drains tells whose it is.
    fn drains(&mut self, overdue: Overdue, view: &View<'_>) -> bool {
        if let Some(own) = self.is_known_own() {
            return own;
        }
        if self.episode.certain || overdue.by < DOUBTED {
            return self.episode.certain;
        }
        let since = *self.episode.doubted.get_or_insert(view.now);
        let drains = view.now.since(since) < DRAINS_IN_DOUBT;
        if !drains && let Some((capacity, rate)) = self.line.capacity.zip(self.rate) {
            // It told nothing, and may go on for as long as the other side's load.
            self.rate = Some(self.bounded(rate.max(capacity * MIN_SHARE_BESIDE_OTHERS)));
        }
        drains
    }

    /// The rate at which a queue surely drains that answers wait in; `None` if they tell nothing.
    fn rate_while_overdue(&mut self, overdue: Overdue, view: &View<'_>) -> Option<BitsPerSecond> {
        let most = capacity::at_most(self.side, view.delays, &self.history, overdue, view.now)?;
        let known = self.line.capacity?;
        // On egress one that is out for a shorter time than another tells less, not that the line became faster. What arrives on
        // ingress is what was let through.
        let most = match self.side {
            Side::Egress => most.min(*self.episode.most.get_or_insert(most)),
            Side::Ingress => most,
        };
        self.episode.most = Some(most);
        // A line that varies pauses now and then, and is as fast as before when it goes on.
        let share = match self.line.spread() > STEADY_SPREAD {
            true => MIN_SHARE,
            false => MIN_SHARE_OF_STEADY,
        };
        Some(self.bounded((known.min(most) * MIN_DRAIN_SHARE).max(known * share)))
    }
}

/// Share of the capacity below which the rate is not halved for overdue answers, if this side surely is the
/// reason.
const MIN_SHARE: f64 = 0.1;
/// Share of a steady line's capacity that is let through at least while answers are overdue.
///
/// A fifth of a line that became fifty times slower is 1/250 of it; with less, a moment without answers would
/// take the clock from TCP.
const MIN_SHARE_OF_STEADY: f64 = 0.01;
/// Excess of an answer that is out from which on both sides drain, if either may be the reason.
const DOUBTED: Seconds = Seconds(0.2);
/// Time for which they do: as long as a silence is no stall.
const DRAINS_IN_DOUBT: Duration = Duration::from_secs(3);
/// Share of the capacity below which the rate is not halved for overdue answers, if the other side may be the
/// reason.
const MIN_SHARE_BESIDE_OTHERS: f64 = 0.5;
