//! Streams over TCP, perhaps with TLS, in front of which little waits: for Tokio.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::TlsStream;
use tokio_util::either::Either;
use weir_speedtest::protocol::UnsentBound;

use crate::Unsent;

/// A TCP connection that can let each write end a segment, so that a small bound for what waits unsent holds
/// ([`write_apart`](crate::write_apart)).
pub trait TcpCarrier: AsyncRead + AsyncWrite + Unpin {
    /// The socket, to ask its kernel.
    fn socket(&self) -> SockRef<'_>;

    /// Lets each write end a segment from now on, or no longer.
    fn write_apart(&mut self, apart: bool);
}

/// A stream of bytes both ways over TCP, without TLS or with it.
///
/// Once it [follows the rate](Self::follow_rate), the next write waits for about 5 ms at most behind what the socket and
/// TLS hold.
pub struct BoundedStream<T> {
    carrier: Carrier<T>,
    /// `None`: the bound does not follow the rate.
    unsent: Option<Unsent>,
}

/// Without TLS, or with it.
type Carrier<T> = Either<T, Box<TlsStream<T>>>;

impl<T: TcpCarrier> BoundedStream<T> {
    /// A stream without TLS, in front of which as much waits as the kernel lets.
    pub const fn plain(tcp: T) -> Self {
        Self { carrier: Carrier::Left(tcp), unsent: None }
    }

    /// A stream with TLS, whose handshake is done, in front of which as much waits as the kernel and TLS let.
    pub fn secured(stream: impl Into<TlsStream<T>>) -> Self {
        Self { carrier: Carrier::Right(Box::new(stream.into())), unsent: None }
    }

    /// The connection beneath.
    #[must_use]
    pub fn tcp(&self) -> &T {
        tcp(&self.carrier)
    }

    /// The connection beneath, to change what it does.
    pub fn tcp_mut(&mut self) -> &mut T {
        match &mut self.carrier {
            Carrier::Left(tcp) => tcp,
            Carrier::Right(stream) => stream.get_mut().0,
        }
    }

    /// Whether both ends agreed to speak `protocol` (an ALPN name).
    #[must_use]
    pub fn speaks(&self, protocol: &[u8]) -> bool {
        match &self.carrier {
            Carrier::Left(_) => false,
            Carrier::Right(stream) => stream.get_ref().1.alpn_protocol() == Some(protocol),
        }
    }

    /// From now on what waits unsent follows the rate.
    pub fn follow_rate(&mut self) {
        self.unsent = Some(Unsent::default());
        self.tcp_mut().write_apart(true);
    }

    /// From now on `bound` bytes may wait unsent, whatever the rate is.
    pub fn hold(&mut self, bound: u32) {
        self.unsent = None;
        self.tcp_mut().write_apart(false);
        // A connection that is gone tells so elsewhere.
        let _ = self.tcp().socket().set_tcp_notsent_lowat(bound);
        self.bound_records(bound);
    }

    fn keep_short(&mut self) {
        let Some(unsent) = &mut self.unsent else { return };
        if let Some(bound) = unsent.look(&tcp(&self.carrier).socket()) {
            self.bound_records(bound);
        }
    }

    /// Bounds the bytes that TLS holds.
    fn bound_records(&mut self, bound: u32) {
        let Carrier::Right(stream) = &mut self.carrier else { return };
        let limit = Some(UnsentBound::of_records(bound) as usize);
        match &mut **stream {
            TlsStream::Client(stream) => stream.get_mut().1.set_buffer_limit(limit),
            TlsStream::Server(stream) => stream.get_mut().1.set_buffer_limit(limit),
        }
    }
}

fn tcp<T>(carrier: &Carrier<T>) -> &T {
    match carrier {
        Carrier::Left(tcp) => tcp,
        Carrier::Right(stream) => stream.get_ref().0,
    }
}

impl<T: TcpCarrier> AsyncRead for BoundedStream<T> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().carrier).poll_read(context, buffer)
    }
}

impl<T: TcpCarrier> AsyncWrite for BoundedStream<T> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        let me = self.get_mut();
        me.keep_short();
        Pin::new(&mut me.carrier).poll_write(context, data)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let me = self.get_mut();
        me.keep_short();
        Pin::new(&mut me.carrier).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.carrier.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().carrier).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().carrier).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
    use rustls::{ClientConfig, RootCertStore, ServerConfig};
    use tokio::net::{TcpListener, TcpStream};
    use tokio_rustls::{TlsAcceptor, TlsConnector};

    use super::*;

    /// A connection that takes nothing more when told so.
    struct Tcp {
        stream: TcpStream,
        apart: bool,
        takes: bool,
    }

    impl From<TcpStream> for Tcp {
        fn from(stream: TcpStream) -> Self {
            Self { stream, apart: false, takes: true }
        }
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
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            Pin::new(&mut self.stream).poll_read(context, buffer)
        }
    }

    impl AsyncWrite for Tcp {
        fn poll_write(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
            data: &[u8],
        ) -> Poll<io::Result<usize>> {
            if self.takes {
                Pin::new(&mut self.stream).poll_write(context, data)
            } else {
                Poll::Pending
            }
        }

        fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.stream).poll_flush(context)
        }

        fn poll_shutdown(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
        ) -> Poll<io::Result<()>> {
            Pin::new(&mut self.stream).poll_shutdown(context)
        }
    }

    /// Bytes that a stream takes before it lets its writer wait.
    fn taken(stream: &mut BoundedStream<Tcp>) -> usize {
        let mut context = Context::from_waker(std::task::Waker::noop());
        let data = [0; 4096];
        let mut bytes = 0;
        while let Poll::Ready(wrote) = Pin::new(&mut *stream).poll_write(&mut context, &data) {
            bytes += wrote.unwrap();
        }
        bytes
    }

    fn waits_at_most(stream: &BoundedStream<Tcp>) -> u32 {
        stream.tcp().socket().tcp_notsent_lowat().unwrap()
    }

    async fn connected() -> (Tcp, Tcp) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        (client.into(), listener.accept().await.unwrap().0.into())
    }

    /// Both ends of a connection with TLS, which agreed to speak HTTP/2, and which take nothing more.
    async fn secured() -> [BoundedStream<Tcp>; 2] {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut server = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], PrivateKeyDer::from(key))
            .unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(made.cert.der().clone()).unwrap();
        let mut client = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        server.alpn_protocols = vec![b"h2".to_vec()];
        client.alpn_protocols = vec![b"h2".to_vec()];
        let (connecting, accepting) = connected().await;
        let name = ServerName::try_from("localhost").unwrap();
        let (client, server) = tokio::join!(
            TlsConnector::from(Arc::new(client)).connect(name, connecting),
            TlsAcceptor::from(Arc::new(server)).accept(accepting),
        );
        let mut ends =
            [BoundedStream::secured(client.unwrap()), BoundedStream::secured(server.unwrap())];
        ends.iter_mut().for_each(|end| end.tcp_mut().takes = false);
        ends
    }

    #[tokio::test]
    async fn what_waits_in_the_socket_follows_the_rate_until_it_is_held() {
        let (tcp, _other) = connected().await;
        let mut stream = BoundedStream::plain(tcp);
        let kernels = waits_at_most(&stream);
        stream.tcp_mut().takes = false;
        assert_eq!(taken(&mut stream), 0);
        assert_eq!((waits_at_most(&stream), stream.tcp().apart), (kernels, false));
        stream.follow_rate();
        assert_eq!(taken(&mut stream), 0);
        assert_eq!((waits_at_most(&stream), stream.tcp().apart), (UnsentBound::MIN_BYTES, true));
        stream.hold(125_000);
        assert_eq!(taken(&mut stream), 0);
        assert_eq!((waits_at_most(&stream), stream.tcp().apart), (125_000, false));
        assert!(!stream.speaks(b"h2"), "nothing was agreed on without TLS");
    }

    #[tokio::test]
    async fn tls_keeps_no_more_than_may_wait_in_the_socket() {
        for mut end in secured().await {
            assert!(end.speaks(b"h2") && !end.speaks(b"http/1.1"));
            end.hold(UnsentBound::MIN_BYTES);
            // Less what TLS 1.3 adds to the first record: header, type, tag.
            assert_eq!(taken(&mut end), UnsentBound::MIN_BYTES as usize - (5 + 1 + 16));
            assert_eq!((waits_at_most(&end), end.tcp().apart), (UnsentBound::MIN_BYTES, false));
        }
    }

    #[tokio::test]
    async fn tls_keeps_no_more_than_its_own_bound_where_more_may_wait_in_the_socket() {
        for mut end in secured().await {
            end.hold(UnsentBound::MAX_BYTES);
            let bytes = taken(&mut end);
            assert!((60_000..=65_536).contains(&bytes), "{bytes}, less what each record adds");
            assert_eq!(waits_at_most(&end), UnsentBound::MAX_BYTES);
        }
    }

    #[tokio::test]
    async fn what_waits_in_tls_follows_the_rate() {
        for mut end in secured().await {
            // The handshake was delivered at some rate.
            end.follow_rate();
            let bytes = taken(&mut end);
            let bound = UnsentBound::of_records(waits_at_most(&end)) as usize;
            assert!((bound - bound / 10..=bound).contains(&bytes), "{bytes} of {bound}");
            assert!(end.tcp().apart);
        }
    }
}
