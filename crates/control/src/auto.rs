//! Weir's own controller: both sides, and whose queue it is.

use weir_core::{Duration, Time};

use crate::contract::{
    AutoSettings, Bounds, Controller, Decision, Delay, Reason, Side, State, TICK, Traffic,
};
use crate::delays::{Delays, median};
use crate::side::{Facts, SideControl, View, seconds};

/// Finds the rates of both sides by itself.
///
/// It is told nothing of the line. It lets everything through until delays rise under load, measures what
/// the line carries meanwhile, and from then on keeps the shaper a little below that (docs/shaper.md).
#[derive(Clone, Debug)]
pub struct Auto {
    sides: [SideControl; 2],
    delays: Delays,
    /// Differences of delays below this are jitter, in seconds.
    quiet: f64,
    ticked: Option<Time>,
}

impl Auto {
    /// A controller that knows nothing of its line.
    #[must_use]
    pub fn new(settings: &AutoSettings) -> Self {
        let max = [settings.egress_max_bps, settings.ingress_max_bps];
        Self {
            sides: Side::ALL.map(|side| SideControl::new(side, settings.mode, max[side as usize])),
            delays: Delays::default(),
            quiet: QUIET_AT_FIRST,
            ticked: None,
        }
    }

    /// Least, usual and greatest capacity of a side that was seen; `None` before its first congestion.
    #[must_use]
    pub fn learned(&self, side: Side) -> Option<Bounds> {
        self.sides[side as usize].bounds()
    }

    /// Whose a delay may be that is not told apart by the way: true for each side that may have caused it.
    fn suspects(&self, now: Time) -> [bool; 2] {
        let stirring = Side::ALL.map(|side| self.sides[side as usize].is_stirring(now));
        if stirring[0] != stirring[1] {
            return stirring;
        }
        let usage = self.usage();
        let mut suspects = usage.map(|usage| usage >= PRESSING);
        if suspects[1] && self.is_held_back_here(&self.sides[1]) && suspects[0] {
            suspects[1] = false;
        }
        if suspects == [false; 2] {
            let most = usize::from(usage[1] > usage[0]);
            suspects[most] = usage[most] >= NOTICEABLE;
        }
        suspects
    }

    /// The share of each side's rate that is used. Of sides without a rate, the load beside the other's.
    fn usage(&self) -> [f64; 2] {
        let loads = [0, 1].map(|side| self.sides[side].load());
        [0, 1].map(|side| match self.sides[side].rate() {
            Some(rate) => loads[side] / rate,
            None if loads[side] <= 0.0 => 0.0,
            None => loads[side] / loads[0].max(loads[1]) * PRESSING / BESIDE,
        })
    }

    /// Whether packets wait at the ingress shaper and no more arrive than it lets through: then it is not
    /// the line that they waited for.
    fn is_held_back_here(&self, ingress: &SideControl) -> bool {
        let span = ingress.load_span();
        ingress.history.held_back(span) >= HELD_BACK
            && ingress.rate().is_some_and(|rate| ingress.history.load(span) <= rate * AS_MUCH)
    }

    /// Seconds of queue that are this side's, measured and as expected for `now`.
    fn excess(&self, side: Side, suspects: [bool; 2], now: Time) -> (Option<f64>, f64) {
        let control = &self.sides[side as usize];
        let mine = |sample: &crate::delays::Sample| match sample.by_side {
            Some(ways) => ways[side as usize],
            None if suspects[side as usize] => sample.total,
            None => 0.0,
        };
        let samples = || self.delays.latest(SAMPLE_AGE, now);
        let measured = median(samples().map(mine));
        let expected = median(samples().map(|sample| {
            let queue = mine(sample);
            match (side, control.capacity()) {
                // On egress everything that went out since then is known: the queue has grown by it, and
                // the line has carried on.
                (Side::Egress, Some(capacity)) if queue > 0.0 => {
                    let sent = control.history.bytes_between(sample.sent, now).unwrap_or(0.0);
                    let carried = now.since(sample.sent).as_secs_f64();
                    (queue + sent * 8.0 / capacity - carried).max(0.0)
                }
                _ => queue,
            }
        }));
        (measured, expected.unwrap_or(0.0))
    }

    fn threshold(&self, side: Side, now: Time) -> f64 {
        let [own, other] = match side {
            Side::Egress => [&self.sides[0], &self.sides[1]],
            Side::Ingress => [&self.sides[1], &self.sides[0]],
        };
        // A packet of its own side is in front of a probe even on a line that keeps up; one of the other
        // side only if that has traffic.
        let other_packet = match other.state() {
            State::Idle | State::Stalled => 0.0,
            _ => other.packet_time(),
        };
        own.threshold() + own.packet_time() + other_packet + JITTERS * self.delays.jitter(now)
    }

    fn facts(&self, side: Side, elapsed: Duration, now: Time) -> Facts {
        let suspects = self.suspects(now);
        let (excess, expected) = self.excess(side, suspects, now);
        let threshold = self.threshold(side, now);
        let other = &self.sides[1 - side as usize];
        Facts {
            now,
            elapsed,
            excess,
            expected,
            threshold,
            overdue: self.delays.overdue(threshold, now).filter(|_| suspects[side as usize]),
            feedback: self.delays.base(now).unwrap_or(0.0) + TICK.as_secs_f64(),
            silence: self.delays.silence(now),
            may_probe: !matches!(other.state(), State::Probing | State::BackingOff),
        }
    }
}

impl Controller for Auto {
    fn on_sent(&mut self, source: u32, now: Time) {
        self.delays.sent(source, now);
    }

    fn on_delay(&mut self, delay: &Delay, now: Time) {
        self.delays.add(delay, self.quiet, now);
    }

    fn on_tick(
        &mut self,
        traffic: &[Option<Traffic>; 2],
        now: Time,
        decide: &mut dyn FnMut(Decision),
    ) {
        let elapsed = self.ticked.map_or(TICK, |before| now.since(before));
        let first = self.ticked.is_none();
        self.ticked = Some(now);
        let slept = elapsed >= SLEPT;
        if slept {
            self.delays.forget_recent();
        }
        for (control, of_side) in self.sides.iter_mut().zip(traffic) {
            if slept {
                control.history.clear();
            }
            control.history.note(now, of_side.unwrap_or_default());
        }
        let mut rerouted = false;
        for side in Side::ALL {
            if traffic[side as usize].is_none() {
                continue;
            }
            let mut decide = |mut decision: Decision| {
                if first {
                    (decision.reason, decision.value) = (Reason::Start, 0.0);
                }
                rerouted |= decision.reason == Reason::Reroute;
                decide(decision);
            };
            if slept {
                self.sides[side as usize].wake(now, elapsed, &mut decide);
                continue;
            }
            // The sides act one after another: the second sees what the first has decided.
            let facts = self.facts(side, elapsed, now);
            let view = View { facts, delays: &self.delays };
            self.sides[side as usize].tick(&view, &mut decide);
        }
        if rerouted {
            let since = Time::from_nanos(now.as_nanos().saturating_sub(REROUTE_SEEN.as_nanos()));
            self.delays.reroute(since);
        }
        self.quiet =
            Side::ALL.map(|side| self.threshold(side, now)).into_iter().fold(0.0, f64::max);
    }

    fn probe_every(&self) -> Option<Duration> {
        let idle = self.sides.iter().all(|side| matches!(side.state(), State::Idle));
        if idle {
            return Some(PROBE_IDLE);
        }
        let slowest = self.sides.iter().filter_map(SideControl::rate).fold(f64::INFINITY, f64::min);
        Some(seconds(PROBE_BITS / (slowest * PROBE_SHARE)).clamp(TICK, PROBE_IDLE))
    }
}

/// A rate of which so much is used may have made a queue.
const PRESSING: f64 = 0.7;
/// The lower bound of what can.
const NOTICEABLE: f64 = 0.05;
/// Of two sides without a rate the one with so much of the other's load may have made a queue too:
/// acknowledgements are a twentieth of a download, a fifth where a frame is that small.
const BESIDE: f64 = 0.25;
/// Packets waited here at so many ticks ...
const HELD_BACK: f64 = 0.8;
/// ... and no more than this share of the rate arrived.
const AS_MUCH: f64 = 1.03;
/// Samples older than this tell nothing of now.
const SAMPLE_AGE: Duration = Duration::from_millis(500);
/// So many mean differences of successive samples: for noise of any usual shape fewer than one sample in a
/// hundred lies beyond, and the middle of three far fewer.
const JITTERS: f64 = 3.0;
/// Until something is known: the jitter of a wireless LAN.
const QUIET_AT_FIRST: f64 = 0.005;
/// Ticks that stay out for so long were slept through.
const SLEPT: Duration = Duration::from_secs(1);
/// The span over which the excess did not move.
const REROUTE_SEEN: Duration = Duration::from_millis(400);
/// Between two probes on an idle line: five a second keep the baselines.
const PROBE_IDLE: Duration = Duration::from_millis(200);
/// An echo with 56 bytes of payload on Ethernet.
const PROBE_BITS: f64 = 122.0 * 8.0;
/// Probes take no more of the slowest line.
const PROBE_SHARE: f64 = 0.02;
