//! Measures the path to a server elsewhere that speaks Weir's own protocol: the world `net`.
//!
//! | thread | does |
//! |---|---|
//! | the caller's | speaks with the server, decides what runs, writes the record |
//! | `loads` | this end of all TCP loads, by epoll; samples them |
//! | `probes` | sends all trains of pings, takes the answers (crate `net`) |
//!
//! [`EchoKeeper`] holds a session open for others who want its echo alone.

mod check;
mod echo;
mod error;
mod flow_table;
mod loads;
mod methods;
mod reach;
mod run;
mod session;
mod target;

pub use echo::{EchoGrant, EchoKeeper, EchoNews};
pub use error::ClientError;
pub use methods::{MethodRequest, Url, run_method};
pub use reach::missing;
pub use run::{Outcome, RampPhase, RampPlan, Request, measure};
pub use target::Target;
