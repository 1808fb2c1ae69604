//! Hops, and the ways between them and the hosts.
//!
//! A packet is enqueued at a hop, leaves when its line carries it, and travels to the next. A line's
//! packets under way are a list in the order in which they arrive, with one pending event for its head. Where servers
//! have routes, a packet travels over the hops of its server's.
//!
//! A hop's marker colours packets before they are queued.
//!
//! In front of the first hop, between hops and behind the last there are routers: a packet whose time to
//! live ends at one of them arrives there, and what the router answers goes the other way from there. A hop that
//! is the processor of a router is part of the router in front of the next hop: a packet whose time to live ends
//! there has passed the processor, and the router's answer does not pass it again.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use weir_core::{Duration, End, Packet, Rate, Seed, Time};
use weir_qdisc::{About, DropSink};
use weir_scenario::{Direction, LineChange, Scenario, hops_before_router};

use crate::airtime::Media;
use crate::delay_line::DelayLine;
use crate::events::{Events, Source};
use crate::flight::Arrivals;
use crate::forwarding::{Forwarding, Next};
use crate::hop::{CapturePoint, Hop, HopPlace};
use crate::line_changes::LineChanges;
use crate::trace::Trace;

/// The owner of the packets on a path: stores what they carry, tells markers about it, and hears of those that
/// do not arrive.
pub trait Traffic: DropSink + About {
    /// The number of the server to or from which `packet` goes.
    fn host_of(&self, packet: &Packet) -> u32;

    /// Whether the time to live of any packet may end on the way: where none does, no router is asked.
    fn may_end_at_routers(&self) -> bool {
        true
    }

    /// Whether the time to live of `packet` ends at the router that stands behind `passed` hops.
    fn ends_at_router(&self, packet: &Packet, passed: u32) -> bool;

    /// Whether `packet` is an answer to a shaper's probe, which arrives where the shaper sits.
    fn ends_at_shaper(&self, packet: &Packet) -> bool {
        let _ = packet;
        false
    }

    /// `packet` leaves the machine of the first hop up, on which tunnels end: what that machine knew of the flow
    /// inside is lost.
    fn leaves_tunnels_end(&self, packet: &mut Packet) {
        let _ = packet;
    }

    /// `packet` crosses the shaper of `direction`, on the side of the line: on its way to the line when
    /// the shaper lets it go, from the line when it arrives.
    fn crosses_shaper(&mut self, packet: &Packet, direction: Direction, now: Time) {
        let _ = (packet, direction, now);
    }

    /// `packet` is where a [capture](Path::capture) was asked for.
    fn is_captured(&mut self, packet: &Packet, hop: &HopPlace, now: Time) {
        let _ = (packet, hop, now);
    }
}

/// The path of a scenario at work.
pub struct Path<T> {
    /// Pending events, on the path and elsewhere.
    pub events: Events,
    /// The owner of the packets.
    pub traffic: T,
    hops: Vec<Hop>,
    /// What wireless hops share.
    media: Media,
    /// Between the far end of the path and each server: up, then down, by host.
    access: Vec<DelayLine>,
    /// The hops of each direction: their numbers.
    ranges: [Range<usize>; 2],
    forwarding: Forwarding,
    /// The next stop of packets that leave the client.
    from_client: Next,
    /// Whether the time to live of a packet may end on the way.
    asks_routers: bool,
    /// Number of the first hop's source for deliveries, and of the first for its line.
    sources: Sources,
    /// Packets that have arrived somewhere and wait to be taken in.
    arrived: VecDeque<(Packet, ArrivalPoint)>,
    changes: LineChanges,
}

/// Packets on their way from the last hop of a direction.
pub struct Upcoming<'a, T> {
    path: &'a Path<T>,
    /// Number of that hop.
    hop: usize,
    packets: &'a VecDeque<(Time, Packet)>,
    by_route: bool,
    /// The end to which they come.
    pub end: End,
}

impl<'a, T: Traffic> Upcoming<'a, T> {
    /// The packet that comes `ahead` packets behind the next one, if it comes to the end.
    #[inline]
    pub fn packet(&self, ahead: usize) -> Option<&'a Packet> {
        let (_, packet) = self.packets.get(ahead)?;
        let goes_on = self.by_route && matches!(self.path.next_of(self.hop, packet), Next::Hop(_));
        (!goes_on).then_some(packet)
    }
}

/// Where a packet arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrivalPoint {
    /// At a host.
    End(End),
    /// At a router, where its time to live ended.
    Router {
        /// Direction in which it was going.
        direction: Direction,
        /// How many hops of that direction it has passed, without processors.
        passed: u32,
    },
    /// At the shaper, on its side of the line.
    Shaper,
}

/// Numbers of the event sources of each part of the path.
#[derive(Clone, Copy, Debug)]
struct Sources {
    access: Source,
    lines: Source,
    /// Of all changes of lines together; `None` if there are none.
    changes: Option<Source>,
    end: Source,
}

impl<T: Traffic> Path<T> {
    /// The path of `scenario`, whose packets `traffic` owns. The sources of events behind its own start at
    /// [`own_sources`](Self::own_sources); there are `others` of them.
    ///
    /// # Panics
    /// If the scenario was not [checked](Scenario::check).
    pub fn new(
        scenario: &Scenario,
        traces: &dyn Fn(&str) -> Arc<Trace>,
        seed: Seed,
        traffic: T,
        others: usize,
    ) -> Self {
        let mut hops = Vec::new();
        let mut media = Media::default();
        let [up, down] = Direction::ALL.map(|direction| scenario.hops(direction).len());
        let ranges = [0..up, up..up + down];
        let forwarding = Forwarding::new(scenario, &ranges);
        for direction in Direction::ALL {
            for spec in scenario.hops(direction) {
                let (next, place) = (forwarding.next(hops.len()), forwarding.place(hops.len()));
                let streams = (seed, scenario.mtu_bytes);
                hops.push(Hop::new(spec, (direction, place), next, traces, streams, &mut media));
            }
        }
        for tunnel in scenario.tunnels.iter().filter(|tunnel| tunnel.on_first_hop) {
            let mut on_the_way = forwarding.hops(tunnel.host, Direction::Up).iter();
            if let Some(&first) = on_the_way.find(|&&hop| !hops[hop].is_processor) {
                hops[first].ends_tunnels = true;
                hops[first].looks_at_packets = true;
            }
        }
        let mut access = Vec::new();
        for (number, host) in (0..).zip(&scenario.hosts) {
            let delay = Duration::from_nanos(host.delay_ns);
            access.push(DelayLine::new(delay, Next::End(End::Server)));
            access.push(DelayLine::new(delay, forwarding.first(number, Direction::Down)));
        }
        let changes = LineChanges::new(scenario);
        // What never happens has no number, so that few are to be looked through.
        let ways = if access.iter().all(|way| way.delay.is_zero()) { 0 } else { access.len() };
        let behind_lines = (2 * hops.len() + ways) as Source;
        let first_change = changes.next_at().map(|at| (behind_lines, at));
        let sources = Sources {
            access: hops.len() as Source,
            lines: (hops.len() + ways) as Source,
            changes: first_change.map(|(source, _)| source),
            end: behind_lines + Source::from(first_change.is_some()),
        };
        let mut events = Events::new(sources.end as usize + others, sources.end);
        if let Some((source, at)) = first_change {
            events.set(source, at);
        }
        let from_client = forwarding.leaving_client();
        let (asks_routers, arrived) = (traffic.may_end_at_routers(), VecDeque::new());
        Self {
            events,
            traffic,
            hops,
            media,
            access,
            ranges,
            forwarding,
            from_client,
            asks_routers,
            sources,
            arrived,
            changes,
        }
    }

    /// How many sources of events are the path's own: the lowest numbers. Deliveries come before lines,
    /// so that a packet that arrives as a line becomes free is in the queue when it asks.
    pub const fn own_sources(&self) -> Source {
        self.sources.end
    }

    /// Sends `packet` from the client or from its server.
    #[inline(always)]
    pub fn send(&mut self, mut packet: Packet, from: End, now: Time) {
        let next = match from {
            End::Client => match self.from_client {
                Next::ByRoute => self.forwarding.first(self.host_of(&packet), Direction::Up),
                next => next,
            },
            End::Server => {
                let way = 2 * self.host_of(&packet) as usize + 1;
                if !self.access[way].delay.is_zero() {
                    return self.travel(way, &packet, now);
                }
                self.access[way].next
            }
        };
        if let Next::Hop(hop) = next {
            return self.enter(hop, &mut packet, now);
        }
        let arrival = self.pass_on(&mut packet, next, now);
        self.note_arrived(&packet, arrival);
    }

    /// Sends `packet` from the router behind `passed` hops of `direction` back against that direction.
    pub fn send_back(&mut self, mut packet: Packet, direction: Direction, passed: u32, now: Time) {
        let opposite = direction.opposite();
        let host = self.traffic.host_of(&packet);
        let [there, back] =
            [direction, opposite].map(|direction| self.forwarding.counted(host, direction));
        let before = hops_before_router(passed, there, back);
        let mut hops = self.forwarding.hops(host, opposite).iter().copied();
        match hops.find(|&hop| {
            !self.hops[hop].is_processor && self.forwarding.stop(hop, host).place == before
        }) {
            Some(hop) => self.forward(hop, &mut packet, now),
            None if direction == Direction::Up => {
                self.arrived.push_back((packet, ArrivalPoint::End(End::Client)));
            }
            None => {
                let arrival = self.leave_to_server(&mut packet, now);
                self.note_arrived(&packet, arrival);
            }
        }
    }

    /// An event of one of the path's own sources. Packets that it lets arrive are [next](Self::next_arrived).
    pub fn on_event(&mut self, source: Source, now: Time) {
        let mut packet = Packet::BLANK;
        let arrival = self.arrival_by(source, now, &mut packet);
        self.note_arrived(&packet, arrival);
    }

    /// An event of one of the path's own sources. If it lets one packet arrive, as it mostly does, that is written to
    /// `packet`, and returned is where it is; several are [next](Self::next_arrived).
    #[inline(always)]
    pub fn arrival_by(
        &mut self,
        source: Source,
        now: Time,
        packet: &mut Packet,
    ) -> Option<ArrivalPoint> {
        if source < self.sources.lines {
            return self.deliver(source, now, packet);
        }
        let hop = (source - self.sources.lines) as usize;
        if hop < self.hops.len() {
            self.serve(hop, now);
        } else {
            self.change_lines(now);
        }
        None
    }

    /// Passes on what has come to the end of the way whose event `source` is.
    #[inline(always)]
    fn deliver(&mut self, source: Source, now: Time, packet: &mut Packet) -> Option<ArrivalPoint> {
        loop {
            let (way, hop) = match source.checked_sub(self.sources.access) {
                Some(way) => (&mut self.access[way as usize], None),
                None => {
                    let hop = source as usize;
                    (&mut self.hops[hop].delay_line, Some(hop))
                }
            };
            if !way.pop_due(now, packet) {
                return None;
            }
            let (next, following) = (way.next, way.next_arrival());
            let next = match (next, hop) {
                (Next::ByRoute, Some(hop)) => self.next_of(hop, packet),
                _ => next,
            };
            let others_follow = following.is_some_and(|at| at <= now);
            if let Some(at) = following.filter(|_| !others_follow) {
                self.events.set(source, at);
            }
            let arrival = self.pass_on(packet, next, now);
            if !others_follow && self.arrived.is_empty() {
                return arrival;
            }
            self.note_arrived(packet, arrival);
            if !others_follow {
                return None;
            }
        }
    }

    /// When somebody who owns a clock has to look again at the latest: before that nothing arrives, unless it is sent.
    ///
    /// It may be later than the next event. What a line takes from its queue meanwhile cannot arrive before its
    /// propagation delay is over, and may be carried out when that is: with the times that it has.
    pub fn look_at(&mut self) -> Option<Time> {
        let Self { events, hops, sources, .. } = self;
        events.earliest_by(|source, at| {
            let hop = source.checked_sub(sources.lines).and_then(|hop| hops.get(hop as usize));
            hop.map_or(at, |hop| at.saturating_add(hop.flight.least()))
        })
    }

    /// The number of the hop at which the shaper of `direction` sits.
    pub fn shaper(&self, direction: Direction) -> Option<usize> {
        self.ranges[direction as usize].clone().find(|&hop| self.hops[hop].shaped)
    }

    /// Lets packets leave the shaper at `hop` at `rate` from `now` on, at once if it is `None`.
    pub fn set_shaper_rate(&mut self, hop: usize, rate: Option<Rate>, now: Time) {
        self.hops[hop].port.set_rate(rate, now);
        self.serve(hop, now);
    }

    /// From now on tells the owner of the packets of all that are at `point` of `hop`.
    pub fn capture(&mut self, hop: usize, point: CapturePoint) {
        self.hops[hop].captured = Some(point);
        self.hops[hop].looks_at_packets = true;
    }

    /// Sends `packet` from the shaper at `hop` towards the line, past what waits in the shaper.
    pub fn send_from_shaper(&mut self, mut packet: Packet, hop: usize, now: Time) {
        let next = self.next_of(hop, &packet);
        let arrival = self.pass_on(&mut packet, next, now);
        self.note_arrived(&packet, arrival);
    }

    /// Whether a packet has arrived somewhere that was not taken in.
    #[inline]
    pub fn has_arrived(&self) -> bool {
        !self.arrived.is_empty()
    }

    /// The next packet that has arrived somewhere.
    #[inline]
    pub fn next_arrived(&mut self) -> Option<(Packet, ArrivalPoint)> {
        self.arrived.pop_front()
    }

    /// The hops, up before down.
    pub fn hops(&self) -> &[Hop] {
        &self.hops
    }

    /// The hops, up before down, to be sampled.
    pub fn hops_mut(&mut self) -> &mut [Hop] {
        &mut self.hops
    }

    /// The packets that events of `source` bring one after the other, if some of them come to an end of the path by that.
    #[inline]
    pub fn upcoming(&self, source: Source) -> Option<Upcoming<'_, T>> {
        let number = source as usize;
        let hop = self.hops.get(number)?;
        if let Next::Hop(_) = hop.next {
            return None;
        }
        let end = match hop.direction {
            Direction::Up => End::Server,
            Direction::Down => End::Client,
        };
        let by_route = hop.next == Next::ByRoute;
        Some(Upcoming { path: self, hop: number, packets: &hop.delay_line.packets, by_route, end })
    }

    /// The next stop of `packet`, which leaves `hop`.
    fn next_of(&self, hop: usize, packet: &Packet) -> Next {
        match self.hops[hop].next {
            Next::ByRoute => self.forwarding.stop(hop, self.traffic.host_of(packet)).next,
            next => next,
        }
    }

    /// The number of the server to or from which `packet` goes.
    #[inline]
    fn host_of(&self, packet: &Packet) -> u32 {
        // Two ways for each server.
        if self.access.len() == 2 { 0 } else { self.traffic.host_of(packet) }
    }

    /// Keeps `packet` for whoever takes it in, if it has arrived.
    #[inline]
    fn note_arrived(&mut self, packet: &Packet, arrival: Option<ArrivalPoint>) {
        if let Some(place) = arrival {
            self.arrived.push_back((*packet, place));
        }
    }

    /// Passes `packet` on to its next stop, and says where it has arrived if it has.
    #[inline]
    fn pass_on(&mut self, packet: &mut Packet, next: Next, now: Time) -> Option<ArrivalPoint> {
        match next {
            Next::Hop(hop) => {
                self.forward(hop, packet, now);
                None
            }
            Next::Servers => self.leave_to_server(packet, now),
            Next::End(end) => Some(ArrivalPoint::End(end)),
            Next::ByRoute => unreachable!("the next stop of a packet is one"),
        }
    }

    /// The router in front of `hop` forwards `packet` to it.
    #[inline(never)]
    fn forward(&mut self, hop: usize, packet: &mut Packet, now: Time) {
        self.enter(hop, packet, now);
    }

    /// As [`forward`](Self::forward), where most packets come from.
    #[inline(always)]
    fn enter(&mut self, hop: usize, packet: &mut Packet, now: Time) {
        if self.asks_routers || self.hops[hop].looks_at_packets {
            self.enter_seen(hop, packet, now);
        } else {
            self.enqueue(hop, packet, now);
        }
    }

    /// The router in front of `hop` forwards `packet` to it, where somebody looks at packets.
    #[inline(never)]
    fn enter_seen(&mut self, hop: usize, packet: &mut Packet, now: Time) {
        if !self.ends_or_is_seen(hop, packet, now) {
            self.enqueue(hop, packet, now);
        }
    }

    #[inline(always)]
    fn enqueue(&mut self, hop: usize, packet: &mut Packet, now: Time) {
        let it = &mut self.hops[hop];
        if it.resumes > now {
            it.port.enqueue(packet, now, &mut self.traffic);
        } else if it.line.is_idle(now) && it.port.pass(packet, now) {
            it.resumes = Time::ZERO;
            packet.enqueued_at = now;
            self.transmit(hop, packet, now);
        } else {
            it.port.enqueue(packet, now, &mut self.traffic);
            self.serve(hop, now);
        }
    }

    /// Shows `packet` to all that look at it in front of the queue of `hop`; returns whether it has arrived there.
    fn ends_or_is_seen(&mut self, hop: usize, packet: &mut Packet, now: Time) -> bool {
        let Self { hops, traffic, arrived, forwarding, .. } = self;
        let it = &mut hops[hop];
        let HopPlace { direction, passed, .. } = it.place_of(hop, packet, traffic, forwarding);
        if !it.is_processor && traffic.ends_at_router(packet, passed) {
            arrived.push_back((*packet, ArrivalPoint::Router { direction, passed }));
            return true;
        }
        if it.shaped {
            if traffic.ends_at_shaper(packet) {
                arrived.push_back((*packet, ArrivalPoint::Shaper));
                return true;
            }
            if direction == Direction::Down {
                traffic.crosses_shaper(packet, direction, now);
            }
        }
        if it.captured == Some(CapturePoint::Arrivals) {
            traffic.is_captured(packet, &HopPlace { number: hop, direction, passed }, now);
        }
        if let Some(marker) = &mut it.marker {
            marker.mark(packet, traffic, now);
        }
        false
    }

    /// Does to the lines what is due.
    fn change_lines(&mut self, now: Time) {
        while let Some((hop, change)) = self.changes.pop_due(now) {
            self.change_line(hop, change, now);
        }
        if let (Some(source), Some(at)) = (self.sources.changes, self.changes.next_at()) {
            self.events.set(source, at);
        }
    }

    /// Does `change` to the line of the hop of that number at `now`, up to which events were carried out.
    ///
    /// # Panics
    /// If it gives a rate to a line that has no constant one: the scenario with the change was not
    /// [checked](Scenario::check).
    pub fn change_line(&mut self, hop: usize, change: LineChange, now: Time) {
        self.hops[hop].change_line(change, now);
        self.serve(hop, now);
    }

    /// The router behind the last hop forwards `packet` to its server.
    #[inline(always)]
    fn leave_to_server(&mut self, packet: &mut Packet, now: Time) -> Option<ArrivalPoint> {
        let host = self.host_of(packet);
        if self.asks_routers {
            let passed = self.forwarding.counted(host, Direction::Up);
            if self.traffic.ends_at_router(packet, passed) {
                return Some(ArrivalPoint::Router { direction: Direction::Up, passed });
            }
        }
        let way = 2 * host as usize;
        if !self.access[way].delay.is_zero() {
            self.travel(way, packet, now);
            return None;
        }
        Some(ArrivalPoint::End(End::Server))
    }

    /// `packet` travels over the way of that number between the far end of the path and a server.
    #[inline]
    fn travel(&mut self, way: usize, packet: &Packet, now: Time) {
        let at = now + self.access[way].delay;
        let source = self.sources.access + way as Source;
        self.access[way].push(at, packet, source, &mut self.events);
    }

    /// Lets the line of `hop` carry what it can by now.
    fn serve(&mut self, hop: usize, now: Time) {
        let line_source = self.sources.lines + hop as Source;
        self.hops[hop].resumes = Time::ZERO;
        loop {
            let Self { hops, media, events, traffic, .. } = self;
            let it = &mut hops[hop];
            let ready = it.line.ready_at(now, || it.port.backlog().packets.into(), media);
            if ready > now {
                if it.port.backlog().packets > 0 {
                    events.set(line_source, ready);
                    if it.line.keeps_its_word() {
                        it.resumes = ready;
                    }
                }
                return;
            }
            let mut taken = it.port.dequeue(now, traffic);
            let Some(packet) = &mut taken else {
                if let Some(wake) = it.port.wake_at() {
                    events.set(line_source, wake);
                }
                return;
            };
            self.transmit(hop, packet, now);
        }
    }

    /// The line of `hop`, which is ready, takes `packet` from the queue.
    #[inline]
    fn transmit(&mut self, hop: usize, packet: &mut Packet, now: Time) {
        let Self { hops, media, events, traffic, forwarding, .. } = self;
        let it = &mut hops[hop];
        if it.looks_at_packets {
            it.show_departing(hop, packet, traffic, forwarding, now);
        }
        let (bytes, left) = it.line.send(packet.ip_len(), now, media);
        it.wire_bytes += bytes;
        let Arrivals { packet: arrives, copy } = it.flight.pass(left);
        if let Some(at) = copy {
            let twin = Packet { handle: traffic.on_duplicate(packet), ..*packet };
            it.delay_line.push_rare(at, &twin, hop as Source, events);
        }
        match arrives {
            Some(at) => it.delay_line.push(at, packet, hop as Source, events),
            None => it.lose(packet, traffic),
        }
    }
}
