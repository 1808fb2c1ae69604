//! Writes the record of a run: a manifest and append-only Parquet tables; or keeps its rows in memory. Reads tables
//! back ([`read_table`]), and
//! writes those of a span of time again ([`thinned`]). Also writes files of packets ([`pcapng`]).
//!
//! A record is a directory: `manifest.json`, and for each table a folder of part files that sort by
//! name. A part appears under its name only when it is whole, so a run that is killed at any moment leaves
//! a readable record; its manifest then still says that the run was not completed.

mod columns;
pub mod pcapng;
mod read;
mod recorder;
mod rows;
mod table;
mod tables;
mod thinned;

pub use columns::Content;
pub use read::read_table;
pub use recorder::{RecordError, Recorder};
pub use rows::{Named, Rows};
pub use thinned::{Thinned, thinned};
