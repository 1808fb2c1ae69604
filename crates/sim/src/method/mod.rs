//! Foreign speed tests in the simulator: the state machines of `weir-speedtest` over simulated TCP connections, and
//! servers that answer them.
//!
//! [`SpeedTests`] is what the run loop knows. A [`Test`] is one method with its state, a [`Session`] one of its
//! connections, both ends of it, with a [`pipe`] each way for what they say. Connections are opened as methods
//! ask for them; their numbers are never used again, so that packets of a closed one are told apart.

mod context;
mod lines;
mod ndt7;
mod pipe;
mod round_trips;
mod send_queue;
mod server;
mod session;
mod sizes;
mod test;

use std::net::SocketAddr;

use weir_core::{FlowKey, Packet, Protocol, Seed, Time};
use weir_path::{End, Source};
use weir_scenario::{Scenario, Sink};
use weir_speedtest::protocol::EndAddresses;
use weir_speedtest::{Action, Connection, Event, Id, MethodInfo, News};
use weir_tcp::{Info, Profile};

use self::context::Context;
use self::lines::Lines;
use self::pipe::RequestHead;
use self::session::Session;
use self::test::{Due, Test};
use crate::encapsulation::Encapsulation;
use crate::pair::{Pair, Route};
use crate::rows::tcp_row;
use crate::run::Network;
use crate::sources::{EventSource, SourceMap};

/// The speed tests of a scenario at work.
pub(crate) struct SpeedTests {
    scenario: Scenario,
    seed: Seed,
    hash_key: u64,
    tests: Vec<Test>,
    /// Sessions by number of the connection, with the test that opened them; `None` once closed.
    sessions: Vec<Option<(usize, Box<Session>)>>,
    /// Numbers of the sources of events.
    sources: SourceMap,
    /// Actions that a method asks for; empty between events.
    actions: Vec<Action>,
}

impl SpeedTests {
    /// The speed tests of `scenario`, whose sources of events `sources` numbers; `None` if it has none.
    pub fn new(scenario: &Scenario, seed: Seed, hash_key: u64, sources: SourceMap) -> Option<Self> {
        if scenario.methods.is_empty() {
            return None;
        }
        let tests = scenario.methods.iter().enumerate().map(|(number, spec)| {
            let known = MethodInfo::named(&spec.kind).expect("the scenario was checked");
            let chance = seed.derive("chance of methods").derive(&number.to_string()).get();
            Test::new(number, known.begin(chance.into()), scenario, seed)
        });
        let tests: Vec<_> = tests.collect();
        let scenario = scenario.clone();
        Some(Self {
            scenario,
            seed,
            hash_key,
            tests,
            sessions: Vec::new(),
            sources,
            actions: Vec::new(),
        })
    }

    /// Sets what starts by itself.
    pub fn plan(&self, network: &mut Network) {
        for number in 0..self.tests.len() {
            let start = self.scenario.method_start(number, self.seed);
            network.events.set(self.sources.number(EventSource::Test(number)), start);
        }
    }

    /// The timer of one end of connection number `connection` is due.
    pub fn on_timer(
        &mut self,
        (connection, end): (u32, End),
        network: &mut Network,
        now: Time,
        sink: &mut dyn Sink,
    ) {
        let of = self.work_on(connection, network, now, sink, |session, context| {
            session.on_timer(end, context);
        });
        if let Some(number) = of {
            self.hear(number, network, now, sink);
        }
    }

    /// A packet of connection number `connection` arrived at `end`.
    pub fn on_packet(
        &mut self,
        (connection, packet): (u32, &Packet),
        end: End,
        network: &mut Network,
        now: Time,
        sink: &mut dyn Sink,
    ) {
        if network.traffic.is_datagram(packet) {
            let handle = packet.handle;
            self.work_on(connection, network, now, sink, |session, _| session.on_datagram(handle));
            return;
        }
        let mut data = 0;
        let of = self.work_on(connection, network, now, sink, |session, context| {
            data = session.on_packet(packet, end, context);
        });
        let Some(number) = of else {
            // It was under way when its connection was closed.
            network.traffic.take_segment(packet.handle);
            return;
        };
        if data > 0 {
            self.tests[number].note_data(end.other(), packet.ip_len(), now);
        }
        self.hear(number, network, now, sink);
    }

    /// The run is at its end: whatever still goes on stays as it is.
    pub fn end(&mut self, network: &mut Network, sink: &mut dyn Sink) {
        for number in 0..self.tests.len() {
            if !self.tests[number].is_over() {
                self.tests[number].report(sink);
            }
            self.close_all(number, network);
        }
    }

    /// Writes the rows of both flows of each test, once the run is at its end.
    pub fn rows(&self, network: &Network, sink: &mut dyn Sink) {
        for test in &self.tests {
            for from in [End::Server, End::Client] {
                let fate = network.traffic.flows[test.flow(from) as usize];
                sink.flow(&test.row(from, fate));
            }
        }
    }

    /// A row for each direction of each test that is running, or whose data still arrived.
    pub fn throughput(&mut self, now: Time, sink: &mut dyn Sink) {
        for number in 0..self.tests.len() {
            for from in [End::Server, End::Client] {
                let test = &self.tests[number];
                let seen = test.delivered(from, self.open(number).map(|(_, session)| session));
                let (running, flow) = (test.has_begun() && !test.is_over(), test.flow(from));
                let meter = self.tests[number].meter(from);
                let row = meter.row(now, flow, seen.0, Some(seen.1));
                if running || !row.is_empty() {
                    sink.throughput(&row);
                }
            }
        }
    }

    /// A row for each direction of each test: the state of the connection with most in flight.
    pub fn tcp(&self, now: Time, sink: &mut dyn Sink) {
        for (number, test) in self.tests.iter().enumerate() {
            for from in [End::Server, End::Client] {
                let infos = self.open(number).map(|(_, session)| session.pair.info(from));
                let used = infos.filter(|info| info.counters.segments_sent > 0);
                // The first of several.
                let most = |a: Info, b: Info| if b.in_flight > a.in_flight { b } else { a };
                let Some(info) = used.reduce(most) else { continue };
                sink.tcp(&tcp_row(now, test.flow(from), &info));
            }
        }
    }

    /// The open connections of test number `number`.
    fn open(&self, number: usize) -> impl Iterator<Item = (u32, &Session)> {
        self.tests[number].connections.values().filter_map(|&connection| {
            let (_, session) = self.sessions[connection as usize].as_ref()?;
            Some((connection, &**session))
        })
    }

    /// A time that test number `number` waits for has come.
    pub fn on_due(&mut self, number: usize, network: &mut Network, now: Time, sink: &mut dyn Sink) {
        if !self.tests[number].has_begun() {
            self.tests[number].begin(now);
        }
        while let Some(due) = self.tests[number].take_due(now) {
            match due {
                Due::Wake => {
                    let woken = News::Event(Event::Wake);
                    self.tests[number].news.push_back(woken);
                }
                Due::Measurement(connection) => {
                    self.work_on(connection, network, now, sink, Session::on_due);
                }
            }
        }
        self.hear(number, network, now, sink);
    }

    /// Lets a method hear what happened to it, and does what it wants, until nothing more happens at once.
    fn hear(&mut self, number: usize, network: &mut Network, now: Time, sink: &mut dyn Sink) {
        let mut actions = std::mem::take(&mut self.actions);
        while let Some(news) = self.tests[number].news.pop_front() {
            if self.tests[number].is_over() {
                continue;
            }
            self.tests[number].method.on(now, news.event(), &mut actions);
            for action in actions.drain(..) {
                self.act(number, action, network, now, sink);
            }
        }
        self.actions = actions;
        let source = self.sources.number(EventSource::Test(number));
        match self.tests[number].next_due() {
            Some(at) => network.events.set(source, at.max(now)),
            None => network.events.clear(source),
        }
    }

    fn act(
        &mut self,
        number: usize,
        action: Action,
        network: &mut Network,
        now: Time,
        sink: &mut dyn Sink,
    ) {
        let test = &mut self.tests[number];
        match action {
            Action::Open { id, kind } => {
                let connection = self.open_session(number, id, kind, network);
                self.work_on(connection, network, now, sink, Session::open);
            }
            Action::Request { id, on, path, upload } => {
                let Some(&connection) = test.connections.get(&on) else {
                    let reason = "its connection is closed".to_owned();
                    return test.news.push_back(News::Failed { id, reason });
                };
                test.requests.insert(id, connection);
                let request = RequestHead { id, path, upload };
                self.work_on(connection, network, now, sink, |session, context| {
                    session.request(request, context);
                });
            }
            Action::Load { id, sizes } => {
                if let Some(&connection) = test.connections.get(&id) {
                    self.work_on(connection, network, now, sink, |session, context| {
                        session.load(sizes, context);
                    });
                }
            }
            Action::Say { id, line } => {
                if let Some(&connection) = test.connections.get(&id) {
                    self.work_on(connection, network, now, sink, |session, context| {
                        session.say(line, context);
                    });
                }
            }
            Action::Datagram { id, text } => {
                if let Some(&connection) = test.connections.get(&id) {
                    self.work_on(connection, network, now, sink, |session, context| {
                        session.send_datagram(text, context);
                    });
                }
            }
            Action::Close { id } => {
                if let Some(connection) = test.connections.remove(&id) {
                    self.close(connection, network);
                } else if let Some(connection) = test.requests.remove(&id) {
                    self.cancel(connection, id, network);
                }
            }
            Action::WakeAt(at) => test.wait_for(at, Due::Wake),
            Action::Finish => {
                test.finish(now, sink);
                self.close_all(number, network);
            }
        }
    }

    /// Makes a connection for test number `number`, and returns its number.
    fn open_session(
        &mut self,
        number: usize,
        id: Id,
        kind: Connection,
        network: &mut Network,
    ) -> u32 {
        let Self { scenario, tests, .. } = self;
        let test = &mut tests[number];
        let spec = &test.spec;
        let flows = [End::Client, End::Server].map(|from| test.flow(from));
        let (connection, [client, server, datagrams]) =
            network.traffic.open(&spec.tcp, (spec.host, spec.tunnel), flows);
        // Those between are of applications.
        self.sessions.resize_with(connection as usize, || None);
        let key = scenario.method_key(connection as usize, spec.host);
        network.traffic.note_opened([client, server, datagrams], key, &spec.tcp);
        let encapsulation =
            |of| Encapsulation::new(scenario, of, spec.dscp, spec.tunnel, self.hash_key);
        let route = Route::new([client, server], encapsulation(key));
        let lines = (kind == Connection::Lines).then(|| {
            // To the port of the same number.
            Lines::new(datagrams, encapsulation(FlowKey { protocol: Protocol::UDP, ..key }))
        });
        let controls = [&*spec.client_congestion_control, &*spec.tcp.congestion_control];
        let seed = self.seed.derive("tcp of methods").derive(&connection.to_string());
        let profile = Profile::of(&spec.tcp).expect("the scenario was checked");
        let pair = Pair::new(route, &profile, controls, End::Client, seed)
            .expect("the scenario was checked");
        let ends = EndAddresses {
            client: SocketAddr::new(key.src, key.sport),
            server: SocketAddr::new(key.dst, key.dport),
        };
        let secured = spec.tls && lines.is_none();
        let session = Session::new(id, kind, pair, ends, secured, lines);
        test.connections.insert(id, connection);
        self.sessions.push(Some((number, Box::new(session))));
        let timer = network.events.add(2);
        debug_assert_eq!(timer, self.timer(connection, End::Client));
        connection
    }

    /// Lets an open connection work, and returns the number of its test; `None` if it is closed.
    fn work_on(
        &mut self,
        connection: u32,
        network: &mut Network,
        now: Time,
        sink: &mut dyn Sink,
        work: impl FnOnce(&mut Session, &mut Context<'_>),
    ) -> Option<usize> {
        let (number, session) = self.sessions[connection as usize].as_mut()?;
        let test = &mut self.tests[*number];
        work(session, &mut test.context(network, now, sink));
        if let Some(due) = session.take_new_due() {
            test.wait_for(due, Due::Measurement(connection));
        }
        for end in [End::Client, End::Server] {
            let timer = self.sources.number(EventSource::ConnectionTimer { connection, end });
            match session.pair.next_timer(end) {
                Some(at) => network.events.set(timer, at),
                None => network.events.clear(timer),
            }
            let window = || session.pair.info(end).cwnd;
            network.traffic.note_window(session.pair.flow_id(end), window);
        }
        Some(*number)
    }

    fn cancel(&mut self, connection: u32, request: Id, network: &mut Network) {
        let Some((number, session)) = &mut self.sessions[connection as usize] else { return };
        if session.cancel(request) {
            self.tests[*number].connections.remove(&session.id);
            self.close(connection, network);
        }
    }

    /// Closes a connection: both its ends fall silent.
    fn close(&mut self, connection: u32, network: &mut Network) {
        let Some((number, session)) = self.sessions[connection as usize].take() else { return };
        self.tests[number].close(&session);
        for end in [End::Client, End::Server] {
            network.events.clear(self.timer(connection, end));
        }
    }

    fn close_all(&mut self, number: usize, network: &mut Network) {
        let connections = std::mem::take(&mut self.tests[number].connections);
        for connection in connections.into_values() {
            self.close(connection, network);
        }
        network.events.clear(self.sources.number(EventSource::Test(number)));
    }

    const fn timer(&self, connection: u32, end: End) -> Source {
        self.sources.number(EventSource::ConnectionTimer { connection, end })
    }
}
