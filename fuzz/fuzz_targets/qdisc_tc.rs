//! Arbitrary text as a queue spec in `tc` syntax.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[allow(dead_code, reason = "shared with the other target and the replay of the corpus")]
#[path = "../../crates/qdisc/tests/exercise/mod.rs"]
mod exercise;

fuzz_target!(|data: &[u8]| exercise::spec(data));
