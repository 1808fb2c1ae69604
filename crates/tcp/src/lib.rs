//! TCP endpoints as pure state machines, segment by segment, faithful to Linux.
//!
//! An [`Endpoint`] takes segments and the time and gives segments. What TCP it speaks is a [`Profile`],
//! which is data; which window it keeps is a congestion control of its own file. The rules are those of
//! Linux 6.12 where a profile says so and of the RFCs where not, and each is cited where it stands.
//!
//! Data is counted in segments: sequence numbers number segments, not bytes. What that leaves out
//! (repacketisation, segments of unequal size sent again joined) is listed in `docs/tcp.md`.

mod ack;
mod ack_state;
mod clock;
mod congestion;
mod endpoint;
mod pacing;
mod profile;
#[cfg(test)]
mod properties;
mod rack;
mod rate;
mod receive_window;
mod receiver;
mod recovery;
mod rtt;
mod scoreboard;
mod segment;
mod send_buffer;
mod sender;
mod timers;
mod transmit;
mod undo;
mod window;

pub use clock::Timers;
pub use congestion::{ALGORITHMS, Algorithm};
pub use endpoint::{Endpoint, Info, UnknownAlgorithm};
pub use profile::{
    Bursts, DelayedAck, IdleRestart, LossDetection, PROFILES, Profile, RtoRule, SocketBuffer,
    UnknownProfile, WindowRule, check_profiles,
};
pub use segment::{Block, Flags, SackBlocks, Segment};
pub use sender::{Counters, Wire};
