//! The rows of a run as columns of numbers, table by table, as the record has them.

use weir_scenario::{
    Column, ColumnType, EmulatorRow, FlowRow, LatencyRow, MethodRow, QueueRow, Row, ShaperRow,
    Sink, TABLES, TcpRow, ThroughputRow, TransferRow, UdpRow, Values,
};

/// Takes every row of a run.
#[derive(Debug)]
pub struct Columns {
    tables: Vec<FilledTable>,
}

/// A table of the record with the values of its columns.
#[derive(Debug)]
pub struct FilledTable {
    /// Name of the table, such as `latency`.
    pub name: &'static str,
    /// Columns of the table, as the record has them.
    pub columns: Vec<Column>,
    /// Values of each column.
    pub values: Vec<ColumnValues>,
    /// Number of rows.
    pub rows: usize,
}

/// The values of one column.
#[derive(Debug)]
pub enum ColumnValues {
    /// Numbers; null is not a number. Whole numbers above 2^53 are rounded, as every number of JavaScript is.
    Numbers(Vec<f64>),
    /// Texts.
    Texts(Texts),
}

/// Texts of a column, each different one kept once; null is the empty text.
#[derive(Debug, Default)]
pub struct Texts {
    /// Of each row the place of its text in `words`.
    pub codes: Vec<u32>,
    /// The different texts, in the order in which they first came.
    pub words: Vec<String>,
}

impl Default for Columns {
    fn default() -> Self {
        Self { tables: TABLES.iter().map(FilledTable::of).collect() }
    }
}

impl Columns {
    /// The table of that name; `None` if the record has no such table.
    #[must_use]
    pub fn table(&self, name: &str) -> Option<&FilledTable> {
        self.tables.iter().find(|table| table.name == name)
    }

    /// All tables of the record, in its order, those without rows included.
    #[must_use]
    pub fn tables(&self) -> &[FilledTable] {
        &self.tables
    }

    fn push<R: Row>(&mut self, row: &R) {
        let table = self.tables.iter_mut().find(|table| table.name == R::TABLE.name);
        let table = table.expect("`TABLES` has the table of every row");
        row.values(&mut Cursor { values: table.values.iter_mut() });
        table.rows += 1;
    }
}

impl FilledTable {
    fn of(table: &weir_scenario::Table) -> Self {
        let columns = (table.columns)();
        let values = columns.iter().map(|column| ColumnValues::of(column.kind)).collect();
        Self { name: table.name, columns, values, rows: 0 }
    }

    /// The values of the column of that name; `None` if the table has no such column.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<&ColumnValues> {
        let place = self.columns.iter().position(|column| column.name == name)?;
        self.values.get(place)
    }

    /// The numbers of a column; none of a column of texts, and of one that the table does not have.
    #[must_use]
    pub fn numbers(&self, name: &str) -> &[f64] {
        match self.column(name) {
            Some(ColumnValues::Numbers(numbers)) => numbers,
            Some(ColumnValues::Texts(_)) | None => &[],
        }
    }
}

impl ColumnValues {
    fn of(kind: ColumnType) -> Self {
        match kind {
            ColumnType::Integer | ColumnType::Float => Self::Numbers(Vec::new()),
            ColumnType::Text => Self::Texts(Texts::default()),
        }
    }
}

impl Texts {
    fn push(&mut self, text: &str) {
        // A run has few different texts, such as the names of its queues, and looks for the last one most often.
        let known = self.words.iter().rposition(|word| word == text);
        let place = known.unwrap_or_else(|| {
            self.words.push(text.to_owned());
            self.words.len() - 1
        });
        self.codes.push(place as u32);
    }
}

/// Gives the values of a row to the columns, one after the other.
struct Cursor<'t> {
    values: std::slice::IterMut<'t, ColumnValues>,
}

impl Cursor<'_> {
    fn number(&mut self, value: f64) {
        match self.values.next() {
            Some(ColumnValues::Numbers(numbers)) => numbers.push(value),
            other => unreachable!("a row gives a number where its table has {other:?}"),
        }
    }
}

impl Values for Cursor<'_> {
    fn integer(&mut self, value: u64) {
        self.number(value.cast_signed() as f64);
    }
    fn integer_or_null(&mut self, value: Option<u64>) {
        self.number(value.map_or(f64::NAN, |value| value.cast_signed() as f64));
    }
    fn float(&mut self, value: f64) {
        self.number(value);
    }
    fn text(&mut self, value: &str) {
        match self.values.next() {
            Some(ColumnValues::Texts(texts)) => texts.push(value),
            other => unreachable!("a row gives a text where its table has {other:?}"),
        }
    }
    fn text_or_null(&mut self, value: Option<&str>) {
        self.text(value.unwrap_or(""));
    }
}

#[deny(clippy::missing_trait_methods)]
impl Sink for Columns {
    fn latency(&mut self, row: &LatencyRow) {
        self.push(row);
    }
    fn throughput(&mut self, row: &ThroughputRow) {
        self.push(row);
    }
    fn tcp(&mut self, row: &TcpRow) {
        self.push(row);
    }
    fn udp(&mut self, row: &UdpRow) {
        self.push(row);
    }
    fn transfer(&mut self, row: &TransferRow) {
        self.push(row);
    }
    fn queue(&mut self, row: &QueueRow<'_>) {
        self.push(row);
    }
    fn emulator(&mut self, row: &EmulatorRow) {
        self.push(row);
    }
    fn shaper(&mut self, row: &ShaperRow<'_>) {
        self.push(row);
    }
    fn method(&mut self, row: &MethodRow<'_>) {
        self.push(row);
    }
    fn flow(&mut self, row: &FlowRow) {
        self.push(row);
    }
    fn progress(&mut self, _: weir_core::Time) -> std::ops::ControlFlow<()> {
        // Whoever drives the run in steps stops between them.
        std::ops::ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use weir_core::{Duration, Time};

    use super::*;

    #[test]
    fn rows_become_columns_and_null_is_not_a_number() {
        let mut columns = Columns::default();
        let lost = LatencyRow {
            t: Time::from_nanos(7),
            probe: 1,
            seq: 3,
            rtt: None,
            up: Some(Duration::from_nanos(5)),
            down: None,
            timer_error: Duration::ZERO,
            server: None,
        };
        columns.latency(&lost);
        columns.latency(&LatencyRow { rtt: Some(Duration::from_nanos(9)), ..lost });
        let table = columns.table("latency").expect("the record has it");
        assert_eq!(table.rows, 2);
        assert_eq!(table.numbers("t_ns"), [7.0, 7.0]);
        assert_eq!(table.numbers("up_ns"), [5.0, 5.0]);
        assert!(table.numbers("rtt_ns")[0].is_nan());
        assert_eq!(table.numbers("rtt_ns")[1], 9.0);
        assert!(table.values.iter().all(|column| match column {
            ColumnValues::Numbers(numbers) => numbers.len() == 2,
            ColumnValues::Texts(texts) => texts.codes.len() == 2,
        }));
    }

    #[test]
    fn each_different_text_is_kept_once() {
        let mut texts = Texts::default();
        for text in ["up/a", "down/b", "up/a", ""] {
            texts.push(text);
        }
        assert_eq!(texts.codes, [0, 1, 0, 2]);
        assert_eq!(texts.words, ["up/a", "down/b", ""]);
    }
}
