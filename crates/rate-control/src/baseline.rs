//! The delay of an empty path: the least of the last half minute.

use weir_core::{Duration, Time};

/// The least of a series over a sliding window, kept in two halves: a value is remembered for one to two
/// halves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Baseline {
    half: Duration,
    current: i64,
    /// Least value of the half before the present one.
    previous: i64,
    since: Time,
}

impl Baseline {
    /// A baseline that starts with `value` and forgets after `half` to two halves.
    pub const fn new(value: i64, half: Duration, now: Time) -> Self {
        Self { half, current: value, previous: value, since: now }
    }

    /// Takes a value in.
    pub fn add(&mut self, value: i64, now: Time) {
        if now.since(self.since) >= self.half {
            self.previous = self.current;
            self.current = value;
            self.since = now;
        }
        self.current = self.current.min(value);
    }

    /// The least value of the present half and the one before.
    pub fn get(&self) -> i64 {
        self.current.min(self.previous)
    }

    /// The path has become longer by `by`.
    pub const fn raise(&mut self, by: i64) {
        self.current += by;
        self.previous += by;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_is_kept_for_one_to_two_halves() {
        let s = |s: u64| Time::from_millis(1000 * s);
        let mut base = Baseline::new(10, Duration::from_secs(15), s(0));
        base.add(7, s(5));
        base.add(9, s(10));
        assert_eq!(base.get(), 7);
        base.add(9, s(16));
        assert_eq!(base.get(), 7);
        base.add(12, s(31));
        assert_eq!(base.get(), 9);
        base.raise(30);
        assert_eq!(base.get(), 39);
        base.add(20, s(32));
        assert_eq!(base.get(), 20);
    }
}
