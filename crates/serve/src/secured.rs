//! A connection with TLS. Where requests share it, little waits in it.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::server::TlsStream;
use weir_sockets::Unsent;
use weir_speedtest::protocol::UnsentBound;

use crate::connection::Connection;

/// A connection whose handshake is done.
pub(crate) struct Secured {
    stream: TlsStream<Connection>,
    /// With HTTP/2, whose requests all wait behind what the socket and TLS hold.
    unsent: Option<Unsent>,
}

impl Secured {
    pub fn new(mut stream: TlsStream<Connection>) -> Self {
        let shared = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        stream.get_mut().0.apart = shared;
        Self { stream, unsent: shared.then(Unsent::default) }
    }

    pub fn connection(&self) -> &Connection {
        self.stream.get_ref().0
    }

    pub fn connection_mut(&mut self) -> &mut Connection {
        self.stream.get_mut().0
    }

    /// Bounds the bytes in the socket and in TLS, so that the next write waits for about 5 ms at most.
    fn keep_short(&mut self) {
        let Some(unsent) = &mut self.unsent else { return };
        let (connection, session) = self.stream.get_mut();
        if let Some(bound) = unsent.look(&SockRef::from(&**connection.socket())) {
            session.set_buffer_limit(Some(UnsentBound::of_records(bound) as usize));
        }
    }
}

impl AsyncRead for Secured {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Secured {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        let me = self.get_mut();
        me.keep_short();
        Pin::new(&mut me.stream).poll_write(context, data)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let me = self.get_mut();
        me.keep_short();
        Pin::new(&mut me.stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}
