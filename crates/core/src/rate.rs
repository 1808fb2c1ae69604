//! Rates, and the exact time that a packet occupies a line.

use std::fmt;

use crate::{Duration, Time};

/// A rate in bit/s of whatever the line counts (see the framing of the link).
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

impl Rate {
    /// The least rate that a line may have: whoever writes less has forgotten the unit.
    pub const MIN_LINE: Self = Self::from_kbit(1);

    /// A rate of `bps` bit/s.
    #[must_use]
    pub const fn from_bps(bps: u64) -> Self {
        Self(bps)
    }

    /// A rate of `kbps` kbit/s (1000 bit/s).
    #[must_use]
    pub const fn from_kbit(kbps: u64) -> Self {
        Self(kbps * 1_000)
    }

    /// A rate of `mbps` Mbit/s (1 000 000 bit/s).
    #[must_use]
    pub const fn from_mbit(mbps: u64) -> Self {
        Self(mbps * 1_000_000)
    }

    /// The rate in bit/s.
    #[must_use]
    pub const fn as_bps(self) -> u64 {
        self.0
    }

    /// The rate in whole bytes per second, rounded down, as Linux keeps it.
    #[must_use]
    pub const fn as_bytes_per_sec(self) -> u64 {
        self.0 / 8
    }

    /// `percent` % of this rate, rounded down to a whole bit/s.
    #[must_use]
    pub fn percent(self, percent: f64) -> Self {
        // Rates stay far below 2^53 bit/s, so the product is exact enough to name a bit/s.
        Self((self.0 as f64 * percent / 100.0) as u64)
    }
}

impl fmt::Display for Rate {
    /// As iproute2 prints rates: the largest decimal unit that leaves a whole number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (value, unit) = match self.0 {
            0 => (0, "bit"),
            r if r % 1_000_000_000 == 0 => (r / 1_000_000_000, "Gbit"),
            r if r % 1_000_000 == 0 => (r / 1_000_000, "Mbit"),
            r if r % 1_000 == 0 => (r / 1_000, "Kbit"),
            r => (r, "bit"),
        };
        write!(f, "{value}{unit}")
    }
}

impl fmt::Debug for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Puts packets on a line of constant rate one after another, without losing fractions of a
/// nanosecond: over any busy period the line carries exactly its rate.
#[derive(Clone, Debug)]
pub struct Serializer {
    bps: u64,
    busy_until: Time,
    /// Remainder of the last transmission beyond `busy_until`, in units of 1/`bps` ns.
    fraction: u64,
    /// The latest of few bytes, and the latest of many: most packets of a line are as long as one of them.
    latest: [Transmission; 2],
}

/// How long a packet of one length takes, as whole nanoseconds and units of 1/`bps` ns beside.
#[derive(Clone, Copy, Debug, Default)]
struct Transmission {
    wire_bytes: u64,
    nanos: u64,
    fraction: u64,
}

impl Transmission {
    #[cold]
    fn new(wire_bytes: u64, bps: u64) -> Self {
        // 8e9 * bytes fits u64 up to 2.3 GB in one transmission.
        let work = wire_bytes * 8_000_000_000;
        Self { wire_bytes, nanos: work / bps, fraction: work % bps }
    }
}

impl Serializer {
    /// An idle line of the given rate, which must be positive.
    #[must_use]
    pub fn new(rate: Rate) -> Self {
        assert!(rate.0 > 0, "a line of rate 0 carries nothing");
        Self { bps: rate.0, busy_until: Time::ZERO, fraction: 0, latest: Default::default() }
    }

    /// When the line is next free.
    #[must_use]
    pub const fn busy_until(&self) -> Time {
        self.busy_until
    }

    /// Starts to send `wire_bytes` at `now`, when the line must be free, and returns when the last
    /// bit has left.
    #[inline]
    pub fn send(&mut self, wire_bytes: u64, now: Time) -> Time {
        debug_assert!(now >= self.busy_until, "the line is busy until {}", self.busy_until);
        if now > self.busy_until {
            self.fraction = 0;
        }
        let latest = &mut self.latest[usize::from(wire_bytes >= MANY_BYTES)];
        if wire_bytes != latest.wire_bytes {
            *latest = Transmission::new(wire_bytes, self.bps);
        }
        let mut nanos = latest.nanos;
        self.fraction += latest.fraction;
        if self.fraction >= self.bps {
            self.fraction -= self.bps;
            nanos += 1;
        }
        self.busy_until = now + Duration::from_nanos(nanos);
        self.busy_until
    }

    /// Changes the rate at `now`: what is left of the transmission under way goes at the new one.
    pub fn set_rate(&mut self, rate: Rate, now: Time) {
        assert!(rate.0 > 0, "a line of rate 0 carries nothing");
        if let Some(left) = self.busy_until.checked_since(now) {
            let left = u128::from(left.as_nanos()) * u128::from(self.bps) / u128::from(rate.0);
            let left = u64::try_from(left).unwrap_or(u64::MAX);
            self.busy_until = now.saturating_add(Duration::from_nanos(left));
        }
        self.bps = rate.0;
        self.fraction = 0;
        self.latest = Default::default();
    }
}

/// More than an acknowledgement or a ping takes.
const MANY_BYTES: u64 = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_line_carries_exactly_its_rate() {
        // 1514 bytes at 109 341 kbit/s take 110 772.6...  ns; 109 341 000 of them take exactly
        // 1514 * 8 seconds.
        let mut line = Serializer::new(Rate::from_kbit(109_341));
        let mut now = Time::ZERO;
        for _ in 0..109_341 {
            now = line.send(1514, now);
        }
        assert_eq!(now.as_nanos(), 1514 * 8 * 1_000_000);
    }

    #[test]
    fn packets_of_changing_lengths_are_carried_exactly_too() {
        let (lengths, bps) = ([1514, 66, 1514, 80, 700, 66, 1], 1_234_567_891);
        let mut line = Serializer::new(Rate::from_bps(bps));
        let (mut now, mut bytes) = (Time::ZERO, 0);
        for turn in 0..10_000 {
            let length = lengths[turn % lengths.len()];
            bytes += u128::from(length);
            now = line.send(length, now);
            assert_eq!(u128::from(now.as_nanos()), bytes * 8_000_000_000 / u128::from(bps));
        }
    }

    #[test]
    fn idle_time_drops_the_fraction() {
        let mut line = Serializer::new(Rate::from_bps(3_000_000_000));
        assert_eq!(line.send(1, Time::ZERO).as_nanos(), 2); // 2.67 ns
        assert_eq!(line.send(1, Time::from_nanos(2)).as_nanos(), 5); // 5.33 ns
        assert_eq!(line.send(1, Time::from_nanos(100)).as_nanos(), 102);
    }

    #[test]
    fn a_new_rate_holds_for_what_is_left_under_way() {
        let mut line = Serializer::new(Rate::from_mbit(1));
        assert_eq!(line.send(1500, Time::ZERO), Time::from_millis(12));
        line.set_rate(Rate::from_mbit(4), Time::from_millis(4));
        assert_eq!(line.busy_until(), Time::from_millis(6));
        line.set_rate(Rate::from_mbit(1), Time::from_millis(5));
        assert_eq!(line.busy_until(), Time::from_millis(9));
        // An idle line owes nothing.
        line.set_rate(Rate::from_mbit(8), Time::from_millis(10));
        assert_eq!(line.busy_until(), Time::from_millis(9));
        assert_eq!(line.send(1000, Time::from_millis(10)), Time::from_millis(11));
    }

    #[test]
    fn prints_like_iproute2() {
        assert_eq!(Rate::from_mbit(20).to_string(), "20Mbit");
        assert_eq!(Rate::from_kbit(109_341).to_string(), "109341Kbit");
        assert_eq!(Rate::from_bps(1_500).to_string(), "1500bit");
    }
}
