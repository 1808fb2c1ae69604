//! Whether a shaper helps: the line under load, in turn without and with it, and idle.
//!
//! Stages of the two kinds alternate, so that what else changes meanwhile falls on both. The increase of the round trip
//! is that above its mean while the line is idle, a reflector at a time; a second's mean is one value, since the round
//! trips within a second are not independent of each other. Where the load is the user's own traffic, which nobody ends,
//! the least round trip stands for the idle line's.

mod factor;

use std::collections::BTreeMap;

pub use factor::Factor;
use serde::Serialize;
use weir_rate_control::FIRST_CONNECTION;
use weir_speedtest::figures::mean;

use crate::{Command, LATE_NS, View};

/// How a shaper is to be proved.
#[derive(Clone, Copy, Debug)]
pub struct ProverSettings {
    /// How many times each kind of stage under load comes.
    pub rounds: usize,
    /// How long each stage is measured, in ns.
    pub measure_ns: u64,
    /// The share of throughput, 0 to 1, that the shaper may cost.
    pub max_cost: f64,
    /// Nobody makes a load, and nobody ends it: the line is never idle.
    pub own_traffic: bool,
    /// The program that measures takes a command that loads the line (`--run`).
    pub takes_commands: bool,
}

/// What is measured in a stretch of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Under load, without the shaper.
    Before,
    /// Under load, with the shaper.
    After,
    /// Without load and without the shaper.
    Idle,
}

/// Result of a measurement, under the names of `weir shape --prove --json`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Proof {
    /// Mean round trip of the idle line.
    pub idle_ms: f64,
    /// Mean increase of the round trip under load, without the shaper.
    pub before_ms: f64,
    /// The same with the shaper.
    pub after_ms: f64,
    /// What the shaper made of the increase.
    pub factor: Factor,
    /// Traffic under load, both directions together, without the shaper: on the way up what is sent into the line.
    pub before_mbps: f64,
    /// The same with the shaper.
    pub after_mbps: f64,
    /// Share of it that the shaper costs; below 0 if it gains.
    pub cost: f64,
    /// How late the shaper's own process was at worst while it shaped: a busy machine's part of `after_ms`.
    pub late_ms: f64,
    /// Why the shaper is undone; `None` if it helps.
    pub verdict: Option<String>,
}

/// Leads a shaper through the stages. It is shown views, and says what is to be done.
#[derive(Debug)]
pub struct Prover {
    settings: ProverSettings,
    stages: Vec<Stage>,
    /// Number of the present stage; none before the first view.
    stage: Option<usize>,
    began_ns: u64,
    first_ns: Option<u64>,
    loaded: bool,
    late_ns: u64,
    /// Whether a rate was ever set in the stages with the shaper.
    acted: bool,
    seen: [Seen; 3],
}

/// What a kind of stage showed.
#[derive(Debug, Default)]
struct Seen {
    /// When a probe left, in ns; its round trip, in ms; its source.
    delays: Vec<(u64, f64, u32)>,
    /// Traffic of both ways together, and of the way out.
    loads_mbps: Vec<f64>,
    up_mbps: Vec<f64>,
}

impl Stage {
    /// Time until the line is in the state that is to be measured, in ns.
    const fn settling_ns(self) -> u64 {
        match self {
            Self::Before | Self::Idle => SETTLE_OPEN_NS,
            Self::After => SETTLE_SHAPED_NS,
        }
    }
}

impl Prover {
    /// A prover that has seen nothing yet.
    #[must_use]
    pub fn new(settings: ProverSettings) -> Self {
        let mut stages = [Stage::Before, Stage::After].repeat(settings.rounds);
        if !settings.own_traffic {
            stages.push(Stage::Idle);
        }
        Self {
            settings,
            stages,
            stage: None,
            began_ns: 0,
            first_ns: None,
            loaded: settings.own_traffic,
            late_ns: 0,
            acted: false,
            seen: Default::default(),
        }
    }

    /// How long it takes from the moment at which the load is there, in ns.
    #[must_use]
    pub fn total_ns(&self) -> u64 {
        self.stages.iter().map(|stage| stage.settling_ns() + self.settings.measure_ns).sum()
    }

    /// What will be measured, in a line for people.
    #[must_use]
    pub fn plan(&self) -> String {
        let seconds = |ns: u64| ns as f64 / 1e9;
        let stage_s = |stage: Stage| seconds(stage.settling_ns() + self.settings.measure_ns);
        let what = match self.settings.own_traffic {
            true => "your own traffic, which should fill the line",
            false => "then idle",
        };
        let times = match self.settings.rounds {
            1 => "once".to_owned(),
            rounds => format!("{rounds} times"),
        };
        format!(
            "measuring for {:.0} s: {times} {} s without and {} s with it, {what}",
            seconds(self.total_ns()),
            stage_s(Stage::Before),
            stage_s(Stage::After),
        )
    }

    /// Refuses a run that would end before the measurement is complete.
    ///
    /// # Errors
    /// If `time_ns`, how long the shaper is to run, is shorter.
    pub fn fits(&self, time_ns: Option<u64>) -> Result<(), String> {
        let total_ns = self.total_ns();
        if time_ns.is_none_or(|time_ns| time_ns >= total_ns) {
            return Ok(());
        }
        let total_s = total_ns as f64 / 1e9;
        Err(format!("--time is shorter than the {total_s:.0} s that the measurement takes"))
    }

    /// Whether the load is no longer wanted.
    #[must_use]
    pub fn is_past_load(&self) -> bool {
        self.has_ended() || self.present() == Some(Stage::Idle)
    }

    /// Whether everything is measured.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.stage.is_some_and(|stage| stage >= self.stages.len())
    }

    fn present(&self) -> Option<Stage> {
        self.stages.get(self.stage?).copied()
    }

    /// Takes a view in, and says what the shaper is to do.
    pub fn step<S>(&mut self, view: &View<S>) -> Command {
        let now = view.t_ns;
        let load_bps: u64 = view.sides.iter().flatten().map(|side| side.load_bps).sum();
        let load_mbps = load_bps as f64 / 1e6;
        self.acted |= self.present() == Some(Stage::After)
            && view.sides.iter().flatten().any(|side| side.rate_bps.is_some());
        if self.stage == Some(0) && !self.loaded {
            self.await_load(load_mbps, now);
        }
        let ends_ns = self
            .present()
            .map(|stage| self.began_ns + stage.settling_ns() + self.settings.measure_ns);
        if ends_ns.is_none_or(|ends_ns| now >= ends_ns) {
            self.stage = Some(self.stage.map_or(0, |stage| stage + 1));
            self.began_ns = now;
            return if self.present() == Some(Stage::After) {
                Command::Shape
            } else {
                Command::Open
            };
        }
        self.measure(view, load_mbps);
        Command::Continue
    }

    /// The first stage begins once there is traffic: a busy machine starts the load late.
    fn await_load(&mut self, load_mbps: f64, now: u64) {
        let first_ns = *self.first_ns.get_or_insert(now);
        self.loaded = load_mbps >= MIN_MBPS || now >= first_ns + MAX_START_NS;
        self.began_ns = now;
    }

    fn measure<S>(&mut self, view: &View<S>, load_mbps: f64) {
        let Some(stage) = self.present() else { return };
        let begins_ns = self.began_ns + stage.settling_ns();
        if view.t_ns < begins_ns {
            return;
        }
        let seen = &mut self.seen[stage as usize];
        let counts =
            |(sent, _, source): &&(u64, u64, u32)| *sent >= begins_ns && *source < FIRST_CONNECTION;
        let delays = view.delays.iter().filter(counts);
        seen.delays.extend(delays.map(|&(sent, rtt, source)| (sent, rtt as f64 / 1e6, source)));
        seen.loads_mbps.push(load_mbps);
        let up_bps = view.sides[0].as_ref().map_or(0, |side| side.load_bps);
        seen.up_mbps.push(up_bps as f64 / 1e6);
        if stage == Stage::After {
            self.late_ns = self.late_ns.max(view.late_ns);
        }
    }

    /// Result of the measurement.
    ///
    /// # Errors
    /// If nothing can be said: why.
    pub fn proof(&self) -> Result<Proof, String> {
        let [before_mbps, after_mbps, idle_mbps] =
            [Stage::Before, Stage::After, Stage::Idle].map(|stage| self.load_mbps(stage));
        if self.settings.own_traffic && before_mbps < MIN_OWN_MBPS {
            let or_command = self.in_reach(", or a command that loads the line with `--run`");
            return Err(format!(
                "your own traffic was {before_mbps:.2} Mbit/s, which shows nothing: name a `weir serve` with \
                 `--server`{or_command}"
            ));
        }
        if before_mbps < MIN_MBPS || before_mbps < MIN_LOAD_RATIO * idle_mbps {
            let by_command = self.in_reach("; `--run` takes a command that loads it");
            return Err(format!(
                "the line was not loaded: {before_mbps:.2} Mbit/s crossed it, and {idle_mbps:.2} Mbit/s while it was to \
                 be idle{by_command}"
            ));
        }
        let idle = self.idle();
        let idle_ms = mean(&idle.values().copied().collect::<Vec<_>>());
        let Some(idle_ms) = idle_ms else {
            return Err(
                "nobody answered probes while the line was idle: name a reflector that does"
                    .to_owned(),
            );
        };
        let [before, after] =
            [Stage::Before, Stage::After].map(|stage| self.increases(stage, &idle));
        let (Some(before_ms), Some(after_ms)) = (mean(&before), mean(&after)) else {
            return Err("nobody who answered probes on the idle line did so under load: name a reflector that does"
                .to_owned());
        };
        let factor = Factor::of(&before, &after);
        let cost = 1.0 - after_mbps / before_mbps;
        Ok(Proof {
            idle_ms,
            before_ms,
            after_ms,
            factor,
            before_mbps,
            after_mbps,
            cost,
            late_ms: self.late_ns as f64 / 1e6,
            verdict: self.verdict([before_ms, after_ms], factor, cost),
        })
    }

    /// Advice on `--run`, where it can be followed.
    const fn in_reach(&self, advice: &'static str) -> &'static str {
        if self.settings.takes_commands { advice } else { "" }
    }

    fn load_mbps(&self, stage: Stage) -> f64 {
        mean(&self.seen[stage as usize].loads_mbps).unwrap_or(0.0)
    }

    /// The round trip of the idle line by source, in ms.
    fn idle(&self) -> BTreeMap<u32, f64> {
        let own = self.settings.own_traffic;
        let stages: &[Stage] = if own { &[Stage::Before, Stage::After] } else { &[Stage::Idle] };
        let delays = stages.iter().flat_map(|&stage| &self.seen[stage as usize].delays);
        let mut by_source: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
        for &(_, rtt_ms, source) in delays {
            by_source.entry(source).or_default().push(rtt_ms);
        }
        let usual = |rtts: &[f64]| match own {
            true => rtts.iter().copied().reduce(f64::min),
            false => mean(rtts),
        };
        by_source.iter().filter_map(|(&source, rtts)| Some((source, usual(rtts)?))).collect()
    }

    /// The mean increase of each second, in ms.
    fn increases(&self, stage: Stage, idle: &BTreeMap<u32, f64>) -> Vec<f64> {
        let mut seconds: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
        for (sent, rtt_ms, source) in &self.seen[stage as usize].delays {
            if let Some(idle_ms) = idle.get(source) {
                seconds.entry(sent / 1_000_000_000).or_default().push(rtt_ms - idle_ms);
            }
        }
        seconds.values().filter_map(|values| mean(values)).collect()
    }

    /// Why the shaper is undone; `None` if it helps.
    fn verdict(
        &self,
        [before_ms, after_ms]: [f64; 2],
        factor: Factor,
        cost: f64,
    ) -> Option<String> {
        if !self.acted {
            return Some(
                "it held nothing back: no rate was set while it shaped, since nothing showed a queue of the line's"
                    .to_owned(),
            );
        }
        let [before, after] = [before_ms, after_ms].map(tenths);
        let increase = format!("the increase was {before} ms without it, {after} ms with it");
        if after_ms >= before_ms {
            return Some(format!("latency did not improve: {increase}"));
        }
        // A few values have no interval, and where nothing is left of the increase there is no factor.
        let is_sure = factor.low.or(factor.factor).is_none_or(|low| low >= MIN_FACTOR);
        if before_ms - after_ms < MIN_GAIN_MS || !is_sure {
            return Some(format!(
                "latency hardly improved: {increase}, factor {}; {MIN_GAIN_MS} ms less and a factor that is surely \
                 {MIN_FACTOR} are asked for",
                factor.in_words()
            ));
        }
        let most = self.settings.max_cost;
        let [before_up, after_up] = [Stage::Before, Stage::After]
            .map(|stage| mean(&self.seen[stage as usize].up_mbps).unwrap_or(0.0));
        let sent = if after_up < before_up { SENT } else { "" };
        (cost > most).then(|| {
            format!(
                "throughput fell by {:.1}%, and {:.1}% is allowed{sent}",
                cost * 100.0,
                most * 100.0
            )
        })
    }
}

impl Proof {
    /// What a reader should know of the measurement itself: that the shaper's process was late.
    #[must_use]
    pub fn remark(&self) -> Option<String> {
        (self.late_ms >= LATE_NS as f64 / 1e6).then(|| {
            format!("this machine is busy: the shaper itself was up to {:.0} ms late", self.late_ms)
        })
    }

    /// The figures in lines for people.
    #[must_use]
    pub fn lines(&self) -> [String; 4] {
        // Nothing is `+0.0`, without a minus.
        let percent = format!("{:+.1}", (-self.cost * 1000.0).round() / 10.0 + 0.0);
        [
            format!("round trip, idle     {:.1} ms", self.idle_ms),
            format!(
                "increase under load  {} ms without it, {} ms with it",
                tenths(self.before_ms),
                tenths(self.after_ms)
            ),
            format!("factor               {}", self.factor.in_words()),
            format!(
                "throughput           {:.2} Mbit/s without it, {:.2} Mbit/s with it ({}%)",
                self.before_mbps, self.after_mbps, percent
            ),
        ]
    }
}

/// A number with one digit after the point, without a minus where that is 0.
fn tenths(value: f64) -> String {
    format!("{:.1}", (value * 10.0).round() / 10.0 + 0.0)
}

/// Time until the queue of a bloated line is full, or empty again, in ns.
const SETTLE_OPEN_NS: u64 = 3_000_000_000;
/// Time in which a controller finds the rate of an unknown line, in ns; docs/shape.md has figures.
const SETTLE_SHAPED_NS: u64 = 5_000_000_000;
/// How long a load that was started is waited for, in ns; if it never comes, the proof says so.
const MAX_START_NS: u64 = 20_000_000_000;
const MIN_MBPS: f64 = 0.1;
/// Traffic that may fill a line: a call alone, or a page now and then, is less.
const MIN_OWN_MBPS: f64 = 1.0;
/// What a shaper that helps takes off the increase at least, and by what factor: less is not felt, and may be chance.
const MIN_GAIN_MS: f64 = 1.0;
const MIN_FACTOR: f64 = 1.1;
/// Said where less left on the way up: of a load that heeds no drops the line itself may have dropped as much.
const SENT: &str =
    "; on the way up that is what was sent, of which the line may have dropped a part";
/// A loaded line carries so much more than an idle one.
const MIN_LOAD_RATIO: f64 = 2.0;

#[cfg(test)]
mod tests;
