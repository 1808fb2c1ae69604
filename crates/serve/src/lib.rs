//! The server: Weir's own protocol and those of the speed tests.
//!
//! On one TCP port it speaks HTTP/1, HTTP/2, TLS and Ookla's protocol, told apart by the first bytes, and
//! on the UDP port of the same number Weir's echo; irtt has a port of its own. [`serve`] is the whole
//! program, for the command `weir serve` and for `weir-agent serve`; [`Server`] is the server alone.
//!
//! | thread | does |
//! |---|---|
//! | Tokio's workers | all that is TCP |
//! | `datagrams` | answers datagrams, undisturbed by TCP loads; takes those of UDP loads |
//! | `UDP loads` | sends the packets of UDP loads |
//! | `log` | writes the log, so that nothing waits for standard error |

mod activity;
mod admission;
mod congestion;
mod connection;
mod data;
mod datagrams;
mod error;
mod frames;
mod head;
mod health;
mod http;
mod irtt;
mod log;
mod metrics;
mod ndt7;
mod ookla;
mod options;
mod pace;
mod page;
mod program;
mod refusals;
mod refuse;
#[cfg(test)]
#[path = "../../../fuzz/replay.rs"]
mod replay;
mod requests;
mod route;
mod senders;
mod server;
mod service;
mod shared;
mod speech;
mod stream_test;
mod throughput1;
mod tls;
mod upgrade;
mod weir;

pub use error::ServeError;
#[cfg(fuzzing)]
pub use frames::exercise as exercise_frames;
#[cfg(fuzzing)]
pub use head::exercise as exercise_heads;
pub use options::{Listen, Options, PublicUrl};
pub use program::{Failure, Running, serve};
pub use server::{Server, Stop};
pub use service::{Own, Service};
