//! The packet store: what every packet under way carries, and what was dropped or marked.

use std::collections::BTreeMap;

use weir_core::{Duration, FlowKey, Packet, TcpHeader, Time, prefetch};
use weir_path::{End, FlowDrops, HopPlace, Traffic};
use weir_qdisc::{About, DropReason, DropSink, MarkReason};
use weir_rate_control::Delay;
use weir_scenario::{Direction, LatencyRow, Scenario, TcpSettings, TransferRow};
use weir_tcp::{Profile, Segment};

use crate::capture::{Capture, Content};
use crate::passive::PassiveRtt;
use crate::slab::Slab;

/// The payload of every packet under way, and the counts of those that are dropped or marked.
pub(crate) struct PacketStore {
    segments: Slab<Segment>,
    pings: Slab<Ping>,
    udp: Slab<UdpPacket>,
    /// The hashes of what tunnels send up, as seen from outside.
    tunnels: Vec<u32>,
    /// By flow id: loads, then probes, then the shaper's reflectors, then of each connection of speed tests and
    /// applications, as they are opened, its two ends and the client's datagrams beside it.
    flow_info: Vec<FlowInfo>,
    /// Number of loads.
    loads: u32,
    /// The first flow id that is a reflector of the shaper.
    first_reflector: u32,
    /// The first flow id of a connection of speed tests and applications.
    first_end: u32,
    /// Round trips of the connections, as the shaper sees them, if it looks.
    passive: Option<PassiveRtt>,
    /// Who wants to see packets as bytes, if anybody does.
    pub capture: Option<Box<Capture>>,
    /// Counts by flow of the record.
    pub flows: Vec<FlowDrops>,
    /// Congestion windows of senders by flow id, in bytes, if a marker asks.
    windows: Option<Vec<u32>>,
    /// Probes that were lost since somebody looked.
    pub lost_pings: Vec<LatencyRow>,
    /// How many trains of pings the record has; those behind them are probes of the shaper.
    probes: u32,
    /// What applications have, since somebody looked.
    pub transfers: Vec<TransferRow>,
    /// Probes of which copies are under way: by probe and sequence number.
    copied_pings: BTreeMap<(u32, u32), Copies>,
}

/// A probe that was duplicated on its way.
#[derive(Clone, Copy, Debug)]
struct Copies {
    /// Copies of the probe that are under way.
    left: u32,
    /// Whether one was answered.
    answered: bool,
}

/// Facts about the packets of a flow, probe or connection: where they go, and what they show.
#[derive(Clone, Copy, Debug)]
struct FlowInfo {
    host: u32,
    /// The router at which their time to live ends, counted from 1.
    ttl: Option<u8>,
    /// Whether it is a UDP load, or the DNS queries of an application and their answers.
    is_udp: bool,
    /// Whether TCP headers carry timestamps.
    timestamps: bool,
    /// The flow of the record to which data counts.
    flow: u32,
    /// The tunnel that carries them, in which nobody on the way can look.
    tunnel: Option<u32>,
}

/// A packet of a UDP load under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UdpPacket {
    /// Number of the packet in its flow, from 0.
    pub seq: u64,
    pub sent: Time,
    /// Whether it asks for data, as a DNS query does, and carries none of its flow.
    pub is_request: bool,
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

impl PacketStore {
    pub fn new(scenario: &Scenario, hash_key: u64) -> Self {
        let flows = scenario.flows.iter().zip(0..).map(|(flow, number)| FlowInfo {
            is_udp: !flow.is_tcp(),
            timestamps: Profile::of(&flow.tcp).expect("the scenario was checked").timestamps,
            flow: number,
            tunnel: flow.tunnel,
            ..FlowInfo::of_ping(flow.host)
        });
        let probes = scenario.probes.iter().map(|probe| FlowInfo {
            ttl: probe.ttl,
            tunnel: probe.tunnel,
            ..FlowInfo::of_ping(probe.host)
        });
        let shaper = scenario.shaper.iter();
        let reflectors = shaper.flat_map(|shaper| &shaper.reflectors);
        let reflectors = reflectors.map(|reflector| FlowInfo::of_ping(reflector.host));
        let flow_info: Vec<_> = flows.chain(probes).chain(reflectors).collect();
        Self {
            segments: Slab::new(),
            pings: Slab::new(),
            udp: Slab::new(),
            tunnels: (0..scenario.tunnels.len() as u32)
                .map(|number| scenario.tunnel_key(number).label(hash_key).hash)
                .collect(),
            loads: scenario.flows.len() as u32,
            first_reflector: (scenario.flows.len() + scenario.probes.len()) as u32,
            first_end: flow_info.len() as u32,
            flow_info,
            passive: scenario
                .shaper
                .as_ref()
                .filter(|asked| asked.passive)
                .map(|_| PassiveRtt::default()),
            capture: None,
            flows: vec![FlowDrops::default(); scenario.flows.len() + 2 * scenario.methods.len()],
            windows: weir_path::marker_that_needs_window(scenario)
                .map(|_| vec![0; scenario.flows.len()]),
            lost_pings: Vec::new(),
            probes: scenario.probes.len() as u32,
            transfers: Vec::new(),
            copied_pings: BTreeMap::new(),
        }
    }

    /// Whether rows wait for the record: lost probes, or what applications have.
    #[inline]
    pub const fn has_rows(&self) -> bool {
        !self.lost_pings.is_empty() || !self.transfers.is_empty()
    }

    /// Whether a packet is one of a UDP load, or a DNS query or answer.
    pub fn is_of_udp(&self, packet: &Packet) -> bool {
        packet.flow_id < self.loads && self.flow_info[packet.flow_id as usize].is_udp
    }

    /// Whether a packet carries a segment of TCP, and not a probe or a datagram.
    pub fn is_of_flow(&self, packet: &Packet) -> bool {
        (packet.flow_id < self.loads && !self.flow_info[packet.flow_id as usize].is_udp)
            || (packet.flow_id >= self.first_end && !self.is_datagram(packet))
    }

    /// Whether a packet of TCP is from an application's client, which asks for data: the flow's own comes down.
    fn is_request(&self, packet: &Packet) -> bool {
        let part = packet.flow_id.checked_sub(self.first_end);
        part.is_some_and(|part| part % PARTS == CLIENT)
            && self.flow_info[packet.flow_id as usize].flow < self.loads
    }

    /// Whether a packet carries a datagram of a speed test.
    pub const fn is_datagram(&self, packet: &Packet) -> bool {
        packet.flow_id >= self.first_end && (packet.flow_id - self.first_end) % PARTS == DATAGRAMS
    }

    /// The flow id that packets of probe number `probe` carry.
    pub const fn flow_id_of_probe(&self, probe: u32) -> u32 {
        self.loads + probe
    }

    /// One more connection to server number `host` begins, through that tunnel: its number, and the flow ids of packets
    /// from the client and from the server, which count to the `flows` of the record, and of the client's datagrams.
    pub fn open(
        &mut self,
        tcp: &TcpSettings,
        (host, tunnel): (u32, Option<u32>),
        flows: [u32; 2],
    ) -> (u32, [u32; 3]) {
        let flow_id = self.flow_info.len() as u32;
        let timestamps = Profile::of(tcp).expect("the scenario was checked").timestamps;
        let datagrams = FlowInfo { tunnel, flow: flows[0], ..FlowInfo::of_ping(host) };
        self.flow_info.extend(flows.map(|flow| FlowInfo { timestamps, flow, ..datagrams }));
        self.flow_info.push(datagrams);
        ((flow_id - self.first_end) / PARTS, [flow_id, flow_id + 1, flow_id + DATAGRAMS])
    }

    /// Tells a capture that a connection was [opened](Self::open), whose client sends with `key`.
    pub fn note_opened(&mut self, flow_ids: [u32; 3], key: FlowKey, tcp: &TcpSettings) {
        if let Some(capture) = &mut self.capture {
            let profile = Profile::of(tcp).expect("the scenario was checked");
            capture.on_open(flow_ids, key, &profile);
        }
    }

    /// Tells a capture that an end of a connection, whose packets have `flow_id`, sends `segment`.
    #[inline]
    pub fn note_sent(&mut self, flow_id: u32, from: End, segment: &Segment) {
        if self.capture.is_none() {
            return;
        }
        let connection = self.first_end_of(flow_id);
        if let Some(capture) = &mut self.capture {
            let direction = match from {
                End::Client => Direction::Up,
                End::Server => Direction::Down,
            };
            capture.on_sent(connection, direction, segment);
        }
    }

    /// The flow id of the first end of the connection to which packets of `flow_id` belong.
    const fn first_end_of(&self, flow_id: u32) -> u32 {
        match flow_id.checked_sub(self.first_end) {
            Some(part) => flow_id - part % PARTS,
            None => flow_id,
        }
    }

    /// The number of the connection of speed tests or applications to which a packet belongs, if it is of one.
    pub const fn connection_of(&self, packet: &Packet) -> Option<u32> {
        match packet.flow_id.checked_sub(self.first_end) {
            Some(part) => Some(part / PARTS),
            None => None,
        }
    }

    /// The load that opened connection number `connection`, if it is of an application.
    pub fn application_of(&self, connection: u32) -> Option<usize> {
        let flow = self.flow_info[(self.first_end + connection * PARTS) as usize].flow;
        (flow < self.loads).then_some(flow as usize)
    }

    /// Whether a marker asks for congestion windows.
    pub const fn asks_for_windows(&self) -> bool {
        self.windows.is_some()
    }

    /// The congestion window of the sender whose packets carry `flow_id` is now this, if a marker
    /// asks.
    pub fn note_window(&mut self, flow_id: u32, window: impl FnOnce() -> u32) {
        let Some(windows) = &mut self.windows else { return };
        if windows.len() <= flow_id as usize {
            windows.resize(flow_id as usize + 1, 0);
        }
        windows[flow_id as usize] = window();
    }

    /// The flow id that the shaper's probes to reflector number `reflector` carry.
    pub const fn flow_id_of_reflector(&self, reflector: u32) -> u32 {
        self.first_reflector + reflector
    }

    /// The number of the shaper's reflector to or from which a packet goes, if it is one of its probes.
    pub fn reflector_of(&self, packet: &Packet) -> Option<u32> {
        let number = packet.flow_id.checked_sub(self.first_reflector);
        number.filter(|_| packet.flow_id < self.first_end)
    }

    /// The delays of connections that the shaper heard since the last call.
    pub fn take_passive(&mut self) -> impl Iterator<Item = Delay> {
        self.passive.iter_mut().flat_map(PassiveRtt::take)
    }

    #[inline]
    pub fn put_segment(&mut self, segment: &Segment) -> u64 {
        self.segments.put(segment)
    }

    /// The segment of that handle will be taken shortly.
    pub fn prefetch_segment(&self, handle: u64) {
        prefetch(self.segments.get(handle));
    }

    #[inline]
    pub fn take_segment(&mut self, handle: u64) -> Segment {
        self.segments.take(handle)
    }

    pub fn put_udp(&mut self, packet: UdpPacket) -> u64 {
        self.udp.put(&packet)
    }

    pub fn take_udp(&mut self, handle: u64) -> UdpPacket {
        self.udp.take(handle)
    }

    pub fn put_ping(&mut self, ping: Ping) -> u64 {
        self.pings.put(&ping)
    }

    pub fn ping_mut(&mut self, handle: u64) -> &mut Ping {
        self.pings.get_mut(handle)
    }

    /// The answer of that handle arrived; `None` if another copy's did before.
    pub fn take_answered(&mut self, handle: u64) -> Option<Ping> {
        let ping = self.pings.take(handle);
        self.settle(ping, true).then_some(ping)
    }

    /// The ping of that handle is not answered.
    pub fn give_up_ping(&mut self, handle: u64) {
        let ping = self.pings.take(handle);
        self.settle(ping, false);
    }

    /// The probes that are still under way are lost.
    pub fn lose_pings(&mut self) {
        let mut pings = self.pings.take_all();
        pings.sort_unstable_by_key(|ping| (ping.sent, ping.probe, ping.seq));
        pings.into_iter().for_each(|ping| self.lose(ping));
    }

    /// A copy of `ping` is lost: so is the ping, unless another copy was answered or is under way.
    fn lose(&mut self, ping: Ping) {
        if !self.settle(ping, false) || ping.probe >= self.probes {
            return;
        }
        let Ping { probe, seq, sent, up } = ping;
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

    /// A copy of `ping` is no longer under way: whether the ping counts as answered or lost by it.
    fn settle(&mut self, ping: Ping, answered: bool) -> bool {
        let key = (ping.probe, ping.seq);
        let Some(copies) = self.copied_pings.get_mut(&key) else { return true };
        copies.left -= 1;
        let counts = !copies.answered && (answered || copies.left == 0);
        copies.answered |= answered;
        if copies.left == 0 {
            self.copied_pings.remove(&key);
        }
        counts
    }

    /// Probes that are neither answered nor lost.
    pub fn pings_under_way(&self) -> usize {
        self.pings.len()
    }
}

impl FlowInfo {
    /// A probe to server number `host`, without a tunnel.
    const fn of_ping(host: u32) -> Self {
        Self { host, ttl: None, is_udp: false, timestamps: false, flow: 0, tunnel: None }
    }
}

impl DropSink for PacketStore {
    fn on_drop(&mut self, packet: Packet, _reason: DropReason) {
        if self.is_datagram(&packet) {
            return;
        }
        if self.is_of_udp(&packet) {
            if !self.udp.take(packet.handle).is_request {
                self.flows[packet.flow_id as usize].on_drop(&packet);
            }
        } else if self.is_of_flow(&packet) {
            let segment = self.segments.take(packet.handle);
            if segment.len > 0 && !self.is_request(&packet) {
                let drops = &mut self.flows[self.flow_info[packet.flow_id as usize].flow as usize];
                drops.on_drop(&packet);
            }
        } else {
            let ping = self.pings.take(packet.handle);
            self.lose(ping);
        }
    }

    fn on_mark(&mut self, packet: &Packet, _reason: MarkReason) {
        if self.is_of_flow(packet)
            && self.segments.get(packet.handle).len > 0
            && !self.is_request(packet)
        {
            let flow = self.flow_info[packet.flow_id as usize].flow;
            self.flows[flow as usize].on_mark();
        }
    }

    fn tcp_header(&self, packet: &Packet) -> Option<TcpHeader> {
        let FlowInfo { timestamps, tunnel, .. } = self.flow_info[packet.flow_id as usize];
        let can_be_seen = self.is_of_flow(packet) && tunnel.is_none();
        can_be_seen.then(|| self.segments.get(packet.handle).header(timestamps))
    }

    fn on_duplicate(&mut self, packet: &Packet) -> u64 {
        if self.is_of_flow(packet) {
            let segment = *self.segments.get(packet.handle);
            return self.segments.put(&segment);
        }
        if self.is_of_udp(packet) {
            let datagram = *self.udp.get(packet.handle);
            return self.udp.put(&datagram);
        }
        if self.is_datagram(packet) {
            return packet.handle;
        }
        let ping = *self.pings.get(packet.handle);
        let one = Copies { left: 1, answered: false };
        self.copied_pings.entry((ping.probe, ping.seq)).or_insert(one).left += 1;
        self.pings.put(&ping)
    }
}

impl About for PacketStore {
    fn window(&self, packet: &Packet) -> Option<u32> {
        self.windows.as_ref()?.get(packet.flow_id as usize).copied()
    }
}

impl Traffic for PacketStore {
    fn host_of(&self, packet: &Packet) -> u32 {
        self.flow_info[packet.flow_id as usize].host
    }

    fn may_end_at_routers(&self) -> bool {
        self.flow_info.iter().any(|flow| flow.ttl.is_some())
    }

    fn ends_at_router(&self, packet: &Packet, passed: u32) -> bool {
        // The answer of the router carries none. What has a time to live is a probe.
        self.flow_info[packet.flow_id as usize].ttl.is_some_and(|ttl| u32::from(ttl) == passed + 1)
            && self.pings.get(packet.handle).up.is_none()
    }

    fn ends_at_shaper(&self, packet: &Packet) -> bool {
        self.reflector_of(packet).is_some()
    }

    fn leaves_tunnels_end(&self, packet: &mut Packet) {
        if let Some(tunnel) = self.flow_info[packet.flow_id as usize].tunnel {
            packet.label.hash = self.tunnels[tunnel as usize];
        }
    }

    #[cold]
    fn is_captured(&mut self, packet: &Packet, hop: &HopPlace, now: Time) {
        let tunnel = self.flow_info[packet.flow_id as usize].tunnel;
        let content = if let Some(number) = tunnel {
            Content::Tunnel(number)
        } else if self.is_datagram(packet) {
            Content::Datagram
        } else if self.is_of_udp(packet) {
            Content::Udp(*self.udp.get(packet.handle))
        } else if self.is_of_flow(packet) {
            Content::Tcp(self.first_end_of(packet.flow_id), *self.segments.get(packet.handle))
        } else {
            Content::Ping(*self.pings.get(packet.handle))
        };
        if let Some(capture) = &mut self.capture {
            capture.on_packet(packet, &content, hop, now);
        }
    }

    fn crosses_shaper(&mut self, packet: &Packet, direction: Direction, now: Time) {
        let flow = match self.connection_of(packet) {
            Some(connection) => self.loads + connection,
            None => packet.flow_id,
        };
        let FlowInfo { tunnel, timestamps, .. } = self.flow_info[packet.flow_id as usize];
        let can_be_seen = self.is_of_flow(packet) && tunnel.is_none();
        if let Some(passive) = &mut self.passive
            && can_be_seen
        {
            let segment = self.segments.get(packet.handle);
            passive.on_segment(flow, segment, timestamps, direction, now);
        }
    }
}

/// Flow ids of a connection of speed tests and applications.
const PARTS: u32 = 3;
/// The place among them of the client's end.
const CLIENT: u32 = 0;
/// The place among them of the client's datagrams, behind the two ends.
const DATAGRAMS: u32 = 2;
