//! Both sides loaded, while nothing tells the two ways of a round trip apart: whose queue is it?

use weir_rate_control::{Mode, Side};

use crate::line::Line;
use crate::loaded;

/// Of two loaded sides one becomes slower. Its queue is found, and the other side keeps what it carries: neither a longer queue nor
/// a strangled neighbour stays.
#[test]
fn of_two_loaded_sides_the_one_that_became_slower_is_found() {
    for side in Side::ALL {
        for mode in [Mode::Ping, Mode::Bandwidth] {
            for share in [0.1, 0.3, 0.5, 0.7, 0.9] {
                let mut line = loaded(mode, side);
                line.demand = line.capacity.map(|capacity| 2.0 * capacity);
                line.run(20_000);
                line.capacity[side as usize] *= share;
                line.run(2_000);
                let both = line.watch_all(&Side::ALL, 10_000);
                let ((queue, used), (_, kept)) = (both[side as usize], both[1 - side as usize]);
                assert!(
                    queue < 40.0 && used > 0.85 && kept > 0.7,
                    "{mode:?} {side:?} {share}: {queue} ms, {used}, other side {kept}"
                );
            }
        }
    }
}

/// Both ways of a line that carries many times more down than up are loaded before anything is known of either: a queue that the
/// reflectors' clocks find on the way up is one, however little is sent beside the download.
#[test]
fn the_queue_of_a_little_upload_is_found_where_the_ways_are_told_apart() {
    for mode in [Mode::Ping, Mode::Bandwidth] {
        for up in [1.0, 5.0, 25.0, 100.0] {
            for steep in [3.0, 5.0, 10.0, 20.0] {
                let mut line = Line::new(mode, [up, up * steep]);
                line.one_way = true;
                line.limit = up * 1e6 / 8.0 * 0.3;
                line.run(2_000);
                line.demand = line.capacity.map(|capacity| 1.3 * capacity);
                line.run(8_000);
                for (queue, used) in line.watch_all(&Side::ALL, 10_000) {
                    let at = format!("{mode:?}, {up} Mbit/s up, {steep} times as much down");
                    assert!(queue < 30.0 && used > 0.7, "{at}: {queue} ms, {used}");
                }
            }
        }
    }
}

/// One way becomes five and ten times slower at whatever moment of the other's probing: neither a buffer of seconds that stays full
/// nor a neighbour that is blamed for it.
#[test]
fn at_any_moment_the_one_that_became_slower_is_found() {
    for side in Side::ALL {
        for (steep, base_ms) in [(1.0, 0.0), (1.0, 40.0), (3.0, 40.0), (8.0, 40.0)] {
            for mode in [Mode::Ping, Mode::Bandwidth] {
                for after_ms in (0..2_000).step_by(400) {
                    let slower = if after_ms % 800 == 0 { 10.0 } else { 5.0 };
                    let mut line = Line::new(mode, [15.0, 15.0 * steep]);
                    line.lengthen(base_ms);
                    line.run(2_000);
                    line.demand = line.capacity.map(|capacity| 2.0 * capacity);
                    line.run(20_000 + after_ms);
                    line.capacity[side as usize] /= slower;
                    line.run(10_000);
                    for (queue, used) in line.watch_all(&Side::ALL, 10_000) {
                        let at = format!(
                            "{mode:?} {side:?}, {steep}, {base_ms} ms, {slower} times slower after {after_ms} ms"
                        );
                        assert!(queue < 40.0 && used > 0.5, "{at}: {queue} ms, {used}");
                    }
                }
            }
        }
    }
}

/// The path becomes a little longer just before a download begins that never fills its line, so that nothing is known of that: the
/// upload waits for nobody to test what the download is blamed for.
#[test]
fn an_upload_does_not_wait_for_a_test_that_nobody_makes() {
    for mode in [Mode::Ping, Mode::Bandwidth] {
        for longer_ms in [4.0, 8.0, 20.0] {
            for after_ms in [0, 60, 100, 140, 200] {
                for share in [0.3, 0.6] {
                    let mut line = Line::new(mode, [20.0, 100.0]);
                    line.run(2_000);
                    line.demand = [40e6, 0.4e6];
                    line.run(20_000);
                    line.lengthen(longer_ms);
                    line.run(after_ms);
                    line.demand[1] = share * 100e6;
                    line.run(3_000);
                    let (queue, used) = line.watch(Side::Egress, 20_000);
                    let at =
                        format!("{mode:?}, {longer_ms} ms longer {after_ms} ms before {share}");
                    assert!(queue < 15.0 && used > 0.85, "{at}: {queue} ms, {used}");
                }
            }
        }
    }
}
