//! How many segments leave at once: segmentation offload as Linux has it (`tcp_tso_autosize`,
//! `tcp_tso_should_defer`). RFC 5681 says only how many may be in flight.

use weir_core::Duration;
use weir_scenario::Overrides;
use weir_tcp::Bursts;

use crate::line::{ack, again, all, data};
use crate::script::{Script, Setup, linux, ms, rfc, us};

fn bursty() -> Setup {
    linux().with(|profile| profile.bursts = Bursts::Linux)
}

/// Congestion avoidance with `window / 2` segments in flight, which left at once, and the first of
/// which is `window`.
fn in_avoidance(setup: Setup, window: u32, rtt: Duration) -> Script {
    let mut t = setup.with(|profile| profile.initial_window = window).rtt(rtt).connected();
    t.writes(window).skips();
    t.at(rtt).arrives(ack(0).sack(&[(1, window)])).leaves(&[again(0)]);
    t.later(rtt).arrives(ack(window)).leaves(&[]);
    t.later(rtt).writes_on().leaves(&all(window..window + window / 2));
    t.later(rtt);
    t
}

/// The option that hands segments to the line one by one: each acknowledgement sends what it makes
/// room for.
#[test]
fn without_bursts_each_acknowledged_segment_sends_one() {
    let mut t = in_avoidance(linux(), 12, ms(100));
    for number in 13..=16 {
        t.later(us(100)).arrives(ack(number)).leaves(&[data(number + 5)]);
    }
}

/// With offload a burst waits for a second segment, if an acknowledgement that makes room for it is due
/// within a millisecond: they leave in pairs. The first does not wait, for nothing left lately.
#[test]
fn segments_leave_in_pairs() {
    let mut t = in_avoidance(bursty(), 12, ms(100));
    t.later(us(100)).arrives(ack(13)).leaves(&[data(18)]);
    t.later(us(100)).arrives(ack(14)).leaves(&[]);
    t.later(us(100)).arrives(ack(15)).leaves(&[data(19), data(20)]);
    t.later(us(100)).arrives(ack(16)).leaves(&[]);
    t.later(us(100)).arrives(ack(17)).leaves(&[data(21), data(22)]);
}

/// RFC 9293, section 3.9.1 leaves it to the implementation what is pushed; Linux pushes the last segment
/// of each burst of several (`__tcp_transmit_skb`).
#[test]
fn the_end_of_a_burst_is_pushed() {
    let mut t = in_avoidance(bursty(), 12, ms(100));
    t.later(us(100)).arrives(ack(13)).leaves(&[data(18).pushed(false)]);
    t.later(us(100)).arrives(ack(14)).leaves(&[]);
    t.later(us(100)).arrives(ack(15));
    t.leaves(&[data(19).pushed(false), data(20).pushed(true)]);
}

/// A segment that was held back leaves with the next acknowledgement, when more than a millisecond has
/// passed since something left.
#[test]
fn nothing_is_held_back_for_longer_than_a_millisecond() {
    for (gap, leave) in [(us(1_000), vec![]), (us(1_001), vec![data(19)])] {
        let mut t = in_avoidance(bursty(), 12, ms(100));
        t.later(us(100)).arrives(ack(13)).leaves(&[data(18)]);
        t.later(gap).arrives(ack(14)).leaves(&leave);
    }
}

/// No segment is held back if the next acknowledgement is not due.
///
/// The oldest segment left less than a round trip, less a millisecond, ago.
#[test]
fn nothing_is_held_back_if_no_acknowledgement_is_due() {
    let mut t = in_avoidance(bursty(), 12, ms(100));
    // A window is acknowledged with these: one segment more.
    t.later(us(100)).arrives(ack(17)).leaves(&all(18..24));
    // The oldest is segment 18, which left just now.
    t.later(us(100)).arrives(ack(18)).leaves(&[data(24)]);
}

/// A burst is as much as the pacing rate, 1.2 times the window a round trip, sends in a 1024th of a
/// second, and two segments at least: of 50 segments in 10 ms that is five.
#[test]
fn a_faster_flow_sends_larger_bursts() {
    let mut t = in_avoidance(bursty(), 100, ms(10));
    assert_eq!(t.info().pacing_rate, 6_000_000);
    // 5859 bytes in a 1024th of a second.
    t.later(us(20)).arrives(ack(101)).leaves(&[data(150)]);
    for number in 102..106 {
        t.later(us(20)).arrives(ack(number)).leaves(&[]);
    }
    t.later(us(20)).arrives(ack(106)).leaves(&all(151..156));
}

/// No segment is held back if there is room for a third of the window: one segment of three.
#[test]
fn a_small_window_does_not_wait() {
    let mut t = in_avoidance(bursty(), 6, ms(100));
    t.later(us(100)).arrives(ack(7)).leaves(&[data(9)]);
    t.later(us(100)).arrives(ack(8)).leaves(&[data(10), data(11)]);
    t.later(us(100)).arrives(ack(9)).leaves(&[data(12)]);
}

/// The congestion window does not grow while data waits for the receive window.
///
/// `tcp_tso_should_defer` tells which of the two limits.
#[test]
fn waiting_for_the_receive_window_is_not_waiting_for_the_congestion_window() {
    let mut t =
        bursty().with(|profile| profile.initial_window = 12).peer_window(12_000).connected();
    t.writes(12).skips();
    t.at(ms(100)).arrives(ack(0).sack(&[(1, 12)])).leaves(&[again(0)]);
    t.at(ms(200)).arrives(ack(12).window(5_000)).leaves(&[]);
    t.at(ms(300)).writes_on().leaves(&all(12..17));
    // In each round trip of five segments three acknowledgements find room for one segment only.
    for round in 0..10 {
        let first = 12 + 5 * round;
        t.at(ms(400 + 100 * u64::from(round)));
        for number in first + 1..=first + 5 {
            t.later(us(100)).arrives(ack(number).window(5_000)).skips();
        }
    }
    assert_eq!(t.cwnd(), 6);
}

/// The last segment of a write does not wait for company.
#[test]
fn the_last_segment_is_not_held_back() {
    let mut t = bursty().with(|profile| profile.initial_window = 12).connected();
    t.writes(12).skips();
    t.at(ms(100)).arrives(ack(0).sack(&[(1, 12)])).leaves(&[again(0)]);
    t.at(ms(200)).arrives(ack(12)).leaves(&[]);
    t.at(ms(300)).writes(8).leaves(&all(12..18));
    t.at(ms(400)).arrives(ack(13)).leaves(&[data(18)]);
    t.later(us(100)).arrives(ack(14)).leaves(&[data(19)]);
}

/// In recovery every acknowledgement counts, and nothing waits.
#[test]
fn recovery_does_not_wait_for_bursts() {
    let mut t = bursty().with(|profile| profile.initial_window = 20).connected();
    t.writes_on().leaves(&all(0..20));
    // The segments 0 and 10 are lost.
    t.at(ms(100));
    for end in 2..=10 {
        t.arrives(ack(0).sack(&[(1, end)])).skips().later(us(100));
    }
    for end in 12..=20 {
        t.arrives(ack(0).sack(&[(11, end), (1, 10)])).skips().later(us(100));
    }
    t.at(ms(200)).arrives(ack(0).sack(&[(11, 21), (1, 10)])).leaves(&[data(28)]);
    t.later(us(200)).arrives(ack(10).sack(&[(11, 21)])).leaves(&[data(29)]);
    // The answer to the retransmission of segment 10 is due, and makes no difference.
    t.later(us(200)).arrives(ack(10).sack(&[(11, 22)])).leaves(&[data(30)]);
}

/// A burst that is lost as one leaves again as one, its last segment pushed, and waits for its turn as one.
///
/// Segments that selective acknowledgements cut off leave apart (`tcp_xmit_retransmit_queue`,
/// `tcp_match_skb_to_sack`).
#[test]
fn a_lost_burst_is_sent_again_as_a_burst() {
    let mut t = linux().bbr().connected();
    t.writes(10).leaves(&all(0..10));
    // The first five are lost: of the third pair the first segment only.
    t.at(ms(100)).arrives(ack(0).sack(&[(5, 10)]));
    t.leaves(&[again(0).pushed(false), again(1).pushed(true)]);
    let pair = Duration::from_nanos(2_000 * 1_000_000_000 / t.info().pacing_rate);
    t.leaves_at(ms(100) + pair - pair / 2, &[again(2).pushed(false), again(3).pushed(true)]);
    t.leaves_at(ms(100) + pair * 2 - pair / 2, &[again(4).pushed(false)]);
}

/// No more of it leaves at once than the window has room for; the rest is a burst of its own.
#[test]
fn a_lost_burst_is_cut_where_the_window_ends() {
    let mut t = bursty().with(|profile| profile.initial_window = 12).connected();
    t.writes(12).leaves(&all(0..12));
    // Three arrived, and three leave.
    t.at(ms(100)).arrives(ack(0).sack(&[(8, 11)]));
    t.leaves(&[again(0).pushed(false), again(1).pushed(true), again(2).pushed(false)]);
    t.later(us(100)).arrives(ack(0).sack(&[(8, 12)])).leaves(&[again(3).pushed(false)]);
}

/// The scenario's option `bursts = false`.
#[test]
fn bursts_can_be_switched_off() {
    let changes = Overrides { bursts: Some(false), ..Overrides::default() };
    let setup = bursty().with(|profile| *profile = profile.clone().with(&changes));
    let mut t = in_avoidance(setup, 12, ms(100));
    for number in 13..=16 {
        t.later(us(100)).arrives(ack(number)).leaves(&[data(number + 5)]);
    }
}

/// The scenario's option `bursts = true`, in a profile that sends one by one: segments leave in pairs.
#[test]
fn bursts_can_be_switched_on() {
    let changes = Overrides { bursts: Some(true), ..Overrides::default() };
    let setup = rfc().with(|profile| *profile = profile.clone().with(&changes));
    let mut t = in_avoidance(setup, 12, ms(100));
    t.later(us(100)).arrives(ack(13)).leaves(&[data(18)]);
    t.later(us(100)).arrives(ack(14)).leaves(&[]);
    t.later(us(100)).arrives(ack(15)).leaves(&[data(19), data(20)]);
}
