//! The server as a program: words in, a running server out.

use std::io::{IsTerminal, stderr};
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use clap::Parser;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::sleep;
use tracing_subscriber::EnvFilter;

use crate::error::ServeError;
use crate::options::{LogForm, Options};
use crate::server::{Server, Stop};

/// Why there is no server: words for the user, and what the program returns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What to print: the help that was asked for, or one sentence.
    pub message: String,
    /// 0 after help, 1 if something cannot be had, 2 if the words or the files that they name are wrong.
    pub exit_code: u8,
}

/// A server at work on threads of its own.
pub struct Running {
    stop: Stop,
    addresses: Vec<SocketAddr>,
    ended: Mutex<Receiver<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Reads the words of a command line, the first of which is the program's name, and starts the server.
///
/// # Errors
/// If the words are wrong or ask for help, or the server cannot start.
pub fn serve(words: &[String]) -> Result<Running, Failure> {
    let options = Options::try_parse_from(words).map_err(|error| {
        let asked = !error.use_stderr();
        Failure {
            message: if asked { error.render().to_string() } else { sentence(&error) },
            exit_code: if asked { 0 } else { 2 },
        }
    })?;
    start_log(&options);
    Running::start(options).map_err(|error| Failure {
        message: error.to_string(),
        exit_code: if error.is_input() { 2 } else { 1 },
    })
}

impl Running {
    /// Starts a server.
    ///
    /// # Errors
    /// If it cannot start.
    pub fn start(options: Options) -> Result<Self, ServeError> {
        let runtime = Runtime::new().map_err(|error| ServeError::io("starting threads", &error))?;
        let bound = {
            let _within = runtime.enter();
            Server::bind(options)
        };
        let server = match bound {
            Ok(server) => server,
            Err(error) => {
                // Waits for nothing: it may be dropped anywhere.
                runtime.shutdown_background();
                return Err(error);
            }
        };
        let (stop, addresses) = (server.stop(), server.addresses().to_vec());
        let (end, ended) = channel();
        let thread = thread::Builder::new()
            .name("server".into())
            .spawn(move || {
                runtime.block_on(server.run());
                runtime.shutdown_timeout(SHUTDOWN);
                // Nobody may be waiting.
                let _ = end.send(());
            })
            .map_err(|error| ServeError::io("starting a thread", &error))?;
        Ok(Self { stop, addresses, ended: Mutex::new(ended), thread: Some(thread) })
    }

    /// Where it listens.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// What ends it.
    #[must_use]
    pub fn stopper(&self) -> Stop {
        self.stop.clone()
    }

    /// Serves until a signal asks for the end (SIGINT, SIGTERM, SIGHUP); a second one ends the process at
    /// once. Returns when the server has ended.
    ///
    /// # Errors
    /// If signals cannot be had.
    pub fn until_signal(&self) -> Result<(), ServeError> {
        let fail = |error| ServeError::io("waiting for signals", &error);
        let runtime = Builder::new_current_thread().enable_all().build().map_err(fail)?;
        runtime.block_on(async {
            let mut signals = Signals::new().map_err(fail)?;
            let mut asked = false;
            while !self.wait(Duration::ZERO) {
                tokio::select! {
                    () = signals.next() => {
                        if asked {
                            std::process::exit(INTERRUPTED);
                        }
                        asked = true;
                        self.stop.stop();
                    }
                    () = sleep(LOOK) => {}
                }
            }
            Ok(())
        })
    }

    /// Waits for its end, so long at most; true once it has ended.
    #[must_use]
    pub fn wait(&self, longest: Duration) -> bool {
        let ended = self.ended.lock().expect("nothing panics while it is held");
        !matches!(ended.recv_timeout(longest), Err(RecvTimeoutError::Timeout))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.stop();
        if let Some(thread) = self.thread.take() {
            // It ends within a few seconds, and has nothing to say.
            let _ = thread.join();
        }
    }
}

/// What is wrong with the words, and what is allowed instead. `clap` has the latter on lines of its own, and
/// repeats the usage.
fn sentence(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let first = text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
    let listed = |kind| match error.get(kind) {
        Some(ContextValue::Strings(all)) if !all.is_empty() => Some(all.join(", ")),
        _ => None,
    };
    match error.kind() {
        ErrorKind::MissingRequiredArgument => {
            listed(ContextKind::InvalidArg).map_or(first, |missing| format!("write {missing} too"))
        }
        _ => listed(ContextKind::ValidValue)
            .map_or(first.clone(), |allowed| format!("{first}: write one of {allowed}")),
    }
}

/// Signals that ask for an end.
struct Signals([Signal; 3]);

impl Signals {
    fn new() -> std::io::Result<Self> {
        let on = |kind| signal(kind);
        Ok(Self([
            on(SignalKind::interrupt())?,
            on(SignalKind::terminate())?,
            on(SignalKind::hangup())?,
        ]))
    }

    async fn next(&mut self) {
        let [one, two, three] = &mut self.0;
        tokio::select! {
            _ = one.recv() => {}
            _ = two.recv() => {}
            _ = three.recv() => {}
        }
    }
}

/// Starts the log on standard error. A second server in one process shares the log of the first.
fn start_log(options: &Options) {
    let level = if options.verbose { "weir_serve=debug" } else { "weir_serve=info" };
    let builder = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(level))
        .with_writer(stderr)
        .with_target(false)
        .with_ansi(stderr().is_terminal());
    let _ = match options.log {
        LogForm::Text => builder.try_init(),
        LogForm::Json => builder.json().flatten_event(true).try_init(),
    };
}

/// What a shell expects after SIGINT.
const INTERRUPTED: i32 = 130;
/// How soon its end is noticed.
const LOOK: Duration = Duration::from_millis(50);
/// What tasks that do not end get after the server's own patience.
const SHUTDOWN: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    fn said(words: &str) -> String {
        let words = ["weir serve"].into_iter().chain(words.split_whitespace());
        let error = Options::try_parse_from(words).expect_err("the words are wrong");
        sentence(&error)
    }

    #[test]
    fn wrong_words_are_told_with_what_is_allowed() {
        assert_eq!(said("--cert x.pem"), "write --key <FILE> too");
        let log = said("--log xml");
        assert_eq!(log, "invalid value 'xml' for '--log <LOG>': write one of text, json");
        let services = "page, weir, ndt7, msak, cloudflare, librespeed, ookla, rpm, irtt, metrics";
        assert!(said("--without all").ends_with(&format!(": write one of {services}")));
        for number in ["0", "-1", "x", "4294967296"] {
            let text = said(&format!("--max-tests {number}"));
            assert!(text.ends_with(": write a number from 1 to 4294967295"), "{text}");
        }
        assert!(
            said("--max-rate 10").ends_with(": write 1kbit or more (a number alone means bit/s)")
        );
        assert!(
            said("--max-duration 10").ends_with(": write 1s to 86400s (a number alone means us)")
        );
        assert_eq!(said("--foo"), "unexpected argument '--foo' found");
    }
}
