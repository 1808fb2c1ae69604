//! Congestion avoidance by Reno: RFC 5681, sections 3.1 and 3.2 (`tcp_reno_cong_avoid`).

use crate::line::{ack, again, all, data};
use crate::script::{Script, linux, ms};

/// Ten segments of which the first is lost, and the recovery from that up to its end at 200 ms: window
/// and threshold are five, and the segments 10 to 14 are on their way. The acknowledgement that ended
/// recovery is the first that counts towards growth.
fn after_one_loss() -> Script {
    let mut t = linux().connected();
    t.writes_on().leaves(&all(0..10));
    t.at(ms(100)).arrives(ack(0).sack(&[(1, 10)]));
    t.leaves(&[&[again(0)], &all(10..14)[..]].concat());
    t.at(ms(200)).arrives(ack(10)).leaves(&[data(14)]);
    assert_eq!(t.windows(), (5, Some(5)));
    t
}

/// RFC 5681, equation 4: half of what was in flight.
#[test]
fn a_loss_halves_the_window() {
    after_one_loss();
}

/// RFC 5681, section 3.1: "During congestion avoidance, cwnd is incremented by roughly 1 full-sized
/// segment per round-trip time (RTT)". Exactly: by one for each window of segments acknowledged.
#[test]
fn a_window_of_acknowledged_segments_brings_one_more() {
    let mut t = after_one_loss();
    let (mut acked, mut sent) = (10, 15);
    t.at(ms(300));
    for (cwnd, needed) in [(5, 4), (6, 6), (7, 7), (8, 8), (9, 9)] {
        for nth in 1..=needed {
            assert_eq!(t.cwnd(), cwnd);
            acked += 1;
            let leave = if nth == needed { 2 } else { 1 };
            t.arrives(ack(acked)).leaves(&all(sent..sent + leave));
            sent += leave;
        }
        assert_eq!(t.cwnd(), cwnd + 1);
    }
}

/// RFC 3465, section 2.1: it is the number of segments that counts, not that of acknowledgements.
#[test]
fn one_acknowledgement_of_two_segments_counts_for_two() {
    let mut t = after_one_loss();
    t.at(ms(300));
    t.arrives(ack(12)).leaves(&[data(15), data(16)]);
    assert_eq!(t.cwnd(), 5);
    // The fourth and fifth.
    t.arrives(ack(14)).leaves(&[data(17), data(18), data(19)]);
    assert_eq!(t.cwnd(), 6);
    // Seven more: one window, and one segment that counts towards the next.
    t.at(ms(400)).arrives(ack(20)).leaves(&all(20..27));
    t.at(ms(500)).arrives(ack(21)).leaves(&[data(27)]);
    assert_eq!(t.cwnd(), 7);
    t.arrives(ack(26)).leaves(&all(28..33));
    assert_eq!(t.cwnd(), 7);
    t.arrives(ack(27)).leaves(&[data(33), data(34)]);
    assert_eq!(t.cwnd(), 8);
}

/// RFC 7661, section 4.1: growth is for a window that is used. In congestion avoidance one that is not
/// full does not grow at all (`tcp_is_cwnd_limited`).
#[test]
fn a_window_that_is_not_full_does_not_grow() {
    let mut t = linux().connected();
    t.writes(10).leaves(&all(0..10));
    t.at(ms(100)).arrives(ack(0).sack(&[(1, 10)])).leaves(&[again(0)]);
    t.at(ms(200)).arrives(ack(10)).leaves(&[]);
    assert_eq!(t.windows(), (5, Some(5)));
    for round in 0..10 {
        let first = 10 + 4 * round;
        t.writes(4).leaves(&all(first..first + 4));
        t.at(ms(300 + 100 * u64::from(round))).arrives(ack(first + 4)).leaves(&[]);
        assert_eq!(t.cwnd(), 5);
    }
}

/// RFC 5681, equation 4: "max (FlightSize / 2, 2*SMSS)".
#[test]
fn the_threshold_is_two_segments_at_least() {
    let mut t = linux().with(|profile| profile.initial_window = 3).connected();
    t.writes(3).leaves(&all(0..3));
    t.at(ms(100)).arrives(ack(0).sack(&[(1, 3)]));
    t.leaves_at(ms(132), &[again(0)]);
    assert_eq!(t.info().ssthresh, Some(2));
    t.at(ms(232)).arrives(ack(3));
    assert_eq!(t.windows(), (2, Some(2)));
}
