//! CAKE's parameters: the words of `tc`, in the order in which they stand.
//!
//! As in `tc`, the last of several words for the same thing counts, but overhead adds up: `ether-vlan`
//! twice are 8 bytes, and `overhead N` starts afresh.

use weir_core::{Duration, Rate, units};

use super::ack_filter::AckFilter;
use super::shaper::{Cells, Overhead};
use crate::tc::{
    Declared, Every, GsoPackets, ParamKind, Placed, SpecError, Text, choice, integer, number,
    params, rate, size, switch, word,
};

params! {
    /// Parameters of `cake`.
    #[derive(Clone, Debug)]
    pub struct CakeOptions {
        /// rate to shape to, as packets count by the overhead words
        bandwidth: Placed<Option<Rate>> = rate().or_0().absent("unlimited").placed(),
        /// no shaping
        unlimited: Placed<bool> = switch().default("on").placed(),
        /// follow an estimate of what arrives, from `bandwidth` on
        autorate_ingress as "autorate-ingress": Placed<bool> = switch().placed(),
        /// round trip that COBALT is set for: its interval; the target is a twentieth
        rtt: Placed<Option<Duration>> =
            Declared::new(ParamKind::Time, read_rtt).absent("100ms").placed(),
        /// `rtt` by a word: 100us, 1ms, 10ms, 30ms, 100ms, 300ms, 1s, 1000s
        internet: Placed<RoundTrip> = word().default("internet").placed(),
        /// how traffic is divided into tins by its code point
        pub diffserv as "diffserv3": Placed<CakeDiffserv> = word().default("diffserv3").placed(),
        /// what a flow is, and among whom the tin is shared fairly
        pub flow_mode as "triple-isolate": Placed<CakeFlowMode> =
            word().default("triple-isolate").placed(),
        /// refused: there is no address translation here
        pub nat: Placed<bool> = switch().off_by("nonat").placed(),
        /// clear the code point of every packet once its tin is chosen
        pub wash: Placed<bool> = switch().off_by("nowash").placed(),
        /// always so: packets come to queues cut
        pub split_gso as "split-gso": Placed<bool> =
            switch().off_by("no-split-gso").default("on").placed(),
        /// drop TCP acknowledgements that later ones in the queue make superfluous
        pub ack_filter as "no-ack-filter": Placed<AckFilter> =
            word().default("no-ack-filter").placed(),
        /// most memory that waiting packets may take, as the kernel accounts it; 0 is the default
        pub memlimit: Option<u64> =
            size().absent("4 times bandwidth times rtt, from 4Mb to 15140Kb"),
        /// bits of a packet's mark that choose its tin, the first by 1
        pub fwmark: Option<u32> = number("mask", 0, u32::MAX as u64).absent("none"),
        /// cells or code words of the link
        noatm: Placed<Cells> = word().default("noatm").placed(),
        /// bytes of the link that are added to each IP packet
        overhead: Placed<Option<i32>> = integer("bytes", -64, 256).absent("raw").placed(),
        /// overhead, cells and least length by the kind of link
        raw: Every<Link> = word().default("raw").every(),
        /// least length that a packet counts as, overhead included
        mpu: Placed<Option<u16>> = number("bytes", 0, 256).absent("0").placed(),
        /// the queue stands behind the bottleneck: drops count as sent
        pub ingress: Placed<bool> = switch().off_by("egress").placed(),
    }
}

impl CakeOptions {
    /// The rate to shape to; `None` for no limit.
    #[must_use]
    pub fn rate(&self) -> Option<Rate> {
        let limited = self.bandwidth.place > self.unlimited.place;
        self.bandwidth.value.filter(|_| limited)
    }

    /// Whether it follows an estimate of what arrives: any rate written later ends that.
    #[must_use]
    pub fn autorate(&self) -> bool {
        let Self { autorate_ingress: Placed { value, place }, bandwidth, unlimited, .. } = self;
        *place > bandwidth.place.max(unlimited.place) && *value
    }

    /// The form in which it takes GSO packets.
    pub(crate) fn gso_packets(&self) -> GsoPackets {
        match self.rate() {
            None if !self.wash.value => GsoPackets::Split,
            _ => GsoPackets::Segments,
        }
    }

    /// Whether each flow has a queue of its own.
    pub(crate) fn keeps_flows_apart(&self) -> bool {
        use CakeFlowMode::{DualDsthost, DualSrchost, Flows, TripleIsolate};
        matches!(self.flow_mode.value, Flows | DualSrchost | DualDsthost | TripleIsolate)
    }

    /// The round trip for which it is set.
    #[must_use]
    pub fn interval(&self) -> Duration {
        let by_time = self.rtt.place > self.internet.place;
        self.rtt.value.filter(|_| by_time).unwrap_or(self.internet.value.0)
    }

    /// Whether a word says the round trip.
    #[must_use]
    pub const fn has_interval(&self) -> bool {
        self.rtt.is_written() || self.internet.is_written()
    }

    /// The first parameter written that is about the rate or the bytes of the link, if any is.
    #[must_use]
    pub fn about_the_link(&self) -> Option<&'static str> {
        let places = [
            ("bandwidth", self.bandwidth.place),
            ("unlimited", self.unlimited.place),
            ("autorate-ingress", self.autorate_ingress.place),
            ("overhead", self.overhead.place),
            ("raw", self.raw.0.first().map(|(place, _)| *place)),
            ("noatm", self.noatm.place),
            ("mpu", self.mpu.place),
        ];
        let written = places.into_iter().filter_map(|(name, place)| Some((place?, name)));
        written.min().map(|(_, name)| name)
    }

    /// The bytes that a packet occupies, by the words in the order in which they stand.
    #[must_use]
    pub fn overhead(&self) -> Overhead {
        let links = self.raw.0.iter().map(|(place, link)| (*place, Step::Link(*link)));
        let others = [
            step(self.overhead.place, self.overhead.value.map(Step::Bytes)),
            step(self.mpu.place, self.mpu.value.map(|bytes| Step::Least(bytes.into()))),
            step(self.noatm.place, Some(Step::Cells(self.noatm.value))),
        ];
        let mut steps: Vec<(usize, Step)> = links.chain(others.into_iter().flatten()).collect();
        steps.sort_by_key(|(place, _)| *place);
        let mut overhead = Overhead::default();
        // `raw` holds whatever is added behind it.
        let mut raw = false;
        for (_, step) in steps {
            match step {
                Step::Bytes(bytes) => {
                    overhead.bytes = bytes;
                    overhead.beyond_ip = !raw;
                }
                Step::Least(bytes) => overhead.least = bytes,
                Step::Cells(cells) => overhead.cells = cells,
                Step::Link(Link::Raw) => {
                    raw = true;
                    overhead = Overhead { least: overhead.least, ..Overhead::default() };
                }
                Step::Link(Link::Kind { bytes, least, cells, afresh }) => {
                    overhead.bytes = bytes + if afresh { 0 } else { overhead.bytes };
                    overhead.least = least.unwrap_or(overhead.least);
                    overhead.cells = cells.unwrap_or(overhead.cells);
                    overhead.beyond_ip = !raw;
                }
            }
        }
        overhead
    }
}

/// A word about the bytes that a packet occupies.
enum Step {
    Bytes(i32),
    Least(i32),
    Cells(Cells),
    Link(Link),
}

fn step(place: Option<usize>, step: Option<Step>) -> Option<(usize, Step)> {
    place.zip(step)
}

fn read_rtt(text: &Text<'_>) -> Result<Duration, SpecError> {
    let time = units::parse_time(text.text).map_err(|error| text.wrap(&error))?;
    if (Duration::from_micros(1)..=MAX_RTT).contains(&time) {
        // `tc` hands over whole microseconds.
        Ok(Duration::from_micros(time.as_micros()))
    } else {
        Err(text.bad("write a time from 1us to 4294s"))
    }
}

/// A round trip by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RoundTrip(Duration);

// tc-cake(8). `interplanetary` is there given as 3600 s, but iproute2 6.1 sets 1000 s.
choice! { RoundTrip {
    "datacentre" => Self(Duration::from_micros(100)),
    "lan" => Self(Duration::from_millis(1)),
    "metro" => Self(Duration::from_millis(10)),
    "regional" => Self(Duration::from_millis(30)),
    "internet" => Self(Duration::from_millis(100)),
    "oceanic" => Self(Duration::from_millis(300)),
    "satellite" => Self(Duration::from_secs(1)),
    "interplanetary" => Self(Duration::from_secs(1_000)),
} }

/// How `cake` divides traffic into tins, in the order of the kernel's numbers (include/uapi/linux/pkt_sched.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CakeDiffserv {
    /// Three tins.
    Diffserv3,
    /// Four tins.
    Diffserv4,
    /// Eight tins.
    Diffserv8,
    /// One tin.
    Besteffort,
    /// Eight tins, by the IP precedence.
    Precedence,
}

choice! { CakeDiffserv {
    "besteffort" => Self::Besteffort,
    "precedence" => Self::Precedence,
    "diffserv3" => Self::Diffserv3,
    "diffserv4" => Self::Diffserv4,
    "diffserv" => Self::Diffserv4,
    "diffserv8" => Self::Diffserv8,
} }

/// Meaning of a flow to `cake`, and among whom a tin is shared, in the order of the kernel's numbers
/// (include/uapi/linux/pkt_sched.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CakeFlowMode {
    /// All is one flow.
    Flowblind,
    /// A source is a flow.
    Srchost,
    /// A destination is a flow.
    Dsthost,
    /// A source and a destination together are a flow.
    Hosts,
    /// 5-tuples.
    Flows,
    /// 5-tuples, and fair to sources first.
    DualSrchost,
    /// 5-tuples, and fair to destinations first.
    DualDsthost,
    /// 5-tuples, and fair to sources and destinations first.
    TripleIsolate,
}

choice! { CakeFlowMode {
    "flowblind" => Self::Flowblind,
    "srchost" => Self::Srchost,
    "dsthost" => Self::Dsthost,
    "hosts" => Self::Hosts,
    "flows" => Self::Flows,
    "dual-srchost" => Self::DualSrchost,
    "dual-dsthost" => Self::DualDsthost,
    "triple-isolate" => Self::TripleIsolate,
} }

choice! { AckFilter {
    "no-ack-filter" => Self::Off,
    "ack-filter" => Self::On,
    "ack-filter-aggressive" => Self::Aggressive,
} }

choice! { Cells {
    "noatm" => Self::None,
    "atm" => Self::Atm,
    "ptm" => Self::Ptm,
} }

/// A link by its word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Link {
    /// Lengths are those that Linux reports.
    Raw,
    /// A kind of link.
    Kind {
        /// Bytes beyond the IP packet, added to those that are there already.
        bytes: i32,
        /// The least that a packet counts as, where the kind of link has one.
        least: Option<i32>,
        cells: Option<Cells>,
        /// Whether the bytes replace those that are there already.
        afresh: bool,
    },
}

impl Link {
    const fn new(bytes: i32, cells: Option<Cells>) -> Self {
        Self::Kind { bytes, least: None, cells, afresh: false }
    }
}

// Kinds of links: tc-cake(8), tried with iproute2 6.1.
choice! { Link {
    "raw" => Self::Raw,
    "conservative" => Self::Kind { bytes: 48, least: None, cells: Some(Cells::Atm), afresh: true },
    "pppoa-vcmux" => Self::new(10, Some(Cells::Atm)),
    "pppoa-llc" => Self::new(14, Some(Cells::Atm)),
    "pppoe-vcmux" => Self::new(32, Some(Cells::Atm)),
    "pppoe-llcsnap" => Self::new(40, Some(Cells::Atm)),
    "bridged-vcmux" => Self::new(24, Some(Cells::Atm)),
    "bridged-llcsnap" => Self::new(32, Some(Cells::Atm)),
    "ipoa-vcmux" => Self::new(8, Some(Cells::Atm)),
    "ipoa-llcsnap" => Self::new(16, Some(Cells::Atm)),
    "pppoe-ptm" => Self::new(30, Some(Cells::Ptm)),
    "bridged-ptm" => Self::new(22, Some(Cells::Ptm)),
    "docsis" =>
        Self::Kind { bytes: 18, least: Some(64), cells: Some(Cells::None), afresh: false },
    "ethernet" => Self::Kind { bytes: 38, least: Some(84), cells: None, afresh: false },
    "ether-vlan" => Self::new(4, None),
} }

/// Longest round trip in 32 bits of microseconds.
const MAX_RTT: Duration = Duration::from_secs(4_294);
