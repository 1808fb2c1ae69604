//! Captures of simulated packets.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter};
use std::num::NonZeroU32;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyDict;
use weir_core::{Seed, Time, error_in_words};
use weir_path::CapturePoint;
use weir_record::pcapng::Writer;
use weir_scenario::{Direction, Scenario, Sink};
use weir_sim::{Outcome, PacketTap, Simulation};

use crate::errors::{fail, wrong};
use crate::simulate::{Report, said};

/// Runs a resolved scenario, given as JSON, and writes the packets at `hops`, such as `up/modem`, to `file` as pcapng:
/// as they arrive there if `arrivals` says so, or as they leave the queue. No record is written.
///
/// Of each packet `snap_len` bytes are kept at most, all if it is `None`. `progress` is as that of `simulate`.
///
/// What cannot be simulated, and a hop that there is not, is an `InputError`; a file that cannot be written is another.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "each is one word of what is wanted")]
pub(crate) fn simulate_packets<'py>(
    py: Python<'py>,
    scenario: &str,
    seed: u64,
    traces: BTreeMap<String, String>,
    hops: Vec<String>,
    arrivals: bool,
    snap_len: Option<u32>,
    file: PathBuf,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let scenario = Scenario::from_json(scenario).map_err(wrong)?;
    let numbers = hops.iter().map(|hop| number_of(&scenario, hop)).collect::<PyResult<Vec<_>>>()?;
    let snap_len =
        snap_len.map(|len| NonZeroU32::new(len).ok_or_else(|| wrong(EMPTY))).transpose()?;
    let mut simulation = Simulation::new(&scenario, &traces, Seed::new(seed)).map_err(wrong)?;
    let point = if arrivals { CapturePoint::Arrivals } else { CapturePoint::Departures };
    let unwritten = |error: io::Error| {
        fail(format!("cannot write `{}`: {}", file.display(), error_in_words(&error)))
    };
    let names: Vec<&str> = hops.iter().map(String::as_str).collect();
    let started = File::create(&file)
        .and_then(|out| Writer::new(BufWriter::new(out), &names, snap_len))
        .map_err(unwritten)?;
    let written = Arc::new(Mutex::new(Written { writer: started, error: None }));
    simulation.capture(&scenario, &numbers, point, Box::new(Tap(Arc::clone(&written))));
    let mut report = Report::to(progress);
    let outcome = py.detach(|| -> io::Result<Outcome> {
        let outcome = simulation.run(&mut Watching { report: &mut report, written: &written });
        let written = Arc::into_inner(written).expect("the simulation has ended");
        let Written { writer, error } =
            written.into_inner().unwrap_or_else(PoisonError::into_inner);
        error.map_or(Ok(()), Err)?;
        writer.finish()?;
        Ok(outcome)
    });
    if let Some(error) = report.raised {
        return Err(error);
    }
    said(py, &outcome.map_err(unwritten)?)
}

/// Number of the hop called `name` on the path: up before down.
fn number_of(scenario: &Scenario, name: &str) -> PyResult<usize> {
    let hops = Direction::ALL.into_iter().flat_map(|direction| {
        scenario.hops(direction).iter().map(move |hop| hop.full_name(direction))
    });
    let names: Vec<String> = hops.collect();
    names
        .iter()
        .position(|one| one == name)
        .ok_or_else(|| wrong(format!("there is no hop `{name}` (there are: {})", names.join(", "))))
}

/// The file, and the first thing that went wrong with it.
struct Written {
    writer: Writer<BufWriter<File>>,
    error: Option<io::Error>,
}

fn locked(written: &Mutex<Written>) -> MutexGuard<'_, Written> {
    written.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes packets to the file.
struct Tap(Arc<Mutex<Written>>);

impl PacketTap for Tap {
    fn packet(&mut self, hop: usize, at: Time, bytes: &[u8]) {
        let mut it = locked(&self.0);
        if it.error.is_none()
            && let Err(error) = it.writer.write(hop as u32, at.as_nanos(), bytes)
        {
            it.error = Some(error);
        }
    }
}

/// Keeps no row; ends the run if the file cannot be written or nobody wants it any more.
struct Watching<'r> {
    report: &'r mut Report,
    written: &'r Mutex<Written>,
}

impl Sink for Watching<'_> {
    fn progress(&mut self, now: Time) -> ControlFlow<()> {
        if locked(self.written).error.is_some() {
            return ControlFlow::Break(());
        }
        self.report.on_progress(now)
    }
}

const EMPTY: &str = "0 bytes of each packet: keep at least 1";
