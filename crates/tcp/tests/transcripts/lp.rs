//! TCP-LP (`net/ipv4/tcp_lp.c`).

use crate::script::{Script, linux, ms};

/// The acknowledgement of everything arrives at `at` ms, and left the peer `back` ms before.
fn answer(t: &mut Script, at: u64, back: u64) {
    let left = (at - back) as i64;
    t.all_arrive(ms(at), |line| line.stamp(left));
}

fn sender() -> Script {
    let mut t = linux().algorithm("lp").connected();
    t.writes_on().skips();
    t
}

/// A one-way delay that grows is taken for congestion: the window is halved before anything is lost.
#[test]
fn a_growing_one_way_delay_halves_the_window() {
    let mut t = sender();
    let mut at = 0;
    for _ in 0..6 {
        at += 100;
        answer(&mut t, at, 50);
    }
    let cwnd = t.cwnd();
    assert!(cwnd > 100, "{cwnd}");
    let mut least = cwnd;
    for more in 1..12 {
        at += 100 + 20 * more;
        answer(&mut t, at, 50);
        least = least.min(t.cwnd());
    }
    assert!(least <= cwnd / 2, "{least} of {cwnd}");
    assert_eq!(t.info().counters.segments_retransmitted, 0);
}

/// A delay on the way back says nothing of the way there.
#[test]
fn a_growing_delay_on_the_way_back_changes_nothing() {
    let mut t = sender();
    let mut at = 0;
    for round in 0..12 {
        at += 100 + 20 * round;
        answer(&mut t, at, 50 + 20 * round);
    }
    assert!(t.cwnd() > 1_000, "{}", t.cwnd());
}
