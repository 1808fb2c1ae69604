//! The TCP connections between the two ends, as both kernels tell of them, read at fixed intervals.
//!
//! No program has to take part: whatever speaks TCP over the path is seen. A connection that opened and
//! closed between two looks is not, nor is what it carried after the last one.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::mpsc::Sender;

use serde::Serialize;
use weir_core::{End, Time};
use weir_scenario::{ClientPaths, IpVersion, Scenario, ThroughputMeter};
use weir_sockets::{Clock, TcpInfo};

use weir_linux::{LinuxError, Netlink, TcpEnd, tcp_ends};

use crate::datapath::PathSample;
use crate::hosts::Hosts;
use crate::tick_thread::TickThread;

/// A connection between client and server. In tables its way up is the flow of twice its place in the list
/// of all, its way down the one behind that.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Connection {
    /// The client's end.
    pub client: SocketAddr,
    /// The server's end.
    pub server: SocketAddr,
    /// Name of the client's path, where it has several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Congestion control of the client, such as `cubic`; `None` until its kernel has told.
    pub client_congestion_control: Option<String>,
    /// Congestion control of the server; `None` until its kernel has told.
    pub server_congestion_control: Option<String>,
}

/// Reads the connections of both ends, in a thread of its own.
pub struct ConnectionWatch(TickThread<Watched>);

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
        // A socket stays in the namespace in which it was made.
        let client = hosts.client.within(Netlink::of_sockets)?;
        let server = hosts.server.within(Netlink::of_sockets)?;
        let nothing = Watched::new(hosts.paths.clone(), scenario.ip_version);
        let look = move |watched: &mut Watched, now: Time| {
            let tick = Time::from_nanos(now.as_nanos() / period_ns * period_ns);
            for (side, netlink) in [(End::Client, &client), (End::Server, &server)] {
                for end in tcp_ends(netlink)? {
                    // Nobody listens any more once the run has ended.
                    let mut send = |sample| drop(samples.send(sample));
                    watched.look(tick, side, &end, &mut send);
                }
            }
            Ok(())
        };
        TickThread::start("connections", clock, period_ns, nothing, look)
            .map(Self)
            .map_err(|error| LinuxError::io("cannot start to watch the connections", error))
    }

    /// Ends the watch, and returns all connections that were seen, in the order in which they were.
    ///
    /// # Errors
    /// The first error while the kernels were asked.
    pub fn finish(self) -> Result<Vec<Connection>, LinuxError> {
        self.0.finish().map(|watched| watched.connections)
    }
}

/// All connections so far, with what their ends had counted when they were last looked at.
struct Watched {
    paths: ClientPaths,
    ip_header: u32,
    connections: Vec<Connection>,
    places: BTreeMap<(SocketAddr, SocketAddr), usize>,
    /// By the flow that arrives.
    received: BTreeMap<u32, ThroughputMeter>,
    /// By the flow that is sent: bytes acknowledged.
    acknowledged: BTreeMap<u32, u64>,
}

impl Watched {
    const fn new(paths: ClientPaths, version: IpVersion) -> Self {
        Self {
            paths,
            ip_header: version.header_bytes(),
            connections: Vec::new(),
            places: BTreeMap::new(),
            received: BTreeMap::new(),
            acknowledged: BTreeMap::new(),
        }
    }

    /// Sends the rows of one end: what arrived there, and the state of its sender while it has work.
    fn look(&mut self, t: Time, side: End, end: &TcpEnd, send: &mut dyn FnMut(PathSample)) {
        let (client, server) = match side {
            End::Client => (end.local, end.remote),
            End::Server => (end.remote, end.local),
        };
        // Connections within a host do not cross the path.
        let [path, within] =
            [client, server].map(|address| self.paths.of_client_address(address.ip()));
        let (Some(path), None) = (path, within) else { return };
        let place = self.place(client, server, path);
        let known = &mut self.connections[place];
        let (told, arrives, leaves) = match side {
            End::Client => (&mut known.client_congestion_control, 1, 0),
            End::Server => (&mut known.server_congestion_control, 0, 1),
        };
        told.clone_from(&end.congestion_control);
        let [arrives, leaves] = [arrives, leaves].map(|way| 2 * place as u32 + way);
        let info = TcpInfo::from_bytes(&end.info);
        let (acknowledged, in_order) = info.delivered_bytes();
        let wire = info.wire_bytes(self.ip_header);
        let [in_order, wire] =
            [in_order, wire].map(|count| count.saturating_sub(u64::from(end.heard_all)));
        let meter = self.received.entry(arrives).or_default();
        if in_order < meter.bytes() {
            // A new connection has the ports of an old one, and counts from 0 again.
            *meter = ThroughputMeter::default();
        }
        let arrived = meter.row(t, arrives, in_order, Some(wire));
        if !arrived.is_empty() {
            send(PathSample::Throughput(arrived));
        }
        let told_before = self.acknowledged.insert(leaves, acknowledged).unwrap_or_default();
        let row = info.row(t, leaves);
        if acknowledged != told_before || row.in_flight_segments > 0 {
            send(PathSample::Tcp(row));
        }
    }

    fn place(&mut self, client: SocketAddr, server: SocketAddr, path: u32) -> usize {
        *self.places.entry((client, server)).or_insert_with(|| {
            self.connections.push(Connection {
                client,
                server,
                path: self.paths.name(path).map(str::to_owned),
                client_congestion_control: None,
                server_congestion_control: None,
            });
            self.connections.len() - 1
        })
    }
}

#[cfg(test)]
mod tests {
    use weir_core::Duration;
    use weir_scenario::{Hop, LineRate};

    use super::*;

    /// Offsets in `struct tcp_info`.
    const RTT: usize = 68;
    const BYTES_ACKED: usize = 120;
    const BYTES_RECEIVED: usize = 128;

    fn info(acked: u64, received: u64) -> Vec<u8> {
        let mut bytes = vec![0; 232];
        bytes[RTT..RTT + 4].copy_from_slice(&25_000u32.to_ne_bytes());
        bytes[BYTES_ACKED..BYTES_ACKED + 8].copy_from_slice(&acked.to_ne_bytes());
        bytes[BYTES_RECEIVED..BYTES_RECEIVED + 8].copy_from_slice(&received.to_ne_bytes());
        bytes
    }

    /// A server's end, as its kernel tells of it.
    fn end(acked: u64, received: u64, heard_all: bool) -> TcpEnd {
        TcpEnd {
            local: "10.1.0.1:8080".parse().unwrap(),
            remote: "10.0.0.1:40000".parse().unwrap(),
            congestion_control: Some("cubic".to_owned()),
            heard_all,
            info: info(acked, received),
        }
    }

    #[test]
    fn rows_are_of_what_came_since_the_last_look() {
        let mut watched = Watched::new(ClientPaths::default(), IpVersion::V4);
        let mut rows = Vec::new();
        // At last the client closes.
        for (tick, acked, received, heard_all) in [
            (1, 1000, 100, false),
            (2, 5000, 100, false),
            (3, 5000, 100, false),
            (4, 5000, 101, true),
        ] {
            let end = end(acked, received, heard_all);
            watched.look(Time::from_nanos(tick), End::Server, &end, &mut |row| rows.push(row));
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
    fn what_stays_within_a_host_is_left_out() {
        let mut watched = Watched::new(ClientPaths::default(), IpVersion::V4);
        let mut end = end(1, 1, false);
        std::mem::swap(&mut end.local, &mut end.remote);
        end.remote.set_ip(end.local.ip());
        watched.look(Time::ZERO, End::Client, &end, &mut |_| unreachable!());
        assert!(watched.connections.is_empty());
    }

    #[test]
    fn connections_tell_the_clients_paths_apart() {
        let one = |name: &str| {
            let hop = || Hop::new("l", "pfifo", LineRate::Unlimited);
            (name.to_owned(), Scenario::over("t", 1_000_000_000, hop(), hop()))
        };
        let scenario = Scenario::with_client_paths(&[one("wifi"), one("lte")]).unwrap();
        let mut watched = Watched::new(ClientPaths::of(&scenario).unwrap(), IpVersion::V4);
        for client in ["10.0.0.2:40000", "10.0.0.1:40000", "10.0.0.3:40000"] {
            let end = TcpEnd { remote: client.parse().unwrap(), ..end(0, 5, false) };
            watched.look(Time::ZERO, End::Server, &end, &mut drop);
        }
        let paths: Vec<_> = watched.connections.iter().map(|seen| seen.path.as_deref()).collect();
        assert_eq!(paths, [Some("lte"), Some("wifi")]);
    }

    #[test]
    fn a_new_connection_with_the_ports_of_an_old_one_counts_from_0() {
        let mut watched = Watched::new(ClientPaths::default(), IpVersion::V4);
        let mut bytes = Vec::new();
        for (tick, received) in [(1, 5), (2, 9), (3, 4), (4, 6)] {
            let end = end(0, received, false);
            watched.look(Time::from_nanos(tick), End::Server, &end, &mut |row| {
                if let PathSample::Throughput(row) = row {
                    bytes.push(row.bytes);
                }
            });
        }
        assert_eq!(bytes, [5, 4, 4, 2]);
    }
}
