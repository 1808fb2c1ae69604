//! The simulator beside htsim, the same dumbbells in turn: `make bench-peers`.
//!
//! Every run is a process of its own. Counted are data packets that left the bottleneck, by second of processor
//! time of the loop of events. Absolute figures hold for one machine at one hour; compare the ratios.

use std::collections::BTreeMap;
use std::env;
use std::ops::ControlFlow;
use std::process::{Command, ExitCode};

use weir_benches::{Case, median};
use weir_core::Seed;
use weir_record::Recorder;
use weir_scenario::{QueueRow, Sampling, Scenario, Sink};
use weir_sim::Simulation;
use weir_sockets::sys::time::process_cpu_ns;

/// A dumbbell in both simulators.
struct Dumbbell {
    /// Name on the command line.
    key: &'static str,
    /// Loads down.
    flows: usize,
    /// Rate of the line in each direction, in Mbit/s.
    rate_mbit: u64,
    /// Round trip of the line.
    rtt_ms: u64,
    /// Packets that the bottleneck holds.
    buffer_packets: u32,
    /// Simulated seconds.
    seconds: u64,
}

const DUMBBELLS: [Dumbbell; 3] = [
    Dumbbell { key: "8", flows: 8, rate_mbit: 100, rtt_ms: 20, buffer_packets: 167, seconds: 60 },
    Dumbbell {
        key: "100",
        flows: 100,
        rate_mbit: 1000,
        rtt_ms: 20,
        buffer_packets: 1667,
        seconds: 10,
    },
    Dumbbell {
        key: "10000",
        flows: 10_000,
        rate_mbit: 10_000,
        rtt_ms: 20,
        buffer_packets: 16_667,
        seconds: 2,
    },
];

/// What Weir's side of a comparison does.
#[derive(Clone, Copy)]
enum Model {
    /// As htsim: Reno without SACK, an acknowledgement for every segment, drop-tail, nothing recorded.
    Plain,
    /// CUBIC with SACK and RACK, `fq_codel`, four trains of pings, all samples in a record.
    Full,
}

const MODELS: [(Model, &str); 2] = [(Model::Plain, "plain"), (Model::Full, "full")];

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--once", model, key] => once(model, key),
        [htsim] => compare(htsim),
        _ => {
            eprintln!("peers: name the dumbbell of htsim, as `make bench-peers` does");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}

/// Runs all dumbbells in turn, round by round, and prints medians and ratios.
fn compare(htsim: &str) {
    let this = env::current_exe().expect("a path to this program");
    println!(
        "data packets through the bottleneck per second of processor time, medians of {ROUNDS} runs in turn"
    );
    println!("{:>44} {:>9} {:>9} {:>7}  ratios", "", "htsim", "weir", "ratio");
    for dumbbell in &DUMBBELLS {
        let mut figures: [Vec<f64>; 3] = Default::default();
        for _ in 0..ROUNDS {
            figures[0].push(rate(Command::new(htsim).args(dumbbell.words())));
            for (at, (_, name)) in MODELS.iter().enumerate() {
                figures[at + 1].push(rate(Command::new(&this).args([
                    "--once",
                    name,
                    dumbbell.key,
                ])));
            }
        }
        let [theirs, ours @ ..] = &figures;
        for (one, (model, _)) in ours.iter().zip(MODELS) {
            let mut ratios: Vec<f64> = one.iter().zip(theirs).map(|(a, b)| a / b).collect();
            let middle = median(&mut ratios);
            println!(
                "{:>44} {:>7.2} M {:>7.2} M {:>7.2}  {:.2} to {:.2}",
                dumbbell.title(model),
                median(&mut theirs.clone()) / 1e6,
                median(&mut one.clone()) / 1e6,
                middle,
                ratios[0],
                ratios[ratios.len() - 1],
            );
        }
    }
}

/// Packets per second of a run that prints how many there were, and its seconds of processor time.
fn rate(run: &mut Command) -> f64 {
    let done = run.output().expect("a program that runs");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let text = String::from_utf8(done.stdout).expect("plain figures");
    let figures: Vec<f64> = text.split_whitespace().flat_map(str::parse).collect();
    let [packets, seconds] = figures[..] else { panic!("two figures: {text}") };
    packets / seconds
}

/// One run: prints the data packets that left the bottleneck and the seconds of processor time.
fn once(model: &str, key: &str) {
    let dumbbell = DUMBBELLS.iter().find(|one| one.key == key).expect("a known key");
    let (model, _) = MODELS.into_iter().find(|(_, name)| *name == model).expect("a known model");
    let scenario = dumbbell.scenario(model);
    let simulation = || Simulation::new(&scenario, &BTreeMap::new(), Seed::new(1)).expect("sound");
    // The same seed gives the same packets, so that they are counted apart from what is timed.
    let mut counted = Departed(0);
    simulation().run(&mut counted);
    let timed = simulation();
    let began = process_cpu_ns();
    match model {
        Model::Plain => {
            timed.run(&mut Nothing);
        }
        Model::Full => record(timed),
    }
    println!("{} {:.6}", counted.0, (process_cpu_ns() - began) as f64 / 1e9);
}

/// Runs with everything written to a record, which is removed again.
fn record(simulation: Simulation) {
    let folder = env::temp_dir().join(format!("weir-peers-{}", std::process::id()));
    let mut recorder = Recorder::create(&folder, "{}", |_| ControlFlow::Continue(()))
        .expect("a folder for the record");
    simulation.run(&mut recorder);
    recorder.finish(true, serde_json::Map::new()).expect("room for the record");
    std::fs::remove_dir_all(&folder).expect("the record goes away");
}

impl Dumbbell {
    fn title(&self, model: Model) -> String {
        let model = match model {
            Model::Plain => "Reno, pfifo",
            Model::Full => "CUBIC, fq_codel, record",
        };
        format!("{} flows, {} Mbit/s, {model}", self.flows, self.rate_mbit)
    }

    /// The words of htsim's dumbbell.
    fn words(&self) -> [String; 5] {
        [
            self.flows.to_string(),
            self.rate_mbit.to_string(),
            self.rtt_ms.to_string(),
            self.buffer_packets.to_string(),
            self.seconds.to_string(),
        ]
    }

    fn scenario(&self, model: Model) -> Scenario {
        let (congestion_control, queue, probes) = match model {
            Model::Plain => ("reno", format!("pfifo limit {}", self.buffer_packets), 0),
            Model::Full => ("cubic", "fq_codel".to_owned(), 4),
        };
        let case = Case {
            key: self.key,
            title: "",
            down_flows: self.flows,
            up_flows: 0,
            congestion_control,
            rate_bps: self.rate_mbit * 1_000_000,
            queue: &queue,
            rtt_ms: self.rtt_ms,
            seconds: self.seconds,
            probes,
            period_ns: 10_000_000,
        };
        let mut scenario = case.scenario();
        if matches!(model, Model::Plain) {
            // Only so often that the packets can be counted.
            scenario.sampling = Sampling { throughput_ns: 0, tcp_ns: 0, queue_ns: 1_000_000_000 };
            for flow in &mut scenario.flows {
                flow.tcp.overrides.sack = Some(false);
                flow.tcp.overrides.delayed_ack = Some(false);
            }
        }
        scenario
    }
}

/// Data packets that left the bottleneck.
struct Departed(u64);

impl Sink for Departed {
    fn queue(&mut self, row: &QueueRow<'_>) {
        if row.queue == "down/line" && row.class.is_empty() {
            self.0 += row.departed_packets;
        }
    }
}

/// Keeps no row.
struct Nothing;

impl Sink for Nothing {}

/// Enough for a median that one slow run does not move.
const ROUNDS: usize = 5;
