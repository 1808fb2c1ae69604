//! The send buffer: how much of what the application has written lies in the kernel.
//!
//! Follows Linux `tcp_sendmsg_locked` (`net/ipv4/tcp.c`), `tcp_sndbuf_expand` and `tcp_check_space`
//! (`net/ipv4/tcp_input.c`). The buffer is counted in kernel memory: data, and what each piece of it
//! that is sent at once takes beside. It bounds what is in flight: about 1500 segments with 4 MiB.

use crate::profile::{Profile, SocketBuffer};
use crate::sender::Sender;

/// What lies in the buffer.
#[derive(Clone, Debug)]
pub(crate) struct Buffered {
    /// Where the data that the kernel has ends in the stream, in bytes.
    pub end: u64,
    /// Memory that may be used, in bytes (`sk_sndbuf`).
    size: u64,
    /// Whether the application wants to write more and was told to wait (`SOCK_NOSPACE`).
    pub is_full: bool,
}

impl Buffered {
    pub fn new(profile: &Profile) -> Self {
        let size = profile.send_buffer.map_or(0, |buffer| u64::from(buffer.start));
        Self { end: 0, size, is_full: false }
    }
}

impl Sender {
    /// Takes what the application has written, all of it if the profile has no bounds.
    pub fn take_all(&mut self, profile: &Profile) {
        if profile.send_buffer.is_none() {
            self.buffered.end = self.written;
        }
    }

    /// Enlarges the buffer if the application waits for it and the window does, too: if that is full
    /// the data in the buffer suffices (`tcp_should_expand_sndbuf`).
    pub fn make_room(&mut self, profile: &Profile) {
        if self.buffered.is_full && self.in_flight(profile) < self.window.cwnd {
            self.expand_buffer(profile);
            self.stamp_cwnd();
        }
    }

    /// The buffer holds two windows of segments of the least favourable size (`tcp_sndbuf_expand`).
    pub fn expand_buffer(&mut self, profile: &Profile) {
        let Some(SocketBuffer { greatest, .. }) = profile.send_buffer else { return };
        // As the peer announced it, without options.
        let segment = u64::from(self.mss + if profile.timestamps { 12 } else { 0 });
        let memory = (segment + HEADERS + SHARED_INFO).next_power_of_two() + SKB;
        let segments = self.window.cwnd.max(INITIAL_WINDOW).max(self.reordering + 1);
        let factor = self.algorithm.send_buffer_factor();
        let wanted = u64::from(factor) * u64::from(segments) * memory;
        self.buffered.size = self.buffered.size.max(wanted.min(u64::from(greatest)));
    }

    /// Whether the application is told that it may write: a third of the buffer is free
    /// (`sk_stream_is_writeable`).
    pub fn is_writable(&self) -> bool {
        self.buffered.end < self.written && 3 * self.memory() <= 2 * self.buffered.size
    }

    /// The application writes at once what it is wont to, as far as the buffer goes.
    pub fn take_write(&mut self) {
        self.note_application_limit();
        let write = (self.buffered.end + WRITE).min(self.written);
        let piece = self.piece();
        while self.buffered.end < write {
            let room = piece - self.unsent() % piece;
            self.buffered.end = (self.buffered.end + room).min(write);
            if self.memory() >= self.buffered.size {
                break;
            }
        }
    }

    /// Memory in use, in bytes (`sk_wmem_queued`).
    fn memory(&self) -> u64 {
        let una = self.board.head().map_or(self.sent_offset, |head| head.offset);
        let pieces = u64::from(self.board.pieces) + self.unsent().div_ceil(self.piece());
        self.buffered.end - una + pieces * OVERHEAD
    }

    /// The largest piece in which unsent data lies: an offloaded burst, or half of the peer's window if
    /// that is less (`tcp_xmit_size_goal`).
    fn piece(&self) -> u64 {
        let mss = u64::from(self.mss);
        let half_window = u64::from(self.largest_window / 2);
        (OFFLOAD_MAX.min(half_window) / mss).max(1) * mss
    }
}

/// What the application writes at once, in bytes: as the lab's loads do.
const WRITE: u64 = 256 << 10;
/// Room for headers in each piece of memory (`MAX_TCP_HEADER`), on 64 bits and without the headers of
/// wireless networks.
const HEADERS: u64 = 256;
/// `sizeof(struct skb_shared_info)` and `sizeof(struct sk_buff)`, as allocated.
const SHARED_INFO: u64 = 320;
const SKB: u64 = 256;
/// Memory of a piece beside its data (`SKB_TRUESIZE`).
pub(crate) const OVERHEAD: u64 = HEADERS + SHARED_INFO + SKB;
/// Largest piece (`sk_gso_max_size`).
const OFFLOAD_MAX: u64 = 65_536 - HEADERS - 1;
/// RFC 6928 (`TCP_INIT_CWND`).
const INITIAL_WINDOW: u32 = 10;
