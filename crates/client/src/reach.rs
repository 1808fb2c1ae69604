//! How much of what Weir measures a server can answer, before a test begins.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration as WallDuration;

use weir_sockets::{Grant, Session, Target};
use weir_speedtest::protocol::weir::{ECHO_BYTES, EchoReply, EchoRequest, Secret};

use crate::ClientError;

/// What a server offers a test of Weir's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Offer {
    /// None, for this reason.
    Missing(String),
    /// A test within these limits.
    Test(TestLimits),
}

/// What a server holds a test to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestLimits {
    /// Its name and port.
    pub server: String,
    /// How long a load may last.
    pub load_ns: u64,
    /// The congestion controls that its loads may have.
    pub congestion: Vec<String>,
}

/// Asks what a server offers a test of Weir's own.
///
/// # Errors
/// If it cannot be reached, or refuses a session.
pub fn offer(server: &Target, secret: Option<&str>) -> Result<Offer, ClientError> {
    let secret = secret.map(Secret::new).transpose();
    let secret = secret.map_err(|error| ClientError::new(error.to_string()))?;
    let session = match Session::open(server, secret.as_ref()) {
        Err(error) if error.is_foreign() => return Ok(Offer::Missing(error.to_string())),
        session => session?,
    };
    let echoed = echoes(&session.grant, server.address)
        .map_err(|error| ClientError::io("datagrams to the server", &error))?;
    let Grant { congestion, limits, .. } = session.grant.clone();
    session.close();
    let server = server.authority.clone();
    if !echoed {
        return Ok(Offer::Missing(format!("server `{server}` answers no datagrams from here")));
    }
    Ok(Offer::Test(TestLimits { server, load_ns: limits.duration_ns, congestion }))
}

/// Whether one of a few datagrams comes back.
fn echoes(grant: &Grant, server: SocketAddr) -> io::Result<bool> {
    let Some(port) = grant.udp_port else { return Ok(false) };
    let any: SocketAddr = if server.is_ipv4() {
        (Ipv4Addr::UNSPECIFIED, 0).into()
    } else {
        (Ipv6Addr::UNSPECIFIED, 0).into()
    };
    let socket = UdpSocket::bind(any)?;
    socket.connect((server.ip(), port))?;
    socket.set_read_timeout(Some(WAIT))?;
    for seq in 0..TRIES {
        let mut datagram = [0; ECHO_BYTES];
        EchoRequest { token: grant.token, train: 0, seq, answer_tos: 0, stamp: 0 }
            .emit(&mut datagram);
        let mut answer = [0; ECHO_BYTES];
        // An ICMP error, or nothing for a while: the next one may come through.
        let came = socket.send(&datagram).and_then(|_| socket.recv(&mut answer));
        if came.is_ok_and(|length| EchoReply::parse(&answer[..length]).is_some()) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Longer than a full buffer of most lines, and all of them together no longer than a person's patience.
const WAIT: WallDuration = WallDuration::from_millis(700);
const TRIES: u32 = 5;
