//! Arbitrary text as a recording of a queue discipline.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/conformance/tests/exercise/mod.rs"]
mod exercise;

fuzz_target!(|data: &[u8]| exercise::recording(data));
