//! Whether the instrument itself was good enough.

use std::fmt;

use serde::Serialize;
use weir_core::Duration;

use crate::datapath::PathReport;
use crate::lateness::LATE;

/// How well the lab did its own work.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Quality {
    /// Packets that the data path handed over.
    pub packets: u64,
    /// Median of the lateness of packets that were handed over, in nanoseconds.
    pub late_p50_ns: u64,
    /// 99th percentile of the lateness of packets that were handed over, in nanoseconds.
    pub late_p99_ns: u64,
    /// 99.9th percentile of the lateness of packets that were handed over, in nanoseconds.
    pub late_p999_ns: u64,
    /// Time of the run in which the data path stood still, in nanoseconds: spells of more than 50 ms each.
    pub stood_still_ns: u64,
    /// Time that the data path was at work, in nanoseconds.
    pub worked_ns: u64,
    /// Share of one processor that the data path used, in percent.
    pub cpu_percent: f64,
    /// Packets that were no IP, or damaged.
    pub malformed: u64,
    /// Packets to or from addresses that no host of the scenario has.
    pub unroutable: u64,
    /// Packets that a kernel did not take from the data path.
    pub refused: u64,
    /// Packets that were lost in front of the data path, because it did not read them in time.
    pub overrun: u64,
    /// Packets of UDP loads that were never sent, because their sender was more than 100 ms behind.
    pub skipped: u64,
}

/// A warning about the quality of a run, to be read before any number.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Warning {
    /// Packets were handed over late.
    Late {
        /// The 99th percentile of lateness.
        p99_ns: u64,
    },
    /// The data path was kept from its work: what sends by its acknowledgements sends little then, and few packets are
    /// late.
    StoodStill {
        /// The time in which it was.
        stood_still_ns: u64,
        /// The time of the run.
        worked_ns: u64,
    },
    /// The data path used up a processor.
    OutOfCpu {
        /// The share that it used.
        percent: f64,
    },
    /// Packets were lost that no queue of the scenario has dropped.
    Overrun {
        /// Number of packets lost.
        packets: u64,
    },
    /// Packets of UDP loads were never sent.
    Skipped {
        /// Number of packets left out.
        packets: u64,
    },
}

impl Quality {
    /// Quality of a data path by its report, with the packets that the devices in front of it have dropped.
    #[must_use]
    pub fn new(report: &PathReport, dropped: u64) -> Self {
        let [p50, p99, p999] = report.late.map(Duration::as_nanos);
        Self {
            packets: report.packets,
            late_p50_ns: p50,
            late_p99_ns: p99,
            late_p999_ns: p999,
            stood_still_ns: report.stood_still.as_nanos(),
            worked_ns: report.worked.as_nanos(),
            cpu_percent: (report.cpu_share * 1000.0).round() / 10.0,
            malformed: report.malformed,
            unroutable: report.unroutable,
            refused: report.refused,
            overrun: report.overrun + dropped,
            skipped: 0,
        }
    }

    /// Warnings to be read before any number of the run.
    #[must_use]
    pub fn warnings(&self) -> Vec<Warning> {
        let mut warnings = Vec::new();
        if self.late_p99_ns > LATE.as_nanos() {
            warnings.push(Warning::Late { p99_ns: self.late_p99_ns });
        }
        let (stood_still_ns, worked_ns) = (self.stood_still_ns, self.worked_ns);
        if stood_still_ns as f64 > STOOD_STILL_SHARE * worked_ns as f64 {
            warnings.push(Warning::StoodStill { stood_still_ns, worked_ns });
        }
        if self.cpu_percent > BUSY_PERCENT {
            warnings.push(Warning::OutOfCpu { percent: self.cpu_percent });
        }
        let lost = self.overrun + self.refused;
        if lost > 0 {
            warnings.push(Warning::Overrun { packets: lost });
        }
        if self.skipped > 0 {
            warnings.push(Warning::Skipped { packets: self.skipped });
        }
        warnings
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Late { p99_ns } => write!(
                f,
                "the emulator was late: 1 % of packets left {:.1} ms or more after their time; use a quieter \
                 machine or a slower line",
                *p99_ns as f64 / 1e6
            ),
            Self::StoodStill { stood_still_ns, worked_ns } => write!(
                f,
                "the emulator stood still for {:.1} s of {:.1} s, in which nothing was carried: use a quieter \
                 machine, and let nothing stop the run",
                *stood_still_ns as f64 / 1e9,
                *worked_ns as f64 / 1e9
            ),
            Self::OutOfCpu { percent } => write!(
                f,
                "the emulator used {percent:.0} % of a processor: this machine is too slow for the line"
            ),
            Self::Overrun { packets } => write!(
                f,
                "{packets} packets were lost between kernel and emulator, by no queue of the scenario: this \
                 machine is too slow for the line"
            ),
            Self::Skipped { packets } => write!(
                f,
                "{packets} packets of UDP loads were never sent, as their sender was more than 100 ms behind: \
                 this machine is too slow for their rates"
            ),
        }
    }
}

/// The share of a run in which the data path may stand still: that of packets which may be late.
const STOOD_STILL_SHARE: f64 = 0.01;
const BUSY_PERCENT: f64 = 90.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn said(quality: &Quality) -> Vec<String> {
        quality.warnings().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_standstill_is_told_by_its_share_of_the_run() {
        let stood_still = |ms: u64| Quality {
            stood_still_ns: ms * 1_000_000,
            worked_ns: 10_000_000_000,
            ..Quality::default()
        };
        assert_eq!(said(&stood_still(100)), Vec::<String>::new());
        assert_eq!(
            said(&stood_still(3_000)),
            [
                "the emulator stood still for 3.0 s of 10.0 s, in which nothing was carried: use a quieter \
              machine, and let nothing stop the run"
            ]
        );
    }

    #[test]
    fn packets_that_were_never_sent_are_told() {
        assert_eq!(said(&Quality::default()), Vec::<String>::new());
        assert_eq!(
            said(&Quality { skipped: 435, ..Quality::default() }),
            [
                "435 packets of UDP loads were never sent, as their sender was more than 100 ms behind: this \
              machine is too slow for their rates"
            ]
        );
    }
}
