//! Clients of applications, all on one thread, over real sockets.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use socket2::{SockAddr, Socket};
use weir_core::{Duration, End, Time};
use weir_scenario::{Action, Application, Client};

use super::application_message as message;
use super::board::Board;
use super::handshake::Offer;
use super::sockets::{bound, set_up};
use crate::ends::Sample;
use crate::error::NetError;
use crate::probes::{is_like_loss, shared_udp_socket};
use crate::sys::epoll::{Epoll, Events, Interest, Ready};
use crate::sys::message::receive;
use crate::sys::option;
use crate::sys::time::wake_exactly;
use crate::tcp_info::TcpInfo;

/// The clients of all applications.
pub(crate) struct ApplicationWorker {
    board: Arc<Board>,
    samples: Sender<Sample>,
    epoll: Epoll,
    clients: Vec<Running>,
    /// Open connections by number.
    connections: BTreeMap<u64, Connection>,
    opened: u64,
    /// Connections that wait for the handshakes of others.
    to_open: VecDeque<u64>,
    actions: Vec<Action>,
}

/// A client at work.
struct Running {
    flow: usize,
    client: Client,
    stop: Time,
    /// Where its DNS queries leave.
    dns: Socket,
}

/// A connection of a client.
struct Connection {
    /// Place of its client.
    client: usize,
    /// Its number as the client has it.
    number: u32,
    socket: Socket,
    phase: Phase,
    /// What is still to be sent.
    unsent: Vec<u8>,
    /// IP bytes that have arrived by the last look.
    wire_bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Waiting,
    Connecting,
    Open,
}

impl ApplicationWorker {
    /// Opens the sockets that clients have from the start on, where the calling thread is.
    pub fn new(board: &Arc<Board>, samples: Sender<Sample>) -> Result<Self, NetError> {
        let epoll = Epoll::new().map_err(|error| NetError::io("epoll", &error))?;
        let mut worker = Self {
            board: Arc::clone(board),
            samples,
            epoll,
            clients: Vec::new(),
            connections: BTreeMap::new(),
            opened: 0,
            to_open: VecDeque::new(),
            actions: Vec::new(),
        };
        for flow in 0..board.flows.len() {
            let Some(application) = &board.spec(flow).application else { continue };
            worker
                .add(flow, application)
                .map_err(|error| worker.error(flow, "opening its socket", &error))?;
        }
        Ok(worker)
    }

    fn add(&mut self, flow: usize, application: &Application) -> io::Result<()> {
        let state = &self.board.flows[flow];
        let dns = shared_udp_socket(self.board.end(flow, End::Client), self.board.spec(flow).dscp)?;
        dns.connect(&SockAddr::from(self.board.end(flow, End::Server)))?;
        self.epoll.add(&dns, DNS | self.clients.len() as u64, Interest::READ)?;
        let client = Client::new(application, flow as u32, (state.start, state.stop));
        self.clients.push(Running { flow, client, stop: state.stop, dns });
        Ok(())
    }

    /// Works until the run is over.
    pub fn run(mut self) -> Result<(), NetError> {
        wake_exactly();
        let mut events = Events::new(EVENTS);
        while !self.board.plan.control.ends_may_close() {
            self.act_in_time()?;
            let wait = self.until_next();
            let ready: Vec<_> = self
                .epoll
                .wait(&mut events, wait)
                .map_err(|error| NetError::io("epoll", &error))?
                .collect();
            for one in ready {
                self.serve(one)?;
            }
        }
        // What was cut off by a run that is stopped early.
        (0..self.clients.len()).try_for_each(|place| self.stop(place))
    }

    /// Does what is due.
    fn act_in_time(&mut self) -> Result<(), NetError> {
        let clock = self.board.plan.clock;
        for place in 0..self.clients.len() {
            let Running { client, stop, .. } = &self.clients[place];
            if !client.is_stopped() && clock.until(*stop).is_zero() {
                self.stop(place)?;
            } else if client.next_due().is_some_and(|due| clock.until(due).is_zero()) {
                let now = clock.now();
                self.tell(place, |one, actions| one.on_due(now, actions))?;
            }
        }
        while let Some(&connection) = self.to_open.front() {
            if !self.connect(connection)? {
                return Ok(());
            }
            self.to_open.pop_front();
        }
        Ok(())
    }

    fn until_next(&self) -> Duration {
        if !self.to_open.is_empty() {
            return GATE_POLL;
        }
        let clock = self.board.plan.clock;
        let running = self.clients.iter().filter(|one| !one.client.is_stopped());
        let times = running.flat_map(|one| [Some(one.stop), one.client.next_due()]);
        let next = times.flatten().map(|at| clock.until(at)).min();
        next.unwrap_or(MAX_WAIT).min(MAX_WAIT)
    }

    fn stop(&mut self, place: usize) -> Result<(), NetError> {
        let now = self.board.plan.clock.now();
        self.tell(place, |client, actions| client.stop(now, actions))
    }

    /// Lets a client hear of something, does what it wants, and passes its rows on.
    fn tell(
        &mut self,
        place: usize,
        event: impl FnOnce(&mut Client, &mut Vec<Action>),
    ) -> Result<(), NetError> {
        let mut actions = std::mem::take(&mut self.actions);
        event(&mut self.clients[place].client, &mut actions);
        for action in actions.drain(..) {
            self.act(place, action)?;
        }
        self.actions = actions;
        for row in self.clients[place].client.take_rows() {
            // Whoever no longer listens has no use for the rest either.
            let _ = self.samples.send(Sample::Transfer(row));
        }
        Ok(())
    }

    fn act(&mut self, place: usize, action: Action) -> Result<(), NetError> {
        let flow = self.clients[place].flow;
        match action {
            Action::Open { connection } => self
                .open(place, connection)
                .map_err(|error| self.error(flow, "opening a connection", &error)),
            Action::Ask { connection, request, response } => {
                let Some(token) = self.token(place, connection) else { return Ok(()) };
                let bytes = message::request(flow, request, response);
                let one = self.connections.get_mut(&token).expect("it was just found");
                one.unsent.extend(bytes);
                if one.phase == Phase::Open { self.send(token) } else { Ok(()) }
            }
            Action::Close { connection } => {
                let Some(token) = self.token(place, connection) else { return Ok(()) };
                self.to_open.retain(|&waiting| waiting != token);
                self.forget(token)
            }
            Action::Query { number } => {
                let mut payload = [0; Application::QUERY_BYTES as usize];
                payload[..8].copy_from_slice(&number.to_be_bytes());
                match self.clients[place].dns.send(&payload) {
                    Ok(_) => Ok(()),
                    Err(error) if is_like_loss(&error) => Ok(()),
                    Err(error) => Err(self.error(flow, "sending a query", &error)),
                }
            }
        }
    }

    /// The connection that a client calls by that number.
    fn token(&self, place: usize, number: u32) -> Option<u64> {
        let mut connections = self.connections.iter();
        let found = connections.find(|(_, one)| one.client == place && one.number == number);
        found.map(|(token, _)| *token)
    }

    fn open(&mut self, place: usize, number: u32) -> io::Result<()> {
        let flow = self.clients[place].flow;
        let socket = bound(SocketAddr::new(self.board.end(flow, End::Client).ip(), 0), false)?;
        // As browsers do: a request waits for no acknowledgement.
        socket.set_tcp_nodelay(true)?;
        let token = self.opened;
        self.opened += 1;
        self.epoll.add(&socket, token, Interest::NONE)?;
        self.connections.insert(
            token,
            Connection {
                client: place,
                number,
                socket,
                phase: Phase::Waiting,
                unsent: Vec::new(),
                wire_bytes: 0,
            },
        );
        self.to_open.push_back(token);
        Ok(())
    }

    /// Opens a connection, unless handshakes of others are in the way.
    fn connect(&mut self, token: u64) -> Result<bool, NetError> {
        let Some(one) = self.connections.get_mut(&token) else { return Ok(true) };
        let flow = self.clients[one.client].flow;
        let spec = self.board.spec(flow);
        if !self.board.gate.enter(End::Client, Offer::of(&spec.tcp.overrides)) {
            return Ok(false);
        }
        one.phase = Phase::Connecting;
        set_up(&one.socket, spec, false)?;
        let server = self.board.end(flow, End::Server).ip();
        let server = SockAddr::from(SocketAddr::new(server, PORT));
        match one.socket.connect(&server) {
            Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => {
                return Err(self.error(flow, "opening a connection", &error));
            }
            _ => {}
        }
        let watched = self.epoll.modify(&one.socket, token, Interest::BOTH);
        watched.map_err(|error| self.error(flow, "epoll", &error))?;
        Ok(true)
    }

    /// Something happened to a socket.
    fn serve(&mut self, ready: Ready) -> Result<(), NetError> {
        if ready.token & DNS != 0 {
            return self.hear_answers((ready.token & !DNS) as usize);
        }
        let token = ready.token;
        let Some(one) = self.connections.get_mut(&token) else { return Ok(()) };
        let flow = self.clients[one.client].flow;
        if ready.broken()
            && let Ok(Some(error)) = one.socket.take_error()
        {
            self.forget(token)?;
            return Err(self.error(flow, "its connection", &error));
        }
        if one.phase == Phase::Connecting && ready.writable() {
            one.phase = Phase::Open;
            self.leave_gate();
        }
        if ready.writable() {
            self.send(token)?;
        }
        if ready.readable() { self.receive(token) } else { Ok(()) }
    }

    /// Sends what waits, as far as the socket takes it.
    fn send(&mut self, token: u64) -> Result<(), NetError> {
        let Some(one) = self.connections.get_mut(&token) else { return Ok(()) };
        let flow = self.clients[one.client].flow;
        if !one.unsent.is_empty() {
            match one.socket.send(&one.unsent) {
                Ok(sent) => drop(one.unsent.drain(..sent)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(self.error(flow, "sending a request", &error)),
            }
        }
        let interest = if one.unsent.is_empty() { Interest::READ } else { Interest::BOTH };
        let watched = self.epoll.modify(&one.socket, token, interest);
        watched.map_err(|error| self.error(flow, "epoll", &error))
    }

    fn receive(&mut self, token: u64) -> Result<(), NetError> {
        let Some(one) = self.connections.get_mut(&token) else { return Ok(()) };
        let (place, number) = (one.client, one.number);
        let flow = self.clients[place].flow;
        let bytes = match option::discard(&one.socket, MAX_READ_BYTES) {
            Ok(0) => {
                let ended = io::Error::from(io::ErrorKind::UnexpectedEof);
                return Err(self.error(flow, "its connection", &ended));
            }
            Ok(bytes) => bytes as u64,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(self.error(flow, "receiving", &error)),
        };
        let header = self.board.ip_header(flow);
        if let Ok(info) = TcpInfo::of(&one.socket) {
            let wire = info.wire_bytes(header);
            self.board.arrived_on_wire(flow, wire.saturating_sub(one.wire_bytes));
            one.wire_bytes = wire;
        }
        let now = self.board.plan.clock.now();
        self.board.delivered(flow, bytes, now);
        self.tell(place, |client, actions| client.on_received(number, bytes, now, actions))
    }

    fn hear_answers(&mut self, place: usize) -> Result<(), NetError> {
        let flow = self.clients[place].flow;
        let mut answer = [0; Application::ANSWER_BYTES as usize];
        loop {
            let arrived = match receive(&self.clients[place].dns, &mut answer) {
                Ok(received) if received.len == answer.len() => received.real_ns,
                Ok(_) => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if is_like_loss(&error) => continue,
                Err(error) => return Err(self.error(flow, "receiving an answer", &error)),
            };
            let now = self.board.plan.clock.of_stamp(arrived);
            let number = u64::from_be_bytes(std::array::from_fn(|byte| answer[byte]));
            self.board.delivered(flow, answer.len() as u64, now);
            let headers = self.board.ip_header(flow) + UDP_HEADER_BYTES;
            self.board.arrived_on_wire(flow, (headers + Application::ANSWER_BYTES).into());
            self.tell(place, |client, actions| client.on_answer(number, now, actions))?;
        }
    }

    /// Closes a connection.
    fn forget(&mut self, token: u64) -> Result<(), NetError> {
        let Some(one) = self.connections.remove(&token) else { return Ok(()) };
        if one.phase == Phase::Connecting {
            self.leave_gate();
        }
        let flow = self.clients[one.client].flow;
        self.epoll.remove(&one.socket).map_err(|error| self.error(flow, "epoll", &error))
    }

    fn leave_gate(&self) {
        // It set no switches that would have to be put back.
        let _ = self.board.gate.leave(|| Ok::<_, NetError>(()));
    }

    fn error(&self, flow: usize, what: &str, error: &io::Error) -> NetError {
        NetError::io(format_args!("flow `{}`: {what}", self.board.spec(flow).name), error)
    }
}

/// Port at which servers answer the connections of applications.
pub(super) const PORT: u16 = 8_000;
/// Marks the tokens of sockets of DNS queries.
const DNS: u64 = 1 << 63;
/// How soon the end of the run is noticed.
const MAX_WAIT: Duration = Duration::from_millis(20);
/// How often a connection that waits for the handshakes of others looks.
const GATE_POLL: Duration = Duration::from_millis(1);
const EVENTS: usize = 256;
const UDP_HEADER_BYTES: u32 = 8;
/// Taken from the kernel at once. Nothing is copied.
const MAX_READ_BYTES: usize = 4 << 20;
