//! Recordings of real Linux queue disciplines, and whether ours agree with them.
//!
//! A [`Recording`] is a scripted schedule of arrivals and what a real kernel made of it
//! (`vectors/linux-6.12/README.md` has method and format). [`judge`] replays it through the
//! discipline of the same `tc` commands:
//!
//! * where the recording is exact, ours must agree packet by packet: order, drops, marks, code
//!   points, and times within [`TOLERANCE`]; of a discipline that draws random numbers in at least
//!   one of [`SEEDS`] runs;
//! * where it depends on the kernel's random numbers, the means of [`SEEDS`] runs of ours must lie
//!   within the recording's range widened by a tenth: share dropped, share marked, mean delay, for a
//!   discipline that was there long before the first packet or else for one that was just made ([`Age`]);
//! * where it depends on the key of the flow hash alone and shows the run without collisions, more
//!   than half of [`SEEDS`] keys must agree packet by packet.

mod judge;
mod recording;
mod run;

pub use judge::{SEEDS, TOLERANCE, Verdict, judge};
pub use recording::{Kind, Ranges, Recording, RecordingError, Span};
pub use run::{Age, Run, Shares};
