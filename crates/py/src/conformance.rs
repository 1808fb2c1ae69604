//! Recordings of real Linux disciplines held against ours.

use pyo3::prelude::*;
use weir_conformance::{Judgement, Recording, judge};

use crate::errors::fail;

/// Holds our discipline against the recording in `text`: its name, the verdict (`exact`, `agrees` or
/// `fails`) and a remark on it.
#[pyfunction]
pub(crate) fn conformance(py: Python<'_>, text: &str) -> PyResult<(String, &'static str, String)> {
    let (name, verdict) = py.detach(|| {
        let recording = Recording::parse(text).map_err(fail)?;
        let verdict = judge(&recording).map_err(fail)?;
        Ok::<_, PyErr>((recording.name, verdict))
    })?;
    let (word, remark) = match verdict {
        Judgement::Exact { packets } => ("exact", format!("{packets} packets")),
        Judgement::Agrees { ours, nearest, tests } => (
            "agrees",
            format!(
                "dropped {:.4}, marked {:.4}, mean delay {:.2} ms; least p of {tests} tests {:.2}",
                ours.dropped, ours.marked, ours.delay_ms, nearest.p
            ),
        ),
        Judgement::Fails(why) => ("fails", why),
    };
    Ok((name, word, remark))
}
