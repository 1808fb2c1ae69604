//! What goes wrong, in one sentence.

use std::fmt;
use std::io;

/// Why a measurement could not be made or did not come to its end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{sentence}")]
pub struct ClientError {
    sentence: String,
    foreign: bool,
}

impl ClientError {
    pub(crate) fn new(sentence: impl Into<String>) -> Self {
        Self { sentence: sentence.into(), foreign: false }
    }

    pub(crate) fn io(what: impl fmt::Display, error: &io::Error) -> Self {
        Self::new(format!("{what}: {error}"))
    }

    /// The server is there, and speaks something else.
    pub(crate) fn foreign(sentence: impl Into<String>) -> Self {
        Self { foreign: true, ..Self::new(sentence) }
    }

    pub(crate) const fn is_foreign(&self) -> bool {
        self.foreign
    }
}

impl From<weir_net::NetError> for ClientError {
    fn from(error: weir_net::NetError) -> Self {
        Self::new(error.to_string())
    }
}

impl From<weir_record::RecordError> for ClientError {
    fn from(error: weir_record::RecordError) -> Self {
        Self::new(error.to_string())
    }
}
