//! Acknowledgements that come in bursts: what BBR adds to its window for them.
//!
//! Where a path holds acknowledgements back and lets them go at once, a window of what it carries in a
//! round trip runs dry in between. BBR measures by how much more is acknowledged at times than its
//! estimate of the rate would have it (`bbr_update_ack_aggregation`).

use super::Bandwidth;

/// The largest excess over the expected acknowledgements in the last 5 to 10 round trips.
#[derive(Clone, Debug, Default)]
pub(super) struct Aggregation {
    /// Largest excess of the present five round trips, and of the ones before, in segments.
    excess: [u32; 2],
    present: usize,
    rounds: u32,
    /// Start of the measured interval, in microseconds.
    start_us: u64,
    /// Segments acknowledged since the start of the interval.
    acked: u32,
}

impl Aggregation {
    /// Starts to measure at `now_us`.
    pub fn restart(&mut self, now_us: u64) {
        self.start_us = now_us;
        self.acked = 0;
    }

    /// The largest excess, in segments.
    pub fn excess(&self) -> u32 {
        self.excess[0].max(self.excess[1])
    }

    /// `acked` segments more were acknowledged by `now_us`, where `bandwidth` is expected. No excess is
    /// larger than `cwnd`.
    pub fn on_ack(
        &mut self,
        acked: u32,
        starts_round: bool,
        bandwidth: Bandwidth,
        cwnd: u32,
        now_us: u64,
    ) {
        if starts_round {
            self.rounds += 1;
            if self.rounds >= WINDOW_ROUNDS {
                self.rounds = 0;
                self.present = 1 - self.present;
                self.excess[self.present] = 0;
            }
        }
        let mut expected = bandwidth.segments_in(now_us.saturating_sub(self.start_us));
        if u64::from(self.acked) <= expected || self.acked + acked >= TOO_MANY {
            self.restart(now_us);
            expected = 0;
        }
        self.acked = (self.acked + acked).min(TOO_MANY - 1);
        let excess = (u64::from(self.acked) - expected).min(u64::from(cwnd)) as u32;
        self.excess[self.present] = self.excess[self.present].max(excess);
    }
}

/// Round trips of a half of the window (`bbr_extra_acked_win_rtts`).
const WINDOW_ROUNDS: u32 = 5;
/// Counted segments after which measuring starts anew (`bbr_ack_epoch_acked_reset_thresh`).
const TOO_MANY: u32 = 1 << 20;
