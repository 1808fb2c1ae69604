//! `struct virtio_net_hdr`, which TUN devices and packet sockets put in front of packets that are not
//! finished: a checksum to be filled in, a GSO packet to be cut.
//!
//! The layout is the "legacy" one of 10 bytes of the Virtio specification (version 1.2, section
//! 5.1.6), numbers in the machine's byte order, as Linux has it unless asked otherwise
//! (`TUNSETVNETLE`). A device with a header of 12 bytes adds `num_buffers`, which these devices leave
//! at 0.

/// The fields of a virtio header about its packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Virtio {
    /// The state of the transport checksum.
    pub checksum: Checksum,
    /// For a GSO packet, how it is to be cut.
    pub gso: Option<Gso>,
    /// Bytes of headers, a hint; 0 if not told.
    pub hdr_len: u16,
}

/// The state of a packet's transport checksum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checksum {
    /// The packet has a checksum; nobody has looked whether it is right.
    #[default]
    Unknown,
    /// The packet has a checksum that was found right (`DATA_VALID`).
    Valid,
    /// The checksum's field holds the pseudo header's sum only (`NEEDS_CSUM`).
    ///
    /// The field is `offset` bytes behind `start`. The sum of all bytes from `start` to the end is to be
    /// added.
    Partial {
        /// Where the transport header begins.
        start: u16,
        /// Where the field is, from `start`.
        offset: u16,
    },
}

/// How a GSO packet is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gso {
    /// Protocol and IP version of the segments.
    pub kind: GsoKind,
    /// Bytes of payload of every segment but the last; above 0.
    pub size: u16,
    /// The TCP header has CWR, which only the first segment keeps.
    pub ecn: bool,
}

/// Kind of the segments into which a GSO packet is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GsoKind {
    /// TCP over IPv4.
    TcpV4,
    /// TCP over IPv6.
    TcpV6,
    /// UDP datagrams over either.
    Udp,
}

/// Why a virtio header does not fit its packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadVirtio {
    /// A kind of cutting that was not negotiated.
    #[error("the virtio header has GSO type {0}, but only 0, 1, 4 and 5 are supported")]
    GsoType(u8),
    /// A GSO packet to be cut into nothing.
    #[error("the virtio header asks for segments of 0 bytes")]
    GsoSize,
    /// Headers that end behind the packet.
    #[error("the virtio header tells of {len} bytes of headers, but the packet has {packet}")]
    HeaderLen {
        /// `hdr_len`.
        len: u16,
        /// Bytes of the packet.
        packet: usize,
    },
    /// A checksum field that is not inside of the packet.
    #[error("the checksum field at {start}+{offset} is not in the packet of {packet} bytes")]
    ChecksumField {
        /// `csum_start`.
        start: u16,
        /// `csum_offset`.
        offset: u16,
        /// Bytes of the packet.
        packet: usize,
    },
}

impl Virtio {
    /// Bytes of a header.
    pub const LEN: usize = 10;

    /// Parses `header`, in front of a packet of `packet_len` bytes.
    ///
    /// # Errors
    /// When something in it lies outside of the packet or is not supported.
    pub fn parse(header: &[u8; Self::LEN], packet_len: usize) -> Result<Self, BadVirtio> {
        let &[flags, gso_type, ..] = header;
        let word = |at: usize| u16::from_ne_bytes([header[at], header[at + 1]]);
        let [len, size, start, offset] = [word(2), word(4), word(6), word(8)];
        if usize::from(len) > packet_len {
            return Err(BadVirtio::HeaderLen { len, packet: packet_len });
        }
        if flags & NEEDS_CSUM != 0 && usize::from(start) + usize::from(offset) + 2 > packet_len {
            return Err(BadVirtio::ChecksumField { start, offset, packet: packet_len });
        }
        let gso = match gso_type & !GSO_ECN {
            GSO_NONE => None,
            GSO_TCPV4 => Some(GsoKind::TcpV4),
            GSO_TCPV6 => Some(GsoKind::TcpV6),
            GSO_UDP_L4 => Some(GsoKind::Udp),
            _ => return Err(BadVirtio::GsoType(gso_type)),
        }
        .map(|kind| Gso { kind, size, ecn: gso_type & GSO_ECN != 0 });
        if gso.is_some_and(|gso| gso.size == 0) {
            return Err(BadVirtio::GsoSize);
        }
        let checksum = if flags & NEEDS_CSUM != 0 {
            Checksum::Partial { start, offset }
        } else if flags & DATA_VALID != 0 {
            Checksum::Valid
        } else {
            Checksum::Unknown
        };
        Ok(Self { checksum, gso, hdr_len: len })
    }

    /// The header as bytes; all 0 for a packet that is finished and of which nothing is known.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; Self::LEN] {
        let (flags, start, offset) = match self.checksum {
            Checksum::Unknown => (0, 0, 0),
            Checksum::Valid => (DATA_VALID, 0, 0),
            Checksum::Partial { start, offset } => (NEEDS_CSUM, start, offset),
        };
        let (gso_type, size) = self.gso.map_or((GSO_NONE, 0), |gso| {
            let kind = match gso.kind {
                GsoKind::TcpV4 => GSO_TCPV4,
                GsoKind::TcpV6 => GSO_TCPV6,
                GsoKind::Udp => GSO_UDP_L4,
            };
            (kind | if gso.ecn { GSO_ECN } else { 0 }, gso.size)
        });
        let mut bytes = [0; Self::LEN];
        bytes[..2].copy_from_slice(&[flags, gso_type]);
        for (at, word) in [self.hdr_len, size, start, offset].into_iter().enumerate() {
            bytes[2 + 2 * at..][..2].copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }
}

/// Virtio specification, section 5.1.6: `VIRTIO_NET_HDR_F_*`.
const NEEDS_CSUM: u8 = 1;
const DATA_VALID: u8 = 2;
/// Virtio specification, section 5.1.6: `VIRTIO_NET_HDR_GSO_*`. Linux has given up 3, fragmentation of UDP.
const GSO_NONE: u8 = 0;
const GSO_TCPV4: u8 = 1;
const GSO_TCPV6: u8 = 4;
const GSO_UDP_L4: u8 = 5;
const GSO_ECN: u8 = 0x80;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_and_written_in_the_machines_order() {
        // TSO as Linux hands it out: 66 bytes of headers, segments of 1448, checksum at 34+16.
        let words = [66u16, 1448, 34, 16].map(u16::to_ne_bytes).concat();
        let bytes: [u8; 10] = [&[1, 0x81], &words[..]].concat().try_into().unwrap();
        let expected = Virtio {
            checksum: Checksum::Partial { start: 34, offset: 16 },
            gso: Some(Gso { kind: GsoKind::TcpV4, size: 1448, ecn: true }),
            hdr_len: 66,
        };
        assert_eq!(Virtio::parse(&bytes, 5_000), Ok(expected));
        assert_eq!(expected.to_bytes(), bytes);
        assert_eq!(Virtio::parse(&[0; 10], 0), Ok(Virtio::default()));
        assert_eq!(Virtio::default().to_bytes(), [0; 10]);
        let valid = Virtio { checksum: Checksum::Valid, ..Virtio::default() };
        assert_eq!(Virtio::parse(&valid.to_bytes(), 0), Ok(valid));
    }

    #[test]
    fn what_lies_outside_of_the_packet_is_refused() {
        let good = Virtio {
            checksum: Checksum::Partial { start: 20, offset: 16 },
            gso: Some(Gso { kind: GsoKind::Udp, size: 100, ecn: false }),
            hdr_len: 38,
        };
        assert_eq!(Virtio::parse(&good.to_bytes(), 38), Ok(good));
        assert_eq!(
            Virtio::parse(&good.to_bytes(), 37),
            Err(BadVirtio::HeaderLen { len: 38, packet: 37 })
        );
        let unhinted = Virtio { hdr_len: 0, ..good };
        assert_eq!(
            Virtio::parse(&unhinted.to_bytes(), 37),
            Err(BadVirtio::ChecksumField { start: 20, offset: 16, packet: 37 })
        );
        let mut bytes = good.to_bytes();
        bytes[4..6].fill(0);
        assert_eq!(Virtio::parse(&bytes, 38), Err(BadVirtio::GsoSize));
        bytes[1] = 3;
        assert_eq!(Virtio::parse(&bytes, 38), Err(BadVirtio::GsoType(3)));
    }
}
