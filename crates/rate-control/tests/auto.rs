//! Weir's controller on lines that do what lines do, and on inputs that no line gives.

mod both;
mod foreign;
mod line;
mod longer;
mod outages;
mod pulses;
mod random;
mod transcripts;

use line::Line;
use proptest::prelude::*;
use weir_core::{Duration, Rate, Time};
use weir_rate_control::{
    Auto, AutoSettings, Controller, Decision, Delay, Measured, Mode, OneWay, Reason, Side, State,
    TICK, Traffic,
};

use Side::{Egress, Ingress};
use transcripts::transcript;

/// A line of 40 Mbit/s up and 100 down, idle for two seconds, then loaded on `side` with as much as it takes.
fn loaded(mode: Mode, side: Side) -> Line {
    let mut line = Line::new(mode, [40.0, 100.0]);
    line.run(2_000);
    line.demand[side as usize] = 2.0 * line.capacity[side as usize];
    line.demand[1 - side as usize] = line.demand[side as usize] / 100.0;
    line
}

#[test]
fn a_steady_line_is_used_and_stays_calm() {
    for side in Side::ALL {
        let mut line = loaded(Mode::Ping, side);
        line.run(5_000);
        let (queue, used) = line.watch(side, 20_000);
        assert!(queue < 1.0 && used > 0.96, "{side:?}: {queue} ms, {used}");
    }
}

/// On the way out no queue comes of what is held, so that little need be left of a capacity that was found again.
#[test]
fn a_steady_upload_is_held_at_nearly_all_of_the_line() {
    let mut line = loaded(Mode::Ping, Egress);
    line.run(10_000);
    let (queue, used) = line.watch(Egress, 20_000);
    assert!(queue < 1.0 && used > 0.98, "{queue} ms, {used}");
    // Beside a download it is not certain whose a queue is.
    line.demand[1] = 2.0 * line.capacity[1];
    line.run(10_000);
    let (_, beside) = line.watch(Egress, 20_000);
    assert!(beside < 0.98, "{beside}");
}

#[test]
fn bandwidth_mode_uses_more_and_queues_more() {
    let mut line = loaded(Mode::Bandwidth, Egress);
    line.run(5_000);
    let (queue, used) = line.watch(Egress, 20_000);
    assert!(queue < 6.0 && used > 0.99, "{queue} ms, {used}");
}

#[test]
fn a_steady_line_does_not_make_the_rate_oscillate() {
    let mut line = loaded(Mode::Ping, Egress);
    line.run(10_000);
    let held: Vec<f64> = (0..1000)
        .map(|_| {
            line.run(20);
            line.rate(Egress).unwrap()
        })
        .collect();
    let mean = held.iter().sum::<f64>() / held.len() as f64;
    let away = held.iter().filter(|rate| (*rate / mean - 1.0).abs() > 0.02).count();
    // Probing takes a fifth of the time.
    assert!(away < 250, "{away} of 1000 ticks");
}

#[test]
fn a_line_that_becomes_four_times_slower_is_calm_within_a_second() {
    for side in Side::ALL {
        let mut line = loaded(Mode::Ping, side);
        line.run(10_000);
        line.capacity[side as usize] /= 4.0;
        let before = line.rate(side).unwrap();
        let noticed = (0..500).find(|_| {
            line.run(1);
            line.rate(side).unwrap() < before * 0.9
        });
        assert!(noticed.unwrap() <= 200, "{side:?}: {noticed:?} ms");
        line.run(1_000 - noticed.unwrap());
        let (queue, used) = line.watch(side, 5_000);
        assert!(queue < 5.0 && used > 0.9, "{side:?}: {queue} ms, {used}");
    }
}

#[test]
fn a_line_that_becomes_twenty_times_slower_is_calm_within_two_seconds() {
    for (mode, side, times) in [
        (Mode::Ping, Egress, 10.0),
        (Mode::Ping, Egress, 20.0),
        (Mode::Ping, Ingress, 20.0),
        (Mode::Bandwidth, Egress, 20.0),
        (Mode::Bandwidth, Ingress, 20.0),
    ] {
        let mut line = loaded(mode, side);
        // A window of TCP's at this rate and round trip, and no more.
        line.limit = 150e3;
        line.run(10_000);
        line.capacity[side as usize] /= times;
        line.run(2_000);
        let (queue, used) = line.watch(side, 5_000);
        assert!(queue < 12.0 && used > 0.9, "{mode:?} {side:?} {times}: {queue} ms, {used}");
        assert!(line.log.iter().all(|(_, decision)| decision.reason != Reason::Reroute));
    }
}

/// What is held back behind a line hardly drains at 99.5 % of it.
#[test]
fn after_a_queue_came_at_the_held_rate_of_a_download_less_is_held_for_some_seconds() {
    let mut line = loaded(Mode::Bandwidth, Ingress);
    line.run(10_000);
    let held = |of: &Line| of.rate(Ingress).unwrap() / (of.capacity[1] / 1e6);
    assert!((0.985..1.0).contains(&held(&line)), "{}", held(&line));
    line.burst(Ingress, 30.0);
    line.run(1_000);
    assert!((0.95..0.975).contains(&held(&line)), "{}", held(&line));
    assert_eq!(line.queue_ms(Ingress), 0.0);
    line.run(10_000);
    assert!((0.985..1.0).contains(&held(&line)), "{}", held(&line));
}

/// Answers that come one by one after a second in a queue tell of times too short to measure: the rate must not rise for that.
#[test]
fn the_rate_does_not_leap_while_answers_are_overdue() {
    let mut line = Line::new(Mode::Bandwidth, [1000.0; 2]);
    line.limit = 2.5e6;
    line.run(2_000);
    line.demand[0] = 1_100e6;
    line.run(10_000);
    line.capacity[0] /= 50.0;
    line.run(5_000);
    let rates = line.log.iter().filter(|(at, one)| *at > 12_000 && one.side == Egress);
    let overdue: Vec<f64> = rates
        .filter(|(_, one)| one.reason == Reason::Overdue)
        .map(|(_, one)| one.rate.unwrap().as_bps() as f64 / 1e6)
        .collect();
    assert!(overdue.len() > 10, "{overdue:?}");
    assert!(overdue.windows(2).all(|pair| pair[1] < pair[0] * 3.0), "{overdue:?}");
}

/// CDMA2000 1x: all of its traffic is less than an ordinary line takes for none.
#[test]
fn a_line_of_154_kbit_is_calm_and_used() {
    let mut line = Line::new(Mode::Ping, [0.1536; 2]);
    line.base_ms = vec![100.0, 102.0, 105.0];
    line.limit = 64e3;
    line.run(5_000);
    line.demand[0] = 300e3;
    line.run(30_000);
    let (queue, used) = line.watch(Egress, 30_000);
    assert!(queue < 100.0 && used > 0.9, "{queue} ms, {used}");
}

/// Who starts a shaper because the line is slow starts it on a full line: no delay of the empty path was ever seen then.
#[test]
fn a_shaper_that_starts_on_a_full_line_empties_it() {
    for side in Side::ALL {
        let n = side as usize;
        let mut line = Line::new(Mode::Ping, [40.0, 100.0]);
        line.limit = 1e9;
        line.asleep = true;
        line.demand[n] = 2.0 * line.capacity[n];
        line.run(250);
        line.demand[n] = line.capacity[n];
        line.run(5_000);
        line.asleep = false;
        line.demand[n] *= 1.05;
        line.run(2_000);
        let (queue, used) = line.watch(side, 5_000);
        assert!(queue < 5.0 && used > 0.9, "{side:?}: {queue} ms, {used}");
    }
}

/// A load from the first moment on that leaves the delays alone fills no line: its first queue is drained like any other.
#[test]
fn a_shaper_that_starts_beside_a_small_load_goes_on_as_usual() {
    for side in Side::ALL {
        let n = side as usize;
        let mut line = Line::new(Mode::Ping, [40.0, 100.0]);
        line.demand[n] = 2e6;
        line.run(2_000);
        line.demand[n] = 1.05 * line.capacity[n];
        line.run(5_000);
        let least = line.log.iter().filter_map(|(_, decision)| decision.rate).min().unwrap();
        assert!(least.as_bps() as f64 > 0.7 * line.capacity[n], "{side:?}: {least}");
    }
}

/// The traffic's own bursts make delays vary that are steady on the idle line. Those 8 ms cover, and need no more beside them.
#[test]
fn jitter_of_the_traffic_s_own_making_lets_no_longer_queue_stand_in_bandwidth_mode() {
    for side in Side::ALL {
        let mut line = Line::new(Mode::Bandwidth, [40.0, 100.0]);
        line.run(6_000);
        line.demand[side as usize] = 2.0 * line.capacity[side as usize];
        line.foreign_ms = vec![0.0, 3.0, 1.0, 0.0, 2.0, 3.0, 1.0];
        line.run(10_000);
        let seen = (0..30_000).map(|_| {
            line.run(1);
            line.queue_ms(side)
        });
        let mut queues: Vec<f64> = seen.collect();
        queues.sort_by(f64::total_cmp);
        assert!(queues[29_700] < 14.0, "{side:?}: {} ms in one of 100 ms", queues[29_700]);
    }
}

/// A buffer that is too short for a queue that could not be the burst of a connection that begins, but is kept full.
#[test]
fn a_short_buffer_is_not_left_full() {
    for side in Side::ALL {
        let mut line = Line::new(Mode::Ping, [40.0, 100.0]);
        line.run(5_000);
        let n = side as usize;
        line.limit = line.capacity[n] / 8e3 * 5.0;
        line.demand[n] = 1.05 * line.capacity[n];
        line.run(10_000);
        let (queue, used) = line.watch(side, 20_000);
        assert!(queue < 1.0 && used > 0.95, "{side:?}: {queue} ms, {used}");
    }
}

#[test]
fn a_line_that_becomes_faster_is_used_within_five_seconds() {
    for (side, times) in [(Egress, 2.0), (Egress, 4.0), (Ingress, 2.0), (Ingress, 4.0)] {
        let mut line = loaded(Mode::Ping, side);
        line.run(10_000);
        line.capacity[side as usize] *= times;
        line.demand[side as usize] *= times;
        line.run(5_000);
        let (queue, used) = line.watch(side, 2_000);
        assert!(used > 0.9 && queue < 5.0, "{side:?} {times}: {used}, {queue} ms");
    }
}

/// Whether anybody answers or not, a line that nobody uses is left alone, and watched again when somebody does.
#[test]
fn probes_sleep_when_the_line_sleeps() {
    for silent in [vec![], vec![0, 1, 2]] {
        let mut line = loaded(Mode::Ping, Egress);
        let demand = std::mem::take(&mut line.demand);
        line.run(5_000);
        line.demand = demand;
        line.run(5_000);
        line.demand = [0.0; 2];
        line.silent = silent.clone();
        line.run(62_000);
        let before = line.probes.len();
        line.run(300_000);
        let asleep = line.probes.len() - before;
        assert!((4..=5).contains(&asleep), "{silent:?}: {asleep} probes in five minutes");

        (line.demand, line.silent) = (demand, Vec::new());
        let loaded_ms = line.now_ms;
        line.run(100);
        assert!(line.probes.last() > Some(&loaded_ms), "{silent:?}: not awake within 100 ms");
        line.run(1_900);
        let (queue, used) = line.watch(Egress, 10_000);
        assert!(queue < 1.0 && used > 0.95, "{silent:?}: {queue} ms, {used}");
    }
}

#[test]
fn a_longer_path_is_no_queue() {
    let mut line = loaded(Mode::Ping, Egress);
    line.run(10_000);
    line.lengthen(30.0);
    line.run(1_500);
    assert!(line.log.iter().any(|(_, decision)| decision.reason == Reason::Reroute));
    let (queue, used) = line.watch(Egress, 10_000);
    assert!(queue < 1.5 && used > 0.95, "{queue} ms, {used}");
}

#[test]
fn one_reflector_of_three_may_lie() {
    let mut line = loaded(Mode::Ping, Egress);
    line.run(5_000);
    for step in 0..100 {
        line.base_ms[1] = if step % 2 == 0 { 400.0 } else { 5.0 };
        line.run(100);
    }
    let (queue, used) = line.watch(Egress, 5_000);
    assert!(queue < 1.5 && used > 0.95, "{queue} ms, {used}");
}

#[test]
fn two_reflectors_may_vanish() {
    let mut line = loaded(Mode::Ping, Egress);
    line.run(5_000);
    line.silent = vec![0, 2];
    line.run(3_000);
    line.capacity[0] /= 2.0;
    line.run(1_500);
    let (queue, used) = line.watch(Egress, 5_000);
    assert!(queue < 5.0 && used > 0.9, "{queue} ms, {used}");
}

#[test]
fn a_clock_that_is_set_changes_nothing() {
    let mut line = loaded(Mode::Ping, Egress);
    line.one_way = true;
    line.clock_ms = 86_400_000.0;
    line.run(10_000);
    let before = line.rate(Egress).unwrap();
    line.clock_ms = -7_000.0;
    let (queue, used) = line.watch(Egress, 5_000);
    assert!(queue < 1.0 && used > 0.95, "{queue} ms, {used}");
    assert!((line.rate(Egress).unwrap() / before - 1.0).abs() < 0.1);
    assert!(line.log.iter().all(|(_, decision)| decision.reason != Reason::Reroute));
}

#[test]
fn where_the_ways_are_told_apart_the_other_way_is_left_alone() {
    let mut line = loaded(Mode::Ping, Egress);
    line.one_way = true;
    line.demand[1] = 2.0 * line.capacity[1];
    line.run(10_000);
    let down = line.rate(Ingress).unwrap();
    line.capacity[0] /= 4.0;
    let (_, used) = line.watch(Ingress, 3_000);
    assert!(used > 0.9 && line.rate(Ingress).unwrap() > down * 0.9, "{used}");
    assert!(line.rate(Egress).unwrap() < 10.0);
}

/// A line of 40 Mbit/s up and 100 down whose `side` stays at 90 % of that, both full from two seconds on.
fn half_fixed(side: Side) -> Line {
    let mut rates = [None; 2];
    rates[side as usize] = Some([36_000_000, 90_000_000][side as usize]);
    let [egress_bps, ingress_bps] = rates;
    let settings = AutoSettings { egress_bps, ingress_bps, ..AutoSettings::default() };
    let mut line = Line::told(settings, [40.0, 100.0]);
    line.run(2_000);
    line.demand = line.capacity.map(|bps| 2.0 * bps);
    line
}

#[test]
fn a_side_that_was_set_stays_and_the_other_is_found() {
    for (side, other, mbit) in [(Egress, Ingress, 36.0), (Ingress, Egress, 90.0)] {
        let mut line = half_fixed(side);
        line.run(5_000);
        let (queue, used) = line.watch(other, 5_000);
        assert!(queue < 1.5 && used > 0.94, "{other:?}: {queue} ms, {used}");
        // The other line becomes four times slower: though only round trips are known, nobody suspects the
        // side that was set.
        line.capacity[other as usize] /= 4.0;
        line.run(1_000);
        let slower = line.watch(other, 5_000);
        assert!(slower.0 < 5.0 && slower.1 > 0.9, "{other:?}: {slower:?}");
        line.demand = [0.0; 2];
        line.run(3_000);
        line.silent = vec![0, 1, 2];
        line.run(15_000);
        assert_eq!(line.rate(other), None, "nobody answers");
        assert_eq!(line.rate(side), Some(mbit));
        let told: Vec<_> = transcript(&line, side, 0)
            .iter()
            .map(|one| one.split(' ').skip(1).take(3).collect::<Vec<_>>().join(" "))
            .collect();
        let rate = format!("{mbit:.3}");
        let words = ["idle start", "loaded load", "idle idle"];
        assert_eq!(told, words.map(|word| format!("{rate} {word}")), "{side:?}");
    }
}

#[test]
fn what_was_set_is_set_once_and_leaves_something_to_find() {
    let refused = |settings| weir_rate_control::Control::Auto(settings).check().unwrap_err();
    let egress = AutoSettings { egress_bps: Some(1_000_000), ..AutoSettings::default() };
    assert_eq!(
        refused(AutoSettings { ingress_bps: Some(2_000_000), ..egress }),
        "up 1000000 and down 2000000 bit/s: nothing is left to control; rates that both stay are `fixed`"
    );
    assert_eq!(
        refused(AutoSettings { egress_max_bps: Some(3_000_000), ..egress }),
        "up 1000000 and up max 3000000 bit/s: a rate that stays needs no bound; leave one out"
    );
    assert_eq!(
        refused(AutoSettings { egress_bps: Some(99_999), ..AutoSettings::default() }),
        "up rate 99999 bit/s: write 100000 or more"
    );
    assert_eq!(
        refused(AutoSettings { egress_known_bps: Some(3_000_000), ..egress }),
        "up 1000000 and up known 3000000 bit/s: a rate that stays needs no capacity; leave one out"
    );
    assert_eq!(
        refused(AutoSettings { ingress_known_bps: Some(1), ..AutoSettings::default() }),
        "down known 1 bit/s: write 100000 or more"
    );
}

/// A controller of a line of 40 and 100 Mbit/s that was told `share` of that, with `side` full from two seconds on.
fn told_beforehand(mode: Mode, side: Side, share: f64) -> Line {
    let [egress_known_bps, ingress_known_bps] = [40e6, 100e6].map(|bps| Some((bps * share) as u64));
    let settings =
        AutoSettings { mode, egress_known_bps, ingress_known_bps, ..AutoSettings::default() };
    let mut line = Line::told(settings, [40.0, 100.0]);
    line.run(2_000);
    line.demand[side as usize] = 2.0 * line.capacity[side as usize];
    line
}

#[test]
fn what_an_earlier_controller_learned_holds_from_the_first_load_on() {
    for mode in [Mode::Ping, Mode::Bandwidth] {
        for side in Side::ALL {
            let mut line = told_beforehand(mode, side, 1.0);
            let (queue, used) = line.watch(side, 5_000);
            assert!(queue < 2.0 && used > 0.94, "{mode:?} {side:?}: {queue} ms, {used}");
        }
    }
}

#[test]
fn what_holds_no_longer_is_found_as_on_a_line_that_changed() {
    for side in Side::ALL {
        // Four times as fast as it was, and four times as slow.
        let mut line = told_beforehand(Mode::Ping, side, 0.25);
        line.run(5_000);
        let (queue, used) = line.watch(side, 5_000);
        assert!(queue < 2.0 && used > 0.9, "{side:?}: {queue} ms, {used}");
        let mut slower = told_beforehand(Mode::Ping, side, 4.0);
        slower.run(2_000);
        let found = slower.watch(side, 5_000);
        assert!(found.0 < 5.0 && found.1 > 0.9, "{side:?}: {found:?}");
    }
}

#[test]
fn what_was_learned_is_the_usual_capacity_of_what_was_loaded() {
    let mut line = Line::new(Mode::Ping, [40.0, 100.0]);
    line.run(2_000);
    assert_eq!(line.controller.learned(), [None; 2]);
    line.demand[0] = 80e6;
    line.run(30_000);
    let [Some(up), None] = line.controller.learned() else {
        panic!("{:?}", line.controller.learned())
    };
    assert!((up.as_bps() as f64 / 40e6 - 1.0).abs() < 0.05, "{up:?}");
    // What was told stays known as long as nothing else is measured.
    let told = told_beforehand(Mode::Ping, Egress, 0.5).controller.learned();
    assert_eq!(told, [20_000_000, 50_000_000].map(|bps| Some(Rate::from_bps(bps))));
}

/// The line carries twice the bound, so that it never has a queue, and its capacity stays unknown.
#[test]
fn a_bound_below_the_capacity_holds_for_good() {
    for side in Side::ALL {
        let mut maxima = [None; 2];
        maxima[side as usize] = Some([20_000_000, 50_000_000][side as usize]);
        let [egress_max_bps, ingress_max_bps] = maxima;
        let settings = AutoSettings { egress_max_bps, ingress_max_bps, ..AutoSettings::default() };
        let mut line = Line::told(settings, [40.0, 100.0]);
        line.demand[side as usize] = line.capacity[side as usize];
        line.run(30_000);
        assert_eq!(line.rate(side), Some([20.0, 50.0][side as usize]));
        let lowered = |(_, decision): &&(u64, Decision)| decision.state == State::BackingOff;
        assert_eq!(line.log.iter().find(lowered), None, "{side:?}");
    }
}

/// Overdue answers lower the rate although nothing is known of the line. They tell nothing of it either.
#[test]
fn silence_before_the_first_congestion_leaves_no_rate_behind() {
    let mut line = Line::new(Mode::Ping, [40.0, 100.0]);
    line.run(2_000);
    line.demand[0] = 20e6;
    line.run(1_000);
    line.silent = vec![0, 1, 2];
    line.run(2_500);
    assert!(line.rate(Egress).unwrap() < 20.0, "answers are overdue");
    line.run(1_000);
    assert_eq!(line.rate(Egress), None, "nobody answers");
    line.silent.clear();
    line.run(10_000);
    line.demand[0] = 1e6;
    line.run(10_000);
    assert_eq!(line.rate(Egress), None);
}

/// As where satellites change: for 80 ms nothing arrives, and what was under way comes after it.
#[test]
fn a_line_that_pauses_for_a_moment_is_no_slower() {
    for mode in [Mode::Ping, Mode::Bandwidth] {
        for side in Side::ALL {
            let mut line = loaded(mode, side);
            // Acknowledgements: what comes in tells of pauses.
            line.demand[1 - side as usize] += 3e6;
            line.run(20_000);
            let from = line.now_ms;
            let carries = line.capacity[side as usize] / 1e6;
            for _ in 0..5 {
                line.pause_ms = line.now_ms + 1..line.now_ms + 81;
                line.run(80);
                let (_, used) = line.watch(side, 3_000);
                assert!(used > 0.92, "{mode:?} {side:?}: {used}");
            }
            let of_side = line.log.iter().filter(|(_, decision)| decision.side == side);
            let held = of_side.filter(|(at, one)| *at > from && one.state == State::Loaded);
            let rates = held.filter_map(|(_, one)| one.rate).map(|rate| rate.as_bps() as f64 / 1e6);
            let least = rates.reduce(f64::min).expect("it held a rate after the pauses");
            assert!(least > carries * 0.88, "{mode:?} {side:?}: {least} of {carries}");
        }
    }
}

#[test]
fn a_dead_line_is_not_strangled() {
    let mut line = loaded(Mode::Ping, Egress);
    line.run(10_000);
    let held = line.rate(Egress).unwrap();
    line.silent = vec![0, 1, 2];
    line.run(3_500);
    let stalled = line.log.iter().rev().find(|(_, decision)| decision.side == Egress).unwrap();
    assert_eq!((stalled.1.state, stalled.1.reason), (State::Stalled, Reason::Silence));
    assert!((line.rate(Egress).unwrap() / held - 1.0).abs() < 0.1);
    line.run(8_000);
    assert_eq!(line.rate(Egress), None);
    // Answers come again: what is known of the line holds again.
    line.silent.clear();
    line.run(1_000);
    assert!((line.rate(Egress).unwrap() / held - 1.0).abs() < 0.2);
}

#[test]
fn a_machine_that_slept_goes_on_where_it_was() {
    let mut line = loaded(Mode::Ping, Egress);
    line.run(10_000);
    let held = line.rate(Egress).unwrap();
    line.asleep = true;
    line.demand = [0.0; 2];
    line.run(60_000);
    line.asleep = false;
    line.demand[0] = 80e6;
    line.run(40);
    let resumed = line.log.iter().rev().find(|(_, decision)| decision.side == Egress).unwrap();
    assert_eq!((resumed.1.state, resumed.1.reason), (State::Loaded, Reason::Resume));
    assert!((line.rate(Egress).unwrap() / held - 1.0).abs() < 0.1);
    let (queue, used) = line.watch(Egress, 5_000);
    assert!(queue < 1.5 && used > 0.9, "{queue} ms, {used}");
}

/// Nothing is known of the line, and it is loaded without a queue: a sleep changes neither rate nor state.
#[test]
fn a_sleep_that_changes_nothing_is_told_all_the_same() {
    let mut line = Line::new(Mode::Ping, [40.0, 100.0]);
    line.demand = [10e6; 2];
    line.run(5_000);
    for slept_ms in [1_500, 3_000] {
        let before = line.log.len();
        line.asleep = true;
        line.run(slept_ms);
        line.asleep = false;
        line.run(200);
        let told: Vec<_> = line.log[before..]
            .iter()
            .map(|(_, decision)| (decision.side, decision.rate, decision.state, decision.reason))
            .collect();
        let resumed = |side| (side, None, State::Loaded, Reason::Resume);
        assert_eq!(told, [resumed(Egress), resumed(Ingress)]);
    }
}

#[test]
fn without_load_nothing_is_shaped() {
    let mut line = Line::new(Mode::Ping, [40.0, 100.0]);
    line.demand = [1e6, 3e6];
    line.run(30_000);
    assert_eq!((line.rate(Egress), line.rate(Ingress)), (None, None));
}

/// A tick of anything: time until it, bytes that crossed and wait, and delays that arrive before it.
type Anything = (u64, [u32; 2], [u32; 2], Vec<(u32, u32, Option<(i32, i32)>)>);

fn anything() -> impl Strategy<Value = Vec<Anything>> {
    let delay = (0..5u32, 0..4_000_000u32, proptest::option::of((any::<i32>(), any::<i32>())));
    let tick = (
        prop_oneof![9 => Just(20u64), 1 => 1u64..90_000],
        [0..5_000_000u32, 0..5_000_000u32],
        [0..200_000u32, 0..200_000u32],
        proptest::collection::vec(delay, 0..4),
    );
    proptest::collection::vec(tick, 1..400)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// For any input rates stay within bounds, and every change is told with a reason that is a number.
    #[test]
    fn nothing_breaks_it(ticks in anything(), max_mbit in proptest::option::of(1u64..1000)) {
        let settings = AutoSettings {
            egress_max_bps: max_mbit.map(|mbit| mbit * 1_000_000),
            ..AutoSettings::default()
        };
        let mut auto = Auto::new(&settings);
        let (mut now, mut bytes) = (Time::ZERO, [0u64; 2]);
        for (pause, crossed, backlog, delays) in ticks {
            now += Duration::from_millis(pause);
            for (source, rtt_us, ways) in delays {
                let rtt = Duration::from_micros(u64::from(rtt_us)).min(now.since(Time::ZERO));
                let sent = Time::from_nanos(now.as_nanos() - rtt.as_nanos());
                auto.on_sent(source, now);
                let one_way = ways.map(|(there, back)| OneWay {
                    there_ns: i64::from(there) * 1_000,
                    back_ns: i64::from(back) * 1_000,
                });
                auto.on_delay(&Delay { source, sent, rtt, one_way, by: Measured::Answer }, now);
            }
            let traffic = [0, 1].map(|side| {
                bytes[side] += u64::from(crossed[side]);
                Some(Traffic {
                    bytes: bytes[side],
                    packets: bytes[side] / 1000,
                    backlog_bytes: u64::from(backlog[side]),
                })
            });
            let mut told = Vec::new();
            auto.on_tick(&traffic, now, &mut |decision| told.push(decision));
            prop_assert!(told.len() <= 2);
            for decision in told {
                prop_assert!(decision.value.is_finite());
                if let Some(rate) = decision.rate {
                    prop_assert!(rate.as_bps() >= 100_000);
                    if let (Egress, Some(max)) = (decision.side, max_mbit) {
                        prop_assert!(rate.as_bps() <= max * 1_000_000);
                    }
                } else if decision.side == Egress {
                    prop_assert!(max_mbit.is_none());
                }
            }
            let every = auto.probe_every().unwrap();
            let asleep = every == Duration::from_secs(60);
            prop_assert!(asleep || (every >= TICK && every <= Duration::from_millis(200)));
        }
    }
}
