//! The clock that the other end of a TCP connection tells in its timestamps (RFC 7323).

use weir_core::{Duration, Time};

/// How the timestamps of a peer go on.
///
/// They say when a packet left the peer, by a clock of unknown origin and, as the standard leaves it open, of unknown rate.
/// Linux, Windows, macOS and FreeBSD count milliseconds, and so it is taken to be until what is seen is another rate: then
/// nothing is known.
#[derive(Clone, Debug, Default)]
pub(crate) struct PeerClock {
    began: Option<Time>,
    /// The last value, and how many ticks it is behind the first.
    last: (u32, i64),
    /// When the newest came.
    seen: Time,
}

impl PeerClock {
    /// A packet with timestamp `value` came at `now`.
    pub fn note(&mut self, value: u32, now: Time) {
        if self.began.is_none() {
            (self.began, self.last, self.seen) = (Some(now), (value, 0), now);
            return;
        }
        let ticks = self.ticks(value);
        if ticks > self.last.1 {
            (self.last, self.seen) = ((value, ticks), now);
        }
    }

    /// How long before `now` a packet with timestamp `value` left, in ns, up to what the two clocks differ; `None` if the
    /// peer's does not count milliseconds.
    pub fn since_ns(&self, value: u32, now: Time) -> Option<i64> {
        let began = self.began?;
        let took = self.seen.since(began);
        // A peer may tell anything: what is far from the time that went by is no number to work with.
        let counted = self.last.1.saturating_mul(TICK_NS);
        let off = (took.as_nanos() as i64).saturating_sub(counted).unsigned_abs();
        let is_likely = off <= MAX_CHANGE.as_nanos() + took.as_nanos() / 2;
        is_likely.then(|| now.since(began).as_nanos() as i64 - self.ticks(value) * TICK_NS)
    }

    /// How long at most after the newest before it a packet with timestamp `value` left; `None` if that is unknown.
    pub fn pause(&self, value: u32) -> Option<Duration> {
        self.began?;
        let ticks = u64::try_from(self.ticks(value).saturating_sub(self.last.1)).ok()?;
        Some(Duration::from_nanos((ticks + 1) * TICK_NS as u64))
    }

    /// How many ticks `value` is behind the first, around the end of the numbers.
    fn ticks(&self, value: u32) -> i64 {
        let (last, ticks) = self.last;
        ticks.saturating_add(value.wrapping_sub(last).cast_signed().into())
    }
}

const TICK_NS: i64 = 1_000_000;
/// By how much a queue may delay packets more than the first, so that the clock seems slow.
const MAX_CHANGE: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Time = Time::from_millis;

    /// The clock of a peer that counts once in `tick_ms`, seen every 10 ms until `until_ms`, 7 ms after it told the time.
    fn seen(first: u32, tick_ms: u64, until_ms: u64) -> PeerClock {
        let mut clock = PeerClock::default();
        for at in (0..=until_ms).step_by(10) {
            clock.note(first.wrapping_add((at / tick_ms) as u32), MS(at + 7));
        }
        clock
    }

    #[test]
    fn milliseconds_tell_how_much_longer_a_packet_took() {
        // Around the end of the numbers, and not.
        for first in [5, u32::MAX - 300] {
            let clock = seen(first, 1, 1_000);
            let since = |value: u32, at| clock.since_ns(first.wrapping_add(value), MS(at));
            // As long as the first, 40 ms longer, and one that was overtaken.
            assert_eq!(since(1_000, 1_007), Some(0));
            assert_eq!(since(1_000, 1_047), Some(40_000_000));
            assert_eq!(since(900, 1_047), Some(140_000_000));
        }
    }

    #[test]
    fn a_pause_lasts_since_the_newest_packet_before() {
        assert_eq!(PeerClock::default().pause(5), None, "of the first nobody knows");
        for first in [5, u32::MAX - 300] {
            let clock = seen(first, 1, 1_000);
            let pause = |value: u32| clock.pause(first.wrapping_add(value));
            // Up to the end of a tick.
            assert_eq!(pause(1_000), Some(Duration::from_millis(1)));
            assert_eq!(pause(1_040), Some(Duration::from_millis(41)));
            assert_eq!(pause(999), None, "it was overtaken");
        }
    }

    #[test]
    fn another_rate_is_none() {
        for tick_ms in [4, 10, 100] {
            assert_eq!(seen(5, tick_ms, 2_000).since_ns(5, MS(2_010)), None, "{tick_ms}");
        }
        let mut micro = PeerClock::default();
        for at in (0..=2_000).step_by(10) {
            micro.note(at * 1_000, MS(u64::from(at)));
        }
        assert_eq!(micro.since_ns(2_000_000, MS(2_010)), None);
    }

    #[test]
    fn whatever_a_peer_tells_is_no_harm() {
        let mut clock = PeerClock::default();
        for step in 0..10_000_u32 {
            let value = step.wrapping_mul(i32::MAX as u32);
            let pause = clock.pause(value);
            assert!(step == 0 || pause.is_some_and(|it| it > Duration::from_secs(2_000_000)));
            clock.note(value, MS(step.into()));
            assert!(step == 0 || clock.since_ns(value, MS(step.into())).is_none(), "{step}");
        }
    }

    #[test]
    fn it_counts_milliseconds_as_long_as_nothing_else_is_seen() {
        assert_eq!(PeerClock::default().since_ns(5, MS(1)), None);
        for until in [0, 10, 100] {
            let clock = seen(5, 1, until);
            assert_eq!(clock.since_ns(5 + until as u32, MS(until + 9)), Some(2_000_000));
        }
    }
}
