//! Round trips per minute under working conditions, as the IETF's draft has it.
//!
//! Source: draft-ietf-ippm-responsiveness-09, section 4. In each direction, first download, then upload:
//! endless transfers are begun, one more connection each interval, while pairs of probes go out: a foreign
//! one on a connection of its own, a self one on a connection that carries load. Goodput, then
//! responsiveness have to be stable over `MAD` intervals. The interval is the second of draft 08 and of
//! goresponsiveness, not the five seconds of draft 09, so that a direction ends within `MAX_DIRECTION_DURATION`.

use std::collections::{BTreeMap, VecDeque};

use crate::protocol::responsiveness::CONFIG;
use serde_json::Value;
use weir_core::{Direction, Duration, Time};

use crate::figures::{deviation, mbps, mean, trimmed_mean};
use crate::method::{Action, Connection, Event, Id, Method, answered, is_success};
use crate::method_info::{Caution, KnownBy, MethodInfo};
use crate::result::{Basis, Declared, meaning, object};

/// A test under way.
#[derive(Clone, Debug, Default)]
pub struct Responsiveness {
    paths: Option<Paths>,
    next_id: Id,
    way: Option<Direction>,
    began: Time,
    /// Connections with load, in order; true once they are open.
    loads: Vec<(Id, bool)>,
    /// The transfers on them.
    transfers: BTreeMap<Id, ()>,
    next_interval: Time,
    next_probe: Time,
    probes: BTreeMap<Id, PendingProbe>,
    /// Place of the loaded connection that the next self probe takes.
    turn: usize,
    /// The interval under way.
    interval: Interval,
    intervals: VecDeque<Interval>,
    goodputs: Vec<f64>,
    /// Bytes of all intervals of this direction that are over.
    moved_bytes: u64,
    responses: Vec<f64>,
    saturated: bool,
    done: Vec<(Direction, DirectionResult)>,
    failure: Option<String>,
    over: bool,
}

#[derive(Clone, Debug)]
struct Paths {
    small: String,
    large: String,
    upload: String,
}

/// Measurements of one interval; times in milliseconds.
#[derive(Clone, Debug, Default)]
struct Interval {
    bytes: u64,
    tcp: Vec<f64>,
    tls: Vec<f64>,
    http: Vec<f64>,
    own: Vec<f64>,
}

/// A probe under way.
#[derive(Clone, Copy, Debug)]
struct PendingProbe {
    /// The connection of a foreign one.
    foreign: Option<Id>,
    began: Time,
}

/// Result of one direction.
#[derive(Clone, Debug)]
struct DirectionResult {
    draft: Option<f64>,
    goresponsiveness: Option<f64>,
    goodput_mbps: Option<f64>,
    mean_mbps: Option<f64>,
    connections: usize,
    confidence: &'static str,
    times: [Option<f64>; 4],
}

impl Responsiveness {
    /// A test of both directions.
    #[must_use]
    pub fn new() -> Self {
        Self { next_id: 10, ..Self::default() }
    }

    fn id(&mut self) -> Id {
        self.next_id += 1;
        self.next_id
    }

    fn begin(&mut self, way: Direction, now: Time, actions: &mut Vec<Action>) {
        let done = std::mem::take(&mut self.done);
        *self = Self {
            paths: self.paths.take(),
            next_id: self.next_id,
            way: Some(way),
            began: now,
            next_interval: now + INTERVAL,
            next_probe: now + PROBE_EVERY,
            done,
            ..Self::default()
        };
        self.add_load(actions);
        actions.push(Action::WakeAt(self.next_probe));
        actions.push(Action::WakeAt(self.next_interval));
    }

    fn add_load(&mut self, actions: &mut Vec<Action>) {
        let id = self.id();
        self.loads.push((id, false));
        actions.push(Action::Open { id, kind: Connection::Http2 });
    }

    fn transfer(&mut self, on: Id, actions: &mut Vec<Action>) {
        let id = self.id();
        let (Some(paths), Some(way)) = (&self.paths, self.way) else { return };
        let (path, upload) = match way {
            Direction::Down => (paths.large.clone(), None),
            Direction::Up => (paths.upload.clone(), Some(u64::MAX)),
        };
        self.transfers.insert(id, ());
        actions.push(Action::Request { id, on, path, upload });
    }

    fn probe(&mut self, now: Time, actions: &mut Vec<Action>) {
        let connection = self.id();
        // A foreign probe is counted from its request on; its handshakes count by themselves.
        self.probes.insert(connection, PendingProbe { foreign: Some(connection), began: now });
        actions.push(Action::Open { id: connection, kind: Connection::Http2 });
        let open: Vec<Id> =
            self.loads.iter().filter(|(_, open)| *open).map(|(id, _)| *id).collect();
        let Some(&on) = open.get(self.turn % open.len().max(1)) else { return };
        self.turn += 1;
        let path = self.small();
        let id = self.id();
        self.probes.insert(id, PendingProbe { foreign: None, began: now });
        actions.push(Action::Request { id, on, path, upload: None });
    }

    fn small(&self) -> String {
        self.paths.as_ref().map(|paths| paths.small.clone()).unwrap_or_default()
    }

    fn end_interval(&mut self, now: Time, actions: &mut Vec<Action>) {
        self.moved_bytes += self.interval.bytes;
        self.intervals.push_back(std::mem::take(&mut self.interval));
        if self.intervals.len() > MAD {
            self.intervals.pop_front();
        }
        let bytes: u64 = self.intervals.iter().map(|interval| interval.bytes).sum();
        let seconds = self.intervals.len() as f64 * INTERVAL.as_secs_f64();
        self.goodputs.push(mbps(bytes, seconds));
        if !self.saturated && is_stable(&self.goodputs) {
            self.saturated = true;
        }
        let (draft, _, _) = self.rates();
        if self.saturated
            && let Some(draft) = draft
        {
            self.responses.push(draft);
        }
        let stable = self.saturated && is_stable(&self.responses);
        if stable || now.since(self.began) >= MAX_DIRECTION_DURATION {
            self.end_direction(stable, now, actions);
        } else {
            self.next_interval = now + INTERVAL;
            actions.push(Action::WakeAt(self.next_interval));
            if self.loads.len() < MAX_CONNECTIONS {
                self.add_load(actions);
            }
        }
    }

    /// Both rates of responsiveness, and the four times they are made of, over the last intervals.
    fn rates(&self) -> (Option<f64>, Option<f64>, [Option<f64>; 4]) {
        let all = |field: fn(&Interval) -> &Vec<f64>| {
            let values: Vec<f64> =
                self.intervals.iter().flat_map(|one| field(one).iter().copied()).collect();
            trimmed_mean(&values, TRIMMED)
        };
        let times = [all(|i| &i.tcp), all(|i| &i.tls), all(|i| &i.http), all(|i| &i.own)];
        let foreign: Vec<f64> = times[..3].iter().flatten().copied().collect();
        let (Some(foreign), Some(own)) = (mean(&foreign), times[3]) else {
            return (None, None, times);
        };
        if times[0].is_none() || times[2].is_none() {
            return (None, None, times);
        }
        (Some(draft(foreign, own)), Some(goresponsiveness(foreign, own)), times)
    }

    fn end_direction(&mut self, stable: bool, now: Time, actions: &mut Vec<Action>) {
        for (id, _) in &self.loads {
            actions.push(Action::Close { id: *id });
        }
        for probe in self.probes.values() {
            if let Some(id) = probe.foreign {
                actions.push(Action::Close { id });
            }
        }
        let (draft, goresponsiveness, times) = self.rates();
        let confidence = match (self.intervals.len() < MAD, stable) {
            (true, _) => "low",
            (false, false) => "medium",
            (false, true) => "high",
        };
        let Some(way) = self.way else { return };
        self.done.push((
            way,
            DirectionResult {
                draft,
                goresponsiveness,
                goodput_mbps: self.goodputs.last().copied(),
                mean_mbps: (self.moved_bytes > 0)
                    .then(|| mbps(self.moved_bytes, now.since(self.began).as_secs_f64())),
                connections: self.loads.len(),
                confidence,
                times,
            },
        ));
        match way {
            Direction::Down => self.begin(Direction::Up, now, actions),
            Direction::Up => self.finish(actions),
        }
    }

    fn finish(&mut self, actions: &mut Vec<Action>) {
        self.over = true;
        actions.push(Action::Finish);
    }

    fn on_opened(
        &mut self,
        (now, id): (Time, Id),
        tcp: Duration,
        tls: Option<Duration>,
        actions: &mut Vec<Action>,
    ) {
        if id == CONTROL {
            let path = CONFIG.to_owned();
            actions.push(Action::Request { id: CONFIG_REQUEST, on: CONTROL, path, upload: None });
        } else if let Some(load) = self.loads.iter_mut().find(|(load, _)| *load == id) {
            load.1 = true;
            self.transfer(id, actions);
        } else if self.probes.remove(&id).is_some() {
            self.interval.tcp.push(tcp.as_millis_f64());
            self.interval.tls.extend(tls.map(Duration::as_millis_f64));
            let request = self.id();
            self.probes.insert(request, PendingProbe { foreign: Some(id), began: now });
            let path = self.small();
            actions.push(Action::Request { id: request, on: id, path, upload: None });
        }
    }

    /// Without its loads a line is no line under load, however quickly its probes come back.
    fn on_failed(&mut self, id: Id, reason: &str, actions: &mut Vec<Action>) {
        let of_load = self.loads.iter().any(|(load, _)| *load == id);
        if id <= CONFIG_REQUEST || of_load || self.transfers.contains_key(&id) {
            self.failure = Some(reason.to_owned());
            self.finish(actions);
        } else if let Some(PendingProbe { foreign: Some(connection), .. }) = self.probes.remove(&id)
        {
            actions.push(Action::Close { id: connection });
        }
    }

    fn on_ended(&mut self, now: Time, id: Id, actions: &mut Vec<Action>) {
        if let Some(probe) = self.probes.remove(&id) {
            let took = now.since(probe.began).as_millis_f64();
            match probe.foreign {
                Some(connection) => {
                    self.interval.http.push(took);
                    actions.push(Action::Close { id: connection });
                }
                None => self.interval.own.push(took),
            }
        }
    }
}

impl Method for Responsiveness {
    fn on(&mut self, now: Time, event: Event<'_>, actions: &mut Vec<Action>) {
        if self.over {
            return;
        }
        match event {
            Event::Begin => actions.push(Action::Open { id: CONTROL, kind: Connection::Http2 }),
            Event::Opened { id, tcp, tls } => self.on_opened((now, id), tcp, tls, actions),
            Event::Text { id: CONFIG_REQUEST, text } => match paths(text) {
                Some(found) => {
                    self.paths = Some(found);
                    actions.push(Action::Close { id: CONTROL });
                    self.begin(Direction::Down, now, actions);
                }
                None => {
                    self.failure = Some(format!("{CONFIG} is no configuration of version 1"));
                    self.finish(actions);
                }
            },
            Event::Received { id, bytes }
                if self.way == Some(Direction::Down) && self.transfers.contains_key(&id) =>
            {
                self.interval.bytes += bytes;
            }
            Event::Sent { id, bytes }
                if self.way == Some(Direction::Up) && self.transfers.contains_key(&id) =>
            {
                self.interval.bytes += bytes;
            }
            Event::Head { id, status, .. } if !is_success(status) => {
                self.on_failed(id, &answered(status), actions);
            }
            Event::Ended { id } => self.on_ended(now, id, actions),
            Event::Failed { id, reason } => self.on_failed(id, reason, actions),
            Event::Wake if self.way.is_some() => {
                if now >= self.next_probe {
                    self.next_probe = now + PROBE_EVERY;
                    actions.push(Action::WakeAt(self.next_probe));
                    self.probe(now, actions);
                }
                if now >= self.next_interval {
                    self.end_interval(now, actions);
                }
            }
            _ => {}
        }
    }

    fn result(&self) -> Value {
        let direction = |way: Direction| {
            let (_, found) = self.done.iter().find(|(of, _)| *of == way)?;
            let [tcp, tls, http, own] = found.times;
            Some(RpmDirection {
                rpm: found.draft,
                rpm_goresponsiveness: found.goresponsiveness,
                goodput_mbps: found.goodput_mbps,
                mean_mbps: found.mean_mbps,
                connections: found.connections,
                confidence: found.confidence,
                foreign_tcp_ms: tcp,
                foreign_tls_ms: tls,
                foreign_http_ms: http,
                self_http_ms: own,
            })
        };
        let result = RpmResult {
            basis: Basis {
                method: METHOD.name,
                formula: "draft-ietf-ippm-responsiveness-09, interval 1 s; goresponsiveness beside it",
            },
            download: direction(Direction::Down),
            upload: direction(Direction::Up),
            failures: self.failure.iter().cloned().collect(),
        };
        result.to_json()
    }
}

object! {
    /// Result of the test of responsiveness under working conditions.
    pub(crate) struct RpmResult {
        pub basis: Basis,
        /// The download; null if it was not measured.
        pub download: Option<RpmDirection>,
        /// The upload; null if it was not measured.
        pub upload: Option<RpmDirection>,
        pub failures: Vec<String> = meaning::FAILURES,
    }
}

object! {
    /// One direction of the test of responsiveness.
    pub(crate) struct RpmDirection {
        /// Responsiveness by the draft, in round trips a minute.
        pub rpm: Option<f64>,
        /// Responsiveness by the formula of goresponsiveness, in round trips a minute.
        pub rpm_goresponsiveness: Option<f64>,
        /// Goodput of all connections over the last four intervals of 1 s, by which the method ends, in Mbit/s.
        pub goodput_mbps: Option<f64>,
        /// All bytes over the whole load, with its beginning, in Mbit/s; null if nothing was moved.
        pub mean_mbps: Option<f64>,
        /// How many connections carried the load.
        pub connections: usize,
        /// How far the figures can be trusted: `low`, `medium` or `high`.
        pub confidence: &'static str,
        /// Mean of TCP's handshakes of probes on connections of their own, in ms (`tcp_f` in the draft).
        pub foreign_tcp_ms: Option<f64>,
        /// Mean of TLS' handshakes of probes on connections of their own, in ms (`tls_f` in the draft).
        pub foreign_tls_ms: Option<f64>,
        /// Mean of the requests of probes on connections of their own, in ms (`http_f` in the draft).
        pub foreign_http_ms: Option<f64>,
        /// Mean of the requests of probes on the connections with the load, in ms (`http_s` in the draft).
        pub self_http_ms: Option<f64>,
    }
}

/// Section 4.3.1, where `foreign` is the mean of its three trimmed means, in milliseconds.
fn draft(foreign: f64, own: f64) -> f64 {
    (60_000.0 / foreign + 60_000.0 / own) / 2.0
}

/// Round trips a minute as in goresponsiveness (`rpm/calculations.go`), of times in milliseconds.
fn goresponsiveness(foreign: f64, own: f64) -> f64 {
    60_000.0 / ((foreign + own) / 2.0)
}

/// Whether the last [`MAD`] values vary by less than [`TOLERANCE`] of the last.
fn is_stable(values: &[f64]) -> bool {
    let Some(start) = values.len().checked_sub(MAD) else { return false };
    let last = &values[start..];
    deviation(last).is_some_and(|deviation| deviation < TOLERANCE * last[MAD - 1])
}

/// Paths of the configuration; the older names are understood too.
fn paths(text: &str) -> Option<Paths> {
    let config: Value = serde_json::from_str(text).ok()?;
    if config["version"] != 1 {
        return None;
    }
    let path = |new: &str, old: &str| {
        let url = config["urls"][new].as_str().or(config["urls"][old].as_str())?;
        let behind = url.strip_prefix("https://")?;
        Some(behind.find('/').map_or("/", |at| &behind[at..]).to_owned())
    };
    Some(Paths {
        small: path("small_download_url", "small_https_download_url")?,
        large: path("large_download_url", "large_https_download_url")?,
        upload: path("upload_url", "https_upload_url")?,
    })
}

const CONTROL: Id = 1;
const CONFIG_REQUEST: Id = 2;
/// Section 4.4: moving averages are over so many intervals.
const MAD: usize = 4;
/// Share by which values may vary and count as stable (section 4.4: `SDT`).
const TOLERANCE: f64 = 0.05;
/// Section 4.3.1: `TMP`, the share that is kept.
const TRIMMED: f64 = 0.95;
/// Largest number of connections that load the line (section 4.4: `MNP`).
const MAX_CONNECTIONS: usize = 16;
const INTERVAL: Duration = Duration::from_secs(1);
/// A tenth of `MPS`: new connections of a hundred a second would be a load themselves on slow lines.
const PROBE_EVERY: Duration = Duration::from_millis(100);
/// Half of the draft's 40 s example for both directions.
const MAX_DIRECTION_DURATION: Duration = Duration::from_secs(20);

/// The IETF's responsiveness test.
pub static METHOD: MethodInfo = MethodInfo {
    name: "rpm",
    summary: "the IETF's: round trips a minute beside loads over HTTP/2",
    server_kind: None,
    known_by: Some(KnownBy { path: CONFIG, statuses: &[200], key: Some("urls") }),
    congestion_control: None,
    cautions: &[
        Caution {
            figure: &["download", "rpm"],
            says: "no probe was answered in the download: it has no responsiveness",
        },
        Caution {
            figure: &["upload", "rpm"],
            says: "no probe was answered in the upload: it has no responsiveness",
        },
    ],
    needs_tls: true,
    has_headers: true,
    result: &RpmResult::OBJECT,
    begin: |_| Box::new(Responsiveness::new()),
};

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_formulas_differ_where_queues_are_per_flow() {
        // Reference, section 2.5: self 100 ms, foreign 10 ms.
        assert_eq!(draft(10.0, 100.0), 3_300.0);
        assert!((goresponsiveness(10.0, 100.0) - 1_090.9).abs() < 0.1);
    }

    #[test]
    fn a_configuration_with_either_set_of_names_is_read() {
        let new = r#"{"version":1,"urls":{"small_download_url":"https://h:1/small","large_download_url":"https://h:1/large","upload_url":"https://h:1/up"}}"#;
        assert_eq!(paths(new).unwrap().upload, "/up");
        let old = r#"{"version":1,"urls":{"small_https_download_url":"https://h/s","large_https_download_url":"https://h/l","https_upload_url":"https://h/u"}}"#;
        assert_eq!(paths(old).unwrap().large, "/l");
        assert!(paths(&new.replace(":1,\"urls", ":2,\"urls")).is_none());
        assert!(paths("{}").is_none());
    }

    #[test]
    fn a_load_that_is_refused_ends_the_test_with_the_reason() {
        let (mut test, mut actions, now) = (Responsiveness::new(), Vec::new(), Time::ZERO);
        let text = r#"{"version":1,"urls":{"small_download_url":"https://h/s","large_download_url":"https://h/l","upload_url":"https://h/u"}}"#;
        test.on(now, Event::Begin, &mut actions);
        test.on(now, Event::Text { id: CONFIG_REQUEST, text }, &mut actions);
        let (load, _) = test.loads[0];
        test.on(now, Event::Opened { id: load, tcp: Duration::ZERO, tls: None }, &mut actions);
        let id = *test.transfers.keys().next().unwrap();
        test.on(now, Event::Head { id, status: 429, server: None }, &mut actions);
        test.on(now, Event::Ended { id }, &mut actions);
        assert_eq!(actions.last(), Some(&Action::Finish));
        let result = test.result();
        let says = "the server answered 429: it takes no more from this address now: try again in a minute";
        assert_eq!(result["failures"], json!([says]));
        assert_eq!(result["download"], Value::Null, "no loads, no responsiveness under load");
    }

    #[test]
    fn a_probe_that_is_refused_does_not_count() {
        let (mut test, mut actions, now) = (Responsiveness::new(), Vec::new(), Time::ZERO);
        test.begin(Direction::Down, now, &mut actions);
        test.probe(now, &mut actions);
        let connection = *test.probes.keys().next().unwrap();
        let opened = Event::Opened { id: connection, tcp: Duration::ZERO, tls: None };
        test.on(now, opened, &mut actions);
        let id = *test.probes.keys().next().unwrap();
        test.on(now, Event::Head { id, status: 503, server: None }, &mut actions);
        test.on(now, Event::Ended { id }, &mut actions);
        assert!(test.probes.is_empty() && test.interval.http.is_empty());
        assert_eq!(test.failure, None);
    }

    /// 100 kB an interval from each of at most four connections; every round trip takes 20 ms, self 60 ms.
    #[test]
    fn a_stable_line_is_measured_with_high_confidence() {
        let mut test = Responsiveness::new();
        let mut agenda: BTreeMap<(u64, usize), Vec<(Id, u8)>> = BTreeMap::new();
        let (mut now, mut actions, mut count) = (0_u64, Vec::new(), 0);
        test.on(Time::ZERO, Event::Begin, &mut actions);
        loop {
            for action in std::mem::take(&mut actions) {
                count += 1;
                let mut plan = |after: u64, id: Id, what: u8| {
                    agenda.entry((now + after, count)).or_default().push((id, what));
                };
                match action {
                    Action::Open { id, .. } => plan(40, id, 0),
                    Action::Request { id: CONFIG_REQUEST, .. } => plan(20, CONFIG_REQUEST, 1),
                    Action::Request { id, path, on, .. } if path == "/s" => {
                        let own = test.loads.iter().any(|(load, _)| *load == on);
                        plan(if own { 60 } else { 20 }, id, 2);
                    }
                    Action::WakeAt(at) => plan(at.as_nanos() / 1_000_000 - now, 0, 3),
                    Action::Finish => {
                        let result = test.result();
                        assert_eq!(result["download"]["confidence"], "high", "{result}");
                        assert_eq!(result["upload"]["foreign_tls_ms"], 20.0);
                        assert_eq!(result["download"]["rpm"], draft(20.0, 60.0));
                        assert_eq!(result["failures"], json!([]));
                        // It begins with one connection: all of its time has less than the last intervals.
                        let [mean, last] = ["mean_mbps", "goodput_mbps"]
                            .map(|name| result["download"][name].as_f64().unwrap());
                        assert!(0.0 < mean && mean < last, "{result}");
                        return;
                    }
                    _ => {}
                }
            }
            let ((at, _), all) = agenda.pop_first().expect("it finishes");
            now = at;
            let time = Time::from_millis(now);
            for (id, what) in all {
                let span = Duration::from_millis(20);
                let text = r#"{"version":1,"urls":{"small_download_url":"https://h/s","large_download_url":"https://h/l","upload_url":"https://h/u"}}"#;
                let event = match what {
                    0 => Event::Opened { id, tcp: span, tls: Some(span) },
                    1 => Event::Text { id, text },
                    2 => Event::Ended { id },
                    _ => Event::Wake,
                };
                if what == 3 && now % 1_000 < 100 {
                    let transfers: Vec<Id> = test.transfers.keys().copied().take(4).collect();
                    for transfer in transfers {
                        test.on(
                            time,
                            Event::Received { id: transfer, bytes: 100_000 },
                            &mut actions,
                        );
                        test.on(time, Event::Sent { id: transfer, bytes: 100_000 }, &mut actions);
                    }
                }
                test.on(time, event, &mut actions);
            }
        }
    }
}
