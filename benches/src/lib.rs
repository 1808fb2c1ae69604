//! Cases that several benchmarks share.

mod case;

pub use case::{CASES, Case};
