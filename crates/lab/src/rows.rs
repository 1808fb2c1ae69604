//! Rows of queues that outlive the sample, for another thread to write.

use weir_scenario::{QueueRow, Sink};

/// A [`QueueRow`] with names of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnedQueueRow {
    pub(crate) queue: String,
    pub(crate) class: String,
    /// The row without its names.
    pub(crate) numbers: QueueRow<'static>,
}

/// Collects rows of queues.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    pub queues: Vec<OwnedQueueRow>,
}

impl Sink for Rows {
    fn queue(&mut self, row: &QueueRow<'_>) {
        let QueueRow { queue, class, .. } = *row;
        self.queues.push(OwnedQueueRow {
            queue: queue.to_owned(),
            class: class.to_owned(),
            numbers: QueueRow { queue: "", class: "", ..*row },
        });
    }
}
