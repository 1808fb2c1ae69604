//! One measurement, from the handshake to the record.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration as WallDuration, Instant};

use serde_json::{Value, json};
use weir_core::{Duration, Seed, Time};
use weir_scenario::{Direction, Flow, RecordSink, Scenario};
use weir_sockets::sys::epoll::{Epoll, Events, Interest};
use weir_sockets::{Addresses, Clock, Pings, Sample};
use weir_speedtest::protocol::weir::{ClientMessage, Secret, ServerMessage, Token};

use crate::ClientError;
use crate::applications::{self, ApplicationConfig, ApplicationEvent, ApplicationOrder};
use crate::check::check_scenario;
use crate::loads::{self, LoadConfig, LoadEvent, Order};
use crate::peer::Peer;
use crate::request::MeasureRequest;
use crate::results::{Echoes, Results, pass_on_pings};
use crate::udp_loads::{self, UdpConfig, UdpEvent, UdpOrder};
use crate::ways::{Reached, reach};
use crate::worker::Worker;

/// Outcome of a measurement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Time that was reached.
    pub reached: Time,
    /// Whether it came to its end.
    pub complete: bool,
}

/// Measures, and writes what comes of it into `record`.
///
/// # Errors
/// If a server cannot be reached, refuses, or lacks what the scenario asks for, or if the connection to
/// it breaks. What was measured until then stays in the record.
pub fn measure(
    request: &MeasureRequest,
    record: &mut dyn RecordSink,
) -> Result<Outcome, ClientError> {
    let secret = request.secret.as_deref().map(Secret::new).transpose();
    let secret = secret.map_err(|error| ClientError::new(error.to_string()))?;
    check_scenario(&request.scenario)?;
    let Reached { scenario, targets } = reach(request)?;
    // Once more: over IPv6 packets have less room.
    check_scenario(&scenario)?;
    let open = |target| Peer::open(target, secret.as_ref(), &scenario);
    let peers = targets.into_iter().map(open).collect::<Result<Vec<_>, _>>()?;
    let clock = Clock::starting_in(HEAD_START);
    record.note("monotonic_zero_ns", json!(clock.monotonic_ns_of(Time::ZERO)));
    let mut run = Run::start(request, scenario, peers, clock)?;
    run.note_servers(record);
    let ended = run.go_on(record);
    let finished = run.finish(record);
    let reached = ended?;
    finished?;
    let end = Time::from_nanos(request.scenario.duration_ns);
    Ok(Outcome { reached, complete: reached >= end })
}

/// A measurement under way.
struct Run<'r> {
    peers: Vec<Peer>,
    /// Wakes up when a server says something.
    epoll: Epoll,
    events: Events,
    clock: Clock,
    results: Results<'r>,
    /// If there are TCP loads.
    loads: Option<Worker<Order, LoadEvent>>,
    /// If there are UDP loads.
    udp: Option<Worker<UdpOrder, UdpEvent>>,
    /// If there are applications.
    applications: Option<Worker<ApplicationOrder, ApplicationEvent>>,
    pings: Pings,
    samples: Receiver<Sample>,
    cpu_ns: u64,
    /// When anything last came from a server: its word, an answer to a ping, or data.
    heard: Time,
    /// Whether nothing has come for so long that the test of a line ended.
    fell_silent: bool,
}

impl<'r> Run<'r> {
    fn start(
        request: &'r MeasureRequest,
        scenario: Scenario,
        peers: Vec<Peer>,
        clock: Clock,
    ) -> Result<Self, ClientError> {
        let epoll = watching(&peers).map_err(|error| ClientError::io("epoll", &error))?;
        let addresses = Addresses::Sessions(peers.iter().map(Peer::ends).collect());
        let (sender, samples) = mpsc::channel();
        let (shared, seed) = (Arc::new(scenario.clone()), Seed::new(request.seed));
        let pings = Pings::start(addresses, (&shared, seed, clock), sender)?;
        let (throughput_ns, tcp_ns) = (scenario.sampling.throughput_ns, scenario.sampling.tcp_ns);
        let load_config = LoadConfig { clock, throughput_ns, tcp_ns };
        let has_tcp = request.ramp.is_some() || scenario.flows.iter().any(Flow::is_tcp);
        let loads = has_tcp.then(|| loads::start(load_config)).transpose()?;
        let udp_config = UdpConfig { clock, sample_ns: throughput_ns };
        let has_udp = scenario.flows.iter().any(|flow| flow.udp.is_some());
        let udp = has_udp.then(|| udp_loads::start(udp_config)).transpose()?;
        let application_config = ApplicationConfig { clock, sample_ns: throughput_ns };
        let has_applications = scenario.flows.iter().any(|flow| flow.application.is_some());
        let applications = has_applications.then(|| applications::start(application_config));
        Ok(Self {
            peers,
            epoll,
            events: Events::new(EVENTS),
            clock,
            results: Results::new(scenario, request.seed, request.ramp.as_ref()),
            loads,
            udp,
            applications: applications.transpose()?,
            pings,
            samples,
            cpu_ns: cpu_ns(),
            heard: Time::ZERO,
            fell_silent: false,
        })
    }

    /// Works until the end, and says how far it came.
    fn go_on(&mut self, record: &mut dyn RecordSink) -> Result<Time, ClientError> {
        let end = Time::from_nanos(self.results.flows.scenario.duration_ns);
        loop {
            let now = self.clock.now();
            if now >= end && self.pings.have_ended() {
                return Ok(end);
            }
            for number in self.results.flows.to_ask_for(now + LEAD) {
                self.ask(number)?;
            }
            self.advance_ramps(now, record)?;
            self.hear(record)?;
            self.pass_on(record)?;
            self.check_silence(now)?;
            if record.progress(now.min(end)).is_break() && now < end {
                self.pings.stop();
                return Ok(now);
            }
        }
    }

    /// Ends the test of a line whose server, or path, says nothing any more.
    fn check_silence(&mut self, now: Time) -> Result<(), ClientError> {
        if !self.results.ramps.are_planned() || now < self.heard + MAX_SILENCE {
            return Ok(());
        }
        self.fell_silent = true;
        Err(self.peers[0].fell_silent(MAX_SILENCE))
    }

    /// The server of load `number` of the record, over its Internet protocol.
    fn peer_of(&mut self, number: u32) -> &mut Peer {
        let scenario = &self.results.flows.scenario;
        let (host, ip) = (scenario.flows[number as usize].host, scenario.flow_ip(number as usize));
        let mut peers = self.peers.iter_mut();
        peers.find(|peer| peer.is(host, ip)).expect("there is one for every load")
    }

    /// Asks the server for a load.
    fn ask(&mut self, number: u32) -> Result<(), ClientError> {
        let min_sample_ns = self.peer_of(number).grant().limits.sample_ns;
        let request = self.results.flows.request(number, min_sample_ns);
        self.peer_of(number).ask(number, request)
    }

    /// Asks for the flows by which ramps begin and grow.
    fn advance_ramps(&mut self, now: Time, record: &mut dyn RecordSink) -> Result<(), ClientError> {
        let Results { flows, ramps, .. } = &mut self.results;
        let added = ramps.advance(now, LEAD, &flows.scenario.phases)?;
        if added.is_empty() {
            return Ok(());
        }
        for flow in added {
            let number = self.results.flows.add(flow);
            self.ask(number)?;
        }
        self.results.note_scenario(record);
        Ok(())
    }

    /// Takes what the servers have said, or waits a moment for one of them.
    fn hear(&mut self, record: &mut dyn RecordSink) -> Result<(), ClientError> {
        self.wait()?;
        for number in 0..self.peers.len() {
            for _ in 0..MESSAGES {
                let Some(message) = self.peers[number].hear()? else { break };
                self.heard = self.clock.now();
                self.take(number, message, record)?;
            }
        }
        Ok(())
    }

    fn wait(&mut self) -> Result<(), ClientError> {
        let ready = self.epoll.wait(&mut self.events, POLL);
        ready.map(drop).map_err(|error| ClientError::io("epoll", &error))
    }

    /// Takes a message of peer `from`.
    fn take(
        &mut self,
        from: usize,
        message: ServerMessage,
        record: &mut dyn RecordSink,
    ) -> Result<(), ClientError> {
        let clocks = self.peers[from].clocks(self.clock);
        match message {
            ServerMessage::Opened { flow, ticket } => self.order(from, flow, ticket),
            ServerMessage::Started { flow, congestion, .. } => {
                self.results.flows.sender_has(flow, Direction::Down, congestion)
            }
            ServerMessage::Samples { t_ns, flows } => {
                let t = clocks.here(t_ns);
                flows.into_iter().try_for_each(|sample| self.results.sampled(t, sample, record))
            }
            ServerMessage::Done { last, t_ns, .. } => {
                self.results.done(clocks.here(t_ns), last, record)
            }
            ServerMessage::Error { flow: Some(flow), reason } => {
                Err(ClientError::new(self.results.failure_at_server(flow, &reason)?))
            }
            _ => Ok(()),
        }
    }

    /// Begins this end of a load for which peer `from` gave `ticket`.
    fn order(&self, from: usize, flow: u32, ticket: Token) -> Result<(), ClientError> {
        let (flows, way) = (&self.results.flows, self.peers[from].way(self.clock));
        if let (Some(order), Some(udp)) = (flows.udp_order(flow, ticket, &way), &self.udp) {
            udp.order(order);
        } else if let (Some(order), Some(applications)) =
            (flows.application_order(flow, ticket, &way), &self.applications)
        {
            applications.order(order);
        } else if let Some(loads) = &self.loads {
            loads.order(flows.order(flow, ticket, way)?);
        }
        Ok(())
    }

    /// Passes on what the threads have measured.
    fn pass_on(&mut self, record: &mut dyn RecordSink) -> Result<(), ClientError> {
        let scenario = &self.results.flows.scenario;
        if pass_on_pings(&self.samples, scenario, record) {
            self.heard = self.clock.now();
        }
        if let Some(udp) = &self.udp {
            udp.events().try_for_each(|event| self.results.on_udp(event, record))?;
        }
        if let Some(applications) = &self.applications {
            applications
                .events()
                .try_for_each(|event| self.results.on_application(event, record))?;
        }
        if let Some(loads) = &self.loads {
            for event in loads.events() {
                if event.has_data() {
                    self.heard = self.clock.now();
                }
                self.results.on_load(event, record)?;
            }
        }
        Ok(())
    }

    /// Ends all threads and writes what is known at the end.
    fn finish(mut self, record: &mut dyn RecordSink) -> Result<(), ClientError> {
        let (udp_events, udp_ended) = finish(self.udp.take());
        let (application_events, applications_ended) = finish(self.applications.take());
        let (load_events, loads_ended) = finish(self.loads.take());
        let counted = self.stop_loads(&udp_events).and_then(|()| self.hear_last(record));
        self.compare_clocks();
        self.note_servers(record);
        let Self { peers, clock, mut results, pings, samples, cpu_ns: cpu_before, .. } = self;
        pings.stop();
        results.ramps.settle();
        pass_on_pings(&samples, &results.flows.scenario, record);
        let passed_on =
            load_events.into_iter().try_for_each(|event| results.on_load(event, record));
        let passed_on = passed_on.and_then(|()| {
            // Of senders here the counts were taken before the last rows of their receivers.
            let mut rest =
                udp_events.into_iter().filter(|event| !matches!(event, UdpEvent::Sent { .. }));
            rest.try_for_each(|event| results.on_udp(event, record))
        });
        let passed_on = passed_on.and_then(|()| {
            let mut events = application_events.into_iter();
            events.try_for_each(|event| results.on_application(event, record))
        });
        results.warn_of_failed();
        results.warn_of_skipped();
        results.flows.rows().for_each(|row| record.flow(&row));
        results.note_scenario(record);
        let cpu = cpu_ns().saturating_sub(cpu_before);
        let elapsed = clock.now().as_nanos().max(1);
        record.note("ramps", results.ramps.into_outcomes());
        record.note("own_cpu_percent", json!(cpu as f64 * 100.0 / elapsed as f64));
        record.note("warnings", json!(results.warnings));
        if let Ok(echoes) = &counted {
            record.note("echoes", echoes.described());
        }
        let pinged = pings.join();
        peers.into_iter().for_each(Peer::close);
        loads_ended?;
        udp_ended?;
        applications_ended?;
        pinged?;
        passed_on?;
        counted.map(drop)
    }

    /// Ends what the server still has under way, once it is known what the senders of UDP loads here did: so its last
    /// rows are of all.
    fn stop_loads(&mut self, events: &[UdpEvent]) -> Result<(), ClientError> {
        for event in events {
            if let UdpEvent::Sent { flow, counts } = event {
                self.results.flows.udp_sent(*flow, *counts)?;
            }
        }
        let under_way = self.results.flows.under_way();
        under_way.into_iter().try_for_each(|number| self.peer_of(number).stop(number))
    }

    /// Asks how many datagrams arrived at the servers, and waits for their last words of all loads.
    fn hear_last(&mut self, record: &mut dyn RecordSink) -> Result<Echoes, ClientError> {
        let ask = |peer: &mut Peer| peer.say(&ClientMessage::CountEchoes);
        self.peers.iter_mut().try_for_each(ask)?;
        // Who has been silent for long enough is not waited for.
        let patience = if self.fell_silent { WallDuration::ZERO } else { PATIENCE };
        let deadline = Instant::now() + patience;
        let mut echoes = Echoes::default();
        let mut counted = vec![false; self.peers.len()];
        while Instant::now() < deadline
            && (counted.contains(&false) || !self.results.flows.under_way().is_empty())
        {
            self.wait()?;
            for (number, done) in counted.iter_mut().enumerate() {
                for _ in 0..MESSAGES {
                    let Some(message) = self.peers[number].hear()? else { break };
                    match message {
                        ServerMessage::Echoes { trains, limited, met_others } => {
                            echoes.trains.extend(trains);
                            echoes.limited = echoes.limited.saturating_add(limited);
                            echoes.met_others |= met_others;
                            *done = true;
                        }
                        ServerMessage::Done { .. } => self.take(number, message, record)?,
                        ServerMessage::Error { flow: Some(flow), reason } => {
                            let warning = self.results.failure_at_server(flow, &reason)?;
                            self.results.warnings.push(warning);
                        }
                        _ => {}
                    }
                }
            }
        }
        if !self.fell_silent {
            self.results.warn_of_unheard()?;
        }
        match counted.iter().position(|&counted| !counted) {
            Some(number) => Err(self.peers[number].silent()),
            None => Ok(echoes),
        }
    }

    /// Compares the clocks again with the servers of UDP loads, whose delays depend on them.
    fn compare_clocks(&mut self) {
        let scenario = &self.results.flows.scenario;
        let flows = || scenario.flows.iter().enumerate().filter(|(_, flow)| flow.udp.is_some());
        for peer in &mut self.peers {
            if flows().any(|(number, flow)| peer.is(flow.host, scenario.flow_ip(number))) {
                peer.compare_clocks();
            }
        }
    }

    fn note_servers(&self, record: &mut dyn RecordSink) {
        let scenario = &self.results.flows.scenario;
        let described = self.peers.iter().map(|peer| peer.described(scenario));
        record.note("servers", described.collect::<Value>());
    }
}

/// Notices when one of `peers` says something.
fn watching(peers: &[Peer]) -> io::Result<Epoll> {
    let epoll = Epoll::new()?;
    for (number, peer) in (0..).zip(peers) {
        epoll.add(peer, number, Interest::READ)?;
    }
    Ok(epoll)
}

/// The last events of a thread and why it ended; nothing if there is none.
fn finish<O: Send + 'static, E: Send + 'static>(
    thread: Option<Worker<O, E>>,
) -> (Vec<E>, Result<(), ClientError>) {
    thread.map_or((Vec::new(), Ok(())), Worker::finish)
}

/// Processor time of this process so far.
fn cpu_ns() -> u64 {
    weir_sockets::sys::time::process_cpu_ns()
}

/// Time before the clock starts, in which sockets are opened.
const HEAD_START: Duration = Duration::from_millis(300);
/// How long before its start a load is asked for: several round trips of a full buffer.
const LEAD: Duration = Duration::from_millis(1_500);
const POLL: Duration = Duration::from_millis(10);
const PATIENCE: WallDuration = WallDuration::from_secs(5);
/// As long as the browser page waits for a silent server.
const MAX_SILENCE: Duration = Duration::from_secs(10);
const EVENTS: usize = 16;
/// Messages of a server that are taken before others have their turn.
const MESSAGES: usize = 64;
