//! Connections: TCP, and TLS over it.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use hyper::header::HeaderValue;
use rustls::ProtocolVersion;
use rustls::pki_types::ServerName;
use socket2::{SockRef, Socket};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use weir_core::Duration;
use weir_sockets::{BoundedStream, TcpCarrier, write_apart};

use super::address::Url;
use super::trust::Trust;

/// An open connection, and how long its handshakes took.
pub(super) struct Transport {
    pub stream: Stream,
    /// The connection of `stream`, to ask its kernel.
    pub socket: Arc<Socket>,
    pub tcp: Duration,
    /// Brought to one round trip.
    pub tls: Option<Duration>,
}

/// A stream of bytes both ways, of which little waits unsent.
pub(super) type Stream = BoundedStream<Tcp>;

/// The connection beneath.
pub(super) struct Tcp {
    stream: TcpStream,
    /// Whether each write ends a segment, so that a small bound for what waits unsent holds.
    apart: bool,
}

impl TcpCarrier for Tcp {
    fn socket(&self) -> SockRef<'_> {
        SockRef::from(&self.stream)
    }

    fn write_apart(&mut self, apart: bool) {
        self.apart = apart;
    }
}

impl AsyncRead for Tcp {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Tcp {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(data)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let Self { stream, apart } = self.get_mut();
        if !*apart {
            return Pin::new(stream).poll_write_vectored(context, parts);
        }
        loop {
            ready!(stream.poll_write_ready(context))?;
            let socket = SockRef::from(&*stream);
            match stream.try_io(Interest::WRITABLE, || write_apart(&socket, parts)) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                wrote => return Poll::Ready(wrote),
            }
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}

/// How connections to one server are made.
#[derive(Clone)]
pub(super) struct Dialer {
    pub url: Url,
    address: SocketAddr,
    trust: Trust,
    /// The header `Authorization` of requests.
    pub bearer: Option<HeaderValue>,
}

impl Dialer {
    pub const fn new(
        url: Url,
        address: SocketAddr,
        trust: Trust,
        bearer: Option<HeaderValue>,
    ) -> Self {
        Self { url, address, trust, bearer }
    }

    /// Opens a connection, and says how long that took.
    pub async fn connect(&self) -> io::Result<(TcpStream, Duration)> {
        let began = Instant::now();
        let stream = TcpStream::connect(self.address).await?;
        let tcp = span(began);
        stream.set_nodelay(true)?;
        Ok((stream, tcp))
    }

    /// Opens a connection on which `protocol` (an ALPN name) is spoken.
    pub async fn dial(&self, protocol: &[u8]) -> io::Result<Transport> {
        let (stream, tcp) = self.connect().await?;
        let socket = SockRef::from(&stream).try_clone()?;
        let socket = Arc::new(socket);
        let stream = Tcp { stream, apart: true };
        if !self.url.tls {
            let mut stream = Stream::plain(stream);
            stream.follow_rate();
            return Ok(Transport { stream, socket, tcp, tls: None });
        }
        let mut config = self.trust.config()?;
        config.alpn_protocols = vec![protocol.to_vec()];
        let name = ServerName::try_from(self.url.name.clone()).map_err(io::Error::other)?;
        let shaking = Instant::now();
        let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
        let took = span(shaking);
        let session = stream.get_ref().1;
        // TLS 1.3 takes one round trip, TLS 1.2 two.
        let trips =
            if session.protocol_version() == Some(ProtocolVersion::TLSv1_3) { 1 } else { 2 };
        let tls = Some(Duration::from_nanos(took.as_nanos() / trips));
        let mut stream = Stream::secured(stream);
        stream.follow_rate();
        Ok(Transport { stream, socket, tcp, tls })
    }
}

fn span(since: Instant) -> Duration {
    Duration::from_nanos(since.elapsed().as_nanos() as u64)
}
