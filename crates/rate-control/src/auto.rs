//! Weir's own controller: both sides, and whose queue it is.

mod suspects;
mod threshold;

use weir_core::{Duration, Rate, Time};

use crate::contract::{
    AutoSettings, Controller, Decision, Delay, Reason, Side, State, TICK, Traffic,
};
use crate::delays::{Delays, IDLE_PATH};
use crate::idle::IdleDelays;
use crate::lateness::Lateness;
use crate::pauses::{MAX_PAUSE, Pauses};
use crate::quantities::{BitsPerSecond, Seconds};
use crate::side::{Inputs, MIN_LOAD, PATH_LASTS, PRESSING_SHARE, SideControl, View};
use crate::source::{RTT_HALF, Sample};
use crate::surge::Surge;
use suspects::NOTICEABLE_SHARE;

/// Finds the rates of both sides by itself.
///
/// It needs to be told nothing of the line. It lets everything through until delays rise under load, measures what
/// the line carries meanwhile, and from then on keeps the shaper a little below that (docs/rate-control.md).
#[derive(Clone, Debug)]
pub struct Auto {
    sides: [SideControl; 2],
    delays: Delays,
    /// Differences of delays below this are jitter.
    quiet: Seconds,
    /// The first tick, and what had crossed until then.
    began: Option<(Time, [Option<Traffic>; 2])>,
    ticked: Option<Time>,
    late: Lateness,
    pauses: Pauses,
    /// Whether nothing came over the line at the last tick, and for some time.
    is_out: bool,
    /// What varies while neither side has traffic.
    idle: IdleDelays,
    /// When the idle line's path was last found to have become longer.
    longer: Option<Time>,
    surge: Surge,
    /// Whose queue there is, where both sides may have made it and something tells.
    known: Option<Side>,
    /// Whether the line has had no load for so long that probes rest.
    asleep: bool,
}

impl Auto {
    /// A controller that knows of its line what `settings` say.
    #[must_use]
    pub fn new(settings: &AutoSettings) -> Self {
        let mode = settings.mode;
        let rate = |bps: Option<u64>| bps.map(Rate::from_bps);
        let side = |side, fixed, max, known| match rate(fixed) {
            Some(fixed) => SideControl::fixed(side, mode, fixed),
            None => SideControl::new(side, mode, rate(max)).beginning_with(rate(known)),
        };
        let AutoSettings { egress_known_bps, ingress_known_bps, .. } = *settings;
        Self {
            sides: [
                side(Side::Egress, settings.egress_bps, settings.egress_max_bps, egress_known_bps),
                side(
                    Side::Ingress,
                    settings.ingress_bps,
                    settings.ingress_max_bps,
                    ingress_known_bps,
                ),
            ],
            delays: Delays::default(),
            quiet: FIRST_QUIET,
            began: None,
            ticked: None,
            late: Lateness::new(),
            pauses: Pauses::new(),
            is_out: false,
            idle: IdleDelays::default(),
            longer: None,
            surge: Surge::default(),
            known: None,
            asleep: false,
        }
    }

    /// Queue of both ways together, as the latest samples tell.
    fn queued(&self, now: Time) -> Seconds {
        let totals = self.delays.told(SAMPLE_AGE, now).map(|sample| sample.total);
        Seconds::median(totals).unwrap_or_default()
    }

    /// Queue that is this side's, measured and as expected for `now`, and whether it is its alone.
    fn excess(&self, side: Side, total: Seconds, now: Time) -> (Option<Seconds>, Seconds, bool) {
        let control = &self.sides[side as usize];
        let suspects = self.suspects(total, now);
        // A side with hardly any traffic has made no queue, whoever says so, and the other has made what there is.
        let usage = self.usage();
        let is_loaded = |one| usage[one as usize] >= NOTICEABLE_SHARE || self.sends_data(one);
        let is_loaded = Side::ALL.map(is_loaded);
        let share = self.delays.share(side, total, now).filter(|_| is_loaded == [true; 2]);
        let is_loaded = is_loaded[side as usize];
        let mine = |sample: Sample| match (sample.by_side, share) {
            _ if !is_loaded || control.is_before_load(&sample) => Seconds::ZERO,
            (Some(ways), _) => ways[side as usize],
            (None, Some(share)) => sample.total * share,
            (None, None) if suspects.sides[side as usize] => sample.total,
            (None, None) => Seconds::ZERO,
        };
        let samples = || self.delays.told(SAMPLE_AGE, now);
        let measured = Seconds::median(samples().map(mine));
        let expected = Seconds::median(samples().map(|sample| {
            let queue = mine(sample);
            match (side, control.capacity()) {
                // On egress everything that went out since then is known: the queue has grown by it, and
                // the line has carried on.
                (Side::Egress, Some(capacity)) if queue > Seconds::ZERO => {
                    let sent = control.history.bytes_between(sample.sent, now).unwrap_or(0.0);
                    let carried = Seconds::from(now.since(sample.sent));
                    (queue + capacity.time_for_bits(sent * 8.0) - carried).max(Seconds::ZERO)
                }
                _ => queue,
            }
        }));
        (measured, expected.unwrap_or_default(), share.is_some() || suspects.certain[side as usize])
    }

    fn inputs(&self, side: Side, elapsed: Duration, now: Time) -> Inputs {
        let total = self.queued(now);
        let (excess, expected, certain) = self.excess(side, total, now);
        let threshold = self.threshold(side, now);
        let overdue = self.delays.overdue(threshold, now);
        let sinking = self.feedback(now) + SINKS_SEEN;
        Inputs {
            now,
            elapsed,
            excess,
            certain,
            expected,
            threshold,
            overdue: overdue.filter(|_| self.may_be(side, now)),
            is_waiting: overdue.is_some(),
            is_out: self.is_out,
            total,
            feedback: self.feedback(now),
            silence: self.delays.silence(now),
            probes: self.probe_load(),
            known: self.known.map(|whose| whose == side),
            alone: self.usage()[1 - side as usize] < NOTICEABLE_SHARE,
            may_be_other: self.may_be_other(side, now),
            standing: self.standing(side, now),
            sinking: self.delays.loaded_from_start.then_some(sinking),
            sank: self.delays.sank(sinking.to_duration(), now),
            idle: self.idle_excess(side),
            jitter: self.jitter(side, now),
            is_explained: self.idle.is_known()
                || self.surge.is_recent(now)
                || self.delays.loaded_from_start,
        }
    }

    /// Notes whether nothing comes over the line any more, neither packets nor answers: answers that are awaited begin it, and only
    /// what arrives ends it.
    fn note_out(&mut self, now: Time) {
        let is_overdue = |side| self.delays.overdue(self.threshold(side, now), now).is_some();
        self.is_out = (self.is_out || Side::ALL.into_iter().any(is_overdue))
            && self.pauses.is_out(now)
            && self.delays.silence(now).is_some_and(|silence| silence > MAX_PAUSE);
    }

    /// Tells both sides what varies while neither has traffic, or only what was there before it varied.
    fn note_idle(&mut self, now: Time) {
        let is_quiet =
            self.sides.iter().all(|side| side.history.load(QUIET_OVER) < side.least_load());
        self.idle.note_traffic(is_quiet, now);
        self.note_longer_path(now);
        let is_unknown = |side: &SideControl| !side.is_fixed() && side.capacity().is_none();
        if self.sides.iter().any(is_unknown) {
            let loads = self.sides.each_ref().map(|side| (&side.history, side.least_load()));
            let is_draining = self.sides.iter().any(|side| side.state() == State::BackingOff);
            self.surge.note(loads, is_draining, now);
        }
        let is_unknown = self.sides.iter().all(|side| side.is_fixed() || is_unknown(side));
        let is_level =
            is_unknown && !is_quiet && !self.surge.is_recent(now) && !self.delays.loaded_from_start;
        self.idle.note_level(is_level, now);
        if self.idle.is_told(now)
            && let Some(usual) = self.idle.usual()
        {
            // What the jitter explains anyway is no news.
            for side in Side::ALL {
                if usual > self.threshold_of(side, Seconds::ZERO, now) {
                    self.sides[side as usize].note_idle_delay(usual);
                }
            }
        }
    }

    /// Takes an excess that stands on the idle line for a longer path, unless that became longer a short time ago: one that does so
    /// time and again varies.
    fn note_longer_path(&mut self, now: Time) {
        let again = self.longer.is_some_and(|at| now.since(at) < PATH_LASTS);
        let is_held = |side: &SideControl| matches!(side.state(), State::Idle | State::Loaded);
        let is_quiet = self.idle.is_quiet(now) && self.sides.iter().all(is_held);
        if !again && is_quiet && self.delays.is_longer_path(now) {
            self.longer = Some(now);
            let by = self.delays.reroute(now.saturating_sub(IDLE_PATH));
            self.sides.iter_mut().for_each(|side| side.note_longer_path(by));
            self.idle.forget();
        }
    }

    /// Notes whether there is a load from the first moment on, and when the line is first seen not to be full.
    fn note_start(&mut self, traffic: &[Option<Traffic>; 2], now: Time) {
        let (began, then) = *self.began.get_or_insert((now, *traffic));
        let took = now.since(began);
        if took <= FIRST_LOOK {
            let loaded = traffic.iter().zip(then).any(|(latest, first)| {
                latest.zip(first).is_some_and(|(latest, first)| is_load(&latest, &first, took))
            });
            self.delays.loaded_from_start = loaded;
        } else {
            let is_steady = took >= STEADY_FOR && self.is_steady(now);
            self.delays.loaded_from_start &= !is_steady && !self.idle.is_quiet(now);
        }
    }

    /// Whether delays stay near their baselines, as they do not where a load fills the line: they go up and down with it.
    fn is_steady(&self, now: Time) -> bool {
        let mut seen = self.delays.newest(STEADY_FOR, now).peekable();
        seen.peek().is_some() && seen.all(|sample| sample.total <= STEADY_WITHIN)
    }

    /// Whether a side may raise its rate: the other leaves the line as it is, and has not waited for longer to raise its own.
    fn may_probe(&self, side: Side, now: Time) -> bool {
        let [own, other] = [side as usize, 1 - side as usize].map(|place| &self.sides[place]);
        other.is_settled(now) && !other.has_turn_before(own)
    }

    /// Whether an excess that is not this side's may be a queue of the other's.
    fn may_be_other(&self, side: Side, now: Time) -> bool {
        let other = 1 - side as usize;
        self.usage()[other] >= PRESSING_SHARE && !self.sides[other].has_dismissed(now)
    }

    /// Load of each side that the probes make.
    fn probe_load(&self) -> BitsPerSecond {
        if !self.delays.is_probing() {
            return BitsPerSecond::ZERO;
        }
        self.probe_every().map_or(BitsPerSecond::ZERO, |every| {
            BitsPerSecond::of_bits(PROBE_BITS, Seconds::from(every))
        })
    }

    /// Time until a change of rate shows in a delay.
    fn feedback(&self, now: Time) -> Seconds {
        self.delays.base(now).unwrap_or_default() + Seconds::from(TICK)
    }
}

/// Whether what crossed a side between `first` and `latest` is a load, not probes and calls alone: these have short packets.
fn is_load(latest: &Traffic, first: &Traffic, took: Duration) -> bool {
    let bytes = latest.bytes.saturating_sub(first.bytes) as f64;
    let packets = latest.packets.saturating_sub(first.packets) as f64;
    bytes * 8.0 >= MIN_LOAD.0 * Seconds::from(took).0
        && bytes >= packets * LOAD_PACKET
        && packets > 0.0
}

impl Controller for Auto {
    fn on_sent(&mut self, source: u32, now: Time) {
        self.delays.sent(source, now);
    }

    fn on_delay(&mut self, delay: &Delay, now: Time) {
        if let Some(excess) = self.delays.add(delay, self.quiet, now) {
            self.idle.add(excess, now);
        }
    }

    fn on_late(&mut self, since: Time, now: Time) {
        self.late.note(since, now);
    }

    fn on_tick(
        &mut self,
        traffic: &[Option<Traffic>; 2],
        now: Time,
        decide: &mut dyn FnMut(Decision),
    ) {
        let elapsed = self.ticked.map_or(TICK, |before| now.since(before));
        let first = self.ticked.is_none();
        self.ticked = Some(now);
        let slept = elapsed >= SLEPT_AFTER;
        if slept {
            self.delays.forget_recent();
            self.pauses.clear();
            // As at the beginning: nothing is known of the empty path any more.
            self.began = self.began.filter(|_| elapsed < RTT_HALF * 2);
        }
        for (control, of_side) in self.sides.iter_mut().zip(traffic) {
            if slept {
                control.history.clear();
            }
            control.history.note(now, of_side.unwrap_or_default());
            if !slept {
                control.note_granted(elapsed, now);
            }
        }
        let arrived = traffic[Side::Ingress as usize].unwrap_or_default().packets;
        self.pauses.note(now, arrived);
        self.note_idle(now);
        self.note_start(traffic, now);
        self.known = self.whose_queue(now);
        self.note_out(now);
        // Both look before either acts: what one of two suspects does now tells nothing of the other yet.
        let mut inputs = Side::ALL.map(|side| self.inputs(side, elapsed, now));
        if !self.is_out && self.sides.iter().any(SideControl::is_out) && !self.asleep {
            self.delays.begin_anew(now);
            inputs = Side::ALL.map(|side| self.inputs(side, elapsed, now));
        }
        for side in Side::ALL {
            if traffic[side as usize].is_none() {
                continue;
            }
            let (mut rerouted, mut cleared) = (false, false);
            let mut decide = |mut decision: Decision| {
                if first {
                    (decision.reason, decision.value) = (Reason::Start, 0.0);
                }
                rerouted |= decision.reason == Reason::Reroute;
                cleared |= decision.reason == Reason::Clear;
                decide(decision);
            };
            if slept {
                self.sides[side as usize].resume_after_sleep(now, elapsed, &mut decide);
                continue;
            }
            let view = View {
                inputs: inputs[side as usize],
                delays: &self.delays,
                pauses: &self.pauses,
                late: self.late.last(),
                may_probe: self.may_probe(side, now),
            };
            self.sides[side as usize].tick(&view, &mut decide);
            if self.sides[side as usize].stood_in_jitter(now) {
                // The delays that counted as jitter were that queue's.
                self.delays.forget_jitter();
            }
            // The first queue that was drained has shown what baselines were made of.
            self.delays.loaded_from_start &= !cleared;
            if rerouted {
                self.sides[1 - side as usize].note_reroute(now);
                self.delays.reroute(now.saturating_sub(REROUTE_SEEN));
                inputs = Side::ALL.map(|one| self.inputs(one, elapsed, now));
            }
        }
        self.asleep = self.sides.iter().all(|side| side.is_asleep(now));
        // A queue that comes and goes is no jitter.
        let at_work =
            |side: &SideControl| matches!(side.state(), State::Probing | State::BackingOff);
        self.quiet = if self.sides.iter().any(at_work) {
            Seconds::ZERO
        } else {
            let controlled =
                Side::ALL.into_iter().filter(|&side| !self.sides[side as usize].is_fixed());
            controlled.map(|side| self.usual_threshold(side, now)).fold(Seconds::ZERO, Seconds::max)
        };
    }

    fn probe_every(&self) -> Option<Duration> {
        if self.asleep {
            return Some(PROBE_ASLEEP);
        }
        let idle = self.sides.iter().all(|side| matches!(side.state(), State::Idle));
        if idle {
            return Some(PROBE_IDLE);
        }
        let slowest = self.sides.iter().filter_map(SideControl::rate).reduce(BitsPerSecond::min);
        let every = slowest
            .map_or(TICK, |rate| (rate * PROBE_SHARE).time_for_bits(PROBE_BITS).to_duration());
        Some(every.clamp(TICK, PROBE_IDLE))
    }

    fn learned(&self) -> [Option<Rate>; 2] {
        [0, 1].map(|side| self.sides[side].learned().map(BitsPerSecond::to_rate))
    }
}

/// Time over which a load is taken that may have left a queue.
const QUIET_OVER: Duration = Duration::from_secs(1);
/// Samples older than this tell nothing of now.
const SAMPLE_AGE: Duration = Duration::from_millis(500);
/// Jitter assumed until something is known: that of a wireless LAN.
const FIRST_QUIET: Seconds = Seconds(0.005);
/// Time from the first look on in which a load is one that was there before.
const FIRST_LOOK: Duration = Duration::from_millis(400);
/// Time for which delays stay within so much above their baselines where the line is not full.
const STEADY_FOR: Duration = Duration::from_secs(1);
const STEADY_WITHIN: Seconds = Seconds(0.002);
/// Bytes of a load's packets at least in the mean: those of calls have 200, those of downloads 1500.
const LOAD_PACKET: f64 = 600.0;
/// Time, beside the feedback delay, in which a baseline falls again while a queue in it drains: three probes.
const SINKS_SEEN: Seconds = Seconds(0.06);
/// Pause between two ticks that means the machine slept.
const SLEPT_AFTER: Duration = Duration::from_secs(1);
/// Span over which the excess did not move when the path is found to have become longer.
const REROUTE_SEEN: Duration = Duration::from_millis(250);
/// Time between two probes on an idle line: five a second keep the baselines.
const PROBE_IDLE: Duration = Duration::from_millis(200);
/// Time between two probes on a line that sleeps: 0.1 MB a day, and a path that changed is known within minutes.
const PROBE_ASLEEP: Duration = Duration::from_secs(60);
/// Length of the shortest frame on Ethernet, with preamble and gap: a probe is no shorter.
const PROBE_BITS: f64 = 84.0 * 8.0;
/// Share of the slowest line that probes take at most: at 1 Mbit/s one every 22 ms.
const PROBE_SHARE: f64 = 0.03;

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: BitsPerSecond = BitsPerSecond(20e6);

    /// A controller that has seen 3 s of these loads of egress and ingress, and the time that it is. It knows a side's
    /// line where `known` says so, and else nothing.
    fn after(loads: [BitsPerSecond; 2], known: [bool; 2]) -> (Auto, Time) {
        let line = known.map(|is| is.then_some(LINE.0 as u64));
        let mut auto = Auto::new(&AutoSettings {
            egress_known_bps: line[0],
            ingress_known_bps: line[1],
            ..AutoSettings::default()
        });
        let mut now = Time::ZERO;
        for tick in 0..=150 {
            now = Time::ZERO + Duration::from_millis(20) * tick;
            for (side, load) in auto.sides.iter_mut().zip(loads) {
                let bytes = (load.0 / 8.0 * now.as_secs_f64()) as u64;
                side.history.note(now, Traffic { bytes, packets: bytes / 1500, backlog_bytes: 0 });
            }
        }
        (auto, now)
    }

    /// As [`after`], with loads as shares of the rates that the sides have of known lines.
    fn at_shares(shares: [f64; 2]) -> (Auto, Time) {
        let (auto, _) = after([BitsPerSecond::ZERO; 2], [true; 2]);
        let rates = auto.sides.each_ref().map(|side| side.rate().expect("its line is known"));
        after([rates[0] * shares[0], rates[1] * shares[1]], [true; 2])
    }

    fn suspected(shares: [f64; 2], excess: Seconds) -> ([bool; 2], [bool; 2]) {
        let (auto, now) = at_shares(shares);
        let suspects = auto.suspects(excess, now);
        (suspects.sides, suspects.certain)
    }

    #[test]
    fn a_side_that_uses_seven_tenths_of_its_rate_may_have_made_a_queue() {
        let small = Seconds(0.01);
        // The one that presses is it, though the other has more of its rate than a side that makes none.
        assert_eq!(suspected([0.701, 0.699], small), ([true, false], [true; 2]));
        assert_eq!(suspected([0.699, 0.701], small), ([false, true], [true; 2]));
        // Where neither does it is the one that uses more; where both do it may be both.
        assert_eq!(suspected([0.698, 0.699], small), ([false, true], [true; 2]));
        assert_eq!(suspected([0.701, 0.702], small), ([true, true], [false; 2]));
    }

    #[test]
    fn of_two_sides_that_press_it_is_certain_from_40_ms_on_that_one_has_a_queue() {
        assert_eq!(suspected([0.9, 0.9], Seconds(0.0399)), ([true, true], [false; 2]));
        assert_eq!(suspected([0.9, 0.9], Seconds(0.04)), ([true, true], [true; 2]));
    }

    #[test]
    fn from_40_ms_on_a_side_that_does_not_press_may_have_a_queue_too() {
        assert_eq!(suspected([0.9, 0.5], Seconds(0.0399)), ([true, false], [true; 2]));
        // Only the one that presses may learn of it.
        assert_eq!(suspected([0.9, 0.5], Seconds(0.04)), ([true, true], [true, false]));
        assert_eq!(suspected([0.9, 0.1], Seconds(0.04)), ([true, false], [true; 2]));
    }

    #[test]
    fn while_eight_tenths_of_the_rate_arrive_nothing_is_stuck_on_the_way_in() {
        let may_be = |share| {
            let (auto, now) = at_shares([0.05, share]);
            auto.may_be(Side::Ingress, now)
        };
        assert!(may_be(0.799) && !may_be(0.801));
        let (auto, now) = at_shares([0.801, 0.05]);
        assert!(auto.may_be(Side::Egress, now), "of what goes out nothing is told by its load");
    }

    #[test]
    fn beside_a_load_a_quarter_of_it_is_one_too() {
        let unknown = |share: f64| after([LINE * share, LINE], [false; 2]).0.usage();
        assert_eq!(unknown(0.249), [0.0, 1.0]);
        assert_eq!(unknown(0.251), [1.0, 1.0]);
        // A side with a rate that has such a share uses enough of it to have made a queue.
        let known = |share: f64| after([LINE * 0.04, LINE * 0.04 / share], [true; 2]).0.usage()[0];
        assert!(known(0.249) < NOTICEABLE_SHARE);
        assert_eq!(known(0.251), 0.15);
    }

    #[test]
    fn a_load_has_long_packets_and_200_kbit() {
        let is = |packets: u64, packet_bytes: u64, ms: u64| {
            let latest = Traffic { bytes: packets * packet_bytes, packets, backlog_bytes: 0 };
            is_load(&latest, &Traffic::default(), Duration::from_millis(ms))
        };
        assert!(is(100, 600, 1000) && !is(100, 599, 1000));
        // 25 kB a second are 200 kbit/s.
        assert!(is(25, 1000, 1000) && !is(25, 1000, 1001));
        assert!(!is(0, 1000, 1000));
    }

    #[test]
    fn probes_take_three_hundredths_of_the_slowest_line_and_are_at_most_200_ms_apart() {
        let every = |bps: u64| {
            let known = AutoSettings { egress_max_bps: Some(bps), ..AutoSettings::default() };
            let mut auto = Auto::new(&known);
            assert_eq!(auto.probe_every(), Some(PROBE_IDLE));
            for tick in 0..=50u64 {
                let sent = Traffic { bytes: bps / 8 * tick / 50, ..Traffic::default() };
                let now = Time::ZERO + Duration::from_millis(20) * tick;
                auto.on_tick(&[Some(sent), Some(Traffic::default())], now, &mut |_| {});
            }
            auto.probe_every().expect("it probes").as_nanos()
        };
        // 672 bits at 30 kbit/s; twice as fast a line has one at each tick at most.
        assert_eq!(every(1_000_000), 22_400_000);
        assert_eq!(every(2_000_000), TICK.as_nanos());
    }
}
