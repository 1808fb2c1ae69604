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
    shown_at: Time,
}

impl<'keep, 'show> Live<'keep, 'show> {
    /// Shows views to `show`, which may end the run, and passes samples on to `keep`.
    pub fn new(
        keep: Option<&'keep mut dyn RecordSink>,
        show: &'show mut dyn FnMut(&View) -> ControlFlow<()>,
    ) -> Self {
        Self { keep, show, view: View::default(), shown_at: Time::ZERO }
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
