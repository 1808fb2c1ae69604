//! A view of a run while it goes on: what the queues do, once in a while.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use serde::Serialize;
use serde_json::Value;
use weir_core::{Duration, Time};
use weir_scenario::{
    EmulatorRow, FlowRow, LatencyRow, MethodRow, QueueRow, RecordSink, ShaperRow, Sink, TcpRow,
    ThroughputRow, TransferRow, UdpRow,
};

/// A view of a run: work of all queues since the view before.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct View {
    /// Nanoseconds of the run so far.
    pub t_ns: u64,
    /// Views of the queues by name, such as `up/modem`.
    pub queues: BTreeMap<String, QueueView>,
}

/// Work of one queue since the view before, and its backlog now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct QueueView {
    /// Nanoseconds of the run in which this was counted: samples end before the view does.
    pub span_ns: u64,
    /// Bytes of the line that were occupied.
    pub wire_bytes: u64,
    /// Packets that wait now.
    pub backlog_packets: u32,
    /// Bytes that wait now.
    pub backlog_bytes: u64,
    /// Packets dropped.
    pub dropped: u64,
    /// Packets marked.
    pub marked: u64,
}

/// Passes samples on, if anybody keeps them, and shows a view now and then.
pub struct Live<'keep, 'show> {
    keep: Option<&'keep mut dyn RecordSink>,
    show: &'show mut dyn FnMut(&View) -> ControlFlow<()>,
    view: View,
    /// Until when the queues were counted.
    counted: BTreeMap<String, Time>,
    shown_at: Time,
}

impl<'keep, 'show> Live<'keep, 'show> {
    /// Shows views to `show`, which may end the run, and passes samples on to `keep`.
    pub fn new(
        keep: Option<&'keep mut dyn RecordSink>,
        show: &'show mut dyn FnMut(&View) -> ControlFlow<()>,
    ) -> Self {
        Self { keep, show, view: View::default(), counted: BTreeMap::new(), shown_at: Time::ZERO }
    }
}

#[deny(clippy::missing_trait_methods)]
impl Sink for Live<'_, '_> {
    fn latency(&mut self, row: &LatencyRow) {
        if let Some(keep) = &mut self.keep {
            keep.latency(row);
        }
    }

    fn throughput(&mut self, row: &ThroughputRow) {
        if let Some(keep) = &mut self.keep {
            keep.throughput(row);
        }
    }

    fn tcp(&mut self, row: &TcpRow) {
        if let Some(keep) = &mut self.keep {
            keep.tcp(row);
        }
    }

    fn udp(&mut self, row: &UdpRow) {
        if let Some(keep) = &mut self.keep {
            keep.udp(row);
        }
    }

    fn transfer(&mut self, row: &TransferRow) {
        if let Some(keep) = &mut self.keep {
            keep.transfer(row);
        }
    }

    fn queue(&mut self, row: &QueueRow<'_>) {
        if row.class.is_empty() {
            let queue = self.view.queues.entry(row.queue.to_owned()).or_default();
            let counted = self.counted.entry(row.queue.to_owned()).or_insert(Time::ZERO);
            queue.span_ns += row.t.since(std::mem::replace(counted, row.t)).as_nanos();
            queue.wire_bytes += row.wire_bytes;
            queue.backlog_packets = row.backlog_packets;
            queue.backlog_bytes = row.backlog_bytes;
            queue.dropped += row.dropped.0.iter().sum::<u64>();
            queue.marked += row.marked.0.iter().sum::<u64>();
        }
        if let Some(keep) = &mut self.keep {
            keep.queue(row);
        }
    }

    fn emulator(&mut self, row: &EmulatorRow) {
        if let Some(keep) = &mut self.keep {
            keep.emulator(row);
        }
    }

    fn shaper(&mut self, row: &ShaperRow<'_>) {
        if let Some(keep) = &mut self.keep {
            keep.shaper(row);
        }
    }

    fn method(&mut self, row: &MethodRow<'_>) {
        if let Some(keep) = &mut self.keep {
            keep.method(row);
        }
    }

    fn flow(&mut self, row: &FlowRow) {
        if let Some(keep) = &mut self.keep {
            keep.flow(row);
        }
    }

    fn progress(&mut self, now: Time) -> ControlFlow<()> {
        if let Some(keep) = &mut self.keep
            && keep.progress(now).is_break()
        {
            return ControlFlow::Break(());
        }
        if now.since(self.shown_at) < SHOW_EVERY {
            return ControlFlow::Continue(());
        }
        self.shown_at = now;
        self.view.t_ns = now.as_nanos();
        let verdict = (self.show)(&self.view);
        self.view.queues.values_mut().for_each(|queue| *queue = QueueView::default());
        verdict
    }
}

impl RecordSink for Live<'_, '_> {
    fn note(&mut self, key: &str, value: Value) {
        if let Some(keep) = &mut self.keep {
            keep.note(key, value);
        }
    }
}

const SHOW_EVERY: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use weir_scenario::{Drops, Marks};

    use super::*;

    /// A line of 1000 bytes a millisecond, sampled at `t`, 100 ms after it was before.
    fn row(t: Time) -> QueueRow<'static> {
        QueueRow {
            t,
            queue: "down/line",
            class: "",
            backlog_packets: 0,
            backlog_bytes: 0,
            sojourn_mean: None,
            sojourn_max: None,
            departed_packets: 0,
            departed_bytes: 0,
            wire_bytes: 100_000,
            dropped_bytes: Some(0),
            dropped: Drops(std::array::from_fn(|_| 0)),
            marked: Marks(std::array::from_fn(|_| 0)),
        }
    }

    #[test]
    fn a_view_says_over_which_time_its_bytes_were_counted() {
        let ms = Time::from_millis;
        let mut shown = Vec::new();
        let mut show = |view: &View| {
            shown.push(view.queues["down/line"]);
            ControlFlow::Continue(())
        };
        let mut live = Live::new(None, &mut show);
        // Views come between samples: of one more of them here, of one fewer there.
        for (samples, view) in [(1..=6, 605), (7..=11, 1_195), (12..=17, 1_700)] {
            samples.for_each(|sample| live.queue(&row(ms(100 * sample))));
            assert!(live.progress(ms(view)).is_continue());
        }
        let counted: Vec<_> = shown.iter().map(|view| (view.span_ns, view.wire_bytes)).collect();
        assert_eq!(
            counted,
            [(600_000_000, 600_000), (500_000_000, 500_000), (600_000_000, 600_000)]
        );
    }
}
