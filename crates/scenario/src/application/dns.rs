//! Names that are looked up, one after the other whether answered or not.

use serde::{Deserialize, Serialize};
use weir_core::{Duration, Time};

use super::lookup::Lookup;
use super::work::{Outcome, PERIODS_NS, Work, check_time};

/// Lookups at a steady interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DnsLoad {
    /// Time between two lookups, answered or not.
    pub every_ns: u64,
}

impl DnsLoad {
    pub(super) fn check(self) -> Result<(), String> {
        check_time("dns.every", self.every_ns, PERIODS_NS)
    }
}

#[derive(Clone, Debug)]
pub(super) struct Dns {
    load: DnsLoad,
    next: Time,
    under_way: Vec<Lookup>,
}

impl Dns {
    pub const fn new(load: DnsLoad, start: Time) -> Self {
        Self { load, next: start, under_way: Vec::new() }
    }

    /// When the next lookup begins.
    pub const fn begins(&self) -> Option<Time> {
        Some(self.next)
    }

    /// When one that is under way is due.
    pub fn due(&self) -> Option<Time> {
        self.under_way.iter().map(Lookup::due).min()
    }

    pub fn on_due(&mut self, work: &mut Work<'_>) {
        self.under_way.retain_mut(|lookup| {
            let goes_on = lookup.go_on(work);
            if !goes_on {
                report(lookup, Outcome::GivenUp, work);
            }
            goes_on
        });
        while self.next <= work.now && self.next < work.state.stop {
            self.under_way.push(Lookup::begin(work));
            self.next = self.next.saturating_add(Duration::from_nanos(self.load.every_ns));
        }
    }

    pub fn on_answer(&mut self, number: u64, work: &mut Work<'_>) {
        let place = self.under_way.iter().position(|lookup| lookup.number == number);
        // A copy of an answer finds nobody.
        let Some(place) = place else { return };
        let lookup = self.under_way.remove(place);
        report(&lookup, Outcome::Done, work);
    }

    pub fn stop(&mut self, work: &mut Work<'_>) {
        for lookup in std::mem::take(&mut self.under_way) {
            report(&lookup, Outcome::Cut, work);
        }
    }
}

fn report(lookup: &Lookup, outcome: Outcome, work: &mut Work<'_>) {
    let row = work.row(lookup.begun, outcome);
    row.queries = lookup.queries;
    if outcome == Outcome::Done {
        row.first_byte = Some(row.took);
        row.bytes = super::Application::ANSWER_BYTES.into();
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Action, Application, Client};
    use super::*;

    #[test]
    fn a_lost_query_is_sent_again_after_5_s_and_given_up_after_10() {
        let second = Duration::from_secs(1);
        let load = Application::Dns(DnsLoad { every_ns: (second * 60).as_nanos() });
        let at = |seconds| Time::ZERO + second * seconds;
        let mut client = Client::new(&load, 4, (at(1), at(100)));
        let mut actions = Vec::new();
        let mut due = |of: &mut Client, now| {
            actions.clear();
            assert_eq!(of.next_due(), Some(at(now)));
            of.on_due(at(now), &mut actions);
            actions.clone()
        };
        assert_eq!(due(&mut client, 1), [Action::Query { number: 0 }]);
        assert_eq!(due(&mut client, 6), [Action::Query { number: 0 }]);
        assert_eq!(due(&mut client, 11), []);
        let rows: Vec<_> = client.take_rows().collect();
        let told = |row: &crate::TransferRow| (row.flow, row.took, row.outcome, row.queries);
        assert_eq!(rows.iter().map(told).collect::<Vec<_>>(), [(4, second * 10, "given_up", 2)]);

        assert_eq!(due(&mut client, 61), [Action::Query { number: 1 }]);
        let later = at(61) + Duration::from_millis(30);
        client.on_answer(1, later, &mut actions);
        client.on_answer(1, later, &mut actions);
        let more: Vec<_> = client.take_rows().collect();
        assert_eq!(more.len(), 1, "a copy of an answer counts once");
        assert_eq!((more[0].took, more[0].bytes), (Duration::from_millis(30), 120));
        assert_eq!(client.next_due(), None, "the next would begin behind the stop");
    }
}
