//! LEDBAT: RFC 6817, low extra delay background transport.
//!
//! Aims at a queue of 100 ms on the way to the receiver, and gives way to everything that fills it further.
//! The one-way delay is taken from timestamps, as the module for Linux does that Flent's tests ask for; its
//! resolution is a millisecond. A loss halves the window (RFC 6817, section 2.4.2). Without slow start, which the
//! RFC does not have.

use std::collections::VecDeque;

use super::{Algorithm, CongestionControl, Verdict};
use crate::window::{AckSample, Window};

#[derive(Debug, Default)]
struct Ledbat {
    base: BaseDelay,
    /// The latest one-way delays, in milliseconds, the oldest first.
    latest: VecDeque<i32>,
    /// Growth that does not make a segment yet, in milliseconds below the target times segments; negative
    /// above it.
    growth: i64,
    established_us: u64,
}

/// The smallest one-way delay of each of the last minutes, the latest last, in milliseconds.
#[derive(Clone, Debug, Default)]
struct BaseDelay {
    minutes: VecDeque<i32>,
    /// Number of the latest minute, counted from the start of the connection.
    minute: u64,
}

impl CongestionControl for Ledbat {
    /// RFC 6817, section 2.4.2: by a segment a round trip at most, and the less the longer the queue; back by
    /// as much where it is too long.
    fn on_delivered(&mut self, window: &mut Window, acked: u32) -> Verdict {
        let below_target = i64::from(TARGET_MS) - i64::from(self.queueing_ms());
        if below_target > 0 && !window.is_limiting() {
            return Verdict::Fine;
        }
        self.growth += below_target.max(-i64::from(TARGET_MS)) * i64::from(acked);
        let segment = i64::from(TARGET_MS) * i64::from(window.cwnd);
        if self.growth >= segment {
            self.growth -= segment;
            window.cwnd += 1;
        } else if self.growth <= -segment {
            self.growth += segment;
            window.cwnd = (window.cwnd - 1).max(MIN_CWND_SEGMENTS);
        }
        Verdict::Fine
    }

    fn on_established(&mut self, window: &Window, _ecn: bool) {
        self.established_us = window.now_us;
    }

    fn on_ack(&mut self, window: &mut Window, sample: &AckSample) {
        let Some(clocks) = sample.clocks.filter(|_| sample.acked > 0) else { return };
        let delay_ms = clocks.one_way_ms();
        self.base.add(delay_ms, (window.now_us - self.established_us) / MINUTE_US);
        if self.latest.len() == CURRENT_FILTER {
            self.latest.pop_front();
        }
        self.latest.push_back(delay_ms);
    }
}

impl Ledbat {
    /// The queue on the way to the receiver in milliseconds; 0 as long as nothing is known of it.
    fn queueing_ms(&self) -> i32 {
        match (self.latest.iter().min(), self.base.minutes.iter().min()) {
            (Some(current), Some(base)) => current - base,
            _ => 0,
        }
    }
}

impl BaseDelay {
    fn add(&mut self, delay_ms: i32, minute: u64) {
        match self.minutes.back_mut() {
            Some(least) if minute == self.minute => *least = delay_ms.min(*least),
            _ => {
                if self.minutes.len() == BASE_HISTORY {
                    self.minutes.pop_front();
                }
                self.minutes.push_back(delay_ms);
            }
        }
        self.minute = minute;
    }
}

pub(super) static LEDBAT: Algorithm = Algorithm {
    name: "ledbat",
    summary: "background transport: gives way when the queue on its path is longer than 100 ms",
    source: "RFC 6817",
    begin: |_| Box::new(Ledbat::default()),
};

/// The queue that it aims at (RFC 6817, section 2.5: at most 100 ms).
const TARGET_MS: i32 = 100;
/// Delays of which the smallest counts as the present one.
const CURRENT_FILTER: usize = 4;
/// Minutes for which the smallest delay is remembered.
const BASE_HISTORY: usize = 10;
const MINUTE_US: u64 = 60_000_000;
/// The window at least.
const MIN_CWND_SEGMENTS: u32 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_delay_is_forgotten_after_ten_minutes() {
        let mut base = BaseDelay::default();
        base.add(20, 0);
        base.add(25, 0);
        for minute in 1..10 {
            base.add(30, minute);
            assert_eq!(base.minutes.iter().min(), Some(&20), "in minute {minute}");
        }
        base.add(30, 10);
        assert_eq!(base.minutes.iter().min(), Some(&30));
    }
}
