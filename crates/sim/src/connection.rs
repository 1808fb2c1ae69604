//! A TCP load: both ends of its connection.

use std::mem::offset_of;
use std::sync::Arc;

use weir_core::{Packet, Seed, Time};
use weir_path::{End, FlowDrops};
use weir_scenario::{Direction, Flow, FlowRow, Opener, ScenarioError};
use weir_tcp::{Info, Profile};

use crate::encapsulation::Encapsulation;
use crate::pair::{Pair, Route};
use crate::rows::flow_row;
use crate::run::Network;

/// A load: its connection carries data one way.
#[repr(C)]
pub(crate) struct Connection {
    flow: u32,
    /// The end that sends the data.
    sender: End,
    /// The end that opens the connection.
    opener: End,
    stopped: bool,
    /// IP bytes of data packets that arrived.
    pub wire_bytes: u64,
    bytes: Option<u64>,
    first_data: Option<Time>,
    completed: Option<Time>,
    pair: Pair,
}

/// Bytes of a load that every packet of a connection needs beside one end of it: what is in front of the ends.
pub(crate) const FRONT_BYTES: usize = offset_of!(Connection, pair) + Pair::FRONT_BYTES + 8;

impl Connection {
    pub fn new(
        flow: u32,
        spec: &Flow,
        encapsulation: Encapsulation,
        profile: &Arc<Profile>,
        seed: Seed,
    ) -> Result<Self, ScenarioError> {
        let seed = seed.derive("tcp").derive(&flow.to_string());
        let route = Route::new([flow; 2], encapsulation);
        let opener = match spec.opened_by {
            Opener::Client => End::Client,
            Opener::Server => End::Server,
        };
        let controls = [spec.tcp.congestion_control.as_str(); 2];
        Ok(Self {
            flow,
            pair: Pair::new(route, profile, controls, opener, seed)?,
            sender: match spec.direction {
                Direction::Up => End::Client,
                Direction::Down => End::Server,
            },
            opener,
            bytes: spec.bytes,
            stopped: false,
            wire_bytes: 0,
            first_data: None,
            completed: None,
        })
    }

    /// The connection is opened; the data's sender has all its data at hand.
    pub fn start(&mut self, network: &mut Network, now: Time) {
        self.pair.write(self.sender, self.bytes.unwrap_or(u64::MAX), network, now);
        self.pair.connect(self.opener, network, now);
    }

    /// The end that opens the connection.
    pub const fn opener(&self) -> End {
        self.opener
    }

    /// The sender stops handing in data.
    pub fn stop(&mut self) {
        self.stopped = true;
        self.pair.end_mut(self.sender).stop();
    }

    /// A packet of the connection arrived at `end`.
    #[inline]
    pub fn on_packet(&mut self, packet: &Packet, end: End, network: &mut Network, now: Time) {
        if self.pair.on_packet(packet, end, network, now) > 0 {
            self.wire_bytes += u64::from(packet.ip_len());
            self.first_data.get_or_insert(now);
            if self.completed.is_none() && self.bytes == Some(self.delivered_bytes()) {
                self.completed = Some(now);
            }
        }
    }

    /// The timer of `end` is due.
    pub fn on_timer(&mut self, end: End, network: &mut Network, now: Time) {
        self.pair.on_timer(end, network, now);
    }

    /// When the timer of `end` is due; [`Time::MAX`] for never.
    pub fn next_timer(&self, end: End) -> Time {
        self.pair.timer_at(end)
    }

    /// A time before which the timer of `end` is not due; [`Time::MAX`] for never.
    #[inline(always)]
    pub fn timer_from(&self, end: End) -> Time {
        self.pair.timer_from(end)
    }

    /// A packet for `end` will arrive shortly.
    #[inline]
    pub fn prefetch(&self, end: End) {
        self.pair.prefetch(end, end != self.sender);
    }

    /// A packet for `end` will arrive next but a few.
    #[inline]
    pub fn prefetch_behind(&self, end: End) {
        self.pair.prefetch_behind(end);
    }

    pub const fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// Bytes that the data's receiver has got in order.
    pub fn delivered_bytes(&self) -> u64 {
        self.pair.end(self.sender.other()).delivered_bytes()
    }

    /// State of the data's sender, as `TCP_INFO` tells it.
    pub fn sender_info(&self) -> Info {
        self.pair.info(self.sender)
    }

    pub fn row(&self, drops: FlowDrops) -> FlowRow {
        let arrived = (self.first_data, self.delivered_bytes());
        let row = flow_row(self.flow, &self.sender_info().counters, drops, arrived);
        FlowRow { completed: self.completed, ..row }
    }
}
