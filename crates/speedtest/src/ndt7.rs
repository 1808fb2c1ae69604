//! ndt7 as M-Lab's own client runs it: a download, then an upload, one connection each.
//!
//! Source: ndt7 protocol 0.11.0 and `m-lab/ndt7-client-go` 0.10.1. Download is what arrived here over the
//! time it took; upload is `8 * BytesReceived / ElapsedTime` of the server's last message; latency is
//! `MinRTT` of the server's TCP, which is a minimum and no latency under load.

use crate::protocol::ndt7::{
    DOWNLOAD, DURATION_NS, MAX_TEST_NS, SUBPROTOCOL, UPLOAD, message_size,
};
use serde_json::Value;
use weir_core::{Duration, Time};

use crate::figures::mbps;
use crate::method::{Action, Connection, Event, Id, Method};
use crate::method_info::{KnownBy, MethodInfo};
use crate::result::{Basis, Declared, MainFigures, meaning, object};

/// A test under way.
#[derive(Clone, Debug, Default)]
pub struct Ndt7 {
    stage: Stage,
    began: Time,
    download: Half,
    upload: Half,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Before,
    Download,
    Upload,
    Over,
}

/// State of one direction of the test.
#[derive(Clone, Debug, Default)]
struct Half {
    bytes: u64,
    /// Time from the handshake to the last byte or message.
    elapsed: Duration,
    /// The last message of the server that had `TCPInfo`.
    last: Option<Value>,
    failure: Option<String>,
}

const DOWN: Id = 1;
const UP: Id = 2;

impl Ndt7 {
    /// A test of both directions.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn half(&mut self) -> &mut Half {
        if self.stage == Stage::Download { &mut self.download } else { &mut self.upload }
    }

    fn end_half(&mut self, actions: &mut Vec<Action>) {
        match self.stage {
            Stage::Download => {
                self.stage = Stage::Upload;
                actions.push(Action::Close { id: DOWN });
                actions.push(open(UP, UPLOAD));
            }
            Stage::Upload => {
                self.stage = Stage::Over;
                actions.push(Action::Close { id: UP });
                actions.push(Action::Finish);
            }
            Stage::Before | Stage::Over => {}
        }
    }

    fn on_wake(&mut self, now: Time, actions: &mut Vec<Action>) {
        let elapsed = now.checked_since(self.began).unwrap_or(Duration::ZERO);
        let over = match self.stage {
            // The client's own patience; the server ends it at 10 s.
            Stage::Download => elapsed.as_nanos() >= MAX_TEST_NS,
            Stage::Upload => elapsed.as_nanos() >= DURATION_NS,
            Stage::Before | Stage::Over => false,
        };
        if over {
            self.end_half(actions);
        }
    }
}

impl Method for Ndt7 {
    fn on(&mut self, now: Time, event: Event<'_>, actions: &mut Vec<Action>) {
        if self.stage == Stage::Over {
            return;
        }
        let current = if self.stage == Stage::Download { DOWN } else { UP };
        match event {
            Event::Begin => {
                self.stage = Stage::Download;
                actions.push(open(DOWN, DOWNLOAD));
            }
            Event::Opened { id, .. } if id == current => {
                self.began = now;
                let patience = if id == DOWN { MAX_TEST_NS } else { DURATION_NS };
                actions.push(Action::WakeAt(now + Duration::from_nanos(patience)));
                if id == UP {
                    actions.push(Action::Load { id, sizes: message_size() });
                }
            }
            Event::Received { id, bytes } if id == current && id == DOWN => {
                let elapsed = now.since(self.began);
                let half = self.half();
                half.bytes += bytes;
                half.elapsed = elapsed;
            }
            Event::Text { id, text } if id == current => {
                let elapsed = now.since(self.began);
                let Ok(message) = serde_json::from_str::<Value>(text) else { return };
                let half = self.half();
                half.bytes += if id == DOWN { text.len() as u64 } else { 0 };
                half.elapsed = elapsed;
                if message.get("TCPInfo").is_some() {
                    half.last = Some(message);
                }
            }
            Event::Ended { id } if id == current => self.end_half(actions),
            Event::Failed { id, reason } if id == current => {
                // The specification: an end of any kind, at any time, is an end.
                let nothing = self.half().elapsed == Duration::ZERO;
                if nothing {
                    self.half().failure = Some(reason.to_owned());
                }
                self.end_half(actions);
            }
            Event::Wake => self.on_wake(now, actions),
            _ => {}
        }
    }

    fn result(&self) -> Value {
        let seconds = |half: &Half| half.elapsed.as_secs_f64();
        let field = |half: &Half, name: &str| half.last.as_ref()?["TCPInfo"][name].as_f64();
        let down =
            (self.download.bytes > 0).then(|| mbps(self.download.bytes, seconds(&self.download)));
        let up = field(&self.upload, "ElapsedTime")
            .filter(|&micros| micros > 0.0)
            .and_then(|micros| Some(field(&self.upload, "BytesReceived")? * 8.0 / micros));
        let sent = field(&self.download, "BytesSent").filter(|&sent| sent > 0.0);
        let again = sent.and_then(|sent| Some(field(&self.download, "BytesRetrans")? / sent));
        let last = |half: &Half| field(half, "ElapsedTime").map(|micros| micros / 1e6);
        let truncated = |told: Option<f64>| told.is_none_or(|told| told < MIN_TEST_S);
        let failures: Vec<_> = [("download", &self.download), ("upload", &self.upload)]
            .into_iter()
            .filter_map(|(way, half)| Some(format!("{way}: {}", half.failure.as_ref()?)))
            .collect();
        let result = Ndt7Result {
            basis: Basis { method: METHOD.name, formula: "m-lab/ndt7-client-go 0.10.1" },
            figures: MainFigures {
                download_mbps: down,
                upload_mbps: up,
                latency_ms: field(&self.download, "MinRTT").map(|micros| micros / 1e3),
            },
            latency_definition: "MinRTT of the server's TCP: a minimum, no latency under load",
            srtt_ms: field(&self.download, "RTT").map(|micros| micros / 1e3),
            retransmission_rate: again,
            download_duration_s: seconds(&self.download),
            upload_duration_s: last(&self.upload),
            truncated: Truncated {
                download: truncated(Some(seconds(&self.download))),
                upload: truncated(last(&self.upload)),
            },
            failures,
        };
        result.to_json()
    }
}

object! {
    /// Result of ndt7.
    pub(crate) struct Ndt7Result {
        pub basis: Basis,
        pub figures: MainFigures,
        pub latency_definition: &'static str = meaning::LATENCY_DEFINITION,
        /// Smoothed round trip of the server's TCP at the end of the download, in ms (`TCPInfo.RTT`).
        pub srtt_ms: Option<f64>,
        /// Share of the download's bytes that were sent again, 0 to 1 (`BytesRetrans` / `BytesSent`).
        pub retransmission_rate: Option<f64>,
        /// How long the measurement of the download covers, in s.
        pub download_duration_s: f64,
        /// How long the measurement of the upload covers, in s; null if the server did not tell.
        pub upload_duration_s: Option<f64>,
        /// Whether a direction covers less than 9 s of the 10.
        pub truncated: Truncated,
        pub failures: Vec<String> = meaning::FAILURES,
    }
}

object! {
    /// Directions of ndt7 that ended too soon.
    pub(crate) struct Truncated {
        /// Whether the download did.
        pub download: bool,
        /// Whether the upload did.
        pub upload: bool,
    }
}

fn open(id: Id, path: &str) -> Action {
    let path = format!("{path}?client_name=weir&client_version={}", env!("CARGO_PKG_VERSION"));
    Action::Open { id, kind: Connection::WebSocket { path, subprotocol: SUBPROTOCOL } }
}

/// Nine tenths of the nominal ten seconds: what ended sooner is truncated (reference, lesson 6).
const MIN_TEST_S: f64 = 9.0;

/// ndt7 as M-Lab's own client runs it.
pub static METHOD: MethodInfo = MethodInfo {
    name: "ndt7",
    summary: "M-Lab's: one WebSocket down, then one up",
    server_kind: None,
    known_by: Some(KnownBy {
        path: DOWNLOAD,
        // Refused as no WebSocket, where others have no such file.
        statuses: &[400, 426],
        key: None,
    }),
    // m-lab/ndt-server, package `bbr`.
    congestion_control: Some("bbr"),
    cautions: &[],
    needs_tls: false,
    has_headers: true,
    result: &Ndt7Result::OBJECT,
    begin: |_| Box::new(Ndt7::new()),
};

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn at(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    fn opened(id: Id) -> Event<'static> {
        Event::Opened { id, tcp: Duration::from_millis(10), tls: None }
    }

    #[test]
    fn a_whole_test_gives_the_official_figures() {
        let (mut test, mut actions) = (Ndt7::new(), Vec::new());
        test.on(at(0), Event::Begin, &mut actions);
        assert!(matches!(&actions[..], [Action::Open { id: DOWN, .. }]));
        actions.clear();
        test.on(at(100), opened(DOWN), &mut actions);
        assert_eq!(actions, [Action::WakeAt(at(15_100))]);
        test.on(at(5_100), Event::Received { id: DOWN, bytes: 6_000_000 }, &mut actions);
        let text = r#"{"TCPInfo":{"MinRTT":10500,"RTT":40000,"BytesSent":1000,"BytesRetrans":10}}"#;
        test.on(at(9_000), Event::Text { id: DOWN, text }, &mut actions);
        let bytes = 6_500_000 - text.len() as u64;
        test.on(at(10_100), Event::Received { id: DOWN, bytes }, &mut actions);
        actions.clear();
        test.on(at(10_200), Event::Ended { id: DOWN }, &mut actions);
        assert!(matches!(&actions[..], [Action::Close { id: DOWN }, Action::Open { id: UP, .. }]));
        actions.clear();
        test.on(at(10_300), opened(UP), &mut actions);
        assert!(matches!(&actions[..], [Action::WakeAt(_), Action::Load { id: UP, .. }]));
        let told = r#"{"TCPInfo":{"BytesReceived":2500000,"ElapsedTime":10000000}}"#;
        test.on(at(20_290), Event::Text { id: UP, text: told }, &mut actions);
        actions.clear();
        test.on(at(20_300), Event::Wake, &mut actions);
        assert_eq!(actions, [Action::Close { id: UP }, Action::Finish]);
        let result = test.result();
        assert_eq!(result["download_mbps"], 10.0);
        assert_eq!(result["upload_mbps"], 2.0);
        assert_eq!(result["latency_ms"], 10.5);
        assert_eq!(result["retransmission_rate"], 0.01);
        assert_eq!(result["truncated"], json!({"download": false, "upload": false}));
    }

    #[test]
    fn an_upload_whose_messages_stop_early_is_truncated() {
        let (mut test, mut actions) = (Ndt7::new(), Vec::new());
        test.on(at(0), Event::Begin, &mut actions);
        test.on(at(0), Event::Failed { id: DOWN, reason: "refused" }, &mut actions);
        test.on(at(0), opened(UP), &mut actions);
        let text = r#"{"TCPInfo":{"BytesReceived":4200000,"ElapsedTime":1140000}}"#;
        test.on(at(1_140), Event::Text { id: UP, text }, &mut actions);
        test.on(at(10_000), Event::Wake, &mut actions);
        let result = test.result();
        assert_eq!(result["truncated"], json!({"download": true, "upload": true}));
        assert_eq!(result["failures"], json!(["download: refused"]));
        // What the official client shows all the same (reference, section 1.6).
        assert!((result["upload_mbps"].as_f64().unwrap() - 29.47).abs() < 0.01);
    }
}
