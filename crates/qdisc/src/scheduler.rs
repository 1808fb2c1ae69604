//! Disciplines that only schedule: queues in classes, and a rule that says whose turn it is.

use weir_core::{Packet, Time};

use crate::Device;
use crate::accounting::Accounting;
use crate::contract::{Backlog, ClassView, DropReason, DropSink, Qdisc, Stats};
use crate::leaves::Leaves;
use crate::linux::priority_of;
use crate::peeked::{Peeked, TakesNext};
use crate::priomap::PrioMap;
use crate::tc::{ClassSpec, Classifier, Handle, QueueSpec, SpecError};

/// Whose turn it is among classes, which are numbered from 0.
pub(crate) trait Schedule: Send {
    /// A packet of `len` bytes is about to join `class`.
    fn before_enqueue(&mut self, class: usize, len: u32, leaves: &Leaves) {
        let _ = (class, len, leaves);
    }

    /// A packet joined `class`, or was dropped by the queue in it.
    fn after_enqueue(
        &mut self,
        class: usize,
        leaves: &mut Leaves,
        now: Time,
        sink: &mut dyn DropSink,
    );

    /// The next packet; `None` if nothing waits or the queue whose turn it is holds packets back.
    fn next(&mut self, leaves: &mut Leaves, now: Time, sink: &mut dyn DropSink) -> Option<Packet>;
}

/// A discipline that does what a [`Schedule`] says.
pub(crate) struct Scheduler<S> {
    schedule: S,
    sorter: Sorter,
    leaves: Leaves,
    /// Packets that no class takes.
    refused: Accounting,
    wake_at: Option<Time>,
}

impl<S: Schedule + 'static> Scheduler<S> {
    /// The discipline, as the registry builds it.
    pub fn boxed(schedule: S, sorter: Sorter, leaves: Leaves) -> Box<dyn Qdisc> {
        let refused = Accounting::default();
        Box::new(Peeked::new(Self { schedule, sorter, leaves, refused, wake_at: None }))
    }
}

impl<S: Schedule> TakesNext for Scheduler<S> {
    fn enqueue(&mut self, packet: &Packet, now: Time, sink: &mut dyn DropSink) {
        let Some(class) = self.sorter.class_of(packet, &self.leaves) else {
            return self.refused.xmit_drop(*packet, DropReason::Unclassified, sink);
        };
        self.schedule.before_enqueue(class, packet.len, &self.leaves);
        self.leaves.enqueue(class, packet, now, sink);
        self.schedule.after_enqueue(class, &mut self.leaves, now, sink);
    }

    fn take_next(&mut self, now: Time, sink: &mut dyn DropSink) -> Option<Packet> {
        let packet = self.schedule.next(&mut self.leaves, now, sink);
        self.wake_at = if packet.is_none() { self.leaves.next_wake(now) } else { None };
        packet
    }

    fn wake_at(&self) -> Option<Time> {
        self.wake_at
    }

    fn backlog(&self) -> Backlog {
        self.leaves.backlog()
    }

    fn stats(&self) -> Stats {
        let mut stats = self.refused.stats();
        self.leaves.add_stats(&mut stats);
        stats
    }

    fn classes(&self, visit: &mut dyn FnMut(ClassView<'_>)) {
        self.leaves.show(visit);
    }
}

/// Class of a packet.
pub(crate) enum Sorter {
    /// The one that a filter says; without one the packet is dropped (`drr_classify`).
    Filters(Classifier),
    /// The one that a filter says or, where none holds, that of the packet's priority. A filter that
    /// says a band that is not there means the band of priority 0 (`prio_classify`).
    Bands(Classifier, PrioMap, usize),
}

impl Sorter {
    pub fn class_of(&self, packet: &Packet, leaves: &Leaves) -> Option<usize> {
        match self {
            Self::Filters(filters) => leaves.called(filters.classify(packet)?),
            Self::Bands(filters, map, bands) => Some(match filters.classify(packet) {
                // A class of another discipline is no priority.
                None if priority_of(packet) >> 16 != 0 => map.band_of_priority(0),
                None => map.band_of(packet),
                Some(class) => (usize::from(class.minor).checked_sub(1))
                    .filter(|band| band < bands)
                    .unwrap_or_else(|| map.band_of_priority(0)),
            }),
        }
    }
}

/// The queues of a discipline with `bands` bands, which are its classes 1 to `bands`: what was put into
/// a band, else what the short form puts into every one, else Linux' default FIFO.
pub(crate) fn bands(spec: &QueueSpec, bands: u16, device: &Device) -> Result<Leaves, SpecError> {
    let major = spec.major();
    if let Some(class) = spec.classes.iter().find(|class| class.id.minor > bands) {
        return Err(SpecError::new(format!(
            "{}: there is no band `{}`; there are {major:x}:1 to {major:x}:{bands:x}",
            spec.discipline.name, class.id
        )));
    }
    let band = |minor| {
        let id = Handle { major, minor };
        let written = spec.classes.iter().find(|class| class.id == id);
        written.cloned().unwrap_or_else(|| ClassSpec {
            id,
            parent: Handle { major, minor: 0 },
            words: Vec::new(),
            leaf: spec.child.clone(),
        })
    };
    let classes = (1..=bands).map(band).collect();
    Leaves::read(&QueueSpec { classes, ..spec.clone() }, device)
}
