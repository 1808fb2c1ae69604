//! How measurements of a path proceed, as state machines: what was received and when goes in, what to do
//! next comes out. No sockets, no clock: the same code runs over real sockets and over simulated ones.

mod ramp;

pub use ramp::{Ramp, RampSettings};
