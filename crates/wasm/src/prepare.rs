//! From the text of a scenario to a simulation, with the recordings that the page hands in and no other file.

use std::collections::BTreeMap;

use weir_core::Seed;
use weir_path::Trace;
use weir_scenario::Scenario;
use weir_scenario::file::catalogue::{load_link, read_file_beyond};
use weir_scenario::file::spec::{LinkChoice, ScenarioSpec};
use weir_scenario::file::{Files, NoFiles, resolve};
use weir_sim::Simulation;

/// A scenario that can be simulated, as its text says.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The resolved scenario.
    pub scenario: Scenario,
    /// The queue spec as the text has it, `default` for the link's own.
    pub queue: String,
    /// Seed of the run.
    pub seed: u64,
    /// How many assertions the text has, none of which is judged.
    pub assertions: usize,
}

/// Recordings of lines by name, and no other file.
#[derive(Clone, Debug, Default)]
pub struct Recordings(pub BTreeMap<String, String>);

impl Files for Recordings {
    fn are_there(&self) -> bool {
        false
    }

    fn is_file(&self, _: &str) -> bool {
        false
    }

    fn named_in(&self, file: &str, name: &str) -> Result<String, String> {
        NoFiles.named_in(file, name)
    }

    fn read(&self, name: &str) -> Result<String, String> {
        NoFiles.read(name)
    }

    fn trace_rate_bps(&self, name: &str) -> Result<u64, String> {
        let text =
            self.0.get(name).ok_or_else(|| format!("the recording `{name}` was not given"))?;
        let trace = Trace::parse(name, text).map_err(|error| error.to_string())?;
        let bytes = trace.opportunities() as u64 * Trace::OPPORTUNITY_BYTES;
        let period_ms = trace.period().as_nanos() / 1_000_000;
        // To the bit as `weirlab.scenario.catalogue` has it.
        Ok((bytes as f64 * 8e3 / period_ms as f64).round_ties_even() as u64)
    }
}

impl Prepared {
    /// Reads and resolves the scenario in `text`.
    ///
    /// # Errors
    /// All that is wrong with it, with its lines, in one sentence; also if it stands for more than one run, or has speed
    /// tests, whose servers the page does not show.
    pub fn new(text: &str, recordings: &Recordings) -> Result<Self, String> {
        let spec = read_scenario(text)?;
        let mut resolved = resolve(&spec, recordings, |_| None)?;
        let runs = resolved.configurations.len() * resolved.seeds.len();
        if runs != 1 {
            return Err(format!("scenario: it stands for {runs} runs: a page shows one"));
        }
        let one = resolved.configurations.remove(0);
        if !one.scenario.methods.is_empty() {
            return Err("scenario: methods: a page runs no speed tests: leave them out".to_owned());
        }
        weir_sim::check(&one.scenario).map_err(|error| error.to_string())?;
        let (seed, assertions) = (resolved.seeds[0], spec.assert.len());
        Ok(Self { scenario: one.scenario, queue: one.queue, seed, assertions })
    }

    /// Sets the simulation up.
    ///
    /// # Errors
    /// If a recording is missing or is none, in one sentence.
    pub fn simulation(&self, recordings: &Recordings) -> Result<Simulation, String> {
        Simulation::new(&self.scenario, &recordings.0, Seed::new(self.seed))
            .map_err(|error| error.to_string())
    }
}

/// The names of the recordings that the links of the scenario in `text` need.
///
/// # Errors
/// If the text is no scenario, or names a link that is not shipped: in one sentence.
pub fn recordings_of(text: &str) -> Result<Vec<String>, String> {
    let spec = read_scenario(text)?;
    let mut found = Vec::new();
    for choice in spec.link.all() {
        let link = match choice {
            LinkChoice::Name(name) => load_link(name, &NoFiles)?,
            LinkChoice::Given(link) => (**link).clone(),
        };
        found.extend(link.traces().map(ToString::to_string));
    }
    found.sort();
    found.dedup();
    Ok(found)
}

fn read_scenario(text: &str) -> Result<ScenarioSpec, String> {
    read_file_beyond(text, PLACE, PLACE, &NoFiles, &|written, _| weir_path::word_faults(written))
}

/// What messages call the text.
const PLACE: &str = "scenario";

#[cfg(test)]
mod tests {
    use super::*;

    const RRUL: &str = "test = \"rrul\"\nlink = \"cable-20-8\"\n";

    fn fault(text: &str) -> String {
        Prepared::new(text, &Recordings::default()).expect_err("it cannot be run")
    }

    #[test]
    fn a_scenario_is_resolved_with_its_queue_and_seed() {
        let text = format!("{RRUL}queue = [\"htb rate 95% fq_codel\"]\nseed = 12\n");
        let prepared = Prepared::new(&text, &Recordings::default()).expect("it is sound");
        assert_eq!((prepared.queue.as_str(), prepared.seed), ("htb rate 95% fq_codel", 12));
        assert_eq!(prepared.scenario.flows.len(), 8);
        assert!(prepared.simulation(&Recordings::default()).is_ok());
    }

    #[test]
    fn assertions_are_counted() {
        let text = format!("{RRUL}assert = [\"latency.p99 < 1ms\", \"up.goodput > 1mbit\"]\n");
        let of = |words: &str| Prepared::new(words, &Recordings::default()).expect("it is sound");
        assert_eq!([of(&text), of(RRUL)].map(|one| one.assertions), [2, 0]);
    }

    #[test]
    fn a_scenario_with_routes_is_simulated_with_all_its_flows() {
        let text = include_str!("../../../scenarios/parking-lot.toml");
        let none = Recordings::default();
        let prepared = Prepared::new(text, &none).expect("it is sound");
        let names: Vec<_> = prepared.scenario.flows.iter().map(|flow| flow.name.as_str()).collect();
        assert_eq!(names, ["long", "cross a", "cross b", "cross c"]);
        assert_eq!(prepared.scenario.routes.len(), 4);
        assert!(prepared.simulation(&none).is_ok());
    }

    #[test]
    fn what_cannot_be_run_is_said_in_a_sentence() {
        let of = |more: &str| fault(&format!("{RRUL}{more}\n"));
        assert!(
            of("queue = [\"fq_codle\"]").contains("fq_codle"),
            "{}",
            of("queue = [\"fq_codle\"]")
        );
        assert!(of("queue = [\"pfifo\", \"fq_codel\"]").contains("it stands for 2 runs"));
        assert!(of("repeat = 3").contains("it stands for 3 runs"));
        assert!(of("[[methods]]\nname = \"one\"\nkind = \"ndt7\"").contains("runs no speed tests"));
        assert!(of("cc = \"cubik\"").contains("cubik"), "{}", of("cc = \"cubik\""));
        assert!(fault("test = \"mine.toml\"\nlink = \"cable-20-8\"").contains("no files here"));
        let unknown = fault("test = \"rrul\"\nlink = \"cable-20-9\"\n");
        assert!(unknown.contains("did you mean `cable-20-8`"), "{unknown}");
        assert!(unknown.ends_with("wifi-n)"), "nobody has a path to a file here: {unknown}");
        assert!(fault("link = [").contains("cannot be read"));
    }

    #[test]
    fn recordings_are_named_before_they_are_needed() {
        let text = "test = \"rrul\"\nlink = \"lte-verizon\"\n";
        let names = recordings_of(text).expect("it is a scenario");
        assert_eq!(names, ["Verizon-LTE-short.down", "Verizon-LTE-short.up"]);
        assert_eq!(recordings_of(RRUL), Ok(Vec::new()));
        let none = Recordings::default();
        let prepared = Prepared::new(text, &none).expect("it needs no rate");
        let missing = prepared.simulation(&none).err().expect("it needs the recordings");
        assert!(missing.contains("was not given"), "{missing}");
    }

    #[test]
    fn the_mean_rate_of_a_recording_is_rounded_as_in_python() {
        let text = "1\n2\n3\n7\n".to_owned();
        let recordings = Recordings(BTreeMap::from([("a".to_owned(), text)]));
        // 4 * 1500 * 8e3 / 7 = 6857142.857...
        assert_eq!(recordings.trace_rate_bps("a"), Ok(6_857_143));
    }
}
