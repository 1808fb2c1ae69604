//! A name that is looked up.

use weir_core::{Duration, Time};

use super::work::{Action, Work};

/// A lookup under way, as the resolver of a program does it: a query that is not answered is sent again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lookup {
    pub number: u64,
    pub begun: Time,
    pub queries: u64,
    sent: Time,
}

impl Lookup {
    /// Sends the first query.
    pub fn begin(work: &mut Work<'_>) -> Self {
        let number = work.state.queries;
        work.state.queries += 1;
        work.actions.push(Action::Query { number });
        Self { number, begun: work.now, queries: 1, sent: work.now }
    }

    /// When it gives up waiting for an answer.
    pub fn due(&self) -> Time {
        self.sent.saturating_add(TIMEOUT)
    }

    /// Sends the query again if it is due; false if it has been sent often enough.
    pub fn go_on(&mut self, work: &mut Work<'_>) -> bool {
        if work.now < self.due() {
            return true;
        }
        if self.queries == ATTEMPTS {
            return false;
        }
        self.queries += 1;
        self.sent = work.now;
        work.actions.push(Action::Query { number: self.number });
        true
    }
}

/// resolv.conf(5): how long the resolver waits for an answer (`RES_TIMEOUT`).
const TIMEOUT: Duration = Duration::from_secs(5);
/// resolv.conf(5): how often it asks (`RES_DFLRETRY`).
const ATTEMPTS: u64 = 2;
