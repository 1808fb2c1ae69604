//! The pings of one train that wait for an answer: pure bookkeeping, without sockets or a clock.

use std::collections::BTreeMap;

use weir_core::{Duration, Time};
use weir_scenario::{LatencyRow, ServerTurn};

use crate::sys::message::IcmpError;

/// When pings are due.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Schedule {
    next: Time,
    period: Duration,
    stop: Time,
}

/// Numbers the pings of one train, and matches their answers to them.
#[derive(Debug)]
pub(crate) struct PingTracker {
    probe: u32,
    next_seq: u32,
    under_way: BTreeMap<u32, Sent>,
}

/// A ping under way.
#[derive(Clone, Copy, Debug)]
struct Sent {
    at: Time,
    timer_error: Duration,
    /// When it arrived at the server, once that is known.
    arrived: Option<Time>,
}

/// An answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    pub seq: u32,
    /// When it came in.
    pub at: Time,
    /// Times of the server, if it tells them.
    pub echo: Option<Turn>,
    /// Who answered by an ICMP error; the server itself if `None`.
    pub by: Option<IcmpError>,
}

/// A server's turn: when a ping came in, and when its answer went out.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Turn {
    /// On the client's clock.
    Here { arrived: Time, answered: Time },
    /// On a clock of its own, of which only the difference means something by itself.
    There(ServerTurn),
}

impl Schedule {
    /// One ping each `period` from `start` on, as long as it is before `stop`.
    pub const fn new(start: Time, period: Duration, stop: Time) -> Self {
        Self { next: start, period, stop }
    }

    /// From when on none is sent.
    pub const fn stop(&self) -> Time {
        self.stop
    }

    /// When the next ping is due.
    pub fn next(&self) -> Option<Time> {
        (self.next < self.stop).then_some(self.next)
    }

    /// The next one was sent, or cannot be.
    pub fn advance(&mut self) {
        self.next += self.period;
    }
}

impl PingTracker {
    pub const fn new(probe: u32) -> Self {
        Self { probe, next_seq: 0, under_way: BTreeMap::new() }
    }

    /// The number that the next ping carries.
    pub const fn next_seq(&self) -> u32 {
        self.next_seq
    }

    /// The next ping, due at `planned`, was sent at `at`.
    pub fn sent(&mut self, planned: Time, at: Time) {
        let timer_error = at.checked_since(planned).unwrap_or(Duration::ZERO);
        self.under_way.insert(self.next_seq, Sent { at, timer_error, arrived: None });
        self.next_seq += 1;
    }

    /// The latest ping left this host at `at` only: until then it was held back here.
    pub fn left(&mut self, at: Time) {
        if let Some(mut last) = self.under_way.last_entry() {
            last.get_mut().at = at;
        }
    }

    /// The server saw ping number `seq` at `at`.
    pub fn arrived(&mut self, seq: u32, at: Time) {
        if let Some(sent) = self.under_way.get_mut(&seq) {
            sent.arrived.get_or_insert(at);
        }
    }

    /// The row of an answered ping; `None` for an answer that came before, or to nothing. One that took longer than
    /// `patience` counts as lost, however soon it is looked at.
    ///
    /// The time that the server took does not count: up and down add up to the round trip.
    pub fn answered(&mut self, answer: Answer, patience: Duration) -> Option<LatencyRow> {
        let sent = self.under_way.remove(&answer.seq)?;
        // Clocks are compared to within tens of nanoseconds: a way is never shorter than nothing.
        let span = |from: Time, to: Time| to.checked_since(from).unwrap_or(Duration::ZERO);
        let whole = span(sent.at, answer.at);
        let row = self.row(answer.seq, sent);
        Some(match answer.echo {
            _ if whole > patience => row,
            None => LatencyRow { rtt: Some(whole), ..row },
            Some(Turn::Here { arrived, answered }) => {
                let (up, down) = (span(sent.at, arrived), span(answered, answer.at));
                LatencyRow { rtt: Some(up + down), up: Some(up), down: Some(down), ..row }
            }
            Some(Turn::There(turn)) => {
                let held = Duration::from_nanos(turn.sent_ns.saturating_sub(turn.received_ns));
                LatencyRow { rtt: Some(whole.saturating_sub(held)), server: Some(turn), ..row }
            }
        })
    }

    /// The row of ping number `seq`, which will have no answer: it is lost. `None` if it is not under way.
    pub fn refused(&mut self, seq: u32) -> Option<LatencyRow> {
        let sent = self.under_way.remove(&seq)?;
        Some(self.lost_row(seq, sent))
    }

    /// The oldest ping under way: what an answer without a number is taken to mean.
    pub fn oldest(&self) -> Option<u32> {
        self.under_way.keys().next().copied()
    }

    /// The number of the last ping sent whose lowest 16 bits are `low`.
    pub fn widen(&self, low: u16) -> Option<u32> {
        let last = self.next_seq.checked_sub(1)?;
        let behind = (last as u16).wrapping_sub(low);
        last.checked_sub(u32::from(behind))
    }

    /// Pings sent before `time` count as under way no longer.
    pub fn forget_before(&mut self, time: Time) {
        while let Some(first) = self.under_way.first_entry()
            && first.get().at < time
        {
            first.remove();
        }
    }

    pub fn under_way(&self) -> usize {
        self.under_way.len()
    }

    /// Takes the rows of pings that were sent before `time` and are not answered: they count as lost.
    pub fn lost_before(&mut self, time: Time) -> Vec<LatencyRow> {
        let mut rows = Vec::new();
        while let Some(first) = self.under_way.first_entry()
            && first.get().at < time
        {
            let (seq, sent) = first.remove_entry();
            rows.push(self.row(seq, sent));
        }
        rows
    }

    /// Rows of all pings that were not answered. One that the server saw has its way up: its answer was
    /// lost.
    pub fn lost(&mut self) -> impl Iterator<Item = LatencyRow> {
        let lost = std::mem::take(&mut self.under_way);
        lost.into_iter().map(|(seq, sent)| self.lost_row(seq, sent))
    }

    fn lost_row(&self, seq: u32, sent: Sent) -> LatencyRow {
        let up = sent.arrived.map(|at| at.checked_since(sent.at).unwrap_or(Duration::ZERO));
        LatencyRow { up, ..self.row(seq, sent) }
    }

    const fn row(&self, seq: u32, sent: Sent) -> LatencyRow {
        LatencyRow {
            t: sent.at,
            probe: self.probe,
            seq,
            rtt: None,
            up: None,
            down: None,
            timer_error: sent.timer_error,
            server: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOREVER: Duration = Duration::MAX;

    fn ms(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    fn answer(seq: u32, at: u64) -> Answer {
        Answer { seq, at: ms(at), echo: None, by: None }
    }

    fn pings(sent: u32) -> PingTracker {
        let mut pings = PingTracker::new(7);
        for seq in 0..sent {
            assert_eq!(pings.next_seq(), seq);
            pings.sent(ms(10 * u64::from(seq)), ms(10 * u64::from(seq)));
        }
        pings
    }

    #[test]
    fn pings_are_due_once_a_period_until_the_stop() {
        let mut schedule = Schedule::new(ms(5), Duration::from_millis(10), ms(25));
        let mut due = Vec::new();
        while let Some(at) = schedule.next() {
            due.push(at);
            schedule.advance();
        }
        assert_eq!(due, [ms(5), ms(15)]);
    }

    #[test]
    fn the_servers_turn_is_no_part_of_the_round_trip() {
        let mut pings = pings(1);
        let echo = Some(Turn::Here { arrived: ms(4), answered: ms(6) });
        let row = pings.answered(Answer { echo, ..answer(0, 9) }, FOREVER).unwrap();
        assert_eq!(row.up, Some(Duration::from_millis(4)));
        assert_eq!(row.down, Some(Duration::from_millis(3)));
        assert_eq!(row.rtt, Some(Duration::from_millis(7)));
    }

    #[test]
    fn a_server_with_another_clock_tells_how_long_it_had_the_ping() {
        let mut pings = pings(1);
        let turn = ServerTurn { received_ns: 900_000_000, sent_ns: 902_000_000 };
        let row = pings
            .answered(Answer { echo: Some(Turn::There(turn)), ..answer(0, 9) }, FOREVER)
            .unwrap();
        assert_eq!(row.rtt, Some(Duration::from_millis(7)));
        assert_eq!((row.up, row.down, row.server), (None, None, Some(turn)));
    }

    #[test]
    fn a_late_ping_tells_by_how_much_and_counts_from_when_it_left() {
        let mut pings = PingTracker::new(0);
        pings.sent(ms(10), ms(12));
        let row = pings.answered(answer(0, 20), FOREVER).unwrap();
        assert_eq!((row.t, row.timer_error), (ms(12), Duration::from_millis(2)));
        assert_eq!((row.rtt, row.up, row.down), (Some(Duration::from_millis(8)), None, None));
    }

    #[test]
    fn what_was_held_back_here_is_no_part_of_the_round_trip() {
        let mut pings = pings(2);
        pings.left(ms(17));
        let row = pings.answered(answer(1, 30), FOREVER).unwrap();
        assert_eq!((row.t, row.rtt), (ms(17), Some(Duration::from_millis(13))));
        assert_eq!(
            pings.answered(answer(0, 30), FOREVER).unwrap().t,
            ms(0),
            "the one before had left"
        );
        pings.left(ms(40));
    }

    #[test]
    fn loss_is_told_apart_by_direction() {
        let mut pings = pings(4);
        // 0 is answered, 1 is lost on its way, 2's answer is lost, 3's answer comes late.
        for seq in [0, 2, 3] {
            pings.arrived(seq, ms(10 * u64::from(seq) + 3));
        }
        assert!(pings.answered(answer(0, 6), FOREVER).is_some());
        assert!(pings.answered(answer(3, 90), FOREVER).is_some());
        let lost: Vec<_> = pings.lost().map(|row| (row.seq, row.rtt, row.up)).collect();
        assert_eq!(lost, [(1, None, None), (2, None, Some(Duration::from_millis(3)))]);
        assert_eq!(pings.under_way(), 0);
    }

    #[test]
    fn a_ping_that_was_given_up_is_lost_whatever_comes_later() {
        let mut pings = pings(4);
        let lost: Vec<_> = pings.lost_before(ms(20)).iter().map(|row| (row.seq, row.rtt)).collect();
        assert_eq!(lost, [(0, None), (1, None)]);
        assert!(pings.answered(answer(1, 40), FOREVER).is_none());
        assert!(pings.answered(answer(2, 40), FOREVER).is_some());
        assert_eq!(pings.under_way(), 1);
    }

    #[test]
    fn an_answer_that_is_waited_for_too_long_counts_as_none() {
        let mut pings = pings(2);
        let patience = Duration::from_millis(5);
        let of = |row: Option<LatencyRow>| row.map(|row| (row.seq, row.rtt, row.up));
        let echo = Some(Turn::Here { arrived: ms(4), answered: ms(5) });
        let late = Answer { echo, ..answer(0, 6) };
        assert_eq!(of(pings.answered(late, patience)), Some((0, None, None)));
        assert_eq!(of(pings.answered(answer(1, 15), patience)), Some((1, Some(patience), None)));
        assert_eq!(pings.under_way(), 0);
    }

    #[test]
    fn a_ping_that_is_refused_is_lost_at_once_and_no_other_is() {
        let mut pings = pings(2);
        pings.arrived(1, ms(13));
        let row = pings.refused(1).unwrap();
        assert_eq!((row.seq, row.rtt, row.up), (1, None, Some(Duration::from_millis(3))));
        assert_eq!(pings.under_way(), 1);
        assert!(pings.refused(1).is_none());
        assert!(pings.answered(answer(0, 20), FOREVER).is_some());
    }

    #[test]
    fn an_answer_counts_once_and_only_to_what_was_sent() {
        let mut pings = pings(2);
        assert!(pings.answered(answer(1, 15), FOREVER).is_some());
        assert!(pings.answered(answer(1, 16), FOREVER).is_none());
        assert!(pings.answered(answer(5, 17), FOREVER).is_none());
        assert_eq!(pings.oldest(), Some(0));
    }

    #[test]
    fn numbers_of_16_bits_are_taken_to_be_the_latest_such() {
        let mut pings = PingTracker::new(0);
        assert_eq!(pings.widen(0), None);
        pings.next_seq = 70_000;
        assert_eq!(pings.widen(69_999_u32 as u16), Some(69_999));
        assert_eq!(pings.widen(65_535), Some(65_535));
        assert_eq!(pings.widen(0), Some(65_536));
        assert_eq!(pings.widen(69_999_u32 as u16 + 1), Some(70_000 - 65_536));
    }
}
