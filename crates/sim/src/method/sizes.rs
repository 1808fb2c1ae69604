//! How many bytes the parts of protocols have that TCP carries here without their content.

pub(crate) use weir_scenario::sizes::{
    FINISHED, FLIGHT, FRAME, MAX_RECORD_BYTES, PREFACE, RECORD as SECURED,
};

/// TLS 1.3 (RFC 8446): a client's first flight with one key share and the usual extensions;
/// of a program, which pads nothing.
pub(crate) const HELLO: u64 = 300;
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
