//! The simulator for pages in a browser: the text of a scenario goes in, columns of numbers come out.
//!
//! [`Prepared`] reads and resolves a text with the code that `weir run` uses, [`Columns`] takes the rows of a run as the
//! record's tables have them, and [`summarise`] makes the figures of `weirlab.stats.summarise` of them. `binding.rs`, which
//! is compiled for WebAssembly only, gives these to JavaScript.

#[cfg(target_arch = "wasm32")]
mod binding;
mod columns;
mod prepare;
mod summary;

pub use columns::{ColumnValues, Columns, FilledTable, Texts};
pub use prepare::{Prepared, Recordings, recordings_of};
pub use summary::{DirectionSummary, Distribution, LatencySummary, Summary, summarise};
