//! The loads and probes of a scenario on real Linux sockets.
//!
//! [`ScenarioEnds::start`] opens all sockets of the client and the servers, each end in its [`EndNamespace`],
//! and sends rows of the record as the run goes on. It makes neither namespaces nor a data path: whatever
//! carries the packets between the ends is measured.
//!
//! | thread | where | does |
//! |---|---|---|
//! | `client flows`, `server flows` | its place | all ends of TCP loads, by epoll |
//! | `client UDP`, `server UDP` | its place | all ends of UDP loads, if there are any |
//! | `samples` | anywhere | throughput, `TCP_INFO`, totals |
//! | `probes` | client | sends all trains of pings, takes the answers |
//! | `echo` | server | answers UDP and TCP probes |
//!
//! What the loads of all worlds and of the server share, whoever drives them, is [`load`].
//!
//! A [`Ping`] is one train of pings to any host, on the probes' own code. A [`Session`] speaks Weir's own protocol with a server elsewhere; an [`EchoKeeper`] holds one open for its
//! echo alone.

mod addresses;
mod check;
mod clock;
mod counters;
mod echo;
mod ends;
mod error;
mod flows;
pub mod load;
mod lookup;
mod ping;
mod pings;
mod plan;
mod probes;
mod secret;
mod session;
#[cfg(feature = "streams")]
mod stream;
pub mod sys;
mod target;
mod tcp_info;
mod unsent;

pub use addresses::{Addresses, EchoSession, SessionEnds};
pub use check::{
    MAX_PAYLOAD_BYTES, available_congestion_controls, check, check_congestion_control,
};
pub use clock::Clock;
pub use echo::{EchoGrant, EchoKeeper, EchoNews};
pub use ends::{EndNamespace, Sample, ScenarioEnds, Totals};
pub use error::{NetError, is_forbidden};
pub use lookup::{LookupError, address_of};
pub use ping::{
    MAX_PINGS, MIN_PING_PERIOD, NO_ICMP, Ping, PingEvent, PingSettings, run_pings, run_weir_pings,
};
pub use pings::Pings;
pub use probes::{PingMethod, Reflector};
pub use secret::read_secret;
pub use session::{ClockOffset, Grant, Session};
#[cfg(feature = "streams")]
pub use stream::{BoundedStream, TcpCarrier};
pub use target::Target;
pub use tcp_info::TcpInfo;
pub use unsent::{Unsent, write_apart};
