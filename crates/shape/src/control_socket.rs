//! The control socket of a shaper: it answers with the shaper's view, and takes the order to end. It has no file.
//!
//! Its name is in Linux' abstract namespace (unix(7)), of which every network namespace has one of its own,
//! as it has devices. It goes with the process, however that ends, and only one process can have it.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsRawFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{JoinHandle, sleep};
use std::time::Duration;

use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, UnixAddr, connect, getsockopt, setsockopt, socket, sockopt,
};
use nix::sys::time::{TimeVal, TimeValLike};
use nix::unistd::geteuid;
use weir_linux::{find_device, line_from};

use crate::ShapeError;

/// The control socket of one device. It is closed when this is dropped.
#[derive(Debug)]
pub(crate) struct ControlSocket {
    shared: Arc<Shared>,
    device: String,
    thread: Option<JoinHandle<()>>,
}

/// State that the shaper and the thread of the control socket share.
#[derive(Debug, Default)]
struct Shared {
    /// The last view, as JSON.
    view: Mutex<String>,
    /// A client has ordered the shaper to end.
    stop: AtomicBool,
    /// The thread is to end.
    shut: AtomicBool,
}

impl ControlSocket {
    /// Opens the control socket of `device`, in a thread of its own.
    pub fn open(device: &str) -> Result<Self, ShapeError> {
        let listener = address(device).and_then(|address| UnixListener::bind_addr(&address));
        let listener = listener.map_err(|error| match error.kind() {
            ErrorKind::AddrInUse => taken(device),
            _ => ShapeError::io("cannot open a socket for others to ask at", error),
        })?;
        let shared = Arc::new(Shared::default());
        let answering = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("control".to_owned())
            .spawn(move || {
                for client in listener.incoming() {
                    if answering.shut.load(Ordering::Relaxed) {
                        return;
                    }
                    match client {
                        // Whoever is gone before the answer did not want it.
                        Ok(client) => drop(answering.answer(&client)),
                        // No more files can be opened: the client waits, and so does this.
                        Err(_) => sleep(PAUSE),
                    }
                }
            })
            .map_err(|error| ShapeError::io("cannot start a thread", error))?;
        Ok(Self { shared, device: device.to_owned(), thread: Some(thread) })
    }

    /// Answers with `view`, as JSON, from now on.
    pub fn show(&self, view: String) {
        *self.shared.view.lock().expect("nobody panics with it") = view;
    }

    /// Whether a client has ordered the shaper to end.
    pub fn wants_end(&self) -> bool {
        self.shared.stop.load(Ordering::Relaxed)
    }
}

impl Drop for ControlSocket {
    /// Closes the socket: another of the same name can be opened from then on, also by this process.
    fn drop(&mut self) {
        self.shared.shut.store(true, Ordering::Relaxed);
        let woken = address(&self.device).and_then(|at| UnixStream::connect_addr(&at));
        if let (Ok(_), Some(thread)) = (woken, self.thread.take()) {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn answer(&self, client: &UnixStream) -> io::Result<()> {
        client.set_write_timeout(Some(PATIENCE))?;
        let asked = line_from(client, MAX_ASKED_BYTES, PATIENCE)?;
        let mut out = client;
        match asked.trim() {
            "stop" => {
                let who = getsockopt(client, sockopt::PeerCredentials)?.uid();
                if who == 0 || who == geteuid().as_raw() {
                    self.stop.store(true, Ordering::Relaxed);
                    writeln!(out, "{{}}")
                } else {
                    writeln!(
                        out,
                        r#"{{"error": "only root and the user who started it may stop it"}}"#
                    )
                }
            }
            _ => {
                let view = self.view.lock().expect("nobody panics with it").clone();
                writeln!(out, "{view}")
            }
        }
    }
}

/// The last view of the shaper of `device`, as JSON.
///
/// # Errors
/// If there is no shaper there.
pub fn ask(device: &str) -> Result<String, ShapeError> {
    say(device, "status")
}

/// Asks the shaper of `device` to end: its answer, as JSON.
fn stop(device: &str) -> Result<String, ShapeError> {
    say(device, "stop")
}

/// Ends the shaper of `device`, and returns when it has restored what was there.
///
/// # Errors
/// If there is no shaper there, or it may not be ended, or it does not end.
pub fn end(device: &str) -> Result<(), ShapeError> {
    #[derive(serde::Deserialize)]
    struct Answer {
        error: Option<String>,
    }
    let answer = stop(device)?;
    if let Ok(Answer { error: Some(error) }) = serde_json::from_str(&answer) {
        return Err(ShapeError::new(error));
    }
    for _ in 0..END_LOOKS {
        if ask(device).is_err() {
            return Ok(());
        }
        sleep(END_PAUSE);
    }
    let waited = END_PAUSE * END_LOOKS;
    Err(ShapeError::new(format!(
        "the shaper of {device} was asked to end and has not after {} s",
        waited.as_secs()
    )))
}

/// The error that another process shapes `device` already.
pub(crate) fn taken(device: &str) -> ShapeError {
    ShapeError::new(format!(
        "`{device}` is being shaped already: see `weir shape status {device}`, or end it with `weir shape stop \
         {device}`"
    ))
}

/// Error: there is no device of that name.
pub(crate) fn no_device(device: &str) -> ShapeError {
    ShapeError::input(format!("there is no device `{device}`"))
}

fn say(device: &str, what: &str) -> Result<String, ShapeError> {
    let mut pid = None;
    let mut talk = || {
        let mut stream = connected(&name(device))?;
        pid = getsockopt(&stream, sockopt::PeerCredentials).ok().map(|who| who.pid());
        writeln!(stream, "{what}")?;
        Ok(line_from(&stream, MAX_ANSWER_BYTES, PATIENCE)?.trim().to_owned())
    };
    let answer: io::Result<String> = talk();
    answer.map_err(|error| match error.kind() {
        _ if matches!(find_device(device), Ok(None)) => no_device(device),
        ErrorKind::ConnectionRefused => ShapeError::new(format!(
            "`{device}` is not being shaped, as far as this network namespace goes"
        )),
        ErrorKind::WouldBlock => ShapeError::new(silent(device, pid)),
        _ => ShapeError::io(&format!("the shaper of `{device}` does not answer"), error),
    })
}

/// A connection to the abstract socket of that name, waited for no longer than [`PATIENCE`]: whoever listens
/// there and takes nobody in lets everybody wait once its line is full.
fn connected(name: &str) -> io::Result<UnixStream> {
    let near = socket(AddressFamily::Unix, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    setsockopt(&near, sockopt::SendTimeout, &TimeVal::milliseconds(PATIENCE.as_millis() as i64))?;
    connect(near.as_raw_fd(), &UnixAddr::new_abstract(name.as_bytes())?)?;
    Ok(UnixStream::from(near))
}

/// Why a process that listens does not answer.
fn silent(device: &str, pid: Option<i32>) -> String {
    let stat = pid.and_then(|pid| fs::read_to_string(format!("/proc/{pid}/stat")).ok());
    // The name before it may have anything in it.
    let state = stat.as_deref().and_then(|text| text.rsplit_once(") ")?.1.chars().next());
    match (pid, state) {
        (Some(pid), Some('T' | 't')) => format!(
            "the shaper of `{device}` does not answer, since its process {pid} is stopped: `kill -CONT {pid}` lets \
             it go on"
        ),
        _ => format!(
            "the shaper of `{device}` has not answered for {} s: this machine is busy, or it stands still",
            PATIENCE.as_secs()
        ),
    }
}

fn address(device: &str) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(name(device))
}

fn name(device: &str) -> String {
    format!("weir-shape-{device}")
}

/// Between two attempts to take a client in.
const PAUSE: Duration = Duration::from_millis(100);
/// Bytes of what a client asks: a word.
const MAX_ASKED_BYTES: usize = 64;
/// Bytes of an answer: a view has some thousands, and more with many delays in it.
const MAX_ANSWER_BYTES: usize = 1 << 20;
/// A client is not waited for longer than this.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often it is looked whether a shaper has ended, and the time between two looks.
const END_LOOKS: u32 = 50;
const END_PAUSE: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use nix::sys::socket::{Backlog, bind, listen};

    use super::*;

    #[test]
    fn whoever_takes_nobody_in_is_not_waited_for_without_end() {
        let name = format!("weir-shape-test-full-{}", std::process::id());
        let deaf =
            socket(AddressFamily::Unix, SockType::Stream, SockFlag::SOCK_CLOEXEC, None).unwrap();
        bind(deaf.as_raw_fd(), &UnixAddr::new_abstract(name.as_bytes()).unwrap()).unwrap();
        listen(&deaf, Backlog::new(0).unwrap()).unwrap();
        let _in_line = connected(&name).unwrap();
        assert_eq!(connected(&name).unwrap_err().kind(), ErrorKind::WouldBlock);
        drop(deaf);
        assert_eq!(connected(&name).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    }
}
