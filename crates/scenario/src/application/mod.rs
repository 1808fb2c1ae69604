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
mod work;

use serde::{Deserialize, Serialize};
use weir_core::{IpVersion, Time};

pub use self::dns::DnsLoad;
pub use self::video::VideoLoad;
pub use self::web::WebLoad;
pub use self::work::{Action, Outcome};
use self::work::{State, Work};
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

impl Client {
    /// The client of flow number `flow`, which begins at `start` and asks for nothing at or after `stop`.
    #[must_use]
    pub fn new(application: &Application, flow: u32, (start, stop): (Time, Time)) -> Self {
        let state = State::new(flow, stop);
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

/// RFC 768.
const UDP_HEADER_BYTES: u32 = 8;
