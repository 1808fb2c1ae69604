//! Excess above which there is a queue: what packets, jitter and the path itself explain is none.

use weir_core::Time;

use super::Auto;
use crate::contract::{Side, State};
use crate::quantities::Seconds;
use crate::side::SideControl;

impl Auto {
    /// Excess above which there is a queue.
    pub(super) fn threshold(&self, side: Side, now: Time) -> Seconds {
        let pause = match self.sides[side as usize].varies() {
            // It need not go on as fast as before.
            true => Seconds::ZERO,
            false => self.pauses.allowance(self.feedback(now), now),
        };
        self.usual_threshold(side, now) + pause
    }

    /// The same without what waits for a pause: differences below it are jitter.
    pub(super) fn usual_threshold(&self, side: Side, now: Time) -> Seconds {
        // Packets that keep their order keep each other waiting: under load all take the path's longest time, and do not jitter.
        let own = &self.sides[side as usize];
        let idle = self.idle_excess(side).min(MAX_IDLE) - own.room_for_jitter() - own.slack();
        self.threshold_of(side, idle, now)
    }

    /// Excess above which there is a queue if nothing paused, where `idle` is let stand at least, however little jitters.
    pub(super) fn threshold_of(&self, side: Side, idle: Seconds, now: Time) -> Seconds {
        let own = &self.sides[side as usize];
        // Some jitter is covered by what stands anyway.
        let jitter = (self.jitter(side, now) - self.covered_jitter(own)).max(Seconds::ZERO);
        own.threshold()
            + own.slack()
            + self.packets(side)
            + jitter.max(idle)
            + self.late.allowance(now)
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

/// What the idle line shows is let stand under load up to this: as much as on a line that nothing is known of.
const MAX_IDLE: Seconds = Seconds(0.01);

#[cfg(test)]
mod tests {
    use weir_core::Duration;

    use super::*;
    use crate::contract::{AutoSettings, Controller, Delay, Measured, TICK, Traffic};

    /// Delays of an empty path of 20 ms and of what it takes longer, and the time until which they were seen.
    struct Seen {
        auto: Auto,
        tick: u64,
        /// What came in by now.
        bytes: u64,
    }

    impl Seen {
        fn new() -> Self {
            Self { auto: Auto::new(&AutoSettings::default()), tick: 0, bytes: 0 }
        }

        /// Lets ticks pass with a probe in each of `every`, which takes so many ms longer.
        fn pass(&mut self, ticks: u64, every: u64, longer_ms: impl Fn(u64) -> u64) {
            for _ in 0..ticks {
                self.tick += 1;
                let now = Time::ZERO + TICK * self.tick;
                if self.tick.is_multiple_of(every) {
                    let rtt = Duration::from_millis(20 + longer_ms(self.tick / every));
                    let sent = now.saturating_sub(rtt);
                    let source = (self.tick / every % 3) as u32;
                    self.auto.on_sent(source, sent);
                    let delay = Delay { source, sent, rtt, one_way: None, by: Measured::Answer };
                    self.auto.on_delay(&delay, now);
                }
                let came = Traffic { bytes: self.bytes, ..Traffic::default() };
                self.auto.on_tick(&[Some(Traffic::default()), Some(came)], now, &mut |_| {});
            }
        }

        fn threshold_ms(&self) -> f64 {
            self.auto.threshold(Side::Ingress, Time::ZERO + TICK * self.tick).0 * 1e3
        }
    }

    /// Packets that come one upon another all take the path's longest time, as one that may not overtake does.
    #[test]
    fn what_the_idle_line_shows_is_no_queue_once_it_no_longer_jitters() {
        let mut seen = Seen::new();
        seen.pass(300, 10, |number| number * 7 % 5);
        let idle = seen.threshold_ms();
        assert!(seen.auto.sides.iter().all(|side| !side.is_disturbed()), "jitter explains it");
        seen.pass(150, 1, |_| 4);
        let steady = seen.threshold_ms();
        assert!(idle > 6.0 && steady > 6.0, "{idle} and {steady} ms");
        let jitter = seen.auto.jitter(Side::Ingress, Time::ZERO + TICK * seen.tick);
        assert!(jitter < Seconds(0.001), "{jitter:?}");
    }

    /// A path whose length swings slowly does not jitter: what it shows is let stand as a delay that no queue makes.
    #[test]
    fn what_swings_on_the_idle_line_is_no_jitter_and_is_let_stand_as_foreign() {
        let bps = Some(100_000_000);
        let known = AutoSettings {
            egress_known_bps: bps,
            ingress_known_bps: bps,
            ..AutoSettings::default()
        };
        let mut seen = Seen { auto: Auto::new(&known), tick: 0, bytes: 0 };
        seen.pass(600, 10, |number| number % 60 / 15 * 2);
        assert!(seen.auto.sides.iter().all(SideControl::is_disturbed));
    }

    /// 0 to 16 ms of jitter, and then 16 for good.
    #[test]
    fn no_more_than_ten_milliseconds_of_the_idle_line_are_let_stand_under_load() {
        let mut seen = Seen::new();
        for times in 1..=4 {
            seen.pass(300, 10, |number| number * 7 % 5 * times);
        }
        assert!(seen.auto.sides.iter().all(|side| !side.is_disturbed()), "jitter explains it");
        // A load of 10 Mbit/s down, beside which nothing is learned of the idle line.
        let shown = seen.auto.idle.usual();
        for _ in 0..100 {
            seen.bytes += 25_000;
            seen.pass(1, 1, |_| 16);
        }
        assert!(shown > Some(Seconds(0.0115)) && seen.auto.idle.usual() == shown, "{shown:?}");
        assert!(!seen.auto.sides[1].is_disturbed());
        let steady = seen.threshold_ms();
        // Threshold and slack of an unknown line are 10 ms, a packet at 10 Mbit/s takes 1.23; the 2 left of ten come to that.
        assert!((13.2..13.3).contains(&steady), "{steady} ms");
    }

    #[test]
    fn after_a_sleep_no_pause_is_known() {
        let mut seen = Seen::new();
        for tick in 0..60 {
            seen.auto.pauses.note(Time::ZERO + TICK * tick, 20 * tick.min(55));
        }
        let all = |auto: &Auto| auto.pauses.within(Time::ZERO, Time::ZERO + TICK * 60);
        assert!(all(&seen.auto) > Seconds::ZERO);
        seen.auto.on_tick(&[None; 2], Time::ZERO + TICK * 60, &mut |_| {});
        seen.auto.on_tick(&[None; 2], Time::ZERO + TICK * 200, &mut |_| {});
        assert_eq!(all(&seen.auto), Seconds::ZERO);
    }

    /// Packets come in each tick of 20 ms but for four; what waited for them is no queue, unless the line varies.
    #[test]
    fn what_waits_for_a_pause_is_a_queue_only_where_the_line_varies() {
        let mut seen = Seen::new();
        let mut packets = 0;
        for tick in 0..60 {
            packets += if (50..54).contains(&tick) { 0 } else { 20 };
            seen.auto.pauses.note(Time::ZERO + TICK * tick, packets);
        }
        seen.tick = 53;
        seen.pass(1, 10, |_| 0);
        let beside_pause = seen.threshold_ms();
        // What comes behind a pause does not count as jitter.
        assert!(seen.auto.quiet.0 * 1e3 < beside_pause - 100.0);
        seen.auto.sides[Side::Ingress as usize].note_change(0.3);
        let varies = seen.threshold_ms() - seen.auto.sides[1].known_slack().0 * 1e3;
        assert!((beside_pause - varies - 120.0).abs() < 1e-6, "{beside_pause} and {varies} ms");
    }
}
