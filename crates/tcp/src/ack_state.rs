//! When the receiving half acknowledges: at once, delayed, or compressed.
//!
//! Follows Linux `net/ipv4/tcp_input.c` (`tcp_event_data_recv`, `tcp_in_quickack_mode`) and `tcp_output.c`
//! (`tcp_send_delayed_ack`, `tcp_event_data_sent`) where the profile says so.

use weir_core::{Duration, Time};

use crate::clock::Timers;
use crate::profile::{DelayedAck, Profile};
use crate::receive_window::ReceiveWindow;

/// State by which the receiver decides when to acknowledge (`inet_csk(sk)->icsk_ack`).
#[derive(Debug)]
pub(crate) struct AckState {
    /// Number of acknowledgements that are still sent at once (`quick`).
    pub quick: u32,
    /// Delay of the next delayed acknowledgement, in microseconds (`ato`); `None` before the first data.
    delay_us: Option<u32>,
    /// Arrival of the last data in order, in microseconds (`lrcvtime`).
    last_data_us: u64,
    /// Position that the last acknowledgement carried (`rcv_wup`), as a segment and in bytes.
    pub acked: u32,
    pub acked_offset: u64,
    /// Whether the next acknowledgement must leave at once (`ICSK_ACK_NOW`).
    pub at_once: bool,
    /// Whether data arrived that is not acknowledged yet (`ICSK_ACK_SCHED`).
    pub pending: bool,
    /// Whether the end of a burst is among it (`ICSK_ACK_PUSHED`).
    pushed: bool,
    /// Whether the two ends answer each other, so that an answer may carry the acknowledgement (`pingpong`).
    interactive: bool,
    delayed: Delayed,
    /// When the compressed acknowledgement leaves; [`Time::MAX`] while there is none.
    compressed_until: Time,
    /// Acknowledgements that the compressed one stands for.
    pub compressed: u32,
    /// Duplicate acknowledgements sent one by one for the gap at `duplicates_for`.
    duplicates: u32,
    /// Segment at which that gap starts.
    duplicates_for: u32,
}

/// A delayed acknowledgement. When its timer expires is computed where somebody asks: most leave before.
#[derive(Clone, Copy, Debug)]
struct Delayed {
    /// When the timer was set; [`Time::MAX`] while there is none.
    set_at: Time,
    delay: Duration,
}

impl Delayed {
    const NONE: Self = Self { set_at: Time::MAX, delay: Duration::ZERO };

    #[inline]
    fn is_set(&self) -> bool {
        self.set_at < Time::MAX
    }

    /// The time that `of` makes of the timer; [`Time::MAX`] while there is none.
    #[inline]
    fn time(&self, of: impl Fn(Time, Duration) -> Time) -> Time {
        if self.is_set() { of(self.set_at, self.delay) } else { Time::MAX }
    }
}

/// Measurements of the path by the connection's own sending half.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OwnRtt {
    /// Eight times the smoothed round trip in microseconds; `None` before the first sample.
    pub srtt8_us: Option<u32>,
    /// Retransmission timeout in microseconds.
    pub rto_us: u32,
}

/// Whether a received segment needs an acknowledgement at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AckNeed {
    /// No acknowledgement is needed, or a timer will send it.
    Later,
    /// An acknowledgement is due at once.
    Now,
}

impl Default for AckState {
    fn default() -> Self {
        Self {
            quick: 0,
            delay_us: None,
            last_data_us: 0,
            acked: 0,
            acked_offset: 0,
            at_once: false,
            pending: false,
            pushed: false,
            interactive: false,
            delayed: Delayed::NONE,
            compressed_until: Time::MAX,
            compressed: 0,
            duplicates: 0,
            duplicates_for: 0,
        }
    }
}

impl AckState {
    /// Pauses between data count from now.
    pub fn establish(&mut self, timers: Timers, now: Time) {
        self.last_data_us = ticks_us(timers, now);
    }

    /// Whether an acknowledgement is being delayed.
    #[inline]
    pub fn is_delayed(&self) -> bool {
        self.delayed.is_set()
    }

    /// Whether data is acknowledged segment by segment (`tcp_in_quickack_mode`).
    #[inline]
    pub const fn is_quick(&self) -> bool {
        self.quick > 0 && !self.interactive
    }

    /// Adjusts the delay to the time between data in order (`tcp_event_data_recv`).
    pub fn on_in_order(&mut self, window: &ReceiveWindow, own: OwnRtt, timers: Timers, now: Time) {
        let now_us = ticks_us(timers, now);
        let since = now_us.saturating_sub(self.last_data_us);
        self.last_data_us = now_us;
        let Some(delay_us) = self.delay_us else {
            self.quick = self.quick.max(window.quick_limit().min(MAX_QUICK));
            self.delay_us = Some(DELAY_MIN_US);
            return;
        };
        let half = timers.whole_us(u64::from(delay_us / 2)) as u32;
        if since <= u64::from(DELAY_MIN_US / 2) {
            self.delay_us = Some(half + DELAY_MIN_US / 2);
        } else if since < u64::from(delay_us) {
            self.delay_us = Some((half + since as u32).min(DELAY_MAX_US).min(own.rto_us));
        } else if since > u64::from(own.rto_us) {
            // A fresh start after a pause.
            self.quick = self.quick.max(window.quick_limit().min(MAX_QUICK));
        }
    }

    /// The end of a burst arrived, for an acknowledgement of which the sender may wait
    /// (`tcp_measure_rcv_mss`, `__tcp_cleanup_rbuf`).
    pub fn on_pushed(&mut self) {
        self.at_once |= !self.interactive || self.pushed;
        self.pushed = true;
    }

    /// Data is sent: an answer, if it follows soon on what arrived (`tcp_event_data_sent`).
    #[inline]
    pub fn on_sent(&mut self, profile: &Profile, now: Time) {
        if profile.delayed_ack != DelayedAck::Linux {
            return;
        }
        if let Some(delay_us) = self.delay_us {
            let since = ticks_us(profile.timers, now).saturating_sub(self.last_data_us);
            self.interactive |= since < u64::from(delay_us);
        }
    }

    /// All that arrived in order, up to segment `next` and `delivered` bytes, is acknowledged
    /// (`tcp_event_ack_sent`).
    #[inline]
    pub fn on_acknowledged(&mut self, next: u32, delivered: u64) {
        if self.pending && self.quick > 0 {
            self.quick -= 1;
            if self.quick == 0 {
                // The delay starts small again (`tcp_dec_quickack_mode`).
                self.delay_us = Some(DELAY_MIN_US);
            }
        }
        self.acked = next;
        self.acked_offset = delivered;
        self.at_once = false;
        self.pushed = false;
        self.pending = false;
        self.delayed = Delayed::NONE;
        self.compressed_until = Time::MAX;
        self.compressed = 0;
    }

    /// Handles the expired timer of a delayed or compressed acknowledgement.
    pub fn on_timer(&mut self, profile: &Profile, now: Time) -> AckNeed {
        if self.compressed_until <= now {
            self.compressed_until = Time::MAX;
            return AckNeed::Now;
        }
        if self.delayed.time(|set_at, span| profile.timers.fires_at(set_at, span)) > now {
            return AckNeed::Later;
        }
        self.delayed = Delayed::NONE;
        if !self.pending {
            return AckNeed::Later;
        }
        if profile.delayed_ack == DelayedAck::Linux {
            self.miss();
        }
        AckNeed::Now
    }

    /// Time at which [`on_timer`](Self::on_timer) is next due; [`Time::MAX`] for never.
    #[inline]
    pub fn timer(&self, timers: Timers) -> Time {
        self.delayed.time(|set_at, span| timers.fires_at(set_at, span)).min(self.compressed_until)
    }

    /// A time before which [`timer`](Self::timer) is not; [`Time::MAX`] for never.
    #[inline(always)]
    pub fn timer_from(&self, timers: Timers) -> Time {
        self.delayed.time(|set_at, span| timers.fires_from(set_at, span)).min(self.compressed_until)
    }

    /// Has the next acknowledgements, `most` at most, leave at once (`tcp_enter_quickack_mode`).
    pub fn enter_quick(&mut self, window: &ReceiveWindow, most: u32) {
        self.quick = self.quick.max(window.quick_limit().min(most));
        self.delay_us = Some(DELAY_MIN_US);
        self.interactive = false;
    }

    /// Sets the timer of the delayed acknowledgement, or says that it is due at once (`tcp_send_delayed_ack`).
    #[inline]
    pub fn delay(&mut self, delay: Duration, timers: Timers, now: Time) -> AckNeed {
        if self.delayed.is_set() {
            return self.delay_again(delay, timers, now);
        }
        self.delayed = Delayed { set_at: now, delay };
        AckNeed::Later
    }

    /// As [`delay`](Self::delay), where the timer is set already.
    #[inline(never)]
    fn delay_again(&mut self, delay: Duration, timers: Timers, now: Time) -> AckNeed {
        let due = self.delayed.time(|set_at, span| timers.due(set_at, span));
        if due <= timers.due(now, Duration::ZERO) + timers.whole(delay / 4) {
            // It fires soon anyway: do not wait.
            return AckNeed::Now;
        }
        if timers.due(now, delay) < due {
            self.delayed = Delayed { set_at: now, delay };
        }
        AckNeed::Later
    }

    /// Compresses acknowledgements of data behind the gap at segment `next` (`tcp_comp_sack_delay_ns`); the
    /// round trip is `rtt8_us` / 8.
    ///
    /// The first three leave one by one. The others leave once a millisecond or 5 % of a round trip,
    /// whichever is sooner.
    pub fn compress(&mut self, next: u32, rtt8_us: u32, now: Time) -> AckNeed {
        if self.compressed >= COMPRESSED_MAX {
            return AckNeed::Now;
        }
        if self.duplicates_for != next {
            self.duplicates_for = next;
            self.duplicates = 0;
        }
        if self.duplicates < 3 {
            self.duplicates += 1;
            return AckNeed::Now;
        }
        self.compressed += 1;
        if self.compressed_until == Time::MAX {
            let twentieth = Duration::from_nanos(u64::from(rtt8_us) * 1_000 / 8 / 20);
            let delay = twentieth.min(COMPRESSED_DELAY);
            self.compressed_until = now + delay + COMPRESSED_SLACK;
        }
        AckNeed::Later
    }

    /// Delay of an acknowledgement as Linux has it (`tcp_send_delayed_ack`).
    pub fn linux_delay(&self, profile: &Profile, own: OwnRtt) -> Duration {
        let mut delay = self.delay_us.unwrap_or(0);
        if delay > DELAY_MIN_US {
            delay = delay.min(match own.srtt8_us.unwrap_or(0) >> 3 {
                0 => DELAY_LIMIT_US,
                srtt => srtt.clamp(DELAY_MIN_US, DELAY_LIMIT_US),
            });
        }
        // Never later than the sender's shortest timeout, less a tick.
        let tick = profile.timers.tick().as_micros() as u32;
        let rto_min = profile.rto_min.as_micros() as u32;
        Duration::from_micros(u64::from(delay.min(rto_min.saturating_sub(tick))))
    }
    /// The delay was over before anything came that would have ended it (`tcp_delack_timer_handler`).
    fn miss(&mut self) {
        // No answer carried the acknowledgement: expect none. Or the sender is slow: allow it more time.
        let interactive = std::mem::take(&mut self.interactive);
        let next = |us: u32| if interactive { DELAY_MIN_US } else { (us * 2).min(DELAY_MAX_US) };
        self.delay_us = self.delay_us.map(next);
    }
}

/// The time as Linux counts it here: in ticks.
#[inline]
fn ticks_us(timers: Timers, now: Time) -> u64 {
    timers.whole_us(now.as_nanos() / 1_000)
}

/// Most acknowledgements that leave at once after a start or a pause (`TCP_MAX_QUICKACKS`).
pub(crate) const MAX_QUICK: u32 = 16;
/// Shortest delay of an acknowledgement (`TCP_ATO_MIN`).
const DELAY_MIN_US: u32 = 40_000;
/// Longest delay of an acknowledgement that follows from the spacing of data (`TCP_DELACK_MAX`).
const DELAY_MAX_US: u32 = 200_000;
/// Longest delay of any acknowledgement (RFC 1122, section 4.2.3.2).
const DELAY_LIMIT_US: u32 = 500_000;
/// Most acknowledgements that a compressed one may stand for (`tcp_comp_sack_nr`).
const COMPRESSED_MAX: u32 = 44;
/// Longest time that acknowledgements are compressed for (`tcp_comp_sack_delay_ns`).
const COMPRESSED_DELAY: Duration = Duration::from_millis(1);
/// Slack of the compression timer (`tcp_comp_sack_slack_ns`): it fires so much later unless another timer
/// fires meanwhile.
const COMPRESSED_SLACK: Duration = Duration::from_micros(100);
