//! What is to be measured.

use weir_scenario::{IpVersion, Scenario};

use crate::ramps::RampPlan;

/// Request for a measurement.
#[derive(Clone, Debug)]
pub struct MeasureRequest {
    /// The servers in the order of the scenario's, each as [`Target::find_each`](weir_sockets::Target::find_each) reads it.
    pub hosts: Vec<String>,
    /// The Internet protocol of loads and probes that do not say theirs. If `None`, IPv6 where the scenario says so, or else
    /// what the system prefers for each server.
    pub ip: Option<IpVersion>,
    /// Secret of the servers that ask for one.
    pub secret: Option<String>,
    /// Loads and probes. Its path is empty: the path is what is measured.
    pub scenario: Scenario,
    /// The seed of what the scenario leaves to chance.
    pub seed: u64,
    /// Loads beyond the scenario's, as many as fill the line to the first server.
    pub ramp: Option<RampPlan>,
}
