//! Filters: which class a packet belongs to.

use weir_core::{IpVersion, Packet, Priority};

use super::skbedit::{masked, number};
use super::{Edit, Handle, QueueSpec, SpecError, flower};
use crate::police::police_words;

/// A `u32`, `flower`, `fw` or `matchall` filter: if all its matches hold, the packet belongs to `flow`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    /// Its kind.
    pub kind: FilterKind,
    /// Filters of a lower number are asked first (`prio`, `pref`). Of those of one parent, one of which no priority
    /// was written has the one that Linux gives it.
    pub priority: u16,
    /// The version of the packets that it is asked about (`protocol ip`, `protocol ipv6`); `None` for all.
    pub protocol: Option<IpVersion>,
    /// Conditions that must hold; none for `matchall`.
    pub matches: Vec<Match>,
    /// The class (`flowid`, `classid`); minor number 0 where only an action is written.
    pub flow: Handle,
    /// Fields that the filter writes on packets (`action skbedit`).
    pub edit: Edit,
    /// The policers that packets meet, one after the other (`action police`), as words.
    pub police: Vec<Vec<String>>,
    /// How these measure average rates: interval and time to average over.
    pub estimator: Vec<String>,
}

/// The kind of a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterKind {
    /// `u32`.
    U32,
    /// `flower`.
    Flower,
    /// `fw`.
    Fw,
    /// `matchall`.
    Matchall,
}

impl FilterKind {
    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::U32 => "u32",
            Self::Flower => "flower",
            Self::Fw => "fw",
            Self::Matchall => "matchall",
        }
    }
}

/// One field of a packet, and what it must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Match {
    /// The version of the header in which the field stands, or behind which; `None` beside both.
    header: Option<IpVersion>,
    field: Field,
    test: Test,
}

/// A field of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// Source address, IPv4.
    Src,
    /// Destination address, IPv4.
    Dst,
    /// Source port.
    SourcePort,
    /// Destination port.
    DestinationPort,
    /// TOS byte, or traffic class.
    Tos,
    /// Protocol over IP.
    Protocol,
    /// Mark within the machine.
    Mark,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Test {
    /// The bits of `mask` are those of `value`.
    Masked { value: u32, mask: u32 },
    /// Both ends included.
    Range { first: u32, last: u32 },
}

impl Filter {
    /// No priority was written: to Linux that is the number 0.
    pub(super) const NO_PRIORITY: u16 = 0;

    /// Reads what stands behind `parent` in `filter add`; `major` completes class numbers without one.
    pub(super) fn parse(words: &[&str], major: u16) -> Result<Self, SpecError> {
        let mut filter = Self::of_all(Vec::new(), Vec::new());
        let mut flow = None;
        let mut words = filter.read_matches(words)?;
        while !words.is_empty() {
            words = match words {
                ["flowid" | "classid", value, rest @ ..] => {
                    flow = Some(Handle::parse(value).ok_or_else(|| {
                        SpecError::new(format!("`flowid {value}`: write a class such as `1:10`"))
                    })?);
                    rest
                }
                _ => filter.read_action(words)?,
            };
        }
        let none = Handle { major, minor: 0 };
        let acts = !filter.police.is_empty() || filter.edit != Edit::default();
        let mut flow = flow
            .or_else(|| acts.then_some(none))
            .ok_or_else(|| SpecError::new("the filter's `flowid` is missing"))?;
        if flow.major == 0 {
            flow.major = major;
        }
        filter.flow = flow;
        Ok(filter)
    }

    /// Reads what all kinds of filters have, the kind, and what it asks for, and returns the rest.
    fn read_matches<'w, 's>(&mut self, words: &'w [&'s str]) -> Result<&'w [&'s str], SpecError> {
        let mut handle = None;
        let mut words = words;
        loop {
            words = match words {
                ["protocol", value, rest @ ..] => {
                    self.protocol = protocol(value)?;
                    rest
                }
                ["prio" | "pref", value, rest @ ..] => {
                    self.priority = priority(value)?;
                    rest
                }
                ["handle", value, rest @ ..] => {
                    handle = Some(*value);
                    rest
                }
                ["estimator", interval, average, rest @ ..] => {
                    self.estimator = vec![(*interval).to_owned(), (*average).to_owned()];
                    rest
                }
                _ => break,
            };
        }
        match words {
            ["matchall", rest @ ..] => Ok(rest),
            ["fw", rest @ ..] => {
                self.kind = FilterKind::Fw;
                self.matches.push(Match::mark(handle)?);
                Ok(rest)
            }
            ["flower", rest @ ..] => {
                self.kind = FilterKind::Flower;
                let (matches, rest) = flower::read(rest, self.protocol)?;
                self.matches = matches;
                Ok(rest)
            }
            ["u32", rest @ ..] => {
                self.kind = FilterKind::U32;
                let mut behind = rest;
                while let ["match", asked @ ..] = behind {
                    let (one, more) = Match::of_u32(asked, self.protocol)?;
                    self.matches.push(one);
                    behind = more;
                }
                Ok(behind)
            }
            _ => Err(unknown(words)),
        }
    }

    /// Reads an action at the start of `words`, and returns the rest.
    fn read_action<'w, 's>(&mut self, words: &'w [&'s str]) -> Result<&'w [&'s str], SpecError> {
        match words {
            ["action", "police", rest @ ..] | ["police", rest @ ..] => {
                let (own, rest) = rest.split_at(police_words(rest));
                self.police.push(own.iter().map(|&word| word.to_owned()).collect());
                Ok(rest)
            }
            ["action", "skbedit", rest @ ..] => {
                let (edit, rest) = Edit::read(rest)?;
                self.edit = edit;
                Ok(rest)
            }
            ["action", name, ..] => Err(SpecError::new(format!(
                "`action {name}` is not known in a filter: `police` and `skbedit` are"
            ))),
            _ => Err(unknown(words)),
        }
    }

    /// A filter that holds for all packets and names their class.
    pub(super) fn to(flow: Handle) -> Self {
        Self { flow, ..Self::of_all(Vec::new(), Vec::new()) }
    }

    /// A filter that holds for all packets and polices them.
    pub(crate) const fn of_all(police: Vec<Vec<String>>, estimator: Vec<String>) -> Self {
        let flow = Handle { major: 0, minor: 0 };
        let edit = Edit { priority: None, mark: None };
        let priority = Self::NO_PRIORITY;
        let kind = FilterKind::Matchall;
        let matches = Vec::new();
        Self { kind, priority, protocol: None, matches, flow, edit, police, estimator }
    }

    /// Whether it is asked about `packet`, and all matches hold.
    pub(crate) fn holds(&self, packet: &Packet) -> bool {
        self.protocol.is_none_or(|version| version == packet.label.ip_version)
            && self.matches.iter().all(|m| m.holds(packet))
    }
}

impl Match {
    /// Reads what stands behind `match` of a `u32` filter that is asked about packets of `protocol`, and returns
    /// the rest.
    fn of_u32<'w, 's>(
        words: &'w [&'s str],
        protocol: Option<IpVersion>,
    ) -> Result<(Self, &'w [&'s str]), SpecError> {
        match words {
            ["mark", value, mask, rest @ ..] => {
                Ok((Self::masked(None, Field::Mark, read(value)?, read(mask)?), rest))
            }
            [ip @ ("ip" | "ip6"), field, value, rest @ ..] => {
                let header = if *ip == "ip" { IpVersion::V4 } else { IpVersion::V6 };
                if protocol.is_some_and(|asked| asked != header) {
                    let (packets, word) = match header {
                        IpVersion::V4 => ("ipv6", "ip6"),
                        IpVersion::V6 => ("ip", "ip"),
                    };
                    return Err(SpecError::new(format!(
                        "`match {ip} {field}` in a filter of `protocol {packets}`, whose packets have no such \
                         header: write `match {word}`"
                    )));
                }
                if ["src", "dst"].contains(field) {
                    return Ok((Self::address(header, field, value)?, rest));
                }
                let [mask, rest @ ..] = rest else {
                    return Err(SpecError::new(format!(
                        "`match {ip} {field} {value}`: the mask is missing"
                    )));
                };
                Ok((Self::bits(header, field, value, mask)?, rest))
            }
            _ => Err(SpecError::new(
                "behind `match` stands `ip FIELD VALUE MASK`, `ip src PREFIX`, `ip dst PREFIX`, `ip6 FIELD VALUE \
                 MASK` or `mark VALUE MASK`",
            )),
        }
    }

    /// `match ip src PREFIX`, and `dst`.
    fn address(header: IpVersion, field: &str, value: &str) -> Result<Self, SpecError> {
        if header == IpVersion::V6 {
            return Err(SpecError::new(format!("`match ip6 {field} {value}`: {NO_ADDRESSES}")));
        }
        let at = if field == "src" { Field::Src } else { Field::Dst };
        Self::prefix(at, value).ok_or_else(|| {
            SpecError::new(format!("`match ip {field} {value}`: write an IPv4 address or prefix"))
        })
    }

    /// `match ip FIELD VALUE MASK`, and `ip6`.
    fn bits(header: IpVersion, field: &str, value: &str, mask: &str) -> Result<Self, SpecError> {
        let (ip, known) = match header {
            IpVersion::V4 => ("ip", "src, dst, sport, dport, tos, dsfield, protocol"),
            IpVersion::V6 => ("ip6", "sport, dport, priority, protocol"),
        };
        let (at, most) = match (header, field) {
            (_, "sport") => (Field::SourcePort, 0xffff),
            (_, "dport") => (Field::DestinationPort, 0xffff),
            (IpVersion::V4, "tos" | "dsfield") | (IpVersion::V6, "priority") => (Field::Tos, 0xff),
            (_, "protocol") => (Field::Protocol, 0xff),
            _ => {
                return Err(SpecError::new(format!("`match {ip} {field}`: known are {known}")));
            }
        };
        // `tc` reads the mask as hexadecimal, with `0x` or without.
        let mask_read = u32::from_str_radix(mask.strip_prefix("0x").unwrap_or(mask), 16).ok();
        let both = number(value).filter(|&it| it <= most).zip(mask_read.filter(|&it| it <= most));
        let (value, mask) = both.ok_or_else(|| {
            SpecError::new(format!(
                "`match {ip} {field} {value} {mask}`: write a number and a hexadecimal mask, both up to {most:#x}"
            ))
        })?;
        Ok(Self::masked(Some(header), at, value, mask))
    }

    /// `handle MARK[/MASK]` of a `fw` filter.
    fn mark(handle: Option<&str>) -> Result<Self, SpecError> {
        let Some(text) = handle else {
            return Err(SpecError::new("`fw` needs the mark before it: write `handle MARK fw`"));
        };
        let (value, mask) = masked(text, u32::MAX).ok_or_else(|| {
            SpecError::new(format!("`handle {text} fw`: write MARK or MARK/MASK of 32 bits"))
        })?;
        Ok(Self::masked(None, Field::Mark, value, mask))
    }

    pub(super) const fn exact(header: IpVersion, field: Field, value: u32) -> Self {
        Self::masked(Some(header), field, value, u32::MAX)
    }

    pub(super) const fn masked(
        header: Option<IpVersion>,
        field: Field,
        value: u32,
        mask: u32,
    ) -> Self {
        Self { header, field, test: Test::Masked { value, mask } }
    }

    pub(super) const fn range(header: IpVersion, field: Field, first: u32, last: u32) -> Self {
        Self { header: Some(header), field, test: Test::Range { first, last } }
    }

    /// An IPv4 address with or without the length of its prefix.
    pub(super) fn prefix(field: Field, text: &str) -> Option<Self> {
        let (address, bits) = text.split_once('/').unwrap_or((text, "32"));
        let address: std::net::Ipv4Addr = address.parse().ok()?;
        let bits: u32 = bits.parse().ok().filter(|&bits| bits <= 32)?;
        let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
        Some(Self::masked(Some(IpVersion::V4), field, u32::from(address), mask))
    }

    /// The version of the header in which the field stands, or behind which; `None` for a mark.
    #[must_use]
    pub const fn header(&self) -> Option<IpVersion> {
        self.header
    }

    /// The field, and what it must be under which mask; `None` for a range.
    #[must_use]
    pub const fn masked_field(&self) -> Option<(Field, u32, u32)> {
        match self.test {
            Test::Masked { value, mask } => Some((self.field, value, mask)),
            Test::Range { .. } => None,
        }
    }

    /// Whether `other` asks for the same field under the same mask, or in a range as this does.
    pub(super) fn masks_as(&self, other: &Self) -> bool {
        let mask = |one: &Self| match one.test {
            Test::Masked { mask, .. } => Some(mask),
            Test::Range { .. } => None,
        };
        self.field == other.field && mask(self) == mask(other)
    }

    fn holds(&self, packet: &Packet) -> bool {
        if self.header.is_some_and(|version| version != packet.label.ip_version) {
            return matches!(self.test, Test::Masked { mask: 0, .. });
        }
        let actual = match self.field {
            Field::Src => packet.label.src,
            Field::Dst => packet.label.dst,
            Field::SourcePort => u32::from(packet.label.sport),
            Field::DestinationPort => u32::from(packet.label.dport),
            Field::Tos => u32::from(packet.tos()),
            Field::Protocol => u32::from(packet.label.protocol.0),
            Field::Mark => packet.label.mark,
        };
        match self.test {
            Test::Masked { value, mask } => actual & mask == value & mask,
            Test::Range { first, last } => (first..=last).contains(&actual),
        }
    }
}

/// A word behind `protocol`.
fn protocol(text: &str) -> Result<Option<IpVersion>, SpecError> {
    match text.to_ascii_lowercase().as_str() {
        "all" => Ok(None),
        "ip" | "ipv4" => Ok(Some(IpVersion::V4)),
        "ipv6" => Ok(Some(IpVersion::V6)),
        _ => Err(SpecError::new(format!("`protocol {text}`: write ip, ipv6 or all"))),
    }
}

/// The word behind `protocol` that says it.
pub(super) const fn protocol_word(protocol: Option<IpVersion>) -> &'static str {
    match protocol {
        None => "all",
        Some(IpVersion::V4) => "ip",
        Some(IpVersion::V6) => "ipv6",
    }
}

/// An error about the first of `words`, which no filter has there.
fn unknown(words: &[&str]) -> SpecError {
    SpecError::new(format!(
        "`{}` is not known in a filter: write `u32 match ip FIELD VALUE MASK ... flowid CLASS`, \
         `flower FIELD VALUE ... flowid CLASS`, `handle MARK fw flowid CLASS`, `matchall flowid \
         CLASS` or `matchall action police ...`",
        words.first().unwrap_or(&"")
    ))
}

fn priority(text: &str) -> Result<u16, SpecError> {
    let read = number(text).and_then(|number| u16::try_from(number).ok());
    read.ok_or_else(|| SpecError::new(format!("`prio {text}`: write a number from 0 to 65535")))
}

fn read(text: &str) -> Result<u32, SpecError> {
    number(text).ok_or_else(|| SpecError::new(format!("`{text}` is not a number")))
}

/// Why nothing is asked of an IPv6 address.
pub(super) const NO_ADDRESSES: &str = "packets here carry a hash of an IPv6 address, of which no prefix is known: \
                                       match ports, the protocol or the traffic class";

/// Classifier of one discipline: the class that a packet's priority names, else its
/// filters in the order in which they are asked.
#[derive(Clone, Debug, Default)]
pub struct Classifier {
    filters: Vec<Filter>,
    /// Classes that a priority may name.
    by_priority: ByPriority,
}

/// Classes of a discipline that a packet's priority may name (`skb->priority` with the discipline's own
/// major number).
#[derive(Clone, Debug, Default)]
enum ByPriority {
    #[default]
    None,
    /// Any band of this major number.
    Bands(u16),
    /// One of these.
    Classes(Vec<Handle>),
}

impl ByPriority {
    fn of(spec: &QueueSpec) -> Self {
        let major = spec.major();
        if spec.discipline.has_bands() {
            return Self::Bands(major);
        }
        let written = spec.classes.iter();
        if spec.discipline.name == "htb" {
            // Inner classes as well, whose packets go to the default; the discipline itself is straight
            // through (`htb_classify`).
            let direct = Handle { major, minor: 0 };
            return Self::Classes(written.map(|class| class.id).chain([direct]).collect());
        }
        let inner = |id| spec.classes.iter().any(|class| class.parent == id);
        Self::Classes(written.map(|class| class.id).filter(|&id| !inner(id)).collect())
    }

    fn class_of(&self, packet: &Packet) -> Option<Handle> {
        let number = packet.label.priority?.get();
        let class = Handle { major: (number >> 16) as u16, minor: number as u16 };
        match self {
            Self::None => None,
            Self::Bands(major) => (class.major == *major).then_some(class),
            Self::Classes(classes) => classes.contains(&class).then_some(class),
        }
    }
}

impl Classifier {
    /// The filters sorted by priority; equal priorities stay in the order written.
    #[must_use]
    pub fn new(filters: &[Filter]) -> Self {
        let mut filters = filters.to_vec();
        filters.sort_by_key(|filter| filter.priority);
        Self { filters, by_priority: ByPriority::None }
    }

    /// The filters of `spec`, whose classes a packet's priority may name as well.
    #[must_use]
    pub fn with_priorities(spec: &QueueSpec) -> Self {
        Self { by_priority: ByPriority::of(spec), ..Self::new(&spec.filters) }
    }

    /// The class that the priority of `packet` names or, where it names none, the first filter that
    /// holds.
    #[must_use]
    pub fn classify(&self, packet: &Packet) -> Option<Handle> {
        self.by_priority.class_of(packet).or_else(|| {
            self.filters.iter().find(|filter| filter.holds(packet)).map(|filter| filter.flow)
        })
    }

    /// The queue of `packet` among `flows` of the discipline `major`: what its priority or a filter says
    /// or, where there is no filter, its hash scaled to their number.
    #[must_use]
    pub fn flow(&self, packet: &Packet, major: u16, flows: usize) -> Option<usize> {
        let named = packet.label.priority.map_or(0, Priority::get);
        let (named_major, named_minor) = ((named >> 16) as u16, (named & 0xffff) as usize);
        if named_major == major && (1..=flows).contains(&named_minor) {
            return Some(named_minor - 1);
        }
        if self.is_empty() {
            let scaled = u64::from(packet.label.hash) * flows as u64;
            return Some((scaled >> 32) as usize);
        }
        let class = self.classify(packet)?;
        let number = usize::from(class.minor);
        (class.major == major && (1..=flows).contains(&number)).then(|| number - 1)
    }

    /// Whether there is no filter.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.filters.is_empty()
    }
}
