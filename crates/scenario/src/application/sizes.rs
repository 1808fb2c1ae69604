//! Lengths of what TLS and HTTP/2 put around the content of applications and speed tests.

/// The server's first flight of TLS 1.3 (RFC 8446): its hello, extensions, a chain of two certificates of
/// ECDSA, their proof, the end.
pub const FLIGHT: u64 = 3_000;
/// The client's end of the handshake, with the record of compatibility before it.
pub const FINISHED: u64 = 80;
/// RFC 8446, section 5.2: a record's header, the type of its content and the tag of the cipher.
pub const RECORD: u64 = 5 + 1 + 16;
/// RFC 8446, section 5.1: the longest record; RFC 9113, section 4.2: the longest frame unless agreed on.
pub const MAX_RECORD_BYTES: u64 = 16_384;
/// RFC 9113, section 4.1.
pub const FRAME: u64 = 9;
/// RFC 9113, section 3.4: the words, a frame of settings with three of them, a window update.
pub const PREFACE: u64 = 24 + FRAME + 18 + 13;
