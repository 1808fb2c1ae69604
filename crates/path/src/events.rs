//! The event queue: at most one pending event for each source.
//!
//! A line has one pending event however many packets are on it. A source that becomes due later than it
//! was, as a connection's timer does with each acknowledgement, costs nothing but the note of its new
//! time: its old event, when it comes up, is put back. So the queue holds as many events as there are
//! sources, not packets.
//!
//! The sources with the lowest numbers come up with every packet: the lines and ways of a path. Looking through the
//! times at which the first few of them are due costs less than a place in the heap.

use weir_core::{Time, prefetch};

/// The number of a source of events. Of two events at one instant the lower source comes first.
pub type Source = u32;

/// A queue of events, ordered by time, then source.
#[derive(Debug)]
pub struct Events {
    /// When each of the frequent sources is due, which are those with the lowest numbers; [`Time::MAX`] for never.
    frequent: [Time; FREQUENT],
    /// How many sources are frequent.
    frequent_sources: Source,
    /// Events of the other sources: a heap of four children a node, so that a node's children share a cache line.
    heap: Vec<Key>,
    /// The root has been handed out and may be overwritten.
    root_is_free: bool,
    /// By source; of frequent ones nothing is kept here.
    sources: Vec<Plan>,
    now: Time,
}

/// When a source is due, and when its event in the heap comes up; [`Time::MAX`] for never.
#[derive(Clone, Copy, Debug)]
struct Plan {
    due: Time,
    queued: Time,
}

/// Time and source in one number.
type Key = u128;

impl Events {
    /// A queue for that many sources, of which the first `frequent` come up most often.
    #[must_use]
    pub fn new(sources: usize, frequent: Source) -> Self {
        let never = Plan { due: Time::MAX, queued: Time::MAX };
        Self {
            frequent: [Time::MAX; FREQUENT],
            frequent_sources: frequent.min(FREQUENT as Source),
            heap: Vec::new(),
            root_is_free: false,
            sources: vec![never; sources],
            now: Time::ZERO,
        }
    }

    /// So many sources more, behind all others; returns the first of them.
    pub fn add(&mut self, sources: usize) -> Source {
        let first = self.sources.len();
        let never = Plan { due: Time::MAX, queued: Time::MAX };
        self.sources.resize(first + sources, never);
        first as Source
    }

    /// Makes `source` due at `at`, whenever it was due before; never if that is [`Time::MAX`].
    #[inline]
    pub fn set(&mut self, source: Source, at: Time) {
        debug_assert!(at >= self.now, "set for {at}, which is before {}", self.now);
        if let Some(due) = self.frequent_due(source) {
            *due = at;
            return;
        }
        let plan = &mut self.sources[source as usize];
        plan.due = at;
        if at < plan.queued {
            plan.queued = at;
            self.push(key(at, source));
        }
    }

    /// Makes `source` due never.
    #[inline]
    pub fn clear(&mut self, source: Source) {
        match self.frequent_due(source) {
            Some(due) => *due = Time::MAX,
            None => self.sources[source as usize].due = Time::MAX,
        }
    }

    /// `source` will be [set](Self::set) shortly.
    #[inline]
    pub fn prefetch(&self, source: Source) {
        if let Some(plan) = self.sources.get(source as usize) {
            prefetch(plan);
        }
    }

    /// The next event, whose source is then no longer due.
    ///
    /// # Panics
    /// If time would run backwards.
    #[allow(clippy::should_implement_trait, reason = "events come up between calls: no iteration")]
    #[inline(always)]
    pub fn next(&mut self) -> Option<(Time, Source)> {
        self.next_by(Time::MAX)
    }

    /// The next event if it is due by `limit`; its source is then no longer due.
    ///
    /// # Panics
    /// If time would run backwards.
    #[inline(always)]
    pub fn next_by(&mut self, limit: Time) -> Option<(Time, Source)> {
        let (at, source) = self.first()?;
        if at > limit {
            return None;
        }
        assert!(at >= self.now, "time ran backwards: from {} to {at}", self.now);
        self.now = at;
        if let Some(due) = self.frequent_due(source) {
            *due = Time::MAX;
        } else {
            self.root_is_free = true;
            self.sources[source as usize] = Plan { due: Time::MAX, queued: Time::MAX };
        }
        Some((at, source))
    }

    /// When the next event is due.
    pub fn earliest(&mut self) -> Option<Time> {
        self.first().map(|(at, _)| at)
    }

    /// The earliest of the times that `by` makes of the events of frequent sources, and of the next event of the others.
    pub(crate) fn earliest_by(&mut self, by: impl Fn(Source, Time) -> Time) -> Option<Time> {
        let frequent = self.frequent.iter().enumerate().filter(|(_, due)| **due < Time::MAX);
        let earliest = frequent.map(|(number, &due)| by(number as Source, due)).min();
        let rare = self.settle().map(|(at, _)| at);
        earliest.into_iter().chain(rare).min()
    }

    /// When `source` is due, if it is a frequent one.
    #[inline(always)]
    fn frequent_due(&mut self, source: Source) -> Option<&mut Time> {
        (source < self.frequent_sources).then(|| &mut self.frequent[source as usize % FREQUENT])
    }

    /// The next event, and its source.
    #[inline(always)]
    fn first(&mut self) -> Option<(Time, Source)> {
        let [a, b, c, d, e, f, g, h] = self.frequent;
        let (mut at, mut source) = earliest_of([a, b, c, d], 0);
        if self.frequent_sources > 4 {
            (at, source) = earlier((at, source), earliest_of([e, f, g, h], 4));
        }
        // The heap's root is never later than the next event there. At one instant the frequent ones come first, as
        // their numbers are lower.
        if self.heap.first().is_some_and(|&root| split(root).0 < at)
            && let Some(rare) = self.settle()
            && rare.0 < at
        {
            return Some(rare);
        }
        (at < Time::MAX).then_some((at, source))
    }

    /// Puts events that are no longer meant out of the way, until the first in the heap is the next of those there.
    fn settle(&mut self) -> Option<(Time, Source)> {
        loop {
            if self.root_is_free {
                self.remove_root();
            }
            let (at, source) = split(*self.heap.first()?);
            let plan = &mut self.sources[source as usize];
            if plan.queued == at && plan.due == at {
                return Some((at, source));
            }
            self.root_is_free = true;
            if plan.queued != at {
                // A source that became due earlier left this event behind.
                continue;
            }
            plan.queued = plan.due;
            if plan.due < Time::MAX {
                let later = key(plan.due, source);
                self.push(later);
            }
        }
    }

    fn push(&mut self, key: Key) {
        if self.root_is_free {
            // The event in work arms its source again for a little later: it rarely sinks far.
            self.root_is_free = false;
            self.heap[0] = key;
            self.sink(0);
            return;
        }
        self.heap.push(key);
        let mut at = self.heap.len() - 1;
        while at > 0 {
            let parent = (at - 1) / 4;
            if self.heap[parent] <= key {
                break;
            }
            self.heap[at] = self.heap[parent];
            at = parent;
        }
        self.heap[at] = key;
    }

    fn remove_root(&mut self) {
        self.root_is_free = false;
        let last = self.heap.pop().expect("there is a root");
        if !self.heap.is_empty() {
            self.heap[0] = last;
            self.sink(0);
        }
    }

    fn sink(&mut self, from: usize) {
        let heap = &mut self.heap[..];
        let key = heap[from];
        let mut at = from;
        loop {
            let first = at * 4 + 1;
            if first >= heap.len() {
                break;
            }
            let (child, least) = match heap.get(first..first + 4) {
                Some(&[a, b, c, d]) => least_of_four([a, b, c, d]),
                _ => least_of(&heap[first..]),
            };
            if least >= key {
                break;
            }
            heap[at] = least;
            at = first + child;
        }
        heap[at] = key;
    }
}

/// The earliest of the times, and its source, where that of the first is `first`; of equal ones the first.
///
/// Without branches: which it is cannot be foretold.
#[inline(always)]
fn earliest_of([a, b, c, d]: [Time; 4], first: Source) -> (Time, Source) {
    earlier(earlier((a, first), (b, first + 1)), earlier((c, first + 2), (d, first + 3)))
}

/// The earlier of two events; of equal ones the first.
#[inline(always)]
fn earlier(one: (Time, Source), other: (Time, Source)) -> (Time, Source) {
    if other.0 < one.0 { other } else { one }
}

/// The place and value of the least of four keys, without branches: which it is cannot be foretold.
#[inline]
fn least_of_four([a, b, c, d]: [Key; 4]) -> (usize, Key) {
    let left = if b < a { (1, b) } else { (0, a) };
    let right = if d < c { (3, d) } else { (2, c) };
    if right.1 < left.1 { right } else { left }
}

/// The place and value of the least of the last keys, which are fewer than four.
fn least_of(keys: &[Key]) -> (usize, Key) {
    let mut least = (0, keys[0]);
    for (place, &key) in keys.iter().enumerate().skip(1) {
        if key < least.1 {
            least = (place, key);
        }
    }
    least
}

fn key(at: Time, source: Source) -> Key {
    u128::from(at.as_nanos()) << 32 | u128::from(source)
}

fn split(key: Key) -> (Time, Source) {
    (Time::from_nanos((key >> 32) as u64), key as Source)
}

/// Most sources whose times are looked through. Those of a path of one line in each direction are half as many.
const FREQUENT: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use weir_core::{Draw, Seed};

    /// None, those of one line in each direction, one more, and the most that there can be; the last is more.
    const FREQUENT_SOURCES: [Source; 5] = [0, 4, 5, FREQUENT as Source, FREQUENT as Source + 1];

    const fn ms(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    #[test]
    fn events_come_by_time_then_source() {
        for frequent in FREQUENT_SOURCES {
            // The first sources, those behind them, and some of both.
            for first in [0, frequent, frequent.saturating_sub(2)] {
                events_come_in_order(first, frequent);
            }
        }
    }

    fn events_come_in_order(first: Source, frequent: Source) {
        let mut events = Events::new(5 + FREQUENT, frequent);
        events.set(first + 3, ms(5));
        events.set(first + 1, ms(5));
        events.set(first + 2, ms(1));
        assert_eq!(events.next(), Some((ms(1), first + 2)));
        events.set(first + 2, ms(5));
        assert_eq!(events.next(), Some((ms(5), first + 1)));
        assert_eq!(events.next(), Some((ms(5), first + 2)));
        assert_eq!(events.next(), Some((ms(5), first + 3)));
        assert_eq!(events.next(), None);
    }

    #[test]
    fn the_last_setting_counts() {
        for frequent in FREQUENT_SOURCES {
            for first in [0, frequent, frequent.saturating_sub(1)] {
                the_last_setting_holds(first, frequent);
            }
        }
    }

    fn the_last_setting_holds(first: Source, frequent: Source) {
        let mut events = Events::new(4 + FREQUENT, frequent);
        events.set(first, ms(10));
        events.set(first, ms(4));
        events.set(first + 1, ms(3));
        events.set(first + 1, ms(7));
        events.set(first + 2, ms(5));
        events.clear(first + 2);
        assert_eq!(events.next(), Some((ms(4), first)));
        assert_eq!(events.next(), Some((ms(7), first + 1)));
        assert_eq!(events.next(), None);
        events.set(first + 2, ms(12));
        assert_eq!(events.next(), Some((ms(12), first + 2)));
    }

    #[test]
    fn frequent_sources_may_be_waited_for_longer_and_the_others_are_not() {
        let mut events = Events::new(2 + FREQUENT, FREQUENT as Source);
        let later =
            |source, at: Time| if source == 1 { at.saturating_add(ms(3).since(ms(0))) } else { at };
        assert_eq!(events.earliest_by(later), None);
        events.set(1, ms(5));
        assert_eq!(events.earliest_by(later), Some(ms(8)));
        events.set(FREQUENT as Source, ms(7));
        assert_eq!(events.earliest_by(later), Some(ms(7)));
        events.set(2, ms(6));
        assert_eq!(events.earliest_by(later), Some(ms(6)));
        assert_eq!(events.next(), Some((ms(5), 1)), "the order is as ever");
    }

    #[test]
    fn sources_may_be_added_while_others_are_due() {
        let mut events = Events::new(1, 1);
        events.set(0, ms(2));
        assert_eq!(events.add(2), 1);
        events.set(2, ms(1));
        assert_eq!(events.next(), Some((ms(1), 2)));
        assert_eq!(events.add(1), 3);
        assert_eq!(events.next(), Some((ms(2), 0)));
    }

    #[test]
    fn the_order_is_that_of_a_sorted_list() {
        FREQUENT_SOURCES.into_iter().for_each(the_order_is_that_of_a_list);
    }

    fn the_order_is_that_of_a_list(frequent: Source) {
        let mut rng = Seed::new(1).stream("events");
        let mut events = Events::new(500, frequent);
        let mut due = vec![Time::MAX; 500];
        let mut now = Time::ZERO;
        for _ in 0..20_000 {
            let source = rng.below(500) as u32;
            let at = now + weir_core::Duration::from_nanos(rng.below(1_000));
            due[source as usize] = at;
            events.set(source, at);
            if rng.below(3) == 0 {
                let expected =
                    (0..500u32).min_by_key(|&s| (due[s as usize], s)).expect("there are sources");
                now = due[expected as usize];
                assert_eq!(events.next(), Some((now, expected)));
                due[expected as usize] = Time::MAX;
            }
        }
    }
}
