//! Servers of applications, all on one thread: they answer every request with as many bytes as it asks for.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use socket2::{SockAddr, Socket};
use weir_core::{Duration, End};
use weir_scenario::Application;

use super::application::PORT;

use super::board::Board;
use super::sockets::{listening, set_up};
use crate::error::NetError;
use crate::load::application::{parse, response_head};
use crate::probes::{is_like_loss, shared_udp_socket};
use crate::sys::epoll::{Epoll, Events, Interest, Ready};
use crate::sys::message;

/// The servers of all applications.
pub(crate) struct ApplicationServer {
    board: Arc<Board>,
    epoll: Epoll,
    listeners: Vec<Socket>,
    /// Sockets of DNS, with their flows.
    dns: Vec<(usize, Socket)>,
    connections: BTreeMap<u64, Connection>,
    accepted: u64,
    /// Content of all answers.
    zeros: Vec<u8>,
}

struct Connection {
    socket: Socket,
    /// Whether it has the options of its flow, which the first request tells.
    is_set_up: bool,
    heard: Vec<u8>,
    /// Answers that are still to be sent: the rest of the head, and bytes behind it.
    answers: VecDeque<(Vec<u8>, u64)>,
}

impl ApplicationServer {
    /// Opens all sockets that listen, where the calling thread is.
    pub fn new(board: &Arc<Board>) -> Result<Self, NetError> {
        let epoll = Epoll::new().map_err(|error| NetError::io("epoll", &error))?;
        let mut server = Self {
            board: Arc::clone(board),
            epoll,
            listeners: Vec::new(),
            dns: Vec::new(),
            connections: BTreeMap::new(),
            accepted: 0,
            zeros: vec![0; WRITE_BYTES],
        };
        let mut places = BTreeSet::new();
        for flow in 0..board.flows.len() {
            let Some(application) = &board.spec(flow).application else { continue };
            let error = |error| server_error(board, flow, "opening its server's socket", &error);
            if application.uses_tcp() {
                places.insert(board.end(flow, End::Server).ip());
            }
            server.open_dns(flow).map_err(error)?;
        }
        for place in places {
            let address = SocketAddr::new(place, PORT);
            server
                .listen(address)
                .map_err(|error| NetError::io(format_args!("listening on {address}"), &error))?;
        }
        Ok(server)
    }

    fn open_dns(&mut self, flow: usize) -> io::Result<()> {
        let (server, client) =
            (self.board.end(flow, End::Server), self.board.end(flow, End::Client));
        let socket = shared_udp_socket(server, self.board.spec(flow).dscp)?;
        socket.connect(&SockAddr::from(client))?;
        self.epoll.add(&socket, DNS | self.dns.len() as u64, Interest::READ)?;
        self.dns.push((flow, socket));
        Ok(())
    }

    fn listen(&mut self, address: SocketAddr) -> io::Result<()> {
        let socket = listening(address, false)?;
        self.epoll.add(&socket, LISTENER | self.listeners.len() as u64, Interest::READ)?;
        self.listeners.push(socket);
        Ok(())
    }

    /// Answers until the run is over.
    pub fn run(mut self) -> Result<(), NetError> {
        let mut events = Events::new(EVENTS);
        while !self.board.plan.control.ends_may_close() {
            let ready: Vec<_> = self
                .epoll
                .wait(&mut events, MAX_WAIT)
                .map_err(|error| NetError::io("epoll", &error))?
                .collect();
            for one in ready {
                if one.token & DNS != 0 {
                    self.answer_queries((one.token & !DNS) as usize)?;
                } else if one.token & LISTENER != 0 {
                    self.accept((one.token & !LISTENER) as usize)?;
                } else if self.serve(one)?.is_none() {
                    // Its client has closed it, with or without all that it asked for.
                    self.connections.remove(&one.token);
                }
            }
        }
        Ok(())
    }

    fn accept(&mut self, listener: usize) -> Result<(), NetError> {
        loop {
            let socket = match self.listeners[listener].accept() {
                Ok((socket, _)) => socket,
                Err(error) if is_passing(&error) => return Ok(()),
                Err(error) => return Err(NetError::io("accepting an application", &error)),
            };
            let token = self.accepted;
            let added = socket
                .set_nonblocking(true)
                .and_then(|()| self.epoll.add(&socket, token, Interest::READ));
            added.map_err(|error| NetError::io("accepting an application", &error))?;
            self.accepted += 1;
            let (heard, answers) = (Vec::new(), VecDeque::new());
            self.connections.insert(token, Connection { socket, is_set_up: false, heard, answers });
        }
    }

    /// Something happened to a connection; `None` if it is over.
    fn serve(&mut self, ready: Ready) -> Result<Option<()>, NetError> {
        let Some(one) = self.connections.get_mut(&ready.token) else { return Ok(Some(())) };
        if ready.readable() && !one.hear(&self.board)? {
            return Ok(None);
        }
        if !one.send(&self.zeros) {
            return Ok(None);
        }
        let interest = if one.answers.is_empty() { Interest::READ } else { Interest::BOTH };
        let watched = self.epoll.modify(&one.socket, ready.token, interest);
        watched.map(Some).map_err(|error| NetError::io("epoll", &error))
    }

    fn answer_queries(&mut self, place: usize) -> Result<(), NetError> {
        let (flow, socket) = &self.dns[place];
        let mut query = [0; Application::QUERY_BYTES as usize];
        loop {
            match message::receive(socket, &mut query) {
                Ok(received) if received.len == query.len() => {}
                Ok(_) => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if is_like_loss(&error) => continue,
                Err(error) => {
                    return Err(server_error(&self.board, *flow, "receiving a query", &error));
                }
            }
            let mut answer = [0; Application::ANSWER_BYTES as usize];
            answer[..8].copy_from_slice(&query[..8]);
            match socket.send(&answer) {
                Ok(_) => {}
                Err(error) if is_like_loss(&error) => {}
                Err(error) => {
                    return Err(server_error(&self.board, *flow, "answering a query", &error));
                }
            }
        }
    }
}

impl Connection {
    /// Takes in what has come; false at the connection's end.
    fn hear(&mut self, board: &Board) -> Result<bool, NetError> {
        let mut buffer = [0; READ_BYTES];
        match io::Read::read(&mut &self.socket, &mut buffer) {
            Ok(0) => return Ok(false),
            Ok(bytes) => self.heard.extend(&buffer[..bytes]),
            Err(error) if is_passing(&error) => return Ok(true),
            // The client closes without hearing the rest.
            Err(_) => return Ok(false),
        }
        while let Ok(Some((flow, response, len))) = parse(&self.heard) {
            self.heard.drain(..len);
            if flow >= board.flows.len() {
                return Ok(false);
            }
            if !self.is_set_up {
                set_up(&self.socket, board.spec(flow), true)?;
                // As web servers do: the last packet of an answer waits for no acknowledgement.
                let at_once = self.socket.set_tcp_nodelay(true);
                at_once.map_err(|error| server_error(board, flow, "TCP_NODELAY", &error))?;
                self.is_set_up = true;
            }
            self.answers.push_back(response_head(response));
        }
        Ok(parse(&self.heard).is_ok())
    }

    /// Sends answers as far as the socket takes them; false if the client is gone.
    fn send(&mut self, zeros: &[u8]) -> bool {
        while let Some((head, body)) = self.answers.front_mut() {
            let part = if head.is_empty() {
                &zeros[..usize::try_from(*body).unwrap_or(usize::MAX).min(zeros.len())]
            } else {
                &head[..]
            };
            let sent = match self.socket.send(part) {
                Ok(sent) => sent,
                Err(error) => return is_passing(&error),
            };
            if head.is_empty() {
                *body -= sent as u64;
            } else {
                head.drain(..sent);
            }
            if head.is_empty() && *body == 0 {
                self.answers.pop_front();
            }
        }
        true
    }
}

fn server_error(board: &Board, flow: usize, what: &str, error: &io::Error) -> NetError {
    NetError::io(format_args!("flow `{}`: {what}", board.spec(flow).name), error)
}

fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
        || error.kind() == io::ErrorKind::ConnectionAborted
}

/// Marks the tokens of sockets of DNS.
const DNS: u64 = 1 << 63;
/// Marks the tokens of listeners.
const LISTENER: u64 = 1 << 62;
/// How soon the end of the run is noticed.
const MAX_WAIT: Duration = Duration::from_millis(20);
const EVENTS: usize = 256;
/// Requests are short.
const READ_BYTES: usize = 16 << 10;
/// Handed to the kernel at once: more than a socket takes that holds little.
const WRITE_BYTES: usize = 256 << 10;
