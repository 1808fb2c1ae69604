//! Where a foreign server is.

use std::net::{SocketAddr, ToSocketAddrs};

use weir_core::without_brackets;

use crate::ClientError;

/// A server of a speed test: `http://` or `https://`, a name and a port. A path before the test's own
/// paths is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    /// Whether TLS is spoken.
    pub tls: bool,
    /// Name without port, for certificates.
    pub name: String,
    /// Name and port, as `Host` says.
    pub authority: String,
    /// Path before the test's own paths, without a slash at its end.
    pub base: String,
    /// Path and query of the URL itself.
    pub itself: String,
}

impl Url {
    /// Reads a URL; `ws` and `wss` mean the same.
    ///
    /// # Errors
    /// If it is none.
    pub fn parse(words: &str) -> Result<Self, ClientError> {
        let wrong = || {
            ClientError::input(format!(
                "server `{words}`: write http://HOST[:PORT] or https://HOST[:PORT]"
            ))
        };
        let uri: hyper::Uri = words.parse().map_err(|_| wrong())?;
        let tls = match uri.scheme_str() {
            Some("http" | "ws") => false,
            Some("https" | "wss") => true,
            _ => return Err(wrong()),
        };
        let host = uri.host().ok_or_else(wrong)?;
        let port = uri.port_u16().unwrap_or(if tls { 443 } else { 80 });
        let name = without_brackets(host).ok_or_else(wrong)?.to_owned();
        let base = uri.path().trim_end_matches('/').to_owned();
        let itself = uri.path_and_query().map_or("/", |it| it.as_str()).to_owned();
        Ok(Self { tls, name, authority: format!("{host}:{port}"), base, itself })
    }

    pub(crate) fn find(&self) -> Result<SocketAddr, ClientError> {
        let authority = &self.authority;
        let mut found = authority
            .to_socket_addrs()
            .map_err(|error| ClientError::io(format_args!("server `{authority}`"), &error))?;
        found.next().ok_or_else(|| {
            ClientError::new(format!("server `{authority}`: the name has no address"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_a_scheme_and_a_host() {
        let url = Url::parse("https://[::1]:8443/speed/").unwrap();
        assert_eq!((url.tls, url.name.as_str()), (true, "::1"));
        assert_eq!((url.authority.as_str(), url.base.as_str()), ("[::1]:8443", "/speed"));
        assert_eq!(url.itself, "/speed/");
        assert_eq!(Url::parse("http://server/a/?b=c/").unwrap().itself, "/a/?b=c/");
        let plain = Url::parse("http://server").unwrap();
        assert_eq!(plain.itself, "/");
        assert_eq!((plain.authority.as_str(), plain.base.as_str()), ("server:80", ""));
        for wrong in [
            "server",
            "ftp://server",
            "http://",
            "",
            "http://[192.0.2.1]",
            "http://[::1",
            "http://[]:80",
            "http://]",
        ] {
            assert!(Url::parse(wrong).is_err(), "{wrong}");
        }
    }
}
