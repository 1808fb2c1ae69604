//! DCTCP: RFC 8257, as Linux has it (`net/ipv4/tcp_dctcp.c`).
//!
//! Reduces the window by half the share of segments that were marked, and not by half. The receiver echoes
//! each mark ([`receiver`](crate::receiver)). Where the peer does not agree to ECN it is Reno.

use super::{Algorithm, CongestionControl, reno};
use crate::window::{AckSample, Window};

#[derive(Debug)]
struct Dctcp {
    /// The share of marked segments, smoothed, in 1024ths (`dctcp_alpha`).
    marked_share: u32,
    round: Round,
    /// The window before the last reduction, in segments.
    cwnd_before: u32,
    /// Whether both ends agreed on ECN.
    ecn: bool,
}

/// A round trip over which marks are counted.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    /// The segment with whose acknowledgement it ends.
    end: u32,
    /// Segments delivered, and marked ones among them, when it began.
    delivered: u32,
    marked: u32,
}

impl CongestionControl for Dctcp {
    /// RFC 8257, section 3.3, step 9.
    fn ssthresh(&mut self, window: &Window) -> u32 {
        if !self.ecn {
            return reno::half(window);
        }
        self.cwnd_before = window.cwnd;
        (window.cwnd - ((window.cwnd * self.marked_share) >> (SHARE_SHIFT + 1))).max(2)
    }

    fn on_established(&mut self, window: &Window, ecn: bool) {
        self.ecn = ecn;
        self.round.end = window.nxt;
    }

    /// RFC 8257, section 3.3, steps 1 to 8.
    fn on_ack(&mut self, window: &mut Window, sample: &AckSample) {
        if window.una < self.round.end {
            return;
        }
        let delivered = sample.delivered - self.round.delivered;
        let marked = sample.delivered_marked - self.round.marked;
        let decay = self.marked_share >> GAIN_SHIFT;
        self.marked_share -= if decay == 0 { self.marked_share } else { decay };
        let grown = (marked << (SHARE_SHIFT - GAIN_SHIFT)) / delivered.max(1);
        self.marked_share = (self.marked_share + grown).min(WHOLE);
        self.round =
            Round { end: window.nxt, delivered: sample.delivered, marked: sample.delivered_marked };
    }

    /// RFC 8257, section 3.5: a loss is answered as in other TCP.
    fn on_recovery(&mut self, window: &mut Window) {
        self.on_loss(window);
    }

    fn on_loss(&mut self, window: &mut Window) {
        if self.ecn {
            self.cwnd_before = window.cwnd;
            window.ssthresh = reno::half(window);
        }
    }

    fn undo(&mut self, window: &Window, prior_cwnd: u32) -> u32 {
        window.cwnd.max(if self.ecn { self.cwnd_before } else { prior_cwnd })
    }

    fn counts_marks(&self) -> bool {
        true
    }
}

pub(super) static DCTCP: Algorithm = Algorithm {
    name: "dctcp",
    summary: "reduces its window by the share of segments that were marked; needs ECN, and asks for it",
    source: "RFC 8257; Linux net/ipv4/tcp_dctcp.c",
    begin: |_| {
        Box::new(Dctcp { marked_share: WHOLE, round: Round::default(), cwnd_before: 0, ecn: false })
    },
};

/// Shares are in 1024ths; everything counts as marked at first (`dctcp_alpha_on_init`).
const WHOLE: u32 = 1 << SHARE_SHIFT;
const SHARE_SHIFT: u32 = 10;
/// A round trip counts for a sixteenth (`dctcp_shift_g`).
const GAIN_SHIFT: u32 = 4;
