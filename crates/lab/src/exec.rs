//! Any program on an emulated line.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::time::{Duration as WallDuration, Instant};

use serde_json::json;
use weir_core::{Duration, Seed, Time};
use weir_linux::LinuxError;
use weir_scenario::{ClientPaths, RecordSink, Scenario};
use weir_sockets::Clock;

use crate::connections::{Connection, ConnectionWatch};
use crate::control::ControlSocket;
use crate::datapath::{DataPath, Settings};
use crate::hosts::{Device, Hosts};
use crate::program::{Kind, Program, name_hosts};
use crate::quality::Quality;
use crate::run::pass_on;
use crate::{LabError, signals, traces};

/// A program to be run on a line.
#[derive(Clone, Debug, Default)]
pub struct Exec {
    /// The program and its arguments, at the client.
    pub program: Vec<OsString>,
    /// Command that runs at the server meanwhile, for the shell.
    pub server_command: Option<String>,
    /// How packets leave and enter the kernel; what this user may have without a wish.
    pub device: Option<Device>,
    /// Where to keep the packets that arrive at both ends, as pcapng.
    pub capture: Option<PathBuf>,
    /// A socket that listens for orders to change the lines meanwhile.
    pub control: Option<Arc<UnixListener>>,
}

/// How a program has ended.
#[derive(Clone, Debug)]
pub struct Ended {
    /// Exit code of the program; 128 and the number of the signal if one ended it. None if somebody asked for the end
    /// before there was one.
    pub exit_code: Option<i32>,
    /// Whether it ended by itself: nobody asked for the end before, of it or of the lab.
    pub complete: bool,
    /// Nanoseconds that it took.
    pub reached_ns: u64,
    /// How packets left and entered the kernel.
    pub device: Device,
    /// How well the lab did its own work.
    pub quality: Quality,
    /// The TCP connections over the line, of which samples are flows by these places; or why the kernel did
    /// not tell of them.
    pub connections: Result<Vec<Connection>, String>,
    /// Time of `CLOCK_MONOTONIC` at the start of the run, in nanoseconds.
    pub zero_ns: u64,
}

/// Runs a program on the line of `scenario`, whose loads and probes are left out; where it has routes, they are the
/// [paths of the client](ClientPaths). The process must have [entered](crate::enter) a lab.
///
/// # Errors
/// If the lab cannot be made or a program cannot be started.
pub fn exec(
    scenario: &Scenario,
    texts: &BTreeMap<String, String>,
    seed: Seed,
    exec: &Exec,
    sink: &mut dyn RecordSink,
) -> Result<Ended, LabError> {
    weir_path::check(scenario)?;
    let parsed = traces(scenario, texts)?;
    let paths = ClientPaths::of(scenario)?;
    name_hosts(scenario, &paths)?;
    let mut hosts = Hosts::new(scenario, paths, exec.device, true)?;
    let clock = Clock::starting_in(Duration::ZERO);
    let (sender, samples) = mpsc::channel();
    let (order, orders) = mpsc::channel();
    let settings = Settings { clock, seed, capture: exec.capture.clone(), orders: Some(orders) };
    let trace = |name: &str| parsed[name].clone();
    let watch = ConnectionWatch::start(&hosts, scenario, clock, sender.clone());
    let path = DataPath::start(scenario, &mut hosts, &trace, settings, sender)?;
    let listen = |listener| ControlSocket::start(Arc::clone(listener), scenario, clock, order);
    let control = exec.control.as_ref().map(listen).transpose()?;

    let mut server = None;
    if let Some(command) = &exec.server_command {
        let words = ["/bin/sh", "-c", command.as_str()].map(OsString::from);
        let mut started = Program::start(&words, &hosts.server, Kind::Background)?;
        await_port(&mut started, command)?;
        server = Some(started);
    }
    let (exit_code, complete) = if signals::end_requested() {
        (None, false)
    } else {
        signals::program_decides();
        let program = Program::start(&exec.program, &hosts.client, Kind::Foreground)?;
        let (code, complete) = attend(program, || {
            pass_on(&samples, sink);
            note_changes(control.as_ref().and_then(ControlSocket::changed), sink);
            // Why the data path has ended it says when it is asked to finish.
            path.has_ended() || sink.progress(clock.now()).is_break()
        })?;
        (Some(code), complete)
    };
    let reached_ns = clock.now().as_nanos();
    if let Some(server) = server {
        let _ = server.end(PATIENCE);
    }
    note_changes(control.and_then(ControlSocket::finish), sink);
    let connections = watch.and_then(ConnectionWatch::finish).map_err(|error| error.to_string());
    let report = path.finish()?;
    pass_on(&samples, sink);
    let quality = Quality::new(&report, hosts.overrun()?);
    let zero_ns = clock.monotonic_ns_of(Time::ZERO);
    Ok(Ended {
        exit_code,
        complete,
        reached_ns,
        device: hosts.device,
        quality,
        connections,
        zero_ns,
    })
}

/// Waits for `program`, and returns its exit code and whether it ended by itself. It is asked to end once `is_over` or
/// somebody wants it; what SIGINT means it decides itself.
fn attend(
    mut program: Program,
    mut is_over: impl FnMut() -> bool,
) -> Result<(i32, bool), LinuxError> {
    loop {
        std::thread::sleep(POLL);
        let is_over = is_over() || signals::end_requested();
        if let Some(code) = program.ended()? {
            return Ok((code, !is_over));
        }
        if is_over {
            return Ok((program.end(PATIENCE).unwrap_or(1), false));
        }
        if signals::hands_interrupt_on() {
            program.interrupt();
        }
    }
}

/// Keeps the scenario that a record has with what was changed of its lines.
fn note_changes(changed: Option<Scenario>, sink: &mut dyn RecordSink) {
    if let Some(scenario) = changed {
        sink.note("scenario", json!(scenario));
    }
}

/// Waits until something at the server can be reached: how long a program takes to open its port depends on
/// the machine. One that opens none is not waited for longer than `SERVER_HEAD_START`.
fn await_port(server: &mut Program, command: &str) -> Result<(), LinuxError> {
    let until = Instant::now() + SERVER_HEAD_START;
    while Instant::now() < until && !server.is_reachable() && !signals::end_requested() {
        match server.ended()? {
            None => std::thread::sleep(POLL),
            Some(0) => break,
            Some(code) => {
                return Err(LinuxError::new(format!(
                    "the server's command `{command}` ended at once, with code {code}"
                )));
            }
        }
    }
    Ok(())
}

/// How often somebody looks whether the program has ended.
const POLL: WallDuration = WallDuration::from_millis(5);
/// Time that a server has to open its port: more than a Python program takes on a machine with other work.
const SERVER_HEAD_START: WallDuration = WallDuration::from_secs(5);
/// How long a program that is asked to end may take.
const PATIENCE: WallDuration = WallDuration::from_secs(2);
