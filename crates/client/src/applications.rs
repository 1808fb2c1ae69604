//! This end of all applications, on one thread: their clients, whose server is elsewhere.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender};

use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use weir_core::{Duration, Ticker, Time, error_in_words};
use weir_scenario::{Application, Client, ThroughputMeter, ThroughputRow, TransferRow};
use weir_sockets::load::application::{ApplicationDriver, ApplicationWorld, request};
use weir_sockets::load::options;
use weir_sockets::load::udp::udp_socket;
use weir_sockets::sys::time::wake_exactly;
use weir_sockets::sys::{message, option};
use weir_sockets::{Clock, NetError, TcpInfo};
use weir_speedtest::protocol::weir::{APPLICATION_ANSWER_BYTES, LOAD_BYTES, LoadDatagram, Token};

use crate::ClientError;
use crate::upgrade::{Upgrade, UpgradeStep, application_request};
use crate::ways::Way;
use crate::worker::Worker;

/// An application that the server is ready for.
#[derive(Clone, Debug)]
pub(crate) struct ApplicationOrder {
    /// Number of the flow in the record.
    pub flow: u32,
    pub way: Way,
    pub ticket: Token,
    pub application: Application,
    pub dscp: u8,
    pub start: Time,
    pub stop: Time,
}

/// Events that the applications' thread reports.
#[derive(Clone, Debug)]
pub(crate) enum ApplicationEvent {
    /// Something that was asked for has ended.
    Transfer(TransferRow),
    /// What arrived.
    Throughput(ThroughputRow),
    /// A connection could not be had, or broke, or a socket is of no use.
    Failed { flow: u32, reason: String },
    /// At the end, one for each application: when data first arrived, and how much did.
    Ended { flow: u32, first_data: Option<Time>, delivered: u64 },
}

/// Configuration of all applications.
#[derive(Clone, Copy)]
pub(crate) struct ApplicationConfig {
    pub clock: Clock,
    /// Time between two rows of what arrived; none but the last if 0.
    pub sample_ns: u64,
}

/// Starts the thread of all applications, which has none yet.
///
/// # Errors
/// If the kernel refuses what it needs.
pub(crate) fn start(
    config: ApplicationConfig,
) -> Result<Worker<ApplicationOrder, ApplicationEvent>, ClientError> {
    Worker::start("applications", |orders, events| {
        let driver = ApplicationDriver::new(Net { config, events, flows: BTreeMap::new() })?;
        Ok(move |stop: &AtomicBool| run(driver, &orders, stop).map_err(io::Error::other))
    })
}

/// Works until told to stop, then tells the rest.
fn run(
    mut driver: ApplicationDriver<Net>,
    orders: &Receiver<ApplicationOrder>,
    stop: &AtomicBool,
) -> Result<(), NetError> {
    wake_exactly();
    let clock = driver.world.config.clock;
    let ticker = Ticker::new(driver.world.config.sample_ns);
    let mut due = ticker.map(|ticker| ticker.after(Time::ZERO));
    while !stop.load(Ordering::Acquire) {
        while let Ok(order) = orders.try_recv() {
            add(&mut driver, order);
        }
        let now = clock.now();
        driver.world.ask_for_cookies(now);
        if let Some(at) = due.filter(|&at| now >= at) {
            driver.world.sample(at);
            due = ticker.map(|ticker| ticker.after(now));
        }
        let wait = due.map_or(MAX_WAIT, |at| clock.until(at)).min(MAX_WAIT);
        driver.go_on(wait)?;
    }
    driver.stop_all()?;
    driver.world.finish(clock.now());
    Ok(())
}

fn add(driver: &mut ApplicationDriver<Net>, order: ApplicationOrder) {
    let (flow, stop) = (order.flow, order.stop);
    let client = Client::new(&order.application, flow, (order.start, stop));
    let added = NetFlow::new(order).and_then(|own| {
        driver.add(flow as usize, client, stop, &own.names)?;
        driver.world.flows.insert(flow as usize, own);
        Ok(())
    });
    if let Err(error) = added {
        driver.world.tell(ApplicationEvent::Failed {
            flow,
            reason: format!("its socket: {}", error_in_words(&error)),
        });
    }
}

/// The paths to servers elsewhere, as applications see them.
struct Net {
    config: ApplicationConfig,
    events: Sender<ApplicationEvent>,
    flows: BTreeMap<usize, NetFlow>,
}

/// An application's own.
struct NetFlow {
    order: ApplicationOrder,
    /// Where DNS queries leave.
    names: Socket,
    /// What the server told to that port; 0 before.
    cookie: u64,
    /// When it is asked for, or the port's way kept open, next.
    asks: Time,
    meter: ThroughputMeter,
    delivered: u64,
    wire_bytes: u64,
    first_data: Option<Time>,
}

/// A connection's own.
#[derive(Default)]
struct NetConnection {
    /// The answer to its first request until it is there, and how many bytes of the application's answer it stands for.
    upgrade: Option<(Upgrade, u64)>,
    was_asked: bool,
    /// IP bytes that have arrived by the last look.
    wire_bytes: u64,
}

impl Net {
    fn tell(&self, event: ApplicationEvent) {
        // Whoever no longer listens has no use for it either.
        let _ = self.events.send(event);
    }

    fn flow(&mut self, flow: usize) -> &mut NetFlow {
        self.flows.get_mut(&flow).expect("the driver knows those that were added")
    }

    /// Asks for cookies that are missing, and keeps the ways of ports open whose cookies are known.
    fn ask_for_cookies(&mut self, now: Time) {
        let due = |one: &&mut NetFlow| now >= one.asks && now < one.order.stop;
        for one in self.flows.values_mut().filter(due) {
            let mut ask = [0; LOAD_BYTES];
            let (ticket, cookie) = (one.order.ticket, one.cookie);
            LoadDatagram::Ask { ticket, cookie }.emit(&mut ask);
            // One that is lost is followed by others.
            let _ = one.names.send(&ask);
            one.asks = now + if cookie == 0 { ASK_EVERY } else { STAY_EVERY };
        }
    }

    fn sample(&mut self, at: Time) {
        let mut rows = Vec::new();
        for one in self.flows.values_mut().filter(|one| at > one.order.start) {
            let row = one.meter.row(at, one.order.flow, one.delivered, Some(one.wire_bytes));
            if at <= one.order.stop || !row.is_empty() {
                rows.push(row);
            }
        }
        rows.into_iter().for_each(|row| self.tell(ApplicationEvent::Throughput(row)));
    }

    fn finish(&mut self, now: Time) {
        if self.config.sample_ns > 0 {
            self.sample(now);
        }
        for one in self.flows.values() {
            let NetFlow { first_data, delivered, .. } = *one;
            self.tell(ApplicationEvent::Ended { flow: one.order.flow, first_data, delivered });
        }
    }
}

impl NetFlow {
    fn new(order: ApplicationOrder) -> io::Result<Self> {
        let names = udp_socket(SocketAddr::new(order.way.local, 0), order.dscp)?;
        names.connect(&SockAddr::from(order.way.datagrams))?;
        let asks_for_names = order.application.name_period_ns().is_some();
        Ok(Self {
            asks: if asks_for_names { Time::ZERO } else { Time::MAX },
            order,
            names,
            cookie: 0,
            meter: ThroughputMeter::default(),
            delivered: 0,
            wire_bytes: 0,
            first_data: None,
        })
    }

    /// `bytes` arrived at `now`, on the wire `wire`.
    fn arrived(&mut self, (bytes, wire): (u64, u64), now: Time) {
        self.delivered += bytes;
        self.wire_bytes += wire;
        if bytes > 0 {
            self.first_data.get_or_insert(now);
        }
    }
}

impl ApplicationWorld for Net {
    type Connection = NetConnection;

    fn clock(&self) -> Clock {
        self.config.clock
    }

    fn open(&mut self, flow: usize) -> io::Result<(Socket, NetConnection)> {
        let order = &self.flow(flow).order;
        let domain = Domain::for_address(order.way.server);
        let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
        socket.set_nonblocking(true)?;
        options::set_dscp(&socket, order.dscp)?;
        Ok((socket, NetConnection::default()))
    }

    fn connect(&mut self, flow: usize, socket: &Socket) -> io::Result<bool> {
        match socket.connect(&SockAddr::from(self.flow(flow).order.way.server)) {
            Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
            _ => Ok(true),
        }
    }

    fn leaves_handshake(&mut self) {}

    fn request(
        &mut self,
        flow: usize,
        connection: &mut NetConnection,
        bytes: u64,
        response: u64,
    ) -> Vec<u8> {
        if std::mem::replace(&mut connection.was_asked, true) {
            return request(flow, bytes, response);
        }
        let head = response.min(APPLICATION_ANSWER_BYTES);
        connection.upgrade = Some((Upgrade::awaiting(), head));
        let ApplicationOrder { ticket, way, .. } = &self.flow(flow).order;
        application_request(*ticket, &way.authority, bytes, response - head)
    }

    fn receive(
        &mut self,
        flow: usize,
        connection: &mut NetConnection,
        socket: &Socket,
    ) -> io::Result<u64> {
        let bytes = connection.receive(socket)?;
        let header = self.flow(flow).order.way.ip_version.header_bytes();
        let wire =
            TcpInfo::of(socket).map_or(connection.wire_bytes, |info| info.wire_bytes(header));
        let more = wire.saturating_sub(std::mem::replace(&mut connection.wire_bytes, wire));
        let now = self.config.clock.now();
        self.flow(flow).arrived((bytes, more), now);
        Ok(bytes)
    }

    fn query(&mut self, flow: usize, number: u64) -> io::Result<()> {
        let NetFlow { order, cookie, names, .. } = self.flow(flow);
        let mut query = [0; Application::QUERY_BYTES as usize];
        LoadDatagram::Query { ticket: order.ticket, cookie: *cookie, number }.emit(&mut query);
        names.send(&query).map(|_| ())
    }

    fn answer(&mut self, flow: usize) -> io::Result<Option<(u64, Time)>> {
        let clock = self.config.clock;
        let one = self.flow(flow);
        let wire = Application::answer_ip_len(one.order.way.ip_version);
        let mut answer = [0; Application::ANSWER_BYTES as usize];
        let received = message::receive(&one.names, &mut answer)?;
        let own = one.order.ticket;
        match LoadDatagram::parse(&answer[..received.len]) {
            Some(LoadDatagram::Answer { ticket, cookie }) if ticket == own => {
                // Shown at once: from then on the server knows the port.
                (one.cookie, one.asks) = (cookie, Time::ZERO);
                Ok(None)
            }
            Some(LoadDatagram::Reply { ticket, number })
                if ticket == own && received.len == answer.len() =>
            {
                let arrived = clock.of_stamp(received.real_ns);
                one.arrived((answer.len() as u64, wire.into()), arrived);
                Ok(Some((number, arrived)))
            }
            _ => Ok(None),
        }
    }

    fn ended(&mut self, row: TransferRow) {
        self.tell(ApplicationEvent::Transfer(row));
    }

    fn failed(&mut self, flow: usize, what: &str, error: io::Error) -> Result<(), NetError> {
        self.tell(ApplicationEvent::Failed {
            flow: flow as u32,
            reason: format!("{what}: {}", error_in_words(&error)),
        });
        Ok(())
    }
}

impl NetConnection {
    /// Takes what has come: how many bytes of the application's answers that is.
    fn receive(&mut self, socket: &Socket) -> io::Result<u64> {
        let Some((upgrade, head)) = &mut self.upgrade else {
            return match option::discard(socket, MAX_READ_BYTES)? {
                0 => Err(io::ErrorKind::UnexpectedEof.into()),
                bytes => Ok(bytes as u64),
            };
        };
        let mut buffer = [0; HEAD_READ_BYTES];
        let bytes = (&mut &*socket).read(&mut buffer)?;
        match upgrade.hear(&buffer[..bytes])? {
            UpgradeStep::Done(more) => {
                let head = *head;
                self.upgrade = None;
                Ok(head + more)
            }
            UpgradeStep::Waiting | UpgradeStep::Asked => Ok(0),
        }
    }
}

/// How soon a new order, or the end, is seen.
const MAX_WAIT: Duration = Duration::from_millis(10);
/// How often a cookie is asked for: the server tells one every 10 ms at most.
const ASK_EVERY: Duration = Duration::from_millis(100);
/// How often a port is shown whose cookie is known, so that translators of addresses keep it: they forget ways over UDP
/// after 30 s and more (RFC 4787, section 4.3, asks for 2 min).
const STAY_EVERY: Duration = Duration::from_millis(15_000);
/// Taken from the kernel at once. Nothing is copied.
const MAX_READ_BYTES: usize = 4 << 20;
/// Taken while the answer to the first request comes.
const HEAD_READ_BYTES: usize = 4 << 10;
