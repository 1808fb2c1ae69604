//! How often packets may wake the loop up.

use weir_core::{Duration, Time};

/// A budget of wake-ups for packets: [`BURST`] at once, then one every [`PERIOD`] at most.
///
/// Waking up costs several times what a packet costs. While packets are held back they are therefore looked at
/// together, as network cards do that moderate their interrupts; what had to leave meanwhile leaves with the same
/// word to the kernel, in a burst of [`PERIOD`]'s worth of the rate at most: half of the millisecond for which
/// `htb` bursts in sqm-scripts.
///
/// How long they are left alone is learned: longer each time that the next look was early, since packets were
/// held back all the while, half as long each time that it was late, since the line may have been idle. A sender
/// whose few packets all wait here, and who sends the next when they have left (TCP Small Queues on this
/// machine), is so never kept waiting.
#[derive(Debug)]
pub(crate) struct WakeBudget {
    /// When all that was spent has come back.
    whole: Time,
    /// The last wake-up, and how long packets are left alone after it.
    woken: Time,
    patience: Duration,
}

impl WakeBudget {
    /// A budget of which nothing is spent.
    pub const fn new() -> Self {
        Self { whole: Time::ZERO, woken: Time::ZERO, patience: Duration::ZERO }
    }

    /// A wake-up at `now` found packets, and was `early`: a later one would have done.
    pub fn spend(&mut self, now: Time, early: bool) {
        self.whole = self.whole.clamp(now, now + BURST) + PERIOD;
        self.woken = now;
        self.patience = if early { (self.patience + STEP).min(PERIOD) } else { self.patience / 2 };
    }

    /// From when on packets may wake the loop up again: at most [`PERIOD`] after the last wake-up.
    pub fn next(&self) -> Time {
        if self.patience < LEAST {
            return self.woken;
        }
        let allowed = Time::from_nanos(self.whole.as_nanos().saturating_sub(BURST.as_nanos()));
        allowed.min(self.woken + self.patience)
    }
}

/// Time between wake-ups for packets on a busy line: 2000 a second.
pub(crate) const PERIOD: Duration = Duration::from_micros(500);
/// What a line that was quiet may spend at once: 16 wake-ups.
const BURST: Duration = Duration::from_micros(16 * 500);
/// By how much patience grows: in 64 wake-ups from none to [`PERIOD`].
const STEP: Duration = Duration::from_nanos(7_813);
/// A shorter sleep is not worth its cost.
const LEAST: Duration = Duration::from_micros(50);

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Time {
        Time::from_nanos(micros * 1_000)
    }

    /// How often the loop wakes up in a second in which a packet is always there, if it is `early` at wake-up
    /// number n.
    fn woken(early: impl Fn(u32) -> bool) -> u32 {
        let mut budget = WakeBudget::new();
        let mut now = at(1_000_000);
        let end = now + Duration::from_secs(1);
        let mut count = 0;
        while now < end {
            budget.spend(now, early(count));
            count += 1;
            now = (now + Duration::from_micros(10)).max(budget.next());
        }
        count
    }

    #[test]
    fn packets_that_are_held_back_wake_the_loop_2000_times_a_second() {
        let woken = woken(|_| true);
        assert!((2_000..=2_080).contains(&woken), "{woken}");
    }

    #[test]
    fn where_nothing_is_held_back_every_packet_wakes_the_loop() {
        assert_eq!(woken(|_| false), 100_000);
    }

    #[test]
    fn a_queue_that_runs_dry_every_fourth_time_is_never_kept_waiting() {
        assert_eq!(woken(|n| n % 4 != 3), 100_000);
    }

    #[test]
    fn patience_comes_back_after_a_queue_ran_dry_once() {
        let woken = woken(|n| n != 1_000);
        assert!((2_000..=2_100).contains(&woken), "{woken}");
    }

    #[test]
    fn a_quiet_line_has_its_packets_looked_at_as_they_come() {
        let mut budget = WakeBudget::new();
        for micros in (1_000..1_000_000).step_by(500) {
            assert!(budget.next() <= at(micros));
            budget.spend(at(micros), true);
        }
    }

    #[test]
    fn what_was_saved_is_bounded() {
        let mut budget = WakeBudget::new();
        (0..100).for_each(|_| budget.spend(at(0), true));
        let late = at(60_000_000);
        let free = (0..1_000).take_while(|_| {
            let free = budget.next() <= late;
            budget.spend(late, true);
            free
        });
        assert_eq!(free.count(), 17);
    }
}
