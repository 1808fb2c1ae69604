//! What packets carry, and what becomes of it.

use weir_core::{Duration, Packet, TcpHeader, Time};
use weir_path::Traffic;
use weir_qdisc::{DropReason, Fates, MarkReason};
use weir_tcp::Segment;
use weir_world::{LatencyRow, Scenario};

use crate::prefetch::prefetch;
use crate::slab::Slab;

/// The payload of every packet under way, and the fates of those that do not arrive.
#[derive(Debug)]
pub(crate) struct Cargo {
    segments: Slab<Segment>,
    pings: Slab<Ping>,
    /// By owner: flows, then probes.
    owners: Vec<Owner>,
    /// By flow.
    pub flows: Vec<FlowFate>,
    /// Probes that were lost since somebody looked.
    pub lost_pings: Vec<LatencyRow>,
}

/// Where the packets of a flow or probe go.
#[derive(Clone, Copy, Debug)]
struct Owner {
    host: u32,
    /// The router at which their time to live ends, counted from 1.
    ttl: Option<u8>,
    /// Whether TCP headers carry timestamps.
    timestamps: bool,
}

/// A probe under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ping {
    pub probe: u32,
    pub seq: u32,
    pub sent: Time,
    /// How long the way to the server took, once it is there.
    pub up: Option<Duration>,
}

/// What became of a flow's data packets on the path.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FlowFate {
    pub dropped_packets: u64,
    pub dropped_bytes: u64,
    pub marked_packets: u64,
}

impl Cargo {
    pub fn new(scenario: &Scenario) -> Self {
        let flows = scenario.flows.iter().map(|flow| Owner {
            host: flow.host,
            ttl: None,
            timestamps: flow.tcp.profile().expect("the scenario was checked").timestamps,
        });
        let probes = scenario.probes.iter().map(|probe| Owner {
            host: probe.host,
            ttl: probe.ttl,
            timestamps: false,
        });
        Self {
            segments: Slab::new(),
            pings: Slab::new(),
            owners: flows.chain(probes).collect(),
            flows: vec![FlowFate::default(); scenario.flows.len()],
            lost_pings: Vec::new(),
        }
    }

    /// Whether a packet belongs to a flow, and not to a probe.
    pub fn is_of_flow(&self, packet: &Packet) -> bool {
        (packet.owner as usize) < self.flows.len()
    }

    /// The owner's number that packets of probe number `probe` carry.
    pub fn owner_of_probe(&self, probe: u32) -> u32 {
        self.flows.len() as u32 + probe
    }

    pub fn put_segment(&mut self, segment: Segment) -> u64 {
        self.segments.put(segment)
    }

    /// The segment of that handle will be taken shortly.
    pub fn prefetch_segment(&self, handle: u64) {
        prefetch(self.segments.get(handle));
    }

    pub fn take_segment(&mut self, handle: u64) -> Segment {
        self.segments.take(handle)
    }

    pub fn put_ping(&mut self, ping: Ping) -> u64 {
        self.pings.put(ping)
    }

    pub fn ping_mut(&mut self, handle: u64) -> &mut Ping {
        self.pings.get_mut(handle)
    }

    pub fn take_ping(&mut self, handle: u64) -> Ping {
        self.pings.take(handle)
    }

    /// Probes that are neither answered nor lost.
    pub fn pings_under_way(&self) -> usize {
        self.pings.len()
    }
}

impl Fates for Cargo {
    fn on_drop(&mut self, packet: Packet, _reason: DropReason) {
        if self.is_of_flow(&packet) {
            let segment = self.segments.take(packet.handle);
            if segment.len > 0 {
                let fate = &mut self.flows[packet.owner as usize];
                fate.dropped_packets += 1;
                fate.dropped_bytes += u64::from(packet.ip_len());
            }
        } else {
            let Ping { probe, seq, sent, up } = self.pings.take(packet.handle);
            self.lost_pings.push(LatencyRow {
                t: sent,
                probe,
                seq,
                rtt: None,
                up,
                down: None,
                timer_error: Duration::ZERO,
                server: None,
            });
        }
    }

    fn on_mark(&mut self, packet: &Packet, _reason: MarkReason) {
        if self.is_of_flow(packet) && self.segments.get(packet.handle).len > 0 {
            self.flows[packet.owner as usize].marked_packets += 1;
        }
    }

    fn tcp_header(&self, packet: &Packet) -> Option<TcpHeader> {
        let timestamps = self.owners[packet.owner as usize].timestamps;
        self.is_of_flow(packet).then(|| self.segments.get(packet.handle).header(timestamps))
    }
}

impl Traffic for Cargo {
    fn host_of(&self, packet: &Packet) -> u32 {
        self.owners[packet.owner as usize].host
    }

    fn ends_at_router(&self, packet: &Packet, passed: u32) -> bool {
        // The answer of the router carries none.
        !self.is_of_flow(packet)
            && self.owners[packet.owner as usize]
                .ttl
                .is_some_and(|ttl| u32::from(ttl) == passed + 1)
            && self.pings.get(packet.handle).up.is_none()
    }
}
