//! The simulator: a deterministic event loop over Weir's queues, lines and TCP.
//!
//! [`Simulation::new`] takes a resolved scenario, the recordings that it names and a seed;
//! [`Simulation::run`] streams samples into a sink. The same scenario and seed give the same samples, bit
//! for bit, on any machine: time is integer nanoseconds, ties are broken by the number of the source, and
//! every random choice draws from a stream of its own.

mod application;
mod capture;
mod check;
mod connection;
mod encapsulation;
mod huge_pages;
mod load;
mod method;
mod packet_store;
mod pair;
mod passive;
mod probes;
mod profiles;
mod rows;
mod run;
mod sampler;
mod shaper;
mod slab;
mod sources;
mod udp;

pub use capture::PacketTap;
pub use check::{SimError, check};
pub use run::{Outcome, Simulation};
