//! Pacing: when the next segment may leave (`tcp_update_pacing_rate`, `tcp_update_skb_after_send`).
//!
//! RFC 9002, section 7.7, wants it of QUIC: "A sender SHOULD pace sending".

use weir_scenario::Overrides;

use crate::line::{ack, again, all, data};
use crate::script::{Setup, linux, ms, ns};

fn paced() -> Setup {
    let changes = Overrides { pacing: Some(true), ..Overrides::default() };
    linux().with(|profile| *profile = profile.clone().with(&changes))
}

/// The rate is twice the window a round trip in slow start, so that pacing does not slow it, and 1.2
/// times in congestion avoidance (`tcp_pacing_ss_ratio`, `tcp_pacing_ca_ratio`).
#[test]
fn the_rate_follows_the_window() {
    let mut t = linux().connected();
    assert_eq!(t.info().pacing_rate, 200_000);
    t.writes(10).leaves(&all(0..10));
    t.at(ms(100)).arrives(ack(10)).leaves(&[]);
    assert_eq!((t.cwnd(), t.info().pacing_rate), (20, 400_000));
    t.writes(10).leaves(&all(10..20));
    t.at(ms(200)).arrives(ack(10).sack(&[(11, 20)])).leaves(&[again(10)]);
    t.at(ms(300)).arrives(ack(20)).leaves(&[]);
    assert_eq!((t.cwnd(), t.info().pacing_rate), (10, 120_000));
}

/// The first ten segments leave at once; from then on one every 5 ms, at 200 kB/s.
#[test]
fn behind_the_first_ten_segments_leave_evenly() {
    let mut t = paced().with(|profile| profile.initial_window = 20).connected();
    assert_eq!(t.info().pacing_rate, 400_000);
    t.writes(20).leaves(&all(0..10));
    for number in 10..20 {
        let gap = ns(2_500_000);
        t.leaves_at(gap * u64::from(number - 9), &[data(number)]);
    }
    t.at(ms(99)).leaves(&[]);
}

/// Segments that an acknowledgement releases leave at the pace, too: at 220 kB/s one each 4545454 ns.
///
/// As the flow was late, up to half a gap is forgiven once.
#[test]
fn what_an_acknowledgement_releases_is_spread() {
    let mut t = paced().connected();
    t.writes_on().leaves(&all(0..10));
    t.at(ms(100)).arrives(ack(1)).leaves(&[data(10)]);
    assert_eq!(t.info().pacing_rate, 220_000);
    t.leaves_at(ns(102_272_727), &[data(11)]);
    t.at(ms(103)).arrives(ack(2)).leaves(&[]);
    assert_eq!(t.info().pacing_rate, 239_103);
    // The gap behind segment 11 was set when it left.
    t.leaves_at(ns(102_272_727 + 4_545_454), &[data(12)]);
    // The next one is that of the present rate.
    t.leaves_at(ns(102_272_727 + 4_545_454 + 4_182_298), &[data(13)]);
}

/// Late by less than half a gap the flow catches up in full: on average the rate is kept
/// (`tcp_update_skb_after_send`).
#[test]
fn a_flow_that_is_a_little_late_catches_up() {
    let mut t = paced().connected();
    t.writes(10).leaves(&all(0..10));
    // The tenth segment's gap ends at 5 ms; the next segment comes a millisecond later.
    t.at(ms(6)).arrives(ack(2));
    let gap = 1_000_000_000_000 / t.info().pacing_rate;
    t.writes(2).leaves(&[data(10)]);
    t.leaves_at(ms(6) + ns(gap) - ms(1), &[data(11)]);
}

/// Retransmissions keep the pace, also when nothing else waits for it.
#[test]
fn retransmissions_are_spread() {
    let mut t = paced().connected();
    t.writes(10).leaves(&all(0..10));
    t.at(ms(100)).arrives(ack(0).sack(&[(3, 10)])).leaves(&[again(0)]);
    let gap = 1_000_000_000_000 / t.info().pacing_rate;
    t.leaves_at(ms(100) + ns(gap - gap / 2), &[again(1)]);
    t.leaves_at(ms(100) + ns(gap - gap / 2 + gap), &[again(2)]);
}

/// Without the option everything that may leave does at once.
#[test]
fn without_pacing_nothing_waits() {
    let mut t = linux().with(|profile| profile.initial_window = 20).connected();
    t.writes(20).leaves(&all(0..20));
}
