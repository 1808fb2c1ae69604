//! Check of a scenario for what real sockets cannot do, before anything starts.

use std::fs;
use std::io;

use socket2::{Domain, Socket, Type};
use weir_core::Duration;
use weir_scenario::{
    Application, Flow, LINUX_INITIAL_WINDOW_SEGMENTS, LINUX_RTO_MIN, Probe, ProbeKind, Scenario,
    UdpLoad,
};

use crate::error::NetError;
use crate::flows::{MIN_UDP_LOAD_BYTES, Offer};
use crate::probes::{MAX_LANES, MIN_UDP_PAYLOAD_BYTES, NUMBER_BYTES};
use crate::sys::option;

/// The congestion controls that this kernel offers.
///
/// # Errors
/// If the kernel does not say.
pub fn available_congestion_controls() -> io::Result<Vec<String>> {
    let text = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")?;
    Ok(text.split_whitespace().map(str::to_owned).collect())
}

/// Refuses a congestion control that this machine does not have.
///
/// Where there is no `/proc`, as for a program alone in an empty root, the kernel is asked on a socket that goes nowhere.
///
/// # Errors
/// If it does not: with those that there are, where the kernel lists them.
pub fn check_congestion_control(name: &str) -> Result<(), String> {
    let refused =
        |there_is: &str| Err(format!("congestion control `{name}`: this machine {there_is}"));
    match available_congestion_controls() {
        Ok(listed) if listed.iter().any(|one| one == name) => Ok(()),
        Ok(listed) => refused(&format!("has {}", listed.join(", "))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            match Socket::new(Domain::IPV4, Type::STREAM, None) {
                Ok(socket) if socket.set_tcp_congestion(name.as_bytes()).is_ok() => Ok(()),
                Ok(_) => refused("does not have it, or does not let this user choose it"),
                Err(why) => Err(why.to_string()),
            }
        }
        Err(error) => Err(error.to_string()),
    }
}

/// Checks that real sockets can do what `scenario` asks for, where `available` are the congestion
/// controls of the kernel.
///
/// `bursts` is not looked at: it is the business of the data path. A receive window that the kernel does
/// not grant is found by [`crate::ScenarioEnds::start`].
///
/// # Errors
/// If they cannot: the first thing, with what is allowed.
pub fn check(scenario: &Scenario, available: &[String]) -> Result<(), NetError> {
    for flow in &scenario.flows {
        check_flow(flow, available)
            .map_err(|error| NetError::new(format!("flow `{}`: {error}", flow.name)))?;
    }
    for probe in &scenario.probes {
        check_probe(probe)
            .map_err(|error| NetError::new(format!("probe `{}`: {error}", probe.name)))?;
    }
    check_open_files(scenario)
}

fn check_flow(flow: &Flow, available: &[String]) -> Result<(), String> {
    if let Some(load) = flow.udp {
        return check_udp(load);
    }
    let tcp = &flow.tcp;
    if let Some(application) = &flow.application
        && !Offer::of(&tcp.overrides).is_default()
    {
        return Err(format!(
            "`{}`: real sockets switch sack, timestamps and ecn for loads of data only: leave them out of its tcp",
            application.key()
        ));
    }
    let control = &tcp.congestion_control;
    if !available.contains(control) {
        return Err(format!(
            "congestion control `{control}`: this kernel has {}",
            available.join(", ")
        ));
    }
    if tcp.profile != LINUX {
        return Err(format!(
            "profile `{}`: real sockets speak the kernel's TCP: write `{LINUX}`",
            tcp.profile
        ));
    }
    if let Some(segments) = tcp.overrides.initial_window
        && segments != LINUX_INITIAL_WINDOW_SEGMENTS
    {
        return Err(format!(
            "initial_window {segments}: a socket cannot change it: leave it out or write \
             {LINUX_INITIAL_WINDOW_SEGMENTS}"
        ));
    }
    if tcp.overrides.pacing == Some(false) && PACES_ALWAYS.contains(&control.as_str()) {
        return Err(format!("pacing off: `{control}` always paces: leave it out"));
    }
    match tcp.overrides.rto_min_ns {
        Some(ns) if ns != LINUX_RTO_MIN.as_nanos() => check_rto_min(Duration::from_nanos(ns)),
        _ => Ok(()),
    }
}

fn check_udp(load: UdpLoad) -> Result<(), String> {
    if load.payload_bytes as usize >= MIN_UDP_LOAD_BYTES {
        return Ok(());
    }
    Err(format!(
        "udp.payload {}: packets on real sockets carry their number and time: write {MIN_UDP_LOAD_BYTES} or more",
        load.payload_bytes
    ))
}

/// Asks the kernel, on a socket that goes nowhere.
fn check_rto_min(rto_min: Duration) -> Result<(), String> {
    let tried = Socket::new(Domain::IPV4, Type::STREAM, None)
        .and_then(|socket| set_rto_min(&socket, rto_min));
    tried.map_err(|error| match error.raw_os_error() {
        Some(libc::EINVAL) => format!("rto_min {rto_min}: the kernel takes 2 ticks to 200ms"),
        _ => format!(
            "rto_min {rto_min}: this kernel cannot change it for a socket (Linux 6.15 and later can): \
             leave it out"
        ),
    })
}

/// Sets the shortest retransmission timeout of a socket.
pub(crate) fn set_rto_min(socket: &Socket, rto_min: Duration) -> io::Result<()> {
    let micros = i32::try_from(rto_min.as_micros()).unwrap_or(i32::MAX);
    option::set_rto_min_us(socket, micros)
}

fn check_probe(probe: &Probe) -> Result<(), String> {
    let (least, most) = match probe.kind {
        ProbeKind::Udp => (MIN_UDP_PAYLOAD_BYTES as u32, MAX_PAYLOAD_BYTES),
        ProbeKind::Tcp => (1, MAX_REQUEST_BYTES),
        ProbeKind::Icmp | ProbeKind::UdpTtl => (0, MAX_PAYLOAD_BYTES),
    };
    if (least..=most).contains(&probe.payload_bytes) {
        return Ok(());
    }
    Err(format!("payload {} bytes: write {least} to {most}", probe.payload_bytes))
}

fn check_open_files(scenario: &Scenario) -> Result<(), NetError> {
    let flows = scenario.flows.len() as u64;
    // Both ends of each, a listener of each that the server opens, and what the process has anyway.
    let connections: u64 = scenario.flows.iter().map(connections_of).sum();
    let needed = 3 * flows
        + 2 * connections
        + scenario.probes.iter().map(files_of).sum::<u64>()
        + OTHER_FILES;
    let most =
        option::raise_open_files().map_err(|error| NetError::io("limit of open files", &error))?;
    if needed > most {
        return Err(NetError::new(format!(
            "{flows} flows and {} probes need {needed} open files, and this process may have {most}: raise \
             the limit (ulimit -Hn) or write fewer",
            scenario.probes.len()
        )));
    }
    Ok(())
}

/// Connections that an application may have open at once.
fn connections_of(flow: &Flow) -> u64 {
    flow.application.as_ref().map_or(0, Application::max_connections).into()
}

/// Open files that a probe may need. One whose pings carry no number has a socket for each that is under way.
const fn files_of(probe: &Probe) -> u64 {
    let is_without_number = (probe.payload_bytes as usize) < NUMBER_BYTES;
    let lanes = match probe.kind {
        ProbeKind::UdpTtl if is_without_number => MAX_LANES as u64,
        _ => 0,
    };
    4 + lanes
}

/// The kernel's own.
const LINUX: &str = "linux";
/// Congestion controls that switch pacing on themselves (`SK_PACING_NEEDED` in `net/ipv4/tcp_bbr.c`).
const PACES_ALWAYS: [&str; 1] = ["bbr"];
/// Bytes that fit into an IP packet behind the headers (RFC 791, RFC 768), rounded down.
pub const MAX_PAYLOAD_BYTES: u32 = 65_000;
/// Bytes that a fresh socket's send buffer takes at once (`tcp_wmem`).
const MAX_REQUEST_BYTES: u32 = 16_384;
/// Standard streams, epoll, the record, and some room.
const OTHER_FILES: u64 = 100;
