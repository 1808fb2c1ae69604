//! Replays the fuzz target's corpus, so that every build passes what fuzzing once found interesting; and logs in
//! which single numbers are others.

mod exercise;
#[path = "../../../fuzz/replay.rs"]
mod replay;

use std::fs;

use replay::{places, replay};

#[test]
fn logs_of_the_corpus_are_refused_in_a_sentence_or_replayed() {
    replay("shape_log", 4, places, exercise::log);
}

#[test]
#[allow(clippy::disallowed_methods, reason = "a test that reads a file")]
fn a_log_with_other_numbers_is_refused_in_a_sentence_or_replayed() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/shape_log/auto");
    let text = fs::read_to_string(file).unwrap();
    let numbers: Vec<_> = spans_of_digits(&text);
    assert!(numbers.len() > 500, "{}", numbers.len());
    for (start, end) in numbers.into_iter().step_by(7) {
        for other in ["0", "1", "1000000000", "3153600000000000000", "18446744073709551615", "-5"] {
            exercise::log([&text[..start], other, &text[end..]].concat().as_bytes());
        }
    }
}

fn spans_of_digits(text: &str) -> Vec<(usize, usize)> {
    let bytes = text.as_bytes();
    let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let starts = (0..bytes.len()).filter(|&at| digit(at) && (at == 0 || !digit(at - 1)));
    starts.map(|at| (at, (at..).find(|&at| !digit(at)).unwrap_or(bytes.len()))).collect()
}
