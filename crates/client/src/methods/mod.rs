//! Foreign speed tests over real sockets: the state machines of the crate `probe`, driven.
//!
//! One thread with a runtime of its own. Each connection and request is a task that tells what happens; the
//! method hears of it in order of time and says what to do next.

mod address;
mod drive;
mod http;
mod lines;
mod transport;
mod trust;
mod websocket;

pub use address::Url;
pub use drive::{MethodRequest, run_method};
