//! Estimated spans and rates, as numbers with fractions.
//!
//! The control averages and divides. Rounding to the whole nanoseconds of a [`Duration`] and the whole bit/s of
//! a [`Rate`] at each step would change its decisions.

use std::ops::{Add, AddAssign, Div, Mul, MulAssign, Sub};

use weir_core::{Duration, Rate};

/// An estimated span in seconds; a difference of two may be negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub(crate) struct Seconds(pub f64);

/// An estimated rate in bit/s.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub(crate) struct BitsPerSecond(pub f64);

/// Arithmetic that keeps the unit; a quotient of two quantities is a plain number.
macro_rules! quantity {
    ($name:ident) => {
        impl $name {
            pub const ZERO: Self = Self(0.0);

            pub fn max(self, other: Self) -> Self {
                Self(self.0.max(other.0))
            }

            pub fn min(self, other: Self) -> Self {
                Self(self.0.min(other.0))
            }
        }

        impl Add for $name {
            type Output = Self;
            fn add(self, other: Self) -> Self {
                Self(self.0 + other.0)
            }
        }

        impl AddAssign for $name {
            fn add_assign(&mut self, other: Self) {
                *self = *self + other;
            }
        }

        impl Sub for $name {
            type Output = Self;
            fn sub(self, other: Self) -> Self {
                Self(self.0 - other.0)
            }
        }

        impl Mul<f64> for $name {
            type Output = Self;
            fn mul(self, factor: f64) -> Self {
                Self(self.0 * factor)
            }
        }

        impl MulAssign<f64> for $name {
            fn mul_assign(&mut self, factor: f64) {
                *self = *self * factor;
            }
        }

        impl Div<f64> for $name {
            type Output = Self;
            fn div(self, divisor: f64) -> Self {
                Self(self.0 / divisor)
            }
        }

        impl Div for $name {
            type Output = f64;
            fn div(self, other: Self) -> f64 {
                self.0 / other.0
            }
        }
    };
}

quantity!(Seconds);
quantity!(BitsPerSecond);

impl Seconds {
    /// `ns` nanoseconds.
    pub fn from_nanos(ns: i64) -> Self {
        Self(ns as f64 / 1e9)
    }

    /// The span in milliseconds.
    pub fn as_millis(self) -> f64 {
        self.0 * 1e3
    }

    /// The span rounded down to whole nanoseconds, and to zero if it is negative.
    pub fn to_duration(self) -> Duration {
        Duration::from_nanos((self.0 * 1e9) as u64)
    }

    /// The length of the span, without its sign.
    pub fn abs(self) -> Self {
        Self(self.0.abs())
    }

    /// The middle of some spans: of an even count the lower of the two.
    pub fn median(spans: impl Iterator<Item = Self>) -> Option<Self> {
        median(spans.map(|span| span.0)).map(Self)
    }

    /// The least and the most of some spans; `None` of none.
    pub fn range(mut spans: impl Iterator<Item = Self>) -> Option<(Self, Self)> {
        let first = spans.next()?;
        Some(spans.fold((first, first), |(least, most), one| (least.min(one), most.max(one))))
    }
}

impl From<Duration> for Seconds {
    fn from(span: Duration) -> Self {
        Self(span.as_secs_f64())
    }
}

impl BitsPerSecond {
    /// The rate at which `bytes` cross in `took`.
    pub fn of_bytes(bytes: f64, took: Seconds) -> Self {
        Self::of_bits(bytes * 8.0, took)
    }

    /// The rate at which `bits` cross in `took`.
    pub fn of_bits(bits: f64, took: Seconds) -> Self {
        Self(bits / took.0)
    }

    /// The time in which `bits` cross at this rate.
    pub fn time_for_bits(self, bits: f64) -> Seconds {
        Seconds(bits / self.0)
    }

    /// The rate in Mbit/s.
    pub fn as_mbit(self) -> f64 {
        self.0 / 1e6
    }

    /// The rate rounded down to whole bit/s.
    pub const fn to_rate(self) -> Rate {
        Rate::from_bps(self.0 as u64)
    }

    /// The rate halfway between this one and `other`.
    pub const fn midpoint(self, other: Self) -> Self {
        Self(f64::midpoint(self.0, other.0))
    }
}

impl From<Rate> for BitsPerSecond {
    fn from(rate: Rate) -> Self {
        Self(rate.as_bps() as f64)
    }
}

/// The middle of some numbers: of an even count the lower of the two.
pub(crate) fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len().checked_sub(1)? / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_and_rates_turn_into_each_other() {
        let rate = BitsPerSecond::of_bytes(1_500.0, Seconds(0.001));
        assert_eq!(rate, BitsPerSecond(12e6));
        assert_eq!(BitsPerSecond::of_bits(1_500.0, Seconds(0.5)), BitsPerSecond(3_000.0));
        assert_eq!(rate.time_for_bits(6e6), Seconds(0.5));
        assert_eq!((rate.as_mbit(), Seconds(0.25).as_millis()), (12.0, 250.0));
        assert_eq!(rate.midpoint(BitsPerSecond(13e6)), BitsPerSecond(12.5e6));
        assert_eq!(Seconds::from_nanos(-1_500_000_000).abs(), Seconds(1.5));
    }

    #[test]
    fn whole_units_are_rounded_down() {
        assert_eq!(BitsPerSecond(100_000.9).to_rate(), Rate::from_bps(100_000));
        assert_eq!(Seconds(0.000_000_001_9).to_duration(), Duration::from_nanos(1));
        assert_eq!(Seconds(-1.0).to_duration(), Duration::ZERO);
        assert_eq!(Seconds::from(Duration::from_millis(60)), Seconds(0.06));
        assert_eq!(BitsPerSecond::from(Rate::from_mbit(2)), BitsPerSecond(2e6));
    }

    #[test]
    fn the_middle_of_an_even_count_is_the_lower() {
        assert_eq!(median([].into_iter()), None);
        assert_eq!(median([3.0, 1.0, 2.0].into_iter()), Some(2.0));
        assert_eq!(median([4.0, 3.0, 1.0, 2.0].into_iter()), Some(2.0));
        assert_eq!(Seconds::median([2.0, 1.0].map(Seconds).into_iter()), Some(Seconds(1.0)));
    }

    #[test]
    fn the_range_is_the_least_and_the_most() {
        let range = |spans: &[f64]| Seconds::range(spans.iter().copied().map(Seconds));
        assert_eq!(range(&[]), None);
        assert_eq!(range(&[2.0]), Some((Seconds(2.0), Seconds(2.0))));
        assert_eq!(range(&[2.0, -1.0, 3.0]), Some((Seconds(-1.0), Seconds(3.0))));
    }
}
