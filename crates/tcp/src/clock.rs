//! The clock of the timers: when one that is set fires, and what a tick is.

use weir_core::{Duration, Time};

/// Clock of the timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timers {
    /// Timers fire exactly, to the nanosecond.
    Exact,
    /// Timers fire at the tick at which their time is up, so that they may be a tick early.
    Ticks(Duration),
    /// Timers fire as Linux' timer wheel with `HZ=250` does: never early, and later the longer the time.
    Wheel,
}

impl Timers {
    /// Time at which a timer set at `now` for `span` fires.
    #[must_use]
    #[inline]
    pub fn fires_at(self, now: Time, span: Duration) -> Time {
        match self {
            Self::Exact | Self::Ticks(_) => self.due(now, span),
            Self::Wheel => {
                let ticks = self.ticks_up(span);
                let expires = self.whole_ticks(now.since(Time::ZERO)) + ticks;
                // kernel/time/timer.c: level l holds timers of 63 * 8^(l-1) ticks and more, in steps
                // of 8^l ticks, and rounds up to the next step so that none fires early.
                let mut level = 0;
                while level < 8 && ticks >= 63 << (3 * level) {
                    level += 1;
                }
                let steps = (expires >> (3 * level)) + 1;
                Time::from_nanos((steps << (3 * level)) * LINUX_TICK.as_nanos())
            }
        }
    }

    /// A time before which a timer set at `now` for `span` does not fire, which takes less work to tell.
    #[must_use]
    #[inline]
    pub fn fires_from(self, now: Time, span: Duration) -> Time {
        match self {
            // A tick that has begun counts as a whole one.
            Self::Ticks(_) => self.due(now, span),
            Self::Exact | Self::Wheel => now + span,
        }
    }

    /// Time of the tick at which a timer set at `now` for `span` is due. The wheel notices it later.
    #[must_use]
    #[inline]
    pub fn due(self, now: Time, span: Duration) -> Time {
        match self {
            Self::Exact => now + span,
            Self::Ticks(_) | Self::Wheel => {
                let ticks = self.whole_ticks(now.since(Time::ZERO)) + self.ticks_up(span);
                Time::from_nanos(ticks * self.tick().as_nanos())
            }
        }
    }

    /// `span` in whole ticks, rounded down.
    #[must_use]
    #[inline]
    pub fn whole(self, span: Duration) -> Duration {
        match self {
            Self::Exact => span,
            Self::Ticks(_) | Self::Wheel => self.tick() * self.whole_ticks(span),
        }
    }

    /// `us` microseconds in whole ticks, in microseconds again: as [`whole`](Self::whole), with less work for Linux' tick.
    #[must_use]
    #[inline]
    pub const fn whole_us(self, us: u64) -> u64 {
        match self {
            Self::Exact => us,
            Self::Wheel => us / LINUX_TICK.as_micros() * LINUX_TICK.as_micros(),
            Self::Ticks(_) => self.whole_us_of_other_ticks(us),
        }
    }

    #[inline(never)]
    const fn whole_us_of_other_ticks(self, us: u64) -> u64 {
        let ticks = self.whole_other_ticks(Duration::from_micros(us));
        ticks * self.tick().as_nanos() / 1_000
    }

    /// Length of a tick; a millisecond where timers are exact.
    #[must_use]
    pub const fn tick(self) -> Duration {
        match self {
            Self::Exact => Duration::from_millis(1),
            Self::Ticks(tick) => tick,
            Self::Wheel => LINUX_TICK,
        }
    }

    /// Whole ticks in `span`.
    ///
    /// Every acknowledgement asks, mostly for Linux' tick: to divide by a number that is known as this is compiled takes
    /// a quarter of the time. The other ticks are divided by out of line, or the compiler makes one division of both.
    #[must_use]
    #[inline]
    pub const fn whole_ticks(self, span: Duration) -> u64 {
        match self {
            Self::Exact | Self::Ticks(_) => self.whole_other_ticks(span),
            Self::Wheel => span.as_nanos() / LINUX_TICK.as_nanos(),
        }
    }

    #[inline(never)]
    const fn whole_other_ticks(self, span: Duration) -> u64 {
        span.as_nanos() / self.tick().as_nanos()
    }

    /// Ticks in `span`, rounded up.
    #[must_use]
    #[inline]
    pub const fn ticks_up(self, span: Duration) -> u64 {
        // Less work than `div_ceil`, which multiplies to find out whether there is a rest.
        let Some(before_end) = span.as_nanos().checked_sub(1) else { return 0 };
        self.whole_ticks(Duration::from_nanos(before_end)) + 1
    }
}

/// A tick of Linux with `HZ=250`.
const LINUX_TICK: Duration = Duration::from_millis(4);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wheel_is_never_early_and_coarser_for_long_times() {
        let fires = |now_ms: u64, ms: u64| {
            Timers::Wheel.fires_at(Time::from_millis(now_ms), Duration::from_millis(ms)).as_nanos()
                / 1_000_000
        };
        assert_eq!(fires(0, 40), 44); // 10 ticks, and one so that it is not early
        assert_eq!(fires(3, 40), 44);
        assert_eq!(fires(4, 200), 208);
        assert_eq!(fires(0, 248), 252); // 62 ticks: still steps of one
        assert_eq!(fires(0, 252), 256); // 63 ticks: steps of 8, 32 ms
        assert_eq!(fires(0, 260), 288);
        assert_eq!(fires(0, 2_016), 2_048); // 504 ticks: steps of 64, 256 ms
    }

    const ALL: [Timers; 4] = [
        Timers::Exact,
        Timers::Wheel,
        Timers::Ticks(Duration::from_millis(10)),
        Timers::Ticks(Duration::from_millis(500)),
    ];

    #[test]
    fn no_timer_fires_before_the_time_that_is_told_of_it() {
        let nows = [0, 1, 3_999_999, 4_000_000, 10_000_001, 7_777_777_777].map(Time::from_nanos);
        let spans = [1, 200, 4_000, 9_999, 40_000, 252_000, 499_999, 3_000_000];
        for (timers, now) in ALL.into_iter().flat_map(|timers| nows.map(|now| (timers, now))) {
            for span in spans.map(Duration::from_micros) {
                let (from, fires) = (timers.fires_from(now, span), timers.fires_at(now, span));
                assert!(from <= fires, "{timers:?} at {now} for {span}: {from}, {fires}");
                let expected = if timers == Timers::Wheel { now + span } else { fires };
                assert_eq!(from, expected, "{timers:?} at {now} for {span}");
            }
        }
    }

    #[test]
    fn microseconds_are_in_whole_ticks_as_spans_are() {
        for timers in ALL {
            for us in [0, 1, 3_999, 4_000, 9_999, 10_000, 19_999, 40_001, 7_777_777_777] {
                let whole = timers.whole(Duration::from_micros(us)).as_micros();
                assert_eq!(timers.whole_us(us), whole, "{timers:?}, {us} us");
            }
        }
    }

    #[test]
    fn coarse_ticks_may_be_early() {
        let at = Timers::Ticks(Duration::from_millis(500))
            .fires_at(Time::from_millis(499), Duration::from_secs(1));
        assert_eq!(at, Time::from_millis(1_000));
    }

    #[test]
    fn a_span_is_in_whole_ticks_and_a_begun_one_counts_upwards() {
        for timers in [Timers::Wheel, Timers::Ticks(Duration::from_millis(4))] {
            let ticks = |nanos| {
                let span = Duration::from_nanos(nanos);
                (timers.whole_ticks(span), timers.ticks_up(span))
            };
            let spans = [0, 1, 3_999_999, 4_000_000, 4_000_001, u64::MAX];
            let longest = u64::MAX / 4_000_000;
            let expected = [(0, 0), (0, 1), (0, 1), (1, 1), (1, 2), (longest, longest + 1)];
            assert_eq!(spans.map(ticks), expected, "{timers:?}");
        }
    }
}
