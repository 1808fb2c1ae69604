//! A pulse: for a moment little is let through, and a queue of this side's is gone after that.
//!
//! Behind a pause of the line delays may be longer since the path is, as a satellite's, or since the line became slower and has a
//! queue; and so may an excess that stands although the rate was lowered. A gap of some milliseconds in what is let through drains a
//! short queue in front of the line, and leaves it in the shaper; no path becomes shorter by it. A rate that is lowered until that
//! shows costs connections packets and, with these, their windows; a gap that is shorter than a round trip mostly does not.

use weir_core::{Duration, Time};

use super::trial::LOST_WITHIN;
use super::{SideControl, View};
use crate::contract::{Reason, Side, State, TICK};
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

    /// A pulse in which as little is let through as may be: a line that carries less than is known drains, too.
    pub fn deep(excess: Seconds, now: Time) -> Self {
        Self { share: MIN_PULSE_SHARE, ..Self::new(excess, now) }
    }

    /// Time that it takes.
    fn length(&self) -> Duration {
        self.until.since(self.from)
    }
}

impl SideControl {
    /// Begins a pulse if `excess` may be that of a longer path behind a pause.
    pub(super) fn begin_pulse(&mut self, excess: Seconds, view: &View<'_>) {
        if self.follows_pause(view) {
            self.pulse(Pulse::new(excess, view.now), view);
        }
    }

    /// Begins `pulse` if one can tell anything of its excess, and the episode has not had many of them; whether it did.
    pub(super) fn pulse(&mut self, pulse: Pulse, view: &View<'_>) -> bool {
        let is_known = self.episode.capacity.is_some() && !self.sinks(view);
        let samples = view.delays.newest(STANDS_FOR, view.now).count();
        let tells = is_known
            && samples >= MIN_SAMPLES_BEFORE
            && pulse.excess <= MAX_PULSED
            // A packet more or less is to tell nothing.
            && self.packet_time() <= pulse.excess * (1.0 - STAYS)
            && self.episode.pulses < MAX_PULSES;
        if tells {
            self.episode.pulses += 1;
            self.episode.pulse = Some(pulse);
        }
        tells
    }

    /// The rate that is let through at `now`, where the rate is `rate` without a pulse.
    pub(super) fn pulsed(&self, rate: BitsPerSecond, now: Time) -> BitsPerSecond {
        match self.episode.pulse.filter(|pulse| now < pulse.until) {
            Some(pulse) if self.state == State::BackingOff => self.bounded(rate * pulse.share),
            _ => rate,
        }
    }

    /// Whether the excess has stood since a lowered rate shows in it, and is not tried by anything yet.
    pub(super) fn stands_lowered(&self, view: &View<'_>) -> bool {
        let shows = Seconds::from(STANDS_FOR) + view.feedback * 2.0;
        self.episode.pulse.is_none()
            && self.episode.tests == 0
            && self.episode.trial.failed == 0
            && view.now.since(self.episode.lowered) >= shows.to_duration()
            && self.is_unmoved(STANDS_FOR, view)
    }

    /// Whether half of the gap of the pulse under way can have come through the line by now, a round trip later.
    pub(super) fn pulse_shows(&self, view: &View<'_>) -> bool {
        self.episode.pulse.is_some_and(|pulse| {
            let half = Seconds::from(pulse.length()) / 2.0;
            view.now.since(pulse.from) >= (view.feedback + half).to_duration()
        })
    }

    /// Ends the pulse under way once its effect is known; the verdict if the excess is no queue.
    pub(super) fn judge_pulse(&mut self, view: &View<'_>) -> Option<(Reason, f64)> {
        let pulse = self.episode.pulse?;
        let (from, to) = self.shown(&pulse, view);
        // In front of the line the answer to a probe is out for as long.
        let answer = match self.side {
            Side::Egress => view.feedback + pulse.excess,
            Side::Ingress => Seconds::ZERO,
        };
        if view.now < to.saturating_add(answer.to_duration()) {
            return None;
        }
        self.episode.pulse = None;
        self.episode.lowered = pulse.until;
        if !view.certain
            || self.sinks(view)
            || self.episode.trial.proven
            || view.delays.lost_within(LOST_WITHIN, view.now) > 0
            || !self.was_gap(&pulse, view)
        {
            return None;
        }
        let at = self.seen_at();
        let samples = view.delays.newest(LOOK_BACK, view.now);
        let shown = samples.filter(|sample| (from..=to).contains(&at(sample)));
        let shown: Vec<Seconds> = shown.map(|sample| sample.of(self.side)).collect();
        let range = Seconds::range(shown.iter().copied());
        let (least, most) = range.filter(|_| shown.len() >= MIN_SAMPLES)?;
        if least < pulse.excess * STAYS || most > pulse.excess / STAYS {
            return None;
        }
        self.episode.stayed += 1;
        if !self.is_disturbed() {
            return Some(self.reroute(view));
        }
        self.episode.trial.foreign = self.episode.trial.foreign.max(most);
        // What comes and goes by itself may have stayed by chance.
        (self.episode.stayed > 1).then(|| self.dismiss(view))
    }

    /// From and until when samples show what the gap did: from its middle on, until a queue may have come back.
    fn shown(&self, pulse: &Pulse, view: &View<'_>) -> (Time, Time) {
        let lag = self.pulse_lag(pulse, view);
        let middle = lag + Seconds::from(pulse.length()) / 2.0;
        (
            pulse.from.saturating_add(middle.to_duration()),
            pulse.until.saturating_add((lag + SHOWS).to_duration()),
        )
    }

    /// Time until the gap is where samples show it: on ingress a round trip, in which what waited for the line is waited for, too.
    fn pulse_lag(&self, pulse: &Pulse, view: &View<'_>) -> Seconds {
        match self.side {
            Side::Egress => Seconds::ZERO,
            Side::Ingress => view.feedback + pulse.excess,
        }
    }

    /// Whether so little crossed in the gap that a queue would have drained: a load that is less than is let through, or that does
    /// not heed it, leaves none; nor does a line with a queue on ingress, which goes on.
    fn was_gap(&self, pulse: &Pulse, view: &View<'_>) -> bool {
        let (from, to) = match self.side {
            Side::Egress => (pulse.from, pulse.until),
            // Senders take some time more or less to heed it.
            Side::Ingress => {
                let lag = self.pulse_lag(pulse, view);
                let early = (lag - Seconds::from(TICK)).max(Seconds::ZERO).to_duration();
                let late = (lag + SHOWS).to_duration();
                (pulse.from.saturating_add(early), pulse.until.saturating_add(late))
            }
        };
        let crossed = self.line.capacity.zip(self.history.bytes_between(from, to));
        crossed.is_some_and(|(capacity, bytes)| {
            let drained = Seconds::from(to.since(from)) - capacity.time_for_bits(bytes * 8.0);
            drained >= pulse.excess * STAYS
        })
    }
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
/// Samples in that time that make out where it stood: as many as three sources give.
const MIN_SAMPLES_BEFORE: usize = 3;
/// Share of the excess that a longer path leaves at least.
const STAYS: f64 = 0.7;
/// Samples that are to show it.
const MIN_SAMPLES: usize = 2;
/// Time for which the gap shows behind its end: two ticks, in which a queue does not come back.
const SHOWS: Seconds = Seconds(0.04);
/// Time for which samples are looked back at.
const LOOK_BACK: Duration = Duration::from_secs(1);
