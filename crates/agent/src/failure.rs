//! How commands fail.

use weir_shape::ShapeError;

/// Why a command failed: one sentence, and the exit code.
pub(crate) struct Failure {
    pub message: String,
    pub code: u8,
}

impl Failure {
    /// What was given cannot be used.
    pub fn usage(message: impl Into<String>) -> Self {
        Self { message: message.into(), code: 2 }
    }

    /// Something else.
    pub fn other(message: impl Into<String>) -> Self {
        Self { message: message.into(), code: 1 }
    }

    /// The same failure, said to be of `place`.
    pub fn within(self, place: &str) -> Self {
        Self { message: format!("{place}: {}", self.message), ..self }
    }
}

impl From<ShapeError> for Failure {
    fn from(error: ShapeError) -> Self {
        Self { message: error.to_string(), code: if error.is_input() { 2 } else { 1 } }
    }
}

impl From<lexopt::Error> for Failure {
    fn from(error: lexopt::Error) -> Self {
        Self::usage(error.to_string())
    }
}
