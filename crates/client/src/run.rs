//! One measurement, from the handshake to the record.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration as WallDuration;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use weir_core::{Duration, Seed, Time};
use weir_scenario::{
    Flow, IpVersion, Opener, Overrides, RecordSink, Scenario, TcpSettings, Verdict,
};
use weir_sockets::{
    Addresses, Clock, ClockOffset, EchoSession, Grant, Pings, Sample, Session, Target,
};
use weir_speedtest::protocol::weir::{
    ClientMessage, Direction, EchoCount, FlowRequest, FlowSample, Secret, ServerMessage,
};
use weir_speedtest::{Ramp, RampSettings};

use crate::ClientError;
use crate::check::check;
use crate::flow_table::{FlowState, tcp_row};
use crate::loads::{LoadConfig, LoadEvent, Loads, Order};

/// Request for a measurement.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// The server, as [`Target::find`] reads it.
    pub host: String,
    /// Secret of the server, if it asks for one.
    #[serde(default)]
    pub secret: Option<String>,
    /// Loads and probes. Its path is empty: the path is what is measured.
    pub scenario: Scenario,
    /// The seed of what the scenario leaves to chance.
    pub seed: u64,
    /// Loads beyond the scenario's, as many as fill the line.
    #[serde(default)]
    pub ramp: Option<RampPlan>,
}

/// Phases in which flows are added until the line is full.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RampPlan {
    /// The phases, in order. A direction that was measured before begins with as many flows as it took.
    pub phases: Vec<RampPhase>,
    /// Flows at most in each direction.
    pub most: u32,
    /// Time between two looks.
    pub interval_ns: u64,
    /// Congestion control of all flows; each machine's default if `None`.
    #[serde(default)]
    pub congestion: Option<String>,
}

/// A phase of a [`RampPlan`].
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RampPhase {
    /// The phase's name.
    pub phase: String,
    /// Whether there are downloads.
    pub down: bool,
    /// Whether there are uploads.
    pub up: bool,
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
pub fn measure(request: &Request, record: &mut dyn RecordSink) -> Result<Outcome, ClientError> {
    let secret = request.secret.as_deref().map(Secret::new).transpose();
    let secret = secret.map_err(|error| ClientError::new(error.to_string()))?;
    let target = Target::find(&request.host)?;
    let mut session = Session::open(&target, secret.as_ref())?;
    check(request, &session.grant)?;
    let clock_offset = session.compare_clocks()?;
    let clock = Clock::starting_in(HEAD_START);
    record.note("monotonic_zero_ns", json!(clock.monotonic_ns_of(Time::ZERO)));
    let mut run = Run::start(request, &target, session, (clock, clock_offset), record)?;
    let ended = run.go_on(record);
    let finished = run.finish(record);
    let reached = ended?;
    finished?;
    let end = Time::from_nanos(request.scenario.duration_ns);
    Ok(Outcome { reached, complete: reached >= end })
}

/// A measurement under way.
struct Run<'r> {
    request: &'r Request,
    session: Session,
    clock: Clock,
    clock_offset: ClockOffset,
    scenario: Scenario,
    /// By number in the record.
    flows: Vec<FlowState>,
    /// The ramp of each direction in the present phase.
    ramps: BTreeMap<Way, RampState>,
    /// How many flows each direction took, once that is known.
    took: BTreeMap<Way, u32>,
    /// The phases whose flows were ordered already.
    begun: usize,
    climbs: Vec<Value>,
    orders: Sender<Order>,
    events: Receiver<LoadEvent>,
    stop_loads: Arc<AtomicBool>,
    loads: JoinHandle<std::io::Result<()>>,
    pings: Pings,
    samples: Receiver<Sample>,
    warnings: Vec<String>,
    cpu_ns: u64,
}

/// Downloads come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    Down,
    Up,
}

impl From<Way> for Direction {
    fn from(way: Way) -> Self {
        match way {
            Way::Down => Self::Down,
            Way::Up => Self::Up,
        }
    }
}

/// State of the ramp by which one direction is filled with flows.
struct RampState {
    phase: String,
    ramp: Ramp,
    window: (Time, Time),
    next_look: Time,
    /// Segments that arrived since the last look. In order or not: bytes in order come in leaps, a gap's
    /// and all that waited behind it.
    segments: u64,
}

impl<'r> Run<'r> {
    fn start(
        request: &'r Request,
        target: &Target,
        session: Session,
        (clock, clock_offset): (Clock, ClockOffset),
        record: &mut dyn RecordSink,
    ) -> Result<Self, ClientError> {
        let mut scenario = request.scenario.clone();
        let server = target.address;
        scenario.ip_version = if server.is_ipv4() { IpVersion::V4 } else { IpVersion::V6 };
        let shared = Arc::new(scenario.clone());
        let port = session.grant.udp_port.unwrap_or(server.port());
        let addresses = Addresses {
            client: session.grant.local.ip(),
            servers: vec![server.ip()],
            session: Some(EchoSession { token: session.grant.token, port }),
        };
        let (sender, samples) = mpsc::channel();
        let pings = Pings::start(addresses, (&shared, Seed::new(request.seed), clock), sender)?;
        let (orders, ordered) = mpsc::channel();
        let (tell, events) = mpsc::channel();
        let config = LoadConfig {
            clock,
            server,
            authority: target.authority.clone(),
            throughput_ns: scenario.sampling.throughput_ns,
            tcp_ns: scenario.sampling.tcp_ns,
            ip_header: scenario.ip_version.header_bytes(),
        };
        let stop_loads = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&stop_loads);
        let fail = |error: &std::io::Error| ClientError::io("thread `loads`", error);
        let loads = Loads::new(config, ordered, tell).map_err(|error| fail(&error))?;
        let loads = thread::Builder::new()
            .name("loads".into())
            .spawn(move || loads.run(&stop))
            .map_err(|error| fail(&error))?;
        record.note("server", describe(target, &session.grant, clock_offset));
        let flows = vec![FlowState::default(); scenario.flows.len()];
        Ok(Self {
            request,
            session,
            clock,
            clock_offset,
            scenario,
            flows,
            ramps: BTreeMap::new(),
            took: BTreeMap::new(),
            begun: 0,
            climbs: Vec::new(),
            orders,
            events,
            stop_loads,
            loads,
            pings,
            samples,
            warnings: Vec::new(),
            cpu_ns: cpu_ns(),
        })
    }

    /// Works until the end, and says how far it came.
    fn go_on(&mut self, record: &mut dyn RecordSink) -> Result<Time, ClientError> {
        let end = Time::from_nanos(self.scenario.duration_ns);
        loop {
            let now = self.clock.now();
            if now >= end && self.pings.have_ended() {
                return Ok(end);
            }
            self.ask_for_flows(now)?;
            self.advance_ramps(now, record)?;
            self.hear(record)?;
            self.pass_on(record);
            if record.progress(now.min(end)) == Verdict::Stop && now < end {
                self.pings.stop();
                return Ok(now);
            }
        }
    }

    /// Buys the tickets of the scenario's loads that start soon.
    fn ask_for_flows(&mut self, now: Time) -> Result<(), ClientError> {
        for number in 0..self.flows.len() {
            let start = self.scenario.flow_start(number, Seed::new(self.request.seed));
            if !self.flows[number].asked && start <= now + LEAD {
                self.ask(number)?;
            }
        }
        Ok(())
    }

    fn ask(&mut self, number: usize) -> Result<(), ClientError> {
        self.flows[number].asked = true;
        let flow = &self.scenario.flows[number];
        let down = flow.direction == Direction::Down;
        let named = flow.tcp.congestion_control != MACHINES_OWN;
        let sampling = &self.scenario.sampling;
        let sample =
            [sampling.throughput_ns, sampling.tcp_ns].into_iter().filter(|&ns| ns > 0).min();
        let request = FlowRequest {
            flow: number as u32,
            direction: flow.direction,
            duration_ns: (flow.stop_ns - flow.start_ns).max(1),
            bytes: flow.bytes.filter(|_| down),
            congestion: (down && named).then(|| flow.tcp.congestion_control.clone()),
            dscp: flow.dscp,
            pacing_bps: None,
            unsent_bytes: Some(MAX_UNSENT_BYTES),
            sample_ns: sample.map(|ns| ns.max(self.session.grant.limits.sample_ns)),
        };
        Ok(self.session.say(&ClientMessage::Open(request))?)
    }

    /// Begins phases with a ramp, and adds flows where they bring more.
    fn advance_ramps(&mut self, now: Time, record: &mut dyn RecordSink) -> Result<(), ClientError> {
        let Some(plan) = &self.request.ramp else { return Ok(()) };
        if let Some(phase) = plan.phases.get(self.begun) {
            let span = self.scenario.phases.iter().find(|span| span.name == phase.phase);
            let Some(span) = span else {
                return Err(ClientError::new(format!("there is no phase `{}`", phase.phase)));
            };
            let window = (Time::from_nanos(span.start_ns), Time::from_nanos(span.end_ns));
            if now + LEAD >= window.0 {
                self.begun += 1;
                self.settle();
                for (direction, wanted) in [(Way::Down, phase.down), (Way::Up, phase.up)] {
                    if wanted {
                        self.begin(plan, direction, &phase.phase, window, record)?;
                    }
                }
            }
        }
        let mut more = Vec::new();
        for (&direction, state) in &mut self.ramps {
            if now < state.next_look || now >= state.window.1 {
                continue;
            }
            state.next_look = now + Duration::from_nanos(plan.interval_ns);
            let added = state.ramp.interval(std::mem::take(&mut state.segments));
            let running = state.ramp.flows() - added;
            more.extend(
                (0..added)
                    .map(|n| (direction, state.phase.clone(), running + n, now, state.window.1)),
            );
        }
        let any = !more.is_empty();
        for (direction, phase, number, start, stop) in more {
            self.add(plan, direction, &phase, number, (start, stop))?;
        }
        if any {
            self.note_scenario(record);
        }
        Ok(())
    }

    fn begin(
        &mut self,
        plan: &RampPlan,
        direction: Way,
        phase: &str,
        window: (Time, Time),
        record: &mut dyn RecordSink,
    ) -> Result<(), ClientError> {
        let known = self.took.get(&direction).copied();
        let usual = RampSettings { most: plan.most.max(1), ..RampSettings::default() };
        let settings = RampSettings { first: known.unwrap_or(usual.first), ..usual };
        let ramp = Ramp::new(settings);
        for number in 0..ramp.flows() {
            self.add(plan, direction, phase, number, window)?;
        }
        self.note_scenario(record);
        if known.is_none() {
            let next_look = window.0 + Duration::from_nanos(plan.interval_ns);
            let state = RampState { phase: phase.to_owned(), ramp, window, next_look, segments: 0 };
            self.ramps.insert(direction, state);
        }
        Ok(())
    }

    fn add(
        &mut self,
        plan: &RampPlan,
        direction: Way,
        phase: &str,
        number: u32,
        (start, stop): (Time, Time),
    ) -> Result<(), ClientError> {
        let way = if direction == Way::Down { "download" } else { "upload" };
        let name = if phase == way {
            format!("{way} {}", number + 1)
        } else {
            format!("{way} {} ({phase})", number + 1)
        };
        self.scenario.flows.push(Flow {
            name,
            direction: direction.into(),
            host: 0,
            station: 0,
            tunnel: None,
            opened_by: Opener::Client,
            dscp: 0,
            tcp: TcpSettings {
                profile: "linux".into(),
                congestion_control: plan.congestion.clone().unwrap_or_else(|| MACHINES_OWN.into()),
                overrides: Overrides::default(),
            },
            start_ns: start.as_nanos(),
            stop_ns: stop.as_nanos(),
            bytes: None,
        });
        self.flows.push(FlowState::default());
        self.ask(self.flows.len() - 1)
    }

    /// Keeps what the ramps came to.
    fn settle(&mut self) {
        for (direction, state) in std::mem::take(&mut self.ramps) {
            self.took.insert(direction, state.ramp.flows());
            let looks = state.ramp.full_after();
            let interval = self.request.ramp.as_ref().map_or(0, |plan| plan.interval_ns);
            let full = looks.map(|looks| state.window.0.as_nanos() + u64::from(looks) * interval);
            self.climbs.push(json!({
                "phase": state.phase,
                "direction": if direction == Way::Down { "down" } else { "up" },
                "flows": state.ramp.flows(),
                "full_ns": full,
            }));
        }
    }

    /// Takes what the server says, or waits a moment for it.
    fn hear(&mut self, record: &mut dyn RecordSink) -> Result<(), ClientError> {
        let Some(message) = self.session.hear(POLL)? else { return Ok(()) };
        match message {
            ServerMessage::Opened { flow, ticket } => self.order(flow, ticket),
            ServerMessage::Started { flow, congestion, .. } => {
                self.flow(flow)?;
                self.name_congestion(flow, Way::Down, congestion);
                Ok(())
            }
            ServerMessage::Samples { t_ns, flows } => {
                let t = self.here(t_ns);
                for sample in flows {
                    self.sample(t, sample, record)?;
                }
                Ok(())
            }
            ServerMessage::Done { last, t_ns, reason } => {
                let t = self.here(t_ns);
                let number = last.flow;
                self.sample(t, last, record)?;
                self.flow(number)?.ended = Some((t, reason));
                Ok(())
            }
            ServerMessage::Error { flow: Some(flow), reason } => {
                self.flow(flow)?.failed = true;
                let name = &self.scenario.flows[flow as usize].name;
                Err(ClientError::new(format!("flow `{name}`: the server says: {reason}")))
            }
            ServerMessage::Error { flow: None, reason } => {
                Err(ClientError::new(format!("the server ended the session: {reason}")))
            }
            _ => Ok(()),
        }
    }

    /// The sender of a load, which `way` it sends, has this congestion control.
    fn name_congestion(&mut self, flow: u32, way: Way, name: String) {
        let flow = &mut self.scenario.flows[flow as usize];
        let down = flow.direction == Direction::Down;
        if down == (way == Way::Down) && flow.tcp.congestion_control == MACHINES_OWN {
            flow.tcp.congestion_control = name;
        }
    }

    /// The server is ready for a load.
    fn order(
        &mut self,
        flow: u32,
        ticket: weir_speedtest::protocol::weir::Token,
    ) -> Result<(), ClientError> {
        self.flow(flow)?;
        let spec = &self.scenario.flows[flow as usize];
        let named = spec.tcp.congestion_control != MACHINES_OWN;
        let from_ramp = flow as usize >= self.request.scenario.flows.len();
        let start = if from_ramp {
            spec.start()
        } else {
            self.scenario.flow_start(flow as usize, Seed::new(self.request.seed))
        };
        let order = Order {
            flow,
            direction: spec.direction,
            ticket,
            congestion: named.then(|| spec.tcp.congestion_control.clone()),
            dscp: spec.dscp,
            start,
            stop: spec.stop(),
            bytes: spec.bytes,
        };
        // A thread that is gone says why when it is joined.
        let _ = self.orders.send(order);
        Ok(())
    }

    /// The server's end of a load.
    fn sample(
        &mut self,
        t: Time,
        sample: FlowSample,
        record: &mut dyn RecordSink,
    ) -> Result<(), ClientError> {
        let header = self.scenario.ip_version.header_bytes() + TCP_HEADER;
        let number = sample.flow;
        self.flow(number)?;
        let known = &mut self.flows[number as usize];
        match self.scenario.flows[number as usize].direction {
            Direction::Down => {
                if let Some(tcp) = &sample.tcp
                    && known.ended.is_none()
                {
                    record.tcp(&tcp_row(t, number, tcp));
                }
                known.last = Some(sample);
            }
            Direction::Up => {
                let (row, segments) = known.arrived(t, sample, header);
                record.throughput(&row);
                if let Some(state) = self.ramps.get_mut(&Way::Up) {
                    state.segments += segments;
                }
            }
        }
        Ok(())
    }

    /// Passes on what the threads have measured.
    fn pass_on(&mut self, record: &mut dyn RecordSink) {
        while let Ok(sample) = self.samples.try_recv() {
            if let Sample::Latency(row) = sample {
                record.latency(&row);
            }
        }
        while let Ok(event) = self.events.try_recv() {
            match event {
                LoadEvent::Running { flow, congestion } => {
                    self.name_congestion(flow, Way::Up, congestion);
                }
                LoadEvent::Throughput(row, segments) => {
                    if let Some(state) = self.ramps.get_mut(&Way::Down) {
                        state.segments += u64::from(segments);
                    }
                    record.throughput(&row);
                }
                LoadEvent::Tcp(row) => record.tcp(&row),
                LoadEvent::Failed { flow, reason } => {
                    let name = &self.scenario.flows[flow as usize].name;
                    self.warnings.push(format!("`{name}` broke before its time: {reason}"));
                    self.flows[flow as usize].failed = true;
                }
                LoadEvent::Totals(totals) => self.flows[totals.flow as usize].totals = Some(totals),
            }
        }
    }

    /// Ends all threads and writes what is known at the end.
    fn finish(mut self, record: &mut dyn RecordSink) -> Result<(), ClientError> {
        let counted = self.count_echoes(record);
        self.stop_loads.store(true, Ordering::Release);
        self.pings.stop();
        let bug = || Err(std::io::Error::other("it ended by a bug: please report it"));
        let loads = std::mem::replace(&mut self.loads, thread::spawn(|| Ok(())));
        let loads = loads.join().unwrap_or_else(|_| bug());
        self.settle();
        self.pass_on(record);
        for (number, known) in self.flows.iter().enumerate() {
            record.flow(&known.row(number as u32, &self.scenario.flows[number]));
        }
        self.note_scenario(record);
        let cpu = cpu_ns().saturating_sub(self.cpu_ns);
        let elapsed = self.clock.now().as_nanos().max(1);
        record.note("ramps", Value::Array(std::mem::take(&mut self.climbs)));
        record.note("own_cpu_percent", json!(cpu as f64 * 100.0 / elapsed as f64));
        record.note("warnings", json!(self.warnings));
        if let Ok((trains, limited)) = &counted {
            record.note("echoes", echoes(trains, *limited));
        }
        let Self { pings, session, .. } = self;
        let pinged = pings.join();
        session.close();
        loads.map_err(|error| ClientError::io("thread `loads`", &error))?;
        pinged?;
        counted.map(|_| ())
    }

    /// Asks how many datagrams arrived there.
    fn count_echoes(
        &mut self,
        record: &mut dyn RecordSink,
    ) -> Result<(Vec<EchoCount>, u64), ClientError> {
        self.session.say(&ClientMessage::CountEchoes)?;
        let deadline = std::time::Instant::now() + PATIENCE;
        while std::time::Instant::now() < deadline {
            match self.session.hear(POLL)? {
                Some(ServerMessage::Done { last, t_ns, reason }) => {
                    let (t, number) = (self.here(t_ns), last.flow);
                    self.sample(t, last, record)?;
                    self.flow(number)?.ended = Some((t, reason));
                }
                Some(ServerMessage::Error { flow: Some(number), reason }) => {
                    self.flow(number)?.failed = true;
                    let name = &self.scenario.flows[number as usize].name;
                    self.warnings.push(format!("flow `{name}`: the server says: {reason}"));
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

    fn flow(&mut self, number: u32) -> Result<&mut FlowState, ClientError> {
        self.flows.get_mut(number as usize).ok_or_else(|| {
            ClientError::new(format!("the server speaks of a flow {number} that nobody asked for"))
        })
    }

    /// The run's time at the server's `t_ns`.
    fn here(&self, t_ns: u64) -> Time {
        self.clock.of_monotonic_ns(t_ns.saturating_add_signed(-self.clock_offset.ns))
    }

    fn note_scenario(&self, record: &mut dyn RecordSink) {
        record.note("scenario", serde_json::to_value(&self.scenario).expect("plain data"));
    }
}

/// How many datagrams arrived, by a message of the server, and how many were left unanswered; its error if it
/// ends the session instead; `None` if the message is about something else.
fn count_of_echoes(message: ServerMessage) -> Option<Result<(Vec<EchoCount>, u64), ClientError>> {
    match message {
        ServerMessage::Echoes { trains, limited } => Some(Ok((trains, limited))),
        ServerMessage::Error { flow: None, reason } => {
            Some(Err(ClientError::new(format!("the server ended the session: {reason}"))))
        }
        _ => None,
    }
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

fn echoes(trains: &[EchoCount], limited: u64) -> Value {
    let count = |train: &EchoCount| json!({"probe": train.train, "received": train.received, "ce": train.ce});
    json!({"trains": trains.iter().map(count).collect::<Vec<_>>(), "limited": limited})
}

/// Processor time of this process so far.
fn cpu_ns() -> u64 {
    weir_sockets::sys::time::process_cpu_ns()
}

/// In place of a name: whatever the sending machine has.
const MACHINES_OWN: &str = "default";
/// Time before the clock starts, in which sockets are opened.
const HEAD_START: Duration = Duration::from_millis(300);
/// How long before its start a load is asked for: several round trips of a full buffer.
const LEAD: Duration = Duration::from_millis(1_500);
const POLL: WallDuration = WallDuration::from_millis(10);
const PATIENCE: WallDuration = WallDuration::from_secs(5);
/// Data that waits unsent in the server's socket: what loads of the lab have (crate `net`).
const MAX_UNSENT_BYTES: u32 = 128 << 10;
/// RFC 9293, section 3.1, with time stamps (RFC 7323), as all Linux has them.
const TCP_HEADER: u32 = 20 + 12;

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
