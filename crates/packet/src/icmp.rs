//! ICMP (RFC 792) and ICMPv6 (RFC 4443): time exceeded, and echoes.

use std::net::IpAddr;

use weir_core::Protocol;

use crate::checksum::Sum;
use crate::headers::{Headers, Transport, Version};
use crate::{bytes, ipv4, ipv6};

/// An echo request or reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo<'a> {
    /// Whether this is the answer.
    pub reply: bool,
    /// Tells one pinger from another.
    pub id: u16,
    /// Sequence number of the ping.
    pub seq: u16,
    /// Payload, which an echo reply returns unchanged.
    pub payload: &'a [u8],
}

impl<'a> Echo<'a> {
    /// The echo in `packet`, which `headers` describe; `None` if it is none. The checksum is not
    /// looked at.
    #[must_use]
    pub fn parse(packet: &'a [u8], headers: &Headers) -> Option<Self> {
        let Transport::Icmp { kind, code: 0 } = headers.transport else { return None };
        let message = packet.get(headers.transport_offset..headers.total_len)?;
        let [request, reply] = echo_types(headers.version);
        (kind == request || kind == reply).then_some(())?;
        Some(Self {
            reply: kind == reply,
            id: bytes::get_u16(message, ID)?,
            seq: bytes::get_u16(message, SEQ)?,
            payload: message.get(HEADER..)?,
        })
    }

    /// Writes the echo as an IP packet from `src` to `dst` into `out` and returns its length. `None`
    /// if the addresses are of two versions, or the packet does not fit `out` or 65535 bytes.
    #[must_use]
    pub fn write(&self, src: IpAddr, dst: IpAddr, tos: u8, out: &mut [u8]) -> Option<usize> {
        let version = if src.is_ipv4() { Version::V4 } else { Version::V6 };
        let message = [echo_types(version)[usize::from(self.reply)], 0];
        let mut words = [0; 4];
        words[..2].copy_from_slice(&self.id.to_be_bytes());
        words[2..].copy_from_slice(&self.seq.to_be_bytes());
        write(out, [src, dst], tos, message, words, self.payload)
    }
}

/// Writes an ICMP "time exceeded in transit" about `packet`, which `headers` describe, from `router` to
/// its sender into `out` and returns its length: up to 576 bytes (RFC 1812, section 4.3.2.3), or 1280
/// for IPv6 (RFC 4443, section 2.4 c).
///
/// `None` if there must be none (RFC 1122, section 3.2.2; RFC 4443, section 2.4 e): the packet is an
/// ICMP error itself or may be one, or a later fragment, or goes to many, or its sender is not one
/// host; or if `router` is of another version of IP, or `out` is too short.
///
/// TTL 64. DSCP and ECN are as Linux' `icmp_send` has them: over IPv4 precedence 6 and the packet's own
/// lower bits, which include the upper bit of ECN; over IPv6 0.
#[must_use]
pub fn time_exceeded(
    packet: &[u8],
    headers: &Headers,
    router: IpAddr,
    out: &mut [u8],
) -> Option<usize> {
    let packet = packet.get(..headers.total_len)?;
    if !may_be_told(packet, headers) {
        return None;
    }
    let (message, tos, room) = match headers.version {
        Version::V4 => {
            let tos = headers.tos() & TOS_MASK | INTERNET_CONTROL;
            ([V4_TIME_EXCEEDED, 0], tos, V4_MAX_ERROR - ipv4::HEADER - HEADER)
        }
        Version::V6 => ([V6_TIME_EXCEEDED, 0], 0, V6_MAX_ERROR - ipv6::HEADER - HEADER),
    };
    let quote = &packet[..packet.len().min(room)];
    write(out, [router, headers.key.src], tos, message, [0; 4], quote)
}

/// The transport of an ICMP message and its header's length, or `None` if the header is cut short.
pub(crate) fn transport(message: &[u8]) -> Option<(Transport, usize)> {
    let &[kind, code, ..] = message.first_chunk::<HEADER>()?;
    Some((Transport::Icmp { kind, code }, HEADER))
}

/// The identifier of an echo, request or reply, or `None` if `message` is none.
pub(crate) fn identifier(version: Version, message: &[u8]) -> Option<u16> {
    echo_types(version).contains(message.first()?).then_some(())?;
    bytes::get_u16(message, ID)
}

/// Whether the sender of a packet may get an ICMP error about it.
fn may_be_told(packet: &[u8], headers: &Headers) -> bool {
    if headers.fragment.is_some_and(|fragment| fragment.offset != 0) {
        return false;
    }
    // Read here and not taken from the transport, because first fragments have none.
    let kind = packet.get(headers.transport_offset);
    let is_query = match headers.key.protocol {
        Protocol::ICMP if headers.version == Version::V4 => {
            kind.is_some_and(|kind| V4_QUERIES.contains(kind))
        }
        Protocol::ICMPV6 if headers.version == Version::V6 => {
            kind.is_some_and(|&kind| kind & V6_INFORMATIONAL != 0 && kind != V6_REDIRECT)
        }
        _ => true,
    };
    let from_one = match headers.key.src {
        IpAddr::V4(v4) => {
            let class_e = v4.octets()[0] >= 240;
            let this_net = v4.octets()[0] == 0;
            !(v4.is_multicast() || v4.is_loopback() || this_net || class_e)
        }
        IpAddr::V6(v6) => !(v6.is_multicast() || v6.is_unspecified() || v6.is_loopback()),
    };
    let to_one = match headers.key.dst {
        IpAddr::V4(v4) => !(v4.is_multicast() || v4.is_broadcast()),
        IpAddr::V6(v6) => !v6.is_multicast(),
    };
    is_query && from_one && to_one
}

/// Writes an IP packet with an ICMP message.
fn write(
    out: &mut [u8],
    [src, dst]: [IpAddr; 2],
    tos: u8,
    [kind, code]: [u8; 2],
    words: [u8; 4],
    data: &[u8],
) -> Option<usize> {
    let message_len = HEADER + data.len();
    let (ip_len, start) = match (src, dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            let len = u16::try_from(ipv4::HEADER + message_len).ok()?;
            ipv4::write(out.first_chunk_mut()?, tos, len, Protocol::ICMP, [src, dst]);
            (ipv4::HEADER, Sum::ZERO)
        }
        (IpAddr::V6(src), IpAddr::V6(dst)) => {
            let len = u16::try_from(message_len).ok()?;
            ipv6::write(out.first_chunk_mut()?, tos, len, Protocol::ICMPV6, [src, dst]);
            let pseudo =
                Sum::pseudo_header(src.into(), dst.into(), Protocol::ICMPV6, u32::from(len));
            (ipv6::HEADER, pseudo)
        }
        _ => return None,
    };
    let message = out.get_mut(ip_len..ip_len + message_len)?;
    message[..4].copy_from_slice(&[kind, code, 0, 0]);
    message[4..HEADER].copy_from_slice(&words);
    message[HEADER..].copy_from_slice(data);
    let checksum = start.bytes(message).checksum();
    bytes::put_u16(message, CHECKSUM, checksum)?;
    Some(ip_len + message_len)
}

const fn echo_types(version: Version) -> [u8; 2] {
    match version {
        Version::V4 => [8, 0],
        Version::V6 => [128, 129],
    }
}

/// Bytes of the header of the messages that are known here, and offsets of its fields.
const HEADER: usize = 8;
const CHECKSUM: usize = 2;
const ID: usize = 4;
const SEQ: usize = 6;
const V4_TIME_EXCEEDED: u8 = 11;
const V6_TIME_EXCEEDED: u8 = 3;
/// RFC 1812, section 4.3.2.3; Linux does the same.
const V4_MAX_ERROR: usize = 576;
/// RFC 8200, section 5: what every link carries.
const V6_MAX_ERROR: usize = 1280;
/// All of RFC 792, RFC 1256 and RFC 950 that is no error: echo, router discovery, timestamp,
/// information, address mask.
const V4_QUERIES: [u8; 10] = [0, 8, 9, 10, 13, 14, 15, 16, 17, 18];
/// RFC 4443, section 2.1: informational messages have the highest bit.
const V6_INFORMATIONAL: u8 = 0x80;
/// RFC 4861, section 4.5; no error may follow it (RFC 4443, section 2.4 e).
const V6_REDIRECT: u8 = 137;
/// Linux, `IPTOS_TOS_MASK` and `IPTOS_PREC_INTERNETCONTROL`.
const TOS_MASK: u8 = 0x1e;
const INTERNET_CONTROL: u8 = 0xc0;
