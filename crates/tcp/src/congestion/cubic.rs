//! CUBIC: RFC 9438 with HyStart, as Linux has it (`net/ipv4/tcp_cubic.c`).
//!
//! The arithmetic is Linux': time in units of 1/1024 s, windows in segments, multiplicative decrease
//! by 717/1024, C = 410/1024 (RFC 9438, section 4: beta 0.7, C 0.4). HyStart is the 2008 form with
//! both of its signs (Ha and Rhee, "Taming the elephants"), not HyStart++ (RFC 9406): that is what
//! Linux has.

use std::num::NonZeroU32;

use super::{Algorithm, CongestionControl, Verdict};
use crate::window::{AckSample, Window};

#[derive(Debug, Default)]
struct Cubic {
    /// The window before the last reduction, in segments; `None` before the first, and as in Linux while it
    /// comes out as 0.
    last_max: Option<NonZeroU32>,
    /// The running period of growth since the last reduction.
    epoch: Option<Epoch>,
    /// The smallest round trip seen, in microseconds; `None` before the first sample.
    delay_min: Option<u32>,
    /// Deliveries for one more segment of window.
    segments_per_step: u32,
    updated_for: u32,
    updated_at: u64,
    hystart: HyStart,
}

/// RFC 9438, section 4.1.2: an epoch starts with congestion avoidance after a reduction.
#[derive(Clone, Debug)]
struct Epoch {
    /// When it started, in ticks.
    start: u64,
    /// The plateau of the cubic curve, in segments.
    origin: u32,
    /// Time from the start to the plateau, in 1/1024 s.
    k: u64,
    /// The window that Reno would have by now (section 4.3).
    reno_window: u32,
    /// Deliveries not yet turned into growth of `reno_window`.
    acked: u32,
}

#[derive(Clone, Debug, Default)]
struct HyStart {
    found: bool,
    round_start: u64,
    round_end: u32,
    last_ack: u64,
    round_min: Option<u32>,
    samples: u32,
}

impl CongestionControl for Cubic {
    fn ssthresh(&mut self, window: &Window) -> u32 {
        self.epoch = None;
        // Fast convergence (RFC 9438, section 4.7): a flow that loses again below its last maximum
        // gives way to newcomers.
        let falls_short = self.last_max.is_some_and(|last_max| window.cwnd < last_max.get());
        self.last_max = NonZeroU32::new(if falls_short {
            window.cwnd * (SCALE + BETA) / (2 * SCALE)
        } else {
            window.cwnd
        });
        (window.cwnd * BETA / SCALE).max(2)
    }

    fn on_delivered(&mut self, window: &mut Window, acked: u32) -> Verdict {
        if !window.is_limiting() {
            return Verdict::Fine;
        }
        let acked = if window.in_slow_start() { window.slow_start(acked) } else { acked };
        if acked > 0 {
            self.update(window, acked);
            window.grow_one_per(self.segments_per_step, acked);
        }
        Verdict::Fine
    }

    fn on_ack(&mut self, window: &mut Window, sample: &AckSample) {
        let Some(rtt) = sample.rtt_us else { return };
        // Just after a reduction the queue is not yet empty.
        if let Some(epoch) = &self.epoch
            && window.ticks() - epoch.start < window.ticks_per_second()
        {
            return;
        }
        let rtt = rtt.max(1);
        let delay_min = self.delay_min.map_or(rtt, |least| least.min(rtt));
        self.delay_min = Some(delay_min);
        if !self.hystart.found && window.in_slow_start() {
            self.hystart.update(window, rtt, delay_min);
        }
    }

    fn on_timeout(&mut self, window: &Window) {
        *self = Self::default();
        self.hystart.start_round(window);
    }

    fn on_restart(&mut self, window: &Window) {
        // Time without data does not count towards growth.
        if let Some(epoch) = &mut self.epoch {
            let idle = window.ticks_since(window.last_sent_us);
            epoch.start = (epoch.start + idle).min(window.ticks());
        }
    }
}

impl Cubic {
    /// Sets how fast the window grows: RFC 9438, section 4.2.
    fn update(&mut self, window: &Window, acked: u32) {
        let cwnd = window.cwnd;
        let now = window.ticks();
        if let Some(epoch) = &mut self.epoch {
            epoch.acked += acked;
        }
        let lately = now - self.updated_at <= window.ticks_per_second() / 32;
        if self.updated_for == cwnd && lately {
            return;
        }
        let same_tick = self.epoch.is_some() && now == self.updated_at;
        if !same_tick {
            self.updated_for = cwnd;
            self.updated_at = now;
            let last_max = self.last_max;
            let epoch = self.epoch.get_or_insert_with(|| Epoch::new(now, cwnd, last_max, acked));
            let target = epoch.target(window, self.delay_min.unwrap_or(0));
            self.segments_per_step =
                if target > cwnd { cwnd / (target - cwnd) } else { 100 * cwnd };
            // Before the first reduction there is no curve: grow by 5 % a round trip at least.
            if last_max.is_none() {
                self.segments_per_step = self.segments_per_step.min(20);
            }
        }
        if let Some(epoch) = &mut self.epoch
            && let Some(steps) = epoch.reno_friendly(cwnd)
        {
            self.segments_per_step = self.segments_per_step.min(steps);
        }
        // At most one and a half times a round trip.
        self.segments_per_step = self.segments_per_step.max(2);
    }
}

impl Epoch {
    fn new(now: u64, cwnd: u32, last_max: Option<NonZeroU32>, acked: u32) -> Self {
        let (origin, k) = match last_max.map(NonZeroU32::get) {
            Some(last_max) if last_max > cwnd => {
                (last_max, cube_root(CUBE_FACTOR * u64::from(last_max - cwnd)))
            }
            _ => (cwnd, 0),
        };
        Self { start: now, origin, k, reno_window: cwnd, acked }
    }

    /// The window of the curve one round trip from now: C (t - K)^3 + `origin`.
    fn target(&self, window: &Window, delay_min: u32) -> u32 {
        let ticks = window.ticks() - self.start + window.ticks_of(delay_min);
        let t = (ticks << TIME_BITS) / window.ticks_per_second();
        let distance = t.abs_diff(self.k);
        // After six minutes without a loss the cube no longer fits, and has long been out of reach.
        let cube = distance.saturating_mul(distance).saturating_mul(distance);
        let delta = cube.saturating_mul(CUBE_RTT_SCALE) >> (10 + 3 * TIME_BITS);
        let delta = u32::try_from(delta).unwrap_or(u32::MAX);
        if t < self.k {
            self.origin.saturating_sub(delta)
        } else {
            self.origin.saturating_add(delta)
        }
    }

    /// Deliveries for a step if Reno would be faster (RFC 9438, section 4.3).
    fn reno_friendly(&mut self, cwnd: u32) -> Option<u32> {
        // Reno with CUBIC's beta grows by 3 (1 - beta) / (1 + beta) a round trip.
        let per_segment = (cwnd * BETA_SCALE) >> 3;
        while self.acked > per_segment {
            self.acked -= per_segment;
            self.reno_window += 1;
        }
        (self.reno_window > cwnd).then(|| cwnd / (self.reno_window - cwnd))
    }
}

impl HyStart {
    fn start_round(&mut self, window: &Window) {
        self.round_start = window.now_us;
        self.last_ack = window.now_us;
        self.round_end = window.nxt;
        self.round_min = None;
        self.samples = 0;
    }

    /// Ends slow start when acknowledgements come for longer than half a round trip without a pause,
    /// or when round trips grow.
    fn update(&mut self, window: &mut Window, rtt: u32, delay_min: u32) {
        if window.una > self.round_end {
            self.start_round(window);
        }
        if window.cwnd < HYSTART_LOW_WINDOW {
            return;
        }
        if window.now_us - self.last_ack <= ACK_TRAIN_GAP_US {
            self.last_ack = window.now_us;
            let mut threshold = u64::from(delay_min) + window.ack_aggregation_us();
            if !window.paced {
                threshold /= 2;
            }
            if window.now_us - self.round_start > threshold {
                self.found = true;
                window.ssthresh = window.cwnd;
            }
        }
        let round_min = self.round_min.map_or(rtt, |min| min.min(rtt));
        self.round_min = Some(round_min);
        if self.samples < HYSTART_MIN_SAMPLES {
            self.samples += 1;
        } else if round_min > delay_min + (delay_min >> 3).clamp(DELAY_MIN_US, DELAY_MAX_US) {
            self.found = true;
            window.ssthresh = window.cwnd;
        }
    }
}

/// The cube root of `a`, rounded down. Linux looks it up in a table and is off by up to 0.2 %.
fn cube_root(a: u64) -> u64 {
    if a == 0 {
        return 0;
    }
    // Newton's iteration x' = (2 x + a / x^2) / 3 from a power of two above the root.
    let mut x = 1u64 << (u64::BITS - a.leading_zeros()).div_ceil(3);
    loop {
        let next = (2 * x + a / (x * x)) / 3;
        if next >= x {
            return x;
        }
        x = next;
    }
}

pub(super) static CUBIC: Algorithm = Algorithm {
    name: "cubic",
    summary: "grows its window along a cubic curve of the time since the last loss; Linux' default",
    source: "RFC 9438; Linux net/ipv4/tcp_cubic.c",
    begin: |_| Box::new(Cubic::default()),
};

const SCALE: u32 = 1024;
/// Multiplicative decrease: 0.7 (RFC 9438, section 4.6).
const BETA: u32 = 717;
/// Time is kept in 2^-10 s (`BICTCP_HZ`).
const TIME_BITS: u32 = 10;
/// 1024 C (`bic_scale` 41, times 10).
const CUBE_RTT_SCALE: u64 = 410;
/// Factor from a difference of windows to the cube of K in (1/1024 s)^3 (`cube_factor`).
const CUBE_FACTOR: u64 = (1 << (10 + 3 * TIME_BITS)) / CUBE_RTT_SCALE;
/// 8 (1 + beta) / (3 (1 - beta)).
const BETA_SCALE: u32 = 8 * (SCALE + BETA) / 3 / (SCALE - BETA);
/// HyStart: windows below this many segments never leave slow start by it.
const HYSTART_LOW_WINDOW: u32 = 16;
/// HyStart: round trips of a round that are looked at before it may say that they grew.
const HYSTART_MIN_SAMPLES: u32 = 8;
/// HyStart: acknowledgements at most this far apart are one train.
const ACK_TRAIN_GAP_US: u64 = 2_000;
/// HyStart: growth of the round trip that counts is an eighth, within these bounds.
const DELAY_MIN_US: u32 = 4_000;
const DELAY_MAX_US: u32 = 16_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cube_roots() {
        for (a, root) in [(0, 0), (1, 1), (7, 1), (8, 2), (26, 2), (27, 3), (1_000_000, 100)] {
            assert_eq!(cube_root(a), root, "of {a}");
        }
        assert_eq!(cube_root(u64::MAX), 2_642_245);
    }

    #[test]
    fn the_constants_are_linuxs() {
        assert_eq!(BETA_SCALE, 15);
        assert_eq!(CUBE_FACTOR, 2_681_735_677);
    }

    #[test]
    fn k_matches_rfc_9438() {
        // W_max 100, reduced to 70: K = cbrt(30 / C) = 4.216 s with Linux' C = 410/1024.
        let epoch = Epoch::new(0, 70, NonZeroU32::new(100), 0);
        assert_eq!(epoch.k, 4_316);
    }
}
