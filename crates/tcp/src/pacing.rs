//! Pacing: data leaves evenly spread instead of in bursts.
//!
//! Follows Linux' internal pacing (`tcp_update_skb_after_send`, `tcp_pacing_check`); no RFC says how.

use weir_core::{Duration, Time};

use crate::sender::Sender;

/// Pacing state: when the last segment left, and when the next may.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Pace {
    /// Time of the timer for a segment that waits for its turn; [`Time::MAX`] if none does.
    pub timer: Time,
    /// When data was last sent.
    pub last_sent: Time,
    /// Time until which the data sent so far fills the rate.
    pub until: Time,
}

impl Default for Pace {
    fn default() -> Self {
        Self { timer: Time::MAX, last_sent: Time::ZERO, until: Time::ZERO }
    }
}

impl Sender {
    /// Sets the pacing rate as Linux does: twice the rate of the window in slow start, 1.2 times after
    /// (`tcp_update_pacing_rate`).
    #[inline]
    pub fn update_pacing_rate(&mut self) {
        if self.delivery.sampler.is_some() {
            return;
        }
        let percent = if self.window.cwnd < self.window.ssthresh / 2 { 200 } else { 120 };
        let segments = self.window.cwnd.max(self.board.packets_out());
        let bytes = u64::from(self.mss) * u64::from(segments);
        // Before the first round trip is known the rate is as good as unlimited.
        let srtt8_us = u64::from(self.rtt.srtt8_us().unwrap_or(1));
        self.window.pacing_rate = bytes * percent * (8 * 1_000_000 / 100) / srtt8_us;
    }

    /// Counts `bytes` of data, which leave at once, against the pacing rate (`tcp_update_skb_after_send`).
    ///
    /// A burst that leaves late has up to half of the next wait forgiven; the first ten segments are not held
    /// back.
    #[inline]
    pub fn note_sent(&mut self, bytes: u64, now: Time) {
        self.pace.last_sent = now;
        self.window.last_sent_us = self.window.now_us;
        if !self.window.paced {
            return;
        }
        let late = now.checked_since(self.pace.until).unwrap_or(Duration::ZERO);
        self.pace.until = self.pace.until.max(now);
        if self.window.pacing_rate > 0 && self.counters.segments_sent >= UNPACED_SEGMENTS {
            let wait = Duration::from_nanos(bytes * 1_000_000_000 / self.window.pacing_rate);
            self.pace.until += wait - late.min(wait / 2);
        }
    }

    /// Whether data has to wait for its turn, which then becomes a timer.
    #[inline]
    pub fn must_wait_for_pace(&mut self, now: Time) -> bool {
        let waits = self.window.paced && self.pace.until > now;
        if waits {
            self.pace.timer = self.pace.timer.min(self.pace.until);
        }
        waits
    }

    /// When the last burst left, or the next may.
    pub fn last_turn(&self) -> Time {
        self.pace.last_sent.max(self.pace.until)
    }

    /// Whether data waited for its turn until now.
    pub fn take_pacing_timer(&mut self, now: Time) -> bool {
        let waited = self.pace.timer <= now;
        if waited {
            self.pace.timer = Time::MAX;
        }
        waited
    }
}

/// Segments that pacing lets pass at the start, when the path is not known yet.
const UNPACED_SEGMENTS: u64 = 10;
