//! Runs of the simulator.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use bytes::Bytes;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict};
use serde::Deserialize;
use serde_json::{Map, Value};
use weir_core::{Seed, Time};
use weir_record::{Content, Named, Recorder, Rows};
use weir_scenario::Scenario;
use weir_sim::{Outcome, Simulation};

use crate::errors::{fail, wrong};

/// Checks that the simulator can do what a resolved scenario, given as JSON, asks for.
#[pyfunction]
pub(crate) fn check_simulation(scenario: &str) -> PyResult<()> {
    let scenario = Scenario::from_json(scenario).map_err(fail)?;
    weir_sim::check(&scenario).map_err(fail)
}

/// Runs what `manifest` says, a JSON object with at least the resolved `scenario` and the `seed`, and
/// writes the record into `folder`.
///
/// `progress` is called with the simulated nanoseconds a few times a second; if it returns false or
/// raises, or a signal is pending, the run ends and what was measured stays.
///
/// What cannot be simulated is an `InputError`; a record that cannot be written is another.
#[pyfunction]
pub(crate) fn simulate<'py>(
    py: Python<'py>,
    manifest: &str,
    traces: BTreeMap<String, String>,
    folder: PathBuf,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let ManifestInputs { scenario, seed } = serde_json::from_str(manifest).map_err(wrong)?;
    let simulation = Simulation::new(&scenario, &traces, Seed::new(seed)).map_err(wrong)?;
    let mut report = Report::to(progress);
    let outcome = py.detach(|| -> PyResult<Outcome> {
        let mut recorder =
            Recorder::create(&folder, manifest, |now| report.on_progress(now)).map_err(fail)?;
        let outcome = simulation.run(&mut recorder);
        let mut last = Map::new();
        last.insert("reached_ns".to_owned(), Value::from(outcome.reached.as_nanos()));
        last.insert("events".to_owned(), Value::from(outcome.events));
        last.insert("packets".to_owned(), Value::from(outcome.packets));
        recorder.finish(outcome.complete, last).map_err(fail)?;
        Ok(outcome)
    })?;
    if let Some(error) = report.raised {
        return Err(error);
    }
    said(py, &outcome)
}

/// Runs a resolved scenario, given as JSON, and keeps its rows in memory: no record is written.
///
/// Beside what [`simulate`] says, `tables` has of each table by its name the columns by their names, each as its
/// values, one a row, and of each row whether it has one (`None`: all have). Values are the bytes of signed integers
/// or of floating-point numbers of 64 bits in the machine's order, or a pair of such integers and the texts whose places they
/// are. `progress` is as that of `simulate`.
#[pyfunction]
pub(crate) fn simulate_rows<'py>(
    py: Python<'py>,
    scenario: &str,
    seed: u64,
    traces: BTreeMap<String, String>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let scenario = Scenario::from_json(scenario).map_err(wrong)?;
    let simulation = Simulation::new(&scenario, &traces, Seed::new(seed)).map_err(wrong)?;
    let mut report = Report::to(progress);
    let (outcome, tables) = py.detach(|| {
        let mut rows = Rows::new(|now| report.on_progress(now));
        let outcome = simulation.run(&mut rows);
        (outcome, rows.into_tables())
    });
    if let Some(error) = report.raised {
        return Err(error);
    }
    let result = said(py, &outcome)?;
    let of_tables = PyDict::new(py);
    for (name, columns) in tables {
        of_tables.set_item(name, of_columns(py, columns)?)?;
    }
    result.set_item("tables", of_tables)?;
    Ok(result)
}

/// The rows of part files of the table `table`, given as their bytes, in the form of the tables of
/// [`simulate_rows`]: the columns that are `wanted`, or all. `None` if a file is not as this version writes them, or they have
/// more than `max_rows` rows together.
#[pyfunction]
#[pyo3(signature = (table, parts, max_rows, wanted=None))]
pub(crate) fn read_table<'py>(
    py: Python<'py>,
    table: &str,
    parts: Vec<PyBackedBytes>,
    max_rows: usize,
    wanted: Option<Vec<String>>,
) -> PyResult<Option<Bound<'py, PyDict>>> {
    let parts: Vec<Bytes> = parts.into_iter().map(Bytes::from_owner).collect();
    let columns = py.detach(|| weir_record::read_table(table, &parts, max_rows, wanted.as_deref()));
    columns.map(|columns| of_columns(py, columns)).transpose()
}

/// Those rows of part files of the table `table`, given as their bytes, whose `t_ns` lies within one of `spans`, each from
/// its first nanosecond to before its last: part files as a record has them, each as its bytes and its number of rows. `None`
/// if the table has no `t_ns`, or a file is not as this version writes them or has more than `max_rows` rows.
#[pyfunction]
pub(crate) fn thinned<'py>(
    py: Python<'py>,
    table: &str,
    parts: Vec<PyBackedBytes>,
    max_rows: usize,
    spans: Vec<(i64, i64)>,
) -> Option<Vec<(Bound<'py, PyBytes>, usize)>> {
    let parts: Vec<Bytes> = parts.into_iter().map(Bytes::from_owner).collect();
    let spans: Vec<_> = spans.into_iter().map(|(start, end)| start..end).collect();
    let written = py.detach(|| weir_record::thinned(table, &parts, max_rows, &spans))?;
    Some(written.into_iter().map(|one| (PyBytes::new(py, &one.content), one.rows)).collect())
}

pub(crate) fn said<'py>(py: Python<'py>, outcome: &Outcome) -> PyResult<Bound<'py, PyDict>> {
    let result = PyDict::new(py);
    result.set_item("reached_ns", outcome.reached.as_nanos())?;
    result.set_item("complete", outcome.complete)?;
    result.set_item("events", outcome.events)?;
    result.set_item("packets", outcome.packets)?;
    Ok(result)
}

fn of_columns(py: Python<'_>, columns: Vec<Named>) -> PyResult<Bound<'_, PyDict>> {
    let result = PyDict::new(py);
    for (name, content, known) in columns {
        let known = known.map(|known| {
            let bytes: Vec<u8> = known.into_iter().map(u8::from).collect();
            PyBytes::new(py, &bytes)
        });
        match content {
            Content::Integer(values) => {
                result.set_item(name, (of_eight(py, &values, i64::to_ne_bytes)?, known))?;
            }
            Content::Float(values) => {
                result.set_item(name, (of_eight(py, &values, f64::to_ne_bytes)?, known))?;
            }
            Content::Text { codes, texts } => {
                let codes = of_eight(py, &codes, i64::to_ne_bytes)?;
                result.set_item(name, ((codes, texts), known))?;
            }
        }
    }
    Ok(result)
}

/// The bytes of numbers of 64 bits, written into Python's memory at once.
fn of_eight<'py, T: Copy>(
    py: Python<'py>,
    values: &[T],
    bytes_of: impl Fn(T) -> [u8; 8],
) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, values.len() * 8, |bytes| {
        for (place, value) in bytes.as_chunks_mut().0.iter_mut().zip(values) {
            *place = bytes_of(*value);
        }
        Ok(())
    })
}

/// Keys that a manifest must have before the run.
#[derive(Deserialize)]
pub(crate) struct ManifestInputs {
    pub scenario: Scenario,
    pub seed: u64,
}

/// Passes progress on to Python, no oftener than a person can see.
pub(crate) struct Report {
    progress: Option<Py<PyAny>>,
    called_at: Instant,
    pub raised: Option<PyErr>,
}

impl Report {
    pub fn to(progress: Option<Py<PyAny>>) -> Self {
        Self { progress, called_at: Instant::now(), raised: None }
    }

    pub fn on_progress(&mut self, now: Time) -> ControlFlow<()> {
        if self.called_at.elapsed() < CALL_EVERY {
            return ControlFlow::Continue(());
        }
        self.called_at = Instant::now();
        let go_on = Python::attach(|py| -> PyResult<bool> {
            py.check_signals()?;
            match &self.progress {
                None => Ok(true),
                Some(progress) => progress.call1(py, (now.as_nanos(),))?.is_truthy(py),
            }
        });
        match go_on {
            Ok(true) => ControlFlow::Continue(()),
            Ok(false) => ControlFlow::Break(()),
            Err(error) => {
                self.raised = Some(error);
                ControlFlow::Break(())
            }
        }
    }
}

const CALL_EVERY: Duration = Duration::from_millis(50);
