//! Early dropping as the papers have it: an average of the queue, a curve over it, and how the drops are
//! spaced. The disciplines that follow papers (`rio`, `fred`, `frio`) are made of these parts; they
//! calculate with fractions, where Linux' own `red` has fixed point.
//!
//! S. Floyd, V. Jacobson, "Random early detection gateways for congestion avoidance", IEEE/ACM Transactions
//! on Networking 1(4), 1993.

use weir_core::{Draw, Duration, Rate, Rng, Time};

use crate::contract::DropReason;
use crate::tc::{
    Declared, ParamKind, SpecError, Text, choice, nonzero_size, one_of, params, probability, rate,
    read_size, switch,
};

/// The average of a queue in bytes: an exponentially weighted one, which falls while the queue is empty as
/// if small packets went by.
#[derive(Clone, Debug)]
pub(crate) struct Average {
    bytes: f64,
    weight: f64,
    /// How long a typical packet takes on the line.
    packet_time: Duration,
    empty_since: Option<Time>,
}

impl Average {
    /// The average of a queue that is empty.
    pub fn new(options: &EarlyOptions) -> Self {
        let bits = 8 * u64::from(options.avpkt);
        Self {
            bytes: 0.0,
            weight: options.wq,
            packet_time: Duration::from_nanos(bits * 1_000_000_000 / options.bandwidth.as_bps()),
            empty_since: Some(Time::ZERO),
        }
    }

    /// Takes in a queue of `backlog` bytes.
    pub fn sample(&mut self, backlog: u64, now: Time) {
        if let Some(since) = self.empty_since.take() {
            let idle = now.since(since).as_nanos() / self.packet_time.as_nanos().max(1);
            self.bytes *= power(1.0 - self.weight, idle);
        }
        self.bytes += self.weight * (backlog as f64 - self.bytes);
        if backlog == 0 {
            self.empty_since = Some(now);
        }
    }

    /// The queue became empty.
    pub fn emptied(&mut self, now: Time) {
        self.empty_since = Some(now);
    }

    pub const fn bytes(&self) -> f64 {
        self.bytes
    }
}

/// `base` to the power of `exponent`: by squaring, so that every machine gets the same bits.
fn power(mut base: f64, mut exponent: u64) -> f64 {
    let mut result = 1.0;
    while exponent > 0 {
        if exponent & 1 == 1 {
            result *= base;
        }
        base *= base;
        exponent >>= 1;
    }
    result
}

/// Whether a packet is dropped early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EarlyVerdict {
    Pass,
    /// By chance, between the thresholds.
    Early,
    /// Above the upper threshold.
    Forced,
}

impl EarlyVerdict {
    /// Why the packet is dropped; `None` if it is not.
    pub const fn reason(self) -> Option<DropReason> {
        match self {
            Self::Pass => None,
            Self::Early => Some(DropReason::Early),
            Self::Forced => Some(DropReason::Forced),
        }
    }
}

/// A curve of drop probability over the average, and the memory that spaces its drops.
#[derive(Clone, Debug)]
pub(crate) struct EarlyDrop {
    min: f64,
    max: f64,
    probability: f64,
    gentle: bool,
    spacing: Spacing,
    /// Packets since the last drop; `None` while the average is below the curve.
    count: Option<u64>,
}

/// A probability that rises from 0 at one threshold of the average up to `probability` at another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Curve {
    /// Lower threshold in bytes, and the name of its parameter.
    pub min: (u64, &'static str),
    /// Upper threshold in bytes, and the name of its parameter.
    pub max: (u64, &'static str),
    pub probability: f64,
}

/// How the gaps between early drops are distributed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spacing {
    /// Evenly over all gaps below 1/p packets (Floyd and Jacobson 1993, section 7): two drops in 1/p.
    Uniform,
    /// Evenly from 1/p to 2/p packets (ns-2 with `wait_`).
    Wait,
    /// Each packet by itself.
    Geometric,
    /// None at all: Linux 2.2.1 forgot the count with every packet that it accepted.
    Never,
}

impl EarlyDrop {
    /// Early drops by `curve`, in the discipline or marker called `owner`.
    ///
    /// # Errors
    /// If the thresholds are not in order.
    pub fn new(owner: &str, curve: Curve, options: &EarlyOptions) -> Result<Self, SpecError> {
        let Curve { min: (low, min), max: (high, max), probability } = curve;
        if low >= high {
            let allowed = format!("write more than `{min}`, which is {low} bytes");
            return Err(SpecError::bad(owner, max, &high.to_string(), &allowed));
        }
        Ok(Self {
            min: low as f64,
            max: high as f64,
            probability,
            gentle: options.gentle,
            spacing: options.spacing,
            count: None,
        })
    }

    /// Decides about a packet that arrives at that average.
    pub fn decide(&mut self, average: f64, rng: &mut Rng) -> EarlyVerdict {
        if average < self.min {
            self.count = None;
            return EarlyVerdict::Pass;
        }
        let end = if self.gentle { 2.0 * self.max } else { self.max };
        if average >= end {
            self.count = Some(0);
            return EarlyVerdict::Forced;
        }
        let count = self.count.map_or(0, |count| count + 1);
        self.count = Some(count);
        if rng.unit() < self.spaced(self.probability_at(average), count as f64) {
            self.count = Some(0);
            return EarlyVerdict::Early;
        }
        EarlyVerdict::Pass
    }

    pub const fn min(&self) -> f64 {
        self.min
    }

    pub const fn max(&self) -> f64 {
        self.max
    }

    fn probability_at(&self, average: f64) -> f64 {
        if average < self.max {
            self.probability * (average - self.min) / (self.max - self.min)
        } else {
            // Gentle RED: from the curve's end up to 1 at twice the upper threshold.
            self.probability + (1.0 - self.probability) * (average - self.max) / self.max
        }
    }

    fn spaced(&self, p: f64, count: f64) -> f64 {
        match self.spacing {
            Spacing::Never => 0.0,
            Spacing::Geometric => p,
            Spacing::Uniform if count * p < 1.0 => p / (1.0 - count * p),
            Spacing::Wait if count * p < 1.0 => 0.0,
            Spacing::Wait if count * p < 2.0 => p / (2.0 - count * p),
            Spacing::Uniform | Spacing::Wait => 1.0,
        }
    }
}

params! {
    /// Parameters of averages and early drops.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct EarlyOptions {
        /// weight of the present queue in the average
        wq: f64 = probability().default(WEIGHT),
        /// a typical packet
        pub avpkt: u32 = Declared::new(ParamKind::Size, read_typical_packet)
            .default_of("one full packet", |device| device.full_packet().to_string()),
        /// rate at which the average falls while the queue is empty
        bandwidth: Rate = rate().default_of("the line's rate, else 10mbit", |device| {
            // Where the line has no fixed rate: what `tc` takes.
            format!("{}bit", device.line_rate.map_or(10_000_000, Rate::as_bps))
        }),
        /// gaps between early drops: even below 1/p packets, even from 1/p to 2/p, each by itself,
        /// no drops
        spacing: Spacing = one_of().default("uniform"),
        /// above the upper threshold go on with a rising probability instead of dropping all
        gentle: bool = switch().off_by("nogentle"),
    }
}

choice! { Spacing {
    "uniform" => Self::Uniform,
    "wait" => Self::Wait,
    "geometric" => Self::Geometric,
    "never" => Self::Never,
} }

/// A typical packet's length as a queue counts it.
fn read_typical_packet(text: &Text<'_>) -> Result<u32, SpecError> {
    let size = read_size(text)?;
    let packet = u32::try_from(size).ok().filter(|bytes| (1..=MAX_AVPKT_BYTES).contains(bytes));
    packet.ok_or_else(|| text.bad_value(&size.to_string(), "write from 1 to 65535 bytes"))
}

const MAX_AVPKT_BYTES: u32 = 65_535;

/// Floyd and Jacobson 1993, section 6: averages over some hundred packets.
const WEIGHT: &str = "0.002";

pub(crate) const LIMIT: Declared<u64> =
    nonzero_size().default("1000000").means("most bytes that may wait");

#[cfg(test)]
mod tests {
    use super::*;
    use weir_core::Seed;

    fn curve(spacing: Spacing, gentle: bool) -> EarlyDrop {
        EarlyDrop { min: 10e3, max: 200e3, probability: 0.25, gentle, spacing, count: None }
    }

    /// Gaps between drops at an average where p is 1/20.
    fn gaps(spacing: Spacing) -> Vec<u32> {
        let mut drop = curve(spacing, false);
        let mut rng = Seed::new(1).stream("gaps");
        let mut gaps = Vec::new();
        let mut gap = 0;
        drop.decide(48e3, &mut rng);
        while gaps.len() < 20_000 {
            gap += 1;
            if drop.decide(48e3, &mut rng) == EarlyVerdict::Early {
                gaps.push(std::mem::take(&mut gap));
            }
        }
        gaps.remove(0);
        gaps
    }

    fn mean(gaps: &[u32]) -> f64 {
        f64::from(gaps.iter().sum::<u32>()) / gaps.len() as f64
    }

    #[test]
    fn gaps_between_drops_are_even() {
        let uniform = gaps(Spacing::Uniform);
        let mut histogram = [0u32; 20];
        for &gap in &uniform {
            histogram[gap as usize] += 1;
        }
        assert_eq!(histogram[0], 0);
        assert!(histogram[1..].iter().all(|&n| (950..1_150).contains(&n)), "{histogram:?}");
        assert!((mean(&uniform) - 10.0).abs() < 0.1, "{}", mean(&uniform));

        let wait = gaps(Spacing::Wait);
        assert_eq!((wait.iter().min(), wait.iter().max()), (Some(&20), Some(&39)));
        assert!((mean(&wait) - 29.5).abs() < 0.2, "{}", mean(&wait));
        assert!((mean(&gaps(Spacing::Geometric)) - 20.0).abs() < 0.5);
    }

    #[test]
    fn below_the_curve_nothing_is_dropped_and_above_it_everything() {
        let mut rng = Seed::new(1).stream("ends");
        let mut plain = curve(Spacing::Uniform, false);
        assert!((0..1_000).all(|_| plain.decide(9_999.0, &mut rng) == EarlyVerdict::Pass));
        assert!((0..1_000).all(|_| plain.decide(200e3, &mut rng) == EarlyVerdict::Forced));
        let mut gentle = curve(Spacing::Geometric, true);
        let early = (0..10_000).filter(|_| gentle.decide(300e3, &mut rng) == EarlyVerdict::Early);
        // Half-way from 0.25 to 1.
        let early = early.count();
        assert!((6_100..6_400).contains(&early), "{early}");
        assert_eq!(gentle.decide(400e3, &mut rng), EarlyVerdict::Forced);
        let mut never = curve(Spacing::Never, false);
        assert!((0..1_000).all(|_| never.decide(199e3, &mut rng) == EarlyVerdict::Pass));
    }

    #[test]
    fn the_average_follows_slowly_and_falls_while_idle() {
        let mut average = Average {
            bytes: 0.0,
            weight: 0.5,
            packet_time: Duration::from_millis(1),
            empty_since: None,
        };
        average.sample(800, Time::ZERO);
        average.sample(800, Time::ZERO);
        assert_eq!(average.bytes(), 600.0);
        average.emptied(Time::from_millis(10));
        // Two packet times and a half are two.
        average.sample(0, Time::from_nanos(12_500_000));
        assert_eq!(average.bytes(), 75.0);
    }
}
