//! The published law of cake-autorate, to compare with.
//!
//! After the project's description and default configuration (`defaults.sh` of version 3.5.0): a sample is
//! *delayed* if it lies 30 ms above its baseline; three delayed of the last six are bufferbloat, which
//! lowers the rate by up to a quarter, at most every 300 ms; a load of more than 75 % raises it by up to 4 %
//! every 200 ms; otherwise it drifts towards its base. Written afresh from that; what is left out is what a
//! controller alone does not need: reflector rotation, sleep, logs.

use std::collections::VecDeque;

use weir_core::{Duration, Rate, Time};

use crate::contract::{Bounds, Controller, Decision, Delay, Reason, Side, State, Traffic};

/// The published law of cake-autorate, which must be told least, usual and greatest rates.
#[derive(Clone, Debug)]
pub struct CakeAutorate {
    lines: [Line; 2],
    /// Source, and the baselines of its two ways in ms.
    baselines: Vec<(u32, [f64; 2])>,
    /// Bytes at the last look, by side, and when that was.
    looked: Option<(Time, [u64; 2])>,
    heard: Option<Time>,
    started: bool,
}

#[derive(Clone, Debug)]
struct Line {
    bounds: Bounds,
    /// Rate of the side, in bit/s.
    rate: f64,
    /// Bit/s that crossed the line at the last look, and whether that is news.
    achieved: f64,
    fresh: bool,
    /// Delays of the last samples above the baseline, in ms.
    deltas: VecDeque<f64>,
    bloated_at: Option<Time>,
    drifted_at: Time,
    state: State,
    reason: (Reason, f64),
    changed: bool,
}

impl CakeAutorate {
    /// The law with these rates of egress and ingress.
    #[must_use]
    pub fn new(bounds: [Bounds; 2]) -> Self {
        Self {
            lines: bounds.map(Line::new),
            baselines: Vec::new(),
            looked: None,
            heard: None,
            started: false,
        }
    }

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
        for (side, line) in self.lines.iter_mut().enumerate() {
            line.achieved = (bytes[side] - before[side]) as f64 * 8.0 / took.as_secs_f64();
            line.fresh = true;
        }
    }
}

impl Controller for CakeAutorate {
    fn on_sent(&mut self, _: u32, _: Time) {}

    fn on_delay(&mut self, delay: &Delay, now: Time) {
        self.heard = Some(now);
        // Where only the round trip is known each way counts as half of it.
        let half = delay.rtt.as_millis_f64() / 2.0;
        let ways = delay
            .one_way
            .map_or([half; 2], |way| [way.there_ns as f64 / 1e6, way.back_ns as f64 / 1e6]);
        let known = self.baselines.iter().position(|(source, _)| *source == delay.source);
        let place = known.unwrap_or_else(|| {
            self.baselines.push((delay.source, [FIRST_BASELINE_MS; 2]));
            self.baselines.len() - 1
        });
        for (side, line) in self.lines.iter_mut().enumerate() {
            let baseline = &mut self.baselines[place].1[side];
            let gain = if ways[side] >= *baseline { BASELINE_UP } else { BASELINE_DOWN };
            *baseline += (ways[side] - *baseline) * gain;
            line.on_delta(ways[side] - *baseline, now);
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
            for line in &mut self.lines {
                line.set(line.bounds.min_bps as f64, State::Stalled, (Reason::Silence, 10.0));
            }
        }
        for side in Side::ALL {
            let line = &mut self.lines[side as usize];
            if traffic[side as usize].is_none() || (self.started && !line.changed) {
                continue;
            }
            line.changed = false;
            let (reason, value) = if self.started { line.reason } else { (Reason::Start, 0.0) };
            let rate = Some(Rate::from_bps(line.rate as u64));
            decide(Decision { side, rate, state: line.state, reason, value });
        }
        self.started = true;
    }

    fn probe_every(&self) -> Option<Duration> {
        Some(PROBE_EVERY)
    }
}

impl Line {
    fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            rate: bounds.base_bps as f64,
            achieved: 0.0,
            fresh: false,
            deltas: VecDeque::new(),
            bloated_at: None,
            drifted_at: Time::ZERO,
            state: State::Idle,
            reason: (Reason::Start, 0.0),
            changed: false,
        }
    }

    /// Takes a sample that lies `delta` ms above its baseline.
    fn on_delta(&mut self, delta: f64, now: Time) {
        self.deltas.push_back(delta);
        if self.deltas.len() > WINDOW {
            self.deltas.pop_front();
        }
        // On a slow line a packet in front of the probe is no bufferbloat.
        let packet = FULL_PACKET_BITS / self.rate * 1e3;
        let delayed = DELAYED_MS + packet;
        let bloated = self.deltas.iter().filter(|&&one| one > delayed).count() >= BLOATED;
        let mean = self.deltas.iter().sum::<f64>() / self.deltas.len() as f64;
        let rested = self.bloated_at.is_none_or(|at| now.since(at) > REST);
        if bloated {
            if rested {
                let share = ((mean - delayed) / (FULL_CUT_DELAY_MS - DELAYED_MS)).clamp(0.0, 1.0);
                let factor = MIN_CUT - share * (MIN_CUT - MAX_CUT);
                self.bloated_at = Some(now);
                self.drifted_at = now;
                self.set(self.rate * factor, State::BackingOff, (Reason::Delay, mean));
            }
        } else if self.achieved > HIGH_LOAD * self.rate {
            if self.fresh && rested {
                self.fresh = false;
                let share = ((delayed - mean) / (DELAYED_MS - FULL_RAISE_DELAY_MS)).clamp(0.0, 1.0);
                let factor = MIN_RAISE + share * (MAX_RAISE - MIN_RAISE);
                self.drifted_at = now;
                let percent = (factor - 1.0) * 100.0;
                self.set(self.rate * factor, State::Probing, (Reason::Probe, percent));
            }
        } else if now.since(self.drifted_at) > DRIFT_EVERY {
            self.drifted_at = now;
            let base = self.bounds.base_bps as f64;
            let rate = if self.rate > base {
                (self.rate * DRIFT_DOWN).max(base)
            } else {
                (self.rate * DRIFT_UP).min(base)
            };
            let state = if self.achieved < ACTIVE_BPS { State::Idle } else { State::Loaded };
            self.set(rate, state, (Reason::Age, DRIFT_EVERY.as_secs_f64()));
        }
    }

    fn set(&mut self, rate: f64, state: State, reason: (Reason, f64)) {
        let rate = rate.clamp(self.bounds.min_bps as f64, self.bounds.max_bps as f64);
        self.changed |= (rate, state) != (self.rate, self.state);
        (self.rate, self.state, self.reason) = (rate, state, reason);
    }
}

// All of these are the defaults of version 3.5.0.

/// Six reflectors, each every 300 ms.
const PROBE_EVERY: Duration = Duration::from_millis(50);
const LOOK_EVERY: Duration = Duration::from_millis(200);
const FIRST_BASELINE_MS: f64 = 100.0;
const BASELINE_UP: f64 = 0.001;
const BASELINE_DOWN: f64 = 0.9;
const DELAYED_MS: f64 = 30.0;
const WINDOW: usize = 6;
const BLOATED: usize = 3;
/// The rest after bufferbloat.
const REST: Duration = Duration::from_millis(300);
/// At this mean delay the rate is lowered most.
const FULL_CUT_DELAY_MS: f64 = 60.0;
const MIN_CUT: f64 = 0.99;
const MAX_CUT: f64 = 0.75;
/// Mean delay, in ms, up to which the rate is raised most.
const FULL_RAISE_DELAY_MS: f64 = 10.0;
const MIN_RAISE: f64 = 1.0;
const MAX_RAISE: f64 = 1.04;
const HIGH_LOAD: f64 = 0.75;
const DRIFT_EVERY: Duration = Duration::from_secs(1);
const DRIFT_DOWN: f64 = 0.99;
const DRIFT_UP: f64 = 1.01;
const ACTIVE_BPS: f64 = 2_000_000.0;
/// Time without any answer after which the rates become the least.
const GIVE_UP: Duration = Duration::from_secs(10);
/// 1500 bytes of IP with an Ethernet header.
const FULL_PACKET_BITS: f64 = 1514.0 * 8.0;

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: Bounds = Bounds { min_bps: 5_000_000, base_bps: 20_000_000, max_bps: 80_000_000 };

    /// Rates of egress in kbit/s whenever they change, under a load of `load` of the rate, with answers
    /// every 50 ms that take 20 ms and what `extra_ms` says of the time in ms.
    fn run(load: f64, until_ms: u64, extra_ms: impl Fn(u64) -> u64) -> Vec<(u64, u64)> {
        let mut law = CakeAutorate::new([LINE; 2]);
        let (mut bytes, mut rates) = (0.0, Vec::new());
        for now_ms in (0..until_ms).step_by(10) {
            let now = Time::from_millis(now_ms);
            bytes += load * law.lines[0].rate / 8.0 * 0.01;
            if now_ms % 50 == 0 {
                let rtt = Duration::from_millis(20 + 2 * extra_ms(now_ms));
                let source = (now_ms / 50 % 6) as u32;
                law.on_delay(&Delay { source, sent: now, rtt, one_way: None }, now);
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
