//! The pings of a train without a scenario, by what they are.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::connect::Handshakes;
use super::icmp::Icmp;
use super::session::Session;
use super::sockets::Pinger;
use super::ttl::{Answers, Ttl};
use crate::addresses::EchoSession;

/// Protocol of pings, and who answers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PingMethod {
    /// ICMP echo, which the kernel of the host answers, or with a small time to live a router.
    Icmp,
    /// UDP, which a router answers where its time to live ends, or the host.
    Udp,
    /// The first half of a TCP handshake, which a host answers where something listens.
    Tcp,
    /// UDP echo of a `weir serve` with which there is a session.
    Weir(EchoSession),
}

/// How packets are marked and how long they are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PingMarks {
    pub dscp: u8,
    /// Time to live or hop limit; the system's own if `None`.
    pub ttl: Option<u8>,
    pub payload_bytes: usize,
}

/// Opens the sockets of such pings to `server`, whose port counts where there is one.
pub(super) fn open(
    method: PingMethod,
    server: SocketAddr,
    marks: PingMarks,
) -> io::Result<Box<dyn Pinger>> {
    let PingMarks { dscp, ttl, payload_bytes } = marks;
    let any = match server {
        SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    let client = SocketAddr::new(any, 0);
    Ok(match method {
        PingMethod::Icmp => Box::new(icmp(any, server, (dscp, payload_bytes))?.with_errors(ttl)?),
        PingMethod::Udp => {
            Box::new(Ttl::new(client, server, (dscp, ttl), payload_bytes, Answers::Any)?)
        }
        PingMethod::Tcp => Box::new(Handshakes::new(client, server, dscp)?),
        PingMethod::Weir(session) => {
            let mut there = server;
            there.set_port(session.port);
            Box::new(Session::new((client, there), session.token, 0, dscp, payload_bytes)?)
        }
    })
}

/// With an identifier that nothing else on this machine has.
fn icmp(any: IpAddr, server: SocketAddr, (dscp, payload): (u8, usize)) -> io::Result<Icmp> {
    let mut there = server;
    there.set_port(0);
    let mut tries = TRIES;
    loop {
        // Raw sockets hear all answers to this host, and tell theirs by the identifier; 0 is none.
        let identifier = getrandom::u32().map_err(io::Error::other)? as u16 | 1;
        match Icmp::new(SocketAddr::new(any, identifier), there, dscp, payload) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && tries > 0 => tries -= 1,
            other => return other,
        }
    }
}

/// Identifiers that are tried: each is free unless hundreds of others ping.
const TRIES: u32 = 8;
