//! Filters: which class a packet belongs to.

use weir_core::{Packet, Priority};

use super::skbedit::{masked, number};
use super::{Edit, Handle, QueueSpec, SpecError, flower};
use crate::police::police_words;

/// A `u32`, `flower`, `fw` or `matchall` filter: if all its matches hold, the packet belongs to `flow`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    /// Filters of a lower number are asked first (`prio`, `pref`). Of those of one parent, one of which no priority
    /// was written has the one that Linux gives it.
    pub priority: u16,
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

/// One field of a packet, and what it must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Match {
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
        let mut handle = None;
        let mut words = words;
        while !words.is_empty() {
            words = match words {
                ["protocol", "ip" | "all", rest @ ..] | ["u32" | "matchall", rest @ ..] => rest,
                ["prio" | "pref", value, rest @ ..] => {
                    filter.priority = priority(value)?;
                    rest
                }
                ["handle", value, rest @ ..] => {
                    handle = Some(*value);
                    rest
                }
                ["fw", rest @ ..] => {
                    filter.matches.push(Match::mark(handle)?);
                    rest
                }
                ["flower", rest @ ..] => {
                    let (matches, rest) = flower::read(rest)?;
                    filter.matches.extend(matches);
                    rest
                }
                ["match", rest @ ..] => {
                    let (one, rest) = Match::of_u32(rest)?;
                    filter.matches.push(one);
                    rest
                }
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

    /// Reads an action at the start of `words`, and returns the rest.
    fn read_action<'w, 's>(&mut self, words: &'w [&'s str]) -> Result<&'w [&'s str], SpecError> {
        match words {
            ["estimator", interval, average, rest @ ..] => {
                self.estimator = vec![(*interval).to_owned(), (*average).to_owned()];
                Ok(rest)
            }
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
            _ => Err(SpecError::new(format!(
                "`{}` is not known in a filter: write `u32 match ip FIELD VALUE MASK ... flowid CLASS`, \
                 `flower FIELD VALUE ... flowid CLASS`, `handle MARK fw flowid CLASS`, `matchall flowid \
                 CLASS` or `matchall action police ...`",
                words.first().unwrap_or(&"")
            ))),
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
        Self { priority, matches: Vec::new(), flow, edit, police, estimator }
    }

    /// Whether all matches hold.
    pub(crate) fn holds(&self, packet: &Packet) -> bool {
        self.matches.iter().all(|m| m.holds(packet))
    }
}

impl Match {
    /// Reads what stands behind `match` of `u32`, and returns the rest.
    fn of_u32<'w, 's>(words: &'w [&'s str]) -> Result<(Self, &'w [&'s str]), SpecError> {
        match words {
            ["mark", value, mask, rest @ ..] => {
                Ok((Self::masked(Field::Mark, read(value)?, read(mask)?), rest))
            }
            ["ip", field @ ("src" | "dst"), value, rest @ ..] => {
                let at = if *field == "src" { Field::Src } else { Field::Dst };
                let found = Self::prefix(at, value).ok_or_else(|| {
                    SpecError::new(format!(
                        "`match ip {field} {value}`: write an IPv4 address or prefix"
                    ))
                })?;
                Ok((found, rest))
            }
            ["ip", field, value, mask, rest @ ..] => {
                let field = match *field {
                    "sport" => Field::SourcePort,
                    "dport" => Field::DestinationPort,
                    "tos" | "dsfield" => Field::Tos,
                    "protocol" => Field::Protocol,
                    _ => {
                        return Err(SpecError::new(format!(
                            "`match ip {field}`: known are src, dst, sport, dport, tos, dsfield, protocol"
                        )));
                    }
                };
                Ok((Self::masked(field, read(value)?, read(mask)?), rest))
            }
            _ => Err(SpecError::new(
                "behind `match` stands `ip FIELD VALUE MASK`, `ip src PREFIX`, `ip dst PREFIX` or `mark \
                 VALUE MASK`",
            )),
        }
    }

    /// `handle MARK[/MASK]` of a `fw` filter.
    fn mark(handle: Option<&str>) -> Result<Self, SpecError> {
        let Some(text) = handle else {
            return Err(SpecError::new("`fw` needs the mark before it: write `handle MARK fw`"));
        };
        let (value, mask) = masked(text, u32::MAX).ok_or_else(|| {
            SpecError::new(format!("`handle {text} fw`: write MARK or MARK/MASK of 32 bits"))
        })?;
        Ok(Self::masked(Field::Mark, value, mask))
    }

    pub(super) const fn exact(field: Field, value: u32) -> Self {
        Self::masked(field, value, u32::MAX)
    }

    pub(super) const fn masked(field: Field, value: u32, mask: u32) -> Self {
        Self { field, test: Test::Masked { value, mask } }
    }

    pub(super) const fn range(field: Field, first: u32, last: u32) -> Self {
        Self { field, test: Test::Range { first, last } }
    }

    /// An IPv4 address with or without the length of its prefix.
    pub(super) fn prefix(field: Field, text: &str) -> Option<Self> {
        let (address, bits) = text.split_once('/').unwrap_or((text, "32"));
        let address: std::net::Ipv4Addr = address.parse().ok()?;
        let bits: u32 = bits.parse().ok().filter(|&bits| bits <= 32)?;
        let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
        Some(Self::masked(field, u32::from(address), mask))
    }

    /// The field, and what it must be under which mask; `None` for a range.
    #[must_use]
    pub const fn masked_field(&self) -> Option<(Field, u32, u32)> {
        match self.test {
            Test::Masked { value, mask } => Some((self.field, value, mask)),
            Test::Range { .. } => None,
        }
    }

    fn holds(&self, packet: &Packet) -> bool {
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

fn priority(text: &str) -> Result<u16, SpecError> {
    let read = number(text).and_then(|number| u16::try_from(number).ok());
    read.ok_or_else(|| SpecError::new(format!("`prio {text}`: write a number from 0 to 65535")))
}

fn read(text: &str) -> Result<u32, SpecError> {
    number(text).ok_or_else(|| SpecError::new(format!("`{text}` is not a number")))
}

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
