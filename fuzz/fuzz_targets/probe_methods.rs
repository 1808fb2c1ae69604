//! Arbitrary bytes as what a server does to a speed test of ours.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/speedtest/tests/exercise/methods.rs"]
mod exercise;

fuzz_target!(|data: &[u8]| exercise::methods(data));
