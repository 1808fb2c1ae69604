//! Packets on their way between two places, as many as there are, with one event for the next to arrive.

use std::collections::VecDeque;

use weir_core::{Duration, Packet, Time};

use crate::events::{Events, Source};
use crate::forwarding::Next;

/// A delay line: packets on their way, in the order in which they arrive.
#[derive(Debug)]
pub(crate) struct DelayLine {
    pub packets: VecDeque<(Time, Packet)>,
    pub delay: Duration,
    pub next: Next,
}

impl DelayLine {
    pub const fn new(delay: Duration, next: Next) -> Self {
        Self { packets: VecDeque::new(), delay, next }
    }

    #[inline(always)]
    pub fn push(&mut self, at: Time, packet: &Packet, source: Source, events: &mut Events) {
        if self.packets.back().is_some_and(|&(last, _)| at < last) {
            return self.push_ahead(at, packet, source, events);
        }
        if self.packets.is_empty() {
            events.set(source, at);
        }
        self.packets.push_back((at, *packet));
    }

    /// As [`push`](Self::push), for what happens seldom.
    #[cold]
    pub fn push_rare(&mut self, at: Time, packet: &Packet, source: Source, events: &mut Events) {
        self.push(at, packet, source, events);
    }

    /// One that overtakes others.
    #[cold]
    fn push_ahead(&mut self, at: Time, packet: &Packet, source: Source, events: &mut Events) {
        let place = self.packets.partition_point(|&(other, _)| other <= at);
        if place == 0 {
            events.set(source, at);
        }
        self.packets.insert(place, (at, *packet));
    }

    /// Takes the next packet out into `packet`, if it has arrived; returns whether it has.
    #[inline]
    pub fn pop_due(&mut self, now: Time, packet: &mut Packet) -> bool {
        match self.packets.front() {
            Some((at, first)) if *at <= now => {
                *packet = *first;
                self.packets.pop_front();
                true
            }
            _ => false,
        }
    }

    pub fn next_arrival(&self) -> Option<Time> {
        self.packets.front().map(|&(at, _)| at)
    }
}
