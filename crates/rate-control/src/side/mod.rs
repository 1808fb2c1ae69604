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

mod episode;

use std::collections::VecDeque;

use weir_core::{Duration, Rate, Time};

use crate::capacity::{self, Measured, Window};
use crate::contract::{Bounds, Decision, MIN_RATE_BPS, Mode, Reason, Side, State};
use crate::delays::{Delays, median};
use crate::history::History;
use episode::Episode;

/// The control of one side.
#[derive(Clone, Debug)]
pub(crate) struct SideControl {
    side: Side,
    mode: &'static Character,
    /// The rate never exceeds this.
    max: f64,
    /// Whether the user chose the rate, which then stays.
    is_fixed: bool,
    pub history: History,
    state: State,
    entered: Time,
    /// Bit/s; `None` lets everything through.
    rate: Option<f64>,
    /// Capacity of the line, bit/s; `None` before it was first measured.
    capacity: Option<f64>,
    /// When the capacity was last measured or tried.
    tried: Time,
    /// By what shares the last measurements of the capacity differed, newest last.
    changes: VecDeque<f64>,
    /// Seconds of excess without a queue that the line shows now and then.
    noise: f64,
    learned: Option<Learned>,
    step: Step,
    episode: Episode,
    last_busy: Time,
    /// Rate and state that were reported last.
    told: Option<(Option<Rate>, State)>,
}

/// Least, usual and greatest capacity so far.
#[derive(Clone, Copy, Debug)]
struct Learned {
    least: f64,
    usual: f64,
    most: f64,
}

/// A step of probing.
#[derive(Clone, Copy, Debug)]
struct Step {
    number: u32,
    began: Time,
}

/// Inputs of a side at one tick.
pub(crate) struct View<'a> {
    pub facts: Facts,
    pub delays: &'a Delays,
    /// End of the last time at which the shaper's process was late; `None` if it was not late recently.
    pub late: Option<Time>,
}

/// Facts that a side gets at a tick.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    pub now: Time,
    /// Time since the last tick.
    pub elapsed: Duration,
    /// Seconds of queue that are this side's, as measured; `None` without a sample.
    pub excess: Option<f64>,
    /// Whether they are this side's alone.
    pub certain: bool,
    /// Seconds of queue that are this side's, as far as they can be told for this moment.
    pub expected: f64,
    /// Seconds of queue from which on it is one.
    pub threshold: f64,
    /// Seconds by which answers are overdue.
    pub overdue: Option<f64>,
    /// Seconds until a change of rate shows in a delay.
    pub feedback: f64,
    /// How long nobody has answered although probes are out.
    pub silence: Option<Duration>,
    /// Bit/s of the line that probes take past the shaper.
    pub probes: f64,
    /// Whether the other side leaves the queue to this one.
    pub may_probe: bool,
    /// Whether the other side has hardly any traffic.
    pub alone: bool,
}

impl std::ops::Deref for View<'_> {
    type Target = Facts;

    fn deref(&self) -> &Facts {
        &self.facts
    }
}

impl Facts {
    /// Below this there is no queue.
    fn clear(&self) -> f64 {
        self.threshold * CLEAR_SHARE
    }
}

impl SideControl {
    pub fn new(side: Side, mode: Mode, max_bps: Option<u64>) -> Self {
        let max = max_bps.map_or(f64::INFINITY, |bps| bps as f64);
        Self {
            side,
            mode: match mode {
                Mode::Ping => &PING,
                Mode::Bandwidth => &BANDWIDTH,
            },
            max,
            is_fixed: false,
            history: History::default(),
            state: State::Idle,
            entered: Time::ZERO,
            rate: max_bps.map(|_| max),
            capacity: None,
            tried: Time::ZERO,
            changes: VecDeque::new(),
            noise: 0.0,
            learned: None,
            step: Step { number: 0, began: Time::ZERO },
            episode: Episode::default(),
            last_busy: Time::ZERO,
            told: None,
        }
    }

    /// A side that stays at `bps` and only tells whether it has traffic.
    pub fn fixed(side: Side, mode: Mode, bps: u64) -> Self {
        Self { is_fixed: true, ..Self::new(side, mode, Some(bps)) }
    }

    pub const fn is_fixed(&self) -> bool {
        self.is_fixed
    }

    pub const fn state(&self) -> State {
        self.state
    }

    /// Seconds of queue, beyond packets and jitter, from which on it is one.
    pub const fn threshold(&self) -> f64 {
        self.mode.threshold
    }

    /// Seconds of queue that are let stand because the line's rate varies: without any in stock the line
    /// would be idle whenever it is faster than a moment ago. And what has been no queue before.
    pub fn slack(&self) -> f64 {
        let unknown = match self.capacity {
            None => (UNKNOWN_SLACK - self.mode.threshold).max(0.0),
            Some(_) => 0.0,
        };
        ((self.spread() - STEADY).max(0.0) * SLACK + self.noise + unknown).min(MAX_SLACK_S)
    }

    pub const fn rate(&self) -> Option<f64> {
        self.rate
    }

    pub const fn capacity(&self) -> Option<f64> {
        self.capacity
    }

    /// Bounds of the rate that were learned from the line.
    pub fn bounds(&self) -> Option<Bounds> {
        self.learned.map(|learned| Bounds {
            min_bps: learned.least as u64,
            base_bps: learned.usual as u64,
            max_bps: learned.most as u64,
        })
    }

    /// Seconds that a full packet takes on the line; none as long as the line is unknown.
    pub fn packet_time(&self) -> f64 {
        self.capacity.or(self.rate).map_or(0.0, |bps| FULL_PACKET_BITS / bps)
    }

    /// Time over which the load is taken: long enough that a packet more or less does not matter.
    pub fn load_span(&self) -> Duration {
        seconds((LOAD_PACKETS * self.packet_time()).clamp(0.1, 1.0))
    }

    /// Bit/s that cross the line at present.
    pub fn load(&self) -> f64 {
        self.history.load(self.load_span())
    }

    /// Whether a probe for the queue is going on, or what it stirred up has not settled.
    pub fn is_stirring(&self, feedback: f64, now: Time) -> bool {
        match self.state {
            State::Probing => true,
            State::BackingOff => {
                self.episode.wanted && now.since(self.entered) < seconds(STIRRED + 2.0 * feedback)
            }
            _ => false,
        }
    }

    /// Whether this side, without having been asked to, has lowered its rate and not long enough ago to
    /// tell whether that helps.
    pub fn is_trying(&self, feedback: f64, now: Time) -> bool {
        self.state == State::BackingOff
            && now.since(self.entered) < seconds(TRYING + 2.0 * feedback)
    }

    /// Whether this side leaves the line as it is, and what it did before has passed.
    pub fn is_settled(&self, now: Time) -> bool {
        match self.state {
            State::Idle | State::Stalled => true,
            State::Loaded => now.since(self.entered) >= SETTLED,
            State::Probing | State::BackingOff => false,
        }
    }

    /// Whether the rate is what limits the traffic.
    fn is_used(&self, span: Duration) -> bool {
        // What waits at the shaper for a moment, as a burst does, waits for no rate.
        let waits = self.history.held_back(span) >= 0.5;
        let used = if waits { USED_IF_WAITS } else { USED };
        self.rate.is_some_and(|rate| self.history.load(span) >= used * rate)
    }

    /// Looks at everything and changes what has to be changed.
    pub fn tick(&mut self, view: &View<'_>, decide: &mut dyn FnMut(Decision)) {
        let (reason, value) = self.next(view);
        self.tell(reason, value, decide);
    }

    /// Ticks stayed out for `pause`.
    pub fn wake(&mut self, now: Time, pause: Duration, decide: &mut dyn FnMut(Decision)) {
        let (reason, value) = self.resume(now, pause);
        self.tell(reason, value, decide);
    }

    fn tell(&mut self, reason: Reason, value: f64, decide: &mut dyn FnMut(Decision)) {
        let rate = self.rate.map(|bps| Rate::from_bps(bps as u64));
        if self.told != Some((rate, self.state)) {
            self.told = Some((rate, self.state));
            decide(Decision { side: self.side, rate, state: self.state, reason, value });
        }
    }

    fn next(&mut self, view: &View<'_>) -> (Reason, f64) {
        if self.is_fixed {
            return self.stay(view.now);
        }
        if view.silence.is_some_and(|silence| silence >= STALL) {
            return self.stall(view);
        }
        if self.state == State::Stalled {
            return self.resume(view.now, view.now.since(self.entered));
        }
        let load = self.note_load(view.now);
        if let Some(overdue) = view.overdue.filter(|_| self.state != State::Idle) {
            return self.hurry(overdue, view);
        }
        match self.state {
            State::Idle => self.idle(load, view),
            State::Loaded => self.loaded(load, view),
            State::Probing => self.probing(view),
            State::BackingOff => self.backing_off(view),
            State::Stalled => unreachable!("left above"),
        }
    }

    /// The load, which is remembered if it is one.
    fn note_load(&mut self, now: Time) -> f64 {
        let load = self.load();
        if load >= self.rate.unwrap_or(0.0) * IDLE_SHARE && load >= IDLE_BPS {
            self.last_busy = now;
        }
        load
    }

    /// Keeps the rate of a side that has a fixed one; only its state follows the load.
    fn stay(&mut self, now: Time) -> (Reason, f64) {
        let load = self.note_load(now);
        if self.last_busy == now && load > 0.0 {
            if self.state != State::Loaded {
                self.enter(State::Loaded, now);
            }
            (Reason::Load, load / 1e6)
        } else {
            if self.state != State::Idle && now.since(self.last_busy) >= IDLE_AFTER {
                self.enter(State::Idle, now);
            }
            (Reason::Idle, load / 1e6)
        }
    }

    fn idle(&mut self, load: f64, view: &View<'_>) -> (Reason, f64) {
        if self.last_busy == view.now && load > 0.0 {
            self.enter(State::Loaded, view.now);
            self.tried = view.now;
            return (Reason::Load, load / 1e6);
        }
        let unseen = view.now.since(self.tried);
        if let (Some(capacity), Some(learned)) = (self.capacity, self.learned)
            && unseen >= AGE_AFTER
        {
            let share = view.elapsed.as_secs_f64() / AGE_TIME;
            self.capacity = Some(capacity + (learned.usual - capacity) * share.min(1.0));
            // Told in steps that matter.
            let held = self.held(view.probes);
            if self.rate.is_some_and(|rate| (held / rate - 1.0).abs() > AGE_STEP) {
                self.rate = Some(held);
            }
        }
        (Reason::Age, unseen.as_secs_f64())
    }

    fn loaded(&mut self, load: f64, view: &View<'_>) -> (Reason, f64) {
        if let Some(excess) = view.excess.filter(|&excess| excess > view.threshold) {
            return self.back_off(excess, view);
        }
        if view.now.since(self.last_busy) >= IDLE_AFTER {
            self.enter(State::Idle, view.now);
            return (Reason::Idle, load / 1e6);
        }
        self.learn(view.elapsed);
        self.forget(view.elapsed);
        let held = self.hold_time();
        // The rate of an unknown line is the user's bound, if there is one: it can be raised no further.
        if self.rate.is_some()
            && self.capacity.is_some()
            && view.may_probe
            && view.excess.is_some()
            && view.now.since(self.tried) >= held
            && self.is_used(self.load_span())
        {
            self.enter(State::Probing, view.now);
            self.step.number = self.first_step();
            return self.raise(view.now);
        }
        (Reason::Load, load / 1e6)
    }

    fn probing(&mut self, view: &View<'_>) -> (Reason, f64) {
        if let Some(excess) = view.excess.filter(|&excess| excess > view.threshold) {
            return self.back_off(excess, view);
        }
        self.forget(view.elapsed);
        // A step of a tenth beyond the line makes a queue that shows in this time.
        let shows = view.threshold / (self.step_percent() / 100.0).max(0.1);
        let length = seconds((view.feedback + STEP_SEEN).max(MIN_STEP).max(shows));
        let took = view.now.since(self.step.began);
        if took < length || view.excess.is_none() {
            return (Reason::Probe, self.step_percent());
        }
        let rate = self.rate.expect("only a known rate is raised");
        // What went through without a queue the line carries.
        if let Some(measured) = self.measure(view, took.max(self.load_span())) {
            // Less a packet at each end: of several measurements the luckiest would stay.
            let sure = measured.bps * (1.0 - 2.0 * self.packet_time() / took.as_secs_f64());
            self.capacity = self.capacity.map(|capacity| capacity.max(sure.min(rate)));
        }
        if !self.is_used(took) || rate >= self.max {
            let share = self.history.load(took) / rate * 100.0;
            self.tried = view.now;
            let room = self.history.load(took) * ROOM;
            self.rate = Some(rate.min(self.held(view.probes).max(room)));
            self.enter(State::Loaded, view.now);
            return (Reason::Unused, share);
        }
        self.step.number += 1;
        self.raise(view.now)
    }

    /// On a line whose rate varies, or was much higher not long ago, small steps find nothing.
    fn first_step(&self) -> u32 {
        let usual = self.learned.map_or(0.0, |learned| learned.usual);
        if self.capacity.is_some_and(|capacity| capacity < usual * FAR_BELOW) {
            return 3;
        }
        (self.spread() / STEADY).min(3.0) as u32
    }

    fn raise(&mut self, now: Time) -> (Reason, f64) {
        self.step.began = now;
        let rate = self.rate.expect("only a known rate is raised");
        self.rate = Some((rate * (1.0 + self.step_percent() / 100.0)).min(self.max));
        (Reason::Probe, self.step_percent())
    }

    fn step_percent(&self) -> f64 {
        // Beyond the fifth step only a line that is known to vary is taken at a run.
        let most = STEPS_PERCENT.len() - if self.spread() > STEADY { 1 } else { 2 };
        STEPS_PERCENT[(self.step.number as usize).min(most)]
    }

    fn stall(&mut self, view: &View<'_>) -> (Reason, f64) {
        if self.state != State::Stalled {
            self.enter(State::Stalled, view.now);
            // What was lowered because answers stayed out was lowered in vain.
            self.rate = self.held_or_open(view.probes);
        }
        let silence = view.silence.map_or(0.0, Duration::as_secs_f64);
        if silence >= OPEN_AFTER {
            self.rate = self.open();
        }
        (Reason::Silence, silence)
    }

    /// Goes on after a `pause` in which nobody looked, or nobody answered.
    fn resume(&mut self, now: Time, pause: Duration) -> (Reason, f64) {
        self.rate = self.held_or_open(0.0);
        self.tried = now;
        self.last_busy = now;
        self.enter(State::Loaded, now);
        (Reason::Resume, pause.as_secs_f64())
    }

    fn enter(&mut self, state: State, now: Time) {
        self.state = state;
        self.entered = now;
    }

    fn measure(&self, view: &View<'_>, span: Duration) -> Option<Measured> {
        let window = Window { span, quiet: view.clear(), since: view.late };
        capacity::measure(self.side, view.delays, &self.history, window, view.now)
    }

    /// The rate of a line without a queue, on which `probes` bit/s are beside the shaper.
    fn held(&self, probes: f64) -> f64 {
        let capacity = self.capacity.expect("known in every state that holds a rate");
        self.bounded(capacity * self.mode.share - probes)
    }

    /// The rate of a line without a queue; that of an open side as long as the line is unknown.
    fn held_or_open(&self, probes: f64) -> Option<f64> {
        self.capacity.map(|_| self.held(probes)).or_else(|| self.open())
    }

    /// The rate of a side that is not held back: the user's bound, if there is one.
    fn open(&self) -> Option<f64> {
        self.max.is_finite().then_some(self.max)
    }

    fn bounded(&self, rate: f64) -> f64 {
        rate.min(self.max).max(MIN_RATE_BPS as f64)
    }

    /// By what share the line's rate varies: one jump is none.
    fn spread(&self) -> f64 {
        median(self.changes.iter().copied()).unwrap_or(0.0)
    }

    /// A line whose capacity is the same time and again is left alone for longer.
    fn hold_time(&self) -> Duration {
        let spread = self.spread().max(self.changes.back().copied().unwrap_or(1.0));
        seconds((self.mode.hold / (1.0 + HOLD_SPREAD * spread)).max(MIN_HOLD_S))
    }

    /// A line that shows no queue for a while no longer varies. Without that what is let stand for its sake
    /// could stand for good, where the buffer in front of the line holds no more.
    fn forget(&mut self, elapsed: Duration) {
        let share = |time: f64| 1.0 - (elapsed.as_secs_f64() / time).min(1.0);
        self.noise *= share(NOISE_TIME);
        self.changes.iter_mut().for_each(|change| *change *= share(SPREAD_TIME));
    }

    fn note_extremes(&mut self) {
        let Some(capacity) = self.capacity else { return };
        let learned = self.learned.get_or_insert(Learned {
            least: capacity,
            usual: capacity,
            most: capacity,
        });
        learned.least = learned.least.min(capacity);
        learned.most = learned.most.max(capacity);
    }

    fn learn(&mut self, elapsed: Duration) {
        if let (Some(capacity), Some(learned)) = (self.capacity, &mut self.learned) {
            let share = (elapsed.as_secs_f64() / USUAL_TIME).min(1.0);
            learned.usual += (capacity - learned.usual) * share;
        }
    }
}

pub(crate) fn seconds(seconds: f64) -> Duration {
    Duration::from_nanos((seconds * 1e9) as u64)
}

/// Parameters in which the modes differ.
#[derive(Debug)]
struct Character {
    /// Share of the capacity that is let through.
    share: f64,
    /// Seconds of queue, beyond packets and jitter, from which on it is one.
    threshold: f64,
    /// Seconds for which a rate is held on a steady line before more is tried.
    hold: f64,
}

/// The share: 97 %, so that a queue of 10 ms is gone in a third of a second and, with the probing, 95 % of
/// the line is used. The threshold: goals of 1.6 ms on average need it to show at 2 ms. The hold: 90 % of
/// a line that became four times as fast within 5 s, of which the nine steps take 1 s and TCP the rest.
static PING: Character = Character { share: 0.97, threshold: 0.002, hold: 2.0 };
/// Nearly everything; a queue of one frame of a video call (RFC 9330 speaks of 10 ms) is let stand.
static BANDWIDTH: Character = Character { share: 0.995, threshold: 0.008, hold: 2.0 };
/// Steps of probing in percent: each about twice the one before, so that the one that overshoots the line
/// overshoots little on a steady line, and four times the line is reached in nine.
const STEPS_PERCENT: [f64; 6] = [2.5, 5.0, 10.0, 20.0, 25.0, 50.0];
/// Seconds of a step that must be seen before the next: three probes at 20 ms.
const STEP_SEEN: f64 = 0.06;
/// Seconds that a step lasts at least: five ticks.
const MIN_STEP: f64 = 0.1;
/// A queue counts as gone at this share of the threshold, so that the state does not flutter.
const CLEAR_SHARE: f64 = 0.5;
/// A line with less of a spread is steady.
const STEADY: f64 = 0.1;
/// Seconds that the queue gains or loses while the controller does not see it, at the spread of the rate.
const SLACK: f64 = 0.2;
/// Seconds at least on a line that nothing is known of: the bursts with which connections begin.
const UNKNOWN_SLACK: f64 = 0.01;
/// Seconds of slack at most: no more than a call can bear beside its own (ITU-T G.114: 150 ms one way).
const MAX_SLACK_S: f64 = 0.05;
/// A spread of 5 % halves the time for which a rate is held.
const HOLD_SPREAD: f64 = 20.0;
/// Seconds: twice the shortest step.
const MIN_HOLD_S: f64 = 0.2;
/// Share of a rate from which on it limits the traffic: TCP's sawtooth with a shallow queue uses more.
const USED: f64 = 0.9;
/// Share of a rate that limits the traffic if packets wait for it and it is not far above what comes.
const USED_IF_WAITS: f64 = 0.7;
/// Factor by which the load may still grow where a higher rate was not used: a step of probing.
const ROOM: f64 = 1.25;
/// A full packet on Ethernet, with all that takes time.
const FULL_PACKET_BITS: f64 = 1538.0 * 8.0;
/// Packets of which one more or less is 6 % of the load.
const LOAD_PACKETS: f64 = 16.0;
/// Share of the rate that is no load if less is used.
const IDLE_SHARE: f64 = 0.02;
/// Rate in bit/s that is never a load: probes, name look-ups, calls that pause.
const IDLE_BPS: f64 = 100_000.0;
/// A page takes pauses of up to a second while it loads.
const IDLE_AFTER: Duration = Duration::from_secs(1);
/// Time for which a measured capacity is trusted.
const AGE_AFTER: Duration = Duration::from_secs(10);
/// Seconds: then two thirds of what it differed from the usual are forgotten.
const AGE_TIME: f64 = 30.0;
/// Smaller changes are not told.
const AGE_STEP: f64 = 0.01;
/// Seconds over which the usual capacity is averaged.
const USUAL_TIME: f64 = 20.0;
/// A capacity below this share of the usual one may be a passing weakness.
const FAR_BELOW: f64 = 0.6;
/// Time without any answer that is a stall: longer than the longest time between probes and any queue.
const STALL: Duration = Duration::from_secs(3);
/// Seconds of silence after which the shaper opens, rather than strangle a line it knows nothing of
/// (cake-autorate sets its minimum after the same time).
const OPEN_AFTER: f64 = 10.0;
/// Lowering the rate of one side must show its effect within this, beside twice the feedback delay,
/// before the other side is suspected of the same queue.
const TRYING: f64 = 0.2;
/// Time before the other side may stir the line.
const SETTLED: Duration = Duration::from_millis(300);
/// Seconds, beside twice the feedback delay, for which what a probe stirred up is its own.
const STIRRED: f64 = 0.4;
/// Seconds under load in which delay that was no queue is forgotten.
const NOISE_TIME: f64 = 20.0;
/// Seconds under load in which the line's variation is forgotten; a radio link varies many times in that.
const SPREAD_TIME: f64 = 5.0;
