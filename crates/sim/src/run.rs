//! The run loop.

use std::collections::BTreeMap;
use std::sync::Arc;

use weir_core::{Duration, FlowKey, Seed, Ticker, Time};
use weir_path::{End, Path, Place, QueueSampler, Source, Trace, TraceError};
use weir_scenario::{ProbeKind, Scenario, ScenarioError, Sink, SpeedTest, Verdict};
use weir_speedtest::MethodInfo;
use weir_tcp::{Endpoint, Profile};

use crate::connection::Connection;
use crate::encapsulation::{Encapsulation, labels};
use crate::method::SpeedTests;
use crate::packet_store::PacketStore;
use crate::prefetch::prefetch;
use crate::probes::PingTrain;
use crate::sampler::FlowSampler;
use crate::shaper::ShaperControl;

/// The path with the simulator's packets on it.
pub(crate) type Network = Path<PacketStore>;

/// A scenario at work.
pub struct Simulation {
    network: Network,
    connections: Vec<Connection>,
    trains: Vec<PingTrain>,
    shaper: Option<ShaperControl>,
    speed_tests: Option<Box<SpeedTests>>,
    flow_sampler: FlowSampler,
    queue_sampler: QueueSampler,
    tickers: [Option<Ticker>; TICKERS],
    agenda: Agenda,
    end: Time,
    /// Events and arrivals since the sink last heard of progress because of them.
    work: u32,
    outcome: Outcome,
}

/// Outcome of a run.
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
    /// A congestion control that the simulated TCP does not have.
    #[error("flow `{flow}`: {error}")]
    Tcp {
        /// The flow's name.
        flow: String,
        /// The error, in one sentence.
        error: weir_tcp::UnknownAlgorithm,
    },
    /// A probe that only live worlds have.
    #[error("probe `{0}`: the simulator has no probes of kind tcp: run it in the world `lab`")]
    TcpProbe(String),
    /// A speed test that cannot be driven.
    #[error("method `{name}`: {reason}")]
    Method {
        /// The speed test's name.
        name: String,
        /// The error, in one sentence.
        reason: String,
    },
    /// A recording was not handed in.
    #[error("the recording `{0}` was not given")]
    MissingTrace(String),
}

/// Sources of events beyond the path's own, by what they are for.
#[derive(Clone, Copy, Debug)]
struct Agenda {
    /// First source of the connections' timers; two each: the client's, then the server's.
    timers: Source,
    /// First source of the loads' times; two each: start, then stop.
    loads: Source,
    /// First source of the trains of pings; one each.
    pings: Source,
    /// First source of the tickers; one each.
    tickers: Source,
    /// The shaper's tick, then its probe.
    shaper: Source,
    /// First source of the speed tests; one each. Behind them come the timers of their connections, as
    /// opened.
    methods: Source,
}

/// Checks that the simulator can do what `scenario` asks for.
///
/// # Errors
/// If it cannot: the first thing.
pub fn check(scenario: &Scenario) -> Result<(), SimError> {
    weir_path::check(scenario)?;
    weir_tcp::check_profiles(scenario)?;
    scenario.check_routers()?;
    scenario.check_round_trips()?;
    for flow in &scenario.flows {
        let random = Seed::new(0).stream("tcp");
        Endpoint::new(Profile::of(&flow.tcp)?, &flow.tcp.congestion_control, TYPICAL_MSS, random)
            .map_err(|error| SimError::Tcp { flow: flow.name.clone(), error })?;
    }
    for test in &scenario.methods {
        check_method(test)
            .map_err(|reason| SimError::Method { name: test.name.clone(), reason })?;
    }
    match scenario.probes.iter().find(|probe| probe.kind == ProbeKind::Tcp) {
        Some(probe) => Err(SimError::TcpProbe(probe.name.clone())),
        None => Ok(()),
    }
}

fn check_method(test: &SpeedTest) -> Result<(), String> {
    let known = MethodInfo::named(&test.kind).map_err(|error| error.to_string())?;
    if known.needs_tls && !test.tls {
        return Err(format!("{} needs HTTP/2 over TLS: leave `tls = false` out", known.name));
    }
    for tcp in [&test.tcp, &test.client_tcp()] {
        let random = Seed::new(0).stream("tcp");
        let profile = Profile::of(tcp).map_err(|error| error.to_string())?;
        Endpoint::new(profile, &tcp.congestion_control, TYPICAL_MSS, random)
            .map_err(|error| error.to_string())?;
    }
    Ok(())
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
        check(scenario)?;
        let mut parsed = BTreeMap::new();
        for name in scenario.traces() {
            let text = traces.get(name).ok_or_else(|| SimError::MissingTrace(name.to_owned()))?;
            parsed.insert(name.to_owned(), Arc::new(Trace::parse(name, text)?));
        }
        let flows = scenario.flows.len();
        let others = 4 * flows + scenario.probes.len() + TICKERS + SHAPER + scenario.methods.len();
        let trace = |name: &str| Arc::clone(&parsed[name]);
        let hash_key = seed.derive("flow hash").get();
        let packets = PacketStore::new(scenario, hash_key);
        let network = Network::new(scenario, &trace, seed, packets, others);
        let agenda = Agenda::new(network.own_sources(), flows, scenario.probes.len());

        let encapsulation = |key: FlowKey, dscp: u8, tunnel: Option<u32>| {
            Encapsulation::new(scenario, key, dscp, tunnel, hash_key)
        };
        let connections = scenario
            .flows
            .iter()
            .enumerate()
            .map(|(n, flow)| {
                let encapsulation = encapsulation(scenario.flow_key(n), flow.dscp, flow.tunnel);
                Connection::new(n as u32, flow, encapsulation, seed)
            })
            .collect::<Result<Vec<_>, _>>()?;
        let trains = scenario.probes.iter().enumerate().map(|(n, probe)| {
            let flow_id = network.traffic.flow_id_of_probe(n as u32);
            let start = scenario.probe_start(n, seed);
            let encapsulation = encapsulation(scenario.probe_key(n), probe.dscp, probe.tunnel);
            PingTrain::new(n as u32, probe, start, encapsulation, flow_id, scenario.ip_version)
        });
        let trains = trains.collect();
        let labels = |key: FlowKey| labels(key, hash_key);
        let shaper = scenario
            .shaper
            .as_ref()
            .map(|spec| ShaperControl::new(spec, scenario, &network, labels, seed));
        let speed_tests = SpeedTests::new(scenario, seed, hash_key, agenda.methods).map(Box::new);
        let mut simulation = Self {
            connections,
            trains,
            shaper,
            speed_tests,
            flow_sampler: FlowSampler::new(scenario, seed),
            queue_sampler: QueueSampler::default(),
            tickers: [
                Ticker::new(scenario.sampling.throughput_ns),
                Ticker::new(scenario.sampling.tcp_ns),
                Ticker::new(scenario.sampling.queue_ns),
                Ticker::new(PROGRESS.as_nanos()),
            ],
            network,
            agenda,
            end: Time::from_nanos(scenario.duration_ns),
            work: 0,
            outcome: Outcome::default(),
        };
        simulation.plan(scenario, seed);
        Ok(simulation)
    }

    /// Runs to the end, or until `sink` wants to stop. What was sampled until then is in the sink.
    pub fn run(mut self, sink: &mut dyn Sink) -> Outcome {
        let stopped = self.run_until_end(sink) == Verdict::Stop;
        if let Some(tests) = &mut self.speed_tests {
            tests.end(&mut self.network, sink);
        }
        if !stopped {
            self.wait_for_answers(sink);
        }
        for (connection, fate) in self.connections.iter().zip(&self.network.traffic.flows) {
            sink.flow(&connection.row(*fate));
        }
        if let Some(tests) = &self.speed_tests {
            tests.rows(&self.network, sink);
        }
        self.outcome.complete = !stopped;
        self.outcome.packets =
            self.network.hops().iter().map(|hop| hop.port.stats().departed.packets).sum();
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
            if self.handle(source, now, sink) == Verdict::Stop
                || self.look_up_from_work(now, sink) == Verdict::Stop
            {
                return Verdict::Stop;
            }
        }
        self.outcome.reached = self.end;
        Verdict::Continue
    }

    /// Tells the sink of progress by work done too: where a great deal happens in little time, or all of
    /// it at once, the time of the next progress is far away.
    fn look_up_from_work(&mut self, now: Time, sink: &mut dyn Sink) -> Verdict {
        self.work += 1;
        if self.work < LOOK_EVERY {
            return Verdict::Continue;
        }
        self.work = 0;
        sink.progress(now)
    }

    /// Pings that are under way at the end are waited for, so that slow ones do not go missing.
    fn wait_for_answers(&mut self, sink: &mut dyn Sink) {
        let give_up = self.end.saturating_add(LAST_ANSWER);
        while self.network.traffic.pings_under_way() > 0 {
            let Some((now, source)) = self.network.events.next() else { break };
            if now > give_up {
                break;
            }
            if source < self.agenda.tickers {
                self.handle(source, now, sink);
            }
            if self.look_up_from_work(now, sink) == Verdict::Stop {
                break;
            }
        }
    }

    fn handle(&mut self, source: Source, now: Time, sink: &mut dyn Sink) -> Verdict {
        let agenda = self.agenda;
        let mut verdict = Verdict::Continue;
        if source < agenda.timers {
            self.prefetch(source);
            self.network.on_event(source, now);
        } else if source < agenda.loads {
            let number = (source - agenda.timers) as usize;
            let end = if number.is_multiple_of(2) { End::Client } else { End::Server };
            let connection = &mut self.connections[number / 2];
            connection.on_timer(end, &mut self.network, now);
            let window = || connection.sender_info().cwnd;
            self.network.traffic.note_window((number / 2) as u32, window);
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
        } else if source < agenda.shaper {
            verdict = self.tick(source, now, sink);
        } else if source < agenda.methods {
            self.look_after_shaper(source, now, sink);
        } else if let Some(tests) = &mut self.speed_tests {
            tests.on_event(source, &mut self.network, now, sink);
        }
        self.take_in_arrived(now, sink);
        verdict
    }

    /// Asks for the memory of packets that will arrive shortly, in two steps: a packet tells which
    /// connection and segment it will need.
    fn prefetch(&self, source: Source) {
        if let Some((packet, _)) = self.network.upcoming(source, FAR_AHEAD) {
            prefetch(packet);
        }
        if let Some((packet, end)) = self.network.upcoming(source, AHEAD)
            && let Some(connection) = self.connections.get(packet.flow_id as usize)
        {
            connection.prefetch(end);
            self.network.traffic.prefetch_segment(packet.handle);
        }
    }

    /// Hands packets that have arrived to the connection or probe of their flow id, which may send others.
    fn take_in_arrived(&mut self, now: Time, sink: &mut dyn Sink) {
        while let Some((packet, place)) = self.network.next_arrived() {
            self.work += 1;
            let flow_id = packet.flow_id as usize;
            if let Some(connection) = self.connections.get_mut(flow_id) {
                let Place::End(end) = place else {
                    unreachable!("only probes end at a router");
                };
                connection.on_packet(&packet, end, &mut self.network, now);
                let window = || connection.sender_info().cwnd;
                self.network.traffic.note_window(flow_id as u32, window);
                self.set_timer(flow_id, end);
            } else if let Some(connection) = self.network.traffic.connection_of(&packet) {
                let Place::End(end) = place else {
                    unreachable!("only probes end at a router");
                };
                let tests = self.speed_tests.as_mut().expect("they opened the connection");
                tests.on_packet((connection, &packet), end, &mut self.network, now, sink);
            } else if self.network.traffic.reflector_of(&packet).is_some() {
                let shaper = self.shaper.as_mut().expect("its probes are under way");
                shaper.on_packet(&packet, place, &mut self.network, now);
            } else {
                let train = &self.trains[flow_id - self.connections.len()];
                if let Some(row) = train.on_packet(&packet, place, &mut self.network, now) {
                    sink.latency(&row);
                }
            }
        }
        for row in self.network.traffic.lost_pings.drain(..) {
            sink.latency(&row);
        }
        if let Some(shaper) = &mut self.shaper {
            shaper.look_at_connections(&mut self.network, now);
        }
    }

    fn look_after_shaper(&mut self, source: Source, now: Time, sink: &mut dyn Sink) {
        let shaper = self.shaper.as_mut().expect("only that of a shaper is set");
        if source == self.agenda.shaper {
            let [tick, probe] = shaper.tick(&mut self.network, now, sink);
            self.network.events.set(source, tick);
            self.network.events.set(source + 1, probe);
        } else {
            let probe = shaper.send_probe(&mut self.network, now);
            self.network.events.set(source, probe);
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
            0 => {
                self.flow_sampler.throughput(&self.connections, now, sink);
                if let Some(tests) = &mut self.speed_tests {
                    tests.throughput(now, sink);
                }
            }
            1 => {
                self.flow_sampler.tcp(&self.connections, now, sink);
                if let Some(tests) = &self.speed_tests {
                    tests.tcp(now, sink);
                }
            }
            2 => self.queue_sampler.sample(self.network.hops_mut(), now, sink),
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
        if self.shaper.is_some() {
            events.set(self.agenda.shaper, Time::ZERO);
        }
        if let Some(tests) = &self.speed_tests {
            tests.plan(&mut self.network);
        }
    }
}

impl Agenda {
    const fn new(first: Source, flows: usize, probes: usize) -> Self {
        let timers = first;
        let loads = timers + 2 * flows as Source;
        let pings = loads + 2 * flows as Source;
        let tickers = pings + probes as Source;
        let shaper = tickers + TICKERS as Source;
        Self { timers, loads, pings, tickers, shaper, methods: shaper + SHAPER as Source }
    }
}

/// With IPv4 and timestamps on Ethernet.
const TYPICAL_MSS: u32 = 1448;
/// Throughput, TCP, queues, progress.
const TICKERS: usize = 4;
/// Sources of events of a shaper: its tick and its probe.
const SHAPER: usize = 2;
/// How often the sink hears of progress.
const PROGRESS: Duration = Duration::from_millis(50);
/// Events and arrivals after which the sink hears of progress at the latest: a tenth of a second of work.
const LOOK_EVERY: u32 = 1 << 18;
/// How long pings are waited for behind the end.
const LAST_ANSWER: Duration = Duration::from_secs(10);
/// How many packets ahead memory is asked for: far enough for it to come, near enough to stay.
const AHEAD: usize = 4;
/// How many packets ahead the packet itself is asked for.
const FAR_AHEAD: usize = 12;
