//! The way from one end of a line to the other: propagation, jitter, loss.

use weir_core::{Draw, Duration, Rng, Seed, Time};

use crate::loss::{Loss, LossParams};

/// What a packet meets between the ends of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FlightParams {
    /// Propagation delay, one way.
    pub delay: Duration,
    /// Greatest additional delay; each packet draws its own, evenly from none to this.
    pub jitter: Duration,
    /// Loss model.
    pub loss: Option<LossParams>,
}

/// Packets under way: says when each arrives, and never in another order than they left.
#[derive(Clone, Debug)]
pub struct Flight {
    delay: Duration,
    jitter: Option<(Duration, Rng)>,
    loss: Option<Loss>,
    last_arrival: Time,
}

impl Flight {
    /// A way with these properties, drawing from streams of its own of `seed`.
    #[must_use]
    pub fn new(params: &FlightParams, seed: Seed) -> Self {
        let jitter =
            (!params.jitter.is_zero()).then(|| (params.jitter, seed.stream("link jitter")));
        Self {
            delay: params.delay,
            jitter,
            loss: params.loss.map(|loss| Loss::new(loss, seed.stream("link loss"))),
            last_arrival: Time::ZERO,
        }
    }

    /// When a packet arrives whose last bit left at `left`, or `None` if it is lost.
    ///
    /// Jitter does not reorder: a packet arrives no earlier than the one before it.
    pub fn arrives_at(&mut self, left: Time) -> Option<Time> {
        if let Some(loss) = &mut self.loss
            && loss.strikes()
        {
            return None;
        }
        let mut arrival = left + self.delay;
        if let Some((most, rng)) = &mut self.jitter {
            arrival += Duration::from_nanos(rng.below(most.as_nanos() + 1));
        }
        self.last_arrival = self.last_arrival.max(arrival);
        Some(self.last_arrival)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_delays_and_never_reorders() {
        let params = FlightParams {
            delay: Duration::from_millis(10),
            jitter: Duration::from_millis(4),
            loss: None,
        };
        let mut flight = Flight::new(&params, Seed::new(1));
        let mut last = Time::ZERO;
        let mut total = 0;
        for n in 0..10_000u64 {
            let left = Time::from_millis(n * 10);
            let arrival = flight.arrives_at(left).unwrap();
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
    fn packets_that_follow_closely_keep_their_order() {
        let params = FlightParams { jitter: Duration::from_millis(4), ..FlightParams::default() };
        let mut flight = Flight::new(&params, Seed::new(1));
        let arrivals: Vec<Time> =
            (0..1_000).map(|n| flight.arrives_at(Time::from_nanos(n * 1_000)).unwrap()).collect();
        assert!(arrivals.is_sorted());
    }
}
