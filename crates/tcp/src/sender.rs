//! The sending half: what to send, and when.
//!
//! This file holds the state and retransmission; [`transmit`](crate::transmit) sends new data,
//! [`timers`](crate::timers) holds the timers, [`ack`](crate::ack) processes acknowledgements and
//! [`recovery`](crate::recovery) handles losses. Follows Linux `net/ipv4/tcp_output.c`.

use std::mem::offset_of;
use std::ops::Range;

use weir_core::{Ecn, Time};

use crate::congestion::CongestionControl;
use crate::pacing::Pace;
use crate::profile::{IdleRestart, LossDetection, Profile};
use crate::rack::{Rack, Reordering};
use crate::rate::Delivery;
use crate::recovery::{Phase, Recovery};
use crate::rtt::RttEstimator;
use crate::scoreboard::Scoreboard;
use crate::segment::{Flags, Segment};
use crate::send_buffer::SendStream;
use crate::timers::SendTimers;
use crate::window::{Window, WindowUsage};

/// Receives the segments that an endpoint sends, in order.
pub trait Wire {
    /// `segment` leaves now, with `ecn` in its IP header. It is lent, so that it need not be moved about: what is written
    /// into it before it is on the wire leaves with it.
    fn send(&mut self, segment: &mut Segment, ecn: Ecn);
}

/// The sending half of a connection.
///
/// Its own times and spans are whole microseconds, as in Linux (`tcp_mstamp`): the arithmetic of round trips,
/// losses and rates is in integers. A [`Time`] is when something is due or was handed to the network.
///
/// The order of the fields is that of memory: in front what an end needs too that only receives, last what is seldom needed.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Sender {
    /// Size of a full segment, in bytes.
    pub mss: u32,
    /// ECN codepoint of retransmissions and of segments without data (RFC 3168, sections 6.1.4 and 6.1.5: none;
    /// RFC 8257, section 3.1: that of data).
    pub control_ecn: Ecn,
    pub timers: SendTimers,
    pub peer_window: PeerWindow,
    pub pace: Pace,
    pub stream: SendStream,
    pub rtt: RttEstimator,
    pub board: Scoreboard,
    pub algorithm: Box<dyn CongestionControl>,
    pub window: Window,
    pub usage: WindowUsage,
    pub delivery: Delivery,
    /// The latest timestamp echoed by the peer, in milliseconds; `None` before the first.
    last_echo_ms: Option<u32>,
    pub reordering: Reordering,
    pub rack: Rack,
    pub counters: Counters,
    pub recovery: Recovery,
}

/// Window that the peer offers, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PeerWindow {
    /// Offset in the stream at which it ends.
    pub end: u64,
    /// Largest window so far.
    pub largest: u32,
    /// Window of the last segment.
    pub last: u32,
}

impl PeerWindow {
    /// The peer offers `window` bytes, up to `end` in the stream.
    #[inline]
    pub fn offer(&mut self, end: u64, window: u32) {
        self.end = self.end.max(end);
        self.largest = self.largest.max(window);
        self.last = window;
    }
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
    /// Expirations of the retransmission timer, repeated ones included, the handshake excluded.
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
    /// Bytes in front that an end needs which only receives: up to the number of the segment that it would send next.
    pub const RECEIVING_BYTES: usize = offset_of!(Self, board) + Scoreboard::NUMBERS_BYTES;

    pub fn new(profile: &Profile, mut algorithm: Box<dyn CongestionControl>, mss: u32) -> Self {
        let delivery = Delivery::new(algorithm.rate_control().is_some());
        let paced = profile.pacing || delivery.sampler.is_some();
        Self {
            mss,
            algorithm,
            window: Window::new(profile, paced),
            usage: WindowUsage::default(),
            stream: SendStream::new(profile, mss),
            peer_window: PeerWindow::default(),
            board: Scoreboard::new(by_time(profile)),
            rtt: RttEstimator::new(profile),
            rack: Rack::default(),
            recovery: Recovery::default(),
            reordering: Reordering::new(profile),
            delivery,
            timers: SendTimers::new(profile),
            pace: Pace::default(),
            control_ecn: Ecn::NotEct,
            last_echo_ms: None,
            counters: Counters::default(),
        }
    }

    /// Takes `bytes` more from the application.
    pub fn write(&mut self, bytes: u64, profile: &Profile, now: Time) {
        self.refresh(now);
        self.restart_after_idle(profile);
        self.stream.written = self.stream.written.saturating_add(bytes);
        self.take_all(profile);
    }

    /// Reduces the window of a flow that was silent for longer than a timeout, as the profile has it.
    ///
    /// It says little about the path by now (RFC 5681, section 4.1; `tcp_slow_start_after_idle_check`).
    fn restart_after_idle(&mut self, profile: &Profile) {
        let window = &mut self.window;
        let idle_us = window.ticks_since(window.last_sent_us) * window.tick_us();
        let rto_us = u64::from(self.timers.rto_us);
        if self.board.packets_out() > 0 || idle_us <= rto_us || self.delivery.sampler.is_some() {
            return;
        }
        self.algorithm.on_idle_restart(window);
        let restart_window = profile.initial_window.min(window.cwnd);
        match profile.idle_restart {
            IdleRestart::InitialWindow => window.cwnd = restart_window,
            IdleRestart::Decay => {
                window.ssthresh = self.recovery.current_ssthresh(window);
                let halvings = (idle_us.div_ceil(rto_us) - 1).min(31);
                window.cwnd = (window.cwnd >> halvings).max(restart_window);
                self.usage.max_used = 0;
                self.stamp_cwnd();
            }
        }
    }

    /// Notes that the window was looked at now: the time that it is not used counts from here.
    pub fn stamp_cwnd(&mut self) {
        self.usage.checked_us = self.window.now_us;
    }

    /// Drops what was not sent yet, as the application stops.
    pub fn stop(&mut self) {
        self.stream.written = self.stream.sent;
        self.drop_unsent();
    }

    /// Whether everything written was acknowledged.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.board.packets_out() == 0 && self.stream.sent == self.stream.written
    }

    /// Whether nothing was ever written.
    pub const fn is_unused(&self) -> bool {
        self.stream.written == 0
    }

    /// Brings the numbers that algorithms may see up to date.
    #[inline]
    pub fn refresh(&mut self, now: Time) {
        self.window.now_us = now.as_nanos() / 1_000;
        self.window.una = self.board.una();
        self.window.nxt = self.board.nxt();
    }

    /// Whether the numbers that algorithms may see are up to date.
    pub fn is_fresh(&self, now: Time) -> bool {
        let Window { now_us, una, nxt, .. } = self.window;
        (now_us, una, nxt) == (now.as_nanos() / 1_000, self.board.una(), self.board.nxt())
    }

    /// Opens the sending half, with the peer's receive window and the round trip of the handshake.
    ///
    /// `rtt_us` is `None` if that is not known, because the handshake needed a retransmission.
    pub fn establish(&mut self, window: u32, rtt_us: Option<u32>, profile: &Profile, now: Time) {
        self.refresh(now);
        self.peer_window.end = u64::from(window);
        self.peer_window.largest = window;
        self.peer_window.last = window;
        if let Some(rtt) = rtt_us {
            self.rtt.offer_min(rtt, self.window.now_us);
            self.rtt.sample(rtt, 0, 0);
            self.timers.rto_us = self.rtt.rto_us(self.window.cwnd, profile.timers);
        } else {
            self.timers.rto_us = RTO_FALLBACK_US;
        }
        self.window.last_sent_us = self.window.now_us;
        self.stamp_cwnd();
        self.update_pacing_rate();
        if profile.ecn && self.algorithm.counts_marks() {
            self.control_ecn = Ecn::Ect0;
        }
        self.algorithm.on_established(&self.window, profile.ecn);
        self.with_rate_control(now, |control, cwnd, path, _| control.on_established(cwnd, path));
        self.expand_buffer(profile);
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
            wire.send(&mut segment, self.control_ecn);
            self.board.on_retransmit(seq, now_us, self.delivery.delivered, probe);
            self.stamp_rate(seq, now_us);
            if !probe {
                self.recovery.retrans_stamp_ms.get_or_insert((now_us / 1_000) as u32);
                self.recovery.undo.on_retransmit();
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
    #[inline]
    pub fn in_flight(&self, profile: &Profile) -> u32 {
        if !profile.limited_transmit && self.recovery.phase == Phase::Disorder {
            return self.board.packets_out() + self.board.retrans_out;
        }
        self.board.in_flight()
    }

    /// The latest timestamp echoed by the peer, in milliseconds.
    pub fn last_echo(&self) -> Option<u32> {
        self.last_echo_ms
    }

    #[inline]
    pub fn set_last_echo(&mut self, echo: Option<u32>, profile: &Profile) {
        if profile.timestamps {
            self.last_echo_ms = echo.or(self.last_echo_ms);
        }
    }

    /// Bytes acknowledged in order.
    pub fn acked_bytes(&self) -> u64 {
        self.board.head().map_or(self.stream.sent, |head| head.offset)
    }

    /// Bytes handed to the network, each counted once.
    pub fn sent_bytes(&self) -> u64 {
        self.stream.sent
    }
}

/// Whether losses are found by time, and not by counting.
pub(crate) fn by_time(profile: &Profile) -> bool {
    profile.sack && profile.loss_detection == LossDetection::Rack
}

/// Retransmission timeout if the handshake gave no round trip: 3 s (RFC 6298, section 5.7;
/// `TCP_TIMEOUT_FALLBACK`).
const RTO_FALLBACK_US: u32 = 3_000_000;
