//! Taking back a reduction of the window that turns out to have been needless.
//!
//! Follows Linux `tcp_may_undo`, `tcp_try_undo_*` and `tcp_undo_cwnd_reduction` in
//! `net/ipv4/tcp_input.c`; the RFCs are named where the rule is.

use weir_core::Time;

use crate::ack::AckInfo;
use crate::profile::Profile;
use crate::recovery::Phase;
use crate::sender::Sender;

/// State that is needed to undo a reduction of the congestion window.
#[derive(Clone, Debug, Default)]
pub(crate) struct Undo {
    /// First unacknowledged segment when the reduction began; `None` if it stands.
    pub marker: Option<u32>,
    /// Retransmissions since then that no duplicate was reported for; `None` before the first.
    pub retransmissions: Option<u32>,
    /// The threshold before it; `None` if it must not be restored.
    pub prior_ssthresh: Option<u32>,
}

impl Undo {
    /// Counts a retransmission, of which a duplicate may be reported.
    pub fn on_retransmit(&mut self) {
        self.retransmissions = Some(self.retransmissions.unwrap_or(0) + 1);
    }

    /// Takes `count` reported duplicates, the last ending at `end`, off the retransmissions.
    pub fn on_duplicate(&mut self, end: u32, count: u32) {
        if self.marker.is_some_and(|marker| end > marker)
            && let Some(left) = &mut self.retransmissions
        {
            *left = left.saturating_sub(count);
        }
    }

    /// Keeps the threshold from being restored.
    pub fn forbid(&mut self) {
        self.prior_ssthresh = None;
    }
}

impl Sender {
    /// Remembers where a reduction begins, so that it can be undone (`tcp_init_undo`).
    pub fn start_undo(&mut self) {
        self.recovery.undo.marker = Some(self.board.una());
        let probe = u32::from(self.recovery.tail_probe.is_some_and(|probe| probe.retransmission));
        let retransmissions = self.board.retrans_out + probe;
        self.recovery.undo.retransmissions = (retransmissions > 0).then_some(retransmissions);
    }

    /// Whether the reduction turned out to be needless (`tcp_may_undo`).
    fn may_undo(&self, profile: &Profile) -> bool {
        profile.undo
            && self.recovery.undo.marker.is_some()
            && (self.recovery.undo.retransmissions == Some(0) || self.was_only_delayed(profile))
    }

    /// Whether the echoed timestamp is older than the first retransmission (Eifel detection, RFC 3522),
    /// or nothing was sent again at all.
    fn was_only_delayed(&self, profile: &Profile) -> bool {
        match (self.recovery.retrans_stamp_ms, self.last_echo()) {
            (Some(stamp), Some(echo)) => echo < stamp,
            (Some(_), None) => false,
            (None, _) => profile.sack || self.board.una() < self.recovery.end,
        }
    }

    /// Undoes the reduction of the window (`tcp_undo_cwnd_reduction`).
    fn take_back(&mut self, unmark_losses: bool) {
        if unmark_losses {
            self.board.unmark_all_lost();
        }
        if let Some(prior_ssthresh) = self.recovery.undo.prior_ssthresh {
            let prior_cwnd = self.recovery.reduction.prior_cwnd.unwrap_or(self.window.cwnd);
            self.window.cwnd = self.algorithm.undo(&self.window, prior_cwnd);
            let now = Time::from_nanos(self.window.now_us * 1_000);
            self.with_rate_control(now, |control, _, path, rate| control.on_undo(path, rate));
            if prior_ssthresh > self.window.ssthresh {
                self.window.ssthresh = prior_ssthresh;
                self.recovery.cwr_pending = false;
            }
        }
        self.stamp_cwnd();
        self.recovery.undo.marker = None;
        self.rack.advanced = true;
        self.counters.undos += 1;
    }

    /// Ends recovery or loss, undoing the reduction if it was needless; returns whether the phase must stay.
    ///
    /// Without SACK it stays until something beyond is acknowledged (RFC 6582, section 3.2, step 2).
    pub fn undo_recovery(&mut self, profile: &Profile) -> bool {
        if self.may_undo(profile) {
            self.take_back(false);
        } else {
            self.rack.on_recovery_end();
        }
        if self.must_not_reopen(profile) {
            return true;
        }
        self.recovery.phase = Phase::Open;
        false
    }

    /// Whether the phase must stay because nothing beyond its end is acknowledged yet.
    fn must_not_reopen(&mut self, profile: &Profile) -> bool {
        if profile.sack || self.board.una() != self.recovery.end {
            return false;
        }
        if !self.any_retransmission() {
            self.recovery.retrans_stamp_ms = None;
        }
        true
    }

    /// Undoes a timeout that was spurious; returns whether it was (`tcp_try_undo_loss`).
    pub fn undo_loss(&mut self, by_f_rto: bool, profile: &Profile) -> bool {
        if !(by_f_rto || self.may_undo(profile)) {
            return false;
        }
        self.take_back(true);
        self.timers.backoffs = 0;
        if self.must_not_reopen(profile) {
            return true;
        }
        if by_f_rto || profile.sack {
            self.recovery.phase = Phase::Open;
        }
        true
    }

    /// Undoes recovery at a partial acknowledgement, if the segments were only delayed; returns whether nothing
    /// more is to be done (`tcp_try_undo_partial`).
    pub fn undo_partial(&mut self, info: &AckInfo, profile: &Profile) -> bool {
        if !(profile.undo && self.recovery.undo.marker.is_some() && self.was_only_delayed(profile))
        {
            return false;
        }
        self.note_reordering(info.prior_una);
        if self.board.retrans_out > 0 {
            return true;
        }
        if !self.any_retransmission() {
            self.recovery.retrans_stamp_ms = None;
        }
        self.take_back(true);
        self.try_keep_open();
        false
    }

    /// Undoes a reduction if each of its retransmissions arrived twice; returns whether it did
    /// (`tcp_try_undo_dsack`).
    pub fn undo_by_duplicates(&mut self, profile: &Profile) -> bool {
        if profile.undo
            && self.recovery.undo.marker.is_some()
            && self.recovery.undo.retransmissions == Some(0)
        {
            self.rack.on_undo();
            self.take_back(false);
            return true;
        }
        false
    }
}
