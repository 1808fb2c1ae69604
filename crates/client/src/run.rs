//! One measurement, from the handshake to the record.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration as WallDuration, Instant};

use serde_json::{Map, Value, json};
use weir_core::{Duration, Seed, Time};
use weir_scenario::{Direction, IpVersion, RecordSink, Scenario, ThroughputRow, UdpRow};
use weir_sockets::sys::time::monotonic_ns;
use weir_sockets::{
    Addresses, Clock, ClockOffset, EchoSession, Grant, Pings, Sample, Session, Target,
};
use weir_speedtest::protocol::weir::{
    ClientMessage, EchoCount, FlowRequest, FlowSample, Secret, ServerMessage, Token,
};

use crate::ClientError;
use crate::applications::{ApplicationConfig, ApplicationEvent, ApplicationThread};
use crate::check::check;
use crate::flow_table::{FlowTable, ServerRow};
use crate::loads::{LoadConfig, LoadEvent, LoadThread};
use crate::numbers::Numbers;
use crate::ramps::{RampPlan, Ramps};
use crate::udp_loads::{UdpConfig, UdpEvent, UdpThread};

/// Request for a measurement.
#[derive(Clone, Debug)]
pub struct MeasureRequest {
    /// The server, as [`Target::find`] reads it.
    pub host: String,
    /// Secret of the server, if it asks for one.
    pub secret: Option<String>,
    /// Loads and probes. Its path is empty: the path is what is measured.
    pub scenario: Scenario,
    /// The seed of what the scenario leaves to chance.
    pub seed: u64,
    /// Loads beyond the scenario's, as many as fill the line.
    pub ramp: Option<RampPlan>,
}

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
/// If the server cannot be reached, refuses, or lacks what the scenario asks for, or if the connection to
/// it breaks. What was measured until then stays in the record.
pub fn measure(
    request: &MeasureRequest,
    record: &mut dyn RecordSink,
) -> Result<Outcome, ClientError> {
    let secret = request.secret.as_deref().map(Secret::new).transpose();
    let secret = secret.map_err(|error| ClientError::new(error.to_string()))?;
    let target = Target::find(&request.host)?;
    let mut session = Session::open(&target, secret.as_ref())?;
    check(request, &session.grant)?;
    let offset = session.compare_clocks()?;
    let clock = Clock::starting_in(HEAD_START);
    record.note("monotonic_zero_ns", json!(clock.monotonic_ns_of(Time::ZERO)));
    let clocks = Clocks { clock, offset };
    let mut run = Run::start(request, &target, session, clocks, record)?;
    let ended = run.go_on(record);
    let finished = run.finish(record);
    let reached = ended?;
    finished?;
    let end = Time::from_nanos(request.scenario.duration_ns);
    Ok(Outcome { reached, complete: reached >= end })
}

/// A measurement under way.
struct Run<'r> {
    session: Session,
    clocks: Clocks,
    results: Results<'r>,
    numbers: Numbers,
    loads: LoadThread,
    /// If there are UDP loads.
    udp: Option<UdpThread>,
    /// If there are applications.
    applications: Option<ApplicationThread>,
    pings: Pings,
    samples: Receiver<Sample>,
    cpu_ns: u64,
}

/// The run's clock, and what the server's is ahead of it.
#[derive(Clone, Copy)]
pub(crate) struct Clocks {
    pub clock: Clock,
    offset: ClockOffset,
}

/// Results of the loads so far.
struct Results<'r> {
    flows: FlowTable,
    ramps: Ramps<'r>,
    warnings: Vec<String>,
    /// Of applications: how many connections broke or could not be had, and why the first one.
    failed: BTreeMap<u32, (u64, String)>,
}

impl<'r> Run<'r> {
    fn start(
        request: &'r MeasureRequest,
        target: &Target,
        session: Session,
        clocks: Clocks,
        record: &mut dyn RecordSink,
    ) -> Result<Self, ClientError> {
        let (server, clock, seed) = (target.address, clocks.clock, Seed::new(request.seed));
        let ip_version = IpVersion::of(server.ip());
        let scenario = Scenario { ip_version, ..request.scenario.clone() };
        let port = session.grant.udp_port.unwrap_or(server.port());
        let addresses = Addresses::Session {
            client: session.grant.local.ip(),
            server: server.ip(),
            session: EchoSession { token: session.grant.token, port },
        };
        let (sender, samples) = mpsc::channel();
        let pings = Pings::start(addresses, (&Arc::new(scenario.clone()), seed, clock), sender)?;
        let config = LoadConfig {
            clock,
            server,
            authority: target.authority.clone(),
            throughput_ns: scenario.sampling.throughput_ns,
            tcp_ns: scenario.sampling.tcp_ns,
            ip_header: ip_version.header_bytes(),
        };
        let loads =
            LoadThread::start(config).map_err(|error| ClientError::io("thread `loads`", &error))?;
        let local = session.grant.local.ip();
        let udp_config = UdpConfig {
            clocks,
            local,
            server: SocketAddr::new(server.ip(), port),
            sample_ns: scenario.sampling.throughput_ns,
            ip_version,
        };
        let has_udp = scenario.flows.iter().any(|flow| flow.udp.is_some());
        let udp = has_udp.then(|| UdpThread::start(udp_config)).transpose();
        let udp = udp.map_err(|error| ClientError::io("thread `UDP loads`", &error))?;
        let application_config = ApplicationConfig {
            clock,
            local,
            server,
            names: udp_config.server,
            authority: target.authority.clone(),
            sample_ns: scenario.sampling.throughput_ns,
            ip_version,
        };
        let has_applications = scenario.flows.iter().any(|flow| flow.application.is_some());
        let applications =
            has_applications.then(|| ApplicationThread::start(application_config)).transpose();
        let applications =
            applications.map_err(|error| ClientError::io("thread `applications`", &error))?;
        record.note("server", describe(target, &session.grant, clocks.offset));
        let results = Results {
            flows: FlowTable::new(scenario, request.seed),
            ramps: Ramps::new(request.ramp.as_ref()),
            warnings: Vec::new(),
            failed: BTreeMap::new(),
        };
        let numbers = Numbers::default();
        Ok(Self {
            session,
            clocks,
            results,
            numbers,
            loads,
            udp,
            applications,
            pings,
            samples,
            cpu_ns: cpu_ns(),
        })
    }

    /// Works until the end, and says how far it came.
    fn go_on(&mut self, record: &mut dyn RecordSink) -> Result<Time, ClientError> {
        let end = Time::from_nanos(self.results.flows.scenario.duration_ns);
        loop {
            let now = self.clocks.clock.now();
            if now >= end && self.pings.have_ended() {
                return Ok(end);
            }
            for number in self.results.flows.to_ask_for(now + LEAD) {
                self.ask(number)?;
            }
            self.advance_ramps(now, record)?;
            self.hear(record)?;
            self.pass_on(record)?;
            if record.progress(now.min(end)).is_break() && now < end {
                self.pings.stop();
                return Ok(now);
            }
        }
    }

    /// Asks the server for a load.
    fn ask(&mut self, number: u32) -> Result<(), ClientError> {
        let flow = self.numbers.ask(number);
        let request = self.results.flows.request(number, self.session.grant.limits.sample_ns);
        let request = FlowRequest { flow, ..request };
        Ok(self.session.say(&ClientMessage::Open(request))?)
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

    /// Takes what the server says, or waits a moment for it.
    fn hear(&mut self, record: &mut dyn RecordSink) -> Result<(), ClientError> {
        let Some(message) = self.session.hear(POLL)? else { return Ok(()) };
        match self.numbers.in_record(message)? {
            ServerMessage::Opened { flow, ticket } => self.order(flow, ticket),
            ServerMessage::Started { flow, congestion, .. } => {
                self.results.flows.sender_has(flow, Direction::Down, congestion)
            }
            ServerMessage::Samples { t_ns, flows } => {
                let t = self.clocks.here(t_ns);
                flows.into_iter().try_for_each(|sample| self.results.sampled(t, sample, record))
            }
            ServerMessage::Done { last, t_ns, .. } => {
                self.results.done(self.clocks.here(t_ns), last, record)
            }
            ServerMessage::Error { flow: Some(flow), reason } => {
                Err(ClientError::new(self.results.failure_at_server(flow, &reason)?))
            }
            ServerMessage::Error { flow: None, reason } => Err(session_ended(&reason)),
            _ => Ok(()),
        }
    }

    /// Begins this end of a load for which the server gave `ticket`.
    fn order(&self, flow: u32, ticket: Token) -> Result<(), ClientError> {
        let flows = &self.results.flows;
        if let (Some(order), Some(udp)) = (flows.udp_order(flow, ticket), &self.udp) {
            udp.order(order);
        } else if let (Some(order), Some(applications)) =
            (flows.application_order(flow, ticket), &self.applications)
        {
            applications.order(order);
        } else {
            self.loads.order(flows.order(flow, ticket)?);
        }
        Ok(())
    }

    /// Passes on what the threads have measured.
    fn pass_on(&mut self, record: &mut dyn RecordSink) -> Result<(), ClientError> {
        pass_on_pings(&self.samples, record);
        if let Some(udp) = &self.udp {
            udp.events().try_for_each(|event| self.results.on_udp(event, record))?;
        }
        if let Some(applications) = &self.applications {
            applications
                .events()
                .try_for_each(|event| self.results.on_application(event, record))?;
        }
        self.loads.events().try_for_each(|event| self.results.on_load(event, record))
    }

    /// Ends all threads and writes what is known at the end.
    fn finish(mut self, record: &mut dyn RecordSink) -> Result<(), ClientError> {
        let (udp_events, udp_ended) =
            self.udp.take().map_or((Vec::new(), Ok(())), UdpThread::finish);
        let (application_events, applications_ended) =
            self.applications.take().map_or((Vec::new(), Ok(())), ApplicationThread::finish);
        let counted = self.stop_udp(&udp_events).and_then(|()| self.count_echoes(record));
        let had_udp = self.results.flows.scenario.flows.iter().any(|flow| flow.udp.is_some());
        if had_udp && let Ok(end) = self.session.compare_clocks() {
            record.note("clock_drift", drift(self.clocks.offset, end));
        }
        let Self {
            session, clocks, mut results, loads, pings, samples, cpu_ns: cpu_before, ..
        } = self;
        pings.stop();
        let (events, loads_ended) = loads.finish();
        results.ramps.settle();
        pass_on_pings(&samples, record);
        let passed_on = events.try_iter().try_for_each(|event| results.on_load(event, record));
        let passed_on = passed_on.and_then(|()| {
            // Of senders here the counts were taken before the last rows of their receivers.
            let mut rest =
                udp_events.into_iter().filter(|event| !matches!(event, UdpEvent::Sent { .. }));
            rest.try_for_each(|event| results.on_udp(event, record))
        });
        let passed_on = passed_on.and_then(|()| {
            let mut rest = application_events.into_iter();
            rest.try_for_each(|event| results.on_application(event, record))
        });
        results.warn_of_failed();
        results.warn_of_skipped();
        results.flows.rows().for_each(|row| record.flow(&row));
        results.note_scenario(record);
        let cpu = cpu_ns().saturating_sub(cpu_before);
        let elapsed = clocks.clock.now().as_nanos().max(1);
        record.note("ramps", results.ramps.into_outcomes());
        record.note("own_cpu_percent", json!(cpu as f64 * 100.0 / elapsed as f64));
        record.note("warnings", json!(results.warnings));
        if let Ok((trains, limited)) = &counted {
            record.note("echoes", echoes(trains, *limited));
        }
        let pinged = pings.join();
        session.close();
        loads_ended.map_err(|error| ClientError::io("thread `loads`", &error))?;
        udp_ended.map_err(|error| ClientError::io("thread `UDP loads`", &error))?;
        applications_ended?;
        pinged?;
        passed_on?;
        counted.map(|_| ())
    }

    /// Ends UDP loads that are under way, once it is known what their senders here did: so the server's last rows are of all.
    fn stop_udp(&mut self, events: &[UdpEvent]) -> Result<(), ClientError> {
        for event in events {
            if let UdpEvent::Sent { flow, counts } = event {
                self.results.flows.udp_sent(*flow, *counts)?;
            }
        }
        for number in self.results.flows.udp_under_way() {
            let Some(flow) = self.numbers.at_server(number) else { continue };
            self.session.say(&ClientMessage::Stop { flow })?;
        }
        Ok(())
    }

    /// Asks how many datagrams arrived there.
    fn count_echoes(
        &mut self,
        record: &mut dyn RecordSink,
    ) -> Result<(Vec<EchoCount>, u64), ClientError> {
        self.session.say(&ClientMessage::CountEchoes)?;
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            let message = self.session.hear(POLL)?;
            match message.map(|message| self.numbers.in_record(message)).transpose()? {
                Some(ServerMessage::Done { last, t_ns, .. }) => {
                    self.results.done(self.clocks.here(t_ns), last, record)?;
                }
                Some(ServerMessage::Error { flow: Some(flow), reason }) => {
                    let warning = self.results.failure_at_server(flow, &reason)?;
                    self.results.warnings.push(warning);
                }
                message => {
                    if let Some(counted) = message.and_then(count_of_echoes) {
                        return counted;
                    }
                }
            }
        }
        Err(ClientError::new("the server does not say how many datagrams arrived"))
    }
}

impl Clocks {
    /// The run's time at the server's `t_ns`.
    pub fn here(&self, t_ns: u64) -> Time {
        self.clock.of_monotonic_ns(t_ns.saturating_add_signed(-self.offset.ns))
    }

    /// What the server's clock shows now, in nanoseconds.
    pub fn there_now(&self) -> u64 {
        monotonic_ns().saturating_add_signed(self.offset.ns)
    }
}

impl Results<'_> {
    /// Takes a sample of the server's end of a load.
    fn sampled(
        &mut self,
        t: Time,
        sample: FlowSample,
        record: &mut dyn RecordSink,
    ) -> Result<(), ClientError> {
        match self.flows.sampled(t, sample)? {
            Some(ServerRow::Tcp(row)) => record.tcp(&row),
            Some(ServerRow::Throughput(row, segments)) => {
                record.throughput(&row);
                self.ramps.arrived(Direction::Up, segments);
            }
            Some(ServerRow::Udp(row, throughput)) => record_udp(&row, &throughput, record),
            None => {}
        }
        Ok(())
    }

    /// Takes the last sample of the server's end of a load.
    fn done(
        &mut self,
        t: Time,
        last: FlowSample,
        record: &mut dyn RecordSink,
    ) -> Result<(), ClientError> {
        let number = last.flow;
        self.sampled(t, last, record)?;
        self.flows.ended(number, t)
    }

    /// Message about a load that the server gave up.
    fn failure_at_server(&self, number: u32, reason: &str) -> Result<String, ClientError> {
        Ok(format!("flow `{}`: the server says: {reason}", self.flows.name(number)?))
    }

    /// Takes an event of this end of the loads.
    fn on_load(
        &mut self,
        event: LoadEvent,
        record: &mut dyn RecordSink,
    ) -> Result<(), ClientError> {
        match event {
            LoadEvent::Running { flow, congestion } => {
                self.flows.sender_has(flow, Direction::Up, congestion)?;
            }
            LoadEvent::Throughput(row, segments) => {
                self.ramps.arrived(Direction::Down, u64::from(segments));
                record.throughput(&row);
            }
            LoadEvent::Tcp(row) => record.tcp(&row),
            LoadEvent::Failed { flow, reason } => {
                let name = self.flows.name(flow)?;
                self.warnings.push(format!("`{name}` broke before its time: {reason}"));
            }
            LoadEvent::Totals(totals) => self.flows.totals(totals)?,
        }
        Ok(())
    }

    /// Takes an event of this end of the UDP loads.
    fn on_udp(&mut self, event: UdpEvent, record: &mut dyn RecordSink) -> Result<(), ClientError> {
        match event {
            UdpEvent::Sent { flow, counts } => self.flows.udp_sent(flow, counts),
            UdpEvent::Received(row, throughput) => {
                if let Some(row) = self.flows.udp_received(row, &throughput)? {
                    record_udp(&row, &throughput, record);
                }
                Ok(())
            }
            UdpEvent::Failed { flow, reason } => {
                let name = self.flows.name(flow)?;
                self.warnings.push(format!("`{name}` broke before its time: {reason}"));
                Ok(())
            }
            UdpEvent::Ended { flow, first_data } => self.flows.udp_first_data(flow, first_data),
        }
    }

    /// Takes an event of the applications.
    fn on_application(
        &mut self,
        event: ApplicationEvent,
        record: &mut dyn RecordSink,
    ) -> Result<(), ClientError> {
        match event {
            ApplicationEvent::Transfer(row) => record.transfer(&row),
            ApplicationEvent::Throughput(row) => record.throughput(&row),
            ApplicationEvent::Failed { flow, reason } => {
                self.flows.name(flow)?;
                self.failed.entry(flow).or_insert((0, reason)).0 += 1;
            }
            ApplicationEvent::Ended { flow, first_data, delivered } => {
                self.flows.application_ended(flow, first_data, delivered)?;
            }
        }
        Ok(())
    }

    /// Warns of connections of applications that were not to be had: what they were for was waited for in vain.
    fn warn_of_failed(&mut self) {
        for (&flow, (times, reason)) in &self.failed {
            let Ok(name) = self.flows.name(flow) else { continue };
            let often = if *times == 1 { "once" } else { &format!("{times} times") };
            self.warnings.push(format!("`{name}` failed {often}: {reason}"));
        }
    }

    /// Warns of packets that were left out.
    fn warn_of_skipped(&mut self) {
        for (flow, packets) in self.flows.udp_skipped() {
            let name = &flow.name;
            let who = if flow.direction.is_down() {
                "the server was more than 100 ms behind, or did not hear from here for a second"
            } else {
                "this machine was more than 100 ms behind"
            };
            self.warnings.push(format!("`{name}` left {packets} packets out: {who}"));
        }
    }

    fn note_scenario(&self, record: &mut dyn RecordSink) {
        let scenario = serde_json::to_value(&self.flows.scenario).expect("plain data");
        record.note("scenario", scenario);
    }
}

fn record_udp(row: &UdpRow, throughput: &ThroughputRow, record: &mut dyn RecordSink) {
    record.throughput(throughput);
    record.udp(row);
}

fn pass_on_pings(samples: &Receiver<Sample>, record: &mut dyn RecordSink) {
    for sample in samples.try_iter() {
        if let Sample::Latency(row) = sample {
            record.latency(&row);
        }
    }
}

/// How many datagrams arrived, by a message of the server, and how many were left unanswered; its error if it
/// ends the session instead; `None` if the message is about something else.
fn count_of_echoes(message: ServerMessage) -> Option<Result<(Vec<EchoCount>, u64), ClientError>> {
    match message {
        ServerMessage::Echoes { trains, limited } => Some(Ok((trains, limited))),
        ServerMessage::Error { flow: None, reason } => Some(Err(session_ended(&reason))),
        _ => None,
    }
}

fn session_ended(reason: &str) -> ClientError {
    ClientError::new(format!("the server ended the session: {reason}"))
}

fn describe(target: &Target, grant: &Grant, clock_offset: ClockOffset) -> Value {
    let mut said = Map::new();
    said.insert("name".into(), json!(target.authority));
    said.insert("address".into(), json!(target.address.to_string()));
    said.insert("software".into(), json!(grant.software));
    said.insert("client_seen_as".into(), json!(grant.seen.to_string()));
    said.insert("clock_ahead_ns".into(), json!(clock_offset.ns));
    said.insert("clock_compared_within_ns".into(), json!(clock_offset.round_trip_ns / 2));
    said.insert("limits".into(), json!(grant.limits));
    Value::Object(said)
}

/// By how much the server's clock ran ahead between two comparisons, and how sure that is.
fn drift(start: ClockOffset, end: ClockOffset) -> Value {
    let within_ns = (start.round_trip_ns + end.round_trip_ns) / 2;
    json!({"ns": end.ns.saturating_sub(start.ns), "within_ns": within_ns})
}

fn echoes(trains: &[EchoCount], limited: u64) -> Value {
    let count = |train: &EchoCount| json!({"probe": train.train, "received": train.received, "ce": train.ce});
    json!({"trains": trains.iter().map(count).collect::<Vec<_>>(), "limited": limited})
}

/// Processor time of this process so far.
fn cpu_ns() -> u64 {
    weir_sockets::sys::time::process_cpu_ns()
}

/// Time before the clock starts, in which sockets are opened.
const HEAD_START: Duration = Duration::from_millis(300);
/// How long before its start a load is asked for: several round trips of a full buffer.
const LEAD: Duration = Duration::from_millis(1_500);
const POLL: WallDuration = WallDuration::from_millis(10);
const PATIENCE: WallDuration = WallDuration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_in_place_of_the_count_is_told() {
        let error = ServerMessage::Error { flow: None, reason: "the hour is over".into() };
        let told = count_of_echoes(error).unwrap().unwrap_err().to_string();
        assert_eq!(told, "the server ended the session: the hour is over");
        let counted = count_of_echoes(ServerMessage::Echoes { trains: vec![], limited: 3 });
        assert_eq!(counted.unwrap().unwrap().1, 3);
        assert!(count_of_echoes(ServerMessage::Pong { id: 1, t_ns: 2 }).is_none());
    }
}
