//! Slow start: RFC 5681, section 3.1, and the initial window of RFC 6928.

use weir_scenario::Overrides;
use weir_tcp::Profile;

use crate::line::{ack, again, all, data};
use crate::script::{linux, ms, rfc};

/// RFC 6928, section 2: "min (10*MSS, max (2*MSS, 14600))", which is ten of these segments.
#[test]
fn the_first_ten_segments_leave_at_once() {
    for setup in [linux(), rfc()] {
        let mut t = setup.connected();
        t.writes(30).leaves(&all(0..10));
        assert_eq!(t.windows(), (10, None));
        assert_eq!(t.info().in_flight, 10);
    }
}

/// The scenario's own initial window.
#[test]
fn the_initial_window_can_be_another() {
    let three = Overrides { initial_window: Some(3), ..Overrides::default() };
    let mut t = linux().with(|profile| *profile = profile.clone().with(&three)).connected();
    t.writes(30).leaves(&all(0..3));
}

/// RFC 5681, section 3.1: "During slow start, a TCP increments cwnd by at most SMSS bytes for each ACK
/// received": one segment that left the network and one of growth make two that leave.
#[test]
fn each_acknowledged_segment_brings_two() {
    let mut t = linux().connected();
    t.writes(100).slow_starts(10, ms(100));
    assert_eq!(t.windows(), (20, None));
    // The second round trip: 20 segments are acknowledged and 40 leave.
    t.at(ms(200));
    for number in 11..=30 {
        let next = 30 + 2 * (number - 11);
        t.arrives(ack(number)).leaves(&all(next..next + 2));
    }
    assert_eq!(t.windows(), (40, None));
}

/// RFC 3465, section 2.2 (appropriate byte counting): the window grows by what was acknowledged, so
/// that a receiver that acknowledges every second segment does not slow it. Linux sets no limit L
/// (`tcp_slow_start`).
#[test]
fn an_acknowledgement_of_many_segments_counts_for_all() {
    let mut t = linux().connected();
    t.writes(100).leaves(&all(0..10));
    t.at(ms(100));
    t.arrives(ack(2)).leaves(&all(10..14));
    assert_eq!(t.cwnd(), 12);
    t.arrives(ack(10)).leaves(&all(14..30));
    assert_eq!(t.cwnd(), 20);
}

/// RFC 5681, section 3.1: without byte counting it is one segment for each acknowledgement.
#[test]
fn without_byte_counting_each_acknowledgement_counts_for_one() {
    let mut t = linux().with(|profile| profile.byte_counting = false).connected();
    t.writes(100).leaves(&all(0..10));
    t.at(ms(100));
    t.arrives(ack(2)).leaves(&all(10..13));
    assert_eq!(t.cwnd(), 11);
}

/// RFC 7661, section 4.1, wants growth only of a window that is used. Linux lets slow start grow it
/// to twice of what was in flight (`tcp_is_cwnd_limited`): six segments in flight are worth a window
/// of 12.
#[test]
fn a_window_that_is_not_used_does_not_grow_beyond_twice_its_use() {
    let mut t = linux().connected();
    t.writes(5).leaves(&all(0..5));
    t.at(ms(100)).arrives(ack(5));
    assert_eq!(t.cwnd(), 10);

    t.writes(6).leaves(&all(5..11));
    t.at(ms(200));
    for (number, cwnd) in [(6, 11), (7, 12), (8, 12), (11, 12)] {
        t.arrives(ack(number)).leaves(&[]);
        assert_eq!(t.cwnd(), cwnd, "after {number} segments");
    }
}

/// RFC 5681, section 3.1: "The slow start algorithm is used when cwnd < ssthresh, while the congestion
/// avoidance algorithm is used when cwnd > ssthresh". Here the threshold is 5 segments, after a timeout
/// with ten in flight: the window doubles up to it, and then takes five acknowledged segments for one.
#[test]
fn slow_start_ends_at_the_threshold() {
    let plain = |profile: &mut Profile| (profile.tail_loss_probe, profile.f_rto) = (false, false);
    let mut t = linux().with(plain).connected();
    t.writes(100).leaves(&all(0..10));
    t.leaves_at(ms(320), &[again(0)]);
    assert_eq!(t.windows(), (1, Some(5)));
    t.at(ms(420)).arrives(ack(1)).leaves(&[again(1), again(2)]);
    t.at(ms(520));
    t.arrives(ack(2)).leaves(&[again(3), again(4)]);
    t.arrives(ack(3)).leaves(&[again(5), again(6)]);
    t.at(ms(620));
    t.arrives(ack(4)).leaves(&[again(7), again(8)]);
    assert_eq!(t.windows(), (5, Some(5)));
    t.arrives(ack(5)).leaves(&[again(9)]);
    t.arrives(ack(6)).leaves(&[data(10)]);
    t.arrives(ack(7)).leaves(&[data(11)]);
    t.at(ms(720));
    t.arrives(ack(8)).leaves(&[data(12)]);
    t.arrives(ack(9)).leaves(&[data(13), data(14)]);
    assert_eq!(t.windows(), (6, Some(5)));
}
