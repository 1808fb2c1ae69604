//! Loss recovery without SACK: fast retransmit of RFC 5681, section 3.2, and NewReno, RFC 6582.
//!
//! The window is reduced as RFC 6937 says, also without SACK: a duplicate acknowledgement counts as one
//! segment delivered (`tcp_add_reno_sack`).

use crate::line::{ack, again, all, data};
use crate::script::{Script, Setup, linux, ms, rfc};

fn without_sack() -> Setup {
    linux().with(|profile| profile.sack = false)
}

/// Ten segments, and a round trip later the first `count` duplicate acknowledgements; what leaves for
/// them is stated by the first test.
fn duplicates(setup: Setup, count: usize) -> Script {
    let mut t = setup.connected();
    t.writes_on().leaves(&all(0..10)).at(ms(100));
    let answers = [
        vec![data(10)],
        vec![data(11)],
        vec![again(0)],
        vec![],
        vec![data(12)],
        vec![],
        vec![data(13)],
        vec![],
    ];
    for leave in &answers[..count] {
        t.arrives(ack(0)).leaves(leave);
    }
    t
}

/// RFC 5681, section 3.2: "The TCP sender SHOULD use the 'fast retransmit' algorithm to detect and
/// repair loss, based on incoming duplicate ACKs": the third one. The first two send new data (RFC
/// 3042).
#[test]
fn third_duplicate_ack_retransmits_the_first_segment() {
    for setup in [without_sack(), rfc().with(|profile| profile.sack = false)] {
        let mut t = setup.connected();
        t.writes_on().leaves(&all(0..10)).at(ms(100));
        t.arrives(ack(0)).leaves(&[data(10)]);
        t.arrives(ack(0)).leaves(&[data(11)]);
        assert_eq!(t.windows(), (10, None));
        t.arrives(ack(0)).leaves(&[again(0)]);
        assert_eq!(t.info().ssthresh, Some(5));
        assert_eq!(t.info().counters.fast_recoveries, 1);
    }
}

/// RFC 6937, section 3: with more in flight than the threshold, half as much leaves as is delivered if
/// the threshold is half the window: a segment for every second duplicate acknowledgement.
#[test]
fn every_second_further_duplicate_ack_sends_a_new_segment() {
    let mut t = duplicates(without_sack(), 8);
    // The ninth and last of the first flight: five are in flight, which is the threshold.
    t.arrives(ack(0)).leaves(&[]);
    assert_eq!((t.info().in_flight, t.cwnd()), (5, 5));
    // From now on a segment for each: segments 10 and 11 arrive.
    t.at(ms(200));
    t.arrives(ack(0)).leaves(&[data(14)]);
    t.arrives(ack(0)).leaves(&[data(15)]);
}

/// RFC 6582, section 3.2, step 3: a full acknowledgement, one of everything sent before recovery, ends
/// it with the window at the threshold. Step 2 wants that one "covers more than recover" before another
/// recovery may start, lest old duplicates start it; Linux waits for that
/// (`tcp_is_non_sack_preventing_reopen`).
#[test]
fn a_full_acknowledgement_ends_recovery() {
    let mut t = duplicates(without_sack(), 8);
    t.arrives(ack(0)).leaves(&[]);
    t.at(ms(200));
    t.arrives(ack(0)).leaves(&[data(14)]);
    t.arrives(ack(0)).leaves(&[data(15)]);
    // Recovery began when segment 12 was the next: acknowledged up to there, and still in recovery.
    t.arrives(ack(12)).leaves(&[data(16)]);
    t.arrives(ack(13)).leaves(&[data(17)]);
    assert_eq!(t.windows(), (5, Some(5)));
    // Open again: three duplicates mean another loss, and halve the window once more.
    t.arrives(ack(13)).leaves(&[data(18)]);
    t.arrives(ack(13)).leaves(&[data(19)]);
    t.arrives(ack(13)).leaves(&[again(13)]);
    assert_eq!(t.info().ssthresh, Some(2));
    assert_eq!(t.info().counters.fast_recoveries, 2);
}

/// RFC 6582, section 3.2, step 3: "If this ACK does *not* acknowledge all of the data up to and
/// including recover, then this is a partial ACK. In this case, retransmit the first unacknowledged
/// segment." The segments 0 and 3 are lost.
#[test]
fn a_partial_acknowledgement_retransmits_the_next_hole_at_once() {
    let mut t = duplicates(without_sack(), 8);
    t.at(ms(200));
    t.arrives(ack(0)).leaves(&[]);
    t.arrives(ack(0)).leaves(&[data(14)]);
    t.arrives(ack(3)).leaves(&[again(3), data(15)]);
    // The window is not halved again.
    assert_eq!(t.info().ssthresh, Some(5));
    assert_eq!(t.info().counters.fast_recoveries, 1);
    t.arrives(ack(3)).leaves(&[data(16)]);
    t.arrives(ack(3)).leaves(&[data(17)]);
    t.at(ms(300));
    t.arrives(ack(3)).leaves(&[data(18)]);
    t.arrives(ack(15)).leaves(&[data(19)]);
    assert_eq!(t.windows(), (5, Some(5)));
}

/// RFC 5681, section 3.2, step 6: Reno before NewReno leaves recovery at the first acknowledgement of
/// new data, and needs three more duplicates for the next hole.
#[test]
fn plain_reno_leaves_recovery_at_a_partial_acknowledgement() {
    let setup = without_sack().with(|profile| profile.new_reno = false);
    let mut t = duplicates(setup, 8);
    t.at(ms(200)).arrives(ack(3));
    assert_eq!(t.windows(), (5, Some(5)));
    t.leaves(&[]);
    t.arrives(ack(3)).leaves(&[]);
    t.arrives(ack(3)).leaves(&[]);
    t.arrives(ack(3)).leaves(&[again(3)]);
    assert_eq!(t.info().ssthresh, Some(2));
}

/// More duplicates than segments that could have arrived mean reordering: from now on as many
/// duplicates as were in flight are waited for (`tcp_check_reno_reordering`).
#[test]
fn more_duplicates_than_segments_mean_reordering() {
    let mut t = without_sack().with(|profile| profile.undo = false).connected();
    t.writes(5).leaves(&all(0..5)).at(ms(100));
    for leave in [vec![], vec![], vec![again(0)], vec![], vec![]] {
        t.arrives(ack(0)).leaves(&leave);
    }
    t.at(ms(200)).arrives(ack(5)).leaves(&[]);
    t.writes(3).leaves(&all(5..8));
    t.at(ms(300)).arrives(ack(8)).leaves(&[]);
    t.writes(8).leaves(&all(8..13)).at(ms(400));
    for leave in [vec![data(13)], vec![data(14)], vec![data(15)], vec![], vec![again(8)]] {
        t.arrives(ack(8)).leaves(&leave);
    }
    assert_eq!(t.info().counters.fast_recoveries, 2);
}

/// RFC 5681, section 2: a duplicate acknowledgement is one where "(b) the incoming acknowledgment
/// carries no data" ...
#[test]
fn data_is_not_a_duplicate_acknowledgement() {
    let mut t = without_sack().connected();
    t.writes_on().leaves(&all(0..10)).at(ms(100));
    for number in 0..4 {
        // Only its acknowledgement leaves.
        t.arrives(data(number)).leaves(&[ack(number + 1)]);
    }
    assert_eq!(t.info().counters.fast_recoveries, 0);
}

/// RFC 5681, section 2: of a duplicate "(e) the advertised window in the incoming acknowledgment equals the
/// advertised window in the last incoming acknowledgment".
#[test]
fn a_window_update_is_not_a_duplicate_acknowledgement() {
    let mut t = without_sack().peer_window(10_000).connected();
    t.writes_on().leaves(&all(0..10)).at(ms(100));
    for bytes in [10_100, 10_200, 10_300, 10_400] {
        t.arrives(ack(0).window(bytes)).leaves(&[]);
    }
    assert_eq!(t.info().counters.fast_recoveries, 0);
}

/// RFC 5681, section 3.2: without limited transmit and without proportional rate reduction nothing
/// leaves until half the flight has been delivered, and then a segment for each duplicate.
#[test]
fn without_rate_reduction_half_a_window_falls_silent() {
    let setup = without_sack().with(|profile| {
        profile.limited_transmit = false;
        profile.proportional_rate_reduction = false;
    });
    let mut t = setup.connected();
    t.writes_on().leaves(&all(0..10)).at(ms(100));
    t.arrives(ack(0)).leaves(&[]);
    t.arrives(ack(0)).leaves(&[]);
    // RFC 5681, section 3.2, step 3: the lost segment MUST be sent again, full as the window is.
    t.arrives(ack(0)).leaves(&[again(0)]);
    assert_eq!(t.info().ssthresh, Some(5));
    // Six more in flight besides the retransmission: two duplicates bring it to the new window.
    t.arrives(ack(0)).leaves(&[]);
    t.arrives(ack(0)).leaves(&[]);
    for new in 10..14 {
        t.arrives(ack(0)).leaves(&[data(new)]);
    }
    assert_eq!(t.info().in_flight, 5);
}
