//! Both ends of a TCP connection, and what puts their segments onto the path.

use std::mem::offset_of;
use std::sync::Arc;

use weir_core::{Ecn, Packet, Seed, Time};
use weir_path::End;
use weir_scenario::ScenarioError;
use weir_tcp::{Endpoint, Info, Profile, Segment, Wire};

use crate::encapsulation::Encapsulation;
use crate::run::Network;

/// A connection between the client and a server.
#[repr(C)]
pub(crate) struct Pair {
    route: Route,
    client: Endpoint,
    server: Endpoint,
}

/// Route of a connection: flow ids, encapsulation and timestamps of its packets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Route {
    /// The flow ids of packets from the client, and from the server.
    pub flow_ids: [u32; 2],
    encapsulation: Encapsulation,
    timestamps: bool,
}

impl Route {
    pub const fn new(flow_ids: [u32; 2], encapsulation: Encapsulation) -> Self {
        Self { flow_ids, encapsulation, timestamps: false }
    }
}

impl Pair {
    /// Bytes in front of the ends.
    pub const FRONT_BYTES: usize = offset_of!(Self, client);

    /// A connection of which the one who is not the `opener` waits to be called. Both ends speak `profile`,
    /// with the congestion controls of the client and of the server.
    pub fn new(
        route: Route,
        profile: &Arc<Profile>,
        controls: [&str; 2],
        opener: End,
        seed: Seed,
    ) -> Result<Self, ScenarioError> {
        let mss = profile.mss(route.encapsulation.mtu, route.encapsulation.ip_header);
        let endpoint = |end, control| {
            let random = seed.stream(end);
            Endpoint::new(Arc::clone(profile), control, mss, random)
                .map_err(|error| ScenarioError::new(error.to_string()))
        };
        let mut pair = Self {
            client: endpoint("client", controls[End::Client as usize])?,
            server: endpoint("server", controls[End::Server as usize])?,
            route: Route { timestamps: profile.timestamps, ..route },
        };
        pair.end_mut(opener.other()).listen();
        Ok(pair)
    }

    /// `opener` opens the connection.
    pub fn connect(&mut self, opener: End, network: &mut Network, now: Time) {
        let mut wire = self.route.wire(network, opener, now);
        match opener {
            End::Client => self.client.connect(&mut wire, now),
            End::Server => self.server.connect(&mut wire, now),
        }
    }

    /// Writes `bytes` more at `end`, as its application.
    pub fn write(&mut self, end: End, bytes: u64, network: &mut Network, now: Time) {
        let mut wire = self.route.wire(network, end, now);
        self.end_mut(end).write(bytes, &mut wire, now);
    }

    /// A packet of the connection arrived at `end`; says how many bytes of data it had.
    pub fn on_packet(
        &mut self,
        packet: &Packet,
        end: End,
        network: &mut Network,
        now: Time,
    ) -> u16 {
        let segment = network.traffic.take_segment(packet.handle);
        let mut wire = self.route.wire(network, end, now);
        self.end_mut(end).on_segment(&segment, packet.ecn, &mut wire, now);
        segment.len
    }

    /// The timer of `end` is due.
    pub fn on_timer(&mut self, end: End, network: &mut Network, now: Time) {
        let mut wire = self.route.wire(network, end, now);
        self.end_mut(end).on_timer(&mut wire, now);
    }

    /// When the timer of `end` is due; [`Time::MAX`] for never.
    #[inline]
    pub fn timer_at(&self, end: End) -> Time {
        self.end(end).timer_at()
    }

    pub fn next_timer(&self, end: End) -> Option<Time> {
        self.end(end).next_timer()
    }

    /// A packet for `end` will arrive shortly.
    #[inline]
    pub fn prefetch(&self, end: End, only_receives: bool) {
        self.end(end).prefetch(only_receives);
    }

    /// A packet for `end` will arrive next but a few, and what was [asked for](Self::prefetch) has come.
    #[inline]
    pub fn prefetch_behind(&self, end: End) {
        self.end(end).prefetch_behind();
    }

    pub fn info(&self, end: End) -> Info {
        self.end(end).info()
    }

    /// The flow id of packets from `end`.
    pub const fn flow_id(&self, end: End) -> u32 {
        self.route.flow_ids[end as usize]
    }

    pub const fn end(&self, end: End) -> &Endpoint {
        match end {
            End::Client => &self.client,
            End::Server => &self.server,
        }
    }

    pub const fn end_mut(&mut self, end: End) -> &mut Endpoint {
        match end {
            End::Client => &mut self.client,
            End::Server => &mut self.server,
        }
    }
}

impl Route {
    const fn wire<'n>(self, network: &'n mut Network, end: End, now: Time) -> PathWire<'n> {
        PathWire { route: self, network, end, now }
    }
}

/// Puts segments into packets and packets onto the path.
struct PathWire<'n> {
    route: Route,
    network: &'n mut Network,
    end: End,
    now: Time,
}

impl Wire for PathWire<'_> {
    fn send(&mut self, segment: &mut Segment, ecn: Ecn) {
        let route = &self.route;
        let ip_len = route.encapsulation.ip_header
            + segment.header_len(route.timestamps)
            + u32::from(segment.len);
        let flow_id = route.flow_ids[self.end as usize];
        self.network.traffic.note_sent(flow_id, self.end, segment);
        let packet = Packet {
            handle: self.network.traffic.put_segment(segment),
            enqueued_at: self.now,
            label: route.encapsulation.labels[self.end as usize],
            len: route.encapsulation.queued_len(ip_len),
            flow_id,
            dscp: route.encapsulation.dscp,
            ecn,
        };
        self.network.send(packet, self.end, self.now);
    }
}
