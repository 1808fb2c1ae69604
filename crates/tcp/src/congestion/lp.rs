//! TCP-LP, as Linux has it (`net/ipv4/tcp_lp.c`): meant to use only what others leave.
//!
//! Kuzmanovic and Knightly, "TCP-LP: Low-Priority Service via End-Point Congestion Control" (2006). It takes a
//! one-way delay that rises above a threshold for an early sign of congestion: halves its window, waits, and
//! at another sign while it waits goes down to one segment. Else it is Reno.
//!
//! In Linux it is little else than Reno. The delay is the difference of two clocks, which must be alike; but
//! each connection adds a random number to its timestamps since 2016, and what is computed with such numbers in
//! 32 bits stays below the threshold, or leaves it out of reach after the first sign. The arithmetic, and the
//! random clocks, are Linux'.

use weir_core::{Draw, Rng};

use super::{Algorithm, CongestionControl, Verdict, reno};
use crate::window::{AckSample, Clocks, Window};

#[derive(Debug)]
struct Lp {
    delay: OneWayDelay,
    peer_clock: PeerClock,
    /// What own and peer's timestamps are at the start of the connection.
    bases: Bases,
    /// When the last early sign came, by the own clock; 0 before the first.
    last_sign: u32,
    /// How long another sign counts as one more, in milliseconds.
    inference_ms: u32,
    /// Whether it waits after a sign.
    waits: bool,
}

/// Timestamps at the start of the connection: random numbers.
#[derive(Clone, Copy, Debug)]
struct Bases {
    own: u32,
    peer: u32,
    established_ms: u32,
}

/// The one-way delay: the difference of the two clocks, in milliseconds.
#[derive(Clone, Copy, Debug)]
struct OneWayDelay {
    /// Eight times the smoothed one; 0 before the first.
    smoothed8: u32,
    min: u32,
    max: u32,
    /// The largest one, which does not count itself: the one below it does.
    largest: u32,
}

/// The rate of the peer's clock, by how far it moves while the own one moves.
#[derive(Clone, Copy, Debug, Default)]
struct PeerClock {
    hz: u32,
    /// Both clocks at the last acknowledgement; 0 before the first.
    peer: u32,
    own: u32,
}

impl CongestionControl for Lp {
    fn on_delivered(&mut self, window: &mut Window, acked: u32) -> Verdict {
        if !self.waits {
            reno::grow(window, acked);
        }
        Verdict::Fine
    }

    fn on_established(&mut self, window: &Window, _ecn: bool) {
        self.bases.established_ms = (window.now_us / 1_000) as u32;
    }

    fn on_ack(&mut self, window: &mut Window, sample: &AckSample) {
        let Some(clocks) = sample.clocks else { return };
        let (own, peer) = (self.bases.own(clocks.echo_ms), self.bases.peer(clocks));
        let now = self.bases.own((window.now_us / 1_000) as u32);
        if sample.rtt_us.is_some_and(|us| us > 0)
            && let Some(hz) = self.peer_clock.rate(peer, own)
        {
            self.delay.add(peer.wrapping_mul(1_000 / hz).wrapping_sub(own));
        }
        let age_ms = now.wrapping_sub(own);
        if age_ms as i32 > 0 {
            self.inference_ms = age_ms.wrapping_mul(3);
        }
        self.waits = self.last_sign != 0 && now.wrapping_sub(self.last_sign) < self.inference_ms;
        if self.delay.take_excess() {
            window.cwnd = if self.waits { 1 } else { (window.cwnd / 2).max(1) };
            self.last_sign = now;
        }
    }
}

impl Bases {
    const fn own(self, ms: u32) -> u32 {
        self.own.wrapping_add(ms.wrapping_sub(self.established_ms))
    }

    const fn peer(self, clocks: Clocks) -> u32 {
        self.peer.wrapping_add(clocks.peer_ms.wrapping_sub(self.established_ms))
    }
}

impl PeerClock {
    /// The clock's rate in Hz, after an acknowledgement with these timestamps; `None` as long as none is known.
    fn rate(&mut self, peer: u32, own: u32) -> Option<u32> {
        let knows = self.peer != 0 && self.own != 0 && self.peer != peer && self.own != own;
        let mut hz64 = i64::from(self.hz << 6);
        if knows {
            let moved = peer.wrapping_sub(self.peer).wrapping_mul(1_000);
            let hz = i64::from(moved / own.wrapping_sub(self.own));
            hz64 = if hz64 > 0 { hz64 + hz - (hz64 >> 6) } else { hz << 6 };
        }
        *self = Self { hz: (hz64 >> 6) as u32, peer, own };
        (self.hz > 0).then_some(self.hz)
    }
}

impl OneWayDelay {
    fn add(&mut self, delay: u32) {
        if delay == 0 {
            return;
        }
        self.min = self.min.min(delay);
        if delay > self.max {
            let known = if self.largest == 0 { delay } else { self.largest };
            self.max = known.min(delay);
            self.largest = self.largest.max(delay);
        }
        self.smoothed8 = if self.smoothed8 == 0 {
            delay << 3
        } else {
            self.smoothed8.wrapping_add(delay).wrapping_sub(self.smoothed8 >> 3)
        };
    }

    /// Whether the smoothed delay is above the threshold, 15 % of the way from the smallest to the largest;
    /// then both are learned anew.
    const fn take_excess(&mut self) -> bool {
        let span = self.max.wrapping_sub(self.min);
        let threshold = self.min.wrapping_add(span.wrapping_mul(THRESHOLD_PERCENT) / 100);
        if self.smoothed8 >> 3 < threshold {
            return false;
        }
        self.min = self.smoothed8 >> 3;
        self.max = self.smoothed8 >> 2;
        self.largest = self.max;
        true
    }
}

pub(super) static LP: Algorithm = Algorithm {
    name: "lp",
    summary: "meant to give way to all others; as Linux has it today, little else than Reno",
    source: "Kuzmanovic and Knightly 2006; Linux net/ipv4/tcp_lp.c",
    begin: |mut random| Box::new(Lp::new(&mut random)),
};

impl Lp {
    fn new(random: &mut Rng) -> Self {
        let mut base = || random.below(1 << 32) as u32;
        Self {
            delay: OneWayDelay { smoothed8: 0, min: u32::MAX, max: 0, largest: 0 },
            peer_clock: PeerClock::default(),
            bases: Bases { own: base(), peer: base(), established_ms: 0 },
            last_sign: 0,
            inference_ms: 0,
            waits: false,
        }
    }
}

/// The threshold, in percent of the way from the smallest to the largest delay.
const THRESHOLD_PERCENT: u32 = 15;

#[cfg(test)]
mod tests {
    use super::*;

    fn delays(all: impl IntoIterator<Item = u32>) -> Vec<bool> {
        let mut delay = OneWayDelay { smoothed8: 0, min: u32::MAX, max: 0, largest: 0 };
        let look = |ms| {
            delay.add(ms);
            delay.take_excess()
        };
        all.into_iter().map(look).collect()
    }

    /// With clocks that are alike it does what it is meant to: a longer delay is a sign.
    #[test]
    fn with_equal_clocks_a_longer_delay_is_a_sign() {
        let signs = delays([20; 50].into_iter().chain([60; 10]));
        assert!(signs[50..].contains(&true));
    }

    /// With clocks far apart it sees nothing after the first sample, or at all.
    #[test]
    fn with_random_clocks_a_longer_delay_is_none() {
        for apart in [1 << 20, 1 << 28, 1 << 30, u32::MAX / 2] {
            let signs = delays([apart + 20; 50].into_iter().chain([apart + 600; 100]));
            assert!(!signs[1..].contains(&true), "{apart}");
        }
    }

    #[test]
    fn a_clock_of_milliseconds_has_1000_hz() {
        let mut clock = PeerClock::default();
        assert_eq!(clock.rate(5_000, 9_000), None);
        for ms in (10..1_000).step_by(10) {
            assert_eq!(clock.rate(5_000 + ms, 9_000 + ms), Some(1_000));
        }
    }
}
