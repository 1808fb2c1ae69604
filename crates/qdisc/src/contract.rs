//! The contract between a queue discipline and whatever drives it.

pub use weir_core::{DropReason, MarkReason};
use weir_core::{Framing, Packet, TcpHeader, Time};

/// A queue discipline: decides order, drops and marks at one port.
///
/// A discipline is a pure state machine. Its driver hands in packets and the time, never an earlier
/// time than before, and asks for packets when the line is free:
///
/// * after every [`enqueue`](Self::enqueue) onto an idle line the driver calls
///   [`dequeue`](Self::dequeue);
/// * if that yields nothing although packets wait, the discipline is shaping, and
///   [`wake_at`](Self::wake_at) says when to try again.
///
/// After every call the counts balance: arrived = departed + dropped + backlog, in packets and in
/// bytes. Every dropped packet is given to the [`DropSink`] with its reason.
pub trait Qdisc: Send {
    /// Takes a packet that arrives at `now`. The packet's `enqueued_at` is already `now`. It is lent: a discipline copies
    /// what it keeps.
    ///
    /// The discipline may drop this packet or others. It gives each dropped packet to `sink`.
    fn enqueue(&mut self, packet: &Packet, now: Time, sink: &mut dyn DropSink);

    /// The next packet to send at `now`, or `None` if nothing waits or nothing may leave yet.
    fn dequeue(&mut self, now: Time, sink: &mut dyn DropSink) -> Option<Packet>;

    /// Counts a packet that arrives at `now` while nothing waits, and leaves at once: what [`enqueue`](Self::enqueue) and
    /// [`dequeue`](Self::dequeue) one after the other do. Returns whether it did; mostly a discipline has more to do, and
    /// then it did nothing.
    fn pass(&mut self, packet: &Packet, now: Time) -> bool {
        let _ = (packet, now);
        false
    }

    /// The packet that [`dequeue`](Self::dequeue) would return at `now`, left in place.
    ///
    /// A discipline that decides at dequeue (CoDel) decides here and holds the packet, as Linux'
    /// `qdisc_peek_dequeued`; until it is dequeued the packet still counts into the backlog.
    fn peek(&mut self, now: Time, sink: &mut dyn DropSink) -> Option<&Packet>;

    /// When a discipline that holds packets back may next send one, as found by the last
    /// [`dequeue`](Self::dequeue); `None` if that yielded a packet or nothing waits.
    fn wake_at(&self) -> Option<Time> {
        None
    }

    /// From when on a timer for [`wake_at`](Self::wake_at) may go off: earlier, where the discipline's
    /// timer has slack.
    fn may_wake_at(&self) -> Option<Time> {
        self.wake_at()
    }

    /// Packets and bytes that wait now.
    fn backlog(&self) -> Backlog;

    /// Packets and bytes that arrived, left and were dropped so far, children included.
    fn stats(&self) -> Stats;

    /// Shows this discipline's classes and children, the whole tree below it, to `visit`.
    fn classes(&self, visit: &mut dyn FnMut(ClassView<'_>)) {
        let _ = visit;
    }
}

/// Packets and bytes that wait in a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Packets.
    pub packets: u32,
    /// Bytes, as [`Packet::len`] counts them.
    pub bytes: u64,
}

/// One class of a classful discipline.
#[derive(Debug)]
pub struct ClassView<'a> {
    /// The class' name as `tc` writes it, such as `1:10`.
    pub name: &'a str,
    /// Packets and bytes that wait in it.
    pub backlog: Backlog,
    /// Counts of its packets since it was made.
    pub stats: Stats,
}

/// The owner of the packets: receives every dropped packet, hears of every mark, and knows what
/// packets carry.
pub trait DropSink {
    /// `packet` was dropped. The receiver owns it from here on.
    fn on_drop(&mut self, packet: Packet, reason: DropReason);

    /// `packet` was dropped as it arrived, because the queue is full (`NET_XMIT_DROP`). A sender on
    /// this machine learns of it: its `send` fails. It does not learn of a drop of an arrival as a
    /// signal of congestion (`NET_XMIT_CN`), which is an [`on_drop`](Self::on_drop).
    fn on_xmit_drop(&mut self, packet: Packet, reason: DropReason) {
        self.on_drop(packet, reason);
    }

    /// `packet` was marked CE and stays in the queue or leaves it now.
    fn on_mark(&mut self, packet: &Packet, reason: MarkReason);

    /// The TCP header of `packet`; `None` if it has none, or where packets have no headers, as in
    /// replays of recordings.
    fn tcp_header(&self, packet: &Packet) -> Option<TcpHeader> {
        let _ = packet;
        None
    }

    /// Bytes that `packet` occupies on a line that counts as `framing` does: of a GSO packet, those of all its
    /// segments, of which only its owner knows.
    fn wire_bytes(&self, packet: &Packet, framing: &Framing) -> u64 {
        framing.wire_bytes(packet.ip_len())
    }

    /// `packet` is duplicated: the copy arrives too. Returns the copy's handle, which leads to the same
    /// payload and will be dropped or leave by itself.
    ///
    /// An owner that frees what a handle leads to must see to it that the payload outlives both; one that
    /// keeps nothing by handles can let them share one, which is the default.
    fn on_duplicate(&mut self, packet: &Packet) -> u64 {
        packet.handle
    }
}

/// Packets and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Number of packets.
    pub packets: u64,
    /// Sum of their [`Packet::len`].
    pub bytes: u64,
}

impl Count {
    /// Counts one packet of `len` bytes.
    pub fn add(&mut self, len: u32) {
        self.packets += 1;
        self.bytes += u64::from(len);
    }
}

impl std::ops::AddAssign for Count {
    fn add_assign(&mut self, other: Self) {
        self.packets += other.packets;
        self.bytes += other.bytes;
    }
}

/// Counts of a queue's packets since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Packets that arrived, dropped ones and copies (`netem duplicate`) included.
    pub arrived: Count,
    /// Packets that left towards the line.
    pub departed: Count,
    /// Packets dropped, by [`DropReason`] in its order.
    pub dropped: [Count; DropReason::ALL.len()],
    /// Packets marked CE, by [`MarkReason`] in its order.
    pub marked: [u64; MarkReason::ALL.len()],
}

impl Stats {
    /// All dropped packets.
    #[must_use]
    pub fn total_dropped(&self) -> Count {
        let mut sum = Count::default();
        for &count in &self.dropped {
            sum += count;
        }
        sum
    }

    /// All marked packets.
    #[must_use]
    pub fn total_marked(&self) -> u64 {
        self.marked.iter().sum()
    }

    /// Whether arrived = departed + dropped + `backlog`, in packets and in bytes.
    #[must_use]
    pub fn balances(&self, backlog: Backlog) -> bool {
        let dropped = self.total_dropped();
        self.arrived.packets == self.departed.packets + dropped.packets + u64::from(backlog.packets)
            && self.arrived.bytes == self.departed.bytes + dropped.bytes + backlog.bytes
    }
}

impl std::ops::AddAssign for Stats {
    fn add_assign(&mut self, other: Self) {
        self.arrived += other.arrived;
        self.departed += other.departed;
        for (mine, theirs) in self.dropped.iter_mut().zip(other.dropped) {
            *mine += theirs;
        }
        for (mine, theirs) in self.marked.iter_mut().zip(other.marked) {
            *mine += theirs;
        }
    }
}
