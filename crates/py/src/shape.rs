//! The shaper on a real interface.

use std::path::PathBuf;

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use weir_rate_control::Mode;
use weir_scenario::file::rules::RulesSpec;
use weir_scenario::file::schema_of_file;
use weir_scenario::file::shape::ShapeSpec;
use weir_shape::{Backend, Command, ProverSettings, Settings, ShapeError, View};

use crate::errors::{fail, wrong};
use crate::scenario::{from_python, to_python};

/// The backend that would shape by `settings`, the reason, and the queue of each way, egress and ingress. Nothing is changed.
///
/// `settings` is JSON text as that of `shape`.
#[pyfunction]
pub(crate) fn choose_shaper<'py>(py: Python<'py>, settings: &str) -> PyResult<Bound<'py, PyDict>> {
    let settings = read(settings)?;
    settings.check().map_err(refused)?;
    let choice = py.detach(|| weir_shape::choose(&settings)).map_err(refused)?;
    let entry = PyDict::new(py);
    let backend = match choice.backend {
        Backend::Kernel => "kernel",
        Backend::Userspace => "userspace",
    };
    entry.set_item("backend", backend)?;
    let cautions = weir_shape::cautions(&settings, choice.backend).map_err(refused)?;
    entry.set_item("cautions", cautions)?;
    let (framing, framing_why) = weir_shape::framing_of(&settings.device);
    let found = (framing == settings.framing).then_some(framing_why);
    entry.set_item("plan", weir_shape::plan_lines(&settings, &choice, found))?;
    entry.set_item("beginning", settings.clone().recall().words)?;
    entry.set_item("why", choice.why)?;
    entry.set_item("queues", PyList::new(py, choice.queues)?)?;
    Ok(entry)
}

/// What stands in a file of settings, which is checked.
#[pyfunction]
pub(crate) fn read_shaper_config(py: Python<'_>, file: PathBuf) -> PyResult<Bound<'_, PyAny>> {
    to_python(py, &weir_shape::read_config(&file).map_err(refused)?)
}

/// The settings of the shaper of a device, as JSON text: those of the file `config`, and those `given` before them.
#[pyfunction]
#[pyo3(signature = (device, config, given))]
pub(crate) fn read_shaper_settings(
    py: Python<'_>,
    device: &str,
    config: Option<PathBuf>,
    given: &Bound<'_, PyAny>,
) -> PyResult<String> {
    let given = from_python(given)?;
    let settings = py.detach(|| weir_shape::read_settings(device, config.as_deref(), given));
    serde_json::to_string(&settings.map_err(refused)?).map_err(fail)
}

/// The priority rules of a shipped list or of a file, as JSON text.
#[pyfunction]
pub(crate) fn read_shaper_rules(name: &str) -> PyResult<String> {
    serde_json::to_string(&weir_shape::read_rules(name).map_err(refused)?).map_err(fail)
}

/// The text of the shipped list of rules of that name, or of the file.
#[pyfunction]
pub(crate) fn shaper_rules_text(name: &str) -> PyResult<String> {
    weir_shape::rules_text(name).map_err(refused)
}

/// Names of the shipped lists of rules, sorted.
#[pyfunction]
pub(crate) fn shipped_rules() -> Vec<&'static str> {
    weir_shape::shipped_rules()
}

/// The JSON Schemas of a shaper's files: `rules` and `shaper`.
#[pyfunction]
pub(crate) fn shaper_schemas(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let found = PyDict::new(py);
    let rules = schema_of_file::<RulesSpec>("Priority rules of a shaper of Weir");
    found.set_item("rules", to_python(py, &rules)?)?;
    let settings = schema_of_file::<ShapeSpec>("Settings of a shaper of Weir");
    found.set_item("shaper", to_python(py, &settings)?)?;
    Ok(found)
}

/// Host and port of a `weir serve`, which is written as `HOST`, `HOST:PORT` or `[IPV6]:PORT`.
#[pyfunction]
pub(crate) fn host_and_port(written: &str) -> PyResult<(String, u16)> {
    weir_scenario::file::shape::host_and_port(written).map_err(wrong)
}

/// A host without the brackets in which an address of IPv6 may stand.
#[pyfunction]
pub(crate) fn host_in(written: &str) -> PyResult<String> {
    weir_scenario::file::shape::host_in(written).map_err(wrong)
}

/// What `shaper_view_words` returns.
type ViewWords = (String, String, Vec<String>, Vec<String>, Option<u64>);

/// A view in words: its line, its delay, its remarks, and the reason of each side that is shaped; and the delay
/// in ns, `None` if none was measured.
#[pyfunction]
pub(crate) fn shaper_view_words(view: &str) -> PyResult<ViewWords> {
    let view = View::parse(view).map_err(refused)?;
    let reasons = view.named_sides().map(|(_, side)| side.reason_in_words()).collect();
    Ok((view.line(), view.delay(), view.remarks(), reasons, view.median_rtt_ns()))
}

/// A view as metrics in Prometheus' text format.
#[pyfunction]
pub(crate) fn shaper_metrics(view: &str) -> PyResult<String> {
    Ok(View::parse(view).map_err(refused)?.metrics())
}

/// A decision of a log, which is a line of JSON, in one line for people.
#[pyfunction]
pub(crate) fn shaper_decision_line(line: &str) -> PyResult<String> {
    weir_shape::decision_line(line).map_err(refused)
}

/// Shapes as `settings` say until `show` wants an end or their time is over: how many decisions were made, and why what was
/// learned of the line could not be kept at the end, if it should have been.
///
/// `settings` is JSON text, since the head of every log and `weir shape --dry-run --json` have it as it is. `show` is given
/// a view a few times a second, JSON text as the control socket gives it to whoever asks, and returns one of `continue`,
/// `open`, `shape` and `stop`. If it raises, the shaper ends, and so does this function with what it raised; but
/// `KeyboardInterrupt` is `stop`.
#[pyfunction]
pub(crate) fn shape(
    py: Python<'_>,
    settings: &str,
    seed: u64,
    show: Py<PyAny>,
) -> PyResult<(u64, Option<String>)> {
    let settings = read(settings)?;
    let mut raised = None;
    let mut on_view = |view: &str| {
        let wanted = Python::attach(|held| show.call1(held, (view,))?.extract::<String>(held));
        match wanted.as_deref() {
            Ok("continue") => Command::Continue,
            Ok("open") => Command::Open,
            Ok("shape") => Command::Shape,
            Ok(_) => Command::Stop,
            Err(error) => {
                let is_request =
                    Python::attach(|held| error.is_instance_of::<PyKeyboardInterrupt>(held));
                raised = wanted.err().filter(|_| !is_request);
                Command::Stop
            }
        }
    };
    let done = py.detach(|| weir_shape::run(&settings, seed, &mut on_view));
    match raised {
        Some(error) => Err(error),
        None => done.map(|ended| (ended.decisions, ended.unkept)).map_err(refused),
    }
}

/// Leads a shaper through a measurement of the line without and with it. It is shown views, and says what is to be done.
#[pyclass(module = "weirlab._native")]
pub(crate) struct Prover(weir_shape::Prover);

#[pymethods]
impl Prover {
    #[new]
    #[pyo3(signature = (*, rounds, measure_ns, max_cost, own_traffic))]
    fn new(rounds: usize, measure_ns: u64, max_cost: f64, own_traffic: bool) -> Self {
        Self(weir_shape::Prover::new(ProverSettings {
            rounds,
            measure_ns,
            max_cost,
            own_traffic,
            takes_commands: true,
        }))
    }

    /// What will be measured, in a line for people.
    #[getter]
    fn plan(&self) -> String {
        self.0.plan()
    }

    /// How long it takes from the moment at which the load is there, in ns.
    #[getter]
    fn total_ns(&self) -> u64 {
        self.0.total_ns()
    }

    /// Whether the load is no longer wanted.
    #[getter]
    fn is_past_load(&self) -> bool {
        self.0.is_past_load()
    }

    /// Whether everything is measured.
    #[getter]
    fn has_ended(&self) -> bool {
        self.0.has_ended()
    }

    /// Refuses a run of so many ns that would end before the measurement is complete.
    #[pyo3(signature = (time_ns))]
    fn check_time(&self, time_ns: Option<u64>) -> PyResult<()> {
        self.0.fits(time_ns).map_err(wrong)
    }

    /// Takes a view in, JSON text: what the shaper is to do, in a word as `shape` takes it.
    fn step(&mut self, view: &str) -> PyResult<&'static str> {
        let view = View::parse(view).map_err(refused)?;
        Ok(match self.0.step(&view) {
            Command::Continue => "continue",
            Command::Open => "open",
            Command::Shape => "shape",
            Command::Stop => "stop",
        })
    }

    /// What was measured: its `figures` as JSON text, they in `lines` for people, a `remark` on the measurement itself, and the `verdict`.
    /// Raises with the reason if nothing can be said.
    fn proof<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let proof = self.0.proof().map_err(fail)?;
        let told = PyDict::new(py);
        told.set_item("figures", serde_json::to_string(&proof).map_err(fail)?)?;
        told.set_item("lines", proof.lines())?;
        told.set_item("remark", proof.remark())?;
        told.set_item("verdict", proof.verdict)?;
        Ok(told)
    }
}

/// The last view of the shaper of a device, as JSON text; empty if it has shown none yet.
#[pyfunction]
pub(crate) fn shaper_status(py: Python<'_>, device: &str) -> PyResult<String> {
    let view = py.detach(|| weir_shape::ask(device)).map_err(refused)?;
    view.map_or_else(|| Ok(String::new()), |view| serde_json::to_string(&view).map_err(fail))
}

/// Ends the shaper of a device, and returns when it has restored what was there.
#[pyfunction]
pub(crate) fn stop_shaper(py: Python<'_>, device: &str) -> PyResult<()> {
    py.detach(|| weir_shape::end(device)).map_err(refused)
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
