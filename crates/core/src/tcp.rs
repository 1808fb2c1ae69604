//! Facts about a TCP packet that a queue may ask for.

/// The parts of a TCP header that say what a packet carries and acknowledges, for disciplines and markers that
/// look at them (CAKE's `ack-filter`, `tcp_friendly`).
///
/// A packet's owner tells it when it is asked, so that [`Packet`](crate::Packet) stays small for all
/// others. Sequence numbers are compared with each other only, modulo 2^32, so that an owner may
/// number whole segments instead of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpHeader {
    /// Number of the first byte of data: always bytes.
    pub seq: u32,
    /// Number of the next byte that the packet's sender expects.
    pub ack: u32,
    /// Control bits.
    pub flags: TcpFlags,
    /// Bytes of data behind the header.
    pub payload: u32,
    /// Timestamps option (RFC 7323): the sender's clock, and the echo.
    pub timestamps: Option<(u32, u32)>,
    /// Selective acknowledgements (RFC 2018), the report of a duplicate (RFC 2883) among them.
    pub sack: SackRanges,
    /// Whether there are options that have to arrive: others than SACK, timestamps and MD5
    /// signatures, or one of these with a length that it cannot have.
    pub other_options: bool,
}

/// The twelve bits of a TCP header between its length and its window (RFC 9293, section 3.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpFlags(u16);

/// At most four ranges of sequence numbers, each from its first up to, not including, its second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackRanges {
    ranges: [(u32, u32); Self::MAX],
    count: u8,
}

impl TcpHeader {
    /// Number of the byte behind the data.
    #[must_use]
    pub const fn end(&self) -> u32 {
        self.seq.wrapping_add(self.payload)
    }
}

impl TcpFlags {
    /// Nothing more is sent.
    pub const FIN: Self = Self(1);
    /// Opens a connection.
    pub const SYN: Self = Self(1 << 1);
    /// Ends a connection for both.
    pub const RST: Self = Self(1 << 2);
    /// Data to be handed on at once.
    pub const PSH: Self = Self(1 << 3);
    /// Acknowledges.
    pub const ACK: Self = Self(1 << 4);
    /// ECN echo (RFC 3168, section 6.1).
    pub const ECE: Self = Self(1 << 6);
    /// Congestion window reduced (RFC 3168, section 6.1).
    pub const CWR: Self = Self(1 << 7);

    /// The lower twelve bits of `bits`.
    #[must_use]
    pub const fn new(bits: u16) -> Self {
        Self(bits & 0x0fff)
    }

    /// Both sets of bits.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The bits that are also in `other`.
    #[must_use]
    pub const fn only(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Whether any bit of `other` is set.
    #[must_use]
    pub const fn has_any(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// The bits that are not in `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

impl SackRanges {
    /// As many as fit into a header.
    pub const MAX: usize = 4;

    /// Adds a range, if there is room.
    pub fn push(&mut self, start: u32, end: u32) {
        if let Some(place) = self.ranges.get_mut(usize::from(self.count)) {
            *place = (start, end);
            self.count += 1;
        }
    }

    /// The ranges in the order of the header.
    #[must_use]
    pub fn as_slice(&self) -> &[(u32, u32)] {
        &self.ranges[..usize::from(self.count)]
    }
}

/// Whether sequence number or timestamp `a` comes before `b`, modulo 2^32 (RFC 9293, section 3.4).
#[must_use]
pub const fn comes_before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_wrap() {
        assert!(comes_before(1, 2) && !comes_before(2, 2) && !comes_before(2, 1));
        assert!(comes_before(u32::MAX, 3) && !comes_before(3, u32::MAX));
    }

    #[test]
    fn a_fifth_range_finds_no_room() {
        let mut sack = SackRanges::default();
        for start in 0..5 {
            sack.push(10 * start, 10 * start + 1);
        }
        assert_eq!(sack.as_slice(), [(0, 1), (10, 11), (20, 21), (30, 31)]);
    }
}
