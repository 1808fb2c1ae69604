//! Loads and probes on real sockets, over loopback: goodput of one and of a thousand flows with the share of
//! processors that the process used, and how late pings leave.
//!
//! Loopback hands packets over without a path: what is measured is the cost of the ends.

use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, mpsc};
use std::time::Instant;
use weir_core::{Duration, Seed, Time};
use weir_scenario::{Direction, Flow, Hop, LineRate, Probe, ProbeKind, Sampling, Scenario};
use weir_sockets::{Addresses, Clock, EndNamespace, NetError, Sample, ScenarioEnds};

fn main() -> Result<(), NetError> {
    for flows in [1, 100, 1_000] {
        let ran = run(&scenario(flows, None))?;
        println!(
            "{flows:>5} flows: {:6.2} Gbit/s, {:.2} processors",
            ran.bytes as f64 * 8.0 / SPAN.as_secs_f64() / 1e9,
            ran.processors
        );
    }
    for (period, name) in [(Duration::from_millis(10), "10ms"), (Duration::from_millis(1), "1ms")] {
        let mut ran = run(&scenario(0, Some(period)))?;
        ran.late.sort_unstable();
        let late = |share: f64| {
            let rank = ((ran.late.len() as f64 * share) as usize).min(ran.late.len() - 1);
            ran.late[rank] as f64 / 1e3
        };
        println!(
            "pings each {name}, idle: late by {:.1} us (p50), {:.1} us (p99), {:.1} us (p99.9), {:.3} \
             processors",
            late(0.5),
            late(0.99),
            late(0.999),
            ran.processors
        );
    }
    Ok(())
}

/// Counts and times of a run.
struct Ran {
    bytes: u64,
    /// Timer errors in nanoseconds.
    late: Vec<u64>,
    /// Processor time by time.
    processors: f64,
}

fn run(scenario: &Arc<Scenario>) -> Result<Ran, NetError> {
    let at = |number| IpAddr::V4(Ipv4Addr::new(127, 88, 0, number));
    let addresses = Addresses::Others { client: at(1), servers: vec![at(2)] };
    let (sender, receiver) = mpsc::channel();
    let clock = Clock::starting_in(Duration::from_millis(20));
    let setting = (scenario, Seed::new(1), clock);
    let (cpu, began) = (cpu_seconds(), Instant::now());
    let ends = ScenarioEnds::start_at(
        addresses,
        setting,
        EndNamespace::current(),
        EndNamespace::current(),
        sender,
    )?;
    ends.join()?;
    let processors = (cpu_seconds() - cpu) / began.elapsed().as_secs_f64();
    let mut ran = Ran { bytes: 0, late: Vec::new(), processors };
    for sample in receiver {
        match sample {
            Sample::Flow(row) => ran.bytes += row.delivered_bytes,
            Sample::Latency(row) => ran.late.push(row.timer_error.as_nanos()),
            Sample::Throughput(_) | Sample::Tcp(_) | Sample::Udp(_) | Sample::Transfer(_) => {}
        }
    }
    Ok(ran)
}

/// Processor time of this process so far (`/proc/self/stat`, proc(5): fields 14 and 15, in ticks of 10 ms).
fn cpu_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields);
    let ticks = fields.split(' ').skip(11).take(2).filter_map(|field| field.parse::<f64>().ok());
    ticks.sum::<f64>() / 100.0
}

/// So many downloads, or pings of that period.
fn scenario(flows: usize, pings: Option<Duration>) -> Arc<Scenario> {
    let stop = Time::ZERO + SPAN;
    let flow = |n| Flow::new(format!("flow {n}"), Direction::Down, "cubic", (Time::ZERO, stop));
    let probe = |period: Duration| Probe::new("ping", ProbeKind::Udp, period, stop);
    let hop = Hop::new("loopback", "pfifo", LineRate::Unlimited);
    Arc::new(Scenario {
        flows: (0..flows).map(flow).collect(),
        probes: pings.map(probe).into_iter().collect(),
        sampling: Sampling { throughput_ns: 100_000_000, tcp_ns: 100_000_000, queue_ns: 0 },
        ..Scenario::over("sockets", SPAN.as_nanos(), hop.clone(), hop)
    })
}

/// Long enough for a thousand flows to open, and for a p99.9 of pings.
const SPAN: Duration = Duration::from_secs(4);
