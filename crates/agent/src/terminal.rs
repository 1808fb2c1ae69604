//! What commands take from the command line, and write.

use std::io::{Write, stderr, stdout};

use lexopt::ValueExt;
use weir_core::error_in_words;

use crate::failure::Failure;

/// The whole number that comes next, the value of the option `--NAME`.
pub(crate) fn whole(
    parser: &mut lexopt::Parser,
    name: &str,
    least: u64,
    most: u64,
) -> Result<u64, Failure> {
    let word = parser.value()?.string()?;
    match word.parse() {
        Ok(number) if (least..=most).contains(&number) => Ok(number),
        _ => Err(Failure::usage(format!(
            "{name} `{word}`: write a whole number from {least} to {most}"
        ))),
    }
}

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
