//! One direction of a connection: what its sender has to say, and what of it is under way.
//!
//! TCP carries bytes without content. A record is a piece of what an application writes at once: where it ends
//! in the stream, and what it means to who receives it once TCP has delivered it.

use std::collections::VecDeque;

use weir_speedtest::Id;
use weir_speedtest::protocol::load::MessageSize;

use super::sizes::{FRAME, MAX_RECORD_BYTES, SECURED, web_socket_header};

/// Meaning of a record: a message of TLS, HTTP or WebSocket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// TLS: the client's first flight.
    Hello,
    /// TLS: the server's first flight.
    Flight,
    /// TLS: the client's second.
    Finished,
    /// HTTP/2: the client's preface and settings.
    Preface,
    /// HTTP/2: the server's settings.
    Settings,
    /// Asks for a WebSocket at a path.
    Upgrade(String),
    /// Grants the request for a WebSocket.
    Upgraded,
    /// Refuses the request for a WebSocket, with the reason.
    Refused(String),
    /// The head of a request.
    Request(RequestHead),
    /// The head of a response.
    Head(ResponseHead),
    /// A message that is text, or a line without its end.
    Text(String),
    /// A WebSocket's ping.
    Ping,
    /// The answer to it.
    Pong,
    /// The end of a WebSocket.
    Close,
}

/// The head of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestHead {
    pub id: Id,
    /// Path and query of the request.
    pub path: String,
    /// Bytes of a POST; GET if `None`.
    pub upload: Option<u64>,
}

/// The head of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ResponseHead {
    pub id: Id,
    pub status: u16,
    /// Bytes of the body.
    pub body: u64,
    /// The body, if it is JSON.
    pub text: Option<String>,
}

/// A record, or a part of a body, that has arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Arrived {
    Record(Meaning),
    /// Bytes of the body of a request or response, or of binary messages.
    Payload {
        id: Id,
        bytes: u64,
        /// Whether the body is complete.
        ended: bool,
    },
}

/// A message that waits to be sent. Several take turns, a frame each.
#[derive(Clone, Debug)]
enum Turn {
    Record {
        bytes: u64,
        meaning: Meaning,
    },
    Body {
        id: Id,
        /// The largest number for a body without end.
        left: u64,
        /// Bytes of a frame beside its payload.
        frame: u64,
        is_load: bool,
    },
    Messages {
        id: Id,
        sizes: MessageSize,
        /// Bytes of the present message that are still to be written.
        left: u64,
        /// Bytes of its header that are still to be written.
        header: u64,
        masked: bool,
    },
}

#[derive(Clone, Debug)]
struct Record {
    /// Where it ends in the stream.
    end: u64,
    what: What,
}

#[derive(Clone, Debug)]
enum What {
    Meaning(Meaning),
    /// At the end of the record; of it `told` bytes were told of.
    Payload {
        id: Id,
        bytes: u64,
        told: u64,
        last: bool,
        secured: bool,
    },
}

/// One direction of a connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pipe {
    turns: VecDeque<Turn>,
    under_way: VecDeque<Record>,
    /// Bytes handed to TCP.
    written: u64,
    /// Bytes of load handed to TCP; a part of all that was written.
    load_written: u64,
    /// Load that is not acknowledged: where each piece ends, whose it is, how long.
    unacked: VecDeque<(u64, Id, u64)>,
    secured: bool,
}

impl Pipe {
    /// Puts records into those of TLS from now on.
    pub const fn secure(&mut self) {
        self.secured = true;
    }

    /// Queues a record of `bytes` with its meaning.
    pub fn say(&mut self, bytes: u64, meaning: Meaning) {
        self.turns.push_back(Turn::Record { bytes, meaning });
    }

    /// Says something before everything else.
    pub fn say_next(&mut self, bytes: u64, meaning: Meaning) {
        self.turns.push_front(Turn::Record { bytes, meaning });
    }

    /// Sends the body of a request or response, in frames of HTTP/2 or without. What is load is random
    /// bytes; other bodies are words.
    pub fn send_body(&mut self, id: Id, bytes: u64, framed: bool, is_load: bool) {
        let frame = if framed { FRAME } else { 0 };
        self.turns.push_back(Turn::Body { id, left: bytes, frame, is_load });
    }

    /// Sends binary messages for as long as nobody [clears](Self::clear) that.
    pub fn send_messages(&mut self, id: Id, sizes: MessageSize, masked: bool) {
        self.turns.push_back(Turn::Messages { id, sizes, left: 0, header: 0, masked });
    }

    /// Whether the next thing to be written is a new binary message.
    pub fn is_between_messages(&self) -> bool {
        matches!(self.turns.front(), Some(Turn::Messages { left: 0, .. }))
    }

    /// Whether there is nothing to be written.
    pub fn is_silent(&self) -> bool {
        self.turns.is_empty()
    }

    /// Removes what was still to be said of the request `of`, or everything if that is `None`.
    pub fn clear(&mut self, of: Option<Id>) {
        self.turns.retain(|turn| match (turn, of) {
            (_, None) => false,
            (Turn::Body { id, .. }, Some(of)) => *id != of,
            (Turn::Record { meaning: Meaning::Head(head), .. }, Some(of)) => head.id != of,
            (Turn::Record { meaning: Meaning::Request(request), .. }, Some(of)) => request.id != of,
            _ => true,
        });
    }

    /// Whether load is to be sent or is not acknowledged.
    pub fn is_loaded(&self) -> bool {
        !self.unacked.is_empty()
    }

    /// Bytes of load handed to TCP.
    pub const fn load_written(&self) -> u64 {
        self.load_written
    }

    /// Takes the next piece from whose turn it is: its bytes, for TCP.
    pub fn pull(&mut self) -> Option<u64> {
        let turn = self.turns.pop_front()?;
        let (plain, what) = match turn {
            Turn::Record { bytes, meaning } => (bytes, What::Meaning(meaning)),
            Turn::Body { id, left, frame, is_load } => {
                let bytes = left.min(MAX_RECORD_BYTES);
                let rest = if left == u64::MAX { left } else { left - bytes };
                if rest > 0 {
                    self.turns.push_back(Turn::Body { id, left: rest, frame, is_load });
                }
                if is_load {
                    self.note_load(id, bytes, frame + bytes);
                }
                (frame + bytes, self.payload(id, bytes, rest == 0))
            }
            Turn::Messages { id, mut sizes, mut left, mut header, masked } => {
                if left == 0 {
                    left = sizes.next(self.load_written) as u64;
                    header = web_socket_header(left, masked);
                }
                let bytes = left.min(MAX_RECORD_BYTES - header);
                self.note_load(id, bytes, header + bytes);
                let rest = left - bytes;
                let next = Turn::Messages { id, sizes, left: rest, header: 0, masked };
                if rest > 0 {
                    // A message is not interrupted.
                    self.turns.push_front(next);
                } else {
                    self.turns.push_back(next);
                }
                (header + bytes, self.payload(id, bytes, false))
            }
        };
        let bytes = plain + if self.secured { SECURED } else { 0 };
        self.written += bytes;
        self.under_way.push_back(Record { end: self.written, what });
        Some(bytes)
    }

    /// Takes what has arrived next, once TCP has delivered `delivered` bytes; `None` if nothing has.
    ///
    /// Without TLS a body is read as it comes; TLS can read whole records only.
    pub fn take(&mut self, delivered: u64) -> Option<Arrived> {
        let record = self.under_way.front_mut()?;
        if delivered >= record.end {
            return self.under_way.pop_front().map(|whole| match whole.what {
                What::Meaning(meaning) => Arrived::Record(meaning),
                What::Payload { id, bytes, told, last, .. } => {
                    Arrived::Payload { id, bytes: bytes - told, ended: last }
                }
            });
        }
        let What::Payload { id, bytes, told, secured: false, .. } = &mut record.what else {
            return None;
        };
        let there = bytes.saturating_sub(record.end - delivered);
        let more = there.saturating_sub(*told);
        *told += more;
        (more > 0).then_some(Arrived::Payload { id: *id, bytes: more, ended: false })
    }

    /// Load that is acknowledged by now, once: whose, and how much.
    pub fn take_acked(&mut self, acked: u64) -> Option<(Id, u64)> {
        let &(_, id, bytes) = self.unacked.front().filter(|&&(end, ..)| end <= acked)?;
        self.unacked.pop_front();
        Some((id, bytes))
    }

    const fn payload(&self, id: Id, bytes: u64, last: bool) -> What {
        What::Payload { id, bytes, told: 0, last, secured: self.secured }
    }

    fn note_load(&mut self, id: Id, bytes: u64, plain: u64) {
        self.load_written += bytes;
        let end = self.written + plain + if self.secured { SECURED } else { 0 };
        self.unacked.push_back((end, id, bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(words: &str) -> Meaning {
        Meaning::Text(words.to_owned())
    }

    #[test]
    fn bodies_take_turns_frame_by_frame() {
        let mut pipe = Pipe::default();
        pipe.send_body(1, u64::MAX, true, true);
        pipe.say(60, text("head"));
        pipe.send_body(2, 20_000, true, false);
        let pulled: Vec<_> = (0..6).map(|_| pipe.pull().unwrap()).collect();
        // One frame of the first, the head, a frame each, the rest of the second in its own.
        assert_eq!(pulled, [16_393, 60, 16_393, 16_393, 3_625, 16_393]);
        pipe.clear(Some(1));
        assert!(pipe.is_silent());
        // Acknowledged with the head: the first frame, and nothing of the words.
        assert_eq!(pipe.take_acked(16_392), None);
        assert_eq!(pipe.take_acked(16_453), Some((1, 16_384)));
        assert_eq!(pipe.take_acked(16_453), None);
    }

    #[test]
    fn a_body_is_read_as_it_comes_and_a_record_of_tls_whole() {
        let mut pipe = Pipe::default();
        pipe.send_body(7, 10_000, true, true);
        pipe.pull();
        assert_eq!(pipe.take(8), None);
        let came = |bytes, ended| Some(Arrived::Payload { id: 7, bytes, ended });
        assert_eq!(pipe.take(1_009), came(1_000, false));
        assert_eq!(pipe.take(1_009), None);
        assert_eq!(pipe.take(10_009), came(9_000, true));
        pipe.secure();
        pipe.send_body(7, 10_000, true, true);
        assert_eq!(pipe.pull(), Some(10_031));
        assert_eq!(pipe.take(20_039), None);
        assert_eq!(pipe.take(20_040), came(10_000, true));
    }

    #[test]
    fn a_message_is_not_interrupted() {
        let mut pipe = Pipe::default();
        pipe.send_messages(1, MessageSize::new(40_000, 40_000), true);
        assert!(pipe.is_between_messages());
        assert_eq!(pipe.pull(), Some(16_384));
        pipe.say(10, text("in between"));
        let rest: Vec<_> = (0..3).map(|_| pipe.pull().unwrap()).collect();
        // 40 000 bytes and a header of 8; then the text.
        assert_eq!(rest, [16_384, 7_240, 10]);
        assert_eq!(pipe.load_written(), 40_000);
    }
}
