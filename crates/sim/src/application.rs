//! An application: the client of `weir-scenario`, its connections and DNS queries, and the server that answers them.

use std::collections::VecDeque;
use std::sync::Arc;

use weir_core::{Ecn, Packet, Seed, Time};
use weir_path::{End, FlowDrops};
use weir_scenario::{Action, Application, Client, Flow, FlowRow, Scenario};
use weir_tcp::{Counters, Profile};

use crate::encapsulation::Encapsulation;
use crate::packet_store::UdpPacket;
use crate::pair::{Pair, Route};
use crate::rows::{flow_row, sum};
use crate::run::Network;
use crate::sources::{EventSource, SourceMap};

/// A load that is an application.
pub(crate) struct ApplicationLoad {
    flow: u32,
    scenario: Arc<Scenario>,
    sources: SourceMap,
    client: Client,
    /// Of its DNS queries; its connections differ in their ports.
    encapsulation: Encapsulation,
    hash_key: u64,
    seed: Seed,
    /// The open connections.
    connections: Vec<Connection>,
    /// Actions that the client asks for; empty between events.
    actions: Vec<Action>,
    /// Bytes of answers that came, in order.
    delivered: u64,
    /// IP bytes of packets with answers that arrived.
    wire_bytes: u64,
    first_data: Option<Time>,
    /// Counts of the server's ends of closed connections, and of its answers to queries.
    sent: Counters,
}

/// A connection of the client.
struct Connection {
    /// Its number as the client has it.
    number: u32,
    /// Its number among all connections of the run.
    place: u32,
    pair: Pair,
    /// Requests that the server has not got in full: up to which byte they go, and the bytes of the answer.
    requests: VecDeque<(u64, u64)>,
    requested: u64,
    /// Bytes of answers that the client has heard of.
    heard: u64,
}

impl ApplicationLoad {
    pub fn new(
        scenario: &Arc<Scenario>,
        number: usize,
        encapsulation: Encapsulation,
        hash_key: u64,
        (span, seed): ((Time, Time), Seed),
        sources: SourceMap,
    ) -> Self {
        let flow = number as u32;
        let application = scenario.flows[number].application.as_ref();
        let client = Client::new(application.expect("the flow is one"), flow, span);
        Self {
            flow,
            scenario: Arc::clone(scenario),
            sources,
            client,
            encapsulation,
            hash_key,
            seed: seed.derive("tcp of applications").derive(&flow.to_string()),
            connections: Vec::new(),
            actions: Vec::new(),
            delivered: 0,
            wire_bytes: 0,
            first_data: None,
            sent: Counters::default(),
        }
    }

    /// When the client is to be woken.
    pub fn next_due(&self) -> Option<Time> {
        self.client.next_due()
    }

    /// The time that the client waited for has come.
    pub fn on_due(&mut self, network: &mut Network, now: Time) {
        let mut actions = std::mem::take(&mut self.actions);
        self.client.on_due(now, &mut actions);
        self.act(actions, network, now);
    }

    /// The flow is over: what is under way is cut off.
    pub fn stop(&mut self, network: &mut Network, now: Time) {
        let mut actions = std::mem::take(&mut self.actions);
        self.client.stop(now, &mut actions);
        self.act(actions, network, now);
    }

    pub const fn is_stopped(&self) -> bool {
        self.client.is_stopped()
    }

    /// A packet of one of its connections, or of a query or its answer, arrived at `end`.
    pub fn on_packet(&mut self, packet: &Packet, end: End, network: &mut Network, now: Time) {
        if packet.flow_id == self.flow {
            return self.on_datagram(packet, end, network, now);
        }
        let place = network.traffic.connection_of(packet);
        let mut connections = self.connections.iter_mut();
        let Some(connection) = connections.find(|one| Some(one.place) == place) else {
            // It was under way when its connection was closed.
            network.traffic.take_segment(packet.handle);
            return;
        };
        let bytes = connection.pair.on_packet(packet, end, network, now);
        connection.answer(network, now);
        connection.set_timers(self.sources, network);
        if end == End::Client && bytes > 0 {
            self.wire_bytes += u64::from(packet.ip_len());
            self.first_data.get_or_insert(now);
            let (number, new) = (connection.number, connection.take_new());
            self.delivered += new;
            if new > 0 {
                let mut actions = std::mem::take(&mut self.actions);
                self.client.on_received(number, new, now, &mut actions);
                self.act(actions, network, now);
            }
        }
    }

    /// The timer of one end of connection `place` is due.
    pub fn on_timer(&mut self, (place, end): (u32, End), network: &mut Network, now: Time) {
        let mut connections = self.connections.iter_mut();
        if let Some(connection) = connections.find(|one| one.place == place) {
            connection.pair.on_timer(end, network, now);
            connection.set_timers(self.sources, network);
        }
    }

    fn on_datagram(&mut self, packet: &Packet, end: End, network: &mut Network, now: Time) {
        let UdpPacket { seq, .. } = network.traffic.take_udp(packet.handle);
        match end {
            End::Server => {
                self.sent.segments_sent += 1;
                self.sent.bytes_sent += u64::from(Application::ANSWER_BYTES);
                self.send(End::Server, seq, Application::ANSWER_BYTES, network, now);
            }
            End::Client => {
                self.wire_bytes += u64::from(packet.ip_len());
                self.first_data.get_or_insert(now);
                self.delivered += u64::from(Application::ANSWER_BYTES);
                let mut actions = std::mem::take(&mut self.actions);
                self.client.on_answer(seq, now, &mut actions);
                self.act(actions, network, now);
            }
        }
    }

    /// Does what the client wants, and passes its rows on.
    fn act(&mut self, mut actions: Vec<Action>, network: &mut Network, now: Time) {
        for action in actions.drain(..) {
            match action {
                Action::Open { connection } => self.open(connection, network, now),
                Action::Ask { connection, request, response } => {
                    let mut connections = self.connections.iter_mut();
                    if let Some(one) = connections.find(|one| one.number == connection) {
                        one.ask((request, response), network, now);
                        one.set_timers(self.sources, network);
                    }
                }
                Action::Close { connection } => self.close(connection, network),
                Action::Query { number } => {
                    self.send(End::Client, number, Application::QUERY_BYTES, network, now);
                }
            }
        }
        self.actions = actions;
        network.traffic.transfers.extend(self.client.take_rows());
    }

    fn spec(&self) -> &Flow {
        &self.scenario.flows[self.flow as usize]
    }

    fn open(&mut self, number: u32, network: &mut Network, now: Time) {
        let spec = self.spec();
        let end = (spec.host, spec.tunnel);
        let (place, flow_ids @ [client, server, _]) =
            network.traffic.open(&spec.tcp, end, [self.flow; 2]);
        let key = self.scenario.connection_key(place as usize, self.flow as usize);
        network.traffic.note_opened(flow_ids, key, &spec.tcp);
        let route = Route::new([client, server], self.encapsulation.of_other(key, self.hash_key));
        let controls = [spec.tcp.congestion_control.as_str(); 2];
        let seed = self.seed.derive(&number.to_string());
        let profile = Profile::of(&spec.tcp).expect("the scenario was checked");
        let mut pair = Pair::new(route, &profile, controls, End::Client, seed)
            .expect("the scenario was checked");
        network.events.add(2);
        pair.connect(End::Client, network, now);
        let connection =
            Connection { number, place, pair, requests: VecDeque::new(), requested: 0, heard: 0 };
        connection.set_timers(self.sources, network);
        self.connections.push(connection);
    }

    /// Closes a connection: both its ends fall silent.
    fn close(&mut self, number: u32, network: &mut Network) {
        let mut connections = self.connections.iter();
        let Some(at) = connections.position(|one| one.number == number) else { return };
        let connection = self.connections.swap_remove(at);
        self.sent = sum(self.sent, connection.pair.info(End::Server).counters);
        for end in [End::Client, End::Server] {
            network.events.clear(connection.timer(self.sources, end));
        }
    }

    /// Sends a query or its answer.
    fn send(&self, from: End, seq: u64, payload: u32, network: &mut Network, now: Time) {
        let route = &self.encapsulation;
        let handle =
            network.traffic.put_udp(UdpPacket { seq, sent: now, is_request: from == End::Client });
        let packet = Packet {
            handle,
            enqueued_at: now,
            label: route.labels[from as usize],
            len: route.sizes.queued_len(route.sizes.ip_header + UDP_HEADER_BYTES + payload),
            flow_id: self.flow,
            dscp: route.dscp,
            ecn: Ecn::NotEct,
        };
        network.send(packet, from, now);
    }

    pub const fn delivered_bytes(&self) -> u64 {
        self.delivered
    }

    pub const fn wire_bytes(&self) -> u64 {
        self.wire_bytes
    }

    /// The totals of all its connections and lookups: what servers sent.
    pub fn row(&self, drops: FlowDrops) -> FlowRow {
        let open = self.connections.iter().map(|one| one.pair.info(End::Server).counters);
        let counters = open.fold(self.sent, sum);
        flow_row(self.flow, &counters, drops, (self.first_data, self.delivered))
    }
}

impl Connection {
    fn ask(&mut self, (request, response): (u64, u64), network: &mut Network, now: Time) {
        self.requested += request;
        self.requests.push_back((self.requested, response));
        self.pair.write(End::Client, request, network, now);
    }

    /// The server answers requests that it has in full.
    fn answer(&mut self, network: &mut Network, now: Time) {
        let got = self.pair.end(End::Server).delivered_bytes();
        while let Some(&(until, response)) = self.requests.front()
            && until <= got
        {
            self.requests.pop_front();
            self.pair.write(End::Server, response, network, now);
        }
    }

    /// Bytes of answers that have come since this was last asked for.
    fn take_new(&mut self) -> u64 {
        let delivered = self.pair.end(End::Client).delivered_bytes();
        delivered - std::mem::replace(&mut self.heard, delivered)
    }

    const fn timer(&self, sources: SourceMap, end: End) -> weir_path::Source {
        sources.number(EventSource::ConnectionTimer { connection: self.place, end })
    }

    fn set_timers(&self, sources: SourceMap, network: &mut Network) {
        for end in [End::Client, End::Server] {
            let timer = self.timer(sources, end);
            match self.pair.next_timer(end) {
                Some(at) => network.events.set(timer, at),
                None => network.events.clear(timer),
            }
            let window = || self.pair.info(end).cwnd;
            network.traffic.note_window(self.pair.flow_id(end), window);
        }
    }
}

const UDP_HEADER_BYTES: u32 = 8;
