//! How many bytes the parts of protocols have that TCP carries here without their content.

/// TLS 1.3 (RFC 8446): a client's first flight with one key share and the usual extensions.
pub(crate) const HELLO: u64 = 300;
/// The server's: its hello, extensions, a chain of two certificates of ECDSA, their proof, the end.
pub(crate) const FLIGHT: u64 = 3_000;
/// The client's end of the handshake, with the record of compatibility before it.
pub(crate) const FINISHED: u64 = 80;
/// RFC 8446, section 5.2: a record's header, the type of its content and the tag of the cipher.
pub(crate) const SECURED: u64 = 5 + 1 + 16;
/// RFC 8446, section 5.1: the longest record; RFC 9113, section 4.2: the longest frame unless agreed on.
pub(crate) const MAX_RECORD_BYTES: u64 = 16_384;
/// RFC 9113, section 4.1.
pub(crate) const FRAME: u64 = 9;
/// RFC 9113, section 3.4: the words, and a frame of settings with three of them, a window update.
pub(crate) const PREFACE: u64 = 24 + FRAME + 18 + 13;
/// The server's settings, and its word that it read the client's.
pub(crate) const SETTINGS: u64 = FRAME + 18 + FRAME;
/// A WebSocket's ping, whose payload is a time, and its answer, which is masked.
pub(crate) const PING: u64 = 2 + 8;
pub(crate) const PONG: u64 = PING + 4;
/// The end, with its reason.
pub(crate) const CLOSE: u64 = 4;

/// The head of a request without its path: what programs send, less than a browser does. HPACK makes one of
/// HTTP/2 shorter.
pub(crate) const fn request_head(path: &str, two: bool) -> u64 {
    path.len() as u64 + if two { FRAME + 60 } else { 180 }
}

/// The head of a response with the headers that speed tests ask of servers.
pub(crate) const fn response_head(two: bool) -> u64 {
    if two { FRAME + 110 } else { 260 }
}

/// The request for a WebSocket, and the answer to it (RFC 6455, section 1.3).
pub(crate) const fn upgrade(path: &str) -> u64 {
    path.len() as u64 + 220
}
pub(crate) const UPGRADED: u64 = 180;

/// RFC 6455, section 5.2.
pub(crate) const fn web_socket_header(payload: u64, masked: bool) -> u64 {
    let length = match payload {
        0..=125 => 2,
        126..=65_535 => 4,
        _ => 10,
    };
    length + if masked { 4 } else { 0 }
}
