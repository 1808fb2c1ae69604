//! Arbitrary text as a test file.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[allow(dead_code, reason = "shared with the other targets and the replay of the corpus")]
#[path = "../../crates/scenario/tests/exercise/mod.rs"]
mod exercise;

fuzz_target!(|data: &[u8]| exercise::test(data));
