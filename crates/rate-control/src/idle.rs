//! Delays of the idle line: what varies while hardly anything is sent is no queue of the user's.
//!
//! A path may be longer now and then for reasons of its own: radio, satellites, other people's traffic. While neither side
//! has traffic, an excess cannot be a queue of either, so that its distribution then tells what is to be let stand later.

use std::collections::VecDeque;

use weir_core::{Duration, Time};

use crate::quantities::Seconds;

/// Excesses that were seen lately while neither side had traffic.
#[derive(Clone, Debug, Default)]
pub(crate) struct IdleDelays {
    /// When they were seen, oldest first.
    excesses: VecDeque<(Time, Seconds)>,
    /// The excess that one sample in ten exceeds; `None` as long as there are too few.
    usual: Option<Seconds>,
    /// Since when neither side has had traffic; `None` while one has.
    quiet_since: Option<Time>,
    /// Whether the line was ever seen without traffic for long enough.
    was_seen: bool,
    /// Since when a load has been level on a line that nothing is known of; `None` while it is not.
    level_since: Option<Time>,
    /// Long excesses that were seen beside a level load: they count once they are gone while the load stays.
    pending: VecDeque<(Time, Seconds)>,
}

impl IdleDelays {
    /// Notes whether neither side has traffic at `now`.
    pub fn note_traffic(&mut self, is_quiet: bool, now: Time) {
        self.quiet_since = is_quiet.then(|| self.quiet_since.unwrap_or(now));
    }

    /// Notes whether a load is level at `now` on a line that nothing is known of, and lets everything through.
    pub fn note_level(&mut self, is_level: bool, now: Time) {
        self.level_since = is_level.then(|| self.level_since.unwrap_or(now));
        if !is_level {
            self.pending.clear();
        }
    }

    /// Takes an excess in, if it was seen long after the last traffic, or beside a level load.
    ///
    /// Beside a load a long one may be a queue, unless it goes while the load stays.
    pub fn add(&mut self, excess: Seconds, now: Time) {
        if self.is_quiet(now) {
            self.excesses.push_back((now, excess));
        } else if self.level_since.is_none() || self.was_seen {
            return;
        } else if excess > LONG {
            self.pending.push_back((now, excess));
            forget_old(&mut self.pending, now);
            return;
        } else {
            self.excesses.append(&mut self.pending);
            self.excesses.push_back((now, excess));
        }
        forget_old(&mut self.excesses, now);
        if self.is_quiet(now) || self.is_level_for(LEVEL_SEEN, now) {
            self.usual = nine_tenths(&self.excesses);
            self.was_seen |= self.is_quiet(now) && self.usual.is_some();
        }
    }

    /// Whether a load has been level for `span` until `now`.
    fn is_level_for(&self, span: Duration, now: Time) -> bool {
        self.level_since.is_some_and(|since| now.since(since) >= span)
    }

    /// Whether what is known tells of now: there is no traffic, or a level load on a line that was never seen without.
    pub fn is_told(&self, now: Time) -> bool {
        self.is_quiet(now) || (self.level_since.is_some() && !self.was_seen)
    }

    /// Whether the line's delays are known: from without traffic, ever, or from beside a load, lately.
    pub const fn is_known(&self) -> bool {
        self.was_seen || self.usual.is_some()
    }

    /// Forgets what was seen, as it was above other baselines.
    pub fn forget(&mut self) {
        self.excesses.clear();
        self.pending.clear();
        self.usual = None;
    }

    /// Whether nothing of the last traffic can wait any more.
    pub fn is_quiet(&self, now: Time) -> bool {
        self.quiet_since.is_some_and(|since| now.since(since) >= DRAINED_AFTER)
    }

    /// The excess that one sample in ten exceeds; `None` as long as there are too few.
    pub const fn usual(&self) -> Option<Seconds> {
        self.usual
    }
}

/// Forgets samples that are too old at `now` or too many.
fn forget_old(samples: &mut VecDeque<(Time, Seconds)>, now: Time) {
    while samples.len() > MAX_SAMPLES
        || samples.front().is_some_and(|&(seen, _)| now.since(seen) > KEEP)
    {
        samples.pop_front();
    }
}

/// The excess that one of `samples` in ten exceeds; `None` if there are too few.
fn nine_tenths(samples: &VecDeque<(Time, Seconds)>) -> Option<Seconds> {
    if samples.len() < MIN_SAMPLES {
        return None;
    }
    let mut sorted: Vec<f64> = samples.iter().map(|(_, excess)| excess.0).collect();
    sorted.sort_by(f64::total_cmp);
    Some(Seconds(sorted[sorted.len() * 9 / 10]))
}

/// Time without traffic after which no queue of it is left, but in front of the slowest lines.
const DRAINED_AFTER: Duration = Duration::from_secs(2);
/// Excess from which on one beside a load may be a queue: as much as is let stand on an unknown line.
const LONG: Seconds = Seconds(0.01);
/// Time for which a load has been level when the delays beside it tell a distribution: as long as it takes on an idle line.
const LEVEL_SEEN: Duration = Duration::from_secs(2);
/// Time for which an excess is remembered: as long as the baseline that it is above.
const KEEP: Duration = Duration::from_secs(30);
/// Samples that tell a distribution: two seconds of probes on an idle line.
const MIN_SAMPLES: usize = 10;
/// Five a second for [`KEEP`], and as many again from other sources.
const MAX_SAMPLES: usize = 300;

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    /// From 0 to 10 s a sample each 200 ms, each third one 40 ms late.
    fn seen(idle: &mut IdleDelays) {
        for number in 0..50 {
            let now = ms(number * 200);
            idle.note_traffic(true, now);
            idle.add(Seconds(if number % 3 == 0 { 0.04 } else { 0.001 }), now);
        }
    }

    /// While the line sleeps one probe a minute tells no distribution, but the line has been seen.
    #[test]
    fn a_line_that_sleeps_was_seen_without_traffic() {
        let mut idle = IdleDelays::default();
        assert!(!idle.is_known());
        seen(&mut idle);
        idle.note_traffic(true, ms(70_000));
        idle.add(Seconds(0.001), ms(70_000));
        assert_eq!((idle.usual(), idle.is_known()), (None, true));
        // So what comes beside a level load later is not learned.
        idle.note_traffic(false, ms(80_000));
        for number in 0..500 {
            let now = ms(80_000 + number * 20);
            idle.note_level(true, now);
            idle.add(Seconds(0.008), now);
        }
        assert_eq!(idle.usual(), None);
    }

    /// Beside a level load of 10 s, from 2 s on: for so many ms of each second 40 ms late, and else 1 ms.
    fn beside_a_load(late_ms: u64) -> IdleDelays {
        let mut idle = IdleDelays::default();
        for number in 0..500 {
            let now = ms(2_000 + number * 20);
            idle.note_traffic(false, now);
            idle.note_level(true, now);
            idle.add(Seconds(if number * 20 % 1_000 < late_ms { 0.04 } else { 0.001 }), now);
        }
        idle
    }

    #[test]
    fn what_comes_and_goes_beside_a_level_load_is_known() {
        assert_eq!(beside_a_load(300).usual(), Some(Seconds(0.04)));
        assert_eq!(beside_a_load(0).usual(), Some(Seconds(0.001)));
    }

    #[test]
    fn what_comes_beside_a_level_load_and_stays_may_be_a_queue_and_is_not_kept_for_ever() {
        let mut idle = beside_a_load(0);
        for number in 0..5_000 {
            let now = ms(12_000 + number * 20);
            idle.note_level(true, now);
            idle.add(Seconds(0.04), now);
        }
        assert_eq!((idle.usual(), idle.pending.len()), (Some(Seconds(0.001)), MAX_SAMPLES));
        // Nor does it count if the load has changed before it is gone.
        idle.note_level(false, ms(113_000));
        idle.note_level(true, ms(113_020));
        idle.add(Seconds(0.001), ms(113_020));
        assert_eq!((idle.usual(), idle.pending.len()), (Some(Seconds(0.001)), 0));
    }

    #[test]
    fn what_varies_without_traffic_is_known_after_some_samples() {
        let mut idle = IdleDelays::default();
        assert_eq!(idle.usual(), None);
        seen(&mut idle);
        assert_eq!(idle.usual(), Some(Seconds(0.04)));
    }

    #[test]
    fn one_in_ten_says_nothing() {
        let mut idle = IdleDelays::default();
        for number in 0..100 {
            let now = ms(number * 200);
            idle.note_traffic(true, now);
            idle.add(Seconds(if number % 12 == 0 { 0.3 } else { 0.001 }), now);
        }
        assert_eq!(idle.usual(), Some(Seconds(0.001)));
    }

    #[test]
    fn traffic_and_what_may_wait_of_it_do_not_count() {
        let mut idle = IdleDelays::default();
        seen(&mut idle);
        idle.note_traffic(false, ms(10_000));
        idle.add(Seconds(0.5), ms(10_000));
        idle.note_traffic(true, ms(10_100));
        for number in 0..9 {
            idle.add(Seconds(0.5), ms(10_100 + number * 200));
        }
        assert_eq!(idle.usual(), Some(Seconds(0.04)));
        assert!(!idle.is_quiet(ms(12_000)) && idle.is_quiet(ms(12_100)));
    }

    #[test]
    fn what_was_seen_long_ago_is_forgotten() {
        let mut idle = IdleDelays::default();
        seen(&mut idle);
        for number in 0..20 {
            idle.add(Seconds::ZERO, ms(40_000 + number * 200));
        }
        assert_eq!(idle.usual(), Some(Seconds::ZERO));
    }
}
