//! `weir-agent`: Weir's shaper, pings, test and server as one small program, for machines without Python.

mod ending;
mod failure;
mod once;
mod ping;
mod replay;
#[cfg(feature = "serve")]
mod serve;
mod shape;
mod terminal;
#[cfg(feature = "test")]
mod test;
mod words;

use std::ffi::OsString;
use std::process::ExitCode;

use crate::failure::Failure;
use crate::terminal::{print, tell};

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
