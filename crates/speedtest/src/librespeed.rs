//! LibreSpeed as its browser worker runs it: ping, download over 6 streams, upload over 3.
//!
//! Source: `librespeed/speedtest` 6.2.1, `speedtest_worker.js`, default settings; of the project's two
//! official clients this is the one that people see, `librespeed-cli` counts otherwise. Streams begin 300 ms
//! after one another; what comes in a grace time at the beginning is thrown away; fast lines are measured for
//! a shorter time; the rate counts 6 % more for headers. Ping is the least of 9 requests (the first of 10 is
//! not counted). There is no latency under load.

use serde_json::Value;
use weir_core::{Direction, Duration, Time};

use crate::method::{Action, Event, Method, answered};
use crate::method_info::MethodInfo;
use crate::result::{Basis, Declared, MainFigures, meaning, object};
use crate::streams::{Answer, Heard, Streams};

/// A test under way.
#[derive(Clone, Debug)]
pub struct Librespeed {
    stage: Stage,
    streams: Streams,
    /// Start of all request paths, before `empty.php` and the like.
    prefix: &'static str,
    /// Number of requests so far, by which their URLs differ, so that no cache answers.
    asked: u32,
    /// Time since which the stage's bytes count.
    since: Time,
    begun: Time,
    next_tick: Time,
    grace_over: bool,
    bytes: u64,
    bonus_ms: f64,
    pongs: usize,
    pings: Vec<f64>,
    jitter_ms: f64,
    /// Rates of download and upload in Mbit/s.
    mbps: [Option<f64>; 2],
    failure: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Before,
    Address,
    Ping,
    Pause(Direction),
    Load(Direction),
    Over,
}

const fn streams(direction: Direction) -> usize {
    if direction.is_down() { DOWN_STREAMS } else { UP_STREAMS }
}

const fn grace(direction: Direction) -> Duration {
    if direction.is_down() { DOWN_GRACE } else { UP_GRACE }
}

impl Default for Librespeed {
    fn default() -> Self {
        Self::new()
    }
}

impl Librespeed {
    /// A test of ping and both directions.
    #[must_use]
    pub fn new() -> Self {
        Self {
            stage: Stage::Before,
            streams: Streams::numbered_above(0),
            prefix: PREFIX,
            asked: 0,
            since: Time::ZERO,
            begun: Time::ZERO,
            next_tick: Time::MAX,
            grace_over: false,
            bytes: 0,
            bonus_ms: 0.0,
            pongs: 0,
            pings: Vec::new(),
            jitter_ms: 0.0,
            mbps: [None; 2],
            failure: None,
        }
    }

    fn ask(&mut self, place: usize, now: Time, actions: &mut Vec<Action>) {
        self.asked += 1;
        let (prefix, r) = (self.prefix, self.asked);
        let request = match self.stage {
            Stage::Address => (format!("{prefix}/getIP.php?isp=true&distance=km&r={r}"), None),
            Stage::Load(Direction::Down) => {
                (format!("{prefix}/garbage.php?r={r}&ckSize={CHUNK}"), None)
            }
            Stage::Load(Direction::Up) => (format!("{prefix}/empty.php?r={r}"), Some(BLOB)),
            _ => (format!("{prefix}/empty.php?r={r}"), None),
        };
        self.streams.ask(place, now, request, actions);
    }

    /// The pause of a second before each load, which `test_order` has.
    fn pause(&mut self, way: Direction, now: Time, actions: &mut Vec<Action>) {
        self.streams.close(actions);
        self.stage = Stage::Pause(way);
        self.next_tick = now + PAUSE;
        actions.push(Action::WakeAt(self.next_tick));
    }

    fn begin(&mut self, way: Direction, now: Time, actions: &mut Vec<Action>) {
        self.stage = Stage::Load(way);
        (self.begun, self.since, self.grace_over) = (now, now, false);
        (self.bytes, self.bonus_ms) = (0, 0.0);
        self.streams.open(actions);
        for number in 1..streams(way) as u64 {
            actions.push(Action::WakeAt(now + STAGGER * number));
        }
        self.next_tick = now + TICK;
        actions.push(Action::WakeAt(self.next_tick));
    }

    fn on_wake(&mut self, now: Time, actions: &mut Vec<Action>) {
        if let Stage::Load(way) = self.stage {
            let due = now.since(self.begun).as_nanos() / STAGGER.as_nanos() + 1;
            while self.streams.count() < streams(way).min(due as usize) {
                self.streams.open(actions);
            }
        }
        if now < self.next_tick {
            return;
        }
        match self.stage {
            Stage::Pause(way) => self.begin(way, now, actions),
            Stage::Load(way) => self.tick(way, now, actions),
            _ => {}
        }
    }

    fn tick(&mut self, way: Direction, now: Time, actions: &mut Vec<Action>) {
        self.next_tick = now + TICK;
        actions.push(Action::WakeAt(self.next_tick));
        let took = now.since(self.since);
        if !self.grace_over {
            if took > grace(way) {
                self.grace_over = true;
                // A line so slow that nothing has come yet is measured from its beginning.
                if self.bytes > 0 {
                    (self.since, self.bytes) = (now, 0);
                }
            }
            return;
        }
        let rate = self.bytes as f64 / took.as_secs_f64();
        self.bonus_ms += (rate * BONUS_MS).min(MAX_BONUS_MS);
        self.mbps[way as usize] = Some(rate * 8.0 * OVERHEAD / 1e6);
        if took.as_millis_f64() + self.bonus_ms > MAX_DIRECTION_DURATION.as_millis_f64() {
            match way {
                Direction::Down => self.pause(Direction::Up, now, actions),
                Direction::Up => self.finish(actions),
            }
        }
    }

    fn on_answer(&mut self, place: usize, answer: Answer, now: Time, actions: &mut Vec<Action>) {
        match self.stage {
            // Whatever it is, the worker goes on.
            Stage::Address => {
                self.stage = Stage::Ping;
                self.ask(place, now, actions);
            }
            _ if answer.is_success() => {
                if self.stage == Stage::Ping {
                    self.on_pong(answer.to_head.as_millis_f64());
                    if self.pongs == PINGS {
                        return self.pause(Direction::Down, now, actions);
                    }
                }
                self.ask(place, now, actions);
            }
            // Backends that stand alone have no folder.
            Stage::Ping if self.pongs == 0 && self.prefix == PREFIX => {
                self.prefix = "";
                self.ask(place, now, actions);
            }
            _ => self.fail(answered(answer.status), actions),
        }
    }

    fn on_pong(&mut self, took: f64) {
        self.pongs += 1;
        if self.pongs == 1 {
            return;
        }
        let last = self.pings.last().copied();
        let took = if took < MIN_PING_MS { last.unwrap_or(MIN_PING_MS) } else { took };
        if let Some(last) = last {
            let step = (took - last).abs();
            // Rises faster than it falls.
            let weight = if step > self.jitter_ms { 0.7 } else { 0.2 };
            self.jitter_ms = if self.pings.len() == 1 {
                step
            } else {
                self.jitter_ms * (1.0 - weight) + step * weight
            };
        }
        self.pings.push(took);
    }

    fn fail(&mut self, reason: String, actions: &mut Vec<Action>) {
        self.failure = Some(reason);
        self.finish(actions);
    }

    fn finish(&mut self, actions: &mut Vec<Action>) {
        self.streams.close(actions);
        self.stage = Stage::Over;
        actions.push(Action::Finish);
    }
}

impl Method for Librespeed {
    fn on(&mut self, now: Time, event: Event<'_>, actions: &mut Vec<Action>) {
        match event {
            _ if self.stage == Stage::Over => return,
            Event::Begin => {
                self.stage = Stage::Address;
                self.streams.open(actions);
            }
            Event::Wake => self.on_wake(now, actions),
            _ => {}
        }
        match self.streams.hear(now, &event, actions) {
            None => {}
            Some(Heard::Ready(place)) => self.ask(place, now, actions),
            Some(Heard::Moved(bytes)) => self.bytes += bytes,
            Some(Heard::Done(place, answer)) => self.on_answer(place, answer, now, actions),
            Some(Heard::Failed(reason)) => self.fail(reason, actions),
        }
    }

    fn result(&self) -> Value {
        // The worker shows two decimals.
        let shown = |value: f64| (value * 100.0).round() / 100.0;
        let result = LibrespeedResult {
            basis: Basis {
                method: METHOD.name,
                formula: "librespeed/speedtest 6.2.1, speedtest_worker.js, default settings",
            },
            figures: MainFigures {
                download_mbps: self.mbps[Direction::Down as usize].map(shown),
                upload_mbps: self.mbps[Direction::Up as usize].map(shown),
                latency_ms: self.pings.iter().copied().reduce(f64::min).map(shown),
            },
            jitter_ms: (self.pings.len() > 1).then(|| shown(self.jitter_ms)),
            latency_definition: "the least of 9 HTTP requests without load",
            failures: self.failure.iter().cloned().collect(),
        };
        result.to_json()
    }
}

object! {
    /// Result of LibreSpeed's test.
    pub(crate) struct LibrespeedResult {
        pub basis: Basis,
        pub figures: MainFigures,
        pub jitter_ms: Option<f64> = meaning::JITTER,
        pub latency_definition: &'static str = meaning::LATENCY_DEFINITION,
        pub failures: Vec<String> = meaning::FAILURES,
    }
}

/// `url_ping` and the others.
const PREFIX: &str = "/backend";
/// `xhr_dlMultistream`, `xhr_ulMultistream`; Chrome takes 5 down.
const DOWN_STREAMS: usize = 6;
const UP_STREAMS: usize = 3;
/// Time between the starts of two streams (`xhr_multistreamDelay`).
const STAGGER: Duration = Duration::from_millis(300);
/// `time_dlGraceTime`, `time_ulGraceTime`.
const DOWN_GRACE: Duration = Duration::from_millis(1_500);
const UP_GRACE: Duration = Duration::from_millis(3_000);
/// Longest time that a direction is measured (`time_dl_max`, `time_ul_max`).
const MAX_DIRECTION_DURATION: Duration = Duration::from_secs(15);
const TICK: Duration = Duration::from_millis(200);
/// Pause between two tests (`_` in `test_order`).
const PAUSE: Duration = Duration::from_secs(1);
/// Of `time_auto`, a tick: of the bytes a second, and at most.
const BONUS_MS: f64 = 5.0 / 1e5;
const MAX_BONUS_MS: f64 = 400.0;
/// Size of a download's file in MiB (`garbagePhp_chunkSize`).
const CHUNK: u32 = 100;
/// Bytes of an upload (`xhr_ul_blob_megabytes`).
const BLOB: u64 = 20 << 20;
/// Number of pings (`count_ping`).
const PINGS: usize = 10;
/// The worker: some browsers show 0 ms.
const MIN_PING_MS: f64 = 1.0;
/// Factor for the bytes of headers (`overheadCompensationFactor`).
const OVERHEAD: f64 = 1.06;

/// LibreSpeed as its browser client runs it.
pub static METHOD: MethodInfo = MethodInfo {
    name: "librespeed",
    summary: "LibreSpeed's: 6 streams down, then 3 up",
    server_kind: Some("LibreSpeed"),
    known_by: None,
    congestion_control: None,
    cautions: &[],
    needs_tls: false,
    has_headers: true,
    result: &LibrespeedResult::OBJECT,
    begin: |_| Box::new(Librespeed::new()),
};

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::script::Script;

    /// A line of so many bytes a millisecond, 20 ms away.
    fn run(rate: fn(u64) -> u64, knows: fn(&str) -> bool) -> (Value, u64) {
        Script { rate, trip: 20, loaded: 20, knows, arrive: None }.run(&mut Librespeed::new())
    }

    #[test]
    fn a_slow_line_is_measured_nearly_to_the_end() {
        // 8 Mbit/s: a bonus of 50 ms a tick of 200 ms, so that 12 s take the place of 15.
        let (result, ended) = run(|_| 1_000, |_| true);
        assert_eq!(result["download_mbps"], 8.48);
        assert_eq!(result["upload_mbps"], 8.48);
        assert_eq!((&result["latency_ms"], &result["jitter_ms"]), (&json!(20.0), &json!(0.0)));
        // Handshake, address and 10 pings 240 ms, pauses 2 s, graces 1.6 and 3.2 s, two times 12.2 s.
        assert_eq!(ended, 240 + 2_000 + 1_600 + 3_200 + 2 * 12_200);
    }

    #[test]
    fn a_fast_line_is_measured_for_a_third_of_the_time() {
        let (_, ended) = run(|_| 100_000, |_| true);
        // A bonus of 400 ms a tick: 5.2 s.
        assert_eq!(ended, 240 + 2_000 + 1_600 + 3_200 + 2 * 5_200);
    }

    #[test]
    fn jitter_rises_faster_than_it_falls() {
        let mut test = Librespeed::new();
        for took in [500.0, 20.0, 30.0, 25.0, 45.0, 0.4] {
            test.on_pong(took);
        }
        // 10; 10 * 0.8 + 5 * 0.2 = 9; 9 * 0.3 + 20 * 0.7 = 16.7; then the same again: 16.7 * 0.8.
        assert_eq!(test.pings, [20.0, 30.0, 25.0, 45.0, 45.0]);
        assert!((test.jitter_ms - 13.36).abs() < 1e-9, "{}", test.jitter_ms);
    }

    #[test]
    fn a_server_without_the_files_is_told() {
        let (result, _) = run(|_| 1_000, |_| false);
        assert_eq!(result["failures"], json!(["the server answered 404"]));
        assert_eq!(result["download_mbps"], Value::Null);
    }
}
