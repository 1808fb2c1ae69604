//! Addresses of a connection.

use std::net::SocketAddr;

/// Addresses of the two ends of a connection.
#[derive(Clone, Copy, Debug)]
pub struct EndAddresses {
    /// Address and port of the client.
    pub client: SocketAddr,
    /// Address and port of the server.
    pub server: SocketAddr,
}
