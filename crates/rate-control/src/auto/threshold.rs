//! Excess above which there is a queue: what packets, jitter and the path itself explain is none.

use weir_core::Time;

use super::Auto;
use crate::contract::{Side, State};
use crate::quantities::Seconds;
use crate::side::SideControl;

impl Auto {
    /// Excess above which there is a queue.
    pub(super) fn threshold(&self, side: Side, now: Time) -> Seconds {
        let own = &self.sides[side as usize];
        let jitter = (self.jitter(side, now) - self.covered_jitter(own)).max(Seconds::ZERO);
        let explained = self.late.allowance(now) + self.pauses.allowance(self.feedback(now), now);
        own.threshold() + own.slack() + self.packets(side) + jitter + explained
    }

    /// Excess that jitter explains on a side, beside packets in front.
    pub(super) fn jitter(&self, side: Side, now: Time) -> Seconds {
        // Packets in front account for a third of their time as jitter: that of two even draws.
        let jitter = (self.delays.jitter(now) - self.packets(side) / 3.0).max(Seconds::ZERO);
        (jitter * JITTER_FACTOR).min(MAX_JITTER)
    }

    /// Jitter that a side's threshold covers by itself: that of the traffic's own making, beside what the idle line shows.
    fn covered_jitter(&self, own: &SideControl) -> Seconds {
        let left = self.idle.usual().map(|usual| own.room_for_jitter() - usual - own.slack());
        left.map_or(Seconds::ZERO, |left| left.max(Seconds::ZERO))
    }

    /// Excess above which there is a queue if it stays, however much of it jitter would explain if it came and went; `None` as
    /// long as the idle line is not known.
    pub(super) fn standing(&self, side: Side, now: Time) -> Option<Seconds> {
        let own = &self.sides[side as usize];
        let shown = own.threshold() + own.known_slack() + self.late.allowance(now);
        self.idle.usual().map(|usual| shown + self.packets(side) + usual)
    }

    /// Excess that the path of a side shows now and then without traffic, beyond what packets in front explain.
    ///
    /// Zero where so much is let stand already, and as long as it is not known.
    pub(super) fn idle_excess(&self, side: Side) -> Seconds {
        let usual = self.idle.usual().filter(|_| !self.sides[side as usize].is_disturbed());
        usual.map_or(Seconds::ZERO, |usual| (usual - self.packets(side)).max(Seconds::ZERO))
    }

    /// Time of the packets that are in front of a probe even on a line that keeps up: one of its own side, and one of the other
    /// side if that has traffic.
    fn packets(&self, side: Side) -> Seconds {
        let [own, other] = [side as usize, 1 - side as usize].map(|place| &self.sides[place]);
        let other_packet = match other.state() {
            State::Idle | State::Stalled => Seconds::ZERO,
            _ => other.packet_time(),
        };
        own.packet_time() + other_packet
    }
}

/// Mean differences of successive samples by which a queue stands out from noise.
///
/// For noise of any usual shape fewer than one sample in a hundred lies beyond, and the middle of three far
/// fewer.
const JITTER_FACTOR: f64 = 3.0;
/// No line is so erratic that a longer queue on it is not worth fighting.
const MAX_JITTER: Seconds = Seconds(0.05);
