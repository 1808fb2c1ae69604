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
    let mut asked = false;
    loop {
        if let Some(outcome) = py.detach(|| running.wait(LOOK)) {
            return Ok(outcome.map_or_else(|error| (1, error.to_string()), |()| (0, String::new())));
        }
        match py.check_signals() {
            Ok(()) => {}
            // A second signal cannot wait.
            Err(signal) if asked => return Err(signal),
            // The user, or the system, wants an end: that is what a server is ended by.
            Err(_) => {
                asked = true;
                running.stopper().stop();
            }
        }
    }
}

/// How often signals are looked at.
const LOOK: Duration = Duration::from_millis(50);
