//! Loads that rose: a queue comes of more traffic than there was.
//!
//! On a line that nothing is known of, the delay of something else beside a call that has been going on for a while looks like
//! a queue of the call's. It is none as long as the call is all that there is.

use weir_core::{Duration, Time};

use crate::history::History;
use crate::quantities::BitsPerSecond;

/// When a load last rose.
#[derive(Clone, Debug, Default)]
pub(crate) struct Surge {
    at: Option<Time>,
    /// When a side last drained a queue.
    drained: Option<Time>,
}

impl Surge {
    /// Looks whether the load of one of two sides rose until `now` far above what it was in the seconds before.
    ///
    /// A load below its side's least is none. What leaves the shaper because it waited there while a side drained a queue is no
    /// more than came, nor is what comes back of it on the other side.
    pub fn note(&mut self, sides: [(&History, BitsPerSecond); 2], is_draining: bool, now: Time) {
        self.drained = if is_draining { Some(now) } else { self.drained };
        let rose = |&(history, least): &(&History, BitsPerSecond)| {
            let load = history.load(WINDOW);
            load >= least && most_before(history, now).is_some_and(|most| load >= most * RISES_BY)
        };
        let is_let_go = self.drained.is_some_and(|at| now.since(at) < LET_GO_WITHIN);
        if !is_let_go && sides.iter().any(rose) {
            self.at = Some(now);
        }
    }

    /// Whether a load rose so short a time ago that a queue that shows at `now` may be its.
    pub fn is_recent(&self, now: Time) -> bool {
        self.at.is_some_and(|at| now.since(at) < QUEUES_WITHIN)
    }
}

/// The greatest load in the windows before the latest one; `None` as long as there was none.
fn most_before(history: &History, now: Time) -> Option<BitsPerSecond> {
    let ago = |windows: u64| now.as_nanos().checked_sub(WINDOW.as_nanos() * windows);
    let loads = (1..=WINDOWS).map_while(|number| {
        let (from, to) = (Time::from_nanos(ago(number + 1)?), Time::from_nanos(ago(number)?));
        let bytes = history.bytes_between(from, to)?;
        Some(BitsPerSecond::of_bytes(bytes, WINDOW.into()))
    });
    loads.reduce(BitsPerSecond::max)
}

/// Time over which a load is taken: ten ticks.
const WINDOW: Duration = Duration::from_millis(200);
/// Windows with which it is compared: seven seconds, as long as counters are kept.
const WINDOWS: u64 = 34;
/// Factor by which a load must rise: slow start doubles in each round trip.
const RISES_BY: f64 = 2.0;
/// Time in which the shaper has let go what it held back: a window and a round trip.
const LET_GO_WITHIN: Duration = Duration::from_millis(500);
/// Time in which the queue of a load shows that rose: a slow start is over by then.
const QUEUES_WITHIN: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::Traffic;

    const LEAST: BitsPerSecond = BitsPerSecond(200e3);

    /// Whether a load has risen at the ends of `spans` of ms, kbit/s, and whether a side drains a queue.
    fn rose(spans: &[(u64, u64, bool)]) -> Vec<bool> {
        let (mut surge, mut history) = (Surge::default(), History::default());
        let (mut now_ms, mut bytes) = (0, 0);
        let mut told = Vec::new();
        for &(ms, kbit, is_draining) in spans {
            for _ in 0..ms / 20 {
                (now_ms, bytes) = (now_ms + 20, bytes + kbit * 20 / 8);
                let traffic = Traffic { bytes, packets: bytes / 1000, backlog_bytes: 0 };
                history.note(Time::from_millis(now_ms), traffic);
                let other = History::default();
                let now = Time::from_millis(now_ms);
                surge.note([(&history, LEAST), (&other, LEAST)], is_draining, now);
            }
            told.push(surge.is_recent(Time::from_millis(now_ms)));
        }
        told
    }

    #[test]
    fn a_load_that_is_there_from_the_start_does_not_rise() {
        assert_eq!(rose(&[(5_000, 1_600, false)]), [false]);
    }

    #[test]
    fn twice_the_load_is_a_rise_and_half_as_much_more_is_none() {
        assert_eq!(rose(&[(3_000, 1_600, false), (1_000, 2_400, false)]), [false, false]);
        let twice = [(3_000, 1_600, false), (1_000, 3_400, false), (3_000, 3_400, false)];
        assert_eq!(rose(&twice), [false, true, false]);
        // As much as three seconds ago is no more than there was.
        let again = [(3_000, 3_400, false), (3_000, 800, false), (1_000, 3_400, false)];
        assert_eq!(rose(&again), [false, false, false]);
    }

    #[test]
    fn what_is_let_go_after_a_queue_and_what_is_no_load_is_no_rise() {
        assert_eq!(rose(&[(3_000, 1_600, true), (400, 9_000, false)]), [false, false]);
        assert_eq!(rose(&[(3_000, 50, false), (1_000, 150, false)]), [false, false]);
    }
}
