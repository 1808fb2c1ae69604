//! One table: columns in memory, written out as Parquet part files.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as PhysicalType};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::{WriterProperties, WriterPropertiesPtr};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{Type, TypePtr};
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
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(concat!("weir ", env!("CARGO_PKG_VERSION")).to_owned())
            .build();
        Self {
            folder: record.join(R::TABLE.name),
            schema: Arc::new(schema.expect("a table of plain columns")),
            properties: Arc::new(properties),
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
