//! The server as a program: words in, a running server out.

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

use crate::error::ServeError;
use crate::log;
use crate::options::Options;
use crate::server::{Server, Stop};

/// Why there is no server: words for the user, and what the program returns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Text to print: the help that was asked for, or one sentence.
    pub message: String,
    /// 0 after help, 1 if something cannot be had, 2 if the words or the files that they name are wrong.
    pub exit_code: u8,
}

/// A server at work on threads of its own.
pub struct Running {
    stop: Stop,
    addresses: Vec<SocketAddr>,
    ended: Mutex<Ended>,
    thread: Option<JoinHandle<()>>,
}

/// How the server ended, once it has.
struct Ended {
    news: Receiver<Result<(), ServeError>>,
    outcome: Option<Result<(), ServeError>>,
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
    log::start(&options).and_then(|()| Running::start(options)).map_err(|error| Failure {
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
        let (end, news) = channel();
        let thread = thread::Builder::new()
            .name("server".into())
            .spawn(move || {
                let outcome = runtime.block_on(server.run());
                runtime.shutdown_timeout(SHUTDOWN);
                log::flush();
                // Nobody may be waiting.
                let _ = end.send(outcome);
            })
            .map_err(|error| ServeError::io("starting a thread", &error))?;
        Ok(Self {
            stop,
            addresses,
            ended: Mutex::new(Ended { news, outcome: None }),
            thread: Some(thread),
        })
    }

    /// Addresses on which the server listens.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// A handle that ends the server.
    #[must_use]
    pub fn stopper(&self) -> Stop {
        self.stop.clone()
    }

    /// Serves until a signal asks for the end (SIGINT, SIGTERM, SIGHUP); a second one ends the process at
    /// once. Returns when the server has ended.
    ///
    /// # Errors
    /// If signals cannot be had, or the server ended by itself: then why.
    pub fn until_signal(&self) -> Result<(), ServeError> {
        let fail = |error| ServeError::io("waiting for signals", &error);
        let runtime = Builder::new_current_thread().enable_all().build().map_err(fail)?;
        runtime.block_on(async {
            let mut signals = Signals::new().map_err(fail)?;
            let mut asked = false;
            loop {
                if let Some(outcome) = self.wait(Duration::ZERO) {
                    return outcome;
                }
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
        })
    }

    /// Waits for the server's end, for `longest` at most; `None` if it still runs.
    ///
    /// Once it has ended: an error if it was not told to.
    #[must_use]
    pub fn wait(&self, longest: Duration) -> Option<Result<(), ServeError>> {
        let mut ended = self.ended.lock().expect("nothing panics while it is held");
        if ended.outcome.is_none() {
            ended.outcome = match ended.news.recv_timeout(longest) {
                Ok(outcome) => Some(outcome),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => {
                    Some(Err(ServeError::new("the server ended by a bug: please report it")))
                }
            };
        }
        ended.outcome.clone()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.now();
        if let Some(thread) = self.thread.take() {
            // It ends within a few seconds, and has nothing to say.
            let _ = thread.join();
        }
    }
}

/// One sentence that says what is wrong with the words of the command line, and what is allowed instead.
///
/// `clap` prints what is allowed on lines of its own, and repeats the usage.
fn sentence(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let first = text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
    let named = |kind| match error.get(kind) {
        Some(ContextValue::String(one)) => Some(one.clone()),
        Some(ContextValue::Strings(all)) if !all.is_empty() => Some(all.join(", ")),
        _ => None,
    };
    let option = named(ContextKind::InvalidArg).unwrap_or_default();
    match error.kind() {
        ErrorKind::MissingRequiredArgument => format!("write {option} too"),
        ErrorKind::ArgumentConflict => format!("{option} is given twice: give it once"),
        ErrorKind::UnknownArgument if option == "--log" => {
            "--log is now --json: a log of one JSON object a line; without it the log is text"
                .into()
        }
        ErrorKind::UnknownArgument if !option.starts_with('-') => {
            format!(
                "`{option}` is no option: all options of this command begin with --, see --help"
            )
        }
        ErrorKind::UnknownArgument => match named(ContextKind::SuggestedArg) {
            Some(alike) => format!("there is no option {option}: do you mean {alike}?"),
            None => format!("there is no option {option}: see --help"),
        },
        // An option at the end of the line, or one whose value is empty.
        ErrorKind::InvalidValue
            if named(ContextKind::InvalidValue).is_none_or(|it| it.is_empty()) =>
        {
            format!("{option} needs a value")
        }
        ErrorKind::TooManyValues => format!("{option} takes no value"),
        _ => named(ContextKind::ValidValue)
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

/// Exit code after SIGINT, as shells expect it.
const INTERRUPTED: i32 = 130;
/// How soon its end is noticed.
const LOOK: Duration = Duration::from_millis(50);
/// Time that tasks have to end in, once the server's own patience is over.
const SHUTDOWN: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::Service;

    fn said(words: &str) -> String {
        let words = ["weir serve"].into_iter().chain(words.split_whitespace());
        let error = Options::try_parse_from(words).expect_err("the words are wrong");
        sentence(&error)
    }

    #[test]
    fn wrong_words_are_told_with_what_is_allowed() {
        assert_eq!(said("--cert x.pem"), "write --key <FILE> too");
        let services: Vec<_> = Service::all().iter().map(|one| one.name()).collect();
        let services = services.join(", ");
        assert!(said("--without all").ends_with(&format!(": write one of {services}")));
        for number in ["0", "-1", "x", "4294967296"] {
            for option in ["tests", "tests-per-address", "connections", "connections-per-address"] {
                let text = said(&format!("--max-{option} {number}"));
                assert!(text.ends_with(": write a number from 1 to 4294967295"), "{text}");
            }
            let text = said(&format!("--max-echo-rate {number}"));
            assert!(text.ends_with(": write a number from 1 to 4294967295"), "{text}");
        }
        for port in ["-1", "x", "65536", "0.5"] {
            let text = said(&format!("--irtt-port {port}"));
            assert!(text.ends_with(": write a port from 0 (any that is free) to 65535"), "{text}");
        }
        for rate in ["10", "1000000", "999bit", "fast"] {
            let text = said(&format!("--max-rate {rate}"));
            assert!(
                text.ends_with(": write a rate of 1kbit or more with its unit, such as 100mbit")
            );
        }
        for time in ["10", "120000000", "999ms", "25h", "long"] {
            let text = said(&format!("--max-duration {time}"));
            assert!(text.ends_with(": write a time from 1s to 86400s with its unit"), "{text}");
        }
        for url in
            ["http://a", "example.org", "https://", "https://a/?b", "https://me@a", "https://a:0"]
        {
            let text = said(&format!("--public-url {url}"));
            assert!(
                text.ends_with(": write https://HOST, https://HOST:PORT or https://HOST/PATH"),
                "{text}"
            );
        }
    }

    #[test]
    fn options_that_are_not_there_or_given_twice_are_refused() {
        assert_eq!(said("--foo"), "there is no option --foo: see --help");
        assert_eq!(said("--max-test 1"), "there is no option --max-test: do you mean --max-tests?");
        assert!(said("8080").starts_with("`8080` is no option"));
        let renamed =
            "--log is now --json: a log of one JSON object a line; without it the log is text";
        assert_eq!(said("--log json"), renamed);
        assert_eq!(said("--log=text"), renamed);
        assert_eq!(said("--json=yes"), "--json takes no value");
        assert_eq!(said("--auth"), "--auth <FILE> needs a value");
        assert_eq!(said("--auth= --json"), "--auth <FILE> needs a value");
        for one in
            ["--auth a", "--irtt-port 1", "--max-duration 5s", "--max-rate 1mbit", "--max-tests 1"]
        {
            let option = one.split(' ').next().unwrap();
            let text = said(&format!("{one} {one}"));
            assert!(
                text.starts_with(option) && text.ends_with(" is given twice: give it once"),
                "{text}"
            );
        }
        for flag in ["--json", "--verbose", "--public-metrics"] {
            assert_eq!(
                said(&format!("{flag} {flag}")),
                format!("{flag} is given twice: give it once")
            );
        }
    }
}
