//! Changes that a router makes in a packet: the TTL, and the byte of DSCP and ECN.
//!
//! All of it works on the first bytes of a packet, so also on a GSO packet or on headers without
//! their payload. Bytes that do not begin with an IP header are left alone.

use weir_core::Ecn;

use crate::checksum::updated;
use crate::{bytes, ipv4, ipv6};

/// Writes `ecn` into the IP header, an IPv4 header's checksum corrected, and returns what was there;
/// `None` if this is no IP header.
pub fn set_ecn(packet: &mut [u8], ecn: Ecn) -> Option<Ecn> {
    change_tos(packet, |tos| tos & !Ecn::Ce.bits() | ecn.bits()).map(Ecn::from_tos)
}

/// Writes the byte that carries DSCP and ECN, an IPv4 header's checksum corrected, and returns what
/// was there; `None` if this is no IP header.
pub fn set_tos(packet: &mut [u8], tos: u8) -> Option<u8> {
    change_tos(packet, |_| tos)
}

/// Takes one from TTL or hop limit, an IPv4 header's checksum corrected, and returns what is left.
///
/// `None` if the packet must go no further: its TTL is 0 or 1 and stays, so that a
/// [`crate::time_exceeded`] quotes it as it came (RFC 1812, section 5.3.1; RFC 8200, section 3), or
/// this is no IP header.
#[must_use]
pub fn decrement_ttl(packet: &mut [u8]) -> Option<u8> {
    match packet.first()? >> 4 {
        4 => {
            let header: &mut [u8; ipv4::HEADER] = packet.first_chunk_mut()?;
            // TTL and protocol share a word.
            let old = u16::from_be_bytes([header[ipv4::TTL], header[ipv4::PROTOCOL]]);
            let left = (old >> 8).checked_sub(1).filter(|&left| left > 0)? as u8;
            header[ipv4::TTL] = left;
            let new = u16::from_be_bytes([left, header[ipv4::PROTOCOL]]);
            correct(header, old, new);
            Some(left)
        }
        6 => {
            let header: &mut [u8; ipv6::HEADER] = packet.first_chunk_mut()?;
            let left = header[ipv6::HOP_LIMIT].checked_sub(1).filter(|&left| left > 0)?;
            header[ipv6::HOP_LIMIT] = left;
            Some(left)
        }
        _ => None,
    }
}

fn change_tos(packet: &mut [u8], change: impl FnOnce(u8) -> u8) -> Option<u8> {
    match packet.first()? >> 4 {
        4 => {
            let header: &mut [u8; ipv4::HEADER] = packet.first_chunk_mut()?;
            let old = header[ipv4::TOS];
            let new = change(old);
            header[ipv4::TOS] = new;
            let word = |tos| u16::from_be_bytes([header[0], tos]);
            let (old_word, new_word) = (word(old), word(new));
            correct(header, old_word, new_word);
            Some(old)
        }
        6 => {
            let header: &mut [u8; ipv6::HEADER] = packet.first_chunk_mut()?;
            let old = ipv6::tos(header);
            ipv6::set_tos(header, change(old));
            Some(old)
        }
        _ => None,
    }
}

/// Corrects an IPv4 header's checksum for a word that was `old` and is `new`. A header whose checksum
/// was wrong keeps a wrong one.
fn correct(header: &mut [u8; ipv4::HEADER], old: u16, new: u16) {
    let checksum = u16::from_be_bytes([header[ipv4::CHECKSUM], header[ipv4::CHECKSUM + 1]]);
    let written = bytes::put_u16(header, ipv4::CHECKSUM, updated(checksum, old, new));
    debug_assert!(written.is_some(), "a header has a checksum");
}
