//! The delay of an empty path: the least of the last half minute.

use weir_core::{Duration, Time};

/// The least of a series over a sliding window.
///
/// The window has two halves: a value is remembered for one to two of them. Values are signed nanoseconds: a
/// one-way delay between two clocks may be negative.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Baseline {
    half: Duration,
    /// Least value of the present half, in ns.
    current_ns: i64,
    /// Least value of the half before the present one, in ns.
    previous_ns: i64,
    since: Time,
}

impl Baseline {
    /// A baseline that starts with `value_ns` and forgets after `half` to two halves.
    pub const fn new(value_ns: i64, half: Duration, now: Time) -> Self {
        Self { half, current_ns: value_ns, previous_ns: value_ns, since: now }
    }

    /// Adds a value.
    pub fn add(&mut self, value_ns: i64, now: Time) {
        if now.since(self.since) >= self.half {
            self.previous_ns = self.current_ns;
            self.current_ns = value_ns;
            self.since = now;
        }
        self.current_ns = self.current_ns.min(value_ns);
    }

    /// The least value of the present half and the one before, in ns.
    pub fn get_ns(&self) -> i64 {
        self.current_ns.min(self.previous_ns)
    }

    /// Raises both halves: the path has become longer by `by_ns`.
    pub const fn raise(&mut self, by_ns: i64) {
        self.current_ns += by_ns;
        self.previous_ns += by_ns;
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
        assert_eq!(base.get_ns(), 7);
        base.add(9, s(16));
        assert_eq!(base.get_ns(), 7);
        base.add(12, s(31));
        assert_eq!(base.get_ns(), 9);
        base.raise(30);
        assert_eq!(base.get_ns(), 39);
        base.add(20, s(32));
        assert_eq!(base.get_ns(), 20);
    }
}
