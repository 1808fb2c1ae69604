//! A scenario as resolved: names looked up, defaults filled in, everything in base units.
//!
//! People write TOML or Python; what reaches a world is this, as JSON, and it is what the manifest of a
//! record keeps. The numbers carry their units in their names.

use serde::{Deserialize, Serialize};
use weir_core::{Direction, Draw, Duration, End, Framing, IpVersion, Seed, Time};

use crate::access::{Access, Reconfiguration};
use crate::application::Application;
use crate::flight::{FlightParams, LossParams, ReorderParams};
use crate::route::Route;
use crate::shaper::Shaper;
use crate::speed_test::SpeedTest;
use crate::tcp::TcpSettings;
use crate::tunnel::Tunnel;
use crate::udp::UdpLoad;

/// A resolved scenario: lines, queues, loads and probes on a time axis.
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
    /// Ways over some of its hops, by which servers are reached that are not reached over all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<Route>,
    /// The servers.
    pub hosts: Vec<Host>,
    /// The tunnels between the client's network and servers.
    #[serde(default)]
    pub tunnels: Vec<Tunnel>,
    /// The loads.
    pub flows: Vec<Flow>,
    /// The probes.
    pub probes: Vec<Probe>,
    /// The speed tests.
    #[serde(default)]
    pub methods: Vec<SpeedTest>,
    /// Sets the rates of shaped hops.
    #[serde(default)]
    pub shaper: Option<Shaper>,
    /// Each load starts so much later at most, and each train of pings up to a period later: drawn
    /// from the seed. Without it loads that start together stay in lock-step, as no real ones do.
    #[serde(default)]
    pub start_jitter_ns: u64,
    /// How often what is sampled.
    pub sampling: Sampling,
    /// Internet protocol of loads and probes that do not say theirs.
    pub ip_version: IpVersion,
    /// Largest IP packet, in bytes.
    pub mtu_bytes: u32,
}

/// A named span of time, such as `idle` or `load`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Phase {
    /// Name of the phase.
    pub name: String,
    /// Start of the phase.
    pub start_ns: u64,
    /// End of the phase.
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
    /// Name of the hop, such as `modem`.
    pub name: String,
    /// The marker in front of the queue, if there is one: its name and parameters.
    #[serde(default)]
    pub marker: Option<String>,
    /// The queue, in `tc` syntax.
    pub queue: String,
    /// Capacity of the line.
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
    /// Packets that a plain FIFO holds where its spec names no limit.
    #[serde(default = "default_tx_queue_len")]
    pub tx_queue_len: u32,
    /// The rate to which shares such as `95%` in the queue's spec refer; the line's own if `None`.
    #[serde(default)]
    pub reference_rate_bps: Option<u64>,
    /// Changes of the line during the run, in order of time.
    #[serde(default)]
    pub changes: Vec<Change>,
    /// What the line does before it sends packets that wait; nothing if `None`. A line of constant rate only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<Access>,
    /// Another path from time to time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reconfiguration: Option<Reconfiguration>,
    /// Whether the queue is held back to the rate that the [shaper](Scenario::shaper) sets.
    #[serde(default)]
    pub shaped: bool,
}

/// Something that happens to a line.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// When.
    pub at_ns: u64,
    /// The change.
    pub to: LineChange,
}

/// A change of a line during the run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LineChange {
    /// It carries that many bit/s from now on. A line of constant rate only.
    RateBps(u64),
    /// It carries nothing until it has a rate again. A line of constant rate only.
    Down,
    /// Packets that leave from now on take that long, one way.
    DelayNs(u64),
    /// Packets that leave from now on are lost so, in place of as before.
    Loss(LossParams),
}

/// Capacity of a line: a constant rate or a recorded trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum LineRate {
    /// Everything at once.
    Unlimited,
    /// A constant rate in bit/s.
    Bps(u64),
    /// A recording of that name.
    Trace(String),
    /// No line but the [processor](Hop::is_processor) of a router: so many packets per second, of any length.
    PacketsPerSecond(u64),
}

/// A server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Name of the host.
    pub name: String,
    /// Delay between it and the far end of the path, each way, beyond the path's own.
    pub delay_ns: u64,
    /// Number of the route by which it is reached; over all hops in order if `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route: Option<u32>,
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

/// A load: data over TCP, packets over UDP, or an application.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// Name of the flow, such as `TCP download BE`.
    pub name: String,
    /// Direction of its data, as the client sees it.
    pub direction: Direction,
    /// Number of the server at its other end.
    pub host: u32,
    /// Number of the tunnel that carries it, if one does.
    #[serde(default)]
    pub tunnel: Option<u32>,
    /// Number of the machine in the client's network at its near end; 0 is the client itself.
    #[serde(default)]
    pub client_host: u32,
    /// Who opens the connection.
    #[serde(default)]
    pub opened_by: Opener,
    /// Differentiated services code point of its packets, both ways.
    pub dscp: u8,
    /// Internet protocol of the flow; the scenario's if `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ip_version: Option<IpVersion>,
    /// TCP of the flow; without a meaning if it is UDP.
    pub tcp: TcpSettings,
    /// The packets of a UDP flow; `None` for TCP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub udp: Option<UdpLoad>,
    /// What an application asks its server for; `None` for loads of data or packets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub application: Option<Application>,
    /// When the connection is opened.
    pub start_ns: u64,
    /// When the sender stops handing in data.
    pub stop_ns: u64,
    /// How much it sends; without end if `None`.
    #[serde(default)]
    pub bytes: Option<u64>,
}

/// A train of pings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Probe {
    /// Name of the probe, such as `Ping (ms) UDP EF`.
    pub name: String,
    /// Protocol of the probes.
    pub kind: ProbeKind,
    /// Number of the server that answers.
    pub host: u32,
    /// Number of the tunnel that carries it, if one does.
    #[serde(default)]
    pub tunnel: Option<u32>,
    /// Differentiated services code point, both ways.
    pub dscp: u8,
    /// Internet protocol of the probe; the scenario's if `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ip_version: Option<IpVersion>,
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

/// Protocol of a probe.
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

/// Error in a scenario, in one sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ScenarioError {
    message: String,
}

impl Scenario {
    /// A scenario over a path of one hop each way, with one server and nothing else: no loads, probes or samples,
    /// IPv4, packets of up to 1500 bytes.
    #[must_use]
    pub fn over(name: &str, duration_ns: u64, up: Hop, down: Hop) -> Self {
        Self {
            name: name.to_owned(),
            duration_ns,
            phases: Vec::new(),
            path: Path { up: vec![up], down: vec![down] },
            routes: Vec::new(),
            hosts: vec![Host { name: "server".to_owned(), delay_ns: 0, route: None }],
            tunnels: Vec::new(),
            flows: Vec::new(),
            probes: Vec::new(),
            methods: Vec::new(),
            start_jitter_ns: 0,
            shaper: None,
            sampling: Sampling { throughput_ns: 0, tcp_ns: 0, queue_ns: 0 },
            ip_version: IpVersion::V4,
            mtu_bytes: 1500,
        }
    }

    /// Reads a resolved scenario.
    ///
    /// # Errors
    /// If it is not one, or its parts do not fit together.
    pub fn from_json(text: &str) -> Result<Self, ScenarioError> {
        let scenario: Self = serde_json::from_str(text).map_err(|error| {
            // It names what it does not know as that was written, line ends included.
            let error = error.to_string().replace(char::is_control, " ");
            ScenarioError::new(format!("not a resolved scenario: {error}"))
        })?;
        scenario.check()?;
        Ok(scenario)
    }

    /// The scenario as JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a scenario has no maps with odd keys")
    }

    /// Names of the recordings that its lines need.
    pub fn traces(&self) -> impl Iterator<Item = &str> {
        self.path.up.iter().chain(&self.path.down).filter_map(|hop| match &hop.rate {
            LineRate::Trace(name) => Some(name.as_str()),
            LineRate::Unlimited | LineRate::Bps(_) | LineRate::PacketsPerSecond(_) => None,
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

    /// How many hops of `direction` take one off a packet's time to live: all but the processors of routers.
    #[must_use]
    pub fn counted_hops(&self, direction: Direction) -> u32 {
        self.hops(direction).iter().filter(|hop| !hop.is_processor()).count() as u32
    }

    /// Internet protocol of load number `flow`.
    #[must_use]
    pub fn flow_ip(&self, flow: usize) -> IpVersion {
        self.flows[flow].ip_version.unwrap_or(self.ip_version)
    }

    /// Internet protocol of probe number `probe`.
    #[must_use]
    pub fn probe_ip(&self, probe: usize) -> IpVersion {
        self.probes[probe].ip_version.unwrap_or(self.ip_version)
    }

    /// The Internet protocols of the scenario, its loads and its probes, each once.
    #[must_use]
    pub fn ip_versions(&self) -> Vec<IpVersion> {
        let flows = self.flows.iter().filter_map(|flow| flow.ip_version);
        let probes = self.probes.iter().filter_map(|probe| probe.ip_version);
        let other = flows.chain(probes).find(|&ip| ip != self.ip_version);
        std::iter::once(self.ip_version).chain(other).collect()
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
}

impl Hop {
    /// A hop with that queue, in `tc` syntax, in front of a line of that rate, without anything else: no framing, no
    /// delay, no impairments.
    #[must_use]
    pub fn new(name: &str, queue: &str, rate: LineRate) -> Self {
        Self {
            name: name.to_owned(),
            marker: None,
            queue: queue.to_owned(),
            rate,
            framing: Framing::NONE,
            delay_ns: 0,
            jitter_ns: 0,
            loss: None,
            reorder: None,
            duplicate: 0.0,
            tx_queue_len: default_tx_queue_len(),
            reference_rate_bps: None,
            changes: Vec::new(),
            access: None,
            reconfiguration: None,
            shaped: false,
        }
    }

    /// The processor of the router in front of hop `name`, which forwards `packets_per_second` and lets
    /// `queue_packets` wait in a FIFO of its own: hop `NAME-cpu`.
    #[must_use]
    pub fn processor(name: &str, packets_per_second: u64, queue_packets: u32) -> Self {
        let queue = format!("pfifo limit {queue_packets}");
        Self::new(&format!("{name}-cpu"), &queue, LineRate::PacketsPerSecond(packets_per_second))
    }

    /// Whether it is the processor of the router in front of the next hop. A packet's time to live ends behind
    /// the processor, so that both count as one router.
    #[must_use]
    pub const fn is_processor(&self) -> bool {
        matches!(self.rate, LineRate::PacketsPerSecond(_))
    }

    /// The hop's name in the record, where it is passed in `direction`: such as `up/modem`.
    #[must_use]
    pub fn full_name(&self, direction: Direction) -> String {
        format!("{direction}/{}", self.name)
    }

    /// Impairments of packets after the line: delay, jitter, loss, reordering and duplication.
    #[must_use]
    pub const fn flight(&self) -> FlightParams {
        FlightParams {
            delay: Duration::from_nanos(self.delay_ns),
            jitter: Duration::from_nanos(self.jitter_ns),
            loss: self.loss,
            reorder: self.reorder,
            duplicate: self.duplicate,
            reconfiguration: self.reconfiguration,
        }
    }
}

impl Flow {
    /// A load between the client and its only server, without a DSCP, over Linux' TCP with that congestion control,
    /// from `start` to `stop`.
    #[must_use]
    pub fn new(
        name: impl Into<String>,
        direction: Direction,
        congestion_control: impl Into<String>,
        (start, stop): (Time, Time),
    ) -> Self {
        Self {
            name: name.into(),
            direction,
            host: 0,
            tunnel: None,
            client_host: 0,
            opened_by: Opener::Client,
            dscp: 0,
            ip_version: None,
            tcp: TcpSettings::linux(congestion_control),
            udp: None,
            application: None,
            start_ns: start.as_nanos(),
            stop_ns: stop.as_nanos(),
            bytes: None,
        }
    }

    /// Whether it is one TCP connection that carries data.
    #[must_use]
    pub const fn is_tcp(&self) -> bool {
        self.udp.is_none() && self.application.is_none()
    }

    /// The end that opens the connection.
    #[must_use]
    pub const fn opener(&self) -> End {
        match self.opened_by {
            Opener::Client => End::Client,
            Opener::Server => End::Server,
        }
    }

    /// The end that sends the data.
    #[must_use]
    pub const fn sender(&self) -> End {
        self.direction.sender()
    }

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

impl Probe {
    /// A train of pings to the only server, with the payload of the usual ping and without a DSCP, one every `period`
    /// from the start of the run to `stop`.
    #[must_use]
    pub fn new(name: impl Into<String>, kind: ProbeKind, period: Duration, stop: Time) -> Self {
        Self {
            name: name.into(),
            kind,
            host: 0,
            tunnel: None,
            dscp: 0,
            ip_version: None,
            payload_bytes: USUAL_PAYLOAD_BYTES,
            period_ns: period.as_nanos(),
            start_ns: 0,
            stop_ns: stop.as_nanos(),
            ttl: None,
        }
    }
}

impl ScenarioError {
    /// An error with that message.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }
}

/// With the headers of IPv4 and ICMP or UDP, a packet of about the size of ping(8)'s.
const USUAL_PAYLOAD_BYTES: u32 = 60;

const fn default_tx_queue_len() -> u32 {
    1000
}
