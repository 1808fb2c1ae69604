//! BBR, version 1, as Linux has it (`net/ipv4/tcp_bbr.c`).
//!
//! Cardwell, Cheng, Gunn, Yeganeh, Jacobson, "BBR: Congestion-Based Congestion Control", ACM Queue 14
//! (2016); draft-cardwell-iccrg-bbr-congestion-control-00. A model of the path, the largest rate at which
//! data arrived lately and the shortest round trip, sets the rate at which data leaves and how much may be
//! under way. Losses do not.
//!
//! The arithmetic is Linux': rates in segments per microsecond times 2^24, gains in 256ths.

mod aggregation;
mod max_filter;
mod policer;

use std::cmp::Ordering;

use weir_core::{Draw, Rng};
use weir_scenario::LINUX_INITIAL_WINDOW_SEGMENTS;

use self::aggregation::Aggregation;
use self::max_filter::MaxFilter;
use self::policer::{News, Policer, Progress};
use super::{Algorithm, CongestionControl, Path, RateControl, Verdict};
use crate::rate::{RateSample, RateSampler};
use crate::recovery::Phase;
use crate::window::Window;

#[derive(Debug)]
struct Bbr {
    mode: Mode,
    pacing_gain: u64,
    cwnd_gain: u64,

    /// The largest rate of the last ten round trips.
    bandwidth: MaxFilter,
    rounds: Rounds,
    policer: Policer,
    aggregation: Aggregation,
    pipe: FullPipe,
    min_rtt: MinRtt,

    /// Whether the first pacing rate was set by a round trip, and not for want of one.
    knows_rtt: bool,
    /// Data was sent after a pause for want of data, and nothing of it has arrived.
    restarts: bool,
    /// The window to go back to after losses or a look at the round trip.
    prior_cwnd: u32,
    /// The phase at the last acknowledgement.
    prior_phase: Phase,
    /// In the first round of recovery what leaves is no more than what arrives.
    conserves: bool,
    random: Rng,
}

/// Mode of BBR's state machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Doubling the rate each round trip until that brings nothing more.
    Startup,
    /// Emptying the queue that this made.
    Drain,
    /// Staying at the rate, with a little more in one of eight round trips and a little less in the next.
    ProbeBandwidth(Cycle),
    /// Keeping four segments under way, so that the queue empties and the round trip can be seen.
    ProbeRtt { done: Option<RttProbe> },
}

/// Where in its eight phases of about a round trip it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cycle {
    phase: usize,
    since_us: u64,
}

/// Few segments are under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RttProbe {
    /// Tick that must be over before the probe ends.
    until_tick: u64,
    /// Whether a round trip has passed since the probe began, as it must before the probe ends.
    round_over: bool,
}

/// Round trips, counted by deliveries: one ends when a segment arrives that was sent in it.
#[derive(Clone, Copy, Debug, Default)]
struct Rounds {
    count: u32,
    /// Segments delivered when the present one began.
    start: u32,
    /// Whether the last acknowledgement began one.
    just_started: bool,
}

/// Whether the rate still grows in startup.
#[derive(Clone, Copy, Debug, Default)]
struct FullPipe {
    bandwidth: u32,
    rounds_without_growth: u32,
    reached: bool,
}

#[derive(Clone, Copy, Debug)]
struct MinRtt {
    /// In microseconds; the largest number if not known.
    us: u32,
    /// When it was seen.
    tick: u64,
}

/// A rate, in segments per microsecond times 2^24.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Bandwidth(pub u64);

impl Bandwidth {
    fn of(segments: u32, us: u64) -> Self {
        Self(u64::from(segments) * Self::ONE / us)
    }

    fn difference(self, other: Self) -> Self {
        Self(self.0.abs_diff(other.0))
    }

    /// The segments that it carries in `us` microseconds.
    fn segments_in(self, us: u64) -> u64 {
        self.0.saturating_mul(us) / Self::ONE
    }

    /// In bytes per second, less the margin that empties queues in the long run, times `gain`.
    fn bytes_per_second(self, gain: u64, mss: u32) -> u64 {
        let rate = (self.0 * u64::from(mss) * gain) >> 8;
        (rate * (1_000_000 / 100 * (100 - MARGIN_PERCENT))) >> 24
    }

    /// A segment per microsecond.
    const ONE: u64 = 1 << 24;
}

impl Bbr {
    pub fn new(random: Rng) -> Self {
        Self {
            mode: Mode::Startup,
            pacing_gain: HIGH_GAIN,
            cwnd_gain: HIGH_GAIN,
            bandwidth: MaxFilter::default(),
            rounds: Rounds::default(),
            policer: Policer::default(),
            aggregation: Aggregation::default(),
            pipe: FullPipe::default(),
            min_rtt: MinRtt { us: u32::MAX, tick: 0 },
            knows_rtt: false,
            restarts: false,
            prior_cwnd: 0,
            prior_phase: Phase::Open,
            conserves: false,
            random,
        }
    }
}

impl CongestionControl for Bbr {
    /// Losses set no threshold, but the window is worth remembering.
    fn ssthresh(&mut self, window: &Window) -> u32 {
        self.remember_cwnd(window);
        window.ssthresh
    }

    fn on_delivered(&mut self, _window: &mut Window, _acked: u32) -> Verdict {
        Verdict::Fine
    }

    /// A reduction was needless: nothing to take back, but what it hid has to be looked at anew.
    fn undo(&mut self, window: &Window, _prior_cwnd: u32) -> u32 {
        self.pipe.bandwidth = 0;
        self.pipe.rounds_without_growth = 0;
        window.cwnd
    }

    /// Windows that the send buffer holds: 3, because BBR may go on growing while it recovers.
    fn send_buffer_factor(&self) -> u32 {
        3
    }

    fn rate_control(&mut self) -> Option<&mut dyn RateControl> {
        Some(self)
    }
}

impl RateControl for Bbr {
    fn on_established(&mut self, window: &mut Window, path: &Path) {
        self.rounds.start = path.delivered;
        self.min_rtt = MinRtt { us: path.min_rtt_us, tick: window.ticks() };
        self.aggregation.restart(window.now_us);
        self.set_first_rate(window, path);
    }

    fn on_ack(
        &mut self,
        window: &mut Window,
        path: &Path,
        rate: &mut RateSampler,
        sample: &RateSample,
    ) {
        self.update_bandwidth(path, rate, sample);
        self.update_aggregation(window, rate, sample);
        self.update_cycle(window, path, rate, sample);
        self.look_whether_pipe_is_full(sample);
        self.drain(window, path, rate);
        self.update_min_rtt(window, path, rate, sample);
        self.set_gains();
        self.set_pacing_rate(window, path, self.pacing_gain);
        self.set_cwnd(window, path, sample);
    }

    fn on_timeout(&mut self, path: &Path, rate: &RateSampler) {
        self.prior_phase = Phase::Loss;
        self.pipe.bandwidth = 0;
        self.rounds.just_started = true;
        self.look_for_policer(path, rate, 1, false);
    }

    fn on_undo(&mut self, path: &Path, rate: &RateSampler) {
        self.policer.reset(progress(path, rate));
    }

    fn on_restart(&mut self, window: &mut Window, path: &Path, rate: &RateSampler) {
        if !rate.is_app_limited() {
            return;
        }
        self.restarts = true;
        self.aggregation.restart(window.now_us);
        match self.mode {
            // The rate that was known will do: no need to fill a queue.
            Mode::ProbeBandwidth(_) => self.set_pacing_rate(window, path, UNIT),
            Mode::ProbeRtt { done } => self.end_rtt_probe(done, window, rate),
            Mode::Startup | Mode::Drain => {}
        }
    }

    fn least_burst(&self, window: &Window) -> u32 {
        least_burst(window)
    }
}

/// BBR's model of the path.
impl Bbr {
    /// The rate that the path is thought to carry.
    fn bandwidth(&self) -> Bandwidth {
        self.policer.bandwidth().unwrap_or_else(|| self.max_bandwidth())
    }

    fn max_bandwidth(&self) -> Bandwidth {
        Bandwidth(u64::from(self.bandwidth.get()))
    }

    fn update_bandwidth(&mut self, path: &Path, rate: &RateSampler, sample: &RateSample) {
        self.rounds.just_started = false;
        let Some(interval) = sample.interval else { return };
        if interval.prior_delivered >= self.rounds.start {
            self.rounds =
                Rounds { count: self.rounds.count + 1, start: path.delivered, just_started: true };
            self.conserves = false;
        }
        self.look_for_policer(path, rate, sample.losses, sample.is_app_limited);
        let bandwidth = Bandwidth::of(interval.delivered, interval.us);
        // An application that sends little shows nothing but that the path carries as much.
        if !sample.is_app_limited || bandwidth >= self.max_bandwidth() {
            let value = u32::try_from(bandwidth.0).unwrap_or(u32::MAX);
            self.bandwidth.offer(value, self.rounds.count, BANDWIDTH_ROUNDS);
        }
    }

    fn look_for_policer(
        &mut self,
        path: &Path,
        rate: &RateSampler,
        losses: u32,
        is_app_limited: bool,
    ) {
        let now = progress(path, rate);
        let starts_round = self.rounds.just_started;
        if self.policer.bandwidth().is_some() {
            let probes = matches!(self.mode, Mode::ProbeBandwidth(_));
            if probes && self.policer.is_over(starts_round, now) {
                self.probe_bandwidth(rate);
            }
            return;
        }
        let news = News { now, losses, is_app_limited, starts_round, mss: path.mss };
        if self.policer.look(news) {
            self.pacing_gain = UNIT;
        }
    }

    fn update_aggregation(&mut self, window: &Window, rate: &RateSampler, sample: &RateSample) {
        if sample.acked > 0 && sample.interval.is_some() {
            self.aggregation.on_ack(
                sample.acked,
                self.rounds.just_started,
                self.bandwidth(),
                window.cwnd,
                rate.delivered_us,
            );
        }
    }

    /// The pipe is full once the rate has not grown by a quarter in three round trips: enough for a
    /// receive window to grow in between.
    fn look_whether_pipe_is_full(&mut self, sample: &RateSample) {
        let pipe = &mut self.pipe;
        if pipe.reached || !self.rounds.just_started || sample.is_app_limited {
            return;
        }
        let bandwidth = self.bandwidth.get();
        if u64::from(bandwidth) >= (u64::from(pipe.bandwidth) * FULL_GROWTH) >> 8 {
            pipe.bandwidth = bandwidth;
            pipe.rounds_without_growth = 0;
            return;
        }
        pipe.rounds_without_growth += 1;
        pipe.reached = pipe.rounds_without_growth >= FULL_ROUNDS;
    }

    /// Once in ten seconds without a shorter one the round trip is measured anew.
    fn update_min_rtt(
        &mut self,
        window: &mut Window,
        path: &Path,
        rate: &mut RateSampler,
        sample: &RateSample,
    ) {
        let now = window.ticks();
        let expired = now > self.min_rtt.tick + MIN_RTT_SECONDS * window.ticks_per_second();
        if let Some(us) = sample.rtt_us
            && (us < self.min_rtt.us || (expired && !sample.is_ack_delayed))
        {
            self.min_rtt = MinRtt { us, tick: now };
        }
        if expired && !self.restarts && !matches!(self.mode, Mode::ProbeRtt { .. }) {
            // In this order: the larger of this window and an earlier one is gone back to.
            self.mode = Mode::ProbeRtt { done: None };
            self.remember_cwnd(window);
        }
        if let Mode::ProbeRtt { done } = self.mode {
            rate.mark_app_limited(path.delivered, path.in_flight);
            match done {
                None if path.in_flight <= MIN_CWND_SEGMENTS => {
                    let until_tick = now + window.ticks_of(PROBE_RTT_US);
                    self.mode =
                        Mode::ProbeRtt { done: Some(RttProbe { until_tick, round_over: false }) };
                    self.rounds.start = path.delivered;
                }
                None => {}
                Some(mut probe) => {
                    probe.round_over |= self.rounds.just_started;
                    self.mode = Mode::ProbeRtt { done: Some(probe) };
                    if probe.round_over {
                        self.end_rtt_probe(Some(probe), window, rate);
                    }
                }
            }
        }
        if sample.has_stamp {
            self.restarts = false;
        }
    }

    fn end_rtt_probe(&mut self, probe: Option<RttProbe>, window: &mut Window, rate: &RateSampler) {
        if probe.is_none_or(|probe| window.ticks() <= probe.until_tick) {
            return;
        }
        self.min_rtt.tick = window.ticks();
        window.cwnd = window.cwnd.max(self.prior_cwnd);
        if self.pipe.reached {
            self.probe_bandwidth(rate);
        } else {
            self.mode = Mode::Startup;
        }
    }
}

/// BBR's modes, and the changes between them.
impl Bbr {
    /// Startup is over once the pipe is full, draining once what is under way fits into it.
    fn drain(&mut self, window: &mut Window, path: &Path, rate: &RateSampler) {
        if self.mode == Mode::Startup && self.pipe.reached {
            self.mode = Mode::Drain;
            window.ssthresh = self.inflight(UNIT, window, path);
        }
        if self.mode == Mode::Drain
            && self.in_network(path.in_flight, window, path) <= self.inflight(UNIT, window, path)
        {
            self.probe_bandwidth(rate);
        }
    }

    /// Starts with any phase but the one that sends less: flows that start together shall not probe
    /// together.
    fn probe_bandwidth(&mut self, rate: &RateSampler) {
        let phase = (PHASES - self.random.below(PHASES as u64 - 1) as usize) % PHASES;
        self.mode = Mode::ProbeBandwidth(Cycle { phase, since_us: rate.delivered_us });
    }

    fn update_cycle(
        &mut self,
        window: &Window,
        path: &Path,
        rate: &RateSampler,
        sample: &RateSample,
    ) {
        let Mode::ProbeBandwidth(cycle) = self.mode else { return };
        let lasted_us = rate.delivered_us.saturating_sub(cycle.since_us);
        let is_whole = lasted_us > u64::from(self.min_rtt.us);
        let in_network = || self.in_network(sample.prior_in_flight, window, path);
        let over = match self.pacing_gain.cmp(&UNIT) {
            Ordering::Equal => is_whole,
            // More shows something only once there is as much more under way, or a loss ...
            Ordering::Greater => {
                let target = || self.inflight(self.pacing_gain, window, path);
                is_whole && (sample.losses > 0 || in_network() >= target())
            }
            // ... and less once the queue is empty has done its work.
            Ordering::Less => is_whole || in_network() <= self.inflight(UNIT, window, path),
        };
        if over {
            let phase = (cycle.phase + 1) % PHASES;
            self.mode = Mode::ProbeBandwidth(Cycle { phase, since_us: rate.delivered_us });
        }
    }

    fn set_gains(&mut self) {
        (self.pacing_gain, self.cwnd_gain) = match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            Mode::ProbeBandwidth(_) if self.policer.bandwidth().is_some() => (UNIT, CWND_GAIN),
            Mode::ProbeBandwidth(cycle) => (CYCLE_GAINS[cycle.phase], CWND_GAIN),
            Mode::ProbeRtt { .. } => (UNIT, UNIT),
        };
    }
}

/// Pacing rate and window, which follow from model and mode.
impl Bbr {
    /// Sets the first rate, before anything is known of the path: the window a round trip.
    fn set_first_rate(&mut self, window: &mut Window, path: &Path) {
        let rtt_us = path.srtt8_us.map_or(NOMINAL_RTT_US, |srtt8_us| (srtt8_us >> 3).max(1));
        self.knows_rtt |= path.srtt8_us.is_some();
        let bandwidth = Bandwidth::of(window.cwnd, u64::from(rtt_us));
        window.pacing_rate = bandwidth.bytes_per_second(HIGH_GAIN, path.mss);
    }

    fn set_pacing_rate(&mut self, window: &mut Window, path: &Path, gain: u64) {
        let rate = self.bandwidth().bytes_per_second(gain, path.mss);
        if !self.knows_rtt && path.srtt8_us.is_some() {
            self.set_first_rate(window, path);
        }
        if self.pipe.reached || rate > window.pacing_rate {
            window.pacing_rate = rate;
        }
    }

    fn set_cwnd(&mut self, window: &mut Window, path: &Path, sample: &RateSample) {
        if sample.acked > 0 {
            window.cwnd = self.cwnd(window, path, sample);
        }
        if matches!(self.mode, Mode::ProbeRtt { .. }) {
            window.cwnd = window.cwnd.min(MIN_CWND_SEGMENTS);
        }
    }

    /// Grows by what arrives up to the target. In recovery it keeps to what arrives at first, and later
    /// grows as otherwise.
    fn cwnd(&mut self, window: &Window, path: &Path, sample: &RateSample) -> u32 {
        let acked = sample.acked;
        let mut cwnd = window.cwnd.saturating_sub(sample.losses).max(1);
        if path.phase == Phase::Recovery && self.prior_phase != Phase::Recovery {
            self.conserves = true;
            self.rounds.start = path.delivered;
            cwnd = path.in_flight + acked;
        } else if self.prior_phase >= Phase::Recovery && path.phase < Phase::Recovery {
            cwnd = cwnd.max(self.prior_cwnd);
            self.conserves = false;
        }
        self.prior_phase = path.phase;
        if self.conserves {
            return cwnd.max(path.in_flight + acked);
        }
        let mut target = self.delay_product(self.bandwidth(), self.cwnd_gain);
        if self.pipe.reached {
            let most = self.bandwidth().segments_in(MAX_AGGREGATION_US);
            target += u64::from(self.aggregation.excess()).min(most) as u32;
        }
        let target = self.with_bursts(target, window, path);
        if self.pipe.reached {
            cwnd = (cwnd + acked).min(target);
        } else if cwnd < target || path.delivered + HANDSHAKE < LINUX_INITIAL_WINDOW_SEGMENTS {
            cwnd += acked;
        }
        cwnd.max(MIN_CWND_SEGMENTS)
    }

    fn remember_cwnd(&mut self, window: &Window) {
        let is_cut =
            self.prior_phase >= Phase::Recovery || matches!(self.mode, Mode::ProbeRtt { .. });
        self.prior_cwnd = if is_cut { self.prior_cwnd.max(window.cwnd) } else { window.cwnd };
    }

    /// Segments that the path holds, times `gain`.
    fn delay_product(&self, bandwidth: Bandwidth, gain: u64) -> u32 {
        if self.min_rtt.us == u32::MAX {
            return LINUX_INITIAL_WINDOW_SEGMENTS;
        }
        let product = bandwidth.0 * u64::from(self.min_rtt.us);
        ((product * gain) >> 8).div_ceil(Bandwidth::ONE) as u32
    }

    /// The window for the target, with room for packets that wait in the hosts at both ends.
    fn inflight(&self, gain: u64, window: &Window, path: &Path) -> u32 {
        let product = self.delay_product(self.max_bandwidth(), gain);
        self.with_bursts(product, window, path)
    }

    /// Adds three bursts to `segments`, and makes them even, for every second one is acknowledged.
    ///
    /// In the phase that probes for bandwidth there are two more.
    fn with_bursts(&self, segments: u32, window: &Window, path: &Path) -> u32 {
        let segments = (segments + 3 * burst(window, path)).next_multiple_of(2);
        let probes = matches!(self.mode, Mode::ProbeBandwidth(Cycle { phase: 0, .. }));
        segments + if probes { 2 } else { 0 }
    }

    /// Segments that will be under way when the next burst leaves, of `in_flight` ones now.
    ///
    /// The burst is included if the pacing gain is to put more under way.
    fn in_network(&self, in_flight: u32, window: &Window, path: &Path) -> u32 {
        let more = if self.pacing_gain > UNIT { burst(window, path) } else { 0 };
        let arrived = self.bandwidth().segments_in(path.next_burst_us);
        u64::from(in_flight + more).saturating_sub(arrived) as u32
    }
}

fn progress(path: &Path, rate: &RateSampler) -> Progress {
    Progress { delivered: path.delivered, lost: path.lost, delivered_us: rate.delivered_us }
}

/// Segments of a burst: a millisecond's worth.
fn burst(window: &Window, path: &Path) -> u32 {
    let bytes = (window.pacing_rate >> 10).min(u64::from(MAX_BURST_BYTES));
    ((bytes / u64::from(path.mss)) as u32).max(least_burst(window)).min(0x7f)
}

fn least_burst(window: &Window) -> u32 {
    if window.pacing_rate < SINGLE_BELOW { 1 } else { 2 }
}

pub(super) static BBR: Algorithm = Algorithm {
    name: "bbr",
    summary: "version 1: sends at the largest rate at which data arrived lately; losses do not count",
    source: "Cardwell et al. 2016; Linux net/ipv4/tcp_bbr.c",
    begin: |random| Box::new(Bbr::new(random)),
};

/// Gains are in 256ths.
const UNIT: u64 = 256;
/// 2/ln 2, the least that doubles the rate each round trip.
const HIGH_GAIN: u64 = UNIT * 2_885 / 1_000 + 1;
/// Inverse of [`HIGH_GAIN`]: empties the queue in about one round trip.
const DRAIN_GAIN: u64 = UNIT * 1_000 / 2_885;
/// Windows allow for delayed and compressed acknowledgements.
const CWND_GAIN: u64 = 2 * UNIT;
const PHASES: usize = 8;
/// A round trip of a quarter more, one of a quarter less, and six at the rate.
const CYCLE_GAINS: [u64; PHASES] = [UNIT * 5 / 4, UNIT * 3 / 4, UNIT, UNIT, UNIT, UNIT, UNIT, UNIT];
/// Percent by which data is paced below the rate (`bbr_pacing_margin_percent`).
const MARGIN_PERCENT: u64 = 1;
/// Round trips for which the largest rate is remembered (`bbr_bw_rtts`).
const BANDWIDTH_ROUNDS: u32 = 10;
/// Growth of the rate in startup that counts, in 256ths (`bbr_full_bw_thresh`), and how long it may be
/// missing (`bbr_full_bw_cnt`).
const FULL_GROWTH: u64 = UNIT * 5 / 4;
const FULL_ROUNDS: u32 = 3;
/// How long the shortest round trip is remembered (`bbr_min_rtt_win_sec`).
const MIN_RTT_SECONDS: u64 = 10;
/// How long few segments are under way (`bbr_probe_rtt_mode_ms`).
const PROBE_RTT_US: u32 = 200_000;
/// Segments under way at least (`bbr_cwnd_min_target`).
const MIN_CWND_SEGMENTS: u32 = 4;
/// Time of the path's rate that is allowed for bursts of acknowledgements (`bbr_extra_acked_max_us`).
const MAX_AGGREGATION_US: u64 = 100_000;
/// Bytes per second below which segments leave one by one: 1.2 Mbit/s (`bbr_min_tso_rate`).
const SINGLE_BELOW: u64 = 1_200_000 >> 3;
/// Largest burst in bytes (`GSO_LEGACY_MAX_SIZE`, less room for headers).
const MAX_BURST_BYTES: u32 = 65_536 - 1 - 256;
/// Round trip that is assumed before there is one.
const NOMINAL_RTT_US: u32 = 1_000;
/// Linux counts the SYN among the segments delivered.
const HANDSHAKE: u32 = 1;

#[cfg(test)]
mod tests;
