//! Measurements of the path to a server elsewhere.

use std::path::PathBuf;

use pyo3::prelude::*;
use serde::Deserialize;
use serde_json::{Map, Value};
use weir_client::{ClientError, MethodRequest, Outcome, Request};
use weir_core::Time;
use weir_record::Recorder;
use weir_scenario::{MethodRow, Sink, Verdict};

use crate::simulate::Report;
use crate::{fail, wrong};

/// Measures what `request` says, JSON, and writes the record into `folder`; returns whether it came to its
/// end. `manifest` and `progress` are as those of `simulate`. `speed_test` is called at the end, and returns
/// what the record is to keep of a foreign speed test that ran meanwhile, as `record_method` takes it, or
/// nothing.
#[pyfunction]
#[pyo3(signature = (request, manifest, folder, progress, speed_test=None))]
pub(crate) fn measure(
    py: Python<'_>,
    request: &str,
    manifest: &str,
    folder: PathBuf,
    progress: Option<Py<PyAny>>,
    speed_test: Option<Py<PyAny>>,
) -> PyResult<bool> {
    let request: Request = serde_json::from_str(request).map_err(fail)?;
    let mut report = Report::to(progress);
    let outcome = py.detach(|| -> PyResult<Outcome> {
        let mut recorder =
            Recorder::create(&folder, manifest, |now| report.on_progress(now)).map_err(fail)?;
        let outcome = weir_client::measure(&request, &mut recorder);
        if let Some(speed_test) = &speed_test {
            let told =
                Python::attach(|held| speed_test.call0(held)?.extract::<Option<String>>(held))?;
            if let Some(told) = told {
                write_method(&mut recorder, &told)?;
            }
        }
        let mut last = Map::new();
        if let Ok(outcome) = &outcome {
            last.insert("reached_ns".to_owned(), Value::from(outcome.reached.as_nanos()));
        }
        let complete = outcome.as_ref().is_ok_and(|outcome| outcome.complete);
        recorder.finish(complete, last).map_err(fail)?;
        outcome.map_err(fail)
    })?;
    match report.raised {
        Some(error) => Err(error),
        None => Ok(outcome.complete),
    }
}

/// Writes a record into `folder` of nothing but a foreign speed test that ended: `speed_test` has its `name`,
/// `kind`, `began_ns`, `ended_ns` and `result`, as JSON. `manifest` is as that of `simulate`.
#[pyfunction]
pub(crate) fn record_method(
    py: Python<'_>,
    manifest: &str,
    folder: PathBuf,
    speed_test: &str,
) -> PyResult<()> {
    py.detach(|| -> PyResult<()> {
        let mut recorder =
            Recorder::create(&folder, manifest, |_| Verdict::Continue).map_err(fail)?;
        let ended_ns = write_method(&mut recorder, speed_test)?;
        let last = Map::from_iter([("reached_ns".to_owned(), Value::from(ended_ns))]);
        recorder.finish(true, last).map_err(fail)
    })
}

/// A foreign speed test that ended.
#[derive(Deserialize)]
struct SpeedTest {
    name: String,
    kind: String,
    began_ns: u64,
    ended_ns: u64,
    /// JSON.
    result: String,
}

/// Writes the row of a speed test, and returns when it ended.
fn write_method(recorder: &mut Recorder<'_>, told: &str) -> PyResult<u64> {
    let told: SpeedTest = serde_json::from_str(told).map_err(fail)?;
    recorder.method(&MethodRow {
        method: 0,
        name: &told.name,
        kind: &told.kind,
        began: Time::from_nanos(told.began_ns),
        ended: Some(Time::from_nanos(told.ended_ns)),
        result: Some(&told.result),
    });
    Ok(told.ended_ns)
}

/// One sentence about what `host` lacks for a test of Weir's own; `None` if it lacks nothing.
#[pyfunction]
pub(crate) fn missing(
    py: Python<'_>,
    host: &str,
    secret: Option<&str>,
) -> PyResult<Option<String>> {
    py.detach(|| weir_client::missing(host, secret)).map_err(fail)
}

/// The secret in a file, for those functions that take one.
#[pyfunction]
pub(crate) fn read_secret(file: PathBuf) -> PyResult<String> {
    let secret = weir_sockets::read_secret(&file).map_err(wrong)?;
    Ok(String::from_utf8_lossy(secret.as_bytes()).into_owned())
}

/// Runs a foreign speed test that `request` names, JSON, and returns what its own client would show, as
/// JSON. `progress` is as that of `simulate`.
#[pyfunction]
pub(crate) fn run_method(
    py: Python<'_>,
    request: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let request: MethodRequest = serde_json::from_str(request).map_err(fail)?;
    let mut report = Report::to(progress);
    let result = py.detach(|| weir_client::run_method(&request, |now| report.on_progress(now)));
    match report.raised {
        Some(error) => Err(error),
        None => result.map(|value| value.to_string()).map_err(refused),
    }
}

fn refused(error: ClientError) -> PyErr {
    if error.is_input() { wrong(error) } else { fail(error) }
}
