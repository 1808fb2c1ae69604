//! A hop: a queue with its marker, the line behind it, and what is under way from there.

use std::sync::Arc;

use weir_core::{Duration, Packet, Rate, Seed, Time};
use weir_qdisc::{Count, DropReason, Marker, Port};
use weir_scenario::{Direction, Hop as HopSpec, LineChange};

use crate::airtime::Media;
use crate::build;
use crate::delay_line::DelayLine;
use crate::flight::Flight;
use crate::forwarding::{Forwarding, Next};
use crate::line::Line;
use crate::path::Traffic;
use crate::trace::Trace;

/// The place of a hop on its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HopPlace {
    /// Number of the hop, up before down.
    pub number: usize,
    /// Direction of its packets.
    pub direction: Direction,
    /// How many hops of its direction come before it on the packet's route, without processors.
    pub passed: u32,
}

/// On which side of a hop's queue packets are captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CapturePoint {
    /// Before the queue: all that arrive, those included that the queue will drop.
    Arrivals,
    /// Behind it, as the line takes them: what a capture at the interface of a router sees.
    Departures,
}

/// A hop at work.
pub struct Hop {
    /// Name of the hop with the direction, such as `up/modem`.
    pub name: String,
    /// Queue of the hop.
    pub port: Port,
    pub(crate) marker: Option<Marker>,
    /// Whether something here looks at each packet beside queue and line: a marker, a shaper, a capture, the ends of
    /// tunnels.
    pub(crate) looks_at_packets: bool,
    pub(crate) direction: Direction,
    /// How many hops of its direction come before it, without processors; `None` if that differs by route.
    pub(crate) place: Option<u32>,
    pub(crate) is_processor: bool,
    pub(crate) line: Line,
    /// The line is busy until then, its event is set, and nothing can be sent before; in the past if what comes to
    /// wait may change that.
    pub(crate) resumes: Time,
    pub(crate) flight: Flight,
    pub(crate) delay_line: DelayLine,
    pub(crate) next: Next,
    pub(crate) shaped: bool,
    pub(crate) captured: Option<CapturePoint>,
    /// Whether tunnels end on the machine that has the queue.
    pub(crate) ends_tunnels: bool,
    /// Bytes of the line that were occupied since somebody looked.
    pub(crate) wire_bytes: u64,
    /// What the line has lost since somebody looked, as the queue counted it.
    pub(crate) lost: Count,
}

impl Hop {
    /// The hop of `spec`, whose packets go on to `next`.
    pub(crate) fn new(
        spec: &HopSpec,
        (direction, place): (Direction, Option<u32>),
        next: Next,
        traces: &dyn Fn(&str) -> Arc<Trace>,
        (seed, mtu): (Seed, u32),
        media: &mut Media,
    ) -> Self {
        let name = spec.full_name(direction);
        let seed = seed.derive(&name);
        Self {
            direction,
            place,
            is_processor: spec.is_processor(),
            port: build::port(spec, seed.derive("queue"), mtu).expect("the scenario was checked"),
            looks_at_packets: spec.shaped || spec.marker.is_some(),
            marker: build::marker(spec, seed.derive("marker"), mtu)
                .expect("the scenario was checked"),
            line: build::line(spec, traces, seed, media),
            resumes: Time::ZERO,
            flight: Flight::new(&spec.flight(), seed),
            delay_line: DelayLine::new(Duration::ZERO, next),
            next,
            shaped: spec.shaped,
            captured: None,
            ends_tunnels: false,
            wire_bytes: 0,
            lost: Count::default(),
            name,
        }
    }

    /// Shows `packet` to all that look at it behind the queue of this hop, which has that number.
    pub(crate) fn show_departing(
        &self,
        number: usize,
        packet: &mut Packet,
        traffic: &mut impl Traffic,
        forwarding: &Forwarding,
        now: Time,
    ) {
        if self.shaped && self.direction == Direction::Up {
            traffic.crosses_shaper(packet, self.direction, now);
        }
        if self.ends_tunnels {
            traffic.leaves_tunnels_end(packet);
        }
        if self.captured == Some(CapturePoint::Departures) {
            let place = self.place_of(number, packet, traffic, forwarding);
            traffic.is_captured(packet, &place, now);
        }
    }

    /// Does `change` to the line.
    ///
    /// # Panics
    /// If it gives a rate to a line that has no constant one.
    pub(crate) fn change_line(&mut self, change: LineChange, now: Time) {
        match change {
            LineChange::RateBps(bps) => self.line.set_rate(Some(Rate::from_bps(bps)), now),
            LineChange::Down => self.line.set_rate(None, now),
            LineChange::DelayNs(delay) => self.flight.set_delay(Duration::from_nanos(delay), now),
            LineChange::Loss(params) => self.flight.set_loss(params),
        }
    }

    /// The line loses `packet`, which the queue has let go.
    pub(crate) fn lose(&mut self, packet: &Packet, traffic: &mut impl Traffic) {
        self.lost.add(packet.len);
        traffic.on_drop(*packet, DropReason::LinkLoss);
    }

    /// Place of this hop, which has that number, on the route of `packet`.
    pub(crate) fn place_of(
        &self,
        number: usize,
        packet: &Packet,
        traffic: &impl Traffic,
        forwarding: &Forwarding,
    ) -> HopPlace {
        let by_route = || forwarding.stop(number, traffic.host_of(packet)).place;
        let passed = self.place.unwrap_or_else(by_route);
        HopPlace { number, direction: self.direction, passed }
    }
}
