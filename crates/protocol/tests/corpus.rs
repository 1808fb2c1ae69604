//! Replays the fuzz targets' corpus, so that every build passes what fuzzing once found interesting.
#![allow(clippy::disallowed_methods, reason = "a test that reads files")]

mod exercise;

use std::fs;
use std::path::Path;

#[test]
fn datagrams_of_the_corpus_are_answered_or_not_but_never_panic() {
    replay("protocol_datagrams", exercise::datagrams);
}

#[test]
fn words_of_the_corpus_mean_something_or_not_but_never_panic() {
    replay("protocol_words", exercise::words);
}

/// Every file, and every file cut short at every byte.
fn replay(target: &str, run: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let files = fs::read_dir(&folder).expect("the corpus is part of the repository");
    let mut count = 0;
    for file in files {
        let data = fs::read(file.expect("a readable folder").path()).expect("a readable file");
        for len in 0..=data.len() {
            run(&data[..len]);
        }
        count += 1;
    }
    assert!(count >= 10, "only {count} files in {}", folder.display());
}
