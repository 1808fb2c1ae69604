//! Loss recovery: the phases of a connection, the reduction of the window, and taking it back.
//!
//! Follows Linux `tcp_fastretrans_alert` and its callees in `net/ipv4/tcp_input.c`; the RFCs are named
//! where the rule is.

use weir_core::Time;

use crate::ack::AckInfo;
use crate::profile::Profile;
use crate::rack::{MAX_REORDERING, REORDERING};
use crate::sender::{Sender, Wire, by_time};
use crate::timers::Timer;
use crate::undo::Undo;
use crate::window::Window;

/// State of loss recovery.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recovery {
    pub phase: Phase,
    /// Recovery or loss lasts until this segment is acknowledged (`high_seq`).
    pub end: u32,
    pub reduction: Reduction,
    pub undo: Undo,
    /// Timestamp of the first retransmission since all was well, in milliseconds.
    pub retrans_stamp_ms: Option<u32>,
    pub tail_probe: Option<TailProbe>,
    /// Whether the receiver is not told of the last window reduction yet (RFC 3168, CWR).
    pub cwr_pending: bool,
    /// Whether F-RTO tests if the timeout was spurious (RFC 5682).
    pub f_rto_running: bool,
    /// Segments that the peer says it got twice.
    pub duplicates_reported: u64,
}

/// Phase of loss recovery (`icsk_ca_state`). The order matters: later phases are graver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// No sign of loss or congestion.
    #[default]
    Open,
    /// Data arrived out of order; perhaps it was only reordered.
    Disorder,
    /// The window is being reduced although nothing was lost: ECN (`CWR`).
    Cwr,
    /// Fast recovery: something is lost and is being sent again.
    Recovery,
    /// The retransmission timeout has expired.
    Loss,
}

impl Phase {
    /// Whether proportional rate reduction rules the window.
    pub const fn is_reducing(self) -> bool {
        matches!(self, Self::Cwr | Self::Recovery)
    }
}

/// A reduction of the window under way (RFC 6937).
#[derive(Clone, Debug, Default)]
pub(crate) struct Reduction {
    /// The window before it; `None` if there was no reduction yet.
    pub prior_cwnd: Option<u32>,
    /// Segments delivered since it began.
    delivered: u32,
    /// Segments sent since it began.
    pub sent: u32,
}

impl Recovery {
    /// The threshold that is worth restoring: three quarters of the window if that is larger.
    pub fn current_ssthresh(&self, window: &Window) -> u32 {
        if self.phase.is_reducing() {
            window.ssthresh
        } else {
            window.ssthresh.max(window.cwnd / 2 + window.cwnd / 4)
        }
    }
}

/// A tail loss probe under way (RFC 8985, section 7).
#[derive(Clone, Copy, Debug)]
pub(crate) struct TailProbe {
    /// Number of the segment behind the last one that had been sent when the probe left.
    pub end: u32,
    /// Whether it was a retransmission.
    pub retransmission: bool,
}

/// Retransmissions that an acknowledgement asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resend {
    Nothing,
    /// Segments that are marked as lost.
    Lost,
    /// New data, to find out whether the timeout was spurious (RFC 5682).
    NewData,
}

impl Sender {
    /// Processes an acknowledgement that reports loss, reordering or ECN (`tcp_fastretrans_alert`).
    pub fn fastretrans_alert(
        &mut self,
        info: &mut AckInfo,
        profile: &Profile,
        now: Time,
    ) -> Resend {
        if self.board.packets_out() == 0 {
            self.board.sacked_out = 0;
        }
        if info.ecn_echo {
            self.recovery.undo.forbid();
        }
        if self.recovery.phase == Phase::Open {
            self.recovery.retrans_stamp_ms = None;
        } else if self.is_phase_over(info, profile) && self.leave_phase(profile) {
            return Resend::Nothing;
        }
        match self.recovery.phase {
            Phase::Recovery => {
                if !info.una_advanced {
                    if !profile.sack {
                        self.count_duplicate_ack(info);
                    }
                } else if self.undo_partial(info, profile) {
                    return Resend::Nothing;
                }
                if self.undo_by_duplicates(profile) {
                    self.try_to_open(info);
                }
                self.find_losses(info, profile, now);
                if self.recovery.phase != Phase::Recovery {
                    if self.board.lost_out == 0 {
                        return Resend::Nothing;
                    }
                    self.enter_recovery(info.ecn_echo);
                }
            }
            Phase::Loss => {
                let resend = self.on_ack_after_timeout(info, profile);
                self.find_losses(info, profile, now);
                if self.recovery.phase != Phase::Open && !info.lost_retransmission {
                    return resend;
                }
                return self.open_phases(info, resend, profile, now);
            }
            Phase::Open | Phase::Disorder | Phase::Cwr => {
                return self.open_phases(info, Resend::Nothing, profile, now);
            }
        }
        Resend::Lost
    }

    /// Processes an acknowledgement in a phase before recovery, which begins if anything is lost by now.
    fn open_phases(
        &mut self,
        info: &mut AckInfo,
        resend: Resend,
        profile: &Profile,
        now: Time,
    ) -> Resend {
        if !profile.sack {
            if info.una_advanced {
                self.board.sacked_out = 0;
            }
            self.count_duplicate_ack(info);
        }
        if self.recovery.phase <= Phase::Disorder {
            self.undo_by_duplicates(profile);
        }
        self.find_losses(info, profile, now);
        if self.board.lost_out == 0 {
            self.try_to_open(info);
            return resend;
        }
        self.enter_recovery(info.ecn_echo);
        Resend::Lost
    }

    /// Whether everything sent before the phase began is acknowledged, or, for want of NewReno,
    /// anything at all (RFC 5681, section 3.2, step 6).
    fn is_phase_over(&self, info: &AckInfo, profile: &Profile) -> bool {
        let plain_reno =
            !profile.sack && !profile.new_reno && self.recovery.phase == Phase::Recovery;
        self.board.una() >= self.recovery.end || (plain_reno && info.una_advanced)
    }

    /// Leaves the phase if it can be left; returns whether nothing more is to be done.
    fn leave_phase(&mut self, profile: &Profile) -> bool {
        match self.recovery.phase {
            // Not before something beyond is: else the reduction would end at once.
            Phase::Cwr if self.board.una() != self.recovery.end => {
                self.end_reduction();
                self.recovery.phase = Phase::Open;
            }
            Phase::Recovery => {
                if !profile.sack {
                    self.board.sacked_out = 0;
                }
                if self.undo_recovery(profile) {
                    return true;
                }
                self.end_reduction();
            }
            Phase::Open | Phase::Disorder | Phase::Cwr | Phase::Loss => {}
        }
        false
    }

    /// Looks for losses by what the acknowledgement says, in the profile's way.
    fn find_losses(&mut self, info: &mut AckInfo, profile: &Profile, now: Time) {
        if self.board.packets_out() == 0 {
            return;
        }
        if !profile.sack {
            return self.find_losses_without_sack(info.una_advanced, profile);
        }
        let before = self.board.retrans_out;
        if by_time(profile) {
            if self.find_losses_by_time(now) {
                info.set_timer = false;
            }
        } else {
            self.find_losses_by_count();
        }
        info.lost_retransmission |= self.board.retrans_out < before;
    }

    /// RFC 5681, section 3.2 and RFC 6582, section 3.2: the first unacknowledged segment is lost after
    /// three duplicate acknowledgements, and after each partial one in recovery.
    fn find_losses_without_sack(&mut self, una_advanced: bool, profile: &Profile) {
        let duplicates = self.recovery.phase < Phase::Recovery
            && self.board.sacked_out >= self.reordering.degree;
        let partial = self.recovery.phase == Phase::Recovery && una_advanced && profile.new_reno;
        if duplicates || partial {
            self.mark_lost(self.board.una());
        }
    }

    /// RFC 6675, section 4, IsLost: three segments above it have arrived.
    fn find_losses_by_count(&mut self) {
        let Some(surplus) = self.board.sacked_out.checked_sub(self.reordering.degree) else {
            return;
        };
        let mut above = self.board.sacked_out;
        for seq in self.board.una()..self.board.highest_sacked() {
            let entry = self.board.get(seq);
            if entry.sacked() {
                above -= 1;
                if self.board.sacked_out - above > surplus {
                    break;
                }
            } else if !entry.lost() {
                self.mark_lost(seq);
            }
        }
    }

    /// Marks a segment as lost, and counts it.
    pub fn mark_lost(&mut self, seq: u32) {
        if self.board.mark_lost(seq) {
            self.delivery.lost += 1;
        }
    }

    /// Counts a duplicate acknowledgement, which without SACK stands for a segment that arrived out of order.
    fn count_duplicate_ack(&mut self, info: &AckInfo) {
        if !info.duplicate_ack {
            return;
        }
        let before = self.board.sacked_out;
        self.board.sacked_out += 1;
        self.limit_duplicates(0);
        self.delivery.delivered += self.board.sacked_out.saturating_sub(before);
    }

    /// Bounds the count of duplicates: more than could have arrived mean reordering.
    pub fn limit_duplicates(&mut self, acked: u32) {
        let packets_out = self.board.packets_out();
        let holes = self.board.lost_out.max(1).min(packets_out);
        if self.board.sacked_out + holes > packets_out {
            self.board.sacked_out = packets_out - holes;
            if self.reordering.is_learned {
                self.reordering.degree = (packets_out + acked).min(MAX_REORDERING);
                self.reordering.is_seen = true;
            }
        }
    }

    /// Begins fast recovery, since something is lost (RFC 5681, section 3.2).
    pub fn enter_recovery(&mut self, ecn: bool) {
        if !self.any_retransmission() {
            self.recovery.retrans_stamp_ms = None;
        }
        self.recovery.undo.prior_ssthresh = None;
        self.start_undo();
        if !self.recovery.phase.is_reducing() {
            if !ecn {
                self.recovery.undo.prior_ssthresh =
                    Some(self.recovery.current_ssthresh(&self.window));
            }
            self.start_reduction();
        }
        self.counters.fast_recoveries += 1;
        self.algorithm.on_recovery(&mut self.window);
        self.recovery.phase = Phase::Recovery;
    }

    /// Begins a reduction of the window (`tcp_init_cwnd_reduction`).
    fn start_reduction(&mut self) {
        self.recovery.end = self.board.nxt();
        self.recovery.tail_probe = None;
        self.window.deliveries = 0;
        self.recovery.reduction =
            Reduction { prior_cwnd: Some(self.window.cwnd), delivered: 0, sent: 0 };
        self.window.ssthresh = self.algorithm.ssthresh(&self.window);
        self.recovery.cwr_pending = true;
    }

    /// Proportional rate reduction: RFC 6937, section 3, in Linux' form, which grows back by slow start
    /// only while segments are acknowledged in order and nothing more is lost.
    pub fn reduce(&mut self, info: &AckInfo, newly_delivered: u32, profile: &Profile) {
        let Some(prior_cwnd) = self.recovery.reduction.prior_cwnd else { return };
        if newly_delivered == 0 || self.delivery.sampler.is_some() {
            return;
        }
        let in_flight = self.in_flight(profile);
        if !profile.proportional_rate_reduction {
            // RFC 6675, section 5: after the fast retransmission, which goes in any case, nothing is
            // sent until the pipe has drained to the new window.
            let first = self.recovery.phase == Phase::Recovery && self.recovery.reduction.sent == 0;
            self.window.cwnd = self.window.ssthresh.max(if first { in_flight + 1 } else { 0 });
            return;
        }
        self.recovery.reduction.delivered += newly_delivered;
        let Reduction { delivered, sent, .. } = self.recovery.reduction;
        let send = if in_flight > self.window.ssthresh {
            let share = u64::from(self.window.ssthresh) * u64::from(delivered);
            let due = share.div_ceil(u64::from(prior_cwnd)) as i64;
            due - i64::from(sent)
        } else {
            let mut send = (i64::from(delivered) - i64::from(sent)).max(i64::from(newly_delivered));
            if info.una_advanced && info.newly_lost == 0 {
                send += 1;
            }
            send.min(i64::from(self.window.ssthresh - in_flight))
        };
        // The first acknowledgement always sends the fast retransmission.
        let send = send.max(i64::from(sent == 0)) as u32;
        self.window.cwnd = in_flight + send;
    }

    /// Ends a reduction: the window becomes the threshold (`tcp_end_cwnd_reduction`).
    fn end_reduction(&mut self) {
        if self.window.ssthresh < Window::INFINITE
            && self.delivery.sampler.is_none()
            && (self.recovery.phase == Phase::Cwr || self.recovery.undo.marker.is_some())
        {
            self.window.cwnd = self.window.ssthresh;
            self.stamp_cwnd();
        }
        if self.delivery.sampler.is_none() {
            self.algorithm.on_reduction_end(&mut self.window);
        }
    }

    /// Reduces the window although nothing was lost, once a round trip; returns whether that begins now.
    pub fn enter_cwr(&mut self) -> bool {
        self.recovery.undo.prior_ssthresh = None;
        if self.recovery.phase >= Phase::Cwr {
            return false;
        }
        self.recovery.undo.marker = None;
        self.start_reduction();
        self.recovery.phase = Phase::Cwr;
        true
    }

    /// Returns to the open phase if nothing speaks against it (`tcp_try_to_open`).
    fn try_to_open(&mut self, info: &AckInfo) {
        if !self.any_retransmission() {
            self.recovery.retrans_stamp_ms = None;
        }
        // RFC 3168, section 6.1.2.
        if info.ecn_echo && self.enter_cwr() {
            self.counters.ecn_reductions += 1;
        }
        if self.recovery.phase != Phase::Cwr {
            self.try_keep_open();
        }
    }

    /// Makes the phase open, or disorder as long as something is out of order or was sent again.
    pub fn try_keep_open(&mut self) {
        let phase = if self.board.left_out() > 0 || self.any_retransmission() {
            Phase::Disorder
        } else {
            Phase::Open
        };
        if self.recovery.phase != phase {
            self.recovery.phase = phase;
            self.recovery.end = self.board.nxt();
        }
    }

    /// Whether a retransmission is under way, or the oldest segment was sent again (`tcp_any_retrans_done`).
    pub fn any_retransmission(&self) -> bool {
        self.board.retrans_out > 0
            || self.board.head().is_some_and(crate::scoreboard::Entry::ever_retransmitted)
    }

    /// Ends a tail loss probe that was answered (RFC 8985, section 7.4).
    #[inline]
    pub fn on_probe_ack(&mut self, info: &AckInfo) {
        let Some(probe) = self.recovery.tail_probe else { return };
        if info.ack < probe.end {
            return;
        }
        if !probe.retransmission || info.probe_was_duplicate {
            self.recovery.tail_probe = None;
        } else if info.ack > probe.end {
            // No duplicate was reported: the probe repaired a loss, which counts like any other.
            self.start_reduction();
            self.recovery.phase = Phase::Cwr;
            self.end_reduction();
            self.try_keep_open();
        } else if !info.una_advanced && !info.not_duplicate && !info.newly_sacked {
            self.recovery.tail_probe = None;
        }
    }

    /// Handles an expired retransmission timer (RFC 5681, section 3.1; RFC 6298, section 5.4 to 5.6).
    pub fn on_timeout(&mut self, profile: &Profile, wire: &mut impl Wire, now: Time) {
        self.refresh(now);
        if self.board.packets_out() == 0 {
            return;
        }
        self.counters.timeouts += 1;
        self.enter_loss(profile, now);
        let head = self.board.una();
        self.retransmit(head..head + 1, false, wire, now);
        self.timers.back_off(profile);
        self.set_timer(Timer::Retransmission, self.timers.rto_us, now);
    }

    /// Begins the loss phase: everything is taken for lost, the window becomes one segment (`tcp_enter_loss`).
    fn enter_loss(&mut self, profile: &Profile, now: Time) {
        let fresh = self.recovery.phase < Phase::Recovery;
        self.mark_lost_by_timeout(profile);
        if self.recovery.phase <= Phase::Disorder
            || self.board.una() >= self.recovery.end
            || (self.recovery.phase == Phase::Loss && self.timers.backoffs == 0)
        {
            self.recovery.undo.prior_ssthresh = Some(self.recovery.current_ssthresh(&self.window));
            self.recovery.reduction.prior_cwnd = Some(self.window.cwnd);
            self.window.ssthresh = self.algorithm.ssthresh(&self.window);
            self.algorithm.on_loss(&mut self.window);
            self.start_undo();
        }
        self.window.cwnd = self.board.in_flight() + 1;
        self.window.deliveries = 0;
        self.stamp_cwnd();
        if self.recovery.phase <= Phase::Disorder && self.board.sacked_out >= REORDERING {
            self.reordering.degree = self.reordering.degree.min(REORDERING);
        }
        self.recovery.phase = Phase::Loss;
        self.algorithm.on_timeout(&self.window);
        self.with_rate_control(now, |control, _, path, rate| control.on_timeout(path, rate));
        self.recovery.end = self.board.nxt();
        self.recovery.tail_probe = None;
        self.recovery.cwr_pending = true;
        self.recovery.f_rto_running = profile.f_rto && (fresh || self.timers.backoffs > 0);
    }

    /// Marks all as lost that has not arrived; with RACK only what was sent a round trip ago.
    fn mark_lost_by_timeout(&mut self, profile: &Profile) {
        if !profile.sack {
            self.board.sacked_out = 0;
        }
        let head = self.board.una();
        for seq in head..self.board.nxt() {
            let sent_us = self.board.get(seq).sent_us;
            let may_come = by_time(profile)
                && seq != head
                && self.rack.remaining_us(sent_us, 0, self.window.now_us) > 0;
            if !may_come {
                self.mark_lost(seq);
            }
        }
        self.board.reset_hint();
    }

    /// Processes an acknowledgement after a timeout: it may show that it was spurious (RFC 5682), or over.
    fn on_ack_after_timeout(&mut self, info: &AckInfo, profile: &Profile) -> Resend {
        let recovered = self.board.una() >= self.recovery.end;
        if info.una_advanced && self.undo_loss(false, profile) {
            return Resend::Nothing;
        }
        if self.recovery.f_rto_running {
            // Step 3.b: something that was not sent again has arrived.
            if info.original_delivered && self.undo_loss(true, profile) {
                return Resend::Nothing;
            }
            if self.board.nxt() > self.recovery.end {
                if info.newly_sacked || info.duplicate_ack {
                    self.recovery.f_rto_running = false;
                }
            } else if info.una_advanced && !recovered {
                self.recovery.end = self.board.nxt();
                // Step 2.b: two new segments will tell.
                return Resend::NewData;
            }
        }
        if recovered {
            self.undo_recovery(profile);
            return Resend::Nothing;
        }
        if !profile.sack {
            if self.board.nxt() > self.recovery.end && info.duplicate_ack {
                self.count_duplicate_ack(info);
            } else if info.una_advanced {
                self.board.sacked_out = 0;
            }
        }
        Resend::Lost
    }

    /// Notes that `seq` arrived behind later segments, and with it how far apart they can come.
    pub fn note_reordering(&mut self, seq: u32) {
        let highest = self.board.highest_sacked();
        if seq < highest {
            self.reordering.note(highest - seq);
        }
    }
}
