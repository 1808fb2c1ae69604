//! Every parameter with values at the ends of its kind: it is refused in a sentence, or works.

mod exercise;

use weir_qdisc::{DISCIPLINES, MARKERS, Param, ParamKind};

#[test]
fn disciplines_stand_extreme_values_or_refuse_them() {
    for discipline in DISCIPLINES {
        let example = discipline.examples.iter().find(|text| text.starts_with(discipline.name));
        let base = example.unwrap_or(&discipline.name);
        for param in discipline.params.iter().chain(discipline.class_params) {
            for words in extremes(param) {
                exercise::spec(format!("{base} {words}").as_bytes());
            }
        }
    }
}

#[test]
fn a_cake_of_a_fast_line_and_a_long_round_trip_has_a_limit_of_memory() {
    exercise::spec(b"cake bandwidth 100gbit rtt 4294s");
}

#[test]
fn markers_stand_extreme_values_or_refuse_them() {
    for marker in MARKERS {
        for param in marker.params {
            for words in extremes(param) {
                exercise::marker(format!("{} {words}", marker.examples[0]).as_bytes());
            }
        }
    }
}

/// The parameter with its name before it, if it has one, and each value.
fn extremes(param: &Param) -> Vec<String> {
    match param.kind {
        ParamKind::Word(words) => words.iter().map(|&word| word.to_owned()).collect(),
        ParamKind::Switch { .. } => vec![param.name.to_owned()],
        _ => VALUES.iter().map(|value| format!("{} {value}", param.name)).collect(),
    }
}

/// Ends of all kinds, and of what several words can say.
const VALUES: [&str; 22] = [
    "0",
    "1",
    "255",
    "65535",
    "4294967295",
    "18446744073709551615",
    "-64",
    "0ns",
    "1ns",
    "9000000000s",
    "8bit",
    "34gbit",
    "1b",
    "4000000000b",
    "100%",
    "0.0000001",
    // `slot`
    "20ms 5ms",
    "0s 6s",
    "0s 9000000000s",
    // `rate` of netem
    "8bit 0 1 2147483647",
    "8bit 2147483647 1 -2147483648",
    "9000000000s 9000000000s 100%",
];
