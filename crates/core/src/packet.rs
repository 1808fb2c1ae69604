//! Packets as a queue sees them: a small descriptor, never the bytes themselves.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

use crate::Time;

/// Bytes of Ethernet header that Linux counts into a queued packet's length.
pub const ETHERNET_HEADER: u32 = 14;

/// One IP packet on its way through queues and links.
///
/// Simulator and live data path use this descriptor; `handle` leads its owner
/// to the TCP segment or to the bytes.
///
/// It is copied 16 bytes at a time, and a processor waits where such a load needs what several narrower stores have just
/// written. So what is the same for all packets of a flow comes first, in 32 bytes, then what is written for each, and
/// what each queue writes is a word at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Packet {
    /// Flow label: the hash and the parts of the 5-tuple that queues classify by.
    pub label: FlowLabel,
    /// The number of the flow or probe to which the packet belongs; opaque to queues and links.
    pub flow_id: u32,
    /// The packet store's reference to the payload; opaque to queues and links.
    pub handle: u64,
    /// Bytes as Linux counts them in a queue (`qdisc_pkt_len`): IP length plus [`ETHERNET_HEADER`].
    /// What a packet occupies on the line is up to the link's framing.
    pub len: u32,
    /// Differentiated services code point.
    pub dscp: Dscp,
    /// Explicit congestion notification.
    pub ecn: Ecn,
    /// When the packet entered the queue in which it waits (the start of its sojourn).
    pub enqueued_at: Time,
}

impl Packet {
    /// A packet of nothing, to be written over.
    pub const BLANK: Self = Self {
        label: FlowLabel {
            src: 0,
            dst: 0,
            hash: 0,
            sport: 0,
            dport: 0,
            protocol: Protocol(0),
            ip_version: IpVersion::V4,
            priority: None,
            mark: 0,
        },
        flow_id: 0,
        handle: 0,
        len: 0,
        dscp: Dscp::BE,
        ecn: Ecn::NotEct,
        enqueued_at: Time::ZERO,
    };

    /// The length of the IP packet in bytes.
    #[must_use]
    pub const fn ip_len(&self) -> u32 {
        self.len.saturating_sub(ETHERNET_HEADER)
    }

    /// The byte of the IP header that carries DSCP and ECN (`tos` in `tc`).
    #[must_use]
    pub const fn tos(&self) -> u8 {
        self.dscp.get() << 2 | self.ecn.bits()
    }
}

/// The ECN field of an IP header (RFC 3168, section 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Ecn {
    /// The sender does not speak ECN: a congested queue drops.
    #[default]
    NotEct = 0b00,
    /// ECN-capable, ECT(1): with L4S, the scalable kind (RFC 9331).
    Ect1 = 0b01,
    /// ECN-capable, ECT(0).
    Ect0 = 0b10,
    /// Congestion experienced.
    Ce = 0b11,
}

impl Ecn {
    /// The two bits of the header.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self as u8
    }

    /// The meaning of the two lowest bits of `tos`.
    #[must_use]
    pub const fn from_tos(tos: u8) -> Self {
        match tos & 0b11 {
            0b00 => Self::NotEct,
            0b01 => Self::Ect1,
            0b10 => Self::Ect0,
            _ => Self::Ce,
        }
    }

    /// Whether a queue may mark this packet instead of dropping it. A packet that carries the mark
    /// already counts as marked again, as in Linux.
    #[must_use]
    pub const fn can_mark(self) -> bool {
        !matches!(self, Self::NotEct)
    }
}

/// A differentiated services code point, 0 to 63 (RFC 2474).
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Dscp(u8);

impl Dscp {
    /// The names of code points, with their values. A value may have several, of which the first is printed.
    pub const NAMED: &[(&str, u8)] = &DSCP_NAMES;
    /// Default forwarding, "best effort".
    pub const BE: Self = Self(0);
    /// Class selector 1, "background" in the RRUL test.
    pub const CS1: Self = Self(8);
    /// Class selector 5.
    pub const CS5: Self = Self(40);
    /// Expedited forwarding (RFC 3246).
    pub const EF: Self = Self(46);

    /// The code point of value `dscp`, or `None` above 63.
    #[must_use]
    pub const fn new(dscp: u8) -> Option<Self> {
        if dscp < 64 { Some(Self(dscp)) } else { None }
    }

    /// The six highest bits of a `tos` byte.
    #[must_use]
    pub const fn from_tos(tos: u8) -> Self {
        Self(tos >> 2)
    }

    /// The value, 0 to 63.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }

    /// The name, if it has one.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        DSCP_NAMES.iter().find(|(_, value)| *value == self.0).map(|&(name, _)| name)
    }

    /// The code point of that name (`EF`, `CS1`, `AF41`, `LE`, `BE`, `BK`) or number, any case.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let name = text.to_ascii_uppercase();
        DSCP_NAMES
            .iter()
            .find(|(known, _)| *known == name)
            .map(|&(_, value)| Self(value))
            .or_else(|| name.parse().ok().and_then(Self::new))
    }
}

impl fmt::Display for Dscp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "{}", self.0),
        }
    }
}

impl fmt::Debug for Dscp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// An IP protocol number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Protocol(pub u8);

impl Protocol {
    /// ICMP, 1.
    pub const ICMP: Self = Self(1);
    /// TCP, 6.
    pub const TCP: Self = Self(6);
    /// UDP, 17.
    pub const UDP: Self = Self(17);
    /// ICMPv6, 58.
    pub const ICMPV6: Self = Self(58);
}

/// The version of the internet protocol.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub enum IpVersion {
    /// IPv4, header 20 bytes.
    #[serde(rename = "4")]
    #[default]
    V4,
    /// IPv6, header 40 bytes.
    #[serde(rename = "6")]
    V6,
}

impl IpVersion {
    /// That of an address.
    #[must_use]
    pub const fn of(address: IpAddr) -> Self {
        if address.is_ipv4() { Self::V4 } else { Self::V6 }
    }

    /// Bytes of an IP header.
    #[must_use]
    pub const fn header_bytes(self) -> u32 {
        match self {
            Self::V4 => 20,
            Self::V6 => 40,
        }
    }

    /// The longest IP packet in which a router tells of an error (RFC 1812, section 4.3.2.3; RFC 4443,
    /// section 2.4).
    #[must_use]
    pub const fn longest_error(self) -> u32 {
        match self {
            Self::V4 => 576,
            Self::V6 => 1280,
        }
    }
}

/// The 5-tuple of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowKey {
    /// Source address.
    pub src: IpAddr,
    /// Destination address.
    pub dst: IpAddr,
    /// Source port; of an ICMP echo its identifier; 0 where there is neither.
    pub sport: u16,
    /// Destination port, likewise.
    pub dport: u16,
    /// IP protocol.
    pub protocol: Protocol,
}

impl FlowKey {
    /// The key of the flow's opposite direction: source and destination exchanged.
    #[must_use]
    pub const fn reversed(self) -> Self {
        Self { src: self.dst, dst: self.src, sport: self.dport, dport: self.sport, ..self }
    }

    /// Flow label that packets of this flow carry. `hash_key` plays the part of the kernel's random key of
    /// `skb_get_hash`: one key a run. As there, the identifier of an echo does not count: all pings
    /// between two hosts are one flow to a queue (`flow_keys_dissector_keys`, net/core/flow_dissector.c).
    #[must_use]
    pub fn label(&self, hash_key: u64) -> FlowLabel {
        let (sport, dport) = match self.protocol {
            Protocol::ICMP | Protocol::ICMPV6 => (0, 0),
            _ => (self.sport, self.dport),
        };
        let mut state = mix(hash_key ^ 0x9e37_79b9_7f4a_7c15);
        for word in [
            address_words(self.src),
            address_words(self.dst),
            [u64::from(sport) << 32 | u64::from(dport) << 16, u64::from(self.protocol.0)],
        ]
        .into_iter()
        .flatten()
        {
            state = mix(state ^ word);
        }
        FlowLabel {
            src: address_id(self.src),
            dst: address_id(self.dst),
            hash: (state >> 32) as u32,
            sport,
            dport,
            protocol: self.protocol,
            ip_version: IpVersion::of(self.src),
            priority: None,
            mark: 0,
        }
    }
}

/// Flow label of a packet: the part of the 5-tuple that tells flows and hosts apart, and what `tc`
/// filters wrote on it, in 28 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlowLabel {
    /// Source host: the IPv4 address, or 32 bits folded from the IPv6 address.
    pub src: u32,
    /// Destination host, likewise.
    pub dst: u32,
    /// Keyed hash of the whole 5-tuple, as the kernel's `skb_get_hash`.
    pub hash: u32,
    /// Source port.
    pub sport: u16,
    /// Destination port.
    pub dport: u16,
    /// IP protocol.
    pub protocol: Protocol,
    /// Version of the internet protocol.
    pub ip_version: IpVersion,
    /// The priority that a filter wrote (`skb->priority`); the code point says it otherwise.
    pub priority: Option<Priority>,
    /// The mark that a filter wrote (`skb->mark`); 0 where none did.
    pub mark: u32,
}

/// A packet's priority as Linux has it: a small number, or the class of a queue discipline as
/// `major << 16 | minor`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(NonZeroU32);

impl Priority {
    /// The priority `number`, or `None` for `0xffff_ffff`, which is no class (`TC_H_ROOT`).
    #[must_use]
    pub const fn new(number: u32) -> Option<Self> {
        // The complement leaves room for absence in four bytes.
        match NonZeroU32::new(!number) {
            Some(complement) => Some(Self(complement)),
            None => None,
        }
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u32 {
        !self.0.get()
    }
}

impl fmt::Debug for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.get())
    }
}

impl FlowLabel {
    /// The hash under another key, as the kernel's `skb_get_hash_perturb`: flows that met in one queue
    /// under one key part under the next.
    #[must_use]
    pub const fn rehashed(&self, key: u64) -> u32 {
        (mix(self.hash as u64 ^ mix(key)) >> 32) as u32
    }
}

fn address_words(address: IpAddr) -> [u64; 2] {
    match address {
        IpAddr::V4(v4) => [0, u64::from(u32::from(v4))],
        IpAddr::V6(v6) => [(u128::from(v6) >> 64) as u64, u128::from(v6) as u64],
    }
}

fn address_id(address: IpAddr) -> u32 {
    match address {
        IpAddr::V4(v4) => Ipv4Addr::into(v4),
        IpAddr::V6(v6) => (mix(v6_fold(v6)) >> 32) as u32,
    }
}

fn v6_fold(v6: Ipv6Addr) -> u64 {
    let bits = u128::from(v6);
    mix((bits >> 64) as u64) ^ bits as u64
}

/// A 64-bit finaliser (SplitMix64; Steele, Lea, Flood, OOPSLA 2014): every input bit reaches every
/// output bit.
const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Names of code points: RFC 2474 (CS), RFC 2597 (AF), RFC 3246 (EF), RFC 5865 (VA), RFC 8622 (LE),
/// and the two short names of the RRUL test. The first name of a value is the one that is printed.
const DSCP_NAMES: [(&str, u8); 26] = [
    ("BE", 0),
    ("CS0", 0),
    ("LE", 1),
    ("CS1", 8),
    ("BK", 8),
    ("AF11", 10),
    ("AF12", 12),
    ("AF13", 14),
    ("CS2", 16),
    ("AF21", 18),
    ("AF22", 20),
    ("AF23", 22),
    ("CS3", 24),
    ("AF31", 26),
    ("AF32", 28),
    ("AF33", 30),
    ("CS4", 32),
    ("AF41", 34),
    ("AF42", 36),
    ("AF43", 38),
    ("CS5", 40),
    ("VA", 44),
    ("EF", 46),
    ("CS6", 48),
    ("CS7", 56),
    ("DF", 0),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn key(dport: u16) -> FlowKey {
        FlowKey {
            src: "10.0.0.1".parse().unwrap(),
            dst: "10.0.1.1".parse().unwrap(),
            sport: 10_000,
            dport,
            protocol: Protocol::UDP,
        }
    }

    #[test]
    fn the_descriptor_stays_small() {
        assert!(size_of::<Packet>() <= 56, "{}", size_of::<Packet>());
        assert!(size_of::<FlowLabel>() <= 28, "{}", size_of::<FlowLabel>());
    }

    #[test]
    fn dscp_names_and_numbers_parse() {
        assert_eq!(Dscp::parse("ef"), Some(Dscp::EF));
        assert_eq!(Dscp::parse("BK"), Some(Dscp::CS1));
        assert_eq!(Dscp::parse("46").unwrap().to_string(), "EF");
        assert_eq!(Dscp::parse("64"), None);
        assert_eq!(Dscp::parse("fast"), None);
    }

    #[test]
    fn labels_tell_flows_apart_and_keys_reshuffle_them() {
        let one = key(5_000).label(1);
        assert_eq!(one, key(5_000).label(1));
        assert_ne!(one.hash, key(5_001).label(1).hash);
        assert_ne!(one.hash, key(5_000).label(2).hash);
        assert_ne!(one.hash, key(5_000).reversed().label(1).hash);
        assert_eq!(one.src, 0x0a00_0001);
        assert_eq!(one.rehashed(3), one.rehashed(3));
        assert_ne!(one.rehashed(3), one.rehashed(4));
        assert_ne!(one.rehashed(3), key(5_001).label(1).rehashed(3));
    }

    #[test]
    fn echoes_of_two_hosts_are_one_flow() {
        let echo = |id| FlowKey { sport: id, dport: id, protocol: Protocol::ICMP, ..key(0) };
        assert_eq!(echo(1).label(1), echo(2).label(1));
        assert_ne!(echo(1), echo(2));
    }

    #[test]
    fn tos_joins_dscp_and_ecn() {
        let packet = Packet {
            handle: 0,
            enqueued_at: Time::ZERO,
            label: FlowLabel::default(),
            len: 1514,
            flow_id: 0,
            dscp: Dscp::EF,
            ecn: Ecn::Ect0,
        };
        assert_eq!(packet.tos(), 0xba);
        assert_eq!(Ecn::from_tos(0xba), Ecn::Ect0);
        assert_eq!(packet.ip_len(), 1500);
    }
}
