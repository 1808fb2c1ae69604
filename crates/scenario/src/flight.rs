//! Conditions between the ends of a line, as data: delay, jitter, loss, reordering, duplicates.
//!
//! The models and their names are those of Linux' `netem`.

use serde::{Deserialize, Serialize};
use weir_core::Duration;

use crate::access::Reconfiguration;

/// Impairments between the ends of a line: delay, jitter, loss, reordering and duplication.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FlightParams {
    /// Propagation delay, one way.
    pub delay: Duration,
    /// Greatest additional delay; each packet draws its own, evenly from none to this.
    pub jitter: Duration,
    /// Loss model.
    pub loss: Option<LossParams>,
    /// Packets that overtake others.
    pub reorder: Option<ReorderParams>,
    /// Probability that a packet arrives twice.
    pub duplicate: f64,
    /// Another delay from time to time.
    pub reconfiguration: Option<Reconfiguration>,
}

/// Packets that arrive without the delay and so overtake those under way (`netem reorder`).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReorderParams {
    /// Probability, 0 to 1, for a packet that may.
    pub probability: f64,
    /// Every so many packets one may.
    pub gap: u32,
}

impl FlightParams {
    /// Checks that the probabilities are such, and that reordering has a delay to do without.
    ///
    /// # Errors
    /// If one is below 0 or above 1, a gap is 0, or there is no delay.
    pub fn check(&self) -> Result<(), FlightError> {
        if let Some(loss) = &self.loss {
            loss.check()?;
        }
        if !(0.0..=1.0).contains(&self.duplicate) {
            return Err(FlightError::Probability { of: "duplicate", value: self.duplicate });
        }
        let Some(reorder) = &self.reorder else { return Ok(()) };
        if !(0.0..=1.0).contains(&reorder.probability) {
            return Err(FlightError::Probability { of: "reorder", value: reorder.probability });
        }
        if reorder.gap == 0 {
            return Err(FlightError::Gap);
        }
        if self.delay.is_zero() { Err(FlightError::NoDelay) } else { Ok(()) }
    }
}

/// Error in the impairments of a line, in one sentence.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum FlightError {
    /// The loss model.
    #[error(transparent)]
    Loss(#[from] LossError),
    /// A probability that is none.
    #[error("{of}: {value} is not a probability: write a number from 0 to 1")]
    Probability {
        /// Whose.
        of: &'static str,
        /// The number.
        value: f64,
    },
    /// No packet may be reordered.
    #[error("reorder: gap 0: write 1 or more")]
    Gap,
    /// Nothing to do without.
    #[error("reorder: packets overtake by not being delayed: give the hop a delay")]
    NoDelay,
}

/// A loss model.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "model", deny_unknown_fields)]
pub enum LossParams {
    /// Each packet by itself.
    Random {
        /// Probability, 0 to 1.
        probability: f64,
    },
    /// Bursts: a line that is in a good or a bad state (Gilbert 1960, Elliott 1963; the parameters of
    /// `netem loss gemodel`).
    GilbertElliott {
        /// Probability that a packet turns a good line bad.
        good_to_bad: f64,
        /// Probability that a packet turns a bad line good.
        bad_to_good: f64,
        /// Probability of a loss on a bad line (`1-h`).
        loss_when_bad: f64,
        /// Probability of a loss on a good line (`1-k`).
        loss_when_good: f64,
    },
}

/// A probability that is none.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("loss: {name} {value} is not a probability: write a number from 0 to 1")]
pub struct LossError {
    name: &'static str,
    value: f64,
}

impl LossParams {
    /// Checks that all probabilities are such.
    ///
    /// # Errors
    /// If one is below 0 or above 1.
    pub fn check(&self) -> Result<(), LossError> {
        let named: &[(&'static str, f64)] = match self {
            Self::Random { probability } => &[("probability", *probability)],
            Self::GilbertElliott { good_to_bad, bad_to_good, loss_when_bad, loss_when_good } => &[
                ("good_to_bad", *good_to_bad),
                ("bad_to_good", *bad_to_good),
                ("loss_when_bad", *loss_when_bad),
                ("loss_when_good", *loss_when_good),
            ],
        };
        match named.iter().find(|(_, value)| !(0.0..=1.0).contains(value)) {
            Some(&(name, value)) => Err(LossError { name, value }),
            None => Ok(()),
        }
    }

    /// The share of packets that is lost in the long run.
    #[must_use]
    pub fn mean(&self) -> f64 {
        match *self {
            Self::Random { probability } => probability,
            Self::GilbertElliott { good_to_bad, bad_to_good, loss_when_bad, loss_when_good } => {
                let bad = if good_to_bad + bad_to_good > 0.0 {
                    good_to_bad / (good_to_bad + bad_to_good)
                } else {
                    0.0
                };
                bad * loss_when_bad + (1.0 - bad) * loss_when_good
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_are_checked() {
        let error = LossParams::Random { probability: 5.0 }.check().unwrap_err();
        assert_eq!(
            error.to_string(),
            "loss: probability 5 is not a probability: write a number from 0 to 1"
        );
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let error = |params: FlightParams| params.check().unwrap_err().to_string();
        let reorder = |probability, gap| FlightParams {
            delay: Duration::from_millis(1),
            reorder: Some(ReorderParams { probability, gap }),
            ..FlightParams::default()
        };
        assert_eq!(
            error(reorder(1.5, 1)),
            "reorder: 1.5 is not a probability: write a number from 0 to 1"
        );
        assert_eq!(error(reorder(0.5, 0)), "reorder: gap 0: write 1 or more");
        assert_eq!(
            error(FlightParams { delay: Duration::ZERO, ..reorder(0.5, 1) }),
            "reorder: packets overtake by not being delayed: give the hop a delay"
        );
        assert_eq!(
            error(FlightParams { duplicate: -1.0, ..FlightParams::default() }),
            "duplicate: -1 is not a probability: write a number from 0 to 1"
        );
    }
}
