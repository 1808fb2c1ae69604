//! Round-trip times: the smoothed estimate, the retransmission timeout, the minimum.

use weir_core::Duration;

use crate::profile::{Profile, RtoRule};

/// The estimator of RFC 6298, in microseconds, or that of Linux (`tcp_rtt_estimator`): with the mean
/// deviation's largest value of the last round trip as variance, which never makes the timeout shorter
/// than the round trip plus `rto_min`.
#[derive(Clone, Debug)]
pub(crate) struct RttEstimator {
    /// Eight times the smoothed round trip; `None` before the first sample.
    srtt8: Option<u32>,
    /// Four times the mean deviation.
    mdev4: u32,
    /// The largest `mdev4` of this round trip.
    mdev4_max: u32,
    /// Four times the variance.
    rttvar4: u32,
    /// Segment whose acknowledgement ends the present round trip.
    round_end: u32,
    rule: RtoRule,
    rto_min: u32,
    rto_max: u32,
    /// The clock's granularity: the variance's part is at least that (RFC 6298, section 2).
    tick: u32,
    min: MinFilter,
    /// The last sample, until somebody looks.
    latest: Option<u32>,
}

impl RttEstimator {
    pub fn new(profile: &Profile) -> Self {
        let micros = |span: Duration| u32::try_from(span.as_micros()).unwrap_or(u32::MAX);
        Self {
            srtt8: None,
            mdev4: 0,
            mdev4_max: 0,
            rttvar4: 0,
            round_end: 0,
            rule: profile.rto_rule,
            rto_min: micros(profile.rto_min),
            rto_max: micros(profile.rto_max),
            tick: match profile.timers {
                crate::Timers::Exact => 1,
                timers => micros(timers.tick()),
            },
            min: MinFilter::default(),
            latest: None,
        }
    }

    /// Takes in a round trip of `rtt` microseconds while `una` is the first unacknowledged segment and
    /// `nxt` the next to be sent.
    pub fn sample(&mut self, rtt: u32, una: u32, nxt: u32) {
        self.latest = Some(rtt);
        let Some(srtt8) = self.srtt8 else {
            self.srtt8 = Some((rtt << 3).max(1));
            self.mdev4 = rtt << 1;
            self.rttvar4 = match self.rule {
                RtoRule::Rfc6298 | RtoRule::Linux22 => self.mdev4.max(self.tick),
                RtoRule::Linux => self.mdev4.max(self.rto_min),
            };
            self.mdev4_max = self.rttvar4;
            self.round_end = nxt;
            return;
        };
        // Jacobson 1988: srtt += error / 8 and mdev += (|error| - mdev) / 4.
        let error = i64::from(rtt) - i64::from(srtt8 >> 3);
        self.srtt8 = Some((i64::from(srtt8) + error).max(1) as u32);
        let mut change = error.abs() - i64::from(self.mdev4 >> 2);
        if self.rule == RtoRule::Linux && error < 0 && change > 0 {
            // A falling round trip counts an eighth, so that it does not look like variance (Eifel,
            // Ludwig and Katz 2000).
            change >>= 3;
        }
        self.mdev4 = (i64::from(self.mdev4) + change).max(0) as u32;
        match self.rule {
            RtoRule::Rfc6298 | RtoRule::Linux22 => self.rttvar4 = self.mdev4.max(self.tick),
            RtoRule::Linux => self.hold_variance(una, nxt),
        }
    }

    /// The variance follows the largest deviation of a round trip at once, and falls slowly.
    fn hold_variance(&mut self, una: u32, nxt: u32) {
        if self.mdev4 > self.mdev4_max {
            self.mdev4_max = self.mdev4;
            self.rttvar4 = self.rttvar4.max(self.mdev4_max);
        }
        if una > self.round_end {
            if self.mdev4_max < self.rttvar4 {
                self.rttvar4 -= (self.rttvar4 - self.mdev4_max) >> 2;
            }
            self.round_end = nxt;
            self.mdev4_max = self.rto_min;
        }
    }

    /// Remembers `rtt` microseconds as a candidate for the minimum of the last five minutes.
    pub fn offer_min(&mut self, rtt: u32, now_us: u64) {
        self.min.offer(rtt.max(1), now_us);
    }

    /// The timeout in microseconds, in whole ticks, at a window of `cwnd` segments: RFC 6298, section 2.
    pub fn rto(&self, cwnd: u32) -> u32 {
        let plain = (self.srtt8.unwrap_or(0) >> 3) + self.rttvar4;
        let rto = match self.rule {
            RtoRule::Rfc6298 | RtoRule::Linux => plain,
            RtoRule::Linux22 => plain + (plain >> 2) + (plain >> cwnd.saturating_sub(1).min(31)),
        };
        let rto = rto.max(self.rto_min);
        rto.div_ceil(self.tick).saturating_mul(self.tick).min(self.rto_max)
    }

    /// The last sample since the last call, in microseconds.
    pub fn take_latest(&mut self) -> Option<u32> {
        self.latest.take()
    }

    /// Eight times the smoothed round trip in microseconds; `None` before the first sample.
    pub fn srtt8(&self) -> Option<u32> {
        self.srtt8
    }

    /// The smallest round trip of the last five minutes in microseconds, the largest number before
    /// the first.
    pub fn min(&self) -> u32 {
        self.min.best()
    }

    /// The shortest timeout in microseconds.
    pub fn rto_min(&self) -> u32 {
        self.rto_min
    }

    /// The mean deviation, in microseconds, which `TCP_INFO` calls the variance.
    pub fn mean_deviation(&self) -> u32 {
        self.mdev4 >> 2
    }
}

/// The smallest value of the last five minutes: the best of two generations of half that length, so
/// that an old minimum leaves after 2.5 to 5 minutes.
#[derive(Clone, Debug)]
struct MinFilter {
    generations: [u32; 2],
    /// When the next generation begins; `None` before the first value.
    turn_at: Option<u64>,
}

impl Default for MinFilter {
    fn default() -> Self {
        Self { generations: [u32::MAX; 2], turn_at: None }
    }
}

impl MinFilter {
    fn offer(&mut self, value: u32, now_us: u64) {
        if now_us >= *self.turn_at.get_or_insert(now_us + HALF_WINDOW_US) {
            self.generations = [u32::MAX, self.generations[0]];
            self.turn_at = Some(now_us + HALF_WINDOW_US);
        }
        self.generations[0] = self.generations[0].min(value);
    }

    fn best(&self) -> u32 {
        self.generations[0].min(self.generations[1])
    }
}

/// Half of Linux' `tcp_min_rtt_wlen`, 300 s.
const HALF_WINDOW_US: u64 = 150_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn estimator() -> RttEstimator {
        RttEstimator::new(&Profile::named("linux").unwrap())
    }

    #[test]
    fn the_first_sample_sets_the_timeout_to_rtt_plus_the_minimum() {
        let mut rtt = estimator();
        rtt.sample(40_000, 0, 10);
        assert_eq!(rtt.srtt8(), Some(320_000));
        assert_eq!(rtt.rto(10), 240_000);
    }

    #[test]
    fn a_steady_round_trip_keeps_the_minimum_as_variance() {
        let mut rtt = estimator();
        for round in 0..50 {
            rtt.sample(100_000, round * 10 + 1, (round + 1) * 10);
        }
        assert_eq!(rtt.srtt8().map(|eighth| eighth >> 3), Some(100_000));
        assert_eq!(rtt.rto(10), 300_000);
    }

    #[test]
    fn the_timeout_comes_in_whole_ticks() {
        let mut rtt = estimator();
        rtt.sample(41_001, 0, 10);
        assert_eq!(rtt.rto(10), 244_000);
    }

    /// Counted from the first round trip, whenever that was.
    #[test]
    fn a_minimum_holds_for_two_and_a_half_minutes_at_least() {
        for start in [0, 149_000_000] {
            let mut rtt = estimator();
            for (at, value, least) in [
                (0, 10, 10),
                (HALF_WINDOW_US - 1, 20, 10),
                (HALF_WINDOW_US, 30, 10),
                (2 * HALF_WINDOW_US - 1, 40, 10),
                (2 * HALF_WINDOW_US, 50, 30),
            ] {
                rtt.offer_min(value, start + at);
                assert_eq!(rtt.min(), least, "{at} us after {start}");
            }
        }
    }

    #[test]
    fn linux_2_2_waits_longer_the_smaller_the_window() {
        let mut rtt = RttEstimator::new(&Profile::named("linux22").unwrap());
        rtt.sample(200_000, 0, 1);
        // 200 ms and four times half of it make 600 ms; 5/4 of it and 1/2^(cwnd - 1).
        assert_eq!(
            [1, 2, 4, 40].map(|cwnd| rtt.rto(cwnd)),
            [1_350_000, 1_050_000, 830_000, 750_000]
        );
    }

    #[test]
    fn a_growing_round_trip_widens_the_timeout() {
        let mut rtt = estimator();
        rtt.sample(40_000, 0, 10);
        rtt.sample(400_000, 1, 10);
        // error 360 ms: srtt 85 ms, mdev 20 -> 105 ms (times 4).
        assert_eq!(rtt.srtt8().map(|eighth| eighth >> 3), Some(85_000));
        assert_eq!(rtt.rto(10), 508_000);
    }
}
