//! Captures: the bytes that packets of the simulation would have, for whoever writes them to a file.
//!
//! Simulated packets carry no bytes, and simulated TCP counts segments. A capture makes headers of what a packet
//! carries: addresses and ports of the scenario, flags, options and checksums as Linux writes them, sequence and
//! acknowledgement numbers in bytes. The stream of each end begins at 1, behind a SYN of number 0. Payload is zeros,
//! but for what tells packets apart: UDP loads and UDP probes begin with their number and the time at which they
//! were sent, as those of the lab do.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};

use weir_core::{Direction, FlowKey, Packet, Protocol, Time};
use weir_packet::icmp::Echo;
use weir_packet::{craft, decrement_ttl, parse, time_exceeded};
use weir_path::HopPlace;
use weir_scenario::{IpVersion, Scenario, TunnelKind, hops_before_router};
use weir_tcp::{Flags, Profile, Segment, WindowRule};

use crate::packet_store::{Ping, UdpPacket};

/// Receives packets of a simulation as bytes.
pub trait PacketTap {
    /// The packet `bytes` was seen at `at` at hop number `hop` of the capture, counted from 0 as they were asked for.
    fn packet(&mut self, hop: usize, at: Time, bytes: &[u8]);
}

/// A capture at work.
pub(crate) struct Capture {
    tap: Box<dyn PacketTap + Send>,
    /// The places of the captured hops, by their numbers on the path.
    hops: BTreeMap<usize, usize>,
    /// By flow id.
    senders: BTreeMap<u32, Sender>,
    /// By the flow id of the connection's first end, and whether the server sends.
    streams: BTreeMap<(u32, Direction), Stream>,
    tunnels: Vec<(FlowKey, TunnelKind)>,
    /// By how many hops are before them, their addresses in IPv4 and IPv6.
    routers: Vec<[IpAddr; 2]>,
    mtu: u32,
}

/// Facts about the packets of a flow id that they do not carry.
#[derive(Clone, Copy, Debug)]
struct Sender {
    /// The 5-tuple of what the client sends.
    key: FlowKey,
    /// The router at which the time to live of its probes ends; `None` if a server answers them.
    router: Option<Router>,
    options: TcpOptions,
}

/// A router that answers probes.
#[derive(Clone, Copy, Debug)]
struct Router {
    /// Time to live with which the probes leave.
    ttl: u8,
    /// How many hops of the way back come before it, without processors.
    before: u32,
}

/// Options that a TCP names when it opens a connection.
#[derive(Clone, Copy, Debug, Default)]
struct TcpOptions {
    sack: bool,
    timestamps: bool,
    /// `None` of a TCP from before RFC 1323, which offers none.
    window_scale: Option<u8>,
}

/// What a packet carries.
pub(crate) enum Content {
    /// A segment of TCP, of the connection whose first end has this flow id.
    Tcp(u32, Segment),
    Udp(UdpPacket),
    /// A datagram of a speed test.
    Datagram,
    Ping(Ping),
    /// Something in a tunnel of that number.
    Tunnel(u32),
}

/// Which bytes of a stream the segments of each number carry.
#[derive(Debug, Default)]
struct Stream {
    runs: VecDeque<Run>,
    /// Number and place of the next new segment.
    next: (u32, u64),
}

/// Segments from a number on that have the same length.
#[derive(Clone, Copy, Debug)]
struct Run {
    seq: u32,
    offset: u64,
    len: u16,
}

impl Capture {
    /// A capture of the hops of these numbers on the path.
    pub fn new(scenario: &Scenario, hops: &[usize], tap: Box<dyn PacketTap + Send>) -> Self {
        let loads = scenario.flows.iter().enumerate().map(|(number, flow)| Sender {
            key: scenario.flow_key(number),
            router: None,
            options: TcpOptions::of(&Profile::of(&flow.tcp).expect("the scenario was checked")),
        });
        let probe = |key, router| Sender { key, router, options: TcpOptions::default() };
        let probes = scenario.probes.iter().enumerate().map(|(n, one)| {
            let router = one.ttl.map(|ttl| {
                let [there, back] =
                    Direction::ALL.map(|way| scenario.counted_hops_to(one.host, way));
                Router { ttl, before: hops_before_router(u32::from(ttl) - 1, there, back) }
            });
            probe(scenario.probe_key(n), router)
        });
        let reflectors = scenario.shaper.iter().flat_map(|shaper| {
            let numbers = 0..shaper.reflectors.len();
            numbers.map(|n| probe(scenario.shaper_probe_key(shaper, n), None))
        });
        let tunnels = scenario.tunnels.iter().zip(0..);
        let most =
            Direction::ALL.map(|direction| scenario.counted_hops(direction)).into_iter().max();
        Self {
            tap,
            hops: hops.iter().enumerate().map(|(place, &hop)| (hop, place)).collect(),
            senders: (0..).zip(loads.chain(probes).chain(reflectors)).collect(),
            streams: BTreeMap::new(),
            tunnels: tunnels.map(|(one, n)| (scenario.tunnel_key(n), one.kind)).collect(),
            routers: (0..=most.unwrap_or(0))
                .map(|passed| {
                    [IpVersion::V4, IpVersion::V6].map(|ip| scenario.router_address(ip, passed))
                })
                .collect(),
            mtu: scenario.mtu_bytes,
        }
    }

    /// A connection of a speed test is opened, whose ends and datagrams have these flow ids.
    pub fn on_open(&mut self, flow_ids: [u32; 3], key: FlowKey, profile: &Profile) {
        let options = TcpOptions::of(profile);
        for (flow_id, protocol) in
            flow_ids.into_iter().zip([key.protocol, key.protocol, Protocol::UDP])
        {
            let key = FlowKey { protocol, ..key };
            self.senders.insert(flow_id, Sender { key, router: None, options });
        }
    }

    /// An end of the connection whose first end has flow id `connection` sends `segment`.
    pub fn on_sent(&mut self, connection: u32, direction: Direction, segment: &Segment) {
        if segment.len > 0 {
            self.streams.entry((connection, direction)).or_default().on_sent(segment);
        }
    }

    /// `packet`, which carries `content`, is at a hop of the capture.
    pub fn on_packet(&mut self, packet: &Packet, content: &Content, hop: &HopPlace, now: Time) {
        let Some(&place) = self.hops.get(&hop.number) else { return };
        let Some(sender) = self.senders.get(&packet.flow_id) else { return };
        let bytes = match *content {
            Content::Tcp(connection, segment) => {
                self.tcp(packet, &segment, connection, sender, hop)
            }
            Content::Udp(UdpPacket { seq, sent, .. }) => {
                let start = numbered(seq, sent);
                self.udp(packet, sender.key, hop, DEFAULT_TTL, &start)
            }
            Content::Datagram => self.udp(packet, sender.key, hop, DEFAULT_TTL, &[]),
            Content::Ping(ping) => self.ping(packet, &ping, sender, hop),
            Content::Tunnel(number) => {
                let (key, kind) = self.tunnels[number as usize];
                // Type 4 of WireGuard's messages and its receiver; or the SPI of ESP, which is not 0.
                let start = match kind {
                    TunnelKind::WireGuard => [[4, 0, 0, 0], (number + 1).to_le_bytes()].concat(),
                    TunnelKind::Ipsec => (number + 1).to_be_bytes().to_vec(),
                };
                self.udp(packet, key, hop, DEFAULT_TTL, &start)
            }
        };
        debug_assert_eq!(bytes.len(), packet.ip_len() as usize, "{packet:?}");
        self.tap.packet(place, now, &bytes);
    }

    /// IP header of a packet at a hop.
    fn ip(packet: &Packet, key: FlowKey, hop: &HopPlace, ttl: u8) -> craft::Ip {
        let FlowKey { src, dst, sport, dport, .. } = match hop.direction {
            Direction::Up => key,
            Direction::Down => key.reversed(),
        };
        let ttl = ttl.saturating_sub(u8::try_from(hop.passed).unwrap_or(u8::MAX)).max(1);
        craft::Ip {
            src: SocketAddr::new(src, sport),
            dst: SocketAddr::new(dst, dport),
            tos: packet.tos(),
            ttl,
            // An atomic datagram (RFC 6864, section 4.1).
            id: 0,
            fragment: DONT_FRAGMENT,
            extra: (0, Vec::new()),
        }
    }

    fn udp(&self, packet: &Packet, key: FlowKey, hop: &HopPlace, ttl: u8, start: &[u8]) -> Vec<u8> {
        let payload = packet.ip_len() - ip_header(&key) - TRANSPORT_HEADER;
        craft::Udp { ip: Self::ip(packet, key, hop, ttl) }.packet(&filled(start, payload))
    }

    fn tcp(
        &self,
        packet: &Packet,
        segment: &Segment,
        connection: u32,
        sender: &Sender,
        hop: &HopPlace,
    ) -> Vec<u8> {
        let acked = self.streams.get(&(connection, hop.direction.opposite()));
        let byte = |seq: u32| 1u32.wrapping_add(acked.map_or(0, |one| one.offset_of(seq)) as u32);
        let is_syn = segment.flags.has(Flags::SYN);
        let options = sender.options;
        // Rounded up, as `__tcp_select_window` does.
        let scale = if is_syn { 0 } else { options.window_scale.unwrap_or(0) };
        let window = segment.window.div_ceil(1 << scale);
        craft::Tcp {
            ip: Self::ip(packet, sender.key, hop, DEFAULT_TTL),
            seq: if is_syn { 0 } else { 1u32.wrapping_add(segment.offset as u32) },
            ack: if segment.flags.has(Flags::ACK) { byte(segment.ack) } else { 0 },
            flags: bits(segment.flags),
            window: u16::try_from(window).unwrap_or(u16::MAX),
            options: if is_syn {
                let mss = self.mtu - ip_header(&sender.key) - TCP_HEADER;
                options.of_syn(mss as u16, segment)
            } else {
                options.of_segment(segment, byte)
            },
        }
        .packet(&vec![0; usize::from(segment.len)])
    }

    fn ping(&self, packet: &Packet, ping: &Ping, sender: &Sender, hop: &HopPlace) -> Vec<u8> {
        let Sender { key, router, .. } = *sender;
        let is_answer = ping.up.is_some();
        let start = numbered(u64::from(ping.seq), ping.sent);
        if key.protocol == Protocol::UDP {
            return match router {
                Some(router) if is_answer => self.time_exceeded(packet, key, router, hop, &start),
                Some(Router { ttl, .. }) => self.udp(packet, key, hop, ttl, &start),
                None => self.udp(packet, key, hop, DEFAULT_TTL, &start),
            };
        }
        let payload = filled(&start, packet.ip_len() - ip_header(&key) - TRANSPORT_HEADER);
        let echo =
            Echo { reply: is_answer, id: key.sport, seq: ping.seq as u16, payload: &payload };
        let (from, to) = if is_answer { (key.dst, key.src) } else { (key.src, key.dst) };
        let mut bytes = vec![0; packet.ip_len() as usize];
        echo.write(from, to, packet.tos(), &mut bytes).expect("the packet has room for it");
        pass_routers(&mut bytes, hop.passed);
        bytes
    }

    /// The answer of the router at which the time to live of a probe ended, at `hop` of its way back.
    fn time_exceeded(
        &self,
        packet: &Packet,
        key: FlowKey,
        Router { ttl, before }: Router,
        hop: &HopPlace,
        start: &[u8],
    ) -> Vec<u8> {
        // How long the probe was: what the answer quotes, unless it is cut off there.
        let quoted = packet.ip_len() - ip_header(&key) - TRANSPORT_HEADER;
        let payload = quoted.saturating_sub(ip_header(&key) + TRANSPORT_HEADER);
        let at_router =
            HopPlace { number: 0, direction: Direction::Up, passed: u32::from(ttl) - 1 };
        let ip = Self::ip(packet, key, &at_router, ttl);
        let probe = craft::Udp { ip }.packet(&filled(start, payload));
        let router = usize::from(ttl - 1).min(self.routers.len() - 1);
        let mut bytes = vec![0; packet.ip_len() as usize];
        let headers = parse(&probe).expect("it was made here");
        time_exceeded(
            &probe,
            &headers,
            self.routers[router][usize::from(key.src.is_ipv6())],
            &mut bytes,
        )
        .expect("a probe that a router answers");
        pass_routers(&mut bytes, hop.passed - before);
        bytes
    }
}

impl TcpOptions {
    fn of(profile: &Profile) -> Self {
        let greatest = match profile.receive_window {
            WindowRule::Fixed(bytes) => bytes,
            WindowRule::Follows(buffer) => buffer.greatest,
        };
        let fits = |scale: &u8| greatest >> scale <= u32::from(u16::MAX);
        // As Linux chooses it (`tcp_select_initial_window`), and no more than RFC 7323 allows.
        let scale = (0..MAX_WINDOW_SCALE).find(fits).unwrap_or(MAX_WINDOW_SCALE);
        Self {
            sack: profile.sack,
            timestamps: profile.timestamps,
            window_scale: (profile.timestamps || scale > 0).then_some(scale),
        }
    }

    /// Options of a SYN as Linux writes them (`tcp_options_write`): with timestamps 20 bytes. That long is every
    /// simulated SYN: behind the options of a TCP that offers less stands the end of the list.
    fn of_syn(self, mss: u16, segment: &Segment) -> Vec<u8> {
        let mut options = vec![2, 4];
        options.extend(mss.to_be_bytes());
        let sack_permitted = if self.sack { [4, 2] } else { [NO_OPERATION; 2] };
        if self.timestamps {
            options.extend(sack_permitted);
            options.extend(timestamps(segment));
        } else if self.sack {
            options.extend([NO_OPERATION; 2]);
            options.extend(sack_permitted);
        }
        if let Some(scale) = self.window_scale {
            options.extend([NO_OPERATION, 3, 3, scale]);
        }
        options.resize(SYN_OPTIONS, END_OF_OPTIONS);
        options
    }

    /// Options of any other segment, whose blocks `byte` makes numbers of bytes of.
    fn of_segment(self, segment: &Segment, byte: impl Fn(u32) -> u32) -> Vec<u8> {
        let mut options = Vec::new();
        if self.timestamps {
            options.extend([NO_OPERATION; 2]);
            options.extend(timestamps(segment));
        }
        let blocks =
            segment.sack.duplicate().into_iter().chain(segment.sack.received().iter().copied());
        let ends: Vec<u8> = blocks
            .flat_map(|block| [block.start, block.end])
            .flat_map(|seq| byte(seq).to_be_bytes())
            .collect();
        if !ends.is_empty() {
            options.extend([NO_OPERATION, NO_OPERATION, 5, 2 + ends.len() as u8]);
            options.extend(ends);
        }
        options
    }
}

impl Stream {
    fn on_sent(&mut self, segment: &Segment) {
        let (seq, offset) = self.next;
        if !self.runs.is_empty() && segment.seq < seq {
            return;
        }
        debug_assert!(self.runs.is_empty() || (segment.seq, segment.offset) == (seq, offset));
        if self.runs.back().is_none_or(|run| run.len != segment.len) {
            let run = Run { seq: segment.seq, offset: segment.offset, len: segment.len };
            self.runs.push_back(run);
            if self.runs.len() > MAX_RUNS {
                self.runs.pop_front();
            }
        }
        self.next = (segment.seq + 1, segment.offset + u64::from(segment.len));
    }

    /// Where the segment of number `seq` begins, in bytes of the stream.
    fn offset_of(&self, seq: u32) -> u64 {
        let run = self.runs.partition_point(|run| run.seq <= seq).saturating_sub(1);
        self.runs.get(run).map_or(0, |run| {
            run.offset + u64::from(seq.saturating_sub(run.seq)) * u64::from(run.len)
        })
    }
}

/// Takes the time to live of a packet down as `count` routers do.
fn pass_routers(bytes: &mut [u8], count: u32) {
    for _ in 0..count {
        // What stays at 1 is as `Capture::ip` has it of all others.
        let _ = decrement_ttl(bytes);
    }
}

const fn ip_header(key: &FlowKey) -> u32 {
    if key.src.is_ipv4() { IpVersion::V4.header_bytes() } else { IpVersion::V6.header_bytes() }
}

/// Control bits as in the header (RFC 9293, section 3.1; RFC 3168, section 6.1).
fn bits(flags: Flags) -> u8 {
    let known = [
        (Flags::SYN, 1 << 1),
        (Flags::PSH, 1 << 3),
        (Flags::ACK, 1 << 4),
        (Flags::ECE, 1 << 6),
        (Flags::CWR, 1 << 7),
    ];
    known.into_iter().filter(|&(flag, _)| flags.has(flag)).map(|(_, bit)| bit).sum()
}

fn timestamps(segment: &Segment) -> [u8; 10] {
    let mut option = [8, 10, 0, 0, 0, 0, 0, 0, 0, 0];
    option[2..6].copy_from_slice(&segment.ts.to_be_bytes());
    option[6..].copy_from_slice(&segment.ts_echo.unwrap_or(0).to_be_bytes());
    option
}

/// Number and time of a packet, as the payload of UDP loads begins.
fn numbered(seq: u64, sent: Time) -> [u8; 16] {
    let mut start = [0; 16];
    start[..8].copy_from_slice(&seq.to_be_bytes());
    start[8..].copy_from_slice(&sent.as_nanos().to_be_bytes());
    start
}

/// `len` bytes that begin with `start`, as far as it fits.
fn filled(start: &[u8], len: u32) -> Vec<u8> {
    let mut payload = start.to_vec();
    payload.resize(len as usize, 0);
    payload
}

/// Of UDP and ICMP.
const TRANSPORT_HEADER: u32 = 8;
/// Without options.
const TCP_HEADER: u32 = 20;
/// MSS 4, SACK permitted 2, timestamps 10, one to fill up, and window scale 3 (`tcp_syn_options`).
const SYN_OPTIONS: usize = 20;
const END_OF_OPTIONS: u8 = 0;
const NO_OPERATION: u8 = 1;
/// RFC 7323, section 2.3.
const MAX_WINDOW_SCALE: u8 = 14;
/// Linux' `ip_default_ttl`.
const DEFAULT_TTL: u8 = 64;
const DONT_FRAGMENT: u16 = 0x4000;
/// Changes of the length of segments that are remembered of a stream: 1 MB. A window has far fewer segments, and
/// numbers below it are not acknowledged any more.
const MAX_RUNS: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(seq: u32, offset: u64, len: u16) -> Segment {
        Segment { seq, offset, len, ..Segment::default() }
    }

    #[test]
    fn numbers_of_segments_become_places_in_the_stream() {
        let mut stream = Stream::default();
        assert_eq!(stream.offset_of(0), 0);
        for segment in
            [sent(0, 0, 1448), sent(1, 1448, 1448), sent(2, 2896, 100), sent(3, 2996, 1448)]
        {
            stream.on_sent(&segment);
        }
        // Sent once more.
        stream.on_sent(&sent(1, 1448, 1448));
        let places = [0, 1, 2, 3, 4].map(|seq| stream.offset_of(seq));
        assert_eq!(places, [0, 1448, 2896, 2996, 4444]);
    }

    #[test]
    fn what_is_remembered_of_a_stream_is_bounded() {
        let mut stream = Stream::default();
        let mut offset = 0;
        let count = 3 * MAX_RUNS as u32;
        for seq in 0..count {
            let len = 1000 + (seq % 2) as u16;
            stream.on_sent(&sent(seq, offset, len));
            offset += u64::from(len);
        }
        assert_eq!(stream.runs.len(), MAX_RUNS);
        assert_eq!(stream.offset_of(count), offset);
        assert_eq!(stream.offset_of(count - 1), offset - 1001);
    }

    #[test]
    fn a_window_is_scaled_as_linux_does() {
        let scale = |name| TcpOptions::of(&Profile::named(name).unwrap()).window_scale;
        // 6 MiB of receive buffer.
        assert_eq!(scale("linux"), Some(7));
        // 64 KiB, with the options of RFC 1323; a TCP from before them offers no scale.
        assert_eq!(scale("linux22"), Some(0));
        assert_eq!(scale("bsd"), None);
    }

    #[test]
    fn options_of_a_syn_stand_as_linux_writes_them() {
        let syn = Segment { ts: 0x0102_0304, ..Segment::default() };
        let options = |sack, timestamps, window_scale| {
            TcpOptions { sack, timestamps, window_scale }.of_syn(1460, &syn)
        };
        // mss 1460, sackOK, TS val 16909060 ecr 0, nop, wscale 7
        let all = [2, 4, 5, 180, 4, 2, 8, 10, 1, 2, 3, 4, 0, 0, 0, 0, 1, 3, 3, 7];
        assert_eq!(options(true, true, Some(7)), all);
        // nop, nop in the place of sackOK
        let without_sack = [2, 4, 5, 180, 1, 1, 8, 10, 1, 2, 3, 4, 0, 0, 0, 0, 1, 3, 3, 7];
        assert_eq!(options(false, true, Some(7)), without_sack);
        // mss 1460, nop, nop, sackOK, nop, wscale 10, with `net.ipv4.tcp_timestamps` = 0
        let without_timestamps = [2, 4, 5, 180, 1, 1, 4, 2, 1, 3, 3, 10, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(options(true, false, Some(10)), without_timestamps);
        let mss_only = [2, 4, 5, 180, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(options(false, false, None), mss_only);
    }
}
