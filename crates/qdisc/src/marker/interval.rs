//! Intervals of equal length that begin with the run.

use weir_core::{Duration, Time};

use crate::tc::{Params, SetUpError};

/// The running interval.
#[derive(Clone, Debug)]
pub(super) struct Intervals {
    length: Duration,
    start: Time,
}

impl Intervals {
    /// Reads `interval`.
    pub fn read(params: &Params) -> Result<Self, SetUpError> {
        let length = params.time("interval")?.expect("a default");
        if length.is_zero() {
            return Err(params.bad("interval", "0", "write a time above 0, such as 400ms"));
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
