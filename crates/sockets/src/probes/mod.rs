//! Probes: trains of pings from the client, and what answers them at the servers.

mod connect;
mod echo;
mod icmp;
mod kind;
mod lanes;
mod message;
mod ping_tracker;
mod prober;
mod reflector;
mod session;
mod sockets;
mod tcp;
mod ttl;
mod udp;

pub(crate) use echo::Echo;
pub(crate) use kind::PingMarks;
pub use kind::PingMethod;
pub(crate) use lanes::MAX_LANES;
pub(crate) use message::MIN_UDP_PAYLOAD_BYTES;
pub(crate) use ping_tracker::Schedule;
pub use prober::is_like_loss;
pub(crate) use prober::{Patience, PingSink, ProbeTrain, Prober};
pub use reflector::Reflector;
pub(crate) use sockets::shared_udp_socket;
pub(crate) use ttl::NUMBER_BYTES;
