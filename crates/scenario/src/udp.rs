//! UDP loads: when their packets leave, and what their receiver counts.

use serde::{Deserialize, Serialize};
use weir_core::{Draw, Duration, IpVersion, Rng, Seed, Time};

use crate::rows::{FlowRow, JitterBufferCounts, UdpRow, UdpSenderCounts};

/// A UDP load: packets of one length that leave whether they arrive or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UdpLoad {
    /// Rate of the UDP payload while it sends, in bit/s.
    pub rate_bps: u64,
    /// UDP payload of a packet, in bytes.
    pub payload_bytes: u32,
    /// When packets leave.
    pub pattern: UdpPattern,
    /// Least time that the receiver's jitter buffer holds packets back; without a jitter buffer if `None`.
    #[serde(default)]
    pub jitter_buffer_ns: Option<u64>,
}

/// When the packets of a UDP load leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum UdpPattern {
    /// One after the other at the rate.
    Constant,
    /// At random times that do not depend on one another, at the rate in the mean.
    Poisson,
    /// At the rate for a fixed time, then none for a fixed time.
    Bursts {
        /// Length of a burst, in nanoseconds.
        on_ns: u64,
        /// Time without packets behind a burst, in nanoseconds.
        off_ns: u64,
    },
    /// At the rate and silent in turns, each for a time that is drawn from an exponential distribution.
    OnOff {
        /// Mean time with packets, in nanoseconds.
        on_ns: u64,
        /// Mean time without packets, in nanoseconds.
        off_ns: u64,
    },
}

impl UdpLoad {
    /// A voice stream of ITU-T G.711: `packet_time_ns` of speech, of 8 bytes a millisecond, behind the 12 bytes of an RTP header in
    /// each packet.
    #[must_use]
    pub const fn voice(jitter_buffer_ns: u64, packet_time_ns: u64) -> Self {
        let packet_time_ms = packet_time_ns / 1_000_000;
        let payload_bytes = RTP_HEADER_BYTES + 8 * packet_time_ms as u32;
        Self {
            rate_bps: payload_bytes as u64 * 8_000 / packet_time_ms,
            payload_bytes,
            pattern: UdpPattern::Constant,
            jitter_buffer_ns: Some(jitter_buffer_ns),
        }
    }

    /// Bytes of an IP packet.
    #[must_use]
    pub const fn ip_len(&self, ip_version: IpVersion) -> u32 {
        ip_version.header_bytes() + UDP_HEADER_BYTES + self.payload_bytes
    }

    /// Checks that packets fit into `mtu` and that they can leave at the rate.
    pub(crate) fn check(&self, mtu_bytes: u32, ip_version: IpVersion) -> Result<(), String> {
        let most = mtu_bytes - ip_version.header_bytes() - UDP_HEADER_BYTES;
        if !(1..=most).contains(&self.payload_bytes) {
            return Err(format!(
                "udp.payload {}: write 1 to {most} bytes, so that a packet fits into the MTU of {mtu_bytes}",
                self.payload_bytes
            ));
        }
        if self.rate_bps == 0 || self.gap_ns(1) < MIN_GAP_NS {
            return Err(format!(
                "udp.rate {} bit/s in packets of {} bytes: write a rate above 0 at which packets leave {} or more apart",
                self.rate_bps,
                self.payload_bytes,
                Duration::from_nanos(MIN_GAP_NS)
            ));
        }
        if let UdpPattern::Bursts { on_ns: 0, .. } | UdpPattern::OnOff { on_ns: 0, .. } =
            self.pattern
        {
            return Err("udp.on 0s: write a time above 0".to_owned());
        }
        let held = self.jitter_buffer_ns.map(Duration::from_nanos);
        if let Some(held) = held.filter(|&held| held > Self::MAX_JITTER_BUFFER) {
            return Err(format!(
                "voice.jitter_buffer {held}: write {} or less",
                Self::MAX_JITTER_BUFFER
            ));
        }
        Ok(())
    }

    /// Longer than anybody waits for the other's word, and short enough that sums of it stay numbers.
    pub const MAX_JITTER_BUFFER: Duration = Duration::from_secs(60);

    /// When its packets leave, the first at `start`; what is random comes from `seed`.
    #[must_use]
    pub fn schedule(&self, start: Time, seed: Seed) -> UdpSchedule {
        let mut schedule = UdpSchedule {
            load: *self,
            rng: seed.stream("udp packets"),
            began: start,
            count: 0,
            on: Duration::MAX,
            next: start,
        };
        schedule.on = schedule.on_time();
        schedule
    }

    /// The sender of flow number `flow`, whose packets are due from `start` on and before `stop`; what is random comes from
    /// the run's `seed`.
    #[must_use]
    pub fn sender(&self, flow: u32, (start, stop): (Time, Time), seed: Seed) -> UdpSender {
        let seed = seed.derive("udp").derive(&flow.to_string());
        let (schedule, interval) = (self.schedule(start, seed), UdpSenderCounts::default());
        UdpSender { payload_bytes: self.payload_bytes, schedule, stop, sent: 0, interval }
    }

    /// Time that `packets` take at the rate, in nanoseconds.
    fn gap_ns(&self, packets: u64) -> u64 {
        let bits = u128::from(packets) * u128::from(self.payload_bytes) * 8;
        u64::try_from(bits * 1_000_000_000 / u128::from(self.rate_bps)).unwrap_or(u64::MAX)
    }
}

/// The times at which the packets of a UDP load leave.
#[derive(Clone, Debug)]
pub struct UdpSchedule {
    load: UdpLoad,
    rng: Rng,
    /// Start of what runs at the rate: of the load, or of this burst.
    began: Time,
    /// Packets since then.
    count: u64,
    /// How long the burst lasts.
    on: Duration,
    next: Time,
}

impl UdpSchedule {
    /// When the next packet leaves.
    #[must_use]
    pub const fn next(&self) -> Time {
        self.next
    }

    /// The next packet has left.
    pub fn advance(&mut self) {
        if self.load.pattern == UdpPattern::Poisson {
            let gap = exponential(&mut self.rng, self.load.gap_ns(1));
            self.next = self.next.saturating_add(gap);
            return;
        }
        self.count += 1;
        let since = Duration::from_nanos(self.load.gap_ns(self.count));
        if since >= self.on {
            let silent = self.began.saturating_add(self.on);
            // The last packet takes its time at the rate, however short burst and silence are.
            let rested = self.began.saturating_add(since);
            self.began = silent.saturating_add(self.off_time()).max(rested);
            self.on = self.on_time();
            self.count = 0;
            self.next = self.began;
        } else {
            self.next = self.began.saturating_add(since);
        }
    }

    fn on_time(&mut self) -> Duration {
        match self.load.pattern {
            UdpPattern::Constant | UdpPattern::Poisson => Duration::MAX,
            UdpPattern::Bursts { on_ns, .. } => Duration::from_nanos(on_ns),
            UdpPattern::OnOff { on_ns, .. } => exponential(&mut self.rng, on_ns),
        }
    }

    fn off_time(&mut self) -> Duration {
        match self.load.pattern {
            UdpPattern::Constant | UdpPattern::Poisson => Duration::ZERO,
            UdpPattern::Bursts { off_ns, .. } => Duration::from_nanos(off_ns),
            UdpPattern::OnOff { off_ns, .. } => exponential(&mut self.rng, off_ns),
        }
    }
}

/// A time drawn from an exponential distribution of that mean, of at least a nanosecond.
fn exponential(rng: &mut Rng, mean_ns: u64) -> Duration {
    // 1 - unit is above 0, so that its logarithm is finite.
    let drawn = -libm::log(1.0 - rng.unit()) * mean_ns as f64;
    Duration::from_nanos((drawn as u64).max(1))
}

/// The sender of a UDP load: when packets are due, and what became of that.
#[derive(Clone, Debug)]
pub struct UdpSender {
    payload_bytes: u32,
    schedule: UdpSchedule,
    stop: Time,
    sent: u64,
    /// Since the last row.
    interval: UdpSenderCounts,
}

impl UdpSender {
    /// When the next packet is due; `None` if there is none before the stop.
    #[must_use]
    pub fn next(&self) -> Option<Time> {
        Some(self.schedule.next()).filter(|&next| next < self.stop)
    }

    /// The number of the packet to be sent at `now`, if one is due. Who calls this sends it.
    ///
    /// A sender that is more than [`UdpSender::MAX_LATE`] behind leaves out what it should have sent by then: a machine
    /// that was held up sends no flood afterwards, and one that is too slow for the rate falls no further behind.
    pub fn take_due(&mut self, now: Time) -> Option<u64> {
        let late = now.checked_since(self.next()?)?;
        self.interval.late_max = self.interval.late_max.max(late);
        while now.since(self.next()?) > Self::MAX_LATE {
            self.schedule.advance();
            self.interval.skipped_packets += 1;
        }
        self.schedule.advance();
        self.interval.sent_packets += 1;
        self.sent += 1;
        Some(self.sent - 1)
    }

    /// Whether it has counted anything since the counts were last asked for.
    #[must_use]
    pub fn has_counts(&self) -> bool {
        self.interval != UdpSenderCounts::default()
    }

    /// Counts since this was last asked for.
    pub fn take_counts(&mut self) -> UdpSenderCounts {
        std::mem::take(&mut self.interval)
    }

    /// The totals of `flow`, of which `first_data` and `delivered_bytes` arrived.
    #[must_use]
    pub fn row(&self, flow: u32, first_data: Option<Time>, delivered_bytes: u64) -> FlowRow {
        FlowRow {
            sent_bytes: Some(self.sent * u64::from(self.payload_bytes)),
            sent_segments: Some(self.sent),
            retransmitted_bytes: Some(0),
            retransmitted_segments: Some(0),
            timeouts: Some(0),
            loss_probes: Some(0),
            fast_recoveries: Some(0),
            ecn_reductions: Some(0),
            ..FlowRow::arrived(flow, first_data, delivered_bytes)
        }
    }

    /// How far behind its plan it sends.
    pub const MAX_LATE: Duration = Duration::from_millis(100);
}

/// The receiver of a UDP load, as an endpoint of RTP counts (RFC 3550, sections 6.4.1 and A.3).
#[derive(Clone, Debug, Default)]
pub struct UdpReceiver {
    /// Sequence numbers of which each arrived or is counted as lost: those below it.
    expected: u64,
    /// The newest of them that arrived, by sequence number modulo the window's length.
    seen: Vec<u64>,
    received: u64,
    last_delay: Option<Duration>,
    /// Interarrival jitter of RFC 3550, section 6.4.1, in nanoseconds.
    jitter_ns: f64,
    buffer: Option<JitterBuffer>,
    /// Since the last row.
    interval: Interval,
    /// Packets counted as lost by the last row.
    told_lost: u64,
}

/// Its sums hold as many packets as there can be, each with the longest delay that can be told.
#[derive(Clone, Copy, Debug, Default)]
struct Interval {
    received: u64,
    delay_sum_ns: u128,
    delay_max: Duration,
    late: u64,
    playout_sum_ns: u128,
}

impl UdpReceiver {
    /// The receiver of `load`.
    #[must_use]
    pub fn new(load: &UdpLoad) -> Self {
        let buffer = load.jitter_buffer_ns.map(JitterBuffer::new);
        Self { seen: vec![u64::MAX; WINDOW], buffer, ..Self::default() }
    }

    /// Packet number `seq`, counted from 0, arrived at `now`, after `delay` on its way; false if it had arrived before.
    pub fn on_packet(&mut self, seq: u64, delay: Duration, now: Time) -> bool {
        let place = &mut self.seen[seq as usize % WINDOW];
        if *place == seq || seq.saturating_add(WINDOW as u64) < self.expected {
            return false;
        }
        *place = seq;
        self.expected = self.expected.max(seq.saturating_add(1));
        self.received += 1;
        if let Some(last) = self.last_delay {
            let change = delay.as_nanos().abs_diff(last.as_nanos()) as f64;
            self.jitter_ns += (change - self.jitter_ns) / 16.0;
        }
        self.last_delay = Some(delay);
        self.interval.received += 1;
        self.interval.delay_sum_ns += u128::from(delay.as_nanos());
        self.interval.delay_max = self.interval.delay_max.max(delay);
        if let Some(buffer) = &mut self.buffer {
            match buffer.playout(delay, now) {
                Some(playout) => self.interval.playout_sum_ns += u128::from(playout.as_nanos()),
                None => self.interval.late += 1,
            }
        }
        true
    }

    /// Packets that arrived, each once.
    #[must_use]
    pub const fn received(&self) -> u64 {
        self.received
    }

    /// The row of `flow` for the interval that ends at `t`, in which its sender did what `sender` counts, if that is known.
    pub fn row(&mut self, t: Time, flow: u32, sender: Option<UdpSenderCounts>) -> UdpRow {
        let interval = std::mem::take(&mut self.interval);
        // A packet that was overtaken counts as lost until it arrives: rows before may hold it, and this one takes it off.
        let lost = self.expected - self.received;
        let lost_packets = lost.cast_signed() - self.told_lost.cast_signed();
        self.told_lost = lost;
        let span = |ns: u128| u64::try_from(ns).map_or(Duration::MAX, Duration::from_nanos);
        let mean = |sum: u128, count: u64| sum.checked_div(count.into()).map(span);
        UdpRow {
            t,
            flow,
            received_packets: interval.received,
            lost_packets,
            delay_mean: mean(interval.delay_sum_ns, interval.received),
            delay_max: (interval.received > 0).then_some(interval.delay_max),
            jitter: Duration::from_nanos(self.jitter_ns as u64),
            buffer: self.buffer.as_ref().map(|_| JitterBufferCounts {
                late_packets: interval.late,
                playout_sum: span(interval.playout_sum_ns),
            }),
            sender,
        }
    }
}

/// A jitter buffer that follows the delay: algorithm 1 of Ramjee, Kurose, Towsley and Schulzrinne, "Adaptive playout
/// mechanisms for packetized audio applications in wide-area networks", INFOCOM 1994. It holds packets back for the mean
/// delay and four times the mean deviation from it. Speech here never pauses, so that it adapts once a second where theirs
/// adapts at the start of each talkspurt.
#[derive(Clone, Copy, Debug)]
struct JitterBuffer {
    /// The least time that it holds a packet of mean delay back.
    least_ns: f64,
    /// Mean delay and mean deviation, in nanoseconds, once a packet arrived.
    estimate: Option<(f64, f64)>,
    /// From sending to playout, in nanoseconds.
    playout_ns: f64,
    adapt_at: Time,
}

impl JitterBuffer {
    const fn new(least_ns: u64) -> Self {
        Self { least_ns: least_ns as f64, estimate: None, playout_ns: 0.0, adapt_at: Time::ZERO }
    }

    /// From its sending to its playout, of a packet that came after `delay`; `None` if it came too late.
    fn playout(&mut self, delay: Duration, now: Time) -> Option<Duration> {
        let delay_ns = delay.as_nanos() as f64;
        let (mean, deviation) = self.estimate.map_or((delay_ns, 0.0), |(mean, deviation)| {
            let mean = WEIGHT * mean + (1.0 - WEIGHT) * delay_ns;
            (mean, WEIGHT * deviation + (1.0 - WEIGHT) * (mean - delay_ns).abs())
        });
        self.estimate = Some((mean, deviation));
        if now >= self.adapt_at {
            self.playout_ns = mean + (4.0 * deviation).max(self.least_ns);
            self.adapt_at = now + ADAPT_EVERY;
        }
        (delay_ns <= self.playout_ns).then(|| Duration::from_nanos(self.playout_ns as u64))
    }
}

const UDP_HEADER_BYTES: u32 = 8;
/// RFC 3550, section 5.1.
const RTP_HEADER_BYTES: u32 = 12;
/// Shortest time between packets: below it a run would do little else.
const MIN_GAP_NS: u64 = 100;
/// Packets by which one may be overtaken and still count as received.
const WINDOW: usize = 1 << 12;
/// Weight of the past in the estimates of the jitter buffer, as its authors chose it.
const WEIGHT: f64 = 0.998_002;
const ADAPT_EVERY: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    fn load(pattern: UdpPattern) -> UdpLoad {
        // A packet of 1000 bytes every millisecond.
        UdpLoad { rate_bps: 8_000_000, payload_bytes: 1_000, pattern, jitter_buffer_ns: None }
    }

    fn times(load: &UdpLoad, count: usize) -> Vec<u64> {
        let mut schedule = load.schedule(Time::from_millis(5), Seed::new(3));
        let mut next = || {
            let now = schedule.next();
            schedule.advance();
            now.as_nanos() / 1_000
        };
        (0..count).map(|_| next()).collect()
    }

    #[test]
    fn a_constant_rate_does_not_drift() {
        let third = UdpLoad { rate_bps: 3_000, payload_bytes: 125, ..load(UdpPattern::Constant) };
        assert_eq!(times(&third, 4), [5_000, 338_333, 671_666, 1_005_000]);
    }

    #[test]
    fn bursts_have_their_length_and_silence() {
        let bursts = load(UdpPattern::Bursts { on_ns: 2_500_000, off_ns: 7_500_000 });
        assert_eq!(times(&bursts, 7), [5_000, 6_000, 7_000, 15_000, 16_000, 17_000, 25_000]);
    }

    #[test]
    fn random_gaps_have_their_mean_and_deviation() {
        let at = times(&load(UdpPattern::Poisson), 20_001);
        let gaps: Vec<f64> = at.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let squares = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((mean - 1_000.0).abs() < 30.0, "{mean}");
        assert!(
            (squares.sqrt() / mean - 1.0).abs() < 0.05,
            "an exponential's deviation is its mean"
        );
    }

    #[test]
    fn on_and_off_times_share_the_time_as_their_means_do() {
        let on_off = load(UdpPattern::OnOff { on_ns: 20_000_000, off_ns: 60_000_000 });
        let at = times(&on_off, 40_000);
        let rate = at.len() as f64 / ((at[at.len() - 1] - at[0]) as f64 / 1e6);
        // A burst of mean 20 packets ends inside a gap: half a packet more in each.
        assert!((rate - 1_000.0 * 20.5 / 80.0).abs() < 15.0, "{rate} packets a second");
    }

    #[test]
    fn short_bursts_leave_no_faster_than_the_rate() {
        let short = [
            UdpPattern::Bursts { on_ns: 1, off_ns: 1 },
            UdpPattern::Bursts { on_ns: 1, off_ns: 0 },
            UdpPattern::Bursts { on_ns: 1_500_000, off_ns: 0 },
            UdpPattern::OnOff { on_ns: 1, off_ns: 1 },
            UdpPattern::OnOff { on_ns: 700_000, off_ns: 100_000 },
        ];
        for pattern in short {
            let at = times(&load(pattern), 200);
            for pair in at.windows(2) {
                // Times are rounded down to microseconds.
                assert!(pair[1] - pair[0] >= 999, "{pattern:?}: {} and {} us", pair[0], pair[1]);
            }
        }
    }

    #[test]
    fn a_sender_tells_how_late_it_was_and_leaves_out_what_is_long_due() {
        let ms = Time::from_millis;
        let mut sender = load(UdpPattern::Constant).sender(3, (ms(5), ms(400)), Seed::new(3));
        assert_eq!((sender.take_due(ms(4)), sender.next()), (None, Some(ms(5))));
        assert_eq!((sender.take_due(ms(5)), sender.take_due(ms(5))), (Some(0), None));
        assert_eq!(
            (sender.take_due(ms(8)), sender.next()),
            (Some(1), Some(ms(7))),
            "one call, one packet"
        );
        let counts = |sent_packets, skipped_packets, late_ms| UdpSenderCounts {
            sent_packets,
            skipped_packets,
            late_max: Duration::from_millis(late_ms),
        };
        assert_eq!(sender.take_counts(), counts(2, 0, 2));
        assert_eq!(
            sender.take_due(ms(307)),
            Some(2),
            "numbers are those of packets that were sent"
        );
        assert_eq!(sender.next(), Some(ms(208)));
        assert_eq!(sender.take_counts(), counts(1, 200, 300));
        assert_eq!(sender.take_counts(), counts(0, 0, 0));
        let row = sender.row(3, Some(ms(6)), 1_000);
        assert_eq!((row.flow, row.sent_segments, row.sent_bytes), (3, Some(3), Some(3_000)));
        assert_eq!((row.first_data, row.delivered_bytes), (Some(ms(6)), 1_000));
        assert_eq!((sender.take_due(ms(700)), sender.next()), (None, None), "after the stop");
        assert_eq!(sender.take_counts(), counts(0, 192, 492), "all that was due before it");
    }

    #[test]
    fn voice_has_64_kbit_of_speech_in_packets_with_headers() {
        let voice = UdpLoad::voice(0, 20_000_000);
        assert_eq!(times(&voice, 3), [5_000, 25_000, 45_000]);
        assert_eq!(voice.ip_len(IpVersion::V4) * 8 * 50, 80_000);
        let short = UdpLoad::voice(0, 10_000_000);
        assert_eq!(times(&short, 3), [5_000, 15_000, 25_000]);
        assert_eq!(short.ip_len(IpVersion::V4) * 8 * 100, 64_000 + 40 * 8 * 100);
    }

    #[test]
    fn a_load_that_cannot_be_sent_is_refused() {
        let refusal = |load: UdpLoad| load.check(1_500, IpVersion::V4).unwrap_err();
        let long = UdpLoad { payload_bytes: 1_473, ..load(UdpPattern::Constant) };
        assert!(refusal(long).starts_with("udp.payload 1473: write 1 to 1472 bytes"));
        let fast = UdpLoad { rate_bps: 1_000_000_000_000, ..load(UdpPattern::Constant) };
        assert!(refusal(fast).contains("write a rate above 0"));
        assert!(refusal(load(UdpPattern::Bursts { on_ns: 0, off_ns: 1 })).starts_with("udp.on"));
    }

    #[test]
    fn a_receiver_counts_what_is_missing_and_takes_what_comes_late_as_received() {
        let mut receiver = UdpReceiver::new(&load(UdpPattern::Constant));
        let ms = Duration::from_millis;
        for seq in [0, 1, 4] {
            assert!(receiver.on_packet(seq, ms(10), Time::ZERO));
        }
        assert!(!receiver.on_packet(4, ms(10), Time::ZERO), "a duplicate");
        let row = receiver.row(Time::from_millis(5), 7, None);
        assert_eq!((row.flow, row.received_packets, row.lost_packets), (7, 3, 2));
        assert_eq!((row.delay_mean, row.delay_max), (Some(ms(10)), Some(ms(10))));
        assert_eq!((row.jitter, row.buffer), (Duration::ZERO, None));

        assert!(receiver.on_packet(2, ms(26), Time::ZERO), "it was overtaken");
        assert!(receiver.on_packet(6, ms(26), Time::ZERO));
        let later = receiver.row(Time::from_millis(10), 7, None);
        assert_eq!(
            (later.received_packets, later.lost_packets),
            (2, 0),
            "one came, one is missing"
        );
        assert_eq!(later.jitter, ms(1) * 15 / 16, "16 ms of change, a sixteenth of it, and 0 ms");
        let empty = receiver.row(Time::from_millis(15), 7, None);
        assert_eq!((empty.received_packets, empty.delay_mean, empty.delay_max), (0, None, None));

        assert!(receiver.on_packet(3, ms(40), Time::ZERO), "the last but one that is missing");
        let back = receiver.row(Time::from_millis(20), 7, None);
        assert_eq!((back.received_packets, back.lost_packets), (1, -1), "it was called lost");
        assert!(receiver.on_packet(5, ms(40), Time::ZERO));
        let all = receiver.row(Time::from_millis(25), 7, None);
        assert_eq!(2 + later.lost_packets + back.lost_packets + all.lost_packets, 0, "all came");
    }

    #[test]
    fn a_jitter_buffer_drops_what_is_late_and_then_follows() {
        let ms = Duration::from_millis;
        let mut receiver = UdpReceiver::new(&UdpLoad::voice(40_000_000, 20_000_000));
        let mut feed = |seqs: std::ops::Range<u64>, delay: Duration| {
            for seq in seqs {
                receiver.on_packet(seq, delay, Time::from_millis(20 * seq));
            }
            receiver.row(Time::ZERO, 0, None).buffer.unwrap()
        };
        let calm = feed(0..50, ms(10));
        assert_eq!((calm.late_packets, calm.playout_sum), (0, ms(50) * 50));
        let sudden = feed(50..100, ms(300));
        assert!(sudden.late_packets >= 49, "{sudden:?}");
        let later = feed(100..1_000, ms(300));
        assert!(later.late_packets < 300, "{later:?}");
        let last = feed(1_000..1_050, ms(300));
        assert_eq!(last.late_packets, 0);
        assert!(last.playout_sum > ms(300) * 50);
    }

    #[test]
    fn sums_of_the_longest_delays_stay_numbers() {
        let mut receiver = UdpReceiver::new(&UdpLoad::voice(u64::MAX, 20_000_000));
        for seq in 0..3 {
            assert!(receiver.on_packet(seq, Duration::MAX, Time::ZERO));
        }
        let row = receiver.row(Time::ZERO, 0, None);
        assert_eq!((row.delay_mean, row.delay_max), (Some(Duration::MAX), Some(Duration::MAX)));
        assert_eq!(row.buffer.map(|counts| counts.playout_sum), Some(Duration::MAX));
    }
}
