//! Measures the paths to servers elsewhere that speak Weir's own protocol: the world `net`.
//!
//! | thread | does |
//! |---|---|
//! | the caller's | speaks with the servers, decides what runs, writes the record |
//! | `loads` | this end of all TCP loads, by epoll ([`weir_sockets::load`]); samples them |
//! | `UDP loads` | this end of all UDP loads; samples them |
//! | `applications` | this end of all applications; samples them |
//! | `probes` | sends all trains of pings, takes the answers (crate `sockets`) |
//!
//! [`TestWords`] plans Weir's own test, and [`Figures`] is a sink that has its figures at the end, for programs that
//! keep no record.

mod applications;
mod cautions;
mod check;
mod error;
mod figures;
mod flow_table;
mod loads;
#[cfg(feature = "methods")]
mod methods;
mod numbers;
mod peer;
mod plan;
mod ramps;
mod reach;
mod request;
mod results;
mod run;
mod sender;
mod silence;
mod udp_loads;
mod udp_state;
mod upgrade;
mod ways;
mod worker;

pub use cautions::{cautions, met_limit_mbps};
pub use error::ClientError;
pub use figures::{Figures, Loaded, Pinged, TestFigures};
#[cfg(feature = "methods")]
pub use methods::{MethodRequest, Url, run_method};
pub use plan::{TestPlan, TestWords, loads_each_way};
pub use ramps::{RampPhase, RampPlan};
pub use reach::{Offer, TestLimits, offer};
pub use request::MeasureRequest;
pub use run::{Outcome, measure};
pub use silence::{Heard, Unmeasured};
