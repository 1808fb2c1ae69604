//! A congestion episode: the line has a queue, and the rate is lowered until it is gone.
//!
//! What the line carries meanwhile is its capacity.

mod learning;
mod overdue;

use weir_core::{Duration, Time};

use super::pulse::Pulse;
use super::trial::{Trial, is_beyond_doubt};
use super::{CLEAR_SHARE, IDLE_AFTER, MIN_LOAD, SideControl, View};
use crate::contract::{MIN_RATE, Reason, State, TICK};
use crate::quantities::{BitsPerSecond, Seconds};

/// One time with a queue at the line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Episode {
    pub began: Time,
    /// Load when it began.
    load: BitsPerSecond,
    /// Rate when it began.
    pub rate: Option<BitsPerSecond>,
    /// Greatest excess.
    pub peak: Seconds,
    /// Capacity that was known when it began.
    pub capacity: Option<BitsPerSecond>,
    /// Whether the episode began in [`State::Probing`].
    pub wanted: bool,
    /// When the rate was last halved for overdue answers.
    halved: Time,
    /// The least that answers which were out told the line to carry at most.
    most: Option<BitsPerSecond>,
    /// How often the rate was halved to see whether the excess is a queue, and when it was last.
    pub tests: u32,
    tested: Time,
    /// Whether it was certain all the time whose queue it is.
    certain: bool,
    /// Ticks at which something told that it is this side's, less those at which it was told to be the other's.
    told: i32,
    /// When both sides began to drain in doubt.
    doubted: Option<Time>,
    /// Since when an excess stays without a load.
    unloaded: Option<Time>,
    /// Whether it began because an excess stood.
    pub stood: bool,
    /// Whether the line seemed to be full from the start when it began, and whether a baseline fell in it.
    from_start: bool,
    sank: bool,
    /// When the last one ended.
    pub ended: Time,
    /// What the line carried just before, where delays vary for other reasons, and the time over which that was measured.
    first: Option<(BitsPerSecond, Seconds)>,
    /// The trial of the excess.
    pub trial: Trial,
    /// The pulse that is under way, how many began and how many the excess stayed through, and since when the rate is lowered
    /// without one.
    pub pulse: Option<Pulse>,
    pub pulses: u32,
    pub stayed: u32,
    pub lowered: Time,
}

impl Default for Episode {
    /// The state before any episode.
    fn default() -> Self {
        Self {
            began: Time::ZERO,
            load: BitsPerSecond::ZERO,
            rate: None,
            peak: Seconds::ZERO,
            capacity: None,
            wanted: false,
            halved: Time::ZERO,
            most: None,
            tests: 0,
            tested: Time::ZERO,
            certain: true,
            told: 0,
            doubted: None,
            unloaded: None,
            stood: false,
            from_start: false,
            sank: false,
            ended: Time::ZERO,
            first: None,
            trial: Trial::default(),
            pulse: None,
            pulses: 0,
            stayed: 0,
            lowered: Time::ZERO,
        }
    }
}

impl SideControl {
    /// The load before the rate of a line that was known was lowered, if that was no longer than `span` ago or still lasts.
    pub fn load_before(&self, span: Duration, now: Time) -> Option<BitsPerSecond> {
        let is_lowered = self.state == State::BackingOff || now.since(self.episode.ended) < span;
        (is_lowered && self.episode.capacity.is_some()).then_some(self.episode.load)
    }

    /// The excess, if there is a queue.
    pub(super) fn queue(&self, view: &View<'_>) -> Option<Seconds> {
        if self.line.capacity.is_none() && self.may_come_by_itself(view) {
            return None;
        }
        view.excess.filter(|&excess| excess > view.threshold).or_else(|| self.standing(view))
    }

    /// Whether an excess on an unknown line may be nobody's queue: it was never seen idle, no load rose, and it does not last.
    fn may_come_by_itself(&self, view: &View<'_>) -> bool {
        if view.is_explained {
            return false;
        }
        let (mut oldest, mut least) = (view.now, Seconds(f64::INFINITY));
        for sample in view.delays.newest(LASTS, view.now) {
            (oldest, least) = (sample.arrived, least.min(sample.of(self.side)));
        }
        let stands = if self.is_disturbed() { view.clear() } else { view.threshold };
        view.now.since(oldest) < LASTS_SEEN || least <= stands
    }

    /// Lowers the rate because a queue showed, `excess` long.
    pub(super) fn back_off(&mut self, excess: Seconds, view: &View<'_>) -> (Reason, f64) {
        let calm = view.now.since(self.episode.ended);
        self.begin_episode(view.now);
        self.episode.stood = excess <= view.threshold;
        self.episode.certain = view.certain;
        self.note_told(view);
        self.episode.from_start = view.sinking.is_some();
        self.episode.peak = excess;
        if self.is_disturbed() && self.line.capacity.is_some() {
            // The longer the queue took to come, the less of it can be the path's.
            let span = calm.clamp(LEAD_IN, MAX_LEAD_IN);
            self.episode.first = self.measure(view, span).map(|found| (found.rate, span.into()));
            self.measure_queue(view);
            self.rate = Some(self.draining(view));
            return (Reason::Delay, excess.as_millis());
        }
        let measured = self.measure(view, self.load_span());
        if self.line.capacity.is_none() || view.certain {
            // Too short a span says nothing, but what crossed the line while its queue grew is more than it
            // carries.
            let capacity = measured.map_or_else(|| self.load(), |found| found.rate);
            let capacity = Some(capacity.max(MIN_RATE.into()));
            let is_queue = |found| is_beyond_doubt(found, self.load_span());
            if self.line.capacity.is_none() && measured.as_ref().is_some_and(is_queue) {
                // No path's delay grows like that: what is left of the excess later may be one's, and takes nothing from this.
                self.episode.trial.sound = capacity;
            }
            self.line.capacity = capacity;
        }
        if !self.episode.wanted {
            self.begin_pulse(excess, view);
        }
        self.rate = Some(self.draining(view));
        (Reason::Delay, excess.as_millis())
    }

    /// Lowers the rate further as long as the queue lasts.
    pub(super) fn backing_off(&mut self, view: &View<'_>) -> (Reason, f64) {
        self.episode.sank |= view.sank;
        self.note_told(view);
        match self.hidden(view) {
            Some(excess) => self.drain(&view.with_excess(excess)),
            None => self.drain(view),
        }
    }

    /// An excess that stands as it was, and only counts as nobody's since hardly anything crosses at the rate that it led to.
    fn hidden(&self, view: &View<'_>) -> Option<Seconds> {
        let is_hidden = !self.varies()
            && view.excess.is_some_and(|excess| excess <= view.clear())
            && view.alone
            && self.history.load(TICK * 2) >= ENDED_LOAD
            && view.delays.newest(HIDDEN_SPAN, view.now).count() >= HIDDEN_SAMPLES;
        is_hidden.then(|| self.standing_excess(HIDDEN_SPAN, view)).flatten()
    }

    /// The least excess of `span`, whosever it may be, if it has not moved meanwhile and is none that counts as gone.
    fn standing_excess(&self, span: Duration, view: &View<'_>) -> Option<Seconds> {
        let samples = view.delays.newest(span, view.now).map(|sample| sample.of(self.side));
        let least = Seconds::range(samples).map(|(least, _)| least);
        least.filter(|&least| least > view.clear() && self.is_unmoved(span, view))
    }

    /// Drains the queue, and tests whether it is one.
    fn drain(&mut self, view: &View<'_>) -> (Reason, f64) {
        let Some(excess) = view.excess else { return (Reason::Delay, 0.0) };
        self.episode.peak = self.episode.peak.max(excess);
        if excess > view.clear() {
            self.episode.unloaded = None;
        } else {
            // The latest answers are older than the queue that others wait in.
            if view.is_waiting && self.is_known_own() != Some(false) {
                return (Reason::Delay, excess.as_millis());
            }
            if self.is_blamed_on_other(view) {
                return self.leave_to_other(excess, view);
            }
            if self.sinks(view) {
                self.assume_capacity();
                self.rate = Some(self.draining(view));
                return (Reason::Delay, excess.as_millis());
            }
            if self.is_disturbed()
                && !self.learn_at_last(view)
                && (self.episode.trial.failed > 0 || self.fell_too_fast(excess, view))
            {
                return self.dismiss(view);
            }
            if self.stays_without_load(view) {
                return self.wait_for_load(view);
            }
            return self.clear(view);
        }
        if let Some(verdict) = self.judge_pulse(view) {
            return verdict;
        }
        if self.stands_lowered(view) {
            self.begin_pulse(excess, view);
        }
        if self.episode.pulse.is_none()
            && !self.sinks(view)
            && let Some(verdict) = self.doubt(excess, view)
        {
            return verdict;
        }
        self.episode.certain &= view.certain;
        self.measure_queue(view);
        self.rate = Some(self.draining(view));
        (Reason::Delay, excess.as_millis())
    }

    /// Whether the excess stands as it was, and only counts as the other side's: this one waits until that has tested it.
    fn is_blamed_on_other(&self, view: &View<'_>) -> bool {
        !view.alone && self.standing_excess(UNMOVED_SPAN, view).is_some()
    }

    /// Waits while the other side tests the excess. One that nobody tests keeps no rate of a known line low, and has told nothing;
    /// where delays vary it moves soon.
    fn leave_to_other(&mut self, excess: Seconds, view: &View<'_>) -> (Reason, f64) {
        if !view.may_probe || self.is_disturbed() || self.episode.capacity.is_none() {
            return (Reason::Delay, excess.as_millis());
        }
        self.return_to(self.episode.capacity, view.probes, view.now);
        (Reason::Clear, view.now.since(self.episode.began).as_millis_f64())
    }

    /// Whether the excess stays as it was, and only counts as gone since nothing is sent any more.
    fn stays_without_load(&self, view: &View<'_>) -> bool {
        !self.varies()
            && self.history.load(TICK * 2) < ENDED_LOAD
            && self.standing_excess(UNMOVED_SPAN, view).is_some()
    }

    /// Waits whether the load has ended. Then the excess is nobody's queue, and need not have been one before: the episode tells
    /// nothing, and what was known holds. Where something comes all the same, the line may carry hardly anything any more.
    fn wait_for_load(&mut self, view: &View<'_>) -> (Reason, f64) {
        let since = *self.episode.unloaded.get_or_insert(view.now);
        if view.now.since(since) < IDLE_AFTER {
            return (Reason::Delay, self.episode.peak.as_millis());
        }
        if self.history.load(IDLE_AFTER) >= ENDED_LOAD {
            return self.clear(view);
        }
        self.return_to(self.episode.capacity, view.probes, view.now);
        (Reason::Clear, view.now.since(self.episode.began).as_millis_f64())
    }

    /// Tests whether the excess is a queue; `None` if the episode goes on as that of one.
    fn doubt(&mut self, excess: Seconds, view: &View<'_>) -> Option<(Reason, f64)> {
        // Where delays vary anyway, those of a longer path are let stand like any other.
        if (!self.is_disturbed() || excess > self.most_foreign())
            && let Some(verdict) = self.test(view)
        {
            return Some(verdict);
        }
        self.judge(excess, view)
    }

    /// Whether it is known whose queue that of the episode is, and that it is this side's.
    fn is_own(&self) -> bool {
        self.is_known_own().unwrap_or(self.episode.certain)
    }

    /// Whether most of what told whose queue it is found it this side's; `None` if nothing told.
    fn is_known_own(&self) -> Option<bool> {
        match self.episode.told {
            0 => None,
            told => Some(told > 0),
        }
    }

    fn note_told(&mut self, view: &View<'_>) {
        self.episode.told += match view.known {
            Some(true) => 1,
            Some(false) => -1,
            None => 0,
        };
    }

    /// Whether the queue is to drain on although delays are near their baselines, since these may be made of the queue itself.
    pub(super) fn sinks(&self, view: &View<'_>) -> bool {
        let tells = |time: Seconds| view.now.since(self.episode.began) < (time * 2.0).to_duration();
        view.sank || view.sinking.is_some_and(tells)
    }

    /// Takes the load for what an unknown line carries: answers that stay out begin an episode without a measurement.
    fn assume_capacity(&mut self) {
        let load = self.load().max(MIN_RATE.into());
        self.line.capacity.get_or_insert(load);
    }

    /// Lets the capacity follow what the line carries while its queue grows or falls.
    fn measure_queue(&mut self, view: &View<'_>) {
        self.assume_capacity();
        let span = MEASURE_SPAN.max(self.load_span());
        if let Some(found) = self.measure(view, span) {
            if self.is_disturbed() && !is_beyond_doubt(&found, span) {
                return;
            }
            let capacity = self.line.capacity.unwrap_or(found.rate);
            // A queue that neither grows nor falls is no sign of a slower line: it may not be this side's.
            if view.certain && (found.rate > capacity || found.grown.abs() > view.clear()) {
                let blended = capacity + (found.rate - capacity) * MEASURE_GAIN;
                self.line.capacity = Some(blended.max(MIN_RATE.into()));
            }
        }
    }

    /// Whether the rate is halved to see whether the excess is a queue.
    pub(super) fn is_testing(&self) -> bool {
        self.state == State::BackingOff && self.episode.tests > 0
    }

    /// Tests whether an excess that stays although the rate was lowered is a queue; `None` if it moves.
    ///
    /// A pulse is tried first, where one can tell. Else the rate is halved, and again; if the excess still stays, it is the path that
    /// has become longer. Where probes are lost it may be a full buffer that is still overrun, and the rate is halved once more
    /// before that is believed.
    fn test(&mut self, view: &View<'_>) -> Option<(Reason, f64)> {
        let span = Seconds::from(UNMOVED_SPAN) + view.feedback * 2.0;
        if view.now.since(self.episode.tested) < span.to_duration() {
            return (self.episode.tests > 0)
                .then_some((Reason::Test, UNMOVED_SPAN.as_millis_f64()));
        }
        self.episode.tested = view.now;
        if !self.is_unmoved(UNMOVED_SPAN, view) {
            self.episode.tests = 0;
            return None;
        }
        let is_untried = self.episode.tests == 0 && self.episode.pulses == 0;
        let varies = self.is_disturbed() || self.was_rerouted(view.now);
        let excess = view.excess.unwrap_or_default();
        if is_untried && !varies && self.pulse(Pulse::deep(excess, view.now), view) {
            return Some((Reason::Test, UNMOVED_SPAN.as_millis_f64()));
        }
        let overrun = view.delays.lost_within(UNMOVED_SPAN, view.now) > 0;
        if self.episode.tests >= if overrun { MAX_TESTS_WITH_LOSS } else { MAX_TESTS } {
            return Some(self.reroute(view));
        }
        self.episode.tests += 1;
        self.rate = self.rate.map(|rate| self.bounded(rate / 2.0));
        Some((Reason::Test, UNMOVED_SPAN.as_millis_f64()))
    }

    /// Whether the episode began behind a pause of a line that is steady otherwise: it goes on over another path.
    pub(super) fn follows_pause(&self, view: &View<'_>) -> bool {
        let began = self.episode.began;
        !self.varies()
            && view.pauses.within(began.saturating_sub(PAUSED_BEFORE), began) > Seconds::ZERO
    }

    /// Whether the excess stayed as it is for `span`. Where delays do not vary otherwise its samples lie as close together as jitter lets
    /// them, and the middle of the later half is that of the earlier one.
    pub(super) fn is_unmoved(&self, span: Duration, view: &View<'_>) -> bool {
        let samples = || view.delays.newest(span, view.now).map(|sample| sample.of(self.side));
        let Some((least, most)) = Seconds::range(samples()) else { return false };
        let chance = (view.threshold - self.line.foreign).max(self.mode.threshold) * CLEAR_SHARE;
        let stays = (least * UNMOVED_SHARE).min(MAX_UNMOVED).max(chance);
        if self.is_disturbed() {
            return most - least <= stays;
        }
        let half = samples().count() / 2;
        let middles =
            Seconds::median(samples().take(half)).zip(Seconds::median(samples().skip(half)));
        let moved = middles.map_or(Seconds::ZERO, |(later, earlier)| (later - earlier).abs());
        moved * 2.0 <= stays && most - least <= stays + view.jitter * 2.0
    }

    /// Whether the path was found to have become longer a short time ago.
    pub(super) fn was_rerouted(&self, now: Time) -> bool {
        self.rerouted.is_some_and(|at| now.since(at) < PATH_LASTS)
    }

    /// Takes the excess for that of a longer path, and returns to the capacity from before the episode.
    pub(super) fn reroute(&mut self, view: &View<'_>) -> (Reason, f64) {
        let excess = view.excess.unwrap_or_default();
        // A path that becomes longer time and again is one that varies.
        let again = self.was_rerouted(view.now);
        self.rerouted = Some(view.now);
        let is_new = self.follows_pause(view)
            && self.new_path.is_none_or(|at| view.now.since(at) >= PATHS_APART);
        if is_new {
            self.new_path = Some(view.now);
        } else if again {
            self.line.note_foreign(excess);
        }
        self.raised = excess;
        self.return_to(self.carried_before(), view.probes, view.now);
        (Reason::Reroute, excess.as_millis())
    }

    /// Ends an episode of an excess that the other side found to be that of a longer path.
    pub fn note_reroute(&mut self, now: Time) {
        if self.state == State::BackingOff {
            self.return_to(self.carried_before(), BitsPerSecond::ZERO, now);
        }
    }

    /// What the line carried before the episode. A load that fills no line says nothing of what an unknown one carries.
    fn carried_before(&self) -> Option<BitsPerSecond> {
        let load = Some(self.episode.load).filter(|&load| load >= MIN_LOAD);
        self.episode.capacity.or(load)
    }

    /// Ends an episode that told nothing of the line, and takes `capacity` for what that carries.
    pub(super) fn return_to(
        &mut self,
        capacity: Option<BitsPerSecond>,
        probes: BitsPerSecond,
        now: Time,
    ) {
        self.line.capacity = capacity;
        self.episode.ended = now;
        self.tried = now;
        self.rate = self.held_or_open(probes);
        self.enter(State::Loaded, now);
    }

    fn begin_episode(&mut self, now: Time) {
        self.episode = Episode {
            began: now,
            load: self.load(),
            rate: self.rate,
            capacity: self.line.capacity,
            wanted: self.state == State::Probing,
            tested: now,
            lowered: now,
            trial: Trial::first(self.line.capacity),
            ..Episode::default()
        };
        self.enter(State::BackingOff, now);
    }

    /// The rate at which the queue that is expected now drains.
    fn draining(&self, view: &View<'_>) -> BitsPerSecond {
        let capacity = self.line.capacity.expect("measured when the queue showed");
        let time = DRAIN_TIME.max(view.feedback * 2.0);
        // What is let stand need not go.
        let stands = if self.is_disturbed() { view.clear() } else { Seconds::ZERO };
        let excess = (view.expected - stands).max(Seconds::ZERO);
        let share = (self.mode.share - excess / time).max(MIN_DRAIN_SHARE);
        let share = if self.is_stuck(view) {
            share.min(TRIAL_SHARE * self.sure_share())
        } else if self.is_disturbed() || self.sinks(view) {
            // How long the queue is that baselines are made of shows as it drains.
            share.min(TRIAL_SHARE)
        } else {
            share
        };
        self.bounded(capacity * share - view.probes)
    }
}

/// Load below which there is none: on a line that carries as much a full packet takes more than half a second.
const ENDED_LOAD: BitsPerSecond = BitsPerSecond(20e3);
/// Time for which an excess lasts that is a queue though no load rose, as long as samples are kept; and the part of it that must
/// have been seen.
const LASTS: Duration = Duration::from_millis(3_800);
const LASTS_SEEN: Duration = Duration::from_millis(3_500);
/// Time in which a queue is to be gone: a tenth of the goal of 1 s, for it decays exponentially.
const DRAIN_TIME: Seconds = Seconds(0.1);
/// Share of the capacity that is let through where it must show soon whether an excess is a queue.
const TRIAL_SHARE: f64 = 0.6;
/// Share of the capacity that is let through however long the queue: a fifth keeps TCP's clock going.
pub(super) const MIN_DRAIN_SHARE: f64 = 0.2;
/// Span over which the capacity is measured while the queue drains: ten ticks.
const MEASURE_SPAN: Duration = Duration::from_millis(200);
/// Weight of a new measurement while the queue drains: a half-life of two ticks.
const MEASURE_GAIN: f64 = 0.3;
/// Time by which an episode's measurement begins earlier: from the last sample without a queue to the first
/// with one.
const LEAD_IN: Duration = Duration::from_millis(500);
/// Time by which it begins earlier at most, where delays vary: as long as samples are looked back at.
const MAX_LEAD_IN: Duration = Duration::from_secs(3);
/// Time for which an excess must not move before it is taken for a longer path.
const UNMOVED_SPAN: Duration = Duration::from_millis(250);
/// The same where hardly anything crosses, so that probes are rare; and samples that are to show it.
const HIDDEN_SPAN: Duration = Duration::from_secs(1);
const HIDDEN_SAMPLES: usize = 4;
/// Share of itself within which an excess counts as unmoved.
const UNMOVED_SHARE: f64 = 0.1;
/// Excess that counts as unmoved at most: a line drains more in [`UNMOVED_SPAN`], however long the queue.
const MAX_UNMOVED: Seconds = Seconds(0.05);
/// Halvings of the rate through which an excess must not move before it is taken for a longer path.
///
/// While a short buffer overflows, the line is taken for a faster one than it is, and one halving does not
/// empty it.
const MAX_TESTS: u32 = 2;
/// Time at least between two pauses behind which there may be another path: two thirds of that between two of a satellite's.
const PATHS_APART: Duration = Duration::from_secs(10);
/// Time before an episode in which a pause is to have ended that it follows.
const PAUSED_BEFORE: Duration = Duration::from_secs(2);
/// Halvings of the rate through which an excess must not move where probes are lost.
///
/// A line that became more than ten times slower is rarer than one that took another route and loses packets.
const MAX_TESTS_WITH_LOSS: u32 = 3;
/// Time for which a path stays as it is: as long as a baseline is remembered.
pub(crate) const PATH_LASTS: Duration = Duration::from_secs(30);
