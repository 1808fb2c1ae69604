//! Instructions and cache misses per packet of the simulator: `make bench-instructions`.
//!
//! What else the machine does changes neither. Each case runs twice under callgrind, once a little longer, and the
//! difference of the two is divided by the packets that the longer run carries more: what sets a run up is not in it.
//! The caches are those of the model below, whatever the machine has.
//!
//! Printed beside each figure is its ratio to the one recorded in docs/performance.md, which is that of the last
//! release.

use std::collections::BTreeMap;
use std::env;
use std::process::{Command, ExitCode};

use weir_benches::Case;
use weir_core::{Seed, Time};
use weir_scenario::Sink;
use weir_sim::Simulation;

/// A case, and the simulated time of its two runs.
const SPANS: [(&str, [u64; 2]); 4] =
    [("a", [3_000, 6_000]), ("b", [1_000, 2_000]), ("c", [200, 300]), ("d", [120, 150])];

/// Instructions, and misses of data in the first and the last level of caches.
type Figures = [f64; 3];

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--once", key, milliseconds] => {
            let milliseconds = milliseconds.parse().expect("a time in milliseconds");
            println!("{}", packets(key, milliseconds));
        }
        [] => compare(&SPANS.map(|(key, _)| key)),
        ref keys if keys.iter().all(|key| SPANS.iter().any(|(known, _)| known == key)) => {
            compare(keys);
        }
        _ => return usage(),
    }
    ExitCode::SUCCESS
}

fn usage() -> ExitCode {
    eprintln!("instructions: name some of a, b, c, d, or nothing for all");
    ExitCode::from(2)
}

/// Counts each case and prints it beside what is recorded.
fn compare(keys: &[&str]) {
    let page = std::fs::read_to_string(PAGE).expect("the page with what is recorded");
    let recorded = recorded(&page);
    println!(
        "per packet that left the two bottleneck queues, and in brackets the ratio to what is recorded"
    );
    println!("| case | instructions | first-level misses | last-level misses |");
    println!("| --- | ---: | ---: | ---: |");
    for key in keys {
        let figures = measured(key);
        let before = recorded.get(*key);
        let cells: Vec<String> = figures
            .iter()
            .enumerate()
            .map(|(at, figure)| match before.map(|before| before[at]) {
                Some(before) if before > 0.0 => {
                    format!("{figure:.*} ({:.3})", DIGITS[at], figure / before)
                }
                _ => format!("{figure:.*}", DIGITS[at]),
            })
            .collect();
        println!("| {key} | {} |", cells.join(" | "));
    }
}

/// Figures of the case of that name.
fn measured(key: &str) -> Figures {
    let (_, spans) = SPANS.iter().find(|(known, _)| *known == key).expect("a known case");
    let [(less, packets), (more, more_packets)] = spans.map(|span| counted(key, span));
    std::array::from_fn(|at| (more[at] - less[at]) / (more_packets - packets))
}

/// One run under callgrind: what it counted, and the packets that the run carried.
fn counted(key: &str, milliseconds: u64) -> (Figures, f64) {
    let this = env::current_exe().expect("a path to this program");
    let out = env::temp_dir().join(format!("weir-instructions-{}-{key}", std::process::id()));
    let run = Command::new("valgrind")
        .args(["--tool=callgrind", "--cache-sim=yes", "--I1=32768,8,64", "--D1=32768,8,64"])
        .args(["--LL=8388608,16,64", "--dump-instr=no"])
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(this)
        .args(["--once", key, &milliseconds.to_string()])
        .output()
        .unwrap_or_else(|error| {
            eprintln!("instructions: valgrind cannot be run ({error}): apt install valgrind");
            std::process::exit(2);
        });
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let packets = String::from_utf8_lossy(&run.stdout).trim().parse().expect("a count of packets");
    let text = std::fs::read_to_string(&out).expect("what callgrind wrote");
    std::fs::remove_file(&out).expect("it goes away");
    (totals(&text), packets)
}

/// The totals in what callgrind wrote; misses are those of reads and of writes.
fn totals(text: &str) -> Figures {
    let words = |key: &str| {
        let line =
            text.lines().find_map(|line| line.strip_prefix(key)).expect("a line of callgrind");
        line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    let by_name: BTreeMap<String, f64> = words("events:")
        .into_iter()
        .zip(words("totals:").iter().map(|word| word.parse().expect("a count")))
        .collect();
    [by_name["Ir"], by_name["D1mr"] + by_name["D1mw"], by_name["DLmr"] + by_name["DLmw"]]
}

/// Runs a case so far, keeping no row, and returns the packets that left the queues.
fn packets(key: &str, milliseconds: u64) -> u64 {
    let case = Case::named(key).expect("a known case");
    let scenario = case.scenario();
    let mut simulation =
        Simulation::new(&scenario, &BTreeMap::new(), Seed::new(1)).expect("a sound scenario");
    let _ = simulation.advance(Time::from_millis(milliseconds), &mut Nothing);
    simulation.finish(&mut Nothing).packets
}

/// What is recorded, by case: the rows between the two marks in `page`.
fn recorded(page: &str) -> BTreeMap<&str, Figures> {
    let (_, from) = page.split_once("<!-- instructions -->").expect("the mark in the page");
    let (table, _) = from.split_once("<!-- end -->").expect("the end of what is marked");
    let rows = table.lines().filter_map(|line| {
        let mut cells = line.split('|').map(str::trim).skip(1);
        let key = cells.next()?;
        // Behind the figure may stand what it was a ratio to.
        let figures = cells.filter_map(|cell| cell.split(' ').next()?.parse().ok());
        Some((key, figures.collect::<Vec<f64>>().try_into().ok()?))
    });
    rows.collect()
}

/// Keeps no row.
struct Nothing;

impl Sink for Nothing {}

/// Where the figures are recorded.
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/performance.md");

/// Digits that are printed of each figure behind the point.
const DIGITS: [usize; 3] = [0, 2, 3];
