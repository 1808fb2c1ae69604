//! How a line is reached, as data: what comes before packets may be sent, and what changes from time to time.

use serde::{Deserialize, Serialize};
use weir_core::Duration;

/// What a line does before it sends packets that wait.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Access {
    /// It asks for leave, as a cable modem does.
    Grants(GrantParams),
    /// It competes for the air, as a station of a wireless network does.
    Airtime(AirtimeParams),
}

/// Requests and grants: time goes in intervals of equal length, and what may be sent was asked for before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GrantParams {
    /// Length of an interval; DOCSIS: of one MAP.
    pub interval_ns: u64,
    /// The least time from a request to the interval of its grant.
    pub delay_ns: u64,
}

/// Transmission opportunities of a wireless station, of IEEE 802.11's DCF with aggregation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AirtimeParams {
    /// Name of the medium; hops of one name share it. A medium of its own if `None`.
    #[serde(default)]
    pub medium: Option<String>,
    /// The most packets of an aggregate.
    pub packets: u32,
    /// No packet is begun later than this after the first of its aggregate.
    pub longest_ns: u64,
    /// What an opportunity costs besides its packets: preamble, acknowledgement, gaps within.
    pub overhead_ns: u64,
    /// Silence before slots are counted (DIFS or AIFS).
    pub gap_ns: u64,
    /// Length of a slot of the backoff.
    pub slot_ns: u64,
    /// Slots are drawn evenly from 0 to this (CWmin).
    pub window: u32,
    /// ... which doubles with every failure up to this (CWmax).
    pub max_window: u32,
    /// Probability that an opportunity fails; it then costs its overhead, and nothing is lost.
    pub failures: f64,
}

/// Another path from time to time: a delay and a rate of its own for each period, and silence in between.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reconfiguration {
    /// When the second path begins.
    pub first_ns: u64,
    /// How long each further path is kept.
    pub period_ns: u64,
    /// Greatest additional delay; each path draws its own, evenly from none to this.
    pub delay_ns: u64,
    /// Least share of the line's rate; each path draws its own, evenly from this to 1.
    pub min_rate_share: f64,
    /// How long the line carries nothing at the start of each further path.
    pub outage_ns: u64,
}

impl Access {
    /// Checks that it can work.
    ///
    /// # Errors
    /// What is wrong, in one sentence.
    pub fn check(&self) -> Result<(), String> {
        match self {
            Self::Grants(grants) => grants.check(),
            Self::Airtime(airtime) => airtime.check(),
        }
    }
}

impl GrantParams {
    fn check(&self) -> Result<(), String> {
        within("grants: interval", self.interval_ns, MIN_GRANT_INTERVAL_NS, MAX_ACCESS_NS)?;
        within("grants: delay", self.delay_ns, 0, MAX_ACCESS_NS)
    }
}

impl AirtimeParams {
    fn check(&self) -> Result<(), String> {
        if self.packets == 0 {
            return Err("airtime: packets 0: write 1 or more".to_owned());
        }
        within("airtime: longest", self.longest_ns, 0, MAX_ACCESS_NS)?;
        within("airtime: overhead", self.overhead_ns, 0, MAX_ACCESS_NS)?;
        within("airtime: gap", self.gap_ns, 0, MAX_ACCESS_NS)?;
        within("airtime: slot", self.slot_ns, MIN_SLOT_NS, MAX_ACCESS_NS)?;
        if self.window > self.max_window || self.max_window > MAX_WINDOW {
            return Err(format!(
                "airtime: window {} to max_window {}: write the smaller first, and at most {MAX_WINDOW}",
                self.window, self.max_window
            ));
        }
        if (0.0..=MAX_FAILURES).contains(&self.failures) {
            return Ok(());
        }
        Err(format!("airtime: failures {}: write a number from 0 to {MAX_FAILURES}", self.failures))
    }
}

impl Reconfiguration {
    /// Checks that it can work, and changes something.
    ///
    /// # Errors
    /// What is wrong, in one sentence.
    pub fn check(&self) -> Result<(), String> {
        if self.period_ns < MIN_PERIOD_NS {
            let period = Duration::from_nanos(self.period_ns);
            return Err(format!("reconfiguration: period {period}: write 10ms or more"));
        }
        if self.outage_ns >= self.period_ns {
            let outage = Duration::from_nanos(self.outage_ns);
            return Err(format!("reconfiguration: outage {outage}: write less than the period"));
        }
        if !(MIN_RATE_SHARE..=1.0).contains(&self.min_rate_share) {
            return Err(format!(
                "reconfiguration: min_rate_share {}: write a number from {MIN_RATE_SHARE} to 1",
                self.min_rate_share
            ));
        }
        let idle = self.delay_ns == 0 && self.outage_ns == 0 && !self.changes_rate();
        if idle {
            return Err(
                "reconfiguration: nothing changes: give `delay`, `min_rate_share` or `outage`"
                    .to_owned(),
            );
        }
        Ok(())
    }

    /// Whether paths differ in their rates.
    #[must_use]
    pub fn changes_rate(&self) -> bool {
        self.min_rate_share < 1.0
    }
}

fn within(what: &str, ns: u64, min: u64, max: u64) -> Result<(), String> {
    if (min..=max).contains(&ns) {
        return Ok(());
    }
    let [ns, min, max] = [ns, min, max].map(Duration::from_nanos);
    Err(format!("{what} {ns}: write {min} to {max}"))
}

/// A line that waits looks up every interval: shorter ones cost time, and no system has them.
const MIN_GRANT_INTERVAL_NS: u64 = 100_000;
/// A microsecond; that of 802.11ac is 9.
const MIN_SLOT_NS: u64 = 1_000;
/// A second: nothing of the kind takes longer.
const MAX_ACCESS_NS: u64 = 1_000_000_000;
/// The greatest window that the field for it (ECWmax, 4 bits) can say.
const MAX_WINDOW: u32 = 32_767;
/// More failures than this are no network.
const MAX_FAILURES: f64 = 0.9;
const MIN_PERIOD_NS: u64 = 10_000_000;
const MIN_RATE_SHARE: f64 = 0.01;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_work_is_told_with_what_may_be_written() {
        let grants = |interval_ns, delay_ns| {
            Access::Grants(GrantParams { interval_ns, delay_ns }).check().unwrap_err()
        };
        assert_eq!(grants(1_000, 0), "grants: interval 1us: write 100us to 1s");
        assert_eq!(grants(2_000_000, 2_000_000_000), "grants: delay 2s: write 0ms to 1s");
        let air = AirtimeParams {
            medium: None,
            packets: 32,
            longest_ns: 4_000_000,
            overhead_ns: 100_000,
            gap_ns: 34_000,
            slot_ns: 9_000,
            window: 15,
            max_window: 1_023,
            failures: 0.1,
        };
        let refused = |one: AirtimeParams| Access::Airtime(one).check().unwrap_err();
        assert_eq!(Access::Airtime(air.clone()).check(), Ok(()));
        assert_eq!(
            refused(AirtimeParams { packets: 0, ..air.clone() }),
            "airtime: packets 0: write 1 or more"
        );
        assert_eq!(
            refused(AirtimeParams { window: 31, max_window: 15, ..air.clone() }),
            "airtime: window 31 to max_window 15: write the smaller first, and at most 32767"
        );
        assert_eq!(
            refused(AirtimeParams { failures: 1.0, ..air }),
            "airtime: failures 1: write a number from 0 to 0.9"
        );
    }

    #[test]
    fn a_reconfiguration_changes_something_and_leaves_time_to_send() {
        let sound = Reconfiguration {
            first_ns: 15_000_000_000,
            period_ns: 15_000_000_000,
            delay_ns: 8_000_000,
            min_rate_share: 0.5,
            outage_ns: 70_000_000,
        };
        let refused = |one: Reconfiguration| one.check().unwrap_err();
        assert_eq!(sound.check(), Ok(()));
        assert_eq!(
            refused(Reconfiguration { outage_ns: 15_000_000_000, ..sound }),
            "reconfiguration: outage 15s: write less than the period"
        );
        assert_eq!(
            refused(Reconfiguration { min_rate_share: 0.0, ..sound }),
            "reconfiguration: min_rate_share 0: write a number from 0.01 to 1"
        );
        assert_eq!(
            refused(Reconfiguration { delay_ns: 0, outage_ns: 0, min_rate_share: 1.0, ..sound }),
            "reconfiguration: nothing changes: give `delay`, `min_rate_share` or `outage`"
        );
        assert_eq!(
            refused(Reconfiguration { period_ns: 1_000_000, outage_ns: 0, ..sound }),
            "reconfiguration: period 1ms: write 10ms or more"
        );
    }
}
