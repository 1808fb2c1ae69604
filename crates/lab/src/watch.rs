//! Samples of the kernel's own queues, read at fixed intervals.

use std::sync::mpsc::Sender;

use weir_core::{ETHERNET_HEADER, Time};
use weir_linux::{Counts, LinuxError, Reasons, wire_bytes};
use weir_qdisc::{DropReason, MarkReason};
use weir_scenario::{Drops, Marks, QueueRow};
use weir_sockets::Clock;

use crate::datapath::PathSample;
use crate::hosts::Hosts;
use crate::kernel_path::KernelHop;
use crate::rows::OwnedQueueRow;
use crate::tick_thread::TickThread;

/// Reads the kernel's queues, in a thread of its own.
pub struct QueueWatch(TickThread<Vec<Watched>>);

impl QueueWatch {
    /// Starts to read the queues of the routers between `hosts` every `period_ns` nanoseconds, never if it
    /// is 0. Rows go to `samples`.
    ///
    /// # Errors
    /// If there is no thread to be had.
    pub fn start(
        hosts: &mut Hosts,
        clock: Clock,
        period_ns: u64,
        samples: Sender<PathSample>,
    ) -> Result<Self, LinuxError> {
        let watched = hosts.take_hops().into_iter().map(Watched::new).collect();
        let read = move |hops: &mut Vec<Watched>, now: Time| {
            for hop in hops {
                for row in hop.sample(now)? {
                    // Nobody listens any more once the run has ended.
                    let _ = samples.send(PathSample::Queue(Box::new(row)));
                }
            }
            Ok(())
        };
        TickThread::start("queue watch", clock, period_ns, watched, read)
            .map(Self)
            .map_err(|error| LinuxError::io("cannot start to watch the queues", error))
    }

    /// Ends the watch.
    ///
    /// # Errors
    /// The first error while the kernel was asked.
    pub fn finish(self) -> Result<(), LinuxError> {
        self.0.finish().map(drop)
    }
}

/// A hop with what it had counted when it was last looked at.
struct Watched {
    hop: KernelHop,
    seen: Counts,
    /// By the places of its classes.
    seen_classes: Vec<Counts>,
}

impl Watched {
    const fn new(hop: KernelHop) -> Self {
        Self { hop, seen: NOTHING, seen_classes: Vec::new() }
    }

    /// A row for the queue, and one for each of its classes.
    fn sample(&mut self, now: Time) -> Result<Vec<OwnedQueueRow>, LinuxError> {
        let KernelHop { name, framing, queue, netlink } = &self.hop;
        let counts = queue.counts(netlink)?;
        let before = std::mem::replace(&mut self.seen, counts.whole);
        let mut numbers = row(now, &before, &counts.whole);
        let (packets, bytes) = (numbers.departed_packets, numbers.departed_bytes);
        numbers.wire_bytes = wire_bytes(*framing, ETHERNET_HEADER, packets, bytes);
        let mut rows = vec![OwnedQueueRow { queue: name.clone(), class: String::new(), numbers }];
        self.seen_classes.resize(counts.classes.len(), NOTHING);
        for ((class, after), seen) in counts.classes.into_iter().zip(&mut self.seen_classes) {
            let of_class = row(now, &std::mem::replace(seen, after), &after);
            rows.push(OwnedQueueRow { queue: name.clone(), class, numbers: of_class });
        }
        Ok(rows)
    }
}

/// Row of the record for the time between two looks.
fn row(t: Time, before: &Counts, after: &Counts) -> QueueRow<'static> {
    let (was, is) = (&before.reasons, &after.reasons);
    let since = |now: u32, then: u32| u64::from(now.wrapping_sub(then));
    let mut left = since(after.drops, before.drops);
    let mut dropped: [u64; DropReason::ALL.len()] = std::array::from_fn(|reason| {
        let count = since(is.dropped[reason], was.dropped[reason]).min(left);
        left -= count;
        count
    });
    dropped[DropReason::Overlimit as usize] += left;
    let marked = std::array::from_fn(|reason| since(is.marked[reason], was.marked[reason]));
    QueueRow {
        t,
        queue: "",
        class: "",
        backlog_packets: after.waiting_packets,
        backlog_bytes: u64::from(after.waiting_bytes),
        sojourn_mean: None,
        sojourn_max: None,
        departed_packets: after.packets.saturating_sub(before.packets),
        departed_bytes: after.bytes.saturating_sub(before.bytes),
        wire_bytes: 0,
        dropped_bytes: None,
        dropped: Drops(dropped),
        marked: Marks(marked),
    }
}

const NOTHING: Counts = Counts {
    bytes: 0,
    packets: 0,
    waiting_packets: 0,
    waiting_bytes: 0,
    drops: 0,
    reasons: Reasons { dropped: [0; DropReason::ALL.len()], marked: [0; MarkReason::ALL.len()] },
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_go_to_their_reasons_and_counters_wrap() {
        let [before, wrapped] = [u32::MAX, 4].map(|drops| Counts { drops, ..NOTHING });
        assert_eq!(row(Time::ZERO, &before, &wrapped).dropped.0[..3], [5, 0, 0]);
        let mut reasons = NOTHING.reasons;
        reasons.dropped[..3].copy_from_slice(&[2, 1, 5]);
        reasons.marked[..2].copy_from_slice(&[7, 2]);
        let after = Counts { drops: 9, reasons, ..NOTHING };
        let row = row(Time::ZERO, &NOTHING, &after);
        assert_eq!(row.dropped.0[..3], [3, 1, 5]);
        assert_eq!(row.dropped.0.iter().sum::<u64>(), 9, "nothing for any other reason");
        assert_eq!(row.marked.0[..2], [7, 2]);
    }
}
