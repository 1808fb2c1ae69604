//! A pulse: for a moment little is let through, and a queue of this side's is gone after that.
//!
//! Where a line goes on behind a pause, delays are often longer: the path is, or the line became slower and has a queue. A gap of
//! some milliseconds in what is let through drains a short queue in front of the line, and leaves it in the shaper; no path
//! becomes shorter by it. A rate that is lowered until that shows costs connections packets and, with these, their windows; a gap
//! that is shorter than a round trip does not.

use weir_core::{Duration, Time};

use super::{SideControl, View};
use crate::contract::{Reason, Side, TICK};
use crate::quantities::{BitsPerSecond, Seconds};

/// One pulse of an episode.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pulse {
    /// From and until when little is let through.
    from: Time,
    until: Time,
    /// Share of the rate that is let through meanwhile.
    share: f64,
    /// Excess before.
    excess: Seconds,
}

impl Pulse {
    /// A pulse in which a queue that shows as `excess` drains, in whole ticks, and hardly more: an idle line would tell of a slower one.
    fn new(excess: Seconds, now: Time) -> Self {
        let drained = excess * DRAINED;
        let ticks = (drained / (1.0 - MIN_PULSE_SHARE) / Seconds::from(TICK)).ceil() as u64;
        let length = TICK * ticks.max(1);
        let share = 1.0 - drained / Seconds::from(length);
        Self { from: now, until: now.saturating_add(length), share, excess }
    }

    /// The middle of it.
    fn middle(&self) -> Time {
        self.from.saturating_add(Duration::from_nanos(self.until.since(self.from).as_nanos() / 2))
    }
}

impl SideControl {
    /// Begins a pulse if `excess` may be that of a longer path, and the episode has not had many of them.
    pub(super) fn begin_pulse(&mut self, excess: Seconds, view: &View<'_>) {
        let is_known = self.episode.capacity.is_some();
        let samples = view.delays.newest(STANDS_FOR, view.now).count();
        if is_known
            && samples >= MIN_SAMPLES_BEFORE
            && excess <= MAX_PULSED
            && self.episode.pulses < MAX_PULSES
        {
            self.episode.pulses += 1;
            self.episode.pulse = Some(Pulse::new(excess, view.now));
        }
    }

    /// Whether little is let through for a pulse at this moment.
    pub(super) fn is_pulsing(&self, now: Time) -> bool {
        self.episode.pulse.is_some_and(|pulse| now < pulse.until)
    }

    /// The rate at this moment if it is `rate` without a pulse.
    pub(super) fn pulsed(&self, rate: BitsPerSecond, now: Time) -> BitsPerSecond {
        match self.episode.pulse.filter(|_| self.is_pulsing(now)) {
            Some(pulse) => self.bounded(rate * pulse.share),
            None => rate,
        }
    }

    /// Whether the excess has stood since a lowered rate shows in it, and is not tried by anything yet.
    pub(super) fn stands_lowered(&self, view: &View<'_>) -> bool {
        let shows = Seconds::from(STANDS_FOR) + view.feedback * 2.0;
        if self.episode.pulse.is_some()
            || self.episode.tests > 0
            || self.episode.trial.failed > 0
            || view.now.since(self.episode.lowered) < shows.to_duration()
        {
            return false;
        }
        let samples = view.delays.newest(STANDS_FOR, view.now).map(|sample| sample.of(self.side));
        range(samples).is_some_and(|(least, most)| self.is_unmoved(least, most, view))
    }

    /// Ends the pulse under way once its effect is known; the verdict if the excess is no queue.
    pub(super) fn judge_pulse(&mut self, view: &View<'_>) -> Option<(Reason, f64)> {
        let pulse = self.episode.pulse?;
        // Behind a line the gap shows a round trip later, and what waited for that line takes its time too; in front of it the answer
        // to a probe does.
        let trip = view.feedback + pulse.excess;
        let (lag, answer) = match self.side {
            Side::Egress => (Seconds::ZERO, trip),
            Side::Ingress => (trip, Seconds::ZERO),
        };
        let from = pulse.middle().saturating_add(lag.to_duration());
        let to = pulse.until.saturating_add((lag + SHOWS).to_duration());
        if view.now < to.saturating_add(answer.to_duration()) {
            return None;
        }
        self.episode.pulse = None;
        self.episode.lowered = pulse.until;
        let at = self.seen_at();
        let samples = view.delays.newest(LOOK_BACK, view.now);
        let shown = samples.filter(|sample| (from..=to).contains(&at(sample)));
        let shown: Vec<Seconds> = shown.map(|sample| sample.of(self.side)).collect();
        let (least, most) = range(shown.iter().copied()).filter(|_| shown.len() >= MIN_SAMPLES)?;
        let is_left = least >= pulse.excess * STAYS || least > view.threshold;
        if !is_left || most > pulse.excess / STAYS {
            return None;
        }
        if self.is_disturbed() {
            self.episode.trial.foreign = self.episode.trial.foreign.max(most);
            return Some(self.dismiss(view));
        }
        Some(self.reroute(view))
    }
}

/// The least and the most of some excesses; `None` of none.
pub(super) fn range(mut excesses: impl Iterator<Item = Seconds>) -> Option<(Seconds, Seconds)> {
    let first = excesses.next()?;
    Some(excesses.fold((first, first), |(least, most), one| (least.min(one), most.max(one))))
}

/// Share of the rate that is let through in a pulse at least: enough that acknowledgements go on.
const MIN_PULSE_SHARE: f64 = 0.2;
/// Multiple of a queue for which a pulse leaves room.
const DRAINED: f64 = 1.2;
/// Excess up to which a pulse tells: for a longer one the gap would be a pause of its own.
const MAX_PULSED: Seconds = Seconds(0.04);
/// Pulses of one episode at most.
const MAX_PULSES: u32 = 3;
/// Time for which an excess is to stand before the next pulse.
const STANDS_FOR: Duration = Duration::from_millis(100);
/// Share of the excess that a longer path leaves at least.
const STAYS: f64 = 0.7;
/// Samples in that time that make out where it stood: as three sources give that are all there.
const MIN_SAMPLES_BEFORE: usize = 3;
/// Samples that are to show it.
const MIN_SAMPLES: usize = 2;
/// Time for which the gap shows behind its end: two ticks, in which a queue does not come back.
const SHOWS: Seconds = Seconds(0.04);
/// Time for which samples are looked back at.
const LOOK_BACK: Duration = Duration::from_secs(1);
