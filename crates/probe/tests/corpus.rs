//! Replays the fuzz target's corpus, so that every build passes what fuzzing once found interesting.
#![allow(clippy::disallowed_methods, reason = "a test that reads files")]

mod exercise;

use std::fs;
use std::path::Path;

#[test]
fn whatever_a_server_does_no_method_panics() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/probe_methods");
    let files = fs::read_dir(&folder).expect("the corpus is part of the repository");
    let mut count = 0;
    for file in files {
        let data = fs::read(file.expect("a readable folder").path()).expect("a readable file");
        // Cut short at every event's place.
        for len in (0..=data.len()).step_by(3) {
            exercise::methods(&data[..len]);
        }
        count += 1;
    }
    assert!(count >= 3, "only {count} files in {}", folder.display());
}
