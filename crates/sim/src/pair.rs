//! Both ends of a TCP connection, and what puts their segments onto the path.

use std::mem::offset_of;
use std::sync::Arc;

use weir_core::{Ecn, Packet, Seed, Time};
use weir_path::End;
use weir_scenario::ScenarioError;
use weir_tcp::{Endpoint, Info, Profile, Segment, Wire};

use crate::encapsulation::{Encapsulation, PacketSizes};
use crate::run::Network;

/// A connection between the client and a server.
#[repr(C)]
pub(crate) struct Pair {
    route: Route,
    client: Endpoint,
    server: Endpoint,
}

/// Route of a connection: what all its packets have, their sizes and timestamps.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Route {
    /// The packets from the client, and from the server, without what differs from one to the next. They are copied
    /// whole: a packet that is put together from its parts is read in other pieces than it is written.
    packets: [Packet; 2],
    sizes: PacketSizes,
    timestamps: bool,
}

impl Route {
    /// The route of packets with these flow ids, from the client and from the server.
    pub fn new(flow_ids: [u32; 2], encapsulation: Encapsulation) -> Self {
        let Encapsulation { labels, dscp, sizes } = encapsulation;
        let packets = [End::Client, End::Server].map(|end| Packet {
            label: labels[end as usize],
            flow_id: flow_ids[end as usize],
            dscp,
            ..Packet::BLANK
        });
        Self { packets, sizes, timestamps: false }
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
        let mss = profile.mss(route.sizes.mtu, route.sizes.ip_header);
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
        let (endpoint, mut wire) = self.end_and_wire(opener, network, now);
        endpoint.connect(&mut wire, now);
    }

    /// Writes `bytes` more at `end`, as its application.
    pub fn write(&mut self, end: End, bytes: u64, network: &mut Network, now: Time) {
        let (endpoint, mut wire) = self.end_and_wire(end, network, now);
        endpoint.write(bytes, &mut wire, now);
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
        let (endpoint, mut wire) = self.end_and_wire(end, network, now);
        endpoint.on_segment(&segment, packet.ecn, &mut wire, now);
        segment.len
    }

    /// The timer of `end` is due.
    pub fn on_timer(&mut self, end: End, network: &mut Network, now: Time) {
        let (endpoint, mut wire) = self.end_and_wire(end, network, now);
        endpoint.on_timer(&mut wire, now);
    }

    /// When the timer of `end` is due; [`Time::MAX`] for never.
    pub fn timer_at(&self, end: End) -> Time {
        self.end(end).timer_at()
    }

    /// A time before which the timer of `end` is not due; [`Time::MAX`] for never.
    #[inline(always)]
    pub fn timer_from(&self, end: End) -> Time {
        self.end(end).timer_from()
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
        self.route.packets[end as usize].flow_id
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

    /// `end`, and what puts its segments onto the path.
    #[inline(always)]
    const fn end_and_wire<'n>(
        &'n mut self,
        end: End,
        network: &'n mut Network,
        now: Time,
    ) -> (&'n mut Endpoint, PathWire<'n>) {
        let Self { route, client, server } = self;
        let endpoint = match end {
            End::Client => client,
            End::Server => server,
        };
        (endpoint, PathWire { route, network, end, now })
    }
}

/// Puts segments into packets and packets onto the path.
struct PathWire<'n> {
    route: &'n Route,
    network: &'n mut Network,
    end: End,
    now: Time,
}

impl Wire for PathWire<'_> {
    fn send(&mut self, segment: &mut Segment, ecn: Ecn) {
        let route = self.route;
        let ip_len =
            route.sizes.ip_header + segment.header_len(route.timestamps) + u32::from(segment.len);
        let mut packet = route.packets[self.end as usize];
        packet.len = route.sizes.queued_len(ip_len);
        packet.ecn = ecn;
        packet.enqueued_at = self.now;
        self.network.traffic.note_sent(packet.flow_id, self.end, segment);
        packet.handle = self.network.traffic.put_segment(segment);
        self.network.send(packet, self.end, self.now);
    }
}
