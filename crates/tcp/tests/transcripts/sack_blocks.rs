//! Reports of a receiver: SACK blocks, RFC 2018, and duplicates, RFC 2883
//! (`tcp_sack_new_ofo_skb`, `tcp_dsack_set`).

use weir_tcp::{DelayedAck, Profile, WindowRule};

use crate::line::{ack, again, data};
use crate::script::{Script, linux, ms, us};

/// A receiver that acknowledges every segment and has got the first four.
fn receiver(change: impl FnOnce(&mut Profile)) -> Script {
    let at_once = |profile: &mut Profile| profile.delayed_ack = DelayedAck::Never;
    let mut t = linux().with(at_once).with(change).accepted();
    for number in 0..4 {
        t.arrives(data(number)).leaves(&[ack(number + 1)]);
    }
    t
}

/// RFC 2018, section 4: "The first SACK block ... MUST specify the contiguous block of data
/// containing the segment which triggered this ACK".
#[test]
fn the_block_that_grew_last_comes_first() {
    let mut t = receiver(|_| ());
    t.arrives(data(5)).leaves(&[ack(4).sack(&[(5, 6)])]);
    t.arrives(data(7)).leaves(&[ack(4).sack(&[(7, 8), (5, 6)])]);
    t.arrives(data(9)).leaves(&[ack(4).sack(&[(9, 10), (7, 8), (5, 6)])]);
    t.arrives(data(6)).leaves(&[ack(4).sack(&[(5, 8), (9, 10)])]);
    t.arrives(data(10)).leaves(&[ack(4).sack(&[(9, 11), (5, 8)])]);
    t.arrives(data(8)).leaves(&[ack(4).sack(&[(5, 11)])]);
}

/// RFC 2018, section 4: "The SACK option SHOULD be filled out by repeating the most recently reported
/// SACK blocks". With timestamps there is room for three (RFC 2018, section 3), ...
#[test]
fn three_blocks_fit_beside_timestamps() {
    let mut t = receiver(|_| ());
    t.arrives(data(5)).leaves(&[ack(4).sack(&[(5, 6)])]);
    t.arrives(data(7)).leaves(&[ack(4).sack(&[(7, 8), (5, 6)])]);
    t.arrives(data(9)).leaves(&[ack(4).sack(&[(9, 10), (7, 8), (5, 6)])]);
    t.arrives(data(11)).leaves(&[ack(4).sack(&[(11, 12), (9, 10), (7, 8)])]);
    t.arrives(data(13)).leaves(&[ack(4).sack(&[(13, 14), (11, 12), (9, 10)])]);
}

/// Without timestamps there is room for four SACK blocks (RFC 2018, section 3).
#[test]
fn four_blocks_fit_without_timestamps() {
    let mut t = receiver(|profile| profile.timestamps = false);
    for number in [5, 7, 9] {
        t.arrives(data(number));
    }
    t.skips();
    t.arrives(data(11)).leaves(&[ack(4).sack(&[(11, 12), (9, 10), (7, 8), (5, 6)])]);
    t.arrives(data(13)).leaves(&[ack(4).sack(&[(13, 14), (11, 12), (9, 10), (7, 8)])]);
}

/// RFC 2018, section 4: what is acknowledged in order is no longer reported.
#[test]
fn a_filled_gap_ends_its_block() {
    let mut t = receiver(|_| ());
    t.arrives(data(5)).leaves(&[ack(4).sack(&[(5, 6)])]);
    t.arrives(data(8)).leaves(&[ack(4).sack(&[(8, 9), (5, 6)])]);
    t.arrives(data(4)).leaves(&[ack(6).sack(&[(8, 9)])]);
    t.arrives(data(6)).leaves(&[ack(7).sack(&[(8, 9)])]);
    t.arrives(data(7)).leaves(&[ack(9)]);
}

/// RFC 2883, section 4: the first block reports a duplicate, and "Each duplicate contiguous sequence
/// of data received is reported in at most one D-SACK block."
#[test]
fn a_duplicate_is_reported_once() {
    let mut t = receiver(|_| ());
    t.arrives(again(2)).leaves(&[ack(4).duplicate(2, 3)]);
    t.arrives(data(4)).leaves(&[ack(5)]);
}

/// RFC 2883, section 4.2: a duplicate above the gap is followed by the block that holds it.
#[test]
fn a_duplicate_above_the_gap_is_followed_by_its_block() {
    let mut t = receiver(|_| ());
    t.arrives(data(7)).leaves(&[ack(4).sack(&[(7, 8)])]);
    t.arrives(data(5)).leaves(&[ack(4).sack(&[(5, 6), (7, 8)])]);
    t.arrives(again(7)).leaves(&[ack(4).duplicate(7, 8).sack(&[(7, 8), (5, 6)])]);
}

/// A report of a duplicate takes the place of one of the three SACK blocks.
#[test]
fn a_duplicate_takes_the_place_of_a_block() {
    let mut t = receiver(|_| ());
    for number in [5, 7, 9] {
        t.arrives(data(number));
    }
    t.skips();
    t.arrives(again(1)).leaves(&[ack(4).duplicate(1, 2).sack(&[(9, 10), (7, 8)])]);
}

/// Without SACK a gap is answered by repeating the acknowledgement.
#[test]
fn without_sack_nothing_is_reported() {
    let mut t = receiver(|profile| profile.sack = false);
    t.arrives(data(5)).leaves(&[ack(4)]);
    t.arrives(data(6)).leaves(&[ack(4)]);
    t.arrives(again(1)).leaves(&[ack(4)]);
    t.arrives(data(4)).leaves(&[ack(7)]);
}

/// A third block could crowd out one that a compressed acknowledgement has not reported yet; so that is
/// sent first (`TCP_SACK_BLOCKS_EXPECTED`).
#[test]
fn a_third_block_ends_the_compression() {
    let mut t = linux()
        .with(|profile| {
            profile.receive_window = WindowRule::Fixed(60_000);
        })
        .accepted();
    for number in 0..16 {
        t.arrives(data(number));
    }
    t.skips().at(ms(100));
    for number in 17..20 {
        t.arrives(data(number)).leaves(&[ack(16).sack(&[(17, number + 1)])]);
    }
    // A second block is held back with the first, ...
    t.later(us(10)).arrives(data(21)).leaves(&[]);
    t.later(us(10)).arrives(data(22)).leaves(&[]);
    // ... a third is not: what was held back leaves, and the third one waits in its place.
    t.later(us(10)).arrives(data(24)).leaves(&[ack(16).sack(&[(21, 23), (17, 20)])]);
    t.leaves_at(us(101_130), &[ack(16).sack(&[(24, 25), (21, 23), (17, 20)])]);
    // What fills a part of the gap is acknowledged, and takes along what is held back.
    t.at(ms(102)).arrives(data(25)).leaves(&[]);
    t.at(us(102_500)).arrives(data(16)).leaves(&[ack(20).sack(&[(24, 26), (21, 23)])]);
}
