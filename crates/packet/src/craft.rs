//! Packets made by hand, for tests, benches and captures of simulations: the only part of this crate that
//! allocates.

use std::net::SocketAddr;

use weir_core::Protocol;

use crate::checksum::{Sum, UDP_CHECKSUM, UDP_LEN};
use crate::headers::{Transport, UDP_HEADER};
use crate::segment::partial_checksum;
use crate::virtio::{Checksum, Gso, GsoKind, Virtio};
use crate::{bytes, ipv4, ipv6, tcp};

/// Fields of an IP header that are not computed.
#[derive(Clone, Debug)]
pub struct Ip {
    /// Source address and port.
    pub src: SocketAddr,
    /// Destination address and port.
    pub dst: SocketAddr,
    /// DSCP and ECN.
    pub tos: u8,
    /// TTL or hop limit.
    pub ttl: u8,
    /// IPv4 identification.
    pub id: u16,
    /// IPv4 flags and fragment offset; `DF` if not told.
    pub fragment: u16,
    /// IPv4 options, whole words; or IPv6 extension headers, of which the last must name the
    /// transport and the first is of the protocol told here.
    pub extra: (u8, Vec<u8>),
}

/// A TCP segment.
#[derive(Clone, Debug)]
pub struct Tcp {
    /// The IP header.
    pub ip: Ip,
    /// Sequence number of the first byte.
    pub seq: u32,
    /// Acknowledgement number.
    pub ack: u32,
    /// Flags as in the header; ACK (0x10) if not told.
    pub flags: u8,
    /// Window, unscaled.
    pub window: u16,
    /// Options, whole words; timestamps if not told.
    pub options: Vec<u8>,
}

/// A UDP datagram.
#[derive(Clone, Debug)]
pub struct Udp {
    /// The IP header.
    pub ip: Ip,
}

impl Ip {
    /// A header between two addresses with ports, both of one version.
    ///
    /// # Panics
    /// If `src` or `dst` is not written as an address and a port.
    #[must_use]
    pub fn new(src: &str, dst: &str) -> Self {
        let address = |text: &str| text.parse().expect("an address and a port");
        let (src, dst) = (address(src), address(dst));
        Self { src, dst, tos: 0, ttl: 64, id: 1, fragment: 0x4000, extra: (0, Vec::new()) }
    }

    /// A packet with this header around the bytes of a transport.
    #[must_use]
    pub fn packet(&self, protocol: Protocol, transport: &[u8]) -> Vec<u8> {
        let mut packet = match (self.src.ip(), self.dst.ip()) {
            (std::net::IpAddr::V4(src), std::net::IpAddr::V4(dst)) => {
                let len = ipv4::HEADER + self.extra.1.len();
                let mut fixed = [0; ipv4::HEADER];
                ipv4::write(
                    &mut fixed,
                    self.tos,
                    (len + transport.len()) as u16,
                    protocol,
                    [src, dst],
                );
                fixed[0] = 4 << 4 | (len / 4) as u8;
                fixed[ipv4::ID..][..2].copy_from_slice(&self.id.to_be_bytes());
                fixed[ipv4::FRAGMENT..][..2].copy_from_slice(&self.fragment.to_be_bytes());
                fixed[ipv4::TTL] = self.ttl;
                fixed[ipv4::CHECKSUM..][..2].copy_from_slice(&[0; 2]);
                let mut header = [&fixed[..], &self.extra.1].concat();
                let checksum = Sum::of(&header).checksum();
                header[ipv4::CHECKSUM..][..2].copy_from_slice(&checksum.to_be_bytes());
                header
            }
            (std::net::IpAddr::V6(src), std::net::IpAddr::V6(dst)) => {
                let mut fixed = [0; ipv6::HEADER];
                let first = if self.extra.1.is_empty() { protocol } else { Protocol(self.extra.0) };
                let len = (self.extra.1.len() + transport.len()) as u16;
                ipv6::write(&mut fixed, self.tos, len, first, [src, dst]);
                fixed[ipv6::HOP_LIMIT] = self.ttl;
                [&fixed[..], &self.extra.1].concat()
            }
            _ => unreachable!("addresses of two versions"),
        };
        packet.extend_from_slice(transport);
        packet
    }

    /// Where the transport begins.
    fn len(&self) -> usize {
        self.extra.1.len() + if self.src.is_ipv4() { ipv4::HEADER } else { ipv6::HEADER }
    }

    fn pseudo(&self, protocol: Protocol, len: usize) -> Sum {
        Sum::pseudo_header(self.src.ip(), self.dst.ip(), protocol, len as u32)
    }
}

impl Tcp {
    /// A segment with ACK and timestamps from `src` to `dst`.
    ///
    /// # Panics
    /// As [`Ip::new`].
    #[must_use]
    pub fn new(src: &str, dst: &str) -> Self {
        let timestamps = vec![1, 1, 8, 10, 0, 0, 0, 5, 0, 0, 0, 4];
        Self {
            ip: Ip::new(src, dst),
            seq: 1_000,
            ack: 2_000,
            flags: 0x10,
            window: 500,
            options: timestamps,
        }
    }

    /// The segment as a packet with its checksum.
    #[must_use]
    pub fn packet(&self, payload: &[u8]) -> Vec<u8> {
        let mut packet = self.with_partial(payload);
        finish(&mut packet, partial_checksum(Transport::Tcp, self.ip.len()));
        packet
    }

    /// A GSO packet and its virtio header; the payload counts up.
    #[must_use]
    pub fn super_packet(&self, payload_len: usize, gso_size: u16) -> ([u8; Virtio::LEN], Vec<u8>) {
        let packet = self.with_partial(&counting(payload_len));
        let virtio = Virtio {
            checksum: partial_checksum(Transport::Tcp, self.ip.len()),
            gso: Some(Gso {
                kind: if self.ip.src.is_ipv4() { GsoKind::TcpV4 } else { GsoKind::TcpV6 },
                size: gso_size,
                ecn: self.flags & tcp::CWR != 0,
            }),
            hdr_len: (packet.len() - payload_len) as u16,
        };
        (virtio.to_bytes(), packet)
    }

    fn with_partial(&self, payload: &[u8]) -> Vec<u8> {
        let header_len = tcp::HEADER + self.options.len();
        let len = header_len + payload.len();
        let mut header = [0; tcp::HEADER];
        header[..2].copy_from_slice(&self.ip.src.port().to_be_bytes());
        header[2..4].copy_from_slice(&self.ip.dst.port().to_be_bytes());
        header[tcp::SEQ..][..4].copy_from_slice(&self.seq.to_be_bytes());
        header[tcp::ACK..][..4].copy_from_slice(&self.ack.to_be_bytes());
        header[tcp::DATA_OFFSET] = ((header_len / 4) << 4) as u8;
        header[tcp::FLAGS] = self.flags;
        header[tcp::WINDOW..][..2].copy_from_slice(&self.window.to_be_bytes());
        let pseudo = self.ip.pseudo(Protocol::TCP, len).fold();
        header[tcp::CHECKSUM..][..2].copy_from_slice(&pseudo.to_be_bytes());
        self.ip.packet(Protocol::TCP, &[&header[..], &self.options, payload].concat())
    }
}

impl Udp {
    /// A datagram from `src` to `dst`.
    ///
    /// # Panics
    /// As [`Ip::new`].
    #[must_use]
    pub fn new(src: &str, dst: &str) -> Self {
        Self { ip: Ip::new(src, dst) }
    }

    /// The datagram as a packet with its checksum.
    #[must_use]
    pub fn packet(&self, payload: &[u8]) -> Vec<u8> {
        let mut packet = self.with_partial(payload);
        finish(&mut packet, partial_checksum(Transport::Udp, self.ip.len()));
        packet
    }

    /// A GSO packet and its virtio header; the payload counts up.
    #[must_use]
    pub fn super_packet(&self, payload_len: usize, gso_size: u16) -> ([u8; Virtio::LEN], Vec<u8>) {
        let packet = self.with_partial(&counting(payload_len));
        let virtio = Virtio {
            checksum: partial_checksum(Transport::Udp, self.ip.len()),
            gso: Some(Gso { kind: GsoKind::Udp, size: gso_size, ecn: false }),
            hdr_len: (packet.len() - payload_len) as u16,
        };
        (virtio.to_bytes(), packet)
    }

    fn with_partial(&self, payload: &[u8]) -> Vec<u8> {
        let len = UDP_HEADER + payload.len();
        let mut header = [0; UDP_HEADER];
        header[..2].copy_from_slice(&self.ip.src.port().to_be_bytes());
        header[2..4].copy_from_slice(&self.ip.dst.port().to_be_bytes());
        header[UDP_LEN..][..2].copy_from_slice(&(len as u16).to_be_bytes());
        let pseudo = self.ip.pseudo(Protocol::UDP, len).fold();
        header[UDP_CHECKSUM..][..2].copy_from_slice(&pseudo.to_be_bytes());
        self.ip.packet(Protocol::UDP, &[&header[..], payload].concat())
    }
}

fn finish(packet: &mut [u8], checksum: Checksum) {
    if let Checksum::Partial { start, offset } = checksum {
        let at = usize::from(start) + usize::from(offset);
        let sum = Sum::of(&packet[usize::from(start)..]).checksum();
        let written = bytes::put_u16(packet, at, crate::checksum::not_zero(sum));
        debug_assert!(written.is_some(), "crafted packets have a checksum");
    }
}

/// Bytes that tell where they were.
fn counting(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at % 251) as u8).collect()
}
