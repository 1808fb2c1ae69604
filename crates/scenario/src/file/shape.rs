//! Declaration of the files of a shaper on a real interface: its settings, and its priority rules.

use std::net::IpAddr;

use weir_core::Framing;

use crate::file::field::{Definitions, Field, Form, Reader, choice, spec};
use crate::file::plain::ByName;
use crate::file::quantity::{DscpValue, rate_words, read_rate, read_time, time_words};
use crate::file::shaper::ModeWord;
use crate::file::written::{Value, Written, table, texts};

spec! {
    /// Settings of a shaper; all are optional.
    ShapeSpec {
        /// The way out of the device: `auto`, a rate such as `35mbit` that stays, or `none` to leave it alone.
        up: SideRate = SideRate::Auto,
        /// The way into the device: `auto`, a rate such as `35mbit` that stays, or `none` to leave it alone.
        down: SideRate = SideRate::Auto,
        /// On the way out `auto` never sets a higher rate.
        up_max: Option<ShapedRate>,
        /// On the way in `auto` never sets a higher rate.
        down_max: Option<ShapedRate>,
        /// Goal of `auto` that matters more: short delays or all of the rate.
        mode: ModeWord = ModeWord::Ping,
        /// Queue spec of the way out, in `tc` syntax.
        queue_up: String = USUAL_QUEUES[0].to_owned(),
        /// Queue spec of the way in, in `tc` syntax.
        queue_down: String = USUAL_QUEUES[1].to_owned(),
        /// How bytes are counted: a name of `tc-cake(8)`, or `auto` for what the device tells.
        framing: FramingName = FramingName(None),
        /// Whom to probe: `HOST` by ICMP, `udp:HOST[:PORT]` by UDP to a `weir serve`, `tcp:HOST:PORT` by how long a TCP
        /// connection takes to open.
        reflectors: Vec<ReflectorWords> = Vec::new(),
        /// File whose first line is the secret that servers among the reflectors ask for.
        auth: Option<String>,
        /// Backend that holds packets back.
        backend: BackendWord = BackendWord::Auto,
        /// Classes of packets: a file of rules, or the name of a shipped list.
        rules: Option<String>,
        /// Where what is learned of the line is kept from one run to the next: a file, `none`, or `auto` for the usual
        /// place.
        state: StatePlace = StatePlace::Usual,
        /// The shaper ends by itself after so long.
        time: Option<RunTime>,
    }
    check |shape| shape.check();
}

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
    /// The part that holds packets back.
    BackendWord {
        /// The best available one.
        Auto = "auto",
        /// The kernel's own disciplines.
        Kernel = "kernel",
        /// Weir's own, on packets that the kernel hands over.
        Userspace = "userspace",
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

impl ShapeSpec {
    fn check(&self) -> Result<(), String> {
        if self.up == SideRate::None && self.down == SideRate::None {
            return Err(
                "up `none` and down `none`: nothing would be shaped; leave one of them out"
                    .to_owned(),
            );
        }
        for (side, rate, max) in [("up", self.up, self.up_max), ("down", self.down, self.down_max)]
        {
            if let Some(ShapedRate(max)) = max
                && rate != SideRate::Auto
            {
                let (max, rate) = (rate_words(max), rate.words());
                return Err(format!(
                    "{side}_max {max}: it bounds `auto`, and {side} is `{rate}`; leave it out"
                ));
            }
        }
        let auto = [self.up, self.down].contains(&SideRate::Auto);
        if !auto && self.mode != ModeWord::Ping {
            return Err(format!(
                "mode {}: it is `auto`'s, and the rates are set; leave it out",
                self.mode.word()
            ));
        }
        Ok(())
    }
}

/// A text or a number that a word stands for, with what JSON Schema says of it.
macro_rules! word_field {
    ($name:ty, $kinds:expr, $read:expr, $words:expr) => {
        impl Field for $name {
            fn read(written: &Written, reader: &mut Reader) -> Option<Self> {
                let read: fn(&Written) -> Result<Self, String> = $read;
                read(written).map_err(|says| reader.fault(says)).ok()
            }

            fn write(&self, _: Form) -> Written {
                let words: fn(&Self) -> Written = $words;
                words(self)
            }

            fn schema(_: &mut Definitions) -> Written {
                let kinds: &[&str] = $kinds;
                let kind =
                    if let [one] = kinds { (*one).into() } else { texts(kinds.iter().copied()) };
                table([("type", kind)])
            }
        }
    };
}

/// The rate of one way of a shaper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SideRate {
    /// Found by Weir's controller.
    Auto,
    /// None: that way is left alone.
    None,
    /// A rate that stays, in bit/s.
    Rate(u64),
}

impl SideRate {
    fn words(self) -> String {
        match self {
            Self::Auto => "auto".to_owned(),
            Self::None => "none".to_owned(),
            Self::Rate(bps) => rate_words(bps),
        }
    }
}

word_field!(
    SideRate,
    &["string"],
    |written| match &written.value {
        Value::Text(text) if text == "auto" => Ok(Self::Auto),
        Value::Text(text) if text == "none" => Ok(Self::None),
        _ => shaped_rate(written).map(Self::Rate),
    },
    |rate| rate.words().into()
);

/// A rate that a shaper may have, in bit/s: 100kbit or more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShapedRate(pub u64);

word_field!(ShapedRate, &["string"], |written| shaped_rate(written).map(Self), |rate| rate_words(
    rate.0
)
.into());

fn shaped_rate(written: &Written) -> Result<u64, String> {
    let least = weir_rate_control::MIN_RATE.as_bps();
    match read_rate(written)? {
        bps if bps < least => {
            Err(format!("{}: write {} or more", written.shown(), rate_words(least)))
        }
        bps => Ok(bps),
    }
}

/// How long a shaper runs, in nanoseconds: a second or more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunTime(pub u64);

word_field!(
    RunTime,
    &["string"],
    |written| match read_time(written)? {
        0..1_000_000_000 => Err(format!("{}: write 1s or more", written.shown())),
        nanoseconds => Ok(Self(nanoseconds)),
    },
    |time| time_words(time.0).into()
);

/// Where what is learned of a line is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatePlace {
    /// In the usual place for state.
    Usual,
    /// Nowhere.
    None,
    /// In this file.
    File(String),
}

word_field!(
    StatePlace,
    &["string"],
    |written| match &written.value {
        Value::Text(text) if text == "auto" => Ok(Self::Usual),
        Value::Text(text) if text == "none" => Ok(Self::None),
        Value::Text(text) if !text.is_empty() => Ok(Self::File(text.clone())),
        _ => Err(format!("{}: write a file, `none` or `auto`", written.shown())),
    },
    |place| match place {
        Self::Usual => "auto".into(),
        Self::None => "none".into(),
        Self::File(file) => file.as_str().into(),
    }
);

/// The name of a framing; `None` for `auto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FramingName(pub Option<&'static str>);

impl FramingName {
    /// The framing of that name; `None` for `auto`.
    #[must_use]
    pub fn framing(self) -> Option<Framing> {
        let named = Framing::NAMED.iter().find(|(name, _)| Some(*name) == self.0);
        named.map(|(_, framing)| *framing)
    }
}

impl Field for FramingName {
    fn read(written: &Written, reader: &mut Reader) -> Option<Self> {
        if written.value == Value::Text(AUTO.to_owned()) {
            return Some(Self(None));
        }
        let named = |name: &&str| written.value == Value::Text((*name).to_owned());
        match Framing::NAMED.iter().map(|(name, _)| *name).find(named) {
            Some(name) => Some(Self(Some(name))),
            None => reader.wanted(written, &format!("one of {}", framings().join(", "))),
        }
    }

    fn write(&self, _: Form) -> Written {
        self.0.unwrap_or(AUTO).into()
    }

    fn schema(_: &mut Definitions) -> Written {
        table([("enum", texts(framings()))])
    }
}

fn framings() -> Vec<&'static str> {
    std::iter::once(AUTO).chain(Framing::NAMED.iter().map(|(name, _)| *name)).collect()
}

const AUTO: &str = "auto";

/// Whom to probe, and by what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReflectorWords {
    /// The way of probing.
    pub kind: ReflectorKind,
    /// Name or address of the host.
    pub host: String,
    /// Port of the server; 0 of a host that is probed by ICMP.
    pub port: u16,
}

/// A way of probing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReflectorKind {
    /// ICMP echo.
    Icmp,
    /// UDP echo of a `weir serve`.
    Udp,
    /// The time that a TCP connection takes to open.
    Tcp,
}

word_field!(ReflectorWords, &["string"], |written| reflector(written), |reflector| {
    let ReflectorWords { kind, host, port } = reflector;
    let place =
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
    match kind {
        ReflectorKind::Icmp => host.clone().into(),
        ReflectorKind::Udp => format!("udp:{place}").into(),
        ReflectorKind::Tcp => format!("tcp:{place}").into(),
    }
});

fn reflector(written: &Written) -> Result<ReflectorWords, String> {
    let Value::Text(text) = &written.value else {
        return Err(format!("{}: write a text in quotes", written.shown()));
    };
    let letters = text.chars().count();
    if letters > MAX_REFLECTOR_CHARS {
        return Err(format!(
            "{} of {letters} letters: write {MAX_REFLECTOR_CHARS} at most",
            written.shown()
        ));
    }
    let (kind, place) = match text.split_once(':') {
        Some(("udp", place)) => (ReflectorKind::Udp, host_and_port(place)?),
        Some(("tcp", place)) => (ReflectorKind::Tcp, split_port(place)?),
        _ => (ReflectorKind::Icmp, (text.clone(), 0)),
    };
    let (host, port) = place;
    if host.is_empty() {
        return Err(format!("{}: write the name or the address of a host", written.shown()));
    }
    Ok(ReflectorWords { kind, host, port })
}

/// Where a `weir serve` is: `HOST`, `HOST:PORT` or `[IPV6]:PORT`.
///
/// # Errors
/// If it is none of these.
pub fn host_and_port(written: &str) -> Result<(String, u16), String> {
    let colons = written.matches(':').count();
    let bare = written.ends_with(']') || colons == 0 || (colons > 1 && !written.contains(']'));
    if bare {
        Ok((written.trim_matches(['[', ']']).to_owned(), SERVE_PORT))
    } else {
        split_port(written)
    }
}

fn split_port(written: &str) -> Result<(String, u16), String> {
    let (host, port) = written.rsplit_once(':').unwrap_or(("", written));
    match port_number(port) {
        Some(port) if !host.is_empty() => Ok((host.trim_matches(['[', ']']).to_owned(), port)),
        _ => Err(format!(
            "`{}`: write HOST:PORT with a port from 1 to 65535, IPv6 as [HOST]:PORT",
            crate::file::written::head(written, MAX_REFLECTOR_CHARS)
        )),
    }
}

/// A port of up to five digits and nothing else.
fn port_number(text: &str) -> Option<u16> {
    let plain = (1..=5).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten().filter(|port| *port > 0)
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

/// Queues of both ways where nothing else is asked for, out of the device first.
pub const USUAL_QUEUES: [&str; 2] = ["cake diffserv4 dual-srchost", "cake diffserv4 dual-dsthost"];

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

/// Port on which `weir serve` listens if nothing else is said.
pub const SERVE_PORT: u16 = 8080;

/// Characters of a reflector at most: its name has 253 (RFC 1035), besides a port and a method.
const MAX_REFLECTOR_CHARS: usize = 300;
