//! Gaps of some ticks behind a pause of the line, by which a longer path is told from a queue.

use weir_rate_control::{Mode, Reason, Side};

use crate::line::Line;
use crate::loaded;

/// A download of 100 Mbit/s whose line pauses for 0.1 s and goes on over a path that is some ms longer, with so much of its
/// capacity. Every 20 ms from the pause on: the queue in ms and the share of the line that is let through.
fn behind_pause(longer_ms: f64, slower: f64) -> Vec<(f64, f64)> {
    let mut line = loaded(Mode::Ping, Side::Ingress);
    line.foreign_ms = vec![0.0; 30_000];
    line.run(12_000);
    let capacity = std::mem::take(&mut line.capacity[1]);
    line.run(100);
    line.capacity[1] = capacity * slower;
    line.foreign_ms.iter_mut().for_each(|ms| *ms += longer_ms);
    let mut after_tick = || {
        line.run(20);
        let let_through = line.rate(Side::Ingress).unwrap() * 1e6 / line.capacity[1];
        (line.queue_ms(Side::Ingress), let_through)
    };
    (0..200).map(|_| after_tick()).collect()
}

/// A gap of some ticks tells that no queue stands behind a pause, before connections lose their windows to a lower rate.
#[test]
fn a_longer_path_behind_a_pause_costs_half_a_second() {
    for longer_ms in [8.0, 12.0, 20.0, 30.0] {
        let seen = behind_pause(longer_ms, 1.0);
        // A third of it is what the pause itself left.
        let lowered = seen.iter().filter(|(_, let_through)| *let_through < 0.9).count();
        assert!(lowered <= 25, "{longer_ms} ms: {lowered} ticks");
    }
    // A slower line is found all the same, and calm within 2 s.
    for slower in [0.6, 0.8] {
        let calm = &behind_pause(8.0, slower)[100..];
        let mean = |of: fn(&(f64, f64)) -> f64| calm.iter().map(of).sum::<f64>() / 100.0;
        let (queue, let_through) = (mean(|one| one.0), mean(|one| one.1));
        assert!(queue < 10.0 && let_through > 0.9, "{slower}: {queue} ms, {let_through}");
    }
}

/// The line of `side` stands still for 0.1 s, and carries `share` of what it did after that.
fn pause(line: &mut Line, side: Side, share: f64) {
    let capacity = std::mem::take(&mut line.capacity[side as usize]);
    line.run(100);
    line.capacity[side as usize] = capacity * share;
}

/// How often the controller took an excess for a longer path from `from_ms` on.
fn rerouted(line: &Line, from_ms: u64) -> usize {
    line.log.iter().filter(|(at, one)| *at > from_ms && one.reason == Reason::Reroute).count()
}

/// What a gap does not lower tells nothing: a load that is less than is let through keeps its queue in front of a line that became
/// just as slow.
#[test]
fn a_load_below_the_rate_sees_no_gap() {
    for side in Side::ALL {
        for share in [0.2, 0.3, 0.4] {
            let mut line = loaded(Mode::Ping, side);
            line.run(12_000);
            line.demand[side as usize] = line.capacity[side as usize] * share;
            line.run(500);
            let from = line.now_ms;
            pause(&mut line, side, share);
            line.burst(side, 10.0 - line.queue_ms(side).min(10.0));
            line.run(2_000);
            let (queue, _) = line.watch(side, 2_000);
            assert_eq!(rerouted(&line, from), 0, "{side:?} {share}: {queue} ms");
            assert!(queue < 5.0, "{side:?} {share}: {queue} ms");
        }
    }
}

/// On a slow line a queue is some packets, and one that leaves it or comes to it changes much.
#[test]
fn packets_that_are_far_apart_tell_no_path() {
    for mode in [Mode::Ping, Mode::Bandwidth] {
        for after_ms in 0..10 {
            let mut line = Line::new(mode, [2.0, 20.0]);
            line.packet_bytes = 1500.0;
            line.run(2_000);
            line.demand = [4e6, 200e3];
            line.run(12_000 + 17 * after_ms);
            let from = line.now_ms;
            pause(&mut line, Side::Egress, 0.8);
            line.run(2_000);
            let (queue, used) = line.watch(Side::Egress, 4_000);
            let many = rerouted(&line, from);
            assert_eq!(many, 0, "{mode:?} {after_ms}: {queue} ms, {used}");
            assert!(queue < 15.0 && used > 0.8, "{mode:?} {after_ms}: {queue} ms, {used}");
        }
    }
}

/// A full buffer of some milliseconds loses what overruns it, and stays as full while less does.
#[test]
fn a_full_buffer_that_loses_probes_is_no_path() {
    for side in Side::ALL {
        let mut line = loaded(Mode::Ping, side);
        line.run(12_000);
        let from = line.now_ms;
        line.limit = line.capacity[side as usize] * 0.5 * 12e-3 / 8.0;
        line.loses_probes = true;
        pause(&mut line, side, 0.5);
        line.run(2_000);
        let (queue, used) = line.watch(side, 4_000);
        assert_eq!(rerouted(&line, from), 0, "{side:?}: {queue} ms, {used}");
        assert!(queue < 5.0 && used > 0.8, "{side:?}: {queue} ms, {used}");
    }
}

/// Where both sides are full, a round trip does not tell whose queue it shows, so that a gap of one tells nothing of the other.
#[test]
fn beside_a_load_on_the_other_side_a_gap_tells_no_path() {
    for side in Side::ALL {
        let mut line = loaded(Mode::Ping, side);
        line.demand = line.capacity.map(|capacity| 2.0 * capacity);
        line.run(20_000);
        let from = line.now_ms;
        pause(&mut line, side, 0.8);
        line.run(2_000);
        let (queue, used) = line.watch(side, 4_000);
        assert_eq!(rerouted(&line, from), 0, "{side:?}: {queue} ms, {used}");
        assert!(used > 0.7, "{side:?}: {queue} ms, {used}");
    }
}
