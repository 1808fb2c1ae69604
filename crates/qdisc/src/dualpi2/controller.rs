//! The PI2 controller and the coupling of DualPI2's two queues, apart from the queues.
//!
//! RFC 9332, appendix A, in the integers of Linux `net/sched/sch_dualpi2.c`: one base probability p', moved
//! by the longer of the two queues' delays. Classic packets are struck with p' squared, since their senders
//! answer with the square root; L4S packets with k p'.

use weir_core::{Draw, Duration, Rng, Time};

/// Parameters and state of the controller.
#[derive(Debug)]
pub(super) struct Controller {
    params: Params,
    /// p', as a share of [`CERTAIN`].
    prob: u32,
    last_delay: Duration,
    next_update: Time,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Params {
    pub target: Duration,
    pub tupdate: Duration,
    /// Weights of the delay's distance from the target and of its change, in 1/256 per s.
    pub alpha: u32,
    pub beta: u32,
    /// k.
    pub coupling: u8,
    /// Whether packets that could be marked are dropped once k p' exceeds 1.
    pub drop_on_overload: bool,
}

/// DualPI2's decision on a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DualPi2Verdict {
    Pass,
    Mark,
    Drop,
}

impl Controller {
    /// The controller of a discipline that is made at time zero.
    pub fn new(params: Params) -> Self {
        let next_update = Time::ZERO + params.tupdate;
        Self { params, prob: 0, last_delay: Duration::ZERO, next_update }
    }

    /// Makes the updates that were due up to `now`. The packets that have waited longest since `heads`
    /// were at the heads of the queues all the time.
    pub fn catch_up(&mut self, heads: [Option<Time>; 2], now: Time) {
        let oldest = heads.into_iter().flatten().min();
        while self.next_update <= now {
            let delay = oldest.map_or(Duration::ZERO, |since| self.next_update.since(since));
            let before = (self.prob, self.last_delay);
            self.update(delay);
            self.next_update += self.params.tupdate;
            if oldest.is_none() && before == (self.prob, self.last_delay) {
                // Nothing changes while nothing waits.
                let behind = now.as_nanos().saturating_sub(self.next_update.as_nanos());
                let periods = behind / self.params.tupdate.as_nanos();
                self.next_update += self.params.tupdate * periods;
            }
        }
    }

    /// One step of the controller: RFC 9332, figure 6 (`dualpi2_update`).
    fn update(&mut self, delay: Duration) {
        let nanos = |span: Duration| i128::from(span.as_nanos());
        let delta = (nanos(delay) - nanos(self.params.target))
            * i128::from(scaled(self.params.alpha))
            + (nanos(delay) - nanos(self.last_delay)) * i128::from(scaled(self.params.beta));
        self.last_delay = delay;
        // Both directions round towards zero.
        let prob = i128::from(self.prob) + delta / (1 << GAIN_SHIFT);
        self.prob = prob.clamp(0, i128::from(CERTAIN)) as u32;
        if !self.params.drop_on_overload {
            // Beyond that marks alone could not keep the shares of the two queues.
            self.prob = self.prob.min(CERTAIN / u32::from(self.params.coupling));
        }
    }

    /// Decision on a Classic packet, with probability p'^2, drawn by two throws.
    pub fn classic(&self, speaks_ecn: bool, rng: &mut Rng) -> DualPi2Verdict {
        if !self.strikes_squared(rng) {
            DualPi2Verdict::Pass
        } else if speaks_ecn && !self.overload() {
            DualPi2Verdict::Mark
        } else {
            DualPi2Verdict::Drop
        }
    }

    /// Decision on an L4S packet, with probability k p'. On overload it is dropped as Classic ones are, if that is
    /// wanted, and marked otherwise.
    pub fn l4s(&self, speaks_ecn: bool, rng: &mut Rng) -> DualPi2Verdict {
        if self.overload() {
            let drops = self.params.drop_on_overload && self.strikes_squared(rng);
            return if drops { DualPi2Verdict::Drop } else { DualPi2Verdict::Mark };
        }
        if !throw(self.coupled() as u32, rng) {
            DualPi2Verdict::Pass
        } else if speaks_ecn {
            DualPi2Verdict::Mark
        } else {
            DualPi2Verdict::Drop
        }
    }

    /// k p'.
    fn coupled(&self) -> u64 {
        u64::from(self.prob) * u64::from(self.params.coupling)
    }

    fn overload(&self) -> bool {
        self.coupled() > u64::from(CERTAIN)
    }

    fn strikes_squared(&self, rng: &mut Rng) -> bool {
        throw(self.prob, rng) && throw(self.prob, rng)
    }
}

/// A weight in shares of [`CERTAIN`] per 64 ns (`dualpi2_scale_alpha_beta`).
fn scaled(weight: u32) -> u64 {
    ((u64::from(weight) * u64::from(CERTAIN)) >> (8 - GAIN_SHIFT)) / 1_000_000_000
}

/// Whether what has the probability `prob` happens (`dualpi2_roll`).
fn throw(prob: u32, rng: &mut Rng) -> bool {
    rng.below(1 << 32) <= u64::from(prob)
}

/// A probability of 1 (`MAX_PROB`).
const CERTAIN: u32 = u32::MAX;

/// Scaled weights keep six more bits (`ALPHA_BETA_GRANULARITY`).
const GAIN_SHIFT: u32 = 6;

#[cfg(test)]
mod tests {
    use weir_core::Seed;

    use super::*;

    const PARAMS: Params = Params {
        target: Duration::from_millis(15),
        tupdate: Duration::from_millis(16),
        alpha: 41,
        beta: 819,
        coupling: 2,
        drop_on_overload: true,
    };

    /// p' after updates that saw these delays, in milliseconds.
    fn after(params: Params, delays: &[u64]) -> Controller {
        let mut controller = Controller::new(params);
        for &delay in delays {
            controller.update(Duration::from_millis(delay));
        }
        controller
    }

    fn with(share: f64, params: Params) -> Controller {
        Controller { prob: (share * f64::from(CERTAIN)) as u32, ..Controller::new(params) }
    }

    #[test]
    fn the_base_probability_is_that_of_the_rfcs_pseudocode() {
        // In the kernel's integers: (10 ms x 44 + 25 ms x 879) / 64.
        assert_eq!((scaled(41), scaled(819)), (44, 879));
        assert_eq!(after(PARAMS, &[25]).prob, 350_234_375);
        assert_eq!(after(PARAMS, &[25, 25]).prob, 350_234_375 + 10_000_000 * 44 / 64);
        // RFC 9332: p' += alpha (delay - target) + beta (delay - last), alpha = 0.16 Hz, beta = 3.2 Hz.
        let mut p = 0.0;
        let mut last = 0.0;
        let delays = [25, 40, 30, 20, 18, 16];
        for delay in delays {
            let delay = delay as f64 / 1e3;
            p += 0.16 * (delay - 0.015) + 3.2 * (delay - last);
            last = delay;
        }
        let ours = f64::from(after(PARAMS, &delays).prob) / f64::from(CERTAIN);
        assert!((ours / p - 1.0).abs() < 0.002, "{ours} of {p}");
    }

    #[test]
    fn the_base_probability_stays_between_nothing_and_certainty() {
        assert_eq!(after(PARAMS, &[10, 0]).prob, 0);
        assert_eq!(after(PARAMS, &[2000]).prob, CERTAIN);
        let params = Params { drop_on_overload: false, ..PARAMS };
        assert_eq!(after(params, &[2000]).prob, CERTAIN / 2, "k p' is at most 1 without drops");
    }

    #[test]
    fn updates_come_every_tupdate_of_what_waited_then() {
        let mut late = Controller::new(PARAMS);
        // Nothing waits for long, then a packet arrives at 100 s + 1 ms, and 40 ms later somebody asks.
        late.catch_up([None, None], Time::from_millis(100_001));
        late.catch_up([None, Some(Time::from_millis(100_001))], Time::from_millis(100_041));
        // 100 s are 6250 periods of 16 ms: the next ones end at 100 016 and 100 032 ms.
        assert_eq!(late.prob, after(PARAMS, &[0, 15, 31]).prob);
        assert_eq!(late.next_update, Time::from_millis(100_048));
    }

    #[test]
    fn a_packet_that_arrived_at_time_zero_waits_too() {
        // The kernel keeps 0 for an empty queue; here absence is told apart from the time zero.
        let mut controller = Controller::new(PARAMS);
        controller.catch_up([Some(Time::ZERO), None], Time::from_millis(32));
        assert_eq!(controller.prob, after(PARAMS, &[16, 32]).prob);
        assert!(controller.prob > 0);
    }

    #[test]
    fn classic_is_struck_by_the_square_and_l4s_by_k_times() {
        let controller = with(0.2, PARAMS);
        let mut rng = Seed::new(1).stream("test");
        let mut share = |verdict: &mut dyn FnMut(&mut Rng) -> DualPi2Verdict,
                         of: DualPi2Verdict| {
            let struck = (0..100_000).filter(|_| verdict(&mut rng) == of).count();
            struck as f64 / 100_000.0
        };
        let marked = share(&mut |dice| controller.classic(true, dice), DualPi2Verdict::Mark);
        assert!((marked - 0.04).abs() < 0.002, "{marked}");
        let dropped = share(&mut |dice| controller.classic(false, dice), DualPi2Verdict::Drop);
        assert!((dropped - 0.04).abs() < 0.002, "{dropped}");
        let coupled = share(&mut |dice| controller.l4s(true, dice), DualPi2Verdict::Mark);
        assert!((coupled - 0.4).abs() < 0.005, "{coupled}");
        let by_filter = share(&mut |dice| controller.l4s(false, dice), DualPi2Verdict::Drop);
        assert!((by_filter - 0.4).abs() < 0.005, "{by_filter}");
    }

    #[test]
    fn on_overload_both_queues_drop_alike_and_what_remains_of_l4s_is_marked() {
        let controller = with(0.6, PARAMS);
        let mut rng = Seed::new(2).stream("test");
        let l4s: Vec<_> = (0..100_000).map(|_| controller.l4s(true, &mut rng)).collect();
        let dropped = l4s.iter().filter(|&&verdict| verdict == DualPi2Verdict::Drop).count();
        assert!((34_500..37_500).contains(&dropped), "{dropped} of 36 %");
        assert!(l4s.iter().all(|&verdict| verdict != DualPi2Verdict::Pass));
        let classic: Vec<_> = (0..1000).map(|_| controller.classic(true, &mut rng)).collect();
        assert!(classic.iter().all(|&verdict| verdict != DualPi2Verdict::Mark), "ECN is ignored");

        let overflow = with(0.6, Params { drop_on_overload: false, ..PARAMS });
        let all: Vec<_> = (0..1000).map(|_| overflow.l4s(true, &mut rng)).collect();
        assert!(all.iter().all(|&verdict| verdict == DualPi2Verdict::Mark));
    }
}
