//! A connection that is one too many: told so where its protocol can, for a few at a time.

use std::convert::Infallible;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use weir_speedtest::protocol::ookla::MAX_LINE_BYTES;

use crate::admission::Refusal;
use crate::head::path;
use crate::http::{HttpRequest, HttpResponse, is_known, last, not_for_pages, reads, unavailable};
use crate::shared::Shared;
use crate::speech::Speech;
use crate::{health, metrics};

/// Tells a client why its connection is not served, and closes it. When many come at once, the others are
/// closed without a word: a refusal over TLS costs a handshake.
pub(crate) async fn connection(
    server: &Arc<Shared>,
    tls: &TlsAcceptor,
    stream: TcpStream,
    (client, refusal): (IpAddr, Refusal),
) -> io::Result<()> {
    // However many strangers there are, this machine can ask how the server does.
    let near = client.is_loopback().then(|| server.refusing_near.try_acquire().ok()).flatten();
    let Some(_turn) = near.or_else(|| server.refusing.try_acquire().ok()) else { return Ok(()) };
    let told = async {
        match Speech::sniff(&stream).await? {
            Speech::Http => http(server, stream, client, refusal).await,
            Speech::Tls => http(server, tls.accept(stream).await?, client, refusal).await,
            Speech::Ookla => ookla(stream, refusal).await,
        }
    };
    tokio::select! {
        ended = timeout(MAX_REFUSAL_DURATION, told) => ended.unwrap_or(Ok(())),
        () = server.stop.cancelled() => Ok(()),
    }
}

/// Answers the first line of Ookla's protocol, and ends.
pub(crate) async fn ookla<S>(mut stream: S, refusal: Refusal) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    // What is not read when a connection is closed resets it, and the answer with it.
    let _ = stream.read(&mut [0; MAX_LINE_BYTES]).await?;
    tell(&mut stream, refusal).await
}

/// Answers a command in Ookla's protocol, and ends once the client has read that or has had its time.
pub(crate) async fn told_on<S>(server: &Shared, mut stream: S, refusal: Refusal) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let told = async {
        tell(&mut stream, refusal).await?;
        stream.shutdown().await?;
        // Who uploads is in the midst of it. What is not read when a connection is closed resets it, and the answer with it: that is
        // spared a few at a time.
        let Ok(_turn) = server.refusing.try_acquire() else { return Ok(()) };
        let mut unwanted = vec![0; 64 << 10];
        while stream.read(&mut unwanted).await? > 0 {}
        Ok(())
    };
    timeout(MAX_REFUSAL_DURATION, told).await.unwrap_or(Ok(()))
}

/// Says in Ookla's protocol why something is not served.
async fn tell(stream: &mut (impl AsyncWrite + Unpin), refusal: Refusal) -> io::Result<()> {
    stream.write_all(format!("ERROR {refusal}\n").as_bytes()).await
}

/// Answers the first request, over HTTP/1 or HTTP/2, and ends: with 503, but for questions about the server.
async fn http<S>(
    server: &Arc<Shared>,
    stream: S,
    client: IpAddr,
    refusal: Refusal,
) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let asked = Arc::new(Notify::new());
    let first = Arc::clone(&asked);
    let server = Arc::clone(server);
    let service = service_fn(move |request| {
        first.notify_one();
        let response = of_the_server(&server, client, &request);
        async move { Ok::<_, Infallible>(last(response.unwrap_or_else(|| unavailable(refusal)))) }
    });
    let builder = Builder::new(TokioExecutor::new());
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        ended = connection.as_mut() => return ended.map_err(io::Error::other),
        () = asked.notified() => {}
    }
    connection.as_mut().graceful_shutdown();
    connection.await.map_err(io::Error::other)
}

/// The answer to a question how the server does, which is asked most where it is full.
fn of_the_server(server: &Shared, client: IpAddr, request: &HttpRequest) -> Option<HttpResponse> {
    let told = match path(request) {
        _ if !reads(request) => return None,
        "/healthz" => health::answer(server, client, request),
        "/metrics" if server.serves(metrics::SERVICE) && is_known(server, request) => {
            metrics::answer(server, client, request)
        }
        _ => return None,
    };
    Some(not_for_pages(told))
}

/// Clients that are refused at a time, bounded because each takes one of the files for other things.
pub(crate) const MAX_AT_A_TIME: usize = 32;
/// Of this machine, beside the others.
pub(crate) const MAX_NEAR: usize = 4;
/// Longest time that a refusal takes, from the first byte to the last: several round trips.
const MAX_REFUSAL_DURATION: Duration = Duration::from_secs(3);
