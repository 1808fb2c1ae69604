//! HTTP connections and requests as tasks.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::client::conn::{http1, http2};
use hyper::header::{self, HeaderMap};
use hyper::{Method, Request, Response, Version, body::Incoming};
use hyper_util::rt::{TokioExecutor, TokioIo};
use socket2::Socket;
use tokio::sync::Mutex;
use tokio::sync::mpsc::UnboundedSender;
use weir_core::{Duration, error_in_words};
use weir_sockets::TcpInfo;
use weir_speedtest::{Event, Id, News};

use super::drive::{TimedEvent, tell};
use super::transport::{Dialer, Stream};

/// A connection on which requests are sent.
#[derive(Clone)]
pub(super) struct Http {
    speaker: Speaker,
    socket: Arc<Socket>,
}

#[derive(Clone)]
enum Speaker {
    One(Arc<Mutex<http1::SendRequest<Upload>>>),
    Two(http2::SendRequest<Upload>),
}

/// The task that drives a connection, which ends with it.
pub(super) type Life = tokio::task::JoinHandle<()>;

impl Http {
    /// Speaks HTTP/1.1 over a connection.
    pub async fn one(stream: Stream, socket: Arc<Socket>) -> hyper::Result<(Self, Life)> {
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        let life = tokio::spawn(async move {
            // Requests say what goes wrong.
            let _ = connection.await;
        });
        let speaker = Speaker::One(Arc::new(Mutex::new(sender)));
        Ok((Self { speaker, socket }, life))
    }

    /// Speaks HTTP/2 over a connection.
    pub async fn two(stream: Stream, socket: Arc<Socket>) -> hyper::Result<(Self, Life)> {
        let (sender, connection) = http2::Builder::new(TokioExecutor::new())
            .initial_stream_window_size(WINDOW)
            .initial_connection_window_size(WINDOW)
            .max_send_buf_size(CHUNK)
            .handshake(TokioIo::new(stream))
            .await?;
        let life = tokio::spawn(async move {
            let _ = connection.await;
        });
        Ok((Self { speaker: Speaker::Two(sender), socket }, life))
    }

    async fn send(&mut self, request: Request<Upload>) -> hyper::Result<Response<Incoming>> {
        match &mut self.speaker {
            Speaker::One(sender) => {
                let mut sender = sender.lock().await;
                sender.ready().await?;
                sender.send_request(request).await
            }
            Speaker::Two(sender) => {
                sender.ready().await?;
                sender.send_request(request).await
            }
        }
    }
}

/// Sends a request and tells what comes of it.
pub(super) async fn request(
    id: Id,
    mut http: Http,
    dialer: Dialer,
    path: String,
    upload: Option<Upload>,
    events: UnboundedSender<TimedEvent>,
) {
    let socket = Arc::clone(&http.socket);
    let acknowledged = upload.is_some().then(|| Acknowledged::since_now(id, &socket, &events));
    let request =
        try_request(id, &mut http, &dialer, (&path, upload), acknowledged.as_ref(), &events);
    let result = match &acknowledged {
        Some(acknowledged) => tokio::select! {
            result = request => result,
            () = acknowledged.keep_looking() => unreachable!("it only looks"),
        },
        None => request.await,
    };
    if let Err(reason) = result {
        tell(&events, News::Failed { id, reason });
    }
}

async fn try_request(
    id: Id,
    http: &mut Http,
    dialer: &Dialer,
    (path, upload): (&str, Option<Upload>),
    acknowledged: Option<&Acknowledged<'_>>,
    events: &UnboundedSender<TimedEvent>,
) -> Result<(), String> {
    let url = &dialer.url;
    let two = matches!(http.speaker, Speaker::Two(_));
    let scheme = if url.tls { "https" } else { "http" };
    // Without a path of the test's own it is the URL itself.
    let place = if path.is_empty() { url.itself.clone() } else { format!("{}{path}", url.base) };
    let uri = if two { format!("{scheme}://{}{place}", url.authority) } else { place };
    let mut builder = Request::builder()
        .uri(uri)
        .version(if two { Version::HTTP_2 } else { Version::HTTP_11 })
        .method(if upload.is_some() { Method::POST } else { Method::GET })
        .header(header::USER_AGENT, concat!("weir/", env!("CARGO_PKG_VERSION")))
        .header(header::ACCEPT_ENCODING, "identity");
    if !two {
        builder = builder.header(header::HOST, &url.authority);
    }
    if upload.is_some() {
        builder = builder.header(header::CONTENT_TYPE, "text/plain;charset=UTF-8");
    }
    if let Some(bearer) = &dialer.bearer {
        builder = builder.header(header::AUTHORIZATION, bearer);
    }
    let request = builder.body(upload.unwrap_or_default()).map_err(|error| error.to_string())?;
    let response = http.send(request).await.map_err(|error| error_in_words(&error))?;
    if let Some(acknowledged) = acknowledged {
        // A short upload is over before the next look.
        acknowledged.look();
    }
    let status = response.status().as_u16();
    tell(events, Event::Head { id, status, server: server_time(response.headers()) });
    let kind = response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let mut text = kind.is_some_and(|kind| kind.starts_with("application/json")).then(Vec::new);
    let mut body = response.into_body();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| error_in_words(&error))?;
        let Some(data) = frame.data_ref() else { continue };
        if let Some(text) = text.as_mut().filter(|text| text.len() < MAX_TEXT_BYTES) {
            text.extend_from_slice(data);
        }
        tell(events, Event::Received { id, bytes: data.len() as u64 });
    }
    if let Some(text) = text {
        tell(events, News::Text { id, text: String::from_utf8_lossy(&text).into_owned() });
    }
    tell(events, Event::Ended { id });
    Ok(())
}

/// Bytes of an upload that the other end has acknowledged. Framing and TLS count too: about a hundredth.
struct Acknowledged<'r> {
    id: Id,
    socket: &'r Socket,
    seen: AtomicU64,
    events: &'r UnboundedSender<TimedEvent>,
}

impl<'r> Acknowledged<'r> {
    fn since_now(id: Id, socket: &'r Socket, events: &'r UnboundedSender<TimedEvent>) -> Self {
        Self { id, socket, seen: AtomicU64::new(delivered(socket)), events }
    }

    /// Tells what came on top since the last look.
    fn look(&self) {
        let now = delivered(self.socket);
        let bytes = now.saturating_sub(self.seen.fetch_max(now, Ordering::Relaxed));
        if bytes > 0 {
            tell(self.events, Event::Sent { id: self.id, bytes });
        }
    }

    /// Looks for as long as it is let.
    async fn keep_looking(&self) {
        loop {
            tokio::time::sleep(LOOK).await;
            self.look();
        }
    }
}

fn delivered(socket: &Socket) -> u64 {
    TcpInfo::of(socket).map_or(0, |info| info.delivered_bytes().0)
}

/// The sum of Cloudflare's entries in `Server-Timing`, if there are any.
fn server_time(headers: &HeaderMap) -> Option<Duration> {
    let values = headers.get_all("server-timing").iter().filter_map(|value| value.to_str().ok());
    let times: Vec<u64> =
        values.filter_map(weir_speedtest::protocol::cloudflare::server_time).collect();
    let sum = times.iter().fold(0_u64, |sum, time| sum.saturating_add(*time));
    (!times.is_empty()).then(|| Duration::from_nanos(sum))
}

/// The body of an upload.
#[derive(Default)]
pub(super) struct Upload {
    pub left: u64,
    pub random_payload: Bytes,
}

impl Body for Upload {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        let size = self.left.min(self.random_payload.len() as u64);
        if self.left != u64::MAX {
            self.left -= size;
        }
        Poll::Ready(Some(Ok(Frame::data(self.random_payload.slice(..size as usize)))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        if self.left == u64::MAX { SizeHint::default() } else { SizeHint::with_exact(self.left) }
    }
}

/// More than a line of 10 Gbit/s holds in 12 ms; of slower ones TCP's window is the limit.
const WINDOW: u32 = 16 << 20;
/// A piece of an upload's body, and what waits of it to be framed.
pub(super) const CHUNK: usize = 16 << 10;
/// How often it is looked what was acknowledged.
const LOOK: std::time::Duration = std::time::Duration::from_millis(50);
const MAX_TEXT_BYTES: usize = 64 << 10;
