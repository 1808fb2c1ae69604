//! The internet checksum (RFC 1071), its update (RFC 1624) and its completion.

use std::net::IpAddr;

use weir_core::Protocol;

use crate::headers::{Headers, Transport, UDP_HEADER, Version};
use crate::virtio::BadVirtio;
use crate::{bytes, tcp};

/// A one's complement sum of 16-bit words under way (RFC 1071).
///
/// The words are kept in the machine's byte order and swapped at the end (RFC 1071, section 2, B).
/// Pieces that are added one after another count as one string of bytes, also behind an odd length.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum {
    total: u64,
    odd: bool,
}

impl Sum {
    /// The sum of nothing.
    pub const ZERO: Self = Self { total: 0, odd: false };

    /// The sum of `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self::ZERO.bytes(bytes)
    }

    /// Pseudo header of a transport checksum: addresses, protocol and the `len` bytes of
    /// transport header and payload (RFC 9293, section 3.1; RFC 8200, section 8.1).
    #[must_use]
    pub fn pseudo_header(src: IpAddr, dst: IpAddr, protocol: Protocol, len: u32) -> Self {
        Self::ZERO
            .address(src)
            .address(dst)
            .word(u16::from(protocol.0))
            .word((len >> 16) as u16)
            .word(len as u16)
    }

    /// With the bytes that come next.
    #[must_use]
    pub fn bytes(self, bytes: &[u8]) -> Self {
        let piece = fold(sum_native(bytes));
        let aligned = if self.odd { piece.swap_bytes() } else { piece };
        Self { total: self.total + u64::from(aligned), odd: self.odd != (bytes.len() % 2 == 1) }
    }

    /// With a number of 16 bits, which must come at an even place.
    #[must_use]
    pub fn word(self, word: u16) -> Self {
        Self { total: self.total + u64::from(word.to_be()), ..self }
    }

    /// The sum as a number of 16 bits: 0xffff for bytes that contain their own correct checksum. This
    /// form of a pseudo header's sum is what `NEEDS_CSUM` packets have in their checksum field.
    #[must_use]
    pub const fn fold(self) -> u16 {
        u16::from_be(fold(self.total))
    }

    /// The checksum: the complement of the sum.
    #[must_use]
    pub const fn checksum(self) -> u16 {
        !self.fold()
    }

    fn address(self, address: IpAddr) -> Self {
        match address {
            IpAddr::V4(v4) => self.bytes(&v4.octets()),
            IpAddr::V6(v6) => self.bytes(&v6.octets()),
        }
    }
}

/// The checksum of a header in which the word `old` becomes `new`: HC' = ~(~HC + ~m + m')
/// (RFC 1624, section 3, equation 3).
///
/// Only with a sum of +0 would this differ from a full computation, and a header that has a version
/// in it does not sum up to +0.
#[must_use]
pub(crate) fn updated(checksum: u16, old: u16, new: u16) -> u16 {
    Sum::ZERO.word(!checksum).word(!old).word(new).checksum()
}

/// Completes a packet with `VIRTIO_NET_HDR_F_NEEDS_CSUM`: the field at `start + offset` holds the
/// pseudo header's sum and gets the checksum of everything from `start` to the end of `packet`, which
/// must be cut to the packet's length. A checksum of 0 is written as 0xffff, as Linux'
/// `skb_checksum_help` does, because in UDP 0 means none.
///
/// # Errors
/// When the field is not inside of the packet.
pub fn complete_checksum(packet: &mut [u8], start: u16, offset: u16) -> Result<(), BadVirtio> {
    let bad = BadVirtio::ChecksumField { start, offset, packet: packet.len() };
    let covered = packet.get_mut(usize::from(start)..).ok_or(bad)?;
    let checksum = not_zero(Sum::of(covered).checksum());
    bytes::put_u16(covered, offset.into(), checksum).ok_or(bad)
}

/// Whether the checksum of TCP, UDP, ICMP or ICMPv6 in `packet`, which `headers` describe, is right.
/// UDP over IPv4 may be without (RFC 768). What cannot be judged is not right: fragments, other
/// protocols, and packets with an IPv6 routing header that still leads elsewhere.
#[must_use]
pub fn transport_checksum_ok(packet: &[u8], headers: &Headers) -> bool {
    let Some(covered) = packet.get(headers.transport_offset..headers.total_len) else {
        return false;
    };
    let len = match headers.transport {
        Transport::Other => return false,
        Transport::Udp => {
            if headers.version == Version::V4 && bytes::get_u16(covered, UDP_CHECKSUM) == Some(0) {
                return true;
            }
            usize::from(bytes::get_u16(covered, UDP_LEN).unwrap_or(0))
        }
        Transport::Tcp | Transport::Icmp { .. } => covered.len(),
    };
    let start = match (headers.version, headers.transport) {
        (Version::V4, Transport::Icmp { .. }) => Sum::ZERO,
        _ => {
            let key = &headers.key;
            Sum::pseudo_header(key.src, key.dst, key.protocol, len as u32)
        }
    };
    let least = if headers.transport == Transport::Udp { UDP_HEADER } else { 0 };
    len >= least && covered.get(..len).is_some_and(|covered| start.bytes(covered).fold() == 0xffff)
}

/// A checksum that does not mean "none" (RFC 768).
pub(crate) const fn not_zero(checksum: u16) -> u16 {
    if checksum == 0 { 0xffff } else { checksum }
}

/// Where a transport's checksum is in its header, where it can be left to hardware.
pub(crate) const fn field(transport: Transport) -> Option<usize> {
    match transport {
        Transport::Tcp => Some(tcp::CHECKSUM),
        Transport::Udp => Some(UDP_CHECKSUM),
        Transport::Icmp { .. } | Transport::Other => None,
    }
}

/// The sum of words in the machine's byte order, the last one padded with 0, unfolded.
fn sum_native(bytes: &[u8]) -> u64 {
    let (chunks, rest) = bytes.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    chunks.iter().chain([&last]).fold(0, |sum, chunk| {
        let word = u64::from_ne_bytes(*chunk);
        // Halves of 32 bits leave room for the carries of 2^31 of them, far above any packet.
        sum.wrapping_add((word & 0xffff_ffff).wrapping_add(word >> 32))
    })
}

const fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// Offsets of fields of the UDP header (RFC 768).
pub(crate) const UDP_LEN: usize = 4;
pub(crate) const UDP_CHECKSUM: usize = 6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_of_rfc_1071() {
        // Section 3: 0001 f203 f4f5 f6f7 sums up to 2ddf0, with the carries ddf2.
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(Sum::of(&bytes).fold(), 0xddf2);
        assert_eq!(Sum::of(&bytes).checksum(), 0x220d);
        assert_eq!(Sum::of(&bytes[..3]).bytes(&bytes[3..]).fold(), 0xddf2);
    }

    #[test]
    fn the_update_of_rfc_1624() {
        // Section 4, equation 3; equation 2 would give ffff.
        assert_eq!(updated(0xdd2f, 0x5555, 0x3285), 0x0000);
        assert_eq!(updated(0x0000, 0x3285, 0x5555), 0xdd2f);
    }

    #[test]
    fn a_completed_checksum_is_never_none() {
        // The words sum up to ffff, and the checksum would be 0.
        let mut packet = [0xff, 0x0f, 0, 0, 0, 0xf0];
        complete_checksum(&mut packet, 0, 2).unwrap();
        assert_eq!(packet[2..4], [0xff, 0xff]);
    }

    #[test]
    fn a_field_outside_of_the_packet_is_refused() {
        let outside = |start, offset| complete_checksum(&mut [0; 8], start, offset).unwrap_err();
        assert_eq!(
            outside(4, 3).to_string(),
            "the checksum field at 4+3 is not in the packet of 8 bytes"
        );
        assert_eq!(outside(9, 0), BadVirtio::ChecksumField { start: 9, offset: 0, packet: 8 });
        assert!(complete_checksum(&mut [0; 8], 4, 2).is_ok());
        assert!(complete_checksum(&mut [0; 8], u16::MAX, u16::MAX).is_err());
    }

    #[test]
    fn udp_over_ipv4_may_go_without() {
        for (pair, right) in
            [(["10.0.0.1:1", "10.0.0.2:2"], true), (["[fd00::1]:1", "[fd00::2]:2"], false)]
        {
            let mut packet = crate::craft::Udp::new(pair[0], pair[1]).packet(b"abc");
            let headers = crate::parse(&packet).unwrap();
            assert!(transport_checksum_ok(&packet, &headers));
            packet[headers.transport_offset + UDP_CHECKSUM..][..2].fill(0);
            assert_eq!(transport_checksum_ok(&packet, &headers), right);
            packet[headers.transport_offset + UDP_CHECKSUM] = 1;
            assert!(!transport_checksum_ok(&packet, &headers));
        }
    }
}
