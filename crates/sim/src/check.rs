//! What the simulator cannot do.

use weir_core::Seed;
use weir_path::TraceError;
use weir_scenario::{ProbeKind, Scenario, ScenarioError, SpeedTest};
use weir_speedtest::MethodInfo;
use weir_tcp::{Endpoint, Profile};

/// Why a scenario cannot be simulated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SimError {
    /// The scenario is not sound.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// A recording is not one.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// A congestion control that the simulated TCP does not have.
    #[error("flow `{flow}`: {error}")]
    Tcp {
        /// The flow's name.
        flow: String,
        /// The error, in one sentence.
        error: weir_tcp::UnknownAlgorithm,
    },
    /// A probe that only live worlds have.
    #[error("probe `{0}`: the simulator has no probes of kind tcp: run it in the world `lab`")]
    TcpProbe(String),
    /// A speed test that cannot be driven.
    #[error("method `{name}`: {reason}")]
    Method {
        /// The speed test's name.
        name: String,
        /// The error, in one sentence.
        reason: String,
    },
    /// A recording was not handed in.
    #[error("the recording `{0}` was not given")]
    MissingTrace(String),
}

/// Checks that the simulator can do what `scenario` asks for.
///
/// # Errors
/// If it cannot: the first thing.
pub fn check(scenario: &Scenario) -> Result<(), SimError> {
    weir_path::check(scenario)?;
    weir_tcp::check_profiles(scenario)?;
    scenario.check_routers()?;
    scenario.check_round_trips()?;
    for flow in scenario.flows.iter().filter(|flow| flow.udp.is_none()) {
        let random = Seed::new(0).stream("tcp");
        Endpoint::new(Profile::of(&flow.tcp)?, &flow.tcp.congestion_control, TYPICAL_MSS, random)
            .map_err(|error| SimError::Tcp { flow: flow.name.clone(), error })?;
    }
    for test in &scenario.methods {
        check_method(test)
            .map_err(|reason| SimError::Method { name: test.name.clone(), reason })?;
    }
    match scenario.probes.iter().find(|probe| probe.kind == ProbeKind::Tcp) {
        Some(probe) => Err(SimError::TcpProbe(probe.name.clone())),
        None => Ok(()),
    }
}

fn check_method(test: &SpeedTest) -> Result<(), String> {
    let known = MethodInfo::named(&test.kind).map_err(|error| error.to_string())?;
    if known.needs_tls && !test.tls {
        return Err(format!("{} needs HTTP/2 over TLS: leave `tls = false` out", known.name));
    }
    for tcp in [&test.tcp, &test.client_tcp()] {
        let random = Seed::new(0).stream("tcp");
        let profile = Profile::of(tcp).map_err(|error| error.to_string())?;
        Endpoint::new(profile, &tcp.congestion_control, TYPICAL_MSS, random)
            .map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// With IPv4 and timestamps on Ethernet.
const TYPICAL_MSS: u32 = 1448;
