//! The samples of the last seconds.

use std::collections::VecDeque;

use weir_core::{Duration, Time};

use crate::delays::KEEP;
use crate::source::Sample;

/// The samples of the last [`KEEP`]: of sources that are probed, and of the user's connections.
///
/// There may be a hundred times as many of connections. Whoever wants probes alone is not to step over them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recent {
    /// Of sources that are not probed, and of those that are; oldest first.
    series: [VecDeque<Sample>; 2],
}

impl Recent {
    /// Adds a sample that arrived at `now`, and forgets what is too old.
    pub fn push(&mut self, sample: Sample, now: Time) {
        self.series[usize::from(sample.probed)].push_back(sample);
        for series in &mut self.series {
            while series.front().is_some_and(|old| now.since(old.arrived) > KEEP) {
                series.pop_front();
            }
        }
    }

    /// Those that arrived within `age`, of sources that are probed or of all, newest first.
    pub fn newest(&self, age: Duration, probed: bool, now: Time) -> impl Iterator<Item = &Sample> {
        let [heard, asked] = &self.series;
        let is_young = move |sample: &&Sample| now.since(sample.arrived) <= age;
        let is_wanted = move |sample: &&Sample| !probed && is_young(sample);
        let mut heard = heard.iter().rev().take_while(is_wanted).peekable();
        let mut asked = asked.iter().rev().take_while(is_young).peekable();
        std::iter::from_fn(move || match (heard.peek(), asked.peek()) {
            (Some(one), Some(other)) if one.arrived > other.arrived => heard.next(),
            (Some(_), None) => heard.next(),
            _ => asked.next(),
        })
    }

    /// All, those of each kind in the order in which they arrived.
    pub fn all(&self) -> impl Iterator<Item = &Sample> {
        self.series.iter().flatten()
    }

    pub fn clear(&mut self) {
        self.series.iter_mut().for_each(VecDeque::clear);
    }
}
