//! The shaper on a real interface.

use pyo3::prelude::*;
use weir_rate_control::Mode;
use weir_shape::{Command, Settings, ShapeError};

use crate::{fail, wrong};

/// The backend that would shape by `settings` (JSON), with the reason, as JSON. Nothing is changed.
#[pyfunction]
pub(crate) fn choose_shaper(py: Python<'_>, settings: &str) -> PyResult<String> {
    let settings = read(settings)?;
    settings.check().map_err(refused)?;
    let choice = py.detach(|| weir_shape::choose(&settings)).map_err(refused)?;
    Ok(serde_json::to_string(&choice).expect("plain JSON"))
}

/// The framing of a device as far as the device itself tells, and why, as JSON.
#[pyfunction]
pub(crate) fn detect_framing(device: &str) -> PyResult<String> {
    let found = weir_shape::detect_framing(device).map_err(fail)?;
    Ok(serde_json::to_string(&found).expect("plain JSON"))
}

/// Shapes as `settings`, as JSON, say, until `show` wants an end or their time is over: how many decisions
/// were made.
///
/// `show` is given a view as JSON a few times a second, and returns one of `continue`, `open`, `shape` and
/// `stop`. If it raises, the shaper ends, and so does this function with what it raised.
#[pyfunction]
pub(crate) fn shape(py: Python<'_>, settings: &str, seed: u64, show: Py<PyAny>) -> PyResult<u64> {
    let settings = read(settings)?;
    let mut raised = None;
    let mut on_view = |view: &str| {
        let wanted = Python::attach(|held| show.call1(held, (view,))?.extract::<String>(held));
        match wanted.as_deref() {
            Ok("continue") => Command::Continue,
            Ok("open") => Command::Open,
            Ok("shape") => Command::Shape,
            Ok(_) => Command::Stop,
            Err(_) => {
                raised = wanted.err();
                Command::Stop
            }
        }
    };
    let done = py.detach(|| weir_shape::run(&settings, seed, &mut on_view));
    match raised {
        Some(error) => Err(error),
        None => done.map_err(refused),
    }
}

/// The last view of the shaper of a device, as JSON.
#[pyfunction]
pub(crate) fn shaper_status(py: Python<'_>, device: &str) -> PyResult<String> {
    py.detach(|| weir_shape::ask(device)).map_err(refused)
}

/// Asks the shaper of a device to end: its answer, as JSON.
#[pyfunction]
pub(crate) fn stop_shaper(py: Python<'_>, device: &str) -> PyResult<String> {
    py.detach(|| weir_shape::stop(device)).map_err(refused)
}

/// Runs the controller of a log, or `auto` in `mode`, over what went into it. `show` is given each decision as
/// a line of the log. Returns how many decisions the log has, how many came out, and how many are the same.
#[pyfunction]
#[pyo3(signature = (log, mode, show))]
pub(crate) fn replay_shaper(
    py: Python<'_>,
    log: &str,
    mode: Option<&str>,
    show: Py<PyAny>,
) -> PyResult<[usize; 3]> {
    let mode: Option<Mode> =
        mode.map(|word| serde_json::from_value(word.into()).map_err(wrong)).transpose()?;
    let mut raised = None;
    let mut on_line = |line: &str| {
        if raised.is_none() {
            raised = show.call1(py, (line,)).err();
        }
    };
    let counts = weir_shape::replay(log, mode, &mut on_line).map_err(refused)?;
    raised.map_or(Ok(counts), Err)
}

fn read(settings: &str) -> PyResult<Settings> {
    serde_json::from_str(settings).map_err(fail)
}

fn refused(error: ShapeError) -> PyErr {
    if error.is_input() { wrong(error) } else { fail(error) }
}
