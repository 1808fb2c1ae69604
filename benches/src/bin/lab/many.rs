//! Many labs at once: each is to be as exact as one alone.

use weir_benches::{Case, median};
use weir_lab::Options;

use crate::{FILLING, IDLE, measure, quantiles, run_once};

fn case() -> Case<'static> {
    Case {
        key: "many",
        title: "one download of many labs",
        down_flows: 1,
        rate_bps: 10_000_000,
        queue: "pfifo limit 60",
        seconds: 15,
        probes: 1,
        period_ns: 10_000_000,
        ..IDLE
    }
}

/// One lab, its figures in a line: goodput in Mbit/s, lateness and round trips in microseconds.
pub fn print_once() {
    let case = case();
    let (measured, ()) = measure(&case, &Options::default(), || ());
    let [down, _] = measured.samples.goodput(&case, FILLING);
    let q = &measured.outcome.quality;
    let late = [q.late_p50_ns, q.late_p99_ns, q.late_p999_ns].map(|ns| ns as f64 / 1e3);
    let pings = measured.samples.pings.iter().map(|rtt| rtt.as_nanos() as f64);
    let [rtt, ..] = quantiles(pings.collect());
    let lost = (q.overrun + q.refused) as f64;
    let numbers = [down].into_iter().chain(late).chain([rtt, q.cpu_percent, lost]);
    println!("{}", numbers.map(|number| number.to_string()).collect::<Vec<_>>().join(" "));
}

/// One lab alone, then many at once.
pub fn run() {
    println!(
        "\nlabs of 10 Mbit/s, a download and a ping every 10 ms each; lateness and round trip in us"
    );
    println!(
        "{:>16} {:>8} {:>9} {:>9} {:>9} {:>9} {:>6} {:>6}",
        "labs", "Mbit/s", "late p50", "p99", "p99.9", "rtt p50", "cpu %", "lost"
    );
    let Some(alone) = figures(1).pop() else { return };
    print_line("1", &alone);
    for count in [10, LABS] {
        let all = figures(count);
        if all.len() < count {
            println!("{count:>16} only {} of them came to their end", all.len());
            continue;
        }
        let of = |pick: fn(&mut [f64]) -> f64| -> Vec<f64> {
            (0..alone.len())
                .map(|at| pick(&mut all.iter().map(|one| one[at]).collect::<Vec<_>>()))
                .collect()
        };
        let (middle, least, most) = (of(median), of(least), of(most));
        print_line(&format!("{count}: median"), &middle);
        let worst: Vec<f64> = [least[0]].into_iter().chain(most[1..].iter().copied()).collect();
        print_line(&format!("{count}: worst"), &worst);
        print_ratios(count, "median", &middle, &alone);
        print_ratios(count, "worst", &worst, &alone);
    }
}

/// The figures of `count` labs that run at once.
fn figures(count: usize) -> Vec<Vec<f64>> {
    let said: Vec<String> = std::thread::scope(|scope| {
        let labs: Vec<_> = (0..count).map(|_| scope.spawn(|| run_once(&["many"]))).collect();
        labs.into_iter().map(|lab| lab.join().expect("waiting does not fail")).collect()
    });
    let read = |line: &String| -> Option<Vec<f64>> {
        let numbers: Option<Vec<f64>> =
            line.split_whitespace().map(|word| word.parse().ok()).collect();
        if numbers.is_none() {
            print!("{line}");
        }
        numbers
    };
    said.iter().filter_map(read).collect()
}

fn print_line(labs: &str, figures: &[f64]) {
    let [down, p50, p99, p999, rtt, cpu, lost] = figures[..] else { return };
    println!(
        "{labs:>16} {down:>8.3} {p50:>9.1} {p99:>9.1} {p999:>9.1} {rtt:>9.0} {cpu:>6.1} {lost:>6.0}"
    );
}

fn print_ratios(count: usize, which: &str, figures: &[f64], alone: &[f64]) {
    let names = ["goodput", "late p50", "p99", "p99.9", "rtt p50"];
    let ratios = names.iter().zip(figures.iter().zip(alone));
    let said: Vec<String> =
        ratios.map(|(name, (many, one))| format!("{name} {:.3}", many / one)).collect();
    println!("{count:>16} {which} / alone: {}", said.join(", "));
}

fn least(values: &mut [f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

fn most(values: &mut [f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

const LABS: usize = 50;
