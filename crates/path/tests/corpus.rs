//! Replays the fuzz targets' corpus, so that every build passes what fuzzing once found interesting.
#![allow(clippy::disallowed_methods, reason = "a test that reads files")]

mod exercise;

use std::fs;
use std::path::Path;

#[test]
fn scenarios_of_the_corpus_are_refused_in_a_sentence_or_can_be_built() {
    replay("world_scenario", 3, exercise::scenario);
}

#[test]
fn recordings_of_lines_of_the_corpus_are_refused_in_a_sentence_or_make_a_line() {
    replay("link_trace", 10, exercise::trace);
}

/// Every file of at least `least`, whole and cut short at some places.
fn replay(target: &str, least: usize, run: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let files = fs::read_dir(&folder).expect("the corpus is part of the repository");
    let mut count = 0;
    for file in files {
        let data = fs::read(file.expect("a readable folder").path()).expect("a readable file");
        for end in (0..CUTS).map(|cut| data.len() * cut / CUTS).chain([data.len()]) {
            run(&data[..end]);
        }
        count += 1;
    }
    assert!(count >= least, "only {count} files in {}", folder.display());
}

const CUTS: usize = 20;
