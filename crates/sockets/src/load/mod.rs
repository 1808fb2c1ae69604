//! One end of a load on a socket: what all loads share, whoever drives them.
//!
//! The lab's loads (`flows`) and those of the world net are driven by [`LoadPoll`] and [`LoadEnd`], many of them on one
//! thread. The server drives its loads itself, beside HTTP and TLS, and shares [`SendBudget`] and [`options`]. UDP loads of
//! the world net are in [`udp`].

pub mod application;
mod budget;
mod end;
pub mod options;
mod poll;
pub mod udp;

pub use budget::SendBudget;
pub use end::{LoadEnd, LoadStep};
pub use poll::LoadPoll;

/// Bytes handed to the kernel at once: more than a socket with [`options::MAX_UNSENT_BYTES`] takes.
pub const WRITE_BYTES: usize = 256 << 10;
