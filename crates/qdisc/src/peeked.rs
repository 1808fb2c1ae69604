//! Looking at the next packet of a discipline that finds it only by taking it out.

use weir_core::{Packet, Time};

use crate::accounting::Accounting;
use crate::contract::{Backlog, ClassView, DropSink, Qdisc, Stats};

/// A discipline that decides about packets as it takes them out, such as CoDel.
///
/// It says how the next packet is taken; [`Peeked`] makes a [`Qdisc`] of it.
pub(crate) trait TakesNext: Send {
    /// Takes a packet that arrives at `now`, as [`Qdisc::enqueue`].
    fn enqueue(&mut self, packet: &Packet, now: Time, sink: &mut dyn DropSink);

    /// Does what a timer would have done by `now`, before a packet is taken or looked at.
    fn run_timers(&mut self, now: Time, sink: &mut dyn DropSink) {
        let _ = (now, sink);
    }

    /// [`Qdisc::pass`], which is asked only while no packet is held.
    fn pass(&mut self, packet: &Packet, now: Time) -> bool {
        let _ = (packet, now);
        false
    }

    /// Takes out the next packet to send at `now`. Its departure is not yet counted in
    /// [`accounting`](Self::accounting); where there is none, what is beneath has counted it.
    fn take_next(&mut self, now: Time, sink: &mut dyn DropSink) -> Option<Packet>;

    /// The accounting of a discipline that holds packets itself; `None` if only what is beneath counts.
    fn accounting(&mut self) -> Option<&mut Accounting> {
        None
    }

    /// When a discipline that holds packets back may next send one, as found by the last
    /// [`take_next`](Self::take_next).
    fn wake_at(&self) -> Option<Time> {
        None
    }

    /// From when on a timer for [`wake_at`](Self::wake_at) may go off.
    fn may_wake_at(&self) -> Option<Time> {
        self.wake_at()
    }

    /// Packets and bytes that wait, where nobody has looked at a packet.
    fn backlog(&self) -> Backlog;

    /// Packets and bytes that arrived, left and were dropped so far, where nobody has looked at a packet.
    fn stats(&self) -> Stats;

    /// Shows the classes and children, the whole tree below the discipline, to `visit`.
    fn classes(&self, visit: &mut dyn FnMut(ClassView<'_>)) {
        let _ = visit;
    }
}

/// A discipline that holds a packet which was looked at until it is taken (`qdisc_peek_dequeued`).
pub(crate) struct Peeked<D> {
    pub discipline: D,
    held: Option<Held>,
}

/// A packet that was looked at and still waits.
struct Held {
    packet: Packet,
    /// Whether the discipline's own accounting has it in its backlog.
    is_counted: bool,
}

impl<D: TakesNext> Peeked<D> {
    pub fn new(discipline: D) -> Self {
        Self { discipline, held: None }
    }

    /// The packet that is held, which then no longer waits.
    fn take_held(&mut self) -> Option<Packet> {
        let Held { packet, .. } = self.held.take()?;
        if let Some(accounting) = self.discipline.accounting() {
            accounting.take(&packet);
        }
        Some(packet)
    }

    /// The length of a held packet that what is beneath has counted as departed.
    fn uncounted_len(&self) -> Option<u32> {
        self.held.as_ref().filter(|held| !held.is_counted).map(|held| held.packet.len)
    }
}

impl<D: TakesNext> Qdisc for Peeked<D> {
    fn enqueue(&mut self, packet: &Packet, now: Time, sink: &mut dyn DropSink) {
        self.discipline.enqueue(packet, now, sink);
    }

    fn pass(&mut self, packet: &Packet, now: Time) -> bool {
        self.held.is_none() && self.discipline.pass(packet, now)
    }

    fn dequeue(&mut self, now: Time, sink: &mut dyn DropSink) -> Option<Packet> {
        self.discipline.run_timers(now, sink);
        let taken = if self.held.is_some() {
            self.take_held()
        } else {
            self.discipline.take_next(now, sink)
        };
        if let Some(packet) = &taken
            && let Some(accounting) = self.discipline.accounting()
        {
            accounting.depart(packet);
        }
        taken
    }

    fn peek(&mut self, now: Time, sink: &mut dyn DropSink) -> Option<&Packet> {
        self.discipline.run_timers(now, sink);
        if self.held.is_none() {
            let packet = self.discipline.take_next(now, sink)?;
            let accounting = self.discipline.accounting();
            let is_counted = accounting.is_some();
            if let Some(accounting) = accounting {
                accounting.hold(&packet);
            }
            self.held = Some(Held { packet, is_counted });
        }
        self.held.as_ref().map(|held| &held.packet)
    }

    fn wake_at(&self) -> Option<Time> {
        self.discipline.wake_at()
    }

    fn may_wake_at(&self) -> Option<Time> {
        self.discipline.may_wake_at()
    }

    fn backlog(&self) -> Backlog {
        let mut backlog = self.discipline.backlog();
        if let Some(len) = self.uncounted_len() {
            backlog.packets += 1;
            backlog.bytes += u64::from(len);
        }
        backlog
    }

    fn stats(&self) -> Stats {
        let mut stats = self.discipline.stats();
        if let Some(len) = self.uncounted_len() {
            stats.departed.packets -= 1;
            stats.departed.bytes -= u64::from(len);
        }
        stats
    }

    fn classes(&self, visit: &mut dyn FnMut(ClassView<'_>)) {
        self.discipline.classes(visit);
    }
}
