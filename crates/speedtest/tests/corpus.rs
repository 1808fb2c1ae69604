//! Replays the fuzz targets' corpora, so that every build passes what fuzzing once found interesting.

#[path = "exercise/methods.rs"]
mod methods;
#[path = "exercise/protocol.rs"]
mod protocol;
#[path = "../../../fuzz/replay.rs"]
mod replay;

use replay::{every_byte, every_third_byte, replay};

#[test]
fn whatever_a_server_does_no_method_panics() {
    replay("probe_methods", 3, every_third_byte, methods::methods);
}

#[test]
fn datagrams_of_the_corpus_are_answered_or_not_but_never_panic() {
    replay("protocol_datagrams", 10, every_byte, protocol::datagrams);
}

#[test]
fn words_of_the_corpus_mean_something_or_not_but_never_panic() {
    replay("protocol_words", 10, every_byte, protocol::words);
}
