//! The loop between a method and its connections.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::ControlFlow;
use std::time::Duration as WallDuration;

use bytes::Bytes;
use hyper::header::HeaderValue;
use serde_json::Value;
use tokio::net::UdpSocket;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::{AbortHandle, JoinHandle};
use weir_core::{Duration, Time, error_in_words};
use weir_sockets::Clock;
use weir_speedtest::protocol::weir::Secret;
use weir_speedtest::{Action, Connection, Event, Id, Method, MethodInfo, News};

use super::address::Url;
use super::http::{self, CHUNK, Http, Life, Upload};
use super::lines::{self, Lines};
use super::transport::Dialer;
use super::trust::Trust;
use super::websocket;
use crate::ClientError;

/// The test that is run, and its server.
#[derive(Clone, Debug)]
pub struct MethodRequest {
    /// The name of one of [`weir_speedtest::METHODS`].
    pub method: String,
    /// The server, as [`Url::parse`] reads it.
    pub url: String,
    /// Whether its certificate has to be one that this machine believes.
    pub verify: bool,
    /// The secret that the server asks for: every request carries it (RFC 6750).
    pub secret: Option<String>,
}

/// Runs a test as its official client would, and returns what that client would show. `progress` is told
/// the time a few times a second and may end it.
///
/// # Errors
/// If the words are wrong, the server is not known, or the test does not end within three minutes.
pub fn run_method(
    request: &MethodRequest,
    mut progress: impl FnMut(Time) -> ControlFlow<()>,
) -> Result<Value, ClientError> {
    let known = MethodInfo::named(&request.method)
        .map_err(|error| ClientError::input(error.to_string()))?;
    let url = Url::parse(&request.url)?;
    if known.needs_tls && !url.tls {
        return Err(ClientError::input(format!(
            "server `{}`: {} needs HTTP/2 over TLS: write https://",
            request.url, known.name
        )));
    }
    let bearer = request.secret.as_deref().map(|words| bearer(words, known, &url)).transpose()?;
    let address = url.find()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| ClientError::io("starting the test", &error))?;
    let trust = if request.verify && url.tls {
        Trust::of_this_machine().map_err(|error| ClientError::io(&request.url, &error))?
    } else {
        Trust::Anybody
    };
    let dialer = Dialer::new(url, address, trust, bearer);
    let result = runtime.block_on(async {
        let mut drive = Drive::new(known.begin(chance()?), dialer)?;
        drive.run(&mut progress).await
    });
    runtime.shutdown_background();
    result
}

/// How requests tell the secret, where nobody on the way reads along.
fn bearer(words: &str, known: &MethodInfo, url: &Url) -> Result<HeaderValue, ClientError> {
    if !known.has_headers {
        return Err(ClientError::input(format!(
            "--auth: {} has no place for a secret: leave it out",
            known.name
        )));
    }
    if !url.tls {
        return Err(ClientError::input(format!(
            "--auth: {} tells the secret with every request, and over http:// to whoever reads along: write \
             https://{}{}",
            known.name, url.authority, url.base
        )));
    }
    let wrong = |error: &dyn std::fmt::Display| ClientError::input(format!("--auth: {error}"));
    Secret::new(words).map_err(|error| wrong(&error))?;
    let mut header =
        HeaderValue::try_from(format!("Bearer {}", words.trim())).map_err(|error| wrong(&error))?;
    header.set_sensitive(true);
    Ok(header)
}

/// An event with its time, in ns on `CLOCK_MONOTONIC`.
pub(super) struct TimedEvent {
    at_ns: u64,
    what: DriveEvent,
}

/// Events of a speed test: a connection that is open, or news for the method.
pub(super) enum DriveEvent {
    Http {
        id: Id,
        http: Http,
        life: Life,
        tcp: Duration,
        tls: Option<Duration>,
    },
    WebSocket {
        id: Id,
        sender: websocket::Sender,
        receiver: websocket::Receiver,
        tcp: Duration,
        tls: Option<Duration>,
    },
    Lines {
        id: Id,
        lines: Lines,
    },
    News(News),
}

impl From<News> for DriveEvent {
    fn from(news: News) -> Self {
        Self::News(news)
    }
}

impl From<Event<'static>> for DriveEvent {
    fn from(event: Event<'static>) -> Self {
        Self::News(News::Event(event))
    }
}

/// Says that it happens now. Whoever no longer listens has ended the test.
pub(super) fn tell(events: &UnboundedSender<TimedEvent>, what: impl Into<DriveEvent>) {
    let _ = events
        .send(TimedEvent { at_ns: weir_sockets::sys::time::monotonic_ns(), what: what.into() });
}

struct Drive {
    method: Box<dyn Method>,
    dialer: Dialer,
    clock: Clock,
    tell: UnboundedSender<TimedEvent>,
    events: UnboundedReceiver<TimedEvent>,
    open: BTreeMap<Id, Open>,
    /// The requests that were sent on each connection.
    requests: BTreeMap<Id, Vec<Id>>,
    tasks: BTreeMap<Id, AbortHandle>,
    wakes: BinaryHeap<Reverse<Time>>,
    random_payload: Bytes,
}

/// An open connection.
enum Open {
    Http(Http, Life),
    WebSocket(Option<websocket::Sender>),
    Lines(UnboundedSender<String>, UdpSocket),
}

impl Drive {
    fn new(method: Box<dyn Method>, dialer: Dialer) -> Result<Self, ClientError> {
        let mut random_payload = vec![0; RANDOM_PAYLOAD_BYTES];
        fill(&mut random_payload)?;
        let (tell, events) = unbounded_channel();
        Ok(Self {
            method,
            dialer,
            clock: Clock::starting_in(Duration::ZERO),
            tell,
            events,
            open: BTreeMap::new(),
            requests: BTreeMap::new(),
            tasks: BTreeMap::new(),
            wakes: BinaryHeap::new(),
            random_payload: random_payload.into(),
        })
    }

    async fn run(
        &mut self,
        progress: &mut impl FnMut(Time) -> ControlFlow<()>,
    ) -> Result<Value, ClientError> {
        let mut actions = Vec::new();
        self.method.on(self.clock.now(), Event::Begin, &mut actions);
        loop {
            for action in std::mem::take(&mut actions) {
                if action == Action::Finish {
                    return Ok(self.method.result());
                }
                self.act(action);
            }
            let now = self.clock.now();
            if progress(now).is_break() {
                return Err(ClientError::new("the test was interrupted"));
            }
            if now >= MAX_TEST_DURATION {
                return Err(ClientError::new(format!(
                    "the test did not end within {MAX_TEST_DURATION}"
                )));
            }
            let due = self.wakes.peek().map_or(Time::MAX, |wake| wake.0);
            let wait = self.clock.until(due).min(POLL);
            let wait = WallDuration::from_nanos(wait.as_nanos());
            match tokio::time::timeout(wait, self.events.recv()).await {
                Ok(Some(event)) => self.hear(event, &mut actions),
                Ok(None) => {
                    return Err(ClientError::new("the test ended by a bug: please report it"));
                }
                Err(_) => self.wake(self.clock.now(), &mut actions),
            }
        }
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Open { id, kind } => {
                let task = tokio::spawn(open(id, kind, self.dialer.clone(), self.tell.clone()));
                self.watch(id, &task);
            }
            Action::Request { id, on, path, upload } => {
                let Some(Open::Http(http, _)) = self.open.get(&on) else {
                    let reason = "its connection is closed".to_owned();
                    return tell(&self.tell, News::Failed { id, reason });
                };
                let upload = upload.map(|left| Upload {
                    left,
                    random_payload: self.random_payload.slice(..CHUNK),
                });
                let (dialer, tell) = (self.dialer.clone(), self.tell.clone());
                let task = http::request(id, http.clone(), dialer, path, upload, tell);
                let task = tokio::spawn(task);
                self.watch(id, &task);
                self.requests.entry(on).or_default().push(id);
            }
            Action::Load { id, sizes } => {
                if let Some(Open::WebSocket(sender)) = self.open.get_mut(&id)
                    && let Some(sender) = sender.take()
                {
                    let (random_payload, tell) = (self.random_payload.clone(), self.tell.clone());
                    // It ends with its connection.
                    let task =
                        tokio::spawn(websocket::load(id, sender, sizes, random_payload, tell));
                    self.tasks.insert(LOADS + id, task.abort_handle());
                }
            }
            Action::Say { id, line } => {
                if let Some(Open::Lines(lines, _)) = self.open.get(&id) {
                    // Once it has failed, the receiving half says so.
                    let _ = lines.send(line);
                }
            }
            Action::Datagram { id, text } => {
                if let Some(Open::Lines(_, datagrams)) = self.open.get(&id) {
                    // What cannot be sent is lost, as what is lost on the way; where nobody listens, the
                    // answer to the one before is an error here.
                    let _ = datagrams.try_send(text.as_bytes());
                }
            }
            Action::Close { id } => {
                // HTTP/2 keeps a connection as long as a request of it goes on.
                let requests = self.requests.remove(&id).unwrap_or_default();
                for task in requests.into_iter().chain([id, LOADS + id]) {
                    if let Some(task) = self.tasks.remove(&task) {
                        task.abort();
                    }
                }
                if let Some(Open::Http(_, life)) = self.open.remove(&id) {
                    life.abort();
                }
            }
            Action::WakeAt(at) => self.wakes.push(Reverse(at)),
            Action::Finish => {}
        }
    }

    fn wake(&mut self, now: Time, actions: &mut Vec<Action>) {
        while self.wakes.peek().is_some_and(|wake| wake.0 <= now) {
            self.wakes.pop();
            self.method.on(now, Event::Wake, actions);
        }
    }

    fn watch(&mut self, id: Id, task: &JoinHandle<()>) {
        self.tasks.insert(id, task.abort_handle());
    }

    fn hear(&mut self, event: TimedEvent, actions: &mut Vec<Action>) {
        let now = self.clock.of_monotonic_ns(event.at_ns);
        // While more comes than can be heard nothing else would wake it.
        self.wake(now, actions);
        let news = match event.what {
            DriveEvent::Http { id, http, life, tcp, tls } => {
                self.open.insert(id, Open::Http(http, life));
                News::Event(Event::Opened { id, tcp, tls })
            }
            DriveEvent::WebSocket { id, sender, receiver, tcp, tls } => {
                self.open.insert(id, Open::WebSocket(Some(sender)));
                let task = tokio::spawn(websocket::receive(id, receiver, self.tell.clone()));
                self.watch(id, &task);
                News::Event(Event::Opened { id, tcp, tls })
            }
            DriveEvent::Lines { id, lines: Lines { reads, writes, datagrams, tcp } } => {
                let (say, said) = unbounded_channel();
                self.open.insert(id, Open::Lines(say, datagrams));
                let receiving = tokio::spawn(lines::receive(id, reads, self.tell.clone()));
                self.watch(id, &receiving);
                let sending = tokio::spawn(lines::send(writes, said));
                self.watch(LOADS + id, &sending);
                News::Event(Event::Opened { id, tcp, tls: None })
            }
            DriveEvent::News(news) => news,
        };
        self.method.on(now, news.event(), actions);
    }
}

/// Random bits.
fn chance() -> Result<u128, ClientError> {
    let mut bytes = [0; 16];
    fill(&mut bytes)?;
    Ok(u128::from_ne_bytes(bytes))
}

fn fill(bytes: &mut [u8]) -> Result<(), ClientError> {
    getrandom::fill(bytes)
        .map_err(|error| ClientError::new(format!("this machine has no random numbers: {error}")))
}

async fn open(id: Id, kind: Connection, dialer: Dialer, events: UnboundedSender<TimedEvent>) {
    let happened = match kind {
        Connection::WebSocket { path, subprotocol } => {
            match websocket::open(&dialer, &path, subprotocol).await {
                Ok((sender, receiver, took)) => {
                    DriveEvent::WebSocket { id, sender, receiver, tcp: took.tcp, tls: took.tls }
                }
                Err(reason) => News::Failed { id, reason }.into(),
            }
        }
        Connection::Lines => match lines::open(&dialer).await {
            Ok(lines) => DriveEvent::Lines { id, lines },
            Err(error) => News::Failed { id, reason: error_in_words(&error) }.into(),
        },
        Connection::Http1 | Connection::Http2 => {
            let two = kind == Connection::Http2;
            match open_http(&dialer, two).await {
                Ok((http, life, tcp, tls)) => DriveEvent::Http { id, http, life, tcp, tls },
                Err(reason) => News::Failed { id, reason }.into(),
            }
        }
    };
    tell(&events, happened);
}

async fn open_http(
    dialer: &Dialer,
    two: bool,
) -> Result<(Http, Life, Duration, Option<Duration>), String> {
    let protocol: &[u8] = if two { b"h2" } else { b"http/1.1" };
    let transport = dialer.dial(protocol).await.map_err(|error| error_in_words(&error))?;
    let opened = if two {
        Http::two(transport.stream, transport.socket).await
    } else {
        Http::one(transport.stream, transport.socket).await
    };
    let (http, life) = opened.map_err(|error| error_in_words(&error))?;
    Ok((http, life, transport.tcp, transport.tls))
}

/// Numbers of sending tasks stand apart from those of connections.
const LOADS: Id = 1 << 31;
const MAX_TEST_DURATION: Time = Time::from_millis(180_000);
const POLL: Duration = Duration::from_millis(50);
/// The longest message.
const RANDOM_PAYLOAD_BYTES: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use clap::Parser;
    use serde_json::json;
    use weir_serve::{Options, Running};

    use super::*;

    /// Closes an HTTP/2 connection amid a download without end, and asks until the server has noticed.
    #[derive(Default)]
    struct Closes {
        closed: bool,
        /// Requests on the second connection, and what the last was answered.
        asked: Id,
        status: u16,
        failure: Option<String>,
    }

    impl Closes {
        const LOAD: Id = 1;
        const DOWNLOAD: Id = 2;
        const LATER: Id = 3;
        /// Ten times what a loaded machine should need.
        const MAX_EVENTS: Id = 1_000;

        fn ask(&mut self, actions: &mut Vec<Action>) {
            self.asked += 1;
            let (id, path) = (Self::LATER + self.asked, "/__down?bytes=1".to_owned());
            actions.push(Action::Request { id, on: Self::LATER, path, upload: None });
        }
    }

    impl Method for Closes {
        fn on(&mut self, now: Time, event: Event<'_>, actions: &mut Vec<Action>) {
            match event {
                Event::Begin => {
                    actions.push(Action::Open { id: Self::LOAD, kind: Connection::Http2 });
                }
                Event::Opened { id: Self::LOAD, .. } => {
                    let (id, path) = (Self::DOWNLOAD, "/large".to_owned());
                    actions.push(Action::Request { id, on: Self::LOAD, path, upload: None });
                }
                Event::Received { id: Self::DOWNLOAD, .. } if !self.closed => {
                    self.closed = true;
                    actions.push(Action::Close { id: Self::LOAD });
                    actions.push(Action::Open { id: Self::LATER, kind: Connection::Http2 });
                }
                Event::Opened { id: Self::LATER, .. } | Event::Wake => self.ask(actions),
                Event::Head { id, status, .. } if id > Self::LATER => self.status = status,
                Event::Ended { id } if id > Self::LATER => {
                    if self.status == 200 || self.asked == Self::MAX_EVENTS {
                        actions.push(Action::Finish);
                    } else {
                        actions.push(Action::WakeAt(now + Duration::from_millis(10)));
                    }
                }
                Event::Failed { reason, .. } => {
                    self.failure = Some(reason.to_owned());
                    actions.push(Action::Finish);
                }
                _ => {}
            }
        }

        fn result(&self) -> Value {
            json!({"status": self.status, "failure": self.failure})
        }
    }

    #[test]
    fn requests_of_http2_end_with_their_connection() {
        // With one test an address, a second one tells whether the first still goes on.
        let words = ["weir serve", "--listen", "127.0.0.1:0", "--without", "irtt"];
        let words = words.into_iter().chain(["--max-tests-per-address", "1"]);
        let server = Running::start(Options::try_parse_from(words).unwrap()).unwrap();
        let address = server.addresses()[0];
        let url = Url::parse(&format!("https://{address}")).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let result = runtime.block_on(async {
            let dialer = Dialer::new(url, address, Trust::Anybody, None);
            let mut drive = Drive::new(Box::<Closes>::default(), dialer).unwrap();
            drive.run(&mut |_| ControlFlow::Continue(())).await.unwrap()
        });
        assert_eq!(result, json!({"status": 200, "failure": null}));
    }
}
