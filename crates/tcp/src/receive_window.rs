//! The receive window and its growth: dynamic right-sizing.
//!
//! Follows Linux `tcp_grow_window`, `tcp_rcv_space_adjust` and `tcp_rcv_rtt_measure` in
//! `net/ipv4/tcp_input.c`.

use crate::profile::{Profile, WindowRule};
use crate::segment::Segment;
use crate::send_buffer::OVERHEAD;

/// The receive window and its growth.
#[derive(Debug)]
pub(crate) struct ReceiveWindow {
    pub mss: u32,
    /// What is offered now, in bytes.
    pub current: u32,
    /// What may be offered with the present buffer.
    clamp: u32,
    greatest: u32,
    /// Where the offered window ends in the stream.
    right_edge: u64,
    /// Eight times the round trip as this half sees it, in microseconds; 0 before the first.
    pub rtt8_us: u32,
    rtt_mark: Option<(u64, u64)>,
    last_echo: u32,
    /// Bytes read in the last round trip, and where and when the present one started.
    read_per_round: u64,
    round_offset: u64,
    round_us: u64,
}

impl ReceiveWindow {
    pub fn new(profile: &Profile, mss: u32) -> Self {
        let (offered, current, clamp, greatest) = match profile.receive_window {
            WindowRule::Fixed(bytes) => (bytes, bytes, bytes, bytes),
            WindowRule::Follows(buffer) => {
                // Half of the buffer in whole segments, as long as nothing is known of the sender's
                // (`TCP_DEFAULT_SCALING_RATIO`), of which one is kept back (`tcp_init_buffer_space`).
                let half = buffer.start / 2;
                let offered = half - half % mss;
                let window = |memory| window_of(memory, mss);
                (offered, offered.min(half - mss), window(buffer.start), window(buffer.greatest))
            }
        };
        Self {
            mss,
            current,
            clamp,
            greatest,
            right_edge: u64::from(offered),
            rtt8_us: 0,
            rtt_mark: None,
            last_echo: 0,
            read_per_round: u64::from(10 * mss).min(u64::from(offered)),
            round_offset: 0,
            round_us: 0,
        }
    }

    /// How many acknowledgements at once half a window is worth.
    pub fn quick_limit(&self) -> u32 {
        match self.current / (2 * self.mss) {
            0 => 2,
            count => count,
        }
    }

    /// Opens by two segments for each that arrives, as far as the buffer allows in which `held` segments
    /// lie (`tcp_grow_window`, `tcp_space`); says whether it did.
    pub fn grow(&mut self, held: u32) -> bool {
        let most = self.clamp.saturating_sub(held * self.mss);
        if self.current >= most {
            return false;
        }
        self.current = (self.current + 2 * self.mss).min(most);
        true
    }

    /// The application has read up to `delivered`: once a round trip the buffer follows what was read
    /// (`tcp_rcv_space_adjust`).
    pub fn on_read(&mut self, delivered: u64, now_us: u64) {
        let elapsed = now_us.saturating_sub(self.round_us);
        if self.rtt8_us == 0 || elapsed < u64::from(self.rtt8_us >> 3) {
            return;
        }
        let read = delivered - self.round_offset;
        if read > self.read_per_round {
            let wanted = 2 * read + u64::from(16 * self.mss);
            let growth = wanted * (read - self.read_per_round) / self.read_per_round;
            let wanted = (wanted + 2 * growth).min(u64::from(self.greatest)) as u32;
            self.clamp = self.clamp.max(wanted);
            self.read_per_round = read;
        }
        self.round_offset = delivered;
        self.round_us = now_us;
    }

    /// The round trip as the receiver can see it: by the echo of its own timestamps, else by the time
    /// that a full window takes to arrive.
    pub fn measure_rtt(&mut self, segment: &Segment, delivered: u64, now_us: u64) {
        if segment.ts_echo != self.last_echo && u32::from(segment.len) >= self.mss {
            self.last_echo = segment.ts_echo;
            let sample = (now_us / 1_000).saturating_sub(u64::from(segment.ts_echo)) * 1_000;
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

    /// The window to write into a segment: its right edge never moves back (RFC 9293, section 3.8.6).
    pub fn offer(&mut self, delivered: u64) -> u32 {
        self.right_edge = self.right_edge.max(delivered + u64::from(self.current));
        (self.right_edge - delivered) as u32
    }
}

/// The window that may be offered with so much memory: as much of it as data takes up of segments of
/// `mss` bytes, in 256ths (`tcp_measure_rcv_mss`, `tcp_win_from_space`).
fn window_of(memory: u32, mss: u32) -> u32 {
    let share = u64::from(mss) * 256 / (u64::from(mss) + OVERHEAD);
    ((u64::from(memory) * share) >> 8) as u32
}
