//! Whether ours agrees with a recording.

use std::fmt;

use weir_core::Duration;
use weir_qdisc::SetUpError;

use crate::recording::{Departure, Kind, Ranges, Recording, Span};
use crate::run::{Age, Run, Shares};

/// How far departures may differ in time: the grain of the recordings.
pub const TOLERANCE: Duration = Duration::from_nanos(3);

/// How many seeds of ours stand against a recording that depends on random numbers.
pub const SEEDS: u64 = 20;

/// What came of holding a discipline against a recording.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Packet by packet the same.
    Exact {
        /// How many packets arrived.
        packets: usize,
    },
    /// The means of our runs lie in the recording's ranges.
    InRange {
        /// Our means.
        ours: Shares,
        /// The recording's ranges.
        theirs: Ranges,
    },
    /// It does not agree, and this is the first difference.
    Fails(String),
}

/// Replays `recording` and compares.
///
/// # Errors
/// If the recording's commands name a discipline or a parameter that is not here.
pub fn judge(recording: &Recording) -> Result<Verdict, SetUpError> {
    match recording.kind {
        Kind::Exact => any_seed(recording),
        Kind::Hashed => most_keys(recording),
        Kind::Random(ranges) => match in_range(recording, ranges, Age::Settled)? {
            Verdict::Fails(why) => Ok(match in_range(recording, ranges, Age::Fresh)? {
                Verdict::Fails(_) => Verdict::Fails(why),
                in_range => in_range,
            }),
            in_range => Ok(in_range),
        },
    }
}

/// A discipline that draws random numbers may still give the same in most runs, and its recording then
/// passes for exact: two runs of Linux agreed. One seed of ours has to agree; of a discipline without
/// random numbers, the first.
fn any_seed(recording: &Recording) -> Result<Verdict, SetUpError> {
    let mut first = None;
    for seed in FIRST_SEED..FIRST_SEED + SEEDS {
        match exact(recording, &Run::of(recording, seed, Age::Settled)?) {
            Verdict::Fails(why) => first = first.or(Some(why)),
            agrees => return Ok(agrees),
        }
    }
    Ok(Verdict::Fails(first.expect("there are seeds")))
}

fn exact(recording: &Recording, run: &Run) -> Verdict {
    for (place, (ours, theirs)) in run.departures.iter().zip(&recording.departures).enumerate() {
        if !same(*ours, *theirs) {
            return Verdict::Fails(format!(
                "departure {place} is {}, of Linux {}",
                Shown(*ours),
                Shown(*theirs)
            ));
        }
    }
    let (ours, theirs) = (run.departures.len(), recording.departures.len());
    if ours != theirs {
        return Verdict::Fails(format!("{ours} packets left, of Linux {theirs}"));
    }
    Verdict::Exact { packets: recording.arrivals.len() }
}

/// Whoever departs and when decides who was dropped, since nothing stays behind.
fn same(ours: Departure, theirs: Departure) -> bool {
    ours.id == theirs.id
        && ours.at_ns.abs_diff(theirs.at_ns) <= TOLERANCE.as_nanos()
        && ours.ecn == theirs.ecn
        && (theirs.dscp.is_none() || ours.dscp == theirs.dscp)
}

fn most_keys(recording: &Recording) -> Result<Verdict, SetUpError> {
    let mut agree = 0;
    let mut first = None;
    for seed in FIRST_SEED..FIRST_SEED + SEEDS {
        match exact(recording, &Run::of(recording, seed, Age::Settled)?) {
            Verdict::Fails(why) => first = first.or(Some(why)),
            Verdict::Exact { .. } | Verdict::InRange { .. } => agree += 1,
        }
    }
    Ok(match first {
        Some(why) if agree * 2 <= SEEDS => Verdict::Fails(format!(
            "only {agree} of {SEEDS} hash keys agree; the first other: {why}"
        )),
        _ => Verdict::Exact { packets: recording.arrivals.len() },
    })
}

fn in_range(recording: &Recording, theirs: Ranges, age: Age) -> Result<Verdict, SetUpError> {
    let mut ours = Shares::default();
    for seed in FIRST_SEED..FIRST_SEED + SEEDS {
        let run = Run::of(recording, seed, age)?.shares;
        ours.dropped += run.dropped / SEEDS as f64;
        ours.marked += run.marked / SEEDS as f64;
        ours.delay_ms += run.delay_ms / SEEDS as f64;
    }
    let figures = [
        ("share dropped", ours.dropped, theirs.dropped),
        ("share marked", ours.marked, theirs.marked),
        ("mean delay in ms", ours.delay_ms, theirs.delay_ms),
    ];
    let outside = figures.iter().find(|(_, value, span)| !holds(*span, *value));
    Ok(match outside {
        Some((what, value, span)) => Verdict::Fails(format!(
            "the {what} over {SEEDS} seeds is {value:.4}, of Linux {:.4} to {:.4}",
            span.min, span.max
        )),
        None => Verdict::InRange { ours, theirs },
    })
}

/// Whether `value` lies in `span`, each end of it moved out by a tenth of itself.
fn holds(span: Span, value: f64) -> bool {
    let ends = span.min * (1.0 - WIDENED)..=span.max * (1.0 + WIDENED);
    // Means of many runs carry the rounding of their sums and of the figures in the file.
    ends.contains(&value) || (value - span.min).abs().min((value - span.max).abs()) < ROUNDING
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

/// By how much of itself each end of a range is moved out.
const WIDENED: f64 = 0.1;

/// The recordings give shares with five digits.
const ROUNDING: f64 = 1e-5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_widened_by_a_tenth_of_its_ends() {
        let span = Span { min: 1.0, max: 2.0 };
        for (value, inside) in [(0.89, false), (0.91, true), (2.19, true), (2.21, false)] {
            assert_eq!(holds(span, value), inside, "{value}");
        }
    }

    #[test]
    fn a_range_of_nothing_holds_nothing_but_rounding() {
        let span = Span { min: 0.0, max: 0.0 };
        assert!(holds(span, 0.0) && !holds(span, 0.000_1));
    }
}
