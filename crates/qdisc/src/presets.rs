//! Specs that people run under a name: a rate and the line's overhead, expanded to `tc` commands.
//!
//! `simple`, `simplest`, `piece_of_cake` and `layer_cake` are those of sqm-scripts (as of 2026), which shape
//! home lines under OpenWrt: their rules for bursts, quanta, targets on slow lines, and which DSCP goes to
//! which tier. `nfq_codel` is the three-tier shaper with which CeroWrt's RRUL tests were made in 2012.

use std::sync::Arc;

use weir_core::Rate;

use crate::Device;
use crate::contract::Qdisc;
use crate::registry::Discipline;
use crate::tc::{QueueSpec, Record, SpecError, either, number, params, rate};

/// A spec with a name.
#[derive(Debug)]
pub struct Preset {
    /// Description in the registry: name, source, parameters.
    pub discipline: &'static Discipline,
    /// Its `tc` commands.
    expand: fn(&Line) -> Result<String, SpecError>,
}

impl Preset {
    /// The preset called `name`.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        PRESETS.iter().find(|preset| preset.discipline.name == name)
    }

    /// The `tc` commands for which `spec`, of this preset, stands.
    ///
    /// # Errors
    /// If its rate is missing, no rate, or too low for the preset.
    pub fn expand(&self, spec: &QueueSpec, device: &Device) -> Result<String, SpecError> {
        let options = spec.read(device)?;
        (self.expand)(&Line::new(self.discipline.name, &options, device)?)
    }
}

/// All presets.
static PRESETS: &[Preset] = &[
    Preset { discipline: &NFQ_CODEL, expand: nfq_codel },
    Preset { discipline: &SIMPLE, expand: simple },
    Preset { discipline: &SIMPLEST, expand: simplest },
    Preset { discipline: &PIECE_OF_CAKE, expand: piece_of_cake },
    Preset { discipline: &LAYER_CAKE, expand: layer_cake },
];

/// The line to be shaped.
struct Line {
    name: &'static str,
    kbit: u64,
    mtu: u64,
    overhead: Option<Overhead>,
    inbound: bool,
}

/// Framing: bytes that a packet occupies beyond its own.
struct Overhead {
    bytes: u16,
    mpu: u16,
    layer: &'static str,
}

impl Line {
    fn new(
        name: &'static str,
        options: &PresetOptions,
        device: &Device,
    ) -> Result<Self, SpecError> {
        let PresetOptions { rate, overhead: bytes, mpu, cells, inbound } = *options;
        if rate < Rate::from_kbit(1) {
            let allowed = "write a rate of at least 1kbit";
            return Err(SpecError::bad(name, "rate", &rate.to_string(), allowed));
        }
        let layer = if cells { "atm" } else { "ethernet" };
        Ok(Self {
            name,
            kbit: rate.as_bps() / 1_000,
            mtu: u64::from(device.mtu),
            overhead: (bytes > 0 || mpu > 0 || cells).then_some(Overhead { bytes, mpu, layer }),
            inbound,
        })
    }

    /// Refuses a rate of which the tiers would have nothing.
    fn for_tiers(&self) -> Result<&Self, SpecError> {
        if self.kbit < MIN_TIERED_RATE_KBIT {
            return Err(SpecError::new(format!(
                "{}: `rate {}`: its tiers need a rate of at least {MIN_TIERED_RATE_KBIT}kbit",
                self.name,
                Rate::from_kbit(self.kbit)
            )));
        }
        Ok(self)
    }

    /// Bytes that leave at once: a millisecond's worth, and a full packet in ATM cells at least
    /// (`get_burst`). HTB's quantum is the same (`get_htb_quantum`).
    fn burst(&self) -> u64 {
        (self.kbit / 8).max((self.mtu + 48).div_ceil(48) * 53)
    }

    /// A class of HTB, whose quantum and, where it has them, bursts are the line's.
    fn class(&self, parent: &str, id: &str, class: &Class) -> String {
        let Class { rate, ceil, bursts, prio } = class;
        let burst = self.burst();
        let bursts = if *bursts { format!(" burst {burst} cburst {burst}") } else { String::new() };
        let prio = prio.map_or(String::new(), |prio| format!(" prio {prio}"));
        let cells =
            self.overhead.as_ref().map_or(String::new(), |Overhead { bytes, mpu, layer }| {
                format!(" mpu {mpu} linklayer {layer} overhead {bytes} mtu 2047")
            });
        format!(
            "class add dev eth0 parent {parent} classid {id} htb quantum {burst} rate {rate}kbit ceil \
             {ceil}kbit{bursts}{prio}{cells}\n"
        )
    }

    /// The class of the whole line.
    fn whole(&self, prio: Option<u8>) -> Class {
        Class { rate: self.kbit, ceil: self.kbit, bursts: true, prio }
    }

    /// `fq_codel` in class `parent`, with a target that a full packet does not exceed on a slow line
    /// (`adapt_target_to_slow_link`).
    fn fq_codel(&self, parent: &str, handle: &str, quantum: Option<u32>) -> String {
        let target = (FULL_PACKET_AT_1_KBIT_US / self.kbit).max(5_000);
        let interval = 95_000 + target;
        let quantum = quantum.map_or(String::new(), |bytes| format!(" quantum {bytes}"));
        format!(
            "qdisc add dev eth0 parent {parent} handle {handle} fq_codel limit 1001 target {target}us \
             interval {interval}us ecn{quantum} flows 1024\n"
        )
    }

    /// `cake` with the words of `get_cake_lla_string`.
    fn cake(&self, tins: &str) -> String {
        let cells =
            self.overhead.as_ref().map_or(String::new(), |Overhead { bytes, mpu, layer }| {
                let atm = if *layer == "ethernet" { "" } else { " atm" };
                format!("{atm} overhead {bytes} mpu {mpu}")
            });
        let wash = if self.inbound { " wash" } else { "" };
        format!("qdisc add dev eth0 root cake bandwidth {}kbit{cells} {tins}{wash}\n", self.kbit)
    }

    /// A shaper with three tiers: 1:11 for priority, 1:12 for best effort, 1:13 for background, each with
    /// the quantum of its `fq_codel`.
    fn tiers(&self, tiers: &[(Class, u32); 3]) -> String {
        let mut text = "qdisc add dev eth0 root handle 1: htb default 12\n".to_owned();
        text += &self.class("1:", "1:1", &self.whole(None));
        let names = ["1:11", "1:12", "1:13"];
        for (name, (class, _)) in names.iter().zip(tiers) {
            text += &self.class("1:1", name, class);
        }
        for ((name, handle), (_, quantum)) in names.iter().zip(["110:", "120:", "130:"]).zip(tiers)
        {
            text += &self.fq_codel(name, handle, Some(*quantum));
        }
        text
    }
}

/// A class of HTB; rates in kbit/s.
struct Class {
    rate: u64,
    ceil: u64,
    /// Whether it has the line's bursts; HTB's own otherwise.
    bursts: bool,
    prio: Option<u8>,
}

/// Three tiers by DSCP: the first has a third of the line at most, the others a sixth at least.
fn simple(line: &Line) -> Result<String, SpecError> {
    let kbit = line.for_tiers()?.kbit;
    let least = if line.inbound { 32 } else { 128 };
    let quanta = if line.inbound { [500, 1_500, 300] } else { [300; 3] };
    let first = Class { rate: least, ceil: kbit / 3, bursts: false, prio: Some(1) };
    let other = |prio| Class { rate: kbit / 6, ceil: kbit - 16, bursts: true, prio: Some(prio) };
    let [of_first, of_second, of_third] = quanta;
    let mut text = line.tiers(&[(first, of_first), (other(2), of_second), (other(3), of_third)]);
    // Outwards sqm-scripts marks packets with iptables, inwards it matches the TOS byte; both lists are
    // the same but for CS7.
    let network_control: &[u8] = if line.inbound { &[0xc0, 0xe0] } else { &[0xc0] };
    let urgent = [LOW_DELAY, EF, AF42].iter().chain(network_control);
    text += &filters(urgent.copied());
    Ok(text)
}

/// Three tiers: EF has a third of the line at most, background a fifth while others want the rest.
fn nfq_codel(line: &Line) -> Result<String, SpecError> {
    let kbit = line.for_tiers()?.kbit;
    let first = Class { rate: 128, ceil: kbit / 3, bursts: false, prio: Some(1) };
    let other = |rate, prio| Class { rate, ceil: kbit - 16, bursts: true, prio: Some(prio) };
    let mut text =
        line.tiers(&[(first, 300), (other(kbit / 6, 2), 300), (other(kbit / 5, 3), 300)]);
    text += &filters([EF].into_iter());
    Ok(text)
}

/// Filters by TOS byte and traffic class: `urgent` ones go to the first tier, CS1 to the last.
fn filters(urgent: impl Iterator<Item = u8>) -> String {
    let tiers = [(CS1, "1:13")].into_iter().chain(urgent.map(|tos| (tos, "1:11")));
    let asked = [("ip", "ip tos"), ("ipv6", "ip6 priority")];
    let each = tiers.flat_map(|tier| asked.map(|protocol| (tier, protocol)));
    each.zip(1..)
        .map(|(((tos, tier), (protocol, field)), prio)| {
            format!(
                "filter add dev eth0 parent 1: protocol {protocol} prio {prio} u32 match {field} 0x{tos:02x} \
                 0xfc flowid {tier}\n"
            )
        })
        .collect()
}

/// One tier.
fn simplest(line: &Line) -> Result<String, SpecError> {
    let mut text = "qdisc add dev eth0 root handle 1: htb default 10\n".to_owned();
    text += &line.class("1:", "1:1", &line.whole(None));
    text += &line.class("1:1", "1:10", &line.whole(Some(0)));
    text += &line.fq_codel("1:10", "110:", None);
    Ok(text)
}

// sqm-scripts adds `nat`, by which cake tells hosts apart behind address translation: here is none.
fn piece_of_cake(line: &Line) -> Result<String, SpecError> {
    Ok(line.cake("besteffort"))
}

fn layer_cake(line: &Line) -> Result<String, SpecError> {
    Ok(line.cake("diffserv3"))
}

fn build(spec: &QueueSpec, device: &Device) -> Result<Box<dyn Qdisc>, SpecError> {
    // Whoever builds the preset puts its size table and what filters write around it.
    let expanded = spec.expanded(device)?;
    QueueSpec { size_table: None, writes: Arc::default(), ..expanded }.build(device)
}

const fn preset(
    name: &'static str,
    summary: &'static str,
    source: &'static str,
    examples: &'static [&'static str],
) -> Discipline {
    Discipline {
        name,
        summary,
        source,
        params: PresetOptions::PARAMS,
        class_params: &[],
        takes_child: false,
        examples,
        build,
    }
}

pub(crate) static NFQ_CODEL: Discipline = preset(
    "nfq_codel",
    "preset: htb with three tiers, EF at most a third, background at most a fifth under contention",
    "bufferbloat.net, RRUL Rogues Gallery; CeroWrt's shaper of 2012",
    &["nfq_codel rate 2mbit"],
);
pub(crate) static SIMPLE: Discipline = preset(
    "simple",
    "preset: htb with three tiers by DSCP and fq_codel in each",
    SQM,
    &["simple rate 2mbit overhead 18", "simple rate 50% direction ingress linklayer atm"],
);
pub(crate) static SIMPLEST: Discipline =
    preset("simplest", "preset: htb with fq_codel in it", SQM, &["simplest rate 95%"]);
pub(crate) static PIECE_OF_CAKE: Discipline = preset(
    "piece_of_cake",
    "preset: cake with one tin",
    SQM,
    &["piece_of_cake rate 2mbit overhead 18 mpu 64"],
);
pub(crate) static LAYER_CAKE: Discipline = preset(
    "layer_cake",
    "preset: cake with three tins by DSCP",
    SQM,
    &["layer_cake rate 95% linklayer atm overhead 40"],
);

params! {
    /// Parameters of a preset.
    struct PresetOptions {
        /// rate to shape to, whole kbit/s
        rate: Rate = rate(),
        /// bytes that the line adds to every packet
        overhead: u16 = number("bytes", 0, 256).default("0"),
        /// the least that a packet occupies
        mpu: u16 = number("bytes", 0, 256).default("0"),
        /// `atm`: a packet occupies whole cells
        cells as "linklayer": bool = either(&["ethernet", "atm"]).default("ethernet"),
        /// as sqm-scripts shapes what leaves, or what comes in: other quanta and guarantees
        inbound as "direction": bool = either(&["egress", "ingress"]).default("egress"),
    }
}

const SQM: &str = "sqm-scripts of 2026, src/*.qos, functions.sh, defaults.sh";

/// The priority tier's 128 kbit/s must fit into its third.
const MIN_TIERED_RATE_KBIT: u64 = 384;
/// A full packet in 33 cells of 53 bytes at 1 kbit/s, in microseconds.
const FULL_PACKET_AT_1_KBIT_US: u64 = 33 * 53 * 8 * 1_000;
/// TOS bytes.
const LOW_DELAY: u8 = 0x10;
const CS1: u8 = 0x20;
const AF42: u8 = 0x90;
const EF: u8 = 0xb8;

#[cfg(test)]
mod tests {
    use weir_core::{Dscp, Ecn, FlowLabel, IpVersion, Packet, Time};

    use super::*;
    use crate::replay;

    fn expanded(text: &str) -> Result<String, SpecError> {
        let spec = QueueSpec::parse(text).unwrap();
        Preset::named(spec.discipline.name).unwrap().expand(&spec, &Device::default())
    }

    /// Commands of sqm-scripts for an uplink of 10 Mbit/s.
    #[test]
    fn simple_is_sqms() {
        let expected = "\
qdisc add dev eth0 root handle 1: htb default 12
class add dev eth0 parent 1: classid 1:1 htb quantum 1749 rate 10000kbit ceil 10000kbit burst 1749 cburst 1749
class add dev eth0 parent 1:1 classid 1:11 htb quantum 1749 rate 128kbit ceil 3333kbit prio 1
class add dev eth0 parent 1:1 classid 1:12 htb quantum 1749 rate 1666kbit ceil 9984kbit burst 1749 cburst 1749 prio 2
class add dev eth0 parent 1:1 classid 1:13 htb quantum 1749 rate 1666kbit ceil 9984kbit burst 1749 cburst 1749 prio 3
qdisc add dev eth0 parent 1:11 handle 110: fq_codel limit 1001 target 5000us interval 100000us ecn quantum 300 flows 1024
qdisc add dev eth0 parent 1:12 handle 120: fq_codel limit 1001 target 5000us interval 100000us ecn quantum 300 flows 1024
qdisc add dev eth0 parent 1:13 handle 130: fq_codel limit 1001 target 5000us interval 100000us ecn quantum 300 flows 1024
filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip tos 0x20 0xfc flowid 1:13
filter add dev eth0 parent 1: protocol ipv6 prio 2 u32 match ip6 priority 0x20 0xfc flowid 1:13
filter add dev eth0 parent 1: protocol ip prio 3 u32 match ip tos 0x10 0xfc flowid 1:11
filter add dev eth0 parent 1: protocol ipv6 prio 4 u32 match ip6 priority 0x10 0xfc flowid 1:11
filter add dev eth0 parent 1: protocol ip prio 5 u32 match ip tos 0xb8 0xfc flowid 1:11
filter add dev eth0 parent 1: protocol ipv6 prio 6 u32 match ip6 priority 0xb8 0xfc flowid 1:11
filter add dev eth0 parent 1: protocol ip prio 7 u32 match ip tos 0x90 0xfc flowid 1:11
filter add dev eth0 parent 1: protocol ipv6 prio 8 u32 match ip6 priority 0x90 0xfc flowid 1:11
filter add dev eth0 parent 1: protocol ip prio 9 u32 match ip tos 0xc0 0xfc flowid 1:11
filter add dev eth0 parent 1: protocol ipv6 prio 10 u32 match ip6 priority 0xc0 0xfc flowid 1:11
";
        assert_eq!(expanded("simple rate 10mbit").unwrap(), expected);
    }

    #[test]
    fn slow_lines_get_a_longer_target_and_fast_ones_longer_bursts() {
        let slow = expanded("simplest rate 1mbit overhead 44 linklayer atm").unwrap();
        assert!(slow.contains("target 13992us interval 108992us ecn flows"), "{slow}");
        assert!(slow.contains(" mpu 0 linklayer atm overhead 44 mtu 2047"), "{slow}");
        let fast = expanded("simplest rate 100mbit").unwrap();
        assert!(
            fast.contains("quantum 12500 rate 100000kbit ceil 100000kbit burst 12500"),
            "{fast}"
        );
    }

    #[test]
    fn cakes_are_said_in_a_line() {
        assert_eq!(
            expanded("piece_of_cake rate 20mbit overhead 18 mpu 64").unwrap(),
            "qdisc add dev eth0 root cake bandwidth 20000kbit overhead 18 mpu 64 besteffort\n"
        );
        assert_eq!(
            expanded("layer_cake rate 2mbit linklayer atm overhead 40 direction ingress").unwrap(),
            "qdisc add dev eth0 root cake bandwidth 2000kbit atm overhead 40 mpu 0 diffserv3 wash\n"
        );
    }

    #[test]
    fn what_cannot_be_tiered_is_refused() {
        assert_eq!(
            expanded("simple rate 300kbit").unwrap_err().to_string(),
            "simple: `rate 300Kbit`: its tiers need a rate of at least 384kbit"
        );
        for preset in ["simplest", "piece_of_cake"] {
            assert_eq!(
                expanded(&format!("{preset} rate 999bit")).unwrap_err().to_string(),
                format!("{preset}: `rate 999bit`: write a rate of at least 1kbit")
            );
        }
    }

    /// Three tiers that all want more than they get: who gets what, of 9 Mbit/s, over either protocol.
    fn shares(spec: &str, wanted: &[u8]) -> Vec<u64> {
        let of = |ip_version| shares_of(spec, wanted, ip_version);
        assert_eq!(of(IpVersion::V4), of(IpVersion::V6), "{spec}");
        of(IpVersion::V4)
    }

    fn shares_of(spec: &str, wanted: &[u8], ip_version: IpVersion) -> Vec<u64> {
        let qdisc = QueueSpec::parse(spec).unwrap().build(&Device::default()).unwrap();
        let mut arrivals = Vec::new();
        for n in 0..12_000u64 {
            let dscp = wanted[n as usize % wanted.len()];
            let at = Time::from_nanos(n * 500_000);
            let packet = Packet {
                handle: n,
                enqueued_at: at,
                label: FlowLabel {
                    hash: u32::from(dscp) << 20,
                    ip_version,
                    ..FlowLabel::default()
                },
                len: 1_514,
                flow_id: u32::from(dscp),
                dscp: Dscp::new(dscp).unwrap(),
                ecn: Ecn::NotEct,
            };
            arrivals.push((at, packet));
        }
        let outcome = replay(qdisc, &arrivals);
        // While all of them wait: the second to fifth of six seconds.
        let span = Time::from_millis(1_000)..Time::from_millis(5_000);
        let departures = outcome.departures.iter().filter(|(at, _)| span.contains(at));
        let mut bytes = vec![0; wanted.len()];
        for (_, packet) in departures {
            let tier = wanted.iter().position(|&dscp| u32::from(dscp) == packet.flow_id).unwrap();
            bytes[tier] += u64::from(packet.len);
        }
        // In percent of what 9 Mbit/s carry in 4 s.
        bytes.iter().map(|bytes| (bytes * 100 + 2_250_000) / 4_500_000).collect()
    }

    #[test]
    fn ef_has_a_third_and_background_a_fifth_of_a_contended_line() {
        let [ef, effort, background] = [46, 0, 8];
        assert_eq!(shares("nfq_codel rate 9mbit", &[ef, effort, background]), [33, 47, 20]);
        // Background has what nobody else wants.
        assert_eq!(shares("nfq_codel rate 9mbit", &[background]), [100]);
        assert_eq!(shares("nfq_codel rate 9mbit", &[ef]), [33]);
        // In `simple` background keeps a sixth.
        assert_eq!(shares("simple rate 9mbit", &[ef, effort, background]), [33, 50, 17]);
    }
}
