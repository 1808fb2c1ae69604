//! COBALT: CoDel and BLUE side by side, one state a flow.
//!
//! Follows `cobalt_*` of Linux' `sch_cake.c`. It differs from RFC 8289 in that one schedule serves for
//! the first drop and the next ones, that the drop rate decays step by step when the queue is good
//! again instead of being remembered, and that time is in nanoseconds. BLUE (Feng et al., "The BLUE
//! active queue management algorithms", 2002) raises its probability when a flow overflows the queue
//! and lowers it when the flow runs dry; it drops whether or not the sender speaks ECN.

use weir_core::{Draw, Duration, Packet, Rng, Time};

use crate::contract::DropReason;

/// COBALT's parameters: one set a tin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CobaltParams {
    pub target: Duration,
    pub interval: Duration,
    /// How long a full packet takes.
    pub packet_time: Duration,
}

/// COBALT's state: one a flow.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CobaltState {
    /// Sets the rate of signals.
    count: u32,
    /// 1/sqrt(count) as a fraction of 2^32.
    inverse_sqrt: u32,
    /// When the next signal is due; without any, until when the flow counts as active.
    drop_next: Time,
    /// BLUE's probability as a fraction of 2^32.
    p_drop: u32,
    dropping: bool,
    /// When BLUE's probability last changed.
    moved_at: Option<Time>,
}

/// COBALT's decision on a packet. Both may hold: a packet that must not be dropped is marked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Decision {
    pub mark: bool,
    pub drop: Option<DropReason>,
}

impl CobaltParams {
    /// The parameters of a tin in which a full packet takes `packet_time`: the target is no less than
    /// one and a half packets, and the interval grows with it.
    pub fn new(target: Duration, interval: Duration, packet_time: Duration) -> Self {
        let raised = target.max(packet_time * 3 / 2);
        let longer = interval + Duration::from_nanos(raised.as_nanos() - target.as_nanos());
        Self { target: raised, interval: longer.max(raised * 2), packet_time }
    }
}

impl CobaltState {
    /// Decides on `packet`, just taken from the flow. `bulk_flows` share the tin, or 0 where that
    /// does not matter.
    pub fn decide(
        &mut self,
        packet: &Packet,
        params: &CobaltParams,
        bulk_flows: u32,
        now: Time,
        blue: &mut Rng,
    ) -> Decision {
        let mut decision = Decision::default();
        let sojourn = now.since(packet.enqueued_at);
        let over = sojourn > params.target
            && sojourn > params.packet_time * (2 * u64::from(bulk_flows))
            && sojourn > params.packet_time * 4;
        let due = self.count > 0 && now >= self.drop_next;
        let mut behind = now > self.drop_next;
        if over {
            if !self.dropping {
                self.dropping = true;
                self.drop_next = now + self.step(params);
            }
            self.count = self.count.max(1);
        } else {
            self.dropping = false;
        }
        if due && self.dropping {
            decision.mark = packet.ecn.can_mark();
            decision.drop = (!decision.mark).then_some(DropReason::TargetExceeded);
            self.count = self.count.saturating_add(1);
            self.advance(params);
            behind = now > self.drop_next;
        } else if due {
            while self.count > 0 && now >= self.drop_next {
                self.count -= 1;
                self.advance(params);
            }
            behind = now > self.drop_next;
        }
        if self.p_drop > 0 && (blue.below(1 << 32) as u32) < self.p_drop {
            decision.drop = decision.drop.or(Some(DropReason::Blue));
        }
        if self.count == 0 {
            self.drop_next = now + params.interval;
        } else if behind && decision.drop.is_none() {
            self.drop_next = now;
        }
        decision
    }

    /// A packet of the flow had to go because the queue was full.
    pub fn on_overflow(&mut self, params: &CobaltParams, now: Time) {
        if self.may_move(params, now) {
            self.p_drop = self.p_drop.saturating_add(UP);
            self.moved_at = Some(now);
        }
        self.dropping = true;
        self.drop_next = now;
        self.count = self.count.max(1);
    }

    /// The flow was served and had nothing.
    pub fn on_empty(&mut self, params: &CobaltParams, now: Time) {
        if self.p_drop > 0 && self.may_move(params, now) {
            self.p_drop = self.p_drop.saturating_sub(DOWN);
            self.moved_at = Some(now);
        }
        self.dropping = false;
        if self.count > 0 && now >= self.drop_next {
            self.count -= 1;
            self.advance(params);
        }
    }

    /// Whether there is nothing left to remember of the flow.
    pub fn is_at_rest(&self, now: Time) -> bool {
        self.p_drop == 0 && self.count == 0 && now >= self.drop_next
    }

    /// BLUE moves once a target at most.
    fn may_move(&self, params: &CobaltParams, now: Time) -> bool {
        self.moved_at.is_none_or(|at| now.since(at) > params.target)
    }

    /// The count has changed by one: the next signal.
    fn advance(&mut self, params: &CobaltParams) {
        self.inverse_sqrt = match INVERSE_SQRT.get(self.count as usize) {
            Some(&exact) => exact,
            None => newton_step(self.inverse_sqrt, self.count),
        };
        self.drop_next += self.step(params);
    }

    /// interval / sqrt(count).
    fn step(&self, params: &CobaltParams) -> Duration {
        // Linux scales 32 bits, so that an interval above 4.29 s (`rtt`) wraps; so does this.
        let interval = u64::from(params.interval.as_nanos() as u32);
        Duration::from_nanos((interval * u64::from(self.inverse_sqrt)) >> 32)
    }
}

/// One Newton step towards 1/sqrt(count): x' = x (3 - count x^2) / 2.
fn newton_step(inverse_sqrt: u32, count: u32) -> u32 {
    let x = u64::from(inverse_sqrt);
    let x_squared = (x * x) >> 32;
    let term = (3u64 << 32).wrapping_sub(u64::from(count) * x_squared) >> 2;
    (term.wrapping_mul(x) >> 31) as u32
}

/// BLUE's probability goes up by 1/256 and down by 1/4096 (`cake_set_rate`).
const UP: u32 = 1 << 24;
const DOWN: u32 = 1 << 20;

/// 2^32/sqrt(count), where a single Newton step would be far off. For 0 and 1 as near to 1 as 32 bits
/// come.
const INVERSE_SQRT: [u32; 16] = [
    u32::MAX,
    u32::MAX,
    3_037_000_500,
    2_479_700_525,
    2_147_483_647,
    1_920_767_767,
    1_753_413_056,
    1_623_345_051,
    1_518_500_250,
    1_431_655_765,
    1_358_187_914,
    1_294_981_364,
    1_239_850_263,
    1_191_209_601,
    1_147_878_294,
    1_108_955_788,
];

#[cfg(test)]
mod tests {
    use weir_core::{Dscp, Ecn, FlowLabel, Seed};

    use super::*;

    const MS: u64 = 1_000_000;

    /// A state under the default parameters, driven by hand.
    struct Bench {
        state: CobaltState,
        params: CobaltParams,
        blue: Rng,
    }

    impl Bench {
        fn new() -> Self {
            let params = CobaltParams::new(
                Duration::from_millis(5),
                Duration::from_millis(100),
                Duration::from_nanos(1_211_200),
            );
            Self { state: CobaltState::default(), params, blue: Seed::new(1).stream("blue") }
        }

        /// COBALT's decision at `now` on a packet that waited for `sojourn`.
        fn at(&mut self, now: u64, sojourn: u64, ecn: Ecn) -> Decision {
            let packet = Packet {
                handle: 0,
                enqueued_at: Time::from_nanos(now - sojourn),
                label: FlowLabel::default(),
                len: 1514,
                flow_id: 0,
                dscp: Dscp::BE,
                ecn,
            };
            self.state.decide(&packet, &self.params, 0, Time::from_nanos(now), &mut self.blue)
        }
    }

    #[test]
    fn a_slow_tin_has_a_longer_target() {
        // 625 kbit/s, the bulk tin at 10 Mbit/s: `tc -s` shows target 29.1 ms and interval 124 ms.
        let params = CobaltParams::new(
            Duration::from_millis(5),
            Duration::from_millis(100),
            Duration::from_nanos(19_379_200),
        );
        assert_eq!(params.target.as_nanos(), 29_068_800);
        assert_eq!(params.interval.as_nanos(), 124_068_800);
        let slow = CobaltParams::new(
            Duration::from_micros(5),
            Duration::from_micros(100),
            Duration::from_millis(1),
        );
        assert_eq!(slow.interval, Duration::from_millis(3), "twice the target at least");
    }

    #[test]
    fn the_target_must_be_exceeded_by_a_nanosecond() {
        let mut bench = Bench::new();
        bench.at(1_000 * MS, 5 * MS, Ecn::NotEct);
        assert!(!bench.state.dropping);
        bench.at(1_001 * MS, 5 * MS + 1, Ecn::NotEct);
        assert!(bench.state.dropping);
        assert_eq!(bench.state.count, 1);
    }

    #[test]
    fn below_four_packets_it_keeps_still() {
        let mut bench = Bench::new();
        bench.params.packet_time = Duration::from_millis(2);
        bench.at(1_000 * MS, 8 * MS, Ecn::NotEct);
        assert!(!bench.state.dropping);
        bench.at(1_001 * MS, 8 * MS + 1, Ecn::NotEct);
        assert!(bench.state.dropping);
    }

    #[test]
    fn signals_come_at_interval_over_root_count() {
        let mut bench = Bench::new();
        bench.at(1_000 * MS, 10 * MS, Ecn::NotEct);
        // As in Linux the first signal of a flow comes with its next packet.
        let drop = Decision { mark: false, drop: Some(DropReason::TargetExceeded) };
        assert_eq!(bench.at(1_000 * MS + 1, 10 * MS, Ecn::NotEct), drop);
        // 100 ms / sqrt(2) later the next one, to the nanosecond.
        let next = 1_000 * MS + 70_710_678;
        assert_eq!(bench.at(next - 1, 10 * MS, Ecn::NotEct), Decision::default());
        let mark = Decision { mark: true, drop: None };
        assert_eq!(bench.at(next, 10 * MS, Ecn::Ect0), mark, "a sender with ECN is told");
        let next = next + 57_735_026; // 100 ms / sqrt(3)
        assert_eq!(bench.at(next - 1, 10 * MS, Ecn::Ect0), Decision::default());
        assert_eq!(bench.at(next, 10 * MS, Ecn::Ect0), mark);
    }

    #[test]
    fn the_rate_decays_step_by_step() {
        let mut bench = Bench::new();
        bench.at(1_000 * MS, 10 * MS, Ecn::NotEct);
        for _ in 0..3 {
            let due = bench.state.drop_next.as_nanos();
            bench.at(due, 10 * MS, Ecn::NotEct);
        }
        assert_eq!(bench.state.count, 4);
        let due = bench.state.drop_next.as_nanos();
        assert_eq!(bench.at(due, 0, Ecn::NotEct), Decision::default());
        assert_eq!(bench.state.count, 3);
        bench.state.on_empty(&bench.params, bench.state.drop_next);
        assert_eq!(bench.state.count, 2);
        assert!(!bench.state.is_at_rest(bench.state.drop_next));
    }

    #[test]
    fn blue_moves_once_a_target_and_drops_in_spite_of_ecn() {
        let mut bench = Bench::new();
        let at = Time::from_millis;
        bench.state.on_overflow(&bench.params, at(1_000));
        bench.state.on_overflow(&bench.params, at(1_005));
        assert_eq!(bench.state.p_drop, UP);
        bench.state.on_overflow(&bench.params, at(1_006));
        assert_eq!(bench.state.p_drop, 2 * UP);
        bench.state.p_drop = u32::MAX;
        let decision = bench.at(1_007 * MS, 0, Ecn::Ect0);
        assert_eq!(decision, Decision { mark: false, drop: Some(DropReason::Blue) });
        bench.state.on_empty(&bench.params, at(1_012));
        assert_eq!(bench.state.p_drop, u32::MAX - DOWN);
    }

    #[test]
    fn the_table_is_the_reciprocal_root() {
        for (count, &value) in INVERSE_SQRT.iter().enumerate().skip(2) {
            let exact = 2f64.powi(32) / (count as f64).sqrt();
            assert!((f64::from(value) - exact).abs() <= 1.0, "{count}: {value}");
        }
        // Beyond it a step is near enough.
        let x = newton_step(INVERSE_SQRT[15], 16);
        assert!((f64::from(x) - 2f64.powi(30)).abs() < 2f64.powi(30) * 0.002, "{x}");
    }
}
