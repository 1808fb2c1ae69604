//! Measurements of the path to a server elsewhere.

use std::ops::ControlFlow;
use std::path::PathBuf;

use pyo3::prelude::*;
use serde_json::{Map, Value};
use weir_client::{
    ClientError, Heard, MeasureRequest, MethodRequest, Offer, Outcome, RampPlan, TestLimits,
    TestWords, Unmeasured,
};
use weir_core::Time;
use weir_record::Recorder;
use weir_scenario::{Direction, IpVersion, MethodRow, Phase, Sink};
use weir_sockets::Target;
use weir_speedtest::bufferbloat::{GRADES, Grade, WORST_PHASE};

use crate::errors::{fail, wrong};
use crate::simulate::{ManifestInputs, Report};
use crate::whole::Whole;

/// Measures the paths to `hosts`, one for each of the scenario's, by the scenario and the seed of `manifest`, and writes the record into `folder`; returns
/// whether it came to its end. `manifest` and `progress` are as those of `simulate`.
///
/// `ip`, 4 or 6, is the Internet protocol of what does not say its own, if one is asked for. `secret` is what servers ask for. `ramp` adds flows until the line is full. `speed_test` is called at the
/// end, and returns the foreign speed test that ran meanwhile and that the record is to keep, or `None`.
#[pyfunction]
#[pyo3(signature = (manifest, folder, progress, *, hosts, secret, ip=None, ramp=None, speed_test=None))]
#[expect(clippy::too_many_arguments, reason = "each has a name where it is called")]
pub(crate) fn measure(
    py: Python<'_>,
    manifest: &str,
    folder: PathBuf,
    progress: Option<Py<PyAny>>,
    hosts: Vec<String>,
    secret: Option<String>,
    ip: Option<u8>,
    ramp: Option<Bound<'_, Ramp>>,
    speed_test: Option<Py<PyAny>>,
) -> PyResult<bool> {
    let ManifestInputs { scenario, seed } = serde_json::from_str(manifest).map_err(fail)?;
    let ramp = ramp.map(|ramp| ramp.get().0.clone());
    let ip = ip.map(ip_version).transpose()?;
    let request = MeasureRequest { hosts, ip, secret, scenario, seed, ramp };
    let mut report = Report::to(progress);
    let outcome = py.detach(|| -> PyResult<Outcome> {
        let mut recorder =
            Recorder::create(&folder, manifest, |now| report.on_progress(now)).map_err(fail)?;
        let outcome = weir_client::measure(&request, &mut recorder);
        if let Some(speed_test) = &speed_test {
            let ended = Python::attach(|held| -> PyResult<Option<Py<SpeedTest>>> {
                Ok(speed_test.call0(held)?.extract(held)?)
            })?;
            if let Some(ended) = ended {
                ended.get().write(&mut recorder);
            }
        }
        let mut last = Map::new();
        if let Ok(outcome) = &outcome {
            last.insert("reached_ns".to_owned(), Value::from(outcome.reached.as_nanos()));
        }
        let complete = outcome.as_ref().is_ok_and(|outcome| outcome.complete);
        recorder.finish(complete, last).map_err(fail)?;
        outcome.map_err(refused)
    })?;
    match report.raised {
        Some(error) => Err(error),
        None => Ok(outcome.complete),
    }
}

fn ip_version(ip: u8) -> PyResult<IpVersion> {
    match ip {
        4 => Ok(IpVersion::V4),
        6 => Ok(IpVersion::V6),
        other => Err(wrong(format!("ip {other}: write 4 or 6"))),
    }
}

/// Writes a record into `folder` of nothing but a foreign speed test that ended. `manifest` is as that of `simulate`.
#[pyfunction]
pub(crate) fn record_method(
    py: Python<'_>,
    manifest: &str,
    folder: PathBuf,
    speed_test: &Bound<'_, SpeedTest>,
) -> PyResult<()> {
    let ended = speed_test.get();
    py.detach(|| -> PyResult<()> {
        let mut recorder =
            Recorder::create(&folder, manifest, |_| ControlFlow::Continue(())).map_err(fail)?;
        ended.write(&mut recorder);
        let reached_ns = Value::from(ended.ended.as_nanos());
        recorder.finish(true, Map::from_iter([("reached_ns".to_owned(), reached_ns)])).map_err(fail)
    })
}

/// A foreign speed test that ended, as a record keeps it. Times are those of the record, in nanoseconds.
///
/// `result` is JSON text as `run_method` returns it: the record keeps it as it is.
#[pyclass(frozen, module = "weirlab._native")]
pub(crate) struct SpeedTest {
    name: String,
    kind: String,
    began: Time,
    ended: Time,
    result: String,
}

#[pymethods]
impl SpeedTest {
    #[new]
    #[pyo3(signature = (*, name, kind, began_ns, ended_ns, result))]
    fn new(
        name: String,
        kind: String,
        began_ns: Whole<u64>,
        ended_ns: Whole<u64>,
        result: String,
    ) -> PyResult<Self> {
        let began = Time::from_nanos(began_ns.named("began_ns")?);
        let ended = Time::from_nanos(ended_ns.named("ended_ns")?);
        Ok(Self { name, kind, began, ended, result })
    }
}

impl SpeedTest {
    /// Writes its row.
    fn write(&self, recorder: &mut Recorder<'_>) {
        recorder.method(&MethodRow {
            method: 0,
            name: &self.name,
            kind: &self.kind,
            began: self.began,
            ended: Some(self.ended),
            result: Some(&self.result),
        });
    }
}

/// Phases in which flows are added until the line is full, as `plan_test` makes them.
#[pyclass(frozen, module = "weirlab._native")]
pub(crate) struct Ramp(RampPlan);

/// Weir's own test that these words ask for, as `weir test` takes them: the resolved scenario as JSON, and the ramp.
///
/// With `locate` the first routers are asked too.
#[pyfunction]
#[pyo3(signature = (*, idle, load, ping, max_flows, cc, locate))]
pub(crate) fn plan_test(
    idle: String,
    load: String,
    ping: String,
    max_flows: Whole<u32>,
    cc: String,
    locate: bool,
) -> PyResult<(String, Ramp)> {
    let max_flows = max_flows.named("max_flows")?;
    let plan = TestWords { idle, load, ping, max_flows, cc, locate }.plan().map_err(refused)?;
    Ok((plan.scenario.to_json(), Ramp(plan.ramp)))
}

/// Cautions that the notes of a measurement in a record's manifest tell, one sentence each. `notes` is JSON.
#[pyfunction]
pub(crate) fn cautions(notes: &str) -> PyResult<Vec<String>> {
    Ok(weir_client::cautions(&serde_json::from_str(notes).map_err(wrong)?))
}

/// Phases with load of a test that were not measured, and why it has no grade; nothing and `None` if all were.
///
/// `phases` are those with load, each with its start and end in nanoseconds. `answers` have when answers to pings came, and
/// the longest round trip of those that came then, `data` when data of downloads and of uploads arrived: all in milliseconds.
/// `pinged` are the phases in which pings were answered once the line was full.
#[pyfunction]
pub(crate) fn unmeasured(
    phases: Vec<(String, u64, u64)>,
    reached_ns: u64,
    answers: Vec<(u64, u64)>,
    data: (Vec<u64>, Vec<u64>),
    pinged: Vec<String>,
) -> (Vec<String>, Option<String>) {
    let phase = |(name, start_ns, end_ns)| Phase { name, start_ns, end_ns };
    let phases: Vec<Phase> = phases.into_iter().map(phase).collect();
    let mut heard = Heard { answers: answers.into_iter().collect(), ..Heard::default() };
    (heard.data[Direction::Down as usize], heard.data[Direction::Up as usize]) = data;
    let has_pings = |name: &str| pinged.iter().any(|one| one == name);
    let found = Unmeasured::of(&phases, reached_ns, &heard, has_pings);
    (found.phases().map(str::to_owned).collect(), found.why())
}

/// Bufferbloat grades, the best one first: the letter, the least increase of the round trip in milliseconds that gets it,
/// and what it means.
#[pyfunction]
pub(crate) fn bufferbloat_grades() -> Vec<(&'static str, f64, &'static str)> {
    GRADES.iter().map(|grade| (grade.letter, grade.from_ms, grade.meaning)).collect()
}

/// How a test is graded whose pings took `increase_ms` longer in its worst phase: the letter, the formula, and a sentence.
/// `limit_mbps` is what a server lets pass, if the loads may have met that and never filled the line.
#[pyfunction]
pub(crate) fn bufferbloat_score(
    increase_ms: f64,
    limit_mbps: Option<f64>,
) -> (&'static str, &'static str, String) {
    (Grade::of(increase_ms).letter, WORST_PHASE, Grade::sentence(increase_ms, limit_mbps))
}

/// The limit of a server, in Mbit/s, if loads that carried so much may have met that and not the line's; `notes` are those of
/// the measurement, which are JSON.
#[pyfunction]
pub(crate) fn met_limit_mbps(
    notes: &str,
    down_mbps: Option<f64>,
    up_mbps: Option<f64>,
) -> PyResult<Option<f64>> {
    let notes = serde_json::from_str(notes).map_err(wrong)?;
    Ok(weir_client::met_limit_mbps(&notes, down_mbps, up_mbps))
}

/// One sentence about what a server lacks for a test of Weir's own, or the limits of one there: the server's name, how long a
/// load may last in nanoseconds, and the congestion controls.
#[pyfunction]
#[expect(clippy::type_complexity, reason = "Python takes it apart at once")]
pub(crate) fn offer(
    py: Python<'_>,
    server: &Server,
    secret: Option<&str>,
) -> PyResult<(Option<String>, Option<(String, u64, Vec<String>)>)> {
    Ok(match py.detach(|| weir_client::offer(&server.0, secret)).map_err(fail)? {
        Offer::Missing(why) => (Some(why), None),
        Offer::Test(TestLimits { server, load_ns, congestion }) => {
            (None, Some((server, load_ns, congestion)))
        }
    })
}

/// A server by name and address.
#[pyclass(frozen, module = "weirlab._native")]
pub(crate) struct Server(Target);

/// Looks up the name of a server, as `weir test` takes it.
#[pyfunction]
pub(crate) fn find_server(py: Python<'_>, server: &str) -> PyResult<Server> {
    py.detach(|| Target::find(server)).map(Server).map_err(fail)
}

/// The length of loads that a server's limits, as `offer` tells them, leave of the one that is written, and a sentence if
/// that is less. `is_load_given` says whether the user asked for that length.
#[pyfunction]
pub(crate) fn fit_test(
    load: String,
    cc: String,
    limits: (String, u64, Vec<String>),
    is_load_given: bool,
) -> PyResult<(String, Option<String>)> {
    let (server, load_ns, congestion) = limits;
    let mut words = TestWords { load, cc, ..TestWords::default() };
    let held_to = TestLimits { server, load_ns, congestion };
    let said = words.fit(&held_to, is_load_given).map_err(refused)?;
    Ok((words.load, said))
}

/// The secret in a file, for those functions that take one.
#[pyfunction]
pub(crate) fn read_secret(file: PathBuf) -> PyResult<String> {
    let secret = weir_sockets::read_secret(&file).map_err(wrong)?;
    Ok(String::from_utf8_lossy(secret.as_bytes()).into_owned())
}

/// Runs the foreign speed test `method` against the server at `url`, and returns what its own client would show. `progress` is
/// as that of `simulate`.
///
/// `secret` goes with every request. With `verify` the server's certificate has to be one that this machine believes. The
/// result is JSON text: a record keeps it as it is, and `methods` tells the keys of each.
#[pyfunction]
#[pyo3(signature = (method, url, *, secret, verify, progress))]
pub(crate) fn run_method(
    py: Python<'_>,
    method: String,
    url: String,
    secret: Option<String>,
    verify: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let request = MethodRequest { method, url, verify, secret };
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
