//! Opening a connection, and what is lost while doing so: RFC 9293, section 3.5, and RFC 6298.

use weir_tcp::Timers;

use crate::line::{ack, all, data, syn, syn_ack};
use crate::pair::{End, Pair};
use crate::script::{linux, ms, rfc};

/// RFC 9293, section 3.5: "the principal reason for the three-way handshake is to prevent old duplicate
/// connection initiations from causing confusion".
#[test]
fn three_segments_open_a_connection() {
    let pair = Pair::new(&linux(), ms(20)).client_sends(0).runs_for(ms(1_000));
    pair.reads(
        "
        0 ms client: syn
        20 ms server: syn-ack
        40 ms client: ack 0
        ",
    );
    assert!(pair.client().is_established() && pair.server().is_established());
    // Both ends have measured a round trip: RFC 6298, section 2.2, and Linux' smallest variance, 200
    // ms.
    for end in [pair.client(), pair.server()] {
        assert_eq!(end.info().srtt, Some(ms(40)));
        assert_eq!(end.info().rto, ms(240));
    }
}

/// RFC 9293, section 3.5, figure 6: the client may send data right behind its acknowledgement.
#[test]
fn data_follows_the_acknowledgement_at_once() {
    let mut t = linux().closed();
    t.connects().writes(3).leaves(&[syn()]);
    t.at(ms(40)).arrives(syn_ack()).leaves(&[ack(0), data(0), data(1), data(2)]);
}

/// RFC 6298, section 2.1: before a round trip is measured the timeout is one second; section 5.5
/// doubles it. Linux doubles it only from the fifth SYN on (`tcp_syn_linear_timeouts`). Its timer
/// wheel counts in steps of 8 ticks, 32 ms, from 252 ms on and in steps of 256 ms from 2016 ms on,
/// and rounds up.
#[test]
fn linux_repeats_a_syn_five_times_before_it_waits_longer() {
    let mut t = linux().closed();
    t.connects().leaves(&[syn()]);
    for again in [1_024, 2_048, 3_072, 4_096, 5_120] {
        t.leaves_at(ms(again), &[syn()]);
    }
    // 2 s, 4 s and 8 s by the wheel.
    for again in [7_136, 11_264, 19_456] {
        t.leaves_at(ms(again), &[syn()]);
    }
}

/// RFC 6298, section 5.5: "The host MUST set RTO <- RTO * 2", up to the maximum, which section 2.5
/// wants to be at least 60 s.
#[test]
fn by_the_rfc_each_syn_waits_twice_as_long_as_the_one_before() {
    let mut t = rfc().closed();
    t.connects().leaves(&[syn()]);
    for seconds in [1, 3, 7, 15, 31, 63, 123, 183] {
        t.leaves_at(ms(1_000 * seconds), &[syn()]);
    }
}

/// A SYN-ACK waits twice as long each time; Linux doubles its wait from the start (`reqsk_timer_handler`).
#[test]
fn a_syn_ack_waits_twice_as_long_each_time() {
    let mut t = linux().closed();
    t.listens().arrives(syn()).leaves(&[syn_ack()]);
    for again in [1_024, 3_040, 7_168] {
        t.leaves_at(ms(again), &[syn_ack()]);
    }
}

/// RFC 9293, section 3.10.7.4: a SYN that comes again is answered again. The timer starts anew, but not
/// with a longer time, for it did not expire (`tcp_check_req`).
#[test]
fn a_repeated_syn_is_answered_without_a_longer_wait() {
    let mut t = linux().closed();
    t.listens().arrives(syn()).leaves(&[syn_ack()]);
    t.at(ms(500)).arrives(syn()).leaves(&[syn_ack()]);
    t.leaves_at(ms(1_504), &[syn_ack()]);
    t.leaves_at(ms(3_520), &[syn_ack()]);
}

/// The SYN-ACK is lost: both ends repeat theirs, and what crosses is answered with an acknowledgement
/// (RFC 5961, section 4.2: "irrespective of the sequence number, TCP MUST send an ACK").
#[test]
fn a_lost_syn_ack_is_repeated() {
    let pair = Pair::new(&linux(), ms(20)).loses(End::Server, &[1]).client_sends(0);
    let pair = pair.runs_for(ms(5_000));
    pair.reads(
        "
        0 ms client: syn
        20 ms server: syn-ack, lost
        1024 ms client: syn
        1024 ms server: syn-ack
        1044 ms server: syn-ack
        1044 ms client: ack 0
        1064 ms client: ack 0
        ",
    );
    assert!(pair.client().is_established() && pair.server().is_established());
}

/// The handshake's last acknowledgement is lost, and no data follows: the server repeats its SYN-ACK
/// until it is acknowledged.
#[test]
fn a_lost_last_acknowledgement_is_asked_for_again() {
    let pair = Pair::new(&linux(), ms(20)).loses(End::Client, &[2]).client_sends(0);
    let pair = pair.runs_for(ms(5_000));
    pair.reads(
        "
        0 ms client: syn
        20 ms server: syn-ack
        40 ms client: ack 0, lost
        1024 ms server: syn-ack
        1044 ms client: ack 0
        ",
    );
    assert!(pair.server().is_established());
}

/// RFC 9293, section 3.10.7.4: any acceptable segment with an acknowledgement opens the connection, so
/// that data does in place of a lost acknowledgement.
#[test]
fn data_stands_in_for_a_lost_last_acknowledgement() {
    let pair = Pair::new(&linux(), ms(20)).loses(End::Client, &[2]).client_sends(1);
    let pair = pair.runs_for(ms(5_000));
    pair.reads(
        "
        0 ms client: syn
        20 ms server: syn-ack
        40 ms client: ack 0, lost
        40 ms client: data 0
        60 ms server: ack 1
        ",
    );
    assert_eq!(pair.server().delivered_bytes(), 1_000);
}

/// RFC 7323, section 4.1: the echoed timestamp tells which SYN was answered, and so gives a round trip
/// where Karn's algorithm (RFC 6298, section 3) gives none.
#[test]
fn with_timestamps_a_repeated_syn_still_measures_the_round_trip() {
    let mut t = linux().closed();
    t.connects().leaves(&[syn().stamp(0)]);
    t.leaves_at(ms(1_024), &[syn().stamp(1_024)]);
    t.at(ms(1_124)).arrives(syn_ack().echo(1_024)).leaves(&[ack(0)]);
    assert_eq!(t.info().srtt, Some(ms(100)));
    assert_eq!(t.info().rto, ms(300));
}

/// RFC 6298, section 5.7: "If the timer expires awaiting the ACK of a SYN segment and the TCP
/// implementation is using an RTO less than 3 seconds, the RTO MUST be re-initialized to 3 seconds when
/// data transmission begins".
#[test]
fn without_timestamps_a_repeated_syn_leaves_a_timeout_of_three_seconds() {
    let mut t = linux().with(|profile| profile.timestamps = false).closed();
    t.connects().leaves(&[syn()]);
    t.leaves_at(ms(1_024), &[syn()]);
    t.at(ms(1_124)).arrives(syn_ack()).leaves(&[ack(0)]);
    assert_eq!(t.info().srtt, None);
    assert_eq!(t.info().rto, ms(3_000));
}

/// RFC 6928, section 2: implementations should "refrain from resetting the initial window to 1 segment,
/// unless there have been more than one SYN or SYN/ACK retransmissions" (`tcp_init_transfer`).
#[test]
fn one_lost_syn_leaves_the_initial_window() {
    let mut t = linux().with(|profile| profile.timers = Timers::Exact).closed();
    t.connects().writes(20).leaves(&[syn()]);
    t.leaves_at(ms(1_000), &[syn()]);
    t.at(ms(1_100)).arrives(syn_ack()).leaves(&[&[ack(0)], &all(0..10)[..]].concat());
}

/// Two lost SYNs make the initial window one segment (RFC 6928, section 2: "more than one SYN").
#[test]
fn two_lost_syns_make_the_initial_window_one() {
    let mut t = linux().with(|profile| profile.timers = Timers::Exact).closed();
    t.connects().writes(20).leaves(&[syn()]);
    t.leaves_at(ms(1_000), &[syn()]);
    t.leaves_at(ms(2_000), &[syn()]);
    t.at(ms(2_100)).arrives(syn_ack()).leaves(&[ack(0), data(0)]);
    assert_eq!(t.cwnd(), 1);
}

/// An echo of the first SYN's timestamp says that the later SYNs were needless: the initial window stays.
///
/// RFC 6928, section 2: "or true loss detection has been made" (`tcp_try_undo_spurious_syn`).
#[test]
fn a_late_answer_to_the_first_syn_leaves_the_initial_window() {
    let mut t = linux().with(|profile| profile.timers = Timers::Exact).closed();
    t.connects().writes(20).leaves(&[syn().stamp(0)]);
    t.leaves_at(ms(1_000), &[syn()]);
    t.leaves_at(ms(2_000), &[syn()]);
    let answer = syn_ack().echo(0);
    t.at(ms(2_100)).arrives(answer).leaves(&[&[ack(0)], &all(0..10)[..]].concat());
    assert_eq!(t.info().srtt, Some(ms(2_100)));
}

/// The initial window is one segment if a SYN-ACK was lost twice, at the side that answers.
#[test]
fn two_lost_syn_acks_make_the_initial_window_one() {
    let mut t = linux().with(|profile| profile.timers = Timers::Exact).closed();
    t.listens().arrives(syn()).leaves(&[syn_ack()]);
    t.leaves_at(ms(1_000), &[syn_ack()]);
    t.leaves_at(ms(3_000), &[syn_ack()]);
    t.at(ms(3_100)).arrives(ack(0).echo(3_000)).leaves(&[]);
    t.writes(20).leaves(&[data(0)]);
}

/// SYN-ACKs that only answer repeated SYNs leave the initial window: none of them is known to be lost.
///
/// `tcp_create_openreq_child` looks for timeouts.
#[test]
fn answers_to_repeated_syns_leave_the_initial_window() {
    let mut t = linux().closed();
    t.listens().arrives(syn()).leaves(&[syn_ack()]);
    t.at(ms(500)).arrives(syn()).leaves(&[syn_ack()]);
    t.at(ms(1_000)).arrives(syn()).leaves(&[syn_ack()]);
    t.at(ms(1_100)).arrives(ack(0)).leaves(&[]);
    t.writes(20).leaves(&all(0..10));
}
