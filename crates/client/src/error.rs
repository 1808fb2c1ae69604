//! What goes wrong, in one sentence.

use std::fmt;
use std::io;

/// Why a measurement could not be made or did not come to its end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ClientError(String);

impl ClientError {
    pub(crate) fn new(sentence: impl Into<String>) -> Self {
        Self(sentence.into())
    }

    pub(crate) fn io(what: impl fmt::Display, error: &io::Error) -> Self {
        Self(format!("{what}: {error}"))
    }
}

impl From<weir_net::NetError> for ClientError {
    fn from(error: weir_net::NetError) -> Self {
        Self(error.to_string())
    }
}

impl From<weir_record::RecordError> for ClientError {
    fn from(error: weir_record::RecordError) -> Self {
        Self(error.to_string())
    }
}
