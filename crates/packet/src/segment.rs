//! GSO segmentation: cutting GSO packets into segments, as TSO and UDP segmentation offload do.

use std::ops::Range;

use weir_core::{ETHERNET_HEADER, Packet};

use crate::checksum::{self, Sum, UDP_LEN};
use crate::headers::{Headers, Transport, Version};
use crate::virtio::{Checksum, GsoKind, Virtio};
use crate::{bytes, ipv4, ipv6, tcp};

/// Cuts one GSO packet into segments: small, and all that must be kept beside the packet's bytes.
///
/// A segment is the GSO packet's headers, changed for it, and a slice of the GSO packet's payload
/// where it lies; nothing is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segmenter {
    version: Version,
    transport: Transport,
    transport_offset: usize,
    header_len: usize,
    payload_len: usize,
    size: usize,
}

/// One segment of a GSO packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Place of the segment in the GSO packet, from 0.
    pub index: usize,
    /// Bytes of IP and transport headers.
    pub header_len: usize,
    /// Where its payload begins in the GSO packet.
    pub payload_offset: usize,
    /// Bytes of its payload.
    pub payload_len: usize,
}

/// How a written header's checksum is filled in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    /// Whole; this reads the payload.
    Full,
    /// With the pseudo header's sum, to be completed by whoever gets the packet
    /// ([`Segmenter::partial_checksum`]).
    Partial,
}

/// Why a packet cannot be cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotSegmentable {
    /// The virtio header does not ask for it.
    #[error("the packet is not a GSO packet by its virtio header")]
    NoGso,
    /// The virtio header speaks of another kind of packet.
    #[error(
        "the virtio header asks for {asked:?} segments of a packet that is {version:?} {transport:?}"
    )]
    Kind {
        /// The kind of segments.
        asked: GsoKind,
        /// The packet's version of IP.
        version: Version,
        /// The packet's transport.
        transport: Transport,
    },
    /// The checksum is not left to the device, which a GSO packet's must be (Virtio specification,
    /// section 5.1.6.2).
    #[error("the GSO packet's checksum is not marked as partial at its transport's place")]
    ChecksumNotPartial,
    /// Headers above [`Segmenter::MAX_HEADERS`].
    #[error("the GSO packet's headers have {0} bytes, but at most {max} are supported", max = Segmenter::MAX_HEADERS)]
    HeadersTooLong(usize),
}

impl Segmenter {
    /// The longest headers that are cut: those of IPv4 and TCP with all options, and room for IPv6
    /// extension headers.
    pub const MAX_HEADERS: usize = 256;

    /// How the GSO packet of these headers is cut.
    ///
    /// # Errors
    /// When it is none, or its two headers do not agree.
    pub fn new(headers: &Headers, virtio: &Virtio) -> Result<Self, NotSegmentable> {
        let gso = virtio.gso.ok_or(NotSegmentable::NoGso)?;
        let (version, transport) = (headers.version, headers.transport);
        let agrees = match gso.kind {
            GsoKind::TcpV4 => version == Version::V4 && transport == Transport::Tcp,
            GsoKind::TcpV6 => version == Version::V6 && transport == Transport::Tcp,
            GsoKind::Udp => transport == Transport::Udp,
        };
        if !agrees {
            return Err(NotSegmentable::Kind { asked: gso.kind, version, transport });
        }
        let cut = Self {
            version,
            transport,
            transport_offset: headers.transport_offset,
            header_len: headers.payload_offset,
            payload_len: headers.payload_len(),
            size: gso.size.into(),
        };
        if cut.header_len > Self::MAX_HEADERS {
            return Err(NotSegmentable::HeadersTooLong(cut.header_len));
        }
        if virtio.checksum != cut.partial_checksum() {
            return Err(NotSegmentable::ChecksumNotPartial);
        }
        Ok(cut)
    }

    /// Number of segments; at least one.
    #[must_use]
    pub const fn count(&self) -> usize {
        if self.payload_len == 0 { 1 } else { self.payload_len.div_ceil(self.size) }
    }

    /// Bytes of IP and transport headers of every segment.
    #[must_use]
    pub const fn header_len(&self) -> usize {
        self.header_len
    }

    /// Segment `index`, or `None` from [`Segmenter::count`] on.
    #[must_use]
    pub fn segment(&self, index: usize) -> Option<Segment> {
        (index < self.count()).then(|| self.nth(index))
    }

    /// All segments in order.
    pub fn segments(&self) -> impl ExactSizeIterator<Item = Segment> + use<> {
        let cut = *self;
        (0..cut.count()).map(move |index| cut.nth(index))
    }

    /// Checksum field of the virtio header of a segment that was written with [`Fill::Partial`].
    #[must_use]
    pub fn partial_checksum(&self) -> Checksum {
        partial_checksum(self.transport, self.transport_offset)
    }

    /// Writes the headers of `segment` into `out` and returns their length, [`Segmenter::header_len`].
    /// `packet` is the GSO packet as it is now, TTL included; `tos`, the byte of DSCP and ECN, is the
    /// segment's own.
    ///
    /// As Linux' `inet_gso_segment` and `tcp_gso_segment` do it: the IPv4 identification counts up,
    /// CWR stays with the first segment, FIN and PSH with the last.
    ///
    /// `None` if `packet` is too short to be the packet that was cut, or `out` for the headers.
    #[must_use]
    pub fn write_headers(
        &self,
        packet: &[u8],
        segment: &Segment,
        tos: u8,
        fill: Fill,
        out: &mut [u8],
    ) -> Option<usize> {
        let payload = packet.get(segment.payload())?;
        let head = out.get_mut(..self.header_len)?;
        head.copy_from_slice(packet.get(..self.header_len)?);
        let len = self.header_len + segment.payload_len;
        let (ip, transport) = head.split_at_mut(self.transport_offset);
        match self.version {
            Version::V4 => write_ipv4(ip, segment.index, len, tos)?,
            Version::V6 => write_ipv6(ip, len, tos)?,
        }
        match self.transport {
            Transport::Udp => {
                bytes::put_u16(transport, UDP_LEN, (len - self.transport_offset) as u16)?;
            }
            _ => self.write_tcp(transport, segment.index)?,
        }
        self.write_checksum(transport, len, payload, fill)?;
        Some(self.header_len)
    }

    fn nth(&self, index: usize) -> Segment {
        let done = index * self.size;
        Segment {
            index,
            header_len: self.header_len,
            payload_offset: self.header_len + done,
            payload_len: self.size.min(self.payload_len - done),
        }
    }

    fn write_tcp(&self, header: &mut [u8], index: usize) -> Option<()> {
        let seq = bytes::get_u32(header, tcp::SEQ)?;
        bytes::put_u32(header, tcp::SEQ, seq.wrapping_add((index * self.size) as u32))?;
        let flags = header.get_mut(tcp::FLAGS)?;
        if index > 0 {
            *flags &= !tcp::CWR;
        }
        if index + 1 < self.count() {
            *flags &= !(tcp::FIN | tcp::PSH);
        }
        Some(())
    }

    /// The field holds the sum of the GSO packet's pseudo header, in which only the length changes.
    fn write_checksum(
        &self,
        header: &mut [u8],
        ip_len: usize,
        payload: &[u8],
        fill: Fill,
    ) -> Option<()> {
        let at = checksum::field(self.transport)?;
        let old_len = self.header_len + self.payload_len - self.transport_offset;
        let new_len = ip_len - self.transport_offset;
        let pseudo = Sum::ZERO
            .word(bytes::get_u16(header, at)?)
            .word(!(old_len as u16))
            .word(new_len as u16)
            .fold();
        bytes::put_u16(header, at, pseudo)?;
        if fill == Fill::Full {
            // Headers are a multiple of four bytes, so that the payload begins at an even place.
            let checksum = Sum::of(header).bytes(payload).checksum();
            bytes::put_u16(header, at, checksum::not_zero(checksum))?;
        }
        Some(())
    }
}

impl Segment {
    /// The segment's payload as a range of the GSO packet's bytes.
    #[must_use]
    pub const fn payload(&self) -> Range<usize> {
        self.payload_offset..self.payload_offset + self.payload_len
    }

    /// Bytes of the segment as an IP packet.
    #[must_use]
    pub const fn ip_len(&self) -> usize {
        self.header_len + self.payload_len
    }

    /// The segment's descriptor: the one of the `whole` GSO packet with its own length and `handle`.
    #[must_use]
    pub const fn packet(&self, whole: &Packet, handle: u64) -> Packet {
        Packet { handle, len: self.ip_len() as u32 + ETHERNET_HEADER, ..*whole }
    }
}

/// Checksum field of the virtio header of a packet whose checksum holds the pseudo header's sum.
pub(crate) fn partial_checksum(transport: Transport, transport_offset: usize) -> Checksum {
    checksum::field(transport).map_or(Checksum::Unknown, |offset| Checksum::Partial {
        start: transport_offset as u16,
        offset: offset as u16,
    })
}

fn write_ipv4(header: &mut [u8], index: usize, len: usize, tos: u8) -> Option<()> {
    let id = bytes::get_u16(header, ipv4::ID)?;
    bytes::put_u16(header, ipv4::ID, id.wrapping_add(index as u16))?;
    *header.get_mut(ipv4::TOS)? = tos;
    bytes::put_u16(header, ipv4::TOTAL_LEN, len as u16)?;
    bytes::put_u16(header, ipv4::CHECKSUM, 0)?;
    let checksum = Sum::of(header).checksum();
    bytes::put_u16(header, ipv4::CHECKSUM, checksum)
}

fn write_ipv6(header: &mut [u8], len: usize, tos: u8) -> Option<()> {
    bytes::put_u16(header, ipv6::PAYLOAD_LEN, (len - ipv6::HEADER) as u16)?;
    let fixed: &mut [u8; ipv6::HEADER] = header.first_chunk_mut()?;
    ipv6::set_tos(fixed, tos);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::craft::Tcp;
    use crate::parse;
    use crate::virtio::Gso;

    fn refused(change: fn(&mut Virtio)) -> NotSegmentable {
        let (header, packet) = Tcp::new("10.0.0.1:1", "10.0.0.2:2").super_packet(3_000, 1_448);
        let mut virtio = Virtio::parse(&header, packet.len()).unwrap();
        change(&mut virtio);
        Segmenter::new(&parse(&packet).unwrap(), &virtio).unwrap_err()
    }

    #[test]
    fn headers_that_do_not_agree_are_refused() {
        assert_eq!(refused(|virtio| virtio.gso = None), NotSegmentable::NoGso);
        let other = Gso { kind: GsoKind::TcpV6, size: 9, ecn: false };
        assert_eq!(
            NotSegmentable::Kind {
                asked: other.kind,
                version: Version::V4,
                transport: Transport::Tcp
            },
            refused(|virtio| virtio.gso = Some(Gso { kind: GsoKind::TcpV6, size: 9, ecn: false }))
        );
        assert_eq!(
            refused(|virtio| virtio.checksum = Checksum::Valid),
            NotSegmentable::ChecksumNotPartial
        );
        let elsewhere = |virtio: &mut Virtio| {
            virtio.checksum = Checksum::Partial { start: 20, offset: 6 };
        };
        assert_eq!(refused(elsewhere), NotSegmentable::ChecksumNotPartial);
    }

    #[test]
    fn sixty_four_kilobytes_are_forty_five_segments() {
        let (header, packet) = Tcp::new("10.0.0.1:1", "10.0.0.2:2").super_packet(65_160, 1_448);
        let virtio = Virtio::parse(&header, packet.len()).unwrap();
        let cut = Segmenter::new(&parse(&packet).unwrap(), &virtio).unwrap();
        assert_eq!(cut.segments().len(), 45);
        assert!(cut.segments().all(|segment| segment.ip_len() == 1_500));
        assert_eq!(cut.segment(44).unwrap().payload(), 52 + 44 * 1_448..packet.len());
    }
}
