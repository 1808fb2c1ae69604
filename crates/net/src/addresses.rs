//! Where the ends are.

use std::net::{IpAddr, SocketAddr};

use weir_core::FlowKey;
use weir_world::Scenario;

/// The addresses of the client and the servers. Ports are always the scenario's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// The client's.
    pub client: IpAddr,
    /// The servers', in the scenario's order.
    pub servers: Vec<IpAddr>,
}

impl Addresses {
    /// Those of the scenario itself, which worlds use that make their own hosts.
    #[must_use]
    pub fn of(scenario: &Scenario) -> Self {
        let hosts = 0..scenario.hosts.len() as u32;
        Self {
            client: scenario.client_address(),
            servers: hosts.map(|host| scenario.server_address(host)).collect(),
        }
    }

    /// The client's and the server's address and port for what has the 5-tuple `key` and belongs to
    /// server number `host`.
    pub(crate) fn ends(&self, key: &FlowKey, host: u32) -> (SocketAddr, SocketAddr) {
        (
            SocketAddr::new(self.client, key.sport),
            SocketAddr::new(self.servers[host as usize], key.dport),
        )
    }

    /// The flow or probe, numbered flows first, whose ends these are.
    pub(crate) fn owner(
        &self,
        scenario: &Scenario,
        client: SocketAddr,
        server: SocketAddr,
        protocol: weir_core::Protocol,
    ) -> Option<usize> {
        if client.ip() != self.client {
            return None;
        }
        let key = |host: usize| FlowKey {
            src: scenario.client_address(),
            dst: scenario.server_address(host as u32),
            sport: client.port(),
            dport: server.port(),
            protocol,
        };
        let hosts = self.servers.iter().enumerate().filter(|(_, address)| **address == server.ip());
        hosts.map(|(host, _)| key(host)).find_map(|key| scenario.owner_of(&key)).map(|n| n as usize)
    }
}
