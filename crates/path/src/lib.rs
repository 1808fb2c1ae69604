//! The path of a scenario at work: hops, lines and ways, driven by whoever owns the clock.
//!
//! The simulator and the live data path run this same code: one takes each event as soon as the one before
//! it is done, the other when its time has come. [`Path`] takes packets in with [`Path::send`] and gives
//! those that arrived with [`Path::next_arrived`]; what packets carry is up to its [`Traffic`].

mod events;
mod path;
mod sampler;

pub use events::{Events, Source};
pub use path::{End, Hop, Path, Place, Traffic};
pub use sampler::QueueSampler;
