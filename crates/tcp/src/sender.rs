//! The sending half: what to send, and when.
//!
//! This file holds the state, retransmission and the timers; [`transmit`](crate::transmit) sends new
//! data, [`ack`](crate::ack) takes in acknowledgements and [`recovery`](crate::recovery) handles losses. Follows Linux
//! `net/ipv4/tcp_output.c` and `tcp_timer.c`.

use std::ops::Range;

use weir_core::{Duration, Ecn, Time};

use crate::congestion::CongestionControl;
use crate::pacing::Pace;
use crate::profile::{IdleRestart, LossDetection, Profile};
use crate::rack::Rack;
use crate::rate::RateSampler;
use crate::recovery::{Phase, Reduction};
use crate::rtt::RttEstimator;
use crate::scoreboard::Scoreboard;
use crate::segment::{Flags, Segment};
use crate::send_buffer::Buffered;
use crate::undo::Undo;
use crate::window::Window;

/// Receives the segments that an endpoint sends, in order.
pub trait Wire {
    /// `segment` leaves now, with `ecn` in its IP header.
    fn send(&mut self, segment: Segment, ecn: Ecn);
}

/// The sending half of a connection.
#[derive(Debug)]
pub(crate) struct Sender {
    pub window: Window,
    pub board: Scoreboard,
    pub rtt: RttEstimator,
    pub rack: Rack,
    pub phase: Phase,
    pub reduction: Reduction,
    pub undo: Undo,
    pub algorithm: Box<dyn CongestionControl>,

    pub mss: u32,
    /// Bytes that the application has written; the largest number for an endless stream.
    pub written: u64,
    /// The part of it that lies in the send buffer.
    pub buffered: Buffered,
    /// Bytes handed to the network for the first time.
    pub sent_offset: u64,
    /// Where the peer's receive window ends, in bytes.
    pub window_end: u64,
    /// Largest window that the peer offered, in bytes.
    pub largest_window: u32,

    /// Segments delivered (acknowledged one way or the other).
    pub delivered: u32,
    /// Segments lost, again after each retransmission.
    pub lost: u32,
    /// Recovery or loss lasts until this segment is acknowledged (`high_seq`).
    pub recovery_end: u32,
    /// Distance by which segments may arrive out of order without one being lost, in segments.
    pub reordering: u32,
    pub reordering_seen: bool,
    /// Whether that distance follows what is seen; by RFC 6675 it is three segments for good.
    pub learns_reordering: bool,
    /// Timestamp of the first retransmission since all was well, in milliseconds.
    pub retrans_stamp: Option<u32>,
    pub tail_probe: Option<TailProbe>,
    /// A window reduction that the receiver is not told of yet (RFC 3168, CWR).
    pub announce_reduction: bool,
    pub f_rto_running: bool,
    /// Segments that the peer says it got twice.
    pub duplicates_reported: u64,

    pub rto_us: u32,
    /// Timeouts in a row.
    pub retransmits: u32,
    timer: Option<(Timer, Time)>,
    pub pace: Pace,
    /// The rate at which data arrives, if the congestion control goes by it.
    pub rate: Option<Box<RateSampler>>,
    /// The latest timestamp echoed by the peer, in milliseconds; `None` before the first.
    last_echo: Option<u32>,
    /// When data was last sent.
    pub last_sent: Time,
    pub cwnd_usage_end: u32,
    pub cwnd_used: u32,
    pub cwnd_checked_tick: u64,
    pub counters: Counters,
}

/// A tail loss probe under way (RFC 8985, section 7).
#[derive(Clone, Copy, Debug)]
pub(crate) struct TailProbe {
    /// Number of the segment behind the last one that had been sent when the probe left.
    pub end: u32,
    /// Whether it was a retransmission.
    pub retransmission: bool,
}

/// Purpose of the one timer of the sending half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timer {
    /// The retransmission timeout.
    Retransmission,
    /// A tail loss probe.
    LossProbe,
    /// Segments that may still be reordered are then lost (RFC 8985, section 6.2, step 5).
    Reordering,
}

/// Counters of a connection's data so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Data segments sent, retransmissions included.
    pub segments_sent: u64,
    /// Bytes of data sent, retransmissions included.
    pub bytes_sent: u64,
    /// Data segments sent again.
    pub segments_retransmitted: u64,
    /// Bytes of the data segments sent again.
    pub bytes_retransmitted: u64,
    /// Expirations of the retransmission timer, repeated ones included, connection set-up excluded.
    pub timeouts: u64,
    /// Tail loss probes.
    pub loss_probes: u64,
    /// Entries into fast recovery.
    pub fast_recoveries: u64,
    /// Window reductions by ECN.
    pub ecn_reductions: u64,
    /// Reductions that were taken back as needless.
    pub undos: u64,
}

impl Sender {
    pub fn new(profile: &Profile, mut algorithm: Box<dyn CongestionControl>, mss: u32) -> Self {
        let rate = algorithm.rate_control().is_some().then(Box::default);
        let rto_us = profile.rto_initial.as_micros() as u32;
        Self {
            window: Window {
                cwnd: profile.initial_window,
                ssthresh: Window::INFINITE,
                deliveries: 0,
                is_cwnd_limited: false,
                max_packets_out: 0,
                una: 0,
                nxt: 0,
                now_us: 0,
                last_sent_tick: 0,
                paced: profile.pacing || rate.is_some(),
                pacing_rate: 0,
                tick_us: profile.timers.tick().as_micros(),
            },
            board: Scoreboard::new(),
            rtt: RttEstimator::new(profile),
            rack: Rack::default(),
            phase: Phase::Open,
            reduction: Reduction::default(),
            undo: Undo::default(),
            algorithm,
            mss,
            written: 0,
            buffered: Buffered::new(profile),
            sent_offset: 0,
            window_end: 0,
            largest_window: 0,
            delivered: 0,
            lost: 0,
            recovery_end: 0,
            reordering: REORDERING,
            reordering_seen: false,
            learns_reordering: profile.loss_detection == LossDetection::Rack,
            retrans_stamp: None,
            tail_probe: None,
            announce_reduction: false,
            f_rto_running: false,
            duplicates_reported: 0,
            rto_us,
            retransmits: 0,
            timer: None,
            pace: Pace::default(),
            rate,
            last_echo: None,
            last_sent: Time::ZERO,
            cwnd_usage_end: 0,
            cwnd_used: 0,
            cwnd_checked_tick: 0,
            counters: Counters::default(),
        }
    }

    /// The application has `bytes` more to send.
    pub fn write(&mut self, bytes: u64, profile: &Profile, now: Time) {
        self.refresh(now);
        self.restart_after_idle(profile);
        self.written = self.written.saturating_add(bytes);
        self.take_all(profile);
    }

    /// The window of a flow that was silent for longer than a timeout says little about the path by now
    /// (RFC 5681, section 4.1; `tcp_slow_start_after_idle_check`).
    fn restart_after_idle(&mut self, profile: &Profile) {
        let window = &mut self.window;
        let idle_us = window.ticks().saturating_sub(window.last_sent_tick) * window.tick_us;
        let rto_us = u64::from(self.rto_us);
        if self.board.packets_out() > 0 || idle_us <= rto_us || self.rate.is_some() {
            return;
        }
        let restart_window = profile.initial_window.min(window.cwnd);
        match profile.idle_restart {
            IdleRestart::InitialWindow => window.cwnd = restart_window,
            IdleRestart::Decay => {
                window.ssthresh = self.reduction.current_ssthresh(window, self.phase);
                let halvings = (idle_us.div_ceil(rto_us) - 1).min(31);
                window.cwnd = (window.cwnd >> halvings).max(restart_window);
                self.cwnd_used = 0;
                self.stamp_cwnd();
            }
        }
    }

    /// The window was looked at now: from here counts the time that it is not used.
    pub fn stamp_cwnd(&mut self) {
        self.cwnd_checked_tick = self.window.ticks();
    }

    /// The application stops: what was not sent yet will not be.
    pub fn stop(&mut self) {
        self.written = self.sent_offset;
        self.drop_unsent();
    }

    /// Whether everything written was acknowledged.
    pub fn is_idle(&self) -> bool {
        self.board.packets_out() == 0 && self.sent_offset == self.written
    }

    /// Whether nothing was ever written.
    pub const fn is_unused(&self) -> bool {
        self.written == 0
    }

    /// Brings what algorithms may see up to date.
    pub fn refresh(&mut self, now: Time) {
        self.window.now_us = now.as_nanos() / 1_000;
        self.window.una = self.board.una();
        self.window.nxt = self.board.nxt();
    }

    /// The connection is open: `window` is the peer's receive window, `rtt_us` what the handshake took
    /// (`None` if that is not known, because it needed a retransmission).
    pub fn establish(&mut self, window: u32, rtt_us: Option<u32>, profile: &Profile, now: Time) {
        self.refresh(now);
        self.window_end = u64::from(window);
        self.largest_window = window;
        if let Some(rtt) = rtt_us {
            self.rtt.offer_min(rtt, self.window.now_us);
            self.rtt.sample(rtt, 0, 0);
            self.rto_us = self.rtt.rto(self.window.cwnd);
        } else {
            self.rto_us = RTO_FALLBACK_US;
        }
        self.window.last_sent_tick = self.window.ticks();
        self.stamp_cwnd();
        self.update_pacing_rate();
        self.with_rate_control(now, |control, cwnd, path, _| control.on_established(cwnd, path));
        self.expand_buffer(profile);
    }

    /// When the sending half wants to be called next, data to send aside.
    pub fn timer(&self) -> Option<Time> {
        let timer = self.timer.map(|(_, at)| at);
        match (timer, self.pace.timer) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Purpose of the timer, if it is due at `now`. The timers that stand in for the timeout stay
    /// pending: what they do must still know that (`tcp_write_timer_handler`).
    pub fn due_timer(&mut self, now: Time) -> Option<Timer> {
        let (timer, _) = self.timer.filter(|&(_, at)| at <= now)?;
        if timer == Timer::Retransmission {
            self.timer = None;
        }
        Some(timer)
    }

    pub fn pending_timer(&self) -> Option<Timer> {
        self.timer.map(|(timer, _)| timer)
    }

    pub fn set_timer(&mut self, timer: Timer, span_us: u32, profile: &Profile, now: Time) {
        let span = Duration::from_micros(u64::from(span_us));
        self.timer = Some((timer, profile.timers.fires_at(now, span)));
    }

    pub fn clear_timer(&mut self) {
        self.timer = None;
    }

    /// Sends `segments` again, all at once.
    pub fn retransmit(
        &mut self,
        segments: Range<u32>,
        probe: bool,
        wire: &mut impl Wire,
        now: Time,
    ) {
        let now_us = now.as_nanos() / 1_000;
        let is_burst = segments.len() > 1;
        let end = segments.end;
        self.board.cut_out(segments.clone());
        let mut bytes = 0;
        for seq in segments {
            let entry = *self.board.get(seq);
            let mut segment = Segment {
                offset: entry.offset,
                seq,
                ts: (now_us / 1_000) as u32,
                len: entry.len,
                ..Segment::default()
            };
            if is_burst && seq + 1 == end {
                segment.flags = segment.flags.with(Flags::PSH);
            }
            // RFC 3168, section 6.1.5: retransmissions are not ECN-capable.
            wire.send(segment, Ecn::NotEct);
            self.board.on_retransmit(seq, now_us, self.delivered, probe);
            self.stamp_rate(seq, now_us);
            if !probe {
                self.retrans_stamp.get_or_insert((now_us / 1_000) as u32);
                self.undo.on_retransmit();
            }
            self.counters.segments_sent += 1;
            self.counters.segments_retransmitted += 1;
            bytes += u64::from(entry.len);
        }
        self.counters.bytes_sent += bytes;
        self.counters.bytes_retransmitted += bytes;
        self.note_sent(bytes, now);
    }

    /// Segments in the network. Without limited transmit a segment that arrived out of order makes no
    /// room as long as nothing is known to be lost (RFC 3042).
    pub fn in_flight(&self, profile: &Profile) -> u32 {
        if !profile.limited_transmit && self.phase == Phase::Disorder {
            return self.board.packets_out() + self.board.retrans_out;
        }
        self.board.in_flight()
    }

    /// Sets the timer for what may go missing at the tail of a flight (RFC 8985, section 7.2), and says
    /// whether it did. `advancing`: the timeout would start anew by now.
    pub fn schedule_loss_probe(&mut self, advancing: bool, profile: &Profile, now: Time) -> bool {
        let calm = matches!(self.phase, Phase::Open | Phase::Cwr);
        if !profile.tail_loss_probe || !profile.sack || !calm || self.board.packets_out() == 0 {
            return false;
        }
        let mut timeout = match self.rtt.srtt8() {
            None => profile.rto_initial.as_micros() as u32,
            Some(srtt8) if self.board.packets_out() == 1 => (srtt8 >> 2) + self.rtt.rto_min(),
            Some(srtt8) => (srtt8 >> 2) + TIMEOUT_MIN_US,
        };
        let rto_left = if advancing { i64::from(self.rto_us) } else { self.rto_left(now) };
        if rto_left > 0 {
            timeout = timeout.min(rto_left as u32);
        }
        self.set_timer(Timer::LossProbe, timeout, profile, now);
        true
    }

    /// Starts the retransmission timeout anew (RFC 6298, section 5).
    pub fn rearm_timeout(&mut self, profile: &Profile, now: Time) {
        if self.board.packets_out() == 0 {
            self.clear_timer();
            return;
        }
        let rto = match self.pending_timer() {
            // These timers took the place of the timeout, which has been running all along.
            Some(Timer::LossProbe | Timer::Reordering) => self.rto_left(now).max(1) as u32,
            Some(Timer::Retransmission) | None => self.rto_us,
        };
        self.set_timer(Timer::Retransmission, rto, profile, now);
    }

    /// Microseconds until the oldest segment times out; negative if it should have.
    fn rto_left(&self, now: Time) -> i64 {
        let now_us = (now.as_nanos() / 1_000) as i64;
        let head = self.board.head().map_or(now_us, |head| head.sent_us as i64);
        head + i64::from(self.rto_us) - now_us
    }

    /// The latest timestamp echoed by the peer, in milliseconds.
    pub fn last_echo(&self) -> Option<u32> {
        self.last_echo
    }

    pub fn set_last_echo(&mut self, echo: Option<u32>, profile: &Profile) {
        if profile.timestamps {
            self.last_echo = echo.or(self.last_echo);
        }
    }

    /// Bytes acknowledged in order.
    pub fn acked_bytes(&self) -> u64 {
        self.board.head().map_or(self.sent_offset, |head| head.offset)
    }

    /// Bytes handed to the network, each counted once.
    pub fn sent_bytes(&self) -> u64 {
        self.sent_offset
    }
}

/// Whether losses are found by time, and not by counting.
pub(crate) fn by_time(profile: &Profile) -> bool {
    profile.sack && profile.loss_detection == LossDetection::Rack
}

/// RFC 5681, section 3.2: three duplicate acknowledgements (`tcp_reordering`).
pub(crate) const REORDERING: u32 = 3;
/// Timers for segments that may come any moment have this much slack (`TCP_TIMEOUT_MIN`: two ticks).
pub(crate) const TIMEOUT_MIN_US: u32 = 2_000;
/// Retransmission timeout if the handshake gave no round trip: 3 s (RFC 6298, section 5.7;
/// `TCP_TIMEOUT_FALLBACK`).
const RTO_FALLBACK_US: u32 = 3_000_000;
