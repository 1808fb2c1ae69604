//! How much later than computed packets were handed over.

use hdrhistogram::Histogram;
use weir_core::{Duration, Time};
use weir_scenario::EmulatorRow;

use weir_linux::thread_cpu_ns;

/// Lateness of the packets of one interval and of the whole run.
#[derive(Debug)]
pub(crate) struct Lateness {
    interval: Histogram<u64>,
    whole: Histogram<u64>,
    cpu_ns: u64,
}

impl Lateness {
    pub fn new() -> Self {
        let empty = || Histogram::new_with_bounds(1, MAX_LATENESS_NS, 3).expect("sound bounds");
        Self { interval: empty(), whole: empty(), cpu_ns: 0 }
    }

    /// The calling thread is the data path from now on.
    pub fn start(&mut self) {
        self.cpu_ns = thread_cpu_ns();
    }

    /// A packet was handed over that much later than if the data path had always worked at once.
    pub fn note(&mut self, late: Duration) {
        self.interval.saturating_record(late.as_nanos());
    }

    /// Lateness since the last row.
    pub fn row(&mut self, now: Time) -> EmulatorRow {
        let cpu_ns = thread_cpu_ns();
        let late = |share: f64| Duration::from_nanos(self.interval.value_at_quantile(share));
        let row = EmulatorRow {
            t: now,
            packets: self.interval.len(),
            late_p50: late(0.5),
            late_p99: late(0.99),
            late_p999: late(0.999),
            late_max: late(1.0),
            cpu: Duration::from_nanos(cpu_ns - self.cpu_ns),
        };
        self.cpu_ns = cpu_ns;
        self.whole.add(&self.interval).expect("both have the same bounds");
        self.interval.reset();
        row
    }

    /// The quantile of lateness over the whole run, up to the last row.
    pub fn quantile(&self, share: f64) -> Duration {
        Duration::from_nanos(self.whole.value_at_quantile(share))
    }
}

/// Time in which the data path was kept from its work.
#[derive(Debug)]
pub(crate) struct Standstills {
    /// When the turn of work began that goes on.
    turn: Time,
    /// For how long it was to sleep.
    sleep: Duration,
    total: Duration,
}

impl Standstills {
    /// Work begins at `now`.
    pub const fn new(now: Time) -> Self {
        Self { turn: now, sleep: Duration::ZERO, total: Duration::ZERO }
    }

    /// The turn that goes on ends with a sleep of that length.
    pub const fn sleeps(&mut self, sleep: Duration) {
        self.sleep = sleep;
    }

    /// The next turn begins at `now`.
    pub fn turns(&mut self, now: Time) {
        let slept = std::mem::take(&mut self.sleep);
        let away = now.since(self.turn).as_nanos().saturating_sub(slept.as_nanos());
        if away > STANDSTILL.as_nanos() {
            self.total += Duration::from_nanos(away);
        }
        self.turn = now;
    }

    /// All spells until now.
    pub const fn total(&self) -> Duration {
        self.total
    }
}

/// Lateness of the 99th percentile from which on there is a warning: 1500 bytes take 120 us at 100 Mbit/s.
pub(crate) const LATE: Duration = Duration::from_micros(1_000);
/// A shorter spell is told by the packets that were under way and are late by it; those of a longer one are few, as
/// who waits for acknowledgements sends no more.
const STANDSTILL: Duration = Duration::from_millis(50);
/// Ten seconds: later than that is as good as never.
const MAX_LATENESS_NS: u64 = 10_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_that_takes_much_longer_than_its_sleep_is_a_standstill() {
        let ms = Time::from_millis;
        let mut standstills = Standstills::new(ms(0));
        for (sleep, now) in [(0, 30), (20, 50), (20, 119)] {
            standstills.sleeps(Duration::from_millis(sleep));
            standstills.turns(ms(now));
        }
        assert_eq!(standstills.total(), Duration::ZERO);
        // Stopped while it slept, and while it worked.
        standstills.sleeps(Duration::from_millis(20));
        standstills.turns(ms(1_139));
        standstills.turns(ms(1_639));
        assert_eq!(standstills.total(), Duration::from_millis(1_500));
    }
}
