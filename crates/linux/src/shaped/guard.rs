//! A process that does nothing but wait for the shaper's end, and then brings back what was there.
//!
//! A signal that cannot be caught ends the shaper before it can put anything back. The guard hears of it by
//! the end of a pipe, whose other end the shaper holds and nobody else.

#![allow(unsafe_code, reason = "fork, and the system calls of a process that must not allocate")]

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::thread::sleep;
use std::time::Duration;

use nix::fcntl::OFlag;
use nix::sys::prctl;
use nix::sys::signal::{SigSet, SigmaskHow, pthread_sigmask};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, fork, pipe2, setsid, write};

use super::undo::Undo;
use crate::LinuxError;
use crate::netlink::Netlink;

/// The guard, as the shaper holds it.
#[derive(Debug)]
pub(super) struct Guard {
    pipe: OwnedFd,
    process: Pid,
}

/// A name that one guard of a device has at a time, in the network namespace's abstract sockets: it goes
/// with the process.
pub(super) struct Post(UnixDatagram);

impl Post {
    /// Takes it, after the guard of an earlier shaper is done.
    pub fn take(device: &str) -> Result<Self, LinuxError> {
        let what = "cannot guard what is to be changed";
        let address = SocketAddr::from_abstract_name(format!("weir-shape-guard-{device}"))
            .map_err(|error| LinuxError::io(what, error))?;
        let mut looks = 0;
        loop {
            match UnixDatagram::bind_addr(&address) {
                Ok(socket) => return Ok(Self(socket)),
                Err(error) if error.kind() == io::ErrorKind::AddrInUse && looks < LOOKS => {
                    looks += 1;
                    sleep(PAUSE);
                }
                Err(error) => return Err(LinuxError::io(what, error)),
            }
        }
    }
}

impl Guard {
    /// Starts a guard that carries out `undo` when this process ends, however it does.
    pub fn start(undo: &Undo, post: Post) -> Result<Self, LinuxError> {
        let fail = |error: nix::Error| LinuxError::io("cannot start a guard", error);
        // This process lets go of the name when the guard has it.
        let Post(name) = post;
        let netlink = Netlink::new()?;
        let (read, write) = pipe2(OFlag::O_CLOEXEC).map_err(fail)?;
        // Nothing that is sent to everybody is to end it: it ends when its work is done.
        let mut before = SigSet::empty();
        pthread_sigmask(SigmaskHow::SIG_BLOCK, Some(&SigSet::all()), Some(&mut before))
            .map_err(fail)?;
        // SAFETY: the child makes system calls only, on memory that was there before.
        let forked = unsafe { fork() };
        if matches!(forked, Ok(ForkResult::Child)) {
            let keep = [read.as_raw_fd(), netlink.fd(), name.as_raw_fd()];
            // SAFETY: nothing of Rust's or Python's runs any more in this process.
            unsafe { stand(keep, undo) };
        }
        let _ = pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&before), None);
        match forked {
            Ok(ForkResult::Parent { child }) => Ok(Self { pipe: write, process: child }),
            Ok(ForkResult::Child) => unreachable!("it has ended"),
            Err(error) => Err(fail(error)),
        }
    }

    /// Ends the guard: the device has its own settings again.
    pub fn dismiss(&self) {
        // Where there is no guard any more there is nobody to dismiss.
        let _ = write(&self.pipe, b".");
        let _ = waitpid(self.process, None);
    }
}

/// The guard's life: waits for a word or the end of the pipe, acts if there was no word, and exits.
///
/// # Safety
/// To be called in a forked process that does nothing else.
unsafe fn stand([pipe, netlink, post]: [RawFd; 3], undo: &Undo) -> ! {
    let _ = setsid();
    let _ = prctl::set_name(c"weir-guard");
    // SAFETY: system calls with plain arguments, and memory on the stack.
    unsafe {
        // Whoever waits for the end of a pipe to the shaper must not wait for this process.
        let mut keep = [pipe, netlink, post];
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
        let mut word = 0u8;
        let heard = libc::read(pipe, (&raw mut word).cast(), 1);
        if heard != 1 {
            undo.run(netlink);
        }
        libc::_exit(0)
    }
}

/// A guard at work is done within milliseconds.
const LOOKS: u32 = 100;
const PAUSE: Duration = Duration::from_millis(20);
