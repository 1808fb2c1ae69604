//! One speed test of the scenario: its method, and the counts of its connections.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use weir_core::{Rng, Seed, Time};
use weir_path::{End, FlowDrops};
use weir_scenario::{Direction, FlowRow, MethodRow, Scenario, Sink, SpeedTest, ThroughputMeter};
use weir_speedtest::{Event, Id, Method, News};
use weir_tcp::Counters;

use super::context::{Context, RoundTrips};
use super::session::Session;
use crate::rows::{flow_row, sum};
use crate::run::Network;

/// A speed test.
pub(crate) struct Test {
    pub number: u32,
    pub spec: SpeedTest,
    pub method: Box<dyn Method>,
    /// The flows of the record, down and up.
    pub flows: [u32; 2],
    /// Where its connections are, by what the method calls them, and its requests.
    pub connections: BTreeMap<Id, u32>,
    pub requests: BTreeMap<Id, u32>,
    pub news: VecDeque<News>,
    /// Times that the test waits for: when, in which order they were asked for, what for.
    pub agenda: BinaryHeap<Reverse<(Time, u64, Due)>>,
    asked: u64,
    /// Totals of the closed connections, by the end that sent the data.
    closed: [Totals; 2],
    /// Bytes that arrived by the last sample, and on the wire.
    meters: [ThroughputMeter; 2],
    wire_bytes: [u64; 2],
    first_data: [Option<Time>; 2],
    random: Rng,
    round_trips: RoundTrips,
    began: Option<Time>,
    ended: Option<Time>,
    result: Option<String>,
}

/// A reason why a test wakes at some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Due {
    /// The method asked for this time.
    Wake,
    /// The server's measurement over that connection.
    Measurement(u32),
}

/// Totals of one direction of the closed connections.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    delivered: u64,
    counters: Counters,
}

impl Test {
    pub fn new(number: usize, method: Box<dyn Method>, scenario: &Scenario, seed: Seed) -> Self {
        let flow = |direction| scenario.method_flow(number, direction);
        Self {
            number: number as u32,
            spec: scenario.methods[number].clone(),
            method,
            flows: [flow(Direction::Down), flow(Direction::Up)],
            connections: BTreeMap::new(),
            requests: BTreeMap::new(),
            news: VecDeque::new(),
            agenda: BinaryHeap::new(),
            asked: 0,
            closed: [Totals::default(); 2],
            meters: [ThroughputMeter::default(); 2],
            wire_bytes: [0; 2],
            first_data: [None; 2],
            random: seed.derive("method").stream(&number.to_string()),
            round_trips: RoundTrips { probe: scenario.method_probe(number), seq: 0 },
            began: None,
            ended: None,
            result: None,
        }
    }

    /// Begins the test.
    pub fn begin(&mut self, now: Time) {
        self.began = Some(now);
        self.news.push_back(News::Event(Event::Begin));
    }

    pub const fn has_begun(&self) -> bool {
        self.began.is_some()
    }

    pub const fn is_over(&self) -> bool {
        self.ended.is_some()
    }

    /// Ends the test when its method is done, and writes how it went.
    pub fn finish(&mut self, now: Time, sink: &mut dyn Sink) {
        self.ended = Some(now);
        self.result = Some(self.method.result().to_string());
        self.agenda.clear();
        self.report(sink);
    }

    /// Writes how it went, if it began.
    pub fn report(&self, sink: &mut dyn Sink) {
        let Some(began) = self.began else { return };
        sink.method(&MethodRow {
            method: self.number,
            name: &self.spec.name,
            kind: &self.spec.kind,
            began,
            ended: self.ended,
            result: self.result.as_deref(),
        });
    }

    /// Waits for `due` at `at`.
    pub fn wait_for(&mut self, at: Time, due: Due) {
        self.asked += 1;
        self.agenda.push(Reverse((at, self.asked, due)));
    }

    /// When it waits for something next.
    pub fn next_due(&self) -> Option<Time> {
        self.agenda.peek().map(|next| next.0.0)
    }

    /// Removes the next reason to wake that is due by `now`, and returns it.
    pub fn take_due(&mut self, now: Time) -> Option<Due> {
        let &Reverse((_, _, due)) = self.agenda.peek().filter(|next| next.0.0 <= now)?;
        self.agenda.pop();
        Some(due)
    }

    pub fn context<'a>(
        &'a mut self,
        network: &'a mut Network,
        now: Time,
        sink: &'a mut dyn Sink,
    ) -> Context<'a> {
        let Self { news, random, round_trips, .. } = self;
        Context { network, now, news, random, round_trips, sink }
    }

    /// Counts the IP bytes of data that arrived and that `from` had sent.
    pub fn note_data(&mut self, from: End, ip_bytes: u32, now: Time) {
        self.wire_bytes[from as usize] += u64::from(ip_bytes);
        self.first_data[from as usize].get_or_insert(now);
    }

    /// A connection is closed: its counts stay.
    pub fn close(&mut self, session: &Session) {
        for from in [End::Client, End::Server] {
            let totals = &mut self.closed[from as usize];
            totals.delivered += session.pair.end(from.other()).delivered_bytes();
            totals.counters = sum(totals.counters, session.pair.info(from).counters);
        }
    }

    /// Bytes that arrived in order of what `from` sent, and on the wire, while `open` are its connections.
    pub fn delivered<'s>(&self, from: End, open: impl Iterator<Item = &'s Session>) -> (u64, u64) {
        let now: u64 = open.map(|one| one.pair.end(from.other()).delivered_bytes()).sum();
        (self.closed[from as usize].delivered + now, self.wire_bytes[from as usize])
    }

    /// The meter of what `from` sends.
    pub const fn meter(&mut self, from: End) -> &mut ThroughputMeter {
        &mut self.meters[from as usize]
    }

    /// The totals of one direction, once all connections are closed.
    pub fn row(&self, from: End, drops: FlowDrops) -> FlowRow {
        let Totals { delivered, counters } = self.closed[from as usize];
        let arrived = (self.first_data[from as usize], delivered);
        flow_row(self.flow(from), &counters, drops, arrived)
    }

    /// The flow of the record that has what `from` sends.
    pub const fn flow(&self, from: End) -> u32 {
        match from {
            End::Server => self.flows[0],
            End::Client => self.flows[1],
        }
    }
}
