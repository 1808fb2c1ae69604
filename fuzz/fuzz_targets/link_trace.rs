//! Arbitrary text as a recording of a line.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[allow(dead_code, reason = "shared with the other target and the replay of the corpus")]
#[path = "../../crates/path/tests/exercise/mod.rs"]
mod exercise;

fuzz_target!(|data: &[u8]| exercise::trace(data));
