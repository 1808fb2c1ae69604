//! Loss recovery with SACK: RFC 6675, with the window reduced as RFC 6937 says (`tcp_cwnd_reduction`).

use crate::line::{Line, ack, again, all, data};
use crate::script::{Script, Setup, linux, ms, rfc};

/// A flight of 20 segments on its way, and the time when it arrives. Its acknowledgements come a
/// millisecond apart.
fn flight_of_20(setup: Setup) -> Script {
    let mut t = setup.with(|profile| profile.initial_window = 20).connected();
    t.writes_on().leaves(&all(0..20)).at(ms(100));
    t
}

impl Script {
    /// A millisecond later `line` arrives, and exactly these leave.
    #[track_caller]
    fn answers(&mut self, line: Line, leave: &[Line]) -> &mut Self {
        self.later(ms(1)).arrives(line).leaves(leave)
    }
}

/// RFC 6937, section 3.1, first example: one of 20 segments is lost. "N" is new data, "R" the
/// retransmission, one column an acknowledgement: "N N R _ N _ N _ N ...", a segment for every second
/// one, until the pipe is down to the threshold.
#[test]
fn a_lost_segment_halves_the_rate_over_a_round_trip() {
    for setup in [linux(), rfc()] {
        let mut t = flight_of_20(setup);
        t.answers(ack(0).sack(&[(1, 2)]), &[data(20)]);
        t.answers(ack(0).sack(&[(1, 3)]), &[data(21)]);
        t.answers(ack(0).sack(&[(1, 4)]), &[again(0)]);
        assert_eq!(t.info().ssthresh, Some(10));
        for nth in 4..=18 {
            let leave = if nth % 2 == 1 { vec![data(22 + (nth - 5) / 2)] } else { vec![] };
            t.answers(ack(0).sack(&[(1, nth + 1)]), &leave);
        }
        // RFC 6937, section 3, reduction bound: the pipe has reached the threshold and stays there.
        t.answers(ack(0).sack(&[(1, 20)]), &[]);
        assert_eq!((t.info().in_flight, t.cwnd()), (10, 10));
        t.at(ms(200));
        t.answers(ack(0).sack(&[(1, 21)]), &[data(29)]);
        t.answers(ack(0).sack(&[(1, 22)]), &[data(30)]);
        // RFC 6675, section 5: recovery ends when everything sent before it is acknowledged.
        t.answers(ack(22), &[data(31)]);
        assert_eq!(t.windows(), (10, Some(10)));
        assert_eq!(t.info().counters.fast_recoveries, 1);
        assert_eq!(t.info().counters.segments_retransmitted, 1);
    }
}

/// RFC 6937, section 3.1, second example: the first 15 of 20 segments are lost. The pipe falls below
/// the threshold at once, and each acknowledgement sends what it delivers, "R R R", where without
/// rate reduction (RFC 6675) seven segments would leave in a burst.
#[test]
fn many_losses_send_one_segment_for_each_delivered() {
    let mut t = flight_of_20(linux());
    t.answers(ack(0).sack(&[(15, 16)]), &[data(20)]);
    t.answers(ack(0).sack(&[(15, 17)]), &[data(21)]);
    t.answers(ack(0).sack(&[(15, 18)]), &[again(0)]);
    t.answers(ack(0).sack(&[(15, 19)]), &[again(1)]);
    t.answers(ack(0).sack(&[(15, 20)]), &[again(2)]);
    assert_eq!((t.info().in_flight, t.info().ssthresh), (5, Some(10)));

    t.at(ms(200));
    t.answers(ack(0).sack(&[(15, 21)]), &[again(3)]);
    t.answers(ack(0).sack(&[(15, 22)]), &[again(4)]);
    // Slow start reduction bound: while segments are acknowledged in order and nothing more is lost,
    // one segment more than was delivered, up to the threshold.
    let blocks = [(15, 22)];
    t.answers(ack(1).sack(&blocks), &[again(5), again(6)]);
    t.answers(ack(2).sack(&blocks), &[again(7), again(8)]);
    t.answers(ack(3).sack(&blocks), &[again(9), again(10)]);
    t.at(ms(300));
    t.answers(ack(4).sack(&blocks), &[again(11), again(12)]);
    t.answers(ack(5).sack(&blocks), &[again(13), again(14)]);
    assert_eq!(t.info().in_flight, 10);
    // The pipe is as large as the threshold: from now on a segment for each.
    t.answers(ack(6).sack(&blocks), &[data(22)]);
    t.answers(ack(7).sack(&blocks), &[data(23)]);
    assert_eq!((t.info().in_flight, t.info().ssthresh), (10, Some(10)));
}

/// RFC 6675, section 5, step 4.2, and section 3.2 of RFC 5681: one reduction for the losses of a
/// window.
#[test]
fn a_second_loss_in_the_same_window_does_not_halve_it_again() {
    let mut t = linux().connected();
    t.writes_on().leaves(&all(0..10)).at(ms(100));
    t.answers(ack(0).sack(&[(1, 2)]), &[data(10)]);
    t.answers(ack(0).sack(&[(1, 3)]), &[data(11)]);
    t.answers(ack(0).sack(&[(1, 4)]), &[again(0)]);
    // Segment 4 is lost too, which is found at once, since nothing was ever reordered.
    t.answers(ack(0).sack(&[(5, 6), (1, 4)]), &[]);
    assert_eq!(t.info().in_flight, 7);
    t.answers(ack(0).sack(&[(5, 7), (1, 4)]), &[again(4)]);
    t.answers(ack(0).sack(&[(5, 8), (1, 4)]), &[]);
    t.answers(ack(0).sack(&[(5, 9), (1, 4)]), &[]);
    t.answers(ack(0).sack(&[(5, 10), (1, 4)]), &[data(12)]);
    t.at(ms(200));
    t.answers(ack(0).sack(&[(5, 11), (1, 4)]), &[data(13)]);
    t.answers(ack(0).sack(&[(5, 12), (1, 4)]), &[data(14)]);
    t.answers(ack(4).sack(&[(5, 12)]), &[data(15)]);
    t.answers(ack(12), &[data(16)]);
    assert_eq!(t.windows(), (5, Some(5)));
    assert_eq!(t.info().counters.fast_recoveries, 1);
    assert_eq!(t.info().counters.segments_retransmitted, 2);
}

/// RFC 6675, section 4, NextSeg: lost segments first, lowest first, and new data when none is left.
/// Never what has arrived.
#[test]
fn only_holes_are_sent_again_and_before_new_data() {
    let mut t = linux().connected();
    t.writes_on().leaves(&all(0..10)).at(ms(100));
    // One acknowledgement tells it all: 0, 4 and 8 are missing.
    t.arrives(ack(0).sack(&[(9, 10), (5, 8), (1, 4)]));
    t.leaves(&[again(0), again(4), again(8), data(10), data(11)]);
    assert_eq!(t.windows(), (5, Some(5)));
}

/// RFC 6675, section 2, "pipe": what arrived or is lost is not in flight, what was sent again is.
#[test]
fn the_pipe_counts_what_is_in_the_network() {
    let mut t = linux().connected();
    t.writes(10).leaves(&all(0..10)).at(ms(100));
    t.arrives(ack(0).sack(&[(5, 7)])).leaves(&[]);
    assert_eq!(t.info().in_flight, 8);
    // Three arrived: the five below are lost, and the first goes out again.
    t.arrives(ack(0).sack(&[(5, 8)])).leaves(&[again(0)]);
    assert_eq!(t.info().in_flight, 10 - 3 - 5 + 1);
}

/// RFC 6675, section 4, IsLost, by which the plain rules find losses: three segments above have
/// arrived. Here three arrived above 0 to 2, and only two above 4.
#[test]
fn by_count_a_segment_is_lost_when_three_above_it_have_arrived() {
    let mut t = rfc().connected();
    t.writes(10).leaves(&all(0..10)).at(ms(100));
    t.arrives(ack(0).sack(&[(3, 4)])).leaves(&[]);
    t.arrives(ack(0).sack(&[(5, 6), (3, 4)])).leaves(&[]);
    t.arrives(ack(0).sack(&[(7, 8), (5, 6), (3, 4)])).leaves(&[again(0)]);
    assert_eq!(t.info().in_flight, 10 - 3 - 3 + 1);
    // By the next one segment 4 is lost, too.
    t.arrives(ack(0).sack(&[(7, 9), (5, 6), (3, 4)])).leaves(&[again(1)]);
    assert_eq!(t.info().in_flight, 10 - 4 - 4 + 2);
}

/// RFC 6675, section 2: "DupThresh ... is set to 3", whatever reordering was seen, which only RACK
/// learns from.
#[test]
fn by_count_three_segments_are_enough_for_good() {
    let mut t = rfc().connected();
    t.writes(10).leaves(&all(0..10)).at(ms(100));
    // Two segments overtake all the others.
    t.answers(ack(0).sack(&[(8, 10)]), &[]);
    t.answers(ack(10), &[]);
    t.writes(10).leaves(&all(10..20)).at(ms(300));
    t.answers(ack(10).sack(&[(11, 14)]), &[again(10)]);
}

/// RFC 6675, section 5.1: by count a lost retransmission is not found before the timeout, which is one
/// second at least (RFC 6298, section 2.4) and starts anew with the retransmission (`rearm_timer` in
/// `tcp_xmit_retransmit_queue`).
#[test]
fn by_count_a_lost_retransmission_waits_for_the_timeout() {
    let mut t = rfc().connected();
    t.writes_on().leaves(&all(0..10)).at(ms(100));
    t.arrives(ack(0).sack(&[(1, 10)])).leaves(&[&[again(0)], &all(10..14)[..]].concat());
    t.at(ms(200));
    for end in 11..=14 {
        t.arrives(ack(0).sack(&[(1, end)]));
        let new: Vec<Line> = vec![data(end + 3)];
        t.leaves(&new);
    }
    t.at(ms(300)).arrives(ack(0).sack(&[(1, 18)])).leaves(&all(18..22));
    t.leaves_at(ms(1_100), &[again(0)]);
    assert_eq!(t.info().counters.timeouts, 1);
}

/// RFC 6937, section 3 (`tcp_cwnd_reduction`): "DeliveredData" is what an acknowledgement newly
/// reports, however many segments that are.
#[test]
fn one_acknowledgement_for_many_segments_sends_as_much_as_many_would() {
    let mut t = flight_of_20(linux());
    t.arrives(ack(0).sack(&[(1, 4)])).leaves(&[again(0), data(20)]);
    assert_eq!((t.info().in_flight, t.info().ssthresh), (18, Some(10)));
    // Six more delivered: ceil(9 * 10 / 20) = 5 in all, of which two have left.
    t.arrives(ack(0).sack(&[(1, 10)])).leaves(&[data(21), data(22), data(23)]);
    assert_eq!(t.info().in_flight, 15);
}
