//! The run loop.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use weir_core::{Duration, FlowKey, FlowLabel, Packet, Protocol, Seed, Time};
use weir_link::{Trace, TraceError};
use weir_world::{IpVersion, ProbeKind, Scenario, ScenarioError, Sink, Verdict};

use crate::connection::Connection;
use crate::events::Source;
use crate::network::{End, Network};
use crate::probes::PingTrain;
use crate::sampler::{Sampler, Ticker};

/// A scenario at work.
pub struct Simulation {
    network: Network,
    connections: Vec<Connection>,
    trains: Vec<PingTrain>,
    sampler: Sampler,
    tickers: [Option<Ticker>; TICKERS],
    agenda: Agenda,
    end: Time,
    outcome: Outcome,
}

/// What a run amounted to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Simulated time that was reached.
    pub reached: Time,
    /// Whether the run got to its end.
    pub complete: bool,
    /// Events that were handled.
    pub events: u64,
    /// Packets that left the queues of all hops.
    pub packets: u64,
}

/// Why a scenario cannot be simulated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SimError {
    /// The scenario is not sound.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// A recording is not one.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// A recording was not handed in.
    #[error("the recording `{0}` was not given")]
    MissingTrace(String),
}

/// Sources of events beyond the path's own, by what they are for.
#[derive(Clone, Copy, Debug)]
struct Agenda {
    /// Two a connection: the client's timer, then the server's.
    timers: Source,
    /// Two a connection: start, then stop.
    loads: Source,
    /// One a train of pings.
    pings: Source,
    /// One a ticker.
    tickers: Source,
    end: Source,
}

impl Simulation {
    /// Sets `scenario` up. `traces` are the texts of the recordings that it names.
    ///
    /// # Errors
    /// If the scenario is not sound, or a recording is missing or is none.
    pub fn new(
        scenario: &Scenario,
        traces: &BTreeMap<String, String>,
        seed: Seed,
    ) -> Result<Self, SimError> {
        scenario.check()?;
        let mut parsed = BTreeMap::new();
        for name in scenario.traces() {
            let text = traces.get(name).ok_or_else(|| SimError::MissingTrace(name.to_owned()))?;
            parsed.insert(name.to_owned(), Arc::new(Trace::parse(name, text)?));
        }
        let flows = scenario.flows.len();
        let others = 4 * flows + scenario.probes.len() + TICKERS;
        let network = Network::new(scenario, &|name| Arc::clone(&parsed[name]), seed, others);
        let agenda = Agenda::new(network.own_sources(), flows, scenario.probes.len());

        let hash_key = seed.derive("flow hash").get();
        let labels = |number: usize, host: u32, protocol: Protocol| {
            labels(number, host, protocol, scenario.ip_version, hash_key)
        };
        let connections = scenario
            .flows
            .iter()
            .enumerate()
            .map(|(n, flow)| {
                let labels = labels(n, flow.host, Protocol::TCP);
                Connection::new(n as u32, flow, scenario, labels)
            })
            .collect::<Result<Vec<_>, _>>()?;
        let trains = scenario.probes.iter().enumerate().map(|(n, probe)| {
            let protocol = match (probe.kind, scenario.ip_version) {
                (ProbeKind::Udp, _) => Protocol::UDP,
                (ProbeKind::Icmp, IpVersion::V4) => Protocol::ICMP,
                (ProbeKind::Icmp, IpVersion::V6) => Protocol::ICMPV6,
            };
            let owner = network.cargo.owner_of_probe(n as u32);
            let labels = labels(flows + n, probe.host, protocol);
            let start = scenario.probe_start(n, seed);
            PingTrain::new(n as u32, probe, start, labels, owner, scenario.ip_version)
        });
        let trains = trains.collect();
        let mut simulation = Self {
            connections,
            trains,
            sampler: Sampler::new(scenario, seed),
            tickers: [
                Ticker::new(scenario.sampling.throughput_ns),
                Ticker::new(scenario.sampling.tcp_ns),
                Ticker::new(scenario.sampling.queue_ns),
                Ticker::new(PROGRESS.as_nanos()),
            ],
            network,
            agenda,
            end: Time::from_nanos(scenario.duration_ns),
            outcome: Outcome::default(),
        };
        simulation.plan(scenario, seed);
        Ok(simulation)
    }

    /// Runs to the end, or until `sink` wants to stop. What was sampled until then is in the sink.
    pub fn run(mut self, sink: &mut dyn Sink) -> Outcome {
        let stopped = self.run_until_end(sink) == Verdict::Stop;
        if !stopped {
            self.wait_for_answers(sink);
        }
        for (connection, fate) in self.connections.iter().zip(&self.network.cargo.flows) {
            sink.flow(&connection.row(*fate));
        }
        self.outcome.complete = !stopped;
        self.outcome.packets =
            self.network.hops_mut().iter().map(|hop| hop.port.stats().departed.packets).sum();
        self.outcome
    }

    fn run_until_end(&mut self, sink: &mut dyn Sink) -> Verdict {
        while let Some((now, source)) = self.network.events.next() {
            if now > self.end {
                // Belongs to the time behind the end.
                self.network.events.set(source, now);
                break;
            }
            self.outcome.events += 1;
            self.outcome.reached = now;
            if self.handle(source, now, sink) == Verdict::Stop {
                return Verdict::Stop;
            }
        }
        self.outcome.reached = self.end;
        Verdict::Continue
    }

    /// Pings that are under way at the end are waited for, so that slow ones do not go missing.
    fn wait_for_answers(&mut self, sink: &mut dyn Sink) {
        let give_up = self.end.saturating_add(LAST_ANSWER);
        while self.network.cargo.pings_under_way() > 0 {
            let Some((now, source)) = self.network.events.next() else { break };
            if now > give_up {
                break;
            }
            if source < self.agenda.tickers && self.handle(source, now, sink) == Verdict::Stop {
                break;
            }
        }
    }

    fn handle(&mut self, source: Source, now: Time, sink: &mut dyn Sink) -> Verdict {
        let agenda = self.agenda;
        let mut verdict = Verdict::Continue;
        if source < agenda.timers {
            let (connections, trains) = (&self.connections, &self.trains);
            if let Some((packet, end)) = self.network.upcoming(source)
                && let Some(connection) = connections.get(packet.owner as usize)
            {
                connection.prefetch(end);
                self.network.cargo.prefetch_segment(packet.handle);
            }
            let host_of = |packet: &Packet| host_of(packet, connections, trains);
            self.network.on_event(source, host_of, now);
        } else if source < agenda.loads {
            let number = (source - agenda.timers) as usize;
            let end = if number.is_multiple_of(2) { End::Client } else { End::Server };
            self.connections[number / 2].on_timer(end, &mut self.network, now);
            self.set_timer(number / 2, end);
        } else if source < agenda.pings {
            let number = (source - agenda.loads) as usize;
            if number.is_multiple_of(2) {
                self.connections[number / 2].start(&mut self.network, now);
                self.set_timer(number / 2, self.connections[number / 2].opener());
            } else {
                self.connections[number / 2].stop();
            }
        } else if source < agenda.tickers {
            let train = &mut self.trains[(source - agenda.pings) as usize];
            train.send(&mut self.network, now);
            if let Some(at) = train.next_send() {
                self.network.events.set(source, at);
            }
        } else {
            verdict = self.tick(source, now, sink);
        }
        self.take_in_arrived(now, sink);
        verdict
    }

    /// Hands packets that have arrived to their owners, which may send others.
    fn take_in_arrived(&mut self, now: Time, sink: &mut dyn Sink) {
        while let Some((packet, end)) = self.network.next_arrived() {
            let owner = packet.owner as usize;
            if let Some(connection) = self.connections.get_mut(owner) {
                connection.on_packet(&packet, end, &mut self.network, now);
                self.set_timer(owner, end);
            } else {
                let train = &self.trains[owner - self.connections.len()];
                if let Some(row) = train.on_packet(&packet, end, &mut self.network, now) {
                    sink.latency(&row);
                }
            }
        }
        for row in self.network.cargo.lost_pings.drain(..) {
            sink.latency(&row);
        }
    }

    fn set_timer(&mut self, connection: usize, end: End) {
        let source = self.agenda.timers + 2 * connection as Source + end as Source;
        match self.connections[connection].next_timer(end) {
            Some(at) => self.network.events.set(source, at),
            None => self.network.events.clear(source),
        }
    }

    fn tick(&mut self, source: Source, now: Time, sink: &mut dyn Sink) -> Verdict {
        let number = (source - self.agenda.tickers) as usize;
        let ticker = self.tickers[number].expect("only tickers that run are set");
        self.network.events.set(source, ticker.after(now));
        match number {
            0 => self.sampler.throughput(&self.connections, now, sink),
            1 => self.sampler.tcp(&self.connections, now, sink),
            2 => self.sampler.queues(self.network.hops_mut(), now, sink),
            _ => return sink.progress(now),
        }
        Verdict::Continue
    }

    /// Sets the sources that start by themselves.
    fn plan(&mut self, scenario: &Scenario, seed: Seed) {
        let events = &mut self.network.events;
        for (n, flow) in scenario.flows.iter().enumerate() {
            let source = self.agenda.loads + 2 * n as Source;
            let start = scenario.flow_start(n, seed);
            events.set(source, start);
            events.set(source + 1, flow.stop().max(start));
        }
        for (n, train) in self.trains.iter().enumerate() {
            if let Some(at) = train.next_send() {
                events.set(self.agenda.pings + n as Source, at);
            }
        }
        for (n, ticker) in self.tickers.iter().enumerate() {
            if let Some(ticker) = ticker {
                events.set(self.agenda.tickers + n as Source, ticker.after(Time::ZERO));
            }
        }
        debug_assert!(self.agenda.end > self.agenda.tickers);
    }
}

impl Agenda {
    const fn new(first: Source, flows: usize, probes: usize) -> Self {
        let timers = first;
        let loads = timers + 2 * flows as Source;
        let pings = loads + 2 * flows as Source;
        let tickers = pings + probes as Source;
        Self { timers, loads, pings, tickers, end: tickers + TICKERS as Source }
    }
}

fn host_of(packet: &Packet, connections: &[Connection], trains: &[PingTrain]) -> u32 {
    let owner = packet.owner as usize;
    match connections.get(owner) {
        Some(connection) => connection.host(),
        None => trains[owner - connections.len()].host(),
    }
}

/// The labels of packets from the client and from the server, of load or probe `number`.
fn labels(
    number: usize,
    host: u32,
    protocol: Protocol,
    version: IpVersion,
    hash_key: u64,
) -> [FlowLabel; 2] {
    let address = |net: u8, station: u32| -> IpAddr {
        match version {
            IpVersion::V4 => Ipv4Addr::from((10 << 24) | (u32::from(net) << 16) | station).into(),
            IpVersion::V6 => {
                let low = u128::from(net) << 64 | u128::from(station);
                Ipv6Addr::from(0xfd00 << 112 | low).into()
            }
        }
    };
    let has_ports = protocol == Protocol::TCP || protocol == Protocol::UDP;
    let (sport, dport) = if has_ports {
        (FIRST_PORT + (number % PORTS) as u16, SERVER_PORT + (number / PORTS) as u16)
    } else {
        // Linux tells echoes apart by their identifier.
        (number as u16, number as u16)
    };
    let key = FlowKey { src: address(0, 1), dst: address(1, 1 + host), sport, dport, protocol };
    [key.label(hash_key), key.reversed().label(hash_key)]
}

/// Throughput, TCP, queues, progress.
const TICKERS: usize = 4;
/// How often the sink hears of progress.
const PROGRESS: Duration = Duration::from_millis(50);
/// How long pings are waited for behind the end.
const LAST_ANSWER: Duration = Duration::from_secs(10);
const FIRST_PORT: u16 = 10_000;
const PORTS: usize = 50_000;
const SERVER_PORT: u16 = 5_001;
