//! Bytes that crossed a side of the shaper, for any span of the last seconds.

use std::collections::{VecDeque, vec_deque};

use weir_core::{Duration, Time};

use crate::contract::Traffic;
use crate::quantities::{BitsPerSecond, Seconds};

/// The counters of one side at the ticks of the last seconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    ticks: VecDeque<(Time, Traffic)>,
}

impl History {
    /// Notes what the counters say at `now`.
    pub fn note(&mut self, now: Time, traffic: Traffic) {
        self.ticks.push_back((now, traffic));
        while self.ticks.len() > 2 && self.ticks[1].0.saturating_add(KEEP) < now {
            self.ticks.pop_front();
        }
    }

    /// Forgets everything, as after a pause in which nobody looked.
    pub fn clear(&mut self) {
        self.ticks.clear();
    }

    /// Bytes that crossed from `from` to `to`, evenly spread between two ticks; `None` if the history
    /// does not reach so far.
    pub fn bytes_between(&self, from: Time, to: Time) -> Option<f64> {
        Some(self.bytes_until(to)? - self.bytes_until(from)?)
    }

    /// The load over the last `span`, or over as much of it as there is; zero at the very start.
    pub fn load(&self, span: Duration) -> BitsPerSecond {
        let Some(((began, first), (now, last))) = self.ends(span) else {
            return BitsPerSecond::ZERO;
        };
        let took = now.since(began);
        if took.is_zero() {
            return BitsPerSecond::ZERO;
        }
        BitsPerSecond::of_bytes((last.bytes - first.bytes) as f64, Seconds::from(took))
    }

    /// Mean length of the packets of the last `span`, in bytes; zero without any.
    pub fn mean_packet(&self, span: Duration) -> f64 {
        let Some(((_, first), (_, last))) = self.ends(span) else { return 0.0 };
        let packets = last.packets.saturating_sub(first.packets).max(1);
        last.bytes.saturating_sub(first.bytes) as f64 / packets as f64
    }

    /// The share of the ticks of the last `span` at which packets waited in the shaper.
    pub fn held_back(&self, span: Duration) -> f64 {
        let ticks = self.since(span);
        let waiting = ticks.clone().filter(|(_, traffic)| traffic.backlog_bytes > 0).count();
        waiting as f64 / ticks.len().max(1) as f64
    }

    /// The ticks of the last `span`, oldest first.
    fn since(&self, span: Duration) -> vec_deque::Iter<'_, (Time, Traffic)> {
        let now = self.ticks.back().map_or(Time::ZERO, |&(now, _)| now);
        let from = now.saturating_sub(span);
        self.ticks.range(self.ticks.partition_point(|(at, _)| *at < from)..)
    }

    /// The first and the last tick of the last `span`; `None` before the first of all.
    fn ends(&self, span: Duration) -> Option<((Time, Traffic), (Time, Traffic))> {
        self.since(span).next().zip(self.ticks.back()).map(|(&first, &last)| (first, last))
    }

    fn bytes_until(&self, at: Time) -> Option<f64> {
        let after = self.ticks.partition_point(|(tick, _)| *tick <= at);
        let (before_at, before) = *self.ticks.get(after.checked_sub(1)?)?;
        let Some(&(after_at, later)) = self.ticks.get(after) else {
            // Behind the last tick: what is not known yet is taken to be nothing.
            return Some(before.bytes as f64);
        };
        let share = at.since(before_at).as_secs_f64() / after_at.since(before_at).as_secs_f64();
        Some(before.bytes as f64 + (later.bytes - before.bytes) as f64 * share)
    }
}

/// Time for which counters are kept: longer than any span that is asked for.
///
/// That is the longest feedback delay that is believed, and the window of an estimate in front of it.
const KEEP: Duration = Duration::from_secs(8);

#[cfg(test)]
mod tests {
    use super::*;

    fn history() -> History {
        let mut history = History::default();
        // 1000 bytes every 20 ms until 100 ms, 2000 after; packets wait from 120 ms on.
        let mut bytes = 0;
        for tick in 0..=10 {
            let backlog_bytes = if tick >= 6 { 1500 } else { 0 };
            history.note(
                Time::from_millis(20 * tick),
                Traffic { bytes, packets: bytes / 1000, backlog_bytes },
            );
            bytes += if tick < 5 { 1000 } else { 2000 };
        }
        history
    }

    #[test]
    fn bytes_between_ticks_are_evenly_spread() {
        let history = history();
        let ms = Time::from_millis;
        assert_eq!(history.bytes_between(ms(0), ms(100)), Some(5_000.0));
        assert_eq!(history.bytes_between(ms(90), ms(110)), Some(1_500.0));
        assert_eq!(history.bytes_between(ms(100), ms(200)), Some(10_000.0));
        // What lies behind the last tick is not known yet.
        assert_eq!(history.bytes_between(ms(180), ms(220)), Some(2_000.0));
        assert_eq!(History::default().bytes_between(ms(0), ms(1)), None);
    }

    #[test]
    fn load_and_backlog_of_the_last_span() {
        let history = history();
        assert_eq!(history.load(Duration::from_millis(100)), BitsPerSecond(800_000.0));
        assert_eq!(history.load(Duration::from_millis(200)), BitsPerSecond(600_000.0));
        assert_eq!(history.held_back(Duration::from_millis(80)), 1.0);
        assert_eq!(history.held_back(Duration::from_millis(180)), 0.5);
    }

    #[test]
    fn old_ticks_are_forgotten() {
        let mut history = History::default();
        for s in 0..60 {
            history.note(Time::from_millis(s * 1000), Traffic::default());
        }
        assert!(history.ticks.len() <= 10);
    }

    /// A tick is kept as long as the one after it is no more than 8 s old, so that a span of 8 s has its beginning.
    #[test]
    fn eight_seconds_are_remembered() {
        for (now, begins) in [(9_000_000_000, Some(0.0)), (9_000_000_001, None)] {
            let mut history = History::default();
            for second in 0..3 {
                history.note(Time::from_millis(1_000 * second), Traffic::default());
            }
            history.note(Time::from_nanos(now), Traffic::default());
            assert_eq!(history.bytes_between(Time::ZERO, Time::from_millis(500)), begins, "{now}");
        }
        // However long the pause, all that is too old goes, but for two ticks.
        let mut paused = History::default();
        for second in [0, 1, 2, 60] {
            paused.note(Time::from_millis(1_000 * second), Traffic::default());
        }
        assert_eq!(paused.ticks.len(), 2);
        paused.clear();
        assert_eq!(paused.bytes_between(Time::from_millis(2_000), Time::from_millis(3_000)), None);
    }
}
