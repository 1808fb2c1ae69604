//! Replays the corpus of a fuzz target on stable Rust, so that every build passes what fuzzing once found
//! interesting. Tests of the crates take this file in as a module.
#![allow(dead_code, reason = "each crate cuts its files in its own way")]
#![allow(clippy::disallowed_methods, reason = "a test that reads files")]

use std::fs;
use std::path::Path;

/// Gives every file of the corpus of `target` to `run`: whole, and cut short where `ends` says.
///
/// # Panics
/// If there are fewer than `least` files.
pub fn replay(
    target: &str,
    least: usize,
    ends: fn(&[u8]) -> Vec<usize>,
    mut run: impl FnMut(&[u8]),
) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let files = fs::read_dir(&folder).expect("the corpus is part of the repository");
    let mut count = 0;
    for file in files {
        let data = fs::read(file.expect("a readable folder").path()).expect("a readable file");
        for end in ends(&data).into_iter().chain([data.len()]) {
            run(&data[..end]);
        }
        count += 1;
    }
    assert!(count >= least, "only {count} files in {}", folder.display());
}

/// Every byte.
pub fn every_byte(data: &[u8]) -> Vec<usize> {
    (0..data.len()).collect()
}

/// Every third byte, at which an event of a server may begin.
pub fn every_third_byte(data: &[u8]) -> Vec<usize> {
    (0..data.len()).step_by(3).collect()
}

/// Every word, up to a number that is enough for all files but those that are large on purpose.
pub fn words(data: &[u8]) -> Vec<usize> {
    let spaces = data.iter().enumerate().filter(|(_, byte)| **byte == b' ');
    spaces.map(|(at, _)| at).take(MAX_WORDS).collect()
}

/// Some places in the same distance, for files of which each cut takes long.
pub fn places(data: &[u8]) -> Vec<usize> {
    (0..PLACES).map(|cut| data.len() * cut / PLACES).collect()
}

const MAX_WORDS: usize = 200;
const PLACES: usize = 20;
