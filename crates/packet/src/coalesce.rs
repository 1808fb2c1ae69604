//! GRO: coalescing segments of one flow into one GSO packet.

use weir_core::Protocol;

use crate::checksum::{self, Sum, UDP_CHECKSUM, UDP_LEN};
use crate::headers::{Headers, Transport, UDP_HEADER, Version, parse_head};
use crate::segment::partial_checksum;
use crate::virtio::{Gso, GsoKind, Virtio};
use crate::{bytes, ipv4, ipv6, tcp};

/// Coalesces segments of one flow into a GSO packet that grows at its end.
///
/// It looks at headers only; the payloads stay where they are, and the caller keeps the list of their
/// slices. On the wire the joined packet is the virtio header and the headers of [`Coalescer::finish`],
/// and then all payloads in order.
///
/// **Only segments whose transport checksum is known to be right may be offered**, because the joined
/// packet gets a fresh one, which would cover up damage: segments out of a [`crate::Segmenter`], packets
/// whose virtio header says `Partial` or `Valid`, or for which
/// [`crate::transport_checksum_ok`] holds.
#[derive(Clone, Copy, Debug)]
pub struct Coalescer {
    head: [u8; Self::MAX_HEADERS],
    headers: Headers,
    limits: Limits,
    size: usize,
    payload_len: usize,
    segments: usize,
    /// Flags of the last segment that the joined packet takes over.
    last_flags: u8,
    open: bool,
}

/// Limits to which a GSO packet may grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the joined IP packet; above 65535 counts as 65535, which is all that the IP header
    /// can tell.
    pub max_len: usize,
    /// Segments of the joined packet at most.
    pub max_segments: usize,
    /// Whether UDP datagrams are joined: only for a device that took `TUN_F_USO4` and `TUN_F_USO6`.
    pub udp: bool,
}

impl Default for Limits {
    /// 65535 bytes, 64 segments, only TCP.
    fn default() -> Self {
        Self { max_len: MAX_IP_LEN, max_segments: MAX_SEGMENTS, udp: false }
    }
}

impl Coalescer {
    /// The longest headers that are joined: IPv6 without extension headers, TCP with all options.
    pub const MAX_HEADERS: usize = ipv6::HEADER + tcp::MAX_HEADER;

    /// A GSO packet that begins with the segment whose headers are the first bytes of `head`, which
    /// may go on with payload.
    ///
    /// `None` if nothing can follow it, and it is to be sent as it is: no payload, a flag other than
    /// ACK, ECE and CWR, a fragment, IPv4 options or IPv6 extension headers (Linux' GRO refuses those
    /// too), UDP without checksum, or another protocol.
    #[must_use]
    pub fn start(head: &[u8], limits: Limits) -> Option<Self> {
        let headers = parse_head(head, usize::MAX).ok()?;
        let plain = match headers.version {
            Version::V4 => ipv4::HEADER,
            Version::V6 => ipv6::HEADER,
        };
        let may_grow = match headers.transport {
            Transport::Tcp => {
                let flags = *head.get(plain + tcp::FLAGS)?;
                flags & (tcp::SYN | tcp::RST | tcp::URG | tcp::FIN | tcp::PSH) == 0
            }
            Transport::Udp => limits.udp && is_whole_datagram(head.get(plain..)?, &headers),
            Transport::Icmp { .. } | Transport::Other => false,
        };
        if headers.transport_offset != plain || !may_grow || headers.payload_len() == 0 {
            return None;
        }
        let mut coalescer = Self {
            head: [0; Self::MAX_HEADERS],
            headers,
            limits: Limits { max_len: limits.max_len.min(MAX_IP_LEN), ..limits },
            size: headers.payload_len(),
            payload_len: headers.payload_len(),
            segments: 1,
            last_flags: 0,
            open: true,
        };
        coalescer.head[..headers.payload_offset]
            .copy_from_slice(head.get(..headers.payload_offset)?);
        Some(coalescer)
    }

    /// Adds the segment whose headers are the first bytes of `head` if it continues this GSO packet,
    /// and says whether it did. If not, nothing has changed: send this one, and start another.
    ///
    /// It continues if it is of the same flow, carries on where the payload ends, is not longer than
    /// the first and came behind none that was shorter, and if nothing else differs but what cutting
    /// restores: TTL, DSCP, ECN, acknowledgement, window, options and flags are the same (but that
    /// CWR may be on the first alone, and that FIN or PSH ends the GSO packet); the IPv4
    /// identification counts up, or `DF` makes it meaningless (RFC 6864, section 4.1).
    #[must_use]
    pub fn push(&mut self, head: &[u8]) -> bool {
        let Some(head) = head.get(..self.headers.payload_offset) else { return false };
        let Some(payload_len) = self.payload_of(head) else { return false };
        let (ip, transport) = head.split_at(self.headers.transport_offset);
        let fits = self.open
            && self.segments < self.limits.max_segments
            && (1..=self.size).contains(&payload_len)
            && self.headers.payload_offset + self.payload_len + payload_len <= self.limits.max_len;
        if !fits || !self.same_ip(ip) {
            return false;
        }
        let flags = match self.headers.transport {
            Transport::Tcp => match self.tcp_flags_if_next(transport) {
                Some(flags) => flags,
                None => return false,
            },
            _ if self.udp_is_next(transport, payload_len) => 0,
            _ => return false,
        };
        self.segments += 1;
        self.payload_len += payload_len;
        self.last_flags = flags & (tcp::FIN | tcp::PSH);
        self.open = payload_len == self.size && self.last_flags == 0;
        true
    }

    /// Number of segments in the joined packet.
    #[must_use]
    pub const fn segments(&self) -> usize {
        self.segments
    }

    /// Bytes of the joined packet, headers included.
    #[must_use]
    pub const fn ip_len(&self) -> usize {
        self.headers.payload_offset + self.payload_len
    }

    /// Whether nothing can follow any more: a short segment, FIN or PSH has ended it, or it is full.
    #[must_use]
    pub const fn is_done(&self) -> bool {
        !self.open
            || self.segments >= self.limits.max_segments
            || self.ip_len() >= self.limits.max_len
    }

    /// Writes the joined packet's headers into `out` and returns their length and the virtio header.
    /// The checksum is partial, also if nothing was joined. `None` if `out` is shorter than the
    /// headers; [`Coalescer::MAX_HEADERS`] always does.
    #[must_use]
    pub fn finish(&self, out: &mut [u8]) -> Option<(usize, Virtio)> {
        let Headers { version, transport, transport_offset, payload_offset, key, .. } =
            self.headers;
        let head = out.get_mut(..payload_offset)?;
        head.copy_from_slice(&self.head[..payload_offset]);
        let len = self.ip_len();
        let (ip, rest) = head.split_at_mut(transport_offset);
        match version {
            Version::V4 => {
                bytes::put_u16(ip, ipv4::TOTAL_LEN, len as u16)?;
                bytes::put_u16(ip, ipv4::CHECKSUM, 0)?;
                let checksum = Sum::of(ip).checksum();
                bytes::put_u16(ip, ipv4::CHECKSUM, checksum)?;
            }
            Version::V6 => bytes::put_u16(ip, ipv6::PAYLOAD_LEN, (len - ipv6::HEADER) as u16)?,
        }
        let covered = len - transport_offset;
        if transport == Transport::Udp {
            bytes::put_u16(rest, UDP_LEN, covered as u16)?;
        } else {
            *rest.get_mut(tcp::FLAGS)? |= self.last_flags;
        }
        let pseudo = Sum::pseudo_header(key.src, key.dst, key.protocol, covered as u32);
        bytes::put_u16(rest, checksum::field(transport)?, pseudo.fold())?;
        let virtio = Virtio {
            checksum: partial_checksum(transport, transport_offset),
            gso: (self.segments > 1).then(|| Gso {
                kind: match (transport, version) {
                    (Transport::Udp, _) => GsoKind::Udp,
                    (_, Version::V4) => GsoKind::TcpV4,
                    (_, Version::V6) => GsoKind::TcpV6,
                },
                size: self.size as u16,
                ecn: self.has_cwr(),
            }),
            hdr_len: payload_offset as u16,
        };
        Some((payload_offset, virtio))
    }

    /// Bytes of payload of a segment with headers of the same length as ours.
    fn payload_of(&self, head: &[u8]) -> Option<usize> {
        let len = match self.headers.version {
            Version::V4 => usize::from(bytes::get_u16(head, ipv4::TOTAL_LEN)?),
            Version::V6 => usize::from(bytes::get_u16(head, ipv6::PAYLOAD_LEN)?) + ipv6::HEADER,
        };
        len.checked_sub(self.headers.payload_offset)
    }

    /// Whether the IP header differs only in length, checksum, and the identification as it may.
    fn same_ip(&self, ip: &[u8]) -> bool {
        let same = |range: std::ops::Range<usize>| self.head.get(range.clone()) == ip.get(range);
        match self.headers.version {
            Version::V4 => {
                let id = |header: &[u8]| bytes::get_u16(header, ipv4::ID).unwrap_or(0);
                let atomic = self.head[ipv4::FRAGMENT] & (ipv4::DONT_FRAGMENT >> 8) as u8 != 0;
                same(0..ipv4::TOTAL_LEN)
                    && same(ipv4::FRAGMENT..ipv4::CHECKSUM)
                    && same(ipv4::SRC..ipv4::HEADER)
                    && (atomic || id(ip) == id(&self.head).wrapping_add(self.segments as u16))
            }
            Version::V6 => same(0..ipv6::PAYLOAD_LEN) && same(ipv6::NEXT_HEADER..ipv6::HEADER),
        }
    }

    /// The flags of a TCP header that carries on where this packet ends.
    fn tcp_flags_if_next(&self, header: &[u8]) -> Option<u8> {
        let first = self.head.get(self.headers.transport_offset..self.headers.payload_offset)?;
        let same = |range: std::ops::Range<usize>| first.get(range.clone()) == header.get(range);
        let seq = bytes::get_u32(first, tcp::SEQ)?.wrapping_add(self.payload_len as u32);
        let flags = *header.get(tcp::FLAGS)?;
        let differ = flags ^ first.get(tcp::FLAGS)?;
        let next = bytes::get_u32(header, tcp::SEQ)? == seq
            && same(0..tcp::SEQ)
            && same(tcp::ACK..tcp::FLAGS)
            && differ & !(tcp::FIN | tcp::PSH | tcp::CWR) == 0
            && flags & tcp::CWR == 0
            && same(tcp::WINDOW..tcp::CHECKSUM)
            && same(tcp::URGENT..first.len());
        next.then_some(flags)
    }

    /// Whether a UDP header is one of this flow, with a checksum and an honest length.
    fn udp_is_next(&self, header: &[u8], payload_len: usize) -> bool {
        let first = self.head.get(self.headers.transport_offset..self.headers.payload_offset);
        first.and_then(|first| first.get(..UDP_LEN)) == header.get(..UDP_LEN)
            && bytes::get_u16(header, UDP_LEN).map(usize::from) == Some(UDP_HEADER + payload_len)
            && bytes::get_u16(header, UDP_CHECKSUM) != Some(0)
    }

    fn has_cwr(&self) -> bool {
        let at = self.headers.transport_offset + tcp::FLAGS;
        self.headers.key.protocol == Protocol::TCP && self.head[at] & tcp::CWR != 0
    }
}

/// Whether a UDP header tells the length of its packet, and has a checksum.
fn is_whole_datagram(header: &[u8], headers: &Headers) -> bool {
    let len = headers.total_len - headers.transport_offset;
    bytes::get_u16(header, UDP_LEN).map(usize::from) == Some(len)
        && bytes::get_u16(header, UDP_CHECKSUM) != Some(0)
}

/// Largest length that the field of an IPv4 header can hold, in bytes.
const MAX_IP_LEN: usize = 65_535;
/// Segments of a joined packet at most: more than 64 KB of full ones.
///
/// The bound keeps the list of slices of one write short (`UIO_MAXIOV` is 1024).
const MAX_SEGMENTS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::craft::{Ip, Tcp, Udp};

    fn first() -> Tcp {
        Tcp::new("10.0.0.1:1000", "10.0.1.1:2000")
    }

    /// The segment after `first()` with 100 bytes.
    fn second() -> Tcp {
        Tcp { seq: 1_100, ip: Ip { id: 2, ..first().ip }, ..first() }
    }

    fn coalesce(a: &Tcp, b: &Tcp) -> bool {
        let mut coalescer = Coalescer::start(&a.packet(&[0; 100]), Limits::default()).unwrap();
        coalescer.push(&b.packet(&[0; 100]))
    }

    #[test]
    fn a_segment_that_follows_joins_and_any_difference_keeps_it_out() {
        let (a, b) = (first(), second());
        assert!(coalesce(&a, &b));
        let ip = |change: fn(&mut Ip)| {
            let mut changed = second();
            change(&mut changed.ip);
            coalesce(&first(), &changed)
        };
        assert!(!ip(|ip| ip.ttl = 63), "TTL");
        assert!(!ip(|ip| ip.tos = 0b11), "CE on one alone");
        assert!(!ip(|ip| ip.tos = 0xb8), "DSCP");
        assert!(!ip(|ip| ip.src.set_port(1_001)), "another flow");
        assert!(!ip(|ip| ip.dst = "10.0.1.2:2000".parse().unwrap()), "another host");
        assert!(!ip(|ip| ip.fragment = 0), "DF");
        assert!(ip(|ip| ip.id = 99), "with DF, the identification means nothing");
        assert!(!coalesce(&a, &Tcp { seq: 1_101, ..b.clone() }), "a gap");
        assert!(!coalesce(&a, &Tcp { seq: 1_000, ..b.clone() }), "a repetition");
        assert!(!coalesce(&a, &Tcp { ack: 2_001, ..b.clone() }), "acknowledgement");
        assert!(!coalesce(&a, &Tcp { window: 501, ..b.clone() }), "window");
        assert!(!coalesce(&a, &Tcp { flags: 0x50, ..b.clone() }), "ECE");
        assert!(!coalesce(&a, &Tcp { flags: 0x90, ..b.clone() }), "CWR that is not on the first");
        let later = vec![1, 1, 8, 10, 0, 0, 0, 6, 0, 0, 0, 4];
        assert!(!coalesce(&a, &Tcp { options: later, ..b.clone() }), "timestamp");
        assert!(!coalesce(&a, &Tcp { options: Vec::new(), ..b }), "length of the headers");
    }

    #[test]
    fn without_df_the_identification_counts_up() {
        let not_atomic = |id| Ip { fragment: 0, id, ..first().ip };
        let a = Tcp { ip: not_atomic(0xffff), ..first() };
        assert!(coalesce(&a, &Tcp { ip: not_atomic(0), ..second() }));
        assert!(!coalesce(&a, &Tcp { ip: not_atomic(0xffff), ..second() }));
    }

    #[test]
    fn marked_segments_join_with_their_like() {
        let marked = |tcp: Tcp| Tcp { ip: Ip { tos: 0b11, ..tcp.ip }, ..tcp };
        assert!(coalesce(&marked(first()), &marked(second())));
        assert!(!coalesce(&marked(first()), &second()));
    }

    #[test]
    fn what_ends_a_super_packet() {
        let ends = |b: &Tcp, payload: &[u8]| {
            let mut coalescer =
                Coalescer::start(&first().packet(&[0; 100]), Limits::default()).unwrap();
            assert!(coalescer.push(&b.packet(payload)));
            coalescer.is_done()
        };
        assert!(!ends(&second(), &[0; 100]));
        assert!(ends(&second(), &[0; 99]));
        assert!(ends(&Tcp { flags: 0x18, ..second() }, &[0; 100]));
        assert!(ends(&Tcp { flags: 0x11, ..second() }, &[0; 100]));
        let mut coalescer =
            Coalescer::start(&first().packet(&[0; 100]), Limits::default()).unwrap();
        assert!(!coalescer.push(&second().packet(&[0; 101])), "longer than the first");
        assert!(!coalescer.push(&second().packet(&[])), "no payload");
        assert!(coalescer.push(&second().packet(&[0; 100])), "refusals change nothing");
    }

    #[test]
    fn what_cannot_begin_one() {
        let starts = |tcp: &Tcp, payload: &[u8]| {
            Coalescer::start(&tcp.packet(payload), Limits::default()).is_some()
        };
        assert!(starts(&first(), b"a"));
        assert!(starts(&Tcp { flags: 0xd0, ..first() }, b"a"), "ECE and CWR");
        assert!(!starts(&first(), b""));
        for flags in [0x11, 0x12, 0x14, 0x18, 0x30] {
            assert!(!starts(&Tcp { flags, ..first() }, b"a"), "{flags:#x}");
        }
        let options = Ip { extra: (0, vec![1; 4]), ..first().ip };
        assert!(!starts(&Tcp { ip: options, ..first() }, b"a"));
        let udp = Udp::new("10.0.0.1:1000", "10.0.1.1:2000").packet(b"a");
        assert!(Coalescer::start(&udp, Limits::default()).is_none());
        assert!(Coalescer::start(&udp, Limits { udp: true, ..Limits::default() }).is_some());
    }

    #[test]
    fn limits_hold() {
        let grown = |limits| {
            let mut coalescer = Coalescer::start(&first().packet(&[0; 1_000]), limits).unwrap();
            let next = |n: u32| Tcp { seq: 1_000 + 1_000 * n, ..second() }.packet(&[0; 1_000]);
            let count = 1 + (1..100).take_while(|&n| coalescer.push(&next(n))).count();
            assert_eq!((coalescer.segments(), coalescer.ip_len()), (count, 52 + 1_000 * count));
            count
        };
        assert_eq!(grown(Limits::default()), 64);
        assert_eq!(grown(Limits { max_segments: 100, ..Limits::default() }), 65);
        assert_eq!(grown(Limits { max_segments: 17, ..Limits::default() }), 17);
        assert_eq!(grown(Limits { max_len: 3_051, ..Limits::default() }), 2);
        assert_eq!(grown(Limits { max_len: 3_052, ..Limits::default() }), 3);
    }

    #[test]
    fn one_alone_is_a_packet_with_a_partial_checksum() {
        let packet = first().packet(b"abc");
        let coalescer = Coalescer::start(&packet, Limits::default()).unwrap();
        let mut head = [0; Coalescer::MAX_HEADERS];
        let (len, virtio) = coalescer.finish(&mut head).unwrap();
        assert_eq!(virtio.gso, None);
        let mut written = [&head[..len], b"abc"].concat();
        crate::complete_checksum(&mut written, 20, 16).unwrap();
        assert_eq!(written, packet);
        assert!(coalescer.finish(&mut [0; 51]).is_none());
    }
}
