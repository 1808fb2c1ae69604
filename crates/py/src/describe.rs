//! Descriptions for Python of disciplines, TCP profiles and units.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};
use weir_core::{Dscp, RNG_NAME, Rate};
use weir_path::Trace;
use weir_qdisc::{DISCIPLINES, Device, MARKERS, Param, Preset, QueueSpec};
use weir_scenario::{ColumnType, OfEach, TABLES};
use weir_speedtest::{Caution, KnownBy, METHODS, Object};
use weir_tcp::{ALGORITHMS, PROFILES};

use crate::errors::fail;

/// The name of `known` that is most like `word`, if one is like it at all.
///
/// A word may have what UTF-8 has not, as words of a command line may.
#[pyfunction]
pub(crate) fn nearest(word: &Bound<'_, PyString>, known: Vec<String>) -> Option<String> {
    let known = known.iter().map(String::as_str);
    weir_core::nearest(&word.to_string_lossy(), known).map(str::to_owned)
}

/// All queue disciplines with their parameters.
#[pyfunction]
pub(crate) fn disciplines(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let list = PyList::empty(py);
    for discipline in DISCIPLINES {
        let entry = PyDict::new(py);
        entry.set_item("name", discipline.name)?;
        entry.set_item("summary", discipline.summary)?;
        entry.set_item("source", discipline.source)?;
        entry.set_item("preset", Preset::named(discipline.name).is_some())?;
        let classful = discipline.has_bands() || !discipline.class_params.is_empty();
        entry.set_item("classful", classful)?;
        entry.set_item("params", params(py, discipline.params)?)?;
        entry.set_item("class_params", params(py, discipline.class_params)?)?;
        list.append(entry)?;
    }
    Ok(list)
}

/// All markers with their parameters.
#[pyfunction]
pub(crate) fn markers(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let list = PyList::empty(py);
    for marker in MARKERS {
        let entry = PyDict::new(py);
        entry.set_item("name", marker.name)?;
        entry.set_item("summary", marker.summary)?;
        entry.set_item("source", marker.source)?;
        entry.set_item("params", params(py, marker.params)?)?;
        list.append(entry)?;
    }
    Ok(list)
}

/// Bounds that Python holds what is written against too.
#[pyfunction]
pub(crate) fn bounds(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let entry = PyDict::new(py);
    entry.set_item("min_ping_period_ns", weir_sockets::MIN_PING_PERIOD.as_nanos())?;
    entry.set_item("max_pings", weir_sockets::MAX_PINGS)?;
    entry.set_item("max_ping_payload_bytes", weir_sockets::MAX_PAYLOAD_BYTES)?;
    entry.set_item("max_seed", weir_scenario::file::spec::MAX_SEED)?;
    entry.set_item("max_client_paths", weir_scenario::MAX_CLIENT_PATHS)?;
    entry.set_item("max_faults", weir_scenario::file::MAX_FAULTS)?;
    entry.set_item("max_quoted_chars", weir_scenario::file::MAX_QUOTED_CHARS)?;
    entry.set_item("max_shown_chars", weir_scenario::file::MAX_SHOWN_CHARS)?;
    Ok(entry)
}

/// The tables of the record with their columns.
#[pyfunction]
pub(crate) fn tables(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let list = PyList::empty(py);
    for table in TABLES {
        let columns = PyList::empty(py);
        for column in (table.columns)() {
            let entry = PyDict::new(py);
            entry.set_item("name", column.name)?;
            let kind = match column.kind {
                ColumnType::Integer => "integer",
                ColumnType::Float => "float",
                ColumnType::Text => "text",
            };
            entry.set_item("kind", kind)?;
            entry.set_item("nullable", column.nullable)?;
            entry.set_item("meaning", column.meaning)?;
            entry.set_item("since", column.since)?;
            entry.set_item("family", column.family)?;
            columns.append(entry)?;
        }
        let entry = PyDict::new(py);
        entry.set_item("name", table.name)?;
        entry.set_item("meaning", table.meaning)?;
        let of_each = match table.of_each {
            OfEach::Run => "run",
            OfEach::Moment => "moment",
            OfEach::Interval => "interval",
        };
        entry.set_item("of_each", of_each)?;
        entry.set_item("columns", columns)?;
        list.append(entry)?;
    }
    Ok(list)
}

/// All methods of foreign speed tests, as `weir test --method` runs them.
#[pyfunction]
pub(crate) fn methods(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let list = PyList::empty(py);
    for known in METHODS {
        let entry = PyDict::new(py);
        entry.set_item("name", known.name)?;
        entry.set_item("summary", known.summary)?;
        entry.set_item("server_kind", known.server_kind)?;
        entry.set_item("congestion_control", known.congestion_control)?;
        entry.set_item("known_by", known.known_by.map(|sign| known_by(py, sign)).transpose()?)?;
        entry.set_item("cautions", cautions(py, known.cautions)?)?;
        entry.set_item("needs_tls", known.needs_tls)?;
        entry.set_item("result", object(py, known.result)?)?;
        list.append(entry)?;
    }
    Ok(list)
}

fn known_by(py: Python<'_>, sign: KnownBy) -> PyResult<Bound<'_, PyDict>> {
    let entry = PyDict::new(py);
    entry.set_item("path", sign.path)?;
    entry.set_item("statuses", PyList::new(py, sign.statuses)?)?;
    entry.set_item("key", sign.key)?;
    Ok(entry)
}

fn cautions<'py>(py: Python<'py>, table: &[Caution]) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for caution in table {
        let entry = PyDict::new(py);
        entry.set_item("figure", caution.figure)?;
        entry.set_item("says", caution.says)?;
        list.append(entry)?;
    }
    Ok(list)
}

/// The keys of an object in a method's result.
fn object<'py>(py: Python<'py>, declared: &Object) -> PyResult<Bound<'py, PyDict>> {
    let fields = PyList::empty(py);
    for field in declared.fields {
        let (kind, part) = match field.kind {
            weir_speedtest::ValueType::Bool => ("boolean", None),
            weir_speedtest::ValueType::Integer => ("integer", None),
            weir_speedtest::ValueType::Float => ("float", None),
            weir_speedtest::ValueType::Text => ("text", None),
            weir_speedtest::ValueType::Texts => ("texts", None),
            weir_speedtest::ValueType::Object(part) => ("object", Some(object(py, part)?)),
        };
        let entry = PyDict::new(py);
        entry.set_item("name", field.name)?;
        entry.set_item("kind", kind)?;
        entry.set_item("object", part)?;
        entry.set_item("nullable", field.nullable)?;
        entry.set_item("meaning", field.meaning)?;
        fields.append(entry)?;
    }
    let entry = PyDict::new(py);
    entry.set_item("name", declared.name)?;
    entry.set_item("meaning", declared.meaning)?;
    entry.set_item("fields", fields)?;
    Ok(entry)
}

/// Everything that `weir serve` offers, as `--without` switches it off.
#[pyfunction]
pub(crate) fn services(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let list = PyList::empty(py);
    for service in weir_serve::Service::all() {
        let entry = PyDict::new(py);
        entry.set_item("name", service.name())?;
        entry.set_item("summary", service.summary())?;
        list.append(entry)?;
    }
    Ok(list)
}

fn params<'py>(py: Python<'py>, table: &[Param]) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for param in table {
        let entry = PyDict::new(py);
        entry.set_item("name", param.name)?;
        entry.set_item("aliases", param.aliases)?;
        entry.set_item("unit", param.kind.describe())?;
        entry.set_item("default", param.default.describe())?;
        entry.set_item("meaning", param.meaning)?;
        list.append(entry)?;
    }
    Ok(list)
}

/// Checks that `text` is a queue spec, for a line of `rate_bps` bit/s if its rate is fixed.
#[pyfunction]
pub(crate) fn check_queue(text: &str, rate_bps: Option<u64>) -> PyResult<()> {
    let device = Device { line_rate: rate_bps.map(Rate::from_bps), ..Device::default() };
    QueueSpec::parse(text).and_then(|spec| spec.build(&device)).map(|_| ()).map_err(fail)
}

/// The `tc` commands for which `text` stands on a line of `rate_bps` bit/s, if it is a preset.
#[pyfunction]
pub(crate) fn expand_queue(text: &str, rate_bps: Option<u64>) -> PyResult<Option<String>> {
    let device = Device { line_rate: rate_bps.map(Rate::from_bps), ..Device::default() };
    let spec = QueueSpec::parse(text).map_err(fail)?;
    let preset = Preset::named(spec.discipline.name);
    preset.map(|preset| preset.expand(&spec, &device)).transpose().map_err(fail)
}

/// All congestion controls of the simulated TCP.
#[pyfunction]
pub(crate) fn congestion_controls(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let list = PyList::empty(py);
    for known in ALGORITHMS {
        let entry = PyDict::new(py);
        entry.set_item("name", known.name)?;
        entry.set_item("summary", known.summary)?;
        entry.set_item("source", known.source)?;
        list.append(entry)?;
    }
    Ok(list)
}

/// The names of the profiles of the simulated TCP.
#[pyfunction]
pub(crate) fn tcp_profiles() -> Vec<&'static str> {
    PROFILES.iter().map(|profile| profile.name).collect()
}

/// A differentiated services code point such as `EF` or `46` as a number.
#[pyfunction]
pub(crate) fn parse_dscp(text: &str) -> PyResult<u8> {
    Dscp::parse(text)
        .map(Dscp::get)
        .ok_or_else(|| fail(weir_scenario::file::quantity::no_dscp(text)))
}

/// The name of a differentiated services code point, such as `EF`, if it has one.
#[pyfunction]
pub(crate) fn dscp_name(dscp: i64) -> Option<&'static str> {
    u8::try_from(dscp).ok().and_then(Dscp::new).and_then(Dscp::name)
}

/// How many packets the recording `text`, called `name`, lets pass, and in how many milliseconds.
#[pyfunction]
pub(crate) fn check_trace(py: Python<'_>, name: &str, text: &str) -> PyResult<(usize, u64)> {
    let trace = py.detach(|| Trace::parse(name, text)).map_err(fail)?;
    Ok((trace.opportunities(), trace.period().as_nanos() / 1_000_000))
}

/// The version of Weir, which is that of the package.
#[pyfunction]
pub(crate) const fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// The name of the random number generator.
#[pyfunction]
pub(crate) const fn rng_name() -> &'static str {
    RNG_NAME
}
