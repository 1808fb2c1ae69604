//! The send buffer: how much of what the application has written lies in the kernel.
//!
//! Follows Linux `tcp_sendmsg_locked` (`net/ipv4/tcp.c`), `tcp_sndbuf_expand` and `tcp_check_space`
//! (`net/ipv4/tcp_input.c`). The buffer is counted in kernel memory: data, and what each piece of it
//! that is sent at once takes beside. It bounds what is in flight: about 1600 segments with 4 MiB.

use weir_scenario::LINUX_INITIAL_WINDOW_SEGMENTS;

use crate::profile::{Profile, SocketBuffer};
use crate::sender::Sender;

/// The stream of bytes that the application sends, as offsets from its beginning.
#[derive(Clone, Debug)]
pub(crate) struct SendStream {
    /// Bytes that the application has written; the largest number for an endless stream.
    pub written: u64,
    /// The part of it that lies in the send buffer.
    pub buffered: Buffered,
    /// Bytes handed to the network for the first time.
    pub sent: u64,
}

impl SendStream {
    pub fn new(profile: &Profile, mss: u32) -> Self {
        Self { written: 0, buffered: Buffered::new(profile, mss), sent: 0 }
    }
}

/// Data in the send buffer, as positions in the stream in bytes.
#[derive(Clone, Debug)]
pub(crate) struct Buffered {
    /// Where the data that the kernel has ends in the stream, in bytes.
    pub end: u64,
    /// Memory that may be used, in bytes (`sk_sndbuf`).
    size: u64,
    /// Memory of a segment of the least favourable size, in bytes.
    segment_memory: u64,
    /// Whether the application wants to write more and was told to wait (`SOCK_NOSPACE`).
    pub is_full: bool,
    /// Where the last piece of unsent data began when it was made.
    last_piece: u64,
    /// Offset up to which data was to be sent without waiting for more (`pushed_seq`).
    pushed: u64,
}

/// Amount of data that is sent while the application still writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Push {
    Nothing,
    /// A burst of what was written to an empty queue, without waiting for company (`tcp_push_one`).
    OneBurst,
    /// All data, once that is half of the peer's window (`forced_push`).
    All,
}

impl Buffered {
    pub fn new(profile: &Profile, mss: u32) -> Self {
        let size = profile.send_buffer.map_or(0, |buffer| u64::from(buffer.start));
        // As the peer announced it, without options.
        let segment = u64::from(mss + if profile.timestamps { 12 } else { 0 });
        let segment_memory =
            (segment + HEADERS_BYTES + SHARED_INFO_BYTES).next_power_of_two() + SKB_BYTES;
        Self { end: 0, size, segment_memory, is_full: false, last_piece: 0, pushed: 0 }
    }
}

impl Sender {
    /// Takes what the application has written, all of it if the profile has no bounds.
    pub fn take_all(&mut self, profile: &Profile) {
        if profile.send_buffer.is_none() {
            self.stream.buffered.end = self.stream.written;
        }
    }

    /// Enlarges the buffer if the application waits for it and the window does, too: if that is full
    /// the data in the buffer suffices (`tcp_should_expand_sndbuf`).
    #[inline]
    pub fn make_room(&mut self, profile: &Profile) {
        if self.stream.buffered.is_full && self.in_flight(profile) < self.window.cwnd {
            self.expand_buffer(profile);
            self.stamp_cwnd();
        }
    }

    /// Makes the buffer hold two windows of segments of the least favourable size (`tcp_sndbuf_expand`).
    pub fn expand_buffer(&mut self, profile: &Profile) {
        let Some(SocketBuffer { greatest, .. }) = profile.send_buffer else { return };
        let segments =
            self.window.cwnd.max(LINUX_INITIAL_WINDOW_SEGMENTS).max(self.reordering.degree + 1);
        let factor = self.algorithm.send_buffer_factor();
        let wanted = u64::from(factor) * u64::from(segments) * self.stream.buffered.segment_memory;
        self.stream.buffered.size = self.stream.buffered.size.max(wanted.min(u64::from(greatest)));
    }

    /// Whether the application is told that it may write: a third of the buffer is free
    /// (`sk_stream_is_writeable`).
    #[inline]
    pub fn is_writable(&self) -> bool {
        let Buffered { end, size, .. } = self.stream.buffered;
        // Mostly the data alone says it, which spares two divisions.
        end < self.stream.written
            && 3 * (end - self.acked_bytes()) <= 2 * size
            && 3 * self.memory() <= 2 * size
    }

    /// Begins a write of the application, and returns where it ends.
    pub fn begin_write(&mut self) -> u64 {
        self.note_application_limit();
        (self.stream.buffered.end + WRITE_BYTES).min(self.stream.written)
    }

    /// Adds a piece of the write that ends at `end`, and returns what has to be sent before the next.
    ///
    /// `None` if there is no room, or no more to write.
    #[inline]
    pub fn take_piece(&mut self, end: u64) -> Option<Push> {
        let piece = self.piece();
        let mut start = self.stream.buffered.last_piece.max(self.stream.sent);
        if self.stream.buffered.end - start >= piece || self.unsent() == 0 {
            if self.memory() >= self.stream.buffered.size {
                return None;
            }
            start = self.stream.buffered.end;
            self.stream.buffered.last_piece = start;
        }
        let is_first = start == self.stream.sent;
        self.stream.buffered.end = (start + piece).min(end);
        if self.stream.buffered.end - start < piece {
            // The end of the write.
            return None;
        }
        if self.stream.buffered.end
            > self.stream.buffered.pushed + u64::from(self.peer_window.largest / 2)
        {
            self.stream.buffered.pushed = self.stream.buffered.end;
            return Some(Push::All);
        }
        Some(if is_first { Push::OneBurst } else { Push::Nothing })
    }

    /// Discards the data that was not sent yet.
    pub fn drop_unsent(&mut self) {
        self.stream.buffered.end = self.stream.sent;
        self.stream.buffered.last_piece = self.stream.buffered.last_piece.min(self.stream.sent);
    }

    /// Ends a write of the application.
    pub fn end_write(&mut self) {
        self.stream.buffered.pushed = self.stream.buffered.end;
    }

    /// Memory in use, in bytes (`sk_wmem_queued`).
    fn memory(&self) -> u64 {
        let Buffered { end, last_piece, .. } = self.stream.buffered;
        let una = self.acked_bytes();
        let before_last = last_piece.saturating_sub(self.stream.sent).div_ceil(self.piece());
        let last = u64::from(end > last_piece.max(self.stream.sent));
        end - una + (u64::from(self.board.pieces) + before_last + last) * OVERHEAD_BYTES
    }

    /// The largest piece in which unsent data lies: an offloaded burst, or half of the peer's window if
    /// that is less (`tcp_xmit_size_goal`).
    fn piece(&self) -> u64 {
        let mss = u64::from(self.mss);
        let half_window = u64::from(self.peer_window.largest / 2);
        (MAX_PIECE_BYTES.min(half_window) / mss).max(1) * mss
    }
}

/// Bytes that the application writes at once: as the lab's loads do.
const WRITE_BYTES: u64 = 256 << 10;
/// Room for headers in each piece of memory (`MAX_TCP_HEADER`), on 64 bits and without the headers of
/// wireless networks.
const HEADERS_BYTES: u64 = 256;
/// `sizeof(struct skb_shared_info)` and `sizeof(struct sk_buff)`, as allocated.
const SHARED_INFO_BYTES: u64 = 320;
const SKB_BYTES: u64 = 256;
/// Memory of a piece beside its data (`SKB_TRUESIZE`).
pub(crate) const OVERHEAD_BYTES: u64 = HEADERS_BYTES + SHARED_INFO_BYTES + SKB_BYTES;
/// Bytes of the largest piece (`sk_gso_max_size`).
const MAX_PIECE_BYTES: u64 = 65_536 - HEADERS_BYTES - 1;
