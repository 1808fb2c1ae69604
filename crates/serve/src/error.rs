//! Why a server does not start.

use std::io;
use std::path::Path;

/// One sentence for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ServeError(String);

impl ServeError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }

    /// What was tried, and what the system said.
    pub(crate) fn io(what: impl std::fmt::Display, error: &io::Error) -> Self {
        let text = error.to_string();
        let text = text.split(" (os error").next().unwrap_or_default();
        Self(format!("{what}: {}", text.to_lowercase()))
    }

    /// A file that could not be read.
    pub(crate) fn file(what: &str, file: &Path, error: &io::Error) -> Self {
        Self::io(format_args!("{what} `{}`", file.display()), error)
    }
}
