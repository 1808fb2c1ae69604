//! Exactness and ceilings of the lab: `make bench-lab`.
//!
//! * `idle`: what a ping measures on an idle path of 20 ms, with pings every millisecond;
//! * `rate`: goodput of one download beside what the line should carry;
//! * `ceiling`: four downloads and four uploads at growing rates, with how late packets were;
//! * `one-way`: eight downloads alone, up to 5 Gbit/s;
//! * `beside`: the same load through Weir's queues, the kernel's, and a bare forwarder, in turn, as ratios;
//! * `many`: 50 labs at once beside one alone, as ratios.
//!
//! Endpoints, kernel and data path share this machine. Every measurement is a lab of its own, in a process
//! of its own.

mod beside;
mod many;
mod timers;

use std::collections::BTreeMap;
use std::env;
use std::process::{Command, ExitCode};
use std::sync::Arc;

use beside::Way;
use weir_benches::Case;
use weir_core::{Duration, Seed, Time};
use weir_scenario::{LatencyRow, Sink, ThroughputRow};

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => {
            idle();
            rate();
            ceiling();
            one_way();
            beside::run();
            many::run();
        }
        ["idle"] => idle(),
        ["rate"] => rate(),
        ["ceiling"] => ceiling(),
        ["one-way"] => one_way(),
        ["beside"] => beside::run(),
        ["many"] => many::run(),
        ["--once", "idle"] => print_pings(&measured(&IDLE)),
        ["--once", "rate", mbit] => print_goodput(&rate_case(number(mbit))),
        ["--once", "ceiling", mbit] => print_ceiling(&ceiling_case(number(mbit))),
        ["--once", "one-way", mbit] => print_ceiling(&one_way_case(number(mbit))),
        ["--once", "beside", way, mbit] if Way::named(way).is_some() => {
            beside::print_once(Way::named(way).expect("it was found"), number(mbit));
        }
        ["--once", "many"] => many::print_once(),
        _ => {
            eprintln!(
                "lab: name one of idle, rate, ceiling, one-way, beside, many, or nothing for all"
            );
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}

const IDLE: Case<'static> = Case {
    key: "idle",
    title: "idle path of 20 ms",
    down_flows: 0,
    up_flows: 0,
    congestion_control: "cubic",
    rate_bps: 1_000_000_000_000,
    queue: "pfifo",
    rtt_ms: 20,
    seconds: 30,
    probes: 1,
    period_ns: 1_000_000,
};

fn rate_case(mbit: u64) -> Case<'static> {
    // A second's worth of full packets at most, so that slow lines fill within the run.
    let queue = if mbit < 20 { "pfifo limit 60" } else { "pfifo limit 1000" };
    Case {
        key: "rate",
        title: "one download",
        down_flows: 1,
        rate_bps: mbit * 1_000_000,
        queue,
        seconds: 12,
        probes: 0,
        ..IDLE
    }
}

fn ceiling_case(mbit: u64) -> Case<'static> {
    Case {
        key: "ceiling",
        title: "RRUL",
        down_flows: 4,
        up_flows: 4,
        rate_bps: mbit * 1_000_000,
        queue: "fq_codel",
        seconds: 8,
        probes: 4,
        period_ns: 10_000_000,
        ..IDLE
    }
}

fn one_way_case(mbit: u64) -> Case<'static> {
    Case { title: "downloads", down_flows: 8, up_flows: 0, ..ceiling_case(mbit) }
}

fn idle() {
    println!("idle path of 20 ms, UDP pings every 1 ms for {} s", IDLE.seconds);
    println!("{:>22} {:>8} {:>8} {:>8}", "us", "p50", "p99", "p99.9");
    print!("{}", run_once(&["idle"]));
}

fn rate() {
    println!("goodput of one download, in Mbit/s");
    println!("{:>8} {:>10} {:>10} {:>8}", "line", "should be", "is", "differs");
    for mbit in ["1", "10", "100", "500"] {
        print!("{}", run_once(&["rate", mbit]));
    }
}

fn ceiling() {
    println!("four downloads and four uploads, fq_codel, in Mbit/s");
    at_rates("ceiling", &["100", "200", "300", "500", "700", "1000", "2000"]);
}

fn one_way() {
    println!("eight downloads, fq_codel, in Mbit/s");
    at_rates("one-way", &["1000", "2000", "3000", "4000", "5000"]);
}

fn at_rates(what: &str, rates: &[&str]) {
    println!(
        "{:>8} {:>8} {:>8} {:>9} {:>9} {:>9} {:>6} {:>6}",
        "line", "down", "up", "late p50", "p99 us", "p99.9 us", "cpu %", "lost"
    );
    for mbit in rates {
        print!("{}", run_once(&[what, mbit]));
    }
}

fn run_once(words: &[&str]) -> String {
    let this = env::current_exe().expect("a path to this program");
    let run = Command::new(this).arg("--once").args(words).output().expect("runs itself");
    match run.status.success() {
        true => String::from_utf8(run.stdout).expect("plain figures"),
        false => format!("failed: {}\n", String::from_utf8_lossy(&run.stderr)),
    }
}

/// Results of a run.
struct Measured {
    samples: Samples,
    outcome: weir_lab::Outcome,
}

fn measured(case: &Case<'_>) -> Measured {
    measure(case, &weir_lab::Options::default(), || ()).0
}

/// Runs `case` in a lab in which `start` was called before.
fn measure<T>(
    case: &Case<'_>,
    options: &weir_lab::Options,
    start: impl FnOnce() -> T,
) -> (Measured, T) {
    weir_lab::enter().expect("a machine that allows labs");
    let scenario = Arc::new(case.scenario());
    let mut samples = Samples::default();
    let none = BTreeMap::new();
    let started = start();
    let outcome = weir_lab::run(&scenario, &none, Seed::new(1), options, &mut samples)
        .expect("a run that comes to its end");
    (Measured { samples, outcome }, started)
}

fn print_pings(measured: &Measured) {
    let Measured { samples, outcome } = measured;
    let line = |name: &str, values: [f64; 3]| {
        let [p50, p99, p999] = values;
        println!("{name:>22} {p50:>8.1} {p99:>8.1} {p999:>8.1}");
    };
    let base = Duration::from_millis(IDLE.rtt_ms);
    let over = samples.pings.iter().map(|rtt| rtt.as_nanos() as f64 - base.as_nanos() as f64);
    line("round trip over 20 ms", quantiles(over.collect()));
    line("timer error", quantiles(samples.errors.iter().map(|e| e.as_nanos() as f64).collect()));
    let q = &outcome.quality;
    let late = [q.late_p50_ns, q.late_p99_ns, q.late_p999_ns].map(|ns| ns as f64 / 1e3);
    line("emulator late", late);
}

fn print_goodput(case: &Case<'_>) {
    let measured = measured(case);
    // 1448 bytes of data in packets of 1500.
    let line = case.rate_bps as f64 / 1e6;
    let should = line * 1448.0 / 1500.0;
    let [down, _] = measured.samples.goodput(case, FILLING);
    println!("{line:>8} {should:>10.3} {down:>10.3} {:>6.2} %", (down / should - 1.0) * 100.0);
}

fn print_ceiling(case: &Case<'_>) {
    let measured = measured(case);
    let [down, up] = measured.samples.goodput(case, FILLING);
    let q = &measured.outcome.quality;
    println!(
        "{:>8} {down:>8.1} {up:>8.1} {:>9.1} {:>9.1} {:>9.1} {:>6.0} {:>6}",
        case.rate_bps / 1_000_000,
        q.late_p50_ns as f64 / 1e3,
        q.late_p99_ns as f64 / 1e3,
        q.late_p999_ns as f64 / 1e3,
        q.cpu_percent,
        q.overrun + q.refused
    );
}

/// Keeps what is printed.
#[derive(Default)]
struct Samples {
    pings: Vec<Duration>,
    errors: Vec<Duration>,
    throughput: Vec<ThroughputRow>,
}

impl Samples {
    /// Goodput down and up from `from` to the end, in Mbit/s.
    fn goodput(&self, case: &Case<'_>, from: Time) -> [f64; 2] {
        let seconds = case.seconds as f64 - from.as_secs_f64();
        let sum = |wanted: &dyn Fn(usize) -> bool| {
            let rows =
                self.throughput.iter().filter(|row| row.t > from && wanted(row.flow as usize));
            rows.map(|row| row.bytes).sum::<u64>() as f64 * 8.0 / seconds / 1e6
        };
        let downs = case.down_flows;
        [sum(&|flow| flow < downs), sum(&|flow| flow >= downs)]
    }
}

impl Sink for Samples {
    fn latency(&mut self, row: &LatencyRow) {
        self.pings.extend(row.rtt);
        self.errors.push(row.timer_error);
    }
    fn throughput(&mut self, row: &ThroughputRow) {
        self.throughput.push(*row);
    }
}

/// The median, the 99th and the 99.9th percentile of nanoseconds, in microseconds.
fn quantiles(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    let at = |share: f64| values[((values.len() - 1) as f64 * share) as usize] / 1e3;
    [0.5, 0.99, 0.999].map(at)
}

fn number(text: &str) -> u64 {
    text.parse().expect("a rate in Mbit/s")
}

/// The line is full from here on.
const FILLING: Time = Time::from_millis(4_000);
