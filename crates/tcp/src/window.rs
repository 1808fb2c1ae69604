//! The congestion window, and what an algorithm may know when it changes it.

use weir_core::Duration;

use crate::clock::Timers;
use crate::profile::Profile;

/// The window with its surroundings, brought up to date before an algorithm is called.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    /// Congestion window, in segments.
    pub cwnd: u32,
    /// Slow start threshold, in segments; [`Window::INFINITE`] before the first congestion.
    pub ssthresh: u32,
    /// Deliveries not yet turned into growth (`snd_cwnd_cnt`).
    pub deliveries: u32,
    /// Whether the window, and not the application, holds data back.
    pub is_cwnd_limited: bool,
    /// The most segments in flight in the last round trip.
    pub max_packets_out: u32,
    /// First unacknowledged segment.
    pub una: u32,
    /// Next segment to be sent.
    pub nxt: u32,
    /// Microseconds since the start of the run.
    pub now_us: u64,
    /// When data was last sent, in microseconds since the start of the run.
    pub last_sent_us: u64,
    /// Whether data is paced.
    pub paced: bool,
    /// The rate at which it would be, in bytes per second.
    pub pacing_rate: u64,
    /// The clock that has the ticks.
    pub timers: Timers,
}

/// How much of the window is used (RFC 7661; `tcp_cwnd_validate`).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WindowUsage {
    /// Segment whose acknowledgement ends the round trip that is looked at (`cwnd_usage_seq`).
    pub round_end: u32,
    /// The most segments in flight since the window was last found to be full.
    pub max_used: u32,
    /// When the window was last found to be full, or was changed, in microseconds.
    pub checked_us: u64,
}

/// Facts of one acknowledgement for a congestion control (`struct ack_sample`).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AckSample {
    /// The round trip of the last segment that it acknowledges, in microseconds; `None` if that is
    /// not known (a retransmission).
    pub rtt_us: Option<u32>,
    /// Segments that it acknowledges in order, and the bytes in them.
    pub acked: u32,
    pub acked_bytes: u32,
    /// Size of a full segment, in bytes.
    pub mss: u32,
    /// Segments known to have arrived out of order.
    pub sacked_out: u32,
    /// Whether it does nothing but acknowledge data in order (Linux' fast path).
    pub is_plain: bool,
    /// Segments delivered before it, and those of them that came with an echo of congestion.
    pub delivered: u32,
    pub delivered_marked: u32,
    /// `None` without timestamps.
    pub clocks: Option<Clocks>,
}

/// The timestamps of an acknowledgement, in milliseconds (RFC 7323).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Clocks {
    /// The peer's clock when it left.
    pub peer_ms: u32,
    /// The own clock when the segment left that it answers.
    pub echo_ms: u32,
}

impl Clocks {
    /// How long the answered segment took to the peer and was held there, plus the difference of the two
    /// clocks, in milliseconds.
    pub const fn one_way_ms(self) -> i32 {
        self.peer_ms.wrapping_sub(self.echo_ms) as i32
    }
}

impl Window {
    /// No threshold: slow start until the first loss.
    pub const INFINITE: u32 = 0x7fff_ffff;

    /// The window of a new connection.
    pub fn new(profile: &Profile, paced: bool) -> Self {
        Self {
            cwnd: profile.initial_window,
            ssthresh: Self::INFINITE,
            deliveries: 0,
            is_cwnd_limited: false,
            max_packets_out: 0,
            una: 0,
            nxt: 0,
            now_us: 0,
            last_sent_us: 0,
            paced,
            pacing_rate: 0,
            timers: profile.timers,
        }
    }

    pub const fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Whether the window was used well enough that it may grow (RFC 7661, as Linux has it).
    pub const fn is_limiting(&self) -> bool {
        self.is_cwnd_limited || (self.in_slow_start() && self.cwnd < 2 * self.max_packets_out)
    }

    /// Grows by `acked` up to the threshold, and returns what is left.
    pub fn slow_start(&mut self, acked: u32) -> u32 {
        let cwnd = (self.cwnd + acked).min(self.ssthresh);
        let left = acked - (cwnd - self.cwnd);
        self.cwnd = cwnd;
        left
    }

    /// Grows by one segment for every `deliveries_each` deliveries (`tcp_cong_avoid_ai`).
    pub fn grow_one_per(&mut self, deliveries_each: u32, acked: u32) {
        if self.deliveries >= deliveries_each {
            self.deliveries = 0;
            self.cwnd += 1;
        }
        self.deliveries += acked;
        if self.deliveries >= deliveries_each {
            let steps = self.deliveries / deliveries_each;
            self.deliveries -= steps * deliveries_each;
            self.cwnd += steps;
        }
    }

    /// Length of a tick, in microseconds.
    pub const fn tick_us(&self) -> u64 {
        self.timers.tick().as_micros()
    }

    /// Whole ticks since the start of the run.
    pub const fn ticks(&self) -> u64 {
        self.timers.whole_ticks(Duration::from_micros(self.now_us))
    }

    /// Ticks that began since `us`, in microseconds since the start of the run.
    pub const fn ticks_since(&self, us: u64) -> u64 {
        self.ticks().saturating_sub(self.timers.whole_ticks(Duration::from_micros(us)))
    }

    pub const fn ticks_per_second(&self) -> u64 {
        1_000_000 / self.tick_us()
    }

    /// `us` microseconds in ticks, rounded up.
    pub const fn ticks_of(&self, us: u32) -> u64 {
        self.timers.ticks_up(Duration::from_micros(us as u64))
    }

    /// How long bursts of offloaded data may delay acknowledgements: four bursts of 64 KiB at the
    /// pacing rate, a millisecond at most (`hystart_ack_delay`).
    pub fn ack_aggregation_us(&self) -> u64 {
        (4u64 * 65_536 * 1_000_000).checked_div(self.pacing_rate).unwrap_or(0).min(1_000)
    }
}
