//! Arbitrary bytes as what a client sends over a WebSocket that carries load.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| weir_serve::exercise_frames(data));
