//! The shaper's end of its control socket: clients are answered beside each other, and none waits for another.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::time::TimeSpec;

use super::asking::taken;
use super::{PATIENCE, Peer, name};
use crate::ShapeError;

/// The control socket of one device. It is closed when this is dropped.
#[derive(Debug)]
pub(crate) struct ControlSocket {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// State that the shaper and the thread of the control socket share.
#[derive(Debug)]
struct Shared {
    /// The last view, as JSON.
    view: Mutex<String>,
    /// A client has ordered the shaper to end.
    stop: AtomicBool,
    /// The thread is to end: it is readable from then on.
    shut: EventFd,
}

/// Somebody who asks, or has asked and is being answered.
struct Client {
    stream: UnixStream,
    is_trusted: bool,
    /// It is not waited for any longer than until then.
    until: Instant,
    asked: Vec<u8>,
    /// What is left of the answer, once it is clear what is asked.
    answer: Option<Vec<u8>>,
}

impl ControlSocket {
    /// Opens the control socket of `device`, in a thread of its own.
    pub fn open(device: &str) -> Result<Self, ShapeError> {
        let fail =
            |error: io::Error| ShapeError::io("cannot open a socket for others to ask at", error);
        let address = SocketAddr::from_abstract_name(name(device)).map_err(fail)?;
        let listener = UnixListener::bind_addr(&address).map_err(|error| match error.kind() {
            ErrorKind::AddrInUse => taken(device),
            _ => fail(error),
        })?;
        listener.set_nonblocking(true).map_err(fail)?;
        let shut = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)
            .map_err(|error| fail(error.into()))?;
        let shared =
            Arc::new(Shared { view: Mutex::default(), stop: AtomicBool::new(false), shut });
        let answering = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("control".to_owned())
            .spawn(move || answering.serve(&listener))
            .map_err(|error| ShapeError::io("cannot start a thread", error))?;
        Ok(Self { shared, thread: Some(thread) })
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
        if let (Ok(_), Some(thread)) = (self.shared.shut.write(1), self.thread.take()) {
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// Answers whoever asks until it is shut.
    fn serve(&self, listener: &UnixListener) {
        let mut clients = Vec::new();
        loop {
            let mut is_ready = match self.wait(listener, &clients) {
                Ok(ready) if ready[0] => return,
                Ok(ready) => ready.into_iter().skip(2),
                // The kernel has no memory for it: clients wait, and so does this.
                Err(_) => {
                    sleep(PAUSE);
                    continue;
                }
            };
            let now = Instant::now();
            clients.retain_mut(|client: &mut Client| {
                let is_ready = is_ready.next().unwrap_or(false);
                now < client.until && (!is_ready || self.attend(client).unwrap_or(false))
            });
            take_in(listener, &mut clients);
        }
    }

    /// Waits until there is something to do: whether it is to end, somebody new is there, and each client has
    /// something to say or room for its answer.
    fn wait(&self, listener: &UnixListener, clients: &[Client]) -> nix::Result<Vec<bool>> {
        let listens = [self.shut.as_fd(), listener.as_fd()];
        let mut fds: Vec<_> =
            listens.into_iter().map(|fd| PollFd::new(fd, PollFlags::POLLIN)).collect();
        fds.extend(clients.iter().map(|client| {
            let wants = match client.answer {
                None => PollFlags::POLLIN,
                Some(_) => PollFlags::POLLOUT,
            };
            PollFd::new(client.stream.as_fd(), wants)
        }));
        let until = clients.iter().map(|client| client.until).min();
        let pause = until.map(|until| until.saturating_duration_since(Instant::now()));
        match ppoll(&mut fds, pause.map(TimeSpec::from_duration), None) {
            Ok(_) => Ok(fds.iter().map(|fd| fd.any().unwrap_or(true)).collect()),
            Err(nix::Error::EINTR) => Ok(vec![false; fds.len()]),
            Err(error) => Err(error),
        }
    }

    /// Hears what a client says and answers, as far as that goes without waiting: whether something is left to do.
    fn attend(&self, client: &mut Client) -> io::Result<bool> {
        let mut rest = match client.answer.take() {
            Some(rest) => rest,
            None if client.has_asked()? => self.answer(client).into_bytes(),
            None => return Ok(true),
        };
        while !rest.is_empty() {
            match client.stream.write(&rest) {
                Ok(count) => drop(rest.drain(..count)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    client.answer = Some(rest);
                    return Ok(true);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    fn answer(&self, client: &Client) -> String {
        let asked = client.asked.split(|&byte| byte == b'\n').next().unwrap_or_default();
        match asked.trim_ascii() {
            b"stop" if client.is_trusted => {
                self.stop.store(true, Ordering::Relaxed);
                "{}\n".to_owned()
            }
            b"stop" => {
                concat!(r#"{"error": "only root and the user who started it may stop it"}"#, "\n")
                    .to_owned()
            }
            _ => self.view.lock().expect("nobody panics with it").clone() + "\n",
        }
    }
}

impl Client {
    fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        let is_trusted = Peer::of(&stream)?.is_trusted();
        let until = Instant::now() + PATIENCE;
        Ok(Self { stream, is_trusted, until, asked: Vec::new(), answer: None })
    }

    /// Reads what is there: whether that is a whole line, or all that there will be.
    fn has_asked(&mut self) -> io::Result<bool> {
        let mut part = [0; MAX_ASKED_BYTES];
        while !self.asked.contains(&b'\n') {
            match self.stream.read(&mut part) {
                Ok(0) => return Ok(true),
                Ok(count) => self.asked.extend(&part[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
            if self.asked.len() > MAX_ASKED_BYTES {
                return Err(ErrorKind::InvalidData.into());
            }
        }
        Ok(true)
    }
}

/// Takes in who waits at the door. Where there is no room the oldest stranger goes.
fn take_in(listener: &UnixListener, clients: &mut Vec<Client>) {
    for _ in 0..MAX_TAKEN {
        match listener.accept() {
            Ok((stream, _)) => {
                // Whoever is gone already did not want an answer.
                let Ok(client) = Client::new(stream) else { continue };
                if clients.len() == MAX_CLIENTS {
                    clients.remove(clients.iter().position(|one| !one.is_trusted).unwrap_or(0));
                }
                clients.push(client);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return,
            // No more files can be opened: clients wait, and so does this.
            Err(_) => return sleep(PAUSE),
        }
    }
}

/// Between two attempts to take a client in.
const PAUSE: Duration = Duration::from_millis(100);
/// Clients at once.
const MAX_CLIENTS: usize = 64;
/// Clients that are taken in before those that are there have their turn again.
const MAX_TAKEN: usize = 16;
/// Bytes of what a client asks: a word.
const MAX_ASKED_BYTES: usize = 64;

#[cfg(test)]
mod tests {
    use super::super::asking::{ask, connected};
    use super::*;
    use crate::View;

    /// A socket that answers, of a device that nobody has.
    fn open(purpose: &str) -> (String, ControlSocket) {
        let device = format!("{purpose}-{}", std::process::id());
        let control = ControlSocket::open(&device).unwrap();
        let view: View = View { device: device.clone(), t_ns: 7, ..View::default() };
        control.show(serde_json::to_string(&view).unwrap());
        (device, control)
    }

    #[test]
    fn those_who_say_nothing_keep_nobody_waiting() {
        let (device, _control) = open("silent");
        let silent: Vec<_> =
            (0..2 * MAX_CLIENTS).map(|_| connected(&name(&device)).unwrap()).collect();
        let began = Instant::now();
        assert_eq!(ask(&device).unwrap().map(|view| view.t_ns), Some(7));
        assert!(began.elapsed() < PATIENCE / 4, "{:?}", began.elapsed());
        drop(silent);
    }

    #[test]
    fn one_who_reads_nothing_keeps_nobody_waiting() {
        let (device, control) = open("deaf");
        let warnings = vec!["a".repeat(400_000)];
        let view: View = View { device: device.clone(), warnings, ..View::default() };
        control.show(serde_json::to_string(&view).unwrap());
        let mut deaf = connected(&name(&device)).unwrap();
        writeln!(deaf, "status").unwrap();
        let began = Instant::now();
        let seen = ask(&device).unwrap().unwrap();
        assert_eq!(seen.warnings[0].len(), 400_000);
        assert!(began.elapsed() < PATIENCE / 4, "{:?}", began.elapsed());
    }

    #[test]
    fn an_order_may_come_in_pieces_and_end_without_a_line_end() {
        let (device, control) = open("pieces");
        let mut client = connected(&name(&device)).unwrap();
        write!(client, "st").unwrap();
        sleep(Duration::from_millis(20));
        write!(client, "op").unwrap();
        client.shutdown(std::net::Shutdown::Write).unwrap();
        let mut said = String::new();
        client.read_to_string(&mut said).unwrap();
        assert_eq!((said.as_str(), control.wants_end()), ("{}\n", true));
    }

    #[test]
    fn what_is_no_word_is_not_answered() {
        let (device, control) = open("long");
        let mut client = connected(&name(&device)).unwrap();
        client.write_all(&[b'x'; 4 * MAX_ASKED_BYTES]).unwrap();
        let mut said = Vec::new();
        // It may be told that what it said was not read.
        let _ = client.read_to_end(&mut said);
        assert!(said.is_empty() && !control.wants_end());
    }

    #[test]
    fn the_name_is_free_once_the_socket_is_closed() {
        let (device, control) = open("closed");
        let _silent = connected(&name(&device)).unwrap();
        let said = ControlSocket::open(&device).unwrap_err().to_string();
        assert!(said.contains("is being shaped already"), "{said}");
        drop(control);
        drop(ControlSocket::open(&device).unwrap());
    }
}
