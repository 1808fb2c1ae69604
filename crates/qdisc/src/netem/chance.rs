//! Random events of `netem`: draws of 32 bits, correlated where that was asked for, and loss models.

use weir_core::{Draw, Rng};

/// A number of 32 bits that may depend on the one before (`get_crandom`).
///
/// The kernel mixes the old number into the new one. That also narrows the numbers around the middle: a
/// rare event becomes far rarer than its probability says (5 % with a correlation of 25 % comes about 0.2 %
/// of the time). This is what Linux does, so it is done here; `loss gemodel` keeps its share.
#[derive(Clone, Debug)]
pub(super) struct Correlated {
    /// Correlation, in units of 2^-32; 0 for none.
    rho: u32,
    last: u32,
}

impl Correlated {
    pub fn new(rho: u32, rng: &mut Rng) -> Self {
        Self { rho, last: draw(rng) }
    }

    pub fn draw(&mut self, rng: &mut Rng) -> u32 {
        let value = draw(rng);
        if self.rho == 0 {
            return value;
        }
        let rho = u64::from(self.rho) + 1;
        let mixed = u64::from(value) * ((1 << 32) - rho) + u64::from(self.last) * rho;
        self.last = (mixed >> 32) as u32;
        self.last
    }
}

/// An event of some probability.
#[derive(Clone, Debug)]
pub(super) struct Chance {
    /// Probability, in units of 2^-32.
    probability: u32,
    draws: Correlated,
}

impl Chance {
    pub const fn new(probability: u32, draws: Correlated) -> Self {
        Self { probability, draws }
    }

    pub fn strikes(&mut self, rng: &mut Rng) -> bool {
        self.probability > 0 && self.probability >= self.draws.draw(rng)
    }
}

/// How packets are lost. Probabilities are in units of 2^-32.
#[derive(Clone, Debug)]
pub(super) enum Loss {
    /// Each by itself, or correlated.
    Random(Chance),
    /// Four states (Salsano et al., "Definition of a general and intuitive loss model", 2009).
    FourStates { p13: u32, p31: u32, p32: u32, p14: u32, p23: u32, state: State },
    /// Gilbert and Elliott: a good and a bad state.
    GilbertElliott { p: u32, r: u32, h: u32, k1: u32, bad: bool },
}

/// A state of [`Loss::FourStates`], by its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// 1: received, in a gap.
    Gap,
    /// 2: received, in a burst.
    Burst,
    /// 3: lost, in a burst.
    LostInBurst,
    /// 4: lost by itself, in a gap.
    LostInGap,
}

impl Loss {
    /// Whether the next packet is lost.
    pub fn strikes(&mut self, rng: &mut Rng) -> bool {
        match self {
            Self::Random(chance) => chance.strikes(rng),
            Self::FourStates { p13, p31, p32, p14, p23, state } => {
                let drawn = draw(rng);
                *state = match *state {
                    State::Gap if drawn < *p14 => State::LostInGap,
                    State::Gap if drawn < p13.wrapping_add(*p14) => State::LostInBurst,
                    State::Burst if drawn < *p23 => State::LostInBurst,
                    State::LostInBurst if drawn < *p32 => State::Burst,
                    State::LostInBurst if drawn < p31.wrapping_add(*p32) => State::Gap,
                    State::LostInGap => State::Gap,
                    same => same,
                };
                matches!(state, State::LostInBurst | State::LostInGap)
            }
            // The state turns before the loss is drawn, but the loss is that of the state before.
            Self::GilbertElliott { p, r, h, k1, bad } => {
                let was_bad = *bad;
                *bad ^= draw(rng) < if was_bad { *r } else { *p };
                let drawn = draw(rng);
                if was_bad { drawn > *h } else { drawn < *k1 }
            }
        }
    }
}

/// An even number of 32 bits.
pub(super) fn draw(rng: &mut Rng) -> u32 {
    rng.below(1 << 32) as u32
}

#[cfg(test)]
mod tests {
    use weir_core::Seed;

    use super::*;

    const WHOLE: f64 = u32::MAX as f64;

    fn share(loss: Loss) -> f64 {
        share_of(1_000_000, loss)
    }

    fn share_of(packets: u32, mut loss: Loss) -> f64 {
        let mut rng = Seed::new(5).stream("loss");
        let lost = (0..packets).filter(|_| loss.strikes(&mut rng)).count();
        lost as f64 / f64::from(packets)
    }

    fn random(probability: f64, correlation: f64) -> Loss {
        let mut rng = Seed::new(5).stream("first");
        let draws = Correlated::new((correlation * WHOLE) as u32, &mut rng);
        Loss::Random(Chance::new((probability * WHOLE) as u32, draws))
    }

    /// Effect of mixing uniform numbers on a share of 5 %.
    #[test]
    fn correlation_thins_out_rare_losses() {
        assert!((share(random(0.05, 0.0)) - 0.05).abs() < 0.001);
        let quarter = share(random(0.05, 0.25));
        assert!((quarter - 0.0019).abs() < 0.0003, "{quarter}");
        let half = share_of(10_000_000, random(0.05, 0.5));
        assert!((half - 1.6e-5).abs() < 0.4e-5, "{half}");
    }

    #[test]
    fn states_lose_their_shares() {
        let units = |share: f64| (share * WHOLE) as u32;
        let bursts =
            Loss::GilbertElliott { p: units(0.02), r: units(0.3), h: 0, k1: 0, bad: false };
        let bursts = share(bursts);
        assert!((bursts - 0.0625).abs() < 0.002, "{bursts}");
        // Two states only: p13 / (p13 + p31) of the packets.
        let two = Loss::FourStates {
            p13: units(0.02),
            p31: units(0.3),
            p32: 0,
            p14: 0,
            p23: u32::MAX,
            state: State::Gap,
        };
        let two = share(two);
        assert!((two - 0.0625).abs() < 0.002, "{two}");
    }
}
