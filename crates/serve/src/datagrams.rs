//! Answers over UDP: Weir's echo, its loads and Ookla's loss on the main port, irtt on its own.
//!
//! One thread with a runtime of its own answers all of it, so that loads do not hold it up. No answer is
//! longer than its request, but for names that an application looks up: they go to a port that has returned a cookie.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use prometheus_client::metrics::counter::Counter;
use socket2::{Domain, SockAddr, Socket, Type};
use tokio::io::Interest;
use tokio::net::UdpSocket;
use tokio::time::timeout;
use weir_core::Time;
use weir_scenario::Application;
use weir_sockets::Clock;
use weir_sockets::sys::message::{self, Received, tell_everything};
use weir_speedtest::protocol::ookla::LossDatagram;
use weir_speedtest::protocol::weir::{EchoReply, EchoRequest, LoadDatagram, echoes};

use crate::data;
use crate::error::ServeError;
use crate::health::{TICK, ends_listening};
use crate::irtt::Irtt;
use crate::metrics::ReasonLabels;
use crate::senders::Begins;
use crate::shared::Shared;
use crate::weir::{ApplicationFlow, Asked};

/// A UDP socket with its address, and the protocols that are answered on it.
pub(crate) enum DatagramSocket {
    /// The main port's socket, for Weir and Ookla.
    Main(Socket, SocketAddr),
    Irtt(Socket, SocketAddr, Box<Irtt>),
}

impl DatagramSocket {
    const fn socket(&self) -> &Socket {
        let (Self::Main(socket, _) | Self::Irtt(socket, ..)) = self;
        socket
    }

    pub const fn address(&self) -> SocketAddr {
        let (Self::Main(_, address) | Self::Irtt(_, address, _)) = self;
        *address
    }

    pub const fn is_irtt(&self) -> bool {
        matches!(self, Self::Irtt(..))
    }
}

/// A UDP socket that tells everything about what comes, and its address.
pub(crate) fn bound(address: SocketAddr) -> io::Result<(Socket, SocketAddr)> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, None)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_nonblocking(true)?;
    // `net.core.rmem_max` bounds it; a burst that does not fit is lost.
    socket.set_recv_buffer_size(RECEIVE_BUFFER)?;
    tell_everything(&socket)?;
    socket.bind(&SockAddr::from(address))?;
    let bound = socket.local_addr()?.as_socket().unwrap_or(address);
    Ok((socket, bound))
}

/// Starts the thread that answers. It ends when the server does. `sockets` have the numbers from `first` on
/// among the server's listening sockets.
pub(crate) fn start(
    server: &Arc<Shared>,
    sockets: Vec<DatagramSocket>,
    first: usize,
) -> io::Result<JoinHandle<()>> {
    let server = Arc::clone(server);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    thread::Builder::new().name("datagrams".into()).spawn(move || {
        let _ends = ThreadGuard(&server);
        weir_sockets::sys::time::wake_exactly();
        let tasks = tokio::task::LocalSet::new();
        for (number, datagram_socket) in (first..).zip(sockets) {
            let server = Arc::clone(&server);
            tasks.spawn_local(async move {
                server.health.supervise(number, serve(&server, datagram_socket, number)).await;
            });
        }
        let stop = server.stop.clone();
        tasks.block_on(&runtime, stop.cancelled());
    })
}

/// Ends the server with this thread, whatever ends the thread.
struct ThreadGuard<'s>(&'s Shared);

impl Drop for ThreadGuard<'_> {
    fn drop(&mut self) {
        let reason = "the thread `datagrams` ended by a bug: please report it";
        self.0.health.fail(ServeError::new(reason));
    }
}

/// Answers what comes to one socket. Returns only if the socket is of no use any more.
async fn serve(
    server: &Shared,
    mut datagram_socket: DatagramSocket,
    number: usize,
) -> io::Result<()> {
    let counts = Counts::of(server);
    let mut buffer = vec![0; BUFFER];
    let watched = UdpSocket::from_std(datagram_socket.socket().try_clone()?.into())?;
    loop {
        server.health.seen(number);
        let ready = match timeout(TICK, watched.ready(Interest::READABLE)).await {
            Ok(ready) => ready?,
            Err(_) => continue,
        };
        if ready.is_read_closed() {
            // Somebody has shut it down: from now on it is ready for ever, and has nothing.
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        // Several at once before others have their turn.
        for _ in 0..BATCH {
            let receive = || message::receive(datagram_socket.socket(), &mut buffer);
            let received = match watched.try_io(Interest::READABLE, receive) {
                Ok(received) => received,
                Err(error) if ends_listening(&error) => return Err(error),
                // There is nothing more, or ICMP tells of an answer that was sent.
                Err(_) => break,
            };
            let Some(from) = received.peer else {
                // Datagrams have senders: this is the end of a socket that was shut down.
                return Err(io::ErrorKind::UnexpectedEof.into());
            };
            let datagram = &mut buffer[..received.len];
            let answered = match &mut datagram_socket {
                DatagramSocket::Main(socket, _) => {
                    answer_main(server, socket, from, &received, datagram)
                }
                DatagramSocket::Irtt(socket, _, irtt) => {
                    irtt.answer(server, socket, from, &received, datagram)
                }
            };
            counts.count(answered);
        }
        tokio::task::yield_now().await;
    }
}

/// How a datagram that came in was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EchoOutcome {
    Answered,
    /// The datagram was counted, and needs no answer.
    Taken,
    /// The datagram came from an unknown client, or could not be understood.
    Unknown,
    /// The datagram was one too many, or too long.
    Limited,
    Failed,
}

fn answer_main(
    server: &Shared,
    socket: &Socket,
    from: SocketAddr,
    received: &Received,
    datagram: &mut [u8],
) -> EchoOutcome {
    if !echoes(datagram) {
        let loss = LossDatagram::parse(datagram);
        let known = loss.is_some_and(|loss| server.loss_tests.arrived(from.ip(), &loss));
        return if known { EchoOutcome::Taken } else { EchoOutcome::Unknown };
    }
    if let Some(load) = LoadDatagram::parse(datagram).filter(|_| server.echoes) {
        return take_of_load(server, socket, from, received, (load, datagram));
    }
    let Some(request) = EchoRequest::parse(datagram).filter(|_| server.echoes) else {
        return EchoOutcome::Unknown;
    };
    if datagram.len() > MAX_ECHO_BYTES {
        return EchoOutcome::Limited;
    }
    let tos = received.tos.unwrap_or(0);
    let Some(session) = server.sessions.session(request.token, from.ip()) else {
        return EchoOutcome::Unknown;
    };
    let Some(echo) = session.echo(&request, tos) else { return EchoOutcome::Limited };
    let arrived = echo.clock.of_stamp(received.real_ns).as_nanos();
    let leaves = echo.clock.now().as_nanos();
    EchoReply::answer(datagram, tos, echo.received, arrived, leaves);
    send(socket, datagram, received.to, from, request.answer_tos)
}

/// Takes a datagram of a UDP load.
fn take_of_load(
    server: &Shared,
    socket: &Socket,
    from: SocketAddr,
    received: &Received,
    (load, datagram): (LoadDatagram, &mut [u8]),
) -> EchoOutcome {
    match load {
        LoadDatagram::Packet { ticket, seq, sent_ns } => {
            let Some(flow) = server.sessions.udp(ticket, from.ip()) else {
                return EchoOutcome::Unknown;
            };
            let sent = Time::from_nanos(sent_ns);
            let taken = flow.arrived(seq, sent, received.real_ns, datagram.len());
            if taken { EchoOutcome::Taken } else { EchoOutcome::Unknown }
        }
        LoadDatagram::Ask { ticket, cookie } => {
            if datagram.len() > MAX_ECHO_BYTES {
                return EchoOutcome::Limited;
            }
            let sessions = &server.sessions;
            let (asked, udp) = if let Some(flow) = sessions.application(ticket, from.ip()) {
                (flow.asked(from, received.to, cookie), None)
            } else if let Some(flow) = sessions.udp(ticket, from.ip()) {
                (flow.asked(from, received.to, cookie), Some(flow))
            } else {
                return EchoOutcome::Unknown;
            };
            match (asked, udp) {
                (Asked::Unknown, _) => EchoOutcome::Unknown,
                (Asked::Cookie(own), _) => {
                    LoadDatagram::Answer { ticket, cookie: own }.emit(datagram);
                    send(socket, datagram, received.to, from, 0)
                }
                (Asked::Begins, Some(flow)) => {
                    let Ok(socket) = socket.try_clone() else { return EchoOutcome::Failed };
                    // The thread that takes it ends with the server.
                    let _ = server.senders.send(Begins { flow, socket });
                    EchoOutcome::Taken
                }
                (Asked::Begins | Asked::Heard, _) => EchoOutcome::Taken,
            }
        }
        LoadDatagram::Query { ticket, cookie, number } => {
            let flow = server.sessions.application(ticket, from.ip());
            let Some(flow) = flow.filter(|_| datagram.len() == Application::QUERY_BYTES as usize)
            else {
                return EchoOutcome::Unknown;
            };
            answer_name(&flow, socket, from, received, (cookie, number))
        }
        LoadDatagram::Answer { .. } | LoadDatagram::Reply { .. } => EchoOutcome::Unknown,
    }
}

/// Answers the query `number`, if the port has shown its cookie: the answer is longer than the query.
fn answer_name(
    flow: &ApplicationFlow,
    socket: &Socket,
    from: SocketAddr,
    received: &Received,
    (cookie, number): (u64, u64),
) -> EchoOutcome {
    if flow.shown(from, cookie) == Asked::Unknown {
        return EchoOutcome::Unknown;
    }
    if !flow.may_answer() {
        return EchoOutcome::Limited;
    }
    let mut answer = [0; Application::ANSWER_BYTES as usize];
    answer.copy_from_slice(&data::bytes(Application::ANSWER_BYTES as usize));
    LoadDatagram::Reply { ticket: flow.ticket, number }.emit(&mut answer);
    flow.passed(answer.len() as u64);
    send(socket, &answer, received.to, from, flow.request.dscp << 2)
}

/// Sends an answer from where the request came to.
pub(crate) fn send(
    socket: &Socket,
    datagram: &[u8],
    from: Option<IpAddr>,
    to: SocketAddr,
    tos: u8,
) -> EchoOutcome {
    match message::send_from(socket, datagram, from, to, tos) {
        Ok(()) => EchoOutcome::Answered,
        Err(_) => EchoOutcome::Failed,
    }
}

/// A clock that starts now, for protocols whose clocks start anywhere.
pub(crate) fn clock() -> Clock {
    Clock::starting_in(weir_core::Duration::ZERO)
}

/// Counters by outcome, looked up once.
struct Counts([Counter; 5]);

impl Counts {
    fn of(server: &Shared) -> Self {
        let counter =
            |reason| server.metrics.datagrams.get_or_create(&ReasonLabels { reason }).clone();
        Self(["answered", "taken", "unknown", "limited", "failed"].map(counter))
    }

    fn count(&self, outcome: EchoOutcome) {
        self.0[outcome as usize].inc();
    }
}

/// Longest UDP payload, in bytes, that fits into an Ethernet frame over IPv4; longer ones would come in
/// fragments.
pub(crate) const MAX_ECHO_BYTES: usize = 1472;
/// A thousand datagrams at their size in memory.
const RECEIVE_BUFFER: usize = 1 << 20;
/// The longest datagram.
const BUFFER: usize = 65_536;
const BATCH: usize = 32;
