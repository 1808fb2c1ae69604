//! Tail loss probes: RFC 8985, section 7 (`tcp_schedule_loss_probe`, `tcp_send_loss_probe`).

use weir_tcp::Timers;

use crate::line::{ack, again, all, data};
use crate::script::{Setup, linux, ms, rfc, us};

/// Timers to the microsecond, so that the rules show without the wheel's rounding.
fn exact() -> Setup {
    linux().with(|profile| profile.timers = Timers::Exact)
}

/// RFC 8985, section 7.2: "PTO = 2 * SRTT", and two milliseconds of slack in Linux.
#[test]
fn a_silent_flight_is_probed_after_two_round_trips_and_2_ms() {
    let mut t = exact().connected();
    t.writes(5).leaves(&all(0..5));
    t.leaves_at(ms(202), &[again(4)]);
    assert_eq!(t.info().counters.loss_probes, 1);
    assert_eq!(t.info().counters.timeouts, 0);
}

/// The wheel of Linux' timers of 4 ms rounds the probe up: 202 ms are 51 ticks, and it waits for the 52nd.
#[test]
fn the_timer_wheel_rounds_the_probe_up() {
    let mut t = linux().connected();
    t.writes(5).leaves(&all(0..5));
    t.leaves_at(ms(208), &[again(4)]);
}

/// RFC 8985, section 7.2: each acknowledgement in order and each new segment start the wait anew.
#[test]
fn the_wait_starts_anew_with_each_acknowledgement_and_each_new_segment() {
    let mut t = exact().connected();
    t.writes(5).leaves(&all(0..5));
    assert_eq!(t.timer(), Some(ms(202)));
    t.at(ms(50)).writes(1).leaves(&[data(5)]);
    assert_eq!(t.timer(), Some(ms(252)));
    t.at(ms(100)).arrives(ack(2)).leaves(&[]);
    assert_eq!(t.timer(), Some(ms(302)));
}

/// RFC 8985, section 7.2: "If Now() + PTO > TCP_RTO_expiration()", the probe is brought forward to that.
///
/// With a new segment Linux looks at the timeout of the oldest one, sent at 0, which ends at 300 ms
/// (`tcp_rto_delta_us`).
#[test]
fn the_probe_comes_no_later_than_the_timeout_would() {
    let mut t = exact().connected();
    t.writes(5).leaves(&all(0..5));
    t.at(ms(100)).arrives(ack(2)).leaves(&[]);
    assert_eq!(t.timer(), Some(ms(302)));
    t.at(ms(150)).writes(1).leaves(&[data(5)]);
    t.leaves_at(ms(300), &[again(5)]);
    assert_eq!(t.info().counters.loss_probes, 1);
}

/// RFC 8985, section 7.2: with one segment in flight its acknowledgement may be delayed, for which
/// "TLP.max_ack_delay" is added; Linux adds the smallest timeout, 200 ms.
#[test]
fn a_lone_segment_leaves_time_for_a_delayed_acknowledgement() {
    // After round trips of 100 and 290 ms the timeout is far enough away.
    let mut t = exact().connected();
    t.writes(1).leaves(&[data(0)]);
    t.at(ms(290)).arrives(ack(1)).leaves(&[]);
    assert_eq!((t.info().srtt, t.info().rto), (Some(us(123_750)), us(463_750)));
    t.at(ms(300)).writes(1).leaves(&[data(1)]);
    t.leaves_at(us(300_000 + 247_500 + 200_000), &[again(1)]);
}

/// A lone segment is probed no later than its timeout: at a steady round trip after 300 ms, not 400 ms.
#[test]
fn a_lone_segment_is_probed_when_its_timeout_is_up() {
    let mut t = exact().connected();
    t.writes(1).leaves(&[data(0)]);
    t.leaves_at(ms(300), &[again(0)]);
    assert_eq!(t.info().counters.loss_probes, 1);
    assert_eq!(t.info().counters.timeouts, 0);
    assert_eq!(t.windows(), (10, None));
    t.leaves_at(ms(600), &[again(0)]);
    assert_eq!(t.info().counters.timeouts, 1);
}

/// RFC 8985, section 7.3: if there is a segment that was not sent yet, and it fits into the peer's
/// receive window, that is the probe, whatever the congestion window says.
#[test]
fn new_data_is_probed_with_first() {
    let mut t = exact().connected();
    t.writes_on().leaves(&all(0..10));
    t.leaves_at(ms(202), &[data(10)]);
    assert_eq!(t.info().in_flight, 11);
    assert_eq!(t.cwnd(), 10);
}

/// The probe is the last segment, sent again, if no new one fits into the receive window (RFC 8985, section
/// 7.3).
#[test]
fn without_room_in_the_receive_window_the_last_segment_is_the_probe() {
    let mut t = exact().peer_window(10_000).connected();
    t.writes_on().leaves(&all(0..10));
    t.leaves_at(ms(202), &[again(9)]);
}

/// RFC 8985, section 7.3: after the probe the timeout is set anew, and there is no second probe while
/// one is under way.
#[test]
fn after_the_probe_comes_the_timeout() {
    let mut t = exact().connected();
    t.writes(5).leaves(&all(0..5));
    t.leaves_at(ms(202), &[again(4)]);
    t.leaves_at(ms(502), &[again(0)]);
    assert_eq!(t.info().counters.loss_probes, 1);
    assert_eq!(t.info().counters.timeouts, 1);
}

/// An acknowledgement of part of the flight starts a wait for a second probe; as the first is not
/// answered yet nothing is sent then, and the timeout of the oldest segment, which is long past,
/// follows at once (`tcp_rearm_rto` counts from the oldest segment behind a probe's timer).
#[test]
fn a_second_probe_gives_way_to_the_timeout() {
    let mut t = exact().connected();
    t.writes(10).leaves(&all(0..10));
    t.at(ms(100)).arrives(ack(5)).leaves(&[]);
    t.leaves_at(ms(302), &[again(9)]);
    // A late acknowledgement: the smoothed round trip grows to 126.25 ms, and twice that is waited.
    t.at(ms(310)).arrives(ack(6)).leaves(&[]);
    assert_eq!(t.info().srtt, Some(us(126_250)));
    t.at(us(310_000 + 252_500 + 2_000)).leaves(&[]);
    t.later(us(1)).leaves(&[again(6)]);
    assert_eq!(t.info().counters.loss_probes, 1);
    assert_eq!(t.info().counters.timeouts, 1);
}

/// RFC 8985, section 7.4.1: the answer to the probe shows what is missing, and recovery starts
/// without a timeout. Here the last three of ten segments are lost, the window is 17 by then.
#[test]
fn the_answer_to_a_probe_starts_recovery() {
    let mut t = exact().connected();
    t.writes(10).leaves(&all(0..10));
    t.at(ms(100)).arrives(ack(7)).leaves(&[]);
    assert_eq!(t.cwnd(), 17);
    t.leaves_at(ms(302), &[again(9)]);
    t.at(ms(402)).arrives(ack(7).sack(&[(9, 10)])).leaves(&[again(7)]);
    assert_eq!(t.info().ssthresh, Some(8));
    t.at(ms(502)).arrives(ack(8).sack(&[(9, 10)])).leaves(&[again(8)]);
    t.at(ms(602)).arrives(ack(10)).leaves(&[]);
    assert_eq!(t.windows(), (8, Some(8)));
    assert_eq!(t.info().counters.timeouts, 0);
}

/// RFC 8985, section 7.4.2: a single loss that the probe itself repaired shows only by the missing
/// report of a duplicate. It counts as a loss when something beyond the probe is acknowledged.
#[test]
fn a_loss_that_the_probe_repaired_reduces_the_window() {
    let mut t = exact().connected();
    t.writes(10).leaves(&all(0..10));
    t.at(ms(100)).arrives(ack(9)).leaves(&[]);
    t.leaves_at(ms(400), &[again(9)]);
    t.at(ms(500)).arrives(ack(10)).leaves(&[]);
    assert_eq!(t.windows(), (20, None));
    t.at(ms(510)).writes(1).leaves(&[data(10)]);
    t.at(ms(610)).arrives(ack(11)).leaves(&[]);
    assert_eq!(t.windows(), (10, Some(10)));
}

/// A reported duplicate (RFC 2883) of the probe says that nothing was lost: the window stays.
#[test]
fn a_needless_probe_leaves_the_window() {
    let mut t = exact().connected();
    t.writes(10).leaves(&all(0..10));
    t.at(ms(100)).arrives(ack(9)).leaves(&[]);
    t.leaves_at(ms(400), &[again(9)]);
    // The original was late; then the probe arrives, when nothing is in flight any more.
    t.at(ms(410)).arrives(ack(10).echo(0)).leaves(&[]);
    t.at(ms(500)).arrives(ack(10).duplicate(9, 10)).leaves(&[]);
    t.at(ms(510)).writes(1).leaves(&[data(10)]);
    t.at(ms(610)).arrives(ack(11)).leaves(&[]);
    assert_eq!(t.windows(), (20, None));
}

/// RFC 8985, section 7.4.2: a probe with new data repairs nothing.
#[test]
fn a_probe_with_new_data_leaves_the_window() {
    let mut t = exact().connected();
    t.writes(11).leaves(&all(0..10));
    t.leaves_at(ms(202), &[data(10)]);
    t.at(ms(210)).arrives(ack(10)).leaves(&[]);
    t.at(ms(302)).arrives(ack(11)).leaves(&[]);
    t.at(ms(310)).writes(1).leaves(&[data(11)]);
    t.at(ms(410)).arrives(ack(12)).leaves(&[]);
    assert_eq!(t.info().ssthresh, None);
}

/// RFC 8985, section 7.2: a sender waits for a probe "unless it is already in fast recovery, RTO
/// recovery, or segments have been SACKed".
#[test]
fn recovery_is_not_probed() {
    let mut t = exact().connected();
    t.writes(10).leaves(&all(0..10));
    t.at(ms(100)).arrives(ack(0).sack(&[(1, 10)])).leaves(&[again(0)]);
    // The timeout counts from the retransmission.
    let rto = t.info().rto;
    t.leaves_at(ms(100) + rto, &[again(0)]);
    assert_eq!(t.info().counters.loss_probes, 0);
    assert_eq!(t.info().counters.timeouts, 1);
}

/// RFC 8985, section 4: "The connection MUST use selective acknowledgment (SACK) options". Nor do the
/// plain rules know probes.
#[test]
fn without_sack_there_is_no_probe() {
    let without_sack = exact().with(|profile| profile.sack = false);
    for (setup, timeout) in [(without_sack, ms(300)), (rfc(), ms(1_000))] {
        let mut t = setup.connected();
        t.writes(5).leaves(&all(0..5));
        t.leaves_at(timeout, &[again(0)]);
    }
}
