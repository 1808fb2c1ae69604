//! Lines as pure state machines: rate, framing, delay, jitter, loss, reordering, duplicates.
//!
//! A [`Line`] carries one packet after another: it says when the next may start and when it has left.
//! What happens between leaving one end and reaching the other is a [`Flight`]: propagation delay,
//! jitter, loss and what else may happen. Neither knows a clock or a queue.

mod flight;
mod line;
mod loss;
mod trace;

pub use flight::{Arrivals, Flight, FlightError, FlightParams, ReorderParams};
pub use line::{Capacity, Line};
pub use loss::{Loss, LossError, LossParams};
pub use trace::{Trace, TraceError};
pub use weir_core::{Cells, Framing};
