//! Changes to packets at a port before a discipline sees them: filters on the way out write a
//! priority and a mark on them (`clsact`, `action skbedit`), a size table says their length (`stab`).
//!
//! In Linux both are fields of the packet beside its bytes. Here the discipline is handed a packet with
//! that length, priority and mark, and whoever owns the packets sees them as they came.

use weir_core::{Packet, Priority, TcpHeader, Time};

use crate::contract::{Backlog, ClassView, DropReason, DropSink, MarkReason, Qdisc, Stats};
use crate::tc::{Filter, SizeTable};

/// A discipline behind a size table and filters that edit packets.
pub(crate) struct Adjusted {
    edits: Vec<Filter>,
    table: Option<SizeTable>,
    inside: Originals,
    qdisc: Box<dyn Qdisc>,
    looked_at: Option<Packet>,
}

impl Adjusted {
    /// `qdisc`, whose packets `table` gives their lengths and the first of `edits` that holds its
    /// priority and mark.
    pub fn new(qdisc: Box<dyn Qdisc>, table: Option<SizeTable>, edits: &[Filter]) -> Self {
        let mut edits = edits.to_vec();
        edits.sort_by_key(|filter| filter.priority);
        Self { edits, table, inside: Originals::default(), qdisc, looked_at: None }
    }

    /// `packet` as the discipline sees it.
    fn adjusted(&mut self, packet: Packet) -> Packet {
        let mut adjusted = packet;
        if let Some(filter) = self.edits.iter().find(|filter| filter.holds(&packet)) {
            filter.edit.apply(&mut adjusted.label);
        }
        if let Some(table) = &self.table {
            adjusted.len = table.length_of(packet.len);
        }
        adjusted.handle = self.inside.put(packet.into());
        adjusted
    }
}

impl Qdisc for Adjusted {
    fn enqueue(&mut self, packet: &Packet, now: Time, sink: &mut dyn DropSink) {
        let packet = self.adjusted(*packet);
        self.qdisc.enqueue(&packet, now, &mut RestoringSink { inside: &mut self.inside, sink });
    }

    fn dequeue(&mut self, now: Time, sink: &mut dyn DropSink) -> Option<Packet> {
        let packet =
            self.qdisc.dequeue(now, &mut RestoringSink { inside: &mut self.inside, sink })?;
        Some(self.inside.take(packet))
    }

    fn peek(&mut self, now: Time, sink: &mut dyn DropSink) -> Option<&Packet> {
        let mut restoring = RestoringSink { inside: &mut self.inside, sink };
        let packet = *self.qdisc.peek(now, &mut restoring)?;
        self.looked_at = Some(self.inside.original(&packet));
        self.looked_at.as_ref()
    }

    fn wake_at(&self) -> Option<Time> {
        self.qdisc.wake_at()
    }

    fn may_wake_at(&self) -> Option<Time> {
        self.qdisc.may_wake_at()
    }

    fn backlog(&self) -> Backlog {
        self.qdisc.backlog()
    }

    fn stats(&self) -> Stats {
        self.qdisc.stats()
    }

    fn classes(&self, visit: &mut dyn FnMut(ClassView<'_>)) {
        self.qdisc.classes(visit);
    }
}

/// The fields of a packet that were changed as it came in.
#[derive(Clone, Copy)]
struct Original {
    handle: u64,
    len: u32,
    priority: Option<Priority>,
    mark: u32,
}

impl From<Packet> for Original {
    fn from(packet: Packet) -> Self {
        let (priority, mark) = (packet.label.priority, packet.label.mark);
        Self { handle: packet.handle, len: packet.len, priority, mark }
    }
}

/// The originals of the packets inside, by the handles that these have inside.
#[derive(Default)]
struct Originals {
    slots: Vec<Original>,
    free: Vec<usize>,
}

impl Originals {
    /// Keeps `original` and gives it a handle.
    fn put(&mut self, original: Original) -> u64 {
        let slot = self.free.pop().unwrap_or(self.slots.len());
        if slot == self.slots.len() {
            self.slots.push(original);
        } else {
            self.slots[slot] = original;
        }
        slot as u64
    }

    /// `packet`, which leaves, as its owner knows it.
    fn take(&mut self, packet: Packet) -> Packet {
        self.free.push(packet.handle as usize);
        self.original(&packet)
    }

    /// `packet` as its owner knows it, with what a discipline may change (its code point and ECN).
    fn original(&self, packet: &Packet) -> Packet {
        let Original { handle, len, priority, mark } = self.slots[packet.handle as usize];
        let mut original = Packet { handle, len, ..*packet };
        original.label.priority = priority;
        original.label.mark = mark;
        original
    }
}

/// A drop sink that passes packets on to the packets' owner as they came.
struct RestoringSink<'a> {
    inside: &'a mut Originals,
    sink: &'a mut dyn DropSink,
}

impl DropSink for RestoringSink<'_> {
    fn on_drop(&mut self, packet: Packet, reason: DropReason) {
        self.sink.on_drop(self.inside.take(packet), reason);
    }

    fn on_xmit_drop(&mut self, packet: Packet, reason: DropReason) {
        self.sink.on_xmit_drop(self.inside.take(packet), reason);
    }

    fn on_mark(&mut self, packet: &Packet, reason: MarkReason) {
        self.sink.on_mark(&self.inside.original(packet), reason);
    }

    fn tcp_header(&self, packet: &Packet) -> Option<TcpHeader> {
        self.sink.tcp_header(&self.inside.original(packet))
    }

    fn on_duplicate(&mut self, packet: &Packet) -> u64 {
        let original = self.inside.original(packet);
        let handle = self.sink.on_duplicate(&original);
        self.inside.put(Packet { handle, ..original }.into())
    }
}
