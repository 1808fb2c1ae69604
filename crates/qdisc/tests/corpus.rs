//! Replays the fuzz targets' corpus, so that every build passes what fuzzing once found interesting.

mod exercise;
#[path = "../../../fuzz/replay.rs"]
mod replay;

use replay::{replay, words};
use weir_qdisc::{DISCIPLINES, MARKERS};

#[test]
fn set_ups_of_the_corpus_are_refused_in_a_sentence_or_keep_their_books() {
    replay("qdisc_tc", 10, words, exercise::spec);
    for example in DISCIPLINES.iter().flat_map(|discipline| discipline.examples) {
        exercise::spec(example.as_bytes());
    }
}

#[test]
fn markers_of_the_corpus_are_refused_in_a_sentence_or_work() {
    replay("qdisc_markers", 10, words, exercise::marker);
    for marker in MARKERS {
        exercise::marker(marker.name.as_bytes());
    }
}
