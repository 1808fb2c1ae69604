//! The time of the run on this machine's clock.

use weir_core::{Duration, Time};

use crate::sys::time::{monotonic_ns, realtime_ahead_ns};

/// Run time: nanoseconds on `CLOCK_MONOTONIC` since a start that may lie ahead.
///
/// All processes of one machine that are given the same start have the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    start_ns: u64,
    /// How far `CLOCK_REALTIME` is ahead of `CLOCK_MONOTONIC`, where time is virtual.
    virtual_ahead_ns: Option<i64>,
}

impl Clock {
    /// The clock of a run that starts when `CLOCK_MONOTONIC` shows `monotonic_ns` nanoseconds.
    #[must_use]
    pub const fn starting_at(monotonic_ns: u64) -> Self {
        Self { start_ns: monotonic_ns, virtual_ahead_ns: None }
    }

    /// The same where time is virtual: it stands still while anything is computed, timers are never late, and
    /// nobody sets the clock.
    #[must_use]
    pub fn in_virtual_time(self) -> Self {
        Self { virtual_ahead_ns: Some(realtime_ahead_ns()), ..self }
    }

    /// Whether time is virtual. Then who waits awake waits for long: it passes in sleep alone.
    #[must_use]
    pub const fn is_virtual(self) -> bool {
        self.virtual_ahead_ns.is_some()
    }

    /// The clock of a run that starts `lead` from now.
    #[must_use]
    pub fn starting_in(lead: Duration) -> Self {
        Self::starting_at(monotonic_ns() + lead.as_nanos())
    }

    /// The time of the run; 0 before its start.
    #[must_use]
    pub fn now(self) -> Time {
        self.of_monotonic_ns(monotonic_ns())
    }

    /// How long it is until `time`; zero once it is reached. Knows how far the start is.
    #[must_use]
    pub fn until(self, time: Time) -> Duration {
        Duration::from_nanos(self.monotonic_ns_of(time).saturating_sub(monotonic_ns()))
    }

    /// `CLOCK_MONOTONIC` at `time`, in nanoseconds.
    #[must_use]
    pub const fn monotonic_ns_of(self, time: Time) -> u64 {
        self.start_ns.saturating_add(time.as_nanos())
    }

    /// The time of the run when `CLOCK_MONOTONIC` shows so many nanoseconds; 0 before its start.
    #[must_use]
    pub const fn of_monotonic_ns(self, monotonic_ns: u64) -> Time {
        Time::from_nanos(monotonic_ns.saturating_sub(self.start_ns))
    }

    /// The time of the run of a kernel's time stamp, which is on `CLOCK_REALTIME`; now if it gave none.
    ///
    /// The two clocks are compared at each call, so that a clock being set moves only what is under way.
    /// A stamp is never later than now: it would be the inexactness of the comparison.
    #[must_use]
    pub fn of_stamp(self, real_ns: Option<u64>) -> Time {
        let Some(real_ns) = real_ns else { return self.now() };
        if let Some(ahead_ns) = self.virtual_ahead_ns {
            return self.of_monotonic_ns(real_ns.saturating_add_signed(-ahead_ns));
        }
        let monotonic = real_ns.saturating_add_signed(-realtime_ahead_ns());
        self.of_monotonic_ns(monotonic).min(self.now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_zero_before_the_start_and_counts_from_it() {
        let clock = Clock::starting_at(1_000);
        assert_eq!(clock.of_monotonic_ns(400), Time::ZERO);
        assert_eq!(clock.of_monotonic_ns(1_500), Time::from_nanos(500));
        assert_eq!(clock.monotonic_ns_of(Time::from_nanos(500)), 1_500);
        assert!(Clock::starting_at(u64::MAX).now() == Time::ZERO);
    }

    #[test]
    fn in_virtual_time_a_stamp_is_what_it_was_on_a_clock_that_nobody_sets() {
        let clock = Clock::starting_at(1_000).in_virtual_time();
        let ahead_ns = clock.virtual_ahead_ns.unwrap();
        let stamp = 5_000_u64.saturating_add_signed(ahead_ns);
        assert_eq!(clock.of_stamp(Some(stamp)), Time::from_nanos(4_000));
        assert!(clock.is_virtual() && !Clock::starting_at(1_000).is_virtual());
    }

    #[test]
    fn a_stamp_is_never_later_than_now() {
        let clock = Clock::starting_at(0);
        let stamp = clock.of_stamp(Some(i64::MAX as u64));
        assert!(stamp <= clock.now());
    }
}
