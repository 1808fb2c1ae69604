//! Figures that several methods compute.

/// The quantile `q` by linear interpolation between order statistics; `None` of nothing.
#[must_use]
pub fn quantile(values: &[f64], q: f64) -> Option<f64> {
    let sorted = sorted(values);
    let last = sorted.len().checked_sub(1)?;
    let place = last as f64 * q;
    let (low, share) = (place.floor() as usize, place.fract());
    let high = sorted[(low + 1).min(last)];
    Some(sorted[low] + (high - sorted[low]) * share)
}

/// The mean; `None` of nothing.
#[must_use]
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The mean without the greatest values: of `kept`, 0 to 1, of them all; `None` of nothing.
pub(crate) fn trimmed_mean(values: &[f64], kept: f64) -> Option<f64> {
    let sorted = sorted(values);
    let count = ((sorted.len() as f64 * kept).floor() as usize).max(1).min(sorted.len());
    mean(&sorted[..count])
}

/// The mean of the middle half: a value that the quarter's edge cuts counts by its part inside.
pub(crate) fn interquartile_mean(values: &[f64]) -> Option<f64> {
    let sorted = sorted(values);
    let quarter = sorted.len() as f64 / 4.0;
    let (from, to) = (quarter, 3.0 * quarter);
    let inside = |place: usize| {
        let place = place as f64;
        ((place + 1.0).min(to) - place.max(from)).max(0.0)
    };
    let sum: f64 = sorted.iter().enumerate().map(|(place, value)| value * inside(place)).sum();
    (!sorted.is_empty()).then(|| sum / (to - from))
}

/// The mean difference of one value to the next.
pub(crate) fn jitter(values: &[f64]) -> Option<f64> {
    let steps: Vec<f64> = values.windows(2).map(|two| (two[1] - two[0]).abs()).collect();
    mean(&steps)
}

/// The standard deviation of a whole population.
pub(crate) fn deviation(values: &[f64]) -> Option<f64> {
    let mean = mean(values)?;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((squares / values.len() as f64).sqrt())
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// Bits a second in Mbit/s of `bytes` in `seconds`.
pub(crate) fn mbps(bytes: u64, seconds: f64) -> f64 {
    bytes as f64 * 8.0 / seconds / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_few_numbers() {
        let values = [4.0, 1.0, 3.0, 2.0];
        assert_eq!(quantile(&values, 0.5), Some(2.5));
        assert!((quantile(&values, 0.9).unwrap() - 3.7).abs() < 1e-12);
        assert_eq!(trimmed_mean(&values, 0.75), Some(2.0));
        assert_eq!(trimmed_mean(&[7.0], 0.5), Some(7.0));
        assert_eq!((mean(&[]), quantile(&[], 0.5)), (None, None));
        // A quarter of 4 is 1: 2 and 3. A quarter of 5 is 1.25: 0.75 of 2, 3, 0.75 of 4.
        assert_eq!(interquartile_mean(&values), Some(2.5));
        assert_eq!(interquartile_mean(&[1.0, 2.0, 3.0, 4.0, 100.0]), Some(3.0));
        assert_eq!(interquartile_mean(&[7.0]), Some(7.0));
        assert_eq!(interquartile_mean(&[]), None);
        assert_eq!(jitter(&values), Some(2.0));
        assert_eq!(jitter(&values[..1]), None);
        assert_eq!(deviation(&[2.0, 4.0]), Some(1.0));
    }
}
