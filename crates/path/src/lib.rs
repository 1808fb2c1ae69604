//! The path of a scenario at work: hops, lines and ways, driven by whoever owns the clock.
//!
//! The simulator and the live data path run this same code: one takes each event as soon as the one before
//! it is done, the other when its time has come. [`Path`] takes packets in with [`Path::send`] and gives
//! those that arrived with [`Path::next_arrived`]; what packets carry is up to its [`Traffic`].
//!
//! A [`Line`] carries one packet after another: it says when the next may start and when it has left.
//! A [`Flight`] is what lies between leaving one end and reaching the other: propagation delay, jitter,
//! loss, reordering and duplicates. Neither knows a clock or a queue.

mod airtime;
mod build;
mod delay_line;
mod drops;
mod events;
mod flight;
mod forwarding;
mod grants;
mod hop;
mod line;
mod line_changes;
mod loss;
mod path;
mod reconfiguration;
mod sampler;
mod trace;
mod written;

pub use build::{check, device, marker_that_needs_window};
pub use drops::FlowDrops;
pub use events::{Events, Source};
pub use flight::{Arrivals, Flight};
pub use hop::{CapturePoint, Hop, HopPlace};
pub use line::{Capacity, Line};
pub use loss::Loss;
pub use path::{ArrivalPoint, Path, Traffic, Upcoming};
pub use reconfiguration::path_shares;
pub use sampler::QueueSampler;
pub use trace::{Trace, TraceError};
pub use weir_core::End;
pub use written::word_faults;
