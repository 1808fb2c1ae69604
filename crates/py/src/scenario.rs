//! Scenario files: what they say, and the resolved scenarios that they stand for.

use std::ffi::OsString;
use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyMapping, PyString, PyTuple};
use weir_core::{Seed, Time};
use weir_scenario::file::catalogue::{
    load_link_beyond, read, read_file_beyond, read_scenario_file, read_written_beyond,
};
use weir_scenario::file::field::{Field, Form};
use weir_scenario::file::link::LinkSpec;
use weir_scenario::file::spec::{LinkChoice, ScenarioSpec};
use weir_scenario::file::{Fault, Files, Telling, Value, Written, quantity};
use weir_scenario::{Direction, Scenario};
use weir_speedtest::MethodInfo;

use crate::errors::{fail, wrong};

/// Nanoseconds of a time such as `5ms`, which needs its unit.
#[pyfunction]
pub(crate) fn read_time(written: &Bound<'_, PyAny>) -> PyResult<u64> {
    quantity::read_time(&from_python(written)?).map_err(fail)
}

/// Bit/s of a rate such as `20mbit`, which needs its unit.
#[pyfunction]
pub(crate) fn read_rate(written: &Bound<'_, PyAny>) -> PyResult<u64> {
    quantity::read_rate(&from_python(written)?).map_err(fail)
}

/// Reads a quantity of that kind, such as `LineRate`, in base units.
#[pyfunction]
pub(crate) fn read_quantity<'py>(
    py: Python<'py>,
    kind: &str,
    written: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let found = weir_scenario::file::read_quantity(kind, &from_python(written)?);
    to_python(py, &found.map_err(fail)?)
}

/// The names of the shipped tests, sorted.
#[pyfunction]
pub(crate) fn shipped_tests() -> Vec<&'static str> {
    weir_scenario::file::shipped_tests()
}

/// The names of the shipped links, sorted.
#[pyfunction]
pub(crate) fn shipped_links() -> Vec<&'static str> {
    weir_scenario::file::shipped_links()
}

/// The JSON Schema of scenario files.
#[pyfunction]
pub(crate) fn scenario_schema(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    to_python(py, &weir_scenario::file::schema())
}

/// Reads a specification of that kind, such as `TestSpec`: the keys that were there, in base units.
///
/// `place` is what a message calls it, `names` what it calls keys that have names of their own.
#[pyfunction]
pub(crate) fn read_spec<'py>(
    py: Python<'py>,
    kind: &str,
    written: &Bound<'py, PyAny>,
    place: &str,
    names: Vec<(String, String)>,
) -> PyResult<Bound<'py, PyAny>> {
    let telling = Telling { place, names: &names };
    let found = weir_scenario::file::read_spec(kind, &from_python(written)?, telling);
    to_python(py, &found.map_err(fail)?)
}

/// The scenario in the text of a file, in base units; `None` if the file is that of a test.
///
/// `link` takes the place of the scenario's own, which then need not be there; `files` reads the tests that it names.
#[pyfunction]
#[pyo3(signature = (text, place, link, files))]
pub(crate) fn read_scenario_or_test<'py>(
    py: Python<'py>,
    text: &str,
    place: &str,
    link: Option<&Bound<'py, PyAny>>,
    files: Bound<'py, PyAny>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let link = link.map(from_python).transpose()?;
    let files = PythonFiles(files);
    let more = |written: &Written, spec: Option<&ScenarioSpec>| beyond(written, spec, &files);
    let spec = read_scenario_file(text, place, link, &files, &more).map_err(fail)?;
    spec.map(|spec| to_python(py, &spec.write(Form::Numbers))).transpose()
}

/// The scenario in the text of `file`, which messages call `place`, in base units; `files` reads the tests that it names.
#[pyfunction]
pub(crate) fn read_scenario<'py>(
    py: Python<'py>,
    text: &str,
    file: &str,
    place: &str,
    files: Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let files = PythonFiles(files);
    let more = |written: &Written, spec: Option<&ScenarioSpec>| beyond(written, spec, &files);
    let spec = read_file_beyond(text, file, place, &files, &more).map_err(fail)?;
    to_python(py, &spec.write(Form::Numbers))
}

/// The scenario that stands in a part of `file`, which messages call `place`, as `written`, in base units.
///
/// `files` reads what it names.
#[pyfunction]
pub(crate) fn read_scenario_in<'py>(
    py: Python<'py>,
    written: &Bound<'py, PyAny>,
    file: &str,
    place: &str,
    files: Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let mut written = from_python(written)?;
    let files = PythonFiles(files);
    let more = |said: &Written, spec: Option<&ScenarioSpec>| beyond(said, spec, &files);
    let spec = read_written_beyond(&mut written, file, place, &files, &more).map_err(fail)?;
    to_python(py, &spec.write(Form::Numbers))
}

/// The path of what `file` calls `name`: beside that file, or from the working folder.
#[pyfunction]
pub(crate) fn named_in(file: PathBuf, name: &str) -> PyResult<OsString> {
    weir_shape::named_in(&file, name).map(PathBuf::into_os_string).map_err(fail)
}

/// What stands in `file`, as `written`, with paths of the `files` that it names.
#[pyfunction]
pub(crate) fn name_files<'py>(
    py: Python<'py>,
    written: &Bound<'py, PyAny>,
    file: &str,
    files: Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let mut written = from_python(written)?;
    let faults = weir_scenario::file::name_files(&mut written, file, &PythonFiles(files));
    if faults.is_empty() {
        return to_python(py, &written);
    }
    Err(fail(Telling { place: file, names: &[] }.sentence(faults)))
}

/// The shipped test of that name, or the test in that file, in base units.
#[pyfunction]
pub(crate) fn load_test<'py>(
    py: Python<'py>,
    name: &str,
    files: Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let spec = weir_scenario::file::load_test(name, &PythonFiles(files)).map_err(fail)?;
    to_python(py, &spec.write(Form::Numbers))
}

/// The shipped link of that name, or the link in that file, in base units.
#[pyfunction]
pub(crate) fn load_link<'py>(
    py: Python<'py>,
    name: &str,
    files: Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let files = PythonFiles(files);
    let spec = load_link_beyond(name, &files, &link_words).map_err(fail)?;
    to_python(py, &spec.write(Form::Numbers))
}

/// Sentences about what a scenario compares in vain; `files` reads the files that it names.
#[pyfunction]
pub(crate) fn remarks(
    scenario: &Bound<'_, PyAny>,
    files: Bound<'_, PyAny>,
) -> PyResult<Vec<String>> {
    let spec = read_as(scenario, "scenario")?;
    weir_scenario::file::remarks(&spec, &PythonFiles(files)).map_err(fail)
}

/// The rate of a link in one direction, in bit/s, if it has one: of its slowest hop.
#[pyfunction]
pub(crate) fn line_rate(link: &Bound<'_, PyAny>, direction: &str) -> PyResult<Option<u64>> {
    let link: LinkSpec = read_as(link, "link")?;
    Ok(link.line_rate_bps(read_direction(direction)?))
}

/// The rate of a link in one direction, in bit/s, if it has one: of its slowest hop, of recordings the mean rate.
#[pyfunction]
pub(crate) fn mean_rate(
    link: &Bound<'_, PyAny>,
    direction: &str,
    files: Bound<'_, PyAny>,
) -> PyResult<Option<u64>> {
    let link: LinkSpec = read_as(link, "link")?;
    link.mean_rate_bps(read_direction(direction)?, &PythonFiles(files)).map_err(fail)
}

/// When each path of a reconfiguration begins, in ns, and its share of the line's rate; `hop` is the hop's full name, and
/// `reconfiguration` JSON.
#[pyfunction]
pub(crate) fn path_shares(
    reconfiguration: &str,
    hop: &str,
    seed: u64,
    end_ns: u64,
) -> PyResult<Vec<(u64, f64)>> {
    let params = serde_json::from_str(reconfiguration).map_err(fail)?;
    let end = Time::from_nanos(end_ns);
    let shares = weir_path::path_shares(&params, hop, Seed::new(seed), end).map_err(fail)?;
    Ok(shares.into_iter().map(|(at, share)| (at.as_nanos(), share)).collect())
}

/// A configuration of a scenario, ready for a world.
#[pyclass(frozen, get_all, module = "weirlab._native")]
pub(crate) struct ResolvedConfiguration {
    /// The link, in base units.
    link: Py<PyAny>,
    /// The link with all its keys, as people write them.
    link_words: Py<PyAny>,
    /// The queue spec as the user wrote it.
    queue: String,
    /// The congestion control that the scenario names to be compared, if it does.
    cc: Option<String>,
    /// The words of a scenario file that make this configuration of test and link.
    words: Py<PyAny>,
    /// The resolved scenario, as JSON.
    scenario: String,
}

/// All runs of a scenario.
#[pyclass(frozen, get_all, module = "weirlab._native")]
pub(crate) struct Resolved {
    /// The test, in base units.
    test: Py<PyAny>,
    /// The test with all its keys, as people write them.
    test_words: Py<PyAny>,
    /// The configurations that are compared.
    configurations: Vec<Py<ResolvedConfiguration>>,
    /// The seeds of the runs of each configuration.
    seeds: Vec<u64>,
}

/// Resolves a scenario; `files` reads the files and recordings that it names.
#[pyfunction]
pub(crate) fn resolve_scenario<'py>(
    py: Python<'py>,
    scenario: &Bound<'py, PyAny>,
    files: Bound<'py, PyAny>,
) -> PyResult<Resolved> {
    let spec: ScenarioSpec = read_as(scenario, "scenario")?;
    let files = PythonFiles(files);
    for link in spec.link.all() {
        if let LinkChoice::Name(name) = link
            && name.ends_with(".toml")
        {
            load_link_beyond(name, &files, &link_words).map_err(fail)?;
        }
    }
    let resolved =
        weir_scenario::file::resolve(&spec, &files, server_congestion_control).map_err(fail)?;
    let configuration =
        |one: weir_scenario::file::ResolvedConfiguration| -> PyResult<Py<ResolvedConfiguration>> {
            for trace in one.link.traces() {
                files.trace_rate_bps(trace).map_err(fail)?;
            }
            weir_path::check(&one.scenario).map_err(fail)?;
            weir_tcp::check_profiles(&one.scenario).map_err(fail)?;
            let link = to_python(py, &one.link.write(Form::Numbers))?.unbind();
            let link_words = to_python(py, &one.link.write(Form::AllWords))?.unbind();
            let words = to_python(py, &one.words.write(Form::Words))?.unbind();
            let text = one.scenario.to_json();
            Py::new(
                py,
                ResolvedConfiguration {
                    link,
                    link_words,
                    queue: one.queue,
                    cc: one.cc,
                    words,
                    scenario: text,
                },
            )
        };
    Ok(Resolved {
        test: to_python(py, &resolved.test.write(Form::Numbers))?.unbind(),
        test_words: to_python(py, &resolved.test.write(Form::AllWords))?.unbind(),
        configurations: resolved
            .configurations
            .into_iter()
            .map(configuration)
            .collect::<PyResult<_>>()?,
        seeds: resolved.seeds,
    })
}

/// The resolved scenario, as JSON, of a client with several paths: of each its name, and its resolved scenario as JSON.
#[pyfunction]
pub(crate) fn join_paths(paths: Vec<(String, String)>) -> PyResult<String> {
    let read = |(name, text): (String, String)| -> PyResult<_> {
        Ok((name, Scenario::from_json(&text).map_err(fail)?))
    };
    let paths = paths.into_iter().map(read).collect::<PyResult<Vec<_>>>()?;
    Ok(Scenario::with_client_paths(&paths).map_err(fail)?.to_json())
}

/// The congestion control that servers of the speed test of that name ask for, if there is one.
fn server_congestion_control(kind: &str) -> Option<&'static str> {
    MethodInfo::named(kind).ok()?.congestion_control
}

/// What is wrong with queues and markers of a scenario file; if nothing else is, also with what it names of tests in files.
fn beyond(written: &Written, spec: Option<&ScenarioSpec>, files: &PythonFiles<'_>) -> Vec<Fault> {
    let mut faults = weir_path::word_faults(written);
    faults.extend(
        spec.into_iter()
            .flat_map(|spec| weir_scenario::file::faults_of_files(spec, written, files)),
    );
    faults
}

/// What is wrong with queues and markers of a link file.
fn link_words(written: &Written, _: Option<&LinkSpec>) -> Vec<Fault> {
    weir_path::word_faults(written)
}

fn read_as<T: Field>(written: &Bound<'_, PyAny>, place: &str) -> PyResult<T> {
    read(&from_python(written)?, place, &[]).map_err(fail)
}

fn read_direction(direction: &str) -> PyResult<Direction> {
    let written = Written::from(direction);
    read(&written, "direction", &[]).map_err(fail)
}

/// The files that Python reads, with its limits on what it reads.
struct PythonFiles<'py>(Bound<'py, PyAny>);

impl Files for PythonFiles<'_> {
    fn is_file(&self, name: &str) -> bool {
        let found = self.0.call_method1("is_file", (name,));
        found.and_then(|found| found.extract()).unwrap_or(false)
    }

    fn named_in(&self, file: &str, name: &str) -> Result<String, String> {
        let path = self.0.call_method1("named_in", (file, name)).and_then(|path| path.extract());
        path.map_err(|error| error.value(self.0.py()).to_string())
    }

    fn read(&self, name: &str) -> Result<String, String> {
        let text = self.0.call_method1("read", (name,)).and_then(|text| text.extract());
        text.map_err(|error| error.value(self.0.py()).to_string())
    }

    fn trace_rate_bps(&self, name: &str) -> Result<u64, String> {
        let rate = self.0.call_method1("trace_rate_bps", (name,)).and_then(|rate| rate.extract());
        rate.map_err(|error| error.value(self.0.py()).to_string())
    }
}

/// An object of Python as something written; what a scenario can be made of, and anything else in its own words.
pub(crate) fn from_python(object: &Bound<'_, PyAny>) -> PyResult<Written> {
    inner_from_python(object, 0)
}

fn inner_from_python(object: &Bound<'_, PyAny>, depth: usize) -> PyResult<Written> {
    let value = if object.is_none() {
        Value::Nothing
    } else if let Ok(value) = object.cast::<PyBool>() {
        Value::Bool(value.is_true())
    } else if object.is_instance_of::<PyInt>() {
        match object.extract() {
            Ok(number) => Value::Whole(number),
            // Python writes no number of more than 4300 digits.
            Err(_) => Value::Other(object.str().map_or_else(
                |_| "a whole number of thousands of digits".to_owned(),
                |text| text.to_string(),
            )),
        }
    } else if let Ok(number) = object.cast::<PyFloat>() {
        Value::Number(number.value())
    } else if let Ok(text) = object.cast::<PyString>() {
        Value::Text(text.to_string_lossy().into_owned())
    } else if depth > MAX_DEPTH {
        return Err(wrong("what was written is nested too deep"));
    } else if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
        let parts = object.try_iter()?.map(|part| inner_from_python(&part?, depth + 1));
        Value::List(parts.collect::<PyResult<_>>()?)
    } else if let Ok(mapping) = object.cast::<PyMapping>() {
        let mut entries = Vec::new();
        for item in mapping.items()?.iter() {
            let (key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = item.extract()?;
            entries.push((
                key.str()?.to_string_lossy().into_owned(),
                inner_from_python(&value, depth + 1)?,
            ));
        }
        Value::Table(entries)
    } else if let Ok(written) = object.getattr("written") {
        // A specification, which says itself what was written of it.
        return inner_from_python(&written.call0()?, depth + 1);
    } else {
        Value::Other(object.repr()?.to_string_lossy().into_owned())
    };
    Ok(Written::of(value))
}

/// Something written as an object of Python.
pub(crate) fn to_python<'py>(py: Python<'py>, written: &Written) -> PyResult<Bound<'py, PyAny>> {
    Ok(match &written.value {
        Value::Nothing => py.None().into_bound(py),
        Value::Bool(value) => value.into_pyobject(py)?.to_owned().into_any(),
        Value::Whole(number) => number.into_pyobject(py)?.into_any(),
        Value::Number(number) => number.into_pyobject(py)?.into_any(),
        Value::Text(text) | Value::Other(text) => text.into_pyobject(py)?.into_any(),
        Value::List(parts) => {
            let list = PyList::empty(py);
            for part in parts {
                list.append(to_python(py, part)?)?;
            }
            list.into_any()
        }
        Value::Table(entries) => {
            let dict = PyDict::new(py);
            for (key, value) in entries {
                dict.set_item(key, to_python(py, value)?)?;
            }
            dict.into_any()
        }
    })
}

/// How deep lists and tables of Python may stand within one another: as deep as those of TOML.
const MAX_DEPTH: usize = 80;
