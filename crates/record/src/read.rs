//! Reads the part files of a table back.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use bytes::Bytes;
use parquet::basic::{LogicalType, Type as PhysicalType};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::types::ColumnDescriptor;
use weir_scenario::{ColumnType, TABLES};

use crate::columns::Column;
use crate::rows::Named;

/// The rows of all `parts`, the bytes of part files of the table `table`, column by column in the order of
/// its declaration: those columns that are `wanted`, or all.
///
/// `None` if one of them is no whole Parquet file with precisely the columns that this version declares, or is packed
/// otherwise than this version packs, or if they have more than `max_rows` rows together. What is wrong with them, and
/// whether another reader can make something of them, is then for that reader to say.
#[must_use]
pub fn read_table(
    table: &str,
    parts: &[Bytes],
    max_rows: usize,
    wanted: Option<&[String]>,
) -> Option<Vec<Named>> {
    let declared = (TABLES.iter().find(|one| one.name == table)?.columns)();
    let is_wanted = |name: &String| wanted.is_none_or(|wanted| wanted.contains(name));
    let read = unless_it_panics(|| {
        let chosen = declared.iter().map(|one| is_wanted(&one.name).then(|| empty(one.kind)));
        let mut columns: Vec<_> = chosen.collect();
        let mut room = max_rows;
        for part in parts {
            let declared = declared.iter().map(|one| (one.name.as_str(), one.kind));
            room -= append(&mut columns, declared, part.clone(), room)?;
        }
        Some(columns)
    });
    let columns = read??;
    let named = declared.into_iter().zip(columns).filter_map(|(declared, column)| {
        let (content, known) = column?.into_content();
        Some((declared.name, content, known))
    });
    Some(named.collect())
}

/// What `work` gives; `None`, and no word on standard error, if it panics: of some damaged files the library makes
/// no error.
pub(crate) fn unless_it_panics<T>(work: impl FnOnce() -> T) -> Option<T> {
    thread_local! {
        static SILENT: Cell<bool> = const { Cell::new(false) };
    }
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let tell = panic::take_hook();
        panic::set_hook(Box::new(move |what| {
            if !SILENT.get() {
                tell(what);
            }
        }));
    });
    let before = SILENT.replace(true);
    let done = panic::catch_unwind(AssertUnwindSafe(work));
    SILENT.set(before);
    done.ok()
}

/// A column without rows, of which each may have a value or none; numbers of type float have one each.
pub(crate) const fn empty(kind: ColumnType) -> Column {
    match kind {
        ColumnType::Integer => Column::Nullable { present: Vec::new(), values: Vec::new() },
        ColumnType::Float => Column::Float(Vec::new()),
        ColumnType::Text => Column::NullableText { present: Vec::new(), values: Vec::new() },
    }
}

/// Appends the rows of a part file to those columns of its table that there are, and returns how many these are: no
/// more than `max_rows`.
pub(crate) fn append<'a>(
    columns: &mut [Option<Column>],
    declared: impl ExactSizeIterator<Item = (&'a str, ColumnType)>,
    part: Bytes,
    max_rows: usize,
) -> Option<usize> {
    let file = SerializedFileReader::new(part).ok()?;
    let schema = file.metadata().file_metadata().schema_descr();
    let rows = usize::try_from(file.metadata().file_metadata().num_rows()).ok()?;
    let same = schema.num_columns() == declared.len()
        && schema.columns().iter().zip(declared).all(|(found, (name, kind))| {
            found.path().parts() == [name] && kind_of(found) == Some(kind)
        });
    if !same || rows > max_rows {
        return None;
    }
    let mut left = rows;
    for group in 0..file.num_row_groups() {
        let group = file.get_row_group(group).ok()?;
        let of_group = usize::try_from(group.metadata().num_rows()).ok()?;
        left = left.checked_sub(of_group)?;
        for (number, column) in columns.iter_mut().enumerate() {
            if let Some(column) = column {
                fill(column, group.get_column_reader(number).ok()?, of_group)?;
            }
        }
    }
    (left == 0).then_some(rows)
}

/// The type of a column of a file; `None` of one that no table of a record has.
fn kind_of(column: &ColumnDescriptor) -> Option<ColumnType> {
    if column.max_rep_level() > 0 || column.max_def_level() > 1 {
        return None;
    }
    match (column.physical_type(), column.logical_type_ref()) {
        (PhysicalType::INT64, None) => Some(ColumnType::Integer),
        (PhysicalType::DOUBLE, None) => Some(ColumnType::Float),
        (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)) => Some(ColumnType::Text),
        _ => None,
    }
}

/// Appends the `rows` rows of a column of a row group.
fn fill(column: &mut Column, reader: ColumnReader, rows: usize) -> Option<()> {
    match (column, reader) {
        (Column::Nullable { present, values }, ColumnReader::Int64ColumnReader(mut reader)) => {
            read(&mut reader, rows, present, values).ok()?
        }
        (Column::Float(values), ColumnReader::DoubleColumnReader(mut reader)) => {
            let mut present = Vec::new();
            read(&mut reader, rows, &mut present, values).ok()?.filter(|()| !present.contains(&0))
        }
        (
            Column::NullableText { present, values },
            ColumnReader::ByteArrayColumnReader(mut reader),
        ) => {
            let before = values.len();
            let utf8 = |one: &ByteArray| std::str::from_utf8(one.data()).is_ok();
            read(&mut reader, rows, present, values)
                .ok()?
                .filter(|()| values[before..].iter().all(utf8))
        }
        _ => None,
    }
}

/// Appends values and, of each row, whether it has one; `None` if there are other than `rows` rows.
fn read<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    rows: usize,
    present: &mut Vec<i16>,
    values: &mut Vec<T::T>,
) -> Result<Option<()>, ParquetError> {
    let (before, had) = (present.len(), values.len());
    let mut left = rows;
    while left > 0 {
        let (found, _, _) = reader.read_records(left, Some(present), None, values)?;
        if found == 0 {
            return Ok(None);
        }
        left = left.saturating_sub(found);
    }
    if present.len() == before {
        // A column that has a value in every row tells nothing of it.
        present.resize(before + rows, 1);
    }
    let there = present[before..].iter().filter(|there| **there != 0).count();
    Ok((present.len() == before + rows && values.len() == had + there).then_some(()))
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;
    use std::path::{Path, PathBuf};
    use std::{env, fs, process, slice};

    use bytes::Bytes;
    use serde_json::Map;
    use weir_core::{Duration, Time};
    use weir_scenario::{LatencyRow, MethodRow, Sink, ThroughputRow};

    use super::read_table;
    use crate::columns::Content;
    use crate::{Recorder, Rows};

    fn pings() -> Vec<LatencyRow> {
        let ping = |seq: u32| LatencyRow {
            t: Time::from_nanos(u64::from(seq) * 10),
            probe: seq % 3,
            seq,
            rtt: (!seq.is_multiple_of(5)).then(|| Duration::from_nanos(u64::from(seq) << 20)),
            up: None,
            down: None,
            timer_error: Duration::ZERO,
            server: None,
        };
        (0..1000).map(ping).collect()
    }

    fn fill(sink: &mut impl Sink) {
        for ping in pings() {
            sink.latency(&ping);
        }
        for (number, result) in [Some("{}"), None, Some("ü")].into_iter().enumerate() {
            let method = u32::try_from(number).expect("few");
            let name = if number == 1 { "other" } else { "one" };
            sink.method(&MethodRow {
                method,
                name,
                kind: "ndt7",
                began: Time::ZERO,
                ended: None,
                result,
            });
        }
        let t = Time::from_nanos(7);
        sink.throughput(&ThroughputRow { t, flow: 1, bytes: 2, wire_bytes: 3 });
    }

    /// A record in a folder of its own.
    fn recorded(name: &str) -> PathBuf {
        let folder = env::temp_dir().join(format!("weir-read-{name}-{}", process::id()));
        let mut recorder = Recorder::create(&folder, "{}", |_| ControlFlow::Continue(()))
            .expect("a disk with room");
        fill(&mut recorder);
        recorder.finish(true, Map::new()).expect("a disk with room");
        folder
    }

    fn part(folder: &Path, table: &str) -> Bytes {
        fs::read(folder.join(table).join("part-000000.parquet")).expect("a part").into()
    }

    #[test]
    fn what_was_written_is_read_back() {
        let folder = recorded("back");
        let mut rows = Rows::new(|_| ControlFlow::Continue(()));
        fill(&mut rows);
        let tables = rows.into_tables();
        for table in ["latency", "method", "throughput"] {
            let found = read_table(table, &[part(&folder, table)], 1000, None).expect("a table");
            let (_, wanted) = tables.iter().find(|(name, _)| *name == table).expect("a table");
            assert_eq!(&found, wanted, "{table}");
        }
        fs::remove_dir_all(folder).expect("the folder just made");
    }

    #[test]
    fn parts_follow_each_other() {
        let folder = recorded("parts");
        let one = part(&folder, "method");
        let found = read_table("method", &[one.clone(), one], 1000, None).expect("a table");
        let of = |name: &str| found.iter().find(|column| column.0 == name).expect("a column");
        assert_eq!(of("method").1, Content::Integer(vec![0, 1, 2, 0, 1, 2]));
        let texts = vec!["one".to_owned(), "other".to_owned()];
        assert_eq!(of("name").1, Content::Text { codes: vec![0, 1, 0, 0, 1, 0], texts });
        assert_eq!(of("result").2, Some(vec![true, false, true, true, false, true]));
        assert_eq!(
            read_table("method", &[], 1000, None).expect("no row")[0].1,
            Content::Integer(vec![])
        );
        fs::remove_dir_all(folder).expect("the folder just made");
    }

    #[test]
    fn columns_that_are_not_wanted_are_left_out() {
        let folder = recorded("some");
        let one = part(&folder, "method");
        let all = read_table("method", slice::from_ref(&one), 1000, None).expect("a table");
        let wanted = ["result".to_owned(), "method".to_owned(), "weather".to_owned()];
        let found = read_table("method", &[one], 1000, Some(&wanted)).expect("a table");
        assert_eq!(found, [all[0].clone(), all[5].clone()]);
        fs::remove_dir_all(folder).expect("the folder just made");
    }

    #[test]
    fn other_files_are_refused() {
        let folder = recorded("others");
        let latency = part(&folder, "latency");
        let read = |table, part: &Bytes, max_rows| {
            read_table(table, slice::from_ref(part), max_rows, None)
        };
        assert_eq!(read("throughput", &latency, 1000), None, "another table");
        assert_eq!(read("latency", &latency, 999), None, "too many rows");
        let twice = |most| read_table("latency", &[latency.clone(), latency.clone()], most, None);
        assert!(twice(2000).is_some());
        assert_eq!(twice(1999), None, "too many rows together");
        assert_eq!(read("latency", &Bytes::from_static(b"PAR1"), 1000), None, "no file");
        assert_eq!(read("weather", &latency, 1000), None, "no table");
        fs::remove_dir_all(folder).expect("the folder just made");
    }

    #[test]
    fn damaged_files_are_refused_or_read_and_end_nothing() {
        let folder = recorded("damaged");
        let whole = part(&folder, "latency");
        for length in 0..whole.len().min(400) {
            assert_eq!(
                read_table("latency", &[whole.slice(..length)], 1000, None),
                None,
                "{length} bytes"
            );
        }
        for place in (0..whole.len()).step_by(7) {
            let mut damaged = whole.to_vec();
            damaged[place] ^= 0x55;
            if let Some(found) = read_table("latency", &[damaged.into()], 1000, None) {
                assert!(found.iter().all(|(_, content, _)| match content {
                    Content::Integer(values) => values.len() == 1000,
                    Content::Float(_) | Content::Text { .. } => false,
                }));
            }
        }
        fs::remove_dir_all(folder).expect("the folder just made");
    }
}
