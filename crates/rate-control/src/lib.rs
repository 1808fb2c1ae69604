//! Rate controllers of shapers, as pure state machines: delays, traffic and the time in, rates out.
//!
//! A shaper sits beside a line that it does not know: in front of it on the way out
//! ([`Side::Egress`]), behind it on the way in ([`Side::Ingress`]). It is to let as much through as the
//! line carries and no more, so that packets wait where they are managed and not in the modem. A
//! [`Controller`] finds that rate. [`Control::build`] makes one of three:
//!
//! * [`auto`](Auto): Weir's own, which is told no rates (docs/rate-control.md);
//! * [`cake_autorate`](CakeAutorate): the published law of cake-autorate, to compare with;
//! * [`fixed`](Fixed): rates that somebody chose.
//!
//! The driver owns the clock, the probes and the shaper. It tells the controller of each probe that it
//! sends and of each delay that it measures, by whatever means, and calls
//! [`on_tick`](Controller::on_tick) every [`TICK`] with what its traffic counters say.

mod auto;
mod baseline;
mod cake_autorate;
mod capacity;
mod connections;
mod contract;
mod delays;
mod fixed;
mod history;
mod idle;
mod lateness;
mod pauses;
mod peer_clock;
mod quantities;
mod recent;
mod round_trips;
mod side;
mod source;
mod spans;
mod surge;
mod whose;

pub use auto::Auto;
pub use cake_autorate::CakeAutorate;
pub use connections::Connections;
pub use contract::{
    AutoSettings, Bounds, Control, Controller, Decision, Delay, FIRST_CONNECTION,
    MAX_LEARNED_AGE_S, MIN_RATE, Measured, Mode, OneWay, Reason, Side, State, TICK, Traffic,
};
pub use fixed::Fixed;
pub use round_trips::Seen;
