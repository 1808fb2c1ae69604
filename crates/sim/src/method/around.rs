//! Where connections are at work.

use std::collections::VecDeque;

use weir_core::{Rng, Time};
use weir_probe::News;
use weir_world::Sink;

use crate::run::Network;

/// Where a session is at work, and what it tells.
pub(crate) struct Around<'a> {
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
