//! Where connections are at work, and what they tell.

use std::collections::VecDeque;

use weir_core::{Rng, Time};
use weir_probe::{Event, Id};
use weir_world::Sink;

use crate::run::Network;

/// What happened to the client, for its method.
#[derive(Clone, Debug)]
pub(crate) enum News {
    Event(Event<'static>),
    Text { id: Id, text: String },
    Failed { id: Id, reason: String },
}

impl News {
    pub fn event(&self) -> Event<'_> {
        match self {
            Self::Event(event) => *event,
            Self::Text { id, text } => Event::Text { id: *id, text },
            Self::Failed { id, reason } => Event::Failed { id: *id, reason },
        }
    }
}

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
