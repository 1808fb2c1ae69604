//! Where the server is.

use std::net::{SocketAddr, ToSocketAddrs};

use crate::error::NetError;

/// A server by name and address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// As the user wrote it, with the port: what `Host` says.
    pub authority: String,
    /// Where that is.
    pub address: SocketAddr,
}

impl Target {
    /// Reads `HOST`, `HOST:PORT` or `http://HOST[:PORT]/` and asks for the name's address.
    ///
    /// # Errors
    /// If the words are wrong or the name is not known.
    pub fn find(words: &str) -> Result<Self, NetError> {
        let authority = authority(words)?;
        let mut found = authority
            .to_socket_addrs()
            .map_err(|error| NetError::io(format_args!("server `{words}`"), &error))?;
        let address = found
            .next()
            .ok_or_else(|| NetError::new(format!("server `{words}`: the name has no address")))?;
        Ok(Self { authority, address })
    }
}

fn authority(words: &str) -> Result<String, NetError> {
    let wrong = || NetError::new(format!("server `{words}`: write HOST, HOST:PORT or [IPV6]:PORT"));
    if words.starts_with("https://") {
        return Err(NetError::new(format!(
            "server `{words}`: Weir's own protocol is spoken without TLS: write http:// or the name alone"
        )));
    }
    let words_only = words.strip_prefix("http://").unwrap_or(words).trim_end_matches('/');
    if words_only.is_empty() || words_only.contains(['/', ' ', '@', '?', '#']) {
        return Err(wrong());
    }
    let is_bare_v6 = words_only.parse::<std::net::Ipv6Addr>().is_ok();
    if is_bare_v6 {
        return Ok(format!("[{words_only}]:{PORT}"));
    }
    let behind_v6 = words_only.rsplit(']').next().unwrap_or_default();
    match behind_v6.rsplit_once(':') {
        None => Ok(format!("{words_only}:{PORT}")),
        Some((_, port)) if port.parse::<u16>().is_ok() => Ok(words_only.to_owned()),
        Some(_) => Err(wrong()),
    }
}

/// Where `weir serve` listens.
const PORT: u16 = 8080;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_a_name_with_or_without_a_port() {
        for (words, expected) in [
            ("server", "server:8080"),
            ("192.0.2.1:80", "192.0.2.1:80"),
            ("http://example.net/", "example.net:8080"),
            ("::1", "[::1]:8080"),
            ("[::1]", "[::1]:8080"),
            ("[::1]:9", "[::1]:9"),
        ] {
            assert_eq!(authority(words).unwrap(), expected);
        }
        for wrong in ["", "a b", "host:http", "http://host/path", "https://host"] {
            assert!(authority(wrong).is_err(), "{wrong}");
        }
    }
}
