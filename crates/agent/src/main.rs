//! `weir-agent`: Weir's server as one small program, for machines without Python.

use std::io::{Write, stderr, stdout};
use std::process::ExitCode;

/// `weir-agent serve [OPTIONS]`; the options are those of `weir serve`.
fn main() -> ExitCode {
    let words: Vec<String> =
        std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    match words.get(1).map(String::as_str) {
        Some("serve") => serve(&words[2..]),
        Some("-h" | "--help" | "help") => print(&format!("{HELP}\n")),
        Some("-V" | "--version") => print(&format!("weir-agent {}\n", env!("CARGO_PKG_VERSION"))),
        Some(other) => fail(&format!("`{other}` is no command: there is `serve`"), 2),
        None => fail("say what to do: `weir-agent serve`", 2),
    }
}

fn serve(options: &[String]) -> ExitCode {
    let mut words = vec!["weir-agent serve".to_owned()];
    words.extend_from_slice(options);
    match weir_serve::serve(&words) {
        Err(failure) if failure.exit_code == 0 => print(&failure.message),
        Err(failure) => fail(&failure.message, failure.exit_code),
        Ok(running) => match running.until_signal() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => fail(&error.to_string(), 1),
        },
    }
}

/// Prints what was asked for.
fn print(text: &str) -> ExitCode {
    match stdout().write_all(text.as_bytes()).and_then(|()| stdout().flush()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&format!("cannot write to standard output: {error}"), 1),
    }
}

fn fail(message: &str, code: u8) -> ExitCode {
    // The code says it too, where standard error cannot be written to.
    let _ = stderr().write_all(format!("weir-agent: {message}\n").as_bytes());
    code.into()
}

const HELP: &str = "Weir's server as one small program.

Usage: weir-agent serve [OPTIONS]

`weir-agent serve --help` lists the options.";
