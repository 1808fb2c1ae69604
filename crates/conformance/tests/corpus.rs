//! Replays the fuzz targets' corpus, so that every build passes what fuzzing once found interesting.

mod exercise;
#[path = "../../../fuzz/replay.rs"]
mod replay;

use replay::{places, replay};

#[test]
fn recordings_of_the_corpus_are_refused_in_a_sentence_or_judged() {
    replay("conformance_recording", 3, places, exercise::recording);
}
