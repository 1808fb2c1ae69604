//! What the benchmarks share.

mod set_up;

pub use set_up::SetUp;
