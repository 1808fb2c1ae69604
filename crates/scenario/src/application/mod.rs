//! Applications: what people wait for. A client that asks a server for pages, names or pieces of a video, again and again.
//!
//! A [`Client`] is what every world runs: events go in, actions come out, and rows of the record. Who drives it has the
//! sockets, real or simulated; a server needs no state but the lengths that a client announces.

mod channel;
mod dns;
mod lookup;
pub mod sizes;
mod video;
mod web;

use serde::{Deserialize, Serialize};
use weir_core::{Duration, IpVersion, Time};

pub use self::dns::DnsLoad;
pub use self::video::VideoLoad;
pub use self::web::WebLoad;
use crate::rows::TransferRow;

/// What an application asks its server for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Application {
    /// Pages with objects, over HTTP.
    Web(WebLoad),
    /// Pieces of a video, of the bitrate that the path carries.
    Video(VideoLoad),
    /// Addresses of names.
    Dns(DnsLoad),
}

/// Something that a client wants done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Open a TCP connection to the server. What is asked before it is open waits.
    Open {
        /// Number of the connection, never used twice.
        connection: u32,
    },
    /// Send a request over a connection; the server answers requests of a connection one after the other.
    Ask {
        /// Number of the connection.
        connection: u32,
        /// Bytes of the request.
        request: u64,
        /// Bytes of the answer, which the server sends once it has the whole request.
        response: u64,
    },
    /// Close a connection.
    Close {
        /// Number of the connection.
        connection: u32,
    },
    /// Send a DNS query, a packet of [`Application::QUERY_BYTES`]; the server answers with [`Application::ANSWER_BYTES`].
    Query {
        /// Number of the query: its answer has it too. One that is sent again keeps it.
        number: u64,
    },
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All of it is there.
    Done,
    /// It took longer than the application waits.
    GivenUp,
    /// The flow was stopped before.
    Cut,
}

impl Outcome {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Done, Self::GivenUp, Self::Cut];

    /// Its word in the record.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::GivenUp => "given_up",
            Self::Cut => "cut",
        }
    }
}

impl Application {
    /// The key of a test's flow that makes it one.
    #[must_use]
    pub const fn key(&self) -> &'static str {
        match self {
            Self::Web(_) => "web",
            Self::Video(_) => "video",
            Self::Dns(_) => "dns",
        }
    }

    /// Whether it opens TCP connections.
    #[must_use]
    pub const fn uses_tcp(&self) -> bool {
        !matches!(self, Self::Dns(_))
    }

    /// Time between two names that it looks up, in nanoseconds; `None` if it looks none up.
    #[must_use]
    pub const fn name_period_ns(&self) -> Option<u64> {
        match self {
            Self::Dns(dns) => Some(dns.every_ns),
            Self::Web(web) if web.dns => Some(web.every_ns),
            Self::Web(_) | Self::Video(_) => None,
        }
    }

    /// Checks that it can run.
    pub(crate) fn check(&self) -> Result<(), String> {
        match self {
            Self::Web(web) => web.check(),
            Self::Video(video) => video.check(),
            Self::Dns(dns) => dns.check(),
        }
    }

    /// UDP payload of a query: a header of 12 bytes (RFC 1035), a name of 22 letters and an option for longer answers
    /// (RFC 6891).
    pub const QUERY_BYTES: u32 = 51;
    /// UDP payload of its answer: the question again, an alias and two addresses.
    pub const ANSWER_BYTES: u32 = 120;

    /// Bytes of an IP packet with such an answer.
    #[must_use]
    pub const fn answer_ip_len(ip_version: IpVersion) -> u32 {
        ip_version.header_bytes() + UDP_HEADER_BYTES + Self::ANSWER_BYTES
    }

    /// Connections that it may have open at once.
    #[must_use]
    pub const fn max_connections(&self) -> u32 {
        match self {
            Self::Web(web) => web.connections,
            Self::Video(_) => 1,
            Self::Dns(_) => 0,
        }
    }
}

/// The client of an application.
#[derive(Clone, Debug)]
pub struct Client {
    kind: Kind,
    state: State,
}

#[derive(Clone, Debug)]
enum Kind {
    Web(web::Web),
    Video(video::Video),
    Dns(dns::Dns),
}

/// What all kinds have.
#[derive(Clone, Debug)]
struct State {
    flow: u32,
    stop: Time,
    stopped: bool,
    connections: u32,
    queries: u64,
    /// Number of the next row.
    seq: u64,
    rows: Vec<TransferRow>,
}

/// What an event of a client works with.
struct Work<'w> {
    now: Time,
    state: &'w mut State,
    actions: &'w mut Vec<Action>,
}

impl Client {
    /// The client of flow number `flow`, which begins at `start` and asks for nothing at or after `stop`.
    #[must_use]
    pub fn new(application: &Application, flow: u32, (start, stop): (Time, Time)) -> Self {
        let state = State {
            flow,
            stop,
            stopped: false,
            connections: 0,
            queries: 0,
            seq: 0,
            rows: Vec::new(),
        };
        let kind = match application {
            Application::Web(load) => Kind::Web(web::Web::new(*load, start)),
            Application::Video(load) => Kind::Video(video::Video::new(load.clone(), start)),
            Application::Dns(load) => Kind::Dns(dns::Dns::new(*load, start)),
        };
        Self { kind, state }
    }

    /// When [`Client::on_due`] is to be called next, if ever.
    #[must_use]
    pub fn next_due(&self) -> Option<Time> {
        if self.state.stopped {
            return None;
        }
        let (due, begins) = match &self.kind {
            Kind::Web(web) => (web.due(), web.begins()),
            Kind::Video(video) => (video.due(), video.begins()),
            Kind::Dns(dns) => (dns.due(), dns.begins()),
        };
        // Nothing begins at the stop or later; what is under way is still looked after until then.
        let begins = begins.filter(|&at| at < self.state.stop);
        [due, begins].into_iter().flatten().min()
    }

    /// The time that it waited for has come.
    pub fn on_due(&mut self, now: Time, actions: &mut Vec<Action>) {
        self.work(now, actions, |kind, work| match kind {
            Kind::Web(web) => web.on_due(work),
            Kind::Video(video) => video.on_due(work),
            Kind::Dns(dns) => dns.on_due(work),
        });
    }

    /// `bytes` more of the server's answers on a connection have come, in order.
    pub fn on_received(
        &mut self,
        connection: u32,
        bytes: u64,
        now: Time,
        actions: &mut Vec<Action>,
    ) {
        self.work(now, actions, |kind, work| match kind {
            Kind::Web(web) => web.on_received(connection, bytes, work),
            Kind::Video(video) => video.on_received(connection, bytes, work),
            Kind::Dns(_) => {}
        });
    }

    /// The answer to query `number` has come, or a copy of it.
    pub fn on_answer(&mut self, number: u64, now: Time, actions: &mut Vec<Action>) {
        self.work(now, actions, |kind, work| match kind {
            Kind::Web(web) => web.on_answer(number, work),
            Kind::Video(_) => {}
            Kind::Dns(dns) => dns.on_answer(number, work),
        });
    }

    /// The flow stops: what is under way is cut off, and nothing more happens.
    pub fn stop(&mut self, now: Time, actions: &mut Vec<Action>) {
        self.work(now, actions, |kind, work| match kind {
            Kind::Web(web) => web.stop(work),
            Kind::Video(video) => video.stop(work),
            Kind::Dns(dns) => dns.stop(work),
        });
        self.state.stopped = true;
    }

    /// Whether the flow has stopped.
    #[must_use]
    pub const fn is_stopped(&self) -> bool {
        self.state.stopped
    }

    /// What has ended since this was last asked for.
    pub fn take_rows(&mut self) -> std::vec::Drain<'_, TransferRow> {
        self.state.rows.drain(..)
    }

    fn work(
        &mut self,
        now: Time,
        actions: &mut Vec<Action>,
        act: impl FnOnce(&mut Kind, &mut Work<'_>),
    ) {
        if !self.state.stopped {
            act(&mut self.kind, &mut Work { now, state: &mut self.state, actions });
        }
    }
}

impl Work<'_> {
    /// Opens a connection, and says its number.
    fn open(&mut self) -> u32 {
        let connection = self.state.connections;
        self.state.connections += 1;
        self.actions.push(Action::Open { connection });
        connection
    }

    fn ask(&mut self, connection: u32, request: u64, response: u64) {
        self.actions.push(Action::Ask { connection, request, response });
    }

    fn close(&mut self, connection: u32) {
        self.actions.push(Action::Close { connection });
    }

    /// A row of what was asked for at `begun`, with what all kinds tell.
    fn row(&mut self, begun: Time, outcome: Outcome) -> &mut TransferRow {
        let row = TransferRow {
            t: begun,
            flow: self.state.flow,
            seq: self.state.seq,
            // Clocks of arrivals are compared to within a microsecond: what took no time may seem to take less.
            took: self.now.checked_since(begun).unwrap_or(Duration::ZERO),
            outcome: outcome.word(),
            first_byte: None,
            bytes: 0,
            queries: 0,
            segment: None,
        };
        self.state.seq += 1;
        self.state.rows.push(row);
        self.state.rows.last_mut().expect("it was just put there")
    }
}

/// Checks a time within which something may happen or be waited for.
fn check_time(key: &str, ns: u64, (least, most): (u64, u64)) -> Result<(), String> {
    if (least..=most).contains(&ns) {
        return Ok(());
    }
    let [ns, least, most] = [ns, least, most].map(Duration::from_nanos);
    Err(format!("{key} {ns}: write {least} to {most}"))
}

/// RFC 768.
const UDP_HEADER_BYTES: u32 = 8;
/// Shortest and longest time between two of what an application asks for.
const PERIODS_NS: (u64, u64) = (1_000_000, 3_600_000_000_000);
