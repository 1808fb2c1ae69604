//! Tests of whether two samples may come from one distribution. Each gives a p-value: how often chance alone
//! would set samples of one distribution at least so far apart.

/// Wilcoxon's rank-sum test, two-sided: whether one sample lies higher than the other. Ties share their rank, and
/// the variance allows for them; normal approximation.
pub(crate) fn rank_sum(a: &[f64], b: &[f64]) -> f64 {
    let ranks = mid_ranks(a, b);
    linear_rank(&ranks, a.len())
}

/// Ansari and Bradley's test, two-sided: whether one sample is more widely scattered than the other around a
/// common middle. Scores count from both ends inwards; ties as in [`rank_sum`].
pub(crate) fn scatter(a: &[f64], b: &[f64]) -> f64 {
    let last = (a.len() + b.len() + 1) as f64;
    let scores: Vec<f64> = mid_ranks(a, b).into_iter().map(|rank| rank.min(last - rank)).collect();
    linear_rank(&scores, a.len())
}

/// Whether `mean` may be that of the middle `n` of `n` + 2 runs of which no more is known, and `ours` are runs of the
/// same thing: Yuen's test for trimmed means ("The two-sample trimmed t for unequal population variances",
/// Biometrika 61, 1974), two-sided, with a twentieth trimmed at each end and the scatter of `ours` on both sides.
/// Figures that differ by at most `grain` are the same.
pub(crate) fn trimmed_mean(mean: f64, n: u32, ours: &[f64], grain: f64) -> f64 {
    let mut sorted = ours.to_vec();
    sorted.sort_by(f64::total_cmp);
    let cut = sorted.len() / 20;
    let kept = &sorted[cut..sorted.len() - cut];
    let apart = ((mean - average(kept)).abs() - grain).max(0.0);
    let clamped: Vec<f64> =
        sorted.iter().map(|value| value.clamp(kept[0], kept[kept.len() - 1])).collect();
    let deviation = deviation(&clamped);
    if apart == 0.0 {
        return 1.0;
    }
    if deviation == 0.0 {
        return 0.0;
    }
    let squared = |all: f64, left: f64| (all - 1.0) / (left * (left - 1.0));
    let (m, kept, n) = (sorted.len() as f64, kept.len() as f64, f64::from(n));
    let error = deviation * (squared(n + 2.0, n) + squared(m, kept)).sqrt();
    student(apart / error, kept - 1.0)
}

/// Whether `beyond` of `m` values lie beyond the most extreme of `n` others, on one given side: exact, and free of
/// any assumption on the distribution.
pub(crate) fn beyond_extreme(beyond: u32, m: u32, n: u32) -> f64 {
    (0..beyond).map(|k| f64::from(m - k) / f64::from(m + n - k)).product()
}

/// Fisher's exact test, two-sided: whether `a` of `n` and `b` of `m` may be the same share.
pub(crate) fn fisher(a: u32, n: u32, b: u32, m: u32) -> f64 {
    let successes = a + b;
    let chance = |k: u32| {
        (log_choose(n, k) + log_choose(m, successes - k) - log_choose(n + m, successes)).exp()
    };
    let seen = chance(a) * (1.0 + 1e-9);
    let all = successes.saturating_sub(m)..=successes.min(n);
    all.map(chance).filter(|&chance| chance <= seen).sum::<f64>().min(1.0)
}

/// The arithmetic mean.
pub(crate) fn average(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The standard deviation of a sample; exactly 0 if all values are the same.
pub(crate) fn deviation(values: &[f64]) -> f64 {
    if values.iter().all(|value| value == &values[0]) {
        return 0.0;
    }
    let centre = average(values);
    let squares: f64 = values.iter().map(|value| (value - centre).powi(2)).sum();
    (squares / (values.len() as f64 - 1.0)).sqrt()
}

/// The ranks of `a`, then those of `b`, in the joint sample, from 1; equal values have their mean rank.
fn mid_ranks(a: &[f64], b: &[f64]) -> Vec<f64> {
    let all: Vec<f64> = a.iter().chain(b).copied().collect();
    let rank = |value: f64| {
        let below = all.iter().filter(|&&other| other < value).count() as f64;
        let equal = all.iter().filter(|&&other| other == value).count() as f64;
        below + (equal + 1.0) / 2.0
    };
    all.iter().map(|&value| rank(value)).collect()
}

/// Two-sided p-value of the sum of the first `n` scores among all ways to choose `n` of them (Hájek and Šidák,
/// "Theory of rank tests", 1967): normal, with the exact mean and variance.
fn linear_rank(scores: &[f64], n: usize) -> f64 {
    let (n, all) = (n as f64, scores.len() as f64);
    let centre = average(scores);
    let squares: f64 = scores.iter().map(|score| (score - centre).powi(2)).sum();
    let variance = n * (all - n) / (all * (all - 1.0)) * squares;
    let apart = (scores[..n as usize].iter().sum::<f64>() - n * centre).abs();
    if variance == 0.0 {
        return 1.0;
    }
    libm::erfc(apart / (2.0 * variance).sqrt())
}

/// How often |t| with `freedom` degrees of freedom is at least `t`.
fn student(t: f64, freedom: f64) -> f64 {
    incomplete_beta(freedom / (freedom + t * t), freedom / 2.0, 0.5)
}

/// The regularised incomplete beta function, by its continued fraction (Abramowitz and Stegun, 26.5.8).
fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(1.0 - x, b, a);
    }
    let front =
        (libm::lgamma(a + b) - libm::lgamma(a) - libm::lgamma(b) + a * x.ln() + b * (1.0 - x).ln())
            .exp();
    // From the last term to the first.
    let mut fraction = 1.0;
    for m in (1..=TERMS).rev() {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let before = m - 1.0;
        let odd =
            -(a + before) * (a + b + before) * x / ((a + 2.0 * before) * (a + 2.0 * before + 1.0));
        fraction = 1.0 + odd / (1.0 + even / fraction);
    }
    front / (a * fraction)
}

fn log_choose(n: u32, k: u32) -> f64 {
    let factorial = |of: u32| libm::lgamma(f64::from(of) + 1.0);
    factorial(n) - factorial(k) - factorial(n - k)
}

/// Far more than the continued fraction needs for samples of any size that is seen here.
const TERMS: u32 = 200;

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: f64, known: f64) {
        assert!((found - known).abs() < 1e-6 * known.max(1e-3), "{found}, known is {known}");
    }

    #[test]
    fn student_is_as_in_the_tables() {
        close(student(2.228_138_852, 10.0), 0.05);
        close(student(3.169_272_673, 10.0), 0.01);
        close(student(1.0, 1.0), 0.5);
        // Two degrees of freedom have a closed form: 1 - t / sqrt(2 + t^2).
        close(student(3.0, 2.0), 1.0 - 3.0 / 11f64.sqrt());
    }

    #[test]
    fn ranks_are_summed_with_ties() {
        // W of 1, 2, 3 against 4, 5, 6: 6 of a mean of 10.5 and a variance of 5.25.
        close(rank_sum(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0]), libm::erfc(4.5 / 10.5f64.sqrt()));
        close(rank_sum(&[1.0, 2.0], &[1.0, 2.0]), 1.0);
        // Ties: ranks 1.5, 1.5, 3.5, 3.5; sum 3 of a mean of 5; variance 2 2 / (4 3) 4 = 4/3.
        close(rank_sum(&[1.0, 1.0], &[2.0, 2.0]), libm::erfc(2.0 / (8.0f64 / 3.0).sqrt()));
        close(rank_sum(&[5.0; 20], &[5.0; 50]), 1.0);
        assert!(rank_sum(&[5.0; 20], &[6.0; 50]) < 1e-12);
    }

    #[test]
    fn scatter_is_told_apart_from_place() {
        let (narrow, wide): (Vec<_>, Vec<_>) =
            (0..40).map(|n| (f64::from(n) - 19.5, 4.0 * (f64::from(n) - 19.5))).unzip();
        assert!(scatter(&narrow, &wide) < 1e-6 && rank_sum(&narrow, &wide) > 0.99);
        // Scores 1, 2 in the middle or at the ends of 1, 2, 2, 1: sum 4 of a mean of 3; variance 1/3.
        close(scatter(&[2.0, 3.0], &[1.0, 4.0]), libm::erfc(1.0 / (2.0f64 / 3.0).sqrt()));
    }

    #[test]
    fn a_trimmed_mean_is_held_against_runs() {
        // Nothing to trim of three: mean 2, deviation 1; the middle two of four lie 3 off.
        let error = (3.0 / (2.0 * 1.0) + 2.0 / (3.0 * 2.0_f64)).sqrt();
        close(trimmed_mean(5.0, 2, &[1.0, 2.0, 3.0], 0.0), student(3.0 / error, 2.0));
        // Of twenty the ends go: one wild value changes nothing.
        let mut runs: Vec<f64> = (1..=20).map(f64::from).collect();
        let tame = trimmed_mean(14.0, 18, &runs, 0.0);
        runs[19] = 1e6;
        close(trimmed_mean(14.0, 18, &runs, 0.0), tame);
        close(trimmed_mean(2.5, 18, &[2.0; 9], 0.5), 1.0);
        close(trimmed_mean(2.5, 18, &[2.0; 9], 0.4), 0.0);
    }

    #[test]
    fn what_lies_beyond_an_extreme_is_counted_exactly() {
        // All of m beyond all of n: one of (n + m choose n) orders.
        close(beyond_extreme(3, 3, 2), 1.0 / 10.0);
        close(beyond_extreme(1, 3, 2), 3.0 / 5.0);
        close(beyond_extreme(0, 50, 20), 1.0);
    }

    #[test]
    fn shares_are_held_against_shares_exactly() {
        // Fisher's lady tasting tea: 3 of 4 right, 1 of 4 wrong.
        close(fisher(3, 4, 1, 4), 34.0 / 70.0);
        close(fisher(4, 4, 0, 4), 2.0 / 70.0);
        close(fisher(9, 10, 45, 50), 1.0);
        assert!(fisher(9, 10, 0, 50) < 1e-8);
    }
}
