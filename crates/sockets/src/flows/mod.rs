//! TCP loads: both ends of all connections, on one thread for the client and one for the servers, and a
//! third thread that takes samples.

mod board;
mod handshake;
mod sampler;
mod sockets;
mod worker;

pub(crate) use board::Board;
pub(crate) use sampler::Sampler;
pub(crate) use worker::Worker;
