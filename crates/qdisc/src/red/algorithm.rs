//! The RED algorithm, apart from any queue.
//!
//! Follows Floyd and Jacobson (1993, figure 17) as Linux has it (`include/net/red.h`): the average is
//! a fixed-point number, the wait for the next drop is drawn once and not packet by packet, and a
//! table says how far the average falls while nothing waits. *Adaptive* RED (Floyd, Gummadi, Shenker
//! 2001) is Linux' too; *gentle* RED (Floyd 2000) Linux has not.
//!
//! Three steps make a discipline of it, and each may be used alone:
//!
//! 1. [`RedState::update`] moves the average of one queue, measured in whatever unit the thresholds
//!    have (bytes, packets);
//! 2. [`RedState::decide`] judges an arrival by an average: its own, or one put together from several
//!    queues as GRED and RIO do it;
//! 3. the discipline drops or marks.

use weir_core::{Draw, Duration, Rng, Time};

/// An average queue length with its binary point at [`RedParams::weight_log`].
pub(crate) type Average = u64;

/// RED's parameters: what never changes, and the greatest probability, which adaptive RED moves.
#[derive(Clone, Debug)]
pub(crate) struct RedParams {
    /// Below this average nothing is dropped.
    pub(super) min: Average,
    /// From this average on everything is dropped, unless RED is gentle.
    pub(super) max: Average,
    /// Distance of the thresholds in the queue's unit, 1 at least.
    pub(super) span: u32,
    /// An arrival weighs 2^-this in the average.
    pub(super) weight_log: u32,
    /// Probability at the upper threshold, as a fraction of 2^32.
    pub(super) max_p: u32,
    /// Probability that each unit above the lower threshold adds, as a fraction of 2^32.
    pub(super) step: u32,
    /// How the average falls while nothing waits; `None` lets it stay.
    pub(super) damping: Option<IdleDamping>,
    pub(super) gentle: bool,
}

/// Decay of the average in idle time: cells of 2^`cell_log` microseconds, each with the number of
/// bits by which the average is shifted down.
#[derive(Clone, Debug)]
pub(crate) struct IdleDamping {
    pub(super) cell_log: u32,
    pub(super) shifts: [u8; CELLS],
}

/// RED's state: one a queue.
#[derive(Clone, Debug, Default)]
pub(crate) struct RedState {
    average: Average,
    /// Packets since the last drop or mark while the average stayed between the thresholds.
    since_last: Option<u64>,
    /// How far the next drop is away: evenly drawn, in units of 1/`step`.
    drawn: u64,
    idle_since: Option<Time>,
}

/// RED's decision on an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RedVerdict {
    /// It may wait.
    Pass,
    /// Drawn at random: drop or mark.
    Early,
    /// The average is too large: drop, or mark if nothing harder was asked for.
    Forced,
}

impl RedParams {
    /// The lower threshold, comparable with an average.
    pub fn min(&self) -> Average {
        self.min
    }

    /// The upper threshold, comparable with an average.
    pub fn max(&self) -> Average {
        self.max
    }

    /// Values that `tc -d qdisc show` prints: thresholds, weight, probability, cells.
    #[cfg(test)]
    pub fn as_shown(&self) -> (u64, u64, u32, f64, u32) {
        (
            self.min >> self.weight_log,
            self.max >> self.weight_log,
            self.weight_log,
            f64::from(self.max_p) / 2f64.powi(32),
            self.damping.as_ref().map_or(0, |damping| damping.cell_log),
        )
    }

    /// Adaptive RED's step (Floyd, Gummadi, Shenker 2001, section 3), due every [`ADAPT_EVERY`]: keeps
    /// the average within the middle fifth between the thresholds by moving the greatest probability.
    pub fn adapt(&mut self, state: &RedState, now: Time) {
        let average = match state.idle_since {
            None => state.average,
            Some(since) => self.after_idling(state.average, now.since(since)),
        };
        let average = average >> self.weight_log;
        let fifth = u64::from(self.span / 5);
        let lower = (self.min >> self.weight_log) + 2 * fifth;
        if average > lower + fifth && self.max_p <= MAX_P_CEILING {
            self.max_p += ONE_PERCENT.min(self.max_p / 4);
        } else if average < lower && self.max_p >= ONE_PERCENT {
            self.max_p = self.max_p / 10 * 9;
        }
        let rounded = (u64::from(self.max_p) + u64::from(self.span / 2)) / u64::from(self.span);
        self.step = (rounded as u32).max(1);
    }

    /// The average after an idle time.
    fn after_idling(&self, average: Average, idle: Duration) -> Average {
        let Some(damping) = &self.damping else { return average };
        let last = CELLS as u64 - 1;
        let idle = idle.as_micros().min(last << damping.cell_log);
        let shift = damping.shifts[(idle >> damping.cell_log) as usize];
        if shift > 0 {
            return average >> shift;
        }
        // Within the first halving the table is too coarse: (1-W)^m is taken as 1 - mW.
        let fall = ((u128::from(average) * u128::from(idle)) >> damping.cell_log) as u64;
        if fall < average >> 1 { average - fall } else { average >> 1 }
    }

    /// Whether the packet that is `count` packets after the last drop is due at `average`.
    fn is_due(&self, average: Average, count: u64, drawn: u64) -> bool {
        if average < self.max || !self.gentle {
            return ((average - self.min) >> self.weight_log) * count >= drawn;
        }
        // Gentle: from max_p at the upper threshold to 1 at twice of it.
        let above = u128::from(average - self.max);
        let certain = 1u128 << 32;
        let rise = (certain - u128::from(self.max_p)) * above / u128::from(self.max);
        let probability = u128::from(self.max_p) + rise;
        probability * u128::from(count) >= u128::from(drawn) * u128::from(self.step)
    }

    /// Whether everything goes at `average`.
    fn is_beyond(&self, average: Average) -> bool {
        average >= if self.gentle { 2 * self.max } else { self.max }
    }

    fn draw(&self, rng: &mut Rng) -> u64 {
        rng.below(1 << 32) / u64::from(self.step)
    }
}

impl RedState {
    /// Moves the average for an arrival at `now` that finds `backlog` waiting, and returns it. An idle
    /// time ends here.
    pub fn update(&mut self, params: &RedParams, backlog: u64, now: Time) -> Average {
        self.average = match self.idle_since.take() {
            Some(since) => params.after_idling(self.average, now.since(since)),
            // avg + W (backlog - avg), where W = 2^-weight_log and avg is kept 2^weight_log times.
            None => self.average - (self.average >> params.weight_log) + backlog,
        };
        self.average
    }

    /// Judges an arrival at an `average`, which need not be this state's own.
    pub fn decide(&mut self, params: &RedParams, average: Average, rng: &mut Rng) -> RedVerdict {
        if average < params.min {
            self.start_over();
            RedVerdict::Pass
        } else if params.is_beyond(average) {
            self.start_over();
            RedVerdict::Forced
        } else if self.is_drawn(params, average, rng) {
            RedVerdict::Early
        } else {
            RedVerdict::Pass
        }
    }

    /// Between the thresholds: whether this packet is the one that was drawn.
    pub fn is_drawn(&mut self, params: &RedParams, average: Average, rng: &mut Rng) -> bool {
        let Some(before) = self.since_last else {
            self.since_last = Some(0);
            self.drawn = params.draw(rng);
            return false;
        };
        let count = before + 1;
        let due = params.is_due(average, count, self.drawn);
        self.since_last = Some(if due { 0 } else { count });
        if due {
            self.drawn = params.draw(rng);
        }
        due
    }

    /// Outside the thresholds: the wait is drawn anew when the average comes back between them.
    pub fn start_over(&mut self) {
        self.since_last = None;
    }

    /// Nothing waits from `now` on. Later calls change nothing until an arrival ends the idle time.
    pub fn start_idling(&mut self, now: Time) {
        self.idle_since.get_or_insert(now);
    }

    /// Whether nothing waits.
    pub fn is_idle(&self) -> bool {
        self.idle_since.is_some()
    }

    /// The average as of the last arrival.
    pub fn average(&self) -> Average {
        self.average
    }

    /// A state with that average.
    #[cfg(test)]
    pub(super) fn with_average(average: Average) -> Self {
        Self { average, ..Self::default() }
    }

    /// Takes over `other`'s average and idle time: several queues with one average (WRED).
    pub fn share_average_of(&mut self, other: &Self) {
        self.average = other.average;
        self.idle_since = other.idle_since;
    }
}

/// Cells of the idle table (`RED_STAB_SIZE`).
pub(super) const CELLS: usize = 256;

/// `sch_red.c` asks for half a second ("interval" in the paper of 2001), which is 125 jiffies; the kernel's timer
/// wheel rounds spans of that length up to eight.
pub(crate) const ADAPT_EVERY: Duration = Duration::from_millis(512);

/// `RED_ONE_PERCENT`, the least that adaptive RED lowers from, and its largest step upwards.
const ONE_PERCENT: u32 = 42_949_673;

/// `MAX_P_MAX`: adaptive RED raises the probability up to here.
const MAX_P_CEILING: u32 = 50 * ONE_PERCENT;
