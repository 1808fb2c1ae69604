//! Time as integer nanoseconds since the start of the run.

use std::fmt;
use std::ops::{Add, AddAssign, Div, Mul, Sub};

/// An instant: nanoseconds since the start of the run, 0 to about 584 years.
///
/// Only the three owners of a clock make instants; everything else receives them.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

/// A span of time in nanoseconds, never negative.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(u64);

impl Time {
    /// The start of the run.
    pub const ZERO: Self = Self(0);
    /// Later than every instant of a run: "never".
    pub const MAX: Self = Self(u64::MAX);

    /// The instant `ns` nanoseconds after the start of the run.
    #[must_use]
    pub const fn from_nanos(ns: u64) -> Self {
        Self(ns)
    }

    /// The instant `ms` milliseconds after the start of the run.
    #[must_use]
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms * 1_000_000)
    }

    /// Nanoseconds since the start of the run.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Seconds since the start of the run, for people.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The span from `earlier` to `self`.
    ///
    /// # Panics
    /// If `earlier` is later than `self`: time that runs backwards is a bug, and hiding it behind
    /// an absolute or saturating difference would hide the bug (see CONTRIBUTING.md, "Traps").
    #[must_use]
    #[track_caller]
    #[inline]
    pub fn since(self, earlier: Self) -> Duration {
        match self.0.checked_sub(earlier.0) {
            Some(ns) => Duration(ns),
            None => panic!("time ran backwards: from {earlier} to {self}"),
        }
    }

    /// The span from `earlier` to `self`, or `None` if `earlier` is later.
    #[must_use]
    pub const fn checked_since(self, earlier: Self) -> Option<Duration> {
        match self.0.checked_sub(earlier.0) {
            Some(ns) => Some(Duration(ns)),
            None => None,
        }
    }

    /// The instant `span` later, or [`Time::MAX`] beyond the end of time.
    #[must_use]
    pub const fn saturating_add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span.0))
    }

    /// The instant `span` earlier, or [`Time::ZERO`] before the start of the run.
    #[must_use]
    pub const fn saturating_sub(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(span.0))
    }
}

impl Duration {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// The longest span.
    pub const MAX: Self = Self(u64::MAX);

    /// A span of `ns` nanoseconds.
    #[must_use]
    pub const fn from_nanos(ns: u64) -> Self {
        Self(ns)
    }

    /// A span of `us` microseconds.
    #[must_use]
    pub const fn from_micros(us: u64) -> Self {
        Self(us * 1_000)
    }

    /// A span of `ms` milliseconds.
    #[must_use]
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms * 1_000_000)
    }

    /// A span of `s` seconds.
    #[must_use]
    pub const fn from_secs(s: u64) -> Self {
        Self(s * 1_000_000_000)
    }

    /// The span in nanoseconds.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The span in whole microseconds, rounded down.
    #[must_use]
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }

    /// The span in milliseconds, for people.
    #[must_use]
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// The span in seconds, for people.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Whether the span is empty.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// `self - other`, or zero if `other` is longer.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Add<Duration> for Time {
    type Output = Self;
    #[track_caller]
    #[inline]
    fn add(self, span: Duration) -> Self {
        Self(self.0.checked_add(span.0).expect("an instant beyond the end of time"))
    }
}

impl AddAssign<Duration> for Time {
    #[track_caller]
    #[inline]
    fn add_assign(&mut self, span: Duration) {
        *self = *self + span;
    }
}

impl Sub<Duration> for Time {
    type Output = Self;
    #[track_caller]
    #[inline]
    fn sub(self, span: Duration) -> Self {
        Self(self.0.checked_sub(span.0).expect("an instant before the start of the run"))
    }
}

impl Add for Duration {
    type Output = Self;
    #[track_caller]
    #[inline]
    fn add(self, other: Self) -> Self {
        Self(self.0.checked_add(other.0).expect("a span too long"))
    }
}

impl AddAssign for Duration {
    #[track_caller]
    #[inline]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Duration {
    type Output = Self;
    #[track_caller]
    #[inline]
    fn sub(self, other: Self) -> Self {
        Self(self.0.checked_sub(other.0).expect("a negative span"))
    }
}

impl Mul<u64> for Duration {
    type Output = Self;
    #[track_caller]
    #[inline]
    fn mul(self, factor: u64) -> Self {
        Self(self.0.checked_mul(factor).expect("a span too long"))
    }
}

impl Div<u64> for Duration {
    type Output = Self;
    fn div(self, divisor: u64) -> Self {
        Self(self.0 / divisor)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09} s", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Duration {
    /// As iproute2 prints it: the largest unit that leaves a whole number, else nanoseconds.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (value, unit) = match self.0 {
            0 => (0, "ms"),
            ns if ns % 1_000_000_000 == 0 => (ns / 1_000_000_000, "s"),
            ns if ns % 1_000_000 == 0 => (ns / 1_000_000, "ms"),
            ns if ns % 1_000 == 0 => (ns / 1_000, "us"),
            ns => (ns, "ns"),
        };
        write!(f, "{value}{unit}")
    }
}

impl fmt::Debug for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_the_largest_whole_unit() {
        assert_eq!(Duration::from_millis(5).to_string(), "5ms");
        assert_eq!(Duration::from_secs(60).to_string(), "60s");
        assert_eq!(Duration::from_nanos(1_500).to_string(), "1500ns");
        assert_eq!(Duration::from_nanos(250_000).to_string(), "250us");
        assert_eq!(Time::from_millis(1_250).to_string(), "1.250000000 s");
    }

    #[test]
    #[should_panic(expected = "time ran backwards")]
    fn reversed_time_panics() {
        let _ = Time::from_millis(1).since(Time::from_millis(2));
    }

    #[test]
    fn instants_end_at_the_start_of_the_run_and_at_the_end_of_time() {
        let ms = Duration::from_millis;
        assert_eq!(Time::from_millis(5).saturating_sub(ms(2)), Time::from_millis(3));
        assert_eq!(Time::from_millis(1).saturating_sub(ms(2)), Time::ZERO);
        assert_eq!(Time::MAX.saturating_add(ms(2)), Time::MAX);
    }
}
