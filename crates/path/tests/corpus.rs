//! Replays the fuzz targets' corpus, so that every build passes what fuzzing once found interesting.

mod exercise;
#[path = "../../../fuzz/replay.rs"]
mod replay;

use replay::{places, replay};

#[test]
fn scenarios_of_the_corpus_are_refused_in_a_sentence_or_can_be_built() {
    replay("world_scenario", 3, places, exercise::scenario);
}

#[test]
fn recordings_of_lines_of_the_corpus_are_refused_in_a_sentence_or_make_a_line() {
    replay("link_trace", 10, places, exercise::trace);
}
