//! Clients of applications at work.

use std::collections::{BTreeMap, VecDeque};
use std::io;

use socket2::Socket;
use weir_core::{Duration, Time};
use weir_scenario::{Action, Client, TransferRow};

use crate::clock::Clock;
use crate::error::NetError;
use crate::probes::is_like_loss;
use crate::sys::epoll::{Epoll, Events, Interest, Ready};

/// What is particular to a world with real sockets. Flows are known by their numbers.
pub trait ApplicationWorld {
    /// What it keeps of a connection.
    type Connection;

    /// The run's clock.
    fn clock(&self) -> Clock;

    /// A TCP socket for a connection of `flow`, which does not block and is not connected.
    ///
    /// # Errors
    /// If the system has none to give.
    fn open(&mut self, flow: usize) -> io::Result<(Socket, Self::Connection)>;

    /// Begins to connect; false if handshakes of others are in the way.
    ///
    /// # Errors
    /// If it cannot.
    fn connect(&mut self, flow: usize, socket: &Socket) -> io::Result<bool>;

    /// A handshake is done, or given up.
    fn leaves_handshake(&mut self);

    /// The bytes that ask for `response` bytes, as many as `request` where their words fit.
    fn request(
        &mut self,
        flow: usize,
        connection: &mut Self::Connection,
        request: u64,
        response: u64,
    ) -> Vec<u8>;

    /// Takes from a connection what has come, and says how many bytes of answers it is.
    ///
    /// # Errors
    /// If there is nothing (`WouldBlock`), or nothing more (`UnexpectedEof`), or the connection broke.
    fn receive(
        &mut self,
        flow: usize,
        connection: &mut Self::Connection,
        socket: &Socket,
    ) -> io::Result<u64>;

    /// Sends the DNS query `number`.
    ///
    /// # Errors
    /// If the kernel refuses, other than by losing it.
    fn query(&mut self, flow: usize, number: u64) -> io::Result<()>;

    /// Takes a datagram: which query it answers, if it does, and when it came.
    ///
    /// # Errors
    /// If there is nothing (`WouldBlock`), or the socket is of no use.
    fn answer(&mut self, flow: usize) -> io::Result<Option<(u64, Time)>>;

    /// Something that an application asked for has ended.
    fn ended(&mut self, row: TransferRow);

    /// Something failed, and `what`: the connection is given up, or the run if this is an error.
    ///
    /// # Errors
    /// If the run is to end.
    fn failed(&mut self, flow: usize, what: &str, error: io::Error) -> Result<(), NetError>;
}

/// The clients of all applications of a world.
pub struct ApplicationDriver<W: ApplicationWorld> {
    /// The world.
    pub world: W,
    epoll: Epoll,
    events: Events,
    clients: Vec<Running>,
    /// Open connections by number.
    connections: BTreeMap<u64, Connection<W::Connection>>,
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
}

/// A connection of a client.
struct Connection<C> {
    /// Place of its client.
    client: usize,
    /// Its number as the client has it.
    number: u32,
    socket: Socket,
    phase: Phase,
    /// What is still to be sent.
    unsent: Vec<u8>,
    own: C,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Waiting,
    Connecting,
    Open,
}

impl<W: ApplicationWorld> ApplicationDriver<W> {
    /// A driver without clients.
    ///
    /// # Errors
    /// If the system has no epoll to give.
    pub fn new(world: W) -> io::Result<Self> {
        Ok(Self {
            world,
            epoll: Epoll::new()?,
            events: Events::new(EVENTS),
            clients: Vec::new(),
            connections: BTreeMap::new(),
            opened: 0,
            to_open: VecDeque::new(),
            actions: Vec::new(),
        })
    }

    /// Adds the client of `flow`, which stops at `stop`, and the socket from which its DNS queries leave.
    ///
    /// # Errors
    /// If the kernel refuses to watch the socket.
    pub fn add(&mut self, flow: usize, client: Client, stop: Time, dns: &Socket) -> io::Result<()> {
        self.epoll.add(dns, DNS | self.clients.len() as u64, Interest::READ)?;
        self.clients.push(Running { flow, client, stop });
        Ok(())
    }

    /// Does what is due, then what sockets are ready for within `most`.
    ///
    /// # Errors
    /// If the run is to end.
    pub fn go_on(&mut self, most: Duration) -> Result<(), NetError> {
        self.act_in_time()?;
        let wait = self.until_next().min(most);
        let ready: Vec<_> = self
            .epoll
            .wait(&mut self.events, wait)
            .map_err(|error| NetError::io("epoll", &error))?
            .collect();
        ready.into_iter().try_for_each(|one| self.serve(one))
    }

    /// Stops all clients: what is under way is cut off.
    ///
    /// # Errors
    /// If the run is to end.
    pub fn stop_all(&mut self) -> Result<(), NetError> {
        (0..self.clients.len()).try_for_each(|place| self.stop(place))
    }

    /// Does what is due.
    fn act_in_time(&mut self) -> Result<(), NetError> {
        let clock = self.world.clock();
        for place in 0..self.clients.len() {
            let Running { client, stop, .. } = &self.clients[place];
            if !client.is_stopped() && clock.until(*stop).is_zero() {
                self.stop(place)?;
            } else if client.next_due().is_some_and(|due| clock.until(due).is_zero()) {
                let now = clock.now();
                self.tell(place, |one, actions| one.on_due(now, actions))?;
            }
        }
        while let Some(connection) = self.to_open.pop_front() {
            if !self.connect(connection)? {
                self.to_open.push_front(connection);
                return Ok(());
            }
        }
        Ok(())
    }

    fn until_next(&self) -> Duration {
        if !self.to_open.is_empty() {
            return GATE_POLL;
        }
        let clock = self.world.clock();
        let running = self.clients.iter().filter(|one| !one.client.is_stopped());
        let times = running.flat_map(|one| [Some(one.stop), one.client.next_due()]);
        times.flatten().map(|at| clock.until(at)).min().unwrap_or(Duration::MAX)
    }

    fn stop(&mut self, place: usize) -> Result<(), NetError> {
        let now = self.world.clock().now();
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
            self.world.ended(row);
        }
        Ok(())
    }

    fn act(&mut self, place: usize, action: Action) -> Result<(), NetError> {
        let flow = self.clients[place].flow;
        match action {
            Action::Open { connection } => self
                .open(place, connection)
                .or_else(|error| self.world.failed(flow, "opening a connection", error)),
            Action::Ask { connection, request, response } => {
                let Some(token) = self.token(place, connection) else { return Ok(()) };
                let one = self.connections.get_mut(&token).expect("it was just found");
                one.unsent.extend(self.world.request(flow, &mut one.own, request, response));
                if one.phase == Phase::Open { self.send(token) } else { Ok(()) }
            }
            Action::Close { connection } => {
                let Some(token) = self.token(place, connection) else { return Ok(()) };
                self.forget(token)
            }
            Action::Query { number } => match self.world.query(flow, number) {
                Err(error) if !is_like_loss(&error) => {
                    self.world.failed(flow, "sending a query", error)
                }
                _ => Ok(()),
            },
        }
    }

    /// The connection that a client calls by that number.
    fn token(&self, place: usize, number: u32) -> Option<u64> {
        let mut connections = self.connections.iter();
        let found = connections.find(|(_, one)| one.client == place && one.number == number);
        found.map(|(token, _)| *token)
    }

    fn open(&mut self, place: usize, number: u32) -> io::Result<()> {
        let (socket, own) = self.world.open(self.clients[place].flow)?;
        // As browsers do: a request waits for no acknowledgement.
        socket.set_tcp_nodelay(true)?;
        let token = self.opened;
        self.opened += 1;
        self.epoll.add(&socket, token, Interest::NONE)?;
        let (phase, unsent) = (Phase::Waiting, Vec::new());
        let one = Connection { client: place, number, socket, phase, unsent, own };
        self.connections.insert(token, one);
        self.to_open.push_back(token);
        Ok(())
    }

    /// Opens a connection, unless handshakes of others are in the way.
    fn connect(&mut self, token: u64) -> Result<bool, NetError> {
        let Some(one) = self.connections.get_mut(&token) else { return Ok(true) };
        let flow = self.clients[one.client].flow;
        let begun = self.world.connect(flow, &one.socket).and_then(|begun| {
            if begun {
                one.phase = Phase::Connecting;
                self.epoll.modify(&one.socket, token, Interest::BOTH)?;
            }
            Ok(begun)
        });
        match begun {
            Ok(begun) => Ok(begun),
            Err(error) => self.give_up(token, "opening a connection", error).map(|()| true),
        }
    }

    /// Something happened to a socket.
    fn serve(&mut self, ready: Ready) -> Result<(), NetError> {
        if ready.token & DNS != 0 {
            return self.hear_answers((ready.token & !DNS) as usize);
        }
        let token = ready.token;
        let Some(one) = self.connections.get_mut(&token) else { return Ok(()) };
        if ready.broken()
            && let Ok(Some(error)) = one.socket.take_error()
        {
            return self.give_up(token, "its connection", error);
        }
        if one.phase == Phase::Connecting && ready.writable() {
            one.phase = Phase::Open;
            self.world.leaves_handshake();
        }
        if ready.writable() {
            self.send(token)?;
        }
        if ready.readable() { self.receive(token) } else { Ok(()) }
    }

    /// Sends what waits, as far as the socket takes it.
    fn send(&mut self, token: u64) -> Result<(), NetError> {
        let Some(one) = self.connections.get_mut(&token) else { return Ok(()) };
        if !one.unsent.is_empty() {
            match one.socket.send(&one.unsent) {
                Ok(sent) => drop(one.unsent.drain(..sent)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return self.give_up(token, "sending a request", error),
            }
        }
        let interest = if one.unsent.is_empty() { Interest::READ } else { Interest::BOTH };
        match self.epoll.modify(&one.socket, token, interest) {
            Ok(()) => Ok(()),
            Err(error) => self.give_up(token, "epoll", error),
        }
    }

    fn receive(&mut self, token: u64) -> Result<(), NetError> {
        let Some(one) = self.connections.get_mut(&token) else { return Ok(()) };
        let (place, number) = (one.client, one.number);
        let flow = self.clients[place].flow;
        let bytes = match self.world.receive(flow, &mut one.own, &one.socket) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return self.give_up(token, "its connection", error),
        };
        let now = self.world.clock().now();
        self.tell(place, |client, actions| client.on_received(number, bytes, now, actions))
    }

    fn hear_answers(&mut self, place: usize) -> Result<(), NetError> {
        let flow = self.clients[place].flow;
        loop {
            match self.world.answer(flow) {
                Ok(Some((number, arrived))) => self.tell(place, |client, actions| {
                    client.on_answer(number, arrived, actions);
                })?,
                Ok(None) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if is_like_loss(&error) => {}
                Err(error) => return self.world.failed(flow, "receiving an answer", error),
            }
        }
    }

    /// Closes a connection that failed.
    fn give_up(&mut self, token: u64, what: &str, error: io::Error) -> Result<(), NetError> {
        let Some(one) = self.connections.get(&token) else { return Ok(()) };
        let flow = self.clients[one.client].flow;
        self.forget(token)?;
        self.world.failed(flow, what, error)
    }

    /// Closes a connection.
    fn forget(&mut self, token: u64) -> Result<(), NetError> {
        let Some(one) = self.connections.remove(&token) else { return Ok(()) };
        self.to_open.retain(|&waiting| waiting != token);
        if one.phase == Phase::Connecting {
            self.world.leaves_handshake();
        }
        let flow = self.clients[one.client].flow;
        self.epoll.remove(&one.socket).or_else(|error| self.world.failed(flow, "epoll", error))
    }
}

/// Marks the tokens of sockets of DNS queries.
const DNS: u64 = 1 << 63;
/// How often a connection that waits for the handshakes of others looks.
const GATE_POLL: Duration = Duration::from_millis(1);
const EVENTS: usize = 256;
