//! Applications over real sockets: their clients, all on one thread, and the requests that they and their servers agree on.
//!
//! What a client wants done is said by [`weir_scenario::Client`]; an [`ApplicationDriver`] does it with sockets. What differs
//! between the worlds that have some (whose they are, and how they are asked for) is an [`ApplicationWorld`].

mod driver;
mod message;

pub use driver::{ApplicationDriver, ApplicationWorld};
pub use message::{filled, parse, request, response_head};
