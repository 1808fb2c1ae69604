//! Westwood+: the window after a loss is what the path was seen to carry (`net/ipv4/tcp_westwood.c`).
//!
//! Mascolo, Casetti, Gerla, Sanadidi, Wang, "TCP Westwood: Bandwidth Estimation for Enhanced Transport over
//! Wireless Links" (2001), in the form of Grieco and Mascolo (2004), which samples once a round trip. It
//! grows as Reno.
//!
//! The arithmetic is Linux': times in ticks, rates in bytes a tick.

use super::{Algorithm, CongestionControl};
use crate::window::{AckSample, Window};

#[derive(Debug)]
struct Westwood {
    rate: Rate,
    /// Bytes that count as arrived since the last sample.
    arrived: u32,
    /// When the last sample was taken, in ticks.
    sampled_at: u64,
    /// Bytes that duplicate acknowledgements stood for, and that a cumulative one will report again.
    accounted: u32,
    /// The last round trip, and the shortest one since the last timeout, in ticks.
    rtt: u32,
    rtt_min: u32,
    /// Whether the shortest round trip is looked for anew from the next acknowledgement on.
    forgets: bool,
    /// Size of a full segment, in bytes.
    mss: u32,
    has_begun: bool,
}

/// The rate at which data arrives, in bytes a tick, smoothed once and twice.
#[derive(Clone, Copy, Debug, Default)]
struct Rate {
    once: u32,
    twice: u32,
}

impl CongestionControl for Westwood {
    fn on_established(&mut self, window: &Window, _ecn: bool) {
        self.sampled_at = window.ticks();
        self.rtt = window.ticks_per_second() as u32 * INITIAL_RTT_SECONDS;
    }

    fn on_ack(&mut self, window: &mut Window, sample: &AckSample) {
        self.mss = sample.mss;
        self.sample_rate(window);
        // The first acknowledgement sets the start.
        let bytes = if self.has_begun { sample.acked_bytes } else { 0 };
        self.has_begun = true;
        self.arrived += if sample.is_plain { bytes } else { self.count(bytes) };
        // The round trip of the acknowledgement before.
        self.rtt_min = if self.forgets { self.rtt } else { self.rtt_min.min(self.rtt) };
        self.forgets = false;
        if let Some(us) = sample.rtt_us.filter(|&us| us > 0) {
            self.rtt = window.ticks_of(us) as u32;
        }
    }

    fn on_reduction_end(&mut self, window: &mut Window) {
        window.ssthresh = self.carried();
        window.cwnd = window.ssthresh;
    }

    fn on_loss(&mut self, window: &mut Window) {
        window.ssthresh = self.carried();
        self.forgets = true;
    }
}

impl Westwood {
    /// Takes a sample of the rate, once a round trip and at most every 50 ms.
    fn sample_rate(&mut self, window: &Window) {
        let passed = window.ticks() - self.sampled_at;
        let least = window.ticks_per_second() / LEAST_SAMPLES_SHARE;
        if passed > u64::from(self.rtt).max(least) {
            self.rate.add(self.arrived / passed as u32);
            self.arrived = 0;
            self.sampled_at = window.ticks();
        }
    }

    /// The bytes for which an acknowledgement counts that is not plain: a duplicate stands for a segment,
    /// which the one that fills the gap does not count again.
    fn count(&mut self, bytes: u32) -> u32 {
        if bytes == 0 {
            self.accounted += self.mss;
            return self.mss;
        }
        if bytes <= self.mss {
            return bytes;
        }
        if self.accounted >= bytes {
            self.accounted -= bytes;
            return self.mss;
        }
        bytes - std::mem::take(&mut self.accounted)
    }

    /// The segments that the path holds at the rate seen, with the shortest round trip.
    fn carried(&self) -> u32 {
        let bytes = self.rate.twice.wrapping_mul(self.rtt_min);
        bytes.checked_div(self.mss).unwrap_or(0).max(2)
    }
}

impl Rate {
    fn add(&mut self, sample: u32) {
        if self.once == 0 && self.twice == 0 {
            *self = Self { once: sample, twice: sample };
            return;
        }
        self.once = smoothed(self.once, sample);
        self.twice = smoothed(self.twice, self.once);
    }
}

/// Seven eighths of what was, and an eighth of what is new.
const fn smoothed(old: u32, new: u32) -> u32 {
    (7 * old + new) >> 3
}

pub(super) static WESTWOOD: Algorithm = Algorithm {
    name: "westwood",
    summary: "after a loss goes on with the window that the path was seen to carry; else like Reno",
    source: "Grieco and Mascolo 2004; Linux net/ipv4/tcp_westwood.c",
    begin: |_| {
        Box::new(Westwood {
            rate: Rate::default(),
            arrived: 0,
            sampled_at: 0,
            accounted: 0,
            rtt: 0,
            rtt_min: 0,
            forgets: true,
            mss: 0,
            has_begun: false,
        })
    },
};

/// Round trip that is assumed before there is one (`TCP_WESTWOOD_INIT_RTT`).
const INITIAL_RTT_SECONDS: u32 = 20;
/// Samples last this part of a second at least (`TCP_WESTWOOD_RTT_MIN`).
const LEAST_SAMPLES_SHARE: u64 = 20;
