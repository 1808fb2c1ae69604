//! Pauses of the line: times in which nothing arrives although packets came one upon another before.
//!
//! A line that became slower brings less at a time; one that brings nothing at all, as radio does that changes its cell and a
//! satellite's path that is set up anew, is as fast as before when it goes on.

use std::collections::VecDeque;

use weir_core::{Duration, Time};

use crate::contract::TICK;
use crate::quantities::Seconds;
use crate::spans::Spans;

/// Pauses that were seen lately.
#[derive(Clone, Debug)]
pub(crate) struct Pauses {
    /// Packets that had arrived at the ticks of the last second before the present pause, if there is one.
    ticks: VecDeque<(Time, u64)>,
    /// From and until when nothing arrived.
    found: Spans,
}

impl Pauses {
    /// None yet.
    pub const fn new() -> Self {
        Self { ticks: VecDeque::new(), found: Spans::new(KEEP) }
    }

    /// Notes that `packets` had arrived until `now`.
    pub fn note(&mut self, now: Time, packets: u64) {
        match self.ticks.back() {
            Some(&(since, same)) if same == packets => self.note_silence(since, now),
            _ => {
                self.ticks.push_back((now, packets));
                while self.ticks.front().is_some_and(|&(at, _)| now.since(at) > USUAL_OVER) {
                    self.ticks.pop_front();
                }
            }
        }
    }

    /// Forgets everything, as after a time in which nobody looked.
    pub fn clear(&mut self) {
        *self = Self::new();
    }

    /// Time from `from` to `to` in which the line paused.
    pub fn within(&self, from: Time, to: Time) -> Seconds {
        let overlap = |(since, until): (Time, Time)| {
            // It began in the tick before the first that saw nothing, and ended in the one after the last.
            let began = since.saturating_sub(HALF_TICK);
            let ended = until.saturating_add(HALF_TICK);
            ended.min(to).checked_since(began.max(from)).unwrap_or_default()
        };
        self.found.iter().map(overlap).fold(Duration::ZERO, |sum, one| sum + one).into()
    }

    /// The excess that a pause explains at `now`, where an answer takes `feedback`.
    ///
    /// What was under way waits for the pause to end. Senders that wait for acknowledgements pause as long, so that it is gone
    /// after a round trip whatever the rate is.
    pub fn allowance(&self, feedback: Seconds, now: Time) -> Seconds {
        let Some((since, until)) = self.found.last() else { return Seconds::ZERO };
        let length = Seconds::from(until.since(since) + TICK + TICK);
        let shows = Seconds::from(now.since(until)) <= length + feedback;
        if shows { length } else { Seconds::ZERO }
    }

    /// Whether no packet has arrived for longer than on any line that only became slower.
    pub fn is_out(&self, now: Time) -> bool {
        self.arrived()
            .zip(self.usual_interval())
            .is_some_and(|(since, usual)| now.since(since) > MAX_PAUSE.max(usual * OUTAGE_PACKETS))
    }

    /// When the last packet arrived, to a tick; `None` before the first.
    pub fn arrived(&self) -> Option<Time> {
        self.ticks.back().map(|&(at, _)| at)
    }

    /// Notes that nothing arrived from `since` to `now`.
    fn note_silence(&mut self, since: Time, now: Time) {
        self.found.take_back(since);
        let length = now.since(since);
        let is_pause = |usual: Duration| length >= MIN_PAUSE.max(usual * PACKETS);
        if length <= MAX_PAUSE && self.usual_interval().is_some_and(is_pause) {
            self.found.push(since, now);
        }
    }

    /// Time between two packets, in the mean of the last second; `None` if they came in less than half of its ticks.
    ///
    /// A connection that begins, or a page, comes in bursts: what lies between two of them is no pause.
    fn usual_interval(&self) -> Option<Duration> {
        let (&(from, before), &(to, until)) = (self.ticks.front()?, self.ticks.back()?);
        let packets = until.saturating_sub(before);
        (self.ticks.len() >= MIN_TICKS && packets > 0).then(|| to.since(from) / packets)
    }
}

/// What a pause is longer than it is seen to be, at each end, in the mean.
const HALF_TICK: Duration = Duration::from_nanos(TICK.as_nanos() / 2);
/// Time without a packet that is a pause at least: two ticks.
const MIN_PAUSE: Duration = Duration::from_millis(40);
/// Time without a packet that is a pause at most: what is longer is an outage, after which nothing need be as it was.
pub(crate) const MAX_PAUSE: Duration = Duration::from_millis(250);
/// The same as a multiple of the usual time between two packets: on a slow line these are far apart.
const PACKETS: u64 = 8;
/// Time without a packet that is an outage, as a multiple of the usual time between two: a line that becomes fifty times slower
/// brings one within it.
const OUTAGE_PACKETS: u64 = 64;
/// Ticks with packets that tell what is usual: half of those in a second.
const MIN_TICKS: usize = 25;
/// Time over which that is taken.
const USUAL_OVER: Duration = Duration::from_secs(1);
/// Time for which a pause is remembered: longer than any span over which a line is measured.
const KEEP: Duration = Duration::from_secs(8);

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    /// Ticks of 20 ms for 2 s with so many packets each, but for those from `silent_ms` on that are given.
    fn seen(every_ms: u64, silent_ms: std::ops::Range<u64>) -> Pauses {
        let mut pauses = Pauses::new();
        let mut packets = 0;
        for now in (0..=2_000).step_by(20) {
            let came = (now / every_ms).saturating_sub((now.max(20) - 20) / every_ms);
            packets += if silent_ms.contains(&now) { 0 } else { came };
            pauses.note(ms(now), packets);
        }
        pauses
    }

    #[test]
    fn a_time_without_packets_is_a_pause_once_it_is_long_enough() {
        let found = |silent, from, to| (seen(2, silent).within(ms(from), ms(to)).0 * 1e3).round();
        assert_eq!(found(1_020..1_100, 0, 2_000), 100.0);
        assert_eq!(found(1_020..1_040, 0, 2_000), 0.0, "one tick may be chance");
        // Only what lies in the span counts.
        assert_eq!(found(1_020..1_100, 1_050, 2_000), 40.0);
        assert_eq!(found(1_020..1_100, 0, 1_030), 40.0);
        assert_eq!(found(1_020..1_100, 1_100, 2_000), 0.0);
    }

    /// 80 ms of a pause are seen, from 1000 ms on; it took up to two ticks more.
    #[test]
    fn a_pause_explains_an_excess_for_as_long_as_it_took_and_a_round_trip() {
        let pauses = seen(2, 1_020..1_100);
        let allowed = |at| (pauses.allowance(Seconds(0.06), ms(at)).0 * 1e3).round();
        assert_eq!((allowed(1_080), allowed(1_260)), (120.0, 120.0));
        assert_eq!(allowed(1_280), 0.0);
        assert_eq!(Pauses::new().allowance(Seconds(0.06), ms(10)), Seconds::ZERO);
    }

    #[test]
    fn an_outage_is_no_pause() {
        let whole = |pauses: Pauses| (pauses.within(Time::ZERO, ms(2_000)).0 * 1e3).round();
        assert_eq!(whole(seen(2, 1_020..1_260)), 260.0);
        assert_eq!(whole(seen(2, 1_020..1_300)), 0.0);
        // As long as it lasts it is a pause until then.
        let mut pauses = seen(2, 0..0);
        let least: Vec<_> = (1..=15)
            .map(|tick| {
                pauses.note(ms(2_000 + 20 * tick), 1_000);
                (pauses.within(ms(2_000), ms(3_000)).0 * 1e3).round()
            })
            .collect();
        assert_eq!(least[..3], [0.0, 50.0, 70.0]);
        assert_eq!(least[11..], [250.0, 0.0, 0.0, 0.0]);
    }

    #[test]
    fn packets_that_are_far_apart_make_no_pause() {
        let whole = |pauses: Pauses| (pauses.within(Time::ZERO, ms(2_000)).0 * 1e3).round();
        assert_eq!(whole(seen(80, 0..0)), 0.0);
        assert_eq!(whole(seen(80, 1_020..1_340)), 0.0, "four packets");
        // Nor do bursts with a round trip of 100 ms between them; where hardly anything comes nothing is known.
        let mut bursts = Pauses::new();
        for tick in 0..100u64 {
            bursts.note(ms(20 * tick), tick / 5 * 40 + (tick % 5).min(1) * 20);
        }
        assert_eq!(whole(bursts), 0.0);
        assert_eq!(whole(seen(200, 0..1_900)), 0.0);
    }

    #[test]
    fn what_was_long_ago_is_forgotten() {
        let mut pauses = seen(2, 1_020..1_100);
        for tick in 101..=600 {
            pauses.note(ms(20 * tick), if tick < 590 { 1_000 * tick } else { 600_000 });
        }
        assert_eq!(pauses.found.iter().count(), 1, "{:?}", pauses.found);
        pauses.clear();
        assert_eq!(pauses.within(Time::ZERO, ms(20_000)), Seconds::ZERO);
    }
}
