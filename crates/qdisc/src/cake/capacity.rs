//! `autorate-ingress`: what the line in front brings, from the packets that arrive.

use weir_core::{Duration, Time};

/// An estimate of the capacity of the line over which packets come.
///
/// Bytes are counted over windows that end with a gap longer than usual, so that bursts, as of wireless
/// aggregates, count as a whole; the estimate follows peaks fast and lulls slowly.
#[derive(Clone, Copy, Debug)]
pub(super) struct Capacity {
    last_packet: Option<Time>,
    /// Mean time between packets, in nanoseconds.
    gap: u64,
    window: Option<Time>,
    window_bytes: u64,
    /// The estimate, in bytes per second.
    peak: u64,
}

impl Capacity {
    /// An estimate that starts from a rate in bytes per second, 0 if nothing is known.
    pub const fn new(bytes_per_sec: u64) -> Self {
        Self { last_packet: None, gap: 0, window: None, window_bytes: 0, peak: bytes_per_sec }
    }

    /// A packet arrived at `now`, by which `bytes` more wait. The rate to shape to in bytes per second, if
    /// there is a new one.
    pub fn on_arrival(&mut self, bytes: i64, now: Time) -> Option<u64> {
        self.window_bytes = self.window_bytes.saturating_add_signed(bytes);
        let gap = self.last_packet.map_or(MAX_GAP, |at| now.since(at)).min(MAX_GAP);
        let gap = gap.as_nanos();
        self.gap = mean(self.gap, gap);
        self.last_packet = Some(now);
        if gap <= self.gap {
            return None;
        }
        let window = self.window.replace(now).map(|start| now.since(start).as_nanos());
        let rate = match window {
            Some(window) if window > 0 => self.window_bytes * 1_000_000_000 / window,
            _ => 0,
        };
        self.window_bytes = 0;
        self.peak =
            if rate > self.peak { step(self.peak, rate, 2) } else { step(self.peak, rate, 8) };
        Some((self.peak * 15) >> 4)
    }
}

/// The mean time between packets follows longer gaps fast and shorter ones slowly.
const fn mean(mean: u64, gap: u64) -> u64 {
    step(mean, gap, if gap > mean { 2 } else { 8 })
}

/// A moving average's step of 2^-`shift` towards `sample`.
const fn step(average: u64, sample: u64, shift: u32) -> u64 {
    average - (average >> shift) + (sample >> shift)
}

const MAX_GAP: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_line_is_found_and_left_a_sixteenth() {
        // Bursts of ten packets of 1250 bytes every 10 ms: 10 Mbit/s.
        let mut capacity = Capacity::new(0);
        let mut rate = 0;
        for burst in 0..200u64 {
            for packet in 0..10 {
                let now = Time::from_nanos(1_000_000_000 + burst * 10_000_000 + packet * 100_000);
                rate = capacity.on_arrival(1_250, now).unwrap_or(rate);
            }
        }
        assert_eq!(rate, 1_171_875, "15/16 of 1 250 000");
    }

    #[test]
    fn peaks_are_followed_faster_than_lulls() {
        let mut capacity = Capacity::new(1_000_000);
        let second = |n: u64| Time::from_nanos(n * 1_000_000_000);
        assert_eq!(capacity.on_arrival(0, second(1)), Some(933_838), "1 000 000 - 1/256, 15/16");
        capacity.window_bytes = 2_000_000;
        assert_eq!(capacity.on_arrival(0, second(2)), Some(1_169_129));
    }
}
