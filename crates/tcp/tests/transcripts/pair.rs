//! Two endpoints joined by a line of fixed delay that loses what the test says. Segments follow one
//! another on it a little apart, as on any real line.
//!
//! The whole exchange becomes a text, a line for each segment with the time at which it was sent.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use weir_core::{Duration, Ecn, Time};
use weir_tcp::{Endpoint, Segment, Wire};

use crate::line::{Line, MSS, ORIGIN};
use crate::script::Setup;

/// The two ends.
#[derive(Clone, Copy, Debug)]
pub enum End {
    Client,
    Server,
}

/// Two endpoints and the line between them.
pub struct Pair {
    client: Peer,
    server: Peer,
    delay: Duration,
    /// The least time between two data segments on the line.
    spacing: Duration,
    /// Data segments that may wait for the line.
    room: u64,
    now: Time,
    /// Segments on their way, by when and in which order they arrive.
    on_the_way: BTreeMap<(Time, u64), (End, Segment, Ecn)>,
    sent: u64,
    text: String,
}

/// One end, and what became of what it sent.
struct Peer {
    endpoint: Endpoint,
    /// Number of the end's next data segment that was never sent.
    next: u32,
    sent: u32,
    sent_data: u32,
    /// When the last segment that it sent arrives.
    last_arrival: Time,
    /// Segments of this end that the line loses, counted from its first.
    lost: BTreeSet<u32>,
    lost_data: BTreeSet<u32>,
}

/// Segments that an endpoint sends in one call.
struct Sent(Vec<(Segment, Ecn)>);

impl Wire for Sent {
    fn send(&mut self, segment: &mut Segment, ecn: Ecn) {
        self.0.push((*segment, ecn));
    }
}

impl Pair {
    /// Two such endpoints, `delay` apart; the server listens.
    pub fn new(setup: &Setup, delay: Duration) -> Self {
        let side = || Peer {
            endpoint: setup.endpoint(),
            next: 0,
            sent: 0,
            sent_data: 0,
            last_arrival: Time::ZERO,
            lost: BTreeSet::new(),
            lost_data: BTreeSet::new(),
        };
        let mut pair = Self {
            client: side(),
            server: side(),
            delay,
            spacing: SPACING,
            room: u64::MAX,
            now: ORIGIN,
            on_the_way: BTreeMap::new(),
            sent: 0,
            text: String::new(),
        };
        pair.server.endpoint.listen();
        pair
    }

    /// The line takes so long for a data segment, and loses those that find `room` of them waiting.
    pub fn with_line(mut self, spacing: Duration, room: u64) -> Self {
        self.spacing = spacing;
        self.room = room;
        self
    }

    /// The line loses these segments of `end`, counted from 1 as they are sent.
    pub fn loses(mut self, end: End, segments: &[u32]) -> Self {
        self.side(end).lost.extend(segments);
        self
    }

    /// The line loses these data segments of `end`, counted from 1 as they are sent.
    pub fn loses_data(mut self, end: End, segments: &[u32]) -> Self {
        self.side(end).lost_data.extend(segments);
        self
    }

    /// The client opens the connection and writes `segments`.
    pub fn client_sends(mut self, segments: u32) -> Self {
        let bytes = u64::from(segments) * u64::from(MSS);
        self.call(End::Client, |endpoint, wire, now| {
            endpoint.connect(wire, now);
            endpoint.write(bytes, wire, now);
        });
        self
    }

    /// The client writes `segments` more.
    pub fn client_writes(mut self, segments: u32) -> Self {
        let bytes = u64::from(segments) * u64::from(MSS);
        self.call(End::Client, |endpoint, wire, now| endpoint.write(bytes, wire, now));
        self
    }

    /// Runs until nothing is on its way and no timer is set, or until `limit`, which is included.
    pub fn runs_for(mut self, limit: Duration) -> Self {
        self.runs_until(limit);
        self
    }

    /// Runs until nothing is on its way and no timer is set, or until `limit`, and can go on from there.
    pub fn runs_until(&mut self, limit: Duration) {
        let limit = ORIGIN + limit;
        while let Some((at, event)) = self.next_event().filter(|&(at, _)| at <= limit) {
            self.now = at;
            match event {
                PairEvent::Arrival => {
                    let (_, (end, segment, ecn)) = self.on_the_way.pop_first().expect("seen");
                    self.call(end, |endpoint, wire, now| {
                        endpoint.on_segment(&segment, ecn, wire, now);
                    });
                }
                PairEvent::Timer(end) => {
                    self.call(end, Endpoint::on_timer);
                }
            }
        }
        self.now = self.now.max(limit);
    }

    /// The whole exchange so far is this text; indentation does not matter.
    #[track_caller]
    pub fn reads(&self, text: &str) -> &Self {
        let (stated, real) = (tidy(text), tidy(&self.text));
        assert!(stated == real, "should read:\n{stated}\n\nbut reads:\n{real}");
        self
    }

    /// The most data segments that the client has sent at one time since `moment`.
    pub fn largest_burst(&self, moment: Duration) -> usize {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for line in self.text.lines().filter(|line| line.contains(" ms client: data")) {
            let (at, _) = line.split_once(" ms").expect("a line starts with its time");
            if at.parse::<f64>().expect("a number") >= moment.as_millis_f64() {
                *counts.entry(at).or_default() += 1;
            }
        }
        counts.into_values().max().unwrap_or(0)
    }

    pub fn client(&self) -> &Endpoint {
        &self.client.endpoint
    }

    pub fn server(&self) -> &Endpoint {
        &self.server.endpoint
    }

    /// The next event and its time; of events at one time arrivals come first.
    fn next_event(&self) -> Option<(Time, PairEvent)> {
        let arrival = self.on_the_way.keys().next().map(|&(at, _)| (at, PairEvent::Arrival));
        let timer = |end: End, side: &Peer| {
            side.endpoint.next_timer().map(|at| (at.max(self.now), PairEvent::Timer(end)))
        };
        let timers = [timer(End::Client, &self.client), timer(End::Server, &self.server)];
        arrival.into_iter().chain(timers.into_iter().flatten()).min_by_key(|&(at, _)| at)
    }

    fn call(&mut self, end: End, act: impl FnOnce(&mut Endpoint, &mut Sent, Time)) {
        let mut sent = Sent(Vec::new());
        let now = self.now;
        act(&mut self.side(end).endpoint, &mut sent, now);
        for (segment, ecn) in sent.0 {
            self.send(end, segment, ecn);
        }
    }

    fn send(&mut self, end: End, segment: Segment, ecn: Ecn) {
        let (who, peer) = match end {
            End::Client => ("client", End::Server),
            End::Server => ("server", End::Client),
        };
        let (now, delay, room) = (self.now, self.delay, self.room);
        let spacing = if segment.len > 0 { self.spacing } else { SPACING };
        let side = self.side(end);
        let line = Line::of(&segment, ecn, side.next);
        let waiting = side.last_arrival.checked_since(now + delay).unwrap_or_default();
        let is_full = waiting.as_nanos() / spacing.as_nanos() >= room;
        let lost = side.is_lost(&segment) || is_full;
        let at = self.now.since(ORIGIN).as_millis_f64();
        let fate = if lost { ", lost" } else { "" };
        writeln!(self.text, "{at} ms {who}: {line}{fate}").expect("a string takes everything");
        if !lost {
            let earliest = self.now + self.delay;
            let last = &mut self.side(end).last_arrival;
            *last = earliest.max(*last + spacing);
            let arrival = (*last, self.sent);
            self.on_the_way.insert(arrival, (peer, segment, ecn));
            self.sent += 1;
        }
    }

    fn side(&mut self, end: End) -> &mut Peer {
        match end {
            End::Client => &mut self.client,
            End::Server => &mut self.server,
        }
    }
}

/// The least time between two segments on the line.
const SPACING: Duration = Duration::from_micros(10);

#[derive(Clone, Copy, Debug)]
enum PairEvent {
    Arrival,
    Timer(End),
}

/// The lines of `text` without indentation and empty ones.
fn tidy(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join("\n")
}

impl Peer {
    /// Counts `segment`, and says whether it is one of those that are lost.
    fn is_lost(&mut self, segment: &Segment) -> bool {
        self.sent += 1;
        if segment.len > 0 {
            self.next = self.next.max(segment.seq + 1);
            self.sent_data += 1;
        }
        self.lost.contains(&self.sent)
            || (segment.len > 0 && self.lost_data.contains(&self.sent_data))
    }
}
