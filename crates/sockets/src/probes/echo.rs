//! Echo servers of UDP and TCP probes.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use socket2::{Protocol as SocketProtocol, Socket, Type};
use weir_core::{Duration, Protocol};
use weir_scenario::ProbeKind;

use super::message::{read_seq, write_answer};
use super::prober::Arrival;
use super::sockets::{MAX_DATAGRAM_BYTES, bound, shared_udp_socket, stamp};
use crate::error::NetError;
use crate::load::options::set_dscp;
use crate::plan::Plan;
use crate::sys::epoll::{Epoll, Events, Interest};
use crate::sys::message;
use crate::sys::time::{monotonic_ns, wake_exactly};

/// Answers probes.
pub(crate) struct Echo {
    plan: Arc<Plan>,
    epoll: Epoll,
    /// By token.
    sockets: BTreeMap<u64, EchoSocket>,
    arrivals: Sender<Arrival>,
    buffer: Vec<u8>,
}

/// A socket on which probes arrive.
enum EchoSocket {
    Udp(SocketAddr, Socket),
    Listener(SocketAddr, Socket),
    Connection(Connection),
}

/// A connection of a TCP probe.
struct Connection {
    socket: Socket,
    probe: usize,
    /// Bytes of the request that are missing.
    missing: usize,
}

impl Echo {
    /// Opens the sockets of all servers, where the calling thread is.
    pub fn new(plan: &Arc<Plan>, arrivals: Sender<Arrival>) -> Result<Self, NetError> {
        let epoll = Epoll::new().map_err(|error| NetError::io("epoll", &error))?;
        let buffer = vec![0; MAX_DATAGRAM_BYTES];
        let sockets = BTreeMap::new();
        let mut echo = Self { plan: Arc::clone(plan), epoll, sockets, arrivals, buffer };
        let mut open = BTreeSet::new();
        for (number, spec) in plan.scenario.probes.iter().enumerate() {
            let key = plan.scenario.probe_key(number);
            let (_, server) = plan.addresses.ends(&key, spec.host);
            let is_stream = match spec.kind {
                ProbeKind::Udp => false,
                ProbeKind::Tcp => true,
                // The server's kernel answers, or a router.
                ProbeKind::Icmp | ProbeKind::UdpTtl => continue,
            };
            if !open.insert((server, is_stream)) {
                continue;
            }
            let socket = if is_stream { listen(server) } else { listen_udp(server) };
            socket.and_then(|socket| echo.put(socket)).map_err(|error| {
                let name = &spec.name;
                NetError::io(format_args!("probe `{name}`: listening on {server}"), &error)
            })?;
        }
        Ok(echo)
    }

    /// Answers until nobody waits for answers any more.
    pub fn run(mut self) -> Result<(), NetError> {
        wake_exactly();
        let mut events = Events::new(EVENTS);
        while !self.plan.control.ends_may_close() {
            let all = self.epoll.wait(&mut events, MAX_WAIT);
            for ready in all.map_err(|error| NetError::io("epoll", &error))? {
                let gone = match self.serve(ready.token) {
                    Ok(gone) => gone,
                    Err(error) => error.kind() != io::ErrorKind::WouldBlock,
                };
                // A connection that broke is told of by its client; a socket stays open.
                if gone && matches!(self.sockets.get(&ready.token), Some(EchoSocket::Connection(_)))
                {
                    self.sockets.remove(&ready.token);
                }
            }
        }
        Ok(())
    }

    fn put(&mut self, socket: EchoSocket) -> io::Result<()> {
        let token = self.sockets.last_key_value().map_or(0, |(last, _)| last + 1);
        self.epoll.add(socket.socket(), token, Interest::READ)?;
        self.sockets.insert(token, socket);
        Ok(())
    }

    /// Serves what came in by a socket, and says whether it is closed now.
    fn serve(&mut self, token: u64) -> io::Result<bool> {
        let Self { plan, sockets, arrivals, buffer, .. } = self;
        match sockets.get_mut(&token) {
            None => Ok(false),
            Some(EchoSocket::Udp(local, socket)) => {
                answer_udp(plan, arrivals, (*local, socket), buffer)?;
                Ok(false)
            }
            Some(EchoSocket::Connection(connection)) => connection.answer(plan, buffer),
            Some(EchoSocket::Listener(local, socket)) => {
                let (accepted, peer) = socket.accept()?;
                let owner =
                    peer.as_socket().and_then(|peer| owner(plan, peer, *local, Protocol::TCP));
                // A stranger's connection is closed by being dropped.
                let Some(probe) = owner else { return Ok(false) };
                let spec = &plan.scenario.probes[probe];
                accepted.set_nonblocking(true)?;
                accepted.set_tcp_nodelay(true)?;
                set_dscp(&accepted, spec.dscp)?;
                let missing = spec.payload_bytes as usize;
                self.put(EchoSocket::Connection(Connection { socket: accepted, probe, missing }))?;
                Ok(false)
            }
        }
    }
}

impl EchoSocket {
    const fn socket(&self) -> &Socket {
        match self {
            Self::Udp(_, socket)
            | Self::Listener(_, socket)
            | Self::Connection(Connection { socket, .. }) => socket,
        }
    }
}

impl Connection {
    /// Takes what is there of the request, and answers when it is whole. Says whether it has ended.
    fn answer(&mut self, plan: &Plan, buffer: &mut [u8]) -> io::Result<bool> {
        let payload = plan.scenario.probes[self.probe].payload_bytes as usize;
        let received = message::receive(&self.socket, &mut buffer[..self.missing])?;
        self.missing -= received.len;
        if self.missing == 0 {
            self.missing = payload;
            buffer[..payload].fill(0);
            self.socket.send(&buffer[..payload])?;
        }
        Ok(received.len == 0)
    }
}

/// Answers one UDP probe, and tells the client's thread that it arrived, in case the answer does not. A
/// server elsewhere has nobody to tell: there an answer that is lost is just a ping that is lost.
fn answer_udp(
    plan: &Plan,
    arrivals: &Sender<Arrival>,
    (local, socket): (SocketAddr, &Socket),
    buffer: &mut [u8],
) -> io::Result<()> {
    let received = message::receive(socket, buffer)?;
    let payload = &mut buffer[..received.len];
    let arrived = plan.clock.of_stamp(received.real_ns);
    let Some(peer) = received.peer else { return Ok(()) };
    let Some(probe) = owner(plan, peer, local, Protocol::UDP) else { return Ok(()) };
    let Some(seq) = read_seq(payload) else { return Ok(()) };
    let tos = plan.scenario.probes[probe].dscp << 2;
    write_answer(payload, plan.clock.monotonic_ns_of(arrived), monotonic_ns());
    let result = message::send_to(socket, payload, peer, tos);
    // The prober may have ended already.
    let _ = arrivals.send((probe as u32, seq, arrived));
    result
}

/// The probe that has these ends.
fn owner(plan: &Plan, client: SocketAddr, server: SocketAddr, protocol: Protocol) -> Option<usize> {
    let number = plan.addresses.owner(&plan.scenario, client, server, protocol)?;
    number.checked_sub(plan.scenario.flows.len())
}

fn listen_udp(address: SocketAddr) -> io::Result<EchoSocket> {
    Ok(EchoSocket::Udp(address, shared_udp_socket(address, 0)?))
}

fn listen(address: SocketAddr) -> io::Result<EchoSocket> {
    let socket = bound(Type::STREAM, Some(SocketProtocol::TCP), address, 0)?;
    stamp(&socket)?;
    socket.listen(BACKLOG)?;
    Ok(EchoSocket::Listener(address, socket))
}

const EVENTS: usize = 64;
const BACKLOG: i32 = 128;
/// How soon the end of the run is noticed.
const MAX_WAIT: Duration = Duration::from_millis(20);
