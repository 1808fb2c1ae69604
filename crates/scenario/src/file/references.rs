//! Checks the names by which parts of a file refer to one another: servers, tunnels and parameters of a test.
//!
//! A test is whole in itself, so these faults are found as it is read, where their lines are known. What a scenario names of
//! its test is looked up as it is read too, if the test is a shipped one or stands in the scenario; for a test in a file of
//! its own [`faults_of_files`] looks it up, for those who have files.

use crate::file::catalogue::{Files, NoFiles, chosen_test};
use crate::file::fault::Fault;
use crate::file::field::{Reader, References};
use crate::file::quantity::FlowCount;
use crate::file::spec::ScenarioSpec;
use crate::file::test::{MethodSpec, SERVER, TestSpec};
use crate::file::written::Written;

/// Notes what a test names of itself and does not have.
pub(crate) fn of_test(test: &TestSpec, found: &mut References<'_>) {
    for (place, tunnel) in test.tunnels.iter().enumerate() {
        if let Some(says) = unknown_host(test, &tunnel.host) {
            found.fault(&["tunnels", &place.to_string(), "host"], says);
        }
    }
    for (place, flow) in test.flows.iter().enumerate() {
        let place = &place.to_string();
        let host = flow.keys.has("host").then_some(&*flow.host);
        way(test, ("flows", place), host, flow.tunnel.as_deref(), found);
        if let FlowCount::Parameter(name) = &flow.count
            && test.parameters.get(name).is_none()
        {
            found.fault(&["flows", place, "count"], no_such_count(name));
        }
    }
    for (place, probe) in test.probes.iter().enumerate() {
        let host = probe.keys.has("host").then_some(&*probe.host);
        way(test, ("probes", &place.to_string()), host, probe.tunnel.as_deref(), found);
    }
    methods(test, &test.methods, found);
}

/// Notes what a scenario names of its test and that does not have, if the test is a shipped one or stands in the scenario.
pub(crate) fn of_scenario(scenario: &ScenarioSpec, found: &mut References<'_>) {
    of_scenario_and_files(scenario, &NoFiles, found);
}

/// What a scenario names of tests in files of their own and those do not have, each with its place in what was `written`.
pub fn faults_of_files(
    scenario: &ScenarioSpec,
    written: &Written,
    files: &impl Files,
) -> Vec<Fault> {
    let mut reader = Reader::default();
    of_scenario_and_files(scenario, files, &mut References::new(written, &mut reader));
    reader.into_faults()
}

fn of_scenario_and_files(scenario: &ScenarioSpec, files: &impl Files, found: &mut References<'_>) {
    // A test that cannot be read is refused where it is used.
    let Ok(test) = chosen_test(&scenario.test, files) else { return };
    for (name, value) in &scenario.parameters.0 {
        if let Some(says) = parameter_fault(&test, name, value.0) {
            found.fault(&["parameters", name], says);
        }
    }
    methods(&test, &scenario.methods, found);
    for (place, entry) in scenario.beside.0.iter().enumerate() {
        let Ok(other) = chosen_test(&entry.test, files) else { continue };
        for (name, value) in &entry.parameters.0 {
            if let Some(says) = parameter_fault(&other, name, value.0) {
                found.fault(&["beside", &place.to_string(), "parameters", name], says);
            }
        }
    }
}

/// Why `value` cannot be that of the test's parameter `name`; `None` if it can.
pub(crate) fn parameter_fault(test: &TestSpec, name: &str, value: i64) -> Option<String> {
    let Some(parameter) = test.parameters.get(name) else {
        let known: Vec<&str> = test.parameters.0.iter().map(|(one, _)| one.as_str()).collect();
        let known = if known.is_empty() { "it has none".to_owned() } else { known.join(", ") };
        let test = &test.name.0;
        return Some(format!("test `{test}` has no parameter `{name}` (known: {known})"));
    };
    let (least, most) = (parameter.minimum.0, parameter.maximum.0);
    let meaning = &parameter.meaning;
    (!(least..=most).contains(&value)).then(|| {
        format!("parameter `{name}` is {value}: write a number from {least} to {most} ({meaning})")
    })
}

/// That the test has no server of that name; `None` if it has.
pub(crate) fn unknown_host(test: &TestSpec, host: &str) -> Option<String> {
    let known: Vec<&str> = test.hosts.iter().map(|server| server.name.0.as_str()).collect();
    let says = || format!("unknown host `{host}` (known: {})", known.join(", "));
    (!known.contains(&host)).then(says)
}

/// That the test has no tunnel of that name.
pub(crate) fn unknown_tunnel(test: &TestSpec, tunnel: &str) -> String {
    let known: Vec<&str> = test.tunnels.iter().map(|one| one.name.0.as_str()).collect();
    let known = if known.is_empty() { "the test has none".to_owned() } else { known.join(", ") };
    format!("unknown tunnel `{tunnel}` (known: {known})")
}

/// That the test has no parameter of the name that stands as a flow's `count`.
pub(crate) fn no_such_count(name: &str) -> String {
    format!("`count` names no parameter of the test: {name}")
}

fn methods(test: &TestSpec, methods: &[MethodSpec], found: &mut References<'_>) {
    for (place, method) in methods.iter().enumerate() {
        let host = method.keys.has("host").then_some(&*method.host);
        way(test, ("methods", &place.to_string()), host, method.tunnel.as_deref(), found);
    }
}

/// Notes what the entry `place` of the list `list` names as `host` and as `tunnel` and the test does not have.
fn way(
    test: &TestSpec,
    (list, place): (&str, &str),
    host: Option<&str>,
    tunnel: Option<&str>,
    found: &mut References<'_>,
) {
    // Of several of one name the last counts.
    let ends_at = match tunnel {
        None => None,
        Some(name) => match test.tunnels.iter().rfind(|known| known.name.0 == name) {
            Some(known) => Some(&*known.host),
            None => return found.fault(&[list, place, "tunnel"], unknown_tunnel(test, name)),
        },
    };
    let host = host.or(ends_at).unwrap_or(SERVER);
    if let Some(says) = unknown_host(test, host) {
        found.fault(&[list, place, "host"], says);
    }
}
