//! A connection of a speed test: TCP, TLS over it, and what both ends say over that.

use std::collections::{BTreeMap, VecDeque};

use weir_core::{Duration, Packet, Time};
use weir_path::End;
use weir_scenario::LatencyRow;
use weir_speedtest::protocol::load::MessageSize;
use weir_speedtest::protocol::{EndAddresses, UnsentBound};
use weir_speedtest::{Connection, Event, Id, News};

use super::context::Context;
use super::lines::Lines;
use super::ndt7::Ndt7Server;
use super::pipe::{Arrived, Meaning, Pipe, RequestHead, ResponseHead};
use super::round_trips::MeanRoundTrips;
use super::send_queue::{LoadRate, SendQueue};
use super::server::HttpServer;
use super::sizes::{
    FINISHED, FLIGHT, HELLO, PONG, PREFACE, SETTINGS, UPGRADED, request_head, upgrade,
};
use crate::pair::Pair;

/// A connection of a speed test.
pub(crate) struct Session {
    /// Number by which the method calls the connection.
    pub id: Id,
    pub pair: Pair,
    kind: Connection,
    ends: EndAddresses,
    stage: Stage,
    /// When TCP's handshake began, then TLS'.
    began: Time,
    tcp: Duration,
    tls: Option<Duration>,
    /// Data that is to be sent, by the client and by the server.
    pipes: [Pipe; 2],
    send_queues: [SendQueue; 2],
    /// The client's requests without answer, with the words of their bodies.
    requests: BTreeMap<Id, Option<String>>,
    /// HTTP/1.1: requests that wait for the one before.
    waiting: VecDeque<RequestHead>,
    rates: [LoadRate; 2],
    http: HttpServer,
    ndt7: Option<Ndt7Server>,
    lines: Option<Lines>,
    /// When its next measurement is due, as far as that was told.
    told_due: Option<Time>,
    /// Round trips of each end's load.
    round_trips: [MeanRoundTrips; 2],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Tcp,
    Tls,
    Upgrade,
    Open,
}

impl Session {
    /// A connection that is to be opened, over TLS if `secured`; with what belongs to one of lines.
    pub fn new(
        id: Id,
        kind: Connection,
        pair: Pair,
        ends: EndAddresses,
        secured: bool,
        lines: Option<Lines>,
    ) -> Self {
        // As `weir serve` does: with HTTP/2 requests share a connection. Where a profile's send buffer has no
        // bounds there have to be some.
        let endless = pair.end(End::Server).profile().send_buffer.is_none();
        let server_bound = match kind {
            Connection::Http2 => Some(UnsentBound::MIN_BYTES),
            _ => endless.then_some(INSTEAD_OF_BUFFER),
        };
        Self {
            id,
            pair,
            http: HttpServer::new(kind == Connection::Http2, ends.client.ip()),
            kind,
            ends,
            stage: Stage::Tcp,
            began: Time::ZERO,
            tcp: Duration::ZERO,
            tls: secured.then_some(Duration::ZERO),
            pipes: [Pipe::default(), Pipe::default()],
            send_queues: [Some(UnsentBound::MIN_BYTES), server_bound]
                .map(|most| SendQueue::new(most, secured)),
            requests: BTreeMap::new(),
            waiting: VecDeque::new(),
            rates: [LoadRate::default(); 2],
            ndt7: None,
            lines,
            told_due: None,
            round_trips: Default::default(),
        }
    }

    /// The client opens it.
    pub fn open(&mut self, context: &mut Context<'_>) {
        self.began = context.now;
        self.pair.connect(End::Client, context.network, context.now);
    }

    /// A packet arrived at `end`; says how many bytes of data it had.
    pub fn on_packet(&mut self, packet: &Packet, end: End, context: &mut Context<'_>) -> u16 {
        let bytes = self.pair.on_packet(packet, end, context.network, context.now);
        if self.stage == Stage::Tcp && self.pair.end(End::Client).is_established() {
            self.on_connected(context);
        }
        self.note_round_trip(end, context);
        self.take_acked(end, context);
        let delivered = self.pair.end(end).delivered_bytes();
        while let Some(arrived) = self.pipes[end.other() as usize].take(delivered) {
            match end {
                End::Client => self.on_client(arrived, context),
                End::Server => self.on_server(arrived, context),
            }
        }
        self.fill(end, context);
        bytes
    }

    /// The timer of `end` is due.
    pub fn on_timer(&mut self, end: End, context: &mut Context<'_>) {
        self.pair.on_timer(end, context.network, context.now);
        self.fill(end, context);
    }

    /// The client sends a request; with HTTP/1.1 once the one before is answered.
    pub fn request(&mut self, request: RequestHead, context: &mut Context<'_>) {
        if self.kind == Connection::Http1 && !self.requests.is_empty() {
            self.waiting.push_back(request);
            return;
        }
        let two = self.kind == Connection::Http2;
        self.requests.insert(request.id, None);
        let pipe = &mut self.pipes[End::Client as usize];
        let (id, upload) = (request.id, request.upload);
        pipe.say(request_head(&request.path, two), Meaning::Request(request));
        if let Some(bytes) = upload.filter(|&bytes| bytes > 0) {
            pipe.send_body(id, bytes, two, true);
        }
        self.fill(End::Client, context);
    }

    /// The client sends binary messages.
    pub fn load(&mut self, sizes: MessageSize, context: &mut Context<'_>) {
        self.send_queues[End::Client as usize].bound(UnsentBound::of_websocket());
        self.pipes[End::Client as usize].send_messages(self.id, sizes, true);
        self.fill(End::Client, context);
    }

    /// The client says a line.
    pub fn say(&mut self, line: String, context: &mut Context<'_>) {
        self.pipes[End::Client as usize].say(line.len() as u64 + 1, Meaning::Text(line));
        self.fill(End::Client, context);
    }

    /// The client sends a datagram to where its lines lead.
    pub fn send_datagram(&mut self, text: String, context: &mut Context<'_>) {
        if let Some(lines) = &mut self.lines {
            lines.send(text, context.network, context.now);
        }
    }

    /// The client's datagram of that handle arrived at the server.
    pub fn on_datagram(&mut self, handle: u64) {
        if let Some(lines) = &mut self.lines {
            lines.on_datagram(handle);
        }
    }

    /// Breaks a request off; says whether the connection goes with it, as with HTTP/1.1 it does.
    pub fn cancel(&mut self, id: Id) -> bool {
        if self.requests.remove(&id).is_none() {
            self.waiting.retain(|request| request.id != id);
            return false;
        }
        for pipe in &mut self.pipes {
            pipe.clear(Some(id));
        }
        self.kind == Connection::Http1
    }

    /// When the server's next measurement is due, if that does not depend on what is sent and was not told.
    pub fn take_new_due(&mut self) -> Option<Time> {
        let due = self.ndt7.as_ref()?.next_due();
        (std::mem::replace(&mut self.told_due, due) != due).then_some(due)?
    }

    /// The server's measurement may be due.
    pub fn on_due(&mut self, context: &mut Context<'_>) {
        let due = self.ndt7.as_ref().and_then(Ndt7Server::next_due);
        if due.is_some_and(|due| due <= context.now) {
            self.look_at_ndt7(context);
            self.fill(End::Server, context);
        }
    }

    fn on_connected(&mut self, context: &mut Context<'_>) {
        self.tcp = context.now.since(self.began);
        if self.tls.is_none() {
            return self.on_secured(context);
        }
        self.stage = Stage::Tls;
        self.began = context.now;
        self.pipes[End::Client as usize].say(HELLO, Meaning::Hello);
    }

    /// TLS stands, or is not wanted.
    fn on_secured(&mut self, context: &mut Context<'_>) {
        let pipe = &mut self.pipes[End::Client as usize];
        match &self.kind {
            Connection::WebSocket { path, .. } => {
                self.stage = Stage::Upgrade;
                pipe.say(upgrade(path), Meaning::Upgrade(path.clone()));
                return;
            }
            Connection::Http2 => pipe.say(PREFACE, Meaning::Preface),
            Connection::Http1 | Connection::Lines => {}
        }
        self.on_open(context);
    }

    fn on_open(&mut self, context: &mut Context<'_>) {
        self.stage = Stage::Open;
        let opened = Event::Opened { id: self.id, tcp: self.tcp, tls: self.tls };
        context.news.push_back(News::Event(opened));
    }

    /// Handles what arrived at the client.
    fn on_client(&mut self, arrived: Arrived, context: &mut Context<'_>) {
        let id = self.id;
        match arrived {
            Arrived::Record(Meaning::Flight) => {
                self.tls = Some(context.now.since(self.began));
                let pipe = &mut self.pipes[End::Client as usize];
                pipe.say(FINISHED, Meaning::Finished);
                pipe.secure();
                self.on_secured(context);
            }
            Arrived::Record(Meaning::Upgraded) => self.on_open(context),
            Arrived::Record(Meaning::Refused(reason)) => {
                context.news.push_back(News::Failed { id, reason });
            }
            Arrived::Record(Meaning::Text(text)) => context.news.push_back(News::Text { id, text }),
            Arrived::Record(Meaning::Ping) => {
                self.pipes[End::Client as usize].say(PONG, Meaning::Pong);
            }
            Arrived::Record(Meaning::Close) => {
                context.news.push_back(News::Event(Event::Ended { id }));
            }
            Arrived::Record(Meaning::Head(head)) => self.on_head(head, context),
            Arrived::Payload { id: of, bytes, ended } => {
                if of == id {
                    context.news.push_back(News::Event(Event::Received { id, bytes }));
                } else if self.requests.contains_key(&of) {
                    context.news.push_back(News::Event(Event::Received { id: of, bytes }));
                    if ended {
                        self.on_answered(of, context);
                    }
                }
            }
            Arrived::Record(_) => {}
        }
    }

    fn on_head(&mut self, head: ResponseHead, context: &mut Context<'_>) {
        let ResponseHead { id, status, body, text } = head;
        let Some(words) = self.requests.get_mut(&id) else { return };
        *words = text;
        context.news.push_back(News::Event(Event::Head { id, status, server: None }));
        if body == 0 {
            self.on_answered(id, context);
        }
    }

    /// The answer to request `id` is complete.
    fn on_answered(&mut self, id: Id, context: &mut Context<'_>) {
        if let Some(Some(text)) = self.requests.remove(&id) {
            context.news.push_back(News::Text { id, text });
        }
        context.news.push_back(News::Event(Event::Ended { id }));
        // An endless body whose request was answered all the same is not sent on.
        self.pipes[End::Client as usize].clear(Some(id));
        if let Some(next) = self.waiting.pop_front() {
            self.request(next, context);
        }
    }

    /// Handles what arrived at the server.
    fn on_server(&mut self, arrived: Arrived, context: &mut Context<'_>) {
        let pipe = &mut self.pipes[End::Server as usize];
        match arrived {
            Arrived::Record(Meaning::Hello) => {
                pipe.say(FLIGHT, Meaning::Flight);
                self.fill(End::Server, context);
                self.pipes[End::Server as usize].secure();
            }
            Arrived::Record(Meaning::Preface) => pipe.say(SETTINGS, Meaning::Settings),
            Arrived::Record(Meaning::Upgrade(path)) => self.on_upgrade(&path, context),
            Arrived::Record(Meaning::Request(request)) => self.http.on_request(request, pipe),
            Arrived::Record(Meaning::Text(line)) => {
                let lines = self.lines.as_mut();
                if let Some(answer) = lines.and_then(|lines| lines.on_line(&line, context.now)) {
                    pipe.say(answer.len() as u64 + 1, Meaning::Text(answer));
                }
            }
            Arrived::Payload { id, bytes, ended } => match &mut self.ndt7 {
                Some(test) => test.received += bytes,
                None => self.http.on_body(id, bytes, ended, pipe),
            },
            Arrived::Record(_) => {}
        }
    }

    fn on_upgrade(&mut self, path: &str, context: &mut Context<'_>) {
        let pipe = &mut self.pipes[End::Server as usize];
        let answer = match Ndt7Server::begin(path, self.ends, context.now, context.random) {
            None => Meaning::Refused("HTTP error: 404 Not Found".to_owned()),
            Some(Err(error)) => Meaning::Refused(error.to_string()),
            Some(Ok(test)) => {
                self.ndt7 = Some(test);
                Meaning::Upgraded
            }
        };
        pipe.say(UPGRADED, answer);
        let down = |test: &Ndt7Server| test.direction() == weir_scenario::Direction::Down;
        if self.ndt7.as_ref().is_some_and(down) {
            pipe.send_messages(self.id, weir_speedtest::protocol::ndt7::message_size(), false);
        }
    }

    /// Lets the ndt7 server say what there is to say.
    fn look_at_ndt7(&mut self, context: &mut Context<'_>) {
        if let Some(test) = &mut self.ndt7 {
            let pipe = &mut self.pipes[End::Server as usize];
            test.look(pipe, self.pair.end(End::Server), context.now, context.random);
        }
    }

    /// Hands TCP what `end` has to say, as far as its socket takes it; what is said next waits behind what
    /// was taken from the application before and not yet by the socket.
    fn fill(&mut self, end: End, context: &mut Context<'_>) {
        let number = end as usize;
        self.follow_rate(end, context.now);
        if self.pipes[number].is_silent() && self.send_queues[number].is_empty() {
            return;
        }
        loop {
            while self.send_queues[number].wants_more() {
                if end == End::Server && self.pipes[number].is_between_messages() {
                    self.look_at_ndt7(context);
                }
                let Some(bytes) = self.pipes[number].pull() else { break };
                self.send_queues[number].stage(bytes);
            }
            let tcp = self.pair.end(end);
            let bytes = self.send_queues[number].hand_over(tcp.has_room(), tcp.unsent_bytes());
            if bytes == 0 {
                return;
            }
            self.pair.write(end, bytes, context.network, context.now);
        }
    }

    /// Bounds the unsent bytes at `end` by the rate of its load.
    ///
    /// `weir serve` does so with HTTP/2, and Weir's client with all of HTTP.
    fn follow_rate(&mut self, end: End, now: Time) {
        let follows = match end {
            End::Client => !matches!(self.kind, Connection::WebSocket { .. }),
            End::Server => self.kind == Connection::Http2,
        };
        if !follows {
            return;
        }
        let rate = &mut self.rates[end as usize];
        if !self.pipes[end as usize].is_loaded() {
            rate.pause();
        } else if let Some(bytes) = rate.look(self.pair.end(end).reached_bytes(), now) {
            self.send_queues[end as usize].bound(bytes);
        }
    }

    /// Tells the client's method of load that was acknowledged.
    fn take_acked(&mut self, end: End, context: &mut Context<'_>) {
        let acked = self.pair.end(end).acked_bytes();
        while let Some((id, bytes)) = self.pipes[end as usize].take_acked(acked) {
            if end == End::Client {
                context.news.push_back(News::Event(Event::Sent { id, bytes }));
            }
        }
    }

    /// Keeps the round trip that TCP took at `end`, if its load is under way.
    fn note_round_trip(&mut self, end: End, context: &mut Context<'_>) {
        let Some(rtt) = self.pair.end_mut(end).take_rtt() else { return };
        if !self.pipes[end as usize].is_loaded() {
            return;
        }
        let Some(kept) = self.round_trips[end as usize].add(rtt, context.now) else { return };
        context.sink.latency(&LatencyRow {
            t: kept.sent,
            probe: context.round_trips.probe,
            seq: context.round_trips.seq,
            rtt: Some(kept.mean),
            up: None,
            down: None,
            timer_error: Duration::ZERO,
            server: None,
        });
        context.round_trips.seq += 1;
    }
}

/// Bytes that may wait unsent where no send buffer bounds them.
const INSTEAD_OF_BUFFER: u32 = 128 << 10;
