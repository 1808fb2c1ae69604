//! One side of the shaper: its rate, its state, and when it changes them.
//!
//! ```text
//!            traffic                  held long enough, rate used
//!   Idle ──────────────> Loaded ─────────────────────────────────> Probing
//!     ^   no traffic        ^  │ queue                     queue   │ │ rate not used
//!     └─────────────────────┤  v                                   v │
//!                           └── BackingOff <───────────────────────┘ └─> Loaded
//!                         queue gone
//! ```
//!
//! The rate is a share of what the line carries, which is measured whenever the line has a queue. So that it
//! has one now and then, the rate is raised in small steps until a queue of a few milliseconds shows, and
//! then lowered until it is gone; a line that became faster is found the same way.

mod disturbed;
mod episode;
mod line;
mod mode;
mod probing;
mod pulse;
mod trial;
mod view;

use weir_core::{Duration, Rate, Time};

use crate::capacity::{self, Measured, Window};
use crate::contract::{Decision, MIN_RATE, Mode, Reason, Side, State, TICK, Traffic};
use crate::history::History;
use crate::quantities::{BitsPerSecond, Seconds};
use crate::source::Sample;
use episode::Episode;
pub(crate) use episode::PATH_LASTS;
use line::LineEstimate;
use mode::ModeParameters;
use probing::Step;
pub(crate) use view::{Inputs, View};

/// The control of one side.
#[derive(Clone, Debug)]
pub(crate) struct SideControl {
    side: Side,
    mode: &'static ModeParameters,
    /// The rate never exceeds this.
    max: Option<BitsPerSecond>,
    /// Whether the user chose the rate, which then stays.
    is_fixed: bool,
    pub history: History,
    /// What the rate let through.
    granted: History,
    granted_bytes: f64,
    state: State,
    entered: Time,
    /// `None` lets everything through.
    rate: Option<BitsPerSecond>,
    line: LineEstimate,
    /// When the capacity was last measured or tried.
    tried: Time,
    step: Step,
    episode: Episode,
    /// When the path was last found to have become longer.
    rerouted: Option<Time>,
    /// By how much.
    raised: Seconds,
    /// When that was last behind a pause, where another path is expected.
    new_path: Option<Time>,
    last_busy: Time,
    /// Whether nothing comes over the line, as far as that tells this side anything.
    is_out: bool,
    /// Whether the other side has hardly any traffic, and delays hardly any jitter.
    is_undisturbed: bool,
    /// When the present load began.
    load_began: Time,
    /// Since when it is due to probe.
    due: Option<Time>,
    /// When an excess was last found to be no queue of this side's.
    dismissed: Option<Time>,
    /// Rate and state that were reported last.
    reported: Option<(Option<Rate>, State)>,
    /// The longest excess since the rate is held, or since one went.
    crest: Seconds,
}

impl SideControl {
    pub fn new(side: Side, mode: Mode, max: Option<Rate>) -> Self {
        let max = max.map(BitsPerSecond::from);
        Self {
            side,
            mode: ModeParameters::of(mode),
            max,
            is_fixed: false,
            history: History::default(),
            granted: History::default(),
            granted_bytes: 0.0,
            state: State::Idle,
            entered: Time::ZERO,
            rate: max,
            line: LineEstimate::default(),
            tried: Time::ZERO,
            step: Step::default(),
            episode: Episode::default(),
            rerouted: None,
            raised: Seconds::ZERO,
            new_path: None,
            last_busy: Time::ZERO,
            is_out: false,
            is_undisturbed: false,
            load_began: Time::ZERO,
            due: None,
            dismissed: None,
            reported: None,
            crest: Seconds::ZERO,
        }
    }

    /// The side, with the capacity that its line had when it was learned.
    ///
    /// It is not confirmed: the first load either shows a queue at this rate, or probing begins after it was
    /// held as usual.
    pub fn beginning_with(mut self, known: Option<Rate>) -> Self {
        let known = known.map(BitsPerSecond::from);
        self.line = known.map_or_else(LineEstimate::default, LineEstimate::known);
        self.rate = self.held_or_open(BitsPerSecond::ZERO);
        self
    }

    /// A side that stays at `rate` and only reports whether it has traffic.
    pub fn fixed(side: Side, mode: Mode, rate: Rate) -> Self {
        Self { is_fixed: true, ..Self::new(side, mode, Some(rate)) }
    }

    pub const fn is_fixed(&self) -> bool {
        self.is_fixed
    }

    /// Whether the side holds its rate since nothing comes over the line.
    pub const fn is_out(&self) -> bool {
        self.is_out
    }

    pub const fn state(&self) -> State {
        self.state
    }

    /// Excess, beyond packets and jitter, above which there is a queue.
    pub const fn threshold(&self) -> Seconds {
        self.mode.threshold
    }

    /// The part of the threshold that may be jitter.
    pub fn room_for_jitter(&self) -> Seconds {
        self.mode.threshold - ModeParameters::of(Mode::Ping).threshold
    }

    /// Excess that is let stand because the line's rate varies, or because it was no queue before.
    ///
    /// Without a small queue a line that varies would be idle whenever it is faster than a moment ago.
    pub fn slack(&self) -> Seconds {
        let unknown = match self.line.capacity {
            None => (UNKNOWN_SLACK - self.mode.threshold).max(Seconds::ZERO),
            Some(_) => Seconds::ZERO,
        };
        (self.known_slack() + unknown).min(MAX_SLACK).max(self.line.foreign)
    }

    /// The part of the slack that was learned of the line.
    pub fn known_slack(&self) -> Seconds {
        let varying = SLACK_PER_SPREAD * (self.line.spread() - STEADY_SPREAD).max(0.0);
        (varying + self.line.noise).min(MAX_SLACK)
    }

    /// Whether what the line carries differs from one measurement to the next.
    pub fn varies(&self) -> bool {
        self.line.spread() > STEADY_SPREAD
    }

    /// Notes a share by which what the line carries changed.
    #[cfg(test)]
    pub fn note_change(&mut self, change: f64) {
        self.line.note_change(change);
    }

    /// Takes in the excess that the line shows now and then without any traffic: no queue of this side's.
    pub fn note_idle_delay(&mut self, usual: Seconds) {
        self.line.note_foreign(usual);
    }

    /// Takes in that the idle line's path has become longer `by` so much, which is no excess any more.
    pub fn note_longer_path(&mut self, by: Seconds) {
        self.line.note_longer_path(by);
    }

    /// Whether delays vary for other reasons than this side's queue.
    pub fn is_disturbed(&self) -> bool {
        let is_doubtful =
            self.state != State::BackingOff || self.episode.peak <= self.most_foreign();
        self.line.foreign > self.mode.threshold && is_doubtful
    }

    pub const fn rate(&self) -> Option<BitsPerSecond> {
        self.rate
    }

    pub const fn capacity(&self) -> Option<BitsPerSecond> {
        self.line.capacity
    }

    /// Usual capacity of the line; `None` before it is known well enough to begin with it another time.
    pub fn learned(&self) -> Option<BitsPerSecond> {
        self.line.learned()
    }

    /// Time that a full packet takes on the line; zero as long as the line is unknown.
    pub fn packet_time(&self) -> Seconds {
        let rate = self.line.capacity.or(self.rate);
        rate.map_or(Seconds::ZERO, |rate| rate.time_for_bits(FULL_PACKET_BITS))
    }

    /// Time over which the load is taken: long enough that a packet more or less does not matter.
    pub fn load_span(&self) -> Duration {
        (self.packet_time() * LOAD_PACKETS).max(MIN_LOAD_SPAN).min(MAX_LOAD_SPAN).to_duration()
    }

    /// The least load that can make a queue: on a line that is known to be slow half of what it mostly carries, and where the rate is
    /// halved for the sake of a test half of that.
    pub fn least_load(&self) -> BitsPerSecond {
        let usual = self.line.base.map_or(MIN_LOAD, |usual| MIN_LOAD.min(usual / 2.0));
        match self.rate {
            Some(rate) if self.is_testing() => usual.min(rate / 2.0),
            _ => usual,
        }
    }

    /// What the rate let through.
    pub const fn granted(&self) -> &History {
        &self.granted
    }

    /// Whether a sample had passed the line before the present load came to it, and shows none of its queue.
    pub fn is_before_load(&self, sample: &Sample) -> bool {
        self.seen_at()(sample).saturating_add(TICK) < self.load_began
    }

    /// Rate at which traffic crosses the line at present.
    pub fn load(&self) -> BitsPerSecond {
        self.history.load(self.load_span())
    }

    /// Whether the rate is being raised to find the capacity, or the queue of that has not settled.
    pub fn is_disturbing(&self, feedback: Seconds, now: Time) -> bool {
        match self.state {
            State::Probing => true,
            State::BackingOff => {
                let settling = (DISTURBED + feedback * 2.0).to_duration();
                self.episode.wanted && now.since(self.entered) < settling
            }
            _ => false,
        }
    }

    /// Whether this side lowered its rate so short a time ago that the effect cannot show yet.
    pub fn is_trying(&self, feedback: Seconds, now: Time) -> bool {
        self.state == State::BackingOff
            && now.since(self.entered) < (TRYING + feedback * 2.0).to_duration()
    }

    /// Whether this side leaves the line as it is, and what it did before has passed.
    pub fn is_settled(&self, now: Time) -> bool {
        match self.state {
            State::Idle | State::Stalled => true,
            State::Loaded => now.since(self.entered) >= SETTLED,
            State::Probing | State::BackingOff => false,
        }
    }

    /// Whether this side has been due to probe for longer than `other`.
    pub fn has_turn_before(&self, other: &Self) -> bool {
        self.due.is_some_and(|due| other.due.is_none_or(|others| due < others))
    }

    /// Whether there has been no load for so long that nobody need look whether the line answers.
    ///
    /// A side that is stalled may sleep, too: where nobody answers, nobody is asked for ever.
    pub fn is_asleep(&self, now: Time) -> bool {
        matches!(self.state, State::Idle | State::Stalled)
            && now.since(self.last_busy) >= ASLEEP_AFTER
    }

    /// Whether the rate is what limits the traffic.
    fn is_used(&self, span: Duration) -> bool {
        // A burst waits at the shaper for a moment only: no rate would have saved it that.
        let waits = self.history.held_back(span) >= WAITS_SHARE;
        let used = if waits { USED_SHARE_IF_WAITS } else { USED_SHARE };
        self.rate.is_some_and(|rate| self.history.load(span) >= rate * used)
    }

    /// Acts on what is known at a tick, and reports a change of rate or state to `decide`.
    pub fn tick(&mut self, view: &View<'_>, decide: &mut dyn FnMut(Decision)) {
        let (reason, value) = self.advance(view);
        self.report(reason, value, view.now, decide);
    }

    /// Goes on after ticks stayed out for `pause`, as when the machine slept; that is told even if it changes nothing.
    pub fn resume_after_sleep(
        &mut self,
        now: Time,
        pause: Duration,
        decide: &mut dyn FnMut(Decision),
    ) {
        self.last_busy = now;
        let (reason, value) = self.resume(now, pause);
        self.reported = None;
        self.report(reason, value, now, decide);
    }

    /// Reports a decision if the rate or the state has changed.
    fn report(&mut self, reason: Reason, value: f64, now: Time, decide: &mut dyn FnMut(Decision)) {
        let rate = self.rate.map(|rate| self.pulsed(rate, now).to_rate());
        if self.reported != Some((rate, self.state)) {
            self.reported = Some((rate, self.state));
            decide(Decision { side: self.side, rate, state: self.state, reason, value });
        }
    }

    /// Does what the state asks for, and says why.
    fn advance(&mut self, view: &View<'_>) -> (Reason, f64) {
        if self.is_fixed {
            return self.advance_fixed(view.now);
        }
        let load = self.note_load(view.now);
        self.is_undisturbed = view.alone && view.jitter <= STEADY_JITTER;
        let was_out = self.is_out;
        self.is_out = view.is_out && self.state != State::Idle && !self.varies();
        if self.is_out || view.silence.is_some_and(|silence| silence >= STALL_AFTER) {
            return self.stall(view);
        }
        if self.state == State::Stalled {
            let lasted = view.now.since(self.entered);
            if !was_out || lasted >= STALL_AFTER {
                self.last_busy = view.now;
            }
            return self.resume(view.now, lasted);
        }
        if let Some(overdue) = view.overdue.filter(|late| self.is_news(late, view)) {
            return self.on_overdue(overdue, view);
        }
        match self.state {
            State::Idle => self.idle(load, view),
            State::Loaded => self.loaded(load, view),
            State::Probing => self.probing(view),
            State::BackingOff => self.backing_off(view),
            State::Stalled => unreachable!("left above"),
        }
    }

    /// The present traffic; if it is a load, the time is noted.
    fn note_load(&mut self, now: Time) -> BitsPerSecond {
        let load = self.load();
        if load >= self.rate.unwrap_or_default() * IDLE_SHARE && load >= IDLE_LOAD {
            self.last_busy = now;
        }
        load
    }

    /// Counts what the rate let through since the last tick; an open side let through more than came.
    pub fn note_granted(&mut self, elapsed: Duration, now: Time) {
        let rate = match self.rate {
            Some(rate) => self.pulsed(rate, now),
            None => self.load() * OPEN_FACTOR,
        };
        self.granted_bytes += rate.0 / 8.0 * Seconds::from(elapsed).0;
        let traffic = Traffic { bytes: self.granted_bytes as u64, ..Traffic::default() };
        self.granted.note(now, traffic);
    }

    /// Keeps the rate of a side that has a fixed one; only its state follows the load.
    fn advance_fixed(&mut self, now: Time) -> (Reason, f64) {
        let load = self.note_load(now);
        if self.last_busy == now && load > BitsPerSecond::ZERO {
            if self.state != State::Loaded {
                self.enter(State::Loaded, now);
            }
            (Reason::Load, load.as_mbit())
        } else {
            if self.state != State::Idle && now.since(self.last_busy) >= IDLE_AFTER {
                self.enter(State::Idle, now);
            }
            (Reason::Idle, load.as_mbit())
        }
    }

    /// Waits for a load; a capacity that was measured long ago ages meanwhile.
    fn idle(&mut self, load: BitsPerSecond, view: &View<'_>) -> (Reason, f64) {
        if self.last_busy == view.now && load > BitsPerSecond::ZERO {
            self.enter(State::Loaded, view.now);
            self.tried = view.now;
            self.load_began = view.now;
            return (Reason::Load, load.as_mbit());
        }
        let unseen = view.now.since(self.tried);
        if unseen >= AGE_AFTER && self.line.age(view.elapsed) {
            // A change of less would be a report at every tick.
            let held = self.held(view.probes);
            if self.rate.is_some_and(|rate| (held / rate - 1.0).abs() > AGE_STEP_SHARE) {
                self.rate = Some(held);
            }
        }
        (Reason::Age, unseen.as_secs_f64())
    }

    /// Holds the rate until a queue shows, the load ends, or it is time to probe.
    fn loaded(&mut self, load: BitsPerSecond, view: &View<'_>) -> (Reason, f64) {
        if let Some(excess) = self.queue(view) {
            return self.back_off(excess, view);
        }
        if view.now.since(self.last_busy) >= IDLE_AFTER {
            self.enter(State::Idle, view.now);
            return (Reason::Idle, load.as_mbit());
        }
        self.line.learn(view.elapsed);
        self.note_return(view);
        self.line.forget(view.elapsed);
        self.prove(view);
        if self.is_disturbed() && self.line.capacity.is_some() {
            // What was proven, and nothing beyond that.
            self.rate = Some(self.held(view.probes));
        }
        // The rate of an unknown line is the user's bound, if there is one: it can be raised no further.
        let is_due = self.rate.is_some()
            && self.line.capacity.is_some()
            && view.excess.is_some()
            && view.now.since(self.tried) >= self.hold_time()
            && (self.is_used(self.load_span()) || self.is_used_at_times());
        self.due = is_due.then(|| self.due.unwrap_or(view.now));
        if is_due && view.may_probe {
            return self.begin_probing(view.now);
        }
        (Reason::Load, load.as_mbit())
    }

    /// Holds the rate while nobody answers, and opens the side if that lasts.
    fn stall(&mut self, view: &View<'_>) -> (Reason, f64) {
        if self.state != State::Stalled {
            // What was lowered because answers stayed out was lowered in vain, and so was what was learned of it.
            let began_out = view.pauses.arrived().is_some_and(|last| self.episode.began >= last);
            if self.is_out && self.state == State::BackingOff && began_out {
                self.line.capacity = self.episode.capacity.or(self.line.capacity);
            }
            self.enter(State::Stalled, view.now);
            self.rate = self.held_or_open(view.probes);
        }
        let silence = view.silence.unwrap_or_default();
        if silence >= OPEN_AFTER {
            self.rate = self.max;
        }
        (Reason::Silence, silence.as_secs_f64())
    }

    /// Goes on after a `pause` without ticks or without answers.
    fn resume(&mut self, now: Time, pause: Duration) -> (Reason, f64) {
        self.rate = self.held_or_open(BitsPerSecond::ZERO);
        self.tried = now;
        self.load_began = now;
        self.enter(State::Loaded, now);
        (Reason::Resume, pause.as_secs_f64())
    }

    fn enter(&mut self, state: State, now: Time) {
        self.due = None;
        self.state = state;
        self.entered = now;
    }

    fn measure(&self, view: &View<'_>, span: Duration) -> Option<Measured> {
        let just_begun = view.now.since(self.load_began) < JUST_BEGUN;
        let window =
            Window { span, quiet: view.clear(), since: view.late, just_begun, pauses: view.pauses };
        capacity::measure(self.side, view.delays, &self.history, window, view.now)
    }

    /// The rate of a line without a queue, on which `probes` go past the shaper.
    fn held(&self, probes: BitsPerSecond) -> BitsPerSecond {
        let capacity = self.line.capacity.expect("known in every state that holds a rate");
        let careful = ModeParameters::of(Mode::Ping).share;
        let usual = if self.may_hold_more() { self.mode.steady_share } else { self.mode.share };
        let share = usual + (careful - usual) * self.line.caution;
        self.bounded(capacity * share - probes)
    }

    /// Whether the capacity is known so well that little need be left of it: on the way in nothing drains what comes too fast, and
    /// beside other traffic or jitter it is not certain whose a queue is.
    fn may_hold_more(&self) -> bool {
        self.side == Side::Egress
            && self.is_undisturbed
            && self.line.confirmed
            && !self.line.varied()
            && !self.is_disturbed()
    }

    /// The rate of a line without a queue; the user's bound, if there is one, as long as the line is unknown.
    fn held_or_open(&self, probes: BitsPerSecond) -> Option<BitsPerSecond> {
        self.line.capacity.map(|_| self.held(probes)).or(self.max)
    }

    fn bounded(&self, rate: BitsPerSecond) -> BitsPerSecond {
        self.at_most_max(rate).max(MIN_RATE.into())
    }

    fn at_most_max(&self, rate: BitsPerSecond) -> BitsPerSecond {
        self.max.map_or(rate, |max| rate.min(max))
    }
}

/// Share of the threshold at which a queue counts as gone, so that the state does not flutter.
const CLEAR_SHARE: f64 = 0.5;
/// The same where the path shows as much without a queue.
const MOST_CLEAR_SHARE: f64 = 0.75;
/// Excess that jitter explains on a steady line at most: half of the shortest queue that is looked for.
const STEADY_JITTER: Seconds = Seconds(0.001);
/// Share by which the capacity of a steady line varies at most.
const STEADY_SPREAD: f64 = 0.1;
/// Queue that is gained or lost before the controller sees it, for a rate that varies by all of itself.
const SLACK_PER_SPREAD: Seconds = Seconds(0.2);
/// Threshold and slack together on a line that nothing is known of: the bursts with which connections begin.
const UNKNOWN_SLACK: Seconds = Seconds(0.01);
/// Slack at most: no more than a call can bear beside its own delay (ITU-T G.114: 150 ms one way).
const MAX_SLACK: Seconds = Seconds(0.05);
/// Share of the ticks at which packets wait for a rate that limits them.
const WAITS_SHARE: f64 = 0.5;
/// Used share of a rate from which on a side may have made a queue.
pub(crate) const PRESSING_SHARE: f64 = 0.7;
/// Share of a rate from which on it limits the traffic: TCP's sawtooth with a shallow queue uses more.
const USED_SHARE: f64 = 0.9;
/// Share of a rate that limits the traffic if packets wait for it and it is not far above what comes.
const USED_SHARE_IF_WAITS: f64 = 0.7;
/// Length of a full packet on Ethernet with header, checksum, preamble and gap.
pub(crate) const FULL_PACKET_BITS: f64 = 1538.0 * 8.0;
/// Packets that the load is taken over: one more or less is 6 % of it.
const LOAD_PACKETS: f64 = 16.0;
/// Span at least over which the load is taken: five ticks.
const MIN_LOAD_SPAN: Seconds = Seconds(0.1);
/// Span at most over which the load is taken: on the slowest lines no more can be waited for.
const MAX_LOAD_SPAN: Seconds = Seconds(1.0);
/// Time from its beginning on in which what a load measures may be what it had not reached yet: some round trips.
const JUST_BEGUN: Duration = Duration::from_millis(500);
/// Share of the rate below which the traffic is no load.
const IDLE_SHARE: f64 = 0.02;
/// Multiple of the load that an open side counts as letting through.
const OPEN_FACTOR: f64 = 10.0;
/// Traffic below this is never a load: probes, name look-ups, calls that pause.
const IDLE_LOAD: BitsPerSecond = BitsPerSecond(100e3);
/// A load below this makes no queue on a line that nothing is known of, nor tells what one carries.
pub(super) const MIN_LOAD: BitsPerSecond = BitsPerSecond(200e3);
/// Time without load after which a side is idle: a page pauses for up to a second while it loads.
const IDLE_AFTER: Duration = Duration::from_secs(1);
/// Time without load after which probes rest: pages are read for less, and video is loaded in parts every few
/// seconds.
const ASLEEP_AFTER: Duration = Duration::from_secs(60);
/// Time for which a measured capacity is trusted.
const AGE_AFTER: Duration = Duration::from_secs(10);
/// Share of the rate by which an ageing capacity must differ before the rate follows.
const AGE_STEP_SHARE: f64 = 0.01;
/// Time without any answer that is a stall: longer than the longest time between probes and any queue.
const STALL_AFTER: Duration = Duration::from_secs(3);
/// Time of silence after which the shaper opens, rather than strangle a line it knows nothing of
/// (cake-autorate sets its minimum after the same time).
const OPEN_AFTER: Duration = Duration::from_secs(10);
/// Lowering the rate of one side must show its effect within this, beside twice the feedback delay,
/// before the other side is suspected of the same queue.
const TRYING: Seconds = Seconds(0.2);
/// Time for which a side must have been loaded before the other side may probe.
const SETTLED: Duration = Duration::from_millis(300);
/// Time, beside twice the feedback delay, for which a queue after probing is taken for that of the probing.
const DISTURBED: Seconds = Seconds(0.4);
