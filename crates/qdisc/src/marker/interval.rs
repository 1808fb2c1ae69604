//! Intervals of equal length that begin with the run.

use weir_core::{Duration, Time};

use crate::tc::SpecError;

/// The running interval.
#[derive(Clone, Debug)]
pub(super) struct Intervals {
    length: Duration,
    start: Time,
}

impl Intervals {
    /// Intervals of that length, the parameter `interval` of the marker called `owner`.
    ///
    /// # Errors
    /// If it is 0.
    pub fn new(owner: &str, length: Duration) -> Result<Self, SpecError> {
        if length.is_zero() {
            let allowed = "write a time above 0, such as 400ms";
            return Err(SpecError::bad(owner, "interval", "0", allowed));
        }
        Ok(Self { length, start: Time::ZERO })
    }

    /// How many intervals have begun since the last call.
    pub fn begun(&mut self, now: Time) -> u64 {
        let begun = now.since(self.start).as_nanos() / self.length.as_nanos();
        self.start += self.length * begun;
        begun
    }

    /// Whether the first half of the running interval is over.
    pub fn in_second_half(&self, now: Time) -> bool {
        now.since(self.start) >= self.length / 2
    }
}
