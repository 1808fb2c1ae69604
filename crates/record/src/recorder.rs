//! A record while it is being written.

use std::fs;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration as WallDuration, Instant};

use serde_json::{Map, Value, json};
use weir_core::{Time, error_in_words};
use weir_scenario::{
    EmulatorRow, FlowRow, LatencyRow, MethodRow, QueueRow, RecordSink, ShaperRow, Sink, TcpRow,
    ThroughputRow, TransferRow, UdpRow,
};

use crate::tables::Tables;

/// Writes a record as samples come in.
///
/// Rows are kept in memory for a quarter of a second at most and then written as whole part files.
pub struct Recorder<'a> {
    folder: PathBuf,
    manifest: Map<String, Value>,
    tables: Tables,
    flushed_at: Instant,
    failure: Option<io::Error>,
    /// Hears of progress, and may end the run.
    on_progress: Box<dyn FnMut(Time) -> ControlFlow<()> + Send + 'a>,
}

/// Why a record cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The folder of the record is not empty.
    #[error("`{}` exists and is not empty: choose another folder for the record", .0.display())]
    Occupied(PathBuf),
    /// The manifest is not a JSON object.
    #[error("the manifest is not a JSON object: {0}")]
    Manifest(String),
    /// The file system said no.
    #[error("the record in `{}` cannot be written: {}", .folder.display(), error_in_words(.source))]
    Io {
        /// The record's folder.
        folder: PathBuf,
        /// The file system's error.
        source: io::Error,
    },
}

impl<'a> Recorder<'a> {
    /// Starts a record in `folder`, which must be empty or not exist. `manifest` is what is known before
    /// the run, a JSON object; `on_progress` is called while the run goes on and may end it.
    ///
    /// # Errors
    /// If the folder is not empty or cannot be written.
    pub fn create(
        folder: &Path,
        manifest: &str,
        on_progress: impl FnMut(Time) -> ControlFlow<()> + Send + 'a,
    ) -> Result<Self, RecordError> {
        let fail = |source| RecordError::Io { folder: folder.to_owned(), source };
        fs::create_dir_all(folder).map_err(fail)?;
        if fs::read_dir(folder).map_err(fail)?.next().is_some() {
            return Err(RecordError::Occupied(folder.to_owned()));
        }
        let manifest: Map<String, Value> = serde_json::from_str(manifest)
            .map_err(|error| RecordError::Manifest(error.to_string()))?;
        let mut recorder = Self {
            folder: folder.to_owned(),
            manifest,
            tables: Tables::new(folder),
            flushed_at: Instant::now(),
            failure: None,
            on_progress: Box::new(on_progress),
        };
        recorder.manifest.insert("complete".to_owned(), Value::Bool(false));
        recorder.write_manifest().map_err(fail)?;
        Ok(recorder)
    }

    /// Ends the record: writes what is in memory and the last word of the manifest. `outcome` is added
    /// to it, a JSON object.
    ///
    /// # Errors
    /// If anything could not be written, now or before.
    pub fn finish(
        mut self,
        complete: bool,
        outcome: Map<String, Value>,
    ) -> Result<(), RecordError> {
        self.flush();
        let folder = self.folder.clone();
        let fail = |source| RecordError::Io { folder, source };
        if let Some(failure) = self.failure.take() {
            return Err(fail(failure));
        }
        self.manifest.extend(outcome);
        let written = self.written();
        self.manifest.insert("tables".to_owned(), written);
        self.manifest.insert("complete".to_owned(), Value::Bool(complete));
        self.write_manifest().map_err(fail)
    }

    /// Writes the rows in memory. The first failure is kept and ends the run at its next progress.
    fn flush(&mut self) {
        self.flushed_at = Instant::now();
        for table in self.tables.each() {
            if let Err(error) = table.flush() {
                self.failure.get_or_insert(error);
                return;
            }
        }
    }

    /// Part files, rows and digest of each table, by its name. A run that is killed has no such key.
    fn written(&mut self) -> Value {
        let written = self.tables.each().into_iter().filter_map(|table| table.written());
        let tables = written.map(|one| {
            let of = json!({ "parts": one.parts, "rows": one.rows, "sha256": one.sha256 });
            (one.table, of)
        });
        Value::Object(tables.collect())
    }

    fn write_manifest(&self) -> io::Result<()> {
        let path = self.folder.join("manifest.json");
        let unfinished = path.with_extension("unfinished");
        let mut text = serde_json::to_string_pretty(&self.manifest).expect("plain JSON");
        text.push('\n');
        fs::write(&unfinished, text)?;
        fs::rename(unfinished, path)
    }
}

impl RecordSink for Recorder<'_> {
    fn note(&mut self, key: &str, value: Value) {
        self.manifest.insert(key.to_owned(), value);
        if let Err(error) = self.write_manifest() {
            self.failure.get_or_insert(error);
        }
    }
}

#[deny(clippy::missing_trait_methods)]
impl Sink for Recorder<'_> {
    fn latency(&mut self, row: &LatencyRow) {
        self.tables.latency.append(row);
    }

    fn throughput(&mut self, row: &ThroughputRow) {
        self.tables.throughput.append(row);
    }

    fn tcp(&mut self, row: &TcpRow) {
        self.tables.tcp.append(row);
    }

    fn udp(&mut self, row: &UdpRow) {
        self.tables.udp.append(row);
    }

    fn transfer(&mut self, row: &TransferRow) {
        self.tables.transfers.append(row);
    }

    fn queue(&mut self, row: &QueueRow<'_>) {
        self.tables.queue.append(row);
    }

    fn emulator(&mut self, row: &EmulatorRow) {
        self.tables.emulator.append(row);
    }

    fn shaper(&mut self, row: &ShaperRow<'_>) {
        self.tables.shaper.append(row);
    }

    fn method(&mut self, row: &MethodRow<'_>) {
        self.tables.method.append(row);
    }

    fn flow(&mut self, row: &FlowRow) {
        self.tables.flows.append(row);
    }

    fn progress(&mut self, now: Time) -> ControlFlow<()> {
        let long = self.tables.each().iter().any(|table| table.rows() >= FLUSH_ROWS);
        if long || self.flushed_at.elapsed() >= FLUSH_EVERY {
            self.flush();
        }
        if self.failure.is_some() { ControlFlow::Break(()) } else { (self.on_progress)(now) }
    }
}

/// A run that is killed loses no more than this.
const FLUSH_EVERY: WallDuration = WallDuration::from_millis(250);
/// Bounds the memory of a run that makes many samples.
const FLUSH_ROWS: usize = 100_000;

#[cfg(test)]
mod tests {
    use std::env;
    use std::fs;
    use std::ops::ControlFlow;
    use std::process;

    use serde_json::{Map, Value};
    use sha2::{Digest, Sha256};
    use weir_core::Time;
    use weir_scenario::{Sink, ThroughputRow};

    use super::Recorder;

    #[test]
    fn the_manifest_counts_rows_and_parts_and_has_the_digest_of_their_bytes() {
        let folder = env::temp_dir().join(format!("weir-recorder-{}", process::id()));
        let mut recorder = Recorder::create(&folder, "{}", |_| ControlFlow::Continue(()))
            .expect("an empty folder");
        for part in 0..2 {
            for flow in 0..3 {
                let t = Time::from_nanos(part);
                recorder.throughput(&ThroughputRow { t, flow, bytes: 1, wire_bytes: 2 });
            }
            recorder.flush();
        }
        recorder.finish(true, Map::new()).expect("a disk with room");

        let text = fs::read_to_string(folder.join("manifest.json")).expect("a manifest");
        let manifest: Value = serde_json::from_str(&text).expect("JSON");
        let table = folder.join("throughput");
        let mut digest = Sha256::new();
        for part in ["part-000000.parquet", "part-000001.parquet"] {
            digest.update(fs::read(table.join(part)).expect("a part file"));
        }
        let hex: String = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        let tables = &manifest["tables"];
        assert_eq!(tables["throughput"]["parts"], 2);
        assert_eq!(tables["throughput"]["rows"], 6);
        assert_eq!(tables["throughput"]["sha256"], hex);
        assert_eq!(tables.get("latency"), None, "a table without a row has no parts");
        fs::remove_dir_all(folder).expect("the folder just made");
    }
}
