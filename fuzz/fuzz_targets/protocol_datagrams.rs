//! Arbitrary bytes as the datagrams that a server reads.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[allow(dead_code, reason = "shared with the other target and the replay of the corpus")]
#[path = "../../crates/speedtest/tests/exercise/protocol.rs"]
mod exercise;

fuzz_target!(|data: &[u8]| exercise::datagrams(data));
