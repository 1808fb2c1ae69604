//! What commands take from the command line.

use std::ffi::OsString;

use lexopt::{Arg, Parser, ValueExt};
use weir_core::nearest;

use crate::failure::Failure;

/// The value of the option `--NAME`, behind `=` or as the next word, which is then no option itself.
pub(crate) fn value(parser: &mut Parser, name: &str) -> Result<OsString, Failure> {
    if let Some(value) = parser.optional_value() {
        return Ok(value);
    }
    let next = parser.raw_args()?.next();
    match next {
        None => {
            Err(Failure::usage(format!("`--{name}` lacks its value: write it after the option")))
        }
        Some(word) if word.as_encoded_bytes().starts_with(b"--") => Err(Failure::usage(format!(
            "`--{name}` lacks its value, since `{}` follows it",
            word.to_string_lossy()
        ))),
        Some(word) => Ok(word),
    }
}

/// The value of the option `--NAME` as text.
pub(crate) fn text(parser: &mut Parser, name: &str) -> Result<String, Failure> {
    Ok(value(parser, name)?.string()?)
}

/// The whole number that comes next, the value of the option `--NAME`.
pub(crate) fn whole(
    parser: &mut Parser,
    name: &str,
    least: u64,
    most: u64,
) -> Result<u64, Failure> {
    let word = text(parser, name)?;
    match word.parse() {
        Ok(number) if (least..=most).contains(&number) => Ok(number),
        _ => Err(Failure::usage(format!(
            "{name} `{word}`: write a whole number from {least} to {most}"
        ))),
    }
}

/// Why a word is not taken by a command whose options are those that its `help` names.
pub(crate) fn unexpected(word: Arg<'_>, help: &str) -> Failure {
    let option = match word {
        Arg::Long(name) => name,
        Arg::Short(letter) => {
            return Failure::usage(format!("`-{letter}` is no option; `--help` lists all"));
        }
        Arg::Value(word) => {
            return Failure::usage(format!(
                "`{}` is a word too many; `--help` says what may be written",
                word.to_string_lossy()
            ));
        }
    };
    let known: Vec<&str> = help
        .split(|letter: char| letter != '-' && !letter.is_ascii_alphanumeric())
        .filter_map(|part| part.strip_prefix("--").filter(|name| !name.is_empty()))
        .collect();
    let near = nearest(option, known)
        .map_or_else(|| ";".to_owned(), |name| format!(", did you mean `--{name}`?"));
    Failure::usage(format!("`--{option}` is no option{near} `--help` lists all"))
}
