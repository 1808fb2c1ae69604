//! A segment in the retransmission queue: what is kept of it, and in what state it is.

/// A segment in the queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    /// When it was last sent, in microseconds.
    pub sent_us: u64,
    /// Offset of the segment's first byte in the stream, in bytes.
    pub offset: u64,
    /// Segments that had been delivered when it was last sent.
    pub delivered: u32,
    /// The segment sent before this one.
    pub(super) older: Link,
    /// The segment sent after this one.
    pub(super) newer: Link,
    /// Length of the segment in bytes.
    pub len: u16,
    pub(super) state: State,
}

/// State of a segment: a set of bits (`TCPCB_*`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct State(pub u8);

impl State {
    pub const SACKED: u8 = 1;
    pub const LOST: u8 = 2;
    /// The last transmission was a retransmission, and it is not known to be lost.
    pub const RETRANSMITTED: u8 = 4;
    pub const EVER_RETRANSMITTED: u8 = 8;
    /// It is the first segment of a piece of memory.
    pub const STARTS_PIECE: u8 = 16;

    /// Whether one of `bits` is set.
    pub const fn has(self, bits: u8) -> bool {
        self.0 & bits != 0
    }
}

/// The neighbour of a segment in the order of transmission, or the end of that order.
///
/// It is half as large as an `Option<u32>`, of which every segment in flight would hold two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Link(u32);

impl Link {
    pub const END: Self = Self(u32::MAX);

    pub const fn to(seq: u32) -> Self {
        Self(seq)
    }

    pub fn seq(self) -> Option<u32> {
        (self != Self::END).then_some(self.0)
    }
}

impl Entry {
    /// A place of the ring that holds no segment.
    pub(super) const EMPTY: Self = Self {
        sent_us: 0,
        offset: 0,
        delivered: 0,
        older: Link::END,
        newer: Link::END,
        len: 0,
        state: State(0),
    };

    /// Whether a selective acknowledgement reported it.
    pub const fn sacked(&self) -> bool {
        self.state.has(State::SACKED)
    }

    /// Whether it is marked as lost.
    pub const fn lost(&self) -> bool {
        self.state.has(State::LOST)
    }

    /// Whether a retransmission of it is under way.
    pub const fn retransmitted(&self) -> bool {
        self.state.has(State::RETRANSMITTED)
    }

    /// Whether it was ever retransmitted.
    pub const fn ever_retransmitted(&self) -> bool {
        self.state.has(State::EVER_RETRANSMITTED)
    }

    /// What is told of it as segment `seq` that was acknowledged.
    pub(super) const fn delivered_as(&self, seq: u32) -> Delivered {
        Delivered {
            seq,
            sent_us: self.sent_us,
            prior_delivered: self.delivered,
            was_sacked: self.sacked(),
            ever_retransmitted: self.ever_retransmitted(),
        }
    }
}

/// A segment that was acknowledged, as [`pop`](super::Scoreboard::pop) and [`tag`](super::Scoreboard::tag) report it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delivered {
    pub seq: u32,
    pub sent_us: u64,
    /// Segments delivered when it was sent.
    pub prior_delivered: u32,
    pub was_sacked: bool,
    pub ever_retransmitted: bool,
}
