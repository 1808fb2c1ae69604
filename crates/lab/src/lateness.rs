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

/// Ten seconds: later than that is as good as never.
const MAX_LATENESS_NS: u64 = 10_000_000_000;
