//! A connection as an application sees it: requests, and the answers that are still to come.

use std::collections::VecDeque;

use super::sizes::{FINISHED, FLIGHT, FRAME, MAX_RECORD_BYTES, PREFACE, RECORD};
use super::work::Work;

/// A connection, and what its answers are about.
#[derive(Clone, Debug)]
pub(super) struct Channel<W> {
    pub connection: u32,
    tls: bool,
    http2: bool,
    /// Bytes that go with the next request: the end of a handshake.
    owed: u64,
    expected: VecDeque<Expected<W>>,
}

#[derive(Clone, Copy, Debug)]
struct Expected<W> {
    left: u64,
    /// `None`: the server's part of the handshake.
    what: Option<W>,
}

/// What has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum News<W> {
    /// The connection may be asked.
    Ready,
    /// This answer is complete.
    Complete(W),
}

impl<W: Copy> Channel<W> {
    /// Opens a connection; over TLS it may be asked once it is [`News::Ready`], without it at once.
    pub fn open(tls: bool, http2: bool, work: &mut Work<'_>) -> Self {
        let connection = work.open();
        let mut expected = VecDeque::new();
        if tls {
            work.ask(connection, HELLO, FLIGHT);
            expected.push_back(Expected { left: FLIGHT, what: None });
        }
        let owed = if tls { FINISHED } else { 0 } + if http2 { PREFACE } else { 0 };
        Self { connection, tls, http2, owed, expected }
    }

    /// Whether a request can be sent: behind the handshake, and with HTTP/1.1 behind the answer to the one before.
    pub fn is_free(&self) -> bool {
        match self.expected.back() {
            None => true,
            Some(last) => self.http2 && last.what.is_some(),
        }
    }

    /// Asks for `body` bytes, which are about `what`.
    pub fn ask(&mut self, what: W, body: u64, work: &mut Work<'_>) {
        let (request, head) = if self.http2 { HEADS_2 } else { HEADS_1 };
        let request = self.secured(request) + std::mem::take(&mut self.owed);
        let frames = if self.http2 { body.div_ceil(MAX_RECORD_BYTES) * FRAME } else { 0 };
        let response = self.secured(head + body + frames);
        work.ask(self.connection, request, response);
        self.expected.push_back(Expected { left: response, what: Some(what) });
    }

    /// Takes up to `bytes` of what has come: returns how many are left, and what they completed.
    pub fn take(&mut self, bytes: u64) -> (u64, Option<News<W>>) {
        let Some(first) = self.expected.front_mut() else { return (0, None) };
        let taken = bytes.min(first.left);
        first.left -= taken;
        if first.left > 0 {
            return (0, None);
        }
        let what = self.expected.pop_front().and_then(|complete| complete.what);
        (bytes - taken, Some(what.map_or(News::Ready, News::Complete)))
    }

    /// What is being answered, if anything but the handshake is.
    pub fn answering(&self) -> Option<W> {
        self.expected.front()?.what
    }

    /// Bytes of what is sent in records of TLS.
    const fn secured(&self, bytes: u64) -> u64 {
        if self.tls { bytes + bytes.div_ceil(MAX_RECORD_BYTES) * RECORD } else { bytes }
    }
}

/// TLS 1.3 (RFC 8446): a client's first flight with one key share and the usual extensions, padded as browsers' are.
const HELLO: u64 = 517;
/// Heads of a request and a response of HTTP/1.1, as a browser and a web server without cookies write them.
const HEADS_1: (u64, u64) = (450, 300);
/// Of HTTP/2, where HPACK (RFC 7541) shortens them.
const HEADS_2: (u64, u64) = (FRAME + 100, FRAME + 120);
