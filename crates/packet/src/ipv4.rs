//! The IPv4 header (RFC 791, section 3.1).

use std::net::{IpAddr, Ipv4Addr};

use weir_core::{Dscp, Ecn, FlowKey, Protocol};

use crate::checksum::Sum;
use crate::headers::{Fragment, Headers, Malformed, Transport, Version};

/// The IP part of a packet's headers; the transport is left open.
pub(crate) fn parse(head: &[u8], available: usize) -> Result<Headers, Malformed> {
    let fixed: &[u8; HEADER] =
        head.first_chunk().ok_or(Malformed::Truncated { need: HEADER, have: head.len() })?;
    let header_len = usize::from(fixed[0] & 0xf) * 4;
    if header_len < HEADER {
        return Err(Malformed::HeaderLength(header_len));
    }
    let total_len = usize::from(u16::from_be_bytes([fixed[2], fixed[3]]));
    if total_len < header_len {
        return Err(Malformed::TotalLength { total: total_len, header: header_len });
    }
    if total_len > available {
        return Err(Malformed::Truncated { need: total_len, have: available });
    }
    if header_len > head.len() {
        return Err(Malformed::Truncated { need: header_len, have: head.len() });
    }
    let fragment = u16::from_be_bytes([fixed[6], fixed[7]]);
    let address = |at: usize| -> IpAddr {
        Ipv4Addr::new(fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]).into()
    };
    Ok(Headers {
        version: Version::V4,
        total_len,
        dscp: Dscp::from_tos(fixed[TOS]),
        ecn: Ecn::from_tos(fixed[TOS]),
        ttl: fixed[TTL],
        key: FlowKey {
            src: address(SRC),
            dst: address(DST),
            sport: 0,
            dport: 0,
            protocol: Protocol(fixed[PROTOCOL]),
        },
        fragment: (fragment & (MORE_FRAGMENTS | FRAGMENT_OFFSET) != 0).then(|| Fragment {
            offset: u32::from(fragment & FRAGMENT_OFFSET) * 8,
            more: fragment & MORE_FRAGMENTS != 0,
        }),
        transport_offset: header_len,
        transport: Transport::Other,
        payload_offset: header_len,
    })
}

/// Whether `bytes` begin with an IPv4 header whose checksum is right. A router drops a packet whose
/// checksum is wrong (RFC 1812, section 4.2.2.5).
#[must_use]
pub fn checksum_ok(bytes: &[u8]) -> bool {
    let Some(&first) = bytes.first() else { return false };
    let header_len = usize::from(first & 0xf) * 4;
    first >> 4 == 4
        && header_len >= HEADER
        && bytes.get(..header_len).is_some_and(|header| Sum::of(header).fold() == 0xffff)
}

/// Writes a header without options into `out`, its checksum right, unfragmented and with `DF`: an
/// atomic datagram, whose identification may be 0 (RFC 6864, section 4.1).
pub(crate) fn write(
    out: &mut [u8; HEADER],
    tos: u8,
    total_len: u16,
    protocol: Protocol,
    [src, dst]: [Ipv4Addr; 2],
) {
    *out = [0; HEADER];
    out[0] = 4 << 4 | (HEADER / 4) as u8;
    out[TOS] = tos;
    out[TOTAL_LEN..][..2].copy_from_slice(&total_len.to_be_bytes());
    out[FRAGMENT..][..2].copy_from_slice(&DONT_FRAGMENT.to_be_bytes());
    out[TTL] = DEFAULT_TTL;
    out[PROTOCOL] = protocol.0;
    out[SRC..][..4].copy_from_slice(&src.octets());
    out[DST..][..4].copy_from_slice(&dst.octets());
    let checksum = Sum::of(out).checksum();
    out[CHECKSUM..][..2].copy_from_slice(&checksum.to_be_bytes());
}

/// Bytes of a header without options.
pub(crate) const HEADER: usize = 20;
/// Offsets of fields.
pub(crate) const TOS: usize = 1;
pub(crate) const TOTAL_LEN: usize = 2;
pub(crate) const ID: usize = 4;
pub(crate) const FRAGMENT: usize = 6;
pub(crate) const TTL: usize = 8;
pub(crate) const PROTOCOL: usize = 9;
pub(crate) const CHECKSUM: usize = 10;
pub(crate) const SRC: usize = 12;
pub(crate) const DST: usize = 16;
/// Flags and offset in the fragment field.
pub(crate) const DONT_FRAGMENT: u16 = 0x4000;
const MORE_FRAGMENTS: u16 = 0x2000;
const FRAGMENT_OFFSET: u16 = 0x1fff;
/// Initial TTL of senders: Linux' `ip_default_ttl`, recommended by RFC 1700.
pub(crate) const DEFAULT_TTL: u8 = 64;
