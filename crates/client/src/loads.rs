//! This end of all TCP loads, on one thread.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::net::{Shutdown, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender};

use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use weir_core::{Duration, Time};
use weir_scenario::{TcpRow, ThroughputRow};
use weir_sockets::sys::epoll::{Epoll, Events, Interest, Ready};
use weir_sockets::sys::option;
use weir_sockets::{Clock, TcpInfo};
use weir_speedtest::protocol::weir::{Direction, FLOW, FLOW_UPGRADE, Token};

/// A load that the server is ready for.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    /// Number of the flow in the record.
    pub flow: u32,
    pub direction: Direction,
    pub ticket: Token,
    /// Congestion control of this end; the system's if `None`.
    pub congestion: Option<String>,
    pub dscp: u8,
    pub start: Time,
    pub stop: Time,
    /// What an upload sends at most.
    pub bytes: Option<u64>,
}

/// Events that the loads' thread reports.
#[derive(Clone, Debug)]
pub(crate) enum LoadEvent {
    /// A load has its connection, and this end this congestion control.
    Running { flow: u32, congestion: String },
    /// Bytes of downloads that arrived here, and segments with data, in order or not.
    Throughput(ThroughputRow, u32),
    /// The senders of uploads.
    Tcp(TcpRow),
    /// A connection could not be had, or broke before its time.
    Failed { flow: u32, reason: String },
    /// At the end, one for each load.
    Totals(Totals),
}

/// What this end knows of a load at its end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Totals {
    pub flow: u32,
    pub first_data: Option<Time>,
    /// When the last byte of a download that ended by itself came.
    pub ended: Option<Time>,
    pub delivered: u64,
    pub info: Option<TcpInfo>,
}

/// Configuration of all loads: their server, and how often they are sampled.
pub(crate) struct LoadConfig {
    pub clock: Clock,
    pub server: SocketAddr,
    pub authority: String,
    pub throughput_ns: u64,
    pub tcp_ns: u64,
    pub ip_header: u32,
}

/// All loads.
pub(crate) struct Loads {
    config: LoadConfig,
    orders: Receiver<Order>,
    events: Sender<LoadEvent>,
    epoll: Epoll,
    loads: BTreeMap<u32, Load>,
    data: Vec<u8>,
}

struct Load {
    order: Order,
    socket: Option<Socket>,
    phase: Phase,
    /// What is left of the request for the connection, or what came of its answer.
    head: Vec<u8>,
    left: u64,
    delivered: u64,
    /// Delivered bytes and bytes on the wire at the last sample.
    seen: (u64, u64),
    seen_segments: u32,
    /// What the kernel told before the connection was broken off.
    last_info: Option<TcpInfo>,
    first_data: Option<Time>,
    last_data: Option<Time>,
    ended: Option<Time>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Waiting,
    Connecting,
    /// The answer to the request for the connection is awaited.
    Asking,
    Running,
    /// Nothing more is handed in; what is under way still arrives.
    Draining,
    Over,
}

impl Loads {
    pub fn new(
        config: LoadConfig,
        orders: Receiver<Order>,
        events: Sender<LoadEvent>,
    ) -> io::Result<Self> {
        // What a line or a tunnel compresses would not be measured.
        let mut data = vec![0; WRITE];
        getrandom::fill(&mut data).map_err(io::Error::other)?;
        Ok(Self { config, orders, events, epoll: Epoll::new()?, loads: BTreeMap::new(), data })
    }

    /// Works until told to stop, then tells the totals.
    pub fn run(mut self, stop: &AtomicBool) -> io::Result<()> {
        let mut events = Events::new(EVENTS);
        let clock = self.config.clock;
        let tick = |period: u64| (period > 0).then(|| Time::from_nanos(period));
        let mut due = [tick(self.config.throughput_ns), tick(self.config.tcp_ns)];
        let (mut woken, mut often) = (clock.now(), false);
        while !stop.load(Ordering::Acquire) {
            self.take_orders();
            let wait = self.act().min(self.sample(&mut due));
            if often {
                std::thread::sleep(std::time::Duration::from_nanos(wait.min(NAP).as_nanos()));
            }
            for ready in self.epoll.wait(&mut events, wait)? {
                self.serve(ready);
            }
            let now = clock.now();
            often = now.since(woken) < NAP;
            woken = now;
        }
        self.finish();
        Ok(())
    }

    fn take_orders(&mut self) {
        while let Ok(order) = self.orders.try_recv() {
            let left = match order.direction {
                Direction::Up => order.bytes.unwrap_or(u64::MAX),
                Direction::Down => 0,
            };
            let load = Load {
                socket: None,
                phase: Phase::Waiting,
                head: Vec::new(),
                left,
                delivered: 0,
                seen: (0, 0),
                seen_segments: 0,
                last_info: None,
                first_data: None,
                last_data: None,
                ended: None,
                order,
            };
            self.loads.insert(load.order.flow, load);
        }
    }

    /// Does what is due, and says how long nothing will be.
    fn act(&mut self) -> Duration {
        let now = self.config.clock.now();
        let mut next = now + MAX_WAIT;
        for flow in self.loads.keys().copied().collect::<Vec<_>>() {
            let load = self.loads.get_mut(&flow).expect("it is one of them");
            let Order { start, stop, .. } = load.order;
            let result = match load.phase {
                Phase::Waiting if now >= start => self.open(flow),
                Phase::Running if now >= stop && load.is_upload() => {
                    load.phase = Phase::Draining;
                    load.hand_in_no_more(&self.epoll)
                }
                Phase::Connecting | Phase::Asking | Phase::Draining | Phase::Running
                    if now >= stop + GRACE =>
                {
                    load.give_up(&self.epoll);
                    Ok(())
                }
                _ => Ok(()),
            };
            self.note(flow, result);
            let after = &self.loads[&flow];
            let due = match after.phase {
                Phase::Waiting => start,
                Phase::Over => continue,
                Phase::Running if after.is_upload() => stop,
                _ => stop + GRACE,
            };
            next = next.min(due);
        }
        self.config.clock.until(next)
    }

    fn open(&mut self, flow: u32) -> io::Result<()> {
        let load = self.loads.get_mut(&flow).expect("it is one of them");
        load.head = format!(
            "GET {FLOW}?ticket={} HTTP/1.1\r\nHost: {}\r\nConnection: Upgrade\r\nUpgrade: {FLOW_UPGRADE}\r\n\r\n",
            load.order.ticket, self.config.authority
        )
        .into_bytes();
        let socket = set_up(&load.order, self.config.server)?;
        match socket.connect(&SockAddr::from(self.config.server)) {
            Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => return Err(error),
            _ => {}
        }
        // A route may name one too (`congctl`), and a socket that connects takes it in place of what it had
        // (`tcp_ca_dst_init` in net/ipv4/tcp_output.c).
        choose_congestion(&load.order, &socket)?;
        self.epoll.add(&socket, u64::from(flow), Interest::BOTH)?;
        load.phase = Phase::Connecting;
        load.socket = Some(socket);
        Ok(())
    }

    fn serve(&mut self, ready: Ready) {
        let flow = ready.token as u32;
        let Some(load) = self.loads.get_mut(&flow) else { return };
        let clock = self.config.clock;
        let asked = load.phase == Phase::Asking;
        let result = load.go_on(ready, &self.epoll, &self.data, || clock.now());
        if asked && load.phase == Phase::Running {
            let name = socket_of(&load.socket).tcp_congestion().unwrap_or_default();
            let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
            let congestion = String::from_utf8_lossy(name).into_owned();
            let _ = self.events.send(LoadEvent::Running { flow, congestion });
        }
        self.note(flow, result);
    }

    /// Ends a load that failed, and tells of it unless its time was over.
    fn note(&mut self, flow: u32, result: io::Result<()>) {
        let Err(error) = result else { return };
        if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) {
            return;
        }
        let now = self.config.clock.now();
        let load = self.loads.get_mut(&flow).expect("it is one of them");
        let early = now < load.order.stop && load.phase != Phase::Draining;
        load.give_up(&self.epoll);
        if early {
            let _ = self.events.send(LoadEvent::Failed { flow, reason: error.to_string() });
        }
    }

    /// Samples what is due, and says how long nothing will be.
    fn sample(&mut self, due: &mut [Option<Time>; 2]) -> Duration {
        let clock = self.config.clock;
        let now = clock.now();
        let periods = [self.config.throughput_ns, self.config.tcp_ns];
        for number in 0..due.len() {
            let Some(at) = due[number].filter(|&at| now >= at) else { continue };
            match number {
                0 => self.throughput(at),
                _ => self.tcp(at),
            }
            let period = periods[number];
            due[number] = Some(Time::from_nanos((now.as_nanos() / period + 1) * period));
        }
        due.iter().flatten().min().map_or(MAX_WAIT, |&at| clock.until(at))
    }

    fn throughput(&mut self, at: Time) {
        let header = self.config.ip_header;
        for load in self.loads.values_mut().filter(|load| !load.is_upload()) {
            if at <= load.order.start {
                continue;
            }
            let wire = load.info().map_or(load.seen.1, |info| info.wire_bytes(header));
            let now = (load.delivered, wire.max(load.seen.1));
            if load.phase == Phase::Over && now == load.seen {
                continue;
            }
            let row = ThroughputRow {
                t: at,
                flow: load.order.flow,
                bytes: now.0 - load.seen.0,
                wire_bytes: now.1 - load.seen.1,
            };
            load.seen = now;
            let segments = load.info().map_or(load.seen_segments, |info| info.received_segments());
            let more = segments.saturating_sub(load.seen_segments);
            load.seen_segments = load.seen_segments.max(segments);
            let _ = self.events.send(LoadEvent::Throughput(row, more));
        }
    }

    fn tcp(&self, at: Time) {
        for load in self.loads.values().filter(|load| load.is_upload()) {
            let runs = load.phase == Phase::Running;
            if let Some(info) = load.info().filter(|_| runs) {
                let _ = self.events.send(LoadEvent::Tcp(info.row(at, load.order.flow)));
            }
        }
    }

    fn finish(&mut self) {
        let reached = self.config.clock.now();
        if self.config.throughput_ns > 0 {
            self.throughput(reached);
        }
        for load in self.loads.values_mut() {
            let totals = Totals {
                flow: load.order.flow,
                first_data: load.first_data,
                ended: load.ended,
                delivered: load.delivered,
                info: load.info(),
            };
            load.give_up(&self.epoll);
            let _ = self.events.send(LoadEvent::Totals(totals));
        }
    }
}

impl Load {
    fn is_upload(&self) -> bool {
        self.order.direction == Direction::Up
    }

    fn info(&self) -> Option<TcpInfo> {
        self.last_info.or_else(|| TcpInfo::of(self.socket.as_ref()?).ok())
    }

    /// Does what its socket is ready for.
    fn go_on(
        &mut self,
        ready: Ready,
        epoll: &Epoll,
        data: &[u8],
        now: impl Fn() -> Time,
    ) -> io::Result<()> {
        let socket = self.socket.as_ref().expect("it is watched");
        if ready.broken()
            && let Some(error) = socket.take_error()?
        {
            return Err(error);
        }
        match self.phase {
            Phase::Connecting if ready.writable() => {
                let sent = socket.send(&self.head)?;
                self.head.drain(..sent);
                if self.head.is_empty() {
                    self.phase = Phase::Asking;
                    epoll.modify(socket, u64::from(self.order.flow), Interest::READ)?;
                }
                Ok(())
            }
            Phase::Asking if ready.readable() => self.hear_answer(epoll, now),
            Phase::Running if self.is_upload() && ready.writable() => self.write(epoll, data, now),
            Phase::Running | Phase::Draining if ready.readable() => self.read(epoll, now),
            _ => Ok(()),
        }
    }

    fn hear_answer(&mut self, epoll: &Epoll, now: impl Fn() -> Time) -> io::Result<()> {
        let socket = self.socket.as_ref().expect("it is watched");
        let mut buffer = [0; ANSWER];
        let got = (&*socket).read(&mut buffer)?;
        if got == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.head.extend_from_slice(&buffer[..got]);
        let Some(end) = self.head.windows(4).position(|four| four == b"\r\n\r\n") else {
            return if self.head.len() > ANSWER {
                Err(io::ErrorKind::InvalidData.into())
            } else {
                Ok(())
            };
        };
        if !self.head.starts_with(b"HTTP/1.1 101") {
            let line = self.head.split(|&byte| byte == b'\r').next().unwrap_or_default();
            let line = String::from_utf8_lossy(line).into_owned();
            return Err(io::Error::other(format!("the server answered `{line}`")));
        }
        let begun = self.head.len() - end - 4;
        self.phase = Phase::Running;
        if begun > 0 {
            self.arrived(begun as u64, now());
        }
        let interest = if self.is_upload() { Interest::WRITE } else { Interest::READ };
        epoll.modify(socket_of(&self.socket), u64::from(self.order.flow), interest)
    }

    fn write(&mut self, epoll: &Epoll, data: &[u8], now: impl Fn() -> Time) -> io::Result<()> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(data.len());
        let sent = socket_of(&self.socket).send(&data[..most])?;
        self.first_data.get_or_insert_with(now);
        if self.left != u64::MAX {
            self.left -= sent as u64;
        }
        if self.left == 0 {
            self.phase = Phase::Draining;
            return self.hand_in_no_more(epoll);
        }
        Ok(())
    }

    fn read(&mut self, epoll: &Epoll, now: impl Fn() -> Time) -> io::Result<()> {
        let socket = socket_of(&self.socket);
        let bytes = option::discard(socket, READ)?;
        if bytes == 0 {
            self.ended = self.last_data;
            self.phase = Phase::Over;
            epoll.remove(socket)?;
            // The server waits for it, and then knows that everything has come.
            return socket.shutdown(Shutdown::Write);
        }
        if !self.is_upload() {
            self.arrived(bytes as u64, now());
        }
        Ok(())
    }

    fn arrived(&mut self, bytes: u64, at: Time) {
        self.delivered += bytes;
        self.first_data.get_or_insert(at);
        self.last_data = Some(at);
    }

    fn hand_in_no_more(&self, epoll: &Epoll) -> io::Result<()> {
        let socket = socket_of(&self.socket);
        socket.shutdown(Shutdown::Write)?;
        epoll.modify(socket, u64::from(self.order.flow), Interest::READ)
    }

    fn give_up(&mut self, epoll: &Epoll) {
        if self.phase != Phase::Over
            && let Some(socket) = &self.socket
        {
            let _ = epoll.remove(socket);
            self.last_info = TcpInfo::of(socket).ok();
            // Nothing of it shall still be under way when another load is measured.
            let _ = option::abort(socket);
        }
        self.phase = Phase::Over;
    }
}

fn socket_of(socket: &Option<Socket>) -> &Socket {
    socket.as_ref().expect("it is watched")
}

fn set_up(order: &Order, server: SocketAddr) -> io::Result<Socket> {
    let domain = Domain::for_address(server);
    let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    let tos = u32::from(order.dscp) << 2;
    if domain == Domain::IPV4 {
        socket.set_tos_v4(tos)?;
    } else {
        socket.set_tclass_v6(tos)?;
    }
    choose_congestion(order, &socket)?;
    if order.direction == Direction::Up {
        socket.set_tcp_notsent_lowat(MAX_UNSENT_BYTES)?;
    }
    Ok(socket)
}

/// Gives the sender of an upload the congestion control that was asked for.
fn choose_congestion(order: &Order, socket: &Socket) -> io::Result<()> {
    let Some(name) = order.congestion.as_ref().filter(|_| order.direction == Direction::Up) else {
        return Ok(());
    };
    socket.set_tcp_congestion(name.as_bytes()).map_err(|error| {
        io::Error::new(error.kind(), format!("congestion control `{name}`: {error}"))
    })
}

/// Handed to the kernel at once.
const WRITE: usize = 256 << 10;
/// Taken from the kernel at once. Nothing is copied.
const READ: usize = 4 << 20;
/// The longest answer to the request for a connection.
const ANSWER: usize = 4 << 10;
const EVENTS: usize = 256;
/// Data that waits in a sender's socket: what loads of the lab have (crate `net`).
const MAX_UNSENT_BYTES: u32 = 128 << 10;
/// Where packets come faster than this, the thread looks no oftener: waking it for each costs more than the
/// packet.
const NAP: Duration = Duration::from_micros(500);
/// How soon a new order is seen.
const MAX_WAIT: Duration = Duration::from_millis(10);
/// What is under way at the end of a load may still arrive; what takes longer is cut off, since it would
/// disturb what is measured next.
const GRACE: Duration = Duration::from_millis(1_000);
