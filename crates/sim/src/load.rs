//! The loads of a scenario: TCP connections, UDP streams and applications.

use std::sync::Arc;

use weir_core::{FlowKey, Packet, Seed, Time};
use weir_path::{End, FlowDrops};
use weir_scenario::{Flow, FlowRow, Scenario, ScenarioError};
use weir_tcp::Info;

use crate::application::ApplicationLoad;
use crate::connection::Connection;
use crate::encapsulation::Encapsulation;
use crate::profiles::Profiles;
use crate::run::Network;
use crate::sources::SourceMap;
use crate::udp::UdpStream;

/// A load at work. It begins where a cache line does.
#[repr(align(64))]
#[expect(clippy::large_enum_variant, reason = "nearly all are TCP, and every packet needs one")]
pub(crate) enum Load {
    /// Over TCP.
    Tcp(Connection),
    /// Over UDP.
    Udp(UdpStream),
    /// Over connections that its client opens.
    Application(Box<ApplicationLoad>),
}

impl Load {
    /// Load number `number` of `scenario`, which is `flow`.
    pub fn new(
        scenario: &Arc<Scenario>,
        (number, flow): (usize, &Flow),
        (hash_key, seed): (u64, Seed),
        sources: SourceMap,
        profiles: &mut Profiles,
    ) -> Result<Self, ScenarioError> {
        let key: FlowKey = scenario.flow_key(number);
        let encapsulation = Encapsulation::new(scenario, key, flow.dscp, flow.tunnel, hash_key);
        let start = scenario.flow_start(number, seed);
        let timing = ((start, flow.stop().max(start)), seed);
        if flow.application.is_some() {
            let load =
                ApplicationLoad::new(scenario, number, encapsulation, hash_key, timing, sources);
            return Ok(Self::Application(Box::new(load)));
        }
        let number = number as u32;
        match flow.udp {
            Some(udp) => Ok(Self::Udp(UdpStream::new(number, flow, udp, encapsulation, timing))),
            None => {
                let profile = profiles.of(&flow.tcp)?;
                Connection::new(number, flow, encapsulation, &profile, seed).map(Self::Tcp)
            }
        }
    }

    /// The load begins.
    pub fn start(&mut self, network: &mut Network, now: Time) {
        match self {
            Self::Tcp(connection) => connection.start(network, now),
            Self::Udp(stream) => stream.send_due(network, now),
            Self::Application(load) => load.on_due(network, now),
        }
    }

    /// The end whose timer is to be set as the load begins.
    pub const fn opener(&self) -> End {
        match self {
            Self::Tcp(connection) => connection.opener(),
            Self::Udp(stream) => stream.sender(),
            Self::Application(_) => End::Client,
        }
    }

    /// The sender stops handing in data; an application stops.
    pub fn stop(&mut self, network: &mut Network, now: Time) {
        match self {
            Self::Tcp(connection) => connection.stop(),
            Self::Udp(stream) => stream.stop(),
            Self::Application(load) => load.stop(network, now),
        }
    }

    /// A packet of the load arrived at `end`.
    #[inline(always)]
    pub fn on_packet(&mut self, packet: &Packet, end: End, network: &mut Network, now: Time) {
        match self {
            Self::Tcp(connection) => connection.on_packet(packet, end, network, now),
            Self::Udp(stream) => stream.on_packet(packet, network, now),
            Self::Application(load) => load.on_packet(packet, end, network, now),
        }
    }

    /// The timer of `end` is due.
    #[inline]
    pub fn on_timer(&mut self, end: End, network: &mut Network, now: Time) {
        match self {
            Self::Tcp(connection) => connection.on_timer(end, network, now),
            Self::Udp(stream) => stream.send_due(network, now),
            Self::Application(load) => load.on_due(network, now),
        }
    }

    /// The timer of one end of a connection that an application opened is due.
    pub fn on_connection_timer(&mut self, timer: (u32, End), network: &mut Network, now: Time) {
        match self {
            Self::Application(load) => load.on_timer(timer, network, now),
            Self::Tcp(_) | Self::Udp(_) => unreachable!("only applications open connections"),
        }
    }

    /// A time before which the timer of `end` is not due, later than `now`; [`Time::MAX`] for never.
    #[inline(always)]
    pub fn timer_from(&self, end: End, now: Time) -> Time {
        if let Self::Tcp(connection) = self {
            let from = connection.timer_from(end);
            if from > now {
                return from;
            }
        }
        self.next_timer(end)
    }

    /// When the timer of `end` is due; [`Time::MAX`] for never.
    #[inline(never)]
    pub fn next_timer(&self, end: End) -> Time {
        let other = match self {
            Self::Tcp(connection) => return connection.next_timer(end),
            Self::Udp(stream) if end == stream.sender() => stream.next_send(),
            Self::Application(load) if end == End::Client => load.next_due(),
            Self::Udp(_) | Self::Application(_) => None,
        };
        other.unwrap_or(Time::MAX)
    }

    pub const fn is_stopped(&self) -> bool {
        match self {
            Self::Tcp(connection) => connection.is_stopped(),
            Self::Udp(stream) => stream.is_stopped(),
            Self::Application(load) => load.is_stopped(),
        }
    }

    /// Bytes that the receiver's application has got, each once.
    pub fn delivered_bytes(&self) -> u64 {
        match self {
            Self::Tcp(connection) => connection.delivered_bytes(),
            Self::Udp(stream) => stream.delivered_bytes(),
            Self::Application(load) => load.delivered_bytes(),
        }
    }

    /// IP bytes of data packets that arrived.
    pub const fn wire_bytes(&self) -> u64 {
        match self {
            Self::Tcp(connection) => connection.wire_bytes,
            Self::Udp(stream) => stream.wire_bytes(),
            Self::Application(load) => load.wire_bytes(),
        }
    }

    /// State of the data's sender, as `TCP_INFO` tells it; `None` of UDP, which has none, and of applications, which have
    /// many.
    pub fn sender_info(&self) -> Option<Info> {
        match self {
            Self::Tcp(connection) => Some(connection.sender_info()),
            Self::Udp(_) | Self::Application(_) => None,
        }
    }

    pub fn row(&self, drops: FlowDrops) -> FlowRow {
        match self {
            Self::Tcp(connection) => connection.row(drops),
            Self::Udp(stream) => stream.row(drops),
            Self::Application(load) => load.row(drops),
        }
    }
}
