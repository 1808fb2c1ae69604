//! TCP settings of a load, as data.

use serde::{Deserialize, Serialize};
use weir_core::Duration;

/// TCP settings of a load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TcpSettings {
    /// The profile's name.
    pub profile: String,
    /// The congestion control's name.
    pub congestion_control: String,
    /// Changes to the profile.
    #[serde(default)]
    pub overrides: Overrides,
}

/// Changes to a profile, each optional: what a scenario may write beside a profile's name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Overrides {
    /// Whether segments carry timestamps (RFC 7323).
    pub timestamps: Option<bool>,
    /// Whether losses are told by SACK (RFC 2018).
    pub sack: Option<bool>,
    /// Whether ECN is asked for (RFC 3168).
    pub ecn: Option<bool>,
    /// Whether data leaves evenly spread.
    pub pacing: Option<bool>,
    /// Whether segments are handed to the line in bursts, or one by one.
    pub bursts: Option<bool>,
    /// Whether acknowledgements are delayed, or every segment is acknowledged.
    pub delayed_ack: Option<bool>,
    /// Segments that may be sent first.
    pub initial_window: Option<u32>,
    /// A fixed receive window, in bytes.
    pub receive_window_bytes: Option<u32>,
    /// Shortest retransmission timeout, in nanoseconds.
    pub rto_min_ns: Option<u64>,
}

impl TcpSettings {
    /// Linux' TCP with that congestion control, unchanged.
    #[must_use]
    pub fn linux(congestion_control: impl Into<String>) -> Self {
        Self {
            profile: "linux".to_owned(),
            congestion_control: congestion_control.into(),
            overrides: Overrides::default(),
        }
    }

    /// Checks the numbers. Which profiles and congestion controls there are is up to the world.
    ///
    /// # Errors
    /// If data could never move: the number, and what is allowed.
    pub(crate) fn check(&self) -> Result<(), String> {
        match (self.overrides.receive_window_bytes, self.overrides.initial_window) {
            (Some(bytes), _) if bytes < MIN_WINDOW_BYTES => {
                Err(format!("receive window {bytes} bytes: write {MIN_WINDOW_BYTES} or more"))
            }
            (_, Some(0)) => Err("initial window 0: write 1 segment or more".to_owned()),
            _ => Ok(()),
        }
    }
}

/// Segments that Linux sends first (RFC 6928; `TCP_INIT_CWND`).
pub const LINUX_INITIAL_WINDOW_SEGMENTS: u32 = 10;
/// Linux' shortest retransmission timeout (`TCP_RTO_MIN`).
pub const LINUX_RTO_MIN: Duration = Duration::from_millis(200);
/// Two full segments of a jumbo path.
const MIN_WINDOW_BYTES: u32 = 18_000;
