//! A source of delays: its baselines, its jitter, and its samples above them.

use weir_core::{Duration, Time};

use crate::baseline::Baseline;
use crate::contract::{Delay, FIRST_CONNECTION, Measured, OneWay, Side};
use crate::quantities::Seconds;

/// Who tells delays, and what is known of it.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub id: u32,
    /// Whether the source is probed when there is need, not only heard of in the user's traffic.
    pub probed: bool,
    /// Whether it has told more than upper bounds.
    pub told: bool,
    pub rtt: Baseline,
    /// Baselines of the two ways, where the source tells its own time.
    pub ways: Option<[Baseline; 2]>,
    /// Mean difference of successive samples.
    pub jitter: Seconds,
    /// Excess of the last sample.
    pub last: Seconds,
    /// Share of its latest samples that lie far from the middle of the others': 0 to 1.
    pub odd_share: f64,
    pub heard: Time,
}

/// A delay above its source's baseline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sample {
    pub delay: Delay,
    /// Whether the sample's source is probed.
    pub probed: bool,
    /// When it left the shaper.
    pub sent: Time,
    /// When it was back.
    pub arrived: Time,
    /// Excess above the baseline, both ways together.
    pub total: Seconds,
    /// Excess above the baseline by side, where the source tells its own time.
    pub by_side: Option<[Seconds; 2]>,
}

impl Sample {
    /// The sample less what its answer may have been kept back for.
    pub fn at_least(&self) -> Self {
        let less = |excess: Seconds| (excess - KEPT_BACK).max(Seconds::ZERO);
        let by_side = self.by_side.map(|[there, back]| [less(there), back]);
        Self { total: less(self.total), by_side, ..*self }
    }

    /// Excess on the way of `side`; all of it where the ways are not told apart.
    pub fn of(&self, side: Side) -> Seconds {
        self.by_side.map_or(self.total, |ways| ways[side as usize])
    }
}

impl Source {
    pub fn new(delay: &Delay, now: Time) -> Self {
        Self {
            id: delay.source,
            probed: false,
            told: false,
            rtt: Baseline::new(delay.rtt.as_nanos() as i64, RTT_HALF, now),
            ways: delay
                .one_way
                .map(|parts| [0, 1].map(|way| Baseline::new(part(parts, way), WAY_HALF, now))),
            jitter: Seconds::ZERO,
            last: Seconds::ZERO,
            odd_share: 0.0,
            heard: now,
        }
    }

    pub fn sample(&mut self, delay: &Delay, quiet: Seconds, now: Time) -> Sample {
        // A one-way baseline that nothing confirmed for as long as it is kept tells how far the clocks have drifted.
        if now.since(self.heard) >= WAY_HALF * 2 {
            self.ways = None;
        }
        self.heard = now;
        // Connections are heard at the next tick.
        let is_connection = delay.source >= FIRST_CONNECTION;
        let came = delay.sent.saturating_add(delay.rtt);
        let rtt = delay.rtt.as_nanos() as i64;
        self.rtt.add(rtt, now);
        let total = Seconds::from_nanos(rtt - self.rtt.get_ns());
        if delay.by != Measured::Echo {
            if total < quiet && self.last < quiet {
                self.jitter += ((total - self.last).abs() - self.jitter) * JITTER_GAIN;
            }
            self.last = total;
        }
        let by_side = self.by_side(delay.one_way, total, now);
        Sample {
            delay: *delay,
            probed: self.probed,
            sent: delay.sent,
            arrived: if is_connection { came.min(now) } else { now },
            total,
            by_side,
        }
    }

    /// Shares `total` between the ways. The round trip is measured with one clock and bounds what a
    /// drifting or jumping clock at the other end can claim.
    fn by_side(
        &mut self,
        parts: Option<OneWay>,
        total: Seconds,
        now: Time,
    ) -> Option<[Seconds; 2]> {
        let parts = parts?;
        let ways = self.ways.get_or_insert_with(|| {
            [0, 1].map(|way| Baseline::new(part(parts, way), WAY_HALF, now))
        });
        let mut over = [Seconds::ZERO; 2];
        for (way, base) in ways.iter_mut().enumerate() {
            let value = part(parts, way);
            base.add(value, now);
            over[way] = Seconds::from_nanos(value - base.get_ns());
        }
        let sum = over[0] + over[1];
        // A clock that is set forward or back moves one way by as much as the other, the wrong way.
        if sum <= Seconds::ZERO || sum > total + IMPLAUSIBLE {
            *ways = [0, 1].map(|way| Baseline::new(part(parts, way), WAY_HALF, now));
            return None;
        }
        Some(over.map(|way| Seconds(total.0 * way.0 / sum.0)))
    }
}

pub(crate) const fn part(parts: OneWay, way: usize) -> i64 {
    if way == 0 { parts.there_ns } else { parts.back_ns }
}

/// Half the memory of a round trip's baseline.
///
/// BBR keeps its least round trip for 10 s and then drains on purpose; here the queue is empty most of the
/// time anyway, so that three times as long costs nothing and forgives a longer congestion.
pub(crate) const RTT_HALF: Duration = Duration::from_secs(15);
/// Half the memory of a one-way baseline. Two clocks drift apart by up to 100 ppm: 1 ms in 10 s.
///
/// 100 ppm are the tolerance of cheap crystals.
const WAY_HALF: Duration = Duration::from_secs(5);
/// Weight of a new difference in the jitter (RFC 3550, section 6.4.1).
const JITTER_GAIN: f64 = 1.0 / 16.0;
/// Ways that together exceed the round trip by more are not measured with steady clocks: ten times the
/// drift of [`WAY_HALF`].
const IMPLAUSIBLE: Seconds = Seconds(0.005);
/// Time for which a receiver keeps an acknowledgement back: Linux's `TCP_DELACK_MIN`, its usual delay.
const KEPT_BACK: Seconds = Seconds(0.04);
