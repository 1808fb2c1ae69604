//! Arbitrary text as the log of a shaper.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/shape/tests/exercise/mod.rs"]
mod exercise;

fuzz_target!(|data: &[u8]| exercise::log(data));
