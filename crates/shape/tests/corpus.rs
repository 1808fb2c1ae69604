//! Replays the fuzz target's corpus, so that every build passes what fuzzing once found interesting; and logs in
//! which single numbers are others.

mod exercise;
#[path = "../../../fuzz/replay.rs"]
mod replay;

use std::fs;

use replay::{places, replay};
use serde_json::{Value, json};
use weir_core::{Draw, Rng, Seed};

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

/// Lines that are lost, come twice or in another order, sides that come and go, and bytes that are others.
#[test]
#[allow(clippy::disallowed_methods, reason = "a test that reads a file")]
fn a_log_that_is_damaged_by_chance_is_refused_in_a_sentence_or_replayed() {
    for name in ["auto", "fixed", "cake-autorate", "opened-and-shaped-again"] {
        let file = format!("{}/../../fuzz/corpus/shape_log/{name}", env!("CARGO_MANIFEST_DIR"));
        let text = fs::read_to_string(file).unwrap();
        for round in 0..ROUNDS {
            let mut random = Seed::new(round).stream(name);
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            for _ in 0..=random.below(3) {
                damage(&mut lines, &mut random);
            }
            exercise::log(lines.join("\n").as_bytes());
        }
    }
}

fn damage(lines: &mut Vec<String>, random: &mut Rng) {
    let mut below = |count: usize| random.below(count as u64) as usize;
    let (place, other) = (below(lines.len()), below(lines.len()));
    match below(6) {
        0 if lines.len() > 1 => drop(lines.remove(place)),
        1 => lines.insert(place, lines[other].clone()),
        2 => lines.swap(place, other),
        // A side goes or comes, for one tick or from there on.
        3 => {
            let side = below(2);
            let is_there = below(2) == 0;
            let last = if below(2) == 0 { place } else { lines.len() - 1 };
            for line in &mut lines[place..=last] {
                let Ok(mut read) = serde_json::from_str::<Value>(line) else { continue };
                if let Some(counters) = read.get_mut("tick").and_then(|tick| tick.get_mut(side)) {
                    *counters = if is_there { json!([7, 7, 7]) } else { Value::Null };
                    *line = read.to_string();
                }
            }
        }
        4 => {
            let spans = spans_of_digits(&lines[place]);
            if !spans.is_empty() {
                let (start, end) = spans[below(spans.len())];
                let number = ["0", "1", "99999999", "3153600000000000000", "-1"][below(5)];
                lines[place].replace_range(start..end, number);
            }
        }
        _ => {
            let mut bytes = lines[place].clone().into_bytes();
            if !bytes.is_empty() {
                let at = below(bytes.len());
                bytes[at] = below(256) as u8;
            }
            lines[place] = String::from_utf8_lossy(&bytes).into_owned();
        }
    }
}

const ROUNDS: u64 = 150;

fn spans_of_digits(text: &str) -> Vec<(usize, usize)> {
    let bytes = text.as_bytes();
    let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let starts = (0..bytes.len()).filter(|&at| digit(at) && (at == 0 || !digit(at - 1)));
    starts.map(|at| (at, (at..).find(|&at| !digit(at)).unwrap_or(bytes.len()))).collect()
}
