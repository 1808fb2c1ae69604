//! Delays of the path that vary for reasons of their own: no rate makes them shorter, and none may be lost to them.

use weir_core::{Draw, Seed};
use weir_rate_control::{Bounds, Control, Decision, Mode, Reason, Side, State};

use crate::line::Line;
use crate::loaded;

/// A course of delays that have nothing to do with the load.
#[derive(Clone, Copy, Debug)]
enum Shape {
    /// Rises by 60 ms in so many ms and falls at once.
    Sawtooth { period_ms: u64 },
    /// 0 to 40 ms.
    Sine { period_ms: u64 },
    /// Up to 4 ms more or less every 20 ms, between 0 and 60 ms.
    RandomWalk,
    /// Satellites in low orbit: another path of 0 to 30 ms every 15 s, and 0 to 8 ms on it every 20 ms.
    Orbit,
    /// 0 to 8 ms every 20 ms.
    Jitter,
}

const SHAPES: [Shape; 6] = [
    Shape::Sawtooth { period_ms: 1_000 },
    Shape::Sawtooth { period_ms: 5_000 },
    Shape::Sine { period_ms: 1_000 },
    Shape::Sine { period_ms: 4_000 },
    Shape::RandomWalk,
    Shape::Orbit,
];

impl Shape {
    /// The delay in each of `count` milliseconds.
    ///
    /// Packets keep their order: the delay falls no faster than time passes.
    fn course(self, count: u64, seed: u64) -> Vec<f64> {
        let mut random = Seed::new(seed).stream("foreign delay");
        let (mut level, mut noise) = (0.0_f64, 0.0);
        let mut course: Vec<f64> = Vec::new();
        for ms in 0..count {
            let phase = |period: u64| (ms % period) as f64 / period as f64;
            let delay = match self {
                Self::Sawtooth { period_ms } => 60.0 * phase(period_ms),
                Self::Sine { period_ms } => {
                    20.0 - 20.0 * (phase(period_ms) * std::f64::consts::TAU).cos()
                }
                Self::RandomWalk => {
                    if ms % 20 == 0 {
                        level = (level + 8.0 * random.unit() - 4.0).clamp(0.0, 60.0);
                    }
                    level
                }
                Self::Jitter => {
                    if ms % 20 == 0 {
                        level = 8.0 * random.unit();
                    }
                    level
                }
                Self::Orbit => {
                    if ms % 15_000 == 0 {
                        level = 30.0 * random.unit();
                    }
                    if ms % 20 == 0 {
                        noise = 8.0 * random.unit();
                    }
                    level + noise
                }
            };
            course.push(course.last().map_or(delay, |before| delay.max(before - 1.0)));
        }
        course
    }
}

/// After a pause of 0.1 s the line has another path, some ms longer, that jitters as much as before: an excess that moves, and yet
/// no queue. What crosses beside it tells no more than what was let through, which must not lower the rate ever further.
#[test]
fn a_path_that_jitters_may_become_longer() {
    for (side, mode, longer_ms, slower) in [
        (Side::Egress, Mode::Ping, 7.0, 1.0),
        (Side::Ingress, Mode::Ping, 7.0, 1.0),
        (Side::Egress, Mode::Ping, 7.0, 0.6),
        (Side::Ingress, Mode::Ping, 7.0, 0.6),
        (Side::Egress, Mode::Bandwidth, 17.0, 1.0),
        (Side::Ingress, Mode::Bandwidth, 17.0, 1.0),
    ] {
        let mut random = Seed::new(7).stream("foreign delay");
        let mut jitter: Vec<f64> = Vec::new();
        for ms in 0..30_000 {
            let drawn = if ms % 20 == 0 { 5.0 * random.unit() } else { jitter[ms - 1] };
            let before = jitter.last().copied().unwrap_or_default();
            jitter.push(drawn.max(before - 1.0));
        }
        let mut line = Line::new(mode, [40.0, 100.0]);
        line.foreign_ms = jitter;
        line.run(6_000);
        line.demand[side as usize] = 2.0 * line.capacity[side as usize];
        line.run(6_000);
        let capacity = std::mem::take(&mut line.capacity[side as usize]);
        line.run(100);
        line.capacity[side as usize] = capacity * slower;
        line.foreign_ms.iter_mut().for_each(|ms| *ms += longer_ms);
        let (queue, used) = line.watch(side, 8_000);
        assert!(queue < 10.0 && used > 0.7, "{mode:?} {side:?} {slower}: {queue} ms, {used}");
    }
}

/// Mean queue in ms and used share of a line of 40 Mbit/s up and 100 down, from 10 s of a load on, for a minute.
fn shaped(mut line: Line, shape: Shape, side: Side, seed: u64) -> (f64, f64) {
    line.foreign_ms = shape.course(75_000, seed);
    line.run(10_000);
    line.watch(side, 60_000)
}

/// A line of 40 Mbit/s up and 100 down whose delays take `shape`, idle for 6.3 s, then loaded on `side` with as much as it takes.
fn seen_idle(shape: Shape, side: Side, seed: u64) -> Line {
    let mut line = Line::new(Mode::Ping, [40.0, 100.0]);
    line.foreign_ms = shape.course(75_000, seed);
    // Pings and probes, now and then many at once.
    line.demand = [130e3; 2];
    line.run(6_300);
    line.demand[side as usize] = 2.0 * line.capacity[side as usize];
    line.demand[1 - side as usize] = line.demand[side as usize] / 100.0;
    line
}

/// The same with the law of cake-autorate, told the line.
fn by_law(side: Side) -> Line {
    let bounds = |base: u64| Bounds { min_bps: base / 4, base_bps: base, max_bps: base * 4 };
    let mut line = loaded(Mode::Ping, side);
    line.controller =
        Control::CakeAutorate { egress: bounds(40_000_000), ingress: bounds(100_000_000) }.build();
    line
}

/// The law's used share and its queue are those of cake-autorate on the same line; without a shaper all of it is used.
#[test]
fn delays_that_vary_without_a_queue_cost_little() {
    for shape in SHAPES {
        for side in Side::ALL {
            for seed in 1..=3 {
                let (law_queue, _) = shaped(by_law(side), shape, side, seed);
                // Bandwidth mode lets 10 ms stand.
                for (mode, more) in [(Mode::Ping, 0.0), (Mode::Bandwidth, 10.0)] {
                    let (queue, used) = shaped(loaded(mode, side), shape, side, seed);
                    assert!(
                        used > 0.85 && queue < law_queue + more,
                        "{shape:?} {side:?} {mode:?} {seed}: {queue} ms (law: {law_queue}), {used}"
                    );
                }
            }
        }
    }
}

/// An excess that fails its trials says nothing of the line, also if it came while the rate was raised: the rate returns.
#[test]
fn what_is_no_queue_lowers_no_rate() {
    for shape in SHAPES {
        for side in Side::ALL {
            let mut line = loaded(Mode::Ping, side);
            line.foreign_ms = shape.course(75_000, 1);
            line.run(75_000);
            let mut held = None;
            for (at, decision) in line.log.iter().filter(|(_, decision)| decision.side == side) {
                let is_lower = decision.rate < held;
                assert!(
                    decision.reason != Reason::Foreign || !is_lower,
                    "{shape:?} {side:?}: {decision:?} at {at}, {held:?}"
                );
                if decision.state == State::Loaded {
                    held = decision.rate;
                }
            }
        }
    }
}

/// A real queue is found beside such delays: while they are let stand, it may be as long as they are.
#[test]
fn a_slower_line_is_found_beside_delays_that_vary() {
    for shape in SHAPES {
        for side in Side::ALL {
            for times in [1.15, 1.5, 4.0, 20.0] {
                let mut line = loaded(Mode::Ping, side);
                line.limit = 300e3;
                line.loses_probes = true;
                line.foreign_ms = shape.course(75_000, 1);
                line.run(20_000);
                line.capacity[side as usize] /= times;
                line.run(5_000);
                let (queue, used) = line.watch(side, 10_000);
                assert!(
                    queue < 60.0 && used > 0.8,
                    "{shape:?} {side:?} {times}: {queue} ms, {used}"
                );
            }
        }
    }
}

/// A line that carries just what is let through while an excess is tried has a queue that neither grows nor falls. In the next
/// trial it falls just as it should.
#[test]
fn a_line_that_became_as_slow_as_a_trial_is_found() {
    for side in Side::ALL {
        for share in [0.55, 0.6] {
            for at in [20_000, 22_000, 24_000, 26_000] {
                let mut line = loaded(Mode::Ping, side);
                line.foreign_ms = Shape::Orbit.course(75_000, 1);
                line.run(at);
                line.capacity[side as usize] *= share;
                let (queue, used) = line.watch(side, 10_000);
                assert!(
                    queue < 10.0 && used > 0.8,
                    "{side:?} {share} at {at} ms: {queue} ms, {used}"
                );
            }
        }
    }
}

/// What the line shows while hardly anything is sent is no queue, and is known when the first load begins: three quarters
/// of the line are used in its first seconds, when TCP and the controller still find out what it carries.
#[test]
fn delays_that_varied_on_the_idle_line_strangle_no_first_load() {
    for shape in SHAPES {
        for side in Side::ALL {
            for seed in 1..=3 {
                let mut line = seen_idle(shape, side, seed);
                line.run(1_000);
                let (queue, used) = line.watch(side, 10_000);
                assert!(
                    queue < 60.0 && used > 0.75,
                    "{shape:?} {side:?} {seed}: {queue} ms, {used}"
                );
            }
        }
    }
}

/// What the first queue of a line showed while it grew stays known, though what is left of the excess turns out to be the path's: a
/// line that is opened again has its whole buffer filled once more.
#[test]
fn the_first_queue_beside_delays_that_vary_is_remembered() {
    for shape in SHAPES {
        for side in Side::ALL {
            for seed in 1..=3 {
                let mut line = seen_idle(shape, side, seed);
                line.run(20_000);
                let of_side = line.log.iter().filter(|(_, decision)| decision.side == side);
                let mut since = of_side.skip_while(|(_, one)| one.state != State::BackingOff);
                let opened = since.find(|(_, decision)| decision.rate.is_none());
                assert_eq!(opened, None, "{shape:?} {side:?} {seed}");
            }
        }
    }
}

/// A call that goes on from the start is nobody's queue, however the path varies: it is not strangled, nor is what comes beside it.
///
/// Only what stays longer for less time than samples are kept is told from a queue: not the walk, nor the longer sawtooth.
#[test]
fn delays_that_vary_beside_a_call_strangle_neither_it_nor_the_first_load() {
    let [sawtooth, _, sine, long_sine, _, orbit] = SHAPES;
    for shape in [sawtooth, sine, long_sine, orbit] {
        for side in Side::ALL {
            for seed in 1..=3 {
                let mut line = Line::new(Mode::Ping, [40.0, 100.0]);
                line.foreign_ms = shape.course(75_000, seed);
                line.demand = [1.8e6; 2];
                line.run(1_000);
                let called = line.watch(side, 5_300).1 * line.capacity[side as usize] / 1.8e6;
                line.demand[side as usize] = 2.0 * line.capacity[side as usize];
                line.run(1_000);
                let (queue, used) = line.watch(side, 10_000);
                assert!(
                    called > 0.95 && queue < 60.0 && used > 0.7,
                    "{shape:?} {side:?} {seed}: {called} of the call, {queue} ms, {used}"
                );
            }
        }
    }
}

/// The jitter of the idle line is no rest of a queue: the rate is not lowered until it is gone, too.
#[test]
fn an_episode_does_not_last_for_the_jitter_of_the_idle_line() {
    for side in Side::ALL {
        for seed in 1..=12 {
            let mut line = seen_idle(Shape::Jitter, side, seed);
            line.run(41_000);
            let cleared = line.log.iter().filter(|(_, decision)| decision.reason == Reason::Clear);
            let longest = cleared.map(|(_, decision)| decision.value).fold(0.0, f64::max);
            assert!(longest < 400.0, "{side:?} {seed}: {longest} ms");
        }
    }
}

/// A path that becomes longer beside jitter costs the line for some seconds, not until something shorter shows.
#[test]
fn a_longer_path_beside_jitter_strangles_nothing_for_long() {
    for side in Side::ALL {
        for seed in 1..=12 {
            let mut line = Line::new(Mode::Ping, [40.0, 100.0]);
            let mut course = Shape::Jitter.course(75_000, seed);
            course[15_000..].iter_mut().for_each(|delay| *delay += 22.0);
            line.foreign_ms = course;
            line.run(3_000);
            line.demand[side as usize] = 1.05 * line.capacity[side as usize];
            line.demand[1 - side as usize] = line.demand[side as usize] / 100.0;
            line.run(12_000);
            let (queue, used) = line.watch(side, 15_000);
            assert!(queue < 60.0 && used > 0.7, "{side:?} {seed}: {queue} ms, {used}");
        }
    }
}

/// A delay that comes and goes while the rate is held does not go for the rate's sake: that it is no queue is known for as long
/// as it returns, and the rate is not lowered to find it out again.
#[test]
fn a_delay_that_returns_is_not_tried_time_and_again() {
    for shape in [Shape::Sawtooth { period_ms: 1_000 }, Shape::Sine { period_ms: 1_000 }] {
        for (mode, side) in [
            (Mode::Ping, Side::Egress),
            (Mode::Ping, Side::Ingress),
            (Mode::Bandwidth, Side::Egress),
            (Mode::Bandwidth, Side::Ingress),
        ] {
            let mut line = loaded(mode, side);
            line.foreign_ms = shape.course(122_000, 1);
            line.run(18_000);
            // Less than the line carries, so that there is no queue.
            line.demand[side as usize] = 0.8 * line.capacity[side as usize];
            line.run(12_000);
            let known = line.log.len();
            line.run(90_000);
            let lowered = line.log[known..].iter().filter(|(_, decision)| {
                decision.state == State::BackingOff && decision.reason == Reason::Delay
            });
            assert_eq!(lowered.count(), 0, "{shape:?} {mode:?} {side:?}");
        }
    }
}

/// Where delays vary no more, a queue is as short as ever a few minutes later.
#[test]
fn delays_that_varied_are_forgotten() {
    for side in Side::ALL {
        let mut line = loaded(Mode::Ping, side);
        line.foreign_ms = Shape::Sine { period_ms: 1_000 }.course(75_000, 1);
        line.run(30_000);
        line.foreign_ms.clear();
        line.run(240_000);
        let (queue, used) = line.watch(side, 20_000);
        assert!(queue < 2.0 && used > 0.95, "{side:?}: {queue} ms, {used}");
    }
}

/// A path that stays longer for seconds while a download runs: nothing of that is a queue of its acknowledgements, which never
/// had one, so that no rate may be made of them.
#[test]
fn a_path_that_stays_longer_strangles_no_acknowledgements() {
    for side in Side::ALL {
        let other = Side::ALL[1 - side as usize];
        let mut line = Line::new(Mode::Ping, [40.0, 100.0]);
        // Between 0 and 40 ms while the line is idle, then 35 ms for as long as the load lasts.
        line.foreign_ms = Shape::Sine { period_ms: 4_000 }.course(7_000, 1);
        line.foreign_ms.resize(27_000, 35.0);
        line.run(7_000);
        line.demand[side as usize] = 2.0 * line.capacity[side as usize];
        line.demand[other as usize] = line.demand[side as usize] / 100.0;
        line.run(20_000);
        assert_eq!(line.rate(other), None, "{side:?}");
        let lowered = |(_, decision): &&(u64, Decision)| {
            decision.side == other && decision.state == State::BackingOff
        };
        assert_eq!(line.log.iter().find(lowered), None, "{side:?}");
    }
}
