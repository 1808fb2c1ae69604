//! Delivery rate: how fast data arrives, by when it was sent and when that was acknowledged.
//!
//! Follows Linux `net/ipv4/tcp_rate.c` (Cheng, Cardwell et al., "Delivery Rate Estimation",
//! draft-cheng-iccrg-delivery-rate-estimation). Kept only for flows whose congestion control asks for
//! it.

use weir_core::Time;

use crate::congestion::{Path, RateControl};
use crate::scoreboard::Delivered;
use crate::sender::Sender;
use crate::window::Window;

/// Counts of delivered and lost segments, and the rate that they make.
#[derive(Clone, Debug, Default)]
pub(crate) struct Delivery {
    /// Segments delivered (acknowledged one way or the other).
    pub delivered: u32,
    /// Those of them that were reported together with an echo of congestion (`delivered_ce`).
    pub marked: u32,
    /// Segments lost, again after each retransmission.
    pub lost: u32,
    /// Takes samples of the rate; `None` if the congestion control does not go by it.
    pub sampler: Option<Box<RateSampler>>,
}

impl Delivery {
    pub fn new(is_sampled: bool) -> Self {
        Self { delivered: 0, marked: 0, lost: 0, sampler: is_sampled.then(Box::default) }
    }
}

/// Remembers with each segment under way what had arrived when it left.
#[derive(Clone, Debug, Default)]
pub(crate) struct RateSampler {
    /// States at the sending of the segments under way, by number of the segment.
    ring: Vec<Stamp>,
    /// When something was last found to have arrived, in microseconds.
    pub delivered_us: u64,
    /// When the segment was sent whose arrival was noted last.
    first_sent_us: u64,
    /// Count of delivered segments up to which samples tell of the application, not of the path.
    app_limited: Option<u32>,
    /// State that the latest transmission carried which the present acknowledgement reports.
    newest: Option<Newest>,
}

/// How things stood when a segment was sent.
#[derive(Clone, Copy, Debug, Default)]
struct Stamp {
    /// When the segment was sent that had arrived latest by then.
    first_sent_us: u64,
    /// When anything had arrived last.
    delivered_us: u64,
    /// Number of segments that had arrived by then.
    delivered: u32,
    app_limited: bool,
}

#[derive(Clone, Copy, Debug)]
struct Newest {
    seq: u32,
    stamp: Stamp,
    /// How long the segments of the sample took to be sent.
    send_us: u64,
}

/// Rate sample of one acknowledgement (`struct rate_sample`).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RateSample {
    /// Segments that it reports as arrived.
    pub acked: u32,
    /// Segments newly taken for lost.
    pub losses: u32,
    /// Segments in the network before it.
    pub prior_in_flight: u32,
    /// Round trip of the last segment that it acknowledges, in microseconds, if known.
    pub rtt_us: Option<u32>,
    /// Whether the receiver may have held it back.
    pub is_ack_delayed: bool,
    /// Whether it reports a segment whose sending is known.
    pub has_stamp: bool,
    /// Whether that was sent when the application had no more.
    pub is_app_limited: bool,
    /// The rate, if it can be told.
    pub interval: Option<Interval>,
}

/// Segments that arrived within a time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Interval {
    /// Segments that had arrived before it.
    pub prior_delivered: u32,
    /// Segments that arrived in it.
    pub delivered: u32,
    /// Length of the interval in microseconds.
    pub us: u64,
}

impl RateSampler {
    /// Segment `seq` is sent at `sent_us`, while `outstanding` are unacknowledged and `delivered`
    /// segments have arrived so far.
    pub fn on_sent(
        &mut self,
        seq: u32,
        outstanding: std::ops::Range<u32>,
        sent_us: u64,
        delivered: u32,
    ) {
        if outstanding.is_empty() {
            // What arrives from now on was not held up by anything before.
            self.first_sent_us = sent_us;
            self.delivered_us = sent_us;
        }
        if outstanding.len() >= self.ring.len() {
            self.grow(outstanding);
        }
        let stamp = Stamp {
            first_sent_us: self.first_sent_us,
            delivered_us: self.delivered_us,
            delivered,
            app_limited: self.app_limited.is_some(),
        };
        *self.at(seq) = stamp;
    }

    /// Begins to handle an acknowledgement.
    pub fn start(&mut self) {
        self.newest = None;
    }

    /// Notes a segment that the present acknowledgement reports for the first time.
    pub fn on_delivered(&mut self, arrived: &Delivered) {
        let is_newer = self
            .newest
            .is_none_or(|newest| (arrived.sent_us, arrived.seq) > (self.first_sent_us, newest.seq));
        if is_newer {
            let stamp = *self.at(arrived.seq);
            self.first_sent_us = arrived.sent_us;
            let send_us = arrived.sent_us.saturating_sub(stamp.first_sent_us);
            self.newest = Some(Newest { seq: arrived.seq, stamp, send_us });
        }
    }

    /// Completes `sample` at the end of an acknowledgement, and returns it.
    ///
    /// With the acknowledgement, `delivered` segments have arrived by `now_us`; the shortest round trip is
    /// `min_rtt_us`.
    pub fn finish(
        &mut self,
        sample: RateSample,
        delivered: u32,
        min_rtt_us: u32,
        now_us: u64,
    ) -> RateSample {
        self.app_limited = self.app_limited.filter(|&limit| delivered <= limit);
        if sample.acked > 0 {
            self.delivered_us = now_us;
        }
        let Some(Newest { stamp, send_us, .. }) = self.newest else { return sample };
        // Sending and arriving are stages of one pipeline, and the slower one counts.
        let us = send_us.max(now_us.saturating_sub(stamp.delivered_us));
        let interval = Interval {
            prior_delivered: stamp.delivered,
            delivered: delivered - stamp.delivered,
            us,
        };
        RateSample {
            has_stamp: true,
            is_app_limited: stamp.app_limited,
            // Sooner than a round trip nothing can be known: a needless retransmission.
            interval: (us > 0 && us >= u64::from(min_rtt_us)).then_some(interval),
            ..sample
        }
    }

    /// Notes that the application limits the rate: samples say little until the `in_flight` segments have
    /// arrived.
    pub fn mark_app_limited(&mut self, delivered: u32, in_flight: u32) {
        self.app_limited = Some((delivered + in_flight).max(1));
    }

    pub fn is_app_limited(&self) -> bool {
        self.app_limited.is_some()
    }

    fn at(&mut self, seq: u32) -> &mut Stamp {
        let mask = self.ring.len() - 1;
        &mut self.ring[seq as usize & mask]
    }

    #[cold]
    fn grow(&mut self, outstanding: std::ops::Range<u32>) {
        let size = (2 * self.ring.len()).max(MIN_RING_ENTRIES);
        let mut ring = vec![Stamp::default(); size];
        for seq in outstanding {
            ring[seq as usize & (size - 1)] = *self.at(seq);
        }
        self.ring = ring;
    }
}

impl Sender {
    /// Remembers how things stand with segment `seq`, which is sent now.
    #[inline]
    pub fn stamp_rate(&mut self, seq: u32, now_us: u64) {
        if let Some(rate) = &mut self.delivery.sampler {
            rate.on_sent(seq, self.board.una()..self.board.nxt(), now_us, self.delivery.delivered);
        }
    }

    /// The application writes again. If nothing was left to send, and the window not full, what was under
    /// way meanwhile shows what the application sent, not what the path carries
    /// (`tcp_rate_check_app_limited`).
    pub fn note_application_limit(&mut self) {
        let idle = self.unsent() < u64::from(self.mss)
            && self.board.in_flight() < self.window.cwnd
            && self.board.lost_out <= self.board.retrans_out;
        if idle && let Some(rate) = &mut self.delivery.sampler {
            rate.mark_app_limited(self.delivery.delivered, self.board.in_flight());
        }
    }

    /// Completes the sample that an acknowledgement gives, and lets the congestion control go by it.
    pub fn control_rate(&mut self, sample: RateSample, now: Time) {
        let Some(sampler) = &mut self.delivery.sampler else { return };
        let min_rtt_us = self.rtt.min_us();
        let sample =
            sampler.finish(sample, self.delivery.delivered, min_rtt_us, self.window.now_us);
        self.with_rate_control(now, |control, window, path, rate| {
            control.on_ack(window, path, rate, &sample);
        });
    }

    /// Calls the congestion control if it goes by the rate.
    pub fn with_rate_control(
        &mut self,
        now: Time,
        call: impl FnOnce(&mut dyn RateControl, &mut Window, &Path, &mut RateSampler),
    ) {
        let Some(rate) = &mut self.delivery.sampler else { return };
        let Some(control) = self.algorithm.rate_control() else { return };
        let wait = self.pace.until.checked_since(now).unwrap_or_default();
        let path = Path {
            mss: self.mss,
            delivered: self.delivery.delivered,
            lost: self.delivery.lost,
            in_flight: self.board.in_flight(),
            phase: self.recovery.phase,
            srtt8_us: self.rtt.srtt8_us(),
            min_rtt_us: self.rtt.min_us(),
            next_burst_us: wait.as_micros(),
        };
        call(control, &mut self.window, &path, rate);
    }
}

const MIN_RING_ENTRIES: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn arrived(seq: u32, sent_us: u64) -> Delivered {
        Delivered { seq, sent_us, prior_delivered: 0, was_sacked: false, ever_retransmitted: false }
    }

    /// Two segments are sent 10 ms apart, and acknowledged `apart_us` apart.
    fn second_sample(apart_us: u64, min_rtt_us: u32) -> Option<Interval> {
        let mut rate = RateSampler::default();
        rate.on_sent(0, 0..0, 1_000_000, 0);
        rate.on_sent(1, 0..1, 1_010_000, 0);
        let sample = RateSample { acked: 1, ..RateSample::default() };
        rate.start();
        rate.on_delivered(&arrived(0, 1_000_000));
        rate.finish(sample, 1, min_rtt_us, 1_040_000);
        rate.start();
        rate.on_delivered(&arrived(1, 1_010_000));
        rate.finish(sample, 2, min_rtt_us, 1_040_000 + apart_us).interval
    }

    #[test]
    fn a_sample_spans_what_was_under_way() {
        // Both were sent before the first was acknowledged: two in the time from sending to then.
        let interval = second_sample(5_000, 40_000).unwrap();
        assert_eq!((interval.delivered, interval.prior_delivered, interval.us), (2, 0, 45_000));
    }

    #[test]
    fn nothing_is_faster_than_a_round_trip() {
        assert!(second_sample(5_000, 45_000).is_some());
        assert!(second_sample(5_000, 45_001).is_none());
    }

    #[test]
    fn the_slower_of_sending_and_arriving_counts() {
        let mut rate = RateSampler::default();
        rate.on_sent(0, 0..0, 0, 0);
        rate.start();
        rate.on_delivered(&arrived(0, 0));
        rate.finish(RateSample { acked: 1, ..RateSample::default() }, 1, 1, 40_000);
        // Sent 90 ms behind the first, acknowledged 50 ms after that was.
        rate.on_sent(1, 0..1, 41_000, 1);
        rate.on_sent(2, 0..2, 90_000, 1);
        rate.start();
        rate.on_delivered(&arrived(2, 90_000));
        let sample = rate.finish(RateSample { acked: 1, ..RateSample::default() }, 2, 1, 95_000);
        assert_eq!(sample.interval.map(|interval| interval.us), Some(90_000));
    }

    #[test]
    fn what_was_sent_while_the_application_paused_says_so() {
        let mut rate = RateSampler::default();
        let new = RateSample { acked: 1, ..RateSample::default() };
        rate.mark_app_limited(0, 1);
        rate.on_sent(0, 0..0, 0, 0);
        rate.start();
        rate.on_delivered(&arrived(0, 0));
        assert!(rate.finish(new, 1, 1, 40_000).is_app_limited);
        assert!(rate.is_app_limited());
        rate.on_sent(1, 0..0, 41_000, 1);
        rate.start();
        rate.on_delivered(&arrived(1, 41_000));
        assert!(rate.finish(new, 2, 1, 81_000).is_app_limited);
        // One more than were under way then has arrived.
        assert!(!rate.is_app_limited());
    }
}
