//! Estimate of the line: its capacity, how much that varies, and what it mostly was.

use std::collections::VecDeque;

use weir_core::Duration;

use super::STEADY_SPREAD;
use super::trial::MAX_FOREIGN;
use crate::quantities::{BitsPerSecond, Seconds, median};

/// Estimate of the line behind one side.
#[derive(Clone, Debug, Default)]
pub(super) struct LineEstimate {
    /// Capacity of the line; `None` before it was first measured.
    pub capacity: Option<BitsPerSecond>,
    /// By what shares the last measurements of the capacity differed, newest last.
    changes: VecDeque<f64>,
    /// Excess without a queue that the line shows now and then.
    pub noise: Seconds,
    /// How lately a queue came at the rate that was held: 1 just now, 0 once that is forgotten.
    pub caution: f64,
    /// Excess that did not fall with the rate, and so is let stand.
    pub foreign: Seconds,
    /// What that was when it was last found.
    foreign_found: Seconds,
    /// Usual capacity; `None` before the first congestion.
    pub base: Option<BitsPerSecond>,
    /// Time under load for which the usual capacity is known.
    known_for: Seconds,
    /// Whether probing found the present capacity again since it last changed.
    pub confirmed: bool,
}

impl LineEstimate {
    /// Share by which the capacity varies; a single jump does not count.
    pub fn spread(&self) -> f64 {
        median(self.changes.iter().copied()).unwrap_or(0.0)
    }

    /// Whether any of the last measurements differed by more than those of a steady line do.
    pub fn varied(&self) -> bool {
        self.changes.iter().any(|&change| change > STEADY_SPREAD)
    }

    /// Share by which the last two measurements of the capacity differed; `None` before there are two.
    pub fn last_change(&self) -> Option<f64> {
        self.changes.back().copied()
    }

    /// Notes a share by which two measurements of the capacity differ.
    pub fn note_change(&mut self, change: f64) {
        self.confirmed &= change <= 0.0;
        self.changes.push_back(change);
        if self.changes.len() > MAX_CHANGES {
            self.changes.pop_front();
        }
    }

    /// Notes an excess of `peak` that was no queue.
    pub fn note_false_alarm(&mut self, peak: Seconds) {
        self.noise += (peak - self.noise).max(Seconds::ZERO) * NOISE_GAIN;
    }

    /// Notes an excess that did not fall with the rate.
    pub fn note_foreign(&mut self, excess: Seconds) {
        self.foreign = self.foreign.max((excess * FOREIGN_FACTOR).min(MAX_FOREIGN));
        self.foreign_found = self.foreign;
    }

    /// Forgets of the excess that is let stand what a longer path explains, as its delays are no excess any more.
    pub fn note_longer_path(&mut self, by: Seconds) {
        self.foreign = (self.foreign - by * FOREIGN_FACTOR).max(Seconds::ZERO);
        self.foreign_found = self.foreign;
    }

    /// Keeps the memory of an excess that did not fall with the rate from fading, as one of `excess` came and went.
    ///
    /// It becomes no longer by that: a part of what came and went may have been a queue.
    pub fn keep_foreign(&mut self, excess: Seconds) {
        self.foreign = self.foreign.max((excess * FOREIGN_FACTOR).min(self.foreign_found));
    }

    /// The line with a capacity that was learned for as long as counts.
    pub fn known(capacity: BitsPerSecond) -> Self {
        Self {
            capacity: Some(capacity),
            base: Some(capacity),
            known_for: YOUNG_TIME,
            ..Self::default()
        }
    }

    /// Averages the capacity under load, which gives the usual one.
    ///
    /// While little is known, what is found well above it counts for more: the first congestion is measured in a tenth of
    /// a second, and that a line carries more is shown by probing behind it.
    pub fn learn(&mut self, elapsed: Duration) {
        if let (Some(capacity), Some(base)) = (self.capacity, &mut self.base) {
            let elapsed = Seconds::from(elapsed);
            self.known_for += elapsed;
            let is_missed = capacity > *base * (1.0 + STEADY_SPREAD);
            let is_young = is_missed && self.known_for < YOUNG_TIME;
            let over = if is_young { self.known_for / 2.0 } else { BASE_TIME };
            let share = (elapsed / over).min(1.0);
            *base += (capacity - *base) * share;
        }
    }

    /// The usual capacity, once it is more than what the first congestion showed in a tenth of a second.
    pub fn learned(&self) -> Option<BitsPerSecond> {
        self.base.filter(|_| self.known_for >= LEARNED_AFTER)
    }

    /// Lets the memory of variation and noise fade: a line that shows no queue for a while no longer varies.
    ///
    /// Otherwise the slack could stand for good where the buffer in front of the line holds no more.
    pub fn forget(&mut self, elapsed: Duration) {
        let share = |time: Seconds| 1.0 - (Seconds::from(elapsed) / time).min(1.0);
        self.noise *= share(NOISE_TIME);
        self.caution = (self.caution - Seconds::from(elapsed) / CAUTION_TIME).max(0.0);
        self.foreign *= share(FOREIGN_TIME);
        self.changes.iter_mut().for_each(|change| *change *= share(SPREAD_TIME));
    }

    /// Moves the capacity towards the usual one, as nobody looks for `elapsed`; returns whether there is one.
    pub fn age(&mut self, elapsed: Duration) -> bool {
        let (Some(capacity), Some(base)) = (self.capacity, self.base) else { return false };
        let share = Seconds::from(elapsed) / AGE_TIME;
        self.capacity = Some(capacity + (base - capacity) * share.min(1.0));
        true
    }
}

/// Measurements that the spread is taken from: a line that varies is told from one that changed once or twice.
const MAX_CHANGES: usize = 5;
/// Weight of a false alarm in the noise: half of the last one, a quarter of the one before, and so on.
const NOISE_GAIN: f64 = 0.5;
/// Time under load over which the usual capacity is averaged.
const BASE_TIME: Seconds = Seconds(20.0);
/// Time under load until which it rises as the average over half of the time for which it is known.
const YOUNG_TIME: Seconds = Seconds(10.0);
/// Time under load for which the usual capacity is known before it is worth keeping: half of that in which it is young.
const LEARNED_AFTER: Seconds = Seconds(5.0);
/// Time under load in which delay that was no queue is forgotten.
const NOISE_TIME: Seconds = Seconds(20.0);
/// Time under load in which it is forgotten that a queue came at the held rate: some of TCP's sawteeth.
const CAUTION_TIME: Seconds = Seconds(5.0);
/// Multiple of a foreign delay that is let stand: one that still rises is met again on its way.
const FOREIGN_FACTOR: f64 = 1.25;
/// Time under load in which two thirds of a foreign delay are forgotten.
const FOREIGN_TIME: Seconds = Seconds(60.0);
/// Time under load in which the line's variation is forgotten; a radio link varies many times in that.
const SPREAD_TIME: Seconds = Seconds(5.0);
/// Time without load in which two thirds of the difference from the usual capacity are forgotten.
const AGE_TIME: Seconds = Seconds(30.0);

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const TICK: Duration = Duration::from_millis(20);

    fn estimate(bps: f64) -> LineEstimate {
        LineEstimate::known(BitsPerSecond(bps))
    }

    #[test]
    fn a_line_that_changed_twice_is_steady_and_one_that_changed_thrice_is_not() {
        let mut line = LineEstimate::default();
        assert_eq!((line.spread(), line.last_change(), line.varied()), (0.0, None, false));
        [0.0, 0.0, 0.0, 0.5, 0.4].into_iter().for_each(|change| line.note_change(change));
        assert_eq!((line.spread(), line.last_change()), (0.0, Some(0.4)));
        assert!(line.varied(), "though the usual change is none");
        // Five are remembered.
        line.note_change(0.3);
        assert_eq!((line.spread(), line.last_change()), (0.3, Some(0.3)));
    }

    #[test]
    fn a_false_alarm_counts_half_and_fades_within_twenty_seconds() {
        let mut line = LineEstimate::default();
        line.note_false_alarm(Seconds(0.008));
        assert_eq!(line.noise, Seconds(0.004));
        line.note_false_alarm(Seconds(0.008));
        assert_eq!(line.noise, Seconds(0.006));
        // One that is smaller than the noise says nothing new.
        line.note_false_alarm(Seconds(0.005));
        assert_eq!(line.noise, Seconds(0.006));
        line.forget(SECOND * 5);
        assert!((line.noise.0 - 0.0045).abs() < 1e-12);
        line.forget(SECOND * 20);
        assert_eq!(line.noise, Seconds::ZERO);
    }

    #[test]
    fn a_foreign_delay_counts_a_quarter_more_up_to_a_tenth_of_a_second_and_fades_within_a_minute() {
        let mut line = LineEstimate::default();
        line.note_foreign(Seconds(0.04));
        assert!((line.foreign.0 - 0.05).abs() < 1e-12);
        // One that is shorter says nothing new.
        line.note_foreign(Seconds(0.02));
        assert!((line.foreign.0 - 0.05).abs() < 1e-12);
        line.note_foreign(Seconds(0.3));
        assert_eq!(line.foreign, MAX_FOREIGN);
        line.forget(SECOND * 15);
        assert!((line.foreign.0 - 0.075).abs() < 1e-12);
        line.forget(SECOND * 60);
        assert_eq!(line.foreign, Seconds::ZERO);
    }

    #[test]
    fn variation_fades_within_five_seconds() {
        let mut line = LineEstimate::default();
        line.note_change(0.5);
        line.forget(SECOND);
        assert!((line.spread() - 0.4).abs() < 1e-12);
        line.forget(SECOND * 5);
        assert_eq!(line.spread(), 0.0);
    }

    #[test]
    fn that_a_queue_came_at_the_held_rate_is_forgotten_within_five_seconds() {
        let mut line = LineEstimate { caution: 1.0, ..LineEstimate::default() };
        line.forget(SECOND);
        assert!((line.caution - 0.8).abs() < 1e-12);
        line.forget(SECOND * 5);
        assert_eq!(line.caution, 0.0);
    }

    #[test]
    fn the_usual_capacity_is_an_average_over_twenty_seconds() {
        let mut line = estimate(10e6);
        line.capacity = Some(BitsPerSecond(30e6));
        line.learn(SECOND * 5);
        assert_eq!(line.base, Some(BitsPerSecond(15e6)));
        line.learn(SECOND * 40);
        assert_eq!(line.base, Some(BitsPerSecond(30e6)), "no further than the capacity");
    }

    #[test]
    fn a_usual_capacity_that_is_young_follows_what_is_found_above_it() {
        let first = Some(BitsPerSecond(5e6));
        let mut line = LineEstimate { capacity: first, base: first, ..LineEstimate::default() };
        let ticks = |of: &mut LineEstimate, count| (0..count).for_each(|_| of.learn(TICK));
        ticks(&mut line, 25);
        assert_eq!(line.base, first);
        // Half a second of what was measured first, and then a second of what was found behind it, up to a tenth.
        line.capacity = Some(BitsPerSecond(8e6));
        ticks(&mut line, 50);
        assert!((line.base.unwrap().0 / 1e6 - 7.3).abs() < 0.05, "{:?}", line.base);
        // Below, and once it is known for long, a second is a twentieth.
        line.capacity = first;
        ticks(&mut line, 50);
        assert!((line.base.unwrap().0 / 1e6 - 7.19).abs() < 0.05, "{:?}", line.base);
        ticks(&mut line, 2000);
        line.capacity = Some(BitsPerSecond(8e6));
        ticks(&mut line, 50);
        assert!((line.base.unwrap().0 / 1e6 - 5.42).abs() < 0.05, "{:?}", line.base);
    }

    #[test]
    fn what_the_first_congestion_showed_is_not_worth_keeping() {
        let first = Some(BitsPerSecond(5e6));
        let mut line = LineEstimate { capacity: first, base: first, ..LineEstimate::default() };
        (0..249).for_each(|_| line.learn(TICK));
        assert_eq!(line.learned(), None, "known for 4.98 s");
        line.learn(TICK * 2);
        assert_eq!(line.learned(), first);
        assert_eq!(estimate(5e6).learned(), first, "of another time");
    }

    #[test]
    fn without_load_the_capacity_returns_to_the_usual_one() {
        assert!(!LineEstimate::default().age(SECOND));
        let mut line = estimate(10e6);
        line.capacity = Some(BitsPerSecond(40e6));
        assert!(line.age(SECOND * 10));
        assert_eq!(line.capacity, Some(BitsPerSecond(30e6)));
        assert!(line.age(SECOND * 60));
        assert_eq!(line.capacity, Some(BitsPerSecond(10e6)));
    }
}
