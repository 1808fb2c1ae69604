//! Transmission of new data: how much leaves when, and in what bursts.
//!
//! Follows Linux `tcp_write_xmit` and what it calls in `net/ipv4/tcp_output.c`.

use weir_core::{Duration, Ecn, Time};
use weir_scenario::LINUX_INITIAL_WINDOW_SEGMENTS;

use crate::profile::{Bursts, IdleRestart, Profile};
use crate::recovery::Phase;
use crate::segment::{Flags, Segment};
use crate::send_buffer::Push;
use crate::sender::{Sender, Wire};
use crate::timers::Timer;

impl Sender {
    /// Sends new data, and lets the application write more as there is room for it
    /// (`tcp_data_snd_check`). What algorithms see is [up to date](Self::refresh).
    pub fn send_new_data(&mut self, profile: &Profile, wire: &mut impl Wire, now: Time) -> u32 {
        debug_assert!(self.is_fresh(now));
        let mut sent = self.send_buffered(Push::All, profile, wire, now);
        if self.stream.buffered.end < self.stream.written {
            self.make_room(profile);
            while self.is_writable() {
                let end = self.begin_write();
                while let Some(push) = self.take_piece(end) {
                    sent += self.send_buffered(push, profile, wire, now);
                }
                self.end_write();
                sent += self.send_buffered(Push::All, profile, wire, now);
            }
            self.stream.buffered.is_full = self.stream.buffered.end < self.stream.written;
        }
        sent
    }

    /// Sends buffered data as far as windows, pacing and bursts allow (`tcp_write_xmit`).
    fn send_buffered(
        &mut self,
        push: Push,
        profile: &Profile,
        wire: &mut impl Wire,
        now: Time,
    ) -> u32 {
        if push == Push::Nothing {
            return 0;
        }
        let mut max_burst = None;
        let mut sent = 0;
        let mut held_back_by_cwnd = false;
        while self.has_segment() {
            if self.must_wait_for_pace(now) {
                break;
            }
            let in_flight = self.in_flight(profile);
            if in_flight >= self.window.cwnd {
                break;
            }
            let room = self.window.cwnd - in_flight;
            let max_burst = *max_burst.get_or_insert_with(|| self.max_burst(profile));
            let quota = room.min((self.window.cwnd / 2).max(1)).min(max_burst);
            if self.next_segment_end() > self.peer_window.end {
                break;
            }
            if profile.bursts == Bursts::Linux
                && push == Push::All
                && let Some(limit) = self.waits_for_more(room, max_burst, now)
            {
                held_back_by_cwnd = limit == Limit::CongestionWindow;
                break;
            }
            sent += self.send_burst(quota, profile, wire, now);
            if push == Push::OneBurst {
                break;
            }
        }
        held_back_by_cwnd |= self.in_flight(profile) >= self.window.cwnd;
        if sent > 0 || held_back_by_cwnd {
            self.validate_cwnd(held_back_by_cwnd, profile);
        }
        if sent > 0 {
            self.on_sent(sent);
            if !self.schedule_loss_probe(false, profile, now)
                && matches!(self.pending_timer(), None | Some(Timer::LossProbe))
            {
                self.rearm_timeout(now);
            }
        }
        sent
    }

    /// Sends the next new segment whatever the congestion window says: a tail loss probe.
    pub fn send_one_new(&mut self, profile: &Profile, wire: &mut impl Wire, now: Time) -> bool {
        self.refresh(now);
        if !self.has_segment() || self.next_segment_end() > self.peer_window.end {
            return false;
        }
        let sent = self.send_burst(1, profile, wire, now);
        self.validate_cwnd(self.in_flight(profile) >= self.window.cwnd, profile);
        self.on_sent(sent);
        true
    }

    /// Bytes in the buffer that were not sent yet.
    pub fn unsent(&self) -> u64 {
        self.stream.buffered.end - self.stream.sent
    }

    /// Whether there is a segment to send. A short one waits for the rest of it if that will be written.
    fn has_segment(&self) -> bool {
        let unsent = self.unsent();
        unsent >= u64::from(self.mss)
            || (unsent > 0 && self.stream.buffered.end == self.stream.written)
    }

    #[inline]
    fn next_segment_end(&self) -> u64 {
        self.stream.sent + self.unsent().min(u64::from(self.mss))
    }

    /// The most segments handed down at once: a millisecond of the pacing rate, more on short paths,
    /// two at least (`tcp_tso_autosize`).
    #[inline]
    pub fn max_burst(&mut self, profile: &Profile) -> u32 {
        if profile.bursts == Bursts::None {
            return 1;
        }
        let mut bytes = self.window.pacing_rate >> 10;
        let rtt_steps = self.rtt.min_us() >> 9;
        if rtt_steps < 32 {
            bytes += u64::from(MAX_BURST_BYTES >> rtt_steps);
        }
        let least = match self.delivery.sampler {
            None => MIN_BURST_SEGMENTS,
            Some(_) => self
                .algorithm
                .rate_control()
                .map_or(MIN_BURST_SEGMENTS, |control| control.least_burst(&self.window)),
        };
        let bytes = bytes.min(u64::from(MAX_BURST_BYTES)) as u32;
        // Mostly so few that there is nothing to divide.
        if bytes < (least + 1) * self.mss { least } else { bytes / self.mss }
    }

    /// Whether to hold a burst back because an acknowledgement that enlarges it is about to come, and
    /// which window it would enlarge (`tcp_tso_should_defer`).
    #[inline]
    fn waits_for_more(&self, room: u32, max_burst: u32, now: Time) -> Option<Limit> {
        if self.recovery.phase >= Phase::Recovery || self.unsent() <= u64::from(self.mss) {
            return None;
        }
        let idle_for = now.checked_since(self.last_turn()).unwrap_or(Duration::ZERO);
        if idle_for > MAX_DEFER_IDLE {
            return None;
        }
        let mss = u64::from(self.mss);
        let send_window = self.peer_window.end - self.stream.sent;
        let congestion_window = u64::from(room) * mss;
        let limit = send_window.min(congestion_window);
        let third =
            (u64::from(self.peer_window.largest)).min(u64::from(self.window.cwnd) * mss) / 3;
        if limit >= u64::from(max_burst) * mss || limit >= self.unsent() || limit >= third {
            return None;
        }
        let srtt_us = u64::from(self.rtt.srtt8_us().unwrap_or(0) >> 3);
        let expected_us = self.board.head()?.sent_us + srtt_us;
        let soon_us = (srtt_us / 2).min(MAX_DEFER_US);
        (expected_us <= self.window.now_us + soon_us).then_some(
            if congestion_window < send_window {
                Limit::CongestionWindow
            } else {
                Limit::ReceiveWindow
            },
        )
    }

    fn send_burst(
        &mut self,
        quota: u32,
        profile: &Profile,
        wire: &mut impl Wire,
        now: Time,
    ) -> u32 {
        if self.board.packets_out() == 0 {
            self.algorithm.on_restart(&self.window);
            self.with_rate_control(now, |control, window, path, rate| {
                control.on_restart(window, path, rate);
            });
        }
        let now_us = self.window.now_us;
        let mut sent = 0;
        let mut bytes = 0;
        while sent < quota && self.has_segment() && self.next_segment_end() <= self.peer_window.end
        {
            let len = self.unsent().min(u64::from(self.mss)) as u16;
            let mut segment = Segment {
                offset: self.stream.sent,
                seq: self.board.nxt(),
                ts: (now_us / 1_000) as u32,
                len,
                ..Segment::default()
            };
            if self.recovery.cwr_pending && profile.ecn {
                segment.flags = segment.flags.with(Flags::CWR);
                self.recovery.cwr_pending = false;
            }
            self.stamp_rate(segment.seq, now_us);
            self.board.push(self.stream.sent, len, sent == 0, now_us, self.delivery.delivered);
            self.stream.sent += u64::from(len);
            self.counters.segments_sent += 1;
            self.counters.bytes_sent += u64::from(len);
            bytes += u64::from(len);
            sent += 1;
            let last = sent == quota
                || !self.has_segment()
                || self.next_segment_end() > self.peer_window.end;
            if last && sent > 1 {
                // All offloaded data is pushed (`__tcp_transmit_skb`).
                segment.flags = segment.flags.with(Flags::PSH);
            }
            wire.send(&mut segment, if profile.ecn { Ecn::Ect0 } else { Ecn::NotEct });
        }
        self.window.nxt = self.board.nxt();
        self.note_sent(bytes, now);
        self.make_room(profile);
        sent
    }

    /// Counts `segments` that were sent, for a reduction of the window.
    #[inline]
    pub fn on_sent(&mut self, segments: u32) {
        if self.recovery.phase.is_reducing() {
            self.recovery.reduction.sent += segments;
        }
    }

    /// Keeps track of whether the window is what limits (`tcp_cwnd_validate`), and lets it shrink by
    /// half the difference each timeout that it was not used (RFC 7661).
    #[inline]
    fn validate_cwnd(&mut self, limited: bool, profile: &Profile) {
        let packets_out = self.board.packets_out();
        let window = &mut self.window;
        if self.board.una() >= self.usage.round_end
            || limited
            || (!window.is_cwnd_limited && packets_out > window.max_packets_out)
        {
            window.is_cwnd_limited = limited;
            window.max_packets_out = packets_out;
            self.usage.round_end = self.board.nxt();
        }
        if window.is_limiting() {
            self.usage.max_used = 0;
            self.stamp_cwnd();
            return;
        }
        self.usage.max_used = self.usage.max_used.max(packets_out);
        let unused_us = window.ticks_since(self.usage.checked_us) * window.tick_us();
        let decays = profile.idle_restart == IdleRestart::Decay && self.delivery.sampler.is_none();
        if decays && unused_us >= u64::from(self.timers.rto_us) {
            // Waiting for the application, or for the peer's window: only the former shrinks it.
            let by_application = self.stream.written == self.stream.sent;
            if self.recovery.phase == Phase::Open && by_application {
                let used = self.usage.max_used.max(LINUX_INITIAL_WINDOW_SEGMENTS);
                if used < window.cwnd {
                    window.ssthresh = self.recovery.current_ssthresh(window);
                    window.cwnd = u32::midpoint(window.cwnd, used);
                }
                self.usage.max_used = 0;
            }
            self.stamp_cwnd();
        }
    }
}

/// The window that holds a burst back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Limit {
    CongestionWindow,
    ReceiveWindow,
}

/// Largest burst of offloaded data in bytes (`sk_gso_max_size`).
const MAX_BURST_BYTES: u32 = 65_536;
/// Fewest segments of a burst (`tcp_min_tso_segs`).
const MIN_BURST_SEGMENTS: u32 = 2;
/// Time since the last burst after which none is held back.
const MAX_DEFER_IDLE: Duration = Duration::from_millis(1);
/// Time at most for which a burst is held back.
const MAX_DEFER_US: u64 = 1_000;
