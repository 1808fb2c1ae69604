//! LEDBAT: RFC 6817.

use crate::line::ack;
use crate::script::{Script, linux, ms};

fn sender() -> Script {
    let mut t = linux().algorithm("ledbat").connected();
    t.writes_on().skips();
    t
}

/// Everything is acknowledged `rtt` ms later, of which 50 are the way back.
fn round(t: &mut Script, at: &mut u64, rtt: u64) {
    *at += rtt;
    let left = *at as i64 - 50;
    t.all_arrive(ms(*at), |line| line.stamp(left));
}

/// RFC 6817, section 2.4.2: without a queue the window grows by a segment a round trip, from the start.
#[test]
fn without_a_queue_it_grows_by_a_segment_a_round_trip() {
    let mut t = sender();
    let mut at = 0;
    for grown in 1..30 {
        round(&mut t, &mut at, 100);
        assert!(t.cwnd().abs_diff(10 + grown) <= 1, "{} after {grown} round trips", t.cwnd());
    }
}

/// At the target of 100 ms it stands still; beyond it gives way, down to two segments.
#[test]
fn it_stands_still_at_the_target_and_gives_way_beyond() {
    let mut t = sender();
    let mut at = 0;
    let mut rounds = |count, rtt| {
        for _ in 0..count {
            round(&mut t, &mut at, rtt);
        }
        t.cwnd()
    };
    rounds(20, 100);
    // The smallest of the last four delays counts.
    let cwnd = rounds(4, 200);
    assert_eq!(rounds(10, 200), cwnd);
    rounds(100, 280);
    assert_eq!(t.cwnd(), 2);
}

/// RFC 6817, section 2.4.2: a loss halves the window.
#[test]
fn a_loss_halves_the_window() {
    let mut t = sender();
    t.at(ms(100)).arrives(ack(0).sack(&[(1, 10)])).skips();
    t.all_arrive(ms(200), |line| line);
    assert_eq!(t.info().ssthresh, Some(5));
}
