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
/// time at which what has passed would have at the rate.
#[derive(Debug)]
pub(crate) struct Bucket {
    start: Instant,
    bps: u64,
    /// Nanoseconds since `start`.
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

    /// How long it is until something may pass at `now`; `None`: it may.
    pub fn wait(&self, now: Instant) -> Option<Duration> {
        let now_ns = now.saturating_duration_since(self.start).as_nanos() as u64;
        let ahead = self.next_ns.load(Ordering::Relaxed).saturating_sub(now_ns);
        (ahead > BURST_NS).then(|| Duration::from_nanos(ahead - BURST_NS))
    }

    /// So many bytes passed at `now`.
    pub fn passed(&self, bytes: usize, now: Instant) {
        let now_ns = now.saturating_duration_since(self.start).as_nanos() as u64;
        let took = (bytes as u128 * 8_000_000_000 / u128::from(self.bps)) as u64;
        let update = |next: u64| Some(next.max(now_ns).saturating_add(took));
        let _ = self.next_ns.fetch_update(Ordering::Relaxed, Ordering::Relaxed, update);
    }

    /// How many bytes may pass at once, so that one pass does not take long.
    pub fn most(&self) -> usize {
        (self.bps / 8 / 100).clamp(1_500, 1 << 20) as usize
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
        let start = bucket.start;
        let at = |ms| start + Duration::from_millis(ms);
        assert_eq!(bucket.wait(at(0)), None);
        bucket.passed(30_000, at(0));
        assert_eq!(bucket.wait(at(0)), Some(Duration::from_millis(20)));
        assert_eq!(bucket.wait(at(20)), None);
        bucket.passed(10_000, at(20));
        assert_eq!(bucket.wait(at(20)), Some(Duration::from_millis(10)));
        assert_eq!(bucket.wait(at(1000)), None);
        assert_eq!(bucket.most(), 10_000);
    }
}
