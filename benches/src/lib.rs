//! What several benchmarks share: cases, and the median of their rounds.

mod case;

pub use case::{CASES, Case};

/// The median; of an even number of values the mean of the two in the middle.
pub fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    if values.len() % 2 == 1 { values[half] } else { values[half - 1].midpoint(values[half]) }
}
