//! Round-trip times: the smoothed estimate, the retransmission timeout, the minimum.

use weir_core::Duration;

use crate::clock::Timers;
use crate::profile::{Profile, RtoRule};

/// The estimator of RFC 6298, in microseconds, or that of Linux (`tcp_rtt_estimator`): with the mean
/// deviation's largest value of the last round trip as variance, which never makes the timeout shorter
/// than the round trip plus `rto_min`.
#[derive(Clone, Debug)]
pub(crate) struct RttEstimator {
    /// Eight times the smoothed round trip; `None` before the first sample.
    srtt8_us: Option<u32>,
    /// Four times the mean deviation.
    mdev4_us: u32,
    /// The largest `mdev4` of this round trip.
    mdev4_max_us: u32,
    /// Four times the variance.
    rttvar4_us: u32,
    /// Segment whose acknowledgement ends the present round trip.
    round_end: u32,
    rule: RtoRule,
    rto_min_us: u32,
    rto_max_us: u32,
    /// The clock's granularity: the variance's part is at least that (RFC 6298, section 2).
    tick_us: u32,
    min: MinFilter,
    /// The last sample, until somebody looks.
    latest_us: Option<u32>,
}

impl RttEstimator {
    pub fn new(profile: &Profile) -> Self {
        let micros = |span: Duration| u32::try_from(span.as_micros()).unwrap_or(u32::MAX);
        Self {
            srtt8_us: None,
            mdev4_us: 0,
            mdev4_max_us: 0,
            rttvar4_us: 0,
            round_end: 0,
            rule: profile.rto_rule,
            rto_min_us: micros(profile.rto_min),
            rto_max_us: micros(profile.rto_max),
            tick_us: match profile.timers {
                Timers::Exact => 1,
                timers => micros(timers.tick()),
            },
            min: MinFilter::default(),
            latest_us: None,
        }
    }

    /// Takes in a round trip of `rtt_us` while `una` is the first unacknowledged segment and
    /// `nxt` the next to be sent.
    #[inline]
    pub fn sample(&mut self, rtt_us: u32, una: u32, nxt: u32) {
        self.latest_us = Some(rtt_us);
        let Some(srtt8_us) = self.srtt8_us else {
            self.srtt8_us = Some((rtt_us << 3).max(1));
            self.mdev4_us = rtt_us << 1;
            self.rttvar4_us = match self.rule {
                RtoRule::Rfc6298 | RtoRule::Linux22 => self.mdev4_us.max(self.tick_us),
                RtoRule::Linux => self.mdev4_us.max(self.rto_min_us),
            };
            self.mdev4_max_us = self.rttvar4_us;
            self.round_end = nxt;
            return;
        };
        // Jacobson 1988: srtt += error / 8 and mdev += (|error| - mdev) / 4.
        let error_us = i64::from(rtt_us) - i64::from(srtt8_us >> 3);
        self.srtt8_us = Some((i64::from(srtt8_us) + error_us).max(1) as u32);
        let mut change_us = error_us.abs() - i64::from(self.mdev4_us >> 2);
        if self.rule == RtoRule::Linux && error_us < 0 && change_us > 0 {
            // A falling round trip counts an eighth, so that it does not look like variance (Eifel,
            // Ludwig and Katz 2000).
            change_us >>= 3;
        }
        self.mdev4_us = (i64::from(self.mdev4_us) + change_us).max(0) as u32;
        match self.rule {
            RtoRule::Rfc6298 | RtoRule::Linux22 => {
                self.rttvar4_us = self.mdev4_us.max(self.tick_us);
            }
            RtoRule::Linux => self.hold_variance(una, nxt),
        }
    }

    /// The variance follows the largest deviation of a round trip at once, and falls slowly.
    #[inline]
    fn hold_variance(&mut self, una: u32, nxt: u32) {
        if self.mdev4_us > self.mdev4_max_us {
            self.mdev4_max_us = self.mdev4_us;
            self.rttvar4_us = self.rttvar4_us.max(self.mdev4_max_us);
        }
        if una > self.round_end {
            if self.mdev4_max_us < self.rttvar4_us {
                self.rttvar4_us -= (self.rttvar4_us - self.mdev4_max_us) >> 2;
            }
            self.round_end = nxt;
            self.mdev4_max_us = self.rto_min_us;
        }
    }

    /// Remembers `rtt_us` as a candidate for the minimum of the last five minutes.
    #[inline]
    pub fn offer_min(&mut self, rtt_us: u32, now_us: u64) {
        self.min.offer(rtt_us.max(1), now_us);
    }

    /// The timeout in microseconds, in whole ticks of `timers`, at a window of `cwnd` segments: RFC 6298, section 2.
    #[inline]
    pub fn rto_us(&self, cwnd: u32, timers: Timers) -> u32 {
        let plain_us = (self.srtt8_us.unwrap_or(0) >> 3) + self.rttvar4_us;
        let rto_us = match self.rule {
            RtoRule::Rfc6298 | RtoRule::Linux => plain_us,
            RtoRule::Linux22 => {
                plain_us + (plain_us >> 2) + (plain_us >> cwnd.saturating_sub(1).min(31))
            }
        };
        let rto_us = rto_us.max(self.rto_min_us);
        let rto_us = match timers {
            Timers::Exact => rto_us,
            timers => {
                let ticks = timers.ticks_up(Duration::from_micros(u64::from(rto_us)));
                (ticks as u32).saturating_mul(self.tick_us)
            }
        };
        rto_us.min(self.rto_max_us)
    }

    /// The last sample since the last call, in microseconds.
    pub fn take_latest_us(&mut self) -> Option<u32> {
        self.latest_us.take()
    }

    /// Eight times the smoothed round trip in microseconds; `None` before the first sample.
    #[inline]
    pub fn srtt8_us(&self) -> Option<u32> {
        self.srtt8_us
    }

    /// The smallest round trip of the last five minutes in microseconds, the largest number before
    /// the first.
    #[inline]
    pub fn min_us(&self) -> u32 {
        self.min.best_us()
    }

    /// The shortest timeout in microseconds.
    pub fn rto_min_us(&self) -> u32 {
        self.rto_min_us
    }

    /// The mean deviation, in microseconds, which `TCP_INFO` calls the variance.
    pub fn mean_deviation_us(&self) -> u32 {
        self.mdev4_us >> 2
    }
}

/// The smallest value of the last five minutes: the best of two generations of half that length, so
/// that an old minimum leaves after 2.5 to 5 minutes.
#[derive(Clone, Debug)]
struct MinFilter {
    generations_us: [u32; 2],
    /// When the next generation begins; `None` before the first value.
    turn_at_us: Option<u64>,
}

impl Default for MinFilter {
    fn default() -> Self {
        Self { generations_us: [u32::MAX; 2], turn_at_us: None }
    }
}

impl MinFilter {
    fn offer(&mut self, value_us: u32, now_us: u64) {
        if now_us >= *self.turn_at_us.get_or_insert(now_us + HALF_WINDOW_US) {
            self.generations_us = [u32::MAX, self.generations_us[0]];
            self.turn_at_us = Some(now_us + HALF_WINDOW_US);
        }
        self.generations_us[0] = self.generations_us[0].min(value_us);
    }

    fn best_us(&self) -> u32 {
        self.generations_us[0].min(self.generations_us[1])
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
        assert_eq!(rtt.srtt8_us(), Some(320_000));
        assert_eq!(rtt.rto_us(10, Timers::Wheel), 240_000);
    }

    #[test]
    fn a_steady_round_trip_keeps_the_minimum_as_variance() {
        let mut rtt = estimator();
        for round in 0..50 {
            rtt.sample(100_000, round * 10 + 1, (round + 1) * 10);
        }
        assert_eq!(rtt.srtt8_us().map(|eighth| eighth >> 3), Some(100_000));
        assert_eq!(rtt.rto_us(10, Timers::Wheel), 300_000);
    }

    #[test]
    fn the_timeout_comes_in_whole_ticks() {
        let mut rtt = estimator();
        rtt.sample(41_001, 0, 10);
        assert_eq!(rtt.rto_us(10, Timers::Wheel), 244_000);
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
                assert_eq!(rtt.min_us(), least, "{at} us after {start}");
            }
        }
    }

    #[test]
    fn linux_2_2_waits_longer_the_smaller_the_window() {
        let profile = Profile::named("linux22").unwrap();
        let mut rtt = RttEstimator::new(&profile);
        rtt.sample(200_000, 0, 1);
        // 200 ms and four times half of it make 600 ms; 5/4 of it and 1/2^(cwnd - 1).
        assert_eq!(
            [1, 2, 4, 40].map(|cwnd| rtt.rto_us(cwnd, profile.timers)),
            [1_350_000, 1_050_000, 830_000, 750_000]
        );
    }

    #[test]
    fn a_growing_round_trip_widens_the_timeout() {
        let mut rtt = estimator();
        rtt.sample(40_000, 0, 10);
        rtt.sample(400_000, 1, 10);
        // error 360 ms: srtt 85 ms, mdev 20 -> 105 ms (times 4).
        assert_eq!(rtt.srtt8_us().map(|eighth| eighth >> 3), Some(85_000));
        assert_eq!(rtt.rto_us(10, Timers::Wheel), 508_000);
    }
}
