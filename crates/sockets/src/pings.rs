//! The probes of a scenario alone, towards servers that are elsewhere.

use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::thread::{self, JoinHandle};

use weir_core::Seed;
use weir_scenario::Scenario;

use crate::addresses::Addresses;
use crate::clock::Clock;
use crate::ends::Sample;
use crate::error::NetError;
use crate::plan::Plan;
use crate::probes::Prober;

/// Trains of pings under way, on a thread of their own.
#[must_use = "pings are joined"]
pub struct Pings {
    plan: Arc<Plan>,
    thread: JoinHandle<Result<(), NetError>>,
}

impl Pings {
    /// Opens the sockets of all probes of `scenario`, and sends rows to `samples` from the clock's start
    /// on. `addresses` has a session for each of them.
    ///
    /// # Errors
    /// If a socket cannot be opened, by the probe's name.
    pub fn start(
        addresses: Addresses,
        (scenario, seed, clock): (&Arc<Scenario>, Seed, Clock),
        samples: Sender<Sample>,
    ) -> Result<Self, NetError> {
        let scenario = Arc::clone(scenario);
        let plan = Arc::new(Plan { scenario, seed, clock, addresses, control: Arc::default() });
        // What the server saw of a ping whose answer was lost, nobody here can tell.
        let (_, arrived) = mpsc::channel();
        let prober = Prober::new(&plan, arrived, samples)?;
        let thread = thread::Builder::new()
            .name("probes".into())
            .spawn(move || prober.run())
            .map_err(|error| NetError::io("thread `probes`", &error))?;
        Ok(Self { plan, thread })
    }

    /// Whether all answers are in, or given up.
    #[must_use]
    pub fn have_ended(&self) -> bool {
        self.thread.is_finished()
    }

    /// Ends them now; those that are under way are left out.
    pub fn stop(&self) {
        self.plan.control.stop();
    }

    /// Waits for their end.
    ///
    /// # Errors
    /// The first thing that went wrong.
    pub fn join(self) -> Result<(), NetError> {
        let bug =
            || Err(NetError::new("the thread of the probes ended by a bug: please report it"));
        let ended = self.thread.join().unwrap_or_else(|_| bug());
        self.plan.control.failure().map_or(ended, Err)
    }
}
