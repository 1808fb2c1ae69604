//! Arbitrary bytes as messages, commands, paths and parameters of URLs.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[allow(dead_code, reason = "shared with the other target and the replay of the corpus")]
#[path = "../../crates/speedtest/tests/exercise/protocol.rs"]
mod exercise;

fuzz_target!(|data: &[u8]| exercise::words(data));
