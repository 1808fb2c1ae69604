//! Builds the queues, markers and lines of a scenario's hops.

use std::sync::Arc;

use weir_core::{Rate, Seed};
use weir_qdisc::{Device, Marker, MarkerSpec, Port, QueueSpec, SpecError};
use weir_scenario::{Direction, Hop, LineRate, Scenario, ScenarioError};

use crate::airtime::Media;
use crate::line::{Capacity, Line};
use crate::trace::Trace;

/// Checks a scenario whose path is to be built here: that its parts fit together, and that its queues and
/// markers can be read.
///
/// # Errors
/// The first thing that is wrong, and where.
pub fn check(scenario: &Scenario) -> Result<(), ScenarioError> {
    scenario.check()?;
    for direction in Direction::ALL {
        for hop in scenario.hops(direction) {
            let (seed, mtu) = (Seed::new(0), scenario.mtu_bytes);
            marker(hop, seed, mtu).and_then(|_| port(hop, seed, mtu)).map_err(|error| {
                ScenarioError::new(format!("path {direction}, hop `{}`: {error}", hop.name))
            })?;
        }
    }
    Ok(())
}

/// The first hop whose marker needs to know the sender's window, which no live world does.
#[must_use]
pub fn marker_that_needs_window(scenario: &Scenario) -> Option<&Hop> {
    let needs = |hop: &&Hop| {
        let marker = marker(hop, Seed::new(0), scenario.mtu_bytes).ok().flatten();
        marker.is_some_and(|marker| marker.needs_window())
    };
    scenario.path.up.iter().chain(&scenario.path.down).find(needs)
}

/// Properties of the port on which the queue of `hop` sits.
#[must_use]
pub fn device(hop: &Hop, seed: Seed, mtu: u32) -> Device {
    let own_rate = match hop.rate {
        LineRate::Bps(bps) => Some(bps),
        LineRate::Unlimited | LineRate::Trace(_) | LineRate::PacketsPerSecond(_) => None,
    };
    Device {
        mtu,
        tx_queue_len: hop.tx_queue_len,
        line_rate: hop.reference_rate_bps.or(own_rate).map(Rate::from_bps),
        seed,
    }
}

/// The marker of `hop`, ready to work, if it has one.
///
/// # Errors
/// If its spec cannot be read.
pub(crate) fn marker(hop: &Hop, seed: Seed, mtu: u32) -> Result<Option<Marker>, SpecError> {
    let build = |text: &String| MarkerSpec::parse(text)?.build(&device(hop, seed, mtu));
    hop.marker.as_ref().map(build).transpose()
}

/// The queue of `hop`, ready to work.
///
/// # Errors
/// If its spec cannot be read.
pub(crate) fn port(hop: &Hop, seed: Seed, mtu: u32) -> Result<Port, SpecError> {
    let qdisc = QueueSpec::parse(&hop.queue)?.build(&device(hop, seed, mtu))?;
    Ok(if hop.shaped { Port::shaped(qdisc, hop.framing) } else { Port::new(qdisc) })
}

/// The line of `hop`, where `traces` gives the recordings by name, and `media` are those of the path.
pub(crate) fn line(
    hop: &Hop,
    traces: &dyn Fn(&str) -> Arc<Trace>,
    seed: Seed,
    media: &mut Media,
) -> Line {
    let capacity = match &hop.rate {
        LineRate::Unlimited => Capacity::Unlimited,
        LineRate::Bps(bps) => Capacity::Constant(Rate::from_bps(*bps)),
        LineRate::Trace(name) => Capacity::Trace(traces(name)),
        LineRate::PacketsPerSecond(rate) => Capacity::PacketsPerSecond(*rate),
    };
    Line::new(capacity, hop.framing).reached_as(hop, seed, media)
}
