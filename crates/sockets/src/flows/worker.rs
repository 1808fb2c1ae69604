//! All ends of TCP loads at one side, on one thread.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::net::{Shutdown, SocketAddr};
use std::sync::Arc;

use socket2::{SockAddr, Socket};
use weir_core::{Duration, End, Time};

use super::board::Board;
use super::handshake::{Offer, Switches};
use super::sockets::{bound, listening, set_up};
use crate::error::NetError;
use crate::load::{LoadEnd, LoadPoll, LoadStep, WRITE_BYTES};
use crate::sys::epoll::{Events, Interest, Ready};
use crate::sys::option;

/// The ends of all loads at one side.
pub(crate) struct Worker {
    side: End,
    board: Arc<Board>,
    poll: LoadPoll,
    switches: Option<Switches>,
    listeners: Vec<(SocketAddr, Socket)>,
    /// By flow.
    ends: BTreeMap<usize, FlowEnd>,
    agenda: VecDeque<(Time, Action)>,
    /// Loads that are due, in order: the first may have to wait for handshakes of others.
    to_open: VecDeque<usize>,
    /// Bytes that senders send, over and over.
    data: Vec<u8>,
}

/// One end of a connection.
struct FlowEnd {
    load: LoadEnd,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Bound, and not connected yet.
    Waiting,
    Connecting,
    Open,
    /// Nothing more to hand in or to read.
    Done,
}

#[derive(Clone, Copy, Debug)]
enum Action {
    Open(usize),
    Stop(usize),
}

impl Worker {
    /// Opens all sockets that can be opened before the start, where the calling thread is.
    pub fn new(side: End, board: Arc<Board>) -> Result<Self, NetError> {
        let poll =
            LoadPoll::new(board.plan.clock).map_err(|error| NetError::io("epoll", &error))?;
        let tcp: Vec<_> = (0..board.flows.len()).filter(|&flow| board.is_tcp(flow)).collect();
        let with_dscp = tcp.iter().any(|&flow| board.spec(flow).dscp != 0);
        let switches = if tcp.is_empty() { None } else { Some(Switches::open(with_dscp)?) };
        let mut worker = Self {
            side,
            board,
            poll,
            switches,
            listeners: Vec::new(),
            ends: BTreeMap::new(),
            agenda: VecDeque::new(),
            to_open: VecDeque::new(),
            data: vec![0; WRITE_BYTES],
        };
        worker.listen()?;
        worker.prepare()?;
        worker.plan();
        Ok(worker)
    }

    /// Works until the run is over, then closes everything.
    pub fn run(mut self) -> Result<(), NetError> {
        let mut events = LoadPoll::events();
        while !self.board.plan.control.ends_may_close() {
            let timeout = self.act()?;
            self.wait(&mut events, timeout)?;
        }
        self.close(&mut events)
    }

    fn listen(&mut self) -> Result<(), NetError> {
        let board = Arc::clone(&self.board);
        let flows = (0..board.flows.len()).filter(|&flow| board.is_tcp(flow));
        let (opened, accepted): (Vec<_>, Vec<_>) =
            flows.partition(|&flow| board.spec(flow).opener() == self.side);
        let opened: BTreeSet<_> = opened.iter().map(|&flow| board.end(flow, self.side)).collect();
        let addresses: BTreeMap<_, _> =
            accepted.iter().rev().map(|&flow| (board.end(flow, self.side), flow)).collect();
        for (address, flow) in addresses {
            let listener = listening(address, opened.contains(&address))
                .map_err(|error| self.error(flow, &format!("listening on {address}"), &error))?;
            let token = LISTENER | self.listeners.len() as u64;
            self.poll
                .epoll
                .add(&listener, token, Interest::READ)
                .map_err(|error| self.error(flow, "epoll", &error))?;
            self.listeners.push((address, listener));
        }
        Ok(())
    }

    /// Binds the ends that will open connections, so that nothing but that is left to do at the start.
    fn prepare(&mut self) -> Result<(), NetError> {
        let board = Arc::clone(&self.board);
        let listening: BTreeSet<_> = self.listeners.iter().map(|(address, _)| *address).collect();
        for flow in 0..board.flows.len() {
            if !board.is_tcp(flow) || board.spec(flow).opener() != self.side {
                continue;
            }
            let address = board.end(flow, self.side);
            let socket = bound(address, listening.contains(&address))
                .map_err(|error| self.error(flow, &format!("binding {address}"), &error))?;
            self.put(flow, socket, Phase::Waiting)?;
        }
        Ok(())
    }

    fn plan(&mut self) {
        let mut agenda = Vec::new();
        let flows = self.board.flows.iter().enumerate();
        for (flow, state) in flows.filter(|&(flow, _)| self.board.is_tcp(flow)) {
            let spec = self.board.spec(flow);
            if spec.opener() == self.side {
                agenda.push((state.start, Action::Open(flow)));
            }
            if spec.sender() == self.side {
                agenda.push((state.stop, Action::Stop(flow)));
            }
        }
        // Stable: of what is due at once, loads come in order, and each starts before it stops.
        agenda.sort_by_key(|(at, _)| *at);
        self.agenda = agenda.into();
    }

    /// Does what is due, and says how long nothing will be.
    fn act(&mut self) -> Result<Duration, NetError> {
        let clock = self.board.plan.clock;
        while let Some(&(at, action)) = self.agenda.front()
            && clock.until(at).is_zero()
        {
            self.agenda.pop_front();
            match action {
                Action::Open(flow) => self.to_open.push_back(flow),
                Action::Stop(flow) => self.stop(flow),
            }
        }
        while let Some(&flow) = self.to_open.front() {
            if !self.open(flow)? {
                return Ok(GATE_POLL);
            }
            self.to_open.pop_front();
        }
        let next = self.agenda.front().map(|&(at, _)| clock.until(at));
        Ok(next.unwrap_or(MAX_WAIT).min(MAX_WAIT))
    }

    fn wait(&mut self, events: &mut Events, timeout: Duration) -> Result<(), NetError> {
        let epoll = |error| NetError::io("epoll", &error);
        for ready in self.poll.wait(events, timeout).map_err(epoll)? {
            if ready.token & LISTENER != 0 {
                self.accept((ready.token & !LISTENER) as usize)?;
            } else {
                self.serve(ready)?;
            }
        }
        Ok(())
    }

    /// Opens a connection, unless handshakes of others are in the way.
    fn open(&mut self, flow: usize) -> Result<bool, NetError> {
        let end = self.ends.get_mut(&flow).expect("it was prepared");
        if end.phase != Phase::Waiting {
            return Ok(true);
        }
        let offer = Offer::of(&self.board.spec(flow).tcp.overrides);
        if !self.board.gate.enter(self.side, offer) {
            return Ok(false);
        }
        if let Some(switches) = &mut self.switches {
            switches.set(offer)?;
        }
        let socket = Arc::clone(end.load.socket());
        let peer = self.board.end(flow, self.side.other());
        end.phase = Phase::Connecting;
        match socket.connect(&SockAddr::from(peer)) {
            Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => {
                self.leave_gate()?;
                self.lose(flow, &error);
                return Ok(true);
            }
            _ => {}
        }
        self.board.show(flow, self.side, &socket);
        self.watch(flow, Interest::BOTH, true)?;
        Ok(true)
    }

    fn leave_gate(&mut self) -> Result<(), NetError> {
        let Self { board, switches, .. } = self;
        board.gate.leave(|| switches.as_mut().map_or(Ok(()), Switches::reset))
    }

    fn accept(&mut self, listener: usize) -> Result<(), NetError> {
        loop {
            let (local, socket) = &self.listeners[listener];
            let (socket, peer) = match socket.accept() {
                Ok(accepted) => accepted,
                Err(error) if is_passing(&error) => return Ok(()),
                Err(error) => {
                    return Err(NetError::io(format_args!("accepting on {local}"), &error));
                }
            };
            // A stranger's connection is closed by being dropped.
            let owner = peer.as_socket().and_then(|peer| self.board.owner(self.side, *local, peer));
            let Some(flow) = owner.filter(|flow| !self.ends.contains_key(flow)) else { continue };
            let nonblocking = socket.set_nonblocking(true);
            nonblocking.map_err(|error| self.error(flow, "accepting", &error))?;
            let socket = self.put(flow, socket, Phase::Open)?;
            self.board.show(flow, self.side, &socket);
            let interest = self.ends[&flow].load.interest();
            self.watch(flow, interest, true)?;
            let state = &self.board.flows[flow];
            if self.board.spec(flow).sender() == self.side
                && self.board.plan.clock.now() >= state.stop
            {
                self.stop(flow);
            }
        }
    }

    fn put(&mut self, flow: usize, socket: Socket, phase: Phase) -> Result<Arc<Socket>, NetError> {
        let spec = self.board.spec(flow);
        let sends = spec.sender() == self.side;
        set_up(&socket, spec, sends)?;
        let socket = Arc::new(socket);
        let load = if sends {
            LoadEnd::sender(Arc::clone(&socket), spec.bytes)
        } else {
            let acknowledge_at_once = spec.tcp.overrides.delayed_ack == Some(false);
            LoadEnd::receiver(Arc::clone(&socket), acknowledge_at_once)
        };
        self.ends.insert(flow, FlowEnd { load, phase });
        Ok(socket)
    }

    /// Something happened to an end.
    fn serve(&mut self, ready: Ready) -> Result<(), NetError> {
        let flow = ready.token as usize;
        let Some(end) = self.ends.get_mut(&flow) else { return Ok(()) };
        if ready.broken()
            && let Ok(Some(error)) = end.load.socket().take_error()
        {
            if end.phase == Phase::Connecting {
                self.leave_gate()?;
            }
            self.lose(flow, &error);
            return Ok(());
        }
        if end.phase == Phase::Connecting && ready.writable() {
            end.phase = Phase::Open;
            self.leave_gate()?;
            let interest = self.ends[&flow].load.interest();
            self.watch(flow, interest, false)?;
        }
        match self.go_on(flow, ready) {
            Err(error) if !is_passing(&error) => self.lose(flow, &error),
            _ => {}
        }
        Ok(())
    }

    /// Sends or reads once, if the end still does and its socket is ready.
    fn go_on(&mut self, flow: usize, ready: Ready) -> io::Result<()> {
        let end = self.ends.get_mut(&flow).expect("it was just served");
        let works = match end.phase {
            Phase::Open if end.load.sends() => ready.writable(),
            Phase::Open | Phase::Done if !end.load.sends() => ready.readable(),
            _ => false,
        };
        if !works {
            let gone = ready.broken();
            return if gone { self.poll.epoll.remove(&**end.load.socket()) } else { Ok(()) };
        }
        match end.load.go_on(ready, &self.data)? {
            Some(LoadStep::SentAll) => {
                end.phase = Phase::Done;
                // Goes out behind the last byte.
                end.load.socket().shutdown(Shutdown::Write)?;
                self.poll.epoll.modify(&**end.load.socket(), flow as u64, Interest::NONE)
            }
            Some(LoadStep::Received(bytes)) => {
                self.board.delivered(flow, bytes, self.board.plan.clock.now());
                Ok(())
            }
            Some(LoadStep::Ended) => {
                end.phase = Phase::Done;
                self.poll.epoll.remove(&**end.load.socket())
            }
            Some(LoadStep::Sent(_)) | None => Ok(()),
        }
    }

    /// Hands in no more. What the socket holds still goes out, and the connection stays.
    fn stop(&mut self, flow: usize) {
        let Some(end) = self.ends.get_mut(&flow) else { return };
        end.load.stop();
        match end.phase {
            Phase::Open => {
                end.phase = Phase::Done;
                let socket = &**end.load.socket();
                let _ = self.poll.epoll.modify(socket, flow as u64, Interest::NONE);
            }
            // A handshake under way completes, and nothing follows.
            Phase::Connecting | Phase::Waiting | Phase::Done => {}
        }
    }

    /// A connection broke: the run goes on, and ends with this error.
    fn lose(&mut self, flow: usize, error: &io::Error) {
        let Some(end) = self.ends.get_mut(&flow) else { return };
        end.phase = Phase::Done;
        let _ = self.poll.epoll.remove(&**end.load.socket());
        let control = &self.board.plan.control;
        if !control.ends_may_close() {
            let peer = self.board.end(flow, self.side.other());
            control.fail(self.error(flow, &format!("connection to {peer}"), error));
        }
    }

    /// Ends all connections by one reset each: senders first, then receivers once they have heard of it,
    /// so that data under way is not answered by resets.
    fn close(mut self, events: &mut Events) -> Result<(), NetError> {
        for end in self.ends.values().filter(|end| end.load.sends()) {
            // One that never was connected has nothing to end.
            let _ = option::abort(end.load.socket());
        }
        self.ends.retain(|_, end| !end.load.sends());
        let clock = self.board.plan.clock;
        let give_up = clock.now() + GRACE;
        while self.ends.values().any(|end| end.phase == Phase::Open) && clock.now() < give_up {
            self.wait(events, GATE_POLL)?;
        }
        for end in self.ends.values() {
            let _ = option::abort(end.load.socket());
        }
        self.switches.as_mut().map_or(Ok(()), Switches::put_back)
    }

    fn watch(&self, flow: usize, interest: Interest, first: bool) -> Result<(), NetError> {
        let socket = &**self.ends[&flow].load.socket();
        let token = flow as u64;
        let result = if first {
            self.poll.epoll.add(socket, token, interest)
        } else {
            self.poll.epoll.modify(socket, token, interest)
        };
        result.map_err(|error| self.error(flow, "epoll", &error))
    }

    fn error(&self, flow: usize, what: &str, error: &io::Error) -> NetError {
        NetError::io(format_args!("flow `{}`: {what}", self.board.spec(flow).name), error)
    }
}

/// Whether trying again later is all there is to do.
fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
        || error.kind() == io::ErrorKind::ConnectionAborted
}

/// Marks the tokens of listeners.
const LISTENER: u64 = 1 << 63;
/// How soon an end that is asked to close does.
const MAX_WAIT: Duration = Duration::from_millis(20);
/// How often a load that waits for the handshakes of others looks.
const GATE_POLL: Duration = Duration::from_millis(1);
/// How long receivers wait for what is under way when all is over.
const GRACE: Duration = Duration::from_millis(200);
