//! The server.

use std::time::Duration;

use pyo3::prelude::*;

/// Runs the server that the words of a command line ask for, until a signal ends it. The first word is the
/// program's name.
///
/// Returns an exit code and what there is to say: the help that was asked for, or what is wrong.
#[pyfunction]
pub(crate) fn serve(py: Python<'_>, words: Vec<String>) -> PyResult<(u8, String)> {
    let running = match py.detach(|| weir_serve::serve(&words)) {
        Ok(running) => running,
        Err(failure) => return Ok((failure.exit_code, failure.message)),
    };
    while !py.detach(|| running.wait(LOOK)) {
        if py.check_signals().is_err() {
            // The user, or the system, wants an end: that is what a server is ended by.
            running.stopper().stop();
            break;
        }
    }
    while !py.detach(|| running.wait(LOOK)) {
        // A second signal cannot wait.
        py.check_signals()?;
    }
    Ok((0, String::new()))
}

/// How often signals are looked at.
const LOOK: Duration = Duration::from_millis(50);
