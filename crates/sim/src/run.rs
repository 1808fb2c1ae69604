//! The run loop.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use weir_core::{Duration, FlowKey, Packet, Seed, Ticker, Time, prefetch, prefetch_start};
use weir_path::{ArrivalPoint, CapturePoint, End, Path, QueueSampler, Source, Trace};
use weir_scenario::{Scenario, Sink};

use crate::capture::{Capture, PacketTap};
use crate::check::{SimError, check};
use crate::connection::FRONT_BYTES;
use crate::encapsulation::{Encapsulation, labels};
use crate::huge_pages;
use crate::load::Load;
use crate::method::SpeedTests;
use crate::packet_store::PacketStore;
use crate::probes::PingTrain;
use crate::profiles::Profiles;
use crate::sampler::FlowSampler;
use crate::shaper::ShaperControl;
use crate::sources::{EventSource, SourceMap, Tick};

/// The path with the simulator's packets on it.
pub(crate) type Network = Path<PacketStore>;

/// A scenario at work.
pub struct Simulation {
    network: Network,
    loads: Vec<Load>,
    trains: Vec<PingTrain>,
    shaper: Option<ShaperControl>,
    speed_tests: Option<Box<SpeedTests>>,
    flow_sampler: FlowSampler,
    queue_sampler: QueueSampler,
    tickers: [Option<Ticker>; Tick::ALL.len()],
    sources: SourceMap,
    end: Time,
    /// Whether there are more connections than a cache holds.
    prefetches: bool,
    /// Whether a marker asks for congestion windows.
    notes_windows: bool,
    /// Events and arrivals since the sink last heard of progress because of them.
    work: u32,
    /// Whether the sink wanted to stop.
    stopped: bool,
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
        let (flows, probes, tests) =
            (scenario.flows.len(), scenario.probes.len(), scenario.methods.len());
        let others = SourceMap::count(flows, probes, tests);
        let trace = |name: &str| Arc::clone(&parsed[name]);
        let hash_key = seed.derive("flow hash").get();
        let packets = PacketStore::new(scenario, hash_key);
        let notes_windows = packets.asks_for_windows();
        let network = Network::new(scenario, &trace, seed, packets, others);
        let sources = SourceMap::new(network.own_sources(), flows, probes, tests);

        let encapsulation = |key: FlowKey, dscp: u8, tunnel: Option<u32>| {
            Encapsulation::new(scenario, key, dscp, tunnel, hash_key)
        };
        let shared = Arc::new(scenario.clone());
        let mut profiles = Profiles::default();
        let mut loads = huge_pages::with_capacity(flows);
        for one in scenario.flows.iter().enumerate() {
            loads.push(Load::new(&shared, one, (hash_key, seed), sources, &mut profiles)?);
        }
        let trains = scenario.probes.iter().enumerate().map(|(n, probe)| {
            let flow_id = network.traffic.flow_id_of_probe(n as u32);
            let start = scenario.probe_start(n, seed);
            let encapsulation = encapsulation(scenario.probe_key(n), probe.dscp, probe.tunnel);
            let ip = scenario.probe_ip(n);
            PingTrain::new(n as u32, probe, start, encapsulation, flow_id, ip)
        });
        let trains = trains.collect();
        let labels = |key: FlowKey| labels(key, hash_key);
        let shaper = scenario
            .shaper
            .as_ref()
            .map(|spec| ShaperControl::new(spec, scenario, &network, labels, seed));
        let speed_tests = SpeedTests::new(scenario, seed, hash_key, sources).map(Box::new);
        let mut simulation = Self {
            loads,
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
            sources,
            end: Time::from_nanos(scenario.duration_ns),
            prefetches: flows > FEW_FLOWS,
            notes_windows,
            work: 0,
            stopped: false,
            outcome: Outcome::default(),
        };
        simulation.plan(scenario, seed);
        Ok(simulation)
    }

    /// Gives the bytes of all packets at `point` of `hops` to `tap`, from now on: numbers of hops, up before down.
    ///
    /// # Panics
    /// If there is no such hop.
    pub fn capture(
        &mut self,
        scenario: &Scenario,
        hops: &[usize],
        point: CapturePoint,
        tap: Box<dyn PacketTap + Send>,
    ) {
        for &hop in hops {
            self.network.capture(hop, point);
        }
        self.network.traffic.capture = Some(Box::new(Capture::new(scenario, hops, tap)));
    }

    /// Runs to the end, or until `sink` wants to stop. What was sampled until then is in the sink.
    pub fn run(mut self, sink: &mut dyn Sink) -> Outcome {
        let end = self.end;
        let _ = self.advance(end, sink);
        self.finish(sink)
    }

    /// Runs to `until`, or to the end if that comes first, or until `sink` wants to stop.
    ///
    /// A run in several such steps gives the same rows as a run in one. Who has one thread only, such as a worker of a
    /// browser, looks between two steps whether the run is still wanted.
    pub fn advance(&mut self, until: Time, sink: &mut dyn Sink) -> ControlFlow<()> {
        let until = until.min(self.end);
        while let Some((now, number)) = self.next_event() {
            if now > until {
                // Belongs to the time behind this step.
                self.network.events.set(number, now);
                break;
            }
            self.outcome.events += 1;
            self.outcome.reached = now;
            if self.handle(number, now, sink).is_break()
                || self.look_up_from_work(now, sink).is_break()
            {
                self.stopped = true;
                return ControlFlow::Break(());
            }
        }
        self.outcome.reached = until;
        ControlFlow::Continue(())
    }

    /// Ends the run where it is, and gives the rows that come last. It is complete if it has reached its end.
    pub fn finish(mut self, sink: &mut dyn Sink) -> Outcome {
        let stopped = self.stopped || self.outcome.reached < self.end;
        if let Some(tests) = &mut self.speed_tests {
            tests.end(&mut self.network, sink);
        }
        if !stopped {
            self.wait_for_answers(sink);
        }
        let reached = self.outcome.reached;
        for load in self.loads.iter_mut().filter(|load| matches!(load, Load::Application(_))) {
            load.stop(&mut self.network, reached);
        }
        for row in self.network.traffic.transfers.drain(..) {
            sink.transfer(&row);
        }
        for (load, fate) in self.loads.iter().zip(&self.network.traffic.flows) {
            sink.flow(&load.row(*fate));
        }
        if let Some(tests) = &self.speed_tests {
            tests.rows(&self.network, sink);
        }
        self.outcome.complete = !stopped;
        self.outcome.packets =
            self.network.hops().iter().map(|hop| hop.port.stats().departed.packets).sum();
        self.outcome
    }

    /// Tells the sink of progress by work done too: where a great deal happens in little time, or all of
    /// it at once, the time of the next progress is far away.
    fn look_up_from_work(&mut self, now: Time, sink: &mut dyn Sink) -> ControlFlow<()> {
        self.work += 1;
        if self.work < LOOK_EVERY {
            return ControlFlow::Continue(());
        }
        self.work = 0;
        sink.progress(now)
    }

    /// Pings that are under way at the end are waited for, so that slow ones do not go missing; those that are then still
    /// under way are lost.
    fn wait_for_answers(&mut self, sink: &mut dyn Sink) {
        let give_up = self.end.saturating_add(LAST_ANSWER);
        while self.network.traffic.pings_under_way() > 0 {
            let Some((now, number)) = self.next_event() else { break };
            if now > give_up {
                break;
            }
            match self.sources.source(number) {
                EventSource::Path(_)
                | EventSource::Timer { .. }
                | EventSource::Start(_)
                | EventSource::Stop(_)
                | EventSource::Ping(_) => {
                    let _ = self.handle(number, now, sink);
                }
                EventSource::Tick(_)
                | EventSource::ShaperTick
                | EventSource::ShaperProbe
                | EventSource::Test(_)
                | EventSource::ConnectionTimer { .. } => {}
            }
            if self.look_up_from_work(now, sink).is_break() {
                return;
            }
        }
        self.network.traffic.lose_pings();
        self.network.traffic.lost_pings.drain(..).for_each(|row| sink.latency(&row));
    }

    /// The next event, whose source is then no longer due.
    #[inline(always)]
    fn next_event(&mut self) -> Option<(Time, Source)> {
        loop {
            let (now, number) = self.network.events.next()?;
            if self.sources.is_of_path(number) || !self.is_early(number, now) {
                return Some((now, number));
            }
        }
    }

    /// Whether event `number` is that of a timer which is not due yet: it was set to a time
    /// [before which it is not](Load::timer_from), and is now set to when it is.
    #[inline(never)]
    fn is_early(&mut self, number: Source, now: Time) -> bool {
        let EventSource::Timer { flow, end } = self.sources.source(number) else { return false };
        let Load::Tcp(connection) = &self.loads[flow] else { return false };
        let due = connection.next_timer(end);
        if due > now {
            self.network.events.set(number, due);
        }
        due > now
    }

    #[inline(always)]
    fn handle(&mut self, number: Source, now: Time, sink: &mut dyn Sink) -> ControlFlow<()> {
        let mut verdict = ControlFlow::Continue(());
        match self.sources.source(number) {
            EventSource::Path(number) => {
                if self.prefetches {
                    self.prefetch(number);
                }
                let mut packet = Packet::BLANK;
                if let Some(place) = self.network.arrival_by(number, now, &mut packet) {
                    self.take_in(&packet, place, now, sink);
                }
            }
            EventSource::Timer { flow, end } => {
                self.loads[flow].on_timer(end, &mut self.network, now);
                if self.notes_windows {
                    self.note_window(flow);
                }
                self.set_timer(flow, end);
            }
            rare => verdict = self.handle_rare(rare, now, sink),
        }
        if self.network.has_arrived() || self.network.traffic.has_rows() {
            self.take_in_arrived(now, sink);
        }
        verdict
    }

    /// An event of a source other than the path and the flows' timers, of which nearly all events are.
    fn handle_rare(
        &mut self,
        source: EventSource,
        now: Time,
        sink: &mut dyn Sink,
    ) -> ControlFlow<()> {
        match source {
            EventSource::Path(_) | EventSource::Timer { .. } => {
                unreachable!("the events of {source:?} are not rare")
            }
            EventSource::Start(flow) => {
                self.loads[flow].start(&mut self.network, now);
                self.set_timer(flow, self.loads[flow].opener());
            }
            EventSource::Stop(flow) => {
                self.loads[flow].stop(&mut self.network, now);
                if !matches!(self.loads[flow], Load::Tcp(_)) {
                    self.set_timer(flow, self.loads[flow].opener());
                }
            }
            EventSource::Ping(probe) => {
                let train = &mut self.trains[probe];
                train.send(&mut self.network, now);
                if let Some(at) = train.next_send() {
                    self.set(source, at);
                }
            }
            EventSource::Tick(tick) => return self.tick(tick, now, sink),
            EventSource::ShaperTick => {
                let shaper = self.shaper.as_mut().expect(SHAPER_SET);
                let [tick, probe] = shaper.tick(&mut self.network, now, sink);
                self.set(EventSource::ShaperTick, tick);
                self.set(EventSource::ShaperProbe, probe);
            }
            EventSource::ShaperProbe => {
                let shaper = self.shaper.as_mut().expect(SHAPER_SET);
                let probe = shaper.send_probe(&mut self.network, now);
                self.set(EventSource::ShaperProbe, probe);
            }
            EventSource::Test(test) => {
                let tests = self.speed_tests.as_mut().expect(TESTS_SET);
                tests.on_due(test, &mut self.network, now, sink);
            }
            EventSource::ConnectionTimer { connection, end } => {
                if let Some(flow) = self.network.traffic.application_of(connection) {
                    self.loads[flow].on_connection_timer((connection, end), &mut self.network, now);
                    return ControlFlow::Continue(());
                }
                let tests = self.speed_tests.as_mut().expect(TESTS_SET);
                tests.on_timer((connection, end), &mut self.network, now, sink);
            }
        }
        ControlFlow::Continue(())
    }

    /// Asks for the memory of packets that will arrive shortly, step by step: each step needs what the one before it asked
    /// for.
    fn prefetch(&self, number: Source) {
        let Some(upcoming) = self.network.upcoming(number) else { return };
        let load_of = |packet: &Packet| self.loads.get(packet.flow_id as usize);
        if let Some(packet) = upcoming.packet(PACKET_AHEAD) {
            prefetch(packet);
        }
        if let Some(load) = upcoming.packet(LOAD_AHEAD).and_then(load_of) {
            prefetch_start(load, FRONT_BYTES);
        }
        if let Some(packet) = upcoming.packet(CONNECTION_AHEAD)
            && let Some(Load::Tcp(connection)) = load_of(packet)
        {
            connection.prefetch(upcoming.end);
            self.network.traffic.prefetch_segment(packet.handle);
            self.network.events.prefetch(self.sources.timer(packet.flow_id as usize, upcoming.end));
        }
        if let Some(Load::Tcp(connection)) = upcoming.packet(BEHIND_AHEAD).and_then(load_of) {
            connection.prefetch_behind(upcoming.end);
        }
    }

    /// Hands all packets that have arrived on, and what became of pings and transfers to `sink`.
    #[inline(never)]
    fn take_in_arrived(&mut self, now: Time, sink: &mut dyn Sink) {
        while let Some((packet, place)) = self.network.next_arrived() {
            self.take_in(&packet, place, now, sink);
        }
        for row in self.network.traffic.lost_pings.drain(..) {
            sink.latency(&row);
        }
        for row in self.network.traffic.transfers.drain(..) {
            sink.transfer(&row);
        }
    }

    /// Hands a packet that has arrived to the connection or probe of its flow id, which may send others.
    #[inline(always)]
    fn take_in(&mut self, packet: &Packet, place: ArrivalPoint, now: Time, sink: &mut dyn Sink) {
        self.work += 1;
        let flow_id = packet.flow_id as usize;
        let Some(load) = self.loads.get_mut(flow_id) else {
            return self.take_in_of_no_load(packet, place, now, sink);
        };
        let ArrivalPoint::End(end) = place else {
            unreachable!("only probes end at a router");
        };
        load.on_packet(packet, end, &mut self.network, now);
        self.network.events.set(self.sources.timer(flow_id, end), load.timer_from(end, now));
        if self.notes_windows {
            self.note_window(flow_id);
        }
    }

    /// Hands on a packet of a probe, or of a connection of a speed test or an application.
    fn take_in_of_no_load(
        &mut self,
        packet: &Packet,
        place: ArrivalPoint,
        now: Time,
        sink: &mut dyn Sink,
    ) {
        if let Some(connection) = self.network.traffic.connection_of(packet) {
            let ArrivalPoint::End(end) = place else {
                unreachable!("only probes end at a router");
            };
            if let Some(flow) = self.network.traffic.application_of(connection) {
                self.loads[flow].on_packet(packet, end, &mut self.network, now);
                self.set_timer(flow, End::Client);
                return;
            }
            let tests = self.speed_tests.as_mut().expect("they opened the connection");
            tests.on_packet((connection, packet), end, &mut self.network, now, sink);
        } else if self.network.traffic.reflector_of(packet).is_some() {
            let shaper = self.shaper.as_mut().expect("its probes are under way");
            shaper.on_packet(packet, place, &mut self.network, now);
        } else {
            let train = &self.trains[packet.flow_id as usize - self.loads.len()];
            if let Some(row) = train.on_packet(packet, place, &mut self.network, now) {
                sink.latency(&row);
            }
        }
    }

    fn set(&mut self, source: EventSource, at: Time) {
        self.network.events.set(self.sources.number(source), at);
    }

    /// Tells a marker that asks of the window of flow number `flow`.
    fn note_window(&mut self, flow: usize) {
        if let Load::Tcp(connection) = &self.loads[flow] {
            let window = || connection.sender_info().cwnd;
            self.network.traffic.note_window(flow as u32, window);
        }
    }

    fn set_timer(&mut self, flow: usize, end: End) {
        let number = self.sources.timer(flow, end);
        self.network.events.set(number, self.loads[flow].next_timer(end));
    }

    fn tick(&mut self, tick: Tick, now: Time, sink: &mut dyn Sink) -> ControlFlow<()> {
        let ticker = self.tickers[tick as usize].expect("only tickers that run are set");
        self.set(EventSource::Tick(tick), ticker.after(now));
        match tick {
            Tick::Throughput => {
                self.flow_sampler.throughput(&mut self.loads, now, sink);
                if let Some(tests) = &mut self.speed_tests {
                    tests.throughput(now, sink);
                }
            }
            Tick::Tcp => {
                self.flow_sampler.tcp(&self.loads, now, sink);
                if let Some(tests) = &self.speed_tests {
                    tests.tcp(now, sink);
                }
            }
            Tick::Queue => self.queue_sampler.sample(self.network.hops_mut(), now, sink),
            Tick::Progress => return sink.progress(now),
        }
        ControlFlow::Continue(())
    }

    /// Sets the sources that start by themselves.
    fn plan(&mut self, scenario: &Scenario, seed: Seed) {
        for (n, flow) in scenario.flows.iter().enumerate() {
            let start = scenario.flow_start(n, seed);
            self.set(EventSource::Start(n), start);
            self.set(EventSource::Stop(n), flow.stop().max(start));
        }
        for n in 0..self.trains.len() {
            if let Some(at) = self.trains[n].next_send() {
                self.set(EventSource::Ping(n), at);
            }
        }
        for (tick, ticker) in Tick::ALL.into_iter().zip(self.tickers) {
            if let Some(ticker) = ticker {
                self.set(EventSource::Tick(tick), ticker.after(Time::ZERO));
            }
        }
        if self.shaper.is_some() {
            self.set(EventSource::ShaperTick, Time::ZERO);
        }
        if let Some(tests) = &self.speed_tests {
            tests.plan(&mut self.network);
        }
    }
}

/// Why there is a shaper when an event is for one.
const SHAPER_SET: &str = "only the sources of a shaper that is there are set";
/// Why there are speed tests when an event is for one.
const TESTS_SET: &str = "only the sources of speed tests that are there are set";
/// How often the sink hears of progress.
const PROGRESS: Duration = Duration::from_millis(50);
/// Events and arrivals after which the sink hears of progress at the latest: a tenth of a second of work.
const LOOK_EVERY: u32 = 1 << 18;
/// How long pings are waited for behind the end.
const LAST_ANSWER: Duration = Duration::from_secs(10);
/// So many connections stay in a cache of the processor's own by themselves.
const FEW_FLOWS: usize = 256;
/// How many packets ahead a packet is asked for.
const PACKET_AHEAD: usize = 12;
/// How many packets ahead the load is asked whether it is one over TCP.
const LOAD_AHEAD: usize = 6;
/// How many packets ahead its connection is asked for: far enough for it to come, near enough to stay.
const CONNECTION_AHEAD: usize = 2;
/// How many packets ahead that is asked for to which the connection points.
const BEHIND_AHEAD: usize = 1;
