//! Signals that ask a process to end.

#![allow(unsafe_code, reason = "asking how a signal is handled is declared unsafe")]

use std::mem::MaybeUninit;
use std::ptr;

use nix::sys::signal::Signal;

/// Signals that ask a process to end: Ctrl-C, `kill`, a terminal that was closed.
pub const END_REQUESTS: [Signal; 3] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];

/// Tells a process that whoever called it was sent SIGINT alone, and that it may hand it on.
pub const HAND_ON_INTERRUPT: Signal = Signal::SIGUSR1;

/// Whether this process ignores `signal`, as `nohup` and a script's background have it.
#[must_use]
pub fn is_ignored(signal: Signal) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: nothing is changed, and `action` has room for what is told.
    let told = unsafe { libc::sigaction(signal as i32, ptr::null(), action.as_mut_ptr()) };
    // SAFETY: zeros are a valid action, and so is what the kernel tells.
    told == 0 && unsafe { action.assume_init() }.sa_sigaction == libc::SIG_IGN
}
