//! Parsed headers of a packet.

use weir_core::{Dscp, ETHERNET_HEADER, Ecn, FlowKey, Packet, Protocol, TcpHeader, Time};

use crate::{bytes, icmp, ipv4, ipv6, tcp};

/// Parsed headers of an IP packet. Offsets count from the first byte of the IP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers {
    /// IPv4 or IPv6.
    pub version: Version,
    /// Bytes of the whole IP packet. What is behind it in the buffer (padding) is not part of it.
    pub total_len: usize,
    /// Differentiated services code point.
    pub dscp: Dscp,
    /// Explicit congestion notification.
    pub ecn: Ecn,
    /// Time to live (IPv4) or hop limit (IPv6).
    pub ttl: u8,
    /// Addresses, protocol and ports.
    ///
    /// Ports are 0 in every fragment, also in the first, so that all of a packet's fragments are one
    /// flow. An echo has its identifier in both ports, which does not enter the flow's label. Behind IPv6 extension headers, the protocol is the last one's.
    pub key: FlowKey,
    /// Where this is a fragment, which.
    pub fragment: Option<Fragment>,
    /// Where the transport header begins: bytes of IP header, options and extension headers.
    pub transport_offset: usize,
    /// Kind of the transport header.
    pub transport: Transport,
    /// Where the payload begins. Of a fragment or unknown protocol, all behind the IP header is
    /// payload.
    pub payload_offset: usize,
}

/// The version of IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// RFC 791.
    V4,
    /// RFC 8200.
    V6,
}

/// The place of a fragment in its packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// Bytes of the packet's payload that come before this fragment's.
    pub offset: u32,
    /// Whether more fragments follow.
    pub more: bool,
}

/// A transport header that is there as a whole and makes sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// RFC 9293; payload begins behind the options.
    Tcp,
    /// RFC 768.
    Udp,
    /// RFC 792 or RFC 4443; the header that [`Headers::payload_offset`] skips is 8 bytes.
    Icmp {
        /// The message's type.
        kind: u8,
        /// The type's code.
        code: u8,
    },
    /// Another protocol, a fragment, or a header that is cut short or lies about its length. A router
    /// forwards such packets: only the end points can judge them.
    Other,
}

/// Why bytes are not an IP packet that can be forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// No bytes at all, or neither 4 nor 6 in the first four bits.
    #[error("the packet does not begin with an IP header of version 4 or 6")]
    NotIp,
    /// Fewer bytes than the headers need or tell.
    #[error("the packet needs {need} bytes, but only {have} are there")]
    Truncated {
        /// Bytes that the headers need or tell.
        need: usize,
        /// Bytes that are there.
        have: usize,
    },
    /// The IPv4 header length is below five words (RFC 791, section 3.1).
    #[error("the IPv4 header claims {0} bytes, but at least 20 are needed")]
    HeaderLength(usize),
    /// The IPv4 total length does not even hold the header. Linux' GSO packets above 64 KB
    /// ("BIG TCP") have 0 here; they are refused.
    #[error("the IPv4 total length is {total} bytes, but the header alone has {header}")]
    TotalLength {
        /// Bytes by the total length field.
        total: usize,
        /// Bytes of the header.
        header: usize,
    },
    /// An IPv6 jumbogram (RFC 2675), as in Linux' GSO packets above 64 KB.
    #[error("the packet is an IPv6 jumbogram, but at most 65535 bytes of payload are supported")]
    Jumbogram,
    /// More IPv6 extension headers than anybody needs.
    #[error("the packet has more than {0} IPv6 extension headers")]
    TooManyExtensions(usize),
    /// An IPv6 extension header that ends behind the packet.
    #[error("an IPv6 extension header at byte {0} ends behind the packet")]
    ExtensionLength(usize),
}

/// Parses the packet in `bytes`, which begin with its IP header; bytes after its end are ignored.
///
/// # Errors
/// When the IP header or a chain of extension headers cannot be walked. Neither the IPv4 header
/// checksum nor the transport's is looked at, and a transport header that makes no sense is
/// [`Transport::Other`].
pub fn parse(bytes: &[u8]) -> Result<Headers, Malformed> {
    parse_head(bytes, bytes.len())
}

/// Reads the headers of a packet of `available` bytes of which only the start, `head`, is at hand.
///
/// `head` must hold all headers.
///
/// # Errors
/// As [`parse`].
pub fn parse_head(head: &[u8], available: usize) -> Result<Headers, Malformed> {
    let headers = match head.first().map(|byte| byte >> 4) {
        Some(4) => ipv4::parse(head, available),
        Some(6) => ipv6::parse(head, available),
        _ => Err(Malformed::NotIp),
    }?;
    Ok(match headers.fragment {
        None => with_transport(headers, head),
        Some(_) => headers,
    })
}

impl Headers {
    /// Bytes of payload behind the transport header.
    #[must_use]
    pub const fn payload_len(&self) -> usize {
        self.total_len - self.payload_offset
    }

    /// Bytes of the transport header; 0 where there is none that makes sense.
    #[must_use]
    pub const fn transport_len(&self) -> usize {
        self.payload_offset - self.transport_offset
    }

    /// The byte that carries DSCP and ECN.
    #[must_use]
    pub const fn tos(&self) -> u8 {
        self.dscp.get() << 2 | self.ecn.bits()
    }

    /// TCP header in `packet`, which these headers describe; `None` for other packets.
    #[must_use]
    pub fn tcp_header(&self, packet: &[u8]) -> Option<TcpHeader> {
        if self.transport != Transport::Tcp {
            return None;
        }
        let header = packet.get(self.transport_offset..self.payload_offset)?;
        tcp::read(header, self.payload_len() as u32)
    }

    /// The descriptor of this packet for queues, `len` with [`ETHERNET_HEADER`]. `hash_key` is the
    /// run's key for [`FlowKey::label`]. The time of entry is for the queue's port to set.
    #[must_use]
    pub fn packet(&self, handle: u64, flow_id: u32, hash_key: u64) -> Packet {
        Packet {
            handle,
            enqueued_at: Time::ZERO,
            label: self.key.label(hash_key),
            len: self.total_len as u32 + ETHERNET_HEADER,
            flow_id,
            dscp: self.dscp,
            ecn: self.ecn,
        }
    }
}

/// Completes `headers` of a packet that is not a fragment.
fn with_transport(mut headers: Headers, head: &[u8]) -> Headers {
    // Padding behind the packet's end must not be taken for a transport header.
    let end = head.len().min(headers.total_len);
    let transport = &head[headers.transport_offset..end];
    let ports = || bytes::get_u16(transport, 0).zip(bytes::get_u16(transport, 2));
    let (known, ports) = match (headers.version, headers.key.protocol) {
        (_, Protocol::TCP) => {
            (tcp::header_len(transport).map(|len| (Transport::Tcp, len)), ports())
        }
        (_, Protocol::UDP) => {
            ((transport.len() >= UDP_HEADER).then_some((Transport::Udp, UDP_HEADER)), ports())
        }
        (Version::V4, Protocol::ICMP) | (Version::V6, Protocol::ICMPV6) => {
            let identifier = icmp::identifier(headers.version, transport);
            (icmp::transport(transport), identifier.map(|id| (id, id)))
        }
        _ => (None, None),
    };
    if let Some((kind, len)) = known {
        headers.transport = kind;
        headers.payload_offset += len;
    }
    // As Linux' dissector: ports are ports when their four bytes are there.
    (headers.key.sport, headers.key.dport) = ports.unwrap_or_default();
    headers
}

/// Bytes of a UDP header (RFC 768).
pub(crate) const UDP_HEADER: usize = 8;
