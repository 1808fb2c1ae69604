//! `flower`: matches by the names of fields (tc-flower(8)), as far as packets here have them.

use weir_core::{IpVersion, Protocol};

use super::filter::{Field, Match, NO_ADDRESSES};
use super::skbedit::masked;
use super::{SpecError, did_you_mean};

/// Reads what stands behind `flower` in a filter that is asked about packets of `version`, and returns the rest:
/// what is no field of it.
pub(super) fn read<'w, 's>(
    words: &'w [&'s str],
    version: Option<IpVersion>,
) -> Result<(Vec<Match>, &'w [&'s str]), SpecError> {
    let mut matches = Vec::new();
    let mut protocol = None;
    let mut words = words;
    loop {
        words = match words {
            ["skip_hw" | "skip_sw" | "verbose", rest @ ..] => rest,
            [field, ..] if BEHIND.contains(field) => return Ok((matches, words)),
            [] => return Ok((matches, words)),
            [field, value, rest @ ..] if FIELDS.contains(field) => {
                let version = version.ok_or_else(|| {
                    let allowed = "write `protocol ip` or `protocol ipv6` before `flower`";
                    bad(field, value, allowed)
                })?;
                if *field == "ip_proto" {
                    protocol = protocol_number(value, version);
                }
                matches.push(one(field, value, version, protocol)?);
                rest
            }
            [field, ..] => {
                let near = did_you_mean(field, FIELDS)
                    .unwrap_or_else(|| format!(" (known: {})", FIELDS.join(", ")));
                return Err(SpecError::new(format!("`flower {field}` is not known{near}")));
            }
        };
    }
}

/// What is asked of `field`, one of [`FIELDS`], of packets of `version` and, if it was written, `protocol`.
fn one(
    field: &str,
    value: &str,
    version: IpVersion,
    protocol: Option<Protocol>,
) -> Result<Match, SpecError> {
    let wrong = |allowed| bad(field, value, allowed);
    match field {
        "src_ip" | "dst_ip" if version == IpVersion::V6 => Err(wrong(NO_ADDRESSES)),
        "src_ip" | "dst_ip" => {
            let at = if field == "src_ip" { Field::Src } else { Field::Dst };
            Match::prefix(at, value).ok_or_else(|| wrong("write an IPv4 address or prefix"))
        }
        "ip_proto" => {
            let allowed = match version {
                IpVersion::V4 => "write tcp, udp, sctp, icmp or a hexadecimal number up to ff",
                IpVersion::V6 => "write tcp, udp, sctp, icmpv6 or a hexadecimal number up to ff",
            };
            let number = protocol.ok_or_else(|| wrong(allowed))?;
            Ok(Match::exact(version, Field::Protocol, u32::from(number.0)))
        }
        "src_port" | "dst_port" => {
            if !protocol.is_some_and(|protocol| PORTED.contains(&protocol)) {
                return Err(wrong(
                    "ports belong to a protocol: write `ip_proto tcp` or another before it",
                ));
            }
            let at = if field == "src_port" { Field::SourcePort } else { Field::DestinationPort };
            ports(version, at, value)
                .ok_or_else(|| wrong("write PORT, PORT/MASK or a range FIRST-LAST that rises"))
        }
        _ => {
            let (tos, mask) =
                tos(value).ok_or_else(|| wrong("write TOS or TOS/MASK, hexadecimal, up to ff"))?;
            Ok(Match::masked(Some(version), Field::Tos, tos, mask))
        }
    }
}

fn bad(field: &str, value: &str, allowed: &str) -> SpecError {
    SpecError::new(format!("`flower {field} {value}`: {allowed}"))
}

fn protocol_number(text: &str, version: IpVersion) -> Option<Protocol> {
    Some(match text {
        "tcp" => Protocol::TCP,
        "udp" => Protocol::UDP,
        "sctp" => SCTP,
        "icmp" if version == IpVersion::V4 => Protocol::ICMP,
        "icmpv6" if version == IpVersion::V6 => Protocol::ICMPV6,
        _ => Protocol(byte(text)?),
    })
}

fn ports(version: IpVersion, field: Field, text: &str) -> Option<Match> {
    if let Some((first, last)) = text.split_once('-') {
        let (first, last): (u16, u16) = (first.parse().ok()?, last.parse().ok()?);
        return (first < last)
            .then(|| Match::range(version, field, u32::from(first), u32::from(last)));
    }
    let (port, mask) = masked(text, 0xffff)?;
    (port <= 0xffff && mask <= 0xffff).then(|| Match::masked(Some(version), field, port, mask))
}

fn tos(text: &str) -> Option<(u32, u32)> {
    let (value, mask) = text.split_once('/').unwrap_or((text, "ff"));
    Some((byte(value)?.into(), byte(mask)?.into()))
}

/// A byte in hexadecimal, with `0x` or without.
fn byte(digits: &str) -> Option<u8> {
    u8::from_str_radix(digits.strip_prefix("0x").unwrap_or(digits), 16).ok()
}

const SCTP: Protocol = Protocol(132);
/// Protocols whose packets have ports.
const PORTED: [Protocol; 3] = [Protocol::TCP, Protocol::UDP, SCTP];
const FIELDS: [&str; 6] = ["src_ip", "dst_ip", "ip_proto", "src_port", "dst_port", "ip_tos"];
/// Words of a filter that end `flower`'s own.
const BEHIND: [&str; 4] = ["flowid", "classid", "action", "police"];
