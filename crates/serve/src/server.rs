//! A server from its start to its end.

use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use socket2::{Domain, SockAddr, Socket, Type};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{debug, info, warn};
use weir_core::error_in_words;

use crate::activity::Activity;
use crate::admission::{Admission, Bounds, Entered, UdpUse};
use crate::connection::{Connection, Transport, end_addresses};
use crate::datagrams::{self, DatagramSocket};
use crate::error::ServeError;
use crate::health::{Health, Listener, TICK, ends_listening};
use crate::http::Client;
use crate::irtt::{self, Irtt};
use crate::metrics::Metrics;
use crate::options::{Listen, Options};
use crate::refusals::{self, Refusals};
use crate::service::Service;
use crate::shared::Shared;
use crate::speech::Speech;
use crate::{congestion, ndt7, ookla, refuse, route, senders, tls, weir};

/// A server whose sockets are open.
pub struct Server {
    shared: Arc<Shared>,
    tls: TlsAcceptor,
    listeners: Vec<TcpListener>,
    addresses: Vec<SocketAddr>,
    irtt: Vec<SocketAddr>,
    datagrams: JoinHandle<()>,
    senders: JoinHandle<()>,
}

/// Ends a server, from anywhere.
#[derive(Clone, Debug)]
pub struct Stop {
    closing: CancellationToken,
    stop: CancellationToken,
}

impl Stop {
    /// Tells the server to end. It then takes nothing new, lets tests that run come to their end, for ten seconds at most, and
    /// ends.
    pub fn stop(&self) {
        self.closing.cancel();
    }

    /// Tells the server to end now: tests that run are cut off.
    pub fn now(&self) {
        self.stop.cancel();
    }
}

impl Server {
    /// Opens everything that `options` ask for. Must be called within a Tokio runtime.
    ///
    /// # Errors
    /// If something cannot be had: what, and why.
    pub fn bind(options: Options) -> Result<Self, ServeError> {
        let secret = options.auth.as_deref().map(weir_sockets::read_secret).transpose();
        let secret = secret.map_err(|error| ServeError::input(error.to_string()))?;
        let tls = tls::acceptor(&options)?;
        let open_files = weir_sockets::sys::option::raise_open_files()
            .map_err(|error| ServeError::io("the number of open files", &error))?;
        let connections = options.max_connections.min(most_connections(open_files));
        if connections < options.max_connections {
            let wanted = options.max_connections;
            warn!(
                open_files,
                connections, wanted, "the limit of open files allows fewer connections"
            );
        }
        let services = options.services();
        let (listeners, mut sockets) = open_places(&options)?;
        let addresses: Vec<_> =
            listeners.iter().filter_map(|listener| listener.local_addr().ok()).collect();
        let wants_main = [weir::SERVICE, ookla::SERVICE].iter().any(|one| services.contains(one));
        if !wants_main {
            sockets.clear();
        }
        if services.contains(&irtt::SERVICE) {
            sockets.extend(open_irtt(&options)?);
        }
        let irtt =
            sockets.iter().filter(|socket| socket.is_irtt()).map(DatagramSocket::address).collect();
        let stop = CancellationToken::new();
        let health = Health::new(listening(&addresses, &sockets, &services), stop.clone());
        let (to_senders, begin) = senders::channel();
        let shared = Arc::new(Shared {
            admission: Admission::new(Bounds {
                connections,
                connections_per_address: options.max_connections_per_address,
                tests: options.max_tests,
                tests_per_address: options.max_tests_per_address,
                rate_bps: options.max_rate,
                udp: UdpUse { bps: options.most_udp(), pps: weir::MAX_PPS },
            }),
            metrics: Arc::new(Metrics::new()),
            refusals: Refusals::default(),
            refusing: Semaphore::new(refusing(open_files)),
            refusing_near: Semaphore::new(refuse::MAX_NEAR),
            health,
            sessions: weir::Sessions::default(),
            loss_tests: ookla::LossTests::default(),
            senders: to_senders,
            congestion: congestion::usable(),
            echoes: services.contains(&weir::SERVICE),
            stop,
            tasks: TaskTracker::new(),
            services,
            secret,
            options,
        });
        let started = |error| ServeError::io("starting a thread", &error);
        let datagrams = datagrams::start(&shared, sockets, listeners.len()).map_err(started)?;
        let senders = senders::start(&shared, begin).map_err(started)?;
        Ok(Self { shared, tls, listeners, addresses, irtt, datagrams, senders })
    }

    /// Addresses on which the server listens.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// A handle that ends the server.
    #[must_use]
    pub fn stop(&self) -> Stop {
        let Shared { health, stop, .. } = &*self.shared;
        Stop { closing: health.closing.clone(), stop: stop.clone() }
    }

    /// Serves until it is stopped.
    ///
    /// # Errors
    /// If something ended it that it cannot do without, such as the task of a listening socket.
    pub async fn run(self) -> Result<(), ServeError> {
        let Self { shared, tls, listeners, datagrams, senders, .. } = self;
        self_description(&shared, &self.addresses, &self.irtt);
        for (number, listener) in listeners.into_iter().enumerate() {
            let (server, tls) = (Arc::clone(&shared), tls.clone());
            shared.tasks.spawn(async move {
                server.health.supervise(number, accept(&server, &tls, listener, number)).await;
            });
        }
        let server = Arc::clone(&shared);
        shared.tasks.spawn(async move { server.refusals.tell(&server.stop).await });
        shared.health.closing.cancelled().await;
        let_tests_end(&shared).await;
        shared.stop.cancel();
        shared.tasks.close();
        if timeout(DRAIN, shared.tasks.wait()).await.is_err() {
            warn!(left = shared.tasks.len(), "some connections did not end in time");
        }
        // They look at nothing but the same token; an end of their own is told by `health`.
        let _ = datagrams.join();
        let _ = senders.join();
        shared.health.outcome()
    }
}

/// Waits for tests that run, until the server is to end at once or they have had their time.
async fn let_tests_end(shared: &Shared) {
    let metrics = &shared.metrics;
    if metrics.tests_now() == 0 || shared.stop.is_cancelled() {
        info!("stopping");
        return;
    }
    let (tests, seconds) = (metrics.tests_now(), MAX_WAIT_FOR_TESTS.as_secs());
    info!(
        tests,
        seconds, "stopping: waiting for tests that run; a second signal ends them at once"
    );
    tokio::select! {
        ended = timeout(MAX_WAIT_FOR_TESTS, metrics.no_test_runs()) => if ended.is_err() {
            warn!(tests = metrics.tests_now(), "tests did not end in time, and are cut off");
        },
        () = shared.stop.cancelled() => {}
    }
}

/// The listening sockets, TCP first, with what is spoken there.
fn listening(
    addresses: &[SocketAddr],
    sockets: &[DatagramSocket],
    services: &BTreeSet<Service>,
) -> Vec<Listener> {
    let ookla = services.contains(&ookla::SERVICE);
    let tcp = if ookla { "HTTP, TLS, Ookla" } else { "HTTP, TLS" };
    let tcp = addresses.iter().map(|address| Listener::new("TCP", tcp, *address));
    let echoes = match (services.contains(&weir::SERVICE), ookla) {
        (true, true) => "Weir's echo, Ookla's loss",
        (true, false) => "Weir's echo",
        (false, _) => "Ookla's loss",
    };
    let udp = sockets.iter().map(|socket| {
        let serves = if socket.is_irtt() { "irtt" } else { echoes };
        Listener::new("UDP", serves, socket.address())
    });
    tcp.chain(udp).collect()
}

/// Says in the log what there is.
fn self_description(shared: &Shared, addresses: &[SocketAddr], irtt: &[SocketAddr]) {
    for address in addresses {
        info!(%address, "listening");
    }
    for address in irtt {
        info!(irtt = %address, "listening");
    }
    if !shared.congestion.iter().any(|name| name == "bbr") && shared.serves(ndt7::SERVICE) {
        info!("this machine has no BBR: ndt7 uses its default congestion control instead");
    }
    if shared.secret.is_some() {
        info!("clients must know the secret; protocols without a place for it are off");
    }
}

/// Opens the main ports: TCP, and UDP with the same number.
fn open_places(options: &Options) -> Result<(Vec<TcpListener>, Vec<DatagramSocket>), ServeError> {
    let (mut listeners, mut sockets) = (Vec::new(), Vec::new());
    for place in options.places() {
        for address in place.addresses() {
            let listener = match listen(address) {
                Ok(listener) => listener,
                Err(error) if can_do_without(place, address, &error) => continue,
                Err(error) => return Err(in_use("TCP", address, &error)),
            };
            let address = listener
                .local_addr()
                .map_err(|error| ServeError::io(format_args!("TCP {address}"), &error))?;
            let (socket, address) =
                datagrams::bound(address).map_err(|error| in_use("UDP", address, &error))?;
            listeners.push(listener);
            sockets.push(DatagramSocket::Main(socket, address));
        }
    }
    Ok((listeners, sockets))
}

fn open_irtt(options: &Options) -> Result<Vec<DatagramSocket>, ServeError> {
    let mut sockets = Vec::new();
    for place in options.places() {
        for mut address in place.addresses() {
            address.set_port(options.irtt_port);
            match datagrams::bound(address) {
                Ok((socket, at)) => {
                    sockets.push(DatagramSocket::Irtt(socket, at, Box::new(Irtt::new())));
                }
                Err(error) if can_do_without(place, address, &error) => {}
                // Two places of one address share it.
                Err(_) if sockets.iter().any(|socket| socket.address() == address) => {}
                Err(error) => {
                    let error = in_use("UDP", address, &error);
                    return Err(ServeError::new(format!(
                        "irtt: {error}; choose another with --irtt-port, or --without irtt"
                    )));
                }
            }
        }
    }
    Ok(sockets)
}

/// A machine without IPv6 has only the other of two addresses that mean everywhere.
fn can_do_without(place: Listen, address: SocketAddr, error: &io::Error) -> bool {
    let absent = [libc::EAFNOSUPPORT, libc::EADDRNOTAVAIL];
    matches!(place, Listen::Everywhere(_))
        && address.is_ipv6()
        && error.raw_os_error().is_some_and(|code| absent.contains(&code))
}

fn in_use(protocol: &str, address: SocketAddr, error: &io::Error) -> ServeError {
    ServeError::io(format_args!("cannot listen on {protocol} {address}"), error)
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&SockAddr::from(address))?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

/// Takes connections until the end: flows of tests that run come on new ones.
///
/// Returns an error only if the socket is of no use any more.
async fn accept(
    shared: &Arc<Shared>,
    tls: &TlsAcceptor,
    listener: TcpListener,
    number: usize,
) -> io::Result<()> {
    let mut failures = Repeated::default();
    loop {
        shared.health.seen(number);
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = shared.stop.cancelled() => return Ok(()),
            () = sleep(TICK) => continue,
        };
        match accepted {
            Ok((socket, _)) => {
                let (shared, tls) = (Arc::clone(shared), tls.clone());
                let tasks = shared.tasks.clone();
                tasks.spawn(async move {
                    if let Err(error) = serve(&shared, &tls, socket).await {
                        debug!(error = %error_in_words(&error), "connection ended");
                    }
                });
            }
            Err(error) if ends_listening(&error) => return Err(error),
            Err(error) => {
                // Out of descriptors, mostly: others have to end first.
                if let Some(count) = failures.happened(Instant::now()) {
                    warn!(error = %error_in_words(&error), count, "accepting");
                }
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Serves one connection, whatever it speaks.
async fn serve(shared: &Arc<Shared>, tls: &TlsAcceptor, stream: TcpStream) -> io::Result<()> {
    let ends = end_addresses(&stream)?;
    let Entered { permit, activity, gave_up } =
        match shared.admission.enter_connection(ends.client.ip()) {
            Ok(entered) => entered,
            Err(refusal) => {
                shared.refused(refusal.reason(), ends.client.ip());
                debug!(client = %ends.client, %refusal, "refused");
                return refuse::connection(shared, tls, stream, (ends.client.ip(), refusal)).await;
            }
        };
    if gave_up {
        shared.metrics.connections_given_up.inc();
    }
    shared.metrics.connections.inc();
    shared.metrics.connections_now.inc();
    let _count = Leaving(shared);
    stream.set_nodelay(true)?;
    let first = timeout(PATIENCE, Speech::sniff(&stream)).await??;
    let metrics = Arc::clone(&shared.metrics);
    let longest = shared.options.session() + MOMENT;
    let connection = Connection::new(stream, permit, metrics, longest);
    let socket = Arc::clone(connection.socket());
    let server = Arc::clone(shared);
    let client = Client { server, ends, socket, secured: false, activity };
    match first {
        Speech::Tls => {
            let secured = timeout(PATIENCE, tls.accept(connection)).await??;
            let mut transport = Transport::secured(secured);
            if transport.speaks(b"h2") {
                // Its requests all wait behind what the socket and TLS hold.
                transport.follow_rate();
            }
            speak_http(shared, transport, Client { secured: true, ..client }).await
        }
        Speech::Http => speak_http(shared, Transport::plain(connection), client).await,
        Speech::Ookla if shared.serves(ookla::SERVICE) && shared.secret.is_none() => {
            if let Err(refusal) = shared.may_begin(ends.client) {
                return refuse::ookla(connection, refusal).await;
            }
            tokio::select! {
                served = ookla::serve(shared, connection, ends) => served,
                () = shared.stop.cancelled() => Ok(()),
            }
        }
        Speech::Ookla => Ok(()),
    }
}

async fn speak_http(shared: &Arc<Shared>, transport: Transport, client: Client) -> io::Result<()> {
    let activity = Arc::clone(&client.activity);
    let client = Arc::new(client);
    let service = service_fn(move |request| route::answer(Arc::clone(&client), request));
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .max_buf_size(BUFFER)
        .max_headers(MAX_HEADERS);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(Some(HEARTBEAT))
        .keep_alive_timeout(PATIENCE)
        .max_concurrent_streams(MAX_STREAMS)
        .max_header_list_size(MAX_HEADERS_BYTES)
        .max_send_buf_size(BUFFER)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW);
    let connection = builder.serve_connection_with_upgrades(TokioIo::new(transport), service);
    let mut connection = std::pin::pin!(connection);
    let closing = async {
        shared.health.closing.cancelled().await;
        // One without a request yet may bring a flow of a test that runs; hyper would close it unread.
        activity.asked().await;
    };
    tokio::select! {
        ended = connection.as_mut() => return ended.map_err(io::Error::other),
        () = closing => {}
        () = shared.stop.cancelled() => {}
        () = activity.given_up() => {}
        // hyper has no bound of its own for half a preface of HTTP/2.
        () = no_request(&activity) => return Err(io::ErrorKind::TimedOut.into()),
    }
    connection.as_mut().graceful_shutdown();
    let over = async {
        // What runs has the time that tests have.
        if shared.health.closing.is_cancelled() {
            shared.stop.cancelled().await;
        }
        sleep(DRAIN_HTTP).await;
    };
    tokio::select! {
        ended = connection => ended.map_err(io::Error::other),
        () = over => Ok(()),
    }
}

/// Resolves if there is no request in time.
async fn no_request(activity: &Activity) {
    if timeout(PATIENCE, activity.asked()).await.is_ok() {
        std::future::pending::<()>().await;
    }
}

/// A connection that is counted as open until this is dropped.
struct Leaving<'s>(&'s Shared);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.0.metrics.connections_now.dec();
    }
}

/// Files that are needed for other things than connections.
fn other_files(open_files: u64) -> u64 {
    OTHER_FILES.min((open_files / 2).max(OWN_FILES + 2 * refuse::MAX_NEAR as u64))
}

fn most_connections(open_files: u64) -> u32 {
    u32::try_from(open_files.saturating_sub(other_files(open_files))).unwrap_or(u32::MAX).max(1)
}

/// Clients but this machine's that are told at a time why they are refused: each takes a file.
fn refusing(open_files: u64) -> usize {
    let left = other_files(open_files).saturating_sub(OWN_FILES) as usize;
    left.saturating_sub(refuse::MAX_NEAR).clamp(1, refuse::MAX_AT_A_TIME)
}

/// What happens again and again: the log tells of it at once, and then once a minute with its count.
#[derive(Debug, Default)]
struct Repeated {
    told: Option<Instant>,
    count: u64,
}

impl Repeated {
    /// How often it has happened since this was last told, if it is time to tell it again.
    fn happened(&mut self, now: Instant) -> Option<u64> {
        self.count += 1;
        if self.told.is_some_and(|told| now.saturating_duration_since(told) < refusals::EVERY) {
            return None;
        }
        self.told = Some(now);
        Some(std::mem::take(&mut self.count))
    }
}

/// Connections that may wait to be accepted; `net.core.somaxconn` bounds it, too.
const BACKLOG: i32 = 4096;
/// How long a client may take for what should take a round trip.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
const HEARTBEAT: Duration = Duration::from_secs(15);
/// How much longer than a session a connection may last.
const MOMENT: Duration = Duration::from_secs(100);
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How long tests that run may go on after the server was told to end: most last as long, and who waits for a server to end
/// waits no longer.
const MAX_WAIT_FOR_TESTS: Duration = Duration::from_secs(10);
/// How long everything else may take to end.
const DRAIN: Duration = Duration::from_secs(3);
const DRAIN_HTTP: Duration = Duration::from_secs(1);
const OTHER_FILES: u64 = 64;
/// What the server itself has open: its sockets, log, timers.
const OWN_FILES: u64 = 28;
/// Memory of a connection: what waits to be written, what may come unasked.
const BUFFER: usize = 512 << 10;
const MAX_HEADERS: usize = 64;
const MAX_HEADERS_BYTES: u32 = 16 << 10;
/// The responsiveness test has 100 probes a second beside its load.
const MAX_STREAMS: u32 = 128;
/// 4 MiB in 20 ms are 1.6 Gbit/s.
const STREAM_WINDOW: u32 = 4 << 20;
const CONNECTION_WINDOW: u32 = 4 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_enough_for_connections_refusals_and_the_server_itself() {
        for open_files in [48, 64, 100, 128, 1024, 4160, 20_000] {
            let [told, near] = [refusing(open_files), refuse::MAX_NEAR].map(|some| some as u64);
            let all = u64::from(most_connections(open_files)) + told + near + OWN_FILES;
            assert!(all <= open_files, "{open_files}: {all}");
        }
        assert_eq!(most_connections(4160), 4096);
        assert_eq!(refusing(4160), refuse::MAX_AT_A_TIME);
        assert_eq!((most_connections(1), refusing(1)), (1, 4));
    }

    #[test]
    fn what_happens_again_and_again_is_told_once_a_minute() {
        let (mut failures, begin) = (Repeated::default(), Instant::now());
        let told: Vec<_> = (0..1_300)
            .map(|tenth| begin + Duration::from_millis(100 * tenth))
            .filter_map(|now| failures.happened(now))
            .collect();
        assert_eq!(told, [1, 600, 600]);
    }
}
