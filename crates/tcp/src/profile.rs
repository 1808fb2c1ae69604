//! Profiles: the TCP implementation of an endpoint, as data.
//!
//! A profile is a name and a set of values. A scenario may override single values. The default, `linux`, is
//! Linux 6.12 with its default settings.

use std::sync::Arc;

use weir_core::Duration;
use weir_scenario::{
    LINUX_INITIAL_WINDOW_SEGMENTS, LINUX_RTO_MIN, Overrides, Scenario, ScenarioError, TcpSettings,
};

use crate::clock::Timers;

/// A TCP implementation: all in which implementations differ, except congestion control.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// The profile's name.
    pub name: &'static str,
    /// Timestamps option (RFC 7323): 12 bytes a segment, round trips of retransmissions, undo.
    pub timestamps: bool,
    /// Selective acknowledgements (RFC 2018) with reports of duplicates (RFC 2883).
    pub sack: bool,
    /// ECN (RFC 3168): sends ECT(0) and answers CE with ECE.
    pub ecn: bool,
    /// Whether a repeated SYN no longer asks for ECN, since that may be why the first was lost (RFC 3168,
    /// section 6.1.1.1; `tcp_ecn_fallback`).
    pub ecn_fallback: bool,
    /// Algorithm that detects losses.
    pub loss_detection: LossDetection,
    /// Tail loss probes (RFC 8985, section 7).
    pub tail_loss_probe: bool,
    /// F-RTO: tells spurious timeouts from real ones (RFC 5682), and undoes them.
    pub f_rto: bool,
    /// Undoes a reduction of the congestion window that was needless (Eifel, RFC 3522; D-SACK).
    pub undo: bool,
    /// Limited transmit: sends new data on the first two duplicate acknowledgements (RFC 3042).
    pub limited_transmit: bool,
    /// NewReno: stays in recovery until all data sent before it is acknowledged (RFC 6582). Used only without
    /// SACK.
    pub new_reno: bool,
    /// Spreads a reduction over a round trip (RFC 6937). Without it the sender pauses for half a window.
    pub proportional_rate_reduction: bool,
    /// Initial congestion window, in segments (RFC 6928: 10).
    pub initial_window: u32,
    /// Slow start grows by the bytes acknowledged, not by the number of acknowledgements (RFC 3465).
    pub byte_counting: bool,
    /// Treatment of the congestion window after it was idle for longer than a timeout.
    pub idle_restart: IdleRestart,
    /// Retransmission timeout before the first round trip.
    pub rto_initial: Duration,
    /// Repetitions of a SYN at `rto_initial` before the timeout is doubled.
    pub syn_linear_timeouts: u32,
    /// Rule by which the retransmission timeout follows from round trips.
    pub rto_rule: RtoRule,
    /// Shortest retransmission timeout.
    pub rto_min: Duration,
    /// Longest retransmission timeout.
    pub rto_max: Duration,
    /// Clock of the timers.
    pub timers: Timers,
    /// Rule for delayed acknowledgements.
    pub delayed_ack: DelayedAck,
    /// Whether data is paced: evenly spread instead of in bursts.
    pub pacing: bool,
    /// Segments that are handed to the line at once.
    pub bursts: Bursts,
    /// Send buffer: memory for data that is written and not acknowledged yet; without bounds if `None`.
    pub send_buffer: Option<SocketBuffer>,
    /// Size of the receive window.
    pub receive_window: WindowRule,
}

/// Algorithm that detects losses.
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

/// Rule by which the retransmission timeout follows from round trips.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RtoRule {
    /// Smoothed round trip and four times its variation, but at least the shortest timeout (RFC 6298,
    /// section 2).
    Rfc6298,
    /// As Linux: the part of the variation is at least the shortest timeout, so that the timeout is always
    /// that much longer than the round trip.
    Linux,
    /// As Linux 2.2: the timeout of RFC 6298 times 1.25, and more the smaller the window: times 2.25 at a
    /// window of one.
    Linux22,
}

/// Rule for delayed acknowledgements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DelayedAck {
    /// Every segment is acknowledged at once.
    Never,
    /// Every second full segment is acknowledged, and any segment after this time (RFC 5681, section 4.2).
    Every2(Duration),
    /// As Linux: at once while a connection starts, resumes or grows its window; later every second full
    /// segment, or after 40 ms; behind a gap one a millisecond.
    Linux,
}

/// Segments that are handed to the line at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bursts {
    /// Segments are sent one by one.
    None,
    /// As Linux with segmentation offload: data of about a millisecond at the pacing rate, but at least two
    /// segments; the sender waits a moment to fill a burst.
    Linux,
}

/// Size of the receive window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowRule {
    /// The window always has that many bytes.
    Fixed(u32),
    /// The window grows with the bytes that the application reads (dynamic right-sizing, as Linux has it), up
    /// to the size of the buffer.
    Follows(SocketBuffer),
}

/// Size of a socket's buffer, in bytes of memory. Data takes more memory than it has bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketBuffer {
    /// Size at the start, in bytes of memory.
    pub start: u32,
    /// Greatest size, in bytes of memory.
    pub greatest: u32,
}

/// Error: there is no profile of that name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown TCP profile `{name}` (known: {known})")]
pub struct UnknownProfile {
    name: String,
    known: String,
}

/// Checks that the TCP profiles of all loads and speed tests of `scenario` exist, and that what these change
/// fits them.
///
/// # Errors
/// If not: the message names the load or test, and what is allowed.
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
    /// If there is no profile of that name.
    pub fn named(name: &str) -> Result<Self, UnknownProfile> {
        PROFILES.iter().find(|profile| profile.name == name).cloned().ok_or_else(|| {
            let known: Vec<_> = PROFILES.iter().map(|profile| profile.name).collect();
            UnknownProfile { name: name.to_owned(), known: known.join(", ") }
        })
    }

    /// The profile that a load's settings name, with the changes that they make.
    ///
    /// # Errors
    /// If there is no profile of that name, or a value does not fit the profile's others.
    pub fn of(settings: &TcpSettings) -> Result<Arc<Self>, ScenarioError> {
        let profile = Self::named(&settings.profile)
            .map_err(|error| ScenarioError::new(error.to_string()))?;
        if let Some(ns) = settings.overrides.rto_min_ns
            && Duration::from_nanos(ns) > profile.rto_max
        {
            return Err(ScenarioError::new(format!(
                "rto_min {}: the profile `{}` waits for {} at most: write that or less",
                Duration::from_nanos(ns),
                profile.name,
                profile.rto_max
            )));
        }
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
        match changes.bursts {
            Some(true) => self.bursts = Bursts::Linux,
            Some(false) => self.bursts = Bursts::None,
            None => {}
        }
        // Every profile delays acknowledgements, each by its own rule: `true` asks for that.
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

    /// Maximum segment size: bytes of data in a full segment, where IP packets have at most `mtu` bytes, of
    /// which `ip_header` are the IP header.
    #[must_use]
    pub const fn mss(&self, mtu: u32, ip_header: u32) -> u32 {
        mtu - ip_header - 20 - if self.timestamps { 12 } else { 0 }
    }
}

/// All profiles.
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
    timers: Timers::Wheel,
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
    // RFC 1122, section 4.2.3.2 allows half a second. Most stacks waited 200 ms.
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
    // In Linux 2.2 the delay follows the time between segments, up to half a second: a typical value.
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

    #[test]
    fn headers_take_their_part_of_a_packet() {
        let without = Profile { timestamps: false, ..LINUX };
        let with = Profile { timestamps: true, ..LINUX };
        assert_eq!((without.mss(1_500, 20), with.mss(1_500, 20)), (1_460, 1_448));
        assert_eq!((without.mss(1_500, 40), with.mss(1_500, 40)), (1_440, 1_428), "IPv6");
    }

    #[test]
    fn unknown_profiles_are_named() {
        assert_eq!(
            Profile::named("windows").unwrap_err().to_string(),
            "unknown TCP profile `windows` (known: linux, rfc, linux22, bsd)"
        );
    }

    #[test]
    fn bursts_and_delayed_acknowledgements_are_switched_both_ways_in_every_profile() {
        for profile in PROFILES {
            let with = |bursts, delayed_ack| {
                let changes = Overrides { bursts, delayed_ack, ..Overrides::default() };
                profile.clone().with(&changes)
            };
            assert_eq!(with(Some(true), None).bursts, Bursts::Linux, "{}", profile.name);
            assert_eq!(with(Some(false), None).bursts, Bursts::None, "{}", profile.name);
            assert_ne!(with(None, Some(true)).delayed_ack, DelayedAck::Never, "{}", profile.name);
            assert_eq!(with(None, Some(false)).delayed_ack, DelayedAck::Never, "{}", profile.name);
            assert_eq!(with(None, None), *profile);
        }
    }

    #[test]
    fn no_shortest_timeout_is_above_the_longest() {
        for (name, longest) in [("linux", 120), ("rfc", 60), ("linux22", 120), ("bsd", 64)] {
            let settings = |seconds: u64| TcpSettings {
                profile: name.to_owned(),
                overrides: Overrides {
                    rto_min_ns: Some(seconds * 1_000_000_000),
                    ..Overrides::default()
                },
                ..TcpSettings::linux("cubic")
            };
            let profile = Profile::of(&settings(longest)).unwrap();
            assert_eq!(profile.rto_min, profile.rto_max);
            assert_eq!(
                Profile::of(&settings(longest + 1)).unwrap_err().to_string(),
                format!(
                    "rto_min {}s: the profile `{name}` waits for {longest}s at most: write that or less",
                    longest + 1
                )
            );
        }
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
