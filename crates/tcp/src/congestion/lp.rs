//! TCP-LP: uses only what others leave (`net/ipv4/tcp_lp.c`).
//!
//! Kuzmanovic and Knightly, "TCP-LP: Low-Priority Service via End-Point Congestion Control" (2006). It takes a
//! one-way delay that rises above a threshold for an early sign of congestion: halves its window, waits, and
//! at another sign while it waits goes down to one segment. Else it is Reno.
//!
//! The arithmetic is Linux', but for one thing: Linux estimates the rate of the peer's clock from timestamps
//! and divides by it in integers, which takes a clock of 1001 Hz for one that stands still. Here the peer's
//! clock is known to count milliseconds.

use super::{Algorithm, CongestionControl, Verdict, reno};
use crate::window::{AckSample, Clocks, Window};

#[derive(Debug, Default)]
struct Lp {
    delay: OneWayDelay,
    /// When the last early sign came, in milliseconds; `None` before the first.
    last_sign_ms: Option<u64>,
    /// How long another sign counts as one more, in milliseconds.
    inference_ms: u64,
    /// Whether it waits after a sign.
    waits: bool,
}

/// The one-way delay in milliseconds, plus whatever the two clocks differ by.
#[derive(Clone, Copy, Debug, Default)]
struct OneWayDelay {
    /// Eight times the smoothed one; `None` before the first.
    smoothed8: Option<i64>,
    min: i64,
    max: i64,
    /// The largest one, which does not count itself: the one below it does.
    largest: i64,
}

impl CongestionControl for Lp {
    fn ssthresh(&mut self, window: &Window) -> u32 {
        reno::half(window)
    }

    fn on_delivered(&mut self, window: &mut Window, acked: u32) -> Verdict {
        if !self.waits {
            reno::grow(window, acked);
        }
        Verdict::Fine
    }

    fn on_ack(&mut self, window: &mut Window, sample: &AckSample) {
        let Some(clocks) = sample.clocks else { return };
        let now_ms = window.now_us / 1_000;
        if sample.rtt_us.is_some_and(|us| us > 0) {
            self.delay.add(clocks);
        }
        let age_ms = (now_ms as u32).wrapping_sub(clocks.echo_ms) as i32;
        if age_ms > 0 {
            self.inference_ms = 3 * age_ms as u64;
        }
        self.waits = self.last_sign_ms.is_some_and(|last| now_ms - last < self.inference_ms);
        if self.delay.take_excess() {
            window.cwnd = if self.waits { 1 } else { (window.cwnd / 2).max(1) };
            self.last_sign_ms = Some(now_ms);
        }
    }
}

impl OneWayDelay {
    fn add(&mut self, clocks: Clocks) {
        let delay = i64::from(clocks.one_way_ms());
        if delay <= 0 {
            // None to go by: shorter than a millisecond.
            return;
        }
        let Some(smoothed8) = &mut self.smoothed8 else {
            *self = Self { smoothed8: Some(delay << 3), min: delay, max: delay, largest: delay };
            return;
        };
        *smoothed8 += delay - (*smoothed8 >> 3);
        self.min = self.min.min(delay);
        if delay > self.max {
            self.max = delay.min(self.largest);
            self.largest = self.largest.max(delay);
        }
    }

    /// Whether the smoothed delay is above the threshold, 15 % of the way from the smallest to the largest;
    /// then both are learned anew.
    fn take_excess(&mut self) -> bool {
        let Some(smoothed8) = self.smoothed8 else { return false };
        let threshold = self.min + THRESHOLD_PERCENT * (self.max - self.min) / 100;
        if smoothed8 >> 3 < threshold {
            return false;
        }
        self.min = smoothed8 >> 3;
        self.max = smoothed8 >> 2;
        self.largest = self.max;
        true
    }
}

pub(super) static LP: Algorithm = Algorithm {
    name: "lp",
    summary: "low priority: takes a growing one-way delay for congestion, and gives way",
    source: "Kuzmanovic and Knightly 2006; Linux net/ipv4/tcp_lp.c",
    begin: |_| Box::new(Lp::default()),
};

/// The threshold, in percent of the way from the smallest to the largest delay.
const THRESHOLD_PERCENT: i64 = 15;
