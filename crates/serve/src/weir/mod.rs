//! The server's end of Weir's own protocol (`docs/protocol.md`).

mod flow;
mod session;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use weir_protocol::weir::Token;

pub(crate) use flow::{Flow, answer as answer_flow};
pub(crate) use session::{Session, answer as answer_control};

/// All sessions, and the flows that wait for connections.
#[derive(Default)]
pub(crate) struct Sessions {
    open: Mutex<BTreeMap<Token, Arc<Session>>>,
    tickets: Mutex<BTreeMap<Token, Arc<Flow>>>,
}

impl Sessions {
    /// The session that a datagram with this token belongs to. The session's connection has shown that its
    /// address is the client's; no other address has it.
    pub fn session(&self, token: Token, from: IpAddr) -> Option<Arc<Session>> {
        let session = self.open.lock().expect(HELD).get(&token).map(Arc::clone)?;
        (session.client() == from.to_canonical()).then_some(session)
    }

    fn open(&self, session: &Arc<Session>) {
        self.open.lock().expect(HELD).insert(session.token(), Arc::clone(session));
    }

    fn close(&self, session: &Session) {
        self.open.lock().expect(HELD).remove(&session.token());
    }

    fn sell(&self, ticket: Token, flow: &Arc<Flow>) {
        self.tickets.lock().expect(HELD).insert(ticket, Arc::clone(flow));
    }

    fn flow(&self, ticket: Token) -> Option<Arc<Flow>> {
        self.tickets.lock().expect(HELD).get(&ticket).map(Arc::clone)
    }

    fn void(&self, ticket: Token) {
        self.tickets.lock().expect(HELD).remove(&ticket);
    }
}

const HELD: &str = "nothing panics while it is held";
