//! The IPv6 header and its extension headers (RFC 8200, sections 3 and 4).

use std::net::{IpAddr, Ipv6Addr};

use weir_core::{Dscp, Ecn, FlowKey, Protocol};

use crate::headers::{Fragment, Headers, Malformed, Transport, Version};

/// The IP part of a packet's headers; the transport is left open.
pub(crate) fn parse(head: &[u8], available: usize) -> Result<Headers, Malformed> {
    let fixed: &[u8; HEADER] =
        head.first_chunk().ok_or(Malformed::Truncated { need: HEADER, have: head.len() })?;
    let payload_len = usize::from(u16::from_be_bytes([fixed[4], fixed[5]]));
    if payload_len == 0 && fixed[NEXT_HEADER] == HOP_BY_HOP {
        return Err(Malformed::Jumbogram);
    }
    let total_len = HEADER + payload_len;
    if total_len > available {
        return Err(Malformed::Truncated { need: total_len, have: available });
    }
    let chain = walk(fixed[NEXT_HEADER], head, total_len)?;
    let tos = tos(fixed);
    Ok(Headers {
        version: Version::V6,
        total_len,
        dscp: Dscp::from_tos(tos),
        ecn: Ecn::from_tos(tos),
        ttl: fixed[HOP_LIMIT],
        key: FlowKey {
            src: address(fixed, SRC),
            dst: address(fixed, DST),
            sport: 0,
            dport: 0,
            protocol: Protocol(chain.protocol),
        },
        fragment: chain.fragment,
        transport_offset: chain.end,
        transport: Transport::Other,
        payload_offset: chain.end,
    })
}

/// The traffic class, which lies across the first two bytes.
pub(crate) const fn tos(header: &[u8; HEADER]) -> u8 {
    header[0] << 4 | header[1] >> 4
}

/// Replaces the traffic class.
pub(crate) const fn set_tos(header: &mut [u8; HEADER], tos: u8) {
    header[0] = 6 << 4 | tos >> 4;
    header[1] = tos << 4 | header[1] & 0xf;
}

/// Writes a header of flow label 0 into `out`.
pub(crate) fn write(
    out: &mut [u8; HEADER],
    tos: u8,
    payload_len: u16,
    next_header: Protocol,
    [src, dst]: [Ipv6Addr; 2],
) {
    *out = [0; HEADER];
    set_tos(out, tos);
    out[PAYLOAD_LEN..][..2].copy_from_slice(&payload_len.to_be_bytes());
    out[NEXT_HEADER] = next_header.0;
    out[HOP_LIMIT] = DEFAULT_HOP_LIMIT;
    out[SRC..][..16].copy_from_slice(&src.octets());
    out[DST..][..16].copy_from_slice(&dst.octets());
}

/// Where a chain of extension headers leads.
struct Chain {
    protocol: u8,
    end: usize,
    fragment: Option<Fragment>,
}

/// Follows the chain to the first header that is no extension, or into a fragment, in which nothing
/// more can be read.
fn walk(mut protocol: u8, head: &[u8], total_len: usize) -> Result<Chain, Malformed> {
    let mut at = HEADER;
    for _ in 0..=MAX_EXTENSIONS {
        if !matches!(protocol, HOP_BY_HOP | ROUTING | DESTINATION | FRAGMENT) {
            return Ok(Chain { protocol, end: at, fragment: None });
        }
        // Every extension header begins on 8 bytes and has at least 8.
        if at + 8 > total_len {
            return Err(Malformed::ExtensionLength(at));
        }
        let truncated = |need| Malformed::Truncated { need, have: head.len() };
        let extension: &[u8; 8] =
            head.get(at..).and_then(|rest| rest.first_chunk()).ok_or(truncated(at + 8))?;
        if protocol == FRAGMENT {
            let field = u16::from_be_bytes([extension[2], extension[3]]);
            let fragment =
                Fragment { offset: u32::from(field & FRAGMENT_OFFSET), more: field & 1 != 0 };
            at += 8;
            // An "atomic fragment" (RFC 6946) is a whole packet.
            if fragment.offset != 0 || fragment.more {
                return Ok(Chain { protocol: extension[0], end: at, fragment: Some(fragment) });
            }
        } else {
            let end = at + (usize::from(extension[1]) + 1) * 8;
            if end > total_len {
                return Err(Malformed::ExtensionLength(at));
            }
            if end > head.len() {
                return Err(truncated(end));
            }
            at = end;
        }
        protocol = extension[0];
    }
    Err(Malformed::TooManyExtensions(MAX_EXTENSIONS))
}

fn address(header: &[u8; HEADER], at: usize) -> IpAddr {
    let mut octets = [0; 16];
    octets.copy_from_slice(&header[at..at + 16]);
    Ipv6Addr::from(octets).into()
}

/// Bytes of the fixed header.
pub(crate) const HEADER: usize = 40;
/// Offsets of fields.
pub(crate) const PAYLOAD_LEN: usize = 4;
pub(crate) const NEXT_HEADER: usize = 6;
pub(crate) const HOP_LIMIT: usize = 7;
pub(crate) const SRC: usize = 8;
pub(crate) const DST: usize = 24;
/// Extension headers (RFC 8200, section 4) that are walked. Behind an authentication header (51) is
/// its own protocol; encryption (50) hides all.
const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const DESTINATION: u8 = 60;
/// The fragment field counts 8 bytes in its upper 13 bits, so masking yields bytes.
const FRAGMENT_OFFSET: u16 = 0xfff8;
/// Each kind may occur once, destination options twice (RFC 8200, section 4.1); twice that is
/// generous, and bounds what a packet can make us do.
const MAX_EXTENSIONS: usize = 10;
/// As for IPv4; Linux' default `hop_limit`.
pub(crate) const DEFAULT_HOP_LIMIT: u8 = 64;
