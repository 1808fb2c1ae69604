//! The receive window and its growth: dynamic right-sizing.
//!
//! Follows Linux `tcp_grow_window`, `tcp_rcv_space_adjust` and `tcp_rcv_rtt_measure` in
//! `net/ipv4/tcp_input.c`.

use weir_core::Time;

use crate::profile::{Profile, SocketBuffer, WindowRule};
use crate::segment::Segment;
use crate::send_buffer::OVERHEAD_BYTES;

/// The receive window and its growth.
#[derive(Debug)]
pub(crate) struct ReceiveWindow {
    pub mss: u32,
    /// Window that is offered now, in bytes, if there is room for it.
    pub current: u32,
    /// The memory that bounds it; `None` if it is fixed.
    buffer: Option<Buffer>,
    /// Where the offered window ends in the stream.
    right_edge: u64,
    /// Eight times the round trip as this half sees it, in microseconds; 0 before the first.
    pub rtt8_us: u32,
    rtt_mark: Option<(u64, u64)>,
    last_echo: Option<u32>,
    /// Bytes read in the last round trip, and where and when the present one started.
    read_per_round: u64,
    round_offset: u64,
    round_us: u64,
}

/// A receive buffer, counted in memory.
#[derive(Clone, Copy, Debug)]
struct Buffer {
    /// Bytes that it may take up (`sk_rcvbuf`).
    size: u64,
    greatest: u64,
    /// 256ths of it that are data, if segments are full (`tcp_measure_rcv_mss`).
    share: u64,
}

/// Data that waits in the receive buffer, in segments and pieces of memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BufferedData {
    pub segments: u32,
    /// Pieces of memory: what is contiguous is joined (`tcp_try_coalesce`), [`PIECE`] segments at most.
    pub pieces: u32,
}

impl BufferedData {
    fn memory(self, mss: u32) -> u64 {
        u64::from(self.segments) * u64::from(mss) + u64::from(self.pieces) * OVERHEAD_BYTES
    }
}

impl Buffer {
    /// The window that memory of that size holds (`tcp_win_from_space`).
    fn window(self, memory: u64) -> u32 {
        ((memory * self.share) >> 8) as u32
    }
}

impl ReceiveWindow {
    pub fn new(profile: &Profile, mss: u32) -> Self {
        let (offered, current, buffer) = match profile.receive_window {
            WindowRule::Fixed(bytes) => (bytes, bytes, None),
            WindowRule::Follows(SocketBuffer { start, greatest }) => {
                // Half of the buffer in whole segments, as long as nothing is known of the sender's
                // (`TCP_DEFAULT_SCALING_RATIO`), of which one is kept back (`tcp_init_buffer_space`).
                let half = start / 2;
                let offered = half - half % mss;
                let share = u64::from(mss) * 256 / (u64::from(mss) + OVERHEAD_BYTES);
                let buffer = Buffer { size: start.into(), greatest: greatest.into(), share };
                (offered, offered.min(half - mss), Some(buffer))
            }
        };
        Self {
            mss,
            current,
            buffer,
            right_edge: u64::from(offered),
            rtt8_us: 0,
            rtt_mark: None,
            last_echo: None,
            read_per_round: u64::from(10 * mss).min(u64::from(offered)),
            round_offset: 0,
            round_us: 0,
        }
    }

    /// The connection is open: from here the first round trip counts (`tcp_init_buffer_space`).
    pub fn establish(&mut self, now: Time) {
        self.round_us = now.as_nanos() / 1_000;
    }

    /// How many acknowledgements at once half a window is worth.
    pub fn quick_limit(&self) -> u32 {
        match self.current / (2 * self.mss) {
            0 => 2,
            count => count,
        }
    }

    /// Opens by two segments for each that arrives, as far as there is room beside what is `held`
    /// (`tcp_grow_window`); says whether it did.
    pub fn grow(&mut self, held: BufferedData) -> bool {
        let most = self.room(held);
        if self.buffer.is_none() || self.current >= most {
            return false;
        }
        self.current = (self.current + 2 * self.mss).min(most);
        true
    }

    /// The window that the buffer has room for (`tcp_space`).
    fn room(&self, held: BufferedData) -> u32 {
        self.buffer.map_or(u32::MAX, |buffer| {
            buffer.window(buffer.size.saturating_sub(held.memory(self.mss)))
        })
    }

    /// The application has read up to `read_to`, the end of a piece of memory, while what is in order
    /// reaches up to `delivered`: once a round trip the buffer follows what was read, less what still
    /// waits to be (`tcp_rcv_space_adjust`).
    pub fn on_read(&mut self, read_to: u64, delivered: u64, now_us: u64) {
        let elapsed = now_us.saturating_sub(self.round_us);
        if self.rtt8_us == 0 || elapsed < u64::from(self.rtt8_us >> 3) {
            return;
        }
        let read = (read_to - self.round_offset).saturating_sub(delivered - read_to);
        if read > self.read_per_round {
            if let Some(buffer) = &mut self.buffer {
                let wanted = 2 * read + u64::from(16 * self.mss);
                let growth = wanted * (read - self.read_per_round) / self.read_per_round;
                let size = ((wanted + 2 * growth) << 8) / buffer.share;
                buffer.size = buffer.size.max(size.min(buffer.greatest));
            }
            self.read_per_round = read;
        }
        self.round_offset = read_to;
        self.round_us = now_us;
    }

    /// The round trip as the receiver can see it: by the echo of its own timestamps, else by the time
    /// that a full window takes to arrive.
    pub fn measure_rtt(&mut self, segment: &Segment, delivered: u64, now_us: u64) {
        if let Some(echo) = segment.ts_echo
            && self.last_echo != Some(echo)
            && u32::from(segment.len) >= self.mss
        {
            self.last_echo = Some(echo);
            let sample = (now_us / 1_000).saturating_sub(u64::from(echo)) * 1_000;
            if sample > 0 {
                self.take_rtt(sample as u32, false);
            }
        }
        match self.rtt_mark {
            Some((offset, _)) if delivered < offset => {}
            mark => {
                if let Some((_, since)) = mark {
                    self.take_rtt((now_us - since).max(1) as u32, true);
                }
                self.rtt_mark = Some((delivered + u64::from(self.current), now_us));
            }
        }
    }

    fn take_rtt(&mut self, sample: u32, by_window: bool) {
        if self.rtt8_us == 0 || sample << 3 < self.rtt8_us {
            self.rtt8_us = sample << 3;
        } else if !by_window {
            self.rtt8_us = self.rtt8_us - (self.rtt8_us >> 3) + sample;
        }
    }

    /// The window to write into a segment: what there is room for beside what is `held`, and its right
    /// edge never moves back (RFC 9293, section 3.8.6; `__tcp_select_window`).
    pub fn offer(&mut self, delivered: u64, held: BufferedData) -> u32 {
        let window = self.current.min(self.room(held));
        self.right_edge = self.right_edge.max(delivered + u64::from(window));
        (self.right_edge - delivered) as u32
    }
}

/// Segments that one piece of memory holds (`MAX_SKB_FRAGS`).
pub(crate) const PIECE: u32 = 17;
