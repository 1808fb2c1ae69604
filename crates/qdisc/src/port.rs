//! A discipline at work: arrival stamps and sojourn times.

use weir_core::{Duration, Packet, Time};

use crate::contract::{Backlog, ClassView, DropReason, Fates, MarkReason, Qdisc, Stats};

/// A discipline with the two things that every driver needs: packets are stamped as they arrive, and
/// the sojourn of those that leave is measured.
pub struct Port {
    qdisc: Box<dyn Qdisc>,
    sojourn: Sojourn,
}

/// Sojourn times of the packets that left since the last [`Port::take_sojourn`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sojourn {
    /// How many packets left.
    pub packets: u64,
    /// Sum of their sojourn times.
    pub total: Duration,
    /// The longest.
    pub max: Duration,
}

impl Sojourn {
    /// The mean, if any packet left.
    #[must_use]
    pub fn mean(&self) -> Option<Duration> {
        (self.packets > 0).then(|| self.total / self.packets)
    }
}

impl Port {
    /// A port with `qdisc` on it.
    #[must_use]
    pub fn new(qdisc: Box<dyn Qdisc>) -> Self {
        Self { qdisc, sojourn: Sojourn::default() }
    }

    /// Stamps `packet` and hands it to the discipline.
    pub fn enqueue(&mut self, mut packet: Packet, now: Time, fates: &mut dyn Fates) {
        packet.enqueued_at = now;
        self.qdisc.enqueue(packet, now, fates);
    }

    /// The next packet to send at `now`.
    pub fn dequeue(&mut self, now: Time, fates: &mut dyn Fates) -> Option<Packet> {
        let packet = self.qdisc.dequeue(now, fates)?;
        let sojourn = now.since(packet.enqueued_at);
        self.sojourn.packets += 1;
        self.sojourn.total += sojourn;
        self.sojourn.max = self.sojourn.max.max(sojourn);
        Some(packet)
    }

    /// When a discipline that holds packets back may next send one, as found by the last dequeue.
    #[must_use]
    pub fn wake_at(&self) -> Option<Time> {
        self.qdisc.wake_at()
    }

    /// From when on a timer for [`wake_at`](Self::wake_at) may go off.
    #[must_use]
    pub fn may_wake_at(&self) -> Option<Time> {
        self.qdisc.may_wake_at()
    }

    /// What waits now.
    #[must_use]
    pub fn backlog(&self) -> Backlog {
        self.qdisc.backlog()
    }

    /// What has happened so far.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.qdisc.stats()
    }

    /// Shows the tree of classes.
    pub fn classes(&self, visit: &mut dyn FnMut(ClassView<'_>)) {
        self.qdisc.classes(visit);
    }

    /// The sojourn times since the last call.
    pub fn take_sojourn(&mut self) -> Sojourn {
        std::mem::take(&mut self.sojourn)
    }
}

/// Fates that nobody asks for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ignore;

impl Fates for Ignore {
    fn on_drop(&mut self, _: Packet, _: DropReason) {}
    fn on_mark(&mut self, _: &Packet, _: MarkReason) {}
}
