//! The contract between a queue discipline and whatever drives it.

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
}

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum DropReason {
    /// The queue's limit in packets or bytes was reached.
    Overlimit,
    /// The queue's limit of memory was reached.
    Overmemory,
    /// CoDel: the sojourn time stayed above the target for an interval.
    TargetExceeded,
    /// Drawn at random before the queue is full (RED between its thresholds, BLUE, PIE).
    Early,
    /// RED: the average queue is above its upper threshold.
    Forced,
    /// CHOKe: a packet drawn from the queue was of the same flow; both are dropped.
    SameFlow,
    /// SFB: the flow does not respond and exceeds what such flows may send.
    Penalty,
    /// DualPI2: the packet waited longer than the step threshold and could not be marked.
    Step,
    /// Longer than the shaper can ever pass (longer than the burst).
    TooLong,
    /// No class takes the packet.
    Unclassified,
    /// Lost on the line, by a loss model.
    LinkLoss,
    /// BLUE: at random, from a flow that kept overflowing the queue.
    Blue,
    /// A TCP acknowledgement that says nothing beyond a later one in the queue.
    AckFiltered,
}

/// Why a packet was marked CE.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum MarkReason {
    /// CoDel: marked where a packet without ECN would have been dropped.
    TargetExceeded,
    /// CoDel: the sojourn time exceeded `ce_threshold`.
    CeThreshold,
    /// Drawn at random before the queue is full (RED between its thresholds, BLUE, PIE).
    Early,
    /// RED: the average queue is above its upper threshold.
    Forced,
    /// DualPI2: the packet waited longer than the step threshold.
    Step,
}

impl DropReason {
    /// All reasons, in the order of [`Stats::dropped`].
    pub const ALL: [Self; 13] = [
        Self::Overlimit,
        Self::Overmemory,
        Self::TargetExceeded,
        Self::Early,
        Self::Forced,
        Self::SameFlow,
        Self::Penalty,
        Self::Step,
        Self::TooLong,
        Self::Unclassified,
        Self::LinkLoss,
        Self::Blue,
        Self::AckFiltered,
    ];

    /// The reason as records name it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Overlimit => "overlimit",
            Self::Overmemory => "overmemory",
            Self::TargetExceeded => "target_exceeded",
            Self::Early => "early",
            Self::Forced => "forced",
            Self::SameFlow => "same_flow",
            Self::Penalty => "penalty",
            Self::Step => "step",
            Self::TooLong => "too_long",
            Self::Unclassified => "unclassified",
            Self::LinkLoss => "link_loss",
            Self::Blue => "blue",
            Self::AckFiltered => "ack_filtered",
        }
    }
}

impl MarkReason {
    /// All reasons, in the order of [`Stats::marked`].
    pub const ALL: [Self; 5] =
        [Self::TargetExceeded, Self::CeThreshold, Self::Early, Self::Forced, Self::Step];

    /// The reason as records name it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::TargetExceeded => "target_exceeded",
            Self::CeThreshold => "ce_threshold",
            Self::Early => "early",
            Self::Forced => "forced",
            Self::Step => "step",
        }
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
    /// Packets that arrived, dropped ones included.
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
