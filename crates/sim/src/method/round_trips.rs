//! Round trips that TCP takes of a connection, kept as means of 10 ms.

use weir_core::{Duration, Time};

/// The round trips of a connection's end since the last mean was kept.
///
/// The first round trip after a pause is not one like the others: it may have waited for an acknowledgement that was
/// delayed over the pause. So none stands for those that follow it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MeanRoundTrips {
    /// From then on the next round trip is of another mean.
    ends: Time,
    /// When the first of them began.
    sent: Time,
    sum_ns: u64,
    count: u64,
}

/// A mean of round trips.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeptRoundTrip {
    /// When the first of them began.
    pub sent: Time,
    pub mean: Duration,
}

impl MeanRoundTrips {
    /// Adds a round trip that is over `now`; the mean of those of the 10 ms before, if these are over.
    pub fn add(&mut self, rtt: Duration, now: Time) -> Option<KeptRoundTrip> {
        let kept = if now < self.ends { None } else { self.take() };
        if self.count == 0 {
            self.ends = now + INTERVAL;
            self.sent = now.saturating_sub(rtt);
        }
        self.sum_ns += rtt.as_nanos();
        self.count += 1;
        kept
    }

    fn take(&mut self) -> Option<KeptRoundTrip> {
        let Self { sent, sum_ns, count, .. } = std::mem::take(self);
        let mean = Duration::from_nanos(sum_ns.checked_div(count)?);
        Some(KeptRoundTrip { sent, mean })
    }
}

/// Over how long round trips are averaged.
const INTERVAL: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn round_trips_of_ten_milliseconds_are_one_mean() {
        let mut means = MeanRoundTrips::default();
        for (at, rtt) in [(100, 40), (101, 20), (109, 21)] {
            assert_eq!(means.add(ms(rtt), Time::from_millis(at)), None);
        }
        let mut next = |rtt, at| means.add(ms(rtt), Time::from_millis(at));
        let mean =
            |sent, mean| Some(KeptRoundTrip { sent: Time::from_millis(sent), mean: ms(mean) });
        assert_eq!(next(30, 110), mean(60, 27));
        // The next mean begins with its first round trip, however late that comes.
        assert_eq!(next(50, 500), mean(80, 30));
        assert_eq!(next(70, 509), None);
        assert_eq!(next(1, 510), mean(450, 60));
    }
}
