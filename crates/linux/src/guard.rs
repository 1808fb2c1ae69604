//! A process beside the shaper, which opens the line while the shaper stands still, and clears away what it
//! leaves behind.
//!
//! ```text
//! shaper ── a beat every 100 ms ──> guard ── table, rates ──> kernel
//!        <── opened, held again ───
//! ```
//!
//! A process that is stopped (SIGSTOP, a debugger, swapping) cannot help itself, and one that is killed clears
//! nothing away. The guard hears of both by a socket pair, whose other end the shaper holds and nobody else:
//! beats that do not come, and the end of the socket. It sleeps otherwise. It has a session of its own, so
//! that what is sent to the shaper's group or its terminal does not reach it, and holds all signals back.

#![allow(unsafe_code, reason = "fork, and the system calls of a process that must not allocate")]

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::thread::sleep;
use std::time::Duration;

use nix::sys::prctl;
use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill, pthread_sigmask};
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockType, recv, send, setsockopt, socketpair, sockopt,
};
use nix::sys::time::{TimeVal, TimeValLike};
use nix::sys::wait::waitpid;
use nix::time::{ClockId, clock_gettime};
use nix::unistd::{ForkResult, Pid, fork, setsid};

use crate::LinuxError;
use crate::clock::go_first;

/// The work of a guard. Between fork and exit nothing but system calls is allowed: what is needed is written
/// before, and nothing is allocated or locked.
pub(crate) trait Duty {
    /// The socket by which it talks to the kernel.
    fn socket(&self) -> RawFd;
    /// Has the line held by the shaper, at its first beat and at the first one after it stood still; else the
    /// error's number.
    fn hold(&self) -> Result<(), i32>;
    /// Lets everything pass; else the error's number.
    fn open(&self) -> Result<(), i32>;
    /// Brings back what was there before: the shaper has ended without a word.
    fn end(&self);
}

/// A guard, as the shaper holds it. When this is dropped, the guard does what it is there for: it takes the
/// shaper for ended.
#[derive(Debug)]
pub(crate) struct Guard {
    socket: OwnedFd,
    process: Pid,
}

/// News of a guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuardNews {
    /// The shaper holds the line from now on.
    Holds,
    /// No beat came in time: everything passes until the next one.
    Opened,
    /// The kernel refused what the guard has asked for: number of the error.
    Refused(i32),
    /// The guard takes no beats: it stands still itself.
    Deaf,
    /// The guard has ended, by a signal from outside.
    Gone,
}

/// A name that one guard of a device has at a time, in the network namespace's abstract sockets: it goes
/// with the process.
pub(crate) struct Post(UnixDatagram);

impl Post {
    /// Takes it, after the guard of an earlier shaper is done.
    pub fn take(device: &str) -> Result<Self, LinuxError> {
        let fail = |error| LinuxError::io("cannot guard what is to be changed", error);
        let address = SocketAddr::from_abstract_name(format!("weir-shape-guard-{device}"));
        let address = address.map_err(fail)?;
        let mut looks = 0;
        loop {
            match UnixDatagram::bind_addr(&address) {
                Ok(socket) => return Ok(Self(socket)),
                Err(error) if error.kind() == io::ErrorKind::AddrInUse && looks < LOOKS => {
                    looks += 1;
                    sleep(PAUSE);
                }
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                    return Err(LinuxError::new(format!(
                        "`@weir-shape-guard-{device}` is taken: end the process that has it (`ss -xap`), the \
                         guard `{NAME}` of an earlier shaper of `{device}` or another program"
                    )));
                }
                Err(error) => return Err(fail(error)),
            }
        }
    }
}

impl Guard {
    /// Starts a guard that does `duty`. It waits for the first [beat](Self::beat).
    pub fn start(duty: impl Duty, post: Post) -> Result<Self, LinuxError> {
        let fail = |error: nix::Error| LinuxError::io("cannot start a guard", error);
        let Post(name) = post;
        let (near, far) =
            socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)
                .map_err(fail)?;
        // Nothing that is sent to everybody is to end it: it ends when its work is done.
        let mut before = SigSet::empty();
        pthread_sigmask(SigmaskHow::SIG_BLOCK, Some(&SigSet::all()), Some(&mut before))
            .map_err(fail)?;
        // SAFETY: the child makes system calls only, on memory that was there before.
        let forked = unsafe { fork() };
        if matches!(forked, Ok(ForkResult::Child)) {
            let keep = [far.as_raw_fd(), duty.socket(), name.as_raw_fd()];
            // SAFETY: nothing of Rust's or Python's runs any more in this process; the near end, without which
            // it would never see the shaper's end, is closed here, as older kernels have no `close_range`.
            unsafe {
                libc::close(near.as_raw_fd());
                stand(keep, &duty)
            };
        }
        let _ = pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&before), None);
        // The guard has them now: what belongs to the duty's socket goes with the guard alone.
        drop((duty, name));
        match forked {
            Ok(ForkResult::Parent { child }) => Ok(Self { socket: near, process: child }),
            Ok(ForkResult::Child) => unreachable!("it has ended"),
            Err(error) => Err(fail(error)),
        }
    }

    /// Tells the guard that the shaper is at work; to be called every [`BEAT`]. Returns what the guard has
    /// done since the last call, one thing at a time.
    pub fn beat(&self) -> Option<GuardNews> {
        let quiet = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
        let sent = send(self.socket.as_raw_fd(), b".", quiet);
        match (self.hear(MsgFlags::MSG_DONTWAIT), sent) {
            (None, Err(nix::Error::EAGAIN)) => Some(GuardNews::Deaf),
            (None, Err(_)) => Some(GuardNews::Gone),
            (news, _) => news,
        }
    }

    /// Makes the first beat, and waits until the line is held.
    pub fn begin(&self) -> Result<(), GuardNews> {
        let _ = setsockopt(&self.socket, sockopt::ReceiveTimeout, &TimeVal::seconds(BEGIN_S));
        let news = self.beat().or_else(|| self.hear(MsgFlags::empty()));
        match news.unwrap_or(GuardNews::Deaf) {
            GuardNews::Holds => Ok(()),
            other => Err(other),
        }
    }

    /// Ends the guard, without a word of its own: what belonged to it goes with it. It may stand still.
    pub fn dismiss(self) {
        let _ = kill(self.process, Signal::SIGKILL);
        let _ = waitpid(self.process, None);
    }

    /// Takes one message of the guard, if there is one.
    fn hear(&self, flags: MsgFlags) -> Option<GuardNews> {
        let mut word = [0; WORD];
        match recv(self.socket.as_raw_fd(), &mut word, flags) {
            Ok(0) => Some(GuardNews::Gone),
            Ok(_) => Some(match word[0] {
                HOLDS => GuardNews::Holds,
                OPENED => GuardNews::Opened,
                _ => GuardNews::Refused(i32::from_ne_bytes([word[1], word[2], word[3], word[4]])),
            }),
            Err(nix::Error::EAGAIN | nix::Error::EINTR) => None,
            Err(_) => Some(GuardNews::Gone),
        }
    }
}

/// The guard's life.
///
/// # Safety
/// To be called in a forked process that does nothing else.
unsafe fn stand([shaper, kernel, post]: [RawFd; 3], duty: &impl Duty) -> ! {
    let _ = setsid();
    let _ = prctl::set_name(GUARD);
    go_first();
    // SAFETY: system calls with plain arguments, and memory on the stack.
    unsafe {
        // Swapping that makes the shaper stand still must not do so to its guard, where this user may.
        libc::syscall(libc::SYS_mlockall, libc::MCL_CURRENT | libc::MCL_FUTURE | MCL_ONFAULT);
        // Whoever waits for the end of a pipe to the shaper must not wait for this process.
        let mut keep = [shaper, kernel, post];
        keep.sort_unstable();
        let mut from: libc::c_uint = 0;
        for fd in keep {
            let fd = fd as libc::c_uint;
            if fd > from {
                libc::syscall(libc::SYS_close_range, from, fd - 1, 0);
            }
            from = fd + 1;
        }
        libc::syscall(libc::SYS_close_range, from, libc::c_uint::MAX, 0);
    }
    watch(shaper, duty);
    duty.end();
    // SAFETY: ends this process at once.
    unsafe { libc::_exit(0) }
}

/// Holds and opens the line as beats come and do not, until the shaper has ended.
fn watch(shaper: RawFd, duty: &impl Duty) {
    let mut holds = false;
    loop {
        let since = now_ms();
        let timeout = if holds { PATIENCE_MS } else { -1 };
        let mut ready = libc::pollfd { fd: shaper, events: libc::POLLIN, revents: 0 };
        // SAFETY: one entry, which outlives the call.
        let heard = unsafe { libc::poll(&raw mut ready, 1, timeout) };
        if heard < 0 {
            continue;
        }
        if heard == 0 {
            // After a time in which everybody stood still the shaper gets another one.
            let late = now_ms() - since > i64::from(PATIENCE_MS + LATE_MS);
            if !late && say_done(shaper, OPENED, duty.open()) {
                holds = false;
            }
            continue;
        }
        if has_ended(shaper) {
            return;
        }
        if !holds {
            holds = say_done(shaper, HOLDS, duty.hold());
        }
    }
}

/// Takes all beats that have come: whether the shaper has ended.
fn has_ended(shaper: RawFd) -> bool {
    loop {
        let mut beat = [0; WORD];
        match recv(shaper, &mut beat, MsgFlags::MSG_DONTWAIT) {
            Ok(0) => return true,
            Ok(_) | Err(nix::Error::EINTR) => {}
            Err(nix::Error::EAGAIN) => return false,
            Err(_) => return true,
        }
    }
}

/// Tells the shaper what was done, or why it could not be: whether it was.
fn say_done(shaper: RawFd, what: u8, done: Result<(), i32>) -> bool {
    let mut word = [what, 0, 0, 0, 0];
    if let Err(code) = done {
        word[0] = REFUSED;
        word[1..].copy_from_slice(&code.to_ne_bytes());
    }
    let _ = send(shaper, &word, MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL);
    done.is_ok()
}

fn now_ms() -> i64 {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |now| now.num_milliseconds())
}

/// Time between two beats.
pub const BEAT: Duration = Duration::from_millis(100);
/// Without a beat for so long the line is opened.
const PATIENCE_MS: libc::c_int = 800;
/// A guard that is woken up so late stood still itself.
const LATE_MS: libc::c_int = 400;
/// The first beat is answered within milliseconds.
const BEGIN_S: i64 = 5;
/// A guard at work is done within milliseconds.
const LOOKS: u32 = 100;
const PAUSE: Duration = Duration::from_millis(20);
/// Name of the process.
const NAME: &str = "weir-guard";
const GUARD: &std::ffi::CStr = c"weir-guard";
/// Length of a message of the guard: what was done, and the number of an error.
const WORD: usize = 5;
const HOLDS: u8 = 1;
const OPENED: u8 = 2;
const REFUSED: u8 = 3;
/// include/uapi/asm-generic/mman.h: pages are kept as they come, and none is brought in for it.
const MCL_ONFAULT: libc::c_int = 4;

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixDatagram;

    use super::*;

    /// A duty that says by a socket what it does.
    struct Told {
        to: UnixDatagram,
        refuse: bool,
    }

    impl Told {
        fn say(&self, word: u8) -> Result<(), i32> {
            let _ = send(self.to.as_raw_fd(), &[word], MsgFlags::empty());
            if self.refuse { Err(libc::ENOMEM) } else { Ok(()) }
        }
    }

    impl Duty for Told {
        fn socket(&self) -> RawFd {
            self.to.as_raw_fd()
        }
        fn hold(&self) -> Result<(), i32> {
            self.say(b'h')
        }
        fn open(&self) -> Result<(), i32> {
            self.say(b'o')
        }
        fn end(&self) {
            let _ = self.say(b'e');
        }
    }

    /// A guard, and what is done by it.
    fn guard(device: &str, refuse: bool) -> (Guard, UnixDatagram) {
        let (to, done) = UnixDatagram::pair().unwrap();
        done.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        (Guard::start(Told { to, refuse }, Post::take(device).unwrap()).unwrap(), done)
    }

    fn next(done: &UnixDatagram) -> u8 {
        let mut word = [0];
        assert_eq!(done.recv(&mut word).unwrap(), 1);
        word[0]
    }

    #[test]
    fn a_heart_that_stops_opens_the_line_and_the_next_beat_holds_it() {
        let (guard, done) = guard("test-stops", false);
        guard.begin().unwrap();
        assert_eq!(next(&done), b'h');
        // No beat comes.
        assert_eq!(next(&done), b'o');
        assert_eq!(guard.hear(MsgFlags::empty()), Some(GuardNews::Opened));
        guard.begin().unwrap();
        assert_eq!(next(&done), b'h');
        drop(guard);
        assert_eq!(next(&done), b'e');
        assert!(Post::take("test-stops").is_ok(), "the guard is gone");
    }

    #[test]
    fn a_guard_that_is_dismissed_does_nothing_even_if_it_stands_still() {
        let (guard, done) = guard("test-dismissed", false);
        guard.begin().unwrap();
        assert_eq!(next(&done), b'h');
        kill(guard.process, Signal::SIGSTOP).unwrap();
        guard.dismiss();
        done.set_nonblocking(true).unwrap();
        assert!(done.recv(&mut [0]).is_err(), "nothing more was done");
    }

    #[test]
    fn what_the_kernel_refuses_is_told_and_so_is_the_guards_end() {
        let (guard, _done) = guard("test-refused", true);
        assert_eq!(guard.begin(), Err(GuardNews::Refused(libc::ENOMEM)));
        kill(guard.process, Signal::SIGKILL).unwrap();
        waitpid(guard.process, None).unwrap();
        assert_eq!(guard.beat(), Some(GuardNews::Gone));
    }
}
