//! A port that the tests drive by hand, and times.

use weir_core::{Dscp, Ecn, FlowKey, Packet, Protocol, Time};
use weir_qdisc::{Device, DropReason, DropSink, MarkReason, Port, QueueSpec};

/// A port driven by hand, which keeps what was dropped and marked.
pub struct Bench {
    pub port: Port,
    pub seen: Seen,
    pub sent: u64,
}

#[derive(Default)]
pub struct Seen {
    pub drops: Vec<(u64, DropReason)>,
    pub marks: Vec<u64>,
}

impl DropSink for Seen {
    fn on_drop(&mut self, packet: Packet, reason: DropReason) {
        self.drops.push((packet.handle, reason));
    }

    fn on_mark(&mut self, packet: &Packet, _: MarkReason) {
        self.marks.push(packet.handle);
    }
}

impl Bench {
    pub fn new(spec: &str) -> Self {
        let qdisc = QueueSpec::parse(spec).and_then(|parsed| parsed.build(&Device::default()));
        let qdisc = qdisc.unwrap_or_else(|error| panic!("{spec}: {error}"));
        Self { port: Port::new(qdisc), seen: Seen::default(), sent: 0 }
    }

    /// Packet after packet arrives from the same flow, numbered from 0.
    pub fn arrive(&mut self, count: u64, at: Time, (flow, len): (u16, u32), ecn: Ecn) {
        for _ in 0..count {
            let key = FlowKey {
                src: "10.0.0.1".parse().unwrap(),
                dst: "10.0.1.1".parse().unwrap(),
                sport: 10_000,
                dport: 5_000 + flow,
                protocol: Protocol::UDP,
            };
            let mut packet = Packet {
                handle: self.sent,
                enqueued_at: at,
                label: key.label(7),
                len,
                flow_id: u32::from(flow),
                dscp: Dscp::BE,
                ecn,
            };
            self.sent += 1;
            self.port.enqueue(&mut packet, at, &mut self.seen);
        }
    }

    pub fn leaves(&mut self, at: Time) -> Option<u64> {
        self.port.dequeue(at, &mut self.seen).map(|packet| packet.handle)
    }

    /// How many packets were dropped or marked once a packet has left at `at`.
    pub fn signals_after(&mut self, at: Time) -> usize {
        assert!(self.leaves(at).is_some(), "nothing waits at {at}");
        self.seen.drops.len() + self.seen.marks.len()
    }
}

pub const fn ticks(count: u64) -> Time {
    Time::from_nanos(count << 10)
}

pub const fn last_of(tick: u64) -> Time {
    Time::from_nanos(((tick + 1) << 10) - 1)
}

pub fn at(nanos: u64) -> Time {
    Time::from_nanos(nanos)
}

pub const FULL: (u16, u32) = (0, 1_514);
