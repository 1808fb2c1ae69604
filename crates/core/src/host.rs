//! Hosts as people write them.

use std::net::Ipv6Addr;

/// A host's name or address without the brackets in which an address of IPv6 may stand; `None` where brackets are of no
/// pair, or stand around anything else.
#[must_use]
pub fn without_brackets(host: &str) -> Option<&str> {
    let Some(behind) = host.strip_prefix('[') else {
        return (!host.contains(']') && !host.contains('[')).then_some(host);
    };
    let inside = behind.strip_suffix(']')?;
    // Behind `%` stands the interface of an address that is one link's (RFC 4007, section 11).
    let address = inside.split('%').next().unwrap_or_default();
    address.parse::<Ipv6Addr>().is_ok().then_some(inside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_stand_around_an_address_of_ipv6_and_nothing_else() {
        for (written, host) in [
            ("server", "server"),
            ("10.9.0.2", "10.9.0.2"),
            ("::1", "::1"),
            ("[::1]", "::1"),
            ("[fe80::1%eth0]", "fe80::1%eth0"),
        ] {
            assert_eq!(without_brackets(written), Some(host), "{written}");
        }
        for wrong in [
            "[10.9.0.2",
            "10.9.0.2]",
            "[10.9.0.2]",
            "]",
            "[",
            "[]",
            "[::1",
            "::1]",
            "[[::1]]",
            "[server]",
            "a[b]",
        ] {
            assert_eq!(without_brackets(wrong), None, "{wrong}");
        }
    }
}
