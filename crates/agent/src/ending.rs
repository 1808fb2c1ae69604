//! Requests to end, such as Ctrl-C.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::signal::{SigSet, Signal};
use weir_core::error_in_words;
use weir_linux::{END_REQUESTS, is_ignored};

use crate::failure::Failure;

/// Whether somebody has asked this process to end.
#[derive(Clone)]
pub(crate) struct Ending(Arc<AtomicBool>);

impl Ending {
    /// Takes the signals that ask a process to end from now on: this comes before any other thread. A signal that was
    /// ignored, as with `nohup`, stays so.
    pub fn watch() -> Result<Self, Failure> {
        let fail = |what: &str, error: &dyn std::fmt::Display| {
            Failure::other(format!("cannot {what}: {}", error_in_words(error)))
        };
        let mut signals = SigSet::empty();
        for signal in END_REQUESTS.into_iter().filter(|signal| !is_ignored(*signal)) {
            signals.add(signal);
        }
        // A log as long as the user's limit allows is a write that fails, which is told, and no reason to end.
        let mut blocked = signals;
        blocked.add(Signal::SIGXFSZ);
        blocked.thread_block().map_err(|error| fail("wait for signals", &error))?;
        let asked = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&asked);
        std::thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || {
                while signals.wait().is_ok() {
                    told.store(true, Ordering::Relaxed);
                }
            })
            .map_err(|error| fail("start a thread", &error))?;
        Ok(Self(asked))
    }

    /// Whether it was asked.
    pub fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
