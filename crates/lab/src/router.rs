//! Conversion between the bytes that a kernel sends and descriptors on the path.

use std::net::IpAddr;

use weir_core::{Duration, Packet, Time};
use weir_packet::{
    Checksum, Fill, Headers, Segmenter, Virtio, complete_checksum, decrement_ttl, parse, set_tos,
    time_exceeded,
};
use weir_path::{ArrivalPoint, End, Path};
use weir_scenario::{ClientPaths, Direction, IpVersion, Scenario};

use crate::buffers::{Buffers, PacketRoute, handle, index_of};
use crate::interface::Interface;

/// Takes in what the two ends send, and finishes what arrives at them.
pub(crate) struct Router {
    pub path: Path<Buffers>,
    scenario: Scenario,
    /// The client's paths. Where it has several, a packet's server is that of its path, whatever address it has.
    paths: ClientPaths,
    hash_key: u64,
    /// Hops of each direction on the way to each server.
    hops: Vec<[u32; 2]>,
    /// Whether packets go out whole, with their checksums done.
    finish_checksums: bool,
    /// Packets that are no IP, or damaged.
    pub malformed: u64,
    /// Packets to or from addresses that no host of the scenario has, or of another path of the client.
    pub unroutable: u64,
}

impl Router {
    pub fn new(
        path: Path<Buffers>,
        scenario: &Scenario,
        paths: ClientPaths,
        hash_key: u64,
        finish_checksums: bool,
    ) -> Self {
        let hops_to =
            |host| Direction::ALL.map(|direction| scenario.counted_hops_to(host, direction));
        let hops = (0..scenario.hosts.len() as u32).map(hops_to).collect();
        Self {
            path,
            scenario: scenario.clone(),
            paths,
            hash_key,
            hops,
            finish_checksums,
            malformed: 0,
            unroutable: 0,
        }
    }

    /// The kernel at `from` has sent `bytes`, which have `waited` until `now` to be read.
    pub fn take_in(
        &mut self,
        bytes: &mut [u8],
        virtio: &Virtio,
        interface: Interface,
        now: Time,
        waited: Duration,
    ) {
        let from = interface.end;
        let Ok(headers) = parse(bytes) else {
            self.malformed += 1;
            return;
        };
        let Some(host) = self.host_of(&headers, interface) else {
            self.unroutable += 1;
            return;
        };
        let segmenter = match virtio.gso {
            None => None,
            Some(_) => match Segmenter::new(&headers, virtio) {
                Ok(segmenter) => Some(segmenter),
                Err(_) => {
                    self.malformed += 1;
                    return;
                }
            },
        };
        let mut checksum = virtio.checksum;
        if let (None, true, Checksum::Partial { start, offset }) =
            (segmenter, self.finish_checksums, checksum)
        {
            let whole = &mut bytes[..headers.total_len];
            if complete_checksum(whole, start, offset).is_err() {
                self.malformed += 1;
                return;
            }
            checksum = Checksum::Valid;
        }
        let ttl = u32::from(headers.ttl);
        let ends_at = (ttl <= self.routers_to(from.other(), host)).then(|| ttl.saturating_sub(1));
        let flow_id = self.flow_id_of(&headers, from);
        let bytes = &bytes[..headers.total_len];
        let whole = headers.packet(0, flow_id, self.hash_key);
        let route = PacketRoute { host, ends_at, waited };
        let number = self.path.traffic.put(bytes, headers, segmenter, checksum, route);
        match segmenter {
            None => {
                self.path.send(Packet { handle: handle(number, 0), ..whole }, from, now);
            }
            Some(segmenter) => {
                for segment in segmenter.segments() {
                    let packet = segment.packet(&whole, handle(number, segment.index));
                    self.path.send(packet, from, now);
                }
            }
        }
    }

    /// Carries out everything that is due by `now`, and hands what arrives at a host to `deliver`.
    ///
    /// `deliver` also gets the time at which it was due.
    pub fn advance(&mut self, now: Time, mut deliver: impl FnMut(Packet, Interface, Time)) {
        while let Some((due, source)) = self.path.events.next_by(now) {
            self.path.on_event(source, due);
            self.hand_over(due, &mut deliver);
        }
    }

    /// Hands over what has arrived by `due`, in particular on a path without any delay.
    pub fn hand_over(&mut self, due: Time, mut deliver: impl FnMut(Packet, Interface, Time)) {
        while let Some((packet, place)) = self.path.next_arrived() {
            match place {
                ArrivalPoint::End(End::Client) => {
                    let path = self.path_of(&packet);
                    deliver(packet, Interface { end: End::Client, path }, due);
                }
                ArrivalPoint::End(End::Server) => deliver(packet, Interface::SERVER, due),
                ArrivalPoint::Shaper => unreachable!("the lab refuses shapers"),
                ArrivalPoint::Router { direction, passed } => {
                    self.answer(packet, direction, passed, due);
                }
            }
        }
    }

    /// Finishes the packet for the kernel at its end: DSCP and ECN as the markers and queues left them, its time to live
    /// as the routers left it. Writes the headers of a segment into `head`; a single packet is changed where
    /// it lies. Returns the length of the headers in `head`, 0 for a single packet.
    pub fn finish(&mut self, packet: &Packet, end: End, head: &mut [u8]) -> usize {
        let routers = self.routers_to(end, self.path.traffic.get(packet.handle).route.host);
        let fill = if self.finish_checksums { Fill::Full } else { Fill::Partial };
        let buffer = self.path.traffic.get_mut(packet.handle);
        let (out, written) = match buffer.segmenter {
            Some(segmenter) => {
                let segment = segmenter.segment(index_of(packet.handle)).expect("it was cut so");
                let written = segmenter
                    .write_headers(&buffer.bytes, &segment, packet.tos(), fill, head)
                    .expect("the longest headers fit");
                (&mut head[..written], written)
            }
            None => {
                set_tos(&mut buffer.bytes, packet.tos());
                (&mut buffer.bytes[..], 0)
            }
        };
        for _ in 0..routers {
            // Packets whose time ended did not come this far.
            let _ = decrement_ttl(out);
        }
        written
    }

    /// The state in which [`finish`](Self::finish) leaves the checksum of a segment.
    pub fn checksum_of(&self, segmenter: &Segmenter) -> Checksum {
        if self.finish_checksums { Checksum::Valid } else { segmenter.partial_checksum() }
    }

    /// The packet in one piece, as it arrives at `end`: for a capture.
    pub fn arrived(&self, packet: &Packet, end: End, out: &mut Vec<u8>) {
        self.whole(packet, out);
        for _ in 0..self.routers_to(end, self.path.traffic.get(packet.handle).route.host) {
            let _ = decrement_ttl(out);
        }
    }

    /// Routers on the way between the client and server number `host`, towards `end`: they stand in front of every hop
    /// and, on the way up, behind the last.
    fn routers_to(&self, end: End, host: u32) -> u32 {
        let hops = self.hops[host as usize];
        match end {
            End::Server => hops[Direction::Up as usize] + 1,
            End::Client => hops[Direction::Down as usize],
        }
    }

    /// The packet as it is now, in one piece, its checksum done.
    fn whole(&self, packet: &Packet, out: &mut Vec<u8>) {
        let buffer = self.path.traffic.get(packet.handle);
        out.clear();
        match buffer.segmenter {
            Some(segmenter) => {
                let segment = segmenter.segment(index_of(packet.handle)).expect("it was cut so");
                out.resize(Segmenter::MAX_HEADERS, 0);
                let written = segmenter
                    .write_headers(&buffer.bytes, &segment, packet.tos(), Fill::Full, out)
                    .expect("the longest headers fit");
                out.truncate(written);
                out.extend_from_slice(&buffer.bytes[segment.payload()]);
            }
            None => {
                out.extend_from_slice(&buffer.bytes);
                set_tos(out, packet.tos());
                if let Checksum::Partial { start, offset } = buffer.checksum {
                    // It was checked when the packet came in.
                    let _ = complete_checksum(out, start, offset);
                }
            }
        }
    }

    /// The router behind `passed` hops tells the sender that its packet's time to live has ended.
    fn answer(&mut self, packet: Packet, direction: Direction, passed: u32, now: Time) {
        let mut original = Vec::new();
        self.whole(&packet, &mut original);
        let route = PacketRoute { ends_at: None, ..self.path.traffic.get(packet.handle).route };
        self.path.traffic.release(packet.handle);
        let Ok(headers) = parse(&original) else { return };
        let address = self.scenario.router_address(IpVersion::of(headers.key.src), passed);
        let mut out = [0; MAX_ICMP_ERROR_BYTES];
        let Some(len) = time_exceeded(&original, &headers, address, &mut out) else { return };
        let answer = &out[..len];
        let Ok(answer_headers) = parse(answer) else { return };
        let reply = answer_headers.packet(0, NOBODY, self.hash_key);
        let traffic = &mut self.path.traffic;
        let number = traffic.put(answer, answer_headers, None, Checksum::Valid, route);
        let reply = Packet { handle: handle(number, 0), ..reply };
        self.path.send_back(reply, direction, passed, now);
    }

    /// The number of the server whose way a packet takes that `interface` has sent; `None` if it has addresses that
    /// nobody has there.
    fn host_of(&self, headers: &Headers, interface: Interface) -> Option<u32> {
        let (near, far): (IpAddr, IpAddr) = match interface.end {
            End::Client => (headers.key.src, headers.key.dst),
            End::Server => (headers.key.dst, headers.key.src),
        };
        let path = self.paths.of_client_address(near)?;
        if interface.end == End::Client && path != interface.path {
            return None;
        }
        let server = self.scenario.server_of(far)?;
        Some(if self.paths.are_named() { path } else { server })
    }

    /// The number of the client's path over which the packet goes.
    pub fn path_of(&self, packet: &Packet) -> u32 {
        if self.paths.are_named() { self.path.traffic.get(packet.handle).route.host } else { 0 }
    }

    /// The flow or probe of the scenario to which the packet belongs, if it does.
    fn flow_id_of(&self, headers: &Headers, from: End) -> u32 {
        let key = match from {
            End::Client => headers.key,
            End::Server => headers.key.reversed(),
        };
        self.scenario.flow_id_of(&key).unwrap_or(NOBODY)
    }
}

/// The flow id of packets that no flow or probe of the scenario has sent.
pub(crate) const NOBODY: u32 = u32::MAX;
const MAX_ICMP_ERROR_BYTES: usize = 1_280;

#[cfg(test)]
mod tests {
    use weir_core::Seed;
    use weir_packet::{craft, ipv4_checksum_ok, transport_checksum_ok};
    use weir_scenario::{Hop, Host, LineRate, Route};

    use super::*;

    /// A router between a client and a server, with `queue` on the way up.
    fn router(queue: &str, ip_version: IpVersion) -> Router {
        let hop = |named: &str| Hop::new("line", named, LineRate::Unlimited);
        let scenario =
            Scenario { ip_version, ..Scenario::over("t", 1_000_000_000, hop(queue), hop("pfifo")) };
        let traces = |name: &str| unreachable!("no recording {name}");
        let path = Path::new(&scenario, &traces, Seed::new(1), Buffers::new(0), 0);
        Router::new(path, &scenario, ClientPaths::default(), 1, true)
    }

    const CLIENT: Interface = Interface { end: End::Client, path: 0 };

    /// The packets that come out at the server, whole, when the client sends `bytes`.
    fn carried(router: &mut Router, mut bytes: Vec<u8>, virtio: &Virtio) -> Vec<Vec<u8>> {
        router.take_in(&mut bytes, virtio, CLIENT, Time::from_millis(1), Duration::ZERO);
        let mut arrived = Vec::new();
        router.advance(Time::from_millis(1), |packet, to, _| arrived.push((packet, to.end)));
        let mut out = Vec::new();
        for (packet, end) in arrived {
            let mut head = [0; Segmenter::MAX_HEADERS];
            let written = router.finish(&packet, end, &mut head);
            let buffer = router.path.traffic.get(packet.handle);
            out.push(match buffer.segmenter {
                None => buffer.bytes.clone(),
                Some(segmenter) => {
                    let segment = segmenter.segment(index_of(packet.handle)).unwrap();
                    [&head[..written], &buffer.bytes[segment.payload()]].concat()
                }
            });
        }
        out
    }

    fn tcp(router: &Router) -> craft::Tcp {
        let scenario = &router.scenario;
        let at = |address: IpAddr| std::net::SocketAddr::new(address, 5_000).to_string();
        let (client, server) = (scenario.client_address(), scenario.server_address(0));
        let tcp = craft::Tcp::new(&at(client), &at(server));
        // Expedited forwarding, ECT(0).
        craft::Tcp { ip: craft::Ip { tos: 0xba, ..tcp.ip.clone() }, ..tcp }
    }

    #[test]
    fn what_a_queue_washes_is_washed_in_the_header() {
        for version in [IpVersion::V4, IpVersion::V6] {
            for (queue, tos) in [("cake besteffort wash", 0x02), ("cake besteffort", 0xba)] {
                let mut router = router(queue, version);
                let single = tcp(&router).packet(&[7; 100]);
                let plain = Virtio { checksum: Checksum::Valid, gso: None, hdr_len: 0 };
                let mut out = carried(&mut router, single, &plain);
                let (header, whole) = tcp(&router).super_packet(3_000, 1_400);
                let virtio = Virtio::parse(&header, whole.len()).unwrap();
                out.extend(carried(&mut router, whole, &virtio));
                assert_eq!(out.len(), 4, "one packet and three segments");
                for packet in out {
                    let headers = parse(&packet).unwrap();
                    assert_eq!((headers.tos(), headers.ttl), (tos, 62), "{queue} {version:?}");
                    assert!(version == IpVersion::V6 || ipv4_checksum_ok(&packet));
                    assert!(transport_checksum_ok(&packet, &headers));
                }
            }
        }
    }

    #[test]
    fn routers_of_the_servers_route_count_a_packets_time_to_live() {
        let hop = |name: &str| Hop::new(name, "pfifo", LineRate::Unlimited);
        let mut scenario = Scenario::over("t", 1_000_000_000, hop("a"), hop("d"));
        scenario.path.up.extend([hop("b"), hop("c")]);
        scenario.routes = vec![Route { name: "b".into(), up: vec![1], down: vec![] }];
        scenario.hosts.push(Host { name: "far".into(), delay_ns: 0, route: Some(0) });
        let traces = |name: &str| unreachable!("no recording {name}");
        let path = Path::new(&scenario, &traces, Seed::new(1), Buffers::new(0), 0);
        let mut router = Router::new(path, &scenario, ClientPaths::default(), 1, true);
        let plain = Virtio { checksum: Checksum::Valid, gso: None, hdr_len: 0 };
        let to = |host: u32, ttl: u8, from: &Router| {
            let tcp = tcp(from);
            let dst = std::net::SocketAddr::new(from.scenario.server_address(host), 5_000);
            craft::Tcp { ip: craft::Ip { dst, ttl, ..tcp.ip.clone() }, ..tcp }.packet(&[7; 100])
        };
        // Four routers on the way over all hops, two on that of one.
        for (host, left) in [(0, 60), (1, 62)] {
            let bytes = to(host, 64, &router);
            let out = carried(&mut router, bytes, &plain);
            assert_eq!(parse(&out[0]).unwrap().ttl, left, "server {host}");
        }
        let departed: Vec<_> =
            router.path.hops().iter().map(|one| one.port.stats().departed.packets).collect();
        assert_eq!(departed, [1, 2, 1, 0]);
        // The second router of the route is behind its hop, and tells so.
        let bytes = to(1, 2, &router);
        let out = carried(&mut router, bytes, &plain);
        let headers = parse(&out[0]).unwrap();
        assert_eq!(headers.key.src, router.scenario.router_address(IpVersion::V4, 1));
        assert_eq!(headers.key.dst, router.scenario.client_address());
    }

    #[test]
    fn the_clients_address_says_by_which_of_its_paths_a_packet_goes() {
        let one = |name: &str| {
            let hop = || Hop::new("l", "pfifo", LineRate::Unlimited);
            (name.to_owned(), Scenario::over("t", 1_000_000_000, hop(), hop()))
        };
        let scenario = Scenario::with_client_paths(&[one("wifi"), one("lte")]).unwrap();
        let traces = |name: &str| unreachable!("no recording {name}");
        let path = Path::new(&scenario, &traces, Seed::new(1), Buffers::new(0), 0);
        let paths = ClientPaths::of(&scenario).unwrap();
        let mut router = Router::new(path, &scenario, paths, 1, true);
        let plain = Virtio { checksum: Checksum::Valid, gso: None, hdr_len: 0 };
        let lte = Interface { end: End::Client, path: 1 };
        let mut arrivals = |from: Interface, src: &str, dst: &str| {
            let mut bytes = craft::Tcp::new(&format!("{src}:1"), &format!("{dst}:2")).packet(&[7]);
            router.take_in(&mut bytes, &plain, from, Time::ZERO, Duration::ZERO);
            let mut arrived = Vec::new();
            router.advance(Time::ZERO, |_, to, _| arrived.push(to));
            let departed = router.path.hops().iter().map(|hop| hop.port.stats().departed.packets);
            (arrived, departed.collect::<Vec<_>>(), router.unroutable)
        };
        // Up by wifi, up by lte, down by wifi, down by lte.
        let server = Interface::SERVER;
        assert_eq!(arrivals(CLIENT, "10.0.0.1", "10.1.0.1"), (vec![server], vec![1, 0, 0, 0], 0));
        assert_eq!(arrivals(lte, "10.0.0.2", "10.1.0.1"), (vec![server], vec![1, 1, 0, 0], 0));
        assert_eq!(arrivals(server, "10.1.0.1", "10.0.0.2"), (vec![lte], vec![1, 1, 0, 1], 0));
        assert_eq!(arrivals(server, "10.1.0.2", "10.0.0.1"), (vec![CLIENT], vec![1, 1, 1, 1], 0));
        // A network lets nothing in that comes from another's address.
        assert_eq!(arrivals(lte, "10.0.0.1", "10.1.0.1"), (vec![], vec![1, 1, 1, 1], 1));
        assert_eq!(arrivals(CLIENT, "10.0.0.3", "10.1.0.1"), (vec![], vec![1, 1, 1, 1], 2));
        assert_eq!(arrivals(CLIENT, "10.0.0.1", "10.1.0.3"), (vec![], vec![1, 1, 1, 1], 3));
    }

    #[test]
    fn what_a_line_takes_is_carried_out_when_the_first_of_it_may_arrive() {
        // 1500 bytes take a millisecond, and 10 more to the other end.
        let line =
            || Hop { delay_ns: 10_000_000, ..Hop::new("l", "pfifo", LineRate::Bps(12_000_000)) };
        let scenario = Scenario::over("t", 1_000_000_000, line(), line());
        let traces = |name: &str| unreachable!("no recording {name}");
        let path = Path::new(&scenario, &traces, Seed::new(1), Buffers::new(0), 0);
        let mut router = Router::new(path, &scenario, ClientPaths::default(), 1, true);
        let plain = Virtio { checksum: Checksum::Valid, gso: None, hdr_len: 0 };
        let packet = tcp(&router).packet(&[7; 1_448]);
        for _ in 0..3 {
            let mut bytes = packet.clone();
            router.take_in(&mut bytes, &plain, CLIENT, Time::ZERO, Duration::ZERO);
        }
        let ms = Time::from_millis;
        assert_eq!(router.path.events.earliest(), Some(ms(1)));
        assert_eq!(router.path.look_at(), Some(ms(11)));
        let mut arrived = Vec::new();
        router.advance(ms(11), |_, _, due| arrived.push(due));
        assert_eq!(router.path.look_at(), Some(ms(12)));
        router.advance(ms(20), |_, _, due| arrived.push(due));
        assert_eq!(arrived, [ms(11), ms(12), ms(13)]);
        assert_eq!(router.path.look_at(), None);
    }

    #[test]
    fn a_filter_finds_acknowledgements_in_real_headers() {
        let queue = "cake bandwidth 100kbit besteffort ack-filter";
        let mut router = router(queue, IpVersion::V4);
        let plain = Virtio { checksum: Checksum::Valid, gso: None, hdr_len: 0 };
        for number in 0..6 {
            let ack = craft::Tcp { ack: 1_000 * number, ..tcp(&router) };
            carried(&mut router, ack.packet(&[]), &plain);
        }
        let mut stats = None;
        router.path.hops()[0].port.classes(&mut |tin| stats = Some((tin.stats, tin.backlog)));
        let (stats, backlog) = stats.unwrap();
        let filtered = stats.dropped[weir_qdisc::DropReason::AckFiltered as usize].packets;
        // The first went at once; of the others, two stay.
        assert_eq!((stats.departed.packets, filtered, backlog.packets), (1, 3, 2));
    }
}
