//! M-Lab's ndt7: what the two sides of a WebSocket tell each other (specification 0.11 of m-lab/ndt-server).

use std::net::SocketAddr;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::protocol::load::{Interval, MessageSize};
use crate::protocol::{Query, QueryError};

/// Where a download is asked for.
pub const DOWNLOAD: &str = "/ndt/v7/download";
/// Where an upload is asked for.
pub const UPLOAD: &str = "/ndt/v7/upload";
/// The name of the protocol in `Sec-WebSocket-Protocol`.
pub const SUBPROTOCOL: &str = "net.measurementlab.ndt.v7";
/// How long a test takes, in nanoseconds.
pub const DURATION_NS: u64 = 10_000_000_000;
/// Time after which the server closes a test whatever happens, in nanoseconds.
///
/// "Requirements for non-interactive clients" of the specification.
pub const MAX_TEST_NS: u64 = 15_000_000_000;
/// The longest message that a receiver takes.
pub const MAX_MESSAGE_BYTES: u64 = 1 << 24;
/// The time between two measurements.
pub const MEASUREMENTS: Interval =
    Interval { mean_ns: 250_000_000, min_ns: 25_000_000, max_ns: 625_000_000 };

/// The sizes of a download's messages: from 8 KiB to the 1 MiB that all clients take.
#[must_use]
pub const fn message_size() -> MessageSize {
    MessageSize::new(1 << 13, 1 << 20)
}

/// Options of a test, from the parameters of its URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Acknowledged bytes after which a download ends.
    pub early_exit_bytes: Option<u64>,
}

impl Options {
    /// Reads the parameters of the URL; the client's description of itself is checked and left.
    ///
    /// # Errors
    /// If they are not as the specification has them.
    pub fn parse(query: Query<'_>) -> Result<Self, QueryError> {
        query.check_metadata()?;
        let early_exit_bytes = match query.get("early_exit").as_deref() {
            None => None,
            Some("250") => Some(250_000_000),
            Some(other) => return Err(QueryError::value("early_exit", other, "250")),
        };
        Ok(Self { early_exit_bytes })
    }
}

/// Measurement message of a server during a test.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Measurement {
    /// Counters of the application.
    pub app_info: AppInfo,
    /// Addresses of both ends and the connection's name.
    pub connection_info: ConnectionInfo,
    /// Sender of the measurement: `server`.
    pub origin: &'static str,
    /// Kind of the test: `download` or `upload`.
    pub test: &'static str,
    /// Counters of the kernel (`TCP_INFO`), with `ElapsedTime`.
    #[serde(rename = "TCPInfo", skip_serializing_if = "Option::is_none")]
    pub tcp_info: Option<Map<String, Value>>,
}

/// Counters of the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct AppInfo {
    /// Time since the start, in microseconds.
    pub elapsed_time: u64,
    /// Bytes of messages sent or received.
    pub num_bytes: u64,
}

/// Addresses of both ends and the connection's name.
#[derive(Clone, Debug, Serialize)]
pub struct ConnectionInfo {
    /// The client's address.
    #[serde(rename = "Client")]
    pub client: SocketAddr,
    /// The server's address.
    #[serde(rename = "Server")]
    pub server: SocketAddr,
    /// The connection's name.
    #[serde(rename = "UUID")]
    pub uuid: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn early_exit_is_250_or_nothing() {
        let parse = |text| Options::parse(Query::new(text));
        assert_eq!(parse("client_name=x"), Ok(Options { early_exit_bytes: None }));
        assert_eq!(parse("early_exit=250"), Ok(Options { early_exit_bytes: Some(250_000_000) }));
        assert_eq!(
            parse("early_exit=100").unwrap_err().to_string(),
            "parameter `early_exit` is `100`: it must be 250"
        );
        assert!(parse("a=1&a=2").is_err());
    }

    #[test]
    fn a_measurement_has_the_names_of_the_specification() {
        let measurement = Measurement {
            app_info: AppInfo { elapsed_time: 1, num_bytes: 2 },
            connection_info: ConnectionInfo {
                client: "192.0.2.1:1".parse().unwrap(),
                server: "[::1]:2".parse().unwrap(),
                uuid: "u".into(),
            },
            origin: "server",
            test: "upload",
            tcp_info: None,
        };
        assert_eq!(
            serde_json::to_string(&measurement).unwrap(),
            r#"{"AppInfo":{"ElapsedTime":1,"NumBytes":2},"ConnectionInfo":{"Client":"192.0.2.1:1","Server":"[::1]:2","UUID":"u"},"Origin":"server","Test":"upload"}"#
        );
    }
}
