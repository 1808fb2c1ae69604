//! Changes of lines that a scenario asks for: when, at which hop, which.

use std::collections::VecDeque;

use weir_core::Time;
use weir_scenario::{LineChange, Scenario};

/// Changes of the lines that are still to come, in order of time.
#[derive(Debug)]
pub(crate) struct LineChanges {
    due: VecDeque<(Time, usize, LineChange)>,
}

impl LineChanges {
    /// Those of `scenario`.
    pub fn new(scenario: &Scenario) -> Self {
        let hops = scenario.path.up.iter().chain(&scenario.path.down).enumerate();
        let mut due: Vec<_> = hops
            .flat_map(|(number, hop)| {
                hop.changes
                    .iter()
                    .map(move |change| (Time::from_nanos(change.at_ns), number, change.to))
            })
            .collect();
        due.sort_by_key(|&(at, hop, _)| (at, hop));
        Self { due: due.into() }
    }

    /// When the next one is due; `None` if none is to come.
    pub fn next_at(&self) -> Option<Time> {
        self.due.front().map(|&(at, ..)| at)
    }

    /// The next one that is due by `now`, with the number of its hop.
    pub fn pop_due(&mut self, now: Time) -> Option<(usize, LineChange)> {
        self.next_at().filter(|&at| at <= now)?;
        self.due.pop_front().map(|(_, hop, change)| (hop, change))
    }
}
