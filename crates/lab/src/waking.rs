//! When the data path asks to be woken: before something is due, by what the kernel's timers are usually late; and what
//! it does otherwise while it never comes to rest.

use weir_core::{Duration, Time};

/// Learns how late timers usually are, and knows when the data path last had nothing to do.
#[derive(Debug)]
pub(crate) struct Waking {
    /// By how much earlier it asks.
    early: Duration,
    max_early: Duration,
    min_sleep: Duration,
    at_rest: Time,
}

impl Default for Waking {
    fn default() -> Self {
        Self {
            early: Duration::ZERO,
            max_early: MAX_EARLY,
            min_sleep: MIN_SLEEP,
            at_rest: Time::ZERO,
        }
    }
}

impl Waking {
    /// Where timers are never late, and time passes in sleep alone.
    pub const fn in_virtual_time() -> Self {
        Self {
            early: Duration::ZERO,
            max_early: Duration::ZERO,
            min_sleep: Duration::ZERO,
            at_rest: Time::ZERO,
        }
    }

    /// How long to sleep at `now` for something that is due at `due`; `None` if that is not worth it.
    pub fn sleep(&self, now: Time, due: Time) -> Option<Duration> {
        let left = due.checked_since(now)?.as_nanos();
        let sleep = left.min(MAX_SLEEP.as_nanos()).saturating_sub(self.early.as_nanos());
        (sleep > self.min_sleep.as_nanos()).then_some(Duration::from_nanos(sleep))
    }

    /// At `now` nothing was to be read and nothing was due, be it for less time than a sleep takes.
    pub const fn at_rest(&mut self, now: Time) {
        self.at_rest = now;
    }

    /// How long what has arrived is kept at `now`, to be handed over together with more: not at all by who comes to rest.
    /// Who never does is late in any case, and the less so the less work it has: a call costs more than the packet.
    pub fn hold(&self, now: Time) -> Duration {
        if now.since(self.at_rest) > BUSY { HOLD } else { Duration::ZERO }
    }

    /// The timer has woken it at `woke` for something that is due at `due`. One of four times is to be in time: what
    /// comes too early is waited for without sleep, in time that the ends of a load may need.
    pub fn woken(&mut self, woke: Time, due: Time) {
        let early = self.early.as_nanos();
        let early = if woke > due {
            (early + STEP.as_nanos()).min(self.max_early.as_nanos())
        } else {
            early.saturating_sub(3 * STEP.as_nanos())
        };
        self.early = Duration::from_nanos(early);
    }
}

/// A sleep shorter than this takes longer than it says.
const MIN_SLEEP: Duration = Duration::from_micros(5);
/// How long it may take until a request to stop or an order is heard.
const MAX_SLEEP: Duration = Duration::from_millis(20);
/// What a timer that came late adds.
const STEP: Duration = Duration::from_nanos(500);
/// On a machine whose timers are later than this the processor has other work, which waiting would keep from it.
const MAX_EARLY: Duration = Duration::from_micros(12);
/// Who has had something to do for so long without a pause has more than it gets done.
const BUSY: Duration = Duration::from_millis(1);
/// Of 100, 200 and 500 us the one that is best at both 1 and 5 Gbit/s (docs/performance.md).
const HOLD: Duration = Duration::from_micros(200);

#[cfg(test)]
mod tests {
    use super::*;

    const fn us(us: u64) -> Time {
        Time::from_nanos(1_000 * us)
    }

    #[test]
    fn what_timers_are_late_is_asked_for_earlier() {
        let mut waking = Waking::default();
        assert_eq!(waking.sleep(us(0), us(1_000)), Some(Duration::from_micros(1_000)));
        // Always 8 us late.
        for _ in 0..1_000 {
            let sleep = waking.sleep(us(0), us(1_000)).unwrap();
            waking.woken(us(8) + sleep, us(1_000));
        }
        let sleep = waking.sleep(us(0), us(1_000)).unwrap().as_nanos();
        assert!((990_000..=994_000).contains(&sleep), "{sleep}");
    }

    #[test]
    fn who_comes_to_rest_hands_over_at_once() {
        let mut waking = Waking::default();
        waking.at_rest(us(10_000));
        assert_eq!(waking.hold(us(10_000)), Duration::ZERO);
        assert_eq!(waking.hold(us(11_000)), Duration::ZERO);
        assert_eq!(waking.hold(us(11_001)), Duration::from_micros(200));
        waking.at_rest(us(12_000));
        assert_eq!(waking.hold(us(12_000)), Duration::ZERO);
    }

    #[test]
    fn in_virtual_time_it_sleeps_until_what_is_due() {
        let mut waking = Waking::in_virtual_time();
        for _ in 0..100 {
            waking.woken(us(2), us(1));
        }
        assert_eq!(waking.sleep(us(0), us(1)), Some(Duration::from_micros(1)));
        assert_eq!(waking.sleep(us(1), us(1)), None);
    }

    #[test]
    fn a_busy_machine_is_not_made_busier() {
        let mut waking = Waking::default();
        for _ in 0..1_000 {
            waking.woken(us(2_000), us(1_000));
        }
        assert_eq!(waking.sleep(us(0), us(1_000)), Some(Duration::from_micros(988)));
        assert_eq!(waking.sleep(us(0), us(17)), None);
        assert_eq!(waking.sleep(us(9), us(8)), None);
        assert_eq!(waking.sleep(us(0), Time::MAX), Some(Duration::from_micros(19_988)));
    }
}
