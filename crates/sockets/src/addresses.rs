//! Where the ends are.

use std::net::{IpAddr, SocketAddr};

use weir_core::{FlowKey, Protocol};
use weir_scenario::Scenario;
use weir_speedtest::protocol::weir::Token;

/// The addresses of the client and the servers. Ports are the scenario's, unless there is a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// The client's.
    pub client: IpAddr,
    /// The servers', in the scenario's order.
    pub servers: Vec<IpAddr>,
    /// The session with a server elsewhere, to whose port the client's own ports then go.
    pub session: Option<EchoSession>,
}

/// Session with a server of Weir's own protocol: the token that every probe carries, and the port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EchoSession {
    /// The session.
    pub token: Token,
    /// Where datagrams go.
    pub port: u16,
}

impl Addresses {
    /// The addresses of the scenario itself, which worlds use that make their own hosts.
    #[must_use]
    pub fn of(scenario: &Scenario) -> Self {
        let hosts = 0..scenario.hosts.len() as u32;
        Self {
            client: scenario.client_address(),
            servers: hosts.map(|host| scenario.server_address(host)).collect(),
            session: None,
        }
    }

    /// The client's and the server's address and port for what has the 5-tuple `key` and belongs to
    /// server number `host`.
    pub(crate) fn ends(&self, key: &FlowKey, host: u32) -> (SocketAddr, SocketAddr) {
        let (client, server) = (self.client, self.servers[host as usize]);
        let Some(session) = self.session else {
            return (SocketAddr::new(client, key.sport), SocketAddr::new(server, key.dport));
        };
        let own = match key.protocol {
            Protocol::TCP | Protocol::UDP => 0,
            // The identifier of an echo: others on this machine may ping too.
            _ => key.sport ^ (session.token.0 as u16 | 1),
        };
        (SocketAddr::new(client, own), SocketAddr::new(server, session.port))
    }

    /// The flow or probe, numbered flows first, whose ends these are.
    pub(crate) fn owner(
        &self,
        scenario: &Scenario,
        client: SocketAddr,
        server: SocketAddr,
        protocol: Protocol,
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
        hosts
            .map(|(host, _)| key(host))
            .find_map(|key| scenario.flow_id_of(&key))
            .map(|n| n as usize)
    }
}
