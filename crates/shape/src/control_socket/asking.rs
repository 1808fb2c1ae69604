//! The other end of a shaper's control socket: what it does is asked there, and it is told to end.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, UnixAddr, connect, setsockopt, socket, sockopt,
};
use nix::sys::time::{TimeVal, TimeValLike};
use weir_linux::{find_device, line_from};

use super::{PATIENCE, Peer, name};
use crate::text::printable;
use crate::{ShapeError, View, program};

/// The last view of the shaper of `device`; `None` if it has shown none yet.
///
/// # Errors
/// If there is no shaper there, if it does not answer, or if somebody else does: root's process, one's own or, by root,
/// one with CAP_NET_ADMIN is believed, and a view of `device` alone is one.
pub fn ask(device: &str) -> Result<Option<View<String>>, ShapeError> {
    let (answer, peer) = say(device, "status")?;
    if answer.is_empty() {
        return Ok(None);
    }
    match View::parse(&answer) {
        Ok(view) if view.device == device => Ok(Some(view)),
        _ => Err(ShapeError::new(format!(
            "{peer} listens as the shaper of `{device}`, and what it answers is no view of one"
        ))),
    }
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
    let (answer, shaper) = say(device, "stop")?;
    if let Ok(Answer { error: Some(error) }) = serde_json::from_str(&answer) {
        return Err(ShapeError::new(printable(&error)));
    }
    let until = Instant::now() + END_PATIENCE;
    while listens(device, shaper) {
        if Instant::now() >= until {
            return Err(ShapeError::new(format!(
                "the shaper of `{device}` was asked to end and has not after {} s: {}",
                END_PATIENCE.as_secs(),
                why_silent(Some(shaper))
            )));
        }
        sleep(END_PAUSE);
    }
    Ok(())
}

/// Refuses a device whose control socket another process has.
pub(crate) fn check_free(device: &str) -> Result<(), ShapeError> {
    match connected(&name(device)) {
        Ok(stream) => Err(taken_by(device, Peer::of(&stream).ok())),
        // Somebody listens there and takes nobody in.
        Err(error) if error.kind() == ErrorKind::WouldBlock => Err(taken_by(device, None)),
        Err(_) => Ok(()),
    }
}

/// The error that another process has the name of the control socket of `device`.
pub(super) fn taken(device: &str) -> ShapeError {
    check_free(device).err().unwrap_or_else(|| {
        ShapeError::new(format!(
            "`{device}` cannot be shaped: another process has the name `@{}` of its control socket, and does not \
             listen there; end that one first (`ss -xap` names it)",
            name(device)
        ))
    })
}

fn taken_by(device: &str, peer: Option<Peer>) -> ShapeError {
    ShapeError::new(match peer {
        Some(peer) if !peer.may_shape() => format!(
            "`{device}` cannot be shaped: {peer} has the name `@{}` of its control socket; end that one first",
            name(device)
        ),
        _ => {
            let shape = format!("{} shape", program());
            format!(
                "`{device}` is being shaped already: see `{shape} status {device}`, or end it with `{shape} stop \
                 {device}`"
            )
        }
    })
}

/// Error: there is no device of that name.
pub(crate) fn no_device(device: &str) -> ShapeError {
    ShapeError::input(format!("there is no device `{device}`"))
}

/// Says a word to the shaper of `device`: its answer, and who it is.
fn say(device: &str, what: &str) -> Result<(String, Peer), ShapeError> {
    let unanswered = |error, peer| unanswered(device, &error, peer);
    let mut stream = connected(&name(device)).map_err(|error| unanswered(error, None))?;
    let peer = Peer::of(&stream).map_err(|error| unanswered(error, None))?;
    if !peer.may_shape() {
        return Err(ShapeError::new(format!(
            "{peer} listens as the shaper of `{device}`: only one of root's or your own is asked, and by root one with \
             CAP_NET_ADMIN"
        )));
    }
    // In one piece: whoever answers a word before its line end may be gone by then.
    let answer = stream
        .write_all(format!("{what}\n").as_bytes())
        .and_then(|()| line_from(&stream, MAX_ANSWER_BYTES, PATIENCE))
        .map_err(|error| unanswered(error, Some(peer)))?;
    Ok((answer.trim().to_owned(), peer))
}

fn unanswered(device: &str, error: &io::Error, peer: Option<Peer>) -> ShapeError {
    match error.kind() {
        _ if peer.is_none() && matches!(find_device(device), Ok(None)) => no_device(device),
        ErrorKind::ConnectionRefused => ShapeError::new(format!(
            "`{device}` is not being shaped, as far as this network namespace goes"
        )),
        ErrorKind::WouldBlock => ShapeError::new(format!(
            "the shaper of `{device}` has not answered for {} s: {}",
            PATIENCE.as_secs(),
            why_silent(peer)
        )),
        _ => ShapeError::io(&format!("the shaper of `{device}` does not answer"), error),
    }
}

/// Whether that shaper still has its socket: it goes when what was there is restored. Whatever else hinders a look is no
/// sign of its end.
fn listens(device: &str, shaper: Peer) -> bool {
    match connected(&name(device)) {
        Ok(stream) => Peer::of(&stream).map_or(true, |peer| peer == shaper),
        Err(error) => !matches!(error.kind(), ErrorKind::ConnectionRefused | ErrorKind::NotFound),
    }
}

/// A connection to the abstract socket of that name, waited for no longer than [`PATIENCE`]: whoever listens
/// there and takes nobody in lets everybody wait once its line is full.
pub(super) fn connected(name: &str) -> io::Result<UnixStream> {
    let near = socket(AddressFamily::Unix, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    setsockopt(&near, sockopt::SendTimeout, &TimeVal::milliseconds(PATIENCE.as_millis() as i64))?;
    connect(near.as_raw_fd(), &UnixAddr::new_abstract(name.as_bytes())?)?;
    Ok(UnixStream::from(near))
}

/// Why a process that listens does not answer.
fn why_silent(peer: Option<Peer>) -> String {
    let stat = peer.and_then(|peer| fs::read_to_string(format!("/proc/{}/stat", peer.pid)).ok());
    // The name before it may have anything in it.
    let state = stat.as_deref().and_then(|text| text.rsplit_once(") ")?.1.chars().next());
    match (peer, state) {
        (Some(Peer { pid, .. }), Some('T' | 't')) => {
            format!("its process {pid} is stopped, and `kill -CONT {pid}` lets it go on")
        }
        _ => "this machine is busy, or it stands still".to_owned(),
    }
}

/// Bytes of an answer: a view has some thousands, and more with many delays in it.
const MAX_ANSWER_BYTES: usize = 1 << 20;
/// How long a shaper that was told to end is waited for, and the time between two looks.
const END_PATIENCE: Duration = Duration::from_secs(10);
const END_PAUSE: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixListener};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

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

    /// One that is told to end has ended when its socket is gone, and not when it fails to answer.
    #[test]
    fn a_shaper_that_answers_nothing_any_more_has_not_ended() {
        let device = format!("ending-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(name(&device)).unwrap();
        let listener = UnixListener::bind_addr(&address).unwrap();
        let gone = Arc::new(AtomicBool::new(false));
        let going = Arc::clone(&gone);
        let shaper = std::thread::spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            assert_eq!(line_from(&client, 64, PATIENCE).unwrap(), "stop");
            client.write_all(b"{}\n").unwrap();
            // Whoever asks again meanwhile is reset, as what was said is never read.
            let until = Instant::now() + 4 * END_PAUSE;
            listener.set_nonblocking(true).unwrap();
            while Instant::now() < until {
                drop(listener.accept());
                sleep(END_PAUSE / 10);
            }
            going.store(true, Ordering::Relaxed);
        });
        end(&device).unwrap();
        assert!(gone.load(Ordering::Relaxed));
        shaper.join().unwrap();
    }
}
