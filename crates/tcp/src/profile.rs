//! Profiles: which TCP an endpoint speaks, as data.
//!
//! A profile is a name and a set of values; every value can be overridden by itself. The default,
//! `linux`, is Linux 6.12 with its default settings.

use std::sync::Arc;

use weir_core::{Duration, Time};
use weir_scenario::{
    LINUX_INITIAL_WINDOW_SEGMENTS, LINUX_RTO_MIN, Overrides, Scenario, ScenarioError, TcpSettings,
};

/// A TCP implementation: everything by which one differs from another, congestion control aside.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// The profile's name.
    pub name: &'static str,
    /// Timestamps option (RFC 7323): 12 bytes a segment, round trips of retransmissions, undo.
    pub timestamps: bool,
    /// Selective acknowledgements (RFC 2018) with reports of duplicates (RFC 2883).
    pub sack: bool,
    /// ECN (RFC 3168): sends ECT(0), answers CE.
    pub ecn: bool,
    /// A repeated SYN does not ask for ECN, in case that is why the first was lost (RFC 3168, section
    /// 6.1.1.1; `tcp_ecn_fallback`).
    pub ecn_fallback: bool,
    /// How losses are found.
    pub loss_detection: LossDetection,
    /// Tail loss probes (RFC 8985, section 7).
    pub tail_loss_probe: bool,
    /// Tells spurious timeouts from real ones (RFC 5682) and takes back what they did.
    pub f_rto: bool,
    /// Takes a reduction back that turns out to have been needless (Eifel, RFC 3522; D-SACK).
    pub undo: bool,
    /// Sends new data on the first duplicate acknowledgements (RFC 3042).
    pub limited_transmit: bool,
    /// Stays in recovery until everything sent before it is acknowledged (RFC 6582); without SACK
    /// only.
    pub new_reno: bool,
    /// Spreads the reduction over a round trip (RFC 6937); otherwise half a window falls silent.
    pub proportional_rate_reduction: bool,
    /// Segments that may be sent first (RFC 6928: 10).
    pub initial_window: u32,
    /// Slow start doubles up to the delivered data, not to the number of acknowledgements (RFC 3465).
    pub byte_counting: bool,
    /// Treatment of the congestion window after it was idle for longer than a timeout.
    pub idle_restart: IdleRestart,
    /// Retransmission timeout before the first round trip.
    pub rto_initial: Duration,
    /// How often a SYN is repeated at that timeout before the timeout is doubled.
    pub syn_linear_timeouts: u32,
    /// How the timeout follows from round trips.
    pub rto_rule: RtoRule,
    /// Shortest retransmission timeout.
    pub rto_min: Duration,
    /// Longest retransmission timeout.
    pub rto_max: Duration,
    /// How timers tick.
    pub timers: Timers,
    /// How acknowledgements are delayed.
    pub delayed_ack: DelayedAck,
    /// Whether data leaves evenly spread instead of in bursts.
    pub pacing: bool,
    /// How many segments are handed to the line at once.
    pub bursts: Bursts,
    /// Memory for what is written and not yet acknowledged; `None` sets no bounds.
    pub send_buffer: Option<SocketBuffer>,
    /// How much the peer may send ahead.
    pub receive_window: WindowRule,
}

/// How losses are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossDetection {
    /// By time: a segment is lost once one sent sufficiently later has arrived (RFC 8985).
    Rack,
    /// By number: a segment is lost once three above it have arrived (RFC 6675).
    DuplicateAcks,
}

/// Treatment of the congestion window after it was idle for longer than a timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdleRestart {
    /// The window falls to the initial window (RFC 5681, section 4.1).
    InitialWindow,
    /// The window halves for each timeout, down to the initial window (RFC 2861, as Linux has it).
    ///
    /// It also shrinks while the application uses only a part of it.
    Decay,
}

/// How the retransmission timeout follows from round trips.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RtoRule {
    /// Smoothed round trip and four times the variation, and never less than the shortest timeout
    /// (RFC 6298, section 2).
    Rfc6298,
    /// As Linux: the shortest timeout bounds the variation's part, so that the timeout always stays
    /// that much above the round trip.
    Linux,
    /// As Linux 2.2: RFC 6298's, a quarter longer, and longer still the smaller the window is: twice and a
    /// quarter at a window of one.
    Linux22,
}

/// How timers tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timers {
    /// Timers fire exactly, to the nanosecond.
    Exact,
    /// At the tick by which the time is up.
    Ticks(Duration),
    /// Linux' timer wheel with that tick: never early, and coarser the longer the time.
    Wheel(Duration),
}

/// How acknowledgements are delayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DelayedAck {
    /// Every segment is acknowledged at once.
    Never,
    /// Every second full segment, or after this time (RFC 5681, section 4.2).
    Every2(Duration),
    /// As Linux: at once while a connection starts, resumes or grows its window, then every second
    /// full segment or after 40 ms, and in bursts of losses compressed to one a millisecond.
    Linux,
}

/// How many segments are handed to the line at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bursts {
    /// Segments are sent one by one.
    None,
    /// As Linux with segmentation offload: about a millisecond's worth at the pacing rate, two
    /// segments at least, held back a moment for more to come.
    Linux,
}

/// How large the receive window is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowRule {
    /// The window always has that many bytes.
    Fixed(u32),
    /// The window follows what the application reads (dynamic right-sizing, as Linux has it).
    ///
    /// The buffer bounds it.
    Follows(SocketBuffer),
}

/// A socket's buffer, counted in memory, which data takes more of than it has bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketBuffer {
    /// Bytes of memory at the start.
    pub start: u32,
    /// Most bytes of memory.
    pub greatest: u32,
}

/// A profile that does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown TCP profile `{name}` (known: {known})")]
pub struct UnknownProfile {
    name: String,
    known: String,
}

/// Checks that there are the profiles that the loads and speed tests of `scenario` ask for.
///
/// # Errors
/// If one does not exist: whose, and which there are.
pub fn check_profiles(scenario: &Scenario) -> Result<(), ScenarioError> {
    let flows = scenario.flows.iter().map(|flow| ("flow", &flow.name, &flow.tcp));
    let tests = scenario.methods.iter().map(|test| ("method", &test.name, &test.tcp));
    for (kind, name, settings) in flows.chain(tests) {
        Profile::of(settings)
            .map_err(|error| ScenarioError::new(format!("{kind} `{name}`: {error}")))?;
    }
    Ok(())
}

impl Profile {
    /// The profile called `name`.
    ///
    /// # Errors
    /// If there is none.
    pub fn named(name: &str) -> Result<Self, UnknownProfile> {
        PROFILES.iter().find(|profile| profile.name == name).cloned().ok_or_else(|| {
            let known: Vec<_> = PROFILES.iter().map(|profile| profile.name).collect();
            UnknownProfile { name: name.to_owned(), known: known.join(", ") }
        })
    }

    /// The profile that a load's settings ask for, with their changes.
    ///
    /// # Errors
    /// If there is no profile of that name.
    pub fn of(settings: &TcpSettings) -> Result<Arc<Self>, ScenarioError> {
        let profile = Self::named(&settings.profile)
            .map_err(|error| ScenarioError::new(error.to_string()))?;
        Ok(Arc::new(profile.with(&settings.overrides)))
    }

    /// This profile with the given changes.
    #[must_use]
    pub fn with(mut self, changes: &Overrides) -> Self {
        let set = |field: &mut bool, change: Option<bool>| *field = change.unwrap_or(*field);
        set(&mut self.timestamps, changes.timestamps);
        set(&mut self.sack, changes.sack);
        set(&mut self.ecn, changes.ecn);
        set(&mut self.pacing, changes.pacing);
        if changes.bursts == Some(false) {
            self.bursts = Bursts::None;
        }
        if changes.delayed_ack == Some(false) {
            self.delayed_ack = DelayedAck::Never;
        }
        if let Some(segments) = changes.initial_window {
            self.initial_window = segments;
        }
        if let Some(bytes) = changes.receive_window_bytes {
            self.receive_window = WindowRule::Fixed(bytes);
        }
        if let Some(ns) = changes.rto_min_ns {
            self.rto_min = Duration::from_nanos(ns);
        }
        self
    }

    /// Bytes of data in a full segment, on a path whose IP packets hold `mtu` bytes and where an IP
    /// header takes `ip_header`.
    #[must_use]
    pub const fn mss(&self, mtu: u32, ip_header: u32) -> u32 {
        mtu - ip_header - 20 - if self.timestamps { 12 } else { 0 }
    }
}

impl Timers {
    /// When a timer set at `now` for `span` fires.
    #[must_use]
    pub fn fires_at(self, now: Time, span: Duration) -> Time {
        match self {
            Self::Exact | Self::Ticks(_) => self.due(now, span),
            Self::Wheel(tick) => {
                let ticks = span.as_nanos().div_ceil(tick.as_nanos());
                let expires = now.as_nanos() / tick.as_nanos() + ticks;
                // kernel/time/timer.c: level l holds timers of 63 * 8^(l-1) ticks and more, in steps
                // of 8^l ticks, and rounds up to the next step so that none fires early.
                let mut level = 0;
                while level < 8 && ticks >= 63 << (3 * level) {
                    level += 1;
                }
                let steps = (expires >> (3 * level)) + 1;
                Time::from_nanos((steps << (3 * level)) * tick.as_nanos())
            }
        }
    }

    /// The tick at which a timer set at `now` for `span` is up, which the wheel notices a little later.
    #[must_use]
    pub fn due(self, now: Time, span: Duration) -> Time {
        match self {
            Self::Exact => now + span,
            Self::Ticks(tick) | Self::Wheel(tick) => {
                let ticks = span.as_nanos().div_ceil(tick.as_nanos());
                Time::from_nanos((now.as_nanos() / tick.as_nanos() + ticks) * tick.as_nanos())
            }
        }
    }

    /// `span` in whole ticks, rounded down.
    #[must_use]
    pub fn whole(self, span: Duration) -> Duration {
        match self {
            Self::Exact => span,
            Self::Ticks(tick) | Self::Wheel(tick) => tick * (span.as_nanos() / tick.as_nanos()),
        }
    }

    /// The number of whole ticks at `now`; milliseconds where timers are exact.
    #[must_use]
    pub const fn ticks_at(self, now: Time) -> u64 {
        now.as_nanos() / self.tick().as_nanos()
    }

    /// The length of a tick.
    #[must_use]
    pub const fn tick(self) -> Duration {
        match self {
            Self::Exact => Duration::from_millis(1),
            Self::Ticks(tick) | Self::Wheel(tick) => tick,
        }
    }
}

/// The known profiles.
pub const PROFILES: &[Profile] = &[LINUX, RFC, LINUX22, BSD];

/// Linux 6.12, default settings, `HZ=250`.
const LINUX: Profile = Profile {
    name: "linux",
    timestamps: true,
    sack: true,
    ecn: false,
    ecn_fallback: true,
    loss_detection: LossDetection::Rack,
    tail_loss_probe: true,
    f_rto: true,
    undo: true,
    limited_transmit: true,
    new_reno: true,
    proportional_rate_reduction: true,
    initial_window: LINUX_INITIAL_WINDOW_SEGMENTS,
    byte_counting: true,
    idle_restart: IdleRestart::Decay,
    rto_initial: Duration::from_secs(1),
    syn_linear_timeouts: 4,
    rto_rule: RtoRule::Linux,
    rto_min: LINUX_RTO_MIN,
    rto_max: Duration::from_secs(120),
    timers: Timers::Wheel(Duration::from_millis(4)),
    delayed_ack: DelayedAck::Linux,
    pacing: false,
    bursts: Bursts::Linux,
    // tcp_wmem: 4096 16384 4194304.
    send_buffer: Some(SocketBuffer { start: 16_384, greatest: 4 << 20 }),
    // tcp_rmem: 4096 131072 6291456.
    receive_window: WindowRule::Follows(SocketBuffer { start: 131_072, greatest: 6 << 20 }),
};

/// The profile of the RFCs alone: RFC 5681, 6298, 6582, 6675, 6928, 7323.
const RFC: Profile = Profile {
    name: "rfc",
    timestamps: true,
    sack: true,
    ecn: false,
    ecn_fallback: false,
    loss_detection: LossDetection::DuplicateAcks,
    tail_loss_probe: false,
    f_rto: false,
    undo: false,
    limited_transmit: true,
    new_reno: true,
    proportional_rate_reduction: true,
    initial_window: 10,
    byte_counting: true,
    idle_restart: IdleRestart::InitialWindow,
    rto_initial: Duration::from_secs(1),
    syn_linear_timeouts: 0,
    rto_rule: RtoRule::Rfc6298,
    rto_min: Duration::from_secs(1),
    rto_max: Duration::from_secs(60),
    timers: Timers::Exact,
    // RFC 1122, section 4.2.3.2 allows half a second; 200 ms is what most stacks took.
    delayed_ack: DelayedAck::Every2(Duration::from_millis(200)),
    pacing: false,
    bursts: Bursts::None,
    send_buffer: None,
    receive_window: WindowRule::Fixed(4 << 20),
};

/// Linux 2.2, as of 1999: `net/ipv4/tcp_input.c`, `tcp_timer.c`. Without SACK it is NewReno.
const LINUX22: Profile = Profile {
    name: "linux22",
    timestamps: true,
    sack: true,
    ecn: false,
    ecn_fallback: false,
    loss_detection: LossDetection::DuplicateAcks,
    tail_loss_probe: false,
    f_rto: false,
    undo: false,
    limited_transmit: false,
    new_reno: true,
    proportional_rate_reduction: false,
    initial_window: 1,
    byte_counting: false,
    idle_restart: IdleRestart::InitialWindow,
    rto_initial: Duration::from_secs(3),
    syn_linear_timeouts: 0,
    rto_rule: RtoRule::Linux22,
    rto_min: Duration::from_millis(200),
    rto_max: Duration::from_secs(120),
    timers: Timers::Ticks(Duration::from_millis(10)),
    // It follows the time between segments, up to half a second; a middling value of it.
    delayed_ack: DelayedAck::Every2(Duration::from_millis(100)),
    pacing: false,
    bursts: Bursts::None,
    send_buffer: None,
    // Half of its receive buffer of 64 KiB.
    receive_window: WindowRule::Fixed(32_767),
};

/// A BSD of the nineties: 4.3BSD Reno's recovery, which ends with the first new acknowledgement, and timers
/// that tick twice a second (W. R. Stevens, "TCP/IP Illustrated, volume 2", chapter 25).
const BSD: Profile = Profile {
    name: "bsd",
    timestamps: false,
    sack: false,
    new_reno: false,
    rto_rule: RtoRule::Rfc6298,
    rto_min: Duration::from_secs(1),
    rto_max: Duration::from_secs(64),
    timers: Timers::Ticks(Duration::from_millis(500)),
    delayed_ack: DelayedAck::Every2(Duration::from_millis(200)),
    ..LINUX22
};

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Duration = Duration::from_millis(4);

    #[test]
    fn headers_take_their_part_of_a_packet() {
        let without = Profile { timestamps: false, ..LINUX };
        let with = Profile { timestamps: true, ..LINUX };
        assert_eq!((without.mss(1_500, 20), with.mss(1_500, 20)), (1_460, 1_448));
        assert_eq!((without.mss(1_500, 40), with.mss(1_500, 40)), (1_440, 1_428), "IPv6");
    }

    #[test]
    fn the_wheel_is_never_early_and_coarser_for_long_times() {
        let fires = |now_ms: u64, ms: u64| {
            Timers::Wheel(TICK)
                .fires_at(Time::from_millis(now_ms), Duration::from_millis(ms))
                .as_nanos()
                / 1_000_000
        };
        assert_eq!(fires(0, 40), 44); // 10 ticks, and one so that it is not early
        assert_eq!(fires(3, 40), 44);
        assert_eq!(fires(4, 200), 208);
        assert_eq!(fires(0, 248), 252); // 62 ticks: still steps of one
        assert_eq!(fires(0, 252), 256); // 63 ticks: steps of 8, 32 ms
        assert_eq!(fires(0, 260), 288);
        assert_eq!(fires(0, 2_016), 2_048); // 504 ticks: steps of 64, 256 ms
    }

    #[test]
    fn coarse_ticks_may_be_early() {
        let at = Timers::Ticks(Duration::from_millis(500))
            .fires_at(Time::from_millis(499), Duration::from_secs(1));
        assert_eq!(at, Time::from_millis(1_000));
    }

    #[test]
    fn unknown_profiles_are_named() {
        assert_eq!(
            Profile::named("windows").unwrap_err().to_string(),
            "unknown TCP profile `windows` (known: linux, rfc, linux22, bsd)"
        );
    }

    #[test]
    fn a_profile_that_does_not_exist_is_named_with_whose_it_is() {
        let test = r#"{"name": "t", "kind": "ndt7", "host": 0, "dscp": 0, "tls": true, "start_ns": 5,
            "tcp": {"profile": "linux", "congestion_control": "bbr"}, "client_congestion_control": "cubic"}"#;
        let text = r#"{"name": "s", "duration_ns": 1000, "phases": [], "path": {"up": [], "down": []},
            "hosts": [{"name": "server", "delay_ns": 0}], "flows": [], "probes": [], "methods": [TEST],
            "sampling": {"throughput_ns": 0, "tcp_ns": 0, "queue_ns": 0}, "ip_version": "4",
            "mtu_bytes": 1500}"#;
        let mut scenario = Scenario::from_json(&text.replace("TEST", test)).unwrap();
        check_profiles(&scenario).unwrap();
        scenario.methods[0].tcp.profile = "os2".into();
        assert_eq!(
            check_profiles(&scenario).unwrap_err().to_string(),
            "method `t`: unknown TCP profile `os2` (known: linux, rfc, linux22, bsd)"
        );
    }
}
