//! Recordings of real Linux queue disciplines, and whether ours agree with them.
//!
//! A [`Recording`] is a scripted schedule of arrivals and what a real kernel made of it
//! (`vectors/linux-6.12/README.md` has method and format). [`judge`] replays it through the
//! discipline of the same `tc` commands:
//!
//! * where the recording is exact, ours must agree packet by packet: order, drops, marks, code
//!   points, and times within [`TOLERANCE`];
//! * where exactness depends on the key of the flow hash, or on the dither of `cake`, as many of
//!   [`SEEDS`] runs of ours must agree so as the share of Linux' own runs allows (Fisher's exact test);
//! * where a discipline draws random numbers, nothing may tell [`SEEDS`] runs of ours from those of
//!   Linux: neither the recorded run, by what each flow and each class got, lost and waited, nor what
//!   is known of the others. [`SIGNIFICANCE`] is how seldom chance may do so.

mod figures;
mod judge;
mod recording;
mod run;
mod statistics;

pub use judge::{Judgement, SEEDS, SIGNIFICANCE, TOLERANCE, Test, judge};
pub use recording::{Recording, RecordingError, Repeatability, SeedRuns, Span};
pub use run::{Run, Shares};
