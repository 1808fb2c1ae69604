//! Timers of the sending half: retransmission timeout, tail loss probe, reordering.
//!
//! One timer serves all three, as only one of them is ever of use. Follows Linux `net/ipv4/tcp_timer.c`.

use weir_core::{Duration, Time};

use crate::profile::Profile;
use crate::recovery::Phase;
use crate::sender::Sender;

/// The timer of the sending half, and the timeout by which it is set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SendTimers {
    /// Retransmission timeout, doubled by each one in a row.
    pub rto_us: u32,
    /// Timeouts in a row (`icsk_retransmits`).
    pub backoffs: u32,
    /// When the timer was set, and for how many microseconds. When it expires is computed where somebody asks: an
    /// acknowledgement sets it up to three times.
    set_at: Time,
    span_us: u32,
    /// Its purpose; `None` if it is not set.
    purpose: Option<Timer>,
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

impl SendTimers {
    pub fn new(profile: &Profile) -> Self {
        let rto_us = profile.rto_initial.as_micros() as u32;
        Self { rto_us, backoffs: 0, set_at: Time::ZERO, span_us: 0, purpose: None }
    }

    /// When the timer expires; [`Time::MAX`] if it is not set.
    #[inline(always)]
    fn expires(&self, profile: &Profile) -> Time {
        match self.purpose {
            Some(_) => {
                let span = Duration::from_micros(u64::from(self.span_us));
                profile.timers.fires_at(self.set_at, span)
            }
            None => Time::MAX,
        }
    }

    /// A time before which the timer does not expire; [`Time::MAX`] if it is not set.
    #[inline(always)]
    fn expires_from(&self, profile: &Profile) -> Time {
        match self.purpose {
            Some(_) => {
                let span = Duration::from_micros(u64::from(self.span_us));
                profile.timers.fires_from(self.set_at, span)
            }
            None => Time::MAX,
        }
    }

    /// Doubles the timeout, which has expired (RFC 6298, section 5.5).
    pub fn back_off(&mut self, profile: &Profile) {
        self.backoffs += 1;
        self.rto_us = self.rto_us.saturating_mul(2).min(profile.rto_max.as_micros() as u32);
    }
}

impl Sender {
    /// When the sending half wants to be called next, data to send aside; [`Time::MAX`] for never.
    #[inline(always)]
    pub fn timer(&self, profile: &Profile) -> Time {
        self.timers.expires(profile).min(self.pace.timer)
    }

    /// A time before which [`timer`](Self::timer) is not; [`Time::MAX`] for never.
    #[inline(always)]
    pub fn timer_from(&self, profile: &Profile) -> Time {
        self.timers.expires_from(profile).min(self.pace.timer)
    }

    /// Purpose of the timer, if it is due at `now`.
    ///
    /// The timers that stand in for the timeout stay pending: their handlers must still know that
    /// (`tcp_write_timer_handler`).
    pub fn due_timer(&mut self, profile: &Profile, now: Time) -> Option<Timer> {
        let timer = self.timers.purpose.filter(|_| self.timers.expires(profile) <= now)?;
        if timer == Timer::Retransmission {
            self.clear_timer();
        }
        Some(timer)
    }

    /// Purpose of the timer; `None` if it is not set.
    #[inline]
    pub fn pending_timer(&self) -> Option<Timer> {
        self.timers.purpose
    }

    /// Sets the timer to expire `span_us` after `now`.
    #[inline]
    pub fn set_timer(&mut self, timer: Timer, span_us: u32, now: Time) {
        self.timers.set_at = now;
        self.timers.span_us = span_us;
        self.timers.purpose = Some(timer);
    }

    /// Stops the timer.
    pub fn clear_timer(&mut self) {
        self.timers.purpose = None;
    }

    /// Sets the timer for a tail loss probe, if one is of use; returns whether it did.
    ///
    /// With `advancing` the timeout would start anew by now (RFC 8985, section 7.2).
    #[inline]
    pub fn schedule_loss_probe(&mut self, advancing: bool, profile: &Profile, now: Time) -> bool {
        let calm = matches!(self.recovery.phase, Phase::Open | Phase::Cwr);
        if !profile.tail_loss_probe || !profile.sack || !calm || self.board.packets_out() == 0 {
            return false;
        }
        let mut timeout_us = match self.rtt.srtt8_us() {
            None => profile.rto_initial.as_micros() as u32,
            Some(srtt8_us) if self.board.packets_out() == 1 => {
                (srtt8_us >> 2) + self.rtt.rto_min_us()
            }
            Some(srtt8_us) => (srtt8_us >> 2) + TIMEOUT_MIN_US,
        };
        let rto_left_us =
            if advancing { i64::from(self.timers.rto_us) } else { self.rto_left_us(now) };
        if rto_left_us > 0 {
            timeout_us = timeout_us.min(rto_left_us as u32);
        }
        self.set_timer(Timer::LossProbe, timeout_us, now);
        true
    }

    /// Starts the retransmission timeout anew (RFC 6298, section 5).
    #[inline]
    pub fn rearm_timeout(&mut self, now: Time) {
        if self.board.packets_out() == 0 {
            self.clear_timer();
            return;
        }
        let rto_us = match self.pending_timer() {
            // These timers took the place of the timeout, which has been running all along.
            Some(Timer::LossProbe | Timer::Reordering) => self.rto_left_us(now).max(1) as u32,
            Some(Timer::Retransmission) | None => self.timers.rto_us,
        };
        self.set_timer(Timer::Retransmission, rto_us, now);
    }

    /// Microseconds until the oldest segment times out; negative if it should have.
    #[inline]
    fn rto_left_us(&self, now: Time) -> i64 {
        let now_us = (now.as_nanos() / 1_000) as i64;
        let head_us = self.board.head().map_or(now_us, |head| head.sent_us as i64);
        head_us + i64::from(self.timers.rto_us) - now_us
    }
}

/// Slack of timers for segments that may come any moment (`TCP_TIMEOUT_MIN`: two ticks).
pub(crate) const TIMEOUT_MIN_US: u32 = 2_000;
