//! Requests of the command line to a lab's process, and its answers: JSON.

#![allow(unsafe_code, reason = "a file that was handed over is known by its number")]

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::ops::ControlFlow;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::Arc;

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use weir_core::Seed;
use weir_record::Recorder;
use weir_scenario::{RecordSink, Scenario};

use weir_linux::LinuxError;

use crate::exec::{Ended, Exec, exec};
use crate::hosts::Device;
use crate::live::{Live, View};
use crate::quality::{Quality, Warning};
use crate::run::{Datapath, Options, check_kernel_path, run};
use crate::{LabError, signals};

/// A request of the command line.
#[derive(Debug, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
enum LabRequest {
    /// Run a program on a line.
    Exec {
        scenario: Box<Scenario>,
        traces: BTreeMap<String, String>,
        seed: u64,
        program: Vec<String>,
        server_command: Option<String>,
        device: Option<Device>,
        capture: Option<PathBuf>,
        /// The number of an open socket that listens for orders.
        control: Option<RawFd>,
        record: Option<Keep>,
    },
    /// Say whether the kernel's queues can stand for those of a scenario.
    CheckKernelPath { scenario: Box<Scenario> },
    /// Run the scenario that the manifest holds, with its seed.
    Run(Run),
}

/// Request for a run in the lab.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Run {
    traces: BTreeMap<String, String>,
    #[serde(default)]
    datapath: Datapath,
    device: Option<Device>,
    capture: Option<PathBuf>,
    #[serde(default)]
    virtual_time: bool,
    record: Keep,
}

/// Where to keep samples.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Keep {
    folder: PathBuf,
    manifest: Map<String, Value>,
}

/// Enters a lab and does what `request` says, a JSON object. `show` is called with a view of the run, as
/// JSON, a few times a second, and may end it.
///
/// Returns what came out, as JSON.
///
/// # Errors
/// If the request is none, or what it asks for cannot be done.
pub fn serve(
    request: &str,
    show: &mut (dyn FnMut(&str) -> ControlFlow<()> + Send),
) -> Result<String, LabError> {
    let request: LabRequest = serde_json::from_str(request).map_err(LabError::Request)?;
    crate::enter()?;
    let mut show = |view: &View| {
        let text = serde_json::to_string(view).expect("a view is plain JSON");
        if signals::end_requested() { ControlFlow::Break(()) } else { show(&text) }
    };
    let answer = match request {
        LabRequest::CheckKernelPath { scenario } => {
            check_kernel_path(&scenario)?;
            json!({})
        }
        LabRequest::Run(run) => do_run(run, &mut show)?,
        LabRequest::Exec {
            scenario,
            traces,
            seed,
            program,
            server_command,
            device,
            capture,
            control,
            record,
        } => {
            let program = program.into_iter().map(OsString::from).collect();
            let control = control.map(listener).transpose()?;
            let wanted = Exec { program, server_command, device, capture, control };
            let seed = Seed::new(seed);
            let ended = keeping(record, |keep| {
                let mut live = Live::new(keep, &mut show);
                let ended = exec(&scenario, &traces, seed, &wanted, &mut live)?;
                let mut outcome = outcome(ended.reached_ns, &ended.quality, ended.device);
                outcome.insert("connections".to_owned(), json!(ended.connections.as_ref().ok()));
                outcome.insert("warnings".to_owned(), json!(warnings_of(&ended)));
                outcome.insert("monotonic_zero_ns".to_owned(), json!(ended.zero_ns));
                let complete = ended.complete;
                Ok((ended, complete, outcome))
            })?;
            json!({
                "exit_code": ended.exit_code,
                "reached_ns": ended.reached_ns,
                "quality": ended.quality,
                "warnings": warnings_of(&ended),
            })
        }
    };
    Ok(answer.to_string())
}

/// The socket of that number, which the command line has opened for this process. Programs do not inherit it.
fn listener(number: RawFd) -> Result<Arc<UnixListener>, LabError> {
    if number <= libc::STDERR_FILENO {
        return Err(LinuxError::new(format!("the control socket has the number {number}")).into());
    }
    // SAFETY: only the request names it, so that nothing else in this process closes or reads it.
    let socket = unsafe { OwnedFd::from_raw_fd(number) };
    fcntl(&socket, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC))
        .map_err(|error| LinuxError::io("the control socket is not open", error))?;
    Ok(Arc::new(UnixListener::from(socket)))
}

/// Warnings to be read before any number of the samples, as sentences.
fn warnings_of(ended: &Ended) -> Vec<String> {
    let mut warnings = texts(&ended.quality.warnings());
    warnings.extend(ended.connections.as_ref().err().cloned());
    warnings
}

fn do_run(wanted: Run, show: &mut dyn FnMut(&View) -> ControlFlow<()>) -> Result<Value, LabError> {
    let Run { traces, datapath, device, capture, virtual_time, record } = wanted;
    let options = Options { datapath, device, capture, virtual_time };
    let inputs: ManifestInputs = serde_json::from_value(Value::Object(record.manifest.clone()))
        .map_err(LabError::Request)?;
    let (scenario, seed) = (Arc::new(inputs.scenario), Seed::new(inputs.seed));
    let done = keeping(Some(record), |keep| {
        let mut live = Live::new(keep, show);
        let done = run(&scenario, &traces, seed, &options, &mut live)?;
        let mut outcome = outcome(done.reached.as_nanos(), &done.quality, done.device);
        outcome.insert(
            "counters".to_owned(),
            json!({ "client": done.totals.client, "server": done.totals.server }),
        );
        let complete = done.complete;
        Ok((done, complete, outcome))
    })?;
    Ok(json!({
        "reached_ns": done.reached.as_nanos(),
        "complete": done.complete,
        "quality": done.quality,
        "warnings": texts(&done.quality.warnings()),
    }))
}

/// The inputs of a run that its manifest holds: scenario and seed.
#[derive(Deserialize)]
struct ManifestInputs {
    scenario: Scenario,
    seed: u64,
}

/// Does `work` with a record open, if one is to be kept, and ends it with what `work` says of the outcome.
fn keeping<T>(
    record: Option<Keep>,
    work: impl FnOnce(Option<&mut dyn RecordSink>) -> Result<(T, bool, Map<String, Value>), LabError>,
) -> Result<T, LabError> {
    let Some(Keep { folder, manifest }) = record else {
        return work(None).map(|(result, ..)| result);
    };
    let manifest = Value::Object(manifest).to_string();
    let mut recorder = Recorder::create(&folder, &manifest, |_| ControlFlow::Continue(()))?;
    let (result, complete, outcome) = work(Some(&mut recorder))?;
    recorder.finish(complete, outcome)?;
    Ok(result)
}

/// The manifest's words about the end of a run.
fn outcome(reached_ns: u64, quality: &Quality, device: Device) -> Map<String, Value> {
    let mut outcome = Map::new();
    outcome.insert("reached_ns".to_owned(), json!(reached_ns));
    outcome.insert("packets".to_owned(), json!(quality.packets));
    outcome.insert("emulator".to_owned(), json!(quality));
    outcome.insert("warnings".to_owned(), json!(texts(&quality.warnings())));
    let device = match device {
        Device::Tun => "tun",
        Device::Veth => "veth with a packet socket",
    };
    outcome.insert("device".to_owned(), json!(device));
    outcome
}

fn texts(warnings: &[Warning]) -> Vec<String> {
    warnings.iter().map(Warning::to_string).collect()
}
