//! The test of a server that speaks HTTP and nothing of Weir's: downloads, uploads where it takes any, and
//! round
//! trips of TCP's handshakes, first without load, then beside it.
//!
//! No official client does this; it is what `weir test` falls back to. The server's way of giving many bytes
//! is found by asking for each kind's endpoint, for a few bytes first; a server without any gives the file
//! that the URL names, and takes no upload. Flows are added as in Weir's own test ([`Ramp`]).

use serde_json::Value;
use weir_core::{Direction, Duration, Time};

use crate::figures::{mbps, mean, quantile};
use crate::method::{Action, Connection, Event, Id, Method, answered, is_busy, is_success};
use crate::method_info::{Caution, MethodInfo};
use crate::ramp::{Ramp, RampSettings};
use crate::result::{Basis, Declared, LoadedMedians, MainFigures, meaning, object};
use crate::streams::{Answer, Heard, Streams};

/// A test under way.
#[derive(Clone, Debug)]
pub struct Web {
    stage: Stage,
    streams: Streams,
    /// Index of the kind of server that it is, or that is tried now.
    kind: usize,
    asked: u32,
    /// Bytes of the answer under way while kinds are tried.
    small: u64,
    /// Size of the answer that showed the kind: of the file, if it comes to that.
    file: u64,
    /// Status with which a busy server refused to show its kind.
    busy: Option<u16>,
    began: Time,
    ramp: Ramp,
    next_look: Time,
    /// Bytes since the last look, and since the line's first second.
    interval: u64,
    counted: u64,
    next_ping: Time,
    pings: u32,
    /// Handshakes under way: their connections.
    waiting: Vec<Id>,
    idle: Pings,
    done: [DirectionResult; 2],
    failure: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Before,
    Kind,
    Idle,
    Load(Direction),
    /// A full buffer runs empty.
    Gap,
    Over,
}

#[derive(Clone, Debug, Default)]
struct Pings {
    ms: Vec<f64>,
    lost: u32,
}

/// Result of one direction.
#[derive(Clone, Debug, Default)]
struct DirectionResult {
    mbps: Option<f64>,
    connections: u32,
    full: bool,
    pings: Pings,
}

/// Paths by which the files of one kind of web server are asked for.
struct WebServer {
    name: &'static str,
    /// For a few bytes, and how many come then.
    small: (&'static str, u64),
    large: &'static str,
    upload: Option<&'static str>,
}

impl Default for Web {
    fn default() -> Self {
        Self::new()
    }
}

impl Web {
    /// A test of latency, download and, if the server takes it, upload.
    #[must_use]
    pub fn new() -> Self {
        Self {
            stage: Stage::Before,
            streams: Streams::numbered_above(0),
            kind: 0,
            asked: 0,
            small: 0,
            file: 0,
            busy: None,
            began: Time::ZERO,
            ramp: Ramp::new(RampSettings::default()),
            next_look: Time::MAX,
            interval: 0,
            counted: 0,
            next_ping: Time::MAX,
            pings: 0,
            waiting: Vec::new(),
            idle: Pings::default(),
            done: [DirectionResult::default(), DirectionResult::default()],
            failure: None,
        }
    }

    const fn known(&self) -> Option<&'static WebServer> {
        if self.kind < KINDS.len() { Some(&KINDS[self.kind]) } else { None }
    }

    fn ask(&mut self, place: usize, now: Time, actions: &mut Vec<Action>) {
        self.asked += 1;
        // The file itself has no parameter against caches: it is what the user named.
        let with = |path: &str| {
            let mark = if path.contains('?') { '&' } else { '?' };
            format!("{path}{mark}r={}", self.asked)
        };
        let request = match (self.stage, self.known()) {
            (Stage::Kind, Some(kind)) => (with(kind.small.0), None),
            (Stage::Load(Direction::Down), Some(kind)) => (with(kind.large), None),
            (Stage::Load(Direction::Up), Some(WebServer { upload: Some(path), .. })) => {
                (with(path), Some(CHUNK))
            }
            (Stage::Kind | Stage::Load(Direction::Down), None) => (String::new(), None),
            _ => return,
        };
        self.streams.ask(place, now, request, actions);
    }

    fn on_kind(&mut self, place: usize, answer: Answer, now: Time, actions: &mut Vec<Action>) {
        let bytes = std::mem::take(&mut self.small);
        let found =
            answer.is_success() && self.known().map_or(bytes > 0, |kind| kind.small.1 == bytes);
        if let Some(status) = self.refused(Some(answer.status)) {
            self.fail(answered(status), actions);
        } else if found {
            self.found(bytes, now, actions);
        } else if self.kind == KINDS.len() {
            let status = answer.status;
            self.fail(format!("the server answered {status} without anything to load"), actions);
        } else {
            self.kind += 1;
            self.ask(place, now, actions);
        }
    }

    /// The status of a busy server that refused to show its kind, once no other kind is left: what else its URL names,
    /// such as a page, is not what it would be measured with. It answers with `status` now.
    fn refused(&mut self, status: Option<u16>) -> Option<u16> {
        self.busy = self.busy.or(status.filter(|&status| is_busy(status)));
        self.busy.filter(|_| self.known().is_none())
    }

    fn found(&mut self, bytes: u64, now: Time, actions: &mut Vec<Action>) {
        self.file = bytes;
        self.streams.close(actions);
        self.stage = Stage::Idle;
        self.began = now;
        self.next_ping = now;
        actions.push(Action::WakeAt(now));
    }

    /// Handles an answer of many bytes: no answer to a question for a few, but enough of a file.
    fn on_many(&mut self, now: Time, actions: &mut Vec<Action>) {
        let bytes = std::mem::take(&mut self.small);
        let status = self.streams.status(0);
        if let Some(status) = self.refused(status) {
            return self.fail(answered(status), actions);
        }
        if self.known().is_none() && status.is_some_and(is_success) {
            return self.found(bytes, now, actions);
        }
        if self.known().is_none() {
            return self.fail("the server answers its URL with a long refusal".to_owned(), actions);
        }
        self.kind += 1;
        self.streams.close(actions);
        self.streams.open(actions);
    }

    fn begin(&mut self, way: Direction, now: Time, actions: &mut Vec<Action>) {
        self.stage = Stage::Load(way);
        self.began = now;
        self.ramp = Ramp::new(RampSettings::default());
        (self.interval, self.counted) = (0, 0);
        self.next_look = now + LOOK;
        actions.push(Action::WakeAt(self.next_look));
        for _ in 0..self.ramp.flows() {
            self.streams.open(actions);
        }
    }

    fn on_wake(&mut self, now: Time, actions: &mut Vec<Action>) {
        if now >= self.next_ping {
            self.next_ping = now + PING;
            actions.push(Action::WakeAt(self.next_ping));
            self.pings += 1;
            let id = PINGS + self.pings;
            self.waiting.push(id);
            actions.push(Action::Open { id, kind: Connection::Http1 });
        }
        let elapsed = now.since(self.began);
        match self.stage {
            Stage::Idle if elapsed >= IDLE => self.begin(Direction::Down, now, actions),
            Stage::Gap if elapsed >= GAP => self.begin(Direction::Up, now, actions),
            Stage::Load(way) => self.look(way, now, actions),
            _ => {}
        }
    }

    fn look(&mut self, way: Direction, now: Time, actions: &mut Vec<Action>) {
        if now < self.next_look {
            return;
        }
        self.next_look = now + LOOK;
        actions.push(Action::WakeAt(self.next_look));
        for _ in 0..self.ramp.interval(std::mem::take(&mut self.interval)) {
            self.streams.open(actions);
        }
        let counted = now.since(self.began).saturating_sub(SETTLING);
        if now.since(self.began) < LOAD {
            return;
        }
        let seconds = counted.as_secs_f64();
        let small = self.is_small_file();
        let direction = &mut self.done[way as usize];
        direction.mbps = Some(mbps(self.counted, seconds));
        direction.connections = self.ramp.flows();
        // Files that are over at once stop growing too, but it is round trips that bound them.
        direction.full = self.ramp.full_after().is_some() && (way == Direction::Up || !small);
        self.streams.close(actions);
        self.began = now;
        let takes = self.known().is_some_and(|kind| kind.upload.is_some());
        if way == Direction::Down && takes {
            self.stage = Stage::Gap;
        } else {
            self.finish(actions);
        }
    }

    /// Where a handshake of this moment counts; none while the line settles.
    fn place(&mut self, now: Time) -> Option<&mut Pings> {
        match self.stage {
            Stage::Idle => Some(&mut self.idle),
            Stage::Load(way) if now.since(self.began) >= SETTLING => {
                Some(&mut self.done[way as usize].pings)
            }
            _ => None,
        }
    }

    fn on_ping(&mut self, event: &Event<'_>, now: Time, actions: &mut Vec<Action>) -> bool {
        let (id, took) = match *event {
            Event::Opened { id, tcp, .. } => (id, Some(tcp)),
            Event::Failed { id, .. } => (id, None),
            _ => return false,
        };
        let Some(at) = self.waiting.iter().position(|waiting| *waiting == id) else { return false };
        self.waiting.swap_remove(at);
        actions.push(Action::Close { id });
        if let Some(pings) = self.place(now) {
            match took {
                Some(tcp) => pings.ms.push(tcp.as_millis_f64()),
                None => pings.lost += 1,
            }
        }
        true
    }

    fn fail(&mut self, reason: String, actions: &mut Vec<Action>) {
        self.failure = Some(reason);
        self.finish(actions);
    }

    fn finish(&mut self, actions: &mut Vec<Action>) {
        self.streams.close(actions);
        actions.extend(self.waiting.drain(..).map(|id| Action::Close { id }));
        self.stage = Stage::Over;
        actions.push(Action::Finish);
    }

    fn moved(&mut self, bytes: u64, now: Time, actions: &mut Vec<Action>) {
        match self.stage {
            Stage::Kind => {
                self.small += bytes;
                if self.small > self.known().map_or(MIN_FILE_BYTES, |kind| kind.small.1) {
                    self.on_many(now, actions);
                }
            }
            Stage::Load(_) => {
                self.interval += bytes;
                if now.since(self.began) >= SETTLING {
                    self.counted += bytes;
                }
            }
            _ => {}
        }
    }

    /// Name of the server's kind; `None` while it is not known.
    fn likeness(&self) -> Option<&'static str> {
        (self.file > 0).then(|| self.known().map_or("a file", |kind| kind.name))
    }

    /// Whether all that there is to load is a file too short to fill a line.
    const fn is_small_file(&self) -> bool {
        self.known().is_none() && self.file < MIN_FILE_BYTES
    }

    /// Measurements that Weir's own protocol would have given, and that this test lacks.
    fn missing(&self) -> Vec<String> {
        let mut missing: Vec<String> = MISSING.map(str::to_owned).to_vec();
        if self.is_small_file() {
            missing.push(format!(
                "a full line: the file has {} bytes, so round trips bound the download; name a larger file",
                self.file
            ));
        }
        if self.known().is_none_or(|kind| kind.upload.is_none()) {
            missing.push("upload: this server takes none that is known".to_owned());
        }
        missing
    }
}

impl Method for Web {
    fn on(&mut self, now: Time, event: Event<'_>, actions: &mut Vec<Action>) {
        match event {
            _ if self.stage == Stage::Over => return,
            Event::Begin => {
                self.stage = Stage::Kind;
                self.streams.open(actions);
            }
            Event::Wake => self.on_wake(now, actions),
            _ => {}
        }
        if self.on_ping(&event, now, actions) {
            return;
        }
        match self.streams.hear(now, &event, actions) {
            None => {}
            Some(Heard::Ready(place)) => self.ask(place, now, actions),
            Some(Heard::Moved(bytes)) => self.moved(bytes, now, actions),
            Some(Heard::Done(place, answer)) => match self.stage {
                Stage::Kind => self.on_kind(place, answer, now, actions),
                _ if answer.is_success() => self.ask(place, now, actions),
                _ => self.fail(answered(answer.status), actions),
            },
            Some(Heard::Failed(reason)) => self.fail(reason, actions),
        }
    }

    fn result(&self) -> Value {
        let idle = mean(&self.idle.ms);
        let direction = |way: Direction| {
            let one = &self.done[way as usize];
            one.mbps.map(|mbps| HttpDirection {
                goodput_mbps: mbps,
                connections: one.connections,
                saturated: one.full,
                latency_increase_ms: mean(&one.pings.ms)
                    .zip(idle)
                    .map(|(loaded, idle)| loaded - idle),
                pings_answered: one.pings.ms.len(),
                pings_lost: one.pings.lost,
            })
        };
        let [up, down] = &self.done;
        let result = HttpResult {
            basis: Basis {
                method: METHOD.name,
                formula: "weir's version 1: HTTP loads, medians of TCP handshakes",
            },
            figures: MainFigures {
                download_mbps: down.mbps,
                upload_mbps: up.mbps,
                latency_ms: quantile(&self.idle.ms, 0.5),
            },
            loaded: LoadedMedians {
                download_loaded_latency_ms: quantile(&down.pings.ms, 0.5),
                upload_loaded_latency_ms: quantile(&up.pings.ms, 0.5),
            },
            latency_definition: "TCP handshakes, a new connection each: a flow of its own, which queues per flow \
                           let pass first",
            server_kind: self.likeness(),
            download: direction(Direction::Down),
            upload: direction(Direction::Up),
            missing: self.missing(),
            failures: self.failure.iter().cloned().collect(),
        };
        result.to_json()
    }
}

object! {
    /// Result of the test of a server that speaks HTTP and nothing of Weir's.
    pub(crate) struct HttpResult {
        pub basis: Basis,
        pub figures: MainFigures,
        pub loaded: LoadedMedians,
        pub latency_definition: &'static str = meaning::LATENCY_DEFINITION,
        /// Whose requests the server answers, such as `Cloudflare`, or `a file`; null if nobody's.
        pub server_kind: Option<&'static str>,
        /// The download in detail; null if it was not measured.
        pub download: Option<HttpDirection>,
        /// The upload in detail; null if it was not measured.
        pub upload: Option<HttpDirection>,
        pub missing: Vec<String> = meaning::MISSING,
        pub failures: Vec<String> = meaning::FAILURES,
    }
}

object! {
    /// One direction of the test over plain HTTP.
    pub(crate) struct HttpDirection {
        /// Bytes that the application received, in Mbit/s.
        pub goodput_mbps: f64,
        /// How many connections carried the load.
        pub connections: u32,
        /// Whether more connections brought nothing more: the line was full.
        pub saturated: bool,
        /// Mean of the round trips, over that without load, in ms.
        pub latency_increase_ms: Option<f64>,
        /// How many round trips were measured.
        pub pings_answered: usize,
        /// How many round trips were begun and not answered.
        pub pings_lost: u32,
    }
}

/// The kinds in the order in which they are tried.
const KINDS: [WebServer; 4] = [
    WebServer {
        name: "Cloudflare",
        small: ("/__down?bytes=1000", 1_000),
        large: "/__down?bytes=100000000",
        upload: Some("/__up"),
    },
    WebServer {
        name: "LibreSpeed",
        small: ("/backend/garbage.php?ckSize=1", 1 << 20),
        large: "/backend/garbage.php?ckSize=100",
        upload: Some("/backend/empty.php"),
    },
    WebServer {
        name: "LibreSpeed",
        small: ("/garbage.php?ckSize=1", 1 << 20),
        large: "/garbage.php?ckSize=100",
        upload: Some("/empty.php"),
    },
    WebServer {
        name: "Ookla",
        small: ("/download?size=1000", 1_000),
        large: "/download?size=100000000",
        upload: Some("/upload"),
    },
];
/// Measurements that every test of this kind lacks.
const MISSING: [&str; 3] = [
    "pings within one flow over UDP, and their loss",
    "which direction waits",
    "the senders' own round trips",
];
/// Numbers of pings' connections begin here.
const PINGS: Id = 1 << 20;
/// As in Weir's own test.
const IDLE: Duration = Duration::from_secs(4);
const LOAD: Duration = Duration::from_secs(8);
const GAP: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(500);
const SETTLING: Duration = Duration::from_secs(1);
/// Ten connections a second trouble no server.
const PING: Duration = Duration::from_millis(100);
/// Bytes of an upload: LibreSpeed's blob, which servers are set up to take.
const CHUNK: u64 = 20 << 20;
/// A smaller file is over before a line is full.
const MIN_FILE_BYTES: u64 = 1_000_000;

/// Any web server, measured with what it has.
pub static METHOD: MethodInfo = MethodInfo {
    name: "http",
    summary: "any web server: HTTP loads, TCP handshakes as pings",
    server_kind: None,
    known_by: None,
    congestion_control: None,
    cautions: &[
        Caution {
            figure: &["download", "saturated"],
            says: "{connections} connections did not fill the line in the download: its throughput is a lower \
                   bound, and so is its latency",
        },
        Caution {
            figure: &["upload", "saturated"],
            says: "{connections} connections did not fill the line in the upload: its throughput is a lower bound, \
                   and so is its latency",
        },
    ],
    needs_tls: false,
    has_headers: true,
    result: &HttpResult::OBJECT,
    begin: |_| Box::new(Web::new()),
};

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::script::Script;

    fn run(knows: fn(&str) -> bool) -> Value {
        let script = Script { rate: |_| 10_000, trip: 20, loaded: 60, knows, arrive: None };
        script.run(&mut Web::new()).0
    }

    #[test]
    fn a_line_is_measured_in_both_directions() {
        let result = run(|_| true);
        assert_eq!(result["server_kind"], "Cloudflare");
        assert_eq!(result["latency_ms"], 20.0);
        for way in ["download", "upload"] {
            // 80 Mbit/s: 2 flows bring no less than 16; the first interval lacks a round trip.
            let mbps = result[way]["goodput_mbps"].as_f64().unwrap();
            assert!((mbps - 80.0).abs() < 0.1, "{result}");
            assert_eq!(result[way]["latency_increase_ms"], 40.0);
            assert_eq!(result[way]["saturated"], true);
        }
        assert_eq!(result["missing"].as_array().unwrap().len(), MISSING.len());
    }

    #[test]
    fn a_kind_is_known_by_what_it_answers() {
        let result = run(|path| path.starts_with("/garbage.php") || path.starts_with("/empty.php"));
        assert_eq!(result["server_kind"], "LibreSpeed");
        assert!(result["upload_mbps"].as_f64().unwrap() > 79.0, "{result}");
    }

    #[test]
    fn a_server_of_files_has_no_upload_and_says_so() {
        let result = run(str::is_empty);
        assert_eq!(result["server_kind"], "a file");
        assert!(result["download_mbps"].as_f64().unwrap() > 70.0, "{result}");
        assert_eq!(result["upload"], Value::Null);
        assert_eq!(result["download"]["saturated"], false);
        let missing = result["missing"].to_string();
        assert!(missing.contains("the file has 500000 bytes"), "{missing}");
        assert!(missing.contains("upload"), "{missing}");
    }

    #[test]
    fn a_server_that_is_full_is_no_server_of_files() {
        for (status, says) in [
            (
                429,
                "the server answered 429: it takes no more from this address now: try again in a minute",
            ),
            (503, "the server answered 503: it takes no more now: try again in a minute"),
        ] {
            let (mut test, mut actions, now) = (Web::new(), Vec::new(), Time::ZERO);
            test.on(now, Event::Begin, &mut actions);
            test.on(now, Event::Opened { id: 1, tcp: Duration::ZERO, tls: None }, &mut actions);
            // It refuses what a test asks for, and has a page.
            for id in 2..=KINDS.len() as Id + 1 {
                test.on(now, Event::Head { id, status, server: None }, &mut actions);
                test.on(now, Event::Ended { id }, &mut actions);
            }
            let id = KINDS.len() as Id + 2;
            test.on(now, Event::Head { id, status: 200, server: None }, &mut actions);
            test.on(now, Event::Received { id, bytes: 4_000 }, &mut actions);
            test.on(now, Event::Ended { id }, &mut actions);
            assert_eq!(actions.last(), Some(&Action::Finish));
            assert_eq!(test.result()["failures"], json!([says]));
        }
    }

    #[test]
    fn a_server_that_is_full_and_says_so_at_length_is_no_server_of_files() {
        let opened = |id| Event::Opened { id, tcp: Duration::ZERO, tls: None };
        let refused = |id| Event::Head { id, status: 503, server: None };
        let (mut test, mut actions, now) = (Web::new(), Vec::new(), Time::ZERO);
        test.on(now, Event::Begin, &mut actions);
        // Longer than what each kind's endpoint was asked for.
        for (place, kind) in KINDS.iter().enumerate() {
            let id = 2 * place as Id + 1;
            test.on(now, opened(id), &mut actions);
            test.on(now, refused(id + 1), &mut actions);
            test.on(now, Event::Received { id: id + 1, bytes: kind.small.1 + 1 }, &mut actions);
        }
        let id = 2 * KINDS.len() as Id + 1;
        test.on(now, opened(id), &mut actions);
        test.on(now, Event::Head { id: id + 1, status: 200, server: None }, &mut actions);
        test.on(now, Event::Received { id: id + 1, bytes: MIN_FILE_BYTES + 1 }, &mut actions);
        assert_eq!(actions.last(), Some(&Action::Finish));
        let says = "the server answered 503: it takes no more now: try again in a minute";
        assert_eq!(test.result()["failures"], json!([says]));
    }

    #[test]
    fn a_large_file_is_broken_off_once_it_is_known() {
        let (mut test, mut actions, now) = (Web::new(), Vec::new(), Time::ZERO);
        test.on(now, Event::Begin, &mut actions);
        // Each kind's endpoint gives the same large file, which none of them would.
        for (place, kind) in KINDS.iter().enumerate() {
            let id = 2 * place as Id + 1;
            test.on(now, Event::Opened { id, tcp: Duration::ZERO, tls: None }, &mut actions);
            test.on(now, Event::Head { id: id + 1, status: 200, server: None }, &mut actions);
            let bytes = kind.small.1 + 1;
            test.on(now, Event::Received { id: id + 1, bytes }, &mut actions);
        }
        let id = 2 * KINDS.len() as Id + 1;
        test.on(now, Event::Opened { id, tcp: Duration::ZERO, tls: None }, &mut actions);
        test.on(now, Event::Head { id: id + 1, status: 200, server: None }, &mut actions);
        actions.clear();
        test.on(now, Event::Received { id: id + 1, bytes: MIN_FILE_BYTES + 1 }, &mut actions);
        let closed = [Action::Close { id: id + 1 }, Action::Close { id }, Action::WakeAt(now)];
        assert_eq!(actions, closed);
        assert_eq!(test.result()["server_kind"], "a file");
    }

    #[test]
    fn a_server_of_nothing_is_told() {
        let result = run(|_| false);
        let said = "the server answered 404 without anything to load";
        assert_eq!(result["failures"], json!([said]));
        assert_eq!(result["server_kind"], Value::Null);
    }
}
