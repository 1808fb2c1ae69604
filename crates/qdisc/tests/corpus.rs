//! Replays the fuzz targets' corpus, so that every build passes what fuzzing once found interesting.
#![allow(clippy::disallowed_methods, reason = "a test that reads files")]

mod exercise;

use std::fs;
use std::path::Path;

use weir_qdisc::{DISCIPLINES, MARKERS};

#[test]
fn set_ups_of_the_corpus_are_refused_in_a_sentence_or_keep_their_books() {
    replay("qdisc_tc", exercise::set_up);
    for example in DISCIPLINES.iter().flat_map(|discipline| discipline.examples) {
        exercise::set_up(example.as_bytes());
    }
}

#[test]
fn markers_of_the_corpus_are_refused_in_a_sentence_or_work() {
    replay("qdisc_markers", exercise::marker);
    for marker in MARKERS {
        exercise::marker(marker.name.as_bytes());
    }
}

/// Every file, and every file cut short at every word.
fn replay(target: &str, run: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let files = fs::read_dir(&folder).expect("the corpus is part of the repository");
    let mut count = 0;
    for file in files {
        let data = fs::read(file.expect("a readable folder").path()).expect("a readable file");
        let ends = data.iter().enumerate().filter(|(_, byte)| **byte == b' ').map(|(at, _)| at);
        for end in ends.take(MAX_CUTS).chain([data.len()]) {
            run(&data[..end]);
        }
        count += 1;
    }
    assert!(count >= 10, "only {count} files in {}", folder.display());
}

/// Words of a file at which it is cut: enough for all but those that are large on purpose.
const MAX_CUTS: usize = 200;
