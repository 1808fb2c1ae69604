//! One application: as many connections and names as its client asks for, within its time.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use hyper::StatusCode;
use socket2::SockRef;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::Duration;
use tokio_util::sync::CancellationToken;
use weir_sockets::load::application::parse;
use weir_speedtest::protocol::weir::{APPLICATION_UPGRADE, FlowRequest, FlowSample, Token};

use super::flow::set_up;
use super::lifetime::Lifetime;
use super::port::{Asked, ProvenPort};
use super::{News, Session};
use crate::connection::{OverTcp, Transport};
use crate::data;
use crate::head::query;
use crate::http::{Client, HttpRequest, HttpResponse, text};
use crate::upgrade;

/// An application that was asked for.
pub(crate) struct ApplicationFlow {
    pub request: FlowRequest,
    pub ticket: Token,
    session: Arc<Session>,
    bytes: AtomicU64,
    has_started: AtomicBool,
    /// Connections that it may still have.
    connections: Arc<Semaphore>,
    /// Where its names are asked for.
    port: Mutex<ProvenPort>,
    life: Lifetime,
}

impl ApplicationFlow {
    pub fn new(
        request: FlowRequest,
        session: Arc<Session>,
        (stop, news): (CancellationToken, mpsc::Sender<News>),
    ) -> Arc<Self> {
        Arc::new(Self {
            request,
            ticket: Token(data::random()),
            session,
            bytes: AtomicU64::new(0),
            has_started: AtomicBool::new(false),
            connections: Arc::new(Semaphore::new(MAX_CONNECTIONS as usize)),
            port: Mutex::default(),
            life: Lifetime::new(stop, news),
        })
    }

    pub fn is_of(&self, client: IpAddr) -> bool {
        self.session.client() == client.to_canonical() && !self.life.is_stopped()
    }

    pub fn has_started(&self) -> bool {
        self.has_started.load(Ordering::Relaxed)
    }

    pub fn stop(&self) {
        self.life.stop();
    }

    pub fn sample(&self) -> FlowSample {
        let bytes = self.bytes.load(Ordering::Relaxed);
        FlowSample { flow: self.request.flow, bytes, tcp: None, udp: None }
    }

    /// Tells when its time is over: a little later than the client's, which ends it in its own time.
    pub async fn watch(self: Arc<Self>) {
        self.life.watch(&self.request, FAREWELL).await;
    }

    /// A datagram from `port` asks for the port's cookie, or shows it.
    pub fn asked(&self, port: SocketAddr, asked: Option<IpAddr>, cookie: u64) -> Asked {
        let mut known = self.port.lock().expect(HELD);
        let becomes = known.asked(port, asked, cookie, self.session.clock().now());
        drop(known);
        self.begin_if(becomes)
    }

    /// A query from `port` shows `cookie`.
    pub fn shown(&self, port: SocketAddr, cookie: u64) -> Asked {
        let becomes = self.port.lock().expect(HELD).shown(port, cookie);
        self.begin_if(becomes)
    }

    /// Whether one more name is answered: not if there were too many.
    pub fn may_answer(&self) -> bool {
        self.session.may_answer()
    }

    /// Counts bytes that were sent.
    pub fn passed(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    fn begin_if(&self, becomes: Asked) -> Asked {
        if becomes == Asked::Begins {
            self.begin();
        }
        becomes
    }

    fn begin(&self) {
        if !self.has_started.swap(true, Ordering::Relaxed) {
            self.life.begins();
        }
    }

    /// Answers on a connection, with `first` bytes to the request that opened it, until the client or its time ends it.
    async fn serve(&self, mut transport: Transport, begun: Bytes, first: u64) -> io::Result<()> {
        set_up(&self.request, transport.socket())?;
        // As web servers do: the last packet of an answer waits for no acknowledgement.
        SockRef::from(&**transport.socket()).set_tcp_nodelay(true)?;
        // A player whose buffer is full asks for nothing for a long time; its flow's time ends it.
        transport.may_rest();
        self.begin();
        self.send(&mut transport, first).await?;
        let mut heard = begun.to_vec();
        let mut buffer = [0; READ_BYTES];
        loop {
            match parse(&heard) {
                Ok(Some((_, response, length))) => {
                    heard.drain(..length);
                    self.send(&mut transport, response).await?;
                }
                Ok(None) => {
                    let bytes = transport.read(&mut buffer).await?;
                    if bytes == 0 {
                        return Ok(());
                    }
                    heard.extend_from_slice(&buffer[..bytes]);
                }
                Err(_) => return Ok(()),
            }
        }
    }

    async fn send(&self, transport: &mut Transport, bytes: u64) -> io::Result<()> {
        let mut left = bytes;
        while left > 0 {
            let chunk = data::bytes(left.min(data::MAX_CHUNK_BYTES as u64) as usize);
            let sent = transport.write(&chunk).await? as u64;
            if sent == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            self.passed(sent);
            left -= sent;
        }
        transport.flush().await
    }
}

/// A connection of an application opens: its first request comes with it.
pub(super) fn answer(
    client: &Client,
    flow: Arc<ApplicationFlow>,
    mut request: HttpRequest,
) -> HttpResponse {
    let first = query(&request).get("answer").and_then(|bytes| bytes.parse().ok());
    let Some(first) = first else {
        return text(StatusCode::BAD_REQUEST, "`answer` has to say how many bytes\n");
    };
    let Some((response, upgrade)) = upgrade::plain(&mut request, APPLICATION_UPGRADE) else {
        return text(StatusCode::UPGRADE_REQUIRED, "this flow is an application\n");
    };
    let Ok(permit) = Arc::clone(&flow.connections).try_acquire_owned() else {
        let words = format!("this flow has {MAX_CONNECTIONS} connections already\n");
        return text(StatusCode::TOO_MANY_REQUESTS, words);
    };
    client.server.tasks.spawn(async move {
        if let Some((transport, begun)) = upgrade.complete().await {
            on_connection(&flow, transport, begun, first, permit).await;
        }
    });
    response
}

async fn on_connection(
    flow: &ApplicationFlow,
    transport: Transport,
    begun: Bytes,
    first: u64,
    _permit: OwnedSemaphorePermit,
) {
    tokio::select! {
        biased;
        () = flow.life.stopped() => {}
        // A connection that breaks is the client's to tell.
        _ = flow.serve(transport, begun, first) => {}
    }
}

const HELD: &str = "nothing panics while it is held";
/// Connections of an application at a time: twice what a page may have, since the client may have closed as many that the
/// server has not heard of.
pub(super) const MAX_CONNECTIONS: u32 = 200;
/// Requests are short.
const READ_BYTES: usize = 4 << 10;
/// How much longer than it was asked for it lasts.
const FAREWELL: Duration = Duration::from_secs(4);
