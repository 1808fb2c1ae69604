//! The server's end of Weir's own protocol (`docs/protocol.md`).

mod flow;
mod session;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use weir_protocol::weir::{EchoRequest, Token};

pub(crate) use flow::{Flow, answer as answer_flow};
use session::Session;
pub(crate) use session::{Echo, answer as answer_control};

/// All sessions, and the flows that wait for connections.
#[derive(Default)]
pub(crate) struct Sessions {
    open: Mutex<BTreeMap<Token, Arc<Session>>>,
    tickets: Mutex<BTreeMap<Token, Arc<Flow>>>,
}

impl Sessions {
    /// A datagram asks to be echoed. `tos` is the TOS byte with which it came.
    pub fn echo(&self, from: IpAddr, request: &EchoRequest, tos: u8) -> Option<Echo> {
        let session = self.open.lock().expect(HELD).get(&request.token).map(Arc::clone)?;
        // The session's connection has shown that its address is the client's; no other gets an answer.
        (session.client() == from.to_canonical()).then(|| session.echo(request, tos)).flatten()
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
