//! Requests to end: Ctrl-C, SIGTERM, a terminal that was closed.

#![allow(unsafe_code, reason = "installing a signal handler is declared unsafe")]

use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, sigaction};
use weir_linux::{END_REQUESTS, is_ignored};

static END: AtomicBool = AtomicBool::new(false);

/// Listens for requests to end. Those that are ignored stay so, as under `nohup`.
pub(crate) fn listen() {
    let note = SigAction::new(SigHandler::Handler(note), SaFlags::SA_RESTART, SigSet::empty());
    for signal in END_REQUESTS.into_iter().filter(|&signal| !is_ignored(signal)) {
        // SAFETY: the handler does nothing but store a word.
        unsafe { sigaction(signal, &note) }.expect("these signals can be handled");
    }
}

/// Whether somebody has asked to end.
pub(crate) fn end_requested() -> bool {
    END.load(Ordering::Relaxed)
}

extern "C" fn note(_: libc::c_int) {
    END.store(true, Ordering::Relaxed);
}
