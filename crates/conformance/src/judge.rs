//! Whether ours agrees with a recording.

use std::fmt;

use weir_core::Duration;
use weir_qdisc::SpecError;

use crate::figures::{Figures, figures};
use crate::recording::{Departure, FINE, Recording, Repeatability, SeedRuns, Span};
use crate::run::{Run, Shares};
use crate::statistics::{
    average, beyond_extreme, deviation, fisher, rank_sum, scatter, trimmed_mean,
};

/// How far departures may differ in time: the grain of the recordings.
pub const TOLERANCE: Duration = FINE;

/// Number of our runs, each with a seed of its own, held against a recording that depends on random numbers.
pub const SEEDS: u64 = 60;

/// A recording fails if chance alone sets it so far apart in fewer than one of a thousand cases. All tests of one
/// recording share this (Bonferroni, the first step of Holm): of fifty recordings of a faultless discipline about
/// one in twenty sets has one that fails.
pub const SIGNIFICANCE: f64 = 0.001;

/// Outcome of holding a discipline against a recording.
#[derive(Clone, Debug, PartialEq)]
pub enum Judgement {
    /// Packet by packet the same.
    Exact {
        /// Number of packets that arrived.
        packets: usize,
    },
    /// No test tells our runs from those of Linux.
    Agrees {
        /// Means over our runs.
        ours: Shares,
        /// The test that came nearest to it.
        nearest: Test,
        /// Number of tests.
        tests: usize,
    },
    /// The discipline does not agree; this sentence gives the first difference.
    Fails(String),
}

/// One comparison of our runs with those of Linux.
#[derive(Clone, Debug, PartialEq)]
pub struct Test {
    /// Name of the figure that was compared, with the values.
    pub what: String,
    /// How often chance alone sets two samples of one thing so far apart.
    pub p: f64,
}

/// Replays `recording` and compares.
///
/// # Errors
/// If the recording's commands name a discipline or a parameter that is not here.
pub fn judge(recording: &Recording) -> Result<Judgement, SpecError> {
    match &recording.repeatability {
        Repeatability::Exact => exact_or_shared(recording, EXACT_RUNS, EXACT_RUNS),
        Repeatability::Hashed { agree, runs } => exact_or_shared(recording, *agree, *runs),
        Repeatability::Random(runs) => statistical(recording, runs.as_ref()),
    }
}

/// `agree` of `runs` runs of Linux gave just this. If all of ours are alike, they must be like it; else (a hash key,
/// cake's dither) as many of ours as the share of Linux' allows.
fn exact_or_shared(recording: &Recording, agree: u32, of: u32) -> Result<Judgement, SpecError> {
    let exact = Judgement::Exact { packets: recording.arrivals.len() };
    let runs = |seeds: std::ops::Range<u64>| {
        seeds.map(|seed| Run::of(recording, seed)).collect::<Result<Vec<_>, _>>()
    };
    let first = runs(FIRST_SEED..FIRST_SEED + FIRST_LOOK)?;
    if agree == of && first.iter().all(|run| run.departures == first[0].departures) {
        return Ok(differs(recording, &first[0]).map_or(exact, Judgement::Fails));
    }
    let all = runs(FIRST_SEED..FIRST_SEED + SEEDS)?;
    let differences: Vec<String> = all.iter().filter_map(|run| differs(recording, run)).collect();
    let ours = SEEDS as u32 - differences.len() as u32;
    let p = fisher(agree, of, ours, SEEDS as u32);
    if ours > 0 && p >= SIGNIFICANCE {
        return Ok(exact);
    }
    Ok(Judgement::Fails(format!(
        "{ours} of {SEEDS} runs agree, of Linux' {agree} of {of} (p = {p:.1e}); the first other: {}",
        differences[0]
    )))
}

fn differs(recording: &Recording, run: &Run) -> Option<String> {
    for (place, (ours, theirs)) in run.departures.iter().zip(&recording.departures).enumerate() {
        if !same(*ours, *theirs) {
            let (ours, theirs) = (Shown(*ours), Shown(*theirs));
            return Some(format!("departure {place} is {ours}, of Linux {theirs}"));
        }
    }
    let (ours, theirs) = (run.departures.len(), recording.departures.len());
    (ours != theirs).then(|| format!("{ours} packets left, of Linux {theirs}"))
}

/// Whoever departs and when decides who was dropped, since nothing stays behind.
fn same(ours: Departure, theirs: Departure) -> bool {
    ours.id == theirs.id
        && ours.at_ns.abs_diff(theirs.at_ns) <= TOLERANCE.as_nanos()
        && ours.ecn == theirs.ecn
        && (theirs.dscp.is_none() || ours.dscp == theirs.dscp)
}

/// The recorded run against single runs of ours, figure by figure of every flow and class; the other runs of Linux,
/// of which only totals are known, against ours.
fn statistical(recording: &Recording, theirs: Option<&SeedRuns>) -> Result<Judgement, SpecError> {
    let seeds = FIRST_SEED..FIRST_SEED + SEEDS;
    let runs: Vec<Run> = seeds.map(|seed| Run::of(recording, seed)).collect::<Result<_, _>>()?;
    let mut tests = theirs.map_or_else(Vec::new, |theirs| totals(recording, theirs, &runs));
    tests.push(single_run(recording, &runs, tests.len() + 1)?);
    let nearest = tests.iter().min_by(|a, b| a.p.total_cmp(&b.p)).expect("there is one").clone();
    let count = tests.len();
    if nearest.p * (count as f64) < SIGNIFICANCE {
        let Test { what, p } = nearest;
        return Ok(Judgement::Fails(format!("{what}: p = {p:.1e}, one of {count} tests")));
    }
    let mean = |figure: fn(&Shares) -> f64| average(&column(&runs, figure));
    let ours = Shares {
        dropped: mean(|shares| shares.dropped),
        marked: mean(|shares| shares.marked),
        delay_ms: mean(|shares| shares.delay_ms),
    };
    Ok(Judgement::Agrees { ours, nearest, tests: count })
}

/// Tests of the totals of runs: the share dropped, the marks, and the mean delay.
///
/// Of Linux the share dropped is known run by run; of marks and mean delay the mean and the extremes are.
fn totals(recording: &Recording, theirs: &SeedRuns, runs: &[Run]) -> Vec<Test> {
    let rounded = |value: f64| (value / ROUNDING).round() * ROUNDING;
    let ours: Vec<f64> = column(runs, |shares| shares.dropped).into_iter().map(rounded).collect();
    let linux: Vec<f64> = theirs.dropped.iter().copied().map(rounded).collect();
    let means = format!("{:.5}, of Linux {:.5}", average(&ours), average(&linux));
    let spread = format!("{:.5}, of Linux {:.5}", deviation(&ours), deviation(&linux));
    let mut tests = vec![
        Test { what: format!("share dropped {means}"), p: rank_sum(&linux, &ours) },
        Test { what: format!("scatter of the share dropped {spread}"), p: scatter(&linux, &ours) },
    ];
    let marked = column(runs, |shares| shares.marked);
    tests.extend(against_span("share marked", theirs.marked, theirs.runs, &marked, ROUNDING));
    let delays = column(runs, |shares| shares.delay_ms);
    let grain_ms = ROUNDING + recording.grain.as_nanos() as f64 / 1e6;
    tests.extend(against_span("mean delay in ms", theirs.delay_ms, theirs.runs, &delays, grain_ms));
    tests
}

fn against_span(what: &str, theirs: Span, n: u32, ours: &[f64], grain: f64) -> [Test; 3] {
    let count =
        |beyond: &dyn Fn(f64) -> bool| ours.iter().filter(|&&value| beyond(value)).count() as u32;
    let below = count(&|value| value < theirs.min - grain);
    let above = count(&|value| value > theirs.max + grain);
    let m = ours.len() as u32;
    // Without its extremes a mean does not hang on the one run in twenty in which two flows share a bucket.
    let trimmed = (f64::from(n) * theirs.mean - theirs.min - theirs.max) / (f64::from(n) - 2.0);
    [
        Test {
            what: format!("{what} {:.5}, of Linux {:.5}", average(ours), theirs.mean),
            p: trimmed_mean(trimmed, n - 2, ours, grain),
        },
        Test {
            what: format!("{what} of {below} of {m} runs below the {:.5} of Linux", theirs.min),
            p: beyond_extreme(below, m, n),
        },
        Test {
            what: format!("{what} of {above} of {m} runs above the {:.5} of Linux", theirs.max),
            p: beyond_extreme(above, m, n),
        },
    ]
}

/// Is the recorded run one of ours? Its largest deviation in any figure, in units of the scatter of `runs`, has a
/// rank among those of further runs of ours: a permutation test over all figures at once (Westfall and Young,
/// "Resampling-based multiple testing", 1993), whatever their distributions. Runs are made until the p-value is
/// known well enough (Besag and Clifford, "Sequential Monte Carlo p-values", Biometrika 78, 1991).
fn single_run(recording: &Recording, runs: &[Run], tests: usize) -> Result<Test, SpecError> {
    let known: Vec<Figures> = runs.iter().map(|run| figures(recording, &run.departures)).collect();
    let recorded = figures(recording, &recording.departures);
    let scales: Vec<Scale> = (0..recorded.len()).map(|place| Scale::of(&known, place)).collect();
    let (worst, at) = largest(&scales, &recorded);
    let mut what = "the recorded run".to_owned();
    if let Some(place) = at {
        let Scale { centre, deviation } = scales[place];
        let (name, value) = (&recorded[place].name, recorded[place].value);
        what = format!("{name} {centre:.4} with scatter {deviation:.4}, of Linux {value:.4}");
    }
    let most = (tests as f64 / SIGNIFICANCE).ceil() as u64;
    let (mut made, mut beyond) = (0, 0);
    while beyond < ENOUGH && made < most {
        made += 1;
        let run = Run::of(recording, FIRST_SEED + SEEDS - 1 + made)?;
        let (other, _) = largest(&scales, &figures(recording, &run.departures));
        beyond += u64::from(other >= worst);
    }
    let p = if beyond == ENOUGH {
        beyond as f64 / made as f64
    } else {
        (beyond + 1) as f64 / (made + 1) as f64
    };
    Ok(Test { what, p })
}

/// Where a figure of our runs lies, and how widely.
struct Scale {
    centre: f64,
    deviation: f64,
}

impl Scale {
    fn of(known: &[Figures], place: usize) -> Self {
        let values: Vec<f64> = known.iter().map(|figures| figures[place].value).collect();
        // A figure that was always the same may yet differ in one of as many runs.
        let least = known[0][place].step / (values.len() as f64).sqrt();
        Self { centre: average(&values), deviation: deviation(&values).max(least) }
    }
}

/// The largest deviation of any figure, and whose it is.
fn largest(scales: &[Scale], figures: &Figures) -> (f64, Option<usize>) {
    let mut largest = (0.0, None);
    for (place, (scale, figure)) in scales.iter().zip(figures).enumerate() {
        let apart = ((figure.value - scale.centre).abs() - figure.grain).max(0.0);
        let apart = apart / scale.deviation;
        if apart > ROUNDING_ERRORS && apart > largest.0 {
            largest = (apart, Some(place));
        }
    }
    largest
}

fn column(runs: &[Run], figure: fn(&Shares) -> f64) -> Vec<f64> {
    runs.iter().map(|run| figure(&run.shares)).collect()
}

struct Shown(Departure);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Departure { id, at_ns, ecn, dscp } = self.0;
        write!(f, "packet {id} at {at_ns} ns with ECN {ecn}")?;
        dscp.map_or(Ok(()), |dscp| write!(f, " and DSCP {dscp}"))
    }
}

/// The first of the seeds.
const FIRST_SEED: u64 = 1;

/// Runs of Linux behind a recording that repeats: one, and another with another seed.
const EXACT_RUNS: u32 = 2;

/// Runs of ours that show whether it draws random numbers.
const FIRST_LOOK: u64 = 4;

/// Runs beyond the recorded one after which its p-value is known to a third or so.
const ENOUGH: u64 = 10;

/// The recordings give shares and delays with five digits.
const ROUNDING: f64 = 1e-5;

/// Rounding errors of means of many numbers, in units of their scatter.
const ROUNDING_ERRORS: f64 = 1e-6;
