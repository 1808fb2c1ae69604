//! Requests and answers, whatever protocol they belong to.

use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::{Method, StatusCode};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use weir_core::Direction;
use weir_speedtest::protocol::{EndAddresses, QueryError};

use crate::activity::Activity;
use crate::admission::Refusal;
use crate::data;
use crate::head::{asks_by_address, asks_loopback, bearer, query};
use crate::shared::{Shared, Test};
use crate::weir::ServedFlow;

pub(crate) type HttpRequest = hyper::Request<Incoming>;
pub(crate) type HttpResponse = hyper::Response<Body>;

/// The client that asks, and its connection.
pub(crate) struct Client {
    pub server: Arc<Shared>,
    pub ends: EndAddresses,
    pub socket: Arc<TcpStream>,
    /// Whether its connection has TLS.
    pub secured: bool,
    pub activity: Arc<Activity>,
}

/// Body of an HTTP answer.
pub(crate) enum Body {
    Whole(Bytes),
    Load(Load),
}

/// Random bytes.
pub(crate) struct Load {
    left: u64,
    /// Whether a length was announced.
    sized: bool,
    end: Instant,
    counted: Counted,
}

/// The test or flow that counts the bytes of a load.
pub(crate) enum Counted {
    Test(Test),
    Flow(Arc<ServedFlow>),
}

impl Load {
    /// A load of `bytes`, with their number announced; if they are not gone by `end`, the answer breaks off.
    pub const fn sized(bytes: u64, end: Instant, test: Test) -> Self {
        Self { left: bytes, sized: true, end, counted: Counted::Test(test) }
    }

    /// A load that lasts until `end`, without a number of bytes announced.
    pub const fn until(end: Instant, flow: Arc<ServedFlow>) -> Self {
        Self { left: u64::MAX, sized: false, end, counted: Counted::Flow(flow) }
    }

    fn next(&mut self) -> Option<io::Result<Bytes>> {
        if self.left == 0 {
            return None;
        }
        let stopped = match &self.counted {
            Counted::Test(_) => false,
            Counted::Flow(flow) => flow.is_stopped(),
        };
        if stopped || Instant::now() >= self.end {
            self.left = 0;
            return self.sized.then(|| Err(io::ErrorKind::TimedOut.into()));
        }
        let bytes = self.left.min(CHUNK);
        self.left -= bytes;
        match &self.counted {
            Counted::Test(test) => test.passed(bytes),
            Counted::Flow(flow) => flow.passed(bytes),
        }
        Some(Ok(data::bytes(bytes as usize)))
    }
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        Poll::Ready(match self.get_mut() {
            Self::Whole(bytes) if bytes.is_empty() => None,
            Self::Whole(bytes) => Some(Ok(Frame::data(std::mem::take(bytes)))),
            Self::Load(load) => load.next().map(|next| next.map(Frame::data)),
        })
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_empty(),
            Self::Load(load) => load.left == 0,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Load(load) if load.sized => SizeHint::with_exact(load.left),
            Self::Load(_) => SizeHint::default(),
        }
    }
}

/// Whether whoever sends this request knows the secret, where there is one.
pub(crate) fn is_known(server: &Shared, request: &HttpRequest) -> bool {
    let Some(secret) = &server.secret else { return true };
    let parameter = query(request).get("access_token");
    bearer(request.headers()).is_some_and(|words| secret.is(words))
        || parameter.is_some_and(|words| secret.is(&words))
}

/// Whether a request is told what is for this machine only: one of this machine's that no page of another
/// site made.
pub(crate) fn may_know_all(server: &Shared, client: IpAddr, request: &HttpRequest) -> bool {
    (client.is_loopback() && asks_by_address(request)) || server.options.public_metrics
}

impl Client {
    /// When whatever begins now has to be over.
    pub fn latest_end(&self) -> Instant {
        Instant::now() + self.server.options.max_duration
    }

    /// Whether the client knows the secret, where there is one: in the header of RFC 6750, or in the
    /// parameter that M-Lab's clients have for tokens.
    pub fn is_known(&self, request: &HttpRequest) -> bool {
        is_known(&self.server, request)
    }

    /// Whether a browser trusts what it gets by a request, as it came over TLS (to a proxy before this server,
    /// as that tells) or from the browser's own machine.
    pub fn is_trusted(&self, request: &HttpRequest) -> bool {
        let forwarded = request.headers().get("x-forwarded-proto");
        self.secured || forwarded.is_some_and(|scheme| scheme == "https") || asks_loopback(request)
    }

    /// Sends random bytes.
    pub fn load(&self, protocol: &'static str, bytes: u64) -> HttpResponse {
        if bytes == 0 {
            return empty(StatusCode::OK);
        }
        match self.server.begin_request(protocol, Direction::Down, self.ends.client) {
            Ok(test) => {
                let load = Load::sized(bytes, self.latest_end(), test);
                with(Body::Load(load), StatusCode::OK, "application/octet-stream")
            }
            Err(refusal) => refuse(refusal),
        }
    }

    /// Takes what the client sends, and returns how many bytes there were. The error is the answer.
    pub async fn take(
        &self,
        protocol: &'static str,
        request: HttpRequest,
    ) -> Result<u64, HttpResponse> {
        let test =
            self.server.begin_request(protocol, Direction::Up, self.ends.client).map_err(refuse)?;
        let mut taken = 0;
        let complete = drain(request.into_body(), self.latest_end(), |bytes| {
            test.passed(bytes);
            taken += bytes;
        });
        if complete.await { Ok(taken) } else { Err(late()) }
    }
}

/// Reads a body to its end and throws it away; false if that is not reached in time.
pub(crate) async fn drain(mut body: Incoming, end: Instant, mut passed: impl FnMut(u64)) -> bool {
    loop {
        match timeout_at(end, body.frame()).await {
            Ok(None) => return true,
            Ok(Some(Ok(frame))) => passed(frame.data_ref().map_or(0, Bytes::len) as u64),
            Ok(Some(Err(_))) | Err(_) => return false,
        }
    }
}

/// An answer without words.
pub(crate) fn empty(status: StatusCode) -> HttpResponse {
    with(Body::Whole(Bytes::new()), status, "text/plain; charset=utf-8")
}

/// An answer with plain text.
pub(crate) fn text(status: StatusCode, words: impl Into<Bytes>) -> HttpResponse {
    with(Body::Whole(words.into()), status, "text/plain; charset=utf-8")
}

/// An answer of the media type `kind`, with status 200.
pub(crate) fn content(kind: &'static str, content: impl Into<Bytes>) -> HttpResponse {
    with(Body::Whole(content.into()), StatusCode::OK, kind)
}

/// A request that makes no sense.
pub(crate) fn wrong(error: &QueryError) -> HttpResponse {
    text(StatusCode::BAD_REQUEST, format!("{error}\n"))
}

/// The answer to a client that asks for too much at a time: it may come again in a minute.
pub(crate) fn refuse(refusal: Refusal) -> HttpResponse {
    let status = match refusal {
        Refusal::Server(_) | Refusal::Ending => StatusCode::SERVICE_UNAVAILABLE,
        Refusal::Address(_) => StatusCode::TOO_MANY_REQUESTS,
    };
    let mut response = text(status, format!("{refusal}\n"));
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("60"));
    response
}

/// No more connections: the client may come again.
pub(crate) fn unavailable(refusal: Refusal) -> HttpResponse {
    let mut response = refuse(refusal);
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    response
}

/// Says in `response` that its connection ends.
pub(crate) fn last(mut response: HttpResponse) -> HttpResponse {
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

/// A body that did not come in time, or not whole.
fn late() -> HttpResponse {
    last(text(StatusCode::REQUEST_TIMEOUT, "the upload did not end in time\n"))
}

/// The answer to a path that is not served with this method.
pub(crate) fn other_method(allowed: &'static str) -> HttpResponse {
    let mut response = text(StatusCode::METHOD_NOT_ALLOWED, format!("use {allowed}\n"));
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allowed));
    response
}

/// The answer to a CORS preflight, which a browser sends before it lets a foreign page send its request.
pub(crate) fn preflight() -> HttpResponse {
    let mut response = empty(StatusCode::NO_CONTENT);
    for (name, value) in [
        (header::ACCESS_CONTROL_ALLOW_METHODS, "GET, POST"),
        (header::ACCESS_CONTROL_ALLOW_HEADERS, "*, Authorization, Content-Type, Content-Encoding"),
        (header::ACCESS_CONTROL_MAX_AGE, "3600"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Hides `response` from pages of other sites; only this machine's programs are to read it.
pub(crate) fn not_for_pages(mut response: HttpResponse) -> HttpResponse {
    response.headers_mut().remove(header::ACCESS_CONTROL_ALLOW_ORIGIN);
    response
}

/// Whether a request reads.
pub(crate) fn reads(request: &HttpRequest) -> bool {
    matches!(*request.method(), Method::GET | Method::HEAD)
}

fn with(body: Body, status: StatusCode, kind: &'static str) -> HttpResponse {
    let mut response = hyper::Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    for (name, value) in ALWAYS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Bytes that a load hands over at once.
const CHUNK: u64 = 256 << 10;

/// Headers of every answer: nobody keeps it, and pages of other sites may measure here.
///
/// Pages of other sites see all that the browser knows of times.
const ALWAYS: [(HeaderName, &str); 4] = [
    (header::CACHE_CONTROL, "no-store, no-transform"),
    (header::ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
    (HeaderName::from_static("timing-allow-origin"), "*"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
];
