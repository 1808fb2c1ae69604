//! The server's end of Weir's own protocol (`docs/protocol.md`).

mod application;
mod flow;
mod lifetime;
mod port;
mod session;
mod udp;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use weir_speedtest::protocol::weir::{CONTROL, FLOW, FlowSample, Token};

use crate::head::path;
use crate::service::{OverHttp, Own, Rules, Service};

pub(crate) use application::ApplicationFlow;
pub(crate) use flow::ServedFlow;
pub(crate) use port::Asked;
pub(crate) use session::Session;
pub(crate) use udp::{Due, MAX_PPS, UdpFlow};

use flow::News;

pub(crate) const SERVICE: Service = Service::Own(&Own {
    name: "weir",
    summary: "Weir's own protocol, which the page needs too",
    http: Some(OverHttp {
        serves: |path| matches!(path, CONTROL | FLOW),
        answer: |client, request| {
            Box::pin(async move {
                match path(&request) {
                    CONTROL => session::answer(&client, request),
                    _ => flow::answer(&client, request).await,
                }
            })
        },
        rules: Rules { needs_secret: false, shares_no_connection: true, ..Rules::TEST },
    }),
});

/// All sessions, and the flows that wait for connections.
#[derive(Default)]
pub(crate) struct Sessions {
    open: Mutex<BTreeMap<Token, Arc<Session>>>,
    tickets: Mutex<BTreeMap<Token, Arc<ServedFlow>>>,
    udp: Mutex<BTreeMap<Token, Arc<UdpFlow>>>,
    applications: Mutex<BTreeMap<Token, Arc<ApplicationFlow>>>,
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

    fn sell(&self, ticket: Token, flow: &Arc<ServedFlow>) {
        self.tickets.lock().expect(HELD).insert(ticket, Arc::clone(flow));
    }

    fn flow(&self, ticket: Token) -> Option<Arc<ServedFlow>> {
        self.tickets.lock().expect(HELD).get(&ticket).map(Arc::clone)
    }

    fn sell_udp(&self, flow: &Arc<UdpFlow>) {
        self.udp.lock().expect(HELD).insert(flow.ticket, Arc::clone(flow));
    }

    /// The UDP load that a datagram with this ticket belongs to, if it comes from the address of its session.
    pub fn udp(&self, ticket: Token, from: IpAddr) -> Option<Arc<UdpFlow>> {
        let flow = self.udp.lock().expect(HELD).get(&ticket).map(Arc::clone)?;
        flow.is_of(from).then_some(flow)
    }

    fn sell_application(&self, flow: &Arc<ApplicationFlow>) {
        self.applications.lock().expect(HELD).insert(flow.ticket, Arc::clone(flow));
    }

    /// The application that this ticket belongs to, if it comes from the address of its session.
    pub fn application(&self, ticket: Token, from: IpAddr) -> Option<Arc<ApplicationFlow>> {
        let flow = self.applications.lock().expect(HELD).get(&ticket).map(Arc::clone)?;
        flow.is_of(from).then_some(flow)
    }

    fn void(&self, ticket: Token) {
        self.tickets.lock().expect(HELD).remove(&ticket);
        self.udp.lock().expect(HELD).remove(&ticket);
        self.applications.lock().expect(HELD).remove(&ticket);
    }
}

/// A flow of a session.
#[derive(Clone)]
enum Flow {
    Tcp(Arc<ServedFlow>),
    Udp(Arc<UdpFlow>),
    Application(Arc<ApplicationFlow>),
}

impl Flow {
    fn ticket(&self) -> Token {
        match self {
            Self::Tcp(flow) => flow.ticket,
            Self::Udp(flow) => flow.ticket,
            Self::Application(flow) => flow.ticket,
        }
    }

    fn wants_samples(&self) -> bool {
        let request = match self {
            Self::Tcp(flow) => &flow.request,
            Self::Udp(flow) => &flow.request,
            Self::Application(flow) => &flow.request,
        };
        request.sample_ns.is_some()
    }

    fn has_started(&self) -> bool {
        match self {
            Self::Tcp(flow) => flow.has_started(),
            Self::Udp(flow) => flow.has_started(),
            Self::Application(flow) => flow.has_started(),
        }
    }

    fn sample(&self) -> FlowSample {
        match self {
            Self::Tcp(flow) => flow.sample(),
            Self::Udp(flow) => flow.sample(),
            Self::Application(flow) => flow.sample(),
        }
    }
}

const HELD: &str = "nothing panics while it is held";
