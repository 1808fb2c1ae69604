//! Whose certificates are believed.

use std::sync::Arc;
use std::{env, io};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use rustls_native_certs::CertificateResult;
use weir_core::error_in_words;

/// Rule by which a server's certificate is trusted.
#[derive(Clone, Debug)]
pub(super) enum Trust {
    /// That one of these has signed it, for the server's name and for now.
    Authorities(Arc<RootCertStore>),
    /// Nothing.
    Anybody,
}

impl Trust {
    /// In the authorities that this machine believes, a company's own among them: those of the files that
    /// `SSL_CERT_FILE` and `SSL_CERT_DIR` name, else the system's store. Where there is no store at all, as
    /// on many routers, in those that Mozilla believes.
    ///
    /// # Errors
    /// If files were named, or there is a store, and no certificate in them can be read.
    pub fn of_this_machine() -> io::Result<Self> {
        let named = VARIABLES.into_iter().find(|name| env::var_os(name).is_some());
        authorities(rustls_native_certs::load_native_certs(), named)
            .map(|roots| Self::Authorities(Arc::new(roots)))
    }

    /// How a client that trusts so speaks TLS.
    pub fn config(&self) -> io::Result<ClientConfig> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?;
        Ok(match self {
            Self::Authorities(roots) => {
                builder.with_root_certificates(Arc::clone(roots)).with_no_client_auth()
            }
            Self::Anybody => builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(Anything(provider)))
                .with_no_client_auth(),
        })
    }
}

/// The authorities that were found, where `named` says. A store in use has some that cannot be read (of old forms),
/// which are left out.
fn authorities(found: CertificateResult, named: Option<&str>) -> io::Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    let place = named.unwrap_or("the system's store");
    let why = match (found.errors.first(), named) {
        _ if !roots.is_empty() => return Ok(roots),
        (None, None) => {
            return Ok(RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() });
        }
        (Some(error), _) => error_in_words(error),
        (None, Some(_)) => "none is there in PEM".to_owned(),
    };
    Err(io::Error::other(format!("no certificate of an authority in {place}: {why}")))
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

/// Where a user names other authorities than those of the system: as OpenSSL reads them.
const VARIABLES: [&str; 2] = ["SSL_CERT_FILE", "SSL_CERT_DIR"];
