//! Loss on a line.

use serde::{Deserialize, Serialize};
use weir_core::{Draw, Rng};

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

/// A loss model at work.
#[derive(Clone, Debug)]
pub struct Loss {
    params: LossParams,
    rng: Rng,
    bad: bool,
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

impl Loss {
    /// A model that draws from `rng`. It starts in the good state.
    #[must_use]
    pub const fn new(params: LossParams, rng: Rng) -> Self {
        Self { params, rng, bad: false }
    }

    /// Whether the next packet is lost.
    pub fn strikes(&mut self) -> bool {
        match self.params {
            LossParams::Random { probability } => self.rng.unit() < probability,
            LossParams::GilbertElliott {
                good_to_bad,
                bad_to_good,
                loss_when_bad,
                loss_when_good,
            } => {
                let turn = if self.bad { bad_to_good } else { good_to_bad };
                self.bad ^= self.rng.unit() < turn;
                let loss = if self.bad { loss_when_bad } else { loss_when_good };
                self.rng.unit() < loss
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_core::Seed;

    fn realised(params: LossParams) -> (f64, f64) {
        let mut loss = Loss::new(params, Seed::new(3).stream("loss"));
        let struck: Vec<bool> = (0..400_000).map(|_| loss.strikes()).collect();
        let lost = struck.iter().filter(|&&lost| lost).count();
        let bursts = struck.windows(2).filter(|pair| !pair[0] && pair[1]).count();
        (lost as f64 / struck.len() as f64, lost as f64 / bursts as f64)
    }

    #[test]
    fn random_loss_comes_as_often_as_it_says() {
        let params = LossParams::Random { probability: 0.05 };
        let (share, burst) = realised(params);
        assert!((share - params.mean()).abs() < 0.001, "{share}");
        assert!((burst - 1.0 / 0.95).abs() < 0.01, "{burst}");
    }

    #[test]
    fn bursts_are_as_long_as_the_bad_state() {
        let params = LossParams::GilbertElliott {
            good_to_bad: 0.02,
            bad_to_good: 0.3,
            loss_when_bad: 1.0,
            loss_when_good: 0.0,
        };
        let (share, burst) = realised(params);
        assert!((share - 0.0625).abs() < 0.002, "{share}");
        assert!((burst - 1.0 / 0.3).abs() < 0.05, "{burst}");
    }

    #[test]
    fn probabilities_are_checked() {
        let error = LossParams::Random { probability: 5.0 }.check().unwrap_err();
        assert_eq!(
            error.to_string(),
            "loss: probability 5 is not a probability: write a number from 0 to 1"
        );
    }
}
