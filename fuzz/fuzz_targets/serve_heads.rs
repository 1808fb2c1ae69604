//! Arbitrary bytes as the head of a request: its target and its headers.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| weir_serve::exercise_heads(data));
