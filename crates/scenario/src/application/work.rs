//! What all applications share: what they want done, how it ends, and the rows that tell of it.

use weir_core::{Duration, Time};

use crate::rows::TransferRow;

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
    /// Send a DNS query, a packet of [`QUERY_BYTES`](super::Application::QUERY_BYTES); the server answers with
    /// [`ANSWER_BYTES`](super::Application::ANSWER_BYTES).
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

/// What all kinds have.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub flow: u32,
    pub stop: Time,
    pub stopped: bool,
    pub connections: u32,
    pub queries: u64,
    /// Number of the next row.
    pub seq: u64,
    pub rows: Vec<TransferRow>,
}

/// What an event of a client works with.
pub(super) struct Work<'w> {
    pub now: Time,
    pub state: &'w mut State,
    pub actions: &'w mut Vec<Action>,
}

impl State {
    /// That of flow number `flow`, which asks for nothing at or after `stop`.
    pub const fn new(flow: u32, stop: Time) -> Self {
        Self { flow, stop, stopped: false, connections: 0, queries: 0, seq: 0, rows: Vec::new() }
    }
}

impl Work<'_> {
    /// Opens a connection, and says its number.
    pub fn open(&mut self) -> u32 {
        let connection = self.state.connections;
        self.state.connections += 1;
        self.actions.push(Action::Open { connection });
        connection
    }

    pub fn ask(&mut self, connection: u32, request: u64, response: u64) {
        self.actions.push(Action::Ask { connection, request, response });
    }

    pub fn close(&mut self, connection: u32) {
        self.actions.push(Action::Close { connection });
    }

    /// A row of what was asked for at `begun`, with what all kinds tell.
    pub fn row(&mut self, begun: Time, outcome: Outcome) -> &mut TransferRow {
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
pub(super) fn check_time(key: &str, ns: u64, (least, most): (u64, u64)) -> Result<(), String> {
    if (least..=most).contains(&ns) {
        return Ok(());
    }
    let [ns, least, most] = [ns, least, most].map(Duration::from_nanos);
    Err(format!("{key} {ns}: write {least} to {most}"))
}

/// Shortest and longest time between two of what an application asks for.
pub(super) const PERIODS_NS: (u64, u64) = (1_000_000, 3_600_000_000_000);
