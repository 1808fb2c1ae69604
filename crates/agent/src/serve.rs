//! `weir-agent serve`: the server; the options are those of `weir serve`.

use std::ffi::OsString;

use crate::failure::Failure;
use crate::terminal::print;

pub(crate) fn run(options: &[OsString]) -> Result<(), Failure> {
    let mut words = vec!["weir-agent serve".to_owned()];
    words.extend(options.iter().map(|word| word.to_string_lossy().into_owned()));
    match weir_serve::serve(&words) {
        Err(failure) if failure.exit_code == 0 => print(&failure.message),
        Err(failure) => Err(Failure { message: failure.message, code: failure.exit_code }),
        Ok(running) => running.until_signal().map_err(|error| Failure::other(error.to_string())),
    }
}
