//! Replays the fuzz targets' corpus, so that every build passes what fuzzing once found interesting.

mod exercise;
#[path = "../../../fuzz/replay.rs"]
mod replay;

use replay::{every_third_byte, replay};

#[test]
fn whatever_a_server_does_no_method_panics() {
    replay("probe_methods", 3, every_third_byte, exercise::methods);
}
