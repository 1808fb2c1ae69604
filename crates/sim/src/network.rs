//! The path: hops, and the ways between them and the hosts.
//!
//! A packet is enqueued at a hop, leaves when its line carries it, and travels to the next. A line's
//! packets under way are a first-in first-out list with one pending event, for their order never changes.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;

use weir_core::{Duration, Packet, Seed, Time};
use weir_link::{Flight, Line, Trace};
use weir_qdisc::{DropReason, Fates, Port};
use weir_world::{Direction, Hop as HopSpec, Scenario};

use crate::cargo::Cargo;
use crate::events::{Events, Source};

/// The path of a scenario at work.
pub(crate) struct Network {
    pub events: Events,
    pub cargo: Cargo,
    hops: Vec<Hop>,
    /// Between the far end of the path and each server: up, then down, by host.
    access: Vec<Way>,
    /// The first hop of each direction, if there is one.
    entries: [Option<usize>; 2],
    /// Number of the first hop's source for deliveries, and of the first for its line.
    sources: Sources,
    /// Packets that have arrived at a host and wait to be taken in.
    arrived: VecDeque<(Packet, End)>,
}

/// Where a packet arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Client,
    Server,
}

/// A hop at work.
pub(crate) struct Hop {
    /// Its name with the direction, such as `up/modem`.
    pub name: String,
    pub port: Port,
    line: Line,
    flight: Flight,
    way: Way,
    next: Next,
    /// Bytes of the line that were occupied since somebody looked.
    pub wire_bytes: u64,
}

/// Packets on their way, in the order in which they arrive.
#[derive(Debug)]
struct Way {
    packets: VecDeque<(Time, Packet)>,
    delay: Duration,
    next: Next,
}

/// What comes behind a hop or a way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Hop(usize),
    /// The servers, each behind its own way.
    Servers,
    End(End),
}

/// Which sources of events are whose.
#[derive(Clone, Copy, Debug)]
struct Sources {
    access: Source,
    lines: Source,
    end: Source,
}

impl Network {
    /// The path of `scenario`. The sources of events behind its own start at
    /// [`own_sources`](Self::own_sources); there are `others` of them.
    pub fn new(
        scenario: &Scenario,
        traces: &dyn Fn(&str) -> Arc<Trace>,
        seed: Seed,
        others: usize,
    ) -> Self {
        let mut hops = Vec::new();
        let mut entries = [None; 2];
        for direction in [Direction::Up, Direction::Down] {
            let specs = scenario.hops(direction);
            for (place, spec) in specs.iter().enumerate() {
                if place == 0 {
                    entries[direction as usize] = Some(hops.len());
                }
                let next = match (place + 1 < specs.len(), direction) {
                    (true, _) => Next::Hop(hops.len() + 1),
                    (false, Direction::Up) => Next::Servers,
                    (false, Direction::Down) => Next::End(End::Client),
                };
                hops.push(Hop::new(spec, direction, next, traces, seed, scenario.mtu_bytes));
            }
        }
        let mut access = Vec::new();
        for host in &scenario.hosts {
            let delay = Duration::from_nanos(host.delay_ns);
            access.push(Way::new(delay, Next::End(End::Server)));
            let down = entries[Direction::Down as usize].map_or(Next::End(End::Client), Next::Hop);
            access.push(Way::new(delay, down));
        }
        let sources = Sources {
            access: hops.len() as Source,
            lines: (hops.len() + access.len()) as Source,
            end: (2 * hops.len() + access.len()) as Source,
        };
        let cargo = Cargo::new(scenario.flows.len());
        Self {
            events: Events::new(sources.end as usize + others),
            cargo,
            hops,
            access,
            entries,
            sources,
            arrived: VecDeque::new(),
        }
    }

    /// How many sources of events are the path's own: the lowest numbers. Deliveries come before lines,
    /// so that a packet that arrives as a line becomes free is in the queue when it asks.
    pub const fn own_sources(&self) -> Source {
        self.sources.end
    }

    /// Sends `packet` from the client, or from server number `host`.
    pub fn send(&mut self, packet: Packet, from: End, host: u32, now: Time) {
        match from {
            End::Client => match self.entries[Direction::Up as usize] {
                Some(hop) => self.enqueue(hop, packet, now),
                None => self.travel_access(2 * host as usize, packet, now),
            },
            End::Server => self.travel_access(2 * host as usize + 1, packet, now),
        }
    }

    /// An event of one of the path's own sources. `host_of` tells the server's number of a packet.
    pub fn on_event(&mut self, source: Source, host_of: impl Fn(&Packet) -> u32, now: Time) {
        if source >= self.sources.lines {
            self.serve((source - self.sources.lines) as usize, now);
        } else if source >= self.sources.access {
            let way = (source - self.sources.access) as usize;
            while let Some(packet) = self.access[way].pop_due(now) {
                self.pass_on(packet, self.access[way].next, &host_of, now);
            }
            if let Some(at) = self.access[way].next_arrival() {
                self.events.set(source, at);
            }
        } else {
            let hop = source as usize;
            while let Some(packet) = self.hops[hop].way.pop_due(now) {
                self.pass_on(packet, self.hops[hop].next, &host_of, now);
            }
            if let Some(at) = self.hops[hop].way.next_arrival() {
                self.events.set(source, at);
            }
        }
    }

    /// The next packet that has arrived at a host.
    pub fn next_arrived(&mut self) -> Option<(Packet, End)> {
        self.arrived.pop_front()
    }

    /// The hops, up before down.
    pub fn hops_mut(&mut self) -> &mut [Hop] {
        &mut self.hops
    }

    /// A packet that will arrive shortly behind the one that an event of `source` brings, if it goes
    /// to a host.
    pub fn upcoming(&self, source: Source) -> Option<(&Packet, End)> {
        let hop = self.hops.get(source as usize)?;
        let (_, packet) = hop.way.packets.get(AHEAD)?;
        match hop.next {
            Next::End(end) => Some((packet, end)),
            Next::Servers => Some((packet, End::Server)),
            Next::Hop(_) => None,
        }
    }

    fn pass_on(&mut self, packet: Packet, next: Next, host_of: impl Fn(&Packet) -> u32, now: Time) {
        match next {
            Next::Hop(hop) => self.enqueue(hop, packet, now),
            Next::Servers => self.travel_access(2 * host_of(&packet) as usize, packet, now),
            Next::End(end) => self.arrived.push_back((packet, end)),
        }
    }

    fn travel_access(&mut self, way: usize, packet: Packet, now: Time) {
        let Way { delay, next, .. } = self.access[way];
        if !delay.is_zero() {
            let source = self.sources.access + way as Source;
            self.access[way].push(now + delay, packet, source, &mut self.events);
            return;
        }
        match next {
            Next::Hop(hop) => self.enqueue(hop, packet, now),
            Next::End(end) => self.arrived.push_back((packet, end)),
            Next::Servers => unreachable!("a server's own way does not lead to the servers"),
        }
    }

    fn enqueue(&mut self, hop: usize, packet: Packet, now: Time) {
        self.hops[hop].port.enqueue(packet, now, &mut self.cargo);
        self.serve(hop, now);
    }

    /// Lets the line of `hop` carry what it can by now.
    fn serve(&mut self, hop: usize, now: Time) {
        let line_source = self.sources.lines + hop as Source;
        let Self { hops, events, cargo, .. } = self;
        let it = &mut hops[hop];
        loop {
            let ready = it.line.ready_at(now);
            if ready > now {
                if it.port.backlog().packets > 0 {
                    events.set(line_source, ready);
                }
                return;
            }
            let Some(packet) = it.port.dequeue(now, cargo) else {
                if let Some(wake) = it.port.wake_at() {
                    events.set(line_source, wake);
                }
                return;
            };
            it.wire_bytes += it.line.wire_bytes(packet.ip_len());
            let left = it.line.send(packet.ip_len(), now);
            match it.flight.arrives_at(left) {
                Some(at) => it.way.push(at, packet, hop as Source, events),
                None => cargo.on_drop(packet, DropReason::LinkLoss),
            }
        }
    }
}

impl Hop {
    fn new(
        spec: &HopSpec,
        direction: Direction,
        next: Next,
        traces: &dyn Fn(&str) -> Arc<Trace>,
        seed: Seed,
        mtu: u32,
    ) -> Self {
        let side = match direction {
            Direction::Up => "up",
            Direction::Down => "down",
        };
        let name = format!("{side}/{}", spec.name);
        let seed = seed.derive(&name);
        let line = spec.line(|trace| Ok::<_, Infallible>(traces(trace)));
        Self {
            port: spec.port(seed.derive("queue"), mtu).expect("the scenario was checked"),
            line: line.unwrap_or_else(|never| match never {}),
            flight: Flight::new(&spec.flight(), seed),
            way: Way::new(Duration::ZERO, next),
            next,
            wire_bytes: 0,
            name,
        }
    }
}

impl Way {
    const fn new(delay: Duration, next: Next) -> Self {
        Self { packets: VecDeque::new(), delay, next }
    }

    fn push(&mut self, at: Time, packet: Packet, source: Source, events: &mut Events) {
        if self.packets.is_empty() {
            events.set(source, at);
        }
        self.packets.push_back((at, packet));
    }

    fn pop_due(&mut self, now: Time) -> Option<Packet> {
        let &(at, packet) = self.packets.front()?;
        (at <= now).then(|| {
            self.packets.pop_front();
            packet
        })
    }

    fn next_arrival(&self) -> Option<Time> {
        self.packets.front().map(|&(at, _)| at)
    }
}

/// How many packets ahead memory is asked for: far enough for it to come, near enough to stay.
const AHEAD: usize = 3;
