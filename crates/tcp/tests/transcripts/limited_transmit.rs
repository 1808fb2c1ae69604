//! Limited transmit: RFC 3042.

use crate::line::{ack, again, all, data};
use crate::script::{linux, ms, rfc};

/// RFC 3042, section 2: if "The receiver's advertised window allows the transmission of the segment",
/// the first two duplicate acknowledgements send a new segment each; "The congestion window (cwnd)
/// MUST NOT be changed when these new segments are transmitted."
#[test]
fn the_first_two_duplicates_send_a_new_segment_each() {
    for setup in [linux(), rfc()] {
        let mut t = setup.connected();
        t.writes_on().leaves(&all(0..10)).at(ms(100));
        t.arrives(ack(0).sack(&[(1, 2)])).leaves(&[data(10)]);
        t.arrives(ack(0).sack(&[(1, 3)])).leaves(&[data(11)]);
        assert_eq!(t.windows(), (10, None));
        assert_eq!(t.info().in_flight, 10);
        t.arrives(ack(0).sack(&[(1, 4)])).leaves(&[again(0)]);
    }
}

/// The first two duplicate acknowledgements send a new segment each without SACK, too (RFC 3042, section 2).
#[test]
fn duplicates_without_sack_do_the_same() {
    let mut t = linux().with(|profile| profile.sack = false).connected();
    t.writes_on().leaves(&all(0..10)).at(ms(100));
    t.arrives(ack(0)).leaves(&[data(10)]);
    t.arrives(ack(0)).leaves(&[data(11)]);
    t.arrives(ack(0)).leaves(&[again(0)]);
}

/// Limited transmit does not go beyond the receive window.
#[test]
fn the_receive_window_stops_it() {
    let mut t = linux().peer_window(11_000).connected();
    t.writes_on().leaves(&all(0..10)).at(ms(100));
    t.arrives(ack(0).sack(&[(1, 2)])).leaves(&[data(10)]);
    t.arrives(ack(0).sack(&[(1, 3)])).leaves(&[]);
}

/// Limited transmit needs data at hand.
#[test]
fn it_needs_data() {
    let mut t = linux().connected();
    t.writes(10).leaves(&all(0..10)).at(ms(100));
    t.arrives(ack(0).sack(&[(1, 2)])).leaves(&[]);
    t.arrives(ack(0).sack(&[(1, 3)])).leaves(&[]);
    t.arrives(ack(0).sack(&[(1, 4)])).leaves(&[again(0)]);
}

/// Without it the sender waits for the third duplicate.
#[test]
fn without_it_the_first_two_duplicates_send_nothing() {
    let mut t = linux().with(|profile| profile.limited_transmit = false).connected();
    t.writes_on().leaves(&all(0..10)).at(ms(100));
    t.arrives(ack(0).sack(&[(1, 2)])).leaves(&[]);
    t.arrives(ack(0).sack(&[(1, 3)])).leaves(&[]);
    t.arrives(ack(0).sack(&[(1, 4)])).leaves(&[again(0)]);
}

/// Without limited transmit the sender waits for the time that reordering may take (RFC 8985, section 6.3).
///
/// That holds if fewer than three segments arrived behind the gap.
#[test]
fn without_it_the_reordering_timer_still_runs() {
    let mut t = linux().with(|profile| profile.limited_transmit = false).connected();
    t.writes_on().leaves(&all(0..10)).at(ms(100));
    t.arrives(ack(0).sack(&[(1, 2)])).leaves(&[]);
    t.leaves_at(ms(132), &[again(0)]);
}
