//! Events that a method hears of, and actions that it asks for.

use crate::protocol::load::MessageSize;
use serde_json::Value;
use weir_core::{Duration, Time};

/// Names a connection or a request; the method chooses numbers and never uses one twice.
pub type Id = u32;

/// A speed test under way.
pub trait Method: Send {
    /// Handles an event at `now`, and puts what is to be done into `actions`. The first event is
    /// [`Event::Begin`].
    fn on(&mut self, now: Time, event: Event<'_>, actions: &mut Vec<Action>);

    /// Figures that the official client would show, once [`Action::Finish`] was asked for: the object that its
    /// [`MethodInfo`](crate::MethodInfo) declares.
    fn result(&self) -> Value;
}

/// Kind of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Connection {
    /// HTTP/1.1, kept alive: one request at a time.
    Http1,
    /// HTTP/2, which needs TLS: many requests at a time.
    Http2,
    /// A WebSocket (RFC 6455).
    WebSocket {
        /// Path and query.
        path: String,
        /// Value of the header `Sec-WebSocket-Protocol`.
        subprotocol: &'static str,
    },
    /// Lines of text over TCP without TLS, and datagrams to the port of the same number.
    Lines,
}

/// An action that a method asks of its driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Open a connection.
    Open {
        /// Number of the connection.
        id: Id,
        /// Kind of the connection.
        kind: Connection,
    },
    /// Send a request on an open connection.
    Request {
        /// Number of the request.
        id: Id,
        /// Number of the connection that carries the request.
        on: Id,
        /// Path and query.
        path: String,
        /// Bytes of a POST; GET if `None`.
        upload: Option<u64>,
    },
    /// Send binary messages over a WebSocket as fast as it takes them.
    Load {
        /// Number of the connection or request.
        id: Id,
        /// How long they are.
        sizes: MessageSize,
    },
    /// Send a line over a connection of lines.
    Say {
        /// Number of the connection of lines.
        id: Id,
        /// The line, without its end.
        line: String,
    },
    /// Send a datagram to where a connection of lines leads. Nobody tells whether it arrives.
    Datagram {
        /// Number of the connection.
        id: Id,
        /// Payload of the datagram, as text.
        text: String,
    },
    /// Close a connection with all its requests, or break off a request. No event comes of it.
    Close {
        /// Number of the connection or request.
        id: Id,
    },
    /// Tell [`Event::Wake`] at that time.
    WakeAt(Time),
    /// End the test.
    Finish,
}

/// Why a test cannot go on whose request was answered with `status`.
pub(crate) fn answered(status: u16) -> String {
    match status {
        TOO_MANY => format!(
            "the server answered {status}: it takes no more from this address now: try again in a minute"
        ),
        FULL => {
            format!("the server answered {status}: it takes no more now: try again in a minute")
        }
        _ => format!("the server answered {status}"),
    }
}

/// Whether a server that answers so has too much to do: what it would have answered else is not known.
pub(crate) const fn is_busy(status: u16) -> bool {
    matches!(status, TOO_MANY | FULL)
}

/// Whether a request was answered as it was meant (RFC 9110, section 15.3).
pub(crate) const fn is_success(status: u16) -> bool {
    matches!(status, 200..300)
}

/// `Too Many Requests` (RFC 6585, section 4).
const TOO_MANY: u16 = 429;
/// `Service Unavailable` (RFC 9110, section 15.6.4).
const FULL: u16 = 503;

/// An event that a method hears of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// The test begins.
    Begin,
    /// A connection can be used.
    Opened {
        /// Number of the connection or request.
        id: Id,
        /// How long TCP's handshake took.
        tcp: Duration,
        /// How long TLS' took, brought to one round trip; `None` without TLS.
        tls: Option<Duration>,
    },
    /// The head of a response has come.
    Head {
        /// Number of the request.
        id: Id,
        /// HTTP status of the response.
        status: u16,
        /// How long the server says that it took, if it does (`Server-Timing`).
        server: Option<Duration>,
    },
    /// Bytes of a response's body or of binary messages have come.
    Received {
        /// Number of the request or connection.
        id: Id,
        /// Bytes that came.
        bytes: u64,
    },
    /// Bytes of a request's body were acknowledged, or the kernel has taken bytes of binary messages.
    Sent {
        /// Number of the request or connection.
        id: Id,
        /// Bytes that were acknowledged or taken.
        bytes: u64,
    },
    /// A text has come: a message, a line without its end, or the body of a response that is JSON.
    Text {
        /// Number of the connection or request.
        id: Id,
        /// The text.
        text: &'a str,
    },
    /// A response is complete, or a connection was closed in order.
    Ended {
        /// Number of the connection or request.
        id: Id,
    },
    /// A request or connection failed.
    Failed {
        /// Number of the connection or request.
        id: Id,
        /// Reason of the failure, in words.
        reason: &'a str,
    },
    /// A time that was asked for has come.
    Wake,
}

/// An [`Event`] that keeps, for whoever tells it later than it happens.
#[derive(Clone, Debug)]
pub enum News {
    /// An event without words.
    Event(Event<'static>),
    /// Owned form of [`Event::Text`].
    Text {
        /// Number of the connection or request.
        id: Id,
        /// The text.
        text: String,
    },
    /// Owned form of [`Event::Failed`].
    Failed {
        /// Number of the connection or request.
        id: Id,
        /// Reason of the failure, in words.
        reason: String,
    },
}

impl News {
    /// An event that a method hears of.
    #[must_use]
    pub fn event(&self) -> Event<'_> {
        match self {
            Self::Event(event) => *event,
            Self::Text { id, text } => Event::Text { id: *id, text },
            Self::Failed { id, reason } => Event::Failed { id: *id, reason },
        }
    }
}
