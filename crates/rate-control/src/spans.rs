//! Spans of time that are remembered for a while.

use std::collections::VecDeque;

use weir_core::{Duration, Time};

/// From and until when something lasted, oldest first.
#[derive(Clone, Debug)]
pub(crate) struct Spans {
    /// Time for which a span is remembered after its end.
    keep: Duration,
    spans: VecDeque<(Time, Time)>,
}

impl Spans {
    /// None yet; each is remembered for `keep` after its end.
    pub const fn new(keep: Duration) -> Self {
        Self { keep, spans: VecDeque::new() }
    }

    /// Adds what lasted from `since` until `until`, and forgets what is too old then.
    pub fn push(&mut self, since: Time, until: Time) {
        self.spans.push_back((since, until));
        while self.spans.front().is_some_and(|&(_, ended)| until.since(ended) > self.keep) {
            self.spans.pop_front();
        }
    }

    /// Takes back the newest if it began at `since`: it goes on, or was none.
    pub fn take_back(&mut self, since: Time) {
        if self.last().is_some_and(|(begun, _)| begun == since) {
            self.spans.pop_back();
        }
    }

    /// All that are remembered, oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (Time, Time)> {
        self.spans.iter().copied()
    }

    /// The newest.
    pub fn last(&self) -> Option<(Time, Time)> {
        self.spans.back().copied()
    }
}
