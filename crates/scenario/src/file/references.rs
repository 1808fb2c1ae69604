//! Checks the names by which parts of a file refer to one another: servers, tunnels and parameters of a test, hops and
//! routes of a link.
//!
//! A test is whole in itself, so these faults are found as it is read, where their lines are known. What a scenario names of
//! its test is looked up as it is read too, if the test is a shipped one or stands in the scenario; for a test in a file of
//! its own [`faults_of_files`] looks it up, for those who have files.

use weir_core::Direction;

use crate::file::catalogue::{Files, NoFiles, chosen_link, chosen_test};
use crate::file::fault::Fault;
use crate::file::field::{Reader, References};
use crate::file::link::LinkSpec;
use crate::file::plain::{OneOrMore, Word};
use crate::file::quantity::FlowCount;
use crate::file::spec::ScenarioSpec;
use crate::file::test::{HostSpec, MethodSpec, SERVER, TestSpec};
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
        let host = flow.host.as_deref();
        way(test, ("flows", place), host, flow.tunnel.as_deref(), found);
        if let FlowCount::Parameter(name) = &flow.count
            && test.parameters.get(name).is_none()
        {
            found.fault(&["flows", place, "count"], no_such_count(name));
        }
    }
    for (place, probe) in test.probes.iter().enumerate() {
        let host = probe.host.as_deref();
        way(test, ("probes", &place.to_string()), host, probe.tunnel.as_deref(), found);
    }
    methods(test, &test.methods, found);
}

/// Notes hops that the routes of a link name and it does not have, or that a route passes twice.
pub(crate) fn of_link(link: &LinkSpec, found: &mut References<'_>) {
    for (route, spec) in &link.routes.0 {
        for direction in Direction::ALL {
            let known: Vec<&str> =
                link.hops(direction).iter().map(|hop| hop.name.0.as_str()).collect();
            let names = spec.hops(direction).unwrap_or_default();
            for (place, Word(name)) in names.iter().enumerate() {
                let says = if !known.contains(&name.as_str()) {
                    let known = if known.is_empty() {
                        "there is none".to_owned()
                    } else {
                        known.join(", ")
                    };
                    format!("unknown hop {direction} `{name}` (known: {known})")
                } else if names[..place].iter().any(|before| before.0 == *name) {
                    format!("hop `{name}` stands twice on the route: write each once")
                } else {
                    continue;
                };
                found.fault(&["routes", route, direction.word(), &place.to_string()], says);
            }
        }
    }
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
    routes(scenario, &test, files, found);
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

/// That `link` has no route of the name that `host` says; `None` if it has, or the host says none.
pub(crate) fn unknown_route(host: &HostSpec, link: &LinkSpec) -> Option<String> {
    let Word(route) = host.route.as_ref()?;
    if link.routes.get(route).is_some() {
        return None;
    }
    let known: Vec<&str> = link.routes.0.iter().map(|(name, _)| name.as_str()).collect();
    let known = if known.is_empty() { "it has none".to_owned() } else { known.join(", ") };
    let (host, link) = (&host.name.0, &link.name.0);
    Some(format!("host `{host}`: link `{link}` has no route `{route}` (known: {known})"))
}

/// The first route of `link` by which none of `hosts` is reached, and a sentence about it.
pub(crate) fn unused_route<'l>(
    link: &'l LinkSpec,
    hosts: &[HostSpec],
) -> Option<(&'l str, String)> {
    let is_used = |name: &str| {
        hosts.iter().filter_map(|host| host.route.as_ref()).any(|Word(used)| used == name)
    };
    let (name, _) = link.routes.0.iter().find(|(name, _)| !is_used(name))?;
    let says = format!(
        "link `{}`: no server of the test has route `{name}`: write `route = \"{name}\"` at one, or leave the route out",
        link.name.0
    );
    Some((name, says))
}

/// That the test has no parameter of the name that stands as a flow's `count`.
pub(crate) fn no_such_count(name: &str) -> String {
    format!("`count` names no parameter of the test: {name}")
}

fn methods(test: &TestSpec, methods: &[MethodSpec], found: &mut References<'_>) {
    for (place, method) in methods.iter().enumerate() {
        let host = method.host.as_deref();
        way(test, ("methods", &place.to_string()), host, method.tunnel.as_deref(), found);
    }
}

/// Notes routes that servers of the tests name and a link does not have, and routes of a link that no server names.
fn routes(
    scenario: &ScenarioSpec,
    test: &TestSpec,
    files: &impl Files,
    found: &mut References<'_>,
) {
    let others = scenario.beside.0.iter().map(|entry| chosen_test(&entry.test, files));
    // A test or link that cannot be read is refused where it is used.
    let Ok(others) = others.collect::<Result<Vec<_>, _>>() else { return };
    let beside: Vec<HostSpec> = others.into_iter().flat_map(|other| other.hosts).collect();
    let all = [&test.hosts[..], &beside].concat();
    for (place, choice) in scenario.link.all().iter().enumerate() {
        let Ok(link) = chosen_link(choice, files) else { continue };
        for (number, host) in test.hosts.iter().enumerate() {
            if let Some(says) = unknown_route(host, &link) {
                found.fault(&["test", "hosts", &number.to_string(), "route"], says);
            }
        }
        if let Some(says) = beside.iter().find_map(|host| unknown_route(host, &link)) {
            found.fault(&["beside"], says);
        }
        if let Some((name, says)) = unused_route(&link, &all) {
            let (place, further) = (place.to_string(), ["routes", name]);
            let steps = match scenario.link {
                OneOrMore::One(_) => vec!["link"],
                OneOrMore::Several(_) => vec!["link", &place],
            };
            found.fault(&[&steps[..], &further].concat(), says);
        }
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
