//! TCP segments as the simulated endpoints exchange them.

use weir_core::{SackRanges, TcpFlags, TcpHeader};

/// A segment. Data is counted in whole segments: `seq` and `ack` are segment numbers, while `offset`
/// and `len` say which bytes of the stream a data segment carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// Position of the data in the stream, in bytes.
    pub offset: u64,
    /// Number of this data segment; for segments without data, that of the next one.
    pub seq: u32,
    /// Number of the next data segment that the sender of this segment expects.
    pub ack: u32,
    /// Receive window in bytes, counted from `ack`.
    pub window: u32,
    /// Timestamp option: the sender's clock in milliseconds (RFC 7323).
    pub ts: u32,
    /// Timestamp option: the timestamp that is echoed; `None` before there is one, or without the option.
    pub ts_echo: Option<u32>,
    /// Bytes of data, 0 for a segment without data.
    pub len: u16,
    /// Control bits.
    pub flags: Flags,
    /// Selective acknowledgements (RFC 2018).
    pub sack: SackBlocks,
}

/// Control bits of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(u8);

impl Flags {
    /// Opens a connection.
    pub const SYN: Self = Self(1);
    /// Acknowledges.
    pub const ACK: Self = Self(1 << 1);
    /// ECN echo: a congestion mark arrived (RFC 3168, section 6.1.3).
    pub const ECE: Self = Self(1 << 2);
    /// Congestion window reduced (RFC 3168, section 6.1.2).
    pub const CWR: Self = Self(1 << 3);

    /// Push: the end of what was handed down at once.
    pub const PSH: Self = Self(1 << 4);

    /// Both sets of bits.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all bits of `other` are set.
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// Up to four blocks of received segments, the most recent first (RFC 2018, section 4). If
/// `duplicate` is set the first block reports a duplicate instead (RFC 2883).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlocks {
    blocks: [Block; 4],
    count: u8,
    duplicate: bool,
}

/// Segments from `start` up to, not including, `end`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// Number of the first segment.
    pub start: u32,
    /// Number behind the last segment.
    pub end: u32,
}

impl SackBlocks {
    /// At most four blocks fit; with timestamps, three.
    pub const MAX: usize = 4;

    /// Adds `block` behind the others, if there is room.
    pub fn push(&mut self, block: Block) {
        if usize::from(self.count) < Self::MAX {
            self.blocks[usize::from(self.count)] = block;
            self.count += 1;
        }
    }

    /// Makes the first block a report of duplicates.
    pub fn set_duplicate(&mut self) {
        self.duplicate = true;
    }

    /// The report of duplicates, if there is one.
    #[must_use]
    pub fn duplicate(&self) -> Option<Block> {
        (self.duplicate && self.count > 0).then(|| self.blocks[0])
    }

    /// The blocks of received segments, without the report of duplicates.
    #[must_use]
    pub fn received(&self) -> &[Block] {
        &self.blocks[usize::from(self.duplicate)..usize::from(self.count)]
    }

    /// The blocks of received segments, the lowest first.
    pub(crate) fn in_order(&self) -> impl Iterator<Item = Block> + use<> {
        let mut blocks = self.blocks;
        let received = usize::from(self.duplicate)..usize::from(self.count);
        blocks[received.clone()].sort_unstable_by_key(|block| block.start);
        received.map(move |index| blocks[index])
    }

    /// Number of blocks, the report of duplicates included.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether there is no block.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }
}

impl Segment {
    /// Bytes of TCP header with its options: 20, timestamps 12, SACK 4 and 8 a block; on a SYN the
    /// maximum segment size, SACK-permitted, timestamps and window scale, 40 in all.
    #[must_use]
    pub const fn header_len(&self, timestamps: bool) -> u32 {
        if self.flags.has(Flags::SYN) {
            return 40;
        }
        let sack = if self.sack.is_empty() { 0 } else { 4 + 8 * self.sack.len() as u32 };
        20 + sack + if timestamps { 12 } else { 0 }
    }

    /// TCP header of this segment, for queues and markers that look at it. Acknowledgements count
    /// segments.
    #[must_use]
    pub fn header(&self, timestamps: bool) -> TcpHeader {
        let mut flags = TcpFlags::default();
        for (here, there) in [
            (Flags::SYN, TcpFlags::SYN),
            (Flags::ACK, TcpFlags::ACK),
            (Flags::ECE, TcpFlags::ECE),
            (Flags::CWR, TcpFlags::CWR),
            (Flags::PSH, TcpFlags::PSH),
        ] {
            if self.flags.has(here) {
                flags = flags.with(there);
            }
        }
        let mut sack = SackRanges::default();
        for block in &self.sack.blocks[..self.sack.len()] {
            sack.push(block.start, block.end);
        }
        TcpHeader {
            seq: self.offset as u32,
            ack: self.ack,
            flags,
            payload: u32::from(self.len),
            timestamps: timestamps.then_some((self.ts, self.ts_echo.unwrap_or(0))),
            sack,
            other_options: self.flags.has(Flags::SYN),
        }
    }

    /// Number behind the last data segment that this segment carries.
    #[must_use]
    pub const fn end_seq(&self) -> u32 {
        if self.len > 0 { self.seq + 1 } else { self.seq }
    }
}
