//! Where a test was not measured: phases to whose end it did not come, and those in which its path or server was silent.
//!
//! What is missing may be what is worst, so such a test has no grade. Records and programs without any ask here, so that
//! they cannot differ; `vectors/test-silences.json` holds both to the same.

use std::collections::BTreeMap;

use weir_scenario::{Direction, Phase};

use crate::plan::LOADED;

/// What came in during a test, in milliseconds.
#[derive(Clone, Debug, Default)]
pub struct Heard {
    /// When answers to pings came, and the longest round trip of those that came then.
    pub answers: BTreeMap<u64, u64>,
    /// When data of loads arrived at their receivers, by the direction in which they went.
    pub data: [Vec<u64>; 2],
}

/// Phases with load that were not measured, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unmeasured {
    /// Those to whose end the test did not come.
    pub cut: Vec<String>,
    /// Those in which nothing came for so many ms: neither answers nor data.
    pub silent: Vec<(String, u64)>,
    /// Those in which no data came for so many ms, while pings were answered.
    pub idle: Vec<(String, u64)>,
    /// Those in which nothing at all came in a direction that they load.
    pub one_way: Vec<(String, Direction)>,
    /// Those in which no ping was answered once the line was full.
    pub unanswered: Vec<String>,
}

impl Unmeasured {
    /// Looks at the `phases` with load of a test that came as far as `reached_ns`. `has_pings` says whether pings of a
    /// phase were answered once the line was full.
    #[must_use]
    pub fn of(
        phases: &[Phase],
        reached_ns: u64,
        heard: &Heard,
        has_pings: impl Fn(&str) -> bool,
    ) -> Self {
        let mut data = heard.data.concat();
        data.sort_unstable();
        data.dedup();
        let mut all: Vec<u64> = data.iter().chain(heard.answers.keys()).copied().collect();
        all.sort_unstable();
        let mut found = Self::default();
        for phase in phases {
            let name = phase.name.clone();
            let span = (phase.start_ns / NS_PER_MS, phase.end_ns / NS_PER_MS);
            let (silent_ms, idle_ms) = (longest_gap(&all, span), longest_gap(&data, span));
            // Data in order wait for a gap to be filled, which takes as long as a ping.
            let longest_ms = heard.answers.range(span.0..=span.1).map(|(_, &rtt)| rtt).max();
            if phase.end_ns > reached_ns {
                found.cut.push(name);
            } else if silent_ms > SILENT_MS {
                found.silent.push((name, silent_ms));
            } else if idle_ms > SILENT_MS + longest_ms.unwrap_or(0) {
                found.idle.push((name, idle_ms));
            } else if let Some(missing) = missing(&name, span, heard) {
                found.one_way.push((name, missing));
            } else if !has_pings(&name) {
                found.unanswered.push(name);
            }
        }
        found
    }

    /// The names of all of them.
    pub fn phases(&self) -> impl Iterator<Item = &str> {
        let for_long = self.silent.iter().chain(&self.idle).map(|(name, _)| name);
        let one_way = self.one_way.iter().map(|(name, _)| name);
        for_long.chain(one_way).chain(&self.unanswered).chain(&self.cut).map(String::as_str)
    }

    /// Why the test has no grade, in a sentence without its end; `None` if it has one.
    #[must_use]
    pub fn why(&self) -> Option<String> {
        let mut said = Vec::new();
        for (what, phases) in [("nothing", &self.silent), ("no data", &self.idle)] {
            let part = |(name, ms): &(String, u64)| {
                format!("{:.1} s of {}", *ms as f64 / 1e3, in_words(name))
            };
            let parts: Vec<String> = phases.iter().map(part).collect();
            if !parts.is_empty() {
                said.push(format!("{what} came for {}", parts.join(" and ")));
            }
        }
        for (name, direction) in &self.one_way {
            let moved = if *direction == Direction::Down { "downloaded" } else { "uploaded" };
            said.push(format!("nothing was {moved} in {}", in_words(name)));
        }
        if !self.unanswered.is_empty() {
            said.push(format!("no ping was answered in {}", joined(&self.unanswered)));
        }
        if !self.cut.is_empty() {
            said.push(format!("the test did not come to the end of {}", joined(&self.cut)));
        }
        (!said.is_empty()).then(|| said.join(", and "))
    }
}

/// A direction in which a phase has loads, of which nothing came within its span.
fn missing(phase: &str, (start, end): (u64, u64), heard: &Heard) -> Option<Direction> {
    let (_, down, up) = LOADED.into_iter().find(|(name, ..)| *name == phase)?;
    [(Direction::Down, down), (Direction::Up, up)].into_iter().find_map(|(direction, has_loads)| {
        let came = heard.data[direction as usize].iter().any(|t| (start..=end).contains(t));
        (has_loads && !came).then_some(direction)
    })
}

/// The longest time within a span in which nothing came; `times` are in order.
fn longest_gap(times: &[u64], (start, end): (u64, u64)) -> u64 {
    let from = times.partition_point(|&t| t < start);
    let until = times.partition_point(|&t| t <= end);
    let mut last = start;
    let mut longest = 0;
    for &t in times[from..until.max(from)].iter().chain([&end]) {
        longest = longest.max(t.saturating_sub(last));
        last = t;
    }
    longest
}

fn joined(phases: &[String]) -> String {
    phases.iter().map(|name| in_words(name)).collect::<Vec<_>>().join(" and ")
}

/// A phase with load in words.
fn in_words(phase: &str) -> String {
    if phase == "load" { "both at once".to_owned() } else { format!("the {phase}") }
}

/// A pause of the line itself, as when a radio changes its cell, is shorter; one so long is most of the shortest phase.
const SILENT_MS: u64 = 2_000;
const NS_PER_MS: u64 = 1_000_000;

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn phases_are_unmeasured_as_the_vector_says() {
        let vector = include_str!("../../../vectors/test-silences.json");
        let vector: Value = serde_json::from_str(vector).unwrap();
        let phases: Vec<Phase> = serde_json::from_value(vector["phases"].clone()).unwrap();
        for case in vector["cases"].as_array().unwrap() {
            let mut heard = Heard::default();
            let spans = |key: &str| -> Vec<[u64; 3]> {
                serde_json::from_value(case.get(key).cloned().unwrap_or(Value::Array(Vec::new())))
                    .unwrap()
            };
            for [from_ms, until_ms, rtt_ms] in spans("pings_answered") {
                for sent in (from_ms..until_ms).step_by(100) {
                    heard.answers.insert(sent + rtt_ms, rtt_ms);
                }
            }
            for (key, ways) in [
                ("data", &[Direction::Down, Direction::Up][..]),
                ("data_down", &[Direction::Down][..]),
                ("data_up", &[Direction::Up][..]),
            ] {
                for [from_ms, until_ms, every_ms] in spans(key) {
                    for &way in ways {
                        let times = (from_ms..until_ms).step_by(every_ms as usize);
                        heard.data[way as usize].extend(times);
                    }
                }
            }
            let reached_ns = case["reached_ms"].as_u64().unwrap() * NS_PER_MS;
            let has_pings = |name: &str| {
                let phase = phases.iter().find(|phase| phase.name == name).unwrap();
                let from = phase.start_ns / NS_PER_MS + 1_000;
                spans("pings_answered")
                    .iter()
                    .any(|[first, last, _]| *first < phase.end_ns / NS_PER_MS && *last > from)
            };
            let said = Unmeasured::of(&phases, reached_ns, &heard, has_pings).why();
            assert_eq!(said.as_deref(), case["why"].as_str(), "{}", case["name"]);
        }
    }
}
