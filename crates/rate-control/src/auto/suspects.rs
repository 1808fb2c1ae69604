//! Whose a queue may be, where the two ways of a round trip are not told apart.

use weir_core::{Duration, Time};

use super::Auto;
use crate::contract::{Side, State};
use crate::quantities::Seconds;
use crate::side::{PRESSING_SHARE, SideControl};
use crate::whose::whose;

/// Sides that may have made a queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Suspects {
    pub sides: [bool; 2],
    /// Whether it is one side's alone, or both are to find out; by side, of those that may have made it.
    pub certain: [bool; 2],
}

impl Auto {
    /// The sides that may have made a queue, where the two ways are not told apart.
    pub(super) fn suspects(&self, excess: Seconds, now: Time) -> Suspects {
        let only =
            |side: Side| Suspects { sides: Side::ALL.map(|one| one == side), certain: [true; 2] };
        if let Some(side) = self.known {
            return only(side);
        }
        // What stirs the line, or was found to be at fault and is still at it, is at fault.
        let feedback = self.feedback(now);
        for busy in [SideControl::is_disturbing, SideControl::is_trying] {
            let busy = Side::ALL.map(|side| busy(&self.sides[side as usize], feedback, now));
            if busy[0] != busy[1] {
                return only(if busy[0] { Side::Egress } else { Side::Ingress });
            }
        }
        let usage = self.usage();
        let pressing = usage.map(|usage| usage >= PRESSING_SHARE);
        match pressing {
            [true, false] | [false, true] => {
                // Through a line that became slower than the rate comes less than a side that presses has.
                let both = self.are_both_loaded() && excess >= UNDENIABLE;
                let sides = if both { [true; 2] } else { pressing };
                Suspects { sides, certain: pressing.map(|presses| presses || !both) }
            }
            [false, false] => {
                let most = if usage[1] > usage[0] { Side::Ingress } else { Side::Egress };
                let sides =
                    only(most).sides.map(|is| is && usage[most as usize] >= NOTICEABLE_SHARE);
                Suspects { sides, certain: [true; 2] }
            }
            [true, true] => match [0, 1].map(|side| self.sides[side].capacity().is_some()) {
                // The one that is not shaped yet; of two, the one with more traffic.
                [true, false] => only(Side::Ingress),
                [false, true] => only(Side::Egress),
                [false, false] => {
                    let more = self.sides[1].load() > self.sides[0].load();
                    only(if more { Side::Ingress } else { Side::Egress })
                }
                // Both are lowered, but neither forgets what its line carries until it must be one of them.
                [true, true] => Suspects { sides: [true; 2], certain: [excess >= UNDENIABLE; 2] },
            },
        }
    }

    /// Whether both sides have a load: more than the acknowledgements of the other's.
    fn are_both_loaded(&self) -> bool {
        let usage = self.usage();
        let is_loaded = |side| usage[side as usize] >= NOTICEABLE_SHARE && self.sends_data(side);
        Side::ALL.into_iter().all(is_loaded)
    }

    /// Whether a side sends more than acknowledgements, however little that is beside what the other sends.
    pub(super) fn sends_data(&self, side: Side) -> bool {
        let control = &self.sides[side as usize];
        !control.is_fixed()
            && control.load().min(control.history.load(LASTS)) >= control.least_load()
            && control.history.mean_packet(COMPARED) >= DATA_PACKET
    }

    /// Whose queue there is, where both sides may have made it and their ways or the evenness of what they carry tell.
    pub(super) fn whose_queue(&self, now: Time) -> Option<Side> {
        if !self.are_both_loaded() {
            return None;
        }
        if self.is_stuck_on_the_way_out(now) {
            return Some(Side::Egress);
        }
        let total = self.queued(now);
        let quiet = Side::ALL.map(|side| self.threshold(side, now) / 2.0);
        let quiet = quiet[0].max(quiet[1]);
        if total <= quiet {
            return None;
        }
        match self.delays.share(Side::Egress, total, now) {
            Some(share) if share >= MOST_OF_IT => Some(Side::Egress),
            Some(share) if share <= 1.0 - MOST_OF_IT => Some(Side::Ingress),
            Some(_) => None,
            // A path that varies makes any flow uneven.
            None if self.sides.iter().any(SideControl::is_disturbed) => None,
            None => {
                let histories = self.sides.each_ref().map(|side| &side.history);
                let presses = self.usage()[1] >= PRESSING_SHARE;
                whose(&self.delays, histories, self.sides[1].granted(), presses, quiet, now)
            }
        }
    }

    /// Whether this side may be why answers stay out.
    pub(super) fn may_be(&self, side: Side, now: Time) -> bool {
        // As long as as much arrives as before, nothing is stuck on the way in. What arrives at a rate that was
        // lowered since tells nothing.
        let arrives = side == Side::Ingress
            && self.sides[1].state() != State::BackingOff
            && self.sides[1]
                .rate()
                .is_some_and(|rate| self.sides[1].load() >= rate * ARRIVES_SHARE);
        !arrives
            && self.usage()[side as usize] >= NOTICEABLE_SHARE
            && self.suspects(UNDENIABLE, now).sides[side as usize]
    }

    /// Whether answers stay out behind a queue that grew much faster than one on ingress did: out of that would have come so much
    /// less than was let through.
    fn is_stuck_on_the_way_out(&self, now: Time) -> bool {
        let overdue = self.delays.overdue(self.threshold(Side::Egress, now), now);
        let growth = overdue.and_then(|overdue| self.delays.growth(overdue, now));
        let Some(growth) = growth.filter(|growth| growth.per_second >= STUCK_GROWTH) else {
            return false;
        };
        let ingress = &self.sides[Side::Ingress as usize];
        let round_trip = self.feedback(now).to_duration();
        // The answer to a later one comes out of the queue from here on.
        let from = growth.since.saturating_add(round_trip);
        let to = from.saturating_add(STUCK_SPAN);
        let before = |at: Time| at.saturating_sub(round_trip);
        let came = ingress.history.bytes_between(from, to);
        let let_through = ingress.granted().bytes_between(before(from), before(to));
        to <= now
            && came.zip(let_through).is_some_and(|(came, granted)| came >= granted * STUCK_SHARE)
    }

    /// The share of each side's rate that is used. Of sides without a rate, the load beside the other's.
    pub(super) fn usage(&self) -> [f64; 2] {
        let loads = [0, 1].map(|side| self.sides[side].load());
        let long = [0, 1].map(|side| self.sides[side].history.load(COMPARED));
        // Some probes and pings at once are no load.
        let lasting = [0, 1].map(|side| self.sides[side].history.load(LASTS));
        // What a side carries while its rate is lowered tells nothing of how much the other has beside it.
        let before = |side: usize| {
            let lowered = |now| self.sides[side].load_before(COMPARED, now);
            self.ticked.and_then(lowered).unwrap_or_default()
        };
        [0, 1].map(|side| match self.sides[side].rate() {
            _ if loads[side].min(lasting[side]) < self.sides[side].least_load() => 0.0,
            // Whoever chose its rate knows that the line carries it.
            _ if self.sides[side].is_fixed() => 0.0,
            // A side with a share of the traffic may be at fault however high its rate is. Through a line that became slower
            // comes less than a moment ago; where delays vary TCP sends less for other reasons.
            Some(rate) if long[side] >= long[1 - side] * BESIDE_SHARE => {
                let varies = self.sides.iter().any(SideControl::is_disturbed);
                let load = if varies { loads[side] } else { loads[side].max(lasting[side]) };
                (load / rate).max(NOTICEABLE_SHARE)
            }
            Some(rate) => loads[side] / rate,
            None if long[side] < long[1 - side].max(before(1 - side)) * BESIDE_SHARE => 0.0,
            None => 1.0,
        })
    }
}

/// Used share of a rate below which a side has made no queue: acknowledgements and name look-ups use less.
pub(super) const NOTICEABLE_SHARE: f64 = 0.15;
/// Share of the other side's load from which on a side may have made a queue, too, if neither has a rate.
///
/// Acknowledgements are a twentieth of a download, a fifth where a frame is that small.
const BESIDE_SHARE: f64 = 0.25;
/// Time over which the loads of the sides are compared, so that a moment of back-off does not count.
const COMPARED: Duration = Duration::from_secs(2);
/// Share of the ingress rate that arrives where answers stay out for another reason.
const ARRIVES_SHARE: f64 = 0.8;
/// Growth of delays in a second, and share of what is let through that does not come out of a queue on ingress that grows like that:
/// a quarter would.
const STUCK_GROWTH: f64 = 3.0;
const STUCK_SHARE: f64 = 0.7;
/// Time over which it is measured what comes meanwhile: five ticks.
const STUCK_SPAN: Duration = Duration::from_millis(100);
/// Share of an excess that makes it one side's.
const MOST_OF_IT: f64 = 0.8;
/// Excess from which on one of two loaded sides surely has a queue: a twentieth of it is one in itself.
const UNDENIABLE: Seconds = Seconds(0.04);
/// Bytes of the packets of a side at least, in the mean, that sends more than acknowledgements: these have up to 160 in a tunnel.
const DATA_PACKET: f64 = 300.0;
/// Time over which a load is one: at 1 Mbit/s it is after a tenth of a second.
const LASTS: Duration = Duration::from_millis(500);
