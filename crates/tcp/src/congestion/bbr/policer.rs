//! Policers: BBR's long-term bandwidth.
//!
//! A token bucket that drops what exceeds its rate lets bursts pass faster, which a maximum takes for the
//! path's rate. Two intervals in a row with many losses and nearly the same throughput give it away (Flach
//! et al., "An Internet-Wide Analysis of Traffic Policing", SIGCOMM 2016; `bbr_lt_bw_sampling`).

use super::{Bandwidth, UNIT};

/// Looks for a policer, and remembers its rate.
#[derive(Clone, Debug, Default)]
pub(super) struct Policer {
    is_sampling: bool,
    /// The rate of the last interval, or that of the policer.
    bandwidth: Option<Bandwidth>,
    found: bool,
    /// Round trips in the interval, or since the policer was found.
    rounds: u32,
    start: Progress,
}

/// How far a flow has come.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Progress {
    /// Segments delivered.
    pub delivered: u32,
    /// Segments lost.
    pub lost: u32,
    /// When something was delivered last, in microseconds.
    pub delivered_us: u64,
}

/// Facts of one acknowledgement that the detector of policers looks at.
#[derive(Clone, Copy, Debug)]
pub(super) struct News {
    pub now: Progress,
    /// Segments newly taken for lost.
    pub losses: u32,
    pub is_app_limited: bool,
    pub starts_round: bool,
    /// Segments' size, in bytes.
    pub mss: u32,
}

impl Policer {
    /// Rate of the policer, if one was found.
    pub fn bandwidth(&self) -> Option<Bandwidth> {
        self.bandwidth.filter(|_| self.found)
    }

    /// Forgets the policer and its samples, and starts anew at `now`.
    pub fn reset(&mut self, now: Progress) {
        *self = Self { start: now, ..Self::default() };
    }

    /// Whether the time at the policer's rate is over, and the path is to be tried anew.
    ///
    /// Counts a round trip if one starts.
    pub fn is_over(&mut self, starts_round: bool, now: Progress) -> bool {
        self.rounds += u32::from(starts_round);
        let over = starts_round && self.rounds >= KEEP_ROUNDS;
        if over {
            self.reset(now);
        }
        over
    }

    /// Looks at an acknowledgement, and says whether it gave a policer away.
    pub fn look(&mut self, news: News) -> bool {
        if !self.is_sampling {
            // Up to the first loss the bucket is being emptied, and bursts pass.
            if news.losses == 0 {
                return false;
            }
            self.start_interval(news.now);
            self.is_sampling = true;
        }
        if news.is_app_limited {
            self.reset(news.now);
            return false;
        }
        self.rounds += u32::from(news.starts_round);
        if self.rounds > 4 * MIN_INTERVAL_ROUNDS {
            self.reset(news.now);
            return false;
        }
        // An interval ends with a loss, when the bucket is empty.
        if self.rounds < MIN_INTERVAL_ROUNDS || news.losses == 0 {
            return false;
        }
        let lost = news.now.lost - self.start.lost;
        let delivered = news.now.delivered - self.start.delivered;
        let is_lossy = delivered > 0 && u64::from(lost) << 8 >= LOSSY * u64::from(delivered);
        let ms = news.now.delivered_us / 1_000 - self.start.delivered_us / 1_000;
        if !is_lossy || ms == 0 {
            return false;
        }
        self.end_interval(Bandwidth::of(delivered, ms * 1_000), news)
    }

    fn start_interval(&mut self, now: Progress) {
        self.start = now;
        self.rounds = 0;
    }

    /// Ends an interval: two of about the same rate are a policer's.
    fn end_interval(&mut self, bandwidth: Bandwidth, news: News) -> bool {
        if let Some(last) = self.bandwidth {
            let difference = bandwidth.difference(last);
            if difference.0 * UNIT <= SAME_SHARE * last.0
                || difference.bytes_per_second(UNIT, news.mss) <= SAME_BYTES_PER_SECOND
            {
                self.bandwidth = Some(Bandwidth(u64::midpoint(bandwidth.0, last.0)));
                self.found = true;
                self.rounds = 0;
                return true;
            }
        }
        self.bandwidth = Some(bandwidth);
        self.start_interval(news.now);
        false
    }
}

/// Round trips of an interval at least (`bbr_lt_intvl_min_rtts`).
const MIN_INTERVAL_ROUNDS: u32 = 4;
/// An interval is lossy if more than this part of 256 of what arrived was lost: 20 %
/// (`bbr_lt_loss_thresh`).
const LOSSY: u64 = 50;
/// Rates are the same if they differ by an eighth at most, in units of [`UNIT`] (`bbr_lt_bw_ratio`).
const SAME_SHARE: u64 = UNIT / 8;
/// Rates are the same if they differ by 4 kbit/s at most (`bbr_lt_bw_diff`), here in bytes per second.
const SAME_BYTES_PER_SECOND: u64 = 4_000 / 8;
/// Round trips at a policer's rate before the path is tried anew (`bbr_lt_bw_max_rtts`).
const KEEP_ROUNDS: u32 = 48;

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds a round trip of 100 ms in which `delivered` segments arrive and `lost` are lost.
    fn round(policer: &mut Policer, progress: &mut Progress, delivered: u32, lost: u32) -> bool {
        progress.delivered += delivered;
        progress.lost += lost;
        progress.delivered_us += 100_000;
        let news = News {
            now: *progress,
            losses: lost,
            is_app_limited: false,
            starts_round: true,
            mss: 1_448,
        };
        policer.look(news)
    }

    #[test]
    fn two_lossy_intervals_of_one_rate_are_a_policers() {
        let (mut policer, mut progress) = (Policer::default(), Progress::default());
        // The first loss starts an interval, of which it counts as a round trip; four end it.
        for (delivered, lost) in [(100, 30), (20, 5), (20, 5), (20, 5), (21, 6), (21, 6), (21, 6)] {
            assert!(!round(&mut policer, &mut progress, delivered, lost));
        }
        assert!(round(&mut policer, &mut progress, 21, 6));
        // 20 and 21 segments in 100 ms: the mean.
        let (first, second) = (Bandwidth::of(60, 300_000), Bandwidth::of(84, 400_000));
        assert_eq!(policer.bandwidth(), Some(Bandwidth(u64::midpoint(first.0, second.0))));
        // It is kept for 48 round trips.
        let rounds = (1..60).position(|_| policer.is_over(true, progress));
        assert_eq!((rounds, policer.bandwidth()), (Some(47), None));
    }

    #[test]
    fn few_losses_or_another_rate_are_not() {
        // 19.5 % of what arrived is 50/256, and one less is too few.
        for (lost, second, found) in [(5, 20, true), (3, 20, false), (5, 15, false)] {
            let (mut policer, mut progress) = (Policer::default(), Progress::default());
            round(&mut policer, &mut progress, 100, 1);
            let first = (0..4).map(|_| 20);
            let found_now = first
                .chain((0..4).map(|_| second))
                .any(|delivered| round(&mut policer, &mut progress, delivered, lost));
            assert_eq!(found_now, found, "{lost} of 20 lost, then {second} a round trip");
        }
    }
}
