//! Regular instants.

use crate::{Duration, Time};

/// Sampling at a fixed interval.
#[derive(Clone, Copy, Debug)]
pub struct Ticker {
    period: Duration,
}

impl Ticker {
    /// A ticker of that period, or `None` for a period of 0: never.
    #[must_use]
    pub const fn new(period_ns: u64) -> Option<Self> {
        if period_ns == 0 { None } else { Some(Self { period: Duration::from_nanos(period_ns) }) }
    }

    /// The next tick after `now`.
    #[must_use]
    pub fn after(self, now: Time) -> Time {
        let period = self.period.as_nanos();
        Time::from_nanos((now.as_nanos() / period + 1) * period)
    }
}
