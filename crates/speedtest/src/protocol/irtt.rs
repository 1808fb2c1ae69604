//! irtt's datagrams, version 1, as a server sees them (heistp/irtt 0.9). All numbers are little-endian.
//!
//! A datagram is magic `14 a7 5b`, flags, an HMAC of 16 bytes if flag 8 is set, the connection's token of 8
//! bytes, and then, while a connection is open: sequence number of 4, if asked for the received count of 4
//! and window of 8, the stamps asked for of 8 each, and padding. The one that opens a connection has no
//! token; there, and behind the token in the answer to it, are parameters: pairs of a number of variable
//! length and a signed one, or a text.

use hmac::{Hmac, KeyInit, Mac};
use md5::Md5;

/// Request of a client, which is one datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IrttRequest {
    /// Opens a connection.
    Open {
        /// How it is to be.
        params: Params,
        /// Whether it is closed again at once: the client only wants to know the parameters.
        and_close: bool,
    },
    /// Wants an answer.
    Echo {
        /// The connection.
        token: u64,
        /// Sequence number of the request.
        seq: u32,
    },
    /// Closes a connection.
    Close {
        /// The connection.
        token: u64,
    },
}

/// How a connection is to be. Times are nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Params {
    /// Version of the protocol: 1.
    pub version: i64,
    /// How long the client will send.
    pub duration_ns: i64,
    /// Time between two requests, in nanoseconds.
    pub interval_ns: i64,
    /// How long datagrams are, in bytes.
    pub length: i64,
    /// Bit 0: the answer counts what was received; bit 1: it says which of the last 64 were.
    pub received_stats: i64,
    /// Bit 0: stamp at departure; bit 1: at arrival; 4: one in the middle.
    pub stamp_at: i64,
    /// Bit 0: stamps of the wall clock; bit 1: of the monotonic clock.
    pub clock: i64,
    /// TOS byte of the answers.
    pub dscp: i64,
    /// How the answer's padding is filled.
    pub server_fill: String,
}

/// Fields of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Datagrams received so far.
    pub received: u32,
    /// Arrival bits of the last 64 datagrams: bit 0 is the newest; 0 if that is not known.
    pub window: u64,
    /// When the datagram arrived.
    pub arrived: Stamp,
    /// When the answer leaves.
    pub leaves: Stamp,
}

/// A time on both clocks, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// Time since 1970, in nanoseconds.
    pub wall: u64,
    /// Time since some start on a monotonic clock, in nanoseconds.
    pub monotonic: u64,
}

impl IrttRequest {
    /// Reads a datagram; `None` if it is no request, or its HMAC is not that of `key`, or is there without
    /// a key.
    #[must_use]
    pub fn parse(datagram: &[u8], key: Option<&[u8]>) -> Option<Self> {
        let (flags, rest) = open_frame(datagram, key)?;
        let (open, close) = (flags & OPEN != 0, flags & CLOSE != 0);
        if flags & REPLY != 0 {
            return None;
        }
        if open {
            return Some(Self::Open { params: Params::parse(rest)?, and_close: close });
        }
        let (token, rest) = rest.split_first_chunk()?;
        let token = u64::from_le_bytes(*token);
        if close {
            return Some(Self::Close { token });
        }
        let seq = u32::from_le_bytes(*rest.first_chunk()?);
        Some(Self::Echo { token, seq })
    }
}

/// The datagram that opens a connection, or refuses to, with the parameters as the server will have them.
#[must_use]
pub fn opened(token: u64, params: &Params, refused: bool, key: Option<&[u8]>) -> Vec<u8> {
    let flags = OPEN | REPLY | if refused { CLOSE } else { 0 };
    let mut datagram = frame(flags, key);
    datagram.extend_from_slice(&token.to_le_bytes());
    params.emit(&mut datagram);
    sign(&mut datagram, key);
    datagram
}

/// Turns the datagram of an [`IrttRequest::Echo`] into its answer, which is as long as its parameters say, but
/// never longer than the request. `None` if the request has no room for what the parameters ask for.
pub fn answer<'d>(
    datagram: &'d mut [u8],
    params: &Params,
    answer: &Answer,
    last: bool,
    key: Option<&[u8]>,
) -> Option<&'d [u8]> {
    let length = usize::try_from(params.length).ok()?;
    let header = header_bytes(key) + 8 + 4;
    let fields = params.fields(answer);
    let end = fields.iter().flatten().map(|field| field.1).sum::<usize>() + header;
    let datagram = datagram.get_mut(..length.max(end))?;
    datagram[3] = (datagram[3] & HMAC) | REPLY | if last { CLOSE } else { 0 };
    let mut at = header;
    for (value, width) in fields.into_iter().flatten() {
        datagram[at..at + width].copy_from_slice(&value.to_le_bytes()[..width]);
        at += width;
    }
    sign(datagram, key);
    Some(datagram)
}

impl Params {
    /// The parameters as this server will have them, where a connection may take so long, send so often and
    /// have datagrams so long.
    #[must_use]
    pub fn bounded(mut self, longest_ns: i64, interval_ns: i64, length: i64) -> Self {
        self.version = VERSION;
        self.duration_ns = self.duration_ns.min(longest_ns);
        self.interval_ns = self.interval_ns.clamp(interval_ns, MAX_INTERVAL_NS);
        self.length = self.length.clamp(0, length);
        self.dscp &= 0xff;
        // Padding is sent back as it came: what a client asks for may be anything.
        self.server_fill.clear();
        self
    }

    /// Whether the client speaks the version of this server.
    #[must_use]
    pub const fn same_version(&self) -> bool {
        self.version == VERSION
    }

    fn parse(mut bytes: &[u8]) -> Option<Self> {
        let mut params = Self::default();
        while !bytes.is_empty() {
            let key = uvarint(&mut bytes)?;
            if key == SERVER_FILL {
                let length = usize::try_from(uvarint(&mut bytes)?).ok()?;
                let (text, rest) = bytes.split_at_checked(length)?;
                if length > MAX_FILL_BYTES {
                    return None;
                }
                params.server_fill = String::from_utf8(text.to_vec()).ok()?;
                bytes = rest;
                continue;
            }
            let value = zigzag(uvarint(&mut bytes)?);
            let allowed = match key {
                2 | 3 => 1..=i64::MAX,
                // Two bits.
                5 | 7 => 0..=3,
                // Two bits, or the middle.
                6 => 0..=STAMP_MIDDLE,
                _ => i64::MIN..=i64::MAX,
            };
            if !allowed.contains(&value) {
                return None;
            }
            match key {
                1 => params.version = value,
                2 => params.duration_ns = value,
                3 => params.interval_ns = value,
                4 => params.length = value,
                5 => params.received_stats = value,
                6 => params.stamp_at = value,
                7 => params.clock = value,
                8 => params.dscp = value,
                // Unknown ones are passed over, as irtt does.
                _ => {}
            }
        }
        Some(params)
    }

    fn emit(&self, to: &mut Vec<u8>) {
        let numbers = [
            self.version,
            self.duration_ns,
            self.interval_ns,
            self.length,
            self.received_stats,
            self.stamp_at,
            self.clock,
            self.dscp,
        ];
        for (key, value) in (1..).zip(numbers).filter(|(_, value)| *value != 0) {
            put_uvarint(to, key);
            put_uvarint(to, ((value << 1) ^ (value >> 63)) as u64);
        }
    }

    /// Fields of an answer after its sequence number: values and widths in bytes.
    fn fields(&self, answer: &Answer) -> [Option<(u64, usize)>; 8] {
        let stats = |bit, value, width| (self.received_stats & bit != 0).then_some((value, width));
        let stamp =
            |wanted: bool, clock, value| (wanted && self.clock & clock != 0).then_some((value, 8));
        let (arrival, departure, middle) =
            (self.stamp_at & 2 != 0, self.stamp_at & 1 != 0, self.stamp_at == STAMP_MIDDLE);
        let (first, last) = (answer.arrived, answer.leaves);
        let between = |a: u64, b: u64| a + b.saturating_sub(a) / 2;
        [
            stats(1, u64::from(answer.received), 4),
            stats(2, answer.window, 8),
            stamp(arrival, 1, first.wall),
            stamp(arrival, 2, first.monotonic),
            stamp(middle, 1, between(first.wall, last.wall)),
            stamp(middle, 2, between(first.monotonic, last.monotonic)),
            stamp(departure, 1, last.wall),
            stamp(departure, 2, last.monotonic),
        ]
    }
}

/// Window of the last 64 datagrams of a connection: which of them have arrived.
#[derive(Clone, Copy, Debug, Default)]
pub struct Window {
    highest: Option<u32>,
    seen: u64,
}

impl Window {
    /// A datagram arrived. Returns the window with the newest as bit 0; 0 after one that came late, as irtt
    /// has it.
    pub fn arrived(&mut self, seq: u32) -> u64 {
        let Some(highest) = self.highest else {
            (self.highest, self.seen) = (Some(seq), 1);
            return 1;
        };
        match seq.checked_sub(highest) {
            Some(ahead) => {
                self.seen = self.seen.checked_shl(ahead).unwrap_or(0) | 1;
                self.highest = Some(seq);
                self.seen
            }
            None => {
                self.seen |= 1_u64.checked_shl(highest - seq).unwrap_or(0);
                0
            }
        }
    }
}

/// The flags and what stands behind the HMAC, if the datagram is whole and its HMAC right.
fn open_frame<'d>(datagram: &'d [u8], key: Option<&[u8]>) -> Option<(u8, &'d [u8])> {
    let (&[a, b, c, flags], rest) = datagram.split_first_chunk()?;
    let known = flags & !(OPEN | REPLY | CLOSE | HMAC) == 0;
    if [a, b, c] != MAGIC || !known || (flags & HMAC != 0) != key.is_some() {
        return None;
    }
    let Some(key) = key else { return Some((flags, rest)) };
    let (code, rest) = rest.split_first_chunk::<HMAC_BYTES>()?;
    let mut hmac = new_hmac(key);
    hmac.update(&datagram[..4]);
    hmac.update(&[0; HMAC_BYTES]);
    hmac.update(rest);
    hmac.verify_slice(code).ok()?;
    Some((flags, rest))
}

fn frame(flags: u8, key: Option<&[u8]>) -> Vec<u8> {
    let mut datagram = MAGIC.to_vec();
    datagram.push(flags | if key.is_some() { HMAC } else { 0 });
    datagram.resize(header_bytes(key), 0);
    datagram
}

fn sign(datagram: &mut [u8], key: Option<&[u8]>) {
    let Some(key) = key else { return };
    datagram[4..4 + HMAC_BYTES].fill(0);
    let mut hmac = new_hmac(key);
    hmac.update(datagram);
    datagram[4..4 + HMAC_BYTES].copy_from_slice(&hmac.finalize().into_bytes());
}

fn new_hmac(key: &[u8]) -> Hmac<Md5> {
    Hmac::new_from_slice(key).expect("HMAC takes keys of any length")
}

const fn header_bytes(key: Option<&[u8]>) -> usize {
    4 + if key.is_some() { HMAC_BYTES } else { 0 }
}

/// Seven bits a byte, lowest first; the highest bit says that more follow.
fn uvarint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let part = u64::from(byte & 0x7f);
        if shift == 63 && part > 1 {
            return None;
        }
        value |= part << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn put_uvarint(to: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        to.push(value as u8 | 0x80);
        value >>= 7;
    }
    to.push(value as u8);
}

/// Signed numbers alternate: 0, -1, 1, -2.
const fn zigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// The port that irtt's clients know.
pub const PORT: u16 = 2112;
const MAGIC: [u8; 3] = [0x14, 0xa7, 0x5b];
const OPEN: u8 = 1;
const REPLY: u8 = 2;
const CLOSE: u8 = 4;
const HMAC: u8 = 8;
const HMAC_BYTES: usize = 16;
const VERSION: i64 = 1;
const SERVER_FILL: u64 = 9;
const MAX_FILL_BYTES: usize = 32;
const STAMP_MIDDLE: i64 = 4;
/// A quarter of the time after which irtt's server forgets a silent client.
const MAX_INTERVAL_NS: i64 = 15_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    /// The first datagram of `irtt client -d 1s -i 10ms` (irtt 0.9.0 of Debian 12), as it was seen.
    const OPEN_REQUEST: [u8; 23] = [
        0x14, 0xa7, 0x5b, 0x01, 0x01, 0x02, 0x02, 0x80, 0xa8, 0xd6, 0xb9, 0x07, 0x03, 0x80, 0xda,
        0xc4, 0x09, 0x05, 0x06, 0x06, 0x06, 0x07, 0x06,
    ];

    #[test]
    fn a_connection_is_opened_within_bounds() {
        let Some(IrttRequest::Open { params, and_close: false }) =
            IrttRequest::parse(&OPEN_REQUEST, None)
        else {
            panic!("no request")
        };
        let asked = Params {
            version: 1,
            duration_ns: 1_000_000_000,
            interval_ns: 10_000_000,
            length: 0,
            received_stats: 3,
            stamp_at: 3,
            clock: 3,
            dscp: 0,
            server_fill: String::new(),
        };
        assert_eq!(params, asked);
        let allowed = params.clone().bounded(500_000_000, 20_000_000, 1472);
        assert_eq!((allowed.duration_ns, allowed.interval_ns), (500_000_000, 20_000_000));
        let reply = opened(7, &params, false, None);
        assert_eq!(reply.len(), OPEN_REQUEST.len() + 8, "the token is all that is longer");
        assert_eq!(reply[..4], [0x14, 0xa7, 0x5b, OPEN | REPLY]);
        assert_eq!(Params::parse(&reply[12..]), Some(params));
        assert_eq!(IrttRequest::parse(&reply, None), None, "an answer is no request");
    }

    #[test]
    fn an_answer_has_what_was_asked_for_where_it_is_expected() {
        let params =
            Params { length: 80, received_stats: 3, stamp_at: 3, clock: 3, ..Params::default() };
        let mut datagram = frame(0, None);
        datagram.extend_from_slice(&9_u64.to_le_bytes());
        datagram.extend_from_slice(&5_u32.to_le_bytes());
        datagram.resize(80, 0xee);
        assert_eq!(
            IrttRequest::parse(&datagram, None),
            Some(IrttRequest::Echo { token: 9, seq: 5 })
        );
        let said = Answer {
            received: 6,
            window: 0b11,
            arrived: Stamp { wall: 100, monotonic: 10 },
            leaves: Stamp { wall: 103, monotonic: 13 },
        };
        let reply = answer(&mut datagram, &params, &said, false, None).unwrap();
        let long = |at: usize| u64::from_le_bytes(reply[at..at + 8].try_into().unwrap());
        assert_eq!((reply.len(), reply[3]), (80, REPLY));
        assert_eq!(reply[16..20], 6_u32.to_le_bytes());
        assert_eq!([20, 28, 36, 44, 52].map(long), [0b11, 100, 10, 103, 13]);
        assert_eq!(reply[60..], [0xee; 20], "padding comes back");
        let middle = Params { stamp_at: 4, clock: 1, received_stats: 0, length: 0, ..params };
        let last = answer(&mut datagram, &middle, &said, true, None).unwrap();
        assert_eq!((last.len(), last[3]), (24, REPLY | CLOSE));
        assert_eq!(last[16..], 101_u64.to_le_bytes());
        assert!(answer(&mut datagram[..20], &middle, &said, false, None).is_none());
    }

    #[test]
    fn a_key_is_needed_exactly_where_there_is_one() {
        let key = Some(&b"secret key"[..]);
        assert!(IrttRequest::parse(&OPEN_REQUEST, key).is_none());
        let mut signed = frame(OPEN, key);
        signed.extend_from_slice(&OPEN_REQUEST[4..]);
        sign(&mut signed, key);
        assert!(IrttRequest::parse(&signed, key).is_some());
        assert!(IrttRequest::parse(&signed, None).is_none());
        assert!(IrttRequest::parse(&signed, Some(b"another key")).is_none());
        *signed.last_mut().unwrap() ^= 1;
        assert!(IrttRequest::parse(&signed, key).is_none());
    }

    #[test]
    fn parameters_of_variable_length_are_read() {
        let read = |bytes: &[u8]| {
            let mut rest = bytes;
            uvarint(&mut rest)
        };
        assert_eq!(read(&[0x7f]), Some(127));
        assert_eq!(read(&[0x80, 0x01]), Some(128));
        assert_eq!(read(&[0x80]), None);
        assert_eq!(read(&[0xff; 11]), None);
        assert_eq!(
            read(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]),
            Some(u64::MAX)
        );
        assert_eq!([0, 1, 2, 3].map(zigzag), [0, -1, 1, -2]);
        assert_eq!(Params::parse(&[6, 10]), None, "5 is no time to stamp at");
        assert_eq!(Params::parse(&[9, 2, b'a']), None, "a text that is cut short");
    }

    #[test]
    fn the_window_shows_the_last_64() {
        let mut window = Window::default();
        assert_eq!(window.arrived(0), 0b1);
        assert_eq!(window.arrived(1), 0b11);
        assert_eq!(window.arrived(4), 0b11001);
        assert_eq!(window.arrived(3), 0, "late");
        assert_eq!(window.arrived(5), 0b11_0111);
        assert_eq!(window.arrived(500), 1);
        assert_eq!(window.arrived(u32::MAX), 1);
    }
}
