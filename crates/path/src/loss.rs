//! Loss on a line.

use weir_core::{Draw, Rng};
use weir_scenario::LossParams;

/// A loss model at work.
#[derive(Clone, Debug)]
pub struct Loss {
    params: LossParams,
    rng: Rng,
    bad: bool,
}

impl Loss {
    /// A model that draws from `rng`. It starts in the good state.
    #[must_use]
    pub const fn new(params: LossParams, rng: Rng) -> Self {
        Self { params, rng, bad: false }
    }

    /// Packets are lost as `params` say from now on; a line that was bad is good again.
    pub const fn set_params(&mut self, params: LossParams) {
        self.params = params;
        self.bad = false;
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
}
