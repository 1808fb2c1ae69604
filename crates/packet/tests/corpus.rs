//! Replays the fuzz targets' corpus, so that every build passes what fuzzing once found interesting.

mod exercise;
#[path = "../../../fuzz/replay.rs"]
mod replay;

use replay::{every_byte, replay};

#[test]
fn packets_of_the_corpus_parse_or_do_not_but_never_panic() {
    replay("wire_parse", 10, every_byte, exercise::parsing);
}

#[test]
fn segments_of_the_corpus_join_and_are_cut_the_same() {
    replay("wire_join", 10, every_byte, exercise::joining);
}
