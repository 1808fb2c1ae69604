//! Protocols between measurement clients and servers.
//!
//! [`weir`] is Weir's own protocol, described in `docs/protocol.md`; the other modules are the parts of
//! foreign speed tests that do not come from a library. Everything here is bytes and values: no sockets, no
//! clock. Whatever a parser is given, it answers with a value or an error, and `fuzz/` says so.

pub mod answers;
pub mod cloudflare;
mod end_addresses;
pub mod irtt;
pub mod kernel;
pub mod librespeed;
pub mod load;
pub mod ndt7;
pub mod ookla;
mod query;
pub mod responsiveness;
pub mod throughput1;
mod unsent;
pub mod weir;

pub use end_addresses::EndAddresses;
pub use query::{Query, QueryError};
pub use unsent::UnsentBound;
