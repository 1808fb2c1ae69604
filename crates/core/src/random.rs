//! Named randomness: one seed a run, one independent stream a purpose.

use rand_pcg::Pcg64Mcg;

/// The generator behind every stream.
pub type Rng = Pcg64Mcg;

/// The generator's name, for manifests.
pub const RNG_NAME: &str = "pcg64_mcg (rand_pcg 0.10)";

/// The seed of a run. Every random source derives its own stream from it by name, so that adding a
/// source never changes what another one draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed(u64);

impl Seed {
    /// The seed of that value.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number of its own for `name`, the same on every machine.
    #[must_use]
    pub fn derive(self, name: &str) -> Self {
        // FNV-1a over the name, started from the seed, then finished so that near names differ in
        // every bit.
        let mut hash = 0xcbf2_9ce4_8422_2325 ^ self.0;
        for &byte in name.as_bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        Self(hash ^ (hash >> 33))
    }

    /// The stream of random numbers called `name`.
    #[must_use]
    pub fn stream(self, name: &str) -> Rng {
        let low = self.derive(name);
        let high = low.derive("high half");
        Rng::new(u128::from(high.0) << 64 | u128::from(low.0))
    }

    /// The seed as a number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// Drawing numbers without a framework: just what queues and links need.
pub trait Draw {
    /// A number drawn evenly from 0 up to, not including, 1 (53 random bits).
    fn unit(&mut self) -> f64;
    /// An integer drawn evenly from `0..bound`, which must not be empty.
    fn below(&mut self, bound: u64) -> u64;
}

impl Draw for Rng {
    fn unit(&mut self) -> f64 {
        (next(self) >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "nothing to draw from");
        // Multiply and shift (Lemire 2019); the bias, below bound/2^64, cannot be measured.
        ((u128::from(next(self)) * u128::from(bound)) >> 64) as u64
    }
}

fn next(rng: &mut Rng) -> u64 {
    use rand_core::Rng as _;
    rng.next_u64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_differ_by_name_and_repeat_by_seed() {
        let draw = |seed: u64, name: &str| Seed::new(seed).stream(name).below(u64::MAX);
        assert_eq!(draw(1, "loss"), draw(1, "loss"));
        assert_ne!(draw(1, "loss"), draw(1, "jitter"));
        assert_ne!(draw(1, "loss"), draw(2, "loss"));
    }

    #[test]
    fn the_numbers_never_change() {
        // Written into records: a new library version that draws other numbers must be noticed.
        let mut rng = Seed::new(42).stream("loss");
        let drawn: Vec<u64> = (0..3).map(|_| rng.below(1_000_000)).collect();
        assert_eq!(drawn, [822_982, 983_670, 892_172]);
    }

    #[test]
    fn draws_are_even() {
        let mut rng = Seed::new(7).stream("even");
        let mut counts = [0u32; 10];
        for _ in 0..100_000 {
            counts[rng.below(10) as usize] += 1;
        }
        assert!(counts.iter().all(|&n| (9_500..10_500).contains(&n)), "{counts:?}");
        let mean = (0..100_000).map(|_| rng.unit()).sum::<f64>() / 100_000.0;
        assert!((mean - 0.5).abs() < 0.005, "{mean}");
    }
}
