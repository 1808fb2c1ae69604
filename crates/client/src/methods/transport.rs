//! Connections: TCP, and TLS over it.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, DigitallySignedStruct, ProtocolVersion, RootCertStore, SignatureScheme,
};
use socket2::{SockRef, Socket};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use weir_core::Duration;
use weir_probe::UnsentBound;

use super::address::Url;

/// A stream of bytes both ways.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// An open connection, and how long its handshakes took.
pub(super) struct Transport {
    pub stream: Box<dyn Stream>,
    /// The same connection, to ask its kernel.
    pub socket: Arc<Socket>,
    pub tcp: Duration,
    /// Brought to one round trip.
    pub tls: Option<Duration>,
}

/// How connections to one server are made.
#[derive(Clone)]
pub(super) struct Dialer {
    pub url: Url,
    address: SocketAddr,
    verify: bool,
}

impl Dialer {
    pub const fn new(url: Url, address: SocketAddr, verify: bool) -> Self {
        Self { url, address, verify }
    }

    /// Opens a connection on which `protocol` (an ALPN name) is spoken.
    pub async fn dial(&self, protocol: &[u8]) -> io::Result<Transport> {
        let began = Instant::now();
        let stream = TcpStream::connect(self.address).await?;
        let tcp = span(began);
        stream.set_nodelay(true)?;
        let socket = SockRef::from(&stream).try_clone()?;
        socket.set_tcp_notsent_lowat(UnsentBound::LEAST)?;
        let socket = Arc::new(socket);
        if !self.url.tls {
            return Ok(Transport { stream: Box::new(stream), socket, tcp, tls: None });
        }
        let mut config = self.config()?;
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
        Ok(Transport { stream: Box::new(stream), socket, tcp, tls })
    }

    fn config(&self) -> io::Result<ClientConfig> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?;
        if self.verify {
            let roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
            return Ok(builder.with_root_certificates(roots).with_no_client_auth());
        }
        let anything = Arc::new(Anything(provider));
        Ok(builder.dangerous().with_custom_certificate_verifier(anything).with_no_client_auth())
    }
}

fn span(since: Instant) -> Duration {
    Duration::from_nanos(since.elapsed().as_nanos() as u64)
}

/// Believes every certificate: for servers with one of their own making, whose bytes are noise anyway.
#[derive(Debug)]
struct Anything(Arc<CryptoProvider>);

impl ServerCertVerifier for Anything {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// Lets so many bytes wait unsent in a socket.
pub(super) fn bound_unsent(socket: &Socket, bytes: u32) {
    // A connection that is gone tells so elsewhere.
    let _ = socket.set_tcp_notsent_lowat(bytes);
}
