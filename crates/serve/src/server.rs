//! A server from its start to its end.

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
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{debug, info, warn};

use crate::admission::{Admission, Bounds, Refusal, Thing};
use crate::connection::{Connection, Ends, Transport};
use crate::datagrams::{self, Door};
use crate::error::ServeError;
use crate::http::Client;
use crate::irtt::Irtt;
use crate::metrics::Metrics;
use crate::options::{Listen, Options, Service};
use crate::secured::Secured;
use crate::shared::Shared;
use crate::{congestion, ookla, route, tls, weir};

/// A server whose sockets are open.
pub struct Server {
    shared: Arc<Shared>,
    tls: TlsAcceptor,
    listeners: Vec<TcpListener>,
    addresses: Vec<SocketAddr>,
    irtt: Vec<SocketAddr>,
    datagrams: JoinHandle<()>,
}

/// Ends a server, from anywhere.
#[derive(Clone, Debug)]
pub struct Stop(CancellationToken);

impl Stop {
    /// Tells the server to end. It then takes nothing new, gives what is under way a moment, and ends.
    pub fn stop(&self) {
        self.0.cancel();
    }
}

impl Server {
    /// Opens everything that `options` ask for. Must be called within a Tokio runtime.
    ///
    /// # Errors
    /// If something cannot be had: what, and why.
    pub fn bind(options: Options) -> Result<Self, ServeError> {
        let secret = options.auth.as_deref().map(weir_net::read_secret).transpose();
        let secret = secret.map_err(|error| ServeError::input(error.to_string()))?;
        let tls = tls::acceptor(&options)?;
        let open_files = weir_net::sys::option::raise_open_files()
            .map_err(|error| ServeError::io("the number of open files", &error))?;
        let services = options.services();
        let (listeners, mut doors) = open_places(&options)?;
        let addresses: Vec<_> =
            listeners.iter().filter_map(|listener| listener.local_addr().ok()).collect();
        let wants_main = [Service::Weir, Service::Ookla].iter().any(|one| services.contains(one));
        if !wants_main {
            doors.clear();
        }
        if services.contains(&Service::Irtt) {
            doors.extend(open_irtt(&options)?);
        }
        let irtt = doors.iter().filter(|door| door.is_irtt()).filter_map(Door::address).collect();
        let shared = Arc::new(Shared {
            admission: Admission::new(Bounds {
                connections: options.max_connections.min(most_connections(open_files)),
                connections_per_address: options.max_connections_per_address,
                tests: options.max_tests,
                tests_per_address: options.max_tests_per_address,
                rate_bps: options.max_rate,
            }),
            metrics: Arc::new(Metrics::new()),
            sessions: weir::Sessions::default(),
            loss_tests: ookla::LossTests::default(),
            congestion: congestion::usable(),
            echoes: services.contains(&Service::Weir),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
            services,
            secret,
            options,
        });
        let datagrams = datagrams::start(&shared, doors)
            .map_err(|error| ServeError::io("starting a thread", &error))?;
        Ok(Self { shared, tls, listeners, addresses, irtt, datagrams })
    }

    /// Where it listens.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// What ends it.
    #[must_use]
    pub fn stop(&self) -> Stop {
        Stop(self.shared.stop.clone())
    }

    /// Serves until it is stopped.
    pub async fn run(self) {
        let Self { shared, tls, listeners, datagrams, .. } = self;
        self_description(&shared, &self.addresses, &self.irtt);
        for listener in listeners {
            shared.tasks.spawn(accept(Arc::clone(&shared), tls.clone(), listener));
        }
        shared.stop.cancelled().await;
        info!("stopping");
        shared.tasks.close();
        if timeout(DRAIN, shared.tasks.wait()).await.is_err() {
            warn!(left = shared.tasks.len(), "some connections did not end in time");
        }
        // It looks at nothing but the same token.
        let _ = datagrams.join();
    }
}

/// Says in the log what there is.
fn self_description(shared: &Shared, addresses: &[SocketAddr], irtt: &[SocketAddr]) {
    for address in addresses {
        info!(%address, "listening");
    }
    for address in irtt {
        info!(irtt = %address, "listening");
    }
    if !shared.congestion.iter().any(|name| name == "bbr") && shared.serves(Service::Ndt7) {
        info!("this machine has no BBR: ndt7 uses its default congestion control instead");
    }
    if shared.secret.is_some() {
        info!("clients must know the secret; protocols without a place for it are off");
    }
}

/// Opens the main ports: TCP, and UDP with the same number.
fn open_places(options: &Options) -> Result<(Vec<TcpListener>, Vec<Door>), ServeError> {
    let (mut listeners, mut doors) = (Vec::new(), Vec::new());
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
            let socket =
                datagrams::bound(address).map_err(|error| in_use("UDP", address, &error))?;
            listeners.push(listener);
            doors.push(Door::Main(socket));
        }
    }
    Ok((listeners, doors))
}

fn open_irtt(options: &Options) -> Result<Vec<Door>, ServeError> {
    let mut doors = Vec::new();
    for place in options.places() {
        for mut address in place.addresses() {
            address.set_port(options.irtt_port);
            match datagrams::bound(address) {
                Ok(socket) => doors.push(Door::Irtt(socket, Box::new(Irtt::new()))),
                Err(error) if can_do_without(place, address, &error) => {}
                // Two places of one address share it.
                Err(_) if doors.iter().any(|door| door.address() == Some(address)) => {}
                Err(error) => {
                    let error = in_use("UDP", address, &error);
                    return Err(ServeError::new(format!(
                        "irtt: {error}; choose another with --irtt-port, or --without irtt"
                    )));
                }
            }
        }
    }
    Ok(doors)
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

/// Takes connections until the end.
async fn accept(shared: Arc<Shared>, tls: TlsAcceptor, listener: TcpListener) {
    let stop = shared.stop.clone();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => return,
        };
        match accepted {
            Ok((socket, _)) => {
                let (shared, tls) = (Arc::clone(&shared), tls.clone());
                let tasks = shared.tasks.clone();
                tasks.spawn(async move {
                    if let Err(error) = serve(&shared, &tls, socket).await {
                        debug!(%error, "connection ended");
                    }
                });
            }
            Err(error) => {
                // Out of descriptors, mostly: others have to end first.
                warn!(%error, "accepting");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Serves one connection, whatever it speaks.
async fn serve(shared: &Arc<Shared>, tls: &TlsAcceptor, stream: TcpStream) -> io::Result<()> {
    let ends = Ends::of(&stream)?;
    let permit = match shared.admission.enter(Thing::Connection, ends.client.ip()) {
        Ok(permit) => permit,
        Err(refusal) => {
            shared.metrics.refused(match refusal {
                Refusal::Server => "connections",
                Refusal::Address => "connections of an address",
            });
            debug!(client = %ends.client, %refusal, "refused");
            return Ok(());
        }
    };
    shared.metrics.connections.inc();
    shared.metrics.connections_now.inc();
    let _count = Leaving(shared);
    stream.set_nodelay(true)?;
    let first = timeout(PATIENCE, sniff(&stream)).await??;
    let metrics = Arc::clone(&shared.metrics);
    let connection = Connection::new(stream, permit, metrics, LONGEST_CONNECTION);
    let socket = Arc::clone(connection.socket());
    match first {
        Speech::Tls => {
            let secured = timeout(PATIENCE, tls.accept(connection)).await??;
            speak_http(shared, Transport::Right(Box::new(Secured::new(secured))), ends, socket)
                .await
        }
        Speech::Http => speak_http(shared, Transport::Left(connection), ends, socket).await,
        Speech::Ookla if shared.serves(Service::Ookla) && shared.secret.is_none() => {
            tokio::select! {
                served = ookla::serve(shared, connection, ends) => served,
                () = shared.stop.cancelled() => Ok(()),
            }
        }
        Speech::Ookla => Ok(()),
    }
}

async fn speak_http(
    shared: &Arc<Shared>,
    transport: Transport,
    ends: Ends,
    socket: Arc<TcpStream>,
) -> io::Result<()> {
    let client = Arc::new(Client { server: Arc::clone(shared), ends, socket });
    let service = service_fn(move |request| route::answer(Arc::clone(&client), request));
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .max_buf_size(BUFFER)
        .max_headers(MOST_HEADERS);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(Some(HEARTBEAT))
        .keep_alive_timeout(PATIENCE)
        .max_concurrent_streams(MOST_STREAMS)
        .max_header_list_size(LONGEST_HEADERS)
        .max_send_buf_size(BUFFER)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW);
    let connection = builder.serve_connection_with_upgrades(TokioIo::new(transport), service);
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = shared.stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            timeout(DRAIN_HTTP, connection).await.unwrap_or(Ok(()))
        }
    };
    ended.map_err(io::Error::other)
}

/// What a client speaks, by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Speech {
    Tls,
    Http,
    Ookla,
}

impl Speech {
    const fn of(first: [u8; 2]) -> Self {
        match &first {
            // RFC 8446, section 5.1: the record of a handshake.
            [22, _] => Self::Tls,
            // No method of HTTP begins like Ookla's HI, PING, DOWNLOAD, UPLOAD, INITPLOSS, PLOSS, QUIT.
            b"HI" | b"PI" | b"DO" | b"UP" | b"IN" | b"PL" | b"QU" => Self::Ookla,
            _ => Self::Http,
        }
    }
}

/// Looks at the first two bytes without taking them.
async fn sniff(socket: &TcpStream) -> io::Result<Speech> {
    loop {
        let mut first = [0; 2];
        match socket.peek(&mut first).await? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            1 => sleep(SNIFF_PAUSE).await,
            _ => return Ok(Speech::of(first)),
        }
    }
}

/// A connection that is counted as open until this is dropped.
struct Leaving<'s>(&'s Shared);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.0.metrics.connections_now.dec();
    }
}

/// Some files are needed for other things.
fn most_connections(open_files: u64) -> u32 {
    u32::try_from(open_files.saturating_sub(OTHER_FILES)).unwrap_or(u32::MAX).max(1)
}

/// `net.core.somaxconn` bounds it.
const BACKLOG: i32 = 4096;
/// How long a client may take for what should take a round trip.
const PATIENCE: Duration = Duration::from_secs(10);
const HEARTBEAT: Duration = Duration::from_secs(15);
/// As long as the longest session, and a moment.
const LONGEST_CONNECTION: Duration = Duration::from_secs(3700);
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
const SNIFF_PAUSE: Duration = Duration::from_millis(20);
/// How long everything may take to end.
const DRAIN: Duration = Duration::from_secs(3);
const DRAIN_HTTP: Duration = Duration::from_secs(1);
const OTHER_FILES: u64 = 64;
/// Memory of a connection: what waits to be written, what may come unasked.
const BUFFER: usize = 512 << 10;
const MOST_HEADERS: usize = 64;
const LONGEST_HEADERS: u32 = 16 << 10;
/// The responsiveness test has 100 probes a second beside its load.
const MOST_STREAMS: u32 = 128;
/// 4 MiB in 20 ms are 1.6 Gbit/s.
const STREAM_WINDOW: u32 = 4 << 20;
const CONNECTION_WINDOW: u32 = 4 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bytes_tell_what_is_spoken() {
        for method in ["GET", "HEAD", "POST", "PUT", "PATCH", "PRI", "OPTIONS", "DELETE", "CONNECT"]
        {
            let bytes = method.as_bytes();
            assert_eq!(Speech::of([bytes[0], bytes[1]]), Speech::Http, "{method}");
        }
        for command in ["HI", "PING", "DOWNLOAD", "UPLOAD", "INITPLOSS", "PLOSS", "QUIT"] {
            let bytes = command.as_bytes();
            assert_eq!(Speech::of([bytes[0], bytes[1]]), Speech::Ookla, "{command}");
        }
        assert_eq!(Speech::of([22, 3]), Speech::Tls);
    }
}
