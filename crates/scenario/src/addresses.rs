//! Who has which address and port: the same in every world that makes its own hosts.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use weir_core::{End, FlowKey, IpVersion, Protocol};

use crate::scenario::{ProbeKind, Scenario};

impl Scenario {
    /// The client's address: 10.0.0.1, or fd00::1. The other machines of its network have the next.
    #[must_use]
    pub fn client_address(&self) -> IpAddr {
        client_host_address(self.ip_version, 0)
    }

    /// The address of server number `host`: 10.1.0.1 and on, or fd00:0:0:1::1 and on.
    #[must_use]
    pub fn server_address(&self, host: u32) -> IpAddr {
        server_address(self.ip_version, host)
    }

    /// The address of server number `host` in that Internet protocol.
    #[must_use]
    pub fn server_address_in(ip: IpVersion, host: u32) -> IpAddr {
        server_address(ip, host)
    }

    /// All addresses of the client, or of the servers: one in each Internet protocol that the scenario uses.
    #[must_use]
    pub fn addresses(&self, end: End) -> Vec<IpAddr> {
        let of = |ip| match end {
            End::Client => vec![client_host_address(ip, 0)],
            End::Server => {
                (0..self.hosts.len() as u32).map(|host| server_address(ip, host)).collect()
            }
        };
        self.ip_versions().into_iter().flat_map(of).collect()
    }

    /// The number of the server that has `address`, in any Internet protocol, if one of them has.
    #[must_use]
    pub fn server_of(&self, address: IpAddr) -> Option<u32> {
        let low = match address {
            IpAddr::V4(v4) => u32::from(v4) & 0xffff,
            IpAddr::V6(v6) => u128::from(v6) as u32,
        };
        let host = low.checked_sub(1)?;
        let known = (host as usize) < self.hosts.len();
        (known && server_address(IpVersion::of(address), host) == address).then_some(host)
    }

    /// The address of the router of the path that stands behind `passed` hops, on the client's side of
    /// it, in that Internet protocol: 10.2.0.1 and on, or fd00:0:0:2::1 and on.
    #[must_use]
    pub fn router_address(&self, ip: IpVersion, passed: u32) -> IpAddr {
        address(ip, 2, 1 + passed)
    }

    /// The 5-tuple of what the client sends for flow number `flow`; of an application that of its DNS queries, whose server's
    /// port is that of its connections too.
    #[must_use]
    pub fn flow_key(&self, flow: usize) -> FlowKey {
        let (spec, ip) = (&self.flows[flow], self.flow_ip(flow));
        let src = client_host_address(ip, spec.client_host);
        let protocol = if spec.is_tcp() { Protocol::TCP } else { Protocol::UDP };
        FlowKey { src, ..key(ip, flow, spec.host, protocol) }
    }

    /// The 5-tuple of what the client sends for probe number `probe`. The identifier of an echo stands in
    /// place of both ports.
    #[must_use]
    pub fn probe_key(&self, probe: usize) -> FlowKey {
        let number = self.flows.len() + probe;
        let (spec, ip) = (&self.probes[probe], self.probe_ip(probe));
        let protocol = match (spec.kind, ip) {
            (ProbeKind::Udp | ProbeKind::UdpTtl, _) => Protocol::UDP,
            (ProbeKind::Tcp, _) => Protocol::TCP,
            (ProbeKind::Icmp, IpVersion::V4) => Protocol::ICMP,
            (ProbeKind::Icmp, IpVersion::V6) => Protocol::ICMPV6,
        };
        let key = key(ip, number, spec.host, protocol);
        // The server's port of loads takes connections of loads.
        let probe_ports =
            if spec.kind == ProbeKind::Tcp { TCP_PROBE_PORT - SERVER_PORT } else { 0 };
        FlowKey { dport: key.dport + probe_ports, ..key }
    }

    /// The 5-tuple of what the client sends over connection number `connection`, counted over all speed tests and
    /// applications, which flow number `flow` opens.
    #[must_use]
    pub fn connection_key(&self, connection: usize, flow: usize) -> FlowKey {
        let (spec, ip) = (&self.flows[flow], self.flow_ip(flow));
        let src = client_host_address(ip, spec.client_host);
        let number = self.connection_number(connection);
        FlowKey { src, ..key(ip, number, spec.host, Protocol::TCP) }
    }

    /// The flow or probe, numbered flows first, to which packets of the client's `key` belong.
    #[must_use]
    pub fn flow_id_of(&self, key: &FlowKey) -> Option<u32> {
        let number = if key.sport == key.dport {
            usize::from(key.sport)
        } else {
            let first = if key.dport < TCP_PROBE_PORT { SERVER_PORT } else { TCP_PROBE_PORT };
            let high = usize::from(key.dport.checked_sub(first)?);
            high * PORTS + usize::from(key.sport.checked_sub(FIRST_PORT)?)
        };
        let known = match number.checked_sub(self.flows.len()) {
            None => self.flow_key(number),
            Some(probe) if probe < self.probes.len() => self.probe_key(probe),
            Some(_) => return None,
        };
        (known == *key).then_some(number as u32)
    }

    pub(crate) fn key(&self, number: usize, host: u32, protocol: Protocol) -> FlowKey {
        key(self.ip_version, number, host, protocol)
    }
}

/// The 5-tuple of what the client sends to server number `host` for what has that number.
fn key(ip: IpVersion, number: usize, host: u32, protocol: Protocol) -> FlowKey {
    let has_ports = protocol == Protocol::TCP || protocol == Protocol::UDP;
    let (sport, dport) = if has_ports {
        (FIRST_PORT + (number % PORTS) as u16, SERVER_PORT + (number / PORTS) as u16)
    } else {
        (number as u16, number as u16)
    };
    let (src, dst) = (client_host_address(ip, 0), server_address(ip, host));
    FlowKey { src, dst, sport, dport, protocol }
}

/// The address of machine number `client_host` of the client's network; 0 is the client.
pub(crate) fn client_host_address(version: IpVersion, client_host: u32) -> IpAddr {
    address(version, 0, 1 + client_host)
}

fn server_address(version: IpVersion, host: u32) -> IpAddr {
    address(version, 1, 1 + host)
}

fn address(version: IpVersion, net: u8, number: u32) -> IpAddr {
    match version {
        IpVersion::V4 => Ipv4Addr::from((10 << 24) | (u32::from(net) << 16) | number).into(),
        IpVersion::V6 => {
            let low = u128::from(net) << 64 | u128::from(number);
            Ipv6Addr::from(0xfd00 << 112 | low).into()
        }
    }
}

const FIRST_PORT: u16 = 10_000;
const PORTS: usize = 50_000;
/// iperf's, as good as any.
const SERVER_PORT: u16 = 5_001;
const TCP_PROBE_PORT: u16 = 5_101;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use weir_core::{Direction, Duration, Time};

    use super::*;
    use crate::scenario::{Flow, Hop, LineRate, Probe};

    #[test]
    fn every_load_and_probe_has_ends_of_its_own_by_which_it_is_found() {
        let hop = Hop::new("line", "pfifo", LineRate::Unlimited);
        let mut scenario = Scenario::over("both", 1_000_000_000, hop.clone(), hop);
        for ip_version in [None, Some(IpVersion::V6)] {
            let span = (Time::ZERO, Time::from_millis(1));
            let flow = Flow::new("tcp", Direction::Up, "cubic", span);
            scenario.flows.push(Flow { ip_version, ..flow });
            for kind in [ProbeKind::Icmp, ProbeKind::Udp, ProbeKind::Tcp] {
                let probe = Probe::new("ping", kind, Duration::from_millis(1), span.1);
                scenario.probes.push(Probe { ip_version, ..probe });
            }
        }
        let flows = (0..scenario.flows.len()).map(|flow| scenario.flow_key(flow));
        let probes = (0..scenario.probes.len()).map(|probe| scenario.probe_key(probe));
        let keys: Vec<_> = flows.chain(probes).collect();
        for (number, key) in keys.iter().enumerate() {
            assert_eq!(scenario.flow_id_of(key), Some(number as u32), "{key:?}");
            assert!(scenario.addresses(End::Client).contains(&key.src));
            assert_eq!(scenario.server_of(key.dst), Some(0));
        }
        let listening = |protocol: Protocol| {
            let of = keys.iter().filter(move |key| key.protocol == protocol);
            of.map(|key| (key.dst, key.dport)).collect::<BTreeSet<_>>()
        };
        assert_eq!(listening(Protocol::TCP).len(), 4, "loads and probes, over IPv4 and over IPv6");
        assert_eq!(scenario.addresses(End::Client).len(), 2);
        assert_eq!(scenario.server_of(scenario.router_address(IpVersion::V6, 0)), None);
    }
}
