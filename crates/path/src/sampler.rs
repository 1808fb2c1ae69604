//! Samples of queues, taken at fixed intervals.

use weir_core::Time;
use weir_qdisc::{Backlog, DropReason, MarkReason, Stats};
use weir_scenario::{Drops, Marks, QueueRow, Sink};

use crate::hop::Hop;

/// Counters at the last sample of each hop; the next sample reports the difference.
#[derive(Debug, Default)]
pub struct QueueSampler {
    /// Statistics of the hops and, behind each, of its classes.
    seen: Vec<Vec<Stats>>,
}

impl QueueSampler {
    /// A row for each queue, and one for each of its classes.
    pub fn sample(&mut self, hops: &mut [Hop], now: Time, sink: &mut dyn Sink) {
        self.seen.resize_with(hops.len(), Vec::new);
        for (hop, seen) in hops.iter_mut().zip(&mut self.seen) {
            let mut places = seen.iter_mut();
            let mut fresh = Vec::new();
            let mut since = |stats: Stats| match places.next() {
                Some(before) => Since::new(&std::mem::replace(before, stats), &stats),
                None => {
                    fresh.push(stats);
                    Since::new(&Stats::default(), &stats)
                }
            };
            let sojourn = hop.port.take_sojourn();
            let left = sojourn.packets > 0;
            let mut row = since(hop.port.stats()).row(now, &hop.name, "", hop.port.backlog());
            row.sojourn_mean = sojourn.mean();
            row.sojourn_max = left.then_some(sojourn.max);
            row.wire_bytes = std::mem::take(&mut hop.wire_bytes);
            let lost = std::mem::take(&mut hop.lost);
            row.dropped.0[DropReason::LinkLoss as usize] += lost.packets;
            row.dropped_bytes = row.dropped_bytes.map(|bytes| bytes + lost.bytes);
            sink.queue(&row);
            hop.port.classes(&mut |class| {
                sink.queue(&since(class.stats).row(now, &hop.name, class.name, class.backlog));
            });
            seen.extend(fresh);
        }
    }
}

/// The difference of two statistics.
struct Since {
    departed_packets: u64,
    departed_bytes: u64,
    dropped: [u64; DropReason::ALL.len()],
    dropped_bytes: u64,
    marked: [u64; MarkReason::ALL.len()],
}

impl Since {
    fn new(before: &Stats, after: &Stats) -> Self {
        let dropped =
            |reason: usize| after.dropped[reason].packets - before.dropped[reason].packets;
        Self {
            departed_packets: after.departed.packets - before.departed.packets,
            departed_bytes: after.departed.bytes - before.departed.bytes,
            dropped: std::array::from_fn(dropped),
            dropped_bytes: after.total_dropped().bytes - before.total_dropped().bytes,
            marked: std::array::from_fn(|reason| after.marked[reason] - before.marked[reason]),
        }
    }

    fn row<'a>(&self, t: Time, queue: &'a str, class: &'a str, backlog: Backlog) -> QueueRow<'a> {
        QueueRow {
            t,
            queue,
            class,
            backlog_packets: backlog.packets,
            backlog_bytes: backlog.bytes,
            sojourn_mean: None,
            sojourn_max: None,
            departed_packets: self.departed_packets,
            departed_bytes: self.departed_bytes,
            wire_bytes: 0,
            dropped_bytes: Some(self.dropped_bytes),
            dropped: Drops(self.dropped),
            marked: Marks(self.marked),
        }
    }
}
