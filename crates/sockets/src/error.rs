//! Errors of sockets and loads.

use std::io;

use weir_core::error_in_words;

/// Why loads or probes could not be set up or failed on the way: one sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct NetError {
    message: String,
    foreign: bool,
    input: bool,
}

impl NetError {
    /// An error with that message.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), foreign: false, input: false }
    }

    /// The server is there, and speaks something else.
    pub(crate) fn foreign(message: impl Into<String>) -> Self {
        Self { foreign: true, ..Self::new(message) }
    }

    /// What was given cannot be used.
    pub(crate) fn input(message: impl Into<String>) -> Self {
        Self { input: true, ..Self::new(message) }
    }

    /// Whether what was given cannot be used, and not something else has failed.
    #[must_use]
    pub const fn is_input(&self) -> bool {
        self.input
    }

    /// Whether the server is there and speaks something else.
    #[must_use]
    pub const fn is_foreign(&self) -> bool {
        self.foreign
    }

    /// The operation, and the error of the kernel.
    pub(crate) fn io(what: impl std::fmt::Display, error: &io::Error) -> Self {
        Self::new(format!("{what}: {}", error_in_words(error)))
    }
}

/// Whether the kernel lets this user do no such thing.
#[must_use]
pub fn is_forbidden(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied
}
