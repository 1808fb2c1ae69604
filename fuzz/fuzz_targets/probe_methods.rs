//! Arbitrary bytes as what a server does to a speed test of ours.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/probe/tests/exercise/mod.rs"]
mod exercise;

fuzz_target!(|data: &[u8]| exercise::methods(data));
