//! The requests of LibreSpeed.

use std::net::IpAddr;

use serde_json::json;

use crate::protocol::answers::{Answer, HttpTest, HttpTestRequest, Receipt, Verb, random_payload};
use crate::protocol::{Query, QueryError};

/// Endpoint of a path, with or without `/backend` before it and `.php` after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// Random bytes: the download.
    Garbage,
    /// Takes everything and says nothing: upload and ping.
    Empty,
    /// The client's address.
    GetIp,
}

impl Endpoint {
    /// The endpoint at a path.
    #[must_use]
    pub fn of(path: &str) -> Option<Self> {
        let path = path.strip_prefix("/backend").unwrap_or(path);
        let name = path.strip_prefix('/')?;
        match name.strip_suffix(".php").unwrap_or(name) {
            "garbage" => Some(Self::Garbage),
            "empty" => Some(Self::Empty),
            "getIP" => Some(Self::GetIp),
            _ => None,
        }
    }
}

/// Bytes that a request for a download wants.
///
/// # Errors
/// If `ckSize` is no number. As LibreSpeed does, one that is too large counts as the largest.
pub fn garbage_bytes(query: Query<'_>) -> Result<u64, QueryError> {
    let chunks = query.number("ckSize", u64::MAX)?.unwrap_or(DEFAULT_CHUNKS);
    Ok(chunks.clamp(1, MAX_CHUNKS) * CHUNK)
}

/// The answer to `getIP`.
#[must_use]
pub fn address(client: IpAddr) -> String {
    let client = client.to_canonical();
    let what = match client {
        address if address.is_loopback() => " - loopback",
        IpAddr::V4(address) if address.is_private() => " - private IPv4 access",
        IpAddr::V4(address) if address.is_link_local() => " - link-local IPv4 access",
        IpAddr::V6(address) if address.is_unicast_link_local() => " - link-local IPv6 access",
        IpAddr::V6(address) if address.is_unique_local() => " - private IPv6 access",
        _ => "",
    };
    json!({ "processedString": format!("{client}{what}"), "rawIspInfo": "" }).to_string()
}

/// The server's half: `garbage`, `empty` and `getIP`. Results are the client's: nothing of its telemetry is kept.
pub static TEST: HttpTest = HttpTest {
    name: "librespeed",
    summary: "LibreSpeed",
    serves: |path| Endpoint::of(path).is_some() || TELEMETRY.contains(&path),
    answer,
    server_timing: None,
};

fn answer(request: &HttpTestRequest<'_>) -> Result<Answer, QueryError> {
    Ok(match Endpoint::of(request.path) {
        Some(Endpoint::Garbage) => random_payload(garbage_bytes(request.query)?),
        // A ping is a GET, or a POST without a body.
        Some(Endpoint::Empty) if request.verb != Verb::Get => Answer::Take(Receipt::Empty),
        Some(Endpoint::Empty) | None => Answer::Empty,
        Some(Endpoint::GetIp) => {
            Answer::Words("application/json; charset=utf-8", address(request.client))
        }
    })
}

/// Where its clients tell their results.
const TELEMETRY: [&str; 2] = ["/results/telemetry", "/results/telemetry.php"];

/// LibreSpeed: `ckSize` counts MiB, is 4 if not given and 1024 at most.
const CHUNK: u64 = 1 << 20;
const DEFAULT_CHUNKS: u64 = 4;
const MAX_CHUNKS: u64 = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_known_with_and_without_php() {
        for path in ["/garbage", "/garbage.php", "/backend/garbage", "/backend/garbage.php"] {
            assert_eq!(Endpoint::of(path), Some(Endpoint::Garbage), "{path}");
        }
        assert_eq!(Endpoint::of("/backend/empty.php"), Some(Endpoint::Empty));
        assert_eq!(Endpoint::of("/getIP"), Some(Endpoint::GetIp));
        assert_eq!(Endpoint::of("/getip"), None);
        assert_eq!(Endpoint::of("garbage"), None);
    }

    #[test]
    fn chunks_are_mebibytes_within_bounds() {
        assert_eq!(garbage_bytes(Query::new("r=0.3")), Ok(4 << 20));
        assert_eq!(garbage_bytes(Query::new("ckSize=100")), Ok(100 << 20));
        assert_eq!(garbage_bytes(Query::new("ckSize=5000")), Ok(1024 << 20));
        assert_eq!(garbage_bytes(Query::new("ckSize=0")), Ok(1 << 20));
        assert!(garbage_bytes(Query::new("ckSize=many")).is_err());
    }

    #[test]
    fn an_address_is_told_with_its_kind() {
        let told = address("::ffff:192.168.1.7".parse().unwrap());
        assert_eq!(
            told,
            r#"{"processedString":"192.168.1.7 - private IPv4 access","rawIspInfo":""}"#
        );
        assert!(address("203.0.113.9".parse().unwrap()).contains("\"203.0.113.9\""));
    }
}
