//! A connection that is one too many: told so where its protocol can, for a few at a time.

use std::convert::Infallible;
use std::io;
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
use crate::http::unavailable;
use crate::shared::Shared;
use crate::speech::Speech;

/// Tells a client why its connection is not served, and closes it. When many come at once, the others are
/// closed without a word: a refusal over TLS costs a handshake.
pub(crate) async fn connection(
    server: &Shared,
    tls: &TlsAcceptor,
    stream: TcpStream,
    refusal: Refusal,
) -> io::Result<()> {
    let Ok(_turn) = server.refusing.try_acquire() else { return Ok(()) };
    let told = async {
        match Speech::sniff(&stream).await? {
            Speech::Http => http(stream, refusal).await,
            Speech::Tls => http(tls.accept(stream).await?, refusal).await,
            Speech::Ookla => {
                let mut stream = stream;
                // What is not read when a connection is closed resets it, and the answer with it.
                let _ = stream.read(&mut [0; MAX_LINE_BYTES]).await?;
                stream.write_all(format!("ERROR {refusal}\n").as_bytes()).await
            }
        }
    };
    tokio::select! {
        ended = timeout(MAX_REFUSAL_DURATION, told) => ended.unwrap_or(Ok(())),
        () = server.stop.cancelled() => Ok(()),
    }
}

/// Answers the first request with 503, over HTTP/1 or HTTP/2, and ends.
async fn http<S>(stream: S, refusal: Refusal) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let asked = Arc::new(Notify::new());
    let first = Arc::clone(&asked);
    let service = service_fn(move |_| {
        first.notify_one();
        async move { Ok::<_, Infallible>(unavailable(refusal)) }
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

/// Clients that are refused at a time, bounded because each takes one of the files for other things.
pub(crate) const MAX_AT_A_TIME: usize = 32;
/// Longest time that a refusal takes, from the first byte to the last: several round trips.
const MAX_REFUSAL_DURATION: Duration = Duration::from_secs(3);
