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
    /// Servers elsewhere, to each of whose one port the client's own ports go: a session with each over every Internet
    /// protocol that loads or probes use with it.
    Sessions(Vec<SessionEnds>),
}

/// The ends of a session with a server elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionEnds {
    /// Number of the server in the scenario.
    pub host: u32,
    /// The client's address.
    pub client: IpAddr,
    /// The server's address, of the same Internet protocol.
    pub server: IpAddr,
    /// The session.
    pub session: EchoSession,
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
    /// The session for what has the scenario's 5-tuple `key` and belongs to server number `host`, if that is elsewhere.
    pub(crate) fn session(&self, key: &FlowKey, host: u32) -> Option<EchoSession> {
        match self {
            Self::Sessions(sessions) => Some(session_of(sessions, key, host).session),
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
            Self::Sessions(sessions) => {
                let SessionEnds { client, server, session, .. } = session_of(sessions, key, host);
                let own = match key.protocol {
                    Protocol::TCP | Protocol::UDP => 0,
                    // The identifier of an echo: others on this machine may ping too. One token for all keeps the probes'
                    // apart.
                    _ => key.sport ^ (sessions[0].session.token.0 as u16 | 1),
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
            Self::Others { .. } | Self::Sessions(_) => None,
        }
    }
}

/// The session of server number `host` over the Internet protocol of `key`.
fn session_of<'s>(sessions: &'s [SessionEnds], key: &FlowKey, host: u32) -> &'s SessionEnds {
    let fits = |one: &&SessionEnds| one.host == host && one.server.is_ipv4() == key.dst.is_ipv4();
    sessions.iter().find(fits).expect("there is a session for every probe")
}
