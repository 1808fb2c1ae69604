//! Speed and memory of the simulator: `make bench`.
//!
//! Four cases, each run several times in a process of its own, with all probes and samples
//! written to a record as in any other run. Printed are medians: bottleneck packets and events per
//! second of wall time, and the peak memory of the process.
//!
//! Absolute figures hold for one machine at one hour; compare ratios of one call.

use std::collections::BTreeMap;
use std::env;
use std::ops::ControlFlow;
use std::process::{Command, ExitCode};
use std::time::Instant;

use weir_benches::{CASES, Case, median};
use weir_core::Seed;
use weir_record::Recorder;
use weir_sim::Simulation;

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => time_all(&CASES.each_ref().map(|case| case.key)),
        ["--once", key] => once(key),
        ref keys if keys.iter().all(|key| Case::named(key).is_some()) => time_all(keys),
        _ => {
            eprintln!("simulator: name some of a, b, c, d, or nothing for all");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}

/// Times each case in turn, round by round, so that a change of the machine's speed meets all.
fn time_all(keys: &[&str]) {
    let this = env::current_exe().expect("a path to this program");
    let mut figures: BTreeMap<&str, Vec<[f64; 3]>> = BTreeMap::new();
    for _ in 0..ROUNDS {
        for key in keys {
            let run = Command::new(&this).args(["--once", key]).output().expect("runs itself");
            let text = String::from_utf8(run.stdout).expect("plain figures");
            let numbers: Vec<f64> = text.split_whitespace().flat_map(str::parse).collect();
            let numbers = numbers.try_into().expect("three figures");
            figures.entry(*key).or_default().push(numbers);
        }
    }
    println!("medians of {ROUNDS} runs; packets are those that left the two bottleneck queues");
    println!("{:>10} {:>10} {:>9} {:>8}", "packets/s", "events/s", "ns/packet", "peak MB");
    for (key, runs) in figures {
        let [packets, events, memory] = [0, 1, 2]
            .map(|column| median(&mut runs.iter().map(|run| run[column]).collect::<Vec<_>>()));
        let title = Case::named(key).expect("a known key").title;
        println!(
            "{:>8.2} M {:>8.2} M {:>9.0} {:>8.0}  {key}: {title}",
            packets / 1e6,
            events / 1e6,
            1e9 / packets,
            memory / 1e6
        );
    }
}

/// One run: prints packets and events per second, and the peak memory in bytes.
fn once(key: &str) {
    let case = Case::named(key).expect("a known key");
    let scenario = case.scenario();
    let folder = env::temp_dir().join(format!("weir-bench-{}-{key}", std::process::id()));
    let simulation = Simulation::new(&scenario, &BTreeMap::new(), Seed::new(1)).expect("sound");
    let started = Instant::now();
    let mut recorder = Recorder::create(&folder, "{}", |_| ControlFlow::Continue(()))
        .expect("a folder for the record");
    let outcome = simulation.run(&mut recorder);
    recorder.finish(true, serde_json::Map::new()).expect("room for the record");
    let seconds = started.elapsed().as_secs_f64();
    std::fs::remove_dir_all(&folder).expect("the record goes away");
    println!(
        "{} {} {}",
        outcome.packets as f64 / seconds,
        outcome.events as f64 / seconds,
        peak_memory()
    );
}

/// The largest resident set of this process so far, in bytes (`VmHWM`).
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("VmHWM");
    let kib: u64 = line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).expect("a number");
    kib * 1024
}

/// Enough for a median that one slow run does not move.
const ROUNDS: usize = 5;
