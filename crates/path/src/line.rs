//! A line: carries one packet after another at a rate. A router's processor is one that counts packets.
//!
//! A line may have to [ask](crate::grants) or [compete](crate::airtime) before it sends, and may be
//! [another](crate::reconfiguration) from time to time.

use std::sync::Arc;

use weir_core::{Framing, Rate, Seed, Serializer, Time};
use weir_scenario::{Access as AccessParams, Hop};

use crate::airtime::{Airtime, Media};
use crate::grants::Grants;
use crate::reconfiguration::Reconfiguration;
use crate::trace::Trace;

/// How much a line carries.
#[derive(Clone, Debug)]
pub enum Capacity {
    /// Everything at once.
    Unlimited,
    /// A constant rate, above 0, which may be [changed](Line::set_rate).
    Constant(Rate),
    /// As recorded.
    Trace(Arc<Trace>),
    /// So many packets per second, above 0, of any length.
    PacketsPerSecond(u64),
}

/// A line with its framing.
///
/// The driver asks `ready_at` before it takes a packet from the queue, then hands its
/// length to `send` and learns when the last bit has left.
#[derive(Clone, Debug)]
pub struct Line {
    framing: Framing,
    pace: Pace,
    access: Access,
    reconfiguration: Option<Reconfiguration>,
    /// Carries nothing until a rate is set again.
    down: bool,
    /// It has a constant rate and nothing beside, and is not down.
    is_plain: bool,
}

/// What comes before a packet is sent.
#[derive(Clone, Debug)]
enum Access {
    Free,
    Grants(Grants),
    Airtime(Airtime),
}

#[derive(Clone, Debug)]
enum Pace {
    Unlimited,
    Constant(ConstantPace),
    Trace(TracePace),
    /// A line on which every packet is a byte long.
    Packets(Serializer),
}

/// A line of constant rate at work.
#[derive(Clone, Debug)]
struct ConstantPace {
    line: Serializer,
    rate: Rate,
    /// What it carries of that now, on the path of a reconfiguration.
    carries: Rate,
}

/// A recorded line at work: a packet is delivered over as many opportunities as it takes, and what an
/// opportunity has left over serves the next packet if one waits just then.
#[derive(Clone, Debug)]
struct TracePace {
    trace: Arc<Trace>,
    /// The opportunity in use or next to be used.
    index: u64,
    /// Bytes that it has left.
    left: u64,
    busy_until: Time,
}

impl Line {
    /// A line of that capacity and framing, idle. Recorded lines count IP bytes and have no framing of
    /// their own.
    #[must_use]
    pub fn new(capacity: Capacity, framing: Framing) -> Self {
        let pace = match capacity {
            Capacity::Unlimited => Pace::Unlimited,
            Capacity::Constant(rate) => {
                Pace::Constant(ConstantPace { line: Serializer::new(rate), rate, carries: rate })
            }
            Capacity::Trace(trace) => Pace::Trace(TracePace {
                trace,
                index: 0,
                left: Trace::OPPORTUNITY_BYTES,
                busy_until: Time::ZERO,
            }),
            Capacity::PacketsPerSecond(rate) => {
                Pace::Packets(Serializer::new(Rate::from_bps(8 * rate)))
            }
        };
        let is_plain = matches!(pace, Pace::Constant(_));
        Self { framing, pace, access: Access::Free, reconfiguration: None, down: false, is_plain }
    }

    /// The line with the access and the reconfigurations of `hop`, drawing from streams of `seed`; `media` get that
    /// for which it competes.
    #[must_use]
    pub(crate) fn reached_as(mut self, hop: &Hop, seed: Seed, media: &mut Media) -> Self {
        self.access = match &hop.access {
            None => Access::Free,
            Some(AccessParams::Grants(params)) => {
                Access::Grants(Grants::new(*params, seed.stream("link grants")))
            }
            Some(AccessParams::Airtime(params)) => {
                let place = media.add_station(params.medium.as_deref());
                Access::Airtime(Airtime::new(params.clone(), place, seed.stream("link airtime")))
            }
        };
        self.reconfiguration = hop.reconfiguration.map(|params| Reconfiguration::new(params, seed));
        self.is_plain &= self.keeps_its_word();
        self
    }

    /// Gives the line another rate from `now` on; `None` takes it down, so that it carries nothing until a
    /// rate is set again.
    ///
    /// # Panics
    /// If it is none of constant rate in bit/s.
    pub fn set_rate(&mut self, rate: Option<Rate>, now: Time) {
        let Pace::Constant(pace) = &mut self.pace else {
            panic!("only a line of constant rate can be given another");
        };
        self.down = rate.is_none();
        self.is_plain = matches!(self.access, Access::Free) && self.reconfiguration.is_none();
        self.is_plain &= !self.down;
        if let Some(rate) = rate {
            pace.rate = rate;
            pace.follow(self.reconfiguration.as_mut(), now);
        }
    }

    /// When the line is to be asked again: `now` if the next packet may start, [`Time::MAX`] if it is down.
    /// `waiting` says how many wait; while some do, the line must be asked when it says.
    #[must_use]
    #[inline]
    pub(crate) fn ready_at(
        &mut self,
        now: Time,
        waiting: impl Fn() -> u64,
        media: &mut Media,
    ) -> Time {
        match &self.pace {
            Pace::Constant(pace) if self.is_plain => pace.line.busy_until().max(now),
            _ => self.ready_after_access(now, waiting, media),
        }
    }

    /// Whether it carries a packet at once, whatever waits.
    #[inline]
    pub(crate) fn is_idle(&self, now: Time) -> bool {
        match &self.pace {
            Pace::Constant(pace) => self.is_plain && pace.line.busy_until() <= now,
            Pace::Unlimited | Pace::Trace(_) | Pace::Packets(_) => false,
        }
    }

    fn ready_after_access(
        &mut self,
        now: Time,
        waiting: impl Fn() -> u64,
        media: &mut Media,
    ) -> Time {
        if self.down {
            return Time::MAX;
        }
        if let Some(paths) = &self.reconfiguration {
            let open = paths.open_from(now);
            if open > now {
                return open;
            }
        }
        match (&mut self.access, &mut self.pace) {
            (_, Pace::Unlimited) => now,
            (Access::Airtime(station), _) => station.ready_at(now, waiting() > 0, media),
            (Access::Grants(modem), Pace::Constant(pace)) => {
                modem.ready_at(now, waiting(), pace.line.busy_until())
            }
            (_, Pace::Constant(ConstantPace { line, .. }) | Pace::Packets(line)) => {
                line.busy_until().max(now)
            }
            (_, Pace::Trace(line)) => line.ready_at(now),
        }
    }

    /// Sends an IP packet of `ip_len` bytes, which starts at `now`, and returns the bytes of the line that it occupies
    /// and when its last bit has left. The line must be [ready](Self::ready_at).
    #[inline]
    pub(crate) fn send(&mut self, ip_len: u32, now: Time, media: &mut Media) -> (u64, Time) {
        let bytes = self.framing.wire_bytes(ip_len);
        let left = match &mut self.pace {
            Pace::Constant(pace) if self.is_plain => pace.line.send(bytes, now),
            _ => self.send_after_access(bytes, now, media),
        };
        (bytes, left)
    }

    /// Sends so many bytes of the line, and returns when the last bit has left.
    fn send_after_access(&mut self, bytes: u64, now: Time, media: &mut Media) -> Time {
        match &mut self.pace {
            Pace::Unlimited => now,
            Pace::Constant(pace) => {
                if self.reconfiguration.is_some() {
                    pace.follow(self.reconfiguration.as_mut(), now);
                }
                let line = &mut pace.line;
                match &mut self.access {
                    Access::Free => line.send(bytes, now),
                    Access::Grants(modem) => {
                        modem.took();
                        line.send(bytes, now)
                    }
                    Access::Airtime(station) => {
                        let left = line.send(bytes, station.starts());
                        station.took(left, media);
                        left
                    }
                }
            }
            Pace::Trace(line) => line.send(bytes, now),
            Pace::Packets(line) => line.send(1, now),
        }
    }

    /// Whether what [`ready_at`](Self::ready_at) says of a busy line holds whatever else comes to wait meanwhile.
    #[must_use]
    #[inline]
    pub(crate) const fn keeps_its_word(&self) -> bool {
        matches!(self.access, Access::Free) && self.reconfiguration.is_none()
    }

    /// Bytes of the line that an IP packet of `ip_len` bytes occupies.
    #[must_use]
    #[inline]
    pub const fn wire_bytes(&self, ip_len: u32) -> u64 {
        self.framing.wire_bytes(ip_len)
    }
}

impl ConstantPace {
    /// Gives the line the rate that it has at `now`.
    fn follow(&mut self, paths: Option<&mut Reconfiguration>, now: Time) {
        let carries = paths.map_or(self.rate, |paths| paths.rate(self.rate, now));
        if carries != self.carries {
            self.line.set_rate(carries, now);
            self.carries = carries;
        }
    }
}

impl TracePace {
    fn ready_at(&mut self, now: Time) -> Time {
        let from = now.max(self.busy_until);
        if self.left > 0 && self.trace.at(self.index) >= from {
            return self.trace.at(self.index);
        }
        // Opportunities that passed without a packet are gone.
        self.index = self.trace.first_from(from).max(self.index + 1);
        self.left = Trace::OPPORTUNITY_BYTES;
        self.trace.at(self.index)
    }

    fn send(&mut self, bytes: u64, now: Time) -> Time {
        debug_assert_eq!(self.ready_at(now), now, "no opportunity at {now}");
        let mut bytes = bytes;
        while bytes > self.left {
            bytes -= self.left;
            self.index += 1;
            self.left = Trace::OPPORTUNITY_BYTES;
        }
        self.left -= bytes;
        self.busy_until = self.trace.at(self.index);
        self.busy_until
    }
}

#[cfg(test)]
mod tests {
    use weir_core::Duration;

    use super::*;

    fn ready(line: &mut Line, now: Time) -> Time {
        line.ready_at(now, || 1, &mut Media::default())
    }

    fn send(line: &mut Line, ip_len: u32, now: Time) -> Time {
        line.send(ip_len, now, &mut Media::default()).1
    }

    #[test]
    fn a_constant_line_is_busy_while_it_sends() {
        let mut line = Line::new(Capacity::Constant(Rate::from_mbit(8)), Framing::ETHERNET);
        let now = Time::from_millis(1);
        assert_eq!(ready(&mut line, now), now);
        let left = send(&mut line, 1500, now);
        assert_eq!(left.since(now), Duration::from_micros(1_538));
        assert_eq!(ready(&mut line, now), left);
    }

    #[test]
    fn a_processor_takes_one_time_for_every_packet_and_is_exact_over_a_second() {
        let mut processor = Line::new(Capacity::PacketsPerSecond(6_250), Framing::NONE);
        assert_eq!(send(&mut processor, 1500, Time::ZERO), Time::from_nanos(160_000));
        assert_eq!(send(&mut processor, 40, Time::from_nanos(160_000)), Time::from_nanos(320_000));
        assert_eq!(processor.wire_bytes(40), 40);
        // A seventh of a second is no whole number of nanoseconds.
        let mut slow = Line::new(Capacity::PacketsPerSecond(7), Framing::NONE);
        let last = (0..7).fold(Time::ZERO, |now, _| send(&mut slow, 64, now));
        assert_eq!(last, Time::from_millis(1_000));
    }

    #[test]
    fn a_line_changes_its_rate_and_goes_down() {
        let mut line = Line::new(Capacity::Constant(Rate::from_mbit(12)), Framing::NONE);
        let ms = Time::from_millis;
        assert_eq!(send(&mut line, 1500, ms(0)), ms(1));
        line.set_rate(Some(Rate::from_mbit(3)), ms(1));
        assert_eq!(send(&mut line, 1500, ms(1)), ms(5));
        line.set_rate(None, ms(5));
        assert_eq!(ready(&mut line, ms(5)), Time::MAX);
        line.set_rate(Some(Rate::from_mbit(12)), ms(9));
        assert_eq!(ready(&mut line, ms(9)), ms(9));
        assert_eq!(send(&mut line, 1500, ms(9)), ms(10));
    }

    #[test]
    fn a_recorded_line_delivers_at_its_opportunities() {
        let trace = Arc::new(Trace::parse("t", "1\n1\n5\n9\n").unwrap());
        let mut line = Line::new(Capacity::Trace(trace), Framing::NONE);
        let ms = Time::from_millis;
        assert_eq!(ready(&mut line, Time::ZERO), ms(1));
        // Two full packets in the first millisecond.
        assert_eq!(send(&mut line, 1500, ms(1)), ms(1));
        assert_eq!(ready(&mut line, ms(1)), ms(1));
        assert_eq!(send(&mut line, 1000, ms(1)), ms(1));
        // The next needs the rest of this opportunity and a part of the one at 5 ms.
        assert_eq!(ready(&mut line, ms(1)), ms(1));
        assert_eq!(send(&mut line, 1000, ms(1)), ms(5));
        // What is left of it serves a waiting packet.
        assert_eq!(ready(&mut line, ms(5)), ms(5));
        assert_eq!(send(&mut line, 500, ms(5)), ms(5));
        // ... and is gone for one that comes later.
        assert_eq!(ready(&mut line, ms(6)), ms(9));
        assert_eq!(send(&mut line, 40, ms(9)), ms(9));
        // The recording starts over behind its end at 9 ms.
        assert_eq!(ready(&mut line, ms(10)), ms(10));
    }
}
