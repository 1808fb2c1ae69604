//! The way from one end of a line to the other: propagation, jitter, loss, reordering, duplicates.
//!
//! The models and their names are those of Linux' `netem`.

use weir_core::{Draw, Duration, Rng, Seed, Time};
use weir_scenario::{FlightParams, LossParams, ReorderParams};

use crate::loss::Loss;
use crate::reconfiguration::Reconfiguration;

/// Packets under way: says when each arrives. But for [reordering](ReorderParams) never in another order than
/// they left.
#[derive(Clone, Debug)]
pub struct Flight {
    delay: Duration,
    jitter: Option<(Duration, Rng)>,
    loss: Option<Loss>,
    reorder: Option<Reorder>,
    duplicate: Option<(f64, Rng)>,
    reconfiguration: Option<Reconfiguration>,
    last_arrival: Time,
    /// Packets take the delay, all of them, and nothing else happens to them.
    only_delays: bool,
    seed: Seed,
}

/// Reordering at work.
#[derive(Clone, Debug)]
struct Reorder {
    params: ReorderParams,
    rng: Rng,
    /// Packets since one was reordered.
    since: u32,
}

/// When a packet arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrivals {
    /// The packet itself; `None` if it is lost.
    pub packet: Option<Time>,
    /// Copy of the packet, if it was doubled and the copy is not lost.
    pub copy: Option<Time>,
}

impl Flight {
    /// A way with these properties, drawing from streams of its own of `seed`.
    #[must_use]
    pub fn new(params: &FlightParams, seed: Seed) -> Self {
        let jitter =
            (!params.jitter.is_zero()).then(|| (params.jitter, seed.stream("link jitter")));
        let reorder = params.reorder.map(|params| Reorder {
            params,
            rng: seed.stream("link reorder"),
            since: 0,
        });
        let duplicate =
            (params.duplicate > 0.0).then(|| (params.duplicate, seed.stream("link duplicate")));
        let only_delays = jitter.is_none()
            && params.loss.is_none()
            && reorder.is_none()
            && duplicate.is_none()
            && params.reconfiguration.is_none();
        Self {
            only_delays,
            delay: params.delay,
            jitter,
            loss: params.loss.map(|loss| Loss::new(loss, seed.stream("link loss"))),
            reorder,
            duplicate,
            reconfiguration: params
                .reconfiguration
                .map(|params| Reconfiguration::new(params, seed)),
            last_arrival: Time::ZERO,
            seed,
        }
    }

    /// Packets that leave from `now` on take `delay`. They wait for those that left before, but not for long: they pass
    /// what is still under way a second (`LONGEST_WAIT`) after they would have arrived without it.
    pub fn set_delay(&mut self, delay: Duration, now: Time) {
        self.delay = delay;
        self.last_arrival = self.last_arrival.min(now + delay + LONGEST_WAIT);
    }

    /// The least time that packets take.
    pub const fn least(&self) -> Duration {
        if self.reorder.is_some() { Duration::ZERO } else { self.delay }
    }

    /// Packets that leave from now on are lost as `params` say, in place of as before: what is drawn goes on where it was.
    pub fn set_loss(&mut self, params: LossParams) {
        self.only_delays = false;
        match &mut self.loss {
            Some(loss) => loss.set_params(params),
            None => self.loss = Some(Loss::new(params, self.seed.stream("link loss"))),
        }
    }

    /// When a packet arrives whose last bit left at `left`, and its copy.
    #[inline]
    pub fn pass(&mut self, left: Time) -> Arrivals {
        if self.only_delays {
            self.last_arrival = self.last_arrival.max(left + self.delay);
            return Arrivals { packet: Some(self.last_arrival), copy: None };
        }
        self.pass_with_chance(left)
    }

    fn pass_with_chance(&mut self, left: Time) -> Arrivals {
        let packet = self.arrives_at(left);
        let doubles = self.duplicate.as_mut().is_some_and(|(share, rng)| rng.unit() < *share);
        Arrivals { packet, copy: if doubles { self.arrives_at(left) } else { None } }
    }

    /// When one arrives, or `None` if it is lost.
    ///
    /// Jitter does not reorder: a packet arrives no earlier than the one before it.
    fn arrives_at(&mut self, left: Time) -> Option<Time> {
        if let Some(loss) = &mut self.loss
            && loss.strikes()
        {
            return None;
        }
        if self.reorder.as_mut().is_some_and(Reorder::strikes) {
            return Some(left);
        }
        let mut arrival = left + self.delay;
        if let Some((most, rng)) = &mut self.jitter {
            arrival += Duration::from_nanos(rng.below(most.as_nanos() + 1));
        }
        if let Some(paths) = &mut self.reconfiguration {
            arrival += paths.delay(left);
        }
        self.last_arrival = self.last_arrival.max(arrival);
        Some(self.last_arrival)
    }
}

impl Reorder {
    /// Whether the next packet overtakes others.
    fn strikes(&mut self) -> bool {
        self.since = self.since.saturating_add(1);
        let strikes = self.since >= self.params.gap && self.rng.unit() < self.params.probability;
        if strikes {
            self.since = 0;
        }
        strikes
    }
}

/// How much later than by its own delay a packet arrives at most after a change to a shorter one.
const LONGEST_WAIT: Duration = Duration::from_millis(1_000);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_delays_and_never_reorders() {
        let params = FlightParams {
            delay: Duration::from_millis(10),
            jitter: Duration::from_millis(4),
            ..FlightParams::default()
        };
        let mut flight = Flight::new(&params, Seed::new(1));
        let mut last = Time::ZERO;
        let mut total = 0;
        for n in 0..10_000u64 {
            let left = Time::from_millis(n * 10);
            let arrival = flight.pass(left).packet.unwrap();
            assert!(arrival >= last);
            last = arrival;
            let took = arrival.since(left);
            assert!((10..=14).contains(&(took.as_nanos() / 1_000_000)), "{took}");
            total += took.as_nanos();
        }
        // Even from 10 to 14 ms.
        assert!((total / 10_000).abs_diff(12_000_000) < 50_000);
    }

    #[test]
    fn a_shorter_way_does_not_reorder() {
        let params = FlightParams { delay: Duration::from_millis(30), ..FlightParams::default() };
        let mut flight = Flight::new(&params, Seed::new(1));
        let ms = Time::from_millis;
        assert_eq!(flight.arrives_at(ms(0)), Some(ms(30)));
        flight.set_delay(Duration::from_millis(10), ms(4));
        assert_eq!(flight.arrives_at(ms(5)), Some(ms(30)));
        assert_eq!(flight.arrives_at(ms(25)), Some(ms(35)));
    }

    #[test]
    fn a_much_shorter_way_is_not_blocked_by_what_is_under_way_on_the_longer() {
        let params =
            FlightParams { delay: Duration::from_millis(9_000), ..FlightParams::default() };
        let mut flight = Flight::new(&params, Seed::new(1));
        let ms = Time::from_millis;
        assert_eq!(flight.arrives_at(ms(0)), Some(ms(9_000)));
        flight.set_delay(Duration::from_millis(40), ms(100));
        assert_eq!(flight.arrives_at(ms(100)), Some(ms(1_140)));
        assert_eq!(flight.arrives_at(ms(1_099)), Some(ms(1_140)));
        assert_eq!(flight.arrives_at(ms(1_101)), Some(ms(1_141)));
    }

    #[test]
    fn loss_comes_and_goes_while_packets_pass() {
        let mut flight = Flight::new(&FlightParams::default(), Seed::new(1));
        let lost = |way: &mut Flight| {
            let arrive = |n| way.arrives_at(Time::from_millis(n)).is_some();
            1_000 - (0..1_000).map(arrive).filter(|&arrives| arrives).count()
        };
        assert_eq!(lost(&mut flight), 0);
        flight.set_loss(LossParams::Random { probability: 0.2 });
        let first = lost(&mut flight);
        assert!((150..250).contains(&first), "{first}");
        flight.set_loss(LossParams::Random { probability: 0.0 });
        assert_eq!(lost(&mut flight), 0);
    }

    #[test]
    fn packets_that_follow_closely_keep_their_order() {
        let params = FlightParams { jitter: Duration::from_millis(4), ..FlightParams::default() };
        let mut flight = Flight::new(&params, Seed::new(1));
        let arrivals: Vec<Time> =
            (0..1_000).map(|n| flight.pass(Time::from_nanos(n * 1_000)).packet.unwrap()).collect();
        assert!(arrivals.is_sorted());
    }

    /// As the recording `netem-reorder-gap5` of Linux: every fifth packet without the delay.
    #[test]
    fn reordered_packets_overtake() {
        let ms = Duration::from_millis;
        let reorder = Some(ReorderParams { probability: 1.0, gap: 5 });
        let params = FlightParams { delay: ms(10), reorder, ..FlightParams::default() };
        let mut flight = Flight::new(&params, Seed::new(1));
        let took: Vec<u64> = (0..10)
            .map(|n| {
                let left = Time::from_millis(n);
                flight.pass(left).packet.unwrap().since(left).as_nanos() / 1_000_000
            })
            .collect();
        assert_eq!(took, [10, 10, 10, 10, 0, 10, 10, 10, 10, 0]);
    }

    #[test]
    fn copies_come_as_often_as_they_should_and_are_lost_by_themselves() {
        let params = FlightParams {
            loss: Some(LossParams::Random { probability: 0.5 }),
            duplicate: 0.2,
            ..FlightParams::default()
        };
        let mut flight = Flight::new(&params, Seed::new(1));
        let arrivals: Vec<_> = (0..100_000).map(|n| flight.pass(Time::from_millis(n))).collect();
        let share = |holds: fn(&Arrivals) -> bool| {
            arrivals.iter().filter(|&one| holds(one)).count() as f64 / arrivals.len() as f64
        };
        assert!((share(|one| one.copy.is_some()) - 0.1).abs() < 0.005);
        assert!((share(|one| one.copy.is_some() && one.packet.is_none()) - 0.05).abs() < 0.005);
    }
}
