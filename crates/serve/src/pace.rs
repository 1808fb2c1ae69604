//! How fast an address may send and be sent to.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A rate in each direction, shared by all connections of an address.
#[derive(Debug)]
pub(crate) struct Pace {
    pub down: Bucket,
    pub up: Bucket,
}

/// Bytes pass at a rate on average, a burst at once: the generic cell rate algorithm (ITU-T I.371), by the
/// time at which what has passed would have at the rate. Connections take turns of equal size, first come
/// first served, so that what they share does not depend on how much each writes in one call.
#[derive(Debug)]
pub(crate) struct Bucket {
    start: Instant,
    bps: u64,
    /// Time at which the next byte may pass, in nanoseconds since `start`.
    next_ns: AtomicU64,
}

impl Pace {
    pub fn new(bps: u64) -> Self {
        Self { down: Bucket::new(bps), up: Bucket::new(bps) }
    }
}

impl Bucket {
    fn new(bps: u64) -> Self {
        Self { start: Instant::now(), bps, next_ns: AtomicU64::new(0) }
    }

    /// Reserves `bytes` at `now`, after all that were reserved before, and returns when they may pass.
    pub fn reserve(&self, bytes: usize, now: Instant) -> Instant {
        let now_ns = now.saturating_duration_since(self.start).as_nanos() as u64;
        let took = (bytes as u128 * 8_000_000_000 / u128::from(self.bps)) as u64;
        let update = |next: u64| Some(next.max(now_ns).saturating_add(took));
        let (Ok(next) | Err(next)) =
            self.next_ns.fetch_update(Ordering::Relaxed, Ordering::Relaxed, update);
        self.start + Duration::from_nanos(next.max(now_ns).saturating_sub(BURST_NS))
    }

    /// The bytes of a turn: a millisecond of the rate, so that many connections do not wait for long.
    pub fn turn(&self) -> usize {
        (self.bps / 8 / 1000).clamp(1_500, 1 << 20) as usize
    }
}

/// Ten milliseconds: what a timer and a busy machine are late by does not cost rate.
const BURST_NS: u64 = 10_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_pass_at_the_rate_behind_a_burst() {
        let bucket = Bucket::new(8_000_000);
        let at = |ms| bucket.start + Duration::from_millis(ms);
        assert_eq!(bucket.reserve(30_000, at(0)), at(0));
        assert_eq!(bucket.reserve(10_000, at(0)), at(20));
        assert_eq!(bucket.reserve(10_000, at(30)), at(30));
        // A pause gives a burst, no more.
        assert_eq!(bucket.reserve(20_000, at(1000)), at(990));
        assert_eq!(bucket.reserve(1_000, at(1000)), at(1010));
        assert_eq!(bucket.turn(), 1_500);
    }
}
