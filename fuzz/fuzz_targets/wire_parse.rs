//! Everything that can be done with arbitrary bytes as a packet, or as a virtio header and a packet.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[allow(dead_code, reason = "shared with the other target and the replay of the corpus")]
#[path = "../../crates/packet/tests/exercise/mod.rs"]
mod exercise;

fuzz_target!(|data: &[u8]| exercise::parsing(data));
