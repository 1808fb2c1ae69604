//! Requests to end: Ctrl-C, SIGTERM, a terminal that was closed.
//!
//! What Ctrl-C means to a [program](crate::exec) the program decides: a terminal sends SIGINT to it as well as to this
//! process. Where somebody has sent it to the command line alone, that tells this process by [`HAND_ON_INTERRUPT`].

#![allow(unsafe_code, reason = "installing a signal handler is declared unsafe")]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, sigaction};
use nix::time::{ClockId, clock_gettime};
use weir_linux::{END_REQUESTS, HAND_ON_INTERRUPT, is_ignored};

static END: AtomicBool = AtomicBool::new(false);
/// Since when a program decides what SIGINT means, in nanoseconds of `CLOCK_MONOTONIC`; 0 while there is none.
static PROGRAM_SINCE: AtomicU64 = AtomicU64::new(0);
/// When SIGINT came to this process; 0 for never.
static CAME: AtomicU64 = AtomicU64::new(0);
/// When the command line said that it has one; 0 if that is dealt with.
static SAID: AtomicU64 = AtomicU64::new(0);

/// Listens for requests to end, also those that were held back until now. Those that are ignored stay so, as under
/// `nohup`.
pub(crate) fn listen() {
    let note = SigAction::new(SigHandler::Handler(note), SaFlags::SA_RESTART, SigSet::empty());
    let heard = END_REQUESTS.into_iter().filter(|&signal| !is_ignored(signal));
    let heard: Vec<_> = heard.chain([HAND_ON_INTERRUPT]).collect();
    for &signal in &heard {
        // SAFETY: the handler does nothing but look at the clock and store words.
        unsafe { sigaction(signal, &note) }.expect("these signals can be handled");
    }
    heard
        .into_iter()
        .collect::<SigSet>()
        .thread_unblock()
        .expect("these signals can be let through");
}

/// Whether somebody has asked to end.
pub(crate) fn end_requested() -> bool {
    END.load(Ordering::Relaxed)
}

/// A program starts: SIGINT is no longer a request to end, but the program's.
pub(crate) fn program_decides() {
    PROGRAM_SINCE.store(now_ns(), Ordering::Relaxed);
}

/// Whether the program is to be sent SIGINT, which has come to the command line and not to it.
pub(crate) fn hands_interrupt_on() -> bool {
    let said = SAID.load(Ordering::Relaxed);
    if said == 0 || now_ns().saturating_sub(said) < SETTLE_NS {
        return false;
    }
    if SAID.compare_exchange(said, 0, Ordering::Relaxed, Ordering::Relaxed).is_err() {
        return false;
    }
    !is_same(said, CAME.load(Ordering::Relaxed), PROGRAM_SINCE.load(Ordering::Relaxed))
}

/// Whether the SIGINT of which the command line `said` is the one that `came` to this process, and so to the program.
const fn is_same(said: u64, came: u64, program_since: u64) -> bool {
    came > program_since && said.abs_diff(came) < SAME_NS
}

extern "C" fn note(number: libc::c_int) {
    let has_program = PROGRAM_SINCE.load(Ordering::Relaxed) > 0;
    if has_program && number == libc::SIGINT {
        CAME.store(now_ns(), Ordering::Relaxed);
    } else if has_program && number == HAND_ON_INTERRUPT as libc::c_int {
        SAID.store(now_ns(), Ordering::Relaxed);
    } else {
        END.store(true, Ordering::Relaxed);
    }
}

/// Time of `CLOCK_MONOTONIC` in nanoseconds.
fn now_ns() -> u64 {
    clock_gettime(ClockId::CLOCK_MONOTONIC)
        .map_or(0, |now| now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64)
}

/// How long a SIGINT that was sent to all takes at most until it has come to all: `timeout` sends it to the command
/// line first.
const SETTLE_NS: u64 = 50_000_000;
/// Those within this time are one, as for the command line (`SAME_S` of `weirlab.interrupt`).
const SAME_NS: u64 = 250_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_here_has_come_to_the_program_unless_it_was_not_there() {
        let s = |s: u64| s * 1_000_000_000;
        assert!(is_same(s(10) + 1_000, s(10), s(5)));
        assert!(is_same(s(10), s(10) + 1_000_000, s(5)));
        assert!(!is_same(s(10), 0, s(5)));
        assert!(!is_same(s(10), s(8), s(5)));
        assert!(!is_same(s(10), s(10) - 2_000, s(10) - 1_000));
    }
}
