//! Where the ends are.

use std::net::{IpAddr, SocketAddr};

use weir_core::{FlowKey, Protocol};
use weir_scenario::Scenario;
use weir_speedtest::protocol::weir::Token;

/// The addresses of the client and the servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Addresses {
    /// The scenario's own, which worlds use that make their own hosts: one of each Internet protocol.
    Scenario,
    /// Others, with the scenario's ports.
    Others {
        /// The client's.
        client: IpAddr,
        /// The servers', in the scenario's order.
        servers: Vec<IpAddr>,
    },
    /// A server elsewhere, to whose one port the client's own ports go.
    Session {
        /// The client's.
        client: IpAddr,
        /// The server's.
        server: IpAddr,
        /// The session with it.
        session: EchoSession,
    },
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
    /// The session, if the server is elsewhere.
    pub(crate) const fn session(&self) -> Option<EchoSession> {
        match self {
            Self::Session { session, .. } => Some(*session),
            Self::Scenario | Self::Others { .. } => None,
        }
    }

    /// The client's and the server's address and port for what has the scenario's 5-tuple `key` and belongs to
    /// server number `host`.
    pub(crate) fn ends(&self, key: &FlowKey, host: u32) -> (SocketAddr, SocketAddr) {
        let ends = |client, server| {
            (SocketAddr::new(client, key.sport), SocketAddr::new(server, key.dport))
        };
        match self {
            Self::Scenario => ends(key.src, key.dst),
            Self::Others { client, servers } => ends(*client, servers[host as usize]),
            Self::Session { client, server, session } => {
                let own = match key.protocol {
                    Protocol::TCP | Protocol::UDP => 0,
                    // The identifier of an echo: others on this machine may ping too.
                    _ => key.sport ^ (session.token.0 as u16 | 1),
                };
                (SocketAddr::new(*client, own), SocketAddr::new(*server, session.port))
            }
        }
    }

    /// The flow or probe, numbered flows first, whose ends these are.
    pub(crate) fn owner(
        &self,
        scenario: &Scenario,
        client: SocketAddr,
        server: SocketAddr,
        protocol: Protocol,
    ) -> Option<usize> {
        let found = |src, dst| {
            let (sport, dport) = (client.port(), server.port());
            let owner = scenario.flow_id_of(&FlowKey { src, dst, sport, dport, protocol })?;
            Some(owner as usize)
        };
        match self {
            Self::Scenario => found(client.ip(), server.ip()),
            Self::Others { client: own, servers } if client.ip() == *own => {
                let hosts = servers.iter().enumerate().filter(|(_, one)| **one == server.ip());
                hosts
                    .map(|(host, _)| scenario.server_address(host as u32))
                    .find_map(|address| found(scenario.client_address(), address))
            }
            Self::Others { .. } | Self::Session { .. } => None,
        }
    }
}
