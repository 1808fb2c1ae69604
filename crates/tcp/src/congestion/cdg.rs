//! CDG: delay gradients as a sign of congestion (`net/ipv4/tcp_cdg.c`).
//!
//! Hayes and Armitage, "Revisiting TCP Congestion Control Using Delay Gradients", Networking 2011. The more
//! the round trips of a window grew over the last eight windows, the likelier it backs off, before anything
//! is lost. A shadow window remembers what Reno would have, so that losses which are no sign of its own queue
//! do not cost twice. Slow start ends by HyStart.

use weir_core::{Draw, Rng};

use super::{Algorithm, CongestionControl, Verdict, reno};
use crate::window::{AckSample, Window};

#[derive(Debug)]
struct Cdg {
    /// Round trips of the present window; `None` before the first.
    rtt: Option<MinMax>,
    /// Round trips of the window before.
    rtt_before: Option<MinMax>,
    gradients: Gradients,
    /// Acknowledgements beyond this segment end the window that is measured.
    round_end: u32,
    /// The window that Reno would have, in segments.
    shadow: u32,
    /// Whether the reduction that begins is for a gradient.
    is_backing_off: bool,
    /// Reductions for gradients since one had an effect.
    backoffs: u32,
    /// Acknowledgements that may have waited for company, less those that were left out for it.
    delayed_acks: u32,
    hystart: HyStart,
    random: Rng,
}

/// Microseconds, or differences of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct MinMax {
    min: i32,
    max: i32,
}

/// How much round trips changed from window to window, and their sum over the last windows.
#[derive(Clone, Debug, Default)]
struct Gradients {
    ring: [MinMax; WINDOWS],
    sum: MinMax,
    next: usize,
    is_full: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct HyStart {
    delay_min: Option<i32>,
    train: Option<Train>,
    samples: u32,
}

/// Acknowledgements that come without a pause.
#[derive(Clone, Copy, Debug)]
struct Train {
    began_us: u64,
    last_us: u64,
}

impl CongestionControl for Cdg {
    fn ssthresh(&mut self, window: &Window) -> u32 {
        if self.is_backing_off {
            return ((window.cwnd * BETA) >> 10).max(2);
        }
        self.shadow = (self.shadow / 2).min(window.cwnd);
        self.shadow.max(window.cwnd / 2).max(2)
    }

    fn on_delivered(&mut self, window: &mut Window, acked: u32) -> Verdict {
        if window.in_slow_start() {
            self.hystart.update(window, self.rtt);
        }
        if window.una > self.round_end
            && let Some(rtt) = self.rtt.take()
        {
            let gradient = self.rtt_before.map_or(0, |before| self.gradient(rtt, before));
            self.round_end = window.nxt;
            self.rtt_before = Some(rtt);
            self.hystart.start_round();
            if gradient > 0 && self.backs_off(gradient as u32) {
                self.shadow = self.shadow.max(window.cwnd);
                self.is_backing_off = true;
                return Verdict::Congested;
            }
        }
        if !window.is_limiting() {
            self.shadow = self.shadow.min(window.cwnd);
            return Verdict::Fine;
        }
        let before = window.cwnd;
        reno::grow(window, acked);
        self.shadow += window.cwnd - before;
        Verdict::Fine
    }

    fn on_established(&mut self, window: &Window, _ecn: bool) {
        self.start(window);
    }

    fn on_ack(&mut self, _window: &mut Window, sample: &AckSample) {
        let Some(us) = sample.rtt_us.filter(|&us| us > 0) else { return };
        let us = us as i32;
        // Hayes, "Timing enhancements to the FreeBSD kernel" (2010): where the receiver delays
        // acknowledgements, one of a single segment may have waited, and counts only if it is the fastest.
        if sample.sacked_out == 0 {
            if sample.acked == 1 && self.delayed_acks > 0 {
                if let Some(rtt) = &mut self.rtt {
                    rtt.min = rtt.min.min(us);
                }
                self.delayed_acks -= 1;
                return;
            }
            if sample.acked > 1 && self.delayed_acks < MAX_DELAYED_ACKS {
                self.delayed_acks += 1;
            }
        }
        self.rtt = Some(self.rtt.map_or(MinMax { min: us, max: us }, |rtt| MinMax {
            min: rtt.min.min(us),
            max: rtt.max.max(us),
        }));
    }

    fn on_reduction_end(&mut self, window: &mut Window) {
        self.is_backing_off = false;
        self.round_end = window.nxt;
        self.rtt_before = self.rtt.take();
    }

    fn on_idle_restart(&mut self, window: &Window) {
        *self = Self::new(self.random.clone());
        self.start(window);
    }
}

impl Cdg {
    fn new(random: Rng) -> Self {
        Self {
            rtt: None,
            rtt_before: None,
            gradients: Gradients::default(),
            round_end: 0,
            shadow: 0,
            is_backing_off: false,
            backoffs: 0,
            delayed_acks: 0,
            hystart: HyStart::default(),
            random,
        }
    }

    fn start(&mut self, window: &Window) {
        self.round_end = window.nxt;
        self.shadow = window.cwnd;
    }

    /// How much the round trips grew over the last windows, in microseconds.
    fn gradient(&mut self, rtt: MinMax, before: MinMax) -> i32 {
        let sum = self.gradients.add(rtt.minus(before));
        if sum.min <= -EFFECT_US || sum.max <= -EFFECT_US {
            self.backoffs = 0;
        }
        self.gradients.whole(if sum.min > 0 { sum.min } else { sum.max })
    }

    /// Draws whether to back off: with a probability of 1 - exp(-gradient * 42 / 10^6), at most five times
    /// without an effect.
    fn backs_off(&mut self, gradient: u32) -> bool {
        let goes_on = negative_exponential(gradient.wrapping_mul(BACKOFF_FACTOR));
        if self.random.below(1 << 32) <= u64::from(goes_on) {
            return false;
        }
        self.backoffs += 1;
        self.backoffs <= MAX_BACKOFFS
    }
}

impl MinMax {
    const fn minus(self, other: Self) -> Self {
        Self { min: self.min - other.min, max: self.max - other.max }
    }

    const fn plus(self, other: Self) -> Self {
        Self { min: self.min + other.min, max: self.max + other.max }
    }
}

impl Gradients {
    /// Adds the newest in place of the oldest, and returns the sum of all.
    fn add(&mut self, newest: MinMax) -> MinMax {
        self.sum = self.sum.plus(newest).minus(self.ring[self.next]);
        self.ring[self.next] = newest;
        self.next = (self.next + 1) % WINDOWS;
        self.sum
    }

    /// `sum` for all windows, where there were fewer so far.
    fn whole(&mut self, sum: i32) -> i32 {
        if self.is_full {
            return sum;
        }
        if self.next == 0 {
            self.is_full = true;
            return sum;
        }
        sum.wrapping_mul(WINDOWS as i32) / self.next as i32
    }
}

impl HyStart {
    fn start_round(&mut self) {
        self.train = None;
        self.samples = 0;
    }

    /// Ends slow start when acknowledgements come for longer than half a round trip without a pause, or when
    /// round trips grow by an eighth.
    fn update(&mut self, window: &mut Window, rtt: Option<MinMax>) {
        let rtt_min = rtt.map(|rtt| rtt.min);
        self.delay_min = match (self.delay_min, rtt_min) {
            (Some(least), Some(us)) => Some(least.min(us)),
            (one, other) => one.or(other),
        };
        let Some(delay_min) = self.delay_min else { return };
        if self.is_long_train(window, (delay_min / 2).max(LEAST_US)) {
            window.ssthresh = window.cwnd;
            return;
        }
        if self.samples < MIN_SAMPLES {
            self.samples += 1;
        } else if rtt_min.is_some_and(|us| us > (delay_min + delay_min / 8).max(LEAST_US)) {
            window.ssthresh = window.cwnd;
        }
    }

    /// Whether acknowledgements have come for longer than `longest_us` without a pause.
    fn is_long_train(&mut self, window: &Window, longest_us: i32) -> bool {
        let now_us = window.now_us;
        match &mut self.train {
            Some(train) if window.is_limiting() => {
                if now_us - train.last_us >= TRAIN_GAP_US {
                    return false;
                }
                train.last_us = now_us;
                now_us - train.began_us > longest_us as u64
            }
            train => {
                *train = Some(Train { began_us: now_us, last_us: now_us });
                false
            }
        }
    }
}

/// exp(-`millionths` / 10^6) as a part of 2^32 - 1.
fn negative_exponential(millionths: u32) -> u32 {
    if millionths >> 24 != 0 {
        return 0;
    }
    // The first eight bits by a straight line, the others each by its own factor.
    let mut left = u32::MAX - (millionths & 0xff) * (u32::MAX / 1_000_000);
    for (bit, factor) in EXPONENTIALS.iter().enumerate() {
        if millionths >> (8 + bit) & 1 == 1 {
            left = ((u64::from(left) * (u64::from(*factor) + 1)) >> 16) as u32;
        }
    }
    left
}

pub(super) static CDG: Algorithm = Algorithm {
    name: "cdg",
    summary: "backs off by chance when round trips grow from window to window, before anything is lost",
    source: "Hayes and Armitage 2011; Linux net/ipv4/tcp_cdg.c",
    begin: |random| Box::new(Cdg::new(random)),
};

/// Windows over which gradients are summed (`window`).
const WINDOWS: usize = 8;
/// What is left of the window after a gradient, in 1024ths (`backoff_beta`): the root of a half.
const BETA: u32 = 724;
/// Scale of the probability to back off (`backoff_factor`).
const BACKOFF_FACTOR: u32 = 42;
/// Reductions in a row that may have no effect (`use_ineff`).
const MAX_BACKOFFS: u32 = 5;
/// A sum of gradients so far below zero is an effect.
const EFFECT_US: i32 = 32;
/// Acknowledgements that may have waited are counted up to so many.
const MAX_DELAYED_ACKS: u32 = 5;
/// HyStart: shorter times do not count.
const LEAST_US: i32 = 125;
/// HyStart: acknowledgements this far apart are two trains.
const TRAIN_GAP_US: u64 = 3_000;
/// HyStart: acknowledgements of a round that are looked at before round trips may be said to have grown.
const MIN_SAMPLES: u32 = 8;
/// 65536 exp(-x) - 1 for x = 256, 512, 1024 ... millionths.
const EXPONENTIALS: [u16; 16] = [
    65_518, 65_501, 65_468, 65_401, 65_267, 65_001, 64_470, 63_422, 61_378, 57_484, 50_423, 38_795,
    22_965, 8_047, 987, 14,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponentials() {
        for millionths in [0, 1, 255, 256, 1_000, 65_536, 300_000, 1_000_000, 4_000_000, 16_000_000]
        {
            let share = f64::from(negative_exponential(millionths)) / f64::from(u32::MAX);
            let exact = (-f64::from(millionths) / 1e6).exp();
            assert!((share - exact).abs() < 1e-4, "{millionths}: {share} for {exact}");
        }
        assert_eq!(negative_exponential(1 << 24), 0);
    }

    #[test]
    fn the_table_is_the_exponential() {
        for (bit, &factor) in EXPONENTIALS.iter().enumerate() {
            let exact = 65_536.0 * (-f64::from(256u32 << bit) / 1e6).exp() - 1.0;
            assert!((f64::from(factor) - exact).abs() < 1.0, "{factor} for {exact}");
        }
    }

    #[test]
    fn a_sum_of_few_windows_stands_for_eight() {
        let mut gradients = Gradients::default();
        let mut add = |us| {
            let sum = gradients.add(MinMax { min: us, max: us });
            gradients.whole(sum.min)
        };
        assert_eq!((add(100), add(100)), (800, 800));
        for _ in 2..9 {
            add(0);
        }
        // The first one has left the sum.
        assert_eq!(gradients.sum.min, 100);
    }
}
