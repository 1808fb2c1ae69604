//! Filters: which class a packet belongs to.

use weir_core::Packet;

use super::{Handle, SetUpError};

/// A `u32` or `matchall` filter: if all its matches hold, the packet belongs to `flow`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    /// Filters of a lower number are asked first (`prio`, `pref`).
    pub priority: u16,
    /// What must hold; nothing at all for `matchall`.
    pub matches: Vec<Match>,
    /// The class (`flowid`, `classid`).
    pub flow: Handle,
}

/// One `match ip FIELD VALUE MASK`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Match {
    field: Field,
    value: u32,
    mask: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Src,
    Dst,
    SourcePort,
    DestinationPort,
    Tos,
    Protocol,
}

impl Filter {
    /// Reads what stands behind `parent` in `filter add`; `major` completes class numbers without one.
    pub(super) fn parse(words: &[&str], major: u16) -> Result<Self, SetUpError> {
        let mut filter =
            Self { priority: 1, matches: Vec::new(), flow: Handle { major, minor: 0 } };
        let mut flow = None;
        let mut words = words;
        loop {
            words = match words {
                [] => break,
                ["protocol", "ip" | "all", rest @ ..] | ["u32" | "matchall", rest @ ..] => rest,
                ["prio" | "pref", value, rest @ ..] => {
                    filter.priority = value.parse().map_err(|_| {
                        SetUpError::new(format!("`prio {value}`: write a number from 0 to 65535"))
                    })?;
                    rest
                }
                ["match", "ip", field, value, mask, rest @ ..]
                    if !matches!(*field, "src" | "dst") =>
                {
                    filter.matches.push(Match::number(field, value, mask)?);
                    rest
                }
                ["match", "ip", field, value, rest @ ..] => {
                    filter.matches.push(Match::address(field, value)?);
                    rest
                }
                ["flowid" | "classid", value, rest @ ..] => {
                    flow = Handle::parse(value);
                    rest
                }
                [word, ..] => {
                    return Err(SetUpError::new(format!(
                        "`{word}` is not known in a filter: write `u32 match ip FIELD VALUE MASK \
                         ... flowid CLASS` or `matchall flowid CLASS`"
                    )));
                }
            };
        }
        let mut flow = flow.ok_or_else(|| SetUpError::new("the filter's `flowid` is missing"))?;
        if flow.major == 0 {
            flow.major = major;
        }
        filter.flow = flow;
        Ok(filter)
    }

    fn holds(&self, packet: &Packet) -> bool {
        self.matches.iter().all(|m| m.holds(packet))
    }
}

impl Match {
    fn number(field: &str, value: &str, mask: &str) -> Result<Self, SetUpError> {
        let field = match field {
            "sport" => Field::SourcePort,
            "dport" => Field::DestinationPort,
            "tos" | "dsfield" => Field::Tos,
            "protocol" => Field::Protocol,
            _ => {
                return Err(SetUpError::new(format!(
                    "`match ip {field}`: known are src, dst, sport, dport, tos, dsfield, protocol"
                )));
            }
        };
        let number = |text: &str| {
            text.strip_prefix("0x")
                .map_or_else(|| text.parse().ok(), |digits| u32::from_str_radix(digits, 16).ok())
                .ok_or_else(|| SetUpError::new(format!("`{text}` is not a number")))
        };
        Ok(Self { field, value: number(value)?, mask: number(mask)? })
    }

    fn address(field: &str, value: &str) -> Result<Self, SetUpError> {
        let bad = || {
            SetUpError::new(format!("`match ip {field} {value}`: write an IPv4 address or prefix"))
        };
        let field = if field == "src" { Field::Src } else { Field::Dst };
        let (address, bits) = value.split_once('/').unwrap_or((value, "32"));
        let address: std::net::Ipv4Addr = address.parse().map_err(|_| bad())?;
        let bits: u32 = bits.parse().ok().filter(|&bits| bits <= 32).ok_or_else(bad)?;
        let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
        Ok(Self { field, value: u32::from(address), mask })
    }

    fn holds(&self, packet: &Packet) -> bool {
        let actual = match self.field {
            Field::Src => packet.label.src,
            Field::Dst => packet.label.dst,
            Field::SourcePort => u32::from(packet.label.sport),
            Field::DestinationPort => u32::from(packet.label.dport),
            Field::Tos => u32::from(packet.tos()),
            Field::Protocol => u32::from(packet.label.protocol.0),
        };
        actual & self.mask == self.value & self.mask
    }
}

/// The filters of one discipline, in the order in which they are asked.
#[derive(Clone, Debug, Default)]
pub struct Classifier {
    filters: Vec<Filter>,
}

impl Classifier {
    /// The filters as written, sorted by priority; equal priorities stay in the order written.
    #[must_use]
    pub fn new(filters: &[Filter]) -> Self {
        let mut filters = filters.to_vec();
        filters.sort_by_key(|filter| filter.priority);
        Self { filters }
    }

    /// The class of `packet` by the first filter that holds.
    #[must_use]
    pub fn classify(&self, packet: &Packet) -> Option<Handle> {
        self.filters.iter().find(|filter| filter.holds(packet)).map(|filter| filter.flow)
    }

    /// The queue of `packet` among `flows` of the discipline `major`: what a filter says or, where there
    /// is none, its hash scaled to their number.
    #[must_use]
    pub fn flow(&self, packet: &Packet, major: u16, flows: usize) -> Option<usize> {
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
