//! The rows of a run in memory, for who wants figures of it and no record.

use std::ops::ControlFlow;

use weir_core::Time;
use weir_scenario::{FlowRow, LatencyRow, MethodRow, QueueRow, Row, Sink, ThroughputRow};

use crate::columns::{Columns, Content};

/// Keeps those rows of a run in memory of which the figures of a whole run are made.
///
/// The tables are `flows`, `throughput`, `latency`, `queue` and `method`; rows of others are left out. They have the
/// columns and values that [`Recorder`](crate::Recorder) would write. Memory grows with the run: 8 bytes a value.
pub struct Rows<'a> {
    flows: Columns,
    throughput: Columns,
    latency: Columns,
    queue: Columns,
    method: Columns,
    /// Hears of progress, and may end the run.
    on_progress: Box<dyn FnMut(Time) -> ControlFlow<()> + Send + 'a>,
}

/// A column of a table: its name, one value a row, and of each row whether it has one (`None`: all have).
pub type Named = (String, Content, Option<Vec<bool>>);

impl<'a> Rows<'a> {
    /// No rows yet. `on_progress` is called while the run goes on and may end it.
    pub fn new(on_progress: impl FnMut(Time) -> ControlFlow<()> + Send + 'a) -> Self {
        Self {
            flows: Columns::of::<FlowRow>(),
            throughput: Columns::of::<ThroughputRow>(),
            latency: Columns::of::<LatencyRow>(),
            queue: Columns::of::<QueueRow<'_>>(),
            method: Columns::of::<MethodRow<'_>>(),
            on_progress: Box::new(on_progress),
        }
    }

    /// The columns of each table in their order, by the table's name.
    #[must_use]
    pub fn into_tables(self) -> [(&'static str, Vec<Named>); 5] {
        [
            named::<FlowRow>(self.flows),
            named::<ThroughputRow>(self.throughput),
            named::<LatencyRow>(self.latency),
            named::<QueueRow<'_>>(self.queue),
            named::<MethodRow<'_>>(self.method),
        ]
    }
}

fn named<R: Row>(columns: Columns) -> (&'static str, Vec<Named>) {
    let declared = (R::TABLE.columns)();
    let both = declared.into_iter().zip(columns.into_each()).map(|(declared, column)| {
        let (content, known) = column.into_content();
        (declared.name, content, known)
    });
    (R::TABLE.name, both.collect())
}

impl Sink for Rows<'_> {
    fn latency(&mut self, row: &LatencyRow) {
        self.latency.append(row);
    }

    fn throughput(&mut self, row: &ThroughputRow) {
        self.throughput.append(row);
    }

    fn queue(&mut self, row: &QueueRow<'_>) {
        self.queue.append(row);
    }

    fn method(&mut self, row: &MethodRow<'_>) {
        self.method.append(row);
    }

    fn flow(&mut self, row: &FlowRow) {
        self.flows.append(row);
    }

    fn progress(&mut self, now: Time) -> ControlFlow<()> {
        (self.on_progress)(now)
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use weir_core::{Duration, Time};
    use weir_scenario::{LatencyRow, Sink};

    use super::Rows;
    use crate::columns::Content;

    fn ping(seq: u32, rtt: Option<Duration>) -> LatencyRow {
        let t = Time::from_nanos(u64::from(seq));
        let timer_error = Duration::ZERO;
        LatencyRow { t, probe: 0, seq, rtt, up: rtt, down: None, timer_error, server: None }
    }

    #[test]
    fn a_value_that_is_missing_keeps_its_row() {
        let mut rows = Rows::new(|_| ControlFlow::Continue(()));
        rows.latency(&ping(0, Some(Duration::from_nanos(7))));
        rows.latency(&ping(1, None));
        rows.latency(&ping(2, Some(Duration::from_nanos(9))));

        let tables = rows.into_tables();
        let (_, latency) = &tables[2];
        let of = |name: &str| latency.iter().find(|one| one.0 == name).expect("a column");
        assert_eq!(of("seq").1, Content::Integer(vec![0, 1, 2]));
        assert_eq!(of("seq").2, None);
        assert_eq!(of("rtt_ns").1, Content::Integer(vec![7, 0, 9]));
        assert_eq!(of("rtt_ns").2, Some(vec![true, false, true]));
    }
}
