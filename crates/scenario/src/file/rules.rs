//! Declaration of the files of a shaper's priority rules.

use std::net::IpAddr;

use crate::file::field::{Definitions, Field, Form, Reader, choice, spec, word_field};
use crate::file::plain::ByName;
use crate::file::quantity::DscpValue;
use crate::file::shape::{ShapedRate, port_number};
use crate::file::written::{Value, Written, table};

spec! {
    /// Priority rules of a shaper.
    RulesSpec {
        /// The rules, of which the first that holds counts.
        rule: Vec<RuleSpec> = Vec::new(),
        /// Greatest rates of classes.
        class: Caps = Caps(Vec::new()),
        /// Whether the class' code point is written into packets.
        mark: bool = false,
    }
}

spec! {
    /// A rule: a packet of which all that is said holds is of that class; of a list, any.
    RuleSpec {
        /// Name for people.
        name: String,
        /// Class of such packets.
        class: ClassWord,
        /// Names of programs of this machine.
        program: Vec<String> = Vec::new(),
        /// Groups of processes, those within them included.
        cgroup: Vec<String> = Vec::new(),
        /// Protocols: `tcp`, `udp`, `icmp`, `icmpv6` or a number.
        protocol: Vec<ProtocolNumber> = Vec::new(),
        /// Ports of either end: a number, or `FIRST-LAST`.
        port: Vec<PortRange> = Vec::new(),
        /// Addresses or networks in which either end is.
        host: Vec<Network> = Vec::new(),
        /// Code points that the packet carries: a name or a number.
        dscp: Vec<DscpValue> = Vec::new(),
        /// Nothing but an acknowledgement of TCP.
        acks: bool = false,
        /// Where the numbers are from.
        source: String = String::new(),
    }
    check |rule| rule.check();
}

spec! {
    /// Greatest rates of a class.
    CapSpec {
        /// Greatest rate out of the device, such as `2mbit`.
        up_max: Option<ShapedRate>,
        /// Greatest rate into the device, such as `2mbit`.
        down_max: Option<ShapedRate>,
    }
}

choice! {
    /// A class of traffic, from the least urgent to the most.
    ClassWord {
        /// Traffic that nobody waits for.
        Bulk = "bulk",
        /// Traffic that no other class names.
        BestEffort = "best-effort",
        /// Traffic that comes steadily or is waited for.
        Video = "video",
        /// Traffic that must not wait.
        Voice = "voice",
    }
}

impl RuleSpec {
    /// Refuses a rule that holds for every packet, or for none.
    fn check(&self) -> Result<(), String> {
        let said = [
            self.program.is_empty(),
            self.cgroup.is_empty(),
            self.protocol.is_empty(),
            self.port.is_empty(),
            self.host.is_empty(),
            self.dscp.is_empty(),
            !self.acks,
        ];
        if said.iter().all(|nothing| *nothing) {
            return Err(
                "it holds for every packet: write at least one of program, cgroup, protocol, port, host, dscp, acks"
                    .to_owned(),
            );
        }
        self.program.iter().try_for_each(|program| check_program(program))?;
        self.cgroup.iter().try_for_each(|group| check_cgroup(group))?;
        self.check_hosts()?;
        self.check_protocol()
    }

    /// Refuses hosts between which none of the protocols goes.
    fn check_hosts(&self) -> Result<(), String> {
        let goes = |protocol: &ProtocolNumber, host: &Network| match protocol.0 {
            ICMP => host.0.is_ipv4(),
            ICMPV6 => host.0.is_ipv6(),
            _ => true,
        };
        let fits = self.protocol.iter().any(|one| self.host.iter().any(|host| goes(one, host)));
        if self.protocol.is_empty() || self.host.is_empty() || fits {
            return Ok(());
        }
        Err("it holds for no packet, since `icmp` goes between addresses of IPv4, `icmpv6` between those of IPv6, and `host` \
             has only others: write the protocol of the hosts"
            .to_owned())
    }

    /// Refuses conditions that no packet of the protocols meets.
    fn check_protocol(&self) -> Result<(), String> {
        let has = |numbers: &[u8]| {
            self.protocol.is_empty() || self.protocol.iter().any(|one| numbers.contains(&one.0))
        };
        let owner = [(&self.program, "program"), (&self.cgroup, "cgroup")];
        let asked = owner.into_iter().find(|(list, _)| !list.is_empty()).map(|(_, name)| name);
        match if self.port.is_empty() { asked } else { Some("port") } {
            Some(by) if !has(&[TCP, UDP]) => Err(format!(
                "it holds for no packet, since only those of tcp and udp have ports, by which `{by}` goes: add one of \
                 these to `protocol`, or leave out `{by}`"
            )),
            _ if self.acks && !has(&[TCP]) => Err(
                "it holds for no packet, since only tcp has the acknowledgements of `acks`: add it to `protocol`, or \
                 leave out `acks`"
                    .to_owned(),
            ),
            _ => Ok(()),
        }
    }
}

/// Number of an IP protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProtocolNumber(pub u8);

word_field!(
    ProtocolNumber,
    &["string", "integer"],
    |written| {
        let named = |text: &String| PROTOCOLS.iter().find(|(name, _)| name == text);
        match &written.value {
            Value::Text(text) if named(text).is_some() => {
                Ok(Self(named(text).map_or(0, |(_, number)| *number)))
            }
            Value::Whole(number @ 0..=255) => Ok(Self(*number as u8)),
            _ => {
                let names = PROTOCOLS.map(|(name, _)| name).join(", ");
                Err(format!("{}: write one of {names}, or a number from 0 to 255", written.shown()))
            }
        }
    },
    |protocol| u64::from(protocol.0).into()
);

/// Ports from the first to the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortRange(pub u16, pub u16);

word_field!(
    PortRange,
    &["string", "integer"],
    |written| {
        let plain = written.plain();
        let (first, last) = match &written.value {
            Value::Text(text) => text.split_once('-').unwrap_or((text, text)),
            _ => (plain.as_str(), plain.as_str()),
        };
        match (port_number(first), port_number(last)) {
            (Some(first), Some(last)) if first <= last => Ok(Self(first, last)),
            _ => {
                Err(format!("{}: write a number from 1 to 65535, or `FIRST-LAST`", written.shown()))
            }
        }
    },
    |ports| format!("{}-{}", ports.0, ports.1).into()
);

/// A network: its first address and the length of its prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network(pub IpAddr, pub u8);

word_field!(
    Network,
    &["string"],
    |written| {
        let wrong = || {
            format!("{}: write an address, or a network such as `192.0.2.0/24`", written.shown())
        };
        let Value::Text(text) = &written.value else { return Err(wrong()) };
        network(text).ok_or_else(wrong)
    },
    |network| format!("{}/{}", network.0, network.1).into()
);

fn network(text: &str) -> Option<Network> {
    let (address, prefix) = match text.split_once('/') {
        Some((address, prefix)) => (address, Some(prefix)),
        None => (text, None),
    };
    let address: IpAddr = address.parse().ok()?;
    let bits: u8 = if address.is_ipv4() { 32 } else { 128 };
    let prefix = match prefix {
        Some(digits) if digits.len() <= 3 && digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            digits.parse().ok()?
        }
        Some(_) => return None,
        None => bits,
    };
    let host_bits = u32::from(bits.checked_sub(prefix)?);
    let first = match address {
        IpAddr::V4(v4) => {
            IpAddr::V4((v4.to_bits() & u32::MAX.checked_shl(host_bits).unwrap_or(0)).into())
        }
        IpAddr::V6(v6) => {
            IpAddr::V6((v6.to_bits() & u128::MAX.checked_shl(host_bits).unwrap_or(0)).into())
        }
    };
    Some(Network(first, prefix))
}

/// Greatest rates by class.
#[derive(Clone, Debug, PartialEq)]
pub struct Caps(pub Vec<(ClassWord, CapSpec)>);

impl Field for Caps {
    fn read(written: &Written, reader: &mut Reader) -> Option<Self> {
        let before = reader.count();
        let ByName(named) = ByName::<CapSpec>::read(written, reader)?;
        let mut found = Vec::new();
        for (name, cap) in named {
            let line = written.step(&name).and_then(|at| at.line);
            let word = Written::from(name.as_str());
            if let Some(class) = reader.at(name, line, |reader| ClassWord::read(&word, reader)) {
                found.push((class, cap));
            }
        }
        (reader.count() == before).then_some(Self(found))
    }

    fn write(&self, form: Form) -> Written {
        table(self.0.iter().map(|(class, cap)| (class.word(), cap.write(form))))
    }

    fn schema(definitions: &mut Definitions) -> Written {
        table([
            ("type", "object".into()),
            ("propertyNames", ClassWord::schema(definitions)),
            ("additionalProperties", CapSpec::schema(definitions)),
        ])
    }
}

/// Refuses what no process is called.
fn check_program(program: &str) -> Result<(), String> {
    match program.rsplit('/').find(|name| !name.is_empty()) {
        Some(name) if program.contains('/') => {
            Err(format!("program `{program}`: names are compared, and no paths: write `{name}`"))
        }
        Some(name) if name.trim() == name => Ok(()),
        _ => {
            Err(format!("program `{program}`: write the name of a program, without blanks around"))
        }
    }
}

/// Refuses a group that is named by its folder, or that all processes are in.
fn check_cgroup(group: &str) -> Result<(), String> {
    let below = |hierarchy: &str| {
        group.strip_prefix(hierarchy).filter(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let within = CGROUPS.iter().find_map(|hierarchy| below(hierarchy));
    let name = within.unwrap_or(group).trim_matches('/');
    if name.is_empty() {
        return Err(format!("cgroup `{group}`: all processes are within it: leave it out"));
    }
    match within {
        Some(_) => Err(format!("cgroup `{group}`: write the group within the hierarchy, `{name}`")),
        None => Ok(()),
    }
}

/// Numbers of the protocols whose packets have ports for rules (IANA).
const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMP: u8 = 1;
const ICMPV6: u8 = 58;

/// Where the hierarchy of control groups is mounted, version 2 (cgroups(7)): below the second beside version 1.
const CGROUPS: [&str; 2] = ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"];

/// Names of protocols that rules are about, with their numbers (IANA).
const PROTOCOLS: [(&str, u8); 4] = [("tcp", TCP), ("udp", UDP), ("icmp", ICMP), ("icmpv6", ICMPV6)];
