//! Filters of the kind `u32`: include/uapi/linux/pkt_cls.h, in the words that `tc` uses.

use weir_qdisc::{Filter, MatchField};

use super::options::TCA_OPTIONS;
use super::put_kind;
use crate::message::{About, CREATE, Message};

/// Four bytes of a packet, counted from the IP header on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    pub at: u32,
    pub mask: u32,
    pub value: u32,
}

impl Key {
    pub const fn word(at: u32, value: u32) -> Self {
        Self { at, mask: u32::MAX, value }
    }

    pub const fn byte(at: u32, value: u8) -> Self {
        Self { at, mask: 0xff << 24, value: (value as u32) << 24 }
    }

    pub const fn any(self) -> Self {
        Self { mask: 0, ..self }
    }
}

/// Protocols that a filter may be of: `ETH_P_IP` and `ETH_P_IPV6`.
pub(crate) const PROTOCOLS: [u16; 2] = [0x0800, 0x86dd];

/// The keys by which `filter` is told a kernel, of [`PROTOCOLS`]; `None` for one that no packet of a protocol matches.
///
/// # Errors
/// What it asks for and no kernel is told of.
pub(super) fn keys(filter: &Filter) -> Result<[Option<Vec<Key>>; 2], String> {
    let mut keys = PROTOCOLS.map(|_| Some(vec![Key::word(0, 0).any()]));
    for one in &filter.matches {
        let Some((field, value, mask)) = one.masked_field() else {
            return Err("a range in a filter".to_owned());
        };
        let ([ipv4, ipv6], bits) = match field {
            MatchField::Mark => return Err("marks of packets in a filter".to_owned()),
            MatchField::Src => ([Some((12, 0)), None], 32),
            MatchField::Dst => ([Some((16, 0)), None], 32),
            MatchField::Tos => ([Some((0, 16)), Some((0, 20))], 8),
            MatchField::Protocol => ([Some((8, 16)), Some((4, 8))], 8),
            MatchField::SourcePort => ([Some((20, 16)), Some((40, 16))], 16),
            MatchField::DestinationPort => ([Some((20, 0)), Some((40, 0))], 16),
        };
        let most = u32::MAX >> (32 - bits);
        let can_hold = value & mask & !most == 0;
        for (place, of) in [ipv4, ipv6].into_iter().zip(&mut keys) {
            let place = place.filter(|_| can_hold);
            let key = place.map(|(at, shift)| Key {
                at,
                mask: (mask & most) << shift,
                value: (value & mask & most) << shift,
            });
            match (of.as_mut(), key) {
                (Some(list), Some(key)) => list.push(key),
                _ => *of = None,
            }
        }
    }
    Ok(keys)
}

/// Request for a filter that puts packets which match all of `keys` into a class.
pub(crate) fn classify(about: About, kind: (u16, u16), keys: &[Key], class: u32) -> Vec<u8> {
    let mut message = new_filter(about, kind, "u32");
    message.nest(TCA_OPTIONS, |options| {
        options.put_u32(TCA_U32_CLASSID, class);
        options.put(TCA_U32_SEL, &selector(keys));
    });
    message.finish()
}

/// `struct tc_u32_sel`: all keys must match, and then the filter has found it.
pub(crate) fn selector(keys: &[Key]) -> Vec<u8> {
    let mut bytes = vec![TC_U32_TERMINAL, 0, keys.len() as u8, 0];
    bytes.extend([0; 12]);
    for key in keys {
        bytes.extend(key.mask.to_be_bytes());
        bytes.extend(key.value.to_be_bytes());
        bytes.extend(key.at.to_ne_bytes());
        bytes.extend([0; 4]);
    }
    bytes
}

/// A filter called `name` of that preference and protocol, without options yet.
pub(crate) fn new_filter(about: About, kind: (u16, u16), name: &str) -> Message {
    let mut message = filter(RTM_NEWTFILTER, CREATE, about, kind);
    put_kind(&mut message, name);
    message
}

/// A request about the filters of that preference and protocol.
pub(crate) fn filter(
    request: u16,
    flags: u16,
    about: About,
    (preference, protocol): (u16, u16),
) -> Message {
    let info = u32::from(preference) << 16 | u32::from(protocol.to_be());
    Message::about_filter(request, flags, about, info)
}

// include/uapi/linux/rtnetlink.h, pkt_cls.h
const RTM_NEWTFILTER: u16 = 44;
const TCA_U32_CLASSID: u16 = 1;
pub(crate) const TCA_U32_SEL: u16 = 5;
const TC_U32_TERMINAL: u8 = 1;

#[cfg(test)]
mod tests {
    use weir_qdisc::QueueSpec;

    use super::*;

    fn of(words: &str) -> Result<[Option<Vec<Key>>; 2], String> {
        let text = format!(
            "qdisc add dev eth0 root handle 1: htb default 1\n\
             class add dev eth0 parent 1: classid 1:1 htb rate 1mbit\n\
             filter add dev eth0 parent 1: {words} flowid 1:1\n"
        );
        keys(&QueueSpec::parse(&text).unwrap().filters[0])
    }

    /// The keys but for the one that all packets match: where, mask, value.
    fn told(words: &str) -> [Option<Vec<(u32, u32, u32)>>; 2] {
        of(words).unwrap().map(|keys| {
            keys.map(|keys| keys[1..].iter().map(|key| (key.at, key.mask, key.value)).collect())
        })
    }

    // As `tc -d filter show` of iproute2 6.1 prints the same words.
    #[test]
    fn what_a_filter_asks_is_asked_of_both_protocols() {
        assert_eq!(
            told("protocol ip prio 1 u32 match ip tos 0xb8 0xfc"),
            [Some(vec![(0, 0x00fc_0000, 0x00b8_0000)]), Some(vec![(0, 0x0fc0_0000, 0x0b80_0000)])]
        );
        assert_eq!(
            told("u32 match ip protocol 17 0xff match ip dport 53 0xffff"),
            [
                Some(vec![(8, 0x00ff_0000, 0x0011_0000), (20, 0xffff, 53)]),
                Some(vec![(4, 0xff00, 0x1100), (40, 0xffff, 53)])
            ]
        );
        assert_eq!(
            told("u32 match ip src 10.0.0.0/8 match ip sport 80 0xffff"),
            [Some(vec![(12, 0xff00_0000, 0x0a00_0000), (20, 0xffff_0000, 0x0050_0000)]), None]
        );
        assert_eq!(told("matchall"), [Some(vec![]), Some(vec![])]);
        assert_eq!(told("u32 match ip tos 0x1b8 0xfff"), [None, None], "no byte is that large");
    }

    #[test]
    fn what_no_kernel_is_told_of_is_named() {
        assert_eq!(of("handle 1 fw").unwrap_err(), "marks of packets in a filter");
        assert_eq!(of("flower ip_proto tcp dst_port 80-90").unwrap_err(), "a range in a filter");
    }
}
