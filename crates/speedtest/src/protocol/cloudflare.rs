//! The requests of Cloudflare's speed test (`@cloudflare/speedtest`).

use crate::protocol::answers::{Answer, HttpTest, Receipt, Verb, random_payload};
use crate::protocol::{Query, QueryError};

/// Where downloads are asked for.
pub const DOWN: &str = "/__down";
/// Path of uploads.
pub const UP: &str = "/__up";

/// Bytes that a request for a download wants; 0, the probe for latency, if it does not say.
///
/// # Errors
/// If it is no number, or more than Cloudflare's own server gives.
pub fn bytes(query: Query<'_>) -> Result<u64, QueryError> {
    Ok(query.number("bytes", MAX_BYTES)?.unwrap_or(0))
}

/// The header `server-timing` of an answer that took `took_ns` nanoseconds to make.
#[must_use]
pub fn server_timing(took_ns: u64) -> String {
    let micros = took_ns / 1_000;
    format!("cfRequestDuration;dur={}.{:03}", micros / 1_000, micros % 1_000)
}

/// The nanoseconds that a header `server-timing` says, in all of Cloudflare's entries together; `None` if it
/// has none, or less than the engine takes for a measurement.
#[must_use]
pub fn server_time(header: &str) -> Option<u64> {
    let times = header.split(',').filter_map(|entry| {
        let (name, rest) = entry.trim().split_once(';')?;
        let known = name == "cfRequestDuration" || name.starts_with("cfSpeed");
        let value = rest.split(';').find_map(|part| part.trim().strip_prefix("dur="))?;
        value.parse::<f64>().ok().filter(|&ms| known && ms > MIN_SERVER_MS && ms < MAX_SERVER_MS)
    });
    let sum: f64 = times.sum();
    (sum > 0.0).then_some((sum * 1e6) as u64)
}

/// The server's half: `/__down` and `/__up`.
pub static TEST: HttpTest = HttpTest {
    name: "cloudflare",
    summary: "Cloudflare's speed test",
    serves: |path| matches!(path, DOWN | UP),
    answer: |request| {
        Ok(match (request.path == UP, request.verb) {
            (true, Verb::Post) => Answer::Take(Receipt::Ok),
            (true, _) => Answer::OnlyVerb("POST"),
            (false, _) => random_payload(bytes(request.query)?),
        })
    },
    server_timing: Some(server_timing),
};

/// The engine: what is shorter is no measurement.
const MIN_SERVER_MS: f64 = 0.01;
/// No request lasts an hour.
const MAX_SERVER_MS: f64 = 3.6e6;
/// The largest step of the test's own sequence is 250 MB; the bound leaves room for those of others.
const MAX_BYTES: u64 = 10_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_asks_for_nothing() {
        assert_eq!(bytes(Query::new("bytes=0&during=download")), Ok(0));
        assert_eq!(bytes(Query::new("")), Ok(0));
        assert_eq!(bytes(Query::new("bytes=100000&measId=1")), Ok(100_000));
        assert!(bytes(Query::new("bytes=-1")).is_err());
        assert!(bytes(Query::new("bytes=10000000001")).is_err());
    }

    #[test]
    fn timing_is_in_milliseconds() {
        assert_eq!(server_timing(1_234_567), "cfRequestDuration;dur=1.234");
        assert_eq!(server_timing(12_000), "cfRequestDuration;dur=0.012");
        assert_eq!(server_time("cfRequestDuration;dur=1.234"), Some(1_234_000));
        let two = "cfL4;desc=x, cfSpeedEdge;dur=2;desc=y, cfSpeedWorker;dur=0.5, other;dur=9";
        assert_eq!(server_time(two), Some(2_500_000));
        for none in ["", "cfRequestDuration;dur=0.01", "cfRequestDuration;dur=nan", "x;dur=1"] {
            assert_eq!(server_time(none), None, "{none}");
        }
        assert_eq!(server_time("cfRequestDuration;dur=inf"), None);
    }
}
