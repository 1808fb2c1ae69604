//! Notes of a world on itself, for the manifest.

use serde_json::Value;

use crate::sample::Sink;

/// A [`Sink`] that also keeps what a world says of itself, in the record's manifest.
pub trait RecordSink: Sink {
    /// Keeps `value` under `key`; another one of that key is replaced.
    fn note(&mut self, key: &str, value: Value);
}
