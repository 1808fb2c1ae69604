//! Errors of the client, in one sentence each.

use std::fmt;
use std::io;

use weir_core::error_in_words;

/// Why a measurement could not be made or did not come to its end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{sentence}")]
pub struct ClientError {
    sentence: String,
    cause: Cause,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    /// Something failed.
    Failed,
    /// The input cannot be used.
    Input,
}

impl ClientError {
    pub(crate) fn new(sentence: impl Into<String>) -> Self {
        Self { sentence: sentence.into(), cause: Cause::Failed }
    }

    pub(crate) fn io(what: impl fmt::Display, error: &io::Error) -> Self {
        Self::new(format!("{what}: {}", error_in_words(error)))
    }

    /// The input cannot be used.
    pub(crate) fn input(sentence: impl Into<String>) -> Self {
        Self { cause: Cause::Input, ..Self::new(sentence) }
    }

    /// Whether what was given cannot be used, and not something else has failed.
    #[must_use]
    pub fn is_input(&self) -> bool {
        self.cause == Cause::Input
    }
}

impl From<weir_sockets::NetError> for ClientError {
    fn from(error: weir_sockets::NetError) -> Self {
        if error.is_input() { Self::input(error.to_string()) } else { Self::new(error.to_string()) }
    }
}
