//! Loads: both ends of all TCP connections, on one thread for the client and one for the servers, those of UDP loads on
//! two others, those of applications on two more, and a thread that takes samples.

mod application;
mod application_server;
mod board;
mod handshake;
mod sampler;
mod sockets;
mod udp;
mod udp_message;
mod worker;

pub(crate) use application::ApplicationWorker;
pub(crate) use application_server::ApplicationServer;
pub(crate) use board::Board;
pub(crate) use handshake::Offer;
pub(crate) use sampler::Sampler;
pub(crate) use udp::UdpWorker;
pub(crate) use udp_message::MIN_UDP_LOAD_BYTES;
pub(crate) use worker::Worker;
