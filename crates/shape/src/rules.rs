//! Priority rules: which class a packet belongs to, as data.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use weir_core::{Dscp, Rate, TcpFlags, TcpHeader};
use weir_linux::{CLASSES, KernelClasses, KernelRule};
use weir_packet::{Headers, Transport};
use weir_rate_control::Side;

use crate::owners::{Owner, Owners};

/// A class of traffic: the four tiers of `cake diffserv4`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "&'static str")]
pub enum Class {
    /// Traffic that nobody waits for.
    Bulk,
    /// Traffic that no other class names.
    BestEffort,
    /// Traffic that comes steadily or is waited for: streams, shells.
    Video,
    /// Traffic that must not wait: calls, games, names.
    Voice,
}

impl Class {
    /// All classes, from the least urgent to the most.
    pub const ALL: [Self; Self::COUNT] = [Self::Bulk, Self::BestEffort, Self::Video, Self::Voice];
    /// Number of classes.
    pub const COUNT: usize = 4;

    /// Name of the class in rules, and of its chain in the kernel.
    #[must_use]
    pub fn name(self) -> &'static str {
        CLASSES[self as usize]
    }

    /// A code point that disciplines know the class by (RFC 4594, sch_cake.c).
    pub(crate) fn dscp(self) -> Dscp {
        match self {
            Self::Bulk => Dscp::CS1,
            Self::BestEffort => Dscp::BE,
            Self::Video => CS3,
            Self::Voice => Dscp::EF,
        }
    }
}

impl TryFrom<String> for Class {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|class| class.name() == name);
        found.ok_or_else(|| format!("class `{name}`: write one of {}", CLASSES.join(", ")))
    }
}

impl From<Class> for &'static str {
    fn from(class: Class) -> Self {
        class.name()
    }
}

/// Rules by which packets are classified, and the greatest rates of the classes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rules {
    /// The first that matches counts; a packet that none matches keeps its code point.
    pub rules: Vec<Rule>,
    /// The greatest rates of the classes in bit/s, egress and ingress, from bulk to voice.
    #[serde(default)]
    pub caps_bps: [[Option<u64>; Class::COUNT]; 2],
    /// Whether the class' code point is written into packets, for others on their way.
    #[serde(default)]
    pub mark: bool,
}

/// Conditions of a rule: a packet must meet all of them, and of each list any one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Name of the rule, for people.
    pub name: String,
    /// Class of the packets that the rule fits.
    pub class: Class,
    /// Names of programs of this machine.
    #[serde(default)]
    pub programs: Vec<String>,
    /// Groups of processes (cgroups(7), version 2), those within them included.
    #[serde(default)]
    pub cgroups: Vec<String>,
    /// Numbers of IP protocols; any if there are none.
    #[serde(default)]
    pub protocols: Vec<u8>,
    /// Ports of either end, first and last.
    #[serde(default)]
    pub ports: Vec<(u16, u16)>,
    /// Networks in which either end is: address and length of the prefix.
    #[serde(default)]
    pub hosts: Vec<(IpAddr, u8)>,
    /// Code points that the packet carries.
    #[serde(default)]
    pub dscps: Vec<u8>,
    /// Whether a packet must be nothing but an acknowledgement of TCP.
    #[serde(default)]
    pub acks: bool,
}

impl Rules {
    /// The class of a packet, and how it is found where it depends on whose packet it is.
    pub(crate) fn class_of(
        &self,
        headers: &Headers,
        tcp: Option<&TcpHeader>,
        side: Side,
        owners: Option<&mut Owners>,
    ) -> Option<Class> {
        let mut owners = owners;
        let mut known = None;
        let mut is_owned = |rule: &Rule| {
            let owner = known.get_or_insert_with(|| {
                let key = &headers.key;
                let port = if side == Side::Egress { key.sport } else { key.dport };
                owners.as_mut()?.of(key.protocol.0, port)
            });
            owner.as_deref().is_some_and(|owner| rule.is_of(owner))
        };
        let rule = self
            .rules
            .iter()
            .find(|rule| rule.matches(headers, tcp) && (!rule.asks_owner() || is_owned(rule)))?;
        Some(rule.class)
    }

    /// Whether a rule asks whose packet it is.
    pub(crate) fn ask_owner(&self) -> bool {
        self.rules.iter().any(Rule::asks_owner)
    }

    /// Whether any class of a side has a greatest rate.
    pub(crate) fn has_caps(&self, side: Side) -> bool {
        self.caps_bps[side as usize].iter().any(Option::is_some)
    }

    /// The rules, marks and ceilings in the form that the kernel takes.
    pub(crate) fn for_kernel(&self) -> KernelClasses {
        let points = Class::ALL.map(Class::dscp);
        KernelClasses {
            rules: self.rules.iter().map(Rule::for_kernel).collect(),
            mark: self.mark.then_some(points),
            ceilings: self.caps_bps.map(|of_side| of_side.map(|cap| cap.map(Rate::from_bps))),
        }
    }

    /// The greatest rate of a class.
    pub(crate) fn cap(&self, side: Side, class: usize) -> Option<Rate> {
        self.caps_bps[side as usize][class].map(Rate::from_bps)
    }

    /// The least of the greatest rates of a side's classes, if any has one.
    pub(crate) fn least_cap(&self, side: Side) -> Option<Rate> {
        self.caps_bps[side as usize].iter().flatten().min().copied().map(Rate::from_bps)
    }
}

impl Rule {
    pub(crate) fn asks_owner(&self) -> bool {
        !self.programs.is_empty() || !self.cgroups.is_empty()
    }

    /// Whether it is about packets of `owner`, if they are all else that it says.
    pub(crate) fn is_of(&self, owner: &Owner) -> bool {
        owner.is_one_of(&self.programs) && owner.is_within(&self.cgroups)
    }

    fn for_kernel(&self) -> KernelRule {
        KernelRule {
            class: self.class as usize,
            protocols: self.protocols.clone(),
            ports: self.ports.clone(),
            hosts: self.hosts.clone(),
            dscps: self.dscps.clone(),
            acks: self.acks,
            by_owner: self.asks_owner(),
        }
    }

    /// Whether all that is said but the owner holds.
    fn matches(&self, headers: &Headers, tcp: Option<&TcpHeader>) -> bool {
        let key = &headers.key;
        let one_of = |list: &[u8], value: u8| list.is_empty() || list.contains(&value);
        one_of(&self.protocols, key.protocol.0)
            && one_of(&self.dscps, headers.dscp.get())
            && (self.ports.is_empty() || self.has_port(headers))
            && (self.hosts.is_empty()
                || self.hosts.iter().any(|&net| within(key.src, net) || within(key.dst, net)))
            && (!self.acks || tcp.is_some_and(is_ack_alone))
    }

    fn has_port(&self, headers: &Headers) -> bool {
        let has = matches!(headers.transport, Transport::Tcp | Transport::Udp);
        let [source, destination] = [headers.key.sport, headers.key.dport];
        let holds = |port: u16| self.ports.iter().any(|&(low, high)| (low..=high).contains(&port));
        has && (holds(source) || holds(destination))
    }
}

/// Whether a TCP packet is nothing but an acknowledgement: no data, no begin or end of a connection.
pub(crate) fn is_ack_alone(tcp: &TcpHeader) -> bool {
    let may_be = TcpFlags::PSH.with(TcpFlags::ECE).with(TcpFlags::CWR);
    tcp.payload == 0 && tcp.flags.without(may_be) == TcpFlags::ACK
}

fn within(address: IpAddr, (network, prefix): (IpAddr, u8)) -> bool {
    let same = |one: u128, other: u128, bits: u32| {
        let beyond = bits - u32::from(prefix).min(bits);
        one.checked_shr(beyond).unwrap_or(0) == other.checked_shr(beyond).unwrap_or(0)
    };
    match (address, network) {
        (IpAddr::V4(one), IpAddr::V4(other)) => {
            same(one.to_bits().into(), other.to_bits().into(), 32)
        }
        (IpAddr::V6(one), IpAddr::V6(other)) => same(one.to_bits(), other.to_bits(), 128),
        _ => false,
    }
}

/// Broadcast video (RFC 4594).
const CS3: Dscp = Dscp::new(24).expect("below 64");

#[cfg(test)]
mod tests {
    use super::*;
    use weir_packet::parse;

    fn rule(name: &str, class: Class) -> Rule {
        Rule {
            name: name.to_owned(),
            class,
            programs: Vec::new(),
            cgroups: Vec::new(),
            protocols: Vec::new(),
            ports: Vec::new(),
            hosts: Vec::new(),
            dscps: Vec::new(),
            acks: false,
        }
    }

    /// A packet of IPv4 from 10.0.0.1:40000 to 192.0.2.7:`port`, with a TOS byte.
    fn packet(protocol: u8, port: u16, tos: u8, flags: u8, data: usize) -> Vec<u8> {
        let header = if protocol == 6 { 20 } else { 8 };
        let total = 20 + header + data;
        let mut bytes =
            vec![0x45, tos, (total >> 8) as u8, total as u8, 0, 0, 0, 0, 64, protocol, 0, 0];
        bytes.extend([10, 0, 0, 1, 192, 0, 2, 7]);
        bytes.extend(40_000u16.to_be_bytes());
        bytes.extend(port.to_be_bytes());
        if protocol == 6 {
            bytes.extend([0, 0, 0, 1, 0, 0, 0, 1, 0x50, flags, 1, 0, 0, 0, 0, 0]);
        } else {
            bytes.extend([((8 + data) >> 8) as u8, (8 + data) as u8, 0, 0]);
        }
        bytes.resize(total, 0);
        bytes
    }

    fn class_of(rules: &Rules, bytes: &[u8]) -> Option<Class> {
        let headers = parse(bytes).unwrap();
        let tcp = headers.tcp_header(bytes);
        rules.class_of(&headers, tcp.as_ref(), Side::Egress, None)
    }

    #[test]
    fn the_first_rule_counts_of_which_everything_holds() {
        let rules = Rules {
            rules: vec![
                Rule { acks: true, ..rule("acks", Class::Voice) },
                Rule { ports: vec![(53, 53)], protocols: vec![17], ..rule("names", Class::Voice) },
                Rule { ports: vec![(6881, 6889)], ..rule("torrents", Class::Bulk) },
                Rule {
                    hosts: vec![("192.0.2.0".parse().unwrap(), 29)],
                    ports: vec![(443, 443)],
                    ..rule("studio", Class::Video)
                },
                Rule { dscps: vec![46], ..rule("marked", Class::BestEffort) },
            ],
            ..Rules::default()
        };
        let class = |protocol, port, tos, flags, data| {
            class_of(&rules, &packet(protocol, port, tos, flags, data))
        };
        assert_eq!(class(6, 443, 0, 0x10, 0), Some(Class::Voice), "an acknowledgement");
        assert_eq!(class(6, 443, 0, 0x18, 100), Some(Class::Video));
        assert_eq!(class(6, 80, 0, 0x12, 0), None, "opens a connection");
        assert_eq!(class(17, 53, 0, 0, 30), Some(Class::Voice));
        assert_eq!(class(6, 53, 0, 0x18, 30), None, "another protocol");
        assert_eq!(class(17, 6889, 0, 0, 30), Some(Class::Bulk));
        assert_eq!(class(17, 6890, 0, 0, 30), None);
        assert_eq!(class(17, 9999, 46 << 2, 0, 30), Some(Class::BestEffort));
    }

    #[test]
    fn a_rule_by_program_does_not_hold_where_nobody_is_known() {
        let programs = vec!["curl".to_owned()];
        let rules = Rules {
            rules: vec![Rule { programs, ..rule("curl", Class::Bulk) }],
            ..Rules::default()
        };
        assert!(rules.ask_owner());
        assert_eq!(class_of(&rules, &packet(6, 443, 0, 0x18, 10)), None);
    }

    #[test]
    fn networks_hold_what_begins_as_they_do() {
        let net = |text: &str, prefix| (text.parse::<IpAddr>().unwrap(), prefix);
        let is = |text: &str, of| within(text.parse().unwrap(), of);
        assert!(is("10.1.2.3", net("10.1.0.0", 16)) && !is("10.2.2.3", net("10.1.0.0", 16)));
        assert!(is("10.1.2.3", net("0.0.0.0", 0)) && !is("::1", net("0.0.0.0", 0)));
        assert!(is("fd00::1", net("fd00::", 8)) && !is("fe80::1", net("fd00::", 8)));
        assert!(is("fd00::1", net("fd00::1", 128)) && !is("fd00::2", net("fd00::1", 128)));
    }

    #[test]
    fn classes_have_the_code_points_of_cakes_tiers() {
        assert_eq!(Class::ALL.map(|class| class.dscp().get()), [8, 0, 24, 46]);
    }

    #[test]
    fn a_class_is_read_and_written_by_its_name() {
        let text = r#"["bulk","best-effort","video","voice"]"#;
        let classes: Vec<Class> = serde_json::from_str(text).unwrap();
        assert_eq!(classes, Class::ALL);
        assert_eq!(serde_json::to_string(&classes).unwrap(), text);
        let refusal = serde_json::from_str::<Class>(r#""fast""#).unwrap_err().to_string();
        assert_eq!(refusal, "class `fast`: write one of bulk, best-effort, video, voice");
    }
}
