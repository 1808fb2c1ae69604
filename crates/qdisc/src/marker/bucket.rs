//! A bucket that fills continuously.

use weir_core::{Rate, Time};

/// Tokens that come in at a rate, exact to the nanosecond.
#[derive(Clone, Debug)]
pub(super) struct Bucket {
    /// In bytes times [`SCALE`].
    tokens: u128,
    depth: u128,
    bytes_per_sec: u128,
    filled_at: Time,
}

impl Bucket {
    /// A bucket of `depth` bytes, full.
    pub fn full(rate: Rate, depth: u64) -> Self {
        let depth = u128::from(depth) * SCALE;
        let bytes_per_sec = u128::from(rate.as_bytes_per_sec());
        Self { tokens: depth, depth, bytes_per_sec, filled_at: Time::ZERO }
    }

    /// Lets in what has come since the last call, and returns what does not fit, in the bucket's own measure.
    pub fn fill(&mut self, now: Time) -> Overflow {
        let came = self.bytes_per_sec * u128::from(now.since(self.filled_at).as_nanos());
        self.filled_at = now;
        self.pour(Overflow(came))
    }

    /// Lets `tokens` in, and returns what does not fit.
    pub fn pour(&mut self, Overflow(tokens): Overflow) -> Overflow {
        let sum = self.tokens + tokens;
        self.tokens = sum.min(self.depth);
        Overflow(sum - self.tokens)
    }

    pub const fn has(&self, bytes: u64) -> bool {
        self.tokens >= bytes as u128 * SCALE
    }

    /// Takes `bytes` if they are there, and says whether they were.
    pub const fn take(&mut self, bytes: u64) -> bool {
        let there = self.has(bytes);
        if there {
            self.tokens -= bytes as u128 * SCALE;
        }
        there
    }
}

/// Tokens that a full bucket did not take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Overflow(u128);

/// Bytes per second times nanoseconds make this many to a byte.
const SCALE: u128 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use weir_core::Duration;

    #[test]
    fn tokens_come_in_to_the_nanosecond() {
        let mut bucket = Bucket::full(Rate::from_bps(8_000_000), 1_000);
        assert!(bucket.take(1_000));
        bucket.fill(Time::from_nanos(999_999));
        assert!(!bucket.has(1_000) && bucket.has(999));
        bucket.fill(Time::from_millis(1));
        assert!(bucket.take(1_000));
        let over = bucket.fill(Time::from_millis(1) + Duration::from_millis(3));
        assert_eq!(over.0, 2_000 * SCALE);
    }
}
