//! CDG: delay gradients (`net/ipv4/tcp_cdg.c`).

use crate::line::ack;
use crate::script::{Script, linux, ms};

fn sender() -> Script {
    let mut t = linux().algorithm("cdg").connected();
    t.writes_on().skips();
    t
}

/// Round trips that stay as they are say nothing: slow start goes on.
#[test]
fn steady_round_trips_bring_no_reduction() {
    let mut t = sender();
    for round in 1..8 {
        t.all_arrive(ms(100 * round), |line| line);
    }
    assert_eq!(t.info().ssthresh, None);
    assert_eq!(t.cwnd(), 10 << 7);
}

/// Round trips that grow by 30 ms each bring a reduction by the root of a half, although nothing is lost or
/// marked; Hayes and Armitage 2011.
#[test]
fn growing_round_trips_bring_a_reduction() {
    let mut t = sender();
    let (mut at, mut cwnd) = (0, 0);
    for round in 0..20 {
        at += 100 + 30 * round;
        cwnd = t.cwnd();
        t.all_arrive(ms(at), |line| line);
        if t.info().ssthresh.is_some_and(|ssthresh| ssthresh < cwnd) {
            break;
        }
    }
    let ssthresh = t.info().ssthresh.expect("a reduction");
    assert!(ssthresh == cwnd * 724 / 1_024, "{ssthresh} of {cwnd}");
    assert_eq!(t.info().counters.segments_retransmitted, 0);
    assert_eq!(t.info().counters.ecn_reductions, 0);
}

/// A loss halves the window as with Reno.
#[test]
fn a_loss_halves_the_window() {
    let mut t = sender();
    t.at(ms(100)).arrives(ack(0).sack(&[(1, 10)])).skips();
    assert_eq!(t.info().ssthresh, Some(5));
}
