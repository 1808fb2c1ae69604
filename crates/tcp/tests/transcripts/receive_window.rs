//! The receiver's window: RFC 9293, section 3.8.6.

use weir_scenario::Overrides;

use crate::line::{ack, all, data};
use crate::script::{Setup, linux, ms, us};

fn offering(bytes: u32) -> Setup {
    let changes = Overrides { receive_window_bytes: Some(bytes), ..Overrides::default() };
    linux().with(|profile| *profile = profile.clone().with(&changes))
}

/// RFC 9293, section 3.4: what is sent lies in front of SND.UNA + SND.WND.
#[test]
fn the_sender_stops_at_the_window() {
    let mut t = linux().peer_window(6_000).connected();
    t.writes_on().leaves(&all(0..6));
    assert_eq!((t.cwnd(), t.info().in_flight), (10, 6));
    t.at(ms(100)).arrives(ack(1)).leaves(&[data(6)]);
    t.arrives(ack(3)).leaves(&[data(7), data(8)]);
}

/// A segment must fit into the receive window as a whole: here half a segment of room is left.
#[test]
fn a_segment_that_does_not_fit_waits() {
    let mut t = linux().peer_window(6_500).connected();
    t.writes_on().leaves(&all(0..6));
    t.at(ms(100)).arrives(ack(0).window(6_999)).leaves(&[]);
    t.arrives(ack(0).window(7_000)).leaves(&[data(6)]);
}

/// RFC 9293, section 3.8.6: a larger window is used as soon as it is heard of.
#[test]
fn a_window_update_lets_the_sender_go_on() {
    let mut t = linux().peer_window(2_000).connected();
    t.writes_on().leaves(&all(0..2));
    t.at(ms(50)).arrives(ack(0).window(5_000)).leaves(&all(2..5));
}

/// RFC 5681, section 3.1, note behind equation 4: while the receive window limits, the congestion
/// window does not "incidentally increase well beyond rwnd" (`tcp_is_cwnd_limited`): to twice of what
/// is in flight.
#[test]
fn the_congestion_window_does_not_run_away_from_the_receive_window() {
    let mut t = linux().peer_window(12_000).connected();
    t.writes_on().leaves(&all(0..10));
    let (mut acked, mut sent) = (0, 10);
    t.at(ms(100));
    while acked < 200 {
        acked += 1;
        let leave = (acked + 12).min(sent + 2);
        t.later(us(500)).arrives(ack(acked)).leaves(&all(sent..leave));
        sent = leave;
    }
    assert_eq!((t.cwnd(), t.info().in_flight), (24, 12));
}

/// The receiving side offers what its profile says; while the application reads at once, always as
/// much.
#[test]
fn a_fixed_window_is_offered_from_the_start() {
    let mut t = offering(20_000).accepted();
    for number in 0..8 {
        t.arrives(data(number)).leaves(&[ack(number + 1).window(20_000)]);
    }
}

/// RFC 9293, section 3.8.6.2.1: what is behind a gap takes room until the gap is filled, but the right
/// edge never moves back.
#[test]
fn data_behind_a_gap_does_not_shrink_the_window() {
    let mut t = offering(20_000).accepted();
    t.arrives(data(0)).leaves(&[ack(1).window(20_000)]);
    t.arrives(data(2)).leaves(&[ack(1).sack(&[(2, 3)]).window(20_000)]);
    t.arrives(data(3)).leaves(&[ack(1).sack(&[(2, 4)]).window(20_000)]);
    t.arrives(data(1)).leaves(&[ack(4).window(20_000)]);
}

/// Linux offers half of a fresh buffer in whole segments (`tcp_select_initial_window`), and lets the buffer follow what the application reads in a round trip
/// (`tcp_rcv_space_adjust`): twice that, 16 segments more, and twice as much again as it grew.
#[test]
fn linux_grows_the_window_with_what_is_read() {
    let mut t = linux().accepted();
    // Twenty segments in each round trip of 100 ms, which is more than the ten that were expected.
    for round in 0..3u32 {
        for nth in 0..20u32 {
            let number = 20 * round + nth;
            t.at_in_passing(ms(100 * u64::from(round)) + us(1_000) * u64::from(nth));
            t.arrives(data(number)).skips();
        }
    }
    // The first round trip counts from the opening, and ends with the segment that arrives 100 ms later:
    // 21 were read, 11 more than expected. So 2 * 21 + 16 segments are wanted, and twice
    // 58 * (21 - 10) / 10 more: 185.6 in all. The one that just arrived takes up room.
    let mut offered = 0;
    for number in 60..160 {
        t.arrives(data(number)).skips();
        offered = offered.max(t.last_window());
    }
    assert_eq!(offered, 184_605);
}

/// A gap that is open when the round trip ends: segment 20 is missing from 100 ms on, and comes when
/// `behind` others wait behind it.
fn window_after_a_gap_of(behind: u32) -> u32 {
    let mut t = linux().accepted();
    for number in 0..20 {
        t.at_in_passing(us(1_000) * u64::from(number)).arrives(data(number)).skips();
    }
    for number in 21..=20 + behind {
        t.at_in_passing(ms(80) + us(100) * u64::from(number)).arrives(data(number)).skips();
    }
    t.at_in_passing(ms(110)).arrives(data(20)).skips();
    let mut offered = 0;
    // Within the next round trip, which therefore changes nothing.
    for number in 21 + behind..400 {
        t.arrives(data(number)).skips();
        offered = offered.max(t.last_window());
    }
    offered
}

/// A segment that fills a gap is joined with what it sets free, 17 segments at most, and the application
/// reads that at once (`tcp_ofo_queue`, `tcp_try_coalesce`): 20 + 17 segments in this round trip, 27 more
/// than expected. Wanted are 2 * 37 + 16, and twice 90 * 27 / 10 more: 576 segments.
#[test]
fn a_filled_gap_that_is_one_piece_is_read_at_once() {
    assert_eq!(window_after_a_gap_of(16), 575_004);
}

/// With one more the segment is read for itself, and what still waits is taken off: 21 - 17 segments, which
/// is less than the 10 expected (`tcp_rcv_space_adjust`). What waits counts in the next round trip.
#[test]
fn a_filled_gap_of_several_pieces_is_read_piece_by_piece() {
    assert_eq!(window_after_a_gap_of(17), 70_173);
}

/// The window grows only as far as the rest of the buffer reaches, of which data behind a gap takes a part.
///
/// (`tcp_grow_window`, `tcp_space`.) A fresh buffer holds 71168 bytes in segments of 1000 and 1832 of memory;
/// two in a row take 2832. When the window is to grow, a segment that arrives in order is counted already,
/// one
/// behind a gap not yet. In the window that is offered, every one is counted.
#[test]
fn the_window_does_not_grow_into_what_waits_behind_a_gap() {
    let mut t = linux().accepted();
    t.arrives(data(0)).leaves(&[ack(1).window(66_536)]);
    for (number, window) in [(2, 68_536), (3, 69_630)] {
        t.arrives(data(number)).skips();
        assert_eq!(t.last_window(), window, "behind segment {number}");
    }
    for number in 4..20 {
        t.later(ms(2)).arrives(data(number)).skips();
        assert_eq!(t.last_window(), 69_630, "behind segment {number}");
    }
}

/// Data of a filled gap lies in the buffer until the application reads it, and is not offered before.
///
/// The application reads after the acknowledgement left. That one offers less, and the next one, of data
/// behind
/// another gap, offers more. So the next one is no duplicate by RFC 5681, section 2 (`tcp_select_window`,
/// `tcp_ack_update_window`).
#[test]
fn what_is_not_read_yet_is_not_offered() {
    let mut t = linux().with(|profile| profile.sack = false).accepted();
    for number in 0..3 {
        t.arrives(data(number)).skips();
    }
    assert_eq!(t.last_window(), 70_173);
    for number in [4, 5, 6, 8] {
        t.arrives(data(number)).leaves(&[ack(3).window(70_173)]);
    }
    // Five segments in two pieces: 131072 - 5 * 1000 - 2 * 832 of memory.
    t.arrives(data(3)).leaves(&[ack(7).window(67_549)]);
    // Two in one piece.
    t.arrives(data(9)).leaves(&[ack(7).window(69_630)]);
    t.arrives(data(10)).leaves(&[ack(7).window(69_630)]);
}

/// RFC 5681, section 2: an acknowledgement whose window differs from the last one's is no duplicate.
/// Without SACK Linux therefore leaves the window as it is while something is missing, which
/// makes duplicates that set off the fast retransmit (`tcp_data_queue_ofo`). With SACK it grows.
#[test]
fn without_sack_data_behind_a_gap_does_not_grow_the_window() {
    for (sack, growth) in [(false, 0), (true, 2 * 1_000)] {
        let mut t = linux().with(|profile| profile.sack = sack).accepted();
        t.arrives(data(0)).skips();
        let before = t.last_window();
        t.arrives(data(2)).skips();
        assert_eq!(t.last_window() - before, growth, "with SACK {sack}");
    }
}

/// Without timestamps the receiver takes the time that a window of data needs to arrive for the round
/// trip (`tcp_rcv_rtt_measure`), and grows the window all the same.
#[test]
fn without_timestamps_the_window_grows_too() {
    let mut t = linux().with(|profile| profile.timestamps = false).accepted();
    for number in 0..66 {
        t.later(us(500)).arrives(data(number)).skips();
    }
    assert_eq!(t.last_window(), 70_173);
    // The window that was offered with the first segment is full: the round trip is known.
    t.later(us(500)).arrives(data(66)).leaves(&[ack(67).window(72_173)]);
    t.later(us(500)).arrives(data(67)).leaves(&[ack(68).window(74_173)]);
}
