//! Traffic of tests: packets that nobody keeps, and what their owner hears of them.
#![allow(dead_code, reason = "each test hears of something else")]

use weir_core::{Dscp, ETHERNET_HEADER, Ecn, FlowLabel, Packet, Time};
use weir_path::{HopPlace, Traffic};
use weir_qdisc::{About, DropReason, DropSink, MarkReason};

/// Hears of packets, the `flow_id` of each of which is the number of its server.
#[derive(Default)]
pub struct Heard {
    /// How many hops all packets pass until their time to live ends, if it does.
    pub ends_behind: Option<u32>,
    pub dropped: u64,
    /// Those of `dropped` that a line lost.
    pub lost: u64,
    /// Where packets were captured.
    pub places: Vec<HopPlace>,
}

impl Heard {
    pub fn ending_behind(hops: Option<u32>) -> Self {
        Self { ends_behind: hops, ..Self::default() }
    }
}

impl DropSink for Heard {
    fn on_drop(&mut self, _: Packet, reason: DropReason) {
        self.dropped += 1;
        self.lost += u64::from(reason == DropReason::LinkLoss);
    }
    fn on_mark(&mut self, _: &Packet, _: MarkReason) {}
}

impl About for Heard {
    fn window(&self, _: &Packet) -> Option<u32> {
        None
    }
}

impl Traffic for Heard {
    fn host_of(&self, packet: &Packet) -> u32 {
        packet.flow_id
    }
    fn ends_at_router(&self, _: &Packet, passed: u32) -> bool {
        self.ends_behind == Some(passed)
    }
    fn is_captured(&mut self, _: &Packet, hop: &HopPlace, _: Time) {
        self.places.push(*hop);
    }
}

/// A packet to the first server, of so many bytes of IP.
pub fn packet(ip_len: u32) -> Packet {
    Packet {
        handle: 0,
        enqueued_at: Time::ZERO,
        label: FlowLabel::default(),
        len: ip_len + ETHERNET_HEADER,
        flow_id: 0,
        dscp: Dscp::default(),
        ecn: Ecn::NotEct,
    }
}
