//! What commands write.

use std::io::{Write, stderr, stdout};

use weir_core::error_in_words;

use crate::failure::Failure;

/// Prints what was asked for.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    stdout().write_all(text.as_bytes()).and_then(|()| stdout().flush()).map_err(|error| {
        Failure::other(format!("cannot write to standard output: {}", error_in_words(&error)))
    })
}

/// Tells what goes on.
pub(crate) fn tell(message: &str) {
    // The exit code says it too, where standard error cannot be written to.
    let _ = stderr().write_all(format!("weir-agent: {message}\n").as_bytes());
}
