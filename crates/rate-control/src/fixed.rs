//! Rates that somebody chose, as with SQM: nothing is measured.

use weir_core::{Duration, Rate, Time};

use crate::contract::{Controller, Decision, Delay, Reason, Side, State, Traffic};

/// Holds the rates that it was given.
#[derive(Clone, Copy, Debug)]
pub struct Fixed {
    rates: [Option<Rate>; 2],
    told: bool,
}

impl Fixed {
    /// The rates of egress and ingress; `None` lets everything through.
    #[must_use]
    pub const fn new(rates: [Option<Rate>; 2]) -> Self {
        Self { rates, told: false }
    }
}

impl Controller for Fixed {
    fn on_sent(&mut self, _: u32, _: Time) {}

    fn on_delay(&mut self, _: &Delay, _: Time) {}

    fn on_tick(
        &mut self,
        traffic: &[Option<Traffic>; 2],
        _: Time,
        decide: &mut dyn FnMut(Decision),
    ) {
        if std::mem::replace(&mut self.told, true) {
            return;
        }
        for (side, rate) in Side::ALL.into_iter().zip(self.rates) {
            if traffic[side as usize].is_some() {
                let (state, reason) = (State::Loaded, Reason::Start);
                decide(Decision { side, rate, state, reason, value: 0.0 });
            }
        }
    }

    fn probe_every(&self) -> Option<Duration> {
        None
    }
}
