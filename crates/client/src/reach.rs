//! How much of what Weir measures a server can answer, before a test begins.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration as WallDuration;

use weir_sockets::{Grant, Session, Target};
use weir_speedtest::protocol::weir::{ECHO_BYTES, EchoReply, EchoRequest, Secret};

use crate::ClientError;

/// Says in one sentence why `host` cannot run a test of Weir's own; `None` if it can.
///
/// # Errors
/// If the server cannot be reached, or refuses a session.
pub fn missing(host: &str, secret: Option<&str>) -> Result<Option<String>, ClientError> {
    let target = Target::find(host)?;
    let secret = secret.map(Secret::new).transpose();
    let secret = secret.map_err(|error| ClientError::new(error.to_string()))?;
    let session = match Session::open(&target, secret.as_ref()) {
        Err(error) if error.is_foreign() => return Ok(Some(error.to_string())),
        session => session?,
    };
    let echoed = echoes(&session.grant, target.address)
        .map_err(|error| ClientError::io("datagrams to the server", &error))?;
    session.close();
    let authority = &target.authority;
    Ok((!echoed).then(|| format!("server `{authority}` answers no datagrams from here")))
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
