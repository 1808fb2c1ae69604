//! Why a server does not start.

use std::io;
use std::path::Path;

use weir_core::error_in_words;

/// One sentence for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{sentence}")]
pub struct ServeError {
    sentence: String,
    is_input: bool,
}

impl ServeError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { sentence: message.into(), is_input: false }
    }

    /// An error of the user's input: a value or a file that cannot be used.
    pub(crate) fn input(message: impl Into<String>) -> Self {
        Self { is_input: true, ..Self::new(message) }
    }

    /// Whether what was given cannot be used, and not something else has failed.
    #[must_use]
    pub const fn is_input(&self) -> bool {
        self.is_input
    }

    /// An error of the system: says what was tried, then what the system said.
    pub(crate) fn io(what: impl std::fmt::Display, error: &io::Error) -> Self {
        Self::new(format!("{what}: {}", error_in_words(error)))
    }

    /// A file that could not be read.
    pub(crate) fn file(what: &str, file: &Path, error: &io::Error) -> Self {
        Self { is_input: true, ..Self::io(format_args!("{what} `{}`", file.display()), error) }
    }
}
