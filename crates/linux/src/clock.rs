//! The run's clock: nanoseconds since its start on the machine's monotonic clock.

use nix::time::{ClockId, clock_gettime};
use weir_core::Time;

/// The run's clock. Copies tell the same time.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start_ns: u64,
}

impl Clock {
    /// A clock whose zero is `start_ns` on the monotonic clock; before that it stands at zero.
    #[must_use]
    pub const fn starting_at(start_ns: u64) -> Self {
        Self { start_ns }
    }

    /// Nanoseconds of the monotonic clock.
    #[must_use]
    pub fn monotonic_ns() -> u64 {
        read(ClockId::CLOCK_MONOTONIC)
    }

    /// Processor time that the calling thread has used, in nanoseconds.
    #[must_use]
    pub fn thread_cpu_ns() -> u64 {
        read(ClockId::CLOCK_THREAD_CPUTIME_ID)
    }

    /// The time of the run.
    #[must_use]
    pub fn now(self) -> Time {
        Time::from_nanos(Self::monotonic_ns().saturating_sub(self.start_ns))
    }
}

fn read(clock: ClockId) -> u64 {
    let time = clock_gettime(clock).expect("Linux has this clock");
    time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64
}
