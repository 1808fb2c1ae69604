//! A drop-tail FIFO whose driver says of each packet, as it arrives, when it will leave.
//!
//! In front of a line that never changes, and on which nothing happens by chance, that is known: as soon as all
//! before it are through. So packets need not wait here. What is counted of them is as in a [`Fifo`](crate::fifo).

use std::collections::VecDeque;

use weir_core::{Packet, Time};

use crate::accounting::Accounting;
use crate::contract::{Backlog, DropReason, DropSink, Stats};
use crate::fifo::Limit;

/// A drop-tail FIFO that keeps no packets.
#[derive(Debug)]
pub struct Foreseen {
    limit: Limit,
    accounting: Accounting,
    waiting: VecDeque<Departure>,
    /// When the first of them leaves; never, if there is none.
    next: Time,
}

/// The departure of a packet that waits.
#[derive(Clone, Copy, Debug)]
pub struct Departure {
    /// When the packet arrived.
    pub arrived: Time,
    /// When it leaves.
    pub leaves: Time,
    /// Its [length](Packet::len).
    pub len: u32,
    /// Bytes of the line that it will occupy.
    pub wire_bytes: u64,
}

impl Foreseen {
    /// One of that limit, empty. It drops what arrives, never what waits.
    pub(crate) fn new(limit: Limit) -> Self {
        Self { limit, accounting: Accounting::default(), waiting: VecDeque::new(), next: Time::MAX }
    }

    /// Takes a packet that leaves as it arrives, if none waits and it has room; returns whether it did.
    #[inline]
    pub(crate) fn pass(&mut self, packet: &Packet) -> bool {
        let passes = self.waiting.is_empty() && self.has_room(packet);
        if passes {
            self.accounting.pass(packet);
        }
        passes
    }

    /// Takes `packet`, which arrives at `now`, or drops it where it has no room; returns whether it took it. When it leaves
    /// is told [next](Self::plan).
    #[inline]
    pub(crate) fn admit(&mut self, packet: &Packet, now: Time, sink: &mut dyn DropSink) -> bool {
        let is_taken = self.has_room(packet);
        if is_taken {
            self.accounting.arrive(packet);
        } else {
            let stamped = Packet { enqueued_at: now, ..*packet };
            self.accounting.xmit_drop(stamped, DropReason::Overlimit, sink);
        }
        is_taken
    }

    /// Plans the departure of the packet that was taken last.
    #[inline]
    pub(crate) fn plan(&mut self, departure: Departure) {
        if self.waiting.is_empty() {
            self.next = departure.leaves;
        }
        self.waiting.push_back(departure);
    }

    /// When the next packet leaves; never, if none waits.
    #[inline]
    pub(crate) fn next_leaves(&self) -> Time {
        self.next
    }

    /// Lets the next packet leave.
    ///
    /// # Panics
    /// If none waits.
    #[inline]
    pub(crate) fn take(&mut self) -> Departure {
        let first = self.waiting.pop_front().expect("a packet waits");
        self.next = self.waiting.front().map_or(Time::MAX, |next| next.leaves);
        self.accounting.leave(first.len);
        first
    }

    #[inline]
    fn has_room(&self, packet: &Packet) -> bool {
        self.limit.has_room(self.accounting.backlog(), packet.len)
    }

    pub(crate) fn backlog(&self) -> Backlog {
        self.accounting.backlog()
    }

    pub(crate) fn stats(&self) -> Stats {
        self.accounting.stats()
    }
}
