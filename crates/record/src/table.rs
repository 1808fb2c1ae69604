//! One table: columns in memory, written out as Parquet part files.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as PhysicalType};
use parquet::data_type::{ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::{WriterProperties, WriterPropertiesPtr};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{ColumnPath, Type, TypePtr};
use sha2::{Digest, Sha256};
use weir_scenario::{ColumnType, Row};

use crate::columns::{Column, Columns};

/// A table that grows at its end.
#[derive(Debug)]
pub(crate) struct Table {
    folder: PathBuf,
    format: Format,
    columns: Columns,
    parts: usize,
    rows_written: usize,
    /// SHA-256 over the bytes of all part files, one after the other.
    digest: Sha256,
}

/// How the part files of a table are written.
#[derive(Debug)]
pub(crate) struct Format {
    schema: TypePtr,
    properties: WriterPropertiesPtr,
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

impl Table {
    /// The empty table whose rows are `R`, in the record at `record`.
    pub fn of<R: Row>(record: &Path) -> Self {
        Self {
            folder: record.join(R::TABLE.name),
            format: Format::of(&R::TABLE),
            columns: Columns::of::<R>(),
            parts: 0,
            rows_written: 0,
            digest: Sha256::new(),
        }
    }

    /// Appends a row of the type that the table is of.
    pub fn append<R: Row>(&mut self, row: &R) {
        self.columns.append(row);
    }

    /// Name of the table.
    pub fn name(&self) -> &str {
        self.format.schema.name()
    }

    /// Rows in memory.
    pub const fn rows(&self) -> usize {
        self.columns.rows()
    }

    /// Writes the rows in memory as one more part file.
    pub fn flush(&mut self) -> io::Result<()> {
        if self.rows() == 0 {
            return Ok(());
        }
        fs::create_dir_all(&self.folder)?;
        let part = self.folder.join(format!("part-{:06}.parquet", self.parts));
        let unfinished = part.with_extension("unfinished");
        let bytes = self.format.encode(self.columns.each())?;
        let written = fs::write(&unfinished, &bytes).and_then(|()| fs::rename(&unfinished, &part));
        if written.is_err() {
            // The first error is the one to tell; a half-written part must not stay.
            let _ = fs::remove_file(&unfinished);
            return written;
        }
        self.digest.update(&bytes);
        self.parts += 1;
        self.rows_written += self.rows();
        self.columns.clear();
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
}

impl Format {
    /// That of the table.
    pub fn of(table: &weir_scenario::Table) -> Self {
        let declared = (table.columns)();
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
        let schema = Type::group_type_builder(table.name).with_fields(fields.collect()).build();
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
            schema: Arc::new(schema.expect("a table of plain columns")),
            properties: Arc::new(properties.build()),
        }
    }

    /// Rows as a Parquet file: their columns in the table's order.
    pub fn encode(&self, columns: &[Column]) -> io::Result<Vec<u8>> {
        let encode = || -> Result<Vec<u8>, ParquetError> {
            let mut writer = SerializedFileWriter::new(
                Vec::new(),
                Arc::clone(&self.schema),
                Arc::clone(&self.properties),
            )?;
            let mut group = writer.next_row_group()?;
            for column in columns {
                write(column, &mut group)?;
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

/// Writes a column as the next one of a row group.
fn write(
    column: &Column,
    group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
) -> Result<(), ParquetError> {
    let mut writer = group.next_column()?.expect("as many columns as in the schema");
    match column {
        Column::Integer(values) => {
            writer.typed::<Int64Type>().write_batch(values, None, None)?;
        }
        Column::Nullable { present, values } => {
            writer.typed::<Int64Type>().write_batch(values, Some(present), None)?;
        }
        Column::Float(values) => {
            writer.typed::<DoubleType>().write_batch(values, None, None)?;
        }
        Column::Text(values) => {
            writer.typed::<ByteArrayType>().write_batch(values, None, None)?;
        }
        Column::NullableText { present, values } => {
            writer.typed::<ByteArrayType>().write_batch(values, Some(present), None)?;
        }
    }
    writer.close()
}

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
