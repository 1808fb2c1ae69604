//! Every parameter with values at the ends of its kind: it is refused in a sentence, or works.

mod exercise;

use weir_qdisc::{DISCIPLINES, Device, MARKERS, Param, ParamKind, QueueSpec};

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
fn long_times_and_slow_and_fast_rates_stand_hours_of_packets() {
    for discipline in DISCIPLINES {
        let example = discipline.examples.iter().find(|text| text.starts_with(discipline.name));
        let base = example.unwrap_or(&discipline.name);
        for param in discipline.params.iter().chain(discipline.class_params) {
            if matches!(param.kind, ParamKind::Time | ParamKind::Rate | ParamKind::Words { .. }) {
                for value in SLOW_VALUES {
                    exercise::slow_spec(format!("{base} {} {value}", param.name).as_bytes());
                }
            }
        }
    }
    for codel in ["codel limit 100", "fq_codel limit 100"] {
        for interval in ["4294967295us", "4399s"] {
            exercise::slow_spec(format!("{codel} target 1ms interval {interval} noecn").as_bytes());
            exercise::slow_spec(format!("{codel} target 1ms interval {interval} ecn").as_bytes());
        }
    }
}

#[test]
fn a_time_is_no_longer_than_tc_can_hand_over() {
    let built = |spec: &str| {
        let spec = QueueSpec::parse(spec).unwrap();
        spec.build(&Device::default()).map(drop).map_err(|error| error.to_string())
    };
    for (spec, most, beyond, allowed) in [
        ("codel interval", "4294967295us", "4294967296us", "4294s"),
        ("fq_codel target", "4294967295us", "4295s", "4294s"),
        ("pie tupdate", "4294967295us", "4295s", "4294s"),
        ("fq horizon", "4294967295us", "4295s", "4294s"),
        ("fq timer_slack", "4294967295ns", "4294967296ns", "4294ms"),
        ("dualpi2 max_rtt", "1s", "4294967296us", "4294s"),
        ("dualpi2 step_thresh", "4294967295us", "4294967296us", "4294s"),
    ] {
        assert_eq!(built(&format!("{spec} {most}")), Ok(()));
        let (name, param) = spec.split_once(' ').unwrap();
        let refused = format!("{name}: `{param} {beyond}`: write a time up to {allowed}");
        assert_eq!(built(&format!("{spec} {beyond}")), Err(refused));
    }
}

#[test]
fn sums_of_times_and_what_leaves_meanwhile_stay_in_bounds() {
    for spec in [
        "netem delay 1000000s 1000000s 100% distribution pareto slot 1000000s 1000000s",
        "netem slot distribution pareto 1000000s 1000000s netem delay 1000000s rate 8bit",
        "netem delay 1000000s rate 8bit 2147483647 1 2147483647",
        "netem rate 8bit 2147483647 1 2147483647 netem rate 8bit 2147483647 1 2147483647",
        "tbf rate 1mbit burst 4000000000b latency 1s",
    ] {
        let built =
            QueueSpec::parse(spec).and_then(|spec| spec.build(&Device::default()).map(drop));
        assert!(built.is_ok() || spec.starts_with("tbf"), "{spec}: {built:?}");
        exercise::spec(spec.as_bytes());
        exercise::slow_spec(spec.as_bytes());
    }
    for (spec, says) in [
        ("netem delay 1000001s", "netem: `delay 1000001s`: write times up to 1000000s"),
        ("netem delay 1s 1000001s", "netem: `delay 1s 1000001s`: write times up to 1000000s"),
        ("netem slot 9223372036s", "netem: `slot 9223372036s`: write times up to 1000000s"),
        (
            "tbf rate 9223372tbit burst 2000 latency 4294s",
            "tbf: `latency 4294s`: what leaves at 9223372000Gbit meanwhile is no `limit` below 4gb: write a \
             shorter time",
        ),
    ] {
        let built = QueueSpec::parse(spec).unwrap().build(&Device::default()).map(drop);
        assert_eq!(built.map_err(|error| error.to_string()), Err(says.to_owned()));
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
const VALUES: [&str; 25] = [
    "0",
    "1",
    "255",
    "65535",
    "4294967295",
    "18446744073709551615",
    "-64",
    "0ns",
    "1ns",
    "4294967295us",
    "5000s",
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
    "1000000s 1000000s",
];

/// Ends of times and rates.
const SLOW_VALUES: [&str; 6] =
    ["4294967295us", "1000000s", "8bit", "34gbit", "9000000tbit", "1000000s 1000000s 100%"];
