//! The scenario's shaper at the client's end: the one for real interfaces, on the client's device.
//!
//! The shaped hops stay in the path, as routers that hold nothing back: there are as many of them as in the
//! simulator.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread::JoinHandle;

use weir_core::{Seed, Time, error_in_words};
use weir_linux::LinuxError;
use weir_rate_control::{Decision, Side};
use weir_scenario::{Direction, Scenario, Shaper, ShaperProbe, ShaperRow, Sink};
use weir_shape::{Backend, Command, Settings, Target};
use weir_sockets::Clock;

use crate::LabError;
use crate::hosts::Hosts;
use crate::interface::DEVICE as CLIENT_DEVICE;

/// A shaper at work.
pub(crate) struct LabShaper {
    stop: Arc<AtomicBool>,
    decisions: Receiver<(Time, Decision)>,
    /// The shaped hops' names with their directions.
    names: [String; 2],
    thread: JoinHandle<Result<u64, String>>,
}

impl LabShaper {
    /// Starts the scenario's shaper, if it has one.
    pub fn start(
        scenario: &Scenario,
        hosts: &Hosts,
        clock: Clock,
        seed: Seed,
    ) -> Result<Option<Self>, LabError> {
        let Some(shaper) = &scenario.shaper else { return Ok(None) };
        let settings = settings(scenario, shaper);
        let (sender, decisions) = mpsc::channel();
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, client) = (Arc::clone(&stop), Arc::clone(&hosts.client));
        let seed = seed.derive("shaper").get();
        let thread = std::thread::Builder::new().name("shaper".to_owned()).spawn(move || {
            client.enter().map_err(|error| error_in_words(&error))?;
            let mut show = |view: &weir_shape::View| {
                for decision in &view.decisions {
                    // Nobody listens any more once the run has ended.
                    let _ = sender.send(*decision);
                }
                if stopped.load(Ordering::Relaxed) { Command::Stop } else { Command::Continue }
            };
            weir_shape::run_with(&settings, seed, clock, &mut show)
                .map_err(|error| error.to_string())
        });
        let thread = thread.map_err(|error| LinuxError::io("no thread", error))?;
        let names = Direction::ALL.map(|direction| {
            let shaped = scenario.hops(direction).iter().find(|hop| hop.shaped);
            shaped.map_or(String::new(), |hop| hop.full_name(direction))
        });
        Ok(Some(Self { stop, decisions, names, thread }))
    }

    /// Whether it has ended by itself, which it does only when it fails.
    pub fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }

    /// Passes on what was decided.
    pub fn pass_on(&self, sink: &mut dyn Sink) {
        for (t, decision) in self.decisions.try_iter() {
            sink.shaper(&ShaperRow {
                t,
                queue: &self.names[decision.side as usize],
                rate_bps: decision.rate.map(weir_core::Rate::as_bps),
                state: decision.state.name(),
                reason: decision.reason.name(),
                value: decision.value,
                unit: decision.reason.unit(),
            });
        }
    }

    /// Ends the shaper's thread, after its last rows are passed on.
    pub fn finish(self, sink: &mut dyn Sink) -> Result<(), LabError> {
        self.stop.store(true, Ordering::Relaxed);
        while !self.thread.is_finished() {
            std::thread::sleep(POLL);
        }
        self.pass_on(sink);
        let done = self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        done.map(|_| ()).map_err(|error| LabError::Shaper(format!("it has failed: {error}")))
    }
}

/// Checks that a real shaper can be what the scenario's is.
pub(crate) fn check(scenario: &Scenario) -> Result<(), LabError> {
    let Some(shaper) = &scenario.shaper else { return Ok(()) };
    let troubled = shaper.reflectors.iter().any(|it| it.loss > 0.0 || !it.troubles.is_empty());
    let wrong = match shaper.probe {
        ShaperProbe::Udp => Some("probe `udp` needs a `weir serve`: probe with `icmp`"),
        _ if !shaper.sleeps.is_empty() => Some("`sleeps`: a real one is always awake"),
        _ if troubled => Some("reflectors with troubles: real ones have none on demand"),
        _ => None,
    };
    wrong.map_or(Ok(()), |what| {
        Err(LabError::Shaper(format!("{what}, or run it in the world `sim`")))
    })
}

/// The scenario with routers in place of the shaped hops.
pub(crate) fn behind_shaper(scenario: &Scenario) -> Scenario {
    let mut behind = Scenario { shaper: None, ..scenario.clone() };
    let path = &mut behind.path;
    for hop in path.up.iter_mut().chain(&mut path.down).filter(|hop| hop.shaped) {
        hop.shaped = false;
        PASSES.clone_into(&mut hop.queue);
    }
    behind
}

fn settings(scenario: &Scenario, shaper: &Shaper) -> Settings {
    let shaped = |side: Side| {
        let hops = if side == Side::Egress { &scenario.path.up } else { &scenario.path.down };
        hops.iter().find(|hop| hop.shaped)
    };
    let framing = Side::ALL.into_iter().find_map(shaped).map(|hop| hop.framing);
    let reflectors = shaper.reflectors.iter().map(|it| it.host);
    Settings {
        device: CLIENT_DEVICE.to_owned(),
        control: shaper.control,
        queues: Side::ALL.map(|side| shaped(side).map(|hop| hop.queue.clone())),
        framing: framing.unwrap_or_default(),
        // The same on every machine.
        backend: Some(Backend::Userspace),
        reflectors: reflectors.map(|host| Target::Icmp(scenario.server_address(host))).collect(),
        auth: None,
        rules: None,
        time_ns: None,
        log: None,
        state: None,
        open: false,
    }
}

/// Queue in front of a line without a rate, where nothing waits.
const PASSES: &str = "pfifo limit 1000";
const POLL: std::time::Duration = std::time::Duration::from_millis(5);
