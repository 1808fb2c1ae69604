//! The lab's data path beside the kernel: the same load through Weir's queues, through the kernel's, and through a bare
//! forwarder, in turn.
//!
//! All three have a thread that asks the kernel for the time (`timers.rs`). How late that thread is while the kernel has
//! queues and lines is what Weir's lateness is held against: an absolute time says as much of the machine as of Weir.

use weir_benches::{Case, median};
use weir_lab::{Datapath, Options};

use crate::timers::TimerWatch;
use crate::{FILLING, IDLE, measure, quantiles, run_once};

/// Who has queues and lines.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Weir's data path.
    Weir,
    /// The kernel's `tbf`; Weir's data path delays the packets by the same 10 ms each way.
    Kernel,
    /// The kernel's `tbf`, too; what is read from one device is written to the other at once.
    Forwarder,
}

impl Way {
    const ALL: [Self; 3] = [Self::Weir, Self::Kernel, Self::Forwarder];

    const fn name(self) -> &'static str {
        match self {
            Self::Weir => "weir",
            Self::Kernel => "kernel",
            Self::Forwarder => "forwarder",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|way| way.name() == name)
    }
}

fn case(way: Way, mbit: u64) -> Case<'static> {
    Case {
        key: "beside",
        title: "four downloads, four uploads",
        down_flows: 4,
        up_flows: 4,
        rate_bps: mbit * 1_000_000,
        // What every kernel has.
        queue: "pfifo limit 1000",
        rtt_ms: if way == Way::Forwarder { 0 } else { 20 },
        seconds: 8,
        probes: 4,
        period_ns: 10_000_000,
        ..IDLE
    }
}

/// Figures of one run: goodput in Mbit/s, lateness in microseconds.
#[derive(Clone, Copy)]
struct Figures {
    down: f64,
    up: f64,
    /// How late the data path handed packets over.
    late: [f64; 3],
    /// How late the kernel woke the thread that asks for the time.
    timer: [f64; 3],
    cpu_percent: f64,
}

/// One run, its figures in a line.
pub fn print_once(way: Way, mbit: u64) {
    let case = case(way, mbit);
    let datapath = if way == Way::Weir { Datapath::Userspace } else { Datapath::Kernel };
    let options = Options { datapath, ..Options::default() };
    let (measured, timer) = measure(&case, &options, TimerWatch::start);
    let [down, up] = measured.samples.goodput(&case, FILLING);
    let timer = quantiles(timer.finish());
    let q = &measured.outcome.quality;
    let late = [q.late_p50_ns, q.late_p99_ns, q.late_p999_ns].map(|ns| ns as f64 / 1e3);
    let numbers = [down, up].into_iter().chain(late).chain(timer).chain([q.cpu_percent]);
    println!("{}", numbers.map(|number| number.to_string()).collect::<Vec<_>>().join(" "));
}

fn figures(way: Way, mbit: u64) -> Result<Figures, String> {
    let said = run_once(&["beside", way.name(), &mbit.to_string()]);
    let numbers: Vec<f64> = said.split_whitespace().map_while(|word| word.parse().ok()).collect();
    let [down, up, l50, l99, l999, t50, t99, t999, cpu_percent] = numbers[..] else {
        return Err(said);
    };
    Ok(Figures { down, up, late: [l50, l99, l999], timer: [t50, t99, t999], cpu_percent })
}

/// The three ways in turn, [`ROUNDS`] times at each rate, and what Weir's lateness is of the kernel's.
pub fn run() {
    println!(
        "\nbeside the kernel: four downloads and four uploads, pfifo, 20 ms, in turn; lateness in us"
    );
    println!(
        "{:>6} {:>10} {:>7} {:>7}  {:>8} {:>8} {:>9}  {:>8} {:>8} {:>9} {:>6}",
        "line",
        "path",
        "down",
        "up",
        "late p50",
        "p99",
        "p99.9",
        "timer p50",
        "p99",
        "p99.9",
        "cpu %"
    );
    for mbit in [100, 300, 500, 1000] {
        let mut all: Vec<[Figures; 3]> = Vec::new();
        for _ in 0..ROUNDS {
            match Way::ALL.map(|way| figures(way, mbit)) {
                [Ok(weir), Ok(kernel), Ok(forwarder)] => all.push([weir, kernel, forwarder]),
                failed => {
                    let whys = failed.into_iter().filter_map(Result::err);
                    println!("{mbit:>6} {}", whys.collect::<Vec<_>>().join(" "));
                }
            }
        }
        if all.is_empty() {
            continue;
        }
        let middles = [0, 1, 2].map(|way| middle(&all.iter().map(|round| round[way])));
        for (way, figures) in Way::ALL.into_iter().zip(middles) {
            print_line(mbit, way, &figures);
        }
        print_ratios(mbit, &all);
    }
}

fn print_line(mbit: u64, way: Way, figures: &Figures) {
    let Figures { down, up, late, timer, cpu_percent } = figures;
    let [l50, l99, l999] = match way {
        // It hands over what it reads: nothing is due at a time.
        Way::Forwarder => ["-"; 3].map(str::to_owned),
        Way::Weir | Way::Kernel => late.map(|us| format!("{us:.1}")),
    };
    let [t50, t99, t999] = timer;
    println!(
        "{mbit:>6} {:>10} {down:>7.1} {up:>7.1}  {l50:>8} {l99:>8} {l999:>9}  {t50:>8.1} {t99:>8.1} {t999:>9.1} {cpu_percent:>6.0}",
        way.name()
    );
}

/// What Weir's lateness is of the kernel's timers' beside the same load: the median of the rounds, and all of them.
fn print_ratios(mbit: u64, all: &[[Figures; 3]]) {
    let shares = ["p50", "p99", "p99.9"].into_iter().enumerate().map(|(at, name)| {
        let mut ratios: Vec<f64> =
            all.iter().map(|[weir, kernel, _]| weir.late[at] / kernel.timer[at]).collect();
        let middle = median(&mut ratios);
        let range = format!("{:.2}-{:.2}", ratios[0], ratios[ratios.len() - 1]);
        let verdict = if middle <= GOAL { "" } else { " (not met)" };
        format!("{name} {middle:.2} ({range}){verdict}")
    });
    println!(
        "{mbit:>6}      ratio  Weir's lateness / the kernel's timers', goal {GOAL}: {}",
        shares.collect::<Vec<_>>().join(", ")
    );
}

/// The median of each figure.
fn middle(all: &(impl Iterator<Item = Figures> + Clone)) -> Figures {
    let of = |one: &dyn Fn(&Figures) -> f64| {
        median(&mut all.clone().map(|figures| one(&figures)).collect::<Vec<_>>())
    };
    Figures {
        down: of(&|one| one.down),
        up: of(&|one| one.up),
        late: [0, 1, 2].map(|at| of(&|one| one.late[at])),
        timer: [0, 1, 2].map(|at| of(&|one| one.timer[at])),
        cpu_percent: of(&|one| one.cpu_percent),
    }
}

const ROUNDS: usize = 3;
/// Weir's lateness is to be at most so many times the kernel's.
const GOAL: f64 = 1.5;
