//! This end of all TCP loads, on one thread.

use std::collections::BTreeMap;
use std::io;
use std::net::Shutdown;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender};

use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use weir_core::{Duration, Ticker, Time, error_in_words};
use weir_scenario::{Direction, TcpRow, ThroughputMeter, ThroughputRow};
use weir_sockets::load::options::{self, MAX_UNSENT_BYTES};
use weir_sockets::load::{LoadEnd, LoadPoll, LoadStep, WRITE_BYTES};
use weir_sockets::sys::epoll::{Interest, Ready};
use weir_sockets::sys::option;
use weir_sockets::{Clock, TcpInfo};
use weir_speedtest::protocol::weir::Token;

use crate::ClientError;
use crate::upgrade::{Upgrade, UpgradeStep};
use crate::ways::Way;
use crate::worker::Worker;

/// A load that the server is ready for.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    /// Number of the flow in the record.
    pub flow: u32,
    pub way: Way,
    pub direction: Direction,
    pub ticket: Token,
    /// Congestion control of this end; the system's if `None`.
    pub congestion: Option<String>,
    pub dscp: u8,
    pub start: Time,
    pub stop: Time,
    /// Bytes that an upload sends; without a limit if `None`.
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

impl LoadEvent {
    /// Whether it tells of data that arrived here.
    pub const fn has_data(&self) -> bool {
        matches!(self, Self::Throughput(row, _) if row.bytes > 0)
    }
}

/// Totals of this end of a load, when the load is over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Totals {
    pub flow: u32,
    pub first_data: Option<Time>,
    /// When the last byte of a download that ended by itself came.
    pub ended: Option<Time>,
    pub delivered: u64,
    pub info: Option<TcpInfo>,
}

/// Configuration of all loads: how often they are sampled.
pub(crate) struct LoadConfig {
    pub clock: Clock,
    pub throughput_ns: u64,
    pub tcp_ns: u64,
}

/// All loads.
struct Loads {
    config: LoadConfig,
    orders: Receiver<Order>,
    events: Sender<LoadEvent>,
    poll: LoadPoll,
    loads: BTreeMap<u32, Load>,
    data: Vec<u8>,
}

struct Load {
    order: Order,
    stage: Stage,
    /// Its end of the connection, once that is being opened.
    end: Option<LoadEnd>,
    delivered: u64,
    meter: ThroughputMeter,
    segments: u32,
    /// Last `TCP_INFO` before the connection was broken off.
    last_info: Option<TcpInfo>,
    first_data: Option<Time>,
    last_data: Option<Time>,
    ended: Option<Time>,
}

#[derive(Debug)]
enum Stage {
    /// Its start has not come.
    Waiting,
    /// The connection opens, and the server is asked for it.
    Upgrading(Upgrade),
    Running,
    /// Nothing more is handed in; what is under way still arrives.
    Draining,
    Over,
}

/// Starts the thread of all loads, which has none yet.
///
/// # Errors
/// If the kernel refuses what it needs.
pub(crate) fn start(config: LoadConfig) -> Result<Worker<Order, LoadEvent>, ClientError> {
    Worker::start("loads", |orders, tell| {
        let loads = Loads::new(config, orders, tell)?;
        Ok(move |stop: &AtomicBool| loads.run(stop))
    })
}

impl Loads {
    fn new(
        config: LoadConfig,
        orders: Receiver<Order>,
        events: Sender<LoadEvent>,
    ) -> io::Result<Self> {
        // What a line or a tunnel compresses would not be measured.
        let mut data = vec![0; WRITE_BYTES];
        getrandom::fill(&mut data).map_err(io::Error::other)?;
        let poll = LoadPoll::new(config.clock)?;
        Ok(Self { config, orders, events, poll, loads: BTreeMap::new(), data })
    }

    /// Works until told to stop, then tells the totals.
    fn run(mut self, stop: &AtomicBool) -> io::Result<()> {
        let mut events = LoadPoll::events();
        let periods = [self.config.throughput_ns, self.config.tcp_ns];
        let tickers = periods.map(Ticker::new);
        let mut due = tickers.map(|ticker| ticker.map(|ticker| ticker.after(Time::ZERO)));
        while !stop.load(Ordering::Acquire) {
            self.take_orders();
            let wait = self.act().min(self.sample(tickers, &mut due));
            for ready in self.poll.wait(&mut events, wait)? {
                self.serve(ready);
            }
        }
        self.finish();
        Ok(())
    }

    fn take_orders(&mut self) {
        while let Ok(order) = self.orders.try_recv() {
            self.loads.insert(order.flow, Load::new(order));
        }
    }

    /// Does what is due, and says how long nothing will be.
    fn act(&mut self) -> Duration {
        let now = self.config.clock.now();
        let mut next = now + MAX_WAIT;
        for flow in self.loads.keys().copied().collect::<Vec<_>>() {
            let load = self.loads.get_mut(&flow).expect("it is one of them");
            let Order { start, stop, .. } = load.order;
            let result = match load.stage {
                Stage::Waiting if now >= start => load.open(&self.poll),
                Stage::Running if now >= stop && load.is_upload() => load.drain(&self.poll),
                Stage::Upgrading(_) | Stage::Draining | Stage::Running if now >= stop + GRACE => {
                    load.give_up(&self.poll);
                    Ok(())
                }
                _ => Ok(()),
            };
            self.note(flow, result);
            let after = &self.loads[&flow];
            let due = match after.stage {
                Stage::Waiting => start,
                Stage::Over => continue,
                Stage::Running if after.is_upload() => stop,
                _ => stop + GRACE,
            };
            next = next.min(due);
        }
        self.config.clock.until(next)
    }

    fn serve(&mut self, ready: Ready) {
        let flow = ready.token as u32;
        let Some(load) = self.loads.get_mut(&flow) else { return };
        let clock = self.config.clock;
        let upgrading = matches!(load.stage, Stage::Upgrading(_));
        let result = load.go_on(ready, &self.poll, &self.data, || clock.now());
        if upgrading && matches!(load.stage, Stage::Running) {
            let congestion = options::congestion_control(load.socket()).unwrap_or_default();
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
        let early = now < load.order.stop && !matches!(load.stage, Stage::Draining);
        load.give_up(&self.poll);
        if early {
            let _ = self.events.send(LoadEvent::Failed { flow, reason: error_in_words(&error) });
        }
    }

    /// Samples what is due, and says how long nothing will be.
    fn sample(&mut self, tickers: [Option<Ticker>; 2], due: &mut [Option<Time>; 2]) -> Duration {
        let clock = self.config.clock;
        let now = clock.now();
        for (number, ticker) in tickers.into_iter().enumerate() {
            let Some(at) = due[number].filter(|&at| now >= at) else { continue };
            match number {
                0 => self.throughput(at),
                _ => self.tcp(at),
            }
            due[number] = ticker.map(|ticker| ticker.after(now));
        }
        due.iter().flatten().min().map_or(MAX_WAIT, |&at| clock.until(at))
    }

    fn throughput(&mut self, at: Time) {
        for load in self.loads.values_mut().filter(|load| !load.is_upload()) {
            if at <= load.order.start {
                continue;
            }
            let header = load.order.way.ip_version.header_bytes();
            let info = load.info();
            let wire = info.as_ref().map(|info| info.wire_bytes(header));
            let row = load.meter.row(at, load.order.flow, load.delivered, wire);
            if matches!(load.stage, Stage::Over) && row.is_empty() {
                continue;
            }
            let segments = info.map_or(load.segments, |info| info.received_segments());
            let more = segments.saturating_sub(load.segments);
            load.segments = load.segments.max(segments);
            let _ = self.events.send(LoadEvent::Throughput(row, more));
        }
    }

    fn tcp(&self, at: Time) {
        for load in self.loads.values().filter(|load| load.is_upload()) {
            let runs = matches!(load.stage, Stage::Running);
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
            load.give_up(&self.poll);
            let totals = Totals {
                flow: load.order.flow,
                first_data: load.first_data,
                ended: load.ended,
                delivered: load.delivered,
                info: load.info(),
            };
            let _ = self.events.send(LoadEvent::Totals(totals));
        }
    }
}

impl Load {
    fn new(order: Order) -> Self {
        Self {
            order,
            stage: Stage::Waiting,
            end: None,
            delivered: 0,
            meter: ThroughputMeter::default(),
            segments: 0,
            last_info: None,
            first_data: None,
            last_data: None,
            ended: None,
        }
    }

    fn is_upload(&self) -> bool {
        self.order.direction == Direction::Up
    }

    fn token(&self) -> u64 {
        u64::from(self.order.flow)
    }

    fn end(&mut self) -> &mut LoadEnd {
        self.end.as_mut().expect("it is watched")
    }

    fn socket(&self) -> &Arc<Socket> {
        self.end.as_ref().expect("it is watched").socket()
    }

    fn info(&self) -> Option<TcpInfo> {
        self.last_info.or_else(|| TcpInfo::of(self.end.as_ref()?.socket()).ok())
    }

    /// Opens its connection.
    fn open(&mut self, poll: &LoadPoll) -> io::Result<()> {
        let socket = Arc::new(set_up(&self.order)?);
        match socket.connect(&SockAddr::from(self.order.way.server)) {
            Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => return Err(error),
            _ => {}
        }
        // A route may name one too (`congctl`), and a socket that connects takes it in place of what it had
        // (`tcp_ca_dst_init` in net/ipv4/tcp_output.c).
        choose_congestion(&self.order, &socket)?;
        poll.epoll.add(&*socket, self.token(), Interest::BOTH)?;
        self.stage = Stage::Upgrading(Upgrade::new(self.order.ticket, &self.order.way.authority));
        self.end = Some(match self.order.direction {
            Direction::Up => LoadEnd::sender(socket, self.order.bytes),
            Direction::Down => LoadEnd::receiver(socket, false),
        });
        Ok(())
    }

    /// Does what its socket is ready for.
    fn go_on(
        &mut self,
        ready: Ready,
        poll: &LoadPoll,
        data: &[u8],
        now: impl Fn() -> Time,
    ) -> io::Result<()> {
        let socket = Arc::clone(self.socket());
        if ready.broken()
            && let Some(error) = socket.take_error()?
        {
            return Err(error);
        }
        match &mut self.stage {
            Stage::Upgrading(upgrade) => match upgrade.go_on(&socket, ready)? {
                UpgradeStep::Waiting => Ok(()),
                UpgradeStep::Asked => poll.epoll.modify(&*socket, self.token(), Interest::READ),
                UpgradeStep::Done(bytes) => {
                    self.stage = Stage::Running;
                    if bytes > 0 {
                        self.arrived(bytes, now());
                    }
                    let interest = self.end().interest();
                    poll.epoll.modify(&*socket, self.token(), interest)
                }
            },
            Stage::Running | Stage::Draining => {
                let step = self.end().go_on(ready, data)?;
                self.stepped(step, poll, now)
            }
            Stage::Waiting | Stage::Over => Ok(()),
        }
    }

    /// Notes what its end did.
    fn stepped(
        &mut self,
        step: Option<LoadStep>,
        poll: &LoadPoll,
        now: impl Fn() -> Time,
    ) -> io::Result<()> {
        match step {
            Some(LoadStep::Sent(_)) => {
                self.first_data.get_or_insert_with(now);
                Ok(())
            }
            Some(LoadStep::SentAll) => {
                self.first_data.get_or_insert_with(now);
                self.drain(poll)
            }
            Some(LoadStep::Received(bytes)) => {
                if !self.is_upload() {
                    self.arrived(bytes, now());
                }
                Ok(())
            }
            Some(LoadStep::Ended) => {
                let told_already = matches!(self.stage, Stage::Draining);
                self.ended = self.last_data;
                self.stage = Stage::Over;
                poll.epoll.remove(&**self.socket())?;
                if told_already {
                    return Ok(());
                }
                // The server waits for it, and then knows that everything has come.
                self.socket().shutdown(Shutdown::Write)
            }
            None => Ok(()),
        }
    }

    fn arrived(&mut self, bytes: u64, at: Time) {
        self.delivered += bytes;
        self.first_data.get_or_insert(at);
        self.last_data = Some(at);
    }

    /// Hands in nothing more, and waits for the server to have everything.
    fn drain(&mut self, poll: &LoadPoll) -> io::Result<()> {
        self.stage = Stage::Draining;
        self.end().stop();
        self.socket().shutdown(Shutdown::Write)?;
        poll.epoll.modify(&**self.socket(), self.token(), Interest::READ)
    }

    fn give_up(&mut self, poll: &LoadPoll) {
        if !matches!(self.stage, Stage::Over)
            && let Some(end) = &self.end
        {
            let _ = poll.epoll.remove(&**end.socket());
            self.last_info = TcpInfo::of(end.socket()).ok();
            // Nothing of it shall still be under way when another load is measured.
            let _ = option::abort(end.socket());
        }
        self.stage = Stage::Over;
    }
}

fn set_up(order: &Order) -> io::Result<Socket> {
    let domain = Domain::for_address(order.way.server);
    let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    options::set_dscp(&socket, order.dscp)?;
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
        io::Error::new(
            error.kind(),
            format!("congestion control `{name}`: {}", error_in_words(&error)),
        )
    })
}

/// How soon a new order is seen.
const MAX_WAIT: Duration = Duration::from_millis(10);
/// Time in which data under way at the end of a load may still arrive; later data is cut off, since it would
/// disturb what is measured next.
const GRACE: Duration = Duration::from_millis(1_000);
