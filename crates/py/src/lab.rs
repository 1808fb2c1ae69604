//! The lab's process.

use std::ops::ControlFlow;

use pyo3::prelude::*;
use weir_scenario::Scenario;

use crate::errors::fail;

/// Checks that the lab can do what a resolved scenario, given as JSON, asks for.
#[pyfunction]
pub(crate) fn check_lab(scenario: &str) -> PyResult<()> {
    let scenario = Scenario::from_json(scenario).map_err(fail)?;
    weir_lab::check(&scenario).map_err(fail)
}

/// Moves this process, which must have one thread, into a lab and does there what `request` says. Both it
/// and the answer are JSON.
///
/// `show` is called a few times a second with a view of the run, as JSON; if it returns false or raises,
/// the run ends.
#[pyfunction]
pub(crate) fn lab(py: Python<'_>, request: &str, show: Py<PyAny>) -> PyResult<String> {
    let mut show = |view: &str| {
        let go_on = Python::attach(|held| show.call1(held, (view,))?.is_truthy(held));
        match go_on {
            Ok(true) => ControlFlow::Continue(()),
            Ok(false) | Err(_) => ControlFlow::Break(()),
        }
    };
    py.detach(|| weir_lab::serve(request, &mut show)).map_err(fail)
}
