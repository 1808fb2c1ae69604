//! Joining of segments that follow an arbitrary first one more or less well, and cutting them again.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[allow(dead_code, reason = "shared with the other target and the replay of the corpus")]
#[path = "../../crates/packet/tests/exercise/mod.rs"]
mod exercise;

fuzz_target!(|data: &[u8]| exercise::joining(data));
