//! Filters of the kind `u32`: include/uapi/linux/pkt_cls.h, in the words that `tc` uses.

use weir_core::IpVersion;
use weir_qdisc::{Filter, Match, MatchField};

use super::rtnetlink::{TCA_OPTIONS, put_kind};
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

/// The protocol of the packets that `filter` is asked about (include/uapi/linux/if_ether.h).
pub(super) const fn protocol(filter: &Filter) -> u16 {
    match filter.protocol {
        None => ETH_P_ALL,
        Some(IpVersion::V4) => ETH_P_IP,
        Some(IpVersion::V6) => ETH_P_IPV6,
    }
}

/// The keys by which `filter` is told a kernel, behind one that all packets match.
///
/// # Errors
/// What it asks for and no kernel is told of.
pub(super) fn keys(filter: &Filter) -> Result<Vec<Key>, String> {
    let mut keys = vec![Key::word(0, 0).any()];
    for one in &filter.matches {
        keys.push(key(one)?);
    }
    Ok(keys)
}

fn key(one: &Match) -> Result<Key, String> {
    let Some((field, value, mask)) = one.masked_field() else {
        return Err("a range in a filter".to_owned());
    };
    let Some(header) = one.header() else {
        return Err("marks of packets in a filter".to_owned());
    };
    let of_ipv6 = header == IpVersion::V6;
    let (at, shift, bits) = match field {
        MatchField::Mark => return Err("marks of packets in a filter".to_owned()),
        MatchField::Src => (12, 0, 32),
        MatchField::Dst => (16, 0, 32),
        MatchField::Tos if of_ipv6 => (0, 20, 8),
        MatchField::Tos => (0, 16, 8),
        MatchField::Protocol if of_ipv6 => (4, 8, 8),
        MatchField::Protocol => (8, 16, 8),
        MatchField::SourcePort => (if of_ipv6 { 40 } else { 20 }, 16, 16),
        MatchField::DestinationPort => (if of_ipv6 { 40 } else { 20 }, 0, 16),
    };
    let mask = mask & u32::MAX >> (32 - bits);
    Ok(Key { at, mask: mask << shift, value: (value & mask) << shift })
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

// include/uapi/linux/rtnetlink.h, pkt_cls.h, if_ether.h
const ETH_P_ALL: u16 = 0x0003;
const ETH_P_IP: u16 = 0x0800;
const ETH_P_IPV6: u16 = 0x86dd;
const RTM_NEWTFILTER: u16 = 44;
const TCA_U32_CLASSID: u16 = 1;
pub(crate) const TCA_U32_SEL: u16 = 5;
const TC_U32_TERMINAL: u8 = 1;

#[cfg(test)]
mod tests {
    use weir_qdisc::QueueSpec;

    use super::*;

    fn of(words: &str) -> Filter {
        let text = format!(
            "qdisc add dev eth0 root handle 1: htb default 1\n\
             class add dev eth0 parent 1: classid 1:1 htb rate 1mbit\n\
             filter add dev eth0 parent 1: {words} flowid 1:1\n"
        );
        QueueSpec::parse(&text).unwrap().filters[0].clone()
    }

    /// The protocol, and the keys but for the one that all packets match: where, mask, value.
    fn told(words: &str) -> (u16, Vec<(u32, u32, u32)>) {
        let filter = of(words);
        let keys = keys(&filter).unwrap();
        let keys = keys[1..].iter().map(|key| (key.at, key.mask, key.value)).collect();
        (protocol(&filter), keys)
    }

    // As `tc -d filter show` of iproute2 6.1 prints the same words.
    #[test]
    fn the_kernel_is_told_what_was_written() {
        assert_eq!(
            told("protocol ip prio 1 u32 match ip tos 0xb8 0xfc"),
            (0x0800, vec![(0, 0x00fc_0000, 0x00b8_0000)])
        );
        assert_eq!(
            told("protocol ipv6 u32 match ip6 priority 0xb8 0xfc"),
            (0x86dd, vec![(0, 0x0fc0_0000, 0x0b80_0000)])
        );
        assert_eq!(
            told("u32 match ip protocol 17 0xff match ip dport 53 0xffff"),
            (0x0003, vec![(8, 0x00ff_0000, 0x0011_0000), (20, 0xffff, 53)])
        );
        assert_eq!(
            told("protocol ipv6 flower ip_proto udp src_port 53"),
            (0x86dd, vec![(4, 0xff00, 0x1100), (40, 0xffff_0000, 0x0035_0000)])
        );
        assert_eq!(
            told("protocol ip u32 match ip src 10.0.0.0/8 match ip sport 80 0xffff"),
            (0x0800, vec![(12, 0xff00_0000, 0x0a00_0000), (20, 0xffff_0000, 0x0050_0000)])
        );
        assert_eq!(told("matchall"), (0x0003, vec![]));
    }

    #[test]
    fn what_no_kernel_is_told_of_is_named() {
        let refusal = |words| keys(&of(words)).unwrap_err();
        assert_eq!(refusal("handle 1 fw"), "marks of packets in a filter");
        let range = "protocol ip flower ip_proto tcp dst_port 80-90";
        assert_eq!(refusal(range), "a range in a filter");
    }
}
