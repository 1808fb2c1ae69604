//! How measurements of a path proceed, as state machines: what was received and when goes in, what to do
//! next comes out. No sockets, no clock: the same code runs over real sockets and over simulated ones.
//!
//! [`Ramp`] fills a line. A [`Method`] is a foreign speed test as its official client runs it: [`ndt7`],
//! [`cloudflare`], [`librespeed`], [`ookla`], [`responsiveness`]; [`METHODS`] lists them by name; [`web`] is
//! for servers that are none of these. [`bufferbloat`] grades what latency does under load.
//! What client and server say to each other is in [`protocol`]; beside it is who asks for what, when, and what is
//! computed from it.

pub mod bufferbloat;
pub mod cloudflare;
pub mod figures;
pub mod librespeed;
mod loss;
mod method;
mod method_info;
pub mod ndt7;
pub mod ookla;
pub mod protocol;
mod ramp;
mod registry;
pub mod responsiveness;
mod result;
#[cfg(test)]
mod script;
mod streams;
pub mod web;

pub use method::{Action, Connection, Event, Id, Method, News};
pub use method_info::{Caution, KnownBy, MethodInfo};
pub use ramp::{Ramp, RampSettings};
pub use registry::{METHODS, UnknownMethod};
pub use result::{Field, Object, ValueType};
