//! A scenario as resolved: names looked up, defaults filled in, everything in base units.
//!
//! People write TOML or Python; what reaches a world is this, as JSON, and it is what the manifest of a
//! record keeps. The numbers carry their units in their names.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use weir_core::{Draw, Dscp, Duration, Rate, Seed, Time};
use weir_link::{Capacity, FlightParams, Framing, Line, LossParams, ReorderParams, Trace};
use weir_qdisc::{Device, Marker, MarkerSetUp, Port, SetUp};
use weir_tcp::{Overrides, Profile, WindowRule};

use crate::shaper::Shaper;

/// What is to happen: lines, queues, loads and probes on a time axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// The test's name, such as `rrul`.
    pub name: String,
    /// How long the run lasts.
    pub duration_ns: u64,
    /// Named spans of time, in order.
    pub phases: Vec<Phase>,
    /// The lines between the client and the servers.
    pub path: Path,
    /// The servers.
    pub hosts: Vec<Host>,
    /// The loads.
    pub flows: Vec<Flow>,
    /// The probes.
    pub probes: Vec<Probe>,
    /// Each load starts so much later at most, and each train of pings up to a period later: drawn
    /// from the seed. Without it loads that start together stay in lock-step, as no real ones do.
    #[serde(default)]
    pub start_jitter_ns: u64,
    /// Sets the rates of shaped hops.
    #[serde(default)]
    pub shaper: Option<Shaper>,
    /// How often what is sampled.
    pub sampling: Sampling,
    /// Internet protocol of loads and probes.
    pub ip_version: IpVersion,
    /// Largest IP packet, in bytes.
    pub mtu_bytes: u32,
}

/// A named span of time, such as `idle` or `load`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Phase {
    /// Its name.
    pub name: String,
    /// Its start.
    pub start_ns: u64,
    /// Its end.
    pub end_ns: u64,
}

/// The hops of both directions, each in the order in which packets pass them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Path {
    /// From the client to the servers.
    pub up: Vec<Hop>,
    /// From the servers to the client.
    pub down: Vec<Hop>,
}

/// A queue and the line behind it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hop {
    /// Its name, such as `modem`.
    pub name: String,
    /// The marker in front of the queue, if there is one: its name and parameters.
    #[serde(default)]
    pub marker: Option<String>,
    /// The queue, in `tc` syntax.
    pub queue: String,
    /// What the line carries.
    pub rate: LineRate,
    /// How packets are wrapped on the line.
    #[serde(default)]
    pub framing: Framing,
    /// Propagation delay.
    #[serde(default)]
    pub delay_ns: u64,
    /// Greatest additional delay, drawn evenly a packet, without reordering.
    #[serde(default)]
    pub jitter_ns: u64,
    /// Loss on the line.
    #[serde(default)]
    pub loss: Option<LossParams>,
    /// Packets that overtake others on the line.
    #[serde(default)]
    pub reorder: Option<ReorderParams>,
    /// Probability that a packet arrives twice.
    #[serde(default)]
    pub duplicate: f64,
    /// Packets that a plain FIFO holds where its set-up names no limit.
    #[serde(default = "default_tx_queue_len")]
    pub tx_queue_len: u32,
    /// The rate to which shares such as `95%` in the queue's set-up refer; the line's own if `None`.
    #[serde(default)]
    pub reference_rate_bps: Option<u64>,
    /// What happens to the line while the run goes on, in order of time.
    #[serde(default)]
    pub changes: Vec<Change>,
    /// Whether the queue is held back to the rate that the [shaper](Scenario::shaper) sets.
    #[serde(default)]
    pub shaped: bool,
}

/// Something that happens to a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// When.
    pub at_ns: u64,
    /// What.
    pub to: LineChange,
}

/// What may happen to a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LineChange {
    /// It carries that many bit/s from now on. A line of constant rate only.
    RateBps(u64),
    /// It carries nothing until it has a rate again. A line of constant rate only.
    Down,
    /// Packets that leave from now on take that long, one way.
    DelayNs(u64),
}

/// What a line carries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum LineRate {
    /// Everything at once.
    Unlimited,
    /// A constant rate in bit/s.
    Bps(u64),
    /// A recording of that name.
    Trace(String),
}

/// A server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// Delay between it and the far end of the path, each way, beyond the path's own.
    pub delay_ns: u64,
}

/// Which way data flows, as the client sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// From the client.
    Up,
    /// To the client.
    Down,
}

/// Who opens a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Opener {
    /// The client, as nearly always.
    #[default]
    Client,
    /// The server.
    Server,
}

/// A TCP load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// Its name, such as `TCP download BE`.
    pub name: String,
    /// Which way its data flows.
    pub direction: Direction,
    /// Number of the server at its other end.
    pub host: u32,
    /// Who opens the connection.
    #[serde(default)]
    pub opened_by: Opener,
    /// Differentiated services code point of its packets, both ways.
    pub dscp: u8,
    /// Its TCP.
    pub tcp: TcpSettings,
    /// When the connection is opened.
    pub start_ns: u64,
    /// When the sender stops handing in data.
    pub stop_ns: u64,
    /// How much it sends; without end if `None`.
    #[serde(default)]
    pub bytes: Option<u64>,
}

/// Which TCP a load speaks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TcpSettings {
    /// The profile's name.
    pub profile: String,
    /// The congestion control's name.
    pub congestion_control: String,
    /// Changes to the profile.
    #[serde(default)]
    pub overrides: Overrides,
}

/// A train of pings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Probe {
    /// Its name, such as `Ping (ms) UDP EF`.
    pub name: String,
    /// What is sent.
    pub kind: ProbeKind,
    /// Number of the server that answers.
    pub host: u32,
    /// Differentiated services code point, both ways.
    pub dscp: u8,
    /// Bytes of payload.
    pub payload_bytes: u32,
    /// Time between two probes, whether answered or not.
    pub period_ns: u64,
    /// When the first is sent.
    pub start_ns: u64,
    /// When the last may be sent.
    pub stop_ns: u64,
    /// Time to live of [`ProbeKind::UdpTtl`]: the number of the router, from 1, that answers. `None` for
    /// the other kinds.
    #[serde(default)]
    pub ttl: Option<u8>,
}

/// What a probe sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProbeKind {
    /// ICMP echo.
    Icmp,
    /// UDP echo.
    Udp,
    /// UDP with a small time to live: the router at which it ends answers with ICMP time exceeded.
    UdpTtl,
    /// A request and its response over one TCP connection; the next waits for the one before.
    Tcp,
}

/// How often what is sampled; 0 switches a table off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sampling {
    /// Bytes received, by flow.
    pub throughput_ns: u64,
    /// Window, round trip and the like, by flow.
    pub tcp_ns: u64,
    /// Backlog, drops and the like, by queue and class.
    pub queue_ns: u64,
}

/// Internet protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum IpVersion {
    /// IPv4, header 20 bytes.
    #[serde(rename = "4")]
    V4,
    /// IPv6, header 40 bytes.
    #[serde(rename = "6")]
    V6,
}

/// What is wrong with a scenario, in one sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ScenarioError {
    message: String,
}

impl Scenario {
    /// Reads a resolved scenario.
    ///
    /// # Errors
    /// If it is not one, or its parts do not fit together.
    pub fn from_json(text: &str) -> Result<Self, ScenarioError> {
        let scenario: Self = serde_json::from_str(text)
            .map_err(|error| ScenarioError::new(format!("not a resolved scenario: {error}")))?;
        scenario.check()?;
        Ok(scenario)
    }

    /// The scenario as JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a scenario has no maps with odd keys")
    }

    /// The first hop whose marker needs to know the sender's window, which no live world does.
    #[must_use]
    pub fn marker_that_needs_window(&self) -> Option<&Hop> {
        let needs = |hop: &&Hop| {
            let marker = hop.marker(Seed::new(0), 1500).ok().flatten();
            marker.is_some_and(|marker| marker.needs_window())
        };
        self.path.up.iter().chain(&self.path.down).find(needs)
    }

    /// Names of the recordings that its lines need.
    pub fn traces(&self) -> impl Iterator<Item = &str> {
        self.path.up.iter().chain(&self.path.down).filter_map(|hop| match &hop.rate {
            LineRate::Trace(name) => Some(name.as_str()),
            LineRate::Unlimited | LineRate::Bps(_) => None,
        })
    }

    /// The hops of one direction.
    #[must_use]
    pub fn hops(&self, direction: Direction) -> &[Hop] {
        match direction {
            Direction::Up => &self.path.up,
            Direction::Down => &self.path.down,
        }
    }

    /// When load number `flow` starts in a run with `seed`.
    #[must_use]
    pub fn flow_start(&self, flow: usize, seed: Seed) -> Time {
        let mut rng = seed.derive("start of load").stream(&flow.to_string());
        self.flows[flow].start() + Duration::from_nanos(rng.below(self.start_jitter_ns + 1))
    }

    /// When probe number `probe` sends its first ping in a run with `seed`.
    #[must_use]
    pub fn probe_start(&self, probe: usize, seed: Seed) -> Time {
        let Probe { start_ns, period_ns, .. } = self.probes[probe];
        let mut rng = seed.derive("start of probe").stream(&probe.to_string());
        let most = self.start_jitter_ns.min(period_ns);
        Time::from_nanos(start_ns) + Duration::from_nanos(rng.below(most + 1))
    }

    /// Checks that the parts fit together.
    ///
    /// # Errors
    /// If they do not: the first thing that is wrong.
    pub fn check(&self) -> Result<(), ScenarioError> {
        self.check_times()?;
        for (direction, hops) in [("up", &self.path.up), ("down", &self.path.down)] {
            for hop in hops {
                hop.check().map_err(|error| {
                    ScenarioError::new(format!("path {direction}, hop `{}`: {error}", hop.name))
                })?;
            }
        }
        unique("flow", self.flows.iter().map(|flow| &flow.name))?;
        unique("probe", self.probes.iter().map(|probe| &probe.name))?;
        unique("hop up", self.path.up.iter().map(|hop| &hop.name))?;
        unique("hop down", self.path.down.iter().map(|hop| &hop.name))?;
        for flow in &self.flows {
            let name = &flow.name;
            self.check_ends(name, flow.host, flow.dscp, (flow.start_ns, flow.stop_ns))?;
            flow.tcp
                .profile()
                .map_err(|error| ScenarioError::new(format!("flow `{name}`: {error}")))?;
        }
        for probe in &self.probes {
            self.check_ends(&probe.name, probe.host, probe.dscp, (probe.start_ns, probe.stop_ns))?;
            if probe.period_ns < MIN_PERIOD_NS {
                return Err(ScenarioError::new(format!(
                    "probe `{}`: period {}: write 10us or more",
                    probe.name,
                    Duration::from_nanos(probe.period_ns)
                )));
            }
            self.check_ttl(probe)?;
        }
        self.check_shaper()
    }

    /// A time to live must end on the way to the server: at the routers before, between and behind the hops.
    fn check_ttl(&self, probe: &Probe) -> Result<(), ScenarioError> {
        let name = &probe.name;
        let routers = self.path.up.len() + 1;
        match (probe.kind, probe.ttl) {
            (ProbeKind::UdpTtl, Some(ttl)) if (1..=routers).contains(&usize::from(ttl)) => Ok(()),
            (ProbeKind::UdpTtl, Some(ttl)) => Err(ScenarioError::new(format!(
                "probe `{name}`: ttl {ttl}: write 1 to {routers}, the routers of this path"
            ))),
            (ProbeKind::UdpTtl, None) => Err(ScenarioError::new(format!(
                "probe `{name}`: a probe of kind udp_ttl needs `ttl`, the number of the router"
            ))),
            (_, Some(ttl)) => Err(ScenarioError::new(format!(
                "probe `{name}`: ttl {ttl}: only a probe of kind udp_ttl has one"
            ))),
            (_, None) => Ok(()),
        }
    }

    fn check_times(&self) -> Result<(), ScenarioError> {
        if self.duration_ns == 0 || self.duration_ns > MAX_DURATION_NS {
            return Err(ScenarioError::new(format!(
                "duration {}: write a time above 0 and up to a week",
                Duration::from_nanos(self.duration_ns)
            )));
        }
        if !(MIN_MTU..=MAX_MTU).contains(&self.mtu_bytes) {
            return Err(ScenarioError::new(format!(
                "mtu {}: write a number of bytes from {MIN_MTU} to {MAX_MTU}",
                self.mtu_bytes
            )));
        }
        for phase in &self.phases {
            if phase.start_ns >= phase.end_ns || phase.end_ns > self.duration_ns {
                return Err(ScenarioError::new(format!(
                    "phase `{}`: from {} to {}: it must last some time and end within the run of {}",
                    phase.name,
                    Duration::from_nanos(phase.start_ns),
                    Duration::from_nanos(phase.end_ns),
                    Duration::from_nanos(self.duration_ns)
                )));
            }
        }
        Ok(())
    }

    fn check_ends(
        &self,
        name: &str,
        host: u32,
        dscp: u8,
        (start_ns, stop_ns): (u64, u64),
    ) -> Result<(), ScenarioError> {
        if host as usize >= self.hosts.len() {
            return Err(ScenarioError::new(format!(
                "`{name}`: host {host} does not exist (there are {})",
                self.hosts.len()
            )));
        }
        if Dscp::new(dscp).is_none() {
            return Err(ScenarioError::new(format!("`{name}`: dscp {dscp}: write 0 to 63")));
        }
        if start_ns > stop_ns {
            return Err(ScenarioError::new(format!(
                "`{name}`: it starts at {} and stops before, at {}",
                Duration::from_nanos(start_ns),
                Duration::from_nanos(stop_ns)
            )));
        }
        Ok(())
    }
}

impl Hop {
    fn check(&self) -> Result<(), String> {
        if let LineRate::Bps(bps) = self.rate {
            check_rate(bps)?;
        }
        self.check_changes()?;
        self.flight().check().map_err(|error| error.to_string())?;
        self.marker(Seed::new(0), 1500).map_err(|error| error.to_string())?;
        self.port(Seed::new(0), 1500).map(|_| ()).map_err(|error| error.to_string())
    }

    /// The marker of this hop, ready to work, if it has one.
    ///
    /// # Errors
    /// If its set-up cannot be read.
    pub fn marker(&self, seed: Seed, mtu: u32) -> Result<Option<Marker>, weir_qdisc::SetUpError> {
        let build = |text: &String| MarkerSetUp::parse(text)?.build(&self.device(seed, mtu));
        self.marker.as_ref().map(build).transpose()
    }

    /// The queue of this hop, ready to work.
    ///
    /// # Errors
    /// If its set-up cannot be read.
    pub fn port(&self, seed: Seed, mtu: u32) -> Result<Port, weir_qdisc::SetUpError> {
        let qdisc = SetUp::parse(&self.queue)?.build(&self.device(seed, mtu))?;
        Ok(if self.shaped { Port::shaped(qdisc, self.framing) } else { Port::new(qdisc) })
    }

    fn check_changes(&self) -> Result<(), String> {
        if !self.changes.is_sorted_by_key(|change| change.at_ns) {
            return Err("changes: write them in the order of their times".to_owned());
        }
        for Change { at_ns, to } in &self.changes {
            let at = Duration::from_nanos(*at_ns);
            match (to, &self.rate) {
                (LineChange::DelayNs(_), _) | (LineChange::Down, LineRate::Bps(_)) => {}
                (LineChange::RateBps(bps), LineRate::Bps(_)) => {
                    check_rate(*bps).map_err(|error| format!("change at {at}: {error}"))?;
                }
                (LineChange::RateBps(_) | LineChange::Down, _) => {
                    return Err(format!(
                        "change at {at}: only a line of constant `rate` can be given another"
                    ));
                }
            }
        }
        Ok(())
    }

    /// What this hop's queue knows of its port.
    #[must_use]
    pub fn device(&self, seed: Seed, mtu: u32) -> Device {
        let own_rate = match self.rate {
            LineRate::Bps(bps) => Some(bps),
            LineRate::Unlimited | LineRate::Trace(_) => None,
        };
        Device {
            mtu,
            tx_queue_len: self.tx_queue_len,
            line_rate: self.reference_rate_bps.or(own_rate).map(Rate::from_bps),
            seed,
        }
    }

    /// The line of this hop, where `trace` gives the recordings by name.
    ///
    /// # Errors
    /// What `trace` says if it has no recording of that name.
    pub fn line<E>(&self, trace: impl FnOnce(&str) -> Result<Arc<Trace>, E>) -> Result<Line, E> {
        let capacity = match &self.rate {
            LineRate::Unlimited => Capacity::Unlimited,
            LineRate::Bps(bps) => Capacity::Constant(Rate::from_bps(*bps)),
            LineRate::Trace(name) => Capacity::Trace(trace(name)?),
        };
        Ok(Line::new(capacity, self.framing))
    }

    /// What packets meet behind the line.
    #[must_use]
    pub const fn flight(&self) -> FlightParams {
        FlightParams {
            delay: Duration::from_nanos(self.delay_ns),
            jitter: Duration::from_nanos(self.jitter_ns),
            loss: self.loss,
            reorder: self.reorder,
            duplicate: self.duplicate,
        }
    }
}

impl TcpSettings {
    /// The profile with its changes. Which congestion controls there are is up to the world.
    ///
    /// # Errors
    /// If the profile does not exist, or the receive window is too small to move data.
    pub fn profile(&self) -> Result<Arc<Profile>, ScenarioError> {
        let profile = Profile::named(&self.profile)
            .map_err(|error| ScenarioError::new(error.to_string()))?
            .with(&self.overrides);
        if let WindowRule::Fixed(bytes) = profile.receive_window
            && bytes < MIN_WINDOW
        {
            return Err(ScenarioError::new(format!(
                "receive window {bytes} bytes: write {MIN_WINDOW} or more"
            )));
        }
        if profile.initial_window == 0 {
            return Err(ScenarioError::new("initial window 0: write 1 segment or more"));
        }
        Ok(Arc::new(profile))
    }
}

impl IpVersion {
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

impl Flow {
    /// When the connection is opened.
    #[must_use]
    pub const fn start(&self) -> Time {
        Time::from_nanos(self.start_ns)
    }

    /// When the sender stops handing in data.
    #[must_use]
    pub const fn stop(&self) -> Time {
        Time::from_nanos(self.stop_ns)
    }
}

impl ScenarioError {
    /// An error with that message.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }
}

fn check_rate(bps: u64) -> Result<(), String> {
    if (MIN_RATE_BPS..=MAX_RATE_BPS).contains(&bps) {
        Ok(())
    } else {
        Err(format!("rate {bps} bit/s: write a rate from 1kbit to 1tbit"))
    }
}

/// Names tell things apart in records: none may occur twice.
fn unique<'a>(kind: &str, names: impl Iterator<Item = &'a String>) -> Result<(), ScenarioError> {
    let mut seen = BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err(ScenarioError::new(format!(
                "two are called {kind} `{name}`: name them apart"
            )));
        }
    }
    Ok(())
}

const fn default_tx_queue_len() -> u32 {
    1000
}

/// A week: longer runs would not fit times in microseconds of 32 bits in places where Linux keeps them.
const MAX_DURATION_NS: u64 = 7 * 24 * 3_600 * 1_000_000_000;
/// RFC 791: what every host must take; the largest jumbo frame.
const MIN_MTU: u32 = 576;
const MAX_MTU: u32 = 9_000;
const MIN_RATE_BPS: u64 = 1_000;
const MAX_RATE_BPS: u64 = 1_000_000_000_000;
const MIN_PERIOD_NS: u64 = 10_000;
/// Two full segments of a jumbo path.
const MIN_WINDOW: u32 = 18_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario() -> Scenario {
        let hop = Hop {
            name: "line".into(),
            marker: None,
            queue: "pfifo".into(),
            rate: LineRate::Bps(10_000_000),
            framing: Framing::NONE,
            delay_ns: 0,
            jitter_ns: 0,
            loss: None,
            reorder: None,
            duplicate: 0.0,
            tx_queue_len: 1000,
            reference_rate_bps: None,
            changes: vec![],
            shaped: false,
        };
        Scenario {
            name: "t".into(),
            duration_ns: 1_000_000_000,
            phases: vec![],
            path: Path { up: vec![hop.clone()], down: vec![hop] },
            hosts: vec![Host { name: "server".into(), delay_ns: 0 }],
            flows: vec![],
            probes: vec![],
            start_jitter_ns: 0,
            shaper: None,
            sampling: Sampling { throughput_ns: 0, tcp_ns: 0, queue_ns: 0 },
            ip_version: IpVersion::V4,
            mtu_bytes: 1500,
        }
    }

    #[test]
    fn json_round_trips() {
        let scenario = scenario();
        assert_eq!(Scenario::from_json(&scenario.to_json()).unwrap(), scenario);
    }

    #[test]
    fn errors_say_what_where_and_what_is_allowed() {
        let error = |change: fn(&mut Scenario)| {
            let mut scenario = scenario();
            change(&mut scenario);
            scenario.check().unwrap_err().to_string()
        };
        assert_eq!(
            error(|s| s.path.up[0].rate = LineRate::Bps(0)),
            "path up, hop `line`: rate 0 bit/s: write a rate from 1kbit to 1tbit"
        );
        assert_eq!(
            error(|s| s.path.down[0].queue = "htb rate 95%x".into()),
            "path down, hop `line`: htb class: `rate 95%x`: write a number with bit, kbit, mbit, \
             gbit or tbit (bps, kbps... for bytes per second)"
        );
        assert_eq!(
            error(|s| s.path.up[0].marker = Some("token_bucket tokens many".into())),
            "path up, hop `line`: token_bucket: `tokens many`: write a number with b, kb, mb or gb \
             (kbit, mbit, gbit for bits)"
        );
        assert_eq!(
            error(|s| s.duration_ns = 0),
            "duration 0ms: write a time above 0 and up to a week"
        );
        assert_eq!(
            error(|s| s.path.up[0].changes =
                vec![Change { at_ns: 5_000_000, to: LineChange::RateBps(10) }]),
            "path up, hop `line`: change at 5ms: rate 10 bit/s: write a rate from 1kbit to 1tbit"
        );
        assert_eq!(
            error(|s| {
                s.path.up[0].rate = LineRate::Unlimited;
                s.path.up[0].changes = vec![Change { at_ns: 0, to: LineChange::Down }];
            }),
            "path up, hop `line`: change at 0ms: only a line of constant `rate` can be given another"
        );
        assert_eq!(error(|s| s.mtu_bytes = 60), "mtu 60: write a number of bytes from 576 to 9000");
    }
}
