//! The TCP connections between the two ends, as both kernels tell of them, read at fixed intervals:
//! sock_diag(7),
//! include/uapi/linux/inet_diag.h.
//!
//! No program has to take part: whatever speaks TCP over the path is seen. A connection that opened and
//! closed between two looks is not, nor is what it carried after the last one.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;
use std::time::Duration as WallDuration;

use serde::Serialize;
use weir_core::{Ticker, Time};
use weir_scenario::{IpVersion, Scenario, ThroughputRow};
use weir_sockets::{Clock, TcpInfo};

use crate::datapath::PathSample;
use crate::message::{Message, NLM_F_DUMP, attributes};
use crate::netlink::Netlink;
use crate::{Hosts, LinuxError};

/// A connection between client and server. In tables its way up is the flow of twice its place in the list
/// of all, its way down the one behind that.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Connection {
    /// The client's end.
    pub client: SocketAddr,
    /// The server's end.
    pub server: SocketAddr,
    /// Congestion control of the client, such as `cubic`; `None` until its kernel has told.
    pub client_congestion_control: Option<String>,
    /// Congestion control of the server; `None` until its kernel has told.
    pub server_congestion_control: Option<String>,
}

/// Reads the connections of both ends, in a thread of its own.
pub struct ConnectionWatch {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<Vec<Connection>, LinuxError>>,
}

impl ConnectionWatch {
    /// Starts to look at the connections between `hosts` every `scenario.sampling.throughput_ns`, never if
    /// that is 0. Rows of what arrived and of senders go to `samples`.
    ///
    /// # Errors
    /// If a kernel does not tell of its sockets, or there is no thread to be had.
    pub fn start(
        hosts: &Hosts,
        scenario: &Scenario,
        clock: Clock,
        samples: Sender<PathSample>,
    ) -> Result<Self, LinuxError> {
        let period_ns = scenario.sampling.throughput_ns;
        let ticker = Ticker::new(period_ns);
        // A socket stays in the namespace in which it was made.
        let client = hosts.client.within(Netlink::of_sockets)?;
        let server = hosts.server.within(Netlink::of_sockets)?;
        let mut watched = Watched::new(scenario.client_address(), scenario.ip_version);
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name("connections".to_owned())
            .spawn(move || {
                crate::clock::go_as_others();
                let Some(ticker) = ticker else { return Ok(Vec::new()) };
                let mut next = ticker.after(clock.now());
                while !stopped.load(Ordering::Relaxed) {
                    let wait = WallDuration::from_nanos(clock.until(next).as_nanos());
                    std::thread::sleep(wait.min(MAX_SLEEP));
                    let now = clock.now();
                    if now < next {
                        continue;
                    }
                    let tick = Time::from_nanos(now.as_nanos() / period_ns * period_ns);
                    for (side, netlink) in [(Side::Client, &client), (Side::Server, &server)] {
                        for end in ends(netlink)? {
                            // Nobody listens any more once the run has ended.
                            let mut send = |sample| drop(samples.send(sample));
                            watched.look(tick, side, &end, &mut send);
                        }
                    }
                    next = ticker.after(now);
                }
                Ok(watched.connections)
            })
            .map_err(|error| LinuxError::io("cannot start to watch the connections", error))?;
        Ok(Self { stop, thread })
    }

    /// Ends the watch, and returns all connections that were seen, in the order in which they were.
    ///
    /// # Errors
    /// The first error while the kernels were asked.
    pub fn finish(self) -> Result<Vec<Connection>, LinuxError> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// Side whose kernel tells of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Client,
    Server,
}

/// One end of a connection, as its kernel tells of it.
#[derive(Clone, Debug)]
struct End {
    local: SocketAddr,
    remote: SocketAddr,
    congestion_control: Option<String>,
    /// Whether the other end has said that no more comes, which the kernel counts as a byte.
    heard_all: bool,
    info: TcpInfo,
}

/// All connections so far, with what their ends had counted when they were last looked at.
struct Watched {
    client: IpAddr,
    ip_header: u32,
    connections: Vec<Connection>,
    places: BTreeMap<(SocketAddr, SocketAddr), usize>,
    /// By the flow that arrives: bytes in order, and bytes of packets.
    received: BTreeMap<u32, (u64, u64)>,
    /// By the flow that is sent: bytes acknowledged.
    acknowledged: BTreeMap<u32, u64>,
}

impl Watched {
    const fn new(client: IpAddr, version: IpVersion) -> Self {
        Self {
            client,
            ip_header: version.header_bytes(),
            connections: Vec::new(),
            places: BTreeMap::new(),
            received: BTreeMap::new(),
            acknowledged: BTreeMap::new(),
        }
    }

    /// Sends the rows of one end: what arrived there, and the state of its sender while it has work.
    fn look(&mut self, t: Time, side: Side, end: &End, send: &mut dyn FnMut(PathSample)) {
        let (client, server) = match side {
            Side::Client => (end.local, end.remote),
            Side::Server => (end.remote, end.local),
        };
        // Connections within a host do not cross the path.
        if client.ip() != self.client || server.ip() == self.client {
            return;
        }
        let place = self.place(client, server);
        let known = &mut self.connections[place];
        let (told, arrives, leaves) = match side {
            Side::Client => (&mut known.client_congestion_control, 1, 0),
            Side::Server => (&mut known.server_congestion_control, 0, 1),
        };
        told.clone_from(&end.congestion_control);
        let [arrives, leaves] = [arrives, leaves].map(|way| 2 * place as u32 + way);
        let (acknowledged, in_order) = end.info.delivered_bytes();
        let wire = end.info.wire_bytes(self.ip_header);
        let [in_order, wire] =
            [in_order, wire].map(|count| count.saturating_sub(u64::from(end.heard_all)));
        let seen = self.received.insert(arrives, (in_order, wire)).unwrap_or_default();
        let (bytes, wire_bytes) = (since(seen.0, in_order), since(seen.1, wire));
        if bytes > 0 || wire_bytes > 0 {
            send(PathSample::Throughput(ThroughputRow { t, flow: arrives, bytes, wire_bytes }));
        }
        let told_before = self.acknowledged.insert(leaves, acknowledged).unwrap_or_default();
        let row = end.info.row(t, leaves);
        if acknowledged != told_before || row.in_flight_segments > 0 {
            send(PathSample::Tcp(row));
        }
    }

    fn place(&mut self, client: SocketAddr, server: SocketAddr) -> usize {
        *self.places.entry((client, server)).or_insert_with(|| {
            self.connections.push(Connection {
                client,
                server,
                client_congestion_control: None,
                server_congestion_control: None,
            });
            self.connections.len() - 1
        })
    }
}

/// Increase of a counter; all of it if a new connection has the ports of an old one and counts from 0 again.
const fn since(before: u64, now: u64) -> u64 {
    if now < before { now } else { now - before }
}

/// All ends in the namespace of `netlink`. Servers may hold IPv4 in sockets of IPv6.
fn ends(netlink: &Netlink) -> Result<Vec<End>, LinuxError> {
    let mut found = Vec::new();
    for family in [libc::AF_INET, libc::AF_INET6] {
        netlink
            .list(&request(family as u8), &mut |body| found.extend(read(body)))
            .map_err(|error| LinuxError::io("cannot list the TCP connections", error))?;
    }
    Ok(found)
}

/// Asks for all connections of a family that carry data: `struct inet_diag_req_v2`.
fn request(family: u8) -> Vec<u8> {
    let mut header = vec![family, libc::IPPROTO_TCP as u8, EXTENSIONS, 0];
    header.extend(STATES.to_ne_bytes());
    header.extend([0; SOCKET_ID]);
    Message::with_header(SOCK_DIAG_BY_FAMILY, NLM_F_DUMP, &header).finish()
}

/// An end from `struct inet_diag_msg` and what follows it; `None` of a socket without `TCP_INFO`.
fn read(body: &[u8]) -> Option<End> {
    let id = body.get(STATE_AND_TIMER..STATE_AND_TIMER + SOCKET_ID)?;
    let v4 = i32::from(*body.first()?) == libc::AF_INET;
    let end = |port: usize, address: usize| {
        let port = u16::from_be_bytes([id[port], id[port + 1]]);
        let bytes: [u8; 16] = id[address..address + 16].try_into().expect("16 of them");
        let ip = if v4 {
            IpAddr::from([bytes[0], bytes[1], bytes[2], bytes[3]])
        } else {
            Ipv6Addr::from(bytes).to_canonical()
        };
        SocketAddr::new(ip, port)
    };
    let heard_all = STATES_AFTER_FIN & (1 << body[1]) != 0;
    let (mut info, mut congestion_control) = (None, None);
    for (kind, value) in attributes(body.get(DIAG_MSG..)?) {
        match kind {
            INET_DIAG_INFO => info = Some(TcpInfo::from_bytes(value)),
            INET_DIAG_CONG => {
                let name = value.split(|&byte| byte == 0).next().unwrap_or_default();
                congestion_control = Some(String::from_utf8_lossy(name).into_owned());
            }
            _ => {}
        }
    }
    Some(End { local: end(0, 4), remote: end(2, 20), congestion_control, heard_all, info: info? })
}

/// How long it may take until a request to stop is heard.
const MAX_SLEEP: WallDuration = WallDuration::from_millis(20);
// include/uapi/linux/sock_diag.h, inet_diag.h
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const INET_DIAG_INFO: u16 = 2;
const INET_DIAG_CONG: u16 = 4;
/// The bits of both.
const EXTENSIONS: u8 = 1 << (INET_DIAG_INFO - 1) | 1 << (INET_DIAG_CONG - 1);
/// Lengths of `struct inet_diag_sockid`, of what stands before it, and of `struct inet_diag_msg`.
const SOCKET_ID: usize = 48;
const STATE_AND_TIMER: usize = 4;
const DIAG_MSG: usize = 72;
/// Established, and all states of one that closes and may still carry data (include/net/tcp_states.h): 1,
/// 4 and 5, 8 and 9, 11.
const STATES: u32 = 1 << 1 | 1 << 4 | 1 << 5 | STATES_AFTER_FIN;
const STATES_AFTER_FIN: u32 = 1 << 8 | 1 << 9 | 1 << 11;

#[cfg(test)]
mod tests {
    use weir_core::Duration;

    use super::*;

    /// Offsets in `struct tcp_info`.
    const RTT: usize = 68;
    const BYTES_ACKED: usize = 120;
    const BYTES_RECEIVED: usize = 128;

    const ESTABLISHED: u8 = 1;
    const CLOSE_WAIT: u8 = 8;

    fn info(acked: u64, received: u64) -> Vec<u8> {
        let mut bytes = vec![0; 232];
        bytes[RTT..RTT + 4].copy_from_slice(&25_000u32.to_ne_bytes());
        bytes[BYTES_ACKED..BYTES_ACKED + 8].copy_from_slice(&acked.to_ne_bytes());
        bytes[BYTES_RECEIVED..BYTES_RECEIVED + 8].copy_from_slice(&received.to_ne_bytes());
        bytes
    }

    /// The kernel's answer about a server's IPv6 socket that holds a connection of IPv4.
    fn answer(info: &[u8], state: u8) -> Vec<u8> {
        let mut header = vec![libc::AF_INET6 as u8, state, 0, 0];
        header.extend(8080u16.to_be_bytes());
        header.extend(40_000u16.to_be_bytes());
        for last in [[10, 1, 0, 1], [10, 0, 0, 1]] {
            header.extend([0; 10]);
            header.extend([0xff; 2]);
            header.extend(last);
        }
        header.resize(DIAG_MSG, 0);
        let mut message = Message::with_header(SOCK_DIAG_BY_FAMILY, 0, &header);
        message.put(INET_DIAG_CONG, b"cubic\0");
        message.put(INET_DIAG_INFO, info);
        message.finish().split_off(16)
    }

    #[test]
    fn the_request_is_as_long_as_the_kernel_wants_it() {
        assert_eq!(request(2).len(), 16 + 56);
    }

    #[test]
    fn an_answer_is_read() {
        let end = read(&answer(&info(7, 9), ESTABLISHED)).unwrap();
        assert_eq!(end.local, "10.1.0.1:8080".parse().unwrap());
        assert_eq!(end.remote, "10.0.0.1:40000".parse().unwrap());
        assert_eq!(end.congestion_control.as_deref(), Some("cubic"));
        assert_eq!(end.info.delivered_bytes(), (7, 9));
    }

    #[test]
    fn rows_are_of_what_came_since_the_last_look() {
        let mut watched = Watched::new("10.0.0.1".parse().unwrap(), IpVersion::V4);
        let mut rows = Vec::new();
        // At last the client closes.
        for (tick, acked, received, state) in [
            (1, 1000, 100, ESTABLISHED),
            (2, 5000, 100, ESTABLISHED),
            (3, 5000, 100, ESTABLISHED),
            (4, 5000, 101, CLOSE_WAIT),
        ] {
            let end = read(&answer(&info(acked, received), state)).unwrap();
            watched.look(Time::from_nanos(tick), Side::Server, &end, &mut |row| rows.push(row));
        }
        let bytes: Vec<_> = rows
            .iter()
            .filter_map(|row| match row {
                PathSample::Throughput(row) => Some((row.t.as_nanos(), row.flow, row.bytes)),
                _ => None,
            })
            .collect();
        // The request, once, on the way up.
        assert_eq!(bytes, [(1, 0, 100)]);
        let senders: Vec<_> = rows
            .iter()
            .filter_map(|row| match row {
                PathSample::Tcp(row) => Some((row.t.as_nanos(), row.flow, row.srtt)),
                _ => None,
            })
            .collect();
        let srtt = Some(Duration::from_millis(25));
        assert_eq!(senders, [(1, 1, srtt), (2, 1, srtt)], "later looks saw nothing new");
        assert_eq!(watched.connections.len(), 1);
        assert_eq!(watched.connections[0].server_congestion_control.as_deref(), Some("cubic"));
    }

    #[test]
    fn what_stays_within_a_host_is_left_out_and_counters_begin_again() {
        let mut watched = Watched::new("10.0.0.1".parse().unwrap(), IpVersion::V4);
        let mut end = read(&answer(&info(1, 1), ESTABLISHED)).unwrap();
        std::mem::swap(&mut end.local, &mut end.remote);
        end.remote.set_ip(end.local.ip());
        watched.look(Time::ZERO, Side::Client, &end, &mut |_| unreachable!());
        assert!(watched.connections.is_empty());
        assert_eq!((since(5, 9), since(9, 5)), (4, 5));
    }
}
