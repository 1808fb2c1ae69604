//! How much better latency under load became: a ratio of means with a bootstrap interval.

use std::f64::consts::{FRAC_PI_2, SQRT_2};

use serde::Serialize;
use weir_core::{Draw, Seed};
use weir_speedtest::figures::{mean, quantile};

/// Mean of one set of increases over that of another, with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Factor {
    /// The ratio; `None` if nothing is left of the increase.
    pub factor: Option<f64>,
    /// Lower end of the 95 % interval; `None` if there are too few values for one.
    pub low: Option<f64>,
    /// Its upper end; `None` also if it has none, because nothing may be left of the increase.
    pub high: Option<f64>,
}

impl Factor {
    /// The factor from increases without the cure (`before`) to those with it (`after`), each value for itself, with the
    /// bias-corrected and accelerated bootstrap interval (Efron and Tibshirani 1993, equations 14.9 to 14.15).
    ///
    /// The same values give the same interval.
    #[must_use]
    pub fn of(before: &[f64], after: &[f64]) -> Self {
        let none = Self { factor: None, low: None, high: None };
        let (Some(first), Some(second)) = (mean(before), mean(after)) else { return none };
        if second <= 0.0 {
            return none;
        }
        let factor = Some(first / second);
        if before.len() < 2 || after.len() < 2 {
            return Self { factor, ..none };
        }
        let (low, high) = interval(before, after);
        let high = (high < FRAC_PI_2).then(|| high.tan());
        Self { factor, low: Some(low.tan()), high }
    }

    /// The factor and its interval in words.
    #[must_use]
    pub fn in_words(&self) -> String {
        let Some(factor) = self.factor else {
            return "none: latency does not rise with it".to_owned();
        };
        let ends = match (self.low, self.high) {
            (None, _) => return in_digits(factor),
            (Some(low), None) => format!("{} upwards", in_digits(low)),
            (Some(low), Some(high)) => format!("{} to {}", in_digits(low), in_digits(high)),
        };
        format!("{} (95 % interval {ends})", in_digits(factor))
    }
}

/// A factor with one decimal; or with two digits where it is below 1, so that it is never 0.0.
fn in_digits(factor: f64) -> String {
    if factor >= 0.95 {
        return format!("{factor:.1}");
    }
    let digits = if factor > 0.0 { (1.0 - factor.log10().floor()).min(9.0) as usize } else { 1 };
    let said = format!("{factor:.digits$}");
    said.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The interval of the angle whose tangent is the factor: a right one if nothing is left of the increase, and so finite.
fn interval(before: &[f64], after: &[f64]) -> (f64, f64) {
    let found = angle(before, after);
    if [before, after].iter().all(|side| side.iter().all(|value| *value == side[0])) {
        return (found, found);
    }
    let drawn = resampled(before, after);
    let share = |is: &dyn Fn(f64) -> bool| {
        drawn.iter().filter(|one| is(**one)).count() as f64 / drawn.len() as f64
    };
    let bias =
        normal_quantile(f64::midpoint(share(&|one| one < found), share(&|one| one <= found)));
    let acceleration = acceleration(before, after);
    let ends = [-Z_95, Z_95].map(|z| {
        let shifted = bias + z;
        normal_share(bias + shifted / (1.0 - acceleration * shifted))
    });
    let ends = if ends.iter().all(|end| end.is_finite()) { ends } else { [0.025, 0.975] };
    let [low, high] = ends.map(|end| quantile(&drawn, end).unwrap_or(found));
    (low, high)
}

/// A mean of noise may lie below 0. What was no increase before cannot have been cured: its factor is 0.
fn angle(before: &[f64], after: &[f64]) -> f64 {
    let increase = mean(before).unwrap_or(0.0);
    let left = mean(after).unwrap_or(0.0).max(0.0);
    if increase > 0.0 { increase.atan2(left) } else { 0.0 }
}

/// The angle of samples drawn from both sets, with replacement.
fn resampled(before: &[f64], after: &[f64]) -> Vec<f64> {
    let mut random = Seed::new(0).stream("bootstrap");
    let mut draw = |side: &[f64]| -> Vec<f64> {
        side.iter().map(|_| side[random.below(side.len() as u64) as usize]).collect()
    };
    (0..DRAWS)
        .map(|_| {
            let first = draw(before);
            angle(&first, &draw(after))
        })
        .collect()
}

/// The skewness of what each value by itself does to the angle.
fn acceleration(before: &[f64], after: &[f64]) -> f64 {
    let without = |side: &[f64], place: usize| -> Vec<f64> {
        let mut left = side.to_vec();
        left.remove(place);
        left
    };
    let first: Vec<f64> =
        (0..before.len()).map(|place| angle(&without(before, place), after)).collect();
    let second: Vec<f64> =
        (0..after.len()).map(|place| angle(before, &without(after, place))).collect();
    let (mut cubes, mut squares) = (0.0, 0.0);
    for angles in [first, second] {
        let (count, usual) = (angles.len() as f64, mean(&angles).unwrap_or(0.0));
        for one in angles {
            let influence = (count - 1.0) * (usual - one);
            cubes += influence.powi(3) / count.powi(3);
            squares += influence.powi(2) / count.powi(2);
        }
    }
    cubes / (6.0 * squares.powf(1.5))
}

/// Share of a normal distribution below `z`.
fn normal_share(z: f64) -> f64 {
    0.5 * libm::erfc(-z / SQRT_2)
}

/// Where that share of a normal distribution lies below: found by halving.
fn normal_quantile(share: f64) -> f64 {
    if share <= 0.0 || share >= 1.0 {
        return if share <= 0.0 { f64::NEG_INFINITY } else { f64::INFINITY };
    }
    let (mut low, mut high) = (-40.0, 40.0);
    for _ in 0..80 {
        let middle = f64::midpoint(low, high);
        if normal_share(middle) < share { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

const DRAWS: usize = 2000;
/// 97.5 % of a normal distribution lie below.
const Z_95: f64 = 1.959_963_984_540_054;

#[cfg(test)]
mod tests {
    use super::*;

    /// `scipy.stats.bootstrap` of SciPy 1.17.1 with 200000 draws and `method="BCa"` gives 6.789 and 12.265; with 2000
    /// draws the ends vary by 0.2.
    #[test]
    fn the_interval_is_that_of_scipy() {
        let before = [50.0, 61.0, 48.0, 70.0, 55.0, 52.0, 58.0, 90.0];
        let after = [5.0, 7.5, 4.0, 6.0, 12.0, 5.5, 6.5, 4.5];
        let found = Factor::of(&before, &after);
        assert!((found.factor.unwrap() - 484.0 / 51.0).abs() < 1e-12);
        let (low, high) = (found.low.unwrap(), found.high.unwrap());
        assert!((low - 6.789).abs() < 0.25, "{low}");
        assert!((high - 12.265).abs() < 0.25, "{high}");
        assert_eq!(Factor::of(&before, &after), found);
    }

    #[test]
    fn where_nothing_may_be_left_the_interval_has_no_upper_end() {
        let found = Factor::of(&[50.0, 60.0, 55.0], &[-2.0, 3.0, 0.5]);
        assert!(found.low.unwrap() > 1.0);
        assert_eq!(found.high, None);
        assert!(found.in_words().ends_with(" upwards)"), "{}", found.in_words());
        let cured = Factor::of(&[50.0, 60.0], &[-2.0, 1.0]);
        assert_eq!(
            (cured.factor, cured.in_words().as_str()),
            (None, "none: latency does not rise with it")
        );
    }

    #[test]
    fn without_scatter_there_is_nothing_to_draw() {
        let found = Factor::of(&[30.0, 30.0], &[10.0, 10.0]);
        let ends =
            [found.factor, found.low, found.high].map(|end| end.map(|end| (end * 1e9).round()));
        assert_eq!(ends, [Some(3e9); 3]);
        assert_eq!(Factor::of(&[30.0], &[10.0]).in_words(), "3.0");
    }

    #[test]
    fn a_factor_below_1_has_two_digits() {
        assert_eq!(
            [216.25, 3.24, 1.0, 0.96, 0.5, 0.0049].map(in_digits),
            ["216.2", "3.2", "1.0", "1.0", "0.5", "0.0049"]
        );
    }

    #[test]
    fn shares_of_a_normal_distribution_and_back() {
        assert!((normal_share(Z_95) - 0.975).abs() < 1e-15);
        assert!((normal_quantile(0.975) - Z_95).abs() < 1e-12);
        assert_eq!(normal_quantile(0.0), f64::NEG_INFINITY);
    }
}
