//! A TCP load: both ends of its connection.

use std::sync::Arc;

use weir_core::{Dscp, ETHERNET_HEADER, Ecn, FlowLabel, Packet, Seed, Time};
use weir_path::End;
use weir_tcp::{Endpoint, Info, Segment, Wire};
use weir_world::{Direction, Flow, FlowRow, IpVersion, Opener, Scenario, ScenarioError};

use crate::cargo::FlowFate;
use crate::prefetch::prefetch;
use crate::run::Network;

/// A connection between the client and a server.
pub(crate) struct Connection {
    client: Endpoint,
    server: Endpoint,
    route: Route,
    direction: Direction,
    /// The end that opens the connection.
    opener: End,
    bytes: Option<u64>,
    stopped: bool,
    /// IP bytes of data packets that arrived.
    pub wire_bytes: u64,
    first_data: Option<Time>,
    completed: Option<Time>,
}

/// What the packets of a connection carry.
#[derive(Clone, Copy, Debug)]
struct Route {
    flow: u32,
    dscp: Dscp,
    ip_header: u32,
    timestamps: bool,
    /// From the client, and from the server.
    labels: [FlowLabel; 2],
}

impl Connection {
    pub fn new(
        flow: u32,
        spec: &Flow,
        scenario: &Scenario,
        labels: [FlowLabel; 2],
        seed: Seed,
    ) -> Result<Self, ScenarioError> {
        let profile = spec.tcp.profile()?;
        let ip_header = IpVersion::header_bytes(scenario.ip_version);
        let mss = profile.mss(scenario.mtu_bytes, ip_header);
        let seed = seed.derive("tcp").derive(&flow.to_string());
        let endpoint = |end| {
            let random = seed.stream(end);
            Endpoint::new(Arc::clone(&profile), &spec.tcp.congestion_control, mss, random)
                .map_err(|error| ScenarioError::new(error.to_string()))
        };
        let mut connection = Self {
            client: endpoint("client")?,
            server: endpoint("server")?,
            route: Route {
                flow,
                dscp: Dscp::new(spec.dscp).expect("the scenario was checked"),
                ip_header,
                timestamps: profile.timestamps,
                labels,
            },
            direction: spec.direction,
            opener: match spec.opened_by {
                Opener::Client => End::Client,
                Opener::Server => End::Server,
            },
            bytes: spec.bytes,
            stopped: false,
            wire_bytes: 0,
            first_data: None,
            completed: None,
        };
        match connection.opener {
            End::Client => connection.server.listen(),
            End::Server => connection.client.listen(),
        }
        Ok(connection)
    }

    /// The connection is opened; the data's sender has all its data at hand.
    pub fn start(&mut self, network: &mut Network, now: Time) {
        let bytes = self.bytes.unwrap_or(u64::MAX);
        let (sender, route) = (self.sender_end(), self.route);
        self.end_mut(sender).write(bytes, &mut route.wire(network, sender, now), now);
        let opener = self.opener;
        self.end_mut(opener).connect(&mut route.wire(network, opener, now), now);
    }

    /// The end that opens the connection.
    pub const fn opener(&self) -> End {
        self.opener
    }

    /// The sender stops handing in data.
    pub fn stop(&mut self) {
        self.stopped = true;
        self.end_mut(self.sender_end()).stop();
    }

    /// A packet of the connection arrived at `end`.
    pub fn on_packet(&mut self, packet: &Packet, end: End, network: &mut Network, now: Time) {
        let segment = network.traffic.take_segment(packet.handle);
        let mut wire = self.route.wire(network, end, now);
        self.end_mut(end).on_segment(&segment, packet.ecn, &mut wire, now);
        if segment.len > 0 {
            self.wire_bytes += u64::from(packet.ip_len());
            self.first_data.get_or_insert(now);
            if self.completed.is_none() && self.bytes == Some(self.delivered_bytes()) {
                self.completed = Some(now);
            }
        }
    }

    /// The timer of `end` is due.
    pub fn on_timer(&mut self, end: End, network: &mut Network, now: Time) {
        let mut wire = self.route.wire(network, end, now);
        self.end_mut(end).on_timer(&mut wire, now);
    }

    pub fn next_timer(&self, end: End) -> Option<Time> {
        self.end(end).next_timer()
    }

    /// A packet for `end` will arrive shortly.
    pub fn prefetch(&self, end: End) {
        prefetch(self.end(end));
    }

    pub const fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// Bytes that the data's receiver has got in order.
    pub fn delivered_bytes(&self) -> u64 {
        match self.direction {
            Direction::Up => self.server.delivered_bytes(),
            Direction::Down => self.client.delivered_bytes(),
        }
    }

    /// What the data's sender knows.
    pub fn sender_info(&self) -> Info {
        match self.direction {
            Direction::Up => self.client.info(),
            Direction::Down => self.server.info(),
        }
    }

    pub fn row(&self, fate: FlowFate) -> FlowRow {
        let counters = self.sender_info().counters;
        FlowRow {
            flow: self.route.flow,
            first_data: self.first_data,
            delivered_bytes: self.delivered_bytes(),
            sent_bytes: counters.bytes_sent,
            sent_segments: counters.segments_sent,
            retransmitted_bytes: counters.bytes_retransmitted,
            retransmitted_segments: counters.segments_retransmitted,
            timeouts: Some(counters.timeouts),
            loss_probes: Some(counters.loss_probes),
            fast_recoveries: Some(counters.fast_recoveries),
            ecn_reductions: Some(counters.ecn_reductions),
            dropped_packets: Some(fate.dropped_packets),
            dropped_bytes: Some(fate.dropped_bytes),
            marked_packets: Some(fate.marked_packets),
            completed: self.completed,
        }
    }

    const fn sender_end(&self) -> End {
        match self.direction {
            Direction::Up => End::Client,
            Direction::Down => End::Server,
        }
    }

    const fn end(&self, end: End) -> &Endpoint {
        match end {
            End::Client => &self.client,
            End::Server => &self.server,
        }
    }

    fn end_mut(&mut self, end: End) -> &mut Endpoint {
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
    fn send(&mut self, segment: Segment, ecn: Ecn) {
        let route = &self.route;
        let ip_len =
            route.ip_header + segment.header_len(route.timestamps) + u32::from(segment.len);
        let packet = Packet {
            handle: self.network.traffic.put_segment(segment),
            enqueued_at: self.now,
            label: route.labels[self.end as usize],
            len: ip_len + ETHERNET_HEADER,
            owner: route.flow,
            dscp: route.dscp,
            ecn,
        };
        self.network.send(packet, self.end, self.now);
    }
}
