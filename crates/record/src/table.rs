//! One table: columns in memory, written out as Parquet part files.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as PhysicalType};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::{WriterProperties, WriterPropertiesPtr};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{ColumnPath, Type, TypePtr};
use sha2::{Digest, Sha256};
use weir_scenario::{ColumnType, Row, Values};

/// A table that grows at its end.
#[derive(Debug)]
pub(crate) struct Table {
    folder: PathBuf,
    schema: TypePtr,
    properties: WriterPropertiesPtr,
    columns: Vec<Column>,
    rows: usize,
    parts: usize,
    rows_written: usize,
    /// SHA-256 over the bytes of all part files, one after the other.
    digest: Sha256,
}

/// Summary of a table's part files, by which a reader sees that it has all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Written {
    /// The table's name.
    pub table: String,
    /// Number of part files.
    pub parts: usize,
    /// Rows in all of them.
    pub rows: usize,
    /// SHA-256 over the bytes of all part files in their order, in hexadecimal.
    pub sha256: String,
}

#[derive(Debug)]
enum Column {
    Integer(Vec<i64>),
    Nullable { present: Vec<i16>, values: Vec<i64> },
    Float(Vec<f64>),
    Text(Vec<ByteArray>),
    NullableText { present: Vec<i16>, values: Vec<ByteArray> },
}

/// Puts the values of one row into the columns, in the table's order.
struct Appending<'a> {
    columns: std::slice::IterMut<'a, Column>,
}

impl Table {
    /// The empty table whose rows are `R`, in the record at `record`.
    pub fn of<R: Row>(record: &Path) -> Self {
        let declared = (R::TABLE.columns)();
        let fields = declared.iter().map(|column| {
            let (physical, logical) = match column.kind {
                ColumnType::Integer => (PhysicalType::INT64, None),
                ColumnType::Float => (PhysicalType::DOUBLE, None),
                ColumnType::Text => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
            };
            let repetition =
                if column.nullable { Repetition::OPTIONAL } else { Repetition::REQUIRED };
            let field = Type::primitive_type_builder(&column.name, physical)
                .with_repetition(repetition)
                .with_logical_type(logical)
                .build();
            Arc::new(field.expect("a column of a plain type"))
        });
        let schema = Type::group_type_builder(R::TABLE.name).with_fields(fields.collect()).build();
        let mut properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(concat!("weir ", env!("CARGO_PKG_VERSION")).to_owned());
        for column in declared.iter().filter(|column| goes_on(column)) {
            let path = ColumnPath::from(column.name.as_str());
            properties = properties
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
        }
        Self {
            folder: record.join(R::TABLE.name),
            schema: Arc::new(schema.expect("a table of plain columns")),
            properties: Arc::new(properties.build()),
            columns: declared.iter().map(|one| Column::new(one.kind, one.nullable)).collect(),
            rows: 0,
            parts: 0,
            rows_written: 0,
            digest: Sha256::new(),
        }
    }

    /// Appends a row of the type that the table is of.
    pub fn append<R: Row>(&mut self, row: &R) {
        debug_assert_eq!(R::TABLE.name, self.name(), "a row of another table");
        let mut to = Appending { columns: self.columns.iter_mut() };
        row.values(&mut to);
        debug_assert!(to.columns.next().is_none(), "a row of `{}` is not full", R::TABLE.name);
        self.rows += 1;
    }

    /// Name of the table.
    pub fn name(&self) -> &str {
        self.schema.name()
    }

    /// Rows in memory.
    pub const fn rows(&self) -> usize {
        self.rows
    }

    /// Writes the rows in memory as one more part file.
    pub fn flush(&mut self) -> io::Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        fs::create_dir_all(&self.folder)?;
        let part = self.folder.join(format!("part-{:06}.parquet", self.parts));
        let unfinished = part.with_extension("unfinished");
        let bytes = self.encode()?;
        let written = fs::write(&unfinished, &bytes).and_then(|()| fs::rename(&unfinished, &part));
        if written.is_err() {
            // The first error is the one to tell; a half-written part must not stay.
            let _ = fs::remove_file(&unfinished);
            return written;
        }
        self.digest.update(&bytes);
        self.parts += 1;
        self.rows_written += self.rows;
        self.rows = 0;
        for column in &mut self.columns {
            column.clear();
        }
        Ok(())
    }

    /// Summary of the part files written so far; `None` if there are none.
    pub fn written(&self) -> Option<Written> {
        (self.parts > 0).then(|| Written {
            table: self.name().to_owned(),
            parts: self.parts,
            rows: self.rows_written,
            sha256: self
                .digest
                .clone()
                .finalize()
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect(),
        })
    }

    /// The rows in memory as a Parquet file.
    fn encode(&self) -> io::Result<Vec<u8>> {
        let encode = || -> Result<Vec<u8>, ParquetError> {
            let mut writer = SerializedFileWriter::new(
                Vec::new(),
                Arc::clone(&self.schema),
                Arc::clone(&self.properties),
            )?;
            let mut group = writer.next_row_group()?;
            for column in &self.columns {
                column.write(&mut group)?;
            }
            group.close()?;
            writer.into_inner()
        };
        encode().map_err(|error| match error {
            ParquetError::External(source) => match source.downcast::<io::Error>() {
                Ok(io) => *io,
                Err(other) => io::Error::other(other),
            },
            other => io::Error::other(other),
        })
    }
}

/// Whether a column's values are written as differences from row to row, not by dictionary: times and
/// sequence numbers, which hardly ever repeat and go on from row to row.
///
/// docs/performance.md says what that saves.
fn goes_on(column: &weir_scenario::Column) -> bool {
    column.kind == ColumnType::Integer && (column.name.ends_with("_ns") || column.name == "seq")
}

impl Column {
    fn new(kind: ColumnType, nullable: bool) -> Self {
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

    fn clear(&mut self) {
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

    fn write(&self, group: &mut SerializedRowGroupWriter<'_, Vec<u8>>) -> Result<(), ParquetError> {
        let mut writer = group.next_column()?.expect("as many columns as in the schema");
        match self {
            Self::Integer(values) => {
                writer.typed::<Int64Type>().write_batch(values, None, None)?;
            }
            Self::Nullable { present, values } => {
                writer.typed::<Int64Type>().write_batch(values, Some(present), None)?;
            }
            Self::Float(values) => {
                writer.typed::<DoubleType>().write_batch(values, None, None)?;
            }
            Self::Text(values) => {
                writer.typed::<ByteArrayType>().write_batch(values, None, None)?;
            }
            Self::NullableText { present, values } => {
                writer.typed::<ByteArrayType>().write_batch(values, Some(present), None)?;
            }
        }
        writer.close()
    }
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

#[cfg(test)]
mod tests {
    use std::env;
    use std::fs::{self, File};
    use std::process;

    use parquet::basic::{Compression, Encoding};
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;
    use weir_core::{Duration, Time};
    use weir_scenario::{LatencyRow, ServerTurn, ThroughputRow};

    use super::Table;

    fn part(table: &mut Table) -> SerializedFileReader<File> {
        table.flush().expect("a disk with room");
        let file = table.folder.join(format!("part-{:06}.parquet", table.parts - 1));
        SerializedFileReader::new(File::open(file).expect("a part")).expect("Parquet")
    }

    fn row(n: u64, rtt: Option<u64>) -> LatencyRow {
        LatencyRow {
            t: Time::from_nanos(n * 1_000_000),
            probe: 3,
            seq: u32::try_from(n).expect("few rows"),
            rtt: rtt.map(Duration::from_nanos),
            up: None,
            down: rtt.map(Duration::from_nanos),
            timer_error: Duration::ZERO,
            server: rtt.map(|ns| ServerTurn { received_ns: u64::MAX - ns, sent_ns: ns }),
        }
    }

    #[test]
    fn times_and_sequence_numbers_are_written_as_differences_and_read_back() {
        let folder = env::temp_dir().join(format!("weir-table-{}", process::id()));
        let mut table = Table::of::<LatencyRow>(&folder);
        // Steps up and down, nulls, and the greatest and least differences that there can be.
        let rtts = [Some(14_000_000), None, Some(u64::MAX), Some(0), Some(i64::MAX as u64)];
        let rows: Vec<_> = (0..1000).map(|n| row(n, rtts[n as usize % rtts.len()])).collect();
        for one in &rows {
            table.append(one);
        }
        let reader = part(&mut table);
        let group = reader.metadata().row_group(0);
        for column in group.columns() {
            let name = column.column_path().string();
            let by_difference = column.encodings().any(|one| one == Encoding::DELTA_BINARY_PACKED);
            assert_eq!(by_difference, name != "probe", "{name}");
            assert_eq!(column.dictionary_page_offset().is_some(), name == "probe", "{name}");
            assert_eq!(column.compression(), Compression::SNAPPY, "{name}");
        }
        let read: Vec<_> = reader.get_row_iter(None).expect("rows").collect();
        assert_eq!(read.len(), rows.len());
        for (found, wanted) in read.iter().zip(&rows) {
            let found = found.as_ref().expect("a row");
            let value = |name: &str| {
                let (_, field) = found.get_column_iter().find(|(key, _)| *key == name)?;
                if let Field::Long(value) = field { Some(*value) } else { None }
            };
            let nanos = |span: Option<Duration>| span.map(|one| one.as_nanos().cast_signed());
            assert_eq!(value("t_ns"), Some(wanted.t.as_nanos().cast_signed()));
            assert_eq!(value("seq"), Some(i64::from(wanted.seq)));
            assert_eq!(value("rtt_ns"), nanos(wanted.rtt));
            assert_eq!(value("up_ns"), None);
            assert_eq!(value("down_ns"), nanos(wanted.down));
            let received = wanted.server.map(|turn| turn.received_ns.cast_signed());
            assert_eq!(value("server_received_ns"), received);
        }
        fs::remove_dir_all(folder).expect("the folder just made");
    }

    #[test]
    fn counts_are_written_by_dictionary() {
        let folder = env::temp_dir().join(format!("weir-table-counts-{}", process::id()));
        let mut table = Table::of::<ThroughputRow>(&folder);
        for n in 0..1000 {
            let t = Time::from_nanos(n);
            table.append(&ThroughputRow { t, flow: 0, bytes: n % 3, wire_bytes: 1500 });
        }
        let reader = part(&mut table);
        let by_dictionary = |column: &parquet::file::metadata::ColumnChunkMetaData| {
            column.dictionary_page_offset().is_some()
        };
        let found: Vec<_> =
            reader.metadata().row_group(0).columns().iter().map(by_dictionary).collect();
        assert_eq!(found, [false, true, true, true]);
        fs::remove_dir_all(folder).expect("the folder just made");
    }
}
