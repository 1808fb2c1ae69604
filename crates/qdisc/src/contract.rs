//! The contract between a queue discipline and whatever drives it.

pub use weir_core::{DropReason, MarkReason};
use weir_core::{Packet, TcpHeader, Time};

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
/// After every call the books balance: arrived = departed + dropped + backlog, in packets and in
/// bytes, and every dropped packet has been given to `fates` with its reason.
pub trait Qdisc: Send {
    /// Takes a packet that arrives at `now`. The packet's `enqueued_at` is already `now`.
    ///
    /// The discipline may drop this packet or others, and gives each to `fates`.
    fn enqueue(&mut self, packet: Packet, now: Time, fates: &mut dyn Fates);

    /// The next packet to send at `now`, or `None` if nothing waits or nothing may leave yet.
    fn dequeue(&mut self, now: Time, fates: &mut dyn Fates) -> Option<Packet>;

    /// The packet that [`dequeue`](Self::dequeue) would return at `now`, left in place.
    ///
    /// A discipline that decides at dequeue (CoDel) decides here and holds the packet, as Linux'
    /// `qdisc_peek_dequeued`; until it is dequeued the packet still counts into the backlog.
    fn peek(&mut self, now: Time, fates: &mut dyn Fates) -> Option<&Packet>;

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

    /// What waits now.
    fn backlog(&self) -> Backlog;

    /// What has happened so far, children included.
    fn stats(&self) -> Stats;

    /// Shows this discipline's classes and children, the whole tree below it, to `visit`.
    fn classes(&self, visit: &mut dyn FnMut(ClassView<'_>)) {
        let _ = visit;
    }
}

/// What waits in a queue.
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
    /// What waits in it.
    pub backlog: Backlog,
    /// What has happened in it.
    pub stats: Stats,
}

/// The owner of the packets: hears of the fate of every packet that does not simply pass, and knows
/// what packets carry.
pub trait Fates {
    /// `packet` was dropped. The receiver owns it from here on.
    fn on_drop(&mut self, packet: Packet, reason: DropReason);

    /// `packet` was dropped as it arrived, for want of room, so that its sender's `send` fails where
    /// the sender is on this machine (`NET_XMIT_DROP`). Other drops of an arrival, as a signal of
    /// congestion or of another packet's room, are not told to it (`NET_XMIT_CN`).
    fn on_refuse(&mut self, packet: Packet, reason: DropReason) {
        self.on_drop(packet, reason);
    }

    /// `packet` was marked CE and stays in the queue or leaves it now.
    fn on_mark(&mut self, packet: &Packet, reason: MarkReason);

    /// What the TCP header of `packet` says; `None` if it has none, or where packets have no headers,
    /// as in replays of recordings.
    fn tcp_header(&self, packet: &Packet) -> Option<TcpHeader> {
        let _ = packet;
        None
    }

    /// `packet` is doubled: the copy arrives too. Returns the copy's handle, which leads to the same
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

/// What has happened in a queue since it was made.
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
