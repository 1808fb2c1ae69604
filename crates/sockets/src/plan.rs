//! The plan that all threads share, and how they are told to end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use weir_core::{Seed, Time};
use weir_scenario::Scenario;

use crate::addresses::Addresses;
use crate::clock::Clock;
use crate::error::NetError;

/// Plan of a run, which all threads share.
pub(crate) struct Plan {
    pub scenario: Arc<Scenario>,
    pub seed: Seed,
    pub clock: Clock,
    pub addresses: Addresses,
    pub control: Arc<Control>,
}

/// How far the run is, and what went wrong first.
#[derive(Debug, Default)]
pub(crate) struct Control {
    stopped: AtomicBool,
    samples_taken: AtomicBool,
    answers_in: AtomicBool,
    broken: AtomicBool,
    failure: Mutex<Option<NetError>>,
}

impl Plan {
    /// When the run is over.
    pub fn end(&self) -> Time {
        Time::from_nanos(self.scenario.duration_ns)
    }
}

impl Control {
    /// The run ends now.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
    }

    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// Nobody will ask about the loads' sockets any more.
    pub fn samples_are_taken(&self) {
        self.samples_taken.store(true, Ordering::Release);
    }

    /// No more answers are waited for.
    pub fn answers_are_in(&self) {
        self.answers_in.store(true, Ordering::Release);
    }

    /// Whether nothing that is measured needs the ends any more. A run that is stopped waits only for the
    /// totals.
    pub fn ends_may_close(&self) -> bool {
        (self.answers_in.load(Ordering::Acquire) || self.is_stopped())
            && (self.samples_taken.load(Ordering::Acquire) || self.is_broken())
    }

    fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Acquire)
    }

    /// A thread is gone: the run ends, and nobody waits for it.
    pub fn break_off(&self) {
        self.broken.store(true, Ordering::Release);
        self.stop();
    }

    /// Keeps the first thing that went wrong.
    pub fn fail(&self, error: NetError) {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    /// The first thing that went wrong.
    pub fn failure(&self) -> Option<NetError> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
