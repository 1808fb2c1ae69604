//! `weir-agent`: Weir's shaper, pings, test and server as one small program, for machines without Python.

mod ending;
mod once;
mod ping;
mod replay;
#[cfg(feature = "serve")]
mod serve;
mod shape;
#[cfg(feature = "test")]
mod test;

use std::ffi::OsString;
use std::io::{Write, stderr, stdout};
use std::process::ExitCode;

use lexopt::ValueExt;
use weir_core::error_in_words;
use weir_shape::ShapeError;

/// `weir-agent COMMAND`; the commands are those of `weir`.
fn main() -> ExitCode {
    weir_shape::call_program(env!("CARGO_PKG_NAME"));
    let mut words = std::env::args_os().skip(1);
    let command = words.next().map(|word| word.to_string_lossy().into_owned());
    let rest: Vec<OsString> = words.collect();
    let done = match command.as_deref() {
        Some("shape") => shape::run(rest),
        Some("replay") => replay::run(rest),
        Some("ping") => ping::run(rest),
        #[cfg(feature = "test")]
        Some("test") => test::run(rest),
        #[cfg(feature = "serve")]
        Some("serve") => serve::run(&rest),
        Some("-h" | "--help" | "help") => print(HELP),
        Some("-V" | "--version") => print(&format!("weir-agent {}\n", env!("CARGO_PKG_VERSION"))),
        Some(other) => {
            Err(Failure::usage(format!("`{other}` is no command: there are {COMMANDS}")))
        }
        None => Err(Failure::usage(format!("say what to do: {COMMANDS}"))),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            tell(&failure.message);
            failure.code.into()
        }
    }
}

/// Why a command failed: one sentence, and the exit code.
struct Failure {
    message: String,
    code: u8,
}

impl Failure {
    /// What was given cannot be used.
    fn usage(message: impl Into<String>) -> Self {
        Self { message: message.into(), code: 2 }
    }

    /// Something else.
    fn other(message: impl Into<String>) -> Self {
        Self { message: message.into(), code: 1 }
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

/// The whole number that comes next, the value of the option `--NAME`.
fn whole(parser: &mut lexopt::Parser, name: &str, least: u64, most: u64) -> Result<u64, Failure> {
    let word = parser.value()?.string()?;
    match word.parse() {
        Ok(number) if (least..=most).contains(&number) => Ok(number),
        _ => Err(Failure::usage(format!(
            "{name} `{word}`: write a whole number from {least} to {most}"
        ))),
    }
}

/// Prints what was asked for.
fn print(text: &str) -> Result<(), Failure> {
    stdout().write_all(text.as_bytes()).and_then(|()| stdout().flush()).map_err(|error| {
        Failure::other(format!("cannot write to standard output: {}", error_in_words(&error)))
    })
}

/// Tells what goes on.
fn tell(message: &str) {
    // The exit code says it too, where standard error cannot be written to.
    let _ = stderr().write_all(format!("weir-agent: {message}\n").as_bytes());
}

const COMMANDS: &str = match (cfg!(feature = "test"), cfg!(feature = "serve")) {
    (true, true) => "`shape`, `replay`, `ping`, `test`, `serve`",
    (true, false) => "`shape`, `replay`, `ping`, `test` (built without `serve`)",
    (false, true) => "`shape`, `replay`, `ping`, `serve` (built without `test`)",
    (false, false) => "`shape`, `replay`, `ping` (built without `test` and `serve`)",
};

const HELP: &str = "Weir's shaper, pings, test and server as one small program.

Usage: weir-agent COMMAND [OPTIONS]

  shape IFACE    keeps latency low under load on a network interface
  replay LOG     runs the controller over the log of a shaper
  ping HOST      pings a host
  test HOST      measures the path to a server and grades it, if it was built with it
  serve          a server that measurements go to, if it was built with it

`weir-agent COMMAND --help` lists the options.
";
