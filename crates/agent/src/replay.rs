//! `weir-agent replay`: the controller over the log of a shaper.

use std::ffi::OsString;
use std::path::PathBuf;

use lexopt::prelude::*;

use crate::failure::Failure;
use crate::terminal::{print, tell};
use crate::words::{text, unexpected};

pub(crate) fn run(words: Vec<OsString>) -> Result<(), Failure> {
    let (mut log, mut mode, mut json) = (None, None, false);
    let mut parser = lexopt::Parser::from_args(words);
    while let Some(word) = parser.next()? {
        match word {
            Long("help") | Short('h') => return print(HELP),
            Long("json") => json = true,
            Long("mode") => mode = Some(text(&mut parser, "mode")?),
            Value(file) if log.is_none() => log = Some(PathBuf::from(file)),
            other => return Err(unexpected(other, HELP)),
        }
    }
    let Some(log) = log else {
        return Err(Failure::usage("say which log: `weir-agent replay LOG`"));
    };
    let mode = mode
        .map(|word| {
            serde_json::from_value(word.as_str().into())
                .map_err(|_| Failure::usage(format!("mode `{word}`: write 'ping' or 'bandwidth'")))
        })
        .transpose()?;
    let text = weir_shape::read_text(&log, weir_shape::MAX_LOG_BYTES)
        .map_err(|why| Failure::usage(format!("log `{}` cannot be read: {why}", log.display())))?;
    let mut failed = None;
    let mut show = |line: &str| {
        let said = if json { Ok(line.to_owned()) } else { weir_shape::decision_line(line) };
        let shown = said.map_err(Failure::from).and_then(|said| print(&format!("{said}\n")));
        failed = failed.take().or(shown.err());
    };
    let done = weir_shape::replay(&text, mode, &mut show).map_err(Failure::from);
    let [logged, made, same] =
        done.map_err(|failure| failure.within(&format!("log `{}`", log.display())))?;
    match failed {
        Some(failure) => Err(failure),
        None => {
            tell(&format!("{made} decisions; the log has {logged}, of which {same} are the same"));
            Ok(())
        }
    }
}

const HELP: &str = "Runs the controller over what went into it, and shows what it would have done.

Usage: weir-agent replay LOG [--mode ping|bandwidth] [--json]

  --mode MODE    decides by another mode than the log's
  --json         prints each decision as JSON
";
