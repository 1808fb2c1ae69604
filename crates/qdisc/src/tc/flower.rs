//! `flower`: matches by the names of fields (tc-flower(8)), as far as packets here have them.

use weir_core::Protocol;

use super::filter::{Field, Match};
use super::skbedit::masked;
use super::{SpecError, did_you_mean};

/// Reads what stands behind `flower`, and returns the rest: what is no field of it.
pub(super) fn read<'w, 's>(words: &'w [&'s str]) -> Result<(Vec<Match>, &'w [&'s str]), SpecError> {
    let mut matches = Vec::new();
    let mut protocol = None;
    let mut words = words;
    loop {
        words = match words {
            [field @ ("src_ip" | "dst_ip"), value, rest @ ..] => {
                let at = if *field == "src_ip" { Field::Src } else { Field::Dst };
                matches.push(
                    Match::prefix(at, value)
                        .ok_or_else(|| bad(field, value, "write an IPv4 address or prefix"))?,
                );
                rest
            }
            ["ip_proto", value, rest @ ..] => {
                let number = protocol_number(value).ok_or_else(|| {
                    bad("ip_proto", value, "write tcp, udp, sctp, icmp or a number from 0 to 255")
                })?;
                protocol = Some(number);
                matches.push(Match::exact(Field::Protocol, u32::from(number.0)));
                rest
            }
            [field @ ("src_port" | "dst_port"), value, rest @ ..] => {
                if !protocol.is_some_and(|protocol: Protocol| PORTED.contains(&protocol)) {
                    return Err(bad(
                        field,
                        value,
                        "ports belong to a protocol: write `ip_proto tcp` or another before it",
                    ));
                }
                let at =
                    if *field == "src_port" { Field::SourcePort } else { Field::DestinationPort };
                matches.push(ports(at, value).ok_or_else(|| {
                    bad(field, value, "write PORT, PORT/MASK or a range FIRST-LAST that rises")
                })?);
                rest
            }
            ["ip_tos", value, rest @ ..] => {
                let (tos, mask) = tos(value).ok_or_else(|| {
                    bad("ip_tos", value, "write TOS or TOS/MASK, hexadecimal, up to ff")
                })?;
                matches.push(Match::masked(Field::Tos, tos, mask));
                rest
            }
            ["skip_hw" | "skip_sw" | "verbose", rest @ ..] => rest,
            [field, ..] if BEHIND.contains(field) => return Ok((matches, words)),
            [] => return Ok((matches, words)),
            [field, ..] => {
                let near = did_you_mean(field, FIELDS)
                    .unwrap_or_else(|| format!(" (known: {})", FIELDS.join(", ")));
                return Err(SpecError::new(format!("`flower {field}` is not known{near}")));
            }
        };
    }
}

fn bad(field: &str, value: &str, allowed: &str) -> SpecError {
    SpecError::new(format!("`flower {field} {value}`: {allowed}"))
}

fn protocol_number(text: &str) -> Option<Protocol> {
    Some(match text {
        "tcp" => Protocol::TCP,
        "udp" => Protocol::UDP,
        "sctp" => SCTP,
        "icmp" => Protocol::ICMP,
        _ => Protocol(text.parse().ok()?),
    })
}

fn ports(field: Field, text: &str) -> Option<Match> {
    if let Some((first, last)) = text.split_once('-') {
        let (first, last): (u16, u16) = (first.parse().ok()?, last.parse().ok()?);
        return (first < last).then(|| Match::range(field, u32::from(first), u32::from(last)));
    }
    let (port, mask) = masked(text, 0xffff)?;
    (port <= 0xffff && mask <= 0xffff).then(|| Match::masked(field, port, mask))
}

fn tos(text: &str) -> Option<(u32, u32)> {
    let byte = |digits: &str| {
        let digits = digits.strip_prefix("0x").unwrap_or(digits);
        u8::from_str_radix(digits, 16).ok().map(u32::from)
    };
    match text.split_once('/') {
        None => Some((byte(text)?, 0xff)),
        Some((value, mask)) => Some((byte(value)?, byte(mask)?)),
    }
}

const SCTP: Protocol = Protocol(132);
/// Protocols whose packets have ports.
const PORTED: [Protocol; 3] = [Protocol::TCP, Protocol::UDP, SCTP];
const FIELDS: [&str; 6] = ["src_ip", "dst_ip", "ip_proto", "src_port", "dst_port", "ip_tos"];
/// Words of a filter that end `flower`'s own.
const BEHIND: [&str; 6] = ["flowid", "classid", "action", "police", "prio", "pref"];
