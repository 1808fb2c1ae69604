//! The path becomes longer, under a load or while nothing is under way: that is no queue, and does not tell how much the line carries.

use weir_rate_control::{Mode, Side};

use crate::line::{Line, jitter};
use crate::loaded;

/// Longer by more than the time in which six probes leave, so that as many are always out for longer than before.
#[test]
fn a_path_that_becomes_much_longer_is_no_queue() {
    for side in Side::ALL {
        for (mode, jitter_ms) in [(Mode::Ping, 0.0), (Mode::Ping, 5.0), (Mode::Bandwidth, 2.0)] {
            for mbit in [2.0, 10.0, 40.0] {
                for longer_ms in [120.0, 200.0, 300.0, 600.0] {
                    let mut line = Line::new(mode, [mbit, mbit * 1.3]);
                    line.limit = mbit * 1e5;
                    line.foreign_ms = jitter(jitter_ms);
                    line.run(2_000);
                    line.demand[side as usize] = 2.0 * line.capacity[side as usize];
                    line.demand[1 - side as usize] = line.demand[side as usize] / 50.0;
                    line.run(20_000);
                    line.lengthen(longer_ms);
                    line.run(4_000);
                    let (queue, used) = line.watch(side, 10_000);
                    // Over such a path probing sees its queue that much later.
                    assert!(
                        used > 0.5 && queue < 60.0,
                        "{mode:?} {side:?} {mbit} Mbit/s, jitter {jitter_ms}, {longer_ms} ms longer: {used}, {queue} ms"
                    );
                }
            }
        }
    }
}

/// Each of two loaded sides lowers its rate in turn, and neither can be at fault.
#[test]
fn a_longer_path_of_two_loaded_sides_is_nobodys_queue() {
    for mode in [Mode::Ping, Mode::Bandwidth] {
        for base_ms in [20.0, 75.0, 150.0] {
            for longer_ms in [15.0, 60.0, 120.0, 300.0] {
                let mut line = Line::new(mode, [40.0, 100.0]);
                line.lengthen(base_ms);
                line.run(2_000);
                line.demand = line.capacity.map(|capacity| 2.0 * capacity);
                line.run(20_000);
                line.lengthen(longer_ms);
                line.run(10_000);
                let used = line.watch_all(&Side::ALL, 10_000).into_iter().map(|(_, used)| used);
                let used: Vec<f64> = used.collect();
                assert!(
                    used[0] > 0.5 && used[1] > 0.5,
                    "{mode:?}, {base_ms} ms, {longer_ms} longer: {used:?}"
                );
            }
        }
    }
}

/// What the path takes longer by for less than a round trip ends before a lower rate can show: what crossed meanwhile tells nothing.
#[test]
fn an_excess_that_went_by_itself_tells_nothing() {
    for mode in [Mode::Ping, Mode::Bandwidth] {
        for (longer_ms, lasts_ms) in [(15.0, 40), (30.0, 60), (30.0, 100)] {
            let mut line = Line::new(mode, [20.0, 50.0]);
            line.base_ms = vec![150.0, 152.0, 155.0];
            line.run(2_000);
            line.demand = [40e6, 0.4e6];
            line.run(28_000);
            line.demand[0] = 8e6;
            line.run(3_000);
            line.foreign_ms = vec![longer_ms];
            line.run(lasts_ms);
            line.foreign_ms.clear();
            line.run(700);
            line.demand[0] = 40e6;
            let (_, used) = line.watch(Side::Egress, 300);
            assert!(used > 0.9, "{mode:?}, {longer_ms} ms for {lasts_ms}: {used}");
        }
    }
}

/// Samples that jitter move, and their middle does not.
#[test]
fn a_longer_path_is_found_beside_jitter() {
    for side in Side::ALL {
        for mode in [Mode::Ping, Mode::Bandwidth] {
            for (longer_ms, jitter_ms) in [(30.0, 5.0), (60.0, 10.0)] {
                let mut line = loaded(mode, side);
                line.foreign_ms = jitter(jitter_ms);
                line.run(20_000);
                line.lengthen(longer_ms);
                line.run(4_000);
                let (queue, used) = line.watch(side, 10_000);
                assert!(
                    used > 0.85 && queue < 40.0,
                    "{mode:?} {side:?}, {longer_ms} ms longer, jitter {jitter_ms}: {used}, {queue} ms"
                );
            }
        }
    }
}

/// Halving the rate of a slow line leaves less than any usual load, which is one for all that.
#[test]
fn a_longer_path_of_a_slow_line_is_no_queue() {
    for mode in [Mode::Ping, Mode::Bandwidth] {
        for mbit in [0.6, 1.0, 2.0, 3.0] {
            let mut line = Line::new(mode, [mbit, 20.0]);
            line.limit = 20e3;
            line.run(2_000);
            line.demand = [2e6 * mbit, 20e3 * mbit];
            line.run(18_000);
            line.lengthen(80.0);
            line.run(5_000);
            let (queue, used) = line.watch(Side::Egress, 8_000);
            assert!(used > 0.85 && queue < 60.0, "{mode:?}, {mbit} Mbit/s: {used}, {queue} ms");
        }
    }
}

/// A load of [`loaded`] that pauses for `pause_ms` from 20 s on, after which the path is `longer_ms` longer from `changes_ms` on.
fn path_changes(
    mode: Mode,
    side: Side,
    changes_ms: u64,
    pause_ms: u64,
    longer_ms: f64,
    settles_ms: u64,
) -> (f64, f64) {
    let mut line = loaded(mode, side);
    let wanted = line.demand;
    let change = |of: &mut Line| of.lengthen(longer_ms);
    let stops_ms = 20_000;
    line.run(changes_ms.min(stops_ms) - line.now_ms);
    if changes_ms < stops_ms {
        change(&mut line);
        line.run(stops_ms - changes_ms);
    }
    line.demand = [0.0; 2];
    if changes_ms >= stops_ms {
        line.run(changes_ms - stops_ms);
        change(&mut line);
    }
    line.run(stops_ms + pause_ms - line.now_ms);
    line.demand = wanted;
    line.run(settles_ms);
    line.watch(side, 3_000)
}

#[test]
fn a_path_that_became_longer_while_the_line_was_idle_is_no_queue() {
    for side in Side::ALL {
        for mode in [Mode::Ping, Mode::Bandwidth] {
            for longer_ms in [8.0, 12.0, 40.0, 150.0] {
                let (queue, used) = path_changes(mode, side, 22_000, 8_000, longer_ms, 300);
                assert!(
                    used > 0.85 && queue < 10.0,
                    "{mode:?} {side:?}, {longer_ms} ms longer: {used} used, {queue} ms"
                );
            }
        }
    }
}

/// The load ends before it is known that the path is longer, and begins again.
#[test]
fn a_load_that_ends_in_an_episode_tells_nothing() {
    for side in Side::ALL {
        for mode in [Mode::Ping, Mode::Bandwidth] {
            for (changes_ms, pause_ms) in [(19_600, 1_500), (19_300, 1_500), (19_600, 6_000)] {
                let (queue, used) = path_changes(mode, side, changes_ms, pause_ms, 12.0, 1_500);
                assert!(
                    used > 0.85 && queue < 10.0,
                    "{mode:?} {side:?}, {changes_ms}, {pause_ms}: {used} used, {queue} ms"
                );
            }
        }
    }
}
