//! The PIE algorithm, apart from any queue.
//!
//! Follows RFC 8033 as Linux has it (`include/net/pie.h`, `net/sched/sch_pie.c`): time in ticks of
//! 64 ns, probabilities as integers of 56 bits, an update of the probability whenever the kernel's
//! timer wheel fires. The delay comes from the last packet's sojourn time, or from a drain rate
//! (`dq_rate_estimator`). As in Linux the probability may grow beyond 1 under a load that does not
//! respond, and then takes as long to come back.

use std::num::NonZeroU32;

use weir_core::{Draw, Duration, Packet, Rng, Time};

use crate::linux::JIFFY;

/// PIE's parameters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PieParams {
    pub target: Duration,
    /// Weight of the delay's distance from the target, in sixteenths of 1/s.
    pub alpha: u64,
    /// Weight of the delay's change, in sixteenths of 1/s.
    pub beta: u64,
    /// The highest probability at which packets are marked; `None` never marks.
    pub mark_up_to: Option<u64>,
    /// Whether short packets are dropped with a lower probability.
    pub bytemode: bool,
    /// Whether the delay is the backlog divided by a measured drain rate.
    pub dq_rate_estimator: bool,
    /// Length of a full packet.
    pub full_packet: u32,
}

/// PIE's state: one a queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PieState {
    /// The drop probability, as a share of [`MAX_PROB`].
    prob: u64,
    /// Sum of the probabilities since the last drop (RFC 8033, section 5.1, "de-randomization").
    accumulated: u64,
    qdelay: Ticks,
    qdelay_old: Ticks,
    /// Rest of the burst allowance.
    burst: Ticks,
    /// When the last packet left or, with the estimator, when its measurement began.
    since: Option<Ticks>,
    /// Bytes that left in this measurement of the drain rate, while one is under way.
    measured: Option<u32>,
    /// The average drain rate in 1/256 bytes a tick, once one has been measured.
    drain_rate: Option<NonZeroU32>,
}

/// Time in units of 64 ns (`PSCHED_SHIFT`).
type Ticks = u64;

impl PieState {
    /// Whether a packet that is to be dropped may be marked instead.
    pub fn may_mark(&self, params: &PieParams) -> bool {
        params.mark_up_to.is_some_and(|most| self.prob <= most)
    }

    /// A packet was dropped, for whatever reason.
    pub fn on_drop(&mut self) {
        self.accumulated = 0;
    }

    /// Whether a packet of `len` bytes that comes to `backlog` bytes is to be dropped: RFC 8033, section 5.1 ("drop_early").
    pub fn strikes(&mut self, len: u32, backlog: u64, params: &PieParams, rng: &mut Rng) -> bool {
        let relaxed = self.qdelay < params.target() / 2 && self.prob < MAX_PROB / 5;
        if self.burst > 0 || relaxed || backlog < 2 * u64::from(params.full_packet) {
            return false;
        }
        let prob = if params.bytemode && len <= params.full_packet {
            u64::from(len) * (self.prob / u64::from(params.full_packet))
        } else {
            self.prob
        };
        if prob == 0 {
            self.accumulated = 0;
        }
        // Neither too soon after a drop nor too long after it.
        self.accumulated = self.accumulated.saturating_add(prob);
        if self.accumulated < MAX_PROB / 100 * 85 {
            return false;
        }
        if self.accumulated >= MAX_PROB / 2 * 17 {
            return true;
        }
        let strikes = rng.below(MAX_PROB + 1) < prob;
        if strikes {
            self.accumulated = 0;
        }
        strikes
    }

    /// `packet` left at `now` and `backlog` bytes stay behind.
    pub fn on_dequeue(&mut self, packet: &Packet, backlog: u64, params: &PieParams, now: Time) {
        let now = ticks_of(now);
        if params.dq_rate_estimator {
            return self.measure(packet.len, backlog, now);
        }
        self.qdelay = if backlog == 0 { 0 } else { now - ticks_of(packet.enqueued_at) };
        let elapsed = self.since.map_or(0, |since| now - since);
        self.since = Some(now);
        self.burst = self.burst.saturating_sub(elapsed);
    }

    /// Measures the drain rate over [`MEASURED_OVER`] bytes, as long as so many wait.
    fn measure(&mut self, len: u32, backlog: u64, now: Ticks) {
        if backlog >= MEASURED_OVER && self.measured.is_none() {
            self.since = Some(now);
            self.measured = Some(0);
        }
        let Some(measured) = &mut self.measured else { return };
        *measured += len;
        let elapsed = self.since.map_or(0, |since| now - since);
        if u64::from(*measured) < MEASURED_OVER || elapsed == 0 {
            return;
        }
        let rate = ((u64::from(*measured) << RATE_SHIFT) / elapsed) as u32;
        self.drain_rate = NonZeroU32::new(match self.drain_rate.map(NonZeroU32::get) {
            None => rate,
            Some(average) => average - (average >> 3) + (rate >> 3),
        });
        self.measured = (backlog >= MEASURED_OVER).then_some(0);
        if self.measured.is_some() {
            self.since = Some(now);
        }
        self.burst = self.burst.saturating_sub(elapsed);
    }

    /// Computes the probability anew: RFC 8033, section 5.2, every `tupdate`.
    pub fn update(&mut self, backlog: u64, params: &PieParams) {
        if params.dq_rate_estimator {
            self.qdelay_old = self.qdelay;
            let scaled = backlog << RATE_SHIFT;
            self.qdelay = self.drain_rate.map_or(0, |rate| scaled / u64::from(rate.get()));
        }
        let saturated = self.step(params);
        // A backlog without delay is a small one: no reason to come down faster.
        let idle = self.qdelay == 0 && self.qdelay_old == 0 && backlog == 0;
        if idle && !saturated {
            self.prob -= self.prob / 64;
        }
        let half = params.target() / 2;
        let measured = !params.dq_rate_estimator || self.drain_rate.is_some();
        if self.qdelay < half && self.qdelay_old < half && self.prob == 0 && measured {
            self.start_over();
        }
        if !params.dq_rate_estimator {
            self.qdelay_old = self.qdelay;
        }
    }

    /// Moves the probability by one step of the controller; says whether it ran over.
    fn step(&mut self, params: &PieParams) -> bool {
        let (alpha, beta) = self.gains(params);
        let from_target = self.qdelay as i64 - params.target() as i64;
        let change = self.qdelay as i64 - self.qdelay_old as i64;
        let mut delta =
            alpha.saturating_mul(from_target).saturating_add(beta.saturating_mul(change));
        // At most 2 % a step once the probability is high.
        if delta > (MAX_PROB / 50) as i64 && self.prob >= MAX_PROB / 10 {
            delta = (MAX_PROB / 100 * 2) as i64;
        }
        if self.qdelay > ticks(HIGH_DELAY) {
            delta = delta.saturating_add((MAX_PROB / 50) as i64);
        }
        match self.prob.checked_add_signed(delta) {
            Some(prob) => self.prob = prob,
            None if delta > 0 => {
                self.prob = MAX_PROB;
                return true;
            }
            None => self.prob = 0,
        }
        false
    }

    /// The weights of one step, smaller while the probability is low (RFC 8033, section 5.2, auto-tuning).
    fn gains(&self, params: &PieParams) -> (i64, i64) {
        let gain = |weight: u64| (weight * (MAX_PROB / TICKS_PER_SECOND)) >> 4;
        let mut shift = 0;
        if self.prob < MAX_PROB / 10 {
            shift = 1;
            let mut power = 100;
            while power <= 1_000_000 && self.prob < MAX_PROB / power {
                shift += 2;
                power *= 10;
            }
        }
        ((gain(params.alpha) >> shift) as i64, (gain(params.beta) >> shift) as i64)
    }

    /// The queue is calm: bursts are allowed again.
    fn start_over(&mut self) {
        *self = Self {
            prob: self.prob,
            qdelay: self.qdelay,
            qdelay_old: self.qdelay_old,
            ..Self::default()
        };
    }
}

impl Default for PieState {
    fn default() -> Self {
        Self {
            prob: 0,
            accumulated: 0,
            qdelay: 0,
            qdelay_old: 0,
            burst: ticks(BURST_ALLOWANCE),
            since: None,
            measured: None,
            drain_rate: None,
        }
    }
}

impl PieParams {
    fn target(&self) -> Ticks {
        ticks(self.target)
    }
}

/// When the kernel's timer next asks for an update, in ticks of its clock.
///
/// Linux' timer wheel never fires early, so a timer of n jiffies that is set in a timer fires after
/// n + 1 (`calc_index` in `kernel/time/timer.c`): with `HZ=250` a `tupdate` of 15 ms is 4 jiffies, and
/// the update comes every 20 ms.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UpdateTimer {
    next: Option<u64>,
    /// Jiffies between updates; `None` if there is but one.
    period: Option<u64>,
}

impl UpdateTimer {
    /// The timer of a discipline that is made at time zero.
    pub fn new(tupdate: Duration) -> Self {
        let jiffies = tupdate.as_nanos().div_ceil(JIFFY.as_nanos());
        Self { next: Some(FIRST_UPDATE), period: (jiffies > 0).then_some(jiffies + 1) }
    }

    /// Whether an update is due at `now`; if so the timer is set for the one after it.
    pub fn fires(&mut self, now: Time) -> bool {
        let Some(next) = self.next.filter(|&next| next <= jiffies(now)) else { return false };
        self.next = self.period.map(|period| next + period);
        true
    }

    /// The update that has just been made is the first part of one: the rest follows a jiffy later.
    pub fn continues(&mut self) {
        if let (Some(next), Some(period)) = (&mut self.next, self.period) {
            *next = *next - period + 1;
        }
    }

    /// Leaves out the updates up to `now`, which would change nothing, each of so many parts.
    pub fn skip(&mut self, now: Time, parts: usize) {
        if let (Some(next), Some(period)) = (&mut self.next, self.period) {
            let period = period + parts as u64 - 1;
            let behind = (jiffies(now) + 1).saturating_sub(*next);
            *next += behind.div_ceil(period) * period;
        }
    }
}

fn jiffies(time: Time) -> u64 {
    time.as_nanos() / JIFFY.as_nanos()
}

const fn ticks(span: Duration) -> Ticks {
    span.as_nanos() >> TICK_SHIFT
}

fn ticks_of(time: Time) -> Ticks {
    time.as_nanos() >> TICK_SHIFT
}

/// A probability of 1 (`MAX_PROB`).
pub(crate) const MAX_PROB: u64 = u64::MAX >> 8;

/// One tick is 2^6 ns (`PSCHED_SHIFT`).
const TICK_SHIFT: u32 = 6;

const TICKS_PER_SECOND: u64 = 1_000_000_000 >> TICK_SHIFT;

/// RFC 8033, section 4.4: bursts of up to 150 ms pass before the first drop.
const BURST_ALLOWANCE: Duration = Duration::from_millis(150);

/// RFC 8033, section 5.2: above 250 ms the probability rises by 2 % more a step.
const HIGH_DELAY: Duration = Duration::from_millis(250);

/// Bytes over which the drain rate is measured (`QUEUE_THRESHOLD`).
const MEASURED_OVER: u64 = 16_384;

/// Drain rates have 8 bits behind the point (`PIE_SCALE`).
const RATE_SHIFT: u32 = 8;

/// The jiffy of the first update: `sch_pie.c` sets the timer half a second (125 jiffies) ahead, which the
/// timer wheel rounds up to eight.
const FIRST_UPDATE: u64 = 128;

#[cfg(test)]
mod tests;
