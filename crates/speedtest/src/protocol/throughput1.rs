//! M-Lab's throughput1 (m-lab/msak): several WebSocket streams, each a test of its own to the server.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::protocol::load::{Interval, MessageSize};
use crate::protocol::{Query, QueryError};

/// Where a download is asked for.
pub const DOWNLOAD: &str = "/throughput/v1/download";
/// Where an upload is asked for.
pub const UPLOAD: &str = "/throughput/v1/upload";
/// The name of the protocol in `Sec-WebSocket-Protocol`.
pub const SUBPROTOCOL: &str = "net.measurementlab.throughput.v1";
/// The longest that a stream may take, in nanoseconds.
pub const MAX_STREAM_NS: u64 = 25_000_000_000;
/// The time between two measurements.
pub const MEASUREMENTS: Interval =
    Interval { mean_ns: 250_000_000, min_ns: 100_000_000, max_ns: 400_000_000 };

/// The sizes of a download's messages.
#[must_use]
pub const fn message_size() -> MessageSize {
    MessageSize::new(1 << 10, 1 << 20)
}

/// Options of a stream, from the parameters of its URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// How long it is to take, in nanoseconds.
    pub duration_ns: u64,
    /// The sender's congestion control.
    pub congestion: Option<String>,
    /// Bytes after which the test ends; `None` if only its time ends it.
    pub bytes: Option<u64>,
}

impl Options {
    /// Reads the parameters of the URL.
    ///
    /// # Errors
    /// If one that is needed is missing, or has a value that is not allowed.
    pub fn parse(query: Query<'_>) -> Result<Self, QueryError> {
        for needed in ["mid", "streams"] {
            if query.get(needed).is_none_or(|value| value.is_empty()) {
                return Err(QueryError::Missing(needed));
            }
        }
        let longest_ms = MAX_STREAM_NS / 1_000_000;
        let duration_ms = query.number("duration", longest_ms)?.unwrap_or(DEFAULT_DURATION_MS);
        let congestion = match query.get("cc").as_deref() {
            None | Some("") => None,
            Some(name) if CONGESTION.contains(&name) => Some(name.to_owned()),
            Some(other) => return Err(QueryError::value("cc", other, "reno, cubic or bbr")),
        };
        let bytes = query.number("bytes", i64::MAX as u64)?.filter(|&bytes| bytes > 0);
        Ok(Self { duration_ns: duration_ms * 1_000_000, congestion, bytes })
    }
}

/// Measurement message of one side during a stream.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Measurement {
    /// The sender's congestion control; in the first message only, as the next three.
    #[serde(rename = "CC", skip_serializing_if = "Option::is_none")]
    pub congestion: Option<String>,
    /// The stream's name.
    #[serde(rename = "UUID", skip_serializing_if = "Option::is_none")]
    pub uuid: Option<String>,
    /// The address of who tells.
    #[serde(rename = "LocalAddr", skip_serializing_if = "Option::is_none")]
    pub local: Option<String>,
    /// The address of the other.
    #[serde(rename = "RemoteAddr", skip_serializing_if = "Option::is_none")]
    pub remote: Option<String>,
    /// Bytes of messages.
    #[serde(rename = "Application")]
    pub application: Bytes,
    /// Bytes on the connection.
    #[serde(rename = "Network")]
    pub network: Bytes,
    /// Time since the start, in microseconds.
    #[serde(rename = "ElapsedTime")]
    pub elapsed_time: u64,
    /// Counters of the kernel (`TCP_INFO`), with `ElapsedTime`.
    #[serde(rename = "TCPInfo", skip_serializing_if = "Option::is_none")]
    pub tcp_info: Option<Map<String, Value>>,
}

/// Bytes in both directions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Bytes {
    /// Bytes sent.
    pub bytes_sent: u64,
    /// Bytes received.
    pub bytes_received: u64,
}

/// Duration that msak's server uses if the client names none.
const DEFAULT_DURATION_MS: u64 = 5_000;
const CONGESTION: [&str; 3] = ["reno", "cubic", "bbr"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_and_bounded() {
        let parse = |text| Options::parse(Query::new(text));
        assert_eq!(
            parse("mid=x&streams=2&duration=3000&cc=bbr&bytes=0"),
            Ok(Options { duration_ns: 3_000_000_000, congestion: Some("bbr".into()), bytes: None })
        );
        assert_eq!(parse("mid=x&streams=2").unwrap().duration_ns, 5_000_000_000);
        assert_eq!(parse("streams=2"), Err(QueryError::Missing("mid")));
        assert_eq!(parse("mid=x"), Err(QueryError::Missing("streams")));
        assert!(parse("mid=x&streams=2&duration=25001").is_err());
        assert!(parse("mid=x&streams=2&cc=vegas").is_err());
    }
}
