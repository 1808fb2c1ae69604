//! A test like Ookla's: up to 8 connections, slices of throughput of which the extremes are dropped.
//!
//! Ookla's own client is closed. What it publishes is its method over HTTP (support article 234575828; the
//! same in Bauer, Clark and Lehr, "Understanding Broadband Speed Measurements", 2010): latency is the lowest
//! of 10 requests; a small file tells roughly how fast the line is, and from that how many connections and
//! which size of file; the download is sampled 30 times a second, its samples make 20 slices, the fastest 2
//! and the slowest 6 are dropped, the other 12 averaged; the upload goes in chunks, of which the fastest half
//! is averaged. Later texts add that sizes adapt while the test runs, and that latency is also measured under
//! load, over a connection of its own, and shown as an interquartile mean, and packet loss (`loss.rs`). Paths
//! are OoklaServer's. What is published nowhere is ours, and named so in the constants.

use serde_json::Value;
use weir_core::{Direction, Duration, Time};

use crate::figures::{interquartile_mean, jitter, mbps, mean};
use crate::loss::{DatagramCounts, Loss};
use crate::method::{Action, Event, Method, answered};
use crate::method_info::MethodInfo;
use crate::result::{Basis, Declared, MainFigures, meaning, object};
use crate::streams::{Answer, Heard, Streams};

/// A test under way.
#[derive(Clone, Debug)]
pub struct Ookla {
    stage: Stage,
    loads: Streams,
    probes: Streams,
    loss: Loss,
    /// Number of requests so far, by which their URLs differ, so that no cache answers.
    asked: u32,
    /// Rate in Mbit/s of a small file, or of a small chunk.
    estimate_mbps: f64,
    began: Time,
    next_sample: Time,
    /// When the next request of the probe is due; `None` while one is under way.
    next_probe: Option<Time>,
    /// Bytes of the present load.
    bytes: u64,
    /// Index of the size that the connection at each place asks for.
    sizes: Vec<usize>,
    samples: Vec<Sample>,
    /// Mbit/s of each whole chunk of the upload, on its own connection.
    chunks: Vec<f64>,
    idle_ms: Vec<f64>,
    done: [DirectionResult; 2],
    failure: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Before,
    Latency,
    /// One small file or chunk is transferred, to estimate the rate.
    Estimate(Direction),
    Load(Direction),
    /// Both directions are done; datagrams are still being counted.
    Counting,
    Over,
}

/// A time, and the bytes that had passed by then.
type Sample = (Time, u64);

/// Result of one direction.
#[derive(Clone, Debug, Default)]
struct DirectionResult {
    mbps: Option<f64>,
    bytes: u64,
    elapsed: Duration,
    connections: usize,
    latency_ms: Vec<f64>,
}

impl Ookla {
    /// A test of latency, both directions and loss, whose name is made of `chance`.
    #[must_use]
    pub fn new(chance: u128) -> Self {
        Self {
            stage: Stage::Before,
            loads: Streams::numbered_above(0),
            probes: Streams::numbered_above(PROBES),
            loss: Loss::new(chance),
            asked: 0,
            estimate_mbps: 0.0,
            began: Time::ZERO,
            next_sample: Time::MAX,
            next_probe: None,
            bytes: 0,
            sizes: Vec::new(),
            samples: Vec::new(),
            chunks: Vec::new(),
            idle_ms: Vec::new(),
            done: [DirectionResult::default(), DirectionResult::default()],
            failure: None,
        }
    }

    /// Asks for what the connection at `place` is there for.
    fn ask(&mut self, place: usize, now: Time, actions: &mut Vec<Action>) {
        self.asked += 1;
        let x = self.asked;
        let size = |sizes: &[u64]| sizes[self.sizes[place]];
        let (bytes, way) = match self.stage {
            Stage::Estimate(way) => (FIRST_BYTES, way),
            Stage::Load(Direction::Down) => (size(&FILES), Direction::Down),
            Stage::Load(Direction::Up) => (size(&CHUNKS), Direction::Up),
            Stage::Before | Stage::Latency | Stage::Counting | Stage::Over => return,
        };
        let request = match way {
            Direction::Down => (format!("/download?size={bytes}&nocache={x}"), None),
            Direction::Up => (format!("/upload?nocache={x}"), Some(bytes)),
        };
        self.loads.ask(place, now, request, actions);
    }

    fn ping(&mut self, now: Time, actions: &mut Vec<Action>) {
        self.next_probe = None;
        self.asked += 1;
        let path = format!("/hello?nocache={}", self.asked);
        self.probes.ask(0, now, (path, None), actions);
    }

    fn on_pong(&mut self, took: Duration, now: Time, actions: &mut Vec<Action>) {
        match self.stage {
            Stage::Latency => {
                self.idle_ms.push(took.as_millis_f64());
                if self.idle_ms.len() < PINGS {
                    self.ping(now, actions);
                } else {
                    self.estimate(Direction::Down, actions);
                }
            }
            Stage::Load(way) => {
                self.done[way as usize].latency_ms.push(took.as_millis_f64());
                self.next_probe = Some(now + PAUSE);
                actions.push(Action::WakeAt(now + PAUSE));
            }
            Stage::Before | Stage::Estimate(_) | Stage::Counting | Stage::Over => {}
        }
    }

    fn estimate(&mut self, way: Direction, actions: &mut Vec<Action>) {
        self.stage = Stage::Estimate(way);
        self.loads.open(actions);
    }

    fn on_estimate(
        &mut self,
        way: Direction,
        took: Duration,
        now: Time,
        actions: &mut Vec<Action>,
    ) {
        self.estimate_mbps = mbps(FIRST_BYTES, took.as_secs_f64());
        self.stage = Stage::Load(way);
        let connections = if self.estimate_mbps < SLOW_MBPS { FEW } else { MANY };
        let sizes: &[u64] = if way == Direction::Down { &FILES } else { &CHUNKS };
        let share = self.estimate_mbps * 1e6 / 8.0 / connections as f64;
        let lasts = |bytes: &u64| *bytes as f64 / share >= MIN_REQUEST_DURATION.as_secs_f64();
        let first = sizes.iter().position(lasts).unwrap_or(sizes.len() - 1);
        self.sizes = vec![first; connections];
        (self.began, self.bytes) = (now, 0);
        self.samples = vec![(now, 0)];
        self.next_sample = now + SAMPLE;
        self.next_probe = Some(now + PAUSE);
        actions.extend([self.next_sample, now + PAUSE].map(Action::WakeAt));
        self.ask(0, now, actions);
        for _ in 1..connections {
            self.loads.open(actions);
        }
    }

    fn on_answer(
        &mut self,
        (place, answer): (usize, Answer),
        now: Time,
        actions: &mut Vec<Action>,
    ) {
        if !answer.is_success() {
            return self.fail(answered(answer.status), actions);
        }
        let sizes: &[u64] = match self.stage {
            Stage::Estimate(way) => return self.on_estimate(way, answer.took, now, actions),
            Stage::Load(Direction::Down) => &FILES,
            Stage::Load(Direction::Up) => {
                let bytes = CHUNKS[self.sizes[place]];
                self.chunks.push(mbps(bytes, answer.took.as_secs_f64()));
                &CHUNKS
            }
            Stage::Before | Stage::Latency | Stage::Counting | Stage::Over => return,
        };
        if answer.took < MIN_REQUEST_DURATION && self.sizes[place] + 1 < sizes.len() {
            self.sizes[place] += 1;
        }
        self.ask(place, now, actions);
    }

    fn on_wake(&mut self, now: Time, actions: &mut Vec<Action>) {
        let Stage::Load(way) = self.stage else { return };
        if self.next_probe.is_some_and(|due| now >= due) && self.probes.waits(0) {
            self.ping(now, actions);
        }
        if now >= self.next_sample {
            self.samples.push((now, self.bytes));
            let next = self.began + SAMPLE * (now.since(self.began).as_nanos() / SAMPLE.as_nanos());
            self.next_sample = next + SAMPLE;
            actions.push(Action::WakeAt(self.next_sample));
        }
        if now.since(self.began) >= LENGTH {
            self.end(way, now, actions);
        }
    }

    fn end(&mut self, way: Direction, now: Time, actions: &mut Vec<Action>) {
        let connections = self.loads.count();
        let mbps = match way {
            Direction::Down => sliced(&self.samples),
            Direction::Up => fastest_half(&self.chunks).map(|each| each * connections as f64),
        };
        let elapsed = now.since(self.began);
        let latency_ms = std::mem::take(&mut self.done[way as usize].latency_ms);
        self.done[way as usize] =
            DirectionResult { mbps, bytes: self.bytes, elapsed, connections, latency_ms };
        self.loads.close(actions);
        // A ping under way would count for the other direction.
        self.probes.close(actions);
        match way {
            Direction::Down => {
                self.probes.open(actions);
                self.estimate(Direction::Up, actions);
            }
            Direction::Up => {
                self.stage = Stage::Counting;
                self.loss.finish(now, actions);
            }
        }
    }

    fn fail(&mut self, reason: String, actions: &mut Vec<Action>) {
        self.failure = Some(reason);
        self.finish(actions);
    }

    fn finish(&mut self, actions: &mut Vec<Action>) {
        self.loads.close(actions);
        self.probes.close(actions);
        self.loss.close(actions);
        self.stage = Stage::Over;
        actions.push(Action::Finish);
    }

    fn hear_streams(&mut self, now: Time, event: &Event<'_>, actions: &mut Vec<Action>) {
        if let Some(heard) = self.loads.hear(now, event, actions) {
            self.hear_loads(heard, now, actions);
        } else if let Some(heard) = self.probes.hear(now, event, actions) {
            self.hear_probes(heard, now, actions);
        }
    }

    fn hear_loads(&mut self, heard: Heard, now: Time, actions: &mut Vec<Action>) {
        match heard {
            Heard::Ready(place) => self.ask(place, now, actions),
            Heard::Moved(bytes) => self.bytes += bytes,
            Heard::Done(place, answer) => self.on_answer((place, answer), now, actions),
            Heard::Failed(reason) => self.fail(reason, actions),
        }
    }

    fn hear_probes(&mut self, heard: Heard, now: Time, actions: &mut Vec<Action>) {
        match heard {
            // One whose connection broke is sent anew.
            Heard::Ready(_) => match self.stage {
                Stage::Latency => self.ping(now, actions),
                Stage::Load(_) if self.next_probe.is_none_or(|due| now >= due) => {
                    self.ping(now, actions);
                }
                _ => {}
            },
            Heard::Done(_, answer) if answer.is_success() => {
                self.on_pong(answer.to_head, now, actions);
            }
            Heard::Done(_, answer) => {
                self.fail(answered(answer.status), actions);
            }
            Heard::Failed(reason) => self.fail(reason, actions),
            Heard::Moved(_) => {}
        }
    }
}

impl Method for Ookla {
    fn on(&mut self, now: Time, event: Event<'_>, actions: &mut Vec<Action>) {
        match event {
            _ if self.stage == Stage::Over => return,
            Event::Begin => {
                self.stage = Stage::Latency;
                self.probes.open(actions);
                Loss::begin(actions);
            }
            Event::Wake => self.on_wake(now, actions),
            _ => {}
        }
        if !self.loss.on(now, &event, actions) {
            self.hear_streams(now, &event, actions);
        }
        if self.stage == Stage::Counting && self.loss.is_over() {
            self.finish(actions);
        }
    }

    fn result(&self) -> Value {
        let low = |values: &[f64]| values.iter().copied().reduce(f64::min);
        let high = |values: &[f64]| values.iter().copied().reduce(f64::max);
        let direction = |way: Direction| {
            let one = &self.done[way as usize];
            OoklaDirection {
                bytes: one.bytes,
                duration_s: one.elapsed.as_secs_f64(),
                mean_mbps: (one.bytes > 0).then(|| mbps(one.bytes, one.elapsed.as_secs_f64())),
                connections: one.connections,
                loaded_latency: OoklaLatency {
                    iqm_ms: interquartile_mean(&one.latency_ms),
                    low_ms: low(&one.latency_ms),
                    high_ms: high(&one.latency_ms),
                    jitter_ms: jitter(&one.latency_ms),
                },
            }
        };
        let [up, down] = &self.done;
        let result = OoklaResult {
            basis: Basis {
                method: METHOD.name,
                formula: "Ookla's published method over HTTP (support article 234575828), weir's version 1",
            },
            figures: MainFigures {
                download_mbps: down.mbps,
                upload_mbps: up.mbps,
                latency_ms: low(&self.idle_ms),
            },
            jitter_ms: jitter(&self.idle_ms),
            download_loaded_latency_ms: interquartile_mean(&down.latency_ms),
            upload_loaded_latency_ms: interquartile_mean(&up.latency_ms),
            latency_definition: "HTTP requests over a connection of their own: the least of 10 idle, \
                           interquartile means under load",
            download: direction(Direction::Down),
            upload: direction(Direction::Up),
            packet_loss_percent: self.loss.percent(),
            datagrams: self.loss.counts(),
            missing: self.loss.missing().into_iter().collect(),
            failures: self.failure.iter().cloned().collect(),
        };
        result.to_json()
    }
}

object! {
    /// Result of a test like Ookla's.
    pub(crate) struct OoklaResult {
        pub basis: Basis,
        pub figures: MainFigures,
        pub jitter_ms: Option<f64> = meaning::JITTER,
        /// Interquartile mean of round trips during the download, in ms.
        pub download_loaded_latency_ms: Option<f64>,
        /// Interquartile mean of round trips during the upload, in ms.
        pub upload_loaded_latency_ms: Option<f64>,
        pub latency_definition: &'static str = meaning::LATENCY_DEFINITION,
        /// The download in detail.
        pub download: OoklaDirection,
        /// The upload in detail.
        pub upload: OoklaDirection,
        /// Datagrams that were lost on the way up, in percent, 0 to 100.
        pub packet_loss_percent: Option<f64>,
        /// Datagrams by which the loss was measured.
        pub datagrams: DatagramCounts,
        pub missing: Vec<String> = meaning::MISSING,
        pub failures: Vec<String> = meaning::FAILURES,
    }
}

object! {
    /// One direction of a test like Ookla's.
    pub(crate) struct OoklaDirection {
        /// Bytes that were moved.
        pub bytes: u64,
        /// How long the load lasted, in s.
        pub duration_s: f64,
        /// All bytes over the whole time, without slices left out, in Mbit/s; null if nothing was moved.
        pub mean_mbps: Option<f64>,
        /// How many connections carried the load.
        pub connections: usize,
        /// Round trips during the load.
        pub loaded_latency: OoklaLatency,
    }
}

object! {
    /// Round trips during the load of one direction of a test like Ookla's.
    pub(crate) struct OoklaLatency {
        /// Their interquartile mean, in ms.
        pub iqm_ms: Option<f64>,
        /// The shortest, in ms.
        pub low_ms: Option<f64>,
        /// The longest, in ms.
        pub high_ms: Option<f64>,
        /// Their jitter by the method's formula, in ms.
        pub jitter_ms: Option<f64>,
    }
}

/// Samples make 20 slices; without the fastest 2 and the slowest 6, their mean in Mbit/s. `None` if there are
/// too few samples for slices.
fn sliced(samples: &[Sample]) -> Option<f64> {
    let last = samples.len().checked_sub(1).filter(|&last| last >= SLICES)?;
    let edge = |slice: usize| samples[last * slice / SLICES];
    let mut rates: Vec<f64> = (0..SLICES)
        .map(|slice| {
            let ((from, before), (to, after)) = (edge(slice), edge(slice + 1));
            mbps(after - before, to.since(from).as_secs_f64())
        })
        .collect();
    rates.sort_by(f64::total_cmp);
    mean(&rates[SLOWEST_SLICES_LEFT_OUT..SLICES - FASTEST_SLICES_LEFT_OUT])
}

/// The mean of the greater half; of an odd number, the middle one belongs to it.
fn fastest_half(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    mean(&sorted[sorted.len() / 2..])
}

/// Numbers of the probe's connections and requests begin here.
const PROBES: u32 = 1 << 20;
/// Article: the lowest of 10.
const PINGS: usize = 10;
/// Article: 20 slices, without the fastest 10 % and the slowest 30 %.
const SLICES: usize = 20;
const FASTEST_SLICES_LEFT_OUT: usize = 2;
const SLOWEST_SLICES_LEFT_OUT: usize = 6;
/// Article: up to 30 samples a second.
const SAMPLE: Duration = Duration::from_nanos(33_333_333);
/// Bytes of the first transfer (`initialtest` of `speedtest-config.php`).
const FIRST_BYTES: u64 = 250_000;
/// A later version of the article: more than two connections from 4 Mbit/s on; at most 8.
const SLOW_MBPS: f64 = 4.0;
const FEW: usize = 2;
const MANY: usize = 8;
/// Time that a direction is loaded (`testlength`).
const LENGTH: Duration = Duration::from_secs(10);
/// Ours: a file or chunk that takes a connection less than this is followed by a larger one.
const MIN_REQUEST_DURATION: Duration = Duration::from_millis(500);
/// Ours: between an answer under load and the next request.
const PAUSE: Duration = Duration::from_millis(100);
/// The files of Ookla's servers: `random350x350.jpg` and so on.
const FILES: [u64; 10] = [
    245_388, 505_544, 1_118_012, 1_986_284, 4_468_241, 7_907_740, 12_407_926, 17_816_816,
    24_262_167, 31_625_365,
];
/// The chunks of its older clients (speedtest-cli 2.1.3).
const CHUNKS: [u64; 7] = [32_768, 65_536, 131_072, 262_144, 524_288, 1_048_576, 7_340_032];

/// A test like Ookla's.
pub static METHOD: MethodInfo = MethodInfo {
    name: "ookla",
    summary: "as Ookla publishes its own: 2 or 8 connections each way",
    server_kind: Some("Ookla"),
    known_by: None,
    congestion_control: None,
    cautions: &[],
    needs_tls: false,
    has_headers: false,
    result: &OoklaResult::OBJECT,
    begin: |chance| Box::new(Ookla::new(chance)),
};

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::script::Script;

    fn run(rate: fn(u64) -> u64, knows: fn(&str) -> bool) -> (Value, u64) {
        let arrive: Option<fn(u32) -> bool> = Some(|index| index % 4 != 1);
        Script { rate, trip: 20, loaded: 60, knows, arrive }.run(&mut Ookla::new(7))
    }

    #[test]
    fn a_steady_line_is_what_it_is() {
        // 80 Mbit/s.
        let (result, _) = run(|_| 10_000, |_| true);
        assert_eq!(result["latency_ms"], 20.0);
        assert_eq!(result["jitter_ms"], 0.0);
        for way in ["download", "upload"] {
            assert_eq!(result[way]["connections"], 8, "{result}");
            assert_eq!(result[way]["loaded_latency"]["iqm_ms"], 60.0, "{result}");
            assert_eq!(result[way]["duration_s"], 10.0);
        }
        let down = result["download_mbps"].as_f64().unwrap();
        assert!((down - 80.0).abs() < 1e-3, "{result}");
        // Of 0 to n - 1 every fourth is lost, from 1 on.
        let sent = result["datagrams"]["sent"].as_u64().unwrap();
        let mut arrived = (0..sent).filter(|index| index % 4 != 1);
        let (count, highest) = (arrived.clone().count(), arrived.next_back().unwrap());
        assert!((300..330).contains(&sent), "{result}");
        assert_eq!(result["datagrams"]["received"], count);
        let percent = (1.0 - count as f64 / (highest + 1) as f64) * 100.0;
        assert_eq!(result["packet_loss_percent"], percent);
        assert_eq!(result["missing"], json!([]));
        // While one connection waits for its answer the others have its share: the fastest half shows more
        // than there is.
        let up = result["upload_mbps"].as_f64().unwrap();
        assert!((up - 86.65).abs() < 0.01, "{result}");
        assert!((result["upload"]["mean_mbps"].as_f64().unwrap() - 79.26).abs() < 0.01, "{result}");
    }

    #[test]
    fn the_fastest_two_and_the_slowest_six_slices_are_dropped() {
        // In a period of 10 s: 3 s slow, 6 s at 8 Mbit/s, 1 s of a burst.
        let sample = |number: u64| (Time::from_millis(number * 50), number);
        let mut bytes = 0;
        let samples: Vec<Sample> = (0..=200)
            .map(|number| {
                let (time, _) = sample(number);
                if number > 0 {
                    bytes += match number {
                        ..=60 => 5_000,
                        61..=180 => 50_000,
                        _ => 500_000,
                    };
                }
                (time, bytes)
            })
            .collect();
        assert!((sliced(&samples).unwrap() - 8.0).abs() < 1e-9);
        assert_eq!(sliced(&samples[..20]), None, "19 steps make no 20 slices");
    }

    #[test]
    fn the_upload_is_the_mean_of_the_fastest_half() {
        assert_eq!(fastest_half(&[1.0, 9.0, 2.0, 7.0]), Some(8.0));
        assert_eq!(fastest_half(&[1.0, 9.0, 2.0]), Some(5.5));
        assert_eq!(fastest_half(&[]), None);
    }

    #[test]
    fn a_slow_line_has_two_connections() {
        // 2 Mbit/s: the first file takes a second, chunks of 65,536 bytes half of one.
        let (result, _) = run(|_| 250, |_| true);
        assert_eq!(result["download"]["connections"], 2);
        assert_eq!(result["upload"]["connections"], 2);
        let down = result["download_mbps"].as_f64().unwrap();
        assert!((down - 2.0).abs() < 0.01, "{result}");
        let up = result["upload_mbps"].as_f64().unwrap();
        assert!((up - 2.0).abs() < 0.01, "{result}");
    }

    #[test]
    fn a_server_that_counts_no_datagrams_is_no_failure() {
        let of = |arrive: Option<fn(u32) -> bool>| {
            let script = Script { rate: |_| 10_000, trip: 20, loaded: 60, knows: |_| true, arrive };
            let (result, ended) = script.run(&mut Ookla::new(7));
            assert_eq!(result["failures"], json!([]));
            assert_eq!(result["packet_loss_percent"], Value::Null);
            assert_eq!(result["datagrams"]["received"], Value::Null);
            (result["missing"][0].as_str().unwrap().to_owned(), ended)
        };
        let (missing, without) = of(None);
        assert_eq!(missing, "packet loss: refused");
        let (none_came, ended) = of(Some(|_| false));
        assert!(none_came.ends_with(" datagrams: no UDP there"), "{none_came}");
        // A second for late ones, and a round trip to be told.
        assert_eq!(ended - without, 1_020);
    }

    #[test]
    fn a_server_of_another_kind_is_told() {
        let (result, ended) = run(|_| 1_000, |_| false);
        assert_eq!(result["failures"], json!(["the server answered 404"]));
        assert_eq!(ended, 40);
        assert_eq!(result["download_loaded_latency_ms"], Value::Null);
    }
}
