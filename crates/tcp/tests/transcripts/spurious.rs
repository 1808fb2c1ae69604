//! Retransmissions that were needless, and how their price is given back: F-RTO (RFC 5682), Eifel
//! (RFC 3522 and 4015) and reports of duplicates (RFC 2883 and 3708).

use weir_tcp::Timers;

use crate::line::{Line, ack, again, all, data};
use crate::script::{Script, Setup, linux, ms, rfc, us};

fn exact() -> Setup {
    linux().with(|profile| profile.timers = Timers::Exact)
}

/// Ten segments of endless data that are not answered until the timeout at 300 ms.
fn delayed(setup: Setup) -> Script {
    let mut t = setup.with(|profile| profile.tail_loss_probe = false).connected();
    t.writes_on().leaves(&all(0..10));
    t.leaves_at(ms(300), &[again(0)]);
    assert_eq!(t.windows(), (1, Some(5)));
    t
}

/// Ten segments, of which the first comes so late that it is sent again at 102 ms; the window is being
/// halved to five.
fn reordered(setup: Setup) -> Script {
    let mut t = setup.connected();
    t.writes_on().leaves(&all(0..10));
    t.at(ms(100)).arrives(ack(0).sack(&[(1, 2)])).leaves(&[data(10)]);
    t.at(ms(101)).arrives(ack(0).sack(&[(1, 3)])).leaves(&[data(11)]);
    t.at(ms(102)).arrives(ack(0).sack(&[(1, 4)])).leaves(&[again(0)]);
    assert_eq!(t.info().ssthresh, Some(5));
    t
}

/// RFC 3522, section 3.2: an acknowledgement that echoes a timestamp older than the retransmission was
/// sent for the original. RFC 4015, section 3.2: then the window is what it was. The flight of ten was
/// but late, and its first acknowledgement tells.
#[test]
fn by_the_timestamp_the_first_answer_shows_a_needless_timeout() {
    let mut t = delayed(exact());
    // Nothing is lost any more: nine in flight, and a window of ten that grows to eleven.
    t.at(ms(310)).arrives(ack(1).echo(0)).leaves(&[data(10), data(11)]);
    assert_eq!(t.windows(), (11, None));
    assert_eq!(t.info().counters.undos, 1);
    t.later(us(10)).arrives(ack(2).echo(0)).leaves(&[data(12), data(13)]);
    assert_eq!(t.info().counters.segments_retransmitted, 1);
}

/// Behind it all is as before: a loss is found by what arrives behind it, and the next timeout is
/// that of the round trip.
#[test]
fn behind_a_needless_timeout_losses_are_found_as_before() {
    let mut t = delayed(exact());
    t.at(ms(310)).arrives(ack(1).echo(0)).leaves(&[data(10), data(11)]);
    t.at(ms(311)).arrives(ack(10).echo(0)).leaves(&all(12..30));
    t.at(ms(411)).arrives(ack(10).sack(&[(11, 14)])).leaves(&[again(10), data(30)]);
    assert_eq!((t.info().ssthresh, t.info().counters.fast_recoveries), (Some(10), 1));
}

/// An acknowledgement that echoes the retransmission's timestamp confirms the timeout.
#[test]
fn an_answer_to_the_retransmission_confirms_the_timeout() {
    let mut t = delayed(exact());
    t.at(ms(400)).arrives(ack(1).echo(300)).leaves(&[data(10), data(11)]);
    assert_eq!(t.windows(), (2, Some(5)));
    assert_eq!(t.info().counters.undos, 0);
}

/// RFC 5682, section 2.1: without timestamps F-RTO sends two new segments upon the first answer (step
/// 2b) and looks at the next one. It "advances the window" (step 3b) by a segment that was not sent
/// again: the timeout was spurious.
#[test]
fn without_timestamps_two_new_segments_tell_that_a_timeout_was_needless() {
    let mut t = delayed(exact().with(|profile| profile.timestamps = false));
    t.at(ms(310)).arrives(ack(1)).leaves(&[data(10), data(11)]);
    assert_eq!(t.windows(), (2, Some(5)));
    t.at(ms(311)).arrives(ack(2)).leaves(&[data(12)]);
    assert_eq!(t.windows(), (11, None));
    assert_eq!(t.info().counters.undos, 1);
    assert_eq!(t.info().counters.segments_retransmitted, 1);
}

/// F-RTO (RFC 5682) works without SACK, by duplicate or new acknowledgements alone.
#[test]
fn f_rto_needs_no_sack() {
    let old = |profile: &mut weir_tcp::Profile| {
        profile.timestamps = false;
        profile.sack = false;
    };
    let mut t = delayed(exact().with(old));
    t.at(ms(310)).arrives(ack(1)).leaves(&[data(10), data(11)]);
    t.at(ms(311)).arrives(ack(2)).leaves(&[data(12)]);
    assert_eq!(t.windows(), (11, None));
}

/// RFC 5682, section 3.1, step 3a: the new segments arrive, and what was sent before does not: it is
/// lost, and is sent again.
#[test]
fn the_two_new_segments_may_also_tell_that_the_timeout_was_right() {
    let mut t = delayed(exact().with(|profile| profile.timestamps = false));
    t.at(ms(400)).arrives(ack(1)).leaves(&[data(10), data(11)]);
    t.at(ms(500)).arrives(ack(1).sack(&[(10, 11)])).leaves(&[again(1)]);
    t.at(us(500_100)).arrives(ack(1).sack(&[(10, 12)])).leaves(&[again(2)]);
    t.at(ms(600)).arrives(ack(2).sack(&[(10, 12)])).leaves(&[again(3), again(4)]);
    assert_eq!(t.windows(), (3, Some(5)));
    // With that F-RTO is over: the late arrival of segment 5 proves nothing any more.
    t.at(ms(601)).arrives(ack(6).sack(&[(10, 12)]));
    t.leaves(&[&all_again(6..10), &[data(12)][..]].concat());
    assert_eq!(t.info().counters.undos, 0);
}

/// RFC 5682, section 2.1, step 2b needs new data; without it the lost segments are sent again at once.
#[test]
fn without_new_data_f_rto_gives_up() {
    let mut t = exact()
        .with(|profile| (profile.tail_loss_probe, profile.timestamps) = (false, false))
        .connected();
    t.writes(10).leaves(&all(0..10));
    t.leaves_at(ms(300), &[again(0)]);
    t.at(ms(400)).arrives(ack(1)).leaves(&[again(1), again(2)]);
    t.at(ms(401)).arrives(ack(4)).leaves(&all_again(4..9));
    assert_eq!(t.info().counters.undos, 0);
}

/// RFC 5682, section 2.1, step 1 has F-RTO look at the first timeout of a loss only. Linux looks at
/// repeated ones, too (`tcp_enter_loss`: `icsk_retransmits`).
#[test]
fn a_repeated_timeout_may_be_needless_as_well() {
    let mut t = delayed(exact().with(|profile| profile.timestamps = false));
    t.leaves_at(ms(900), &[again(0)]);
    t.at(ms(910)).arrives(ack(1)).leaves(&[data(10), data(11)]);
    t.at(ms(911)).arrives(ack(2)).leaves(&[data(12)]);
    assert_eq!(t.windows(), (11, None));
}

/// F-RTO does not look at a timeout during fast recovery, when losses are known.
#[test]
fn a_timeout_during_recovery_is_not_doubted() {
    let mut t = exact().with(|profile| profile.timestamps = false).connected();
    t.writes_on().leaves(&all(0..10));
    t.at(ms(100)).arrives(ack(0).sack(&[(2, 10)]));
    t.leaves(&[again(0), again(1), data(10), data(11), data(12)]);
    let rto = t.info().rto;
    t.leaves_at(ms(100) + rto, &[again(0)]);
    t.later(ms(100)).arrives(ack(1).sack(&[(2, 10)])).leaves(&[again(1), again(10)]);
}

/// Without F-RTO the first answer sends what is lost (RFC 5681, section 3.1).
#[test]
fn without_f_rto_the_first_answer_sends_what_is_lost() {
    let mut t = delayed(exact().with(|profile| profile.f_rto = false));
    t.at(ms(400)).arrives(ack(1).echo(300)).leaves(&[again(1), again(2)]);
}

/// RFC 3522 for fast retransmit: the original arrives late, and all the others with it.
#[test]
fn by_the_timestamp_a_needless_fast_retransmission_is_taken_back() {
    let mut t = reordered(exact());
    // Eight are in flight; the window is ten again and grows by the one newly delivered.
    t.at(ms(103)).arrives(ack(4).echo(0)).leaves(&[data(12), data(13), data(14)]);
    assert_eq!(t.windows(), (11, None));
    assert_eq!(t.info().counters.undos, 1);
    // The retransmission arrives later as a duplicate, which is no news any more.
    t.at(ms(202)).arrives(ack(12).echo(100)).leaves(&all(15..31));
    t.at(ms(203)).arrives(ack(12).duplicate(0, 1)).leaves(&[]);
    assert_eq!(t.info().counters.undos, 1);
}

/// Segments that were needlessly taken for lost, and not yet sent again, are in flight again.
///
/// The gap gets the time that reordering takes by now, a quarter of a round trip (`tcp_try_undo_partial`).
#[test]
fn what_was_taken_for_lost_needlessly_is_in_flight_again() {
    let mut t = exact().connected();
    t.writes(10).leaves(&all(0..10));
    t.at(ms(100)).arrives(ack(0).sack(&[(7, 10)])).leaves(&all_again(0..3));
    assert_eq!(t.info().in_flight, 3);
    t.at(ms(101)).arrives(ack(3).echo(0)).leaves(&[]);
    assert_eq!((t.info().in_flight, t.info().counters.undos), (4, 1));
    t.at(ms(110)).arrives(ack(10).echo(0)).leaves(&[]);
    assert_eq!(t.info().counters.segments_retransmitted, 3);
    t.at(ms(1_000)).leaves(&[]);
}

/// RFC 3708, section 3: without timestamps it takes the report that every retransmission since was a
/// duplicate. That comes a round trip later, after recovery has ended with half the window.
#[test]
fn without_timestamps_a_reported_duplicate_takes_the_reduction_back() {
    let mut t = reordered(exact().with(|profile| profile.timestamps = false));
    t.at(ms(103)).arrives(ack(10)).leaves(&[data(12), data(13), data(14)]);
    t.at(ms(201)).arrives(ack(12)).leaves(&[data(15), data(16)]);
    assert_eq!(t.windows(), (5, Some(5)));
    t.at(ms(202)).arrives(ack(12).duplicate(0, 1)).leaves(&all(17..22));
    assert_eq!(t.windows(), (10, None));
    assert_eq!(t.info().counters.undos, 1);
}

/// A reduction is undone only if every retransmission was a duplicate: of two, one duplicate is not enough.
#[test]
fn one_duplicate_of_two_retransmissions_takes_nothing_back() {
    let mut t = exact().with(|profile| profile.timestamps = false).connected();
    t.writes(10).leaves(&all(0..10));
    t.at(ms(100)).arrives(ack(0).sack(&[(2, 10)])).leaves(&[again(0), again(1)]);
    t.at(ms(101)).arrives(ack(10)).leaves(&[]);
    t.at(ms(200)).arrives(ack(10).duplicate(0, 1)).leaves(&[]);
    assert_eq!(t.info().counters.undos, 0);
    assert_eq!(t.windows(), (5, Some(5)));
    t.at(ms(201)).arrives(ack(10).duplicate(1, 2)).leaves(&[]);
    assert_eq!(t.info().counters.undos, 1);
    assert_eq!(t.windows(), (10, None));
}

/// Duplicates count only since this reduction: one from an earlier recovery says nothing about a later one.
///
/// (`tcp_check_dsack` compares with `undo_marker`.)
#[test]
fn a_duplicate_from_an_earlier_recovery_does_not_count() {
    let mut t = exact().with(|profile| profile.timestamps = false).connected();
    t.writes(10).leaves(&all(0..10));
    t.at(ms(100)).arrives(ack(0).sack(&[(1, 10)])).leaves(&[again(0)]);
    t.at(ms(200)).arrives(ack(10)).leaves(&[]);
    t.writes(5).leaves(&all(10..15));
    t.at(ms(300)).arrives(ack(10).sack(&[(11, 15)])).leaves(&[again(10)]);
    t.at(ms(301)).arrives(ack(10).duplicate(0, 1).sack(&[(11, 15)])).leaves(&[]);
    assert_eq!((t.info().ssthresh, t.info().counters.undos), (Some(2), 0));
    t.at(ms(400)).arrives(ack(15)).leaves(&[]);
    t.at(ms(401)).arrives(ack(15).duplicate(10, 11)).leaves(&[]);
    assert_eq!(t.info().counters.undos, 1);
}

/// RFC 3708, section 3: duplicates count also while recovery lasts, when they are reported as a block
/// within another one (RFC 2883, section 4.2).
#[test]
fn duplicates_reported_during_recovery_count() {
    let mut t = exact().with(|profile| profile.timestamps = false).connected();
    t.writes(10).leaves(&all(0..10));
    // The segments 1 to 4 are late, and each is sent again.
    t.at(ms(100)).arrives(ack(1).sack(&[(5, 10)])).leaves(&all_again(1..5));
    t.at(ms(101)).arrives(ack(1).sack(&[(2, 10)])).leaves(&[]);
    for number in 2..5 {
        t.later(ms(33)).arrives(ack(1).duplicate(number, number + 1).sack(&[(2, 10)])).leaves(&[]);
    }
    assert_eq!(t.info().counters.undos, 0);
    t.later(ms(1)).arrives(ack(10)).leaves(&[]);
    t.later(ms(1)).arrives(ack(10).duplicate(1, 2)).leaves(&[]);
    assert_eq!(t.info().counters.undos, 1);
}

/// A duplicate that the network made says nothing about our retransmissions: more duplicates than
/// retransmissions are not believed (`tcp_dsack_seen`).
#[test]
fn a_duplicate_of_what_was_sent_once_is_not_believed() {
    let mut t = exact().connected();
    t.writes_on().leaves(&all(0..10));
    t.at(ms(100)).arrives(ack(1)).leaves(&[data(10), data(11)]);
    t.at(ms(101)).arrives(ack(1).duplicate(0, 1)).leaves(&[]);
    assert_eq!(t.info().in_flight, 11);
    assert_eq!(t.windows(), (11, None));
    assert_eq!(t.info().counters.undos, 0);
}

/// Nor does a duplicate of a segment that was never sent again make up for one that was
/// (`tcp_sacktag_one` looks for `TCPCB_RETRANS`).
#[test]
fn a_duplicate_of_another_segment_takes_nothing_back() {
    let mut t = reordered(exact().with(|profile| profile.timestamps = false));
    let doubled = ack(0).duplicate(3, 4).sack(&[(1, 4)]);
    t.at(ms(103)).arrives(doubled).leaves(&[]);
    assert_eq!(t.info().ssthresh, Some(5));
    // A second one is more than all retransmissions: it does not even count as delivered.
    t.at(ms(104)).arrives(doubled).leaves(&[]);
    t.at(ms(105)).arrives(doubled).leaves(&[]);
    t.at(ms(106)).arrives(ack(0).sack(&[(1, 5)])).leaves(&[data(12)]);
    assert_eq!(t.info().counters.undos, 0);
}

/// Where the rules of the RFCs are all, nothing is taken back.
#[test]
fn the_plain_rules_take_nothing_back() {
    let mut t = rfc().connected();
    t.writes_on().leaves(&all(0..10));
    t.at(ms(100)).arrives(ack(0).sack(&[(1, 10)]));
    t.leaves(&[&[again(0)], &all(10..14)[..]].concat());
    t.at(ms(101)).arrives(ack(10).echo(0)).leaves(&[data(14)]);
    t.at(ms(200)).arrives(ack(10).duplicate(0, 1)).leaves(&[]);
    assert_eq!(t.windows(), (5, Some(5)));
    assert_eq!(t.info().counters.undos, 0);
}

fn all_again(numbers: std::ops::Range<u32>) -> Vec<Line> {
    numbers.map(again).collect()
}
