//! Quantities, packets and named randomness shared by every part of Weir.
//!
//! Nothing here reads a clock, allocates per packet or does I/O. Integers carry the exact values;
//! a float appears only where a person reads it.

mod bytes;
mod direction;
mod framing;
mod host;
mod nearest;
mod packet;
mod prefetch;
mod random;
mod rate;
mod reason;
mod system;
pub mod tables;
mod tcp;
mod ticker;
mod time;
pub mod units;

pub use bytes::Bytes;
pub use direction::{Direction, End};
pub use framing::{Cells, Framing};
pub use host::without_brackets;
pub use nearest::nearest;
pub use packet::{
    Dscp, ETHERNET_HEADER, Ecn, FlowKey, FlowLabel, IpVersion, Packet, Priority, Protocol,
};
pub use prefetch::{prefetch, prefetch_start};
pub use random::{Draw, RNG_NAME, Rng, Seed};
pub use rate::{Rate, Serializer};
pub use reason::{DropReason, MarkReason};
pub use system::error_in_words;
pub use tcp::{SackRanges, TcpFlags, TcpHeader, comes_before};
pub use ticker::Ticker;
pub use time::{Duration, Time};
pub use units::UnitError;
