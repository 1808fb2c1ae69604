//! Where the server is.

use std::net::{SocketAddr, ToSocketAddrs};

use weir_core::without_brackets;

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
    /// Reads `HOST`, `HOST:PORT` or `http://HOST[:PORT]/` and asks for the name's address: of several, the one that the
    /// system prefers. Words with commas are read as those of [`Self::find_each`].
    ///
    /// # Errors
    /// If the words are wrong or the name is not known.
    pub fn find(words: &str) -> Result<Self, NetError> {
        Ok(Self::find_each(words)?.swap_remove(0))
    }

    /// One server over each Internet protocol by which it is reached, the one that the system prefers first: a name that has
    /// addresses of both, or two names or addresses with a comma between them. There is one at least.
    ///
    /// # Errors
    /// If the words are wrong, a name is not known, or two of them name the server over the same protocol.
    pub fn find_each(words: &str) -> Result<Vec<Self>, NetError> {
        let mut found: Vec<Self> = Vec::new();
        for part in words.split(',') {
            for target in Self::find_part(part, words)? {
                if let Some(other) = found.iter().find(|one| one.is_ipv4() == target.is_ipv4()) {
                    let protocol = if target.is_ipv4() { "IPv4" } else { "IPv6" };
                    return Err(NetError::input(format!(
                        "server `{words}`: `{}` and `{}` both have an {protocol} address: write one server over each \
                         protocol, such as 192.0.2.1,2001:db8::1",
                        other.authority, target.authority
                    )));
                }
                found.push(target);
            }
        }
        Ok(found)
    }

    /// What one name or address of `words` stands for: the first address of each protocol.
    fn find_part(part: &str, words: &str) -> Result<Vec<Self>, NetError> {
        let authority = authority(part, words)?;
        let addresses = authority
            .to_socket_addrs()
            .map_err(|error| NetError::io(format_args!("server `{part}`"), &error))?;
        let mut found: Vec<Self> = Vec::new();
        for address in addresses {
            if found.iter().all(|one| one.is_ipv4() != address.is_ipv4()) {
                found.push(Self { authority: authority.clone(), address });
            }
        }
        if found.is_empty() {
            return Err(NetError::new(format!("server `{part}`: the name has no address")));
        }
        Ok(found)
    }

    /// Whether it is reached over IPv4, and not IPv6.
    #[must_use]
    pub const fn is_ipv4(&self) -> bool {
        self.address.is_ipv4()
    }
}

/// Name and port of `words`, which are all or a part of what the user wrote: `whole`.
fn authority(words: &str, whole: &str) -> Result<String, NetError> {
    let wrong =
        || NetError::input(format!("server `{whole}`: write HOST, HOST:PORT or [IPV6]:PORT"));
    if words.starts_with("https://") {
        return Err(NetError::input(format!(
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
    let (host, authority) = match behind_v6.rsplit_once(':') {
        None => (words_only, format!("{words_only}:{PORT}")),
        Some((_, port)) if port.parse::<u16>().is_ok() => {
            (&words_only[..words_only.len() - port.len() - 1], words_only.to_owned())
        }
        Some(_) => return Err(wrong()),
    };
    without_brackets(host).map(|_| authority).ok_or_else(wrong)
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
            assert_eq!(authority(words, words).unwrap(), expected);
        }
        for wrong in [
            "",
            "a b",
            "host:http",
            "host:99999",
            "[::1]:18080x",
            "[::1",
            "::1]",
            "]",
            "[]",
            "[]:80",
            "[192.0.2.1",
            "[192.0.2.1]:80",
            "http://[server]/",
            "http://host/path",
            "https://host",
        ] {
            assert!(authority(wrong, wrong).unwrap_err().is_input(), "{wrong}");
        }
    }

    #[test]
    fn a_server_has_one_address_of_each_protocol() {
        let each = |words| {
            let found = Target::find_each(words)?;
            Ok::<_, NetError>(found.iter().map(|one| one.address.to_string()).collect::<Vec<_>>())
        };
        assert_eq!(each("192.0.2.1").unwrap(), ["192.0.2.1:8080"]);
        let both = ["192.0.2.1:80", "[2001:db8::1]:8080"];
        assert_eq!(each("192.0.2.1:80,2001:db8::1").unwrap(), both);
        assert_eq!(Target::find("192.0.2.1:80,::1").unwrap().authority, "192.0.2.1:80");
        for wrong in [",", "192.0.2.1,", ",::1", "192.0.2.1,,::1", "192.0.2.1, ::1"] {
            let said = each(wrong).unwrap_err().to_string();
            assert_eq!(said, format!("server `{wrong}`: write HOST, HOST:PORT or [IPV6]:PORT"));
        }
        let twice = each("192.0.2.1,::1,192.0.2.2").unwrap_err().to_string();
        assert_eq!(
            twice,
            "server `192.0.2.1,::1,192.0.2.2`: `192.0.2.1:8080` and `192.0.2.2:8080` both have an IPv4 address: write one \
             server over each protocol, such as 192.0.2.1,2001:db8::1"
        );
    }
}
