//! The columns of one table in memory, of whatever rows.

use std::collections::HashMap;

use parquet::data_type::ByteArray;
use weir_scenario::{ColumnType, Row, Values};

/// The rows of a table in memory, column by column, in the order of the table's declaration.
#[derive(Debug)]
pub(crate) struct Columns {
    of: &'static str,
    columns: Vec<Column>,
    rows: usize,
}

/// The values of one column.
#[derive(Debug)]
pub(crate) enum Column {
    Integer(Vec<i64>),
    Nullable { present: Vec<i16>, values: Vec<i64> },
    Float(Vec<f64>),
    Text(Vec<ByteArray>),
    NullableText { present: Vec<i16>, values: Vec<ByteArray> },
}

/// A column of [`Rows`](crate::Rows): one value a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// Whole numbers; 0 where there is none.
    Integer(Vec<i64>),
    /// Numbers.
    Float(Vec<f64>),
    /// Texts: of each row the place of its text among the different ones; 0 where there is none.
    Text {
        /// The place of each row's text in `texts`.
        codes: Vec<i64>,
        /// The different texts, in the order in which they came first.
        texts: Vec<String>,
    },
}

/// Puts the values of one row into the columns, in the table's order.
struct Appending<'a> {
    columns: std::slice::IterMut<'a, Column>,
}

impl Columns {
    /// The empty columns of rows `R`.
    pub fn of<R: Row>() -> Self {
        let columns = (R::TABLE.columns)();
        let columns = columns.iter().map(|one| Column::new(one.kind, one.nullable)).collect();
        Self { of: R::TABLE.name, columns, rows: 0 }
    }

    /// Appends a row of the type that the columns are of.
    pub fn append<R: Row>(&mut self, row: &R) {
        debug_assert_eq!(R::TABLE.name, self.of, "a row of another table");
        let mut to = Appending { columns: self.columns.iter_mut() };
        row.values(&mut to);
        debug_assert!(to.columns.next().is_none(), "a row of `{}` is not full", self.of);
        self.rows += 1;
    }

    /// Number of rows.
    pub const fn rows(&self) -> usize {
        self.rows
    }

    /// The columns in their order.
    pub fn each(&self) -> &[Column] {
        &self.columns
    }

    /// The columns in their order, which are then whose this was.
    pub fn into_each(self) -> Vec<Column> {
        self.columns
    }

    /// Forgets all rows.
    pub fn clear(&mut self) {
        self.rows = 0;
        for column in &mut self.columns {
            column.clear();
        }
    }
}

impl Column {
    /// A column of a table, without rows.
    pub fn new(kind: ColumnType, nullable: bool) -> Self {
        match (kind, nullable) {
            (ColumnType::Integer, false) => Self::Integer(Vec::new()),
            (ColumnType::Integer, true) => {
                Self::Nullable { present: Vec::new(), values: Vec::new() }
            }
            (ColumnType::Float, false) => Self::Float(Vec::new()),
            (ColumnType::Text, false) => Self::Text(Vec::new()),
            (ColumnType::Text, true) => {
                Self::NullableText { present: Vec::new(), values: Vec::new() }
            }
            (ColumnType::Float, true) => unreachable!("no field of a row is an `Option<f64>`"),
        }
    }

    /// Appends those rows of a column, as it was read, that are `kept`; `None` if one has no value and this column
    /// must have it, or the types differ.
    pub fn append(&mut self, read: &Self, kept: &[bool]) -> Option<()> {
        match (self, read) {
            (Self::Integer(values), Self::Nullable { present, values: read }) => {
                (!present.contains(&0)).then(|| values.extend(chosen(read, kept)))
            }
            (Self::Text(values), Self::NullableText { present, values: read }) => {
                (!present.contains(&0)).then(|| values.extend(chosen(read, kept)))
            }
            (Self::Float(values), Self::Float(read)) => {
                values.extend(chosen(read, kept));
                Some(())
            }
            (Self::Nullable { present, values }, Self::Nullable { present: had, values: read }) => {
                values.extend(chosen(read, &of_those_there(had, kept)));
                present.extend(chosen(had, kept));
                Some(())
            }
            (
                Self::NullableText { present, values },
                Self::NullableText { present: had, values: read },
            ) => {
                values.extend(chosen(read, &of_those_there(had, kept)));
                present.extend(chosen(had, kept));
                Some(())
            }
            _ => None,
        }
    }

    /// Forgets all rows.
    pub fn clear(&mut self) {
        match self {
            Self::Integer(values) => values.clear(),
            Self::Nullable { present, values } => {
                present.clear();
                values.clear();
            }
            Self::Float(values) => values.clear(),
            Self::Text(values) => values.clear(),
            Self::NullableText { present, values } => {
                present.clear();
                values.clear();
            }
        }
    }

    /// One value a row, and of each row whether it has one; `None` if all have.
    pub fn into_content(self) -> (Content, Option<Vec<bool>>) {
        match self {
            Self::Integer(values) => (Content::Integer(values), None),
            Self::Float(values) => (Content::Float(values), None),
            Self::Text(values) => {
                let (codes, texts) = coded(&values);
                (Content::Text { codes, texts }, None)
            }
            Self::Nullable { present, values } => {
                let (values, known) = spread(&present, values);
                (Content::Integer(values), known)
            }
            Self::NullableText { present, values } => {
                let (codes, texts) = coded(&values);
                let (codes, known) = spread(&present, codes);
                (Content::Text { codes, texts }, known)
            }
        }
    }
}

/// The values that are `kept`.
fn chosen<T: Clone>(values: &[T], kept: &[bool]) -> impl Iterator<Item = T> {
    values.iter().zip(kept).filter(|(_, kept)| **kept).map(|(value, _)| value.clone())
}

/// Of each row that has a value whether it is `kept`.
fn of_those_there(present: &[i16], kept: &[bool]) -> Vec<bool> {
    present.iter().zip(kept).filter(|(there, _)| **there != 0).map(|(_, kept)| *kept).collect()
}

/// The place of each text among the different ones, and these in the order in which they came first.
fn coded(values: &[ByteArray]) -> (Vec<i64>, Vec<String>) {
    let mut places: HashMap<&[u8], i64> = HashMap::new();
    let mut texts = Vec::new();
    let mut codes = Vec::with_capacity(values.len());
    for value in values {
        let next = i64::try_from(texts.len()).expect("fewer texts than memory has bytes");
        codes.push(*places.entry(value.data()).or_insert_with(|| {
            texts.push(String::from_utf8_lossy(value.data()).into_owned());
            next
        }));
    }
    (codes, texts)
}

/// One value a row of values that only the rows marked in `present` have, 0 for the others; and which have one,
/// unless all do.
fn spread(present: &[i16], values: Vec<i64>) -> (Vec<i64>, Option<Vec<bool>>) {
    if !present.contains(&0) {
        return (values, None);
    }
    let mut values = values.into_iter();
    let next = |there: &i16| if *there == 0 { 0 } else { values.next().expect("one a mark") };
    (present.iter().map(next).collect(), Some(present.iter().map(|there| *there != 0).collect()))
}

impl Values for Appending<'_> {
    fn integer(&mut self, value: u64) {
        match self.columns.next() {
            Some(Column::Integer(values)) => values.push(value.cast_signed()),
            _ => unreachable!("{OTHER_TYPE}"),
        }
    }

    fn integer_or_null(&mut self, value: Option<u64>) {
        match self.columns.next() {
            Some(Column::Nullable { present, values }) => {
                present.push(i16::from(value.is_some()));
                values.extend(value.map(u64::cast_signed));
            }
            _ => unreachable!("{OTHER_TYPE}"),
        }
    }

    fn float(&mut self, value: f64) {
        match self.columns.next() {
            Some(Column::Float(values)) => values.push(value),
            _ => unreachable!("{OTHER_TYPE}"),
        }
    }

    fn text(&mut self, value: &str) {
        match self.columns.next() {
            Some(Column::Text(values)) => values.push(ByteArray::from(value)),
            _ => unreachable!("{OTHER_TYPE}"),
        }
    }

    fn text_or_null(&mut self, value: Option<&str>) {
        match self.columns.next() {
            Some(Column::NullableText { present, values }) => {
                present.push(i16::from(value.is_some()));
                values.extend(value.map(ByteArray::from));
            }
            _ => unreachable!("{OTHER_TYPE}"),
        }
    }
}

/// Columns and values come from the one declaration of a row, field by field.
const OTHER_TYPE: &str = "a field's values are of its columns' types";
