//! The shapes of jitter that `tc` knows by name.
//!
//! The kernel draws from a table of 4096 steps in units of 1/8192 of the jitter; `tc` reads it from a file
//! that iproute2's `netem/*.c` wrote. Here the same formulas make the table, within one unit of those files.

use crate::tc::choice;

/// A distribution by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Distribution {
    /// Evenly from -jitter to +jitter.
    #[default]
    Uniform,
    /// By a table.
    Table(Vec<i16>),
}

choice! { Distribution {
    "uniform" => Self::Uniform,
    "normal" => Self::table(normal),
    "pareto" => Self::table(pareto),
    "paretonormal" => Self::table(|step| (normal(step) + 3.0 * pareto(step).min(I16_MAX)) / 4.0),
} }

impl Distribution {
    fn table(value: fn(usize) -> f64) -> Self {
        // The cast cuts at the ends of 16 bits, as iproute2 does.
        Self::Table((0..STEPS).map(|step| value(step) as i16).collect())
    }
}

/// The inverse of the normal distribution: mean 0, deviation 1 in units of [`SCALE`].
fn normal(step: usize) -> f64 {
    // `normal.c` walks the distribution in steps of 1/16384 and keeps every fourth.
    let share = (step as f64 + 0.125) / STEPS as f64;
    let (mut low, mut high) = (-5.0, 5.0);
    while high - low > 1e-9 {
        let middle = f64::midpoint(low, high);
        let cumulative = 0.5 + 0.5 * libm::erf(middle / std::f64::consts::SQRT_2);
        if cumulative < share { low = middle } else { high = middle }
    }
    low * SCALE
}

/// A Pareto distribution of shape 3, moved so that its mean is 0 (`pareto.c`).
fn pareto(step: usize) -> f64 {
    let share = 1.0 - step as f64 / STEPS as f64;
    (libm::pow(share, -1.0 / 3.0) - 1.5) * SCALE * PARETO_WIDTH
}

const STEPS: usize = 4_096;
/// `NETEM_DIST_SCALE`.
const SCALE: f64 = 8_192.0;
const PARETO_WIDTH: f64 = 4.0 / 3.0;
const I16_MAX: f64 = i16::MAX as f64;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tc::Choice;

    /// Against the files of iproute2 6.1.
    #[test]
    fn tables_are_iproute2s_within_a_unit() {
        let cases = [
            ("normal", [(0, -32_768), (1, -28_307), (8, -23_600), (2_048, 0), (4_095, 28_858)]),
            (
                "pareto",
                [(0, -5_461), (1, -5_460), (1_024, -4_362), (2_048, -2_622), (4_095, 32_767)],
            ),
            (
                "paretonormal",
                [(0, -12_305), (1, -11_171), (2_048, -1_966), (4_000, 20_408), (4_095, 31_789)],
            ),
        ];
        for (name, entries) in cases {
            let Some(Distribution::Table(table)) = Distribution::named(name) else {
                panic!("{name} is a table")
            };
            assert_eq!(table.len(), 4_096);
            for (at, value) in entries {
                let ours = i32::from(table[at]);
                assert!((ours - value).abs() <= 1, "{name} {at}: {ours}, iproute2 has {value}");
            }
        }
    }
}
