//! The context in which a session of a speed test works.

use std::collections::VecDeque;

use weir_core::{Rng, Time};
use weir_scenario::Sink;
use weir_speedtest::News;

use crate::run::Network;

/// The context of a session: the network, the time, and the sinks of what it reports.
pub(crate) struct Context<'a> {
    pub network: &'a mut Network,
    pub now: Time,
    pub news: &'a mut VecDeque<News>,
    pub random: &'a mut Rng,
    pub round_trips: &'a mut RoundTrips,
    pub sink: &'a mut dyn Sink,
}

/// The round trips within a speed test's flows, as a probe of the record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RoundTrips {
    pub probe: u32,
    pub seq: u32,
}
