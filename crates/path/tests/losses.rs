//! Packets that the line of a hop loses, in the samples of its queue.

mod traffic;

use weir_core::{End, Seed, Time};
use weir_path::{Path, QueueSampler};
use weir_qdisc::DropReason;
use weir_scenario::{Hop, LineRate, LossParams, QueueRow, Scenario, Sink};

use traffic::{Heard, packet};

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
    (0..1_000).for_each(|_| path.send(packet(1_000), End::Client, Time::ZERO));
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
