//! Transcripts: packet by packet, what an endpoint sends when.
//!
//! Each test tells one exchange and names the rule that it shows, with the section of the RFC that
//! states it and, where Linux does it in a way of its own, the kernel's function. Numbers are exact:
//! the endpoints are pure state machines, so that there is one right answer to everything.
//!
//! Segments are numbered, not bytes: `data(5)` is the sixth segment of the stream, `ack(5)` asks for
//! it, and `again(5)` is its retransmission. Times are counted from the start of a script, which is
//! when its connection is open.

mod line;
mod pair;
mod script;

mod bbr;
mod bursts;
mod cdg;
mod cubic;
mod dctcp;
mod delayed_ack;
mod ecn;
mod exchanges;
mod handshake;
mod hystart;
mod idle;
mod ledbat;
mod limited_transmit;
mod lp;
mod new_reno;
mod pacing;
mod rack;
mod receive_window;
mod reno;
mod sack_blocks;
mod sack_recovery;
mod send_buffer;
mod slow_start;
mod spurious;
mod tail_probe;
mod timeout;
mod timestamps;
mod westwood;
