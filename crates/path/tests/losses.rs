//! Packets that the line of a hop loses, in the samples of its queue.

use weir_core::{Dscp, ETHERNET_HEADER, Ecn, End, FlowLabel, Packet, Seed, Time};
use weir_path::{Path, QueueSampler, Traffic};
use weir_qdisc::{About, DropReason, DropSink, MarkReason};
use weir_scenario::{Hop, LineRate, LossParams, QueueRow, Scenario, Sink};

/// Counts what its owner hears of.
#[derive(Default)]
struct Heard {
    lost: u64,
}

impl DropSink for Heard {
    fn on_drop(&mut self, _: Packet, reason: DropReason) {
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
    fn host_of(&self, _: &Packet) -> u32 {
        0
    }
    fn ends_at_router(&self, _: &Packet, _: u32) -> bool {
        false
    }
}

/// Sums up the rows of `up/line`.
#[derive(Default)]
struct Sampled {
    departed: u64,
    lost: u64,
    lost_bytes: u64,
}

impl Sink for Sampled {
    fn queue(&mut self, row: &QueueRow<'_>) {
        if row.queue == "up/line" {
            self.departed += row.departed_packets;
            self.lost += row.dropped.0[DropReason::LinkLoss as usize];
            self.lost_bytes += row.dropped_bytes.unwrap();
        }
    }
}

#[test]
fn what_the_line_loses_stands_in_the_samples_of_its_hop() {
    let line = || Hop::new("line", "pfifo limit 2000", LineRate::Bps(100_000_000));
    let mut scenario = Scenario::over("t", 1_000_000_000, line(), line());
    scenario.path.up[0].loss = Some(LossParams::Random { probability: 0.2 });
    let traces = |name: &str| unreachable!("no recording {name}");
    let mut path = Path::new(&scenario, &traces, Seed::new(1), Heard::default(), 0);
    let packet = Packet {
        handle: 0,
        enqueued_at: Time::ZERO,
        label: FlowLabel::default(),
        len: 1_000 + ETHERNET_HEADER,
        flow_id: 0,
        dscp: Dscp::default(),
        ecn: Ecn::NotEct,
    };
    (0..1_000).for_each(|_| path.send(packet, End::Client, Time::ZERO));
    let (mut sampler, mut sampled) = (QueueSampler::default(), Sampled::default());
    for ms in [20, 500] {
        while let Some((at, source)) = path.events.next_by(Time::from_millis(ms)) {
            path.on_event(source, at);
        }
        sampler.sample(path.hops_mut(), Time::from_millis(ms), &mut sampled);
    }
    assert!((150..250).contains(&path.traffic.lost), "{}", path.traffic.lost);
    // They have left the queue, and are lost behind it.
    assert_eq!((sampled.departed, sampled.lost), (1_000, path.traffic.lost));
    assert_eq!(sampled.lost_bytes, 1_014 * sampled.lost);
}
