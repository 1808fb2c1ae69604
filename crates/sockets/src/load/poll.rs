//! Waiting for the sockets of many loads, no oftener than is worth it.

use std::io;

use weir_core::{Duration, Time};

use crate::clock::Clock;
use crate::sys::epoll::{Epoll, Events, Ready};

/// The sockets of loads that one thread drives, by number.
pub struct LoadPoll {
    /// Watches the sockets; what it tells is waited for with [`LoadPoll::wait`].
    pub epoll: Epoll,
    clock: Clock,
    /// When the thread last came to wait.
    waited: Option<Time>,
}

impl LoadPoll {
    /// Watches no socket yet.
    ///
    /// # Errors
    /// If the kernel has no epoll to give.
    pub fn new(clock: Clock) -> io::Result<Self> {
        Ok(Self { epoll: Epoll::new()?, clock, waited: None })
    }

    /// Room for what one wait tells: enough for a wait to be cheap, few enough to be fair to what is due.
    #[must_use]
    pub fn events() -> Events {
        Events::new(MAX_EVENTS)
    }

    /// Waits until sockets are ready, `most` at most, and tells which. Where packets come often, the thread first
    /// sleeps for `NAP`.
    ///
    /// # Errors
    /// If the kernel cannot wait.
    pub fn wait<'e>(
        &mut self,
        events: &'e mut Events,
        most: Duration,
    ) -> io::Result<impl Iterator<Item = Ready> + use<'e>> {
        let now = self.clock.now();
        let often = self.waited.is_some_and(|before| now.since(before) < NAP);
        self.waited = Some(now);
        if often {
            std::thread::sleep(std::time::Duration::from_nanos(most.min(NAP).as_nanos()));
        }
        self.epoll.wait(events, most)
    }
}

const MAX_EVENTS: usize = 512;
/// Where packets come faster than this, the thread looks no oftener: waking it for each costs more than the
/// packet. Network cards hold interrupts back as long. What the kernel acknowledges does not wait for it.
const NAP: Duration = Duration::from_micros(500);
