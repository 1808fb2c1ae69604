//! Cloudflare's speed test as its own engine runs it: requests one after another, small ones first.
//!
//! Source: `@cloudflare/speedtest` 1.14.1. A round trip is the time to the first byte less what the server
//! says that it took; a download's time is that round trip and the time of its body, an upload's the time to
//! its answer. Bandwidth is the 90th percentile of all requests of at least 10 ms, latency the median. While
//! a set of downloads or uploads runs, requests for nothing go over another connection every 400 ms: loaded
//! latency is the median of the last 20 of them in sets whose shortest request took at least 250 ms. Packet
//! loss needs WebRTC and a TURN server and is left out.

use crate::protocol::cloudflare::{DOWN, UP};
use serde_json::Value;
use weir_core::{Direction, Duration, Time};

use crate::figures::{jitter, quantile};
use crate::method::{Action, Connection, Event, Id, Method, answered};
use crate::method_info::{Caution, MethodInfo};
use crate::result::{Basis, Declared, LoadedMedians, MainFigures, meaning, object};

/// A test under way.
#[derive(Clone, Debug, Default)]
pub struct Cloudflare {
    steps: Vec<Step>,
    /// The present step, and how many of its requests have begun.
    step: usize,
    begun: u32,
    next_id: Id,
    /// The request of the sequence, and the probe beside it.
    main: Option<TimedRequest>,
    probe: Option<TimedRequest>,
    probe_due: Option<Time>,
    /// The connection of probes, and whether it is open.
    probes: (Id, bool),
    /// Round trips of the present set, and the least duration of its requests.
    set_probes: Vec<f64>,
    set_least: Option<f64>,
    finished: [bool; 2],
    idle: Vec<f64>,
    loaded: [Vec<f64>; 2],
    /// Bit/s of requests long enough.
    rates: [Vec<f64>; 2],
    open: u32,
    failure: Option<String>,
    over: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Latency { count: u32 },
    Load { way: Direction, bytes: u64, count: u32, bypass: bool },
}

/// A request under way, with the times of its start and of the head of its answer.
#[derive(Clone, Copy, Debug)]
struct TimedRequest {
    id: Id,
    began: Time,
    head: Option<(Time, Duration)>,
    bytes: u64,
}

const BULK: Id = 1;
const FIRST_PROBES: Id = 2;

impl Cloudflare {
    /// The engine's default sequence.
    #[must_use]
    pub fn new() -> Self {
        Self { steps: sequence(), next_id: 3, probes: (FIRST_PROBES, false), ..Self::default() }
    }

    /// Begins what comes next.
    fn go_on(&mut self, now: Time, actions: &mut Vec<Action>) {
        while let Some(&step) = self.steps.get(self.step) {
            let (count, skipped) = match step {
                Step::Latency { count } => (count, false),
                Step::Load { way, count, .. } => (count, self.finished[way as usize]),
            };
            if skipped || self.begun == count {
                self.end_set(step, actions);
                self.step += 1;
                self.begun = 0;
                continue;
            }
            if self.begun == 0
                && let Step::Load { .. } = step
            {
                let due = now + FIRST_PROBE;
                self.probe_due = Some(due);
                actions.push(Action::WakeAt(due));
            }
            self.begun += 1;
            self.main = Some(self.request(now, step, BULK, actions));
            return;
        }
        self.over = true;
        actions.push(Action::Close { id: BULK });
        actions.push(Action::Close { id: self.probes.0 });
        actions.push(Action::Finish);
    }

    fn end_set(&mut self, step: Step, actions: &mut Vec<Action>) {
        let Step::Load { way, bypass, .. } = step else { return };
        if let Some(probe) = self.probe.take() {
            // Its answer would count for another set.
            actions.push(Action::Close { id: probe.id });
            actions.push(Action::Close { id: self.probes.0 });
            self.probes = (self.next_id, false);
            self.next_id += 1;
            actions.push(Action::Open { id: self.probes.0, kind: Connection::Http1 });
        }
        self.probe_due = None;
        let probes = std::mem::take(&mut self.set_probes);
        let Some(least) = self.set_least.take() else { return };
        if least >= MIN_LOADED_REQUEST_MS {
            self.loaded[way as usize].extend(probes);
        }
        if least > FINISH_MS && !bypass {
            self.finished[way as usize] = true;
        }
    }

    fn request(
        &mut self,
        now: Time,
        step: Step,
        on: Id,
        actions: &mut Vec<Action>,
    ) -> TimedRequest {
        let id = self.next_id;
        self.next_id += 1;
        let (path, upload, bytes) = match step {
            Step::Latency { .. } => (format!("{DOWN}?bytes=0"), None, 0),
            Step::Load { way: Direction::Down, bytes, .. } => {
                (format!("{DOWN}?bytes={bytes}"), None, bytes)
            }
            Step::Load { way: Direction::Up, bytes, .. } => {
                (format!("{UP}?bytes={bytes}"), Some(bytes), bytes)
            }
        };
        actions.push(Action::Request { id, on, path, upload });
        TimedRequest { id, began: now, head: None, bytes }
    }

    fn on_main(&mut self, now: Time, request: TimedRequest, actions: &mut Vec<Action>) {
        let step = self.steps[self.step];
        let Some((head, server)) = request.head else { return };
        let ttfb = head.since(request.began);
        let ping = ttfb.saturating_sub(server).as_millis_f64();
        match step {
            Step::Latency { .. } => self.idle.push(ping),
            Step::Load { way, bypass, .. } => {
                let took = match way {
                    Direction::Down => ping + now.since(head).as_millis_f64(),
                    Direction::Up => ttfb.as_millis_f64(),
                };
                self.set_least = Some(self.set_least.map_or(took, |least| least.min(took)));
                if took >= MIN_REQUEST_MS && !bypass {
                    let bits = request.bytes as f64 * 8.0 * HEADERS;
                    self.rates[way as usize].push(bits / took * 1e3);
                }
            }
        }
        self.go_on(now, actions);
    }

    fn on_wake(&mut self, now: Time, actions: &mut Vec<Action>) {
        let (on, is_open) = self.probes;
        if self.probe_due.is_none_or(|due| now < due) || self.probe.is_some() || !is_open {
            return;
        }
        self.probe_due = None;
        self.probe = Some(self.request(now, Step::Latency { count: 1 }, on, actions));
    }
}

impl Method for Cloudflare {
    fn on(&mut self, now: Time, event: Event<'_>, actions: &mut Vec<Action>) {
        if self.over {
            return;
        }
        match event {
            Event::Begin => {
                for id in [BULK, FIRST_PROBES] {
                    actions.push(Action::Open { id, kind: Connection::Http1 });
                }
            }
            Event::Opened { id, .. } => {
                self.probes.1 |= id == self.probes.0;
                self.open += 1;
                if self.open == 2 {
                    self.go_on(now, actions);
                } else {
                    self.on_wake(now, actions);
                }
            }
            Event::Head { id, status, server } => {
                let both = self.main.iter_mut().chain(self.probe.iter_mut());
                if let Some(request) = both.into_iter().find(|request| request.id == id) {
                    request.head = Some((now, server.unwrap_or(Duration::ZERO)));
                }
                if status != 200 {
                    self.failure = Some(answered(status));
                    self.over = true;
                    actions.push(Action::Finish);
                }
            }
            Event::Ended { id } => {
                if let Some(request) = self.main.take_if(|request| request.id == id) {
                    self.on_main(now, request, actions);
                } else if let Some(request) = self.probe.take_if(|request| request.id == id) {
                    if let Some((head, server)) = request.head {
                        self.set_probes
                            .push(head.since(request.began).saturating_sub(server).as_millis_f64());
                    }
                    let due = now + PAUSE;
                    self.probe_due = Some(due);
                    actions.push(Action::WakeAt(due));
                }
            }
            Event::Failed { id, reason } => {
                let main = self.main.is_some_and(|request| request.id == id);
                if id == BULK || id == self.probes.0 || main {
                    self.failure = Some(reason.to_owned());
                    self.over = true;
                    actions.push(Action::Finish);
                }
            }
            Event::Wake => self.on_wake(now, actions),
            Event::Received { .. } | Event::Sent { .. } | Event::Text { .. } => {}
        }
    }

    fn result(&self) -> Value {
        let bandwidth =
            |way: Direction| quantile(&self.rates[way as usize], 0.9).map(|bps| bps / 1e6);
        let requests = |way: Direction| self.rates[way as usize].len();
        let loaded = |way: Direction| {
            let all = &self.loaded[way as usize];
            quantile(&all[all.len().saturating_sub(LAST)..], 0.5)
        };
        let result = CloudflareResult {
            basis: Basis { method: METHOD.name, formula: "@cloudflare/speedtest 1.14.1" },
            figures: MainFigures {
                download_mbps: bandwidth(Direction::Down),
                upload_mbps: bandwidth(Direction::Up),
                latency_ms: quantile(&self.idle, 0.5),
            },
            jitter_ms: jitter(&self.idle),
            loaded: LoadedMedians {
                download_loaded_latency_ms: loaded(Direction::Down),
                upload_loaded_latency_ms: loaded(Direction::Up),
            },
            latency_definition: "HTTP requests over a connection of their own (HTTP/1.1)",
            missing: vec!["packet loss: needs WebRTC".to_owned()],
            requests: RequestCounts {
                download: requests(Direction::Down),
                upload: requests(Direction::Up),
            },
            failures: self.failure.iter().cloned().collect(),
        };
        result.to_json()
    }
}

object! {
    /// Result of Cloudflare's speed test.
    pub(crate) struct CloudflareResult {
        pub basis: Basis,
        pub figures: MainFigures,
        pub jitter_ms: Option<f64> = meaning::JITTER,
        pub loaded: LoadedMedians,
        pub latency_definition: &'static str = meaning::LATENCY_DEFINITION,
        pub missing: Vec<String> = meaning::MISSING,
        /// How many requests gave a rate.
        pub requests: RequestCounts,
        pub failures: Vec<String> = meaning::FAILURES,
    }
}

object! {
    /// How many requests of each direction gave a rate.
    pub(crate) struct RequestCounts {
        /// Downloads.
        pub download: usize,
        /// Uploads.
        pub upload: usize,
    }
}

/// The default of 1.14.1, without packet loss.
fn sequence() -> Vec<Step> {
    let latency = |count| Step::Latency { count };
    let load = |way, bytes, count| Step::Load { way, bytes, count, bypass: false };
    let mut steps = vec![
        latency(2),
        Step::Load { way: Direction::Down, bytes: 100_000, count: 1, bypass: true },
        latency(20),
    ];
    for (way, bytes, count) in [
        (Direction::Down, 100_000, 9),
        (Direction::Down, 1_000_000, 8),
        (Direction::Up, 100_000, 8),
        (Direction::Up, 1_000_000, 6),
        (Direction::Down, 10_000_000, 6),
        (Direction::Up, 10_000_000, 4),
        (Direction::Down, 25_000_000, 4),
        (Direction::Up, 25_000_000, 4),
        (Direction::Down, 100_000_000, 3),
        (Direction::Up, 50_000_000, 3),
        (Direction::Down, 250_000_000, 2),
    ] {
        steps.extend([load(way, bytes, count), latency(2)]);
    }
    steps.pop();
    steps
}

/// Factor for the bytes of headers (`estimatedHeaderFraction`).
const HEADERS: f64 = 1.005;
/// Shortest request that counts for the bandwidth, in ms (`bandwidthMinRequestDuration`).
const MIN_REQUEST_MS: f64 = 10.0;
/// Length of a request, in ms, after which no larger ones follow (`bandwidthFinishRequestDuration`).
const FINISH_MS: f64 = 1_000.0;
/// Shortest request, in ms, beside which latency counts as loaded (`loadedRequestMinDuration`).
const MIN_LOADED_REQUEST_MS: f64 = 250.0;
/// Pause between two probes of loaded latency (`loadedLatencyThrottle`).
const PAUSE: Duration = Duration::from_millis(400);
/// Time of the first probe after the beginning of a set.
const FIRST_PROBE: Duration = Duration::from_millis(20);
/// Probes of loaded latency that count at most, the last ones (`loadedLatencyMaxPoints`).
const LAST: usize = 20;

/// Cloudflare's speed test as its own engine runs it.
pub static METHOD: MethodInfo = MethodInfo {
    name: "cloudflare",
    summary: "Cloudflare's: one request at a time, probes on a second connection",
    server_kind: Some("Cloudflare"),
    known_by: None,
    congestion_control: None,
    cautions: &[
        Caution {
            figure: &["download_loaded_latency_ms"],
            says: "no download took 250 ms: this method then has no latency under load",
        },
        Caution {
            figure: &["download_mbps"],
            says: "no download took 10 ms: this method then has no rate for it",
        },
        Caution {
            figure: &["upload_mbps"],
            says: "no upload took 10 ms: this method then has no rate for it",
        },
    ],
    needs_tls: false,
    has_headers: true,
    result: &CloudflareResult::OBJECT,
    begin: |_| Box::new(Cloudflare::new()),
};

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;

    /// A line of `rate` bytes per millisecond with a round trip of 20 ms, on which probes take 80 ms.
    fn run(rate: u64) -> Value {
        let (mut test, mut now, mut actions) = (Cloudflare::new(), 0, Vec::new());
        let mut agenda: BTreeMap<(u64, u32), Vec<Told>> = BTreeMap::new();
        test.on(Time::ZERO, Event::Begin, &mut actions);
        let mut count = 0;
        loop {
            for action in std::mem::take(&mut actions) {
                count += 1;
                let mut plan = |after: u64, told: Told| {
                    agenda.entry((now + after, count)).or_default().push(told);
                };
                match action {
                    Action::Open { id, .. } => plan(20, Told::Opened(id)),
                    Action::Request { id, on, path, upload } => {
                        let bytes: u64 = path.rsplit('=').next().unwrap().parse().unwrap();
                        let body = bytes / rate;
                        let first = if on != BULK { 80 } else { 20 };
                        let first = first + if upload.is_some() { body } else { 0 };
                        plan(first, Told::Head(id));
                        plan(first + if upload.is_some() { 0 } else { body }, Told::Ended(id));
                    }
                    Action::WakeAt(at) => plan(at.as_nanos() / 1_000_000 - now, Told::Wake),
                    Action::Finish => return test.result(),
                    _ => {}
                }
            }
            let ((at, _), all) = agenda.pop_first().expect("it finishes");
            now = at;
            for told in all {
                let server = Some(Duration::ZERO);
                let event = match told {
                    Told::Opened(id) => Event::Opened { id, tcp: Duration::ZERO, tls: None },
                    Told::Head(id) => Event::Head { id, status: 200, server },
                    Told::Ended(id) => Event::Ended { id },
                    Told::Wake => Event::Wake,
                };
                test.on(Time::from_millis(now), event, &mut actions);
            }
        }
    }

    enum Told {
        Opened(Id),
        Head(Id),
        Ended(Id),
        Wake,
    }

    #[test]
    fn a_slow_line_is_measured_with_its_loaded_latency() {
        // 10 Mbit/s: 1 MB takes 800 ms and a round trip, 10 MB take 8 s and end the direction.
        let result = run(1_250);
        let down = result["download_mbps"].as_f64().unwrap();
        assert!((9.5..10.1).contains(&down), "{result}");
        assert_eq!(result["latency_ms"], 20.0);
        assert_eq!(result["jitter_ms"], 0.0);
        assert_eq!(result["download_loaded_latency_ms"], 80.0);
        assert_eq!(result["upload_loaded_latency_ms"], 80.0);
        // 9 of 100 kB, 8 of 1 MB, 6 of 10 MB; the upload the same way.
        assert_eq!(result["requests"], json!({"download": 23, "upload": 18}));
    }

    #[test]
    fn on_a_fast_line_there_is_no_loaded_latency() {
        // 10 Gbit/s: the longest request takes 220 ms.
        let result = run(1_250_000);
        assert_eq!(result["download_loaded_latency_ms"], Value::Null);
    }
}
