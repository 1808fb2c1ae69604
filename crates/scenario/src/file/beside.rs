//! Tests beside the first: the loads and probes of several tests in one, each from its own start on.
//!
//! `join` makes one test of them. Each flow, probe and speed test then has the name of its test before its own, such as
//! `rrul 2 upload BE`, which is how charts and tables tell them apart.

use crate::file::catalogue::{Files, chosen_test};
use crate::file::field::spec;
use crate::file::plain::{ByName, Integer, Word};
use crate::file::quantity::{FlowCount, Nanoseconds, PositiveNanoseconds};
use crate::file::references::no_such_count;
use crate::file::resolve::{flow_count, load_window, parameters};
use crate::file::spec::TestChoice;
use crate::file::test::{SERVER, TestSpec};

spec! {
    /// A test that runs beside the scenario's: its loads, its probes and its speed tests.
    BesideSpec {
        /// The name of a shipped test, a path to a test file, or the test itself.
        test: TestChoice,
        /// Name that stands before those of its flows and probes; the test's name if nothing is said, numbered where
        /// several tests have it.
        name: Option<Word>,
        /// When its load begins, counted from the start of the load of the scenario's test.
        start: Nanoseconds = Nanoseconds(0),
        /// How long its load lasts; as long as the test says if nothing is said, but not longer than that of the scenario's
        /// test.
        length: Option<PositiveNanoseconds>,
        /// Values of the test's parameters.
        parameters: ByName<Integer> = ByName(Vec::new()),
    }
}

/// Makes one test of `test`, whose phases are those of the scenario, and of those beside it.
///
/// # Errors
/// If a test is unknown, or does not fit into the load of the first, in one sentence.
pub(crate) fn join(
    test: &mut TestSpec,
    beside: &[BesideSpec],
    files: &impl Files,
) -> Result<(), String> {
    if beside.is_empty() {
        return Ok(());
    }
    let others = beside
        .iter()
        .map(|entry| chosen_test(&entry.test, files))
        .collect::<Result<Vec<_>, _>>()?;
    let labels = labels(test, beside, &others);
    let window = load_window(&test.phases)?;
    let joined = title(test, beside, &others);
    (test.name, test.title) = (Word(labels.join(" + ")), joined);
    label(test, &labels[0]);
    for ((entry, mut other), name) in beside.iter().zip(others).zip(&labels[1..]) {
        let told = |says: String| format!("beside `{name}`: {says}");
        set_counts(&mut other, &entry.parameters).map_err(told)?;
        Shift::new(entry, &other, window).map_err(told)?.apply(&mut other).map_err(told)?;
        label(&mut other, name);
        share_hosts(test, &mut other, name);
        test.tunnels.append(&mut other.tunnels);
        test.flows.append(&mut other.flows);
        test.probes.append(&mut other.probes);
        test.methods.append(&mut other.methods);
    }
    test.keys.add(&["hosts", "tunnels", "flows", "probes", "methods"]);
    Ok(())
}

/// Names that stand before those of each test's flows: the test's name, numbered where several have it.
fn labels(test: &TestSpec, beside: &[BesideSpec], others: &[TestSpec]) -> Vec<String> {
    let called = |(entry, other): (&BesideSpec, &TestSpec)| {
        entry.name.as_ref().unwrap_or(&other.name).0.clone()
    };
    let mut names = vec![test.name.0.clone()];
    names.extend(beside.iter().zip(others).map(called));
    let count = |name: &String, all: &[String]| all.iter().filter(|other| *other == name).count();
    let numbered = |(place, name): (usize, &String)| match count(name, &names) {
        1 => name.clone(),
        _ => format!("{name} {}", count(name, &names[..=place])),
    };
    names.iter().enumerate().map(numbered).collect()
}

fn title(test: &TestSpec, beside: &[BesideSpec], others: &[TestSpec]) -> String {
    let mut title = test.title.clone();
    for (entry, other) in beside.iter().zip(others) {
        let start = entry.start.0 as f64 / 1e9;
        title.push_str(&format!("; from {start} s on {}", other.title));
    }
    title
}

/// Puts the name of the test before those of its loads, probes and speed tests.
fn label(test: &mut TestSpec, name: &str) {
    let names = test
        .flows
        .iter_mut()
        .map(|flow| &mut flow.name)
        .chain(test.probes.iter_mut().map(|probe| &mut probe.name))
        .chain(test.methods.iter_mut().map(|method| &mut method.name));
    for own in names {
        own.0 = format!("{name} {}", own.0);
    }
}

/// Replaces the parameters that say how many flows there are by their values.
fn set_counts(test: &mut TestSpec, given: &ByName<Integer>) -> Result<(), String> {
    let values: Vec<(String, i64)> = parameters(given, test)?
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
    for flow in &mut test.flows {
        if let FlowCount::Parameter(name) = &flow.count {
            let Some((_, value)) = values.iter().find(|(known, _)| known == name) else {
                return Err(format!("flow `{}`: {}", flow.name.0, no_such_count(name)));
            };
            flow.count = FlowCount::Number(flow_count(&flow.name.0, name, *value)?);
        }
    }
    Ok(())
}

/// How the times of a test beside the first become those of the run.
struct Shift {
    /// Start of the load in the test's own time.
    own_start: u64,
    /// When its load runs, in the time of the run.
    window: (u64, u64),
    is_length_given: bool,
}

impl Shift {
    /// The shift of a test into the load of the first, which runs from `window.0` to `window.1`.
    fn new(entry: &BesideSpec, test: &TestSpec, window: (u64, u64)) -> Result<Self, String> {
        let own = load_window(&test.phases)?;
        let seconds = |ns: u64| ns as f64 / 1e9;
        let room = window.1 - window.0;
        if entry.start.0 >= room {
            return Err(format!(
                "it starts {} s after the load of the first test, which lasts {} s: write an earlier start",
                seconds(entry.start.0),
                seconds(room)
            ));
        }
        let room = room - entry.start.0;
        let length = match entry.length {
            Some(length) if length.0 > room => {
                return Err(format!(
                    "it lasts {} s, and the load of the first test ends {} s after its start: write a shorter length",
                    seconds(length.0),
                    seconds(room)
                ));
            }
            Some(length) => length.0,
            None => room.min(own.1 - own.0),
        };
        let start = window.0 + entry.start.0;
        let is_length_given = entry.length.is_some();
        Ok(Self { own_start: own.0, window: (start, start + length), is_length_given })
    }

    /// Moves all that the test does.
    fn apply(&self, test: &mut TestSpec) -> Result<(), String> {
        if self.is_length_given && !test.methods.is_empty() {
            return Err("its speed tests end by themselves: leave `length` out".to_owned());
        }
        for flow in &mut test.flows {
            (flow.start, flow.stop) = self.span(&flow.name.0, (flow.start, flow.stop))?;
            flow.keys.add(&["start", "stop"]);
        }
        for probe in &mut test.probes {
            (probe.start, probe.stop) = self.span(&probe.name.0, (probe.start, probe.stop))?;
            probe.keys.add(&["start", "stop"]);
        }
        for method in &mut test.methods {
            (method.start, _) = self.span(&method.name.0, (method.start, None))?;
            method.keys.add(&["start"]);
        }
        Ok(())
    }

    /// When something starts and stops: with the load if it says nothing, and never outside of it.
    fn span(
        &self,
        name: &str,
        (start, stop): (Option<Nanoseconds>, Option<Nanoseconds>),
    ) -> Result<(Option<Nanoseconds>, Option<Nanoseconds>), String> {
        let moved = |at: Nanoseconds| {
            (self.window.0 + at.0)
                .saturating_sub(self.own_start)
                .clamp(self.window.0, self.window.1)
        };
        let start = start.map_or(self.window.0, moved);
        let stop = stop.map_or(self.window.1, moved);
        if start >= stop {
            let seconds = (self.window.1 - self.window.0) as f64 / 1e9;
            return Err(format!(
                "`{name}` would not run in its load of {seconds} s: write a longer length"
            ));
        }
        Ok((Some(Nanoseconds(start)), Some(Nanoseconds(stop))))
    }
}

/// Adds the servers of `other` to those of `test`: one of the same name, distance and
/// route is the same server. Its own servers
/// and tunnels are renamed where `test` has others of that name.
fn share_hosts(test: &mut TestSpec, other: &mut TestSpec, label: &str) {
    let mut renamed = Vec::new();
    for mut host in std::mem::take(&mut other.hosts) {
        match test.hosts.iter().find(|known| known.name == host.name) {
            Some(known) if known.delay == host.delay && known.route == host.route => continue,
            Some(_) => {
                let own = host.name.0.clone();
                host.name.0 = format!("{label} {own}");
                renamed.push((own, host.name.0.clone()));
            }
            None => {}
        }
        test.hosts.push(host);
    }
    let new_name =
        |host: &str| renamed.iter().find(|(own, _)| own == host).map(|(_, new)| new.clone());
    for tunnel in &mut other.tunnels {
        tunnel.name.0 = format!("{label} {}", tunnel.name.0);
        if let Some(new) = new_name(&tunnel.host) {
            tunnel.host = new;
        }
    }
    macro_rules! rename {
        ($list:expr) => {
            for one in &mut $list {
                let goes_by_tunnel = one.tunnel.is_some() && one.host.is_none();
                if let Some(tunnel) = &mut one.tunnel {
                    *tunnel = format!("{label} {tunnel}");
                }
                let host = one.host.as_deref().unwrap_or(SERVER);
                if !goes_by_tunnel && let Some(new) = new_name(host) {
                    one.host = Some(new);
                    one.keys.add(&["host"]);
                }
            }
        };
    }
    rename!(other.flows);
    rename!(other.probes);
    rename!(other.methods);
}
