//! The control law of cake-autorate as its project publishes it, to compare with.
//!
//! After the project's description and default configuration (`defaults.sh` of version 3.5.0): a sample is
//! *delayed* if it lies 30 ms above its baseline; three delayed of the last six are bufferbloat, which
//! lowers the rate by up to a quarter, at most every 300 ms; a load of more than 75 % raises it by up to 4 %
//! every 200 ms; otherwise it drifts towards its base. Written afresh from that; what is left out is what a
//! controller alone does not need: reflector rotation, sleep, logs.

use std::collections::VecDeque;

use weir_core::{Duration, Rate, Time};

use crate::contract::{
    Bounds, Controller, Decision, Delay, FIRST_CONNECTION, Reason, Side, State, Traffic,
};
use crate::quantities::{BitsPerSecond, Seconds};

/// The published law of cake-autorate, which must be told least, usual and greatest rates.
#[derive(Clone, Debug)]
pub struct CakeAutorate {
    sides: [SideControl; 2],
    baselines: Vec<Baseline>,
    /// Bytes at the last look, by side, and when that was.
    looked: Option<(Time, [u64; 2])>,
    heard: Option<Time>,
    /// When a reflector was last heard.
    reflectors_heard: Option<Time>,
    started: bool,
}

/// Delays of a source without a queue; in ms, as the law's defaults are.
#[derive(Clone, Debug)]
struct Baseline {
    source: u32,
    /// Delay of the way there and of the way back.
    ways_ms: [f64; 2],
}

#[derive(Clone, Debug)]
struct SideControl {
    bounds: Bounds,
    rate: BitsPerSecond,
    /// Rate at which traffic crossed the line up to the last look.
    achieved: BitsPerSecond,
    /// Whether no decision has used that rate yet.
    is_fresh: bool,
    /// Delays of the last samples above the baseline.
    deltas_ms: VecDeque<f64>,
    /// When the rate was last lowered for bufferbloat.
    bloated_at: Option<Time>,
    /// When the rate was last changed, or last drifted to its base.
    drifted_at: Time,
    state: State,
    reason: (Reason, f64),
    /// Whether rate or state changed since the last tick.
    is_changed: bool,
}

impl CakeAutorate {
    /// The law with these rates of egress and ingress.
    #[must_use]
    pub fn new(bounds: [Bounds; 2]) -> Self {
        Self {
            sides: bounds.map(SideControl::new),
            baselines: Vec::new(),
            looked: None,
            heard: None,
            reflectors_heard: None,
            started: false,
        }
    }

    /// Measures the load since the last look, if that is long enough ago.
    fn look(&mut self, traffic: &[Option<Traffic>; 2], now: Time) {
        let bytes = traffic.map(|side| side.map_or(0, |side| side.bytes));
        let Some((then, before)) = self.looked else {
            self.looked = Some((now, bytes));
            return;
        };
        let took = now.since(then);
        if took < LOOK_EVERY {
            return;
        }
        self.looked = Some((now, bytes));
        for (side, control) in self.sides.iter_mut().enumerate() {
            let crossed = (bytes[side] - before[side]) as f64;
            control.achieved = BitsPerSecond::of_bytes(crossed, Seconds::from(took));
            control.is_fresh = true;
        }
    }
}

impl Controller for CakeAutorate {
    fn on_sent(&mut self, _: u32, _: Time) {}

    fn on_delay(&mut self, delay: &Delay, now: Time) {
        // The law knows reflectors only; where none answers, connections are better than nothing.
        let is_connection = delay.source >= FIRST_CONNECTION;
        let is_answered = self.reflectors_heard.is_some_and(|at| now.since(at) < REFLECTORS_SILENT);
        if is_connection && (is_answered || !delay.by.is_exact()) {
            return;
        }
        if !is_connection {
            self.reflectors_heard = Some(now);
        }
        self.heard = Some(now);
        // Where only the round trip is known each way counts as half of it.
        let half_ms = delay.rtt.as_millis_f64() / 2.0;
        let ways_ms = delay
            .one_way
            .map_or([half_ms; 2], |way| [way.there_ns as f64 / 1e6, way.back_ns as f64 / 1e6]);
        let known = self.baselines.iter().position(|known| known.source == delay.source);
        let place = known.unwrap_or_else(|| {
            let first = Baseline { source: delay.source, ways_ms: [FIRST_BASELINE_MS; 2] };
            self.baselines.push(first);
            self.baselines.len() - 1
        });
        for (side, control) in self.sides.iter_mut().enumerate() {
            let (way_ms, base_ms) = (ways_ms[side], &mut self.baselines[place].ways_ms[side]);
            let gain = if way_ms >= *base_ms { BASELINE_RISE_GAIN } else { BASELINE_FALL_GAIN };
            *base_ms += (way_ms - *base_ms) * gain;
            control.on_delta(way_ms - *base_ms, now);
        }
    }

    fn on_tick(
        &mut self,
        traffic: &[Option<Traffic>; 2],
        now: Time,
        decide: &mut dyn FnMut(Decision),
    ) {
        self.look(traffic, now);
        if self.heard.is_some_and(|heard| now.since(heard) > GIVE_UP) {
            for control in &mut self.sides {
                let reason = (Reason::Silence, GIVE_UP.as_secs_f64());
                control.set(bps(control.bounds.min_bps), State::Stalled, reason);
            }
        }
        for side in Side::ALL {
            let control = &mut self.sides[side as usize];
            if traffic[side as usize].is_none() || (self.started && !control.is_changed) {
                continue;
            }
            control.is_changed = false;
            let (reason, value) = if self.started { control.reason } else { (Reason::Start, 0.0) };
            let rate = Some(control.rate.to_rate());
            decide(Decision { side, rate, state: control.state, reason, value });
        }
        self.started = true;
    }

    fn probe_every(&self) -> Option<Duration> {
        Some(PROBE_EVERY)
    }
}

impl SideControl {
    fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            rate: bps(bounds.base_bps),
            achieved: BitsPerSecond::ZERO,
            is_fresh: false,
            deltas_ms: VecDeque::new(),
            bloated_at: None,
            drifted_at: Time::ZERO,
            state: State::Idle,
            reason: (Reason::Start, 0.0),
            is_changed: false,
        }
    }

    /// Decides by a sample that lies `delta_ms` above its baseline.
    fn on_delta(&mut self, delta_ms: f64, now: Time) {
        self.deltas_ms.push_back(delta_ms);
        if self.deltas_ms.len() > WINDOW {
            self.deltas_ms.pop_front();
        }
        // On a slow line a packet in front of the probe is no bufferbloat.
        let delayed_ms = DELAYED_MS + self.rate.time_for_bits(FULL_PACKET_BITS).as_millis();
        let is_bloated = self.deltas_ms.iter().filter(|&&one| one > delayed_ms).count() >= BLOATED;
        let mean_ms = self.deltas_ms.iter().sum::<f64>() / self.deltas_ms.len() as f64;
        let rested = self.bloated_at.is_none_or(|at| now.since(at) > REST);
        if is_bloated {
            if rested {
                let span_ms = FULL_CUT_DELAY_MS - DELAYED_MS;
                let share = ((mean_ms - delayed_ms) / span_ms).clamp(0.0, 1.0);
                let factor = MIN_CUT_FACTOR - share * (MIN_CUT_FACTOR - MAX_CUT_FACTOR);
                self.bloated_at = Some(now);
                self.drifted_at = now;
                self.set(self.rate * factor, State::BackingOff, (Reason::Delay, mean_ms));
            }
        } else if self.achieved > self.rate * HIGH_LOAD_SHARE {
            if self.is_fresh && rested {
                self.is_fresh = false;
                let span_ms = DELAYED_MS - FULL_RAISE_DELAY_MS;
                let share = ((delayed_ms - mean_ms) / span_ms).clamp(0.0, 1.0);
                let factor = MIN_RAISE_FACTOR + share * (MAX_RAISE_FACTOR - MIN_RAISE_FACTOR);
                self.drifted_at = now;
                let percent = (factor - 1.0) * 100.0;
                self.set(self.rate * factor, State::Probing, (Reason::Probe, percent));
            }
        } else if now.since(self.drifted_at) > DRIFT_EVERY {
            self.drifted_at = now;
            let base = bps(self.bounds.base_bps);
            let rate = if self.rate > base {
                (self.rate * DRIFT_DOWN_FACTOR).max(base)
            } else {
                (self.rate * DRIFT_UP_FACTOR).min(base)
            };
            let state = if self.achieved < ACTIVE_LOAD { State::Idle } else { State::Loaded };
            self.set(rate, state, (Reason::Age, DRIFT_EVERY.as_secs_f64()));
        }
    }

    fn set(&mut self, rate: BitsPerSecond, state: State, reason: (Reason, f64)) {
        let rate = rate.max(bps(self.bounds.min_bps)).min(bps(self.bounds.max_bps));
        self.is_changed |= (rate, state) != (self.rate, self.state);
        (self.rate, self.state, self.reason) = (rate, state, reason);
    }
}

fn bps(bps: u64) -> BitsPerSecond {
    Rate::from_bps(bps).into()
}

// All of these are the defaults of version 3.5.0.

/// Time between two probes: six reflectors, each every 300 ms.
const PROBE_EVERY: Duration = Duration::from_millis(50);
/// After so long without an answer of any reflector none answers.
const REFLECTORS_SILENT: Duration = Duration::from_secs(3);
/// Time between two measurements of the load.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Baseline of a source before its first answer.
const FIRST_BASELINE_MS: f64 = 100.0;
/// Weight of a delay above the baseline in it: it rises slowly, as a queue must not become part of it.
const BASELINE_RISE_GAIN: f64 = 0.001;
/// Weight of a delay below the baseline in it: it falls at once.
const BASELINE_FALL_GAIN: f64 = 0.9;
/// Delay above the baseline from which on a sample counts as delayed.
const DELAYED_MS: f64 = 30.0;
/// Samples that a decision looks at.
const WINDOW: usize = 6;
/// Delayed samples among them that are bufferbloat.
const BLOATED: usize = 3;
/// Time after bufferbloat for which the rate is neither lowered again nor raised.
const REST: Duration = Duration::from_millis(300);
/// Mean delay above the baseline at which the rate is lowered most.
const FULL_CUT_DELAY_MS: f64 = 60.0;
/// Factor of the rate at the least bufferbloat.
const MIN_CUT_FACTOR: f64 = 0.99;
/// Factor of the rate at the worst bufferbloat.
const MAX_CUT_FACTOR: f64 = 0.75;
/// Mean delay above the baseline up to which the rate is raised most.
const FULL_RAISE_DELAY_MS: f64 = 10.0;
/// Factor of the rate under load when samples are all but delayed.
const MIN_RAISE_FACTOR: f64 = 1.0;
/// Factor of the rate under load when nothing is delayed.
const MAX_RAISE_FACTOR: f64 = 1.04;
/// Share of the rate from which on the load asks for more.
const HIGH_LOAD_SHARE: f64 = 0.75;
/// Time between two steps back to the base rate.
const DRIFT_EVERY: Duration = Duration::from_secs(1);
/// Factor of a rate above its base in a step back.
const DRIFT_DOWN_FACTOR: f64 = 0.99;
/// Factor of a rate below its base in a step back.
const DRIFT_UP_FACTOR: f64 = 1.01;
/// Load below which a side counts as idle.
const ACTIVE_LOAD: BitsPerSecond = BitsPerSecond(2e6);
/// Time without any answer after which the rates become the least.
const GIVE_UP: Duration = Duration::from_secs(10);
/// Length of a full packet: 1500 bytes of IP with an Ethernet header.
const FULL_PACKET_BITS: f64 = 1514.0 * 8.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::Measured;

    const LINE: Bounds = Bounds { min_bps: 5_000_000, base_bps: 20_000_000, max_bps: 80_000_000 };

    /// Rates of egress in kbit/s whenever they change, under a load of `load` of the rate, with answers
    /// every 50 ms that take 20 ms and what `extra_ms` says of the time in ms.
    fn run(load: f64, until_ms: u64, extra_ms: impl Fn(u64) -> u64) -> Vec<(u64, u64)> {
        let mut law = CakeAutorate::new([LINE; 2]);
        let (mut bytes, mut rates) = (0.0, Vec::new());
        for now_ms in (0..until_ms).step_by(10) {
            let now = Time::from_millis(now_ms);
            bytes += load * law.sides[0].rate.0 / 8.0 * 0.01;
            if now_ms % 50 == 0 {
                let rtt = Duration::from_millis(20 + 2 * extra_ms(now_ms));
                let source = (now_ms / 50 % 6) as u32;
                law.on_delay(
                    &Delay { source, sent: now, rtt, one_way: None, by: Measured::Answer },
                    now,
                );
            }
            if now_ms % 20 == 0 {
                let traffic = Traffic { bytes: bytes as u64, packets: 0, backlog_bytes: 0 };
                law.on_tick(&[Some(traffic), None], now, &mut |decision| {
                    rates.push((now_ms, decision.rate.unwrap().as_bps() / 1000));
                });
            }
        }
        rates
    }

    #[test]
    fn a_high_load_raises_the_rate_by_four_per_cent_every_200_ms() {
        // Decided by the first sample behind each look.
        let rates = run(1.0, 900, |_| 0);
        assert_eq!(rates[0], (0, 20_000));
        assert_eq!(rates[1..], [(260, 20_800), (460, 21_632), (660, 22_497), (860, 23_397)]);
    }

    #[test]
    fn bufferbloat_takes_three_delayed_samples_and_lowers_by_a_quarter_every_300_ms() {
        // A full window of 60 ms and more; baselines have long settled.
        let rates = run(0.5, 11_000, |ms| if ms >= 10_000 { 100 } else { 0 });
        let after: Vec<_> = rates.into_iter().filter(|(ms, _)| *ms >= 10_000).collect();
        // The mean of three delayed samples of six is 50 ms.
        assert_eq!(after[0], (10_100, 16_704));
        assert_eq!(after[1..3], [(10_460, 12_528), (10_800, 9_396)]);
    }

    #[test]
    fn without_load_the_rate_returns_to_its_base_by_one_per_cent_a_second() {
        let rates = run(0.1, 20_000, |ms| if ms < 2_000 { 100 * (ms / 1_000) } else { 0 });
        let last = rates.last().unwrap().1;
        assert!(last > 8_000 && last <= 20_000, "{last}");
        let steps: Vec<f64> = rates
            .windows(2)
            .filter(|pair| pair[0].0 > 4_000)
            .map(|pair| pair[1].1 as f64 / pair[0].1 as f64)
            .collect();
        assert!(steps.iter().all(|step| (step - 1.01).abs() < 0.001), "{steps:?}");
    }
}
