//! Measures the path to a server elsewhere that speaks Weir's own protocol: the world `net`.
//!
//! | thread | does |
//! |---|---|
//! | the caller's | speaks with the server, decides what runs, writes the record |
//! | `loads` | this end of all TCP loads, by epoll ([`weir_sockets::load`]); samples them |
//! | `probes` | sends all trains of pings, takes the answers (crate `sockets`) |

mod check;
mod error;
mod flow_table;
mod loads;
mod methods;
mod ramps;
mod reach;
mod run;
mod upgrade;

pub use error::ClientError;
pub use methods::{MethodRequest, Url, run_method};
pub use ramps::{RampPhase, RampPlan};
pub use reach::missing;
pub use run::{MeasureRequest, Outcome, measure};
