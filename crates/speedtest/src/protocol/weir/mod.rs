//! Weir's own protocol, version 1: `docs/protocol.md` is its specification.
//!
//! A session is a WebSocket on [`CONTROL`] over which both sides speak JSON ([`ClientMessage`],
//! [`ServerMessage`]). It gives a token to a client that has shown an address, and the secret if there is
//! one; only with it are there loads ([`FLOW`], one TCP connection or HTTP request each, or datagrams:
//! [`LoadDatagram`]) and echoes of datagrams ([`EchoRequest`]).

mod control;
mod echo;
mod load;
mod secret;

pub use control::{
    ApplicationLimits, ClientMessage, EchoCount, EndReason, FlowRequest, FlowSample, Limits,
    ServerMessage, TcpSample, UdpLimits, UdpPattern, UdpReceived, UdpRequest, UdpSample, UdpSent,
};
pub use echo::{ECHO_BYTES, EchoReply, EchoRequest, echoes};
pub use load::{LOAD_BYTES, LoadDatagram};
pub use secret::{Mac, Secret, SecretError, Token};
pub use weir_core::Direction;

/// The version of the protocol that this is.
pub const VERSION: u32 = 1;
/// Where sessions are opened.
pub const CONTROL: &str = "/weir/v1";
/// Where the connections of flows go.
pub const FLOW: &str = "/weir/v1/flow";
/// The name of the protocol in `Sec-WebSocket-Protocol`.
pub const SUBPROTOCOL: &str = "weir.v1";
/// The name of the protocol in `Upgrade`, for the connections of flows.
pub const FLOW_UPGRADE: &str = "weir-flow";
/// The name of the protocol in `Upgrade`, for the connections of applications.
pub const APPLICATION_UPGRADE: &str = "weir-application";
/// Length in bytes of the server's answer to it, which counts as a part of the first answer.
pub const APPLICATION_ANSWER_BYTES: u64 = 121;
/// The longest message, in bytes.
pub const MAX_MESSAGE_BYTES: usize = 64 << 10;
