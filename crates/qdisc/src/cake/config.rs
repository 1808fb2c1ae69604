//! CAKE's configuration: the words of `tc`, in the order in which they stand.
//!
//! As in `tc`, the last of several words for the same thing counts, but overhead adds up: `ether-vlan`
//! twice are 8 bytes, and `overhead N` starts afresh.

use weir_core::{Duration, Rate};

use super::ack_filter::AckFilter;
use super::diffserv::Preset;
use super::flows::Isolation;
use super::shaper::{Cells, Overhead};
use crate::Device;
use crate::tc::{DefaultValue, Kind, Param, Params, SetUp, SetUpError};

/// A CAKE as it was asked for.
#[derive(Debug)]
pub(super) struct Config {
    /// `None` for no limit.
    pub rate: Option<Rate>,
    pub autorate: bool,
    pub overhead: Overhead,
    pub ingress: bool,
    pub preset: &'static Preset,
    pub isolation: Isolation,
    pub target: Duration,
    pub interval: Duration,
    pub ack_filter: AckFilter,
    pub wash: bool,
    /// The bits of a packet's mark that choose its tin; 0 for none.
    pub fwmark: u32,
    /// `None` for one that follows from rate and `rtt`.
    pub memory_limit: Option<u64>,
}

impl Config {
    pub fn read(set_up: &SetUp, device: &Device) -> Result<Self, SetUpError> {
        let params = set_up.params(device)?;
        refuse_what_has_no_meaning(&params)?;
        let interval = interval(&params)?;
        let microseconds = (interval.as_micros() / TARGETS_AN_INTERVAL).max(1);
        Ok(Self {
            rate: rate(&params)?,
            autorate: params.switch("autorate-ingress"),
            overhead: overhead(&params)?,
            ingress: params.switch("ingress"),
            preset: Preset::named(diffserv(&params)),
            isolation: isolation(params.word("triple-isolate")),
            target: Duration::from_micros(microseconds),
            interval,
            ack_filter: match params.word("no-ack-filter") {
                "ack-filter" => AckFilter::On,
                "ack-filter-aggressive" => AckFilter::Aggressive,
                _ => AckFilter::Off,
            },
            wash: params.switch("wash"),
            fwmark: params.try_number("fwmark")?.unwrap_or(0) as u32,
            memory_limit: params
                .size("memlimit")?
                .map(weir_core::Bytes::get)
                .filter(|&bytes| bytes > 0),
        })
    }
}

/// The word for how a `cake` of these words divides traffic into tins; two of them mean the same.
pub fn diffserv(params: &Params) -> &str {
    match params.word("diffserv3") {
        "diffserv" => "diffserv4",
        word => word,
    }
}

fn refuse_what_has_no_meaning(params: &Params) -> Result<(), SetUpError> {
    for (name, value) in params.written() {
        let why = match (name, value) {
            ("nat", "on") => {
                "`nat` asks a router's address translation, and there is none here: leave it out"
            }
            ("split-gso", "off") => {
                "`no-split-gso` keeps GSO packets whole, but packets come to queues cut here: \
                 leave it out"
            }
            _ => continue,
        };
        return Err(SetUpError::new(format!("cake: {why}")));
    }
    Ok(())
}

fn rate(params: &Params) -> Result<Option<Rate>, SetUpError> {
    let written = params.written().filter(|(name, _)| matches!(*name, "bandwidth" | "unlimited"));
    match written.last() {
        Some(("bandwidth", _)) => params.rate("bandwidth"),
        _ => Ok(None),
    }
}

/// The round trip that the words of a `cake` set it for.
///
/// # Errors
/// If it is out of range.
pub fn interval(params: &Params) -> Result<Duration, SetUpError> {
    let written = params.written().filter(|(name, _)| matches!(*name, "rtt" | "internet"));
    let Some(("rtt", text)) = written.last() else {
        let word = params.word("internet");
        let preset = RTTS.iter().find(|(name, _)| *name == word);
        return Ok(preset.expect("one of the words").1);
    };
    let interval = params.time("rtt")?.expect("it was written");
    let range = Duration::from_micros(1)..=MAX_RTT;
    if range.contains(&interval) {
        // `tc` hands over whole microseconds.
        Ok(Duration::from_micros(interval.as_micros()))
    } else {
        Err(params.bad("rtt", text, "write a time from 1us to 4294s"))
    }
}

fn overhead(params: &Params) -> Result<Overhead, SetUpError> {
    let mut overhead = Overhead::default();
    // `raw` holds whatever is added behind it.
    let mut raw = false;
    for (name, value) in params.written() {
        match (name, value) {
            ("overhead", _) => {
                overhead.bytes = params.integer("overhead")?.expect("it was written") as i32;
                overhead.beyond_ip = !raw;
            }
            ("mpu", _) => overhead.least = params.number("mpu")? as i32,
            ("noatm", word) => overhead.cells = cells(word),
            ("raw", "raw") => {
                raw = true;
                overhead = Overhead { least: overhead.least, ..Overhead::default() };
            }
            ("raw", word) => {
                let link = LINKS.iter().find(|link| link.name == word).expect("one of the words");
                overhead.bytes = link.bytes + if link.afresh { 0 } else { overhead.bytes };
                overhead.least = link.least.unwrap_or(overhead.least);
                overhead.cells = link.cells.unwrap_or(overhead.cells);
                overhead.beyond_ip = !raw;
            }
            _ => {}
        }
    }
    Ok(overhead)
}

fn cells(word: &str) -> Cells {
    match word {
        "atm" => Cells::Atm,
        "ptm" => Cells::Ptm,
        _ => Cells::None,
    }
}

fn isolation(word: &str) -> Isolation {
    match word {
        "flowblind" => Isolation::FLOWBLIND,
        "srchost" => Isolation::SRCHOST,
        "dsthost" => Isolation::DSTHOST,
        "hosts" => Isolation::HOSTS,
        "flows" => Isolation::FLOWS,
        "dual-srchost" => Isolation::DUAL_SRCHOST,
        "dual-dsthost" => Isolation::DUAL_DSTHOST,
        _ => Isolation::TRIPLE_ISOLATE,
    }
}

/// A kind of link by its word.
struct Link {
    name: &'static str,
    /// Bytes beyond the IP packet, added to those that are there already.
    bytes: i32,
    /// The least that a packet counts as, where the kind of link has one.
    least: Option<i32>,
    cells: Option<Cells>,
    /// Whether the bytes replace those that are there already.
    afresh: bool,
}

impl Link {
    const fn new(name: &'static str, bytes: i32) -> Self {
        Self { name, bytes, least: None, cells: None, afresh: false }
    }

    const fn atm(name: &'static str, bytes: i32) -> Self {
        Self { cells: Some(Cells::Atm), ..Self::new(name, bytes) }
    }

    const fn ptm(name: &'static str, bytes: i32) -> Self {
        Self { cells: Some(Cells::Ptm), ..Self::new(name, bytes) }
    }
}

/// The parameters of `cake`.
pub(super) const PARAMS: &[Param] = &[
    Param {
        name: "bandwidth",
        aliases: &[],
        kind: Kind::Rate,
        default: DefaultValue::Absent("unlimited"),
        meaning: "rate to shape to, as packets count by the overhead words",
    },
    Param {
        name: "unlimited",
        aliases: &[],
        kind: Kind::Switch { off: None },
        default: DefaultValue::Is("on"),
        meaning: "no shaping",
    },
    Param {
        name: "autorate-ingress",
        aliases: &[],
        kind: Kind::Switch { off: None },
        default: DefaultValue::Is("off"),
        meaning: "follow an estimate of what arrives, from `bandwidth` on",
    },
    Param {
        name: "rtt",
        aliases: &[],
        kind: Kind::Time,
        default: DefaultValue::Absent("100ms"),
        meaning: "round trip that COBALT is set for: its interval; the target is a twentieth",
    },
    Param {
        name: "internet",
        aliases: &[],
        kind: Kind::Word(&[
            "datacentre",
            "lan",
            "metro",
            "regional",
            "internet",
            "oceanic",
            "satellite",
            "interplanetary",
        ]),
        default: DefaultValue::Is("internet"),
        meaning: "`rtt` by a word: 100us, 1ms, 10ms, 30ms, 100ms, 300ms, 1s, 1000s",
    },
    Param {
        name: "diffserv3",
        aliases: &[],
        kind: Kind::Word(&[
            "besteffort",
            "precedence",
            "diffserv3",
            "diffserv4",
            "diffserv",
            "diffserv8",
        ]),
        default: DefaultValue::Is("diffserv3"),
        meaning: "how traffic is divided into tins by its code point",
    },
    Param {
        name: "triple-isolate",
        aliases: &[],
        kind: Kind::Word(&FLOW_MODES),
        default: DefaultValue::Is("triple-isolate"),
        meaning: "what a flow is, and among whom the tin is shared fairly",
    },
    Param {
        name: "nat",
        aliases: &[],
        kind: Kind::Switch { off: Some("nonat") },
        default: DefaultValue::Is("off"),
        meaning: "refused: there is no address translation here",
    },
    Param {
        name: "wash",
        aliases: &[],
        kind: Kind::Switch { off: Some("nowash") },
        default: DefaultValue::Is("off"),
        meaning: "clear the code point of every packet once its tin is chosen",
    },
    Param {
        name: "split-gso",
        aliases: &[],
        kind: Kind::Switch { off: Some("no-split-gso") },
        default: DefaultValue::Is("on"),
        meaning: "always so: packets come to queues cut",
    },
    Param {
        name: "no-ack-filter",
        aliases: &[],
        kind: Kind::Word(&ACK_FILTERS),
        default: DefaultValue::Is("no-ack-filter"),
        meaning: "drop TCP acknowledgements that later ones in the queue make superfluous",
    },
    Param {
        name: "memlimit",
        aliases: &[],
        kind: Kind::Size,
        default: DefaultValue::Absent("4 times bandwidth times rtt, from 4Mb to 15140Kb"),
        meaning: "most memory that waiting packets may take, as the kernel accounts it; 0 is the default",
    },
    Param {
        name: "fwmark",
        aliases: &[],
        kind: Kind::Number { unit: "mask", range: (0, u32::MAX as u64) },
        default: DefaultValue::Absent("none"),
        meaning: "bits of a packet's mark that choose its tin, the first by 1",
    },
    Param {
        name: "noatm",
        aliases: &[],
        kind: Kind::Word(&["noatm", "atm", "ptm"]),
        default: DefaultValue::Is("noatm"),
        meaning: "cells or code words of the link",
    },
    Param {
        name: "overhead",
        aliases: &[],
        kind: Kind::Integer { unit: "bytes", range: (-64, 256) },
        default: DefaultValue::Absent("raw"),
        meaning: "bytes of the link that are added to each IP packet",
    },
    Param {
        name: "raw",
        aliases: &[],
        kind: Kind::Word(&[
            "raw",
            "conservative",
            "pppoa-vcmux",
            "pppoa-llc",
            "pppoe-vcmux",
            "pppoe-llcsnap",
            "bridged-vcmux",
            "bridged-llcsnap",
            "ipoa-vcmux",
            "ipoa-llcsnap",
            "pppoe-ptm",
            "bridged-ptm",
            "docsis",
            "ethernet",
            "ether-vlan",
        ]),
        default: DefaultValue::Is("raw"),
        meaning: "overhead, cells and least length by the kind of link",
    },
    Param {
        name: "mpu",
        aliases: &[],
        kind: Kind::Number { unit: "bytes", range: (0, 256) },
        default: DefaultValue::Absent("0"),
        meaning: "least length that a packet counts as, overhead included",
    },
    Param {
        name: "ingress",
        aliases: &[],
        kind: Kind::Switch { off: Some("egress") },
        default: DefaultValue::Is("off"),
        meaning: "the queue stands behind the bottleneck: drops count as sent",
    },
];

/// Kinds of links: tc-cake(8), tried with iproute2 6.1.
const LINKS: &[Link] = &[
    Link { afresh: true, ..Link::atm("conservative", 48) },
    Link::atm("pppoa-vcmux", 10),
    Link::atm("pppoa-llc", 14),
    Link::atm("pppoe-vcmux", 32),
    Link::atm("pppoe-llcsnap", 40),
    Link::atm("bridged-vcmux", 24),
    Link::atm("bridged-llcsnap", 32),
    Link::atm("ipoa-vcmux", 8),
    Link::atm("ipoa-llcsnap", 16),
    Link::ptm("pppoe-ptm", 30),
    Link::ptm("bridged-ptm", 22),
    Link { least: Some(64), cells: Some(Cells::None), ..Link::new("docsis", 18) },
    Link { least: Some(84), ..Link::new("ethernet", 38) },
    Link::new("ether-vlan", 4),
];

/// Round trips by name: tc-cake(8). `interplanetary` is there given as 3600 s, but iproute2 6.1 sets
/// 1000 s.
const RTTS: [(&str, Duration); 8] = [
    ("datacentre", Duration::from_micros(100)),
    ("lan", Duration::from_millis(1)),
    ("metro", Duration::from_millis(10)),
    ("regional", Duration::from_millis(30)),
    ("internet", Duration::from_millis(100)),
    ("oceanic", Duration::from_millis(300)),
    ("satellite", Duration::from_secs(1)),
    ("interplanetary", Duration::from_secs(1_000)),
];

/// `tc` sets the target to a twentieth of the round trip.
const TARGETS_AN_INTERVAL: u64 = 20;

/// Longest round trip in 32 bits of microseconds.
const MAX_RTT: Duration = Duration::from_secs(4_294);

/// The words for what a flow is; a word's place is its number in the kernel (include/uapi/linux/pkt_sched.h).
pub const FLOW_MODES: [&str; 8] = [
    "flowblind",
    "srchost",
    "dsthost",
    "hosts",
    "flows",
    "dual-srchost",
    "dual-dsthost",
    "triple-isolate",
];
/// The words for what becomes of acknowledgements, likewise.
pub const ACK_FILTERS: [&str; 3] = ["no-ack-filter", "ack-filter", "ack-filter-aggressive"];

#[cfg(test)]
mod tests {
    use super::*;

    fn config(words: &str) -> Config {
        let set_up = SetUp::parse(&format!("cake {words}")).unwrap();
        Config::read(&set_up, &Device::default()).unwrap_or_else(|error| panic!("{words}: {error}"))
    }

    /// What `tc -d qdisc show` of iproute2 6.1 says of the overhead.
    fn shown(words: &str) -> String {
        let Overhead { beyond_ip, bytes, least, cells } = config(words).overhead;
        let mut shown = String::from(match (beyond_ip, cells) {
            (true, Cells::None) => "noatm",
            (true, Cells::Atm) => "atm",
            (true, Cells::Ptm) => "ptm",
            (false, Cells::None) => "raw",
            (false, Cells::Atm) => "raw atm",
            (false, Cells::Ptm) => "raw ptm",
        });
        shown += &format!(" overhead {bytes}");
        if least > 0 {
            shown += &format!(" mpu {least}");
        }
        shown
    }

    #[test]
    fn overhead_is_read_as_tc_reads_it() {
        for (words, expected) in [
            ("", "raw overhead 0"),
            ("raw", "raw overhead 0"),
            ("conservative", "atm overhead 48"),
            ("overhead -20", "noatm overhead -20"),
            ("overhead 0", "noatm overhead 0"),
            ("atm", "raw atm overhead 0"),
            ("ptm overhead 10 noatm", "noatm overhead 10"),
            ("ipoa-vcmux", "atm overhead 8"),
            ("ipoa-llcsnap", "atm overhead 16"),
            ("bridged-vcmux", "atm overhead 24"),
            ("bridged-llcsnap", "atm overhead 32"),
            ("pppoa-vcmux", "atm overhead 10"),
            ("pppoa-llc", "atm overhead 14"),
            ("pppoe-vcmux", "atm overhead 32"),
            ("pppoe-llcsnap", "atm overhead 40"),
            ("pppoe-ptm", "ptm overhead 30"),
            ("bridged-ptm", "ptm overhead 22"),
            ("ethernet", "noatm overhead 38 mpu 84"),
            ("docsis", "noatm overhead 18 mpu 64"),
            ("ether-vlan", "noatm overhead 4"),
            ("ether-vlan ether-vlan", "noatm overhead 8"),
            ("ethernet ether-vlan", "noatm overhead 42 mpu 84"),
            ("ethernet docsis", "noatm overhead 56 mpu 64"),
            ("ethernet overhead 10", "noatm overhead 10 mpu 84"),
            ("overhead 10 ethernet", "noatm overhead 48 mpu 84"),
            ("overhead 8 pppoe-ptm", "ptm overhead 38"),
            ("pppoe-vcmux ptm", "ptm overhead 32"),
            ("raw overhead 5", "raw overhead 5"),
            ("overhead 5 raw", "raw overhead 0"),
            ("raw ethernet", "raw overhead 38 mpu 84"),
            ("conservative raw", "raw overhead 0"),
            ("conservative overhead 10", "atm overhead 10"),
            ("mpu 100 ethernet", "noatm overhead 38 mpu 84"),
            ("ethernet mpu 64", "noatm overhead 38 mpu 64"),
            ("ethernet atm", "atm overhead 38 mpu 84"),
            ("mpu 64", "raw overhead 0 mpu 64"),
        ] {
            assert_eq!(shown(words), expected, "cake {words}");
        }
    }

    #[test]
    fn the_last_word_counts() {
        assert_eq!(config("").interval, Duration::from_millis(100));
        assert_eq!(config("").target, Duration::from_millis(5));
        assert_eq!(config("rtt 50ms metro").interval, Duration::from_millis(10));
        assert_eq!(config("metro rtt 50ms").interval, Duration::from_millis(50));
        assert_eq!(config("rtt 50ms").target, Duration::from_micros(2_500));
        assert_eq!(config("rtt 20us").target, Duration::from_micros(1));
        assert_eq!(config("interplanetary").target, Duration::from_secs(50));
        assert_eq!(config("bandwidth 5mbit unlimited").rate, None);
        assert_eq!(config("unlimited bandwidth 5mbit").rate, Some(Rate::from_mbit(5)));
        assert_eq!(config("ack-filter ack-filter-aggressive").ack_filter, AckFilter::Aggressive);
        assert!(config("wash").wash && !config("wash nowash").wash);
        assert!(config("ingress").ingress && !config("ingress egress").ingress);
        assert_eq!(config("hosts dual-dsthost").isolation, Isolation::DUAL_DSTHOST);
        assert_eq!(config("").isolation, Isolation::TRIPLE_ISOLATE);
        assert_eq!(config("diffserv").preset.plans.len(), 4, "tc's old name of diffserv4");
        assert_eq!(config("memlimit 0").memory_limit, None, "as the kernel reads it");
        assert_eq!(config("memlimit 64kb nonat split-gso").memory_limit, Some(65_536));
    }

    #[test]
    fn what_cannot_be_done_is_refused_in_a_sentence() {
        let error = |words: &str| {
            SetUp::parse(&format!("cake {words}"))
                .and_then(|set_up| Config::read(&set_up, &Device::default()))
                .expect_err(words)
                .to_string()
        };
        for (words, expected) in [
            (
                "nat",
                "cake: `nat` asks a router's address translation, and there is none here: leave it out",
            ),
            (
                "no-split-gso",
                "cake: `no-split-gso` keeps GSO packets whole, but packets come to queues cut here: \
                 leave it out",
            ),
            ("overhead 300", "cake: `overhead 300`: write a number from -64 to 256"),
            ("overhead -65", "cake: `overhead -65`: write a number from -64 to 256"),
            ("mpu 300", "cake: `mpu 300`: write a number from 0 to 256"),
            ("rtt 0", "cake: `rtt 0`: write a time from 1us to 4294s"),
            ("rtt 2h", "cake: `rtt 2h`: write a number that is not negative with ns, us, ms or s"),
        ] {
            assert_eq!(error(words), expected);
        }
        assert_eq!(
            error("datacenter"),
            "cake: `datacenter` is neither a parameter nor a queue discipline: did you mean \
             `datacentre`?"
        );
        let unlike = error("everything");
        assert!(unlike.contains("known parameters: bandwidth, unlimited"), "{unlike}");
        assert!(unlike.contains("lan, metro, regional"), "{unlike}");
    }
}
