//! One flow: a connection of its own after an upgrade, or HTTP requests, which is what browsers can do.

use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use hyper::{Method, StatusCode};
use socket2::SockRef;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use weir_core::{Time, error_in_words};
use weir_sockets::TcpInfo;
use weir_sockets::load::{SendBudget, options};
use weir_speedtest::protocol::weir::{
    Direction, EndReason, FLOW_UPGRADE, FlowRequest, FlowSample, TcpSample, Token,
};

use super::application;
use crate::connection::{OverTcp, Transport, congestion, tcp_info};
use crate::data;
use crate::head::query;
use crate::http::{
    Body, Client, HttpRequest, HttpResponse, Load, content, drain, empty, other_method, text,
};
use crate::upgrade;

/// A flow that was asked for.
pub(crate) struct ServedFlow {
    pub request: FlowRequest,
    pub ticket: Token,
    client: IpAddr,
    bytes: AtomicU64,
    /// When its time is over; set when it starts.
    end: OnceLock<Instant>,
    /// HTTP requests under way.
    requests: AtomicU32,
    stop: CancellationToken,
    stopped_by_client: AtomicBool,
    /// The connection that it is on, or was last.
    socket: Mutex<Option<Arc<TcpStream>>>,
    news: mpsc::Sender<News>,
}

/// An event of a flow, told to its session.
pub(crate) enum News {
    Started { flow: u32, congestion: String },
    Ended { flow: u32, reason: EndReason },
    Failed { flow: u32, reason: String },
}

impl ServedFlow {
    pub fn new(
        request: FlowRequest,
        client: IpAddr,
        stop: CancellationToken,
        news: mpsc::Sender<News>,
    ) -> Arc<Self> {
        Arc::new(Self {
            request,
            ticket: Token(data::random()),
            client,
            bytes: AtomicU64::new(0),
            end: OnceLock::new(),
            requests: AtomicU32::new(0),
            stop,
            stopped_by_client: AtomicBool::new(false),
            socket: Mutex::new(None),
            news,
        })
    }

    /// Counts bytes that went in the flow's direction.
    pub fn passed(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub fn is_stopped(&self) -> bool {
        self.stop.is_cancelled()
    }

    pub fn has_started(&self) -> bool {
        self.end.get().is_some()
    }

    /// Ends it because the client says so.
    pub fn stop(&self) {
        self.stopped_by_client.store(true, Ordering::Relaxed);
        self.stop.cancel();
    }

    /// State of the flow now: its bytes and, if it has a connection, its `TCP_INFO`.
    pub fn sample(&self) -> FlowSample {
        let socket = self.socket.lock().expect(HELD).clone();
        FlowSample {
            flow: self.request.flow,
            bytes: self.bytes.load(Ordering::Relaxed),
            tcp: socket.and_then(|socket| tcp_info(&socket)).as_ref().map(tcp_sample),
            udp: None,
        }
    }

    /// Puts it on a connection; starts it if this is the first. Returns when it ends, and whether it just
    /// started.
    fn begin_on(&self, socket: &Arc<TcpStream>) -> Result<(Instant, bool), io::Error> {
        set_up(&self.request, socket)?;
        *self.socket.lock().expect(HELD) = Some(Arc::clone(socket));
        let mut started = false;
        let end = *self.end.get_or_init(|| {
            started = true;
            Instant::now() + Duration::from_nanos(self.request.duration_ns)
        });
        Ok((end, started))
    }

    async fn tell(&self, news: News) {
        // The session may be over, and then nobody wants to know.
        let _ = self.news.send(news).await;
    }

    async fn started(&self, socket: &TcpStream) {
        let congestion = congestion(socket).unwrap_or_default();
        self.tell(News::Started { flow: self.request.flow, congestion }).await;
    }

    async fn ended(&self, reason: EndReason) {
        let stopped = self.stopped_by_client.load(Ordering::Relaxed);
        let reason = if stopped { EndReason::Stopped } else { reason };
        self.tell(News::Ended { flow: self.request.flow, reason }).await;
    }
}

/// Gives this end of a connection what was asked for.
pub(super) fn set_up(request: &FlowRequest, socket: &TcpStream) -> io::Result<()> {
    let socket = SockRef::from(socket);
    let FlowRequest { congestion, dscp, pacing_bps, unsent_bytes, .. } = request;
    if let Some(name) = congestion {
        socket.set_tcp_congestion(name.as_bytes())?;
    }
    options::set_dscp(&socket, *dscp)?;
    if let Some(bps) = pacing_bps {
        weir_sockets::sys::option::set_max_pacing_rate(&socket, bps / 8)?;
    }
    unsent_bytes.map_or(Ok(()), |bytes| socket.set_tcp_notsent_lowat(bytes))
}

/// A connection or a request for a flow.
pub(super) async fn answer(client: &Arc<Client>, mut request: HttpRequest) -> HttpResponse {
    let ticket = query(&request).get("ticket").and_then(|ticket| ticket.parse().ok());
    let from = client.ends.client.ip();
    if let Some(flow) = ticket.and_then(|ticket| client.server.sessions.application(ticket, from)) {
        return application::answer(client, flow, request);
    }
    let flow = ticket.and_then(|ticket| client.server.sessions.flow(ticket));
    let flow = flow.filter(|flow| flow.client == from && !flow.is_stopped());
    let Some(flow) = flow else {
        return text(StatusCode::FORBIDDEN, "there is no flow with this ticket for this address\n");
    };
    if let Some((response, upgrade)) = upgrade::plain(&mut request, FLOW_UPGRADE) {
        if flow.has_started() {
            return text(StatusCode::CONFLICT, "this flow has its connection already\n");
        }
        let tasks = client.server.tasks.clone();
        tasks.spawn(async move {
            if let Some((transport, begun)) = upgrade.complete().await {
                on_connection(&flow, transport, begun).await;
            }
        });
        return response;
    }
    in_request(client, flow, request).await
}

/// A flow that has a connection to itself.
async fn on_connection(flow: &Arc<ServedFlow>, mut transport: Transport, begun: Bytes) {
    let socket = Arc::clone(transport.socket());
    let end = match flow.begin_on(&socket) {
        Ok((end, true)) => end,
        // Two connections came at once: the other one is it.
        Ok((_, false)) => return,
        Err(error) => return fail(flow, &error).await,
    };
    flow.started(&socket).await;
    let reason = match flow.request.direction {
        Direction::Down => send(flow, &mut transport, end).await,
        Direction::Up => {
            flow.passed(begun.len() as u64);
            receive(flow, &mut transport, end).await
        }
    };
    flow.ended(reason).await;
}

async fn send(flow: &ServedFlow, transport: &mut Transport, end: Instant) -> EndReason {
    let mut budget = SendBudget::new(flow.request.bytes);
    let mut over = std::pin::pin!(sleep_until(end));
    let mut stop = std::pin::pin!(flow.stop.cancelled());
    let mut reason = EndReason::Bytes;
    while !budget.is_spent() {
        let data = data::bytes(budget.next(data::MAX_CHUNK_BYTES));
        tokio::select! {
            biased;
            () = &mut stop => { reason = EndReason::Stopped; break }
            () = &mut over => { reason = EndReason::Duration; break }
            written = transport.write(&data) => match written {
                Ok(bytes) => {
                    budget.spend(bytes);
                    flow.passed(bytes as u64);
                }
                Err(error) => return broken(&error),
            }
        }
    }
    // The client gets what is under way, and closes its end: then TCP_INFO has all acknowledgements.
    let farewell = async {
        transport.shutdown().await?;
        let mut rest = [0; 1024];
        while transport.read(&mut rest).await? > 0 {}
        io::Result::Ok(())
    };
    let _ = timeout(FAREWELL, farewell).await;
    reason
}

async fn receive(flow: &ServedFlow, transport: &mut Transport, end: Instant) -> EndReason {
    let mut buffer = vec![0; BUFFER];
    let mut over = std::pin::pin!(sleep_until(end + FAREWELL));
    let mut stop = std::pin::pin!(flow.stop.cancelled());
    loop {
        tokio::select! {
            biased;
            () = &mut stop => return EndReason::Stopped,
            () = &mut over => return EndReason::Duration,
            read = transport.read(&mut buffer) => match read {
                Ok(0) => return EndReason::Closed,
                Ok(bytes) => flow.passed(bytes as u64),
                Err(error) => return broken(&error),
            }
        }
    }
}

/// A flow that consists of requests.
async fn in_request(client: &Client, flow: Arc<ServedFlow>, request: HttpRequest) -> HttpResponse {
    match (flow.request.direction, request.method()) {
        (Direction::Down, &Method::GET) | (Direction::Up, &Method::POST) => {}
        (Direction::Down, _) => return other_method("GET"),
        (Direction::Up, _) => return other_method("POST"),
    }
    let (end, started) = match flow.begin_on(&client.socket) {
        Ok(begun) => begun,
        Err(error) => {
            fail(&flow, &error).await;
            return text(StatusCode::INTERNAL_SERVER_ERROR, "the flow cannot be set up\n");
        }
    };
    if started {
        flow.started(&client.socket).await;
        client.server.tasks.spawn(watch_requests(Arc::clone(&flow), end));
    }
    match flow.request.direction {
        Direction::Down => {
            let mut response = content("application/octet-stream", Bytes::new());
            *response.body_mut() = Body::Load(Load::until(end, flow));
            response
        }
        Direction::Up => {
            flow.requests.fetch_add(1, Ordering::Relaxed);
            let body = request.into_body();
            let drained = drain(body, end + FAREWELL, |bytes| flow.passed(bytes));
            let complete = tokio::select! {
                complete = drained => complete,
                () = flow.stop.cancelled() => false,
            };
            flow.requests.fetch_sub(1, Ordering::Relaxed);
            empty(if complete { StatusCode::OK } else { StatusCode::REQUEST_TIMEOUT })
        }
    }
}

/// Tells when a flow of requests is over: at its end, and when what was under way then has come.
async fn watch_requests(flow: Arc<ServedFlow>, end: Instant) {
    let wait = timeout_at(end, flow.stop.cancelled()).await;
    let last = Instant::now() + FAREWELL;
    while flow.requests.load(Ordering::Relaxed) > 0 && Instant::now() < last && !flow.is_stopped() {
        sleep(POLL).await;
    }
    let reason = if wait.is_ok() { EndReason::Stopped } else { EndReason::Duration };
    flow.ended(reason).await;
}

async fn fail(flow: &ServedFlow, error: &io::Error) {
    let reason = format!("this end of the flow cannot be set up: {}", error_in_words(error));
    flow.tell(News::Failed { flow: flow.request.flow, reason }).await;
}

fn broken(error: &io::Error) -> EndReason {
    match error.kind() {
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => EndReason::Closed,
        _ => EndReason::Broken,
    }
}

fn tcp_sample(info: &TcpInfo) -> TcpSample {
    let row = info.row(Time::ZERO, 0);
    let (sent_bytes, retransmitted_bytes) = info.sent_bytes();
    let (acked_bytes, received_bytes) = info.delivered_bytes();
    let (ecn, delivered_ce) = info.ecn();
    let live = row.live.as_ref();
    TcpSample {
        cwnd: row.cwnd_segments,
        ssthresh: row.ssthresh_segments,
        in_flight: row.in_flight_segments,
        mss: info.mss(),
        srtt_ns: row.srtt.map(weir_core::Duration::as_nanos),
        rttvar_ns: row.rttvar.as_nanos(),
        min_rtt_ns: info.min_rtt().map(weir_core::Duration::as_nanos),
        rto_ns: row.rto.as_nanos(),
        pacing_rate_bps: row.pacing_rate_bps,
        delivery_rate_bps: live.map_or(0, |live| live.delivery_rate_bps),
        sent_bytes,
        retransmitted_bytes,
        acked_bytes,
        received_bytes,
        received_segments: info.received_segments(),
        retransmits: row.retransmits,
        timeouts: row.timeouts,
        busy_ns: live.map_or(0, |live| live.busy.as_nanos()),
        receive_window_limited_ns: live.map_or(0, |live| live.receive_window_limited.as_nanos()),
        send_buffer_limited_ns: live.map_or(0, |live| live.send_buffer_limited.as_nanos()),
        ecn,
        delivered_ce,
    }
}

const HELD: &str = "nothing panics while it is held";
/// How long what is under way at the end may take: a deep buffer before it is empty.
const FAREWELL: Duration = Duration::from_secs(4);
/// How exactly the end of a flow of requests is noticed.
const POLL: Duration = Duration::from_millis(20);
/// As much as the kernel hands over at once at high rates.
const BUFFER: usize = 256 << 10;
