//! What an episode that is over tells of what the line carries.

use weir_core::Duration;

use super::LEAD_IN;
use crate::contract::{MIN_RATE, Reason, Side, State, TICK};
use crate::quantities::{BitsPerSecond, Seconds};
use crate::side::trial::LOST_WITHIN;
use crate::side::{MAX_SLACK, PRESSING_SHARE, STEADY_SPREAD, SideControl, View};

impl SideControl {
    /// Ends the episode: what the line carried from its beginning to its end is its capacity.
    pub(super) fn clear(&mut self, view: &View<'_>) -> (Reason, f64) {
        self.episode.ended = view.now;
        let took = view.now.since(self.episode.began);
        // A burst, as when connections begin, tells nothing of a line that nothing else is known of; nor does what seemed to fill
        // a line from the start, if no baseline was made of it.
        let tells_nothing = took < FIRST_EPISODE || (self.episode.from_start && !self.episode.sank);
        if self.episode.capacity.is_none() && tells_nothing && !self.episode.stood {
            (self.line.capacity, self.rate) = (None, self.episode.rate);
        } else {
            let found = self.measure(view, took + LEAD_IN).map(|found| found.rate);
            let found = found.or(self.line.capacity).unwrap_or_else(|| self.load());
            if self.is_disturbed() && self.line.capacity.is_some() {
                self.learn_beside_foreign();
            } else {
                self.learn_from_episode(found, took.into(), view);
            }
            self.tried = view.now;
            self.rate = Some(self.held(view.probes));
        }
        self.enter(State::Loaded, view.now);
        (Reason::Clear, took.as_millis_f64())
    }

    /// Learns from an episode on a path whose delays vary: what it carried when delays were high may be what it was
    /// given, so that only what was measured before the rate fell, or is beyond doubt, counts.
    fn learn_beside_foreign(&mut self) {
        if let Some((before, (found, took))) = self.episode.capacity.zip(self.episode.first)
            && !self.episode.trial.proven
        {
            self.line.capacity = Some(self.believed(before, found, took));
        }
        self.line.base = self.line.base.or(self.line.capacity);
    }

    /// Learns from an episode of length `took`, in which the line carried `found`.
    fn learn_from_episode(&mut self, found: BitsPerSecond, took: Seconds, view: &View<'_>) {
        if self.episode.capacity.is_some() && self.went_by_itself(took, view) {
            self.line.capacity = self.episode.capacity;
            self.line.note_false_alarm(self.episode.peak.min(MAX_SLACK));
            self.line.note_change(0.0);
            return;
        }
        // On ingress a queue of its own is one that more comes of than is let through, or that goes with a gap in that.
        let is_own = (took > view.feedback && self.came_beyond_rate(found))
            || (self.side == Side::Ingress && self.pulse_shows(view));
        if is_own {
            // It came though the line carried all that was let through.
            self.line.caution = if self.episode.wanted { self.line.caution } else { 1.0 };
        } else if self.episode.peak <= MAX_SLACK
            && self.episode.rate.is_some_and(|rate| found >= rate * CARRIED_SHARE)
        {
            // It carried all that it was given: that was no queue for want of capacity.
            self.line.note_false_alarm(self.episode.peak);
        }
        let after = self.capacity_after(found, took, view);
        self.line.capacity = Some(after);
        if let Some(before) = self.episode.capacity {
            // A packet more or less at each end is no change.
            let chance = STEADY_CHANGE + self.packet_time() * 2.0 / took;
            self.line.note_change((((after - before) / before).abs() - chance).clamp(0.0, 1.0));
            self.line.confirmed |= self.episode.wanted && is_same_line(found, before);
        }
        self.line.base.get_or_insert(after);
    }

    /// Whether the excess of an episode of length `took` went before a lower rate can show, and there is no other reason for it than
    /// that it came by itself: neither a line that varies, nor a short buffer that is overrun, nor, where the load uses the rate, a
    /// step of probing or the other side.
    fn went_by_itself(&self, took: Seconds, view: &View<'_>) -> bool {
        let presses =
            self.episode.rate.is_some_and(|rate| self.episode.load >= rate * PRESSING_SHARE);
        took + Seconds::from(TICK) < view.feedback
            && !self.line.varied()
            && view.delays.lost_within(LOST_WITHIN, view.now) == 0
            && (!presses || (view.alone && !self.episode.wanted))
    }

    /// Whether what came in an episode, `found`, is nearer to what the line carries than to what was let through.
    ///
    /// On ingress nothing but a queue makes more come than is let through for longer than that takes to show.
    fn came_beyond_rate(&self, found: BitsPerSecond) -> bool {
        let between = 1.0 + (1.0 - self.mode.share) / 2.0;
        self.side == Side::Ingress && self.episode.rate.is_some_and(|rate| found > rate * between)
    }

    /// The capacity after an episode of length `took`, in which the line carried `found`.
    fn capacity_after(
        &self,
        found: BitsPerSecond,
        took: Seconds,
        view: &View<'_>,
    ) -> BitsPerSecond {
        let Some(before) = self.episode.capacity else { return found.max(MIN_RATE.into()) };
        if !self.is_own() {
            return before;
        }
        // A line that carries more than was let through had no queue of this side's: what fell was the other's.
        let found = match self.side {
            Side::Egress if !view.alone => {
                found.min(self.episode.rate.map_or(before, |rate| rate.max(before)))
            }
            _ => found,
        };
        if self.episode.wanted && is_same_line(found, before) {
            return before.midpoint(found);
        }
        let sure = (1.0 - self.packet_time() * 2.0 / took).max(0.0);
        // A line that varies and pauses for a moment is not slower: short episodes count for less.
        let long = match self.line.spread() > STEADY_SPREAD {
            true => (took / LONG_EPISODE).min(1.0),
            false => 1.0,
        };
        (before + (found - before) * sure * long).max(MIN_RATE.into())
    }
}

/// Whether two measurements differ by no more than those of one line do.
fn is_same_line(found: BitsPerSecond, before: BitsPerSecond) -> bool {
    (found / before - 1.0).abs() < SAME_LINE_SHARE
}

/// Share by which measurements of one line differ at most: a few packets more or less in 200 ms do.
const SAME_LINE_SHARE: f64 = 0.1;
/// Least length of the first queue of a line: a slow start is over after some round trips.
const FIRST_EPISODE: Duration = Duration::from_millis(100);
/// Length of an episode after which what a line carried is what it carries.
const LONG_EPISODE: Seconds = Seconds(0.3);
/// Share by which measurements of a steady line differ.
const STEADY_CHANGE: f64 = 0.04;
/// A line that carried this share of the load has no want of capacity.
const CARRIED_SHARE: f64 = 0.985;
