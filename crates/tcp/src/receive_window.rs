//! The receive window, which grows by dynamic right-sizing.
//!
//! Follows Linux `tcp_grow_window`, `tcp_rcv_space_adjust` and `tcp_rcv_rtt_measure` in
//! `net/ipv4/tcp_input.c`.

use weir_core::Time;

use crate::profile::{Profile, SocketBuffer, WindowRule};
use crate::segment::Segment;
use crate::send_buffer::OVERHEAD_BYTES;

/// The receive window of a connection.
#[derive(Debug)]
pub(crate) struct ReceiveWindow {
    /// Bytes of data in a full segment.
    pub mss: u32,
    /// Window in bytes, which is offered as far as the buffer has room (`rcv_ssthresh`).
    pub current: u32,
    /// Receive buffer, which bounds the window; `None` of a fixed window.
    buffer: Option<Buffer>,
    /// End of the offered window in the stream, in bytes.
    right_edge: u64,
    /// Eight times the round trip as the receiver sees it, in microseconds; `None` before the first sample.
    pub rtt8_us: Option<u32>,
    /// Measurement of a round trip by a full window: its end in the stream, and its start in microseconds.
    rtt_mark: Option<(u64, u64)>,
    /// Timestamp echo of the last sample.
    last_echo: Option<u32>,
    /// Most bytes that the application read in a round trip (`rcvq_space.space`).
    read_per_round: u64,
    /// Bytes that it had read when the present round trip started.
    round_offset: u64,
    /// Start of the present round trip, in microseconds.
    round_us: u64,
}

/// A receive buffer, in bytes of memory.
#[derive(Clone, Copy, Debug)]
struct Buffer {
    /// Size now (`sk_rcvbuf`).
    size: u32,
    /// Greatest size (`tcp_rmem[2]`).
    greatest: u32,
    /// Share of the memory that holds data when segments are full, in 256ths (`scaling_ratio`).
    share: u32,
}

/// Data in the receive buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BufferedData {
    /// Number of segments.
    pub segments: u32,
    /// Number of pieces of memory. Contiguous segments are joined (`tcp_try_coalesce`), at most [`PIECE`].
    pub pieces: u32,
}

impl BufferedData {
    /// Memory that the data takes, in bytes.
    fn memory(self, mss: u32) -> u64 {
        u64::from(self.segments) * u64::from(mss) + u64::from(self.pieces) * OVERHEAD_BYTES
    }
}

impl Buffer {
    /// Window in bytes for that many bytes of memory (`tcp_win_from_space`).
    fn window(self, memory: u64) -> u32 {
        ((memory * u64::from(self.share)) >> 8) as u32
    }
}

impl ReceiveWindow {
    pub fn new(profile: &Profile, mss: u32) -> Self {
        let (offered, current, buffer) = match profile.receive_window {
            WindowRule::Fixed(bytes) => (bytes, bytes, None),
            WindowRule::Follows(SocketBuffer { start, greatest }) => {
                // The window is half of the buffer, in whole segments, before the length of the sender's
                // segments is known (`TCP_DEFAULT_SCALING_RATIO`). One segment is kept back
                // (`tcp_init_buffer_space`).
                let half = start / 2;
                let offered = half - half % mss;
                let share = u64::from(mss) * 256 / (u64::from(mss) + OVERHEAD_BYTES);
                let buffer = Buffer { size: start, greatest, share: share as u32 };
                (offered, offered.min(half - mss), Some(buffer))
            }
        };
        Self {
            mss,
            current,
            buffer,
            right_edge: u64::from(offered),
            rtt8_us: None,
            rtt_mark: None,
            last_echo: None,
            read_per_round: u64::from(10 * mss).min(u64::from(offered)),
            round_offset: 0,
            round_us: 0,
        }
    }

    /// Offers what an end does that opens the connection: whole segments without options, since that the peer takes
    /// timestamps too is not known yet (`tcp_connect_init`).
    pub fn open(&mut self, timestamps: bool) {
        let Some(buffer) = self.buffer else { return };
        let half = buffer.size / 2;
        let bare = self.mss + if timestamps { TIMESTAMPS_BYTES } else { 0 };
        let offered = half - half % bare;
        self.current = self.current.min(offered);
        self.right_edge = u64::from(offered);
    }

    /// Starts the first round trip when the connection is open (`tcp_init_buffer_space`).
    pub fn establish(&mut self, now: Time) {
        self.round_us = now.as_nanos() / 1_000;
    }

    /// Number of acknowledgements that leave at once: segments in half a window, two if there is none
    /// (`tcp_incr_quickack`).
    #[inline]
    pub fn quick_limit(&self) -> u32 {
        match self.current / (2 * self.mss) {
            0 => 2,
            count => count,
        }
    }

    /// Opens the window by two segments, as far as there is room beside the data `held`
    /// (`tcp_grow_window`). Says whether it did.
    #[inline]
    pub fn grow(&mut self, held: BufferedData) -> bool {
        let most = self.room(held);
        if self.buffer.is_none() || self.current >= most {
            return false;
        }
        self.current = (self.current + 2 * self.mss).min(most);
        true
    }

    /// Window in bytes that the buffer has room for beside the data `held` (`tcp_space`).
    #[inline]
    fn room(&self, held: BufferedData) -> u32 {
        self.buffer.map_or(u32::MAX, |buffer| {
            buffer.window(u64::from(buffer.size).saturating_sub(held.memory(self.mss)))
        })
    }

    /// Sizes the buffer once a round trip by the data that the application read (`tcp_rcv_space_adjust`).
    ///
    /// The application has read up to `read_to`, the end of a piece of memory. Data in order reaches up to
    /// `delivered`; the part that is not read yet does not count.
    #[inline]
    pub fn on_read(&mut self, read_to: u64, delivered: u64, now_us: u64) {
        let elapsed = now_us.saturating_sub(self.round_us);
        if self.rtt8_us.is_none_or(|rtt8_us| elapsed < u64::from(rtt8_us >> 3)) {
            return;
        }
        let read = (read_to - self.round_offset).saturating_sub(delivered - read_to);
        if read > self.read_per_round {
            if let Some(buffer) = &mut self.buffer {
                let wanted = 2 * read + u64::from(16 * self.mss);
                let growth = wanted * (read - self.read_per_round) / self.read_per_round;
                let size = ((wanted + 2 * growth) << 8) / u64::from(buffer.share);
                buffer.size = buffer.size.max(size.min(u64::from(buffer.greatest)) as u32);
            }
            self.read_per_round = read;
        }
        self.round_offset = read_to;
        self.round_us = now_us;
    }

    /// Measures the round trip at the receiver (`tcp_rcv_rtt_measure`, `tcp_rcv_rtt_measure_ts`).
    ///
    /// It comes from the echo of the receiver's own timestamps, or from the time that a full window takes
    /// to arrive.
    #[inline]
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

    /// Takes a sample in microseconds. One by the window may be too long: it only lowers the estimate
    /// (`tcp_rcv_rtt_update`).
    fn take_rtt(&mut self, sample: u32, by_window: bool) {
        self.rtt8_us = Some(match self.rtt8_us {
            Some(rtt8_us) if sample << 3 >= rtt8_us => {
                if by_window {
                    rtt8_us
                } else {
                    rtt8_us - (rtt8_us >> 3) + sample
                }
            }
            _ => sample << 3,
        });
    }

    /// Window to write into a segment, in bytes (`__tcp_select_window`).
    ///
    /// It is as large as there is room beside the data `held`. Its right edge never moves back (RFC 9293,
    /// section 3.8.6).
    #[inline]
    pub fn offer(&mut self, delivered: u64, held: BufferedData) -> u32 {
        self.right_edge = self.edge(delivered, held);
        (self.right_edge - delivered) as u32
    }

    /// Window that [`offer`](Self::offer) would return, in bytes. Offers nothing.
    pub fn would_offer(&self, delivered: u64, held: BufferedData) -> u32 {
        (self.edge(delivered, held) - delivered) as u32
    }

    #[inline]
    fn edge(&self, delivered: u64, held: BufferedData) -> u64 {
        let window = self.current.min(self.room(held));
        self.right_edge.max(delivered + u64::from(window))
    }
}

/// Timestamps in the header of every segment (`TCPOLEN_TSTAMP_ALIGNED`).
const TIMESTAMPS_BYTES: u32 = 12;
/// Most segments in one piece of memory (`MAX_SKB_FRAGS`).
pub(crate) const PIECE: u32 = 17;

#[cfg(test)]
mod tests {
    use super::*;

    /// Windows of the first two segments between two Linux 6.12 with 131072 bytes of receive buffer and an MTU of
    /// 1500, as tcpdump shows them: 44 segments of 1460 bytes of who opens, 45 of 1448 of who answers.
    #[test]
    fn who_opens_offers_segments_without_options() {
        let profile = Profile::named("linux").unwrap();
        let nothing = BufferedData { segments: 0, pieces: 0 };
        let mut passive = ReceiveWindow::new(&profile, 1448);
        assert_eq!(passive.offer(0, nothing), 65_160);
        let mut active = ReceiveWindow::new(&profile, 1448);
        active.open(true);
        assert_eq!(active.offer(0, nothing), 64_240);
        assert_eq!(active.current, passive.current);
        let mut without_timestamps = ReceiveWindow::new(&profile, 1460);
        without_timestamps.open(false);
        assert_eq!(without_timestamps.offer(0, nothing), 64_240);
    }
}
