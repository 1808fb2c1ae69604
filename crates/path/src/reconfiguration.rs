//! Another path from time to time, as of satellites in low orbit: a delay and a rate for each period.
//!
//! What a path has is drawn from a stream of its own, named by the path's number: it does not depend on what was
//! sent, nor on who asks.

use weir_core::{Draw, Duration, Rate, Seed, Time};
use weir_scenario::Reconfiguration as Params;

/// The paths of a line, one after another.
#[derive(Clone, Debug)]
pub(crate) struct Reconfiguration {
    params: Params,
    seed: Seed,
    path: Path,
}

/// What a path has of its own.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Path {
    /// Its number, from 0.
    number: u64,
    delay: Duration,
    rate_share: f64,
}

impl Reconfiguration {
    /// The paths that `seed` makes.
    pub(crate) fn new(params: Params, seed: Seed) -> Self {
        Self { params, seed, path: drawn(&params, seed, 0) }
    }

    /// When a packet that would start at `now` may: later if the line pauses.
    pub(crate) fn open_from(&self, now: Time) -> Time {
        let Some(since_first) = now.as_nanos().checked_sub(self.params.first_ns) else {
            return now;
        };
        let left = self.params.outage_ns.saturating_sub(since_first % self.params.period_ns);
        now.saturating_add(Duration::from_nanos(left))
    }

    /// What the path of a packet that leaves at `now` adds to its delay.
    pub(crate) fn delay(&mut self, now: Time) -> Duration {
        self.path_at(now).delay
    }

    /// What a line of `rate` carries at `now`.
    pub(crate) fn rate(&mut self, rate: Rate, now: Time) -> Rate {
        if !self.params.changes_rate() {
            return rate;
        }
        let share = self.path_at(now).rate_share;
        Rate::from_bps(((rate.as_bps() as f64 * share) as u64).max(1))
    }

    fn path_at(&mut self, now: Time) -> Path {
        let since_first = now.as_nanos().checked_sub(self.params.first_ns);
        let number = since_first.map_or(0, |ns| 1 + ns / self.params.period_ns);
        if number != self.path.number {
            self.path = drawn(&self.params, self.seed, number);
        }
        self.path
    }
}

/// The paths of the hop of that full name until `end`, in the run of `seed`: when each begins, and its share of the line's
/// rate.
///
/// # Errors
/// What is wrong with `params`, in one sentence.
pub fn path_shares(
    params: &Params,
    hop: &str,
    seed: Seed,
    end: Time,
) -> Result<Vec<(Time, f64)>, String> {
    params.check()?;
    let seed = seed.derive(hop);
    let later = std::iter::successors(Some(params.first_ns), |at| at.checked_add(params.period_ns));
    let begins = std::iter::once(0).chain(later).map(Time::from_nanos).take_while(|at| *at < end);
    let share = |number| drawn(params, seed, number).rate_share;
    Ok(begins.zip(0..).map(|(at, number)| (at, share(number))).collect())
}

fn drawn(params: &Params, seed: Seed, number: u64) -> Path {
    let mut rng = seed.derive("link reconfiguration").stream(&number.to_string());
    Path {
        number,
        delay: Duration::from_nanos(rng.below(params.delay_ns + 1)),
        rate_share: params.min_rate_share + (1.0 - params.min_rate_share) * rng.unit(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARAMS: Params = Params {
        first_ns: 12_000_000_000,
        period_ns: 15_000_000_000,
        delay_ns: 8_000_000,
        min_rate_share: 0.5,
        outage_ns: 70_000_000,
    };

    #[test]
    fn the_line_pauses_at_the_start_of_every_path_but_the_first() {
        let paths = Reconfiguration::new(PARAMS, Seed::new(1));
        let from = |ms| paths.open_from(Time::from_millis(ms)).as_nanos() / 1_000_000;
        assert_eq!([from(0), from(11_999), from(12_000)], [0, 11_999, 12_070]);
        assert_eq!([from(12_069), from(12_070), from(26_999)], [12_070, 12_070, 26_999]);
        assert_eq!([from(27_000), from(27_030)], [27_070, 27_070]);
    }

    #[test]
    fn a_path_is_the_same_whoever_asks_first() {
        let rate = Rate::from_mbit(100);
        let at = |second: u64| Time::from_millis(1_000 * second);
        let mut forwards = Reconfiguration::new(PARAMS, Seed::new(3));
        let told: Vec<_> =
            (0..120).map(|s| (forwards.delay(at(s)), forwards.rate(rate, at(s)))).collect();
        let mut backwards = Reconfiguration::new(PARAMS, Seed::new(3));
        for second in (0..120).rev() {
            let now = at(second);
            assert_eq!((backwards.delay(now), backwards.rate(rate, now)), told[second as usize]);
        }
        let kept = |from: usize, to: usize| told[from..to].iter().all(|one| *one == told[from]);
        assert!(kept(0, 12) && kept(12, 27) && kept(27, 42));
        assert!(told[11] != told[12] && told[26] != told[27]);
    }

    #[test]
    fn shares_are_those_of_the_paths_that_a_hop_has() {
        let run = Seed::new(3);
        let until = Time::from_millis(42_000);
        let told = path_shares(&PARAMS, "down/satellite", run, until).unwrap();
        let begin: Vec<_> = told.iter().map(|(at, _)| at.as_nanos() / 1_000_000).collect();
        assert_eq!(begin, [0, 12_000, 27_000]);
        let mut paths = Reconfiguration::new(PARAMS, run.derive("down/satellite"));
        for (at, share) in told {
            assert_eq!(paths.rate(Rate::from_mbit(100), at).as_bps(), (1e8 * share) as u64);
        }
        let endless = Params { period_ns: 0, ..PARAMS };
        let why = path_shares(&endless, "down/satellite", run, until).unwrap_err();
        assert_eq!(why, "reconfiguration: period 0ms: write 10ms or more");
    }

    #[test]
    fn delays_and_rates_are_drawn_evenly() {
        let mut paths = Reconfiguration::new(PARAMS, Seed::new(1));
        let (mut delay_ms, mut mbit) = (0.0, 0.0);
        for number in 0..10_000 {
            let now = Time::from_millis(15_000 * number);
            let (delay, rate) = (paths.delay(now), paths.rate(Rate::from_mbit(200), now));
            assert!(delay <= Duration::from_millis(8), "{delay}");
            assert!((100_000_000..=200_000_000).contains(&rate.as_bps()), "{rate:?}");
            delay_ms += delay.as_millis_f64();
            mbit += rate.as_bps() as f64 / 1e6;
        }
        assert!((delay_ms / 10_000.0 - 4.0).abs() < 0.1, "{delay_ms}");
        assert!((mbit / 10_000.0 - 150.0).abs() < 1.0, "{mbit}");
    }
}
