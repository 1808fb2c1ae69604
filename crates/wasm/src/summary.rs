//! The figures of a run, by the definitions of docs/statistics.md.
//!
//! The names are those of `weirlab.stats.Summary`, and a test holds the values against it.

use serde::Serialize;
use weir_scenario::{Application, Direction, Flow, Goodput, Scenario};

use crate::columns::{Columns, FilledTable};

/// Figures of one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Round trips of all pings over the whole path.
    pub latency: LatencySummary,
    /// Flows of the upload; `None` without any.
    pub up: Option<DirectionSummary>,
    /// Flows of the download; `None` without any.
    pub down: Option<DirectionSummary>,
}

/// Round trips of all probes together, in milliseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LatencySummary {
    /// Round trips in the phase `idle` before anything loads the line; `None` without any.
    pub idle: Option<Distribution>,
    /// Round trips in the phase `load`, or in the whole run if it has none.
    pub loaded: Option<Distribution>,
    /// Mean of the loaded round trips, each less its own probe's idle mean; `None` without idle pings.
    pub increase_mean_ms: Option<f64>,
    /// Pings sent during the load.
    pub sent: usize,
    /// Pings of these that were lost, on either way.
    pub lost: usize,
}

/// Flows of one direction during the load.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DirectionSummary {
    /// Number of flows that run during the load.
    pub flows: usize,
    /// Bytes that applications received, each once, in Mbit/s; `None` if throughput was not sampled.
    pub goodput_mbps: Option<f64>,
    /// Data packets dropped on the path / data packets sent, over the whole run; `None` if none was sent.
    pub loss_rate: Option<f64>,
    /// Data packets marked CE / data packets sent, over the whole run; `None` if none was sent.
    pub mark_rate: Option<f64>,
}

/// Figures of a set of numbers, in their own unit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Distribution {
    /// How many there are.
    pub count: usize,
    /// Arithmetic mean.
    pub mean: f64,
    /// Least number.
    pub min: f64,
    /// Median: quantiles are interpolated linearly (Hyndman and Fan 1996, definition 7).
    pub median: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Greatest number.
    pub max: f64,
}

/// The figures of a run of `scenario` that reached `reached_ns`.
#[must_use]
pub fn summarise(scenario: &Scenario, columns: &Columns, reached_ns: u64) -> Summary {
    let scenario = &completed(scenario, columns);
    let load = load_window(scenario, reached_ns);
    let idle = idle_window(scenario, load, reached_ns);
    let direction = |direction| direction_summary(scenario, columns, direction, load);
    Summary {
        latency: latency(scenario, columns, idle, load),
        up: direction(Direction::Up),
        down: direction(Direction::Down),
    }
}

/// The scenario with flows of fixed size that stop when all of them was delivered.
fn completed(scenario: &Scenario, columns: &Columns) -> Scenario {
    let mut scenario = scenario.clone();
    let totals = table(columns, "flows");
    let when = totals.numbers("flow").iter().zip(totals.numbers("completed_ns"));
    for (flow, completed_ns) in when.filter(|(_, completed_ns)| !completed_ns.is_nan()) {
        if let Some(flow) = scenario.flows.get_mut(*flow as usize) {
            flow.stop_ns = flow.stop_ns.min(*completed_ns as u64);
        }
    }
    scenario
}

/// A span in nanoseconds: its start, and its end, which is not within it.
type Window = (u64, u64);

/// A phase, up to where the run came; `None` if there is none, or it was not reached.
fn phase(scenario: &Scenario, name: &str, reached_ns: u64) -> Option<Window> {
    let found = scenario.phases.iter().find(|phase| phase.name == name)?;
    let end_ns = found.end_ns.min(reached_ns);
    (found.start_ns < end_ns).then_some((found.start_ns, end_ns))
}

/// The phase `load`, or the whole run of a scenario without one; nothing of a run that ended before its load.
fn load_window(scenario: &Scenario, reached_ns: u64) -> Window {
    let has_load = scenario.phases.iter().any(|phase| phase.name == "load");
    let start_ns = if has_load { reached_ns } else { 0 };
    phase(scenario, "load", reached_ns).unwrap_or((start_ns, reached_ns))
}

/// The part of the phase `idle` before anything loads the line; `None` without one beside the load, or if that
/// part is shorter than [`MIN_IDLE_NS`].
fn idle_window(scenario: &Scenario, load: Window, reached_ns: u64) -> Option<Window> {
    let (start, end) = phase(scenario, "idle", reached_ns).filter(|idle| *idle != load)?;
    let runs = |flow: &&Flow| flow.start_ns < end && flow.stop_ns > start;
    let loads = scenario.flows.iter().filter(runs).filter(|flow| loads_the_line(flow));
    match loads.map(|flow| flow.start_ns).min() {
        None => Some((start, end)),
        Some(begin) => (begin >= start + MIN_IDLE_NS).then_some((start, begin)),
    }
}

/// TCP, pages and videos, and UDP from [`MIN_UDP_LOAD_BPS`] on. Calls, other slow UDP streams and DNS queries are
/// no load: they are what a line is to be quick for.
fn loads_the_line(flow: &Flow) -> bool {
    match (&flow.udp, &flow.application) {
        (Some(udp), _) => udp.rate_bps >= MIN_UDP_LOAD_BPS,
        (None, Some(Application::Dns(_))) => false,
        (None, _) => true,
    }
}

/// Bytes of the samples that count.
fn arrived(columns: &Columns, goodput: &Goodput) -> u64 {
    let samples = table(columns, "throughput");
    let [ends, owners, sizes] = ["t_ns", "flow", "bytes"].map(|name| samples.numbers(name));
    let rows = ends.iter().zip(owners).zip(sizes);
    let counted = rows.filter(|((t, flow), _)| goodput.counts(**flow as usize, **t as u64));
    counted.map(|(_, bytes)| *bytes as u64).sum()
}

fn latency(
    scenario: &Scenario,
    columns: &Columns,
    idle: Option<Window>,
    load: Window,
) -> LatencySummary {
    let table = table(columns, "latency");
    let pings = |window| pings(scenario, table, window);
    let (before, during) = (idle.map(pings).unwrap_or_default(), pings(load));
    LatencySummary {
        idle: Distribution::of(before.answered().map(|(_, rtt_ms)| rtt_ms).collect()),
        loaded: Distribution::of(during.answered().map(|(_, rtt_ms)| rtt_ms).collect()),
        increase_mean_ms: increase_mean_ms(&before, &during),
        sent: during.rtts_ms.len(),
        lost: during.rtts_ms.iter().filter(|(_, rtt_ms)| rtt_ms.is_nan()).count(),
    }
}

/// Pings over the whole path: of each its probe and its round trip, not a number if it was lost.
#[derive(Default)]
struct Pings {
    rtts_ms: Vec<(usize, f64)>,
}

impl Pings {
    fn answered(&self) -> impl Iterator<Item = (usize, f64)> {
        self.rtts_ms.iter().copied().filter(|(_, rtt_ms)| !rtt_ms.is_nan())
    }

    fn mean_ms(&self, probe: usize) -> Option<f64> {
        mean(self.answered().filter(|(one, _)| *one == probe).map(|(_, rtt_ms)| rtt_ms))
    }
}

/// The pings that were sent in a window; what routers on the way answered is left out.
fn pings(scenario: &Scenario, table: &FilledTable, window: Window) -> Pings {
    let [t, probes, rtts] = ["t_ns", "probe", "rtt_ns"].map(|name| table.numbers(name));
    let rows = t.iter().zip(probes).zip(rtts).filter(|((t, probe), _)| {
        let counts = scenario.probes.get(**probe as usize).is_some_and(|one| one.ttl.is_none());
        counts && is_within(**t, window)
    });
    Pings { rtts_ms: rows.map(|((_, probe), rtt)| (*probe as usize, rtt / 1e6)).collect() }
}

fn is_within(t_ns: f64, (start, end): Window) -> bool {
    t_ns >= start as f64 && t_ns < end as f64
}

/// How much longer pings took under load, each than its own probe's idle ones, on average.
///
/// The mean of the idle pings less their own means is 0, so that nothing is taken off for it.
fn increase_mean_ms(idle: &Pings, load: &Pings) -> Option<f64> {
    let count = 1 + idle.answered().map(|(probe, _)| probe).max()?;
    let means: Vec<_> = (0..count).map(|probe| idle.mean_ms(probe)).collect();
    mean(load.answered().filter_map(|(probe, rtt_ms)| Some(rtt_ms - (*means.get(probe)?)?)))
}

fn direction_summary(
    scenario: &Scenario,
    columns: &Columns,
    direction: Direction,
    load: Window,
) -> Option<DirectionSummary> {
    let goodput = Goodput::within(load, scenario, direction);
    let flows = goodput.flows();
    if flows == 0 {
        return None;
    }
    let samples = table(columns, "throughput");
    let totals = table(columns, "flows");
    let total = |name: &str| -> f64 {
        let rows = totals.numbers("flow").iter().zip(totals.numbers(name));
        rows.filter(|(flow, value)| goodput.has(**flow as usize) && !value.is_nan())
            .map(|(_, value)| value)
            .sum()
    };
    let sent = total("sent_segments");
    let share = |name: &str| (sent > 0.0).then(|| total(name) / sent);
    Some(DirectionSummary {
        flows,
        goodput_mbps: goodput.mbps(arrived(columns, &goodput)).filter(|_| samples.rows > 0),
        loss_rate: share("dropped_packets"),
        mark_rate: share("marked_packets"),
    })
}

fn table<'c>(columns: &'c Columns, name: &str) -> &'c FilledTable {
    columns.table(name).unwrap_or_else(|| unreachable!("the record has a table `{name}`"))
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0_u32);
    for value in values {
        sum += value;
        count += 1;
    }
    (count > 0).then(|| sum / f64::from(count))
}

impl Distribution {
    /// The figures of `values`, none of which is NaN; `None` of no values.
    #[must_use]
    pub fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        Some(Self {
            count: values.len(),
            mean: mean(values.iter().copied())?,
            min: *values.first()?,
            median: quantile(&values, 0.5),
            p95: quantile(&values, 0.95),
            p99: quantile(&values, 0.99),
            max: *values.last()?,
        })
    }
}

/// The quantile `q`, 0 to 1, of values in order, of which there is at least one.
fn quantile(ordered: &[f64], q: f64) -> f64 {
    let place = q * (ordered.len() - 1) as f64;
    let below = place as usize;
    let share = place - below as f64;
    let (low, high) = (ordered[below], ordered[(below + 1).min(ordered.len() - 1)]);
    let step = high - low;
    if share < 0.5 { low + step * share } else { high - step * (1.0 - share) }
}

/// What is left of a phase `idle` before a load counts from here on, as in `weirlab.stats.pings`.
const MIN_IDLE_NS: u64 = 1_000_000_000;
/// A UDP stream of less loads no line, as in `weirlab.stats.pings`.
const MIN_UDP_LOAD_BPS: u64 = 1_000_000;

#[cfg(test)]
mod tests {
    use weir_core::Time;

    use super::*;
    use crate::prepare::{Prepared, Recordings};

    #[test]
    fn figures_follow_the_definitions() {
        let found = Distribution::of(vec![4.0, 1.0, 2.0, 3.0]).expect("there are values");
        assert_eq!((found.count, found.mean, found.min, found.max), (4, 2.5, 1.0, 4.0));
        // Definition 7: place 3 * 0.95 = 2.85.
        assert_eq!(found.median, 2.5);
        assert!((found.p95 - 3.85).abs() < 1e-12, "{}", found.p95);
        assert_eq!(Distribution::of(Vec::new()), None);
    }

    #[test]
    fn a_full_buffer_shows_in_the_figures() {
        let text = "test = \"tcp_download\"\nlink = \"cable-20-8\"\n\
            phases = { idle = \"1s\", load = \"4s\", cooldown = \"0s\" }\n";
        let none = Recordings::default();
        let prepared = Prepared::new(text, &none).expect("it is sound");
        let mut columns = Columns::default();
        let outcome = prepared.simulation(&none).expect("it runs").run(&mut columns);
        let found = summarise(&prepared.scenario, &columns, outcome.reached.as_nanos());
        assert_eq!(found.up, None);
        let down = found.down.expect("there is a download");
        assert_eq!(down.flows, 1);
        let goodput = down.goodput_mbps.expect("it was sampled");
        assert!((15.0..20.0).contains(&goodput), "{goodput} Mbit/s of 20");
        let [idle, loaded] = [found.latency.idle, found.latency.loaded].map(Option::unwrap);
        assert!((14.0..16.0).contains(&idle.median), "{} ms idle", idle.median);
        assert!(loaded.max > idle.median + 100.0, "{} ms at most under load", loaded.max);
        let increase = found.latency.increase_mean_ms.expect("there are idle pings");
        assert!((increase - (loaded.mean - idle.mean)).abs() < 1e-9, "there is one probe");
        assert_eq!(found.latency.sent, loaded.count + found.latency.lost);
    }

    /// The figures of a run of `text` that is stopped at `until_s` seconds.
    fn stopped_at(text: &str, until_s: u64) -> Summary {
        let none = Recordings::default();
        let prepared = Prepared::new(text, &none).expect("it is sound");
        let mut columns = Columns::default();
        let mut simulation = prepared.simulation(&none).expect("it runs");
        let _ = simulation.advance(Time::from_nanos(until_s * 1_000_000_000), &mut columns);
        let outcome = simulation.finish(&mut columns);
        summarise(&prepared.scenario, &columns, outcome.reached.as_nanos())
    }

    #[test]
    fn rates_of_a_run_that_is_stopped_are_of_the_time_that_it_had() {
        let text = "test = \"tcp_download\"\nlink = \"cable-20-8\"\n\
            phases = { idle = \"1s\", load = \"40s\", cooldown = \"0s\" }\n";
        let found = stopped_at(text, 5);
        let goodput = found.down.expect("there is a download").goodput_mbps.expect("a rate");
        assert!((15.0..20.0).contains(&goodput), "{goodput} Mbit/s of 20");
        // Stopped before its load it has none.
        let before = stopped_at(text, 1);
        assert_eq!((before.down, before.latency.loaded, before.latency.sent), (None, None, 0));
        assert!(before.latency.idle.is_some());
    }

    /// A download during the load, and another load from 1.5 s of the 4 s of the phase `idle` on.
    fn early(load: &str, at: &str) -> String {
        format!(
            "link = \"cable-20-8\"\n[test]\nname = \"early\"\ntitle = \"Early\"\n\
             phases = {{ idle = \"4s\", load = \"4s\" }}\n\
             [[test.probes]]\nname = \"ping\"\nkind = \"icmp\"\n\
             [[test.flows]]\nname = \"late\"\ndirection = \"down\"\n\
             [[test.flows]]\nname = \"early\"\ndirection = \"down\"\nstart = \"{at}\"\n{load}\n"
        )
    }

    #[test]
    fn idle_pings_are_those_before_anything_loads_the_line() {
        let of = |text: &str| stopped_at(text, 8).latency;
        let udp = |rate: &str| format!("udp = {{ rate = \"{rate}\" }}");
        for load in [String::new(), udp("19mbit")] {
            let found = of(&early(&load, "1500ms"));
            let idle = found.idle.expect("a second and a half of pings");
            assert!((140..=151).contains(&idle.count), "{load}: {} pings", idle.count);
            assert!(idle.max < 16.0, "{load}: {} ms", idle.max);
            // Less than a second of an idle line tells nothing.
            let soon = of(&early(&load, "500ms"));
            assert_eq!((soon.idle, soon.increase_mean_ms), (None, None), "{load}");
        }
        // What is slow is no load.
        let idle = of(&early(&udp("900kbit"), "1500ms")).idle.expect("all of the phase");
        assert!((399..=400).contains(&idle.count), "{} pings", idle.count);
    }
}
