//! Losses found by time: RACK, RFC 8985, section 6 (`tcp_recovery.c`).

use weir_tcp::Timers;

use crate::line::{ack, again, all, data};
use crate::script::{Script, Setup, linux, ms, us};

/// Timers to the microsecond, so that the rules show without the wheel's rounding.
fn exact() -> Setup {
    linux().with(|profile| profile.timers = Timers::Exact)
}

/// Ten segments, of which the first comes after the second: reordering was seen, and the segments 0 and
/// 1 are acknowledged by 120 ms.
fn after_reordering() -> Script {
    let mut t = exact().connected();
    t.writes(10).leaves(&all(0..10));
    t.at(ms(100)).arrives(ack(0).sack(&[(1, 2)])).leaves(&[]);
    t.at(ms(120)).arrives(ack(2)).leaves(&[]);
    t
}

/// RFC 8985, section 6.2, step 4: "min(RACK.reo_wnd_mult * RACK.min_RTT / 4, SRTT)", so that a
/// segment is lost when one sent after it arrived and a quarter of the smallest round trip has passed
/// on top of the latest one. The timer takes two milliseconds more (`TCP_TIMEOUT_MIN_US`).
#[test]
fn a_gap_waits_a_quarter_of_the_round_trip() {
    let mut t = exact().connected();
    t.writes(10).leaves(&all(0..10));
    t.at(ms(100)).arrives(ack(0).sack(&[(1, 2)])).leaves(&[]);
    t.leaves_at(ms(127), &[again(0)]);
    assert_eq!(t.info().counters.fast_recoveries, 1);
}

/// The wheel of Linux' timers of 4 ms rounds the wait up: 27 ms are seven ticks, and it waits for the eighth.
#[test]
fn the_timer_wheel_rounds_the_wait_up() {
    let mut t = linux().connected();
    t.writes(10).leaves(&all(0..10));
    t.at(ms(100)).arrives(ack(0).sack(&[(1, 2)])).leaves(&[]);
    t.leaves_at(ms(132), &[again(0)]);
}

/// RFC 8985, section 6.2, step 4: with "RACK.segs_sacked >= DupThresh" and no reordering seen the
/// window is zero: the third segment above a gap settles it.
#[test]
fn the_third_segment_above_a_gap_ends_the_wait() {
    let mut t = exact().connected();
    t.writes(10).leaves(&all(0..10));
    t.at(ms(100)).arrives(ack(0).sack(&[(1, 2)])).leaves(&[]);
    t.later(ms(1)).arrives(ack(0).sack(&[(1, 3)])).leaves(&[]);
    t.later(ms(1)).arrives(ack(0).sack(&[(1, 4)])).leaves(&[again(0)]);
}

/// RFC 8985, section 3.3: what arrives late, but within the window, was never lost.
#[test]
fn a_segment_that_comes_late_is_not_sent_again() {
    let mut t = after_reordering();
    t.at(ms(150)).arrives(ack(10)).leaves(&[]);
    t.at(ms(1_000)).leaves(&[]);
    assert_eq!(t.info().counters.segments_retransmitted, 0);
    assert_eq!(t.info().ssthresh, None);
}

/// RFC 8985, section 6.2, step 4: once "RACK.reordering_seen" three segments above a gap are not
/// enough, the time has to pass.
#[test]
fn after_reordering_three_segments_above_a_gap_are_not_enough() {
    let mut t = after_reordering();
    t.at(ms(121)).arrives(ack(2).sack(&[(3, 4)])).leaves(&[]);
    t.later(ms(1)).arrives(ack(2).sack(&[(3, 5)])).leaves(&[]);
    t.later(ms(1)).arrives(ack(2).sack(&[(3, 6)])).leaves(&[]);
    // Sent at 0; the latest round trip is 123 ms; a quarter of 100 ms more, and the timer's two.
    t.leaves_at(ms(150), &[again(2)]);
}

/// RFC 8985, section 8: the reordering timer stands in for the timeout, which goes on to count from the
/// oldest segment, whatever was sent again meanwhile (`tcp_rack_reo_timeout`, `tcp_rearm_rto`).
#[test]
fn behind_the_reordering_timer_the_timeout_counts_from_the_oldest_segment() {
    let mut t = after_reordering();
    t.at(ms(121)).arrives(ack(2).sack(&[(3, 4)])).leaves(&[]);
    t.leaves_at(ms(148), &[again(2)]);
    t.at(ms(160)).arrives(ack(2).sack(&[(5, 6), (3, 4)])).leaves(&[]);
    t.leaves_at(ms(187), &[again(4)]);
    let rto = t.info().rto;
    t.leaves_at(ms(148) + rto, &[again(2)]);
    assert_eq!(t.info().counters.timeouts, 1);
}

/// Where a segment was seen to come behind three later ones, arrivals out of order are nothing special,
/// and the window grows by them as by others (`tcp_may_raise_cwnd`).
#[test]
fn with_much_reordering_the_window_grows_by_what_arrives_out_of_order() {
    for (late, cwnd) in [(2, 19), (3, 20)] {
        let mut t = exact().connected();
        t.writes(10).leaves(&all(0..10));
        // Segment 0 comes behind segment `late`; one round trip without a retransmission.
        t.at(ms(100)).arrives(ack(0).sack(&[(late, late + 1)])).leaves(&[]);
        t.at(ms(101)).arrives(ack(late + 1)).leaves(&[]);
        t.at(ms(102)).arrives(ack(10)).leaves(&[]);
        assert_eq!((t.cwnd(), t.info().counters.segments_retransmitted), (19, 0));
        t.writes(10).leaves(&all(10..20));
        t.at(ms(202)).arrives(ack(10).sack(&[(11, 12)])).leaves(&[]);
        assert_eq!(t.cwnd(), cwnd, "behind segment {late}");
    }
}

/// RFC 8985, section 6.2, step 4: each round trip with a report of duplicates widens the window by
/// another quarter: "RACK.reo_wnd_mult += 1".
#[test]
fn a_needless_retransmission_widens_the_window() {
    let mut t = after_reordering();
    t.at(ms(121)).arrives(ack(2).sack(&[(3, 4)])).leaves(&[]);
    t.leaves_at(ms(148), &[again(2)]);
    // The segment was merely late, and its retransmission comes as a duplicate.
    t.at(ms(160)).arrives(ack(10).echo(0)).leaves(&[]);
    t.at(ms(248)).arrives(ack(10).duplicate(2, 3)).leaves(&[]);

    t.at(ms(300)).writes(10).leaves(&all(10..20));
    t.at(ms(400)).arrives(ack(10).sack(&[(11, 12)])).leaves(&[]);
    t.leaves_at(ms(452), &[again(10)]);
}

/// A needless probe does not widen the reordering window: it says nothing about reordering.
///
/// (`tcp_dsack_seen`: `FLAG_DSACK_TLP`.)
#[test]
fn a_needless_probe_does_not_widen_the_window() {
    let mut t = after_reordering();
    t.at(ms(121)).arrives(ack(9)).leaves(&[]);
    let rto = t.info().rto;
    t.leaves_at(ms(121) + rto, &[again(9)]);
    t.later(ms(1)).arrives(ack(10).echo(0)).leaves(&[]);
    t.later(ms(99)).arrives(ack(10).duplicate(9, 10)).leaves(&[]);
    t.at(ms(600)).writes(10).leaves(&all(10..20));
    t.at(ms(700)).arrives(ack(10).sack(&[(11, 12)])).leaves(&[]);
    t.leaves_at(ms(727), &[again(10)]);
}

/// RFC 8985, section 6.2, step 4: the wider window is kept for 16 recoveries without a report of
/// duplicates, "RACK.reo_wnd_persist", and then is a quarter again.
#[test]
fn the_wider_window_is_kept_for_sixteen_recoveries() {
    let mut t = after_reordering();
    t.at(ms(121)).arrives(ack(2).sack(&[(3, 4)])).leaves(&[]);
    t.leaves_at(ms(148), &[again(2)]);
    t.at(ms(160)).arrives(ack(10).echo(0)).leaves(&[]);
    t.at(ms(248)).arrives(ack(10).duplicate(2, 3)).leaves(&[]);
    for recovery in 0..18 {
        let (start, first) = (1_000 * (recovery + 1), 10 + 2 * recovery as u32);
        t.at(ms(start)).writes(2).leaves(&all(first..first + 2));
        t.at(ms(start + 100)).arrives(ack(first).sack(&[(first + 1, first + 2)])).leaves(&[]);
        let window = if recovery < 16 { 50 } else { 25 };
        t.leaves_at(ms(start + 100 + window + 2), &[again(first)]);
        t.at(ms(start + 300)).arrives(ack(first + 2)).leaves(&[]);
    }
}

/// RFC 8985, section 6.2, step 4: nor is there a wait in recovery as long as no reordering was seen:
/// the segments 6 and 7 are lost with the first arrival behind them.
#[test]
fn in_recovery_a_new_gap_is_lost_at_once() {
    let mut t = exact().connected();
    t.writes(10).leaves(&all(0..10));
    t.at(ms(100)).arrives(ack(0).sack(&[(5, 6)])).leaves(&[]);
    t.leaves_at(ms(127), &[again(0)]);
    t.at(ms(130)).arrives(ack(0).sack(&[(8, 9), (5, 6)])).leaves(&[again(1)]);
    assert_eq!(t.info().in_flight, 10 - 2 - 7 + 2);
}

/// RFC 8985, section 6.2, step 5: only what was sent before the latest segment that arrived can be lost
/// by its arrival.
#[test]
fn what_was_sent_later_is_not_lost_yet() {
    let mut t = exact().connected();
    t.writes(2).leaves(&[data(0), data(1)]);
    t.at(ms(10)).writes(4).leaves(&all(2..6));
    t.at(ms(100)).arrives(ack(0).sack(&[(1, 2)])).leaves(&[]);
    t.leaves_at(ms(127), &[again(0)]);
    assert_eq!(t.info().in_flight, 5);
}

/// RFC 8985, section 6.2, RACK_sent_after: of segments sent at the same time the order of their numbers
/// decides.
#[test]
fn of_one_burst_the_lower_numbers_are_lost() {
    let mut t = exact().connected();
    t.writes(10).leaves(&all(0..10));
    t.at(ms(100)).arrives(ack(0).sack(&[(5, 6)])).leaves(&[]);
    // 0 to 4 are lost, 6 to 9 are not.
    t.leaves_at(ms(127), &[again(0)]);
    assert_eq!(t.info().in_flight, 10 - 1 - 5 + 1);
}

/// RFC 8985, section 3.1: a retransmission is lost like any other segment, when one sent after it has
/// arrived. Here the retransmission leaves at 102 ms, and segment 12 at 104 ms, which arrives.
#[test]
fn a_lost_retransmission_is_found_by_what_was_sent_after_it() {
    let mut t = exact().connected();
    t.writes_on().leaves(&all(0..10));
    t.at(ms(100)).arrives(ack(0).sack(&[(1, 2)])).leaves(&[data(10)]);
    t.at(ms(101)).arrives(ack(0).sack(&[(1, 3)])).leaves(&[data(11)]);
    t.at(ms(102)).arrives(ack(0).sack(&[(1, 4)])).leaves(&[again(0)]);
    t.at(ms(103)).arrives(ack(0).sack(&[(1, 5)])).leaves(&[]);
    t.at(ms(104)).arrives(ack(0).sack(&[(1, 6)])).leaves(&[data(12)]);
    t.at(ms(105)).arrives(ack(0).sack(&[(1, 10)])).leaves(&[data(13)]);
    // These were sent before the retransmission and say nothing about it.
    t.at(ms(200)).arrives(ack(0).sack(&[(1, 11)])).leaves(&[data(14)]);
    t.at(ms(201)).arrives(ack(0).sack(&[(1, 12)])).leaves(&[data(15)]);
    // This one was sent after it; in recovery there is no window for reordering.
    t.at(ms(204)).arrives(ack(0).sack(&[(1, 13)])).leaves(&[again(0), data(16)]);
    assert_eq!(t.info().counters.segments_retransmitted, 2);
    assert_eq!(t.info().counters.timeouts, 0);
}

/// RFC 8985, section 6.2, step 2: an answer that comes sooner after a retransmission than the smallest
/// round trip is one to the original, and dates nothing. That holds for probes too (`tcp_rack_advance`
/// looks for `TCPCB_RETRANS`, which they have).
#[test]
fn an_answer_too_soon_for_a_retransmission_dates_nothing() {
    let mut t = exact().connected();
    t.writes(10).leaves(&all(0..10));
    // A delay of the whole flight, and a tail loss probe meanwhile.
    t.leaves_at(ms(202), &[again(9)]);
    // Eight milliseconds later the original arrives. It was sent with the others, so that these are not
    // overdue, as they would be behind something sent 200 ms after them.
    t.at(ms(210)).arrives(ack(0).sack(&[(9, 10)])).leaves(&[]);
    assert_eq!(t.info().in_flight, 9);
    t.at(ms(211)).arrives(ack(9).sack(&[(9, 10)])).leaves(&[]);
    t.at(ms(212)).arrives(ack(10)).leaves(&[]);
    assert_eq!(t.info().counters.fast_recoveries, 0);
}

/// RFC 8985, section 6.2, step 5: the timer finds what no acknowledgement would. With timers to the
/// microsecond it is exact, too.
#[test]
fn the_reordering_timer_is_exact_to_the_microsecond() {
    let mut t = exact().rtt(us(33_333)).connected();
    t.writes(4).leaves(&all(0..4));
    t.at(us(33_333)).arrives(ack(0).sack(&[(1, 2)])).leaves(&[]);
    // A quarter of 33333 us is 8333 us.
    t.leaves_at(us(33_333 + 8_333 + 2_000), &[again(0)]);
}
