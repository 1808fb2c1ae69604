//! The messages of a WebSocket that carries load: payload is sent from one buffer and thrown away as it
//! comes, so that a message of 16 MiB costs no memory.
//!
//! Headers are read and written by tungstenite; the rules are RFC 6455.

use std::io::{self, Cursor};

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio_tungstenite::tungstenite::protocol::frame::FrameHeader;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Control, Data, OpCode};

/// Reads what a client sends.
pub(crate) struct FrameReader<R> {
    from: R,
    buffer: BytesMut,
    /// Bytes of the present frame's payload that are still to come.
    left: u64,
    longest: u64,
}

/// An event of a WebSocket: data or a control frame came.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Received {
    /// Number of bytes of messages that came.
    Data(u64),
    /// A ping, which has to be answered with the same bytes.
    Ping(Vec<u8>),
    /// A close frame, the end of the connection.
    Close,
}

impl<R: AsyncRead + Unpin> FrameReader<R> {
    /// Reads frames with payloads up to `longest` bytes; `begun` is what has already been read.
    pub fn new(from: R, begun: &[u8], longest: u64) -> Self {
        let mut buffer = BytesMut::with_capacity(BUFFER);
        buffer.extend_from_slice(begun);
        Self { from, buffer, left: 0, longest }
    }

    /// Waits for what comes next. Nothing is lost if the wait is given up.
    pub async fn next(&mut self) -> io::Result<Received> {
        loop {
            if self.left > 0 && !self.buffer.is_empty() {
                let bytes = self.left.min(self.buffer.len() as u64);
                self.buffer.advance(bytes as usize);
                self.left -= bytes;
                return Ok(Received::Data(bytes));
            }
            if self.left == 0
                && let Some(received) = self.begin_frame()?
            {
                return Ok(received);
            }
            if self.left > 0 && !self.buffer.is_empty() {
                continue;
            }
            self.buffer.reserve(BUFFER);
            let mut room = (&mut self.buffer).limit_to(BUFFER);
            if self.from.read_buf(&mut room).await? == 0 {
                return Ok(Received::Close);
            }
        }
    }

    /// Reads the header of a frame, and the whole of it if it is a control frame, once it is all there.
    fn begin_frame(&mut self) -> io::Result<Option<Received>> {
        let mut cursor = Cursor::new(&self.buffer[..]);
        let Some((header, length)) =
            FrameHeader::parse(&mut cursor).map_err(|_| wrong("header"))?
        else {
            return Ok(None);
        };
        let start = cursor.position() as usize;
        // Section 5.1: a client masks all frames. Section 5.2: reserved bits are for extensions, of which
        // there are none.
        let Some(mask) = header.mask else { return Err(wrong("mask")) };
        if header.rsv1 || header.rsv2 || header.rsv3 {
            return Err(wrong("reserved bit"));
        }
        let control = match header.opcode {
            OpCode::Data(Data::Reserved(_)) | OpCode::Control(Control::Reserved(_)) => {
                return Err(wrong("opcode"));
            }
            OpCode::Data(_) => {
                if length > self.longest {
                    return Err(wrong("length"));
                }
                self.buffer.advance(start);
                self.left = length;
                return Ok((length == 0).then_some(Received::Data(0)));
            }
            OpCode::Control(control) => control,
        };
        // Section 5.5.
        if length > MAX_CONTROL_BYTES || !header.is_final {
            return Err(wrong("length"));
        }
        let end = start + length as usize;
        if self.buffer.len() < end {
            return Ok(None);
        }
        let payload = self.buffer.split_to(end).split_off(start);
        Ok(Some(match control {
            Control::Close => Received::Close,
            Control::Ping => {
                let unmasked =
                    payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask);
                Received::Ping(unmasked.collect())
            }
            // A pong is progress without bytes of messages.
            Control::Pong | Control::Reserved(_) => Received::Data(0),
        }))
    }
}

/// Writes what a client is sent.
pub(crate) struct FrameWriter<W> {
    to: W,
}

impl<W: AsyncWrite + Unpin> FrameWriter<W> {
    pub const fn new(to: W) -> Self {
        Self { to }
    }

    /// A binary message, written from where it stands.
    pub async fn binary(&mut self, payload: Bytes) -> io::Result<()> {
        self.frame(OpCode::Data(Data::Binary), payload).await
    }

    pub async fn text(&mut self, text: String) -> io::Result<()> {
        self.frame(OpCode::Data(Data::Text), text.into()).await
    }

    pub async fn ping(&mut self, payload: Vec<u8>) -> io::Result<()> {
        self.frame(OpCode::Control(Control::Ping), payload.into()).await
    }

    pub async fn pong(&mut self, payload: Vec<u8>) -> io::Result<()> {
        self.frame(OpCode::Control(Control::Pong), payload.into()).await
    }

    /// Says that nothing more will come, normally.
    pub async fn close(&mut self) -> io::Result<()> {
        self.frame(OpCode::Control(Control::Close), Bytes::from_static(&NORMAL_CLOSURE)).await
    }

    async fn frame(&mut self, opcode: OpCode, payload: Bytes) -> io::Result<()> {
        let header = FrameHeader { opcode, ..FrameHeader::default() };
        let mut bytes = Vec::with_capacity(MAX_HEADER_BYTES);
        header.format(payload.len() as u64, &mut bytes).map_err(io::Error::other)?;
        self.to.write_all_buf(&mut Bytes::from(bytes).chain(payload)).await?;
        self.to.flush().await
    }
}

/// Reads `data` as what a client sends, whole and a few bytes at a time: that makes no difference.
#[cfg(any(test, fuzzing))]
pub fn exercise(data: &[u8]) {
    let whole = tell(FrameReader::new(data, &[], MAX_MESSAGE_BYTES));
    let (begun, rest) = data.split_at(data.len().min(3));
    assert_eq!(tell(FrameReader::new(OneByOne(rest), begun, MAX_MESSAGE_BYTES)), whole);
    assert!(whole.0 <= data.len() as u64);
}

#[cfg(any(test, fuzzing))]
const MAX_MESSAGE_BYTES: u64 = 1 << 24;

/// Bytes of messages, pings, and whether the end was a good one.
#[cfg(any(test, fuzzing))]
fn tell<R: AsyncRead + Unpin>(mut reader: FrameReader<R>) -> (u64, Vec<Vec<u8>>, bool) {
    use futures_util::FutureExt;
    let (mut bytes, mut pings) = (0, Vec::new());
    loop {
        let next = reader.next().now_or_never().expect("what is in memory needs no waiting");
        match next {
            Ok(Received::Data(more)) => bytes += more,
            Ok(Received::Ping(payload)) => pings.push(payload),
            Ok(Received::Close) => return (bytes, pings, true),
            Err(_) => return (bytes, pings, false),
        }
    }
}

/// Hands out one byte a read.
#[cfg(any(test, fuzzing))]
struct OneByOne<'d>(&'d [u8]);

#[cfg(any(test, fuzzing))]
impl AsyncRead for OneByOne<'_> {
    fn poll_read(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
        buffer: &mut tokio::io::ReadBuf<'_>,
    ) -> std::task::Poll<io::Result<()>> {
        if let Some((first, rest)) = self.0.split_first() {
            buffer.put_slice(&[*first]);
            self.0 = rest;
        }
        std::task::Poll::Ready(Ok(()))
    }
}

/// A buffer that grows by a bounded number of bytes.
trait LimitTo: Sized {
    fn limit_to(self, bytes: usize) -> bytes::buf::Limit<Self>;
}

impl LimitTo for &mut BytesMut {
    fn limit_to(self, bytes: usize) -> bytes::buf::Limit<Self> {
        bytes::BufMut::limit(self, bytes)
    }
}

fn wrong(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("a frame with a {what} that is not allowed"))
}

/// Bytes that one read takes at most.
const BUFFER: usize = 64 << 10;
/// RFC 6455, section 5.5.
const MAX_CONTROL_BYTES: u64 = 125;
/// RFC 6455, section 5.2, without a mask.
const MAX_HEADER_BYTES: usize = 10;
/// RFC 6455, section 7.4.1.
const NORMAL_CLOSURE: [u8; 2] = 1000_u16.to_be_bytes();

#[cfg(test)]
mod tests {
    use super::*;

    /// A masked frame, with a mask of ones.
    fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![first];
        match payload.len() {
            length @ 0..=125 => bytes.push(0x80 | length as u8),
            length => {
                bytes.push(0x80 | 127);
                bytes.extend_from_slice(&(length as u64).to_be_bytes());
            }
        }
        bytes.extend_from_slice(&[1; 4]);
        bytes.extend(payload.iter().map(|byte| byte ^ 1));
        bytes
    }

    async fn read_all(bytes: &[u8], longest: u64) -> (u64, Vec<Received>, io::Result<()>) {
        let mut reader = FrameReader::new(bytes, &[], longest);
        let (mut data, mut others) = (0, Vec::new());
        loop {
            match reader.next().await {
                Ok(Received::Data(more)) => data += more,
                Ok(Received::Close) => return (data, others, Ok(())),
                Ok(other) => others.push(other),
                Err(error) => return (data, others, Err(error)),
            }
        }
    }

    #[tokio::test]
    async fn messages_are_counted_and_pings_handed_on() {
        let mut bytes = frame(0x82, &vec![7; 300_000]);
        bytes.extend(frame(0x89, b"beat"));
        bytes.extend(frame(0x81, b"{}"));
        bytes.extend(frame(0x8a, b"pong"));
        bytes.extend(frame(0x02, b"one "));
        bytes.extend(frame(0x80, b"message"));
        bytes.extend(frame(0x88, b""));
        bytes.extend(frame(0x82, b"behind the end"));
        let (data, others, end) = read_all(&bytes, 1 << 24).await;
        assert_eq!((data, others), (300_013, vec![Received::Ping(b"beat".to_vec())]));
        end.unwrap();
    }

    #[tokio::test]
    async fn what_is_not_allowed_ends_it() {
        let unmasked = vec![0x82, 1, 7];
        let too_long = frame(0x82, &[0; 2000]);
        let long_ping = frame(0x89, &[0; 126]);
        let split_ping = frame(0x09, b"x");
        for wrong in [unmasked, too_long, long_ping, split_ping, frame(0xc2, b""), frame(0x83, b"")]
        {
            let (_, _, end) = read_all(&wrong, 1000).await;
            assert_eq!(end.unwrap_err().kind(), io::ErrorKind::InvalidData, "{:?}", &wrong[..2]);
        }
    }

    /// The corpus of the fuzz target `serve_frames`, every file also cut short at every byte.
    #[test]
    fn frames_of_the_corpus_are_read_the_same_in_pieces() {
        crate::replay::replay("serve_frames", 10, crate::replay::every_byte, exercise);
    }

    #[tokio::test]
    async fn a_frame_is_written_with_the_shortest_header() {
        let mut written = Vec::new();
        let mut writer = FrameWriter::new(&mut written);
        writer.text("{}".into()).await.unwrap();
        writer.binary(Bytes::from(vec![5; 300])).await.unwrap();
        writer.close().await.unwrap();
        assert_eq!(written[..4], [0x81, 2, b'{', b'}']);
        assert_eq!(written[4..8], [0x82, 126, 1, 44]);
        assert_eq!(written[308..], [0x88, 2, 3, 232]);
    }
}
