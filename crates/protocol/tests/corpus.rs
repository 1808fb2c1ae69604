//! Replays the fuzz targets' corpus, so that every build passes what fuzzing once found interesting.

mod exercise;
#[path = "../../../fuzz/replay.rs"]
mod replay;

use replay::{every_byte, replay};

#[test]
fn datagrams_of_the_corpus_are_answered_or_not_but_never_panic() {
    replay("protocol_datagrams", 10, every_byte, exercise::datagrams);
}

#[test]
fn words_of_the_corpus_mean_something_or_not_but_never_panic() {
    replay("protocol_words", 10, every_byte, exercise::words);
}
