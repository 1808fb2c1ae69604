//! Datagrams of UDP loads, and of names that applications look up, between the client's port and the server's. All numbers are big-endian.
//!
//! | bytes | asks | answer | packet of the load |
//! |---|---|---|---|
//! | 0-3 | `WEIR` | `WEIR` | `WEIR` |
//! | 4 | 1, the version | 1 | 1 |
//! | 5 | 2 | 3 | 4 |
//! | 6-7 | 0 | 0 | 0 |
//! | 8-15 | ticket of the flow | the same | the same |
//! | 16-23 | cookie; 0 as long as none was told | cookie for this address and port | number of the packet, from 0 |
//! | 24-31 | 0 | 0 | when it was sent, ns on the server's clock |
//! | 32- | | | padding |
//!
//! An answer is exactly as long as what it answers. No packet of a load goes to a port before its cookie came back from
//! there: whoever names the port of somebody else does not know it.
//!
//! An application asks for names in the same way, from a port whose cookie it knows:
//!
//! | bytes | query | reply |
//! |---|---|---|
//! | 0-4 | as above | as above |
//! | 5 | 5 | 6 |
//! | 6-7 | 0 | 0 |
//! | 8-15 | ticket of the flow | the same |
//! | 16-23 | cookie | number of the query |
//! | 24-31 | number of the query | 0 |
//! | 32- | padding to 51 bytes | padding to 120 bytes |

use super::Token;

/// A datagram of a UDP load, or of a name that is looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadDatagram {
    /// The client of a download asks for it, and says that it still listens.
    Ask {
        /// The flow.
        ticket: Token,
        /// Cookie that the server told to this port; 0 if it has told none.
        cookie: u64,
    },
    /// The server's answer to an [`Ask`](Self::Ask) without the port's cookie.
    Answer {
        /// The flow.
        ticket: Token,
        /// Cookie of the port, which is not 0.
        cookie: u64,
    },
    /// A packet of the load.
    Packet {
        /// The flow.
        ticket: Token,
        /// Number of the packet, from 0.
        seq: u64,
        /// When it was sent, in nanoseconds on the server's clock.
        sent_ns: u64,
    },
    /// The client of an application looks a name up.
    Query {
        /// The flow.
        ticket: Token,
        /// Cookie that the server told to this port.
        cookie: u64,
        /// Number of the query; one that is sent again keeps it.
        number: u64,
    },
    /// The server's answer to a [`Query`](Self::Query).
    Reply {
        /// The flow.
        ticket: Token,
        /// Number of the query.
        number: u64,
    },
}

impl LoadDatagram {
    /// Reads a datagram, `None` if it is none of a load.
    #[must_use]
    pub fn parse(datagram: &[u8]) -> Option<Self> {
        let header: &[u8; LOAD_BYTES] = datagram.first_chunk()?;
        if header[..5] != HEAD {
            return None;
        }
        let long = |at: usize| Some(u64::from_be_bytes(*header.get(at..)?.first_chunk()?));
        let (ticket, first, second) = (Token(long(8)?), long(16)?, long(24)?);
        match header[5] {
            ASK => Some(Self::Ask { ticket, cookie: first }),
            ANSWER if first != 0 => Some(Self::Answer { ticket, cookie: first }),
            PACKET => Some(Self::Packet { ticket, seq: first, sent_ns: second }),
            QUERY => Some(Self::Query { ticket, cookie: first, number: second }),
            REPLY => Some(Self::Reply { ticket, number: first }),
            _ => None,
        }
    }

    /// Writes it into a datagram of at least [`LOAD_BYTES`]; what is longer is padding.
    ///
    /// # Panics
    /// If the datagram is shorter.
    pub fn emit(self, datagram: &mut [u8]) {
        let (kind, ticket, first, second) = match self {
            Self::Ask { ticket, cookie } => (ASK, ticket, cookie, 0),
            Self::Answer { ticket, cookie } => (ANSWER, ticket, cookie, 0),
            Self::Packet { ticket, seq, sent_ns } => (PACKET, ticket, seq, sent_ns),
            Self::Query { ticket, cookie, number } => (QUERY, ticket, cookie, number),
            Self::Reply { ticket, number } => (REPLY, ticket, number, 0),
        };
        datagram[..5].copy_from_slice(&HEAD);
        datagram[5..8].copy_from_slice(&[kind, 0, 0]);
        datagram[8..16].copy_from_slice(&ticket.0.to_be_bytes());
        datagram[16..24].copy_from_slice(&first.to_be_bytes());
        datagram[24..LOAD_BYTES].copy_from_slice(&second.to_be_bytes());
    }
}

/// Length in bytes of the shortest datagram of a UDP load.
pub const LOAD_BYTES: usize = 32;
/// What all of them begin with, as echoes do: the kind tells them apart.
const HEAD: [u8; 5] = [b'W', b'E', b'I', b'R', super::VERSION as u8];
const ASK: u8 = 2;
const ANSWER: u8 = 3;
const PACKET: u8 = 4;
const QUERY: u8 = 5;
const REPLY: u8 = 6;

#[cfg(test)]
mod tests {
    use super::super::{EchoReply, EchoRequest, echoes};
    use super::*;

    #[test]
    fn what_is_written_is_read_and_is_no_echo() {
        let ticket = Token(0x0102_0304_0506_0708);
        for one in [
            LoadDatagram::Ask { ticket, cookie: 0 },
            LoadDatagram::Ask { ticket, cookie: 7 },
            LoadDatagram::Answer { ticket, cookie: u64::MAX },
            LoadDatagram::Packet { ticket, seq: 1 << 40, sent_ns: u64::MAX },
            LoadDatagram::Query { ticket, cookie: 7, number: u64::MAX },
            LoadDatagram::Reply { ticket, number: 3 },
        ] {
            let mut datagram = [9; 60];
            one.emit(&mut datagram);
            assert_eq!(LoadDatagram::parse(&datagram), Some(one));
            assert_eq!(LoadDatagram::parse(&datagram[..LOAD_BYTES]), Some(one));
            assert_eq!(LoadDatagram::parse(&datagram[..LOAD_BYTES - 1]), None);
            assert_eq!(datagram[LOAD_BYTES..], [9; 28], "padding is left alone");
            assert!(echoes(&datagram));
            assert_eq!((EchoRequest::parse(&datagram), EchoReply::parse(&datagram)), (None, None));
        }
    }

    #[test]
    fn an_echo_and_an_answer_without_a_cookie_are_none() {
        let mut datagram = [0; 48];
        let token = Token(1);
        EchoRequest { token, train: 0, seq: 0, answer_tos: 0, stamp: 0 }.emit(&mut datagram);
        assert_eq!(LoadDatagram::parse(&datagram), None);
        LoadDatagram::Answer { ticket: token, cookie: 0 }.emit(&mut datagram);
        assert_eq!(LoadDatagram::parse(&datagram), None);
    }
}
