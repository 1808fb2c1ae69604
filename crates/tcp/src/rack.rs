//! RACK: a segment is lost once one that was sent sufficiently later has arrived (RFC 8985).
//!
//! Follows Linux `net/ipv4/tcp_recovery.c`.

use weir_core::Time;

use crate::profile::{LossDetection, Profile};
use crate::recovery::Phase;
use crate::scoreboard::Delivered;
use crate::sender::Sender;
use crate::timers::{TIMEOUT_MIN_US, Timer};

/// RACK's state: the latest transmission that is known to have arrived (RFC 8985).
#[derive(Clone, Debug, Default)]
pub(crate) struct Rack {
    /// When it was sent, in microseconds.
    sent_us: u64,
    /// Number behind the newest segment that arrived; decides between transmissions of one instant.
    end: u32,
    rtt_us: u32,
    /// Whether it has moved since losses were last looked for.
    pub advanced: bool,
    /// The reordering window in quarters of the smallest round trip.
    window_steps: Steps,
    duplicate_seen: bool,
    /// Number of segments that had been delivered when the window was last widened.
    widened_at: u32,
    /// Recoveries for which a widened window is kept.
    keep: u32,
}

/// Reordering on the path, as far as it is known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reordering {
    /// Distance by which segments may arrive out of order without one being lost, in segments.
    pub degree: u32,
    /// Whether any was seen.
    pub is_seen: bool,
    /// Whether the degree follows what is seen; by RFC 6675 it is three segments for good.
    pub is_learned: bool,
}

impl Reordering {
    pub fn new(profile: &Profile) -> Self {
        let is_learned = profile.loss_detection == LossDetection::Rack;
        Self { degree: REORDERING, is_seen: false, is_learned }
    }

    /// Notes that segments `distance` apart arrived out of order.
    pub fn note(&mut self, distance: u32) {
        if self.is_learned {
            self.degree = self.degree.max(distance).min(MAX_REORDERING);
            self.is_seen = true;
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Steps(u32);

impl Default for Steps {
    fn default() -> Self {
        Self(1)
    }
}

impl Rack {
    /// Notes a segment that is known to have arrived at `now_us` (RFC 8985, section 6.2, step 2).
    pub fn on_delivered(&mut self, arrived: &Delivered, min_rtt_us: u32, now_us: u64) {
        let rtt_us = (now_us - arrived.sent_us) as u32;
        if arrived.ever_retransmitted && rtt_us < min_rtt_us {
            // Too soon for the retransmission: this acknowledges the original.
            return;
        }
        self.advanced = true;
        self.rtt_us = rtt_us;
        let sent = (arrived.sent_us, arrived.seq + 1);
        if sent > (self.sent_us, self.end) {
            (self.sent_us, self.end) = sent;
        }
    }

    /// Notes that a duplicate was reported: segments were merely reordered.
    pub fn on_duplicate(&mut self) {
        self.duplicate_seen = true;
    }

    /// Notes a recovery that ended without being undone.
    pub fn on_recovery_end(&mut self) {
        self.keep = self.keep.saturating_sub(1);
    }

    /// Notes a recovery that was needless.
    pub fn on_undo(&mut self) {
        self.keep = (self.keep + 1).min(KEEP_RECOVERIES);
    }

    /// Widens the reordering window once a round trip in which duplicates were reported, and narrows
    /// it again after sixteen recoveries without (RFC 8985, section 6.2, step 4).
    #[inline]
    pub fn update_window(&mut self, prior_delivered: Option<u32>, delivered: u32) {
        let Some(prior) = prior_delivered else { return };
        if prior < self.widened_at {
            self.duplicate_seen = false;
        }
        if self.duplicate_seen {
            self.window_steps.0 = (self.window_steps.0 + 1).min(255);
            self.duplicate_seen = false;
            self.widened_at = delivered;
            self.keep = KEEP_RECOVERIES;
        } else if self.keep == 0 {
            self.window_steps = Steps::default();
        }
    }

    /// Microseconds after which the transmission at `sent_us` is lost if nothing is heard of it.
    pub fn remaining_us(&self, sent_us: u64, window_us: u32, now_us: u64) -> i64 {
        i64::from(self.rtt_us) + i64::from(window_us) - (now_us - sent_us) as i64
    }
}

impl Sender {
    /// Marks what is lost by now and sets the timer for what may be soon; says whether it set it.
    pub fn find_losses_by_time(&mut self, now: Time) -> bool {
        if !self.rack.advanced {
            return false;
        }
        self.rack.advanced = false;
        let wait_us = self.mark_overdue();
        if let Some(wait_us) = wait_us {
            let wait_us = (wait_us + TIMEOUT_MIN_US).min(self.timers.rto_us);
            self.set_timer(Timer::Reordering, wait_us, now);
        }
        wait_us.is_some()
    }

    /// Marks every segment lost that was sent sufficiently before the latest one that arrived, and
    /// returns the microseconds until the others of its age will be.
    pub fn mark_overdue(&mut self) -> Option<u32> {
        let window_us = self.reordering_window_us();
        let now_us = self.window.now_us;
        let mut wait_us = None;
        let mut next = self.board.oldest_transmission();
        while let Some(seq) = next {
            next = self.board.newer_transmission(seq);
            let entry = self.board.get(seq);
            if entry.lost() && !entry.retransmitted() {
                continue;
            }
            if (entry.sent_us, seq + 1) >= (self.rack.sent_us, self.rack.end) {
                break;
            }
            let remaining_us = self.rack.remaining_us(entry.sent_us, window_us, now_us);
            if remaining_us <= 0 {
                self.mark_lost(seq);
                self.board.forget_transmission(seq);
            } else {
                wait_us = wait_us.max(Some(remaining_us as u32));
            }
        }
        wait_us
    }

    /// How much later than others a segment may arrive, in microseconds: nothing in recovery or after three segments
    /// out of order, as long as no reordering was seen; else a quarter of the smallest round trip.
    fn reordering_window_us(&self) -> u32 {
        if !self.reordering.is_seen
            && (self.recovery.phase >= Phase::Recovery
                || self.board.sacked_out >= self.reordering.degree)
        {
            return 0;
        }
        let step_us = self.rtt.min_us() / 4;
        step_us.saturating_mul(self.rack.window_steps.0).min(self.rtt.srtt8_us().unwrap_or(0) >> 3)
    }
}

/// Degree of reordering that is assumed: three duplicate acknowledgements (RFC 5681, section 3.2;
/// `tcp_reordering`).
pub(crate) const REORDERING: u32 = 3;
/// Largest degree of reordering that is believed, in segments (`tcp_max_reordering`).
pub(crate) const MAX_REORDERING: u32 = 300;
/// Recoveries for which a widened window is kept (`TCP_RACK_RECOVERY_THRESH`).
const KEEP_RECOVERIES: u32 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reordering_of_more_than_three_hundred_segments_is_not_believed() {
        let mut reordering = Reordering::new(&Profile::named("linux").unwrap());
        assert_eq!((reordering.degree, reordering.is_seen), (3, false));
        for (distance, degree) in [(2, 3), (4, 4), (299, 299), (301, 300), (5, 300)] {
            reordering.note(distance);
            assert_eq!((reordering.degree, reordering.is_seen), (degree, true), "{distance}");
        }
    }

    #[test]
    fn where_losses_are_counted_three_segments_are_the_rule_for_good() {
        let mut reordering = Reordering::new(&Profile::named("rfc").unwrap());
        reordering.note(10);
        assert_eq!((reordering.degree, reordering.is_seen), (3, false));
    }
}
