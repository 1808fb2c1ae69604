//! Datagrams that are echoed. All numbers are big-endian; an answer is exactly as long as its request.
//!
//! | bytes | request | answer |
//! |---|---|---|
//! | 0-3 | `WEIR` | `WEIR` |
//! | 4 | 1, the version | 1 |
//! | 5 | 0 | 1 |
//! | 6 | TOS byte that the answer is to have | TOS byte with which the request arrived |
//! | 7 | train, chosen by the client | the same |
//! | 8-15 | token of the session | the same |
//! | 16-19 | sequence number | the same |
//! | 20-23 | 0 | requests of this train that have arrived so far, this one included |
//! | 24-31 | anything: the client's own stamp | the same |
//! | 32-39 | 0 | when the request arrived, ns on the server's clock |
//! | 40-47 | 0 | when the answer was sent, ns on the server's clock |
//! | 48- | padding | the same |

use super::Token;

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EchoRequest {
    /// The session.
    pub token: Token,
    /// Number of the train of probes to which it belongs.
    pub train: u8,
    /// Sequence number of the request in its train.
    pub seq: u32,
    /// The TOS byte (DSCP and ECN) that the answer is to have.
    pub answer_tos: u8,
    /// Stamp of the client, which the answer returns.
    pub stamp: u64,
}

/// An answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EchoReply {
    /// The session.
    pub token: Token,
    /// Number of the request's train of probes.
    pub train: u8,
    /// The request's sequence number.
    pub seq: u32,
    /// The TOS byte with which the request arrived.
    pub request_tos: u8,
    /// The request's stamp.
    pub stamp: u64,
    /// Requests of this train that have arrived so far, this one included.
    pub received: u32,
    /// When the request arrived, in nanoseconds on the server's clock.
    pub received_ns: u64,
    /// When the answer was sent, in nanoseconds on the server's clock.
    pub sent_ns: u64,
}

/// Whether a datagram is one of these at all, so that others can share the port.
#[must_use]
pub fn echoes(datagram: &[u8]) -> bool {
    datagram.starts_with(MAGIC)
}

impl EchoRequest {
    /// Reads a request, `None` if it is none.
    #[must_use]
    pub fn parse(datagram: &[u8]) -> Option<Self> {
        let header = header(datagram, REQUEST)?;
        Some(Self {
            token: Token(long(header, 8)),
            train: header[7],
            seq: int(header, 16),
            answer_tos: header[6],
            stamp: long(header, 24),
        })
    }

    /// Writes the request into a datagram of at least [`ECHO_BYTES`]; what is longer is padding.
    ///
    /// # Panics
    /// If the datagram is shorter.
    pub fn emit(&self, datagram: &mut [u8]) {
        datagram[..ECHO_BYTES].fill(0);
        emit_common(datagram, REQUEST, self.answer_tos);
        datagram[7] = self.train;
        datagram[8..16].copy_from_slice(&self.token.0.to_be_bytes());
        datagram[16..20].copy_from_slice(&self.seq.to_be_bytes());
        datagram[24..32].copy_from_slice(&self.stamp.to_be_bytes());
    }
}

impl EchoReply {
    /// Reads an answer, `None` if it is none.
    #[must_use]
    pub fn parse(datagram: &[u8]) -> Option<Self> {
        let header = header(datagram, REPLY)?;
        Some(Self {
            token: Token(long(header, 8)),
            train: header[7],
            seq: int(header, 16),
            request_tos: header[6],
            stamp: long(header, 24),
            received: int(header, 20),
            received_ns: long(header, 32),
            sent_ns: long(header, 40),
        })
    }

    /// Turns the datagram of a request into that of its answer, where it stands.
    ///
    /// # Panics
    /// If the datagram is shorter than [`ECHO_BYTES`]: it was no request.
    pub fn answer(
        datagram: &mut [u8],
        request_tos: u8,
        received: u32,
        received_ns: u64,
        sent_ns: u64,
    ) {
        emit_common(datagram, REPLY, request_tos);
        datagram[20..24].copy_from_slice(&received.to_be_bytes());
        datagram[32..40].copy_from_slice(&received_ns.to_be_bytes());
        datagram[40..48].copy_from_slice(&sent_ns.to_be_bytes());
    }
}

fn header(datagram: &[u8], kind: u8) -> Option<&[u8; ECHO_BYTES]> {
    let header = datagram.first_chunk()?;
    (echoes(header) && header[4] == VERSION && header[5] == kind).then_some(header)
}

fn emit_common(datagram: &mut [u8], kind: u8, tos: u8) {
    datagram[..4].copy_from_slice(MAGIC);
    datagram[4..7].copy_from_slice(&[VERSION, kind, tos]);
}

fn int(header: &[u8; ECHO_BYTES], at: usize) -> u32 {
    u32::from_be_bytes(header[at..at + 4].try_into().expect("four bytes"))
}

fn long(header: &[u8; ECHO_BYTES], at: usize) -> u64 {
    u64::from_be_bytes(header[at..at + 8].try_into().expect("eight bytes"))
}

/// Length in bytes of the shortest request.
pub const ECHO_BYTES: usize = 48;
const MAGIC: &[u8] = b"WEIR";
const VERSION: u8 = super::VERSION as u8;
const REQUEST: u8 = 0;
const REPLY: u8 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_repeats_its_request_and_adds_what_the_server_saw() {
        let request =
            EchoRequest { token: Token(0x0102), train: 3, seq: 77, answer_tos: 0xb9, stamp: 42 };
        let mut datagram = [9; 60];
        request.emit(&mut datagram);
        assert_eq!(EchoRequest::parse(&datagram), Some(request));
        assert_eq!(EchoReply::parse(&datagram), None);
        assert_eq!(datagram[..8], [b'W', b'E', b'I', b'R', 1, 0, 0xb9, 3]);
        assert_eq!(datagram[48..], [9; 12], "padding is left alone");
        EchoReply::answer(&mut datagram, 0x03, 5, 1_000, 2_000);
        assert_eq!(EchoRequest::parse(&datagram), None);
        assert_eq!(
            EchoReply::parse(&datagram),
            Some(EchoReply {
                token: Token(0x0102),
                train: 3,
                seq: 77,
                request_tos: 3,
                stamp: 42,
                received: 5,
                received_ns: 1_000,
                sent_ns: 2_000,
            })
        );
    }

    #[test]
    fn what_is_short_or_of_another_version_is_no_request() {
        let request = EchoRequest { token: Token(1), train: 0, seq: 0, answer_tos: 0, stamp: 0 };
        let mut datagram = [0; ECHO_BYTES];
        request.emit(&mut datagram);
        assert!(EchoRequest::parse(&datagram[..47]).is_none());
        datagram[4] = 2;
        assert!(EchoRequest::parse(&datagram).is_none());
        assert!(echoes(&datagram));
        assert!(!echoes(b"LOSS"));
    }
}
