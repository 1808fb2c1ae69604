//! The rows of a table that lie within spans of time, as part files of their own.

use std::ops::Range;

use bytes::Bytes;
use weir_scenario::TABLES;

use crate::columns::Column;
use crate::read::{append, empty, unless_it_panics};
use crate::table::Format;

/// A part file: its bytes and how many rows it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thinned {
    /// The Parquet file, packed as a [`Recorder`](crate::Recorder) packs.
    pub content: Vec<u8>,
    /// Number of its rows.
    pub rows: usize,
}

/// Those rows of `parts`, the bytes of part files of the table `table`, whose `t_ns` lies within one of `spans`: in
/// their order, in as few part files as they fit in. None if no row does.
///
/// `None` if the table has no `t_ns`, or if a part is not as this version writes them or has more than `max_rows` rows: as
/// of [`read_table`](crate::read_table).
#[must_use]
pub fn thinned(
    table: &str,
    parts: &[Bytes],
    max_rows: usize,
    spans: &[Range<i64>],
) -> Option<Vec<Thinned>> {
    unless_it_panics(|| thin(table, parts, max_rows, spans))?
}

fn thin(
    table: &str,
    parts: &[Bytes],
    max_rows: usize,
    spans: &[Range<i64>],
) -> Option<Vec<Thinned>> {
    let table = TABLES.iter().find(|one| one.name == table)?;
    let declared = (table.columns)();
    let time = declared.iter().position(|one| one.name == TIME)?;
    let format = Format::of(table);
    let mut kept: Vec<_> = declared.iter().map(|one| Column::new(one.kind, one.nullable)).collect();
    let (mut rows, mut written) = (0, Vec::new());
    for part in parts {
        let mut read: Vec<_> = declared.iter().map(|one| Some(empty(one.kind))).collect();
        let columns = declared.iter().map(|one| (one.name.as_str(), one.kind));
        append(&mut read, columns, part.clone(), max_rows)?;
        let wanted = within(read[time].as_ref()?, spans)?;
        for (column, of_part) in kept.iter_mut().zip(&read) {
            column.append(of_part.as_ref()?, &wanted)?;
        }
        rows += wanted.iter().filter(|wanted| **wanted).count();
        if rows >= PART_ROWS {
            written.push(Thinned { content: format.encode(&kept).ok()?, rows });
            kept.iter_mut().for_each(Column::clear);
            rows = 0;
        }
    }
    if rows > 0 {
        written.push(Thinned { content: format.encode(&kept).ok()?, rows });
    }
    Some(written)
}

/// Of each row whether its time lies within one of `spans`; `None` if one has no time.
fn within(times: &Column, spans: &[Range<i64>]) -> Option<Vec<bool>> {
    let Column::Nullable { present, values } = times else { return None };
    let of_time = |time: &i64| spans.iter().any(|span| span.contains(time));
    (!present.contains(&0)).then(|| values.iter().map(of_time).collect())
}

/// Column of the time of a row.
const TIME: &str = "t_ns";
/// From so many rows on a part file ends, as those of a record that is being written do.
const PART_ROWS: usize = 100_000;

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;
    use std::path::Path;
    use std::{env, fs, process, slice};

    use bytes::Bytes;
    use serde_json::Map;
    use weir_core::{Duration, Time};
    use weir_scenario::{LatencyRow, ShaperRow, Sink};

    use super::thinned;
    use crate::{Recorder, read_table};

    fn ping(t: u64) -> LatencyRow {
        LatencyRow {
            t: Time::from_nanos(t),
            probe: 0,
            seq: u32::try_from(t).expect("few"),
            rtt: (!t.is_multiple_of(3)).then(|| Duration::from_nanos(t << 20)),
            up: None,
            down: None,
            timer_error: Duration::ZERO,
            server: None,
        }
    }

    fn change(t: u64) -> ShaperRow<'static> {
        ShaperRow {
            t: Time::from_nanos(t),
            queue: "up/shaper",
            rate_bps: t.is_multiple_of(2).then_some(t),
            state: "loaded",
            reason: "delay",
            value: 3.5,
            unit: "ms",
        }
    }

    /// The part files of the tables `latency` and `shaper` of a record with a row of each of these times.
    fn recorded(name: &str, times: impl Iterator<Item = u64>) -> [Bytes; 2] {
        let folder = env::temp_dir().join(format!("weir-thinned-{name}-{}", process::id()));
        let mut recorder = Recorder::create(&folder, "{}", |_| ControlFlow::Continue(()))
            .expect("a disk with room");
        for t in times {
            recorder.latency(&ping(t));
            recorder.shaper(&change(t));
        }
        recorder.finish(true, Map::new()).expect("a disk with room");
        let part = |table: &str| {
            let path: &Path = &folder.join(table).join("part-000000.parquet");
            Bytes::from(fs::read(path).expect("a part"))
        };
        let parts = [part("latency"), part("shaper")];
        fs::remove_dir_all(folder).expect("the folder just made");
        parts
    }

    #[test]
    fn rows_within_the_spans_are_written_as_a_record_of_them_alone_would_be() {
        let whole = recorded("all", 0..1000);
        let wanted = recorded("some", (100..200).chain(700..701));
        for (number, table) in ["latency", "shaper"].into_iter().enumerate() {
            let all = slice::from_ref(&whole[number]);
            let found = thinned(table, all, 1000, &[100..200, 700..701]);
            let [part] = &found.expect("a table")[..] else { panic!("one part") };
            assert_eq!(part.rows, 101, "{table}");
            assert_eq!(part.content, wanted[number].to_vec(), "{table}");
        }
    }

    #[test]
    fn parts_are_joined_and_none_is_without_rows() {
        let [one, _] = recorded("joined", 0..10);
        let found = thinned("latency", &[one.clone(), one.clone()], 20, slice::from_ref(&(4..6)))
            .expect("a table");
        let [part] = &found[..] else { panic!("one part") };
        let read = read_table("latency", &[part.content.clone().into()], 4, None);
        assert_eq!((part.rows, read.is_some()), (4, true));
        assert_eq!(
            thinned("latency", slice::from_ref(&one), 20, slice::from_ref(&(10..20))),
            Some(Vec::new())
        );
        assert_eq!(
            thinned("latency", &[one.clone(), one.clone()], 9, slice::from_ref(&(4..6))),
            None,
            "too many"
        );
        assert_eq!(thinned("flows", &[one], 20, slice::from_ref(&(4..6))), None, "no times");
    }
}
