//! The retransmission timeout: RFC 6298, and what it does to the window: RFC 5681, section 3.1.

use weir_tcp::Timers;

use crate::line::{ack, again, all, data};
use crate::script::{Script, Setup, linux, ms, rfc, us};

/// Linux without what usually comes before a timeout and what follows it: probes and F-RTO.
fn plain() -> Setup {
    linux().with(|profile| (profile.tail_loss_probe, profile.f_rto) = (false, false))
}

fn exact() -> Setup {
    plain().with(|profile| profile.timers = Timers::Exact)
}

/// RFC 6298, section 2.2: RTO <- SRTT + max (G, K*RTTVAR), of which Linux makes K*RTTVAR 200 ms at
/// least (`tcp_rto_min`): one round trip and 200 ms.
#[test]
fn linux_times_out_200_ms_after_the_round_trip() {
    let mut t = exact().connected();
    t.writes(1).leaves(&[data(0)]);
    assert_eq!(t.info().rto, ms(300));
    t.leaves_at(ms(300), &[again(0)]);
    assert_eq!(t.info().counters.timeouts, 1);
}

/// Linux' timers: the timeout counts in whole ticks of 4 ms from the last tick, and one more lest it be
/// early. 220 ms are 55 ticks; the 56th fires whenever in its tick the segment left.
#[test]
fn the_timer_wheel_never_fires_early() {
    for (sent, fires) in [(us(0), ms(224)), (us(3_999), ms(224)), (us(4_000), ms(228))] {
        let mut t = plain().rtt(ms(20)).connected();
        t.at(sent).writes(1).leaves(&[data(0)]);
        t.leaves_at(fires, &[again(0)]);
    }
}

/// Linux' timer wheel counts in steps of eight ticks, 32 ms, from 63 ticks, 252 ms, on (`calc_wheel_index`).
#[test]
fn the_timer_wheel_is_coarser_for_long_times() {
    for (sent, fires) in [(ms(0), ms(320)), (ms(16), ms(320)), (ms(20), ms(352))] {
        let mut t = plain().connected();
        t.at(sent).writes(1).leaves(&[data(0)]);
        t.leaves_at(fires, &[again(0)]);
    }
}

/// RFC 6298, section 2.4: "Whenever RTO is computed, if it is less than 1 second, then the RTO SHOULD
/// be rounded up to 1 second."
#[test]
fn by_the_rfc_the_timeout_is_one_second_at_least() {
    let mut t = rfc().connected();
    t.writes(1).leaves(&[data(0)]);
    assert_eq!(t.info().rto, ms(1_000));
    t.leaves_at(ms(1_000), &[again(0)]);
}

/// RFC 6298, sections 2.2 and 2.3: "SRTT <- R, RTTVAR <- R/2, RTO <- SRTT + max (G, K*RTTVAR)", then
/// "RTTVAR <- (1 - beta) * RTTVAR + beta * |SRTT - R'|" and "SRTT <- (1 - alpha) * SRTT + alpha * R'".
#[test]
fn by_the_rfc_the_timeout_follows_mean_and_variation() {
    let mut t = rfc().rtt(ms(500)).connected();
    assert_eq!((t.info().srtt, t.info().rttvar), (Some(ms(500)), ms(250)));
    assert_eq!(t.info().rto, ms(1_500));
    t.writes(1).leaves(&[data(0)]);
    t.at(ms(700)).arrives(ack(1)).leaves(&[]);
    // 3/4 * 250 + 1/4 * 200 = 237.5 and 7/8 * 500 + 1/8 * 700 = 525.
    assert_eq!((t.info().srtt, t.info().rttvar), (Some(ms(525)), us(237_500)));
    assert_eq!(t.info().rto, ms(525 + 950));
}

/// Linux (`tcp_rtt_estimator`): a round trip that falls counts an eighth as much towards the
/// variation as one that grows, lest a shorter path lengthen the timeout.
#[test]
fn in_linux_a_falling_round_trip_does_not_lengthen_the_timeout() {
    let mut t = exact().rtt(ms(500)).connected();
    assert_eq!(t.info().rto, ms(1_500));
    t.writes(1).leaves(&[data(0)]);
    t.at(ms(100)).arrives(ack(1)).leaves(&[]);
    // The error is 400 ms, 150 ms beyond the mean deviation of 250, of which an eighth counts.
    assert_eq!(t.info().srtt, Some(ms(450)));
    assert_eq!(t.info().rto, us(450_000 + 1_000_000 + 18_750));
}

/// In Linux the variation follows a steady round trip only slowly.
///
/// It does so once a round trip, by a quarter of what it lies above the largest mean deviation seen in it.
#[test]
fn in_linux_the_variation_falls_slowly() {
    let mut t = exact().rtt(ms(500)).connected();
    // The mean deviation falls from 250 ms by a quarter with each sample of 500 ms.
    for (round, rto) in [(1, 1_500_000), (2, 1_390_625), (3, 1_273_438), (4, 1_159_181)] {
        t.writes(1).leaves(&[data(round - 1)]);
        t.at(ms(500) * u64::from(round)).arrives(ack(round)).leaves(&[]);
        assert_eq!(t.info().rto, us(rto), "after {round} round trips");
    }
}

/// RFC 6298, section 5.5: "The host MUST set RTO <- RTO * 2 ("back off the timer")", here up to Linux'
/// 120 s (`TCP_RTO_MAX`).
#[test]
fn each_timeout_doubles_the_next() {
    let mut t = exact().connected();
    t.writes(1).leaves(&[data(0)]);
    let (mut at, mut rto) = (0, 300);
    for _ in 0..12 {
        at += rto;
        t.leaves_at(ms(at), &[again(0)]);
        rto = (2 * rto).min(120_000);
        assert_eq!(t.info().rto, ms(rto));
    }
    assert_eq!(rto, 120_000);
}

/// RFC 6298, section 5.3: "When an ACK is received that acknowledges new data, restart the
/// retransmission timer so that it will expire after RTO seconds"; section 5.2: with nothing
/// outstanding it is off.
#[test]
fn each_acknowledgement_restarts_the_timer() {
    let mut t = exact().connected();
    t.writes(3).leaves(&all(0..3));
    assert_eq!(t.timer(), Some(ms(300)));
    t.at(ms(100)).arrives(ack(1)).leaves(&[]);
    assert_eq!(t.timer(), Some(ms(400)));
    // An acknowledgement of nothing new does not.
    t.at(ms(150)).arrives(ack(1)).leaves(&[]);
    assert_eq!(t.timer(), Some(ms(400)));
    t.at(ms(200)).arrives(ack(3)).leaves(&[]);
    assert_eq!(t.timer(), None);
}

/// RFC 5681, section 3.1: "upon a timeout cwnd MUST be set to no more than the loss window, LW, which
/// equals 1 full-sized segment", the threshold to half the flight, and slow start begins.
#[test]
fn a_timeout_starts_over_with_one_segment() {
    let mut t = exact().connected();
    t.writes_on().leaves(&all(0..10));
    t.leaves_at(ms(300), &[again(0)]);
    assert_eq!(t.windows(), (1, Some(5)));
    t.at(ms(400)).arrives(ack(1)).leaves(&[again(1), again(2)]);
    t.at(ms(500)).arrives(ack(3)).leaves(&all_again(3..7));
    assert_eq!(t.windows(), (4, Some(5)));
}

/// When everything sent before the timeout is acknowledged it is over: the next loss is one like any
/// other, and found by what arrives behind it.
#[test]
fn behind_a_timeout_losses_are_found_as_before() {
    let mut t = exact().connected();
    t.writes(10).leaves(&all(0..10));
    t.leaves_at(ms(300), &[again(0)]);
    t.at(ms(400)).arrives(ack(10)).leaves(&[]);
    assert_eq!(t.windows(), (6, Some(5)));
    t.writes(6).leaves(&all(10..16));
    t.at(ms(500)).arrives(ack(10).sack(&[(11, 16)])).leaves(&[again(10)]);
    assert_eq!(t.info().ssthresh, Some(3));
    assert_eq!(t.info().counters.fast_recoveries, 1);
}

/// RFC 5681, section 3.1: "when a TCP sender detects segment loss using the retransmission timer and
/// the given segment has already been retransmitted by way of the retransmission timer at least once,
/// the value of ssthresh is held constant."
#[test]
fn a_second_timeout_of_the_same_segment_leaves_the_threshold() {
    let mut t = exact().connected();
    t.writes_on().leaves(&all(0..10));
    t.leaves_at(ms(300), &[again(0)]);
    t.leaves_at(ms(900), &[again(0)]);
    assert_eq!(t.windows(), (1, Some(5)));
    // Another loss after progress does reduce it: two segments are the least.
    t.at(ms(1_000)).arrives(ack(1)).leaves(&[again(1), again(2)]);
    let rto = t.info().rto;
    t.leaves_at(ms(1_000) + rto, &[again(1)]);
    assert_eq!(t.windows(), (1, Some(2)));
}

/// RFC 6298, section 3 (Karn's algorithm): "RTT samples MUST NOT be made using segments that were
/// retransmitted", unless "the TCP timestamp option is employed". Section 5: the doubled timeout stays
/// until there is a sample.
#[test]
fn without_timestamps_the_timeout_stays_doubled_until_something_new_is_measured() {
    let mut t = exact().with(|profile| profile.timestamps = false).connected();
    t.writes(11).leaves(&all(0..10));
    t.leaves_at(ms(300), &[again(0)]);
    t.at(ms(420)).arrives(ack(10)).leaves(&[data(10)]);
    assert_eq!((t.info().srtt, t.info().rto), (Some(ms(100)), ms(600)));
    t.at(ms(520)).arrives(ack(11)).leaves(&[]);
    assert_eq!((t.info().srtt, t.info().rto), (Some(ms(100)), ms(300)));
}

/// RFC 7323, section 4.1: with timestamps the echo tells which transmission was answered, and so how
/// long it took.
#[test]
fn with_timestamps_a_retransmission_is_measured_too() {
    let mut t = exact().connected();
    t.writes(1).leaves(&[data(0)]);
    t.leaves_at(ms(300), &[again(0).stamp(300)]);
    t.at(ms(480)).arrives(ack(1).echo(300)).leaves(&[]);
    // 7/8 * 100 + 1/8 * 180.
    assert_eq!(t.info().srtt, Some(ms(110)));
}

/// RFC 8985, section 6.3: "Upon RTO timer expiration, RACK marks the first outstanding segment as
/// lost", and of the others those sent a round trip and a reordering window ago, which Linux takes
/// for zero (`tcp_timeout_mark_lost`); what was sent lately is still in flight.
#[test]
fn a_timeout_takes_for_lost_only_what_is_old() {
    let mut t = exact().connected();
    t.writes(2).leaves(&all(0..2));
    t.at(ms(100)).arrives(ack(1)).leaves(&[]);
    t.at(ms(350)).writes(3).leaves(&all(2..5));
    t.leaves_at(ms(400), &[again(1)]);
    // Segment 1 again, and 2 to 4, which left 50 ms ago.
    assert_eq!(t.info().in_flight, 4);
    assert_eq!(t.cwnd(), 4);
    t.at(ms(450)).arrives(ack(1).sack(&[(2, 5)])).leaves(&[]);
    t.at(ms(500)).arrives(ack(5)).leaves(&[]);
    assert_eq!(t.info().counters.segments_retransmitted, 1);
}

/// RFC 8985, section 3.1: a retransmission that is lost after a timeout is found by what arrives
/// behind it, and that is another loss: fast recovery begins (`tcp_fastretrans_alert`:
/// `FLAG_LOST_RETRANS`).
#[test]
fn a_retransmission_lost_after_a_timeout_is_found_at_once() {
    let mut t = exact().connected();
    t.writes(10).leaves(&all(0..10));
    t.leaves_at(ms(300), &[again(0)]);
    t.at(ms(400)).arrives(ack(1)).leaves(&[again(1), again(2)]);
    t.at(ms(500)).arrives(ack(1).sack(&[(2, 3)])).leaves(&[again(1)]);
    assert_eq!((t.windows(), t.info().counters.fast_recoveries), ((1, Some(2)), 1));
}

/// By count (RFC 6675, section 5.1) everything that was not reported is lost.
#[test]
fn by_the_rfc_a_timeout_takes_everything_for_lost() {
    let mut t = rfc().connected();
    t.writes(2).leaves(&all(0..2));
    t.at(ms(100)).arrives(ack(1)).leaves(&[]);
    t.at(ms(1_050)).writes(3).leaves(&all(2..5));
    t.leaves_at(ms(1_100), &[again(1)]);
    assert_eq!((t.info().in_flight, t.cwnd()), (1, 1));
    t.at(ms(1_200)).arrives(ack(2)).leaves(&[again(2), again(3)]);
}

/// Segments that SACK reported stay reported after a timeout: RFC 6675, section 5.1, allows to keep the
/// scoreboard.
///
/// Linux keeps it unless the receiver takes its word back.
#[test]
fn what_has_arrived_is_not_sent_again_after_a_timeout() {
    let mut t = exact().connected();
    t.writes(10).leaves(&all(0..10));
    t.at(ms(100)).arrives(ack(0).sack(&[(4, 6)])).leaves(&[]);
    reordering_timer_and_timeout(&mut t);
    t.at(ms(600)).arrives(ack(1).sack(&[(4, 6)])).leaves(&[again(1), again(2)]);
    t.at(ms(700))
        .arrives(ack(3).sack(&[(4, 6)]))
        .leaves(&[&[again(3)], &all_again(6..9)[..]].concat());
}

/// RACK sends segment 0 again, which is lost once more, and then comes the timeout.
fn reordering_timer_and_timeout(t: &mut Script) {
    t.leaves_at(ms(127), &[again(0)]);
    let rto = t.info().rto;
    t.leaves_at(ms(127) + rto, &[again(0)]);
    assert_eq!(t.info().counters.timeouts, 1);
}

fn all_again(numbers: std::ops::Range<u32>) -> Vec<crate::line::Line> {
    numbers.map(again).collect()
}

/// A short segment that was sent alone may have waited in the receiver for company, up to its delayed
/// acknowledgement: a round trip above the smallest then says nothing of the path. Of two that were sent
/// together the second shows that the receiver did not wait (`tcp_clean_rtx_queue`, `FLAG_ACK_MAYBE_DELAYED`).
///
/// The smallest round trip is that of the last 150 to 300 s (`tcp_min_rtt_wlen`).
#[test]
fn a_round_trip_that_may_hold_a_delayed_acknowledgement_is_no_minimum() {
    let min_rtt = |together: bool| {
        let mut t = linux().with(|profile| profile.timers = Timers::Exact).connected();
        // The first half of the window passes; what follows belongs to the second.
        t.at(ms(151_000)).writes(1).leaves(&[data(0)]);
        t.at(ms(151_110)).arrives(ack(1)).leaves(&[]);
        t.at(ms(302_000)).writes_bytes(10).leaves(&[data(1).len(10)]);
        if together {
            t.writes_bytes(10).leaves(&[data(2).len(10)]);
            t.at(ms(302_120)).arrives(ack(2)).leaves(&[]);
            t.at(ms(302_140)).arrives(ack(3)).leaves(&[]);
        } else {
            t.at(ms(302_140)).arrives(ack(2)).leaves(&[]);
        }
        let next = t.next();
        t.at(ms(453_000)).writes(1).leaves(&[data(next)]);
        t.at(ms(453_200)).arrives(ack(next + 1)).leaves(&[]);
        t.info().min_rtt
    };
    // Without a believable one in the second half, that of the first is still the smallest.
    assert_eq!([true, false].map(min_rtt), [Some(ms(140)), Some(ms(110))]);
}
