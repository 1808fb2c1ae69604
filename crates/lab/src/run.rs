//! A scenario in the lab, from its start to its end.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration as WallDuration;

use serde::Deserialize;
use weir_core::{Duration, Seed, Time};
use weir_scenario::{ClientPaths, FlowRow, Scenario, Sink};
use weir_sockets::{Clock, EndNamespace, Sample, ScenarioEnds, Totals};

use crate::datapath::{DataPath, PathSample, Settings};
use crate::hosts::{Device, Hosts};
use crate::kernel_path::behind_kernel_queues;
use crate::quality::Quality;
use crate::shaper::{self, LabShaper, behind_shaper};
use crate::watch::QueueWatch;
use crate::{LabError, signals, traces};

/// Outcome of a run in the lab.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Time that was reached.
    pub reached: Time,
    /// Whether the run got to its end.
    pub complete: bool,
    /// How packets left and entered the kernel.
    pub device: Device,
    /// How well the lab did its own work.
    pub quality: Quality,
    /// Counters of the two network stacks.
    pub totals: Totals,
}

/// The part that has the queues and lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Datapath {
    /// The queues and lines are in this process.
    #[default]
    Userspace,
    /// The kernel, as queue disciplines; this process delays and loses packets only.
    Kernel,
}

/// How a scenario is run.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The part that has the queues and lines.
    pub datapath: Datapath,
    /// How packets leave and enter the kernel; what this user may have without a wish.
    pub device: Option<Device>,
    /// Where to keep the packets that arrive at both ends, as pcapng.
    pub capture: Option<PathBuf>,
    /// Whether time is [virtual](Clock::is_virtual), as in the world kernel.
    pub virtual_time: bool,
}

/// Checks that the lab can do what `scenario` asks for.
///
/// # Errors
/// If it cannot: the first thing, with what this kernel has.
pub fn check(scenario: &Scenario) -> Result<(), LabError> {
    weir_path::check(scenario)?;
    scenario.check_routers()?;
    if let Some(test) = scenario.methods.first() {
        return Err(LabError::Method(test.name.clone()));
    }
    if let Some(tunnel) = scenario.tunnels.first() {
        return Err(LabError::Tunnel(tunnel.name.clone()));
    }
    if let Some(flow) = scenario.flows.iter().find(|flow| flow.client_host != 0) {
        return Err(LabError::ClientHost(flow.name.clone()));
    }
    shaper::check(scenario)?;
    if let Some(hop) = weir_path::marker_that_needs_window(scenario) {
        return Err(LabError::SendersWindow(hop.name.clone()));
    }
    let available = weir_sockets::available_congestion_controls().map_err(LabError::Kernel)?;
    Ok(weir_sockets::check(scenario, &available)?)
}

/// Checks that the kernel's queues can stand for those of `scenario`, by making all of them. The process
/// must have [entered](crate::enter) a lab.
///
/// # Errors
/// If they cannot: the first thing, such as a queue discipline that this kernel lacks.
pub fn check_kernel_path(scenario: &Scenario) -> Result<(), LabError> {
    check(scenario)?;
    if scenario.shaper.is_some() {
        let what = "it stands at the client of the userspace data path: leave `--datapath` out";
        return Err(LabError::Shaper(what.to_owned()));
    }
    with_kernel_queues(scenario, None, false).map(|_| ())
}

/// Runs `scenario` to its end, or until `sink` or a signal wants to stop. The process must have
/// [entered](crate::enter) a lab. What was sampled until then is in the sink.
///
/// # Errors
/// If the lab cannot be made, or a load or probe fails on the way.
pub fn run(
    scenario: &Arc<Scenario>,
    texts: &BTreeMap<String, String>,
    seed: Seed,
    options: &Options,
    sink: &mut dyn Sink,
) -> Result<Outcome, LabError> {
    check(scenario)?;
    let parsed = traces(scenario, texts)?;
    let bursts = scenario.flows.iter().all(|flow| flow.tcp.overrides.bursts != Some(false));
    let mut hosts = hosts(scenario, options, bursts)?;
    let clock = Clock::starting_in(HEAD_START);
    let clock = if options.virtual_time { clock.in_virtual_time() } else { clock };
    let (path_sender, path_samples) = mpsc::channel();
    let settings = Settings { clock, seed, capture: options.capture.clone(), orders: None };
    let trace = |name: &str| parsed[name].clone();
    let (carried, watch) = match options.datapath {
        Datapath::Userspace if scenario.shaper.is_some() => {
            (Arc::new(behind_shaper(scenario)), None)
        }
        Datapath::Userspace => (Arc::clone(scenario), None),
        Datapath::Kernel => {
            let (period, sender) = (scenario.sampling.queue_ns, path_sender.clone());
            let watch = QueueWatch::start(&mut hosts, clock, period, sender)?;
            (Arc::new(behind_kernel_queues(scenario)), Some(watch))
        }
    };
    // Before the data path: what starts behind that no longer inherits the right to go first.
    let shaper = LabShaper::start(scenario, &hosts, clock, seed)?;
    let path = DataPath::start(&carried, &mut hosts, &trace, settings, path_sender)?;
    let [client, server] = [Arc::clone(&hosts.client), Arc::clone(&hosts.server)]
        .map(|end| EndNamespace::new(move || end.enter()));
    let (end_sender, end_samples) = mpsc::channel();
    let ends = ScenarioEnds::start(scenario, seed, clock, client, server, end_sender)?;

    let end = Time::from_nanos(scenario.duration_ns);
    let (Held { flows, skipped }, stopped_at) =
        follow(&ends, &end_samples, clock, end, sink, |sink| {
            pass_on(&path_samples, sink);
            shaper.iter().for_each(|shaper| shaper.pass_on(sink));
            path.has_ended() || shaper.as_ref().is_some_and(LabShaper::has_ended)
        });
    let totals = ends.join();
    shaper.map(|shaper| shaper.finish(sink)).transpose()?;
    let report = path.finish()?;
    watch.map(QueueWatch::finish).transpose()?;
    let totals = totals?;
    pass_on(&path_samples, sink);
    for flow in &flows {
        let number = flow.flow as usize;
        // Connections of applications have ports of their own, and the kernel's queues count packets: neither knows
        // whose they are.
        let is_known = scenario.flows[number].application.is_none();
        match options.datapath {
            Datapath::Userspace if is_known => sink.flow(&report.flows[number].added_to(flow)),
            Datapath::Userspace | Datapath::Kernel => sink.flow(flow),
        }
    }
    let quality = Quality { skipped, ..Quality::new(&report, hosts.overrun()?) };
    Ok(Outcome {
        reached: stopped_at.unwrap_or(end),
        complete: stopped_at.is_none(),
        device: hosts.device,
        quality,
        totals,
    })
}

/// What is not passed on as it comes.
#[derive(Default)]
struct Held {
    /// Totals of the flows, which the path is yet to complete.
    flows: Vec<FlowRow>,
    /// Packets that the senders of UDP loads left out.
    skipped: u64,
}

/// Passes on what the `ends` sample until they have no more. Returns what it held back, and when the run was stopped
/// before its `end`. `others` passes on what others sample, and says whether one of them has failed.
fn follow(
    ends: &ScenarioEnds,
    samples: &Receiver<Sample>,
    clock: Clock,
    end: Time,
    sink: &mut dyn Sink,
    mut others: impl FnMut(&mut dyn Sink) -> bool,
) -> (Held, Option<Time>) {
    let mut held = Held::default();
    let mut stopped_at = None;
    loop {
        let over = match samples.recv_timeout(POLL) {
            Ok(first) => {
                for sample in std::iter::once(first).chain(samples.try_iter()) {
                    keep(sample, &mut held, sink);
                }
                false
            }
            Err(RecvTimeoutError::Timeout) => false,
            Err(RecvTimeoutError::Disconnected) => true,
        };
        let failed = others(sink);
        let now = clock.now();
        let stop = signals::end_requested() || sink.progress(now.min(end)).is_break();
        if stopped_at.is_none() && now < end && (stop || failed) {
            stopped_at = Some(now);
            ends.stop();
        }
        if over {
            return (held, stopped_at);
        }
    }
}

fn hosts(scenario: &Scenario, options: &Options, bursts: bool) -> Result<Hosts, LabError> {
    Ok(match options.datapath {
        Datapath::Userspace => {
            Hosts::new(scenario, ClientPaths::default(), options.device, bursts)?
        }
        Datapath::Kernel => with_kernel_queues(scenario, options.device, bursts)?,
    })
}

fn with_kernel_queues(
    scenario: &Scenario,
    device: Option<Device>,
    bursts: bool,
) -> Result<Hosts, LabError> {
    let mut hops = scenario.path.up.iter().chain(&scenario.path.down);
    match hops.find(|hop| !hop.changes.is_empty()) {
        Some(hop) => Err(LabError::Changes(hop.name.clone())),
        None => Ok(Hosts::with_kernel_queues(scenario, device, bursts)?),
    }
}

/// Passes a row on; the totals of flows wait for what the data path has to add.
fn keep(sample: Sample, held: &mut Held, sink: &mut dyn Sink) {
    match sample {
        Sample::Latency(row) => sink.latency(&row),
        Sample::Throughput(row) => sink.throughput(&row),
        Sample::Tcp(row) => sink.tcp(&row),
        Sample::Udp(row) => {
            held.skipped += row.sender.map_or(0, |sender| sender.skipped_packets);
            sink.udp(&row);
        }
        Sample::Transfer(row) => sink.transfer(&row),
        Sample::Flow(row) => held.flows.push(row),
    }
}

/// Passes on what the data path has sampled.
pub(crate) fn pass_on(samples: &Receiver<PathSample>, sink: &mut dyn Sink) {
    for sample in samples.try_iter() {
        match sample {
            PathSample::Queue(row) => sink.queue(&row.row()),
            PathSample::Emulator(row) => sink.emulator(&row),
            PathSample::Throughput(row) => sink.throughput(&row),
            PathSample::Tcp(row) => sink.tcp(&row),
        }
    }
}

/// Time to open all sockets before the clock starts.
const HEAD_START: Duration = Duration::from_millis(300);
/// How often progress is told and signals are heard.
const POLL: WallDuration = WallDuration::from_millis(20);
