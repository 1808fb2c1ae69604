//! The line stops for a time: that does not tell how much it carries.

use weir_rate_control::{Mode, Side};

use crate::line::Line;
use crate::loaded;

#[test]
fn an_outage_tells_nothing_of_what_the_line_carries() {
    for sides in [&[Side::Egress][..], &[Side::Ingress], &Side::ALL] {
        for mode in [Mode::Ping, Mode::Bandwidth] {
            for length_ms in [300, 500, 900, 2_000, 2_800] {
                let mut line = Line::new(mode, [10.0, 50.0]);
                line.run(3_000);
                for &side in sides {
                    line.demand[side as usize] += 2.0 * line.capacity[side as usize];
                    // Acknowledgements: what comes in tells of outages.
                    line.demand[1 - side as usize] += 4e6;
                }
                line.run(17_000);
                line.pause_ms = 20_000..20_000 + length_ms;
                line.run(length_ms + 500);
                for (&side, (queue, used)) in sides.iter().zip(line.watch_all(sides, 5_000)) {
                    // Neither in vain during the outage nor behind it, where connections that begin anew would lose packets.
                    let low = line.low_for(side, line.capacity[side as usize] / 2.0, 20_000);
                    assert!(
                        used > 0.85 && queue < 20.0 && low <= 100,
                        "{mode:?} {side:?} of {sides:?}, {length_ms} ms: {used}, {queue} ms, {low} ms"
                    );
                }
            }
        }
    }
}

/// What comes behind it is measured as it is, not as what was known before.
#[test]
fn a_line_that_is_slower_behind_an_outage_is_followed() {
    for side in Side::ALL {
        for mode in [Mode::Ping, Mode::Bandwidth] {
            for length_ms in [600, 2_000, 5_000] {
                let mut line = loaded(mode, side);
                line.demand[1 - side as usize] += 4e6;
                line.run(18_000);
                line.pause_ms = 20_000..20_000 + length_ms;
                line.run(length_ms);
                line.capacity[side as usize] /= 4.0;
                line.run(2_000);
                let (queue, used) = line.watch(side, 5_000);
                assert!(
                    queue < 20.0 && used > 0.85,
                    "{mode:?} {side:?}, {length_ms} ms: {used} used, {queue} ms"
                );
            }
        }
    }
}

/// Where nothing comes in since a download has ended, answers that are late are none that stay out: the way out is lowered.
#[test]
fn a_line_that_answers_is_not_out_though_nothing_else_comes() {
    let mut line = loaded(Mode::Ping, Side::Egress);
    line.demand[1] = 40e6;
    line.run(18_000);
    line.demand[1] = 0.0;
    line.run(500);
    line.capacity[0] /= 10.0;
    line.run(3_000);
    let (queue, used) = line.watch(Side::Egress, 5_000);
    assert!(queue < 20.0 && used > 0.85, "{used} used, {queue} ms");
}
