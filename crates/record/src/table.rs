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

/// The shape of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Whole numbers.
    Integer,
    /// Whole numbers or nothing.
    Nullable,
    /// Numbers.
    Float,
    /// Words that repeat.
    Text,
    /// Words or nothing.
    NullableText,
}

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
    /// Over the bytes of all part files, one after the other.
    digest: Sha256,
}

/// What was written of a table, by which a reader sees that it has all of it.
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

/// Fills one row, column by column in the table's order.
pub(crate) struct Row<'a> {
    columns: std::slice::IterMut<'a, Column>,
}

impl Table {
    /// An empty table called `name` in the record at `record`.
    pub fn new(record: &Path, name: &str, columns: &[(String, Kind)]) -> Self {
        let fields = columns.iter().map(|(column, kind)| {
            let (physical, repetition, logical) = match kind {
                Kind::Integer => (PhysicalType::INT64, Repetition::REQUIRED, None),
                Kind::Nullable => (PhysicalType::INT64, Repetition::OPTIONAL, None),
                Kind::Float => (PhysicalType::DOUBLE, Repetition::REQUIRED, None),
                Kind::Text => {
                    (PhysicalType::BYTE_ARRAY, Repetition::REQUIRED, Some(LogicalType::String))
                }
                Kind::NullableText => {
                    (PhysicalType::BYTE_ARRAY, Repetition::OPTIONAL, Some(LogicalType::String))
                }
            };
            let field = Type::primitive_type_builder(column, physical)
                .with_repetition(repetition)
                .with_logical_type(logical)
                .build();
            Arc::new(field.expect("a column of a plain type"))
        });
        let schema = Type::group_type_builder(name).with_fields(fields.collect()).build();
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(concat!("weir ", env!("CARGO_PKG_VERSION")).to_owned())
            .build();
        Self {
            folder: record.join(name),
            schema: Arc::new(schema.expect("a table of plain columns")),
            properties: Arc::new(properties),
            columns: columns.iter().map(|(_, kind)| Column::new(*kind)).collect(),
            rows: 0,
            parts: 0,
            rows_written: 0,
            digest: Sha256::new(),
        }
    }

    /// Appends a row, which `fill` must fill to the last column.
    pub fn append(&mut self, fill: impl FnOnce(&mut Row<'_>)) {
        let mut row = Row { columns: self.columns.iter_mut() };
        fill(&mut row);
        assert!(row.columns.next().is_none(), "a row of `{}` is not full", self.schema.name());
        self.rows += 1;
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

    /// What was written so far; `None` if nothing was.
    pub fn written(&self) -> Option<Written> {
        (self.parts > 0).then(|| Written {
            table: self.schema.name().to_owned(),
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
    const fn new(kind: Kind) -> Self {
        match kind {
            Kind::Integer => Self::Integer(Vec::new()),
            Kind::Nullable => Self::Nullable { present: Vec::new(), values: Vec::new() },
            Kind::Float => Self::Float(Vec::new()),
            Kind::Text => Self::Text(Vec::new()),
            Kind::NullableText => Self::NullableText { present: Vec::new(), values: Vec::new() },
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

impl Row<'_> {
    /// The next column's whole number.
    pub fn integer(&mut self, value: u64) -> &mut Self {
        match self.columns.next() {
            Some(Column::Integer(values)) => values.push(value.cast_signed()),
            _ => unreachable!("this column holds no whole number"),
        }
        self
    }

    /// The next column's whole number, or nothing.
    pub fn nullable(&mut self, value: Option<u64>) -> &mut Self {
        match self.columns.next() {
            Some(Column::Nullable { present, values }) => {
                present.push(i16::from(value.is_some()));
                values.extend(value.map(u64::cast_signed));
            }
            _ => unreachable!("this column is not nullable"),
        }
        self
    }

    /// The next column's number.
    pub fn float(&mut self, value: f64) -> &mut Self {
        match self.columns.next() {
            Some(Column::Float(values)) => values.push(value),
            _ => unreachable!("this column holds no number"),
        }
        self
    }

    /// The next column's word.
    pub fn text(&mut self, value: &str) -> &mut Self {
        match self.columns.next() {
            Some(Column::Text(values)) => values.push(ByteArray::from(value)),
            _ => unreachable!("this column holds no text"),
        }
        self
    }

    /// The next column's word, or nothing.
    pub fn nullable_text(&mut self, value: Option<&str>) -> &mut Self {
        match self.columns.next() {
            Some(Column::NullableText { present, values }) => {
                present.push(i16::from(value.is_some()));
                values.extend(value.map(ByteArray::from));
            }
            _ => unreachable!("this column holds no text or nothing"),
        }
        self
    }
}
