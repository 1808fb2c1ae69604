//! TLS with a certificate that was given, or one made for the occasion.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::TlsAcceptor;

use crate::error::ServeError;
use crate::options::Options;

/// An acceptor of TLS connections, with the certificate of `options` or one that it makes itself.
///
/// # Errors
/// If the files are not what they should be.
pub(crate) fn acceptor(options: &Options) -> Result<TlsAcceptor, ServeError> {
    let (chain, key) = match (&options.cert, &options.key) {
        (Some(cert), Some(key)) => (read_chain(cert)?, read_key(key)?),
        _ => self_made()?,
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
        .map_err(|error| match &options.cert {
            Some(file) => ServeError::input(format!("certificate `{}`: {error}", file.display())),
            None => ServeError::new(format!("TLS: {error}")),
        })?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

type Identity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

/// A certificate that nobody has signed but itself, for this machine's name.
fn self_made() -> Result<Identity, ServeError> {
    let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = host.trim();
    if !host.is_empty() && host.is_ascii() {
        names.push(host.to_owned());
    }
    let made = rcgen::generate_simple_self_signed(names)
        .map_err(|error| ServeError::new(format!("making a certificate: {error}")))?;
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    Ok((vec![made.cert.into()], key.into()))
}

fn read_chain(file: &Path) -> Result<Vec<CertificateDer<'static>>, ServeError> {
    let chain =
        CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    match chain {
        Ok(chain) if !chain.is_empty() => Ok(chain),
        Ok(_) => Err(no_pem("certificate", file)),
        Err(error) => Err(unreadable("certificate", file, &error)),
    }
}

fn read_key(file: &Path) -> Result<PrivateKeyDer<'static>, ServeError> {
    PrivateKeyDer::from_pem_file(file).map_err(|error| unreadable("private key", file, &error))
}

fn unreadable(what: &str, file: &Path, error: &pem::Error) -> ServeError {
    match error {
        pem::Error::Io(error) => ServeError::file(what, file, error),
        pem::Error::NoItemsFound => no_pem(what, file),
        error => ServeError::input(format!("{what} `{}`: {error}", file.display())),
    }
}

fn no_pem(what: &str, file: &Path) -> ServeError {
    ServeError::input(format!("{what} `{}`: no {what} in PEM in it", file.display()))
}
