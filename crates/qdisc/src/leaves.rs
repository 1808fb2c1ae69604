//! The queues in the classes of a discipline.

use weir_core::{Packet, Time};

use crate::Device;
use crate::contract::{Backlog, ClassView, DropSink, Qdisc, Stats};
use crate::fifo::default_leaf;
use crate::tc::{Handle, QueueSpec, SpecError};

/// The classes of a discipline, in the order written, with what waits in them. Classes with others
/// beneath them hold no queue.
pub(crate) struct Leaves {
    classes: Vec<Class>,
    /// Packets and bytes that wait in all leaves together.
    backlog: Backlog,
}

struct Class {
    id: Handle,
    name: String,
    queue: Option<Box<dyn Qdisc>>,
}

impl Leaves {
    /// Makes the queues in the classes of `spec`: what was written, else Linux' default FIFO.
    pub fn read(spec: &QueueSpec, device: &Device) -> Result<Self, SpecError> {
        let mut classes = Vec::new();
        for written in &spec.classes {
            let inner = spec.classes.iter().any(|other| other.parent == written.id);
            let queue = match (&written.leaf, inner) {
                (Some(_), true) => {
                    return Err(SpecError::new(format!(
                        "{}: class `{}` has classes beneath it and cannot hold a discipline too",
                        spec.discipline.name, written.id
                    )));
                }
                (Some(leaf), false) => Some(leaf.build(device)?),
                (None, true) => None,
                (None, false) => Some(default_leaf(device)),
            };
            classes.push(Class { id: written.id, name: written.id.to_string(), queue });
        }
        Ok(Self { classes, backlog: Backlog::default() })
    }

    /// The number of the class of that name, if it holds a queue.
    pub fn called(&self, id: Handle) -> Option<usize> {
        self.classes.iter().position(|class| class.id == id && class.queue.is_some())
    }

    /// Whether class `class` holds a queue.
    pub fn holds_queue(&self, class: usize) -> bool {
        self.classes[class].queue.is_some()
    }

    pub fn enqueue(&mut self, class: usize, packet: &Packet, now: Time, sink: &mut dyn DropSink) {
        self.change(class, |queue| queue.enqueue(packet, now, sink));
    }

    pub fn dequeue(&mut self, class: usize, now: Time, sink: &mut dyn DropSink) -> Option<Packet> {
        self.change(class, |queue| queue.dequeue(now, sink))
    }

    /// The packet that `class` would send next, left in place.
    pub fn peek(&mut self, class: usize, now: Time, sink: &mut dyn DropSink) -> Option<&Packet> {
        self.peek_len(class, now, sink)?;
        self.classes[class].queue.as_mut()?.peek(now, sink)
    }

    /// The length of the packet that `class` would send next.
    pub fn peek_len(&mut self, class: usize, now: Time, sink: &mut dyn DropSink) -> Option<u32> {
        self.change(class, |queue| queue.peek(now, sink).map(|packet| packet.len))
    }

    /// Packets and bytes that wait in `class`.
    pub fn backlog_of(&self, class: usize) -> Backlog {
        self.queue(class).backlog()
    }

    /// When a class that holds packets back by itself may next send, after `now`.
    pub fn next_wake(&self, now: Time) -> Option<Time> {
        let queues = self.classes.iter().filter_map(|class| class.queue.as_ref());
        queues.filter_map(|queue| queue.wake_at()).filter(|&at| at > now).min()
    }

    /// Packets and bytes that wait in all classes.
    pub fn backlog(&self) -> Backlog {
        self.backlog
    }

    /// Adds what has happened in all classes.
    pub fn add_stats(&self, stats: &mut Stats) {
        for queue in self.classes.iter().filter_map(|class| class.queue.as_ref()) {
            *stats += queue.stats();
        }
    }

    /// Shows the classes that hold queues, and what is beneath them.
    pub fn show(&self, visit: &mut dyn FnMut(ClassView<'_>)) {
        for Class { name, queue, .. } in &self.classes {
            if let Some(queue) = queue {
                visit(ClassView { name, backlog: queue.backlog(), stats: queue.stats() });
                queue.classes(visit);
            }
        }
    }

    fn queue(&self, class: usize) -> &dyn Qdisc {
        self.classes[class].queue.as_deref().expect("a leaf has a queue")
    }

    /// Lets `change` work on the queue of `class` and keeps the total in step, drops included.
    fn change<R>(&mut self, class: usize, change: impl FnOnce(&mut dyn Qdisc) -> R) -> R {
        let queue = self.classes[class].queue.as_deref_mut().expect("a leaf has a queue");
        let before = queue.backlog();
        let result = change(queue);
        let after = queue.backlog();
        self.backlog.packets = self.backlog.packets + after.packets - before.packets;
        self.backlog.bytes = self.backlog.bytes + after.bytes - before.bytes;
        result
    }
}
