//! Replays the fuzz targets' corpus, so that every build passes what fuzzing once found interesting.

mod exercise;
#[path = "../../../fuzz/replay.rs"]
mod replay;

use replay::{places, replay};

#[test]
fn scenarios_of_the_corpus_are_refused_in_a_sentence_or_resolved() {
    replay("scenario_toml", 3, places, exercise::scenario);
}

#[test]
fn tests_of_the_corpus_are_refused_in_a_sentence_or_read() {
    replay("test_toml", 3, places, exercise::test);
}

#[test]
fn links_of_the_corpus_are_refused_in_a_sentence_or_read() {
    replay("link_toml", 3, places, exercise::link);
}
