//! Whole exchanges of two ends, 20 ms apart: how the rules of the other files play together.

use crate::pair::{End, Pair};
use crate::script::{linux, ms, rfc};

/// Linux acknowledges each segment at the start of a connection (`TCP_MAX_QUICKACKS`).
#[test]
fn three_segments_between_linux_ends() {
    let pair = Pair::new(&linux(), ms(20)).client_sends(3).runs_for(ms(10_000));
    pair.reads(
        "
        0 ms client: syn
        20 ms server: syn-ack
        40 ms client: ack 0
        40 ms client: data 0
        40 ms client: data 1
        40 ms client: data 2
        60.01 ms server: ack 1
        60.02 ms server: ack 2
        60.03 ms server: ack 3
        ",
    );
    assert!(pair.client().is_idle());
}

/// RFC 5681, section 4.2: every second segment, and the last one after the delay.
#[test]
fn three_segments_by_the_plain_rules() {
    let pair = Pair::new(&rfc(), ms(20)).client_sends(3).runs_for(ms(10_000));
    pair.reads(
        "
        0 ms client: syn
        20 ms server: syn-ack
        40 ms client: ack 0
        40 ms client: data 0
        40 ms client: data 1
        40 ms client: data 2
        60.02 ms server: ack 2
        260.03 ms server: ack 3
        ",
    );
}

/// The second segment is lost. The third one behind the gap settles it (RFC 8985, section 6.2), and
/// what fills the gap is acknowledged at once (RFC 5681, section 4.2).
#[test]
fn a_loss_in_the_middle_takes_one_round_trip_more() {
    let pair = Pair::new(&linux(), ms(20)).loses_data(End::Client, &[2]).client_sends(12);
    let pair = pair.runs_for(ms(10_000));
    pair.reads(
        "
        0 ms client: syn
        20 ms server: syn-ack
        40 ms client: ack 0
        40 ms client: data 0
        40 ms client: data 1, lost
        40 ms client: data 2
        40 ms client: data 3
        40 ms client: data 4
        40 ms client: data 5
        40 ms client: data 6
        40 ms client: data 7
        40 ms client: data 8
        40 ms client: data 9
        60.01 ms server: ack 1
        60.02 ms server: ack 1 sack 2-3
        60.03 ms server: ack 1 sack 2-4
        60.04 ms server: ack 1 sack 2-5
        60.05 ms server: ack 1 sack 2-6
        60.06 ms server: ack 1 sack 2-7
        60.07 ms server: ack 1 sack 2-8
        60.08 ms server: ack 1 sack 2-9
        60.09 ms server: ack 1 sack 2-10
        80.01 ms client: data 10
        80.01 ms client: data 11
        80.04 ms client: again 1
        100.01 ms server: ack 1 sack 2-11
        100.02 ms server: ack 1 sack 2-12
        100.04 ms server: ack 12
        ",
    );
    assert_eq!(pair.server().delivered_bytes(), 12_000);
    assert_eq!(pair.client().info().ssthresh, Some(5));
}

/// The last segment is lost. With one in flight the probe waits for the timeout (RFC 8985, section
/// 7.2): 240.03 ms, 61 ticks, by the wheel from 80 ms on.
#[test]
fn a_lost_last_segment_is_probed_with() {
    let pair = Pair::new(&linux(), ms(20)).loses_data(End::Client, &[3]).client_sends(3);
    let pair = pair.runs_for(ms(10_000));
    pair.reads(
        "
        0 ms client: syn
        20 ms server: syn-ack
        40 ms client: ack 0
        40 ms client: data 0
        40 ms client: data 1
        40 ms client: data 2, lost
        60.01 ms server: ack 1
        60.02 ms server: ack 2
        328 ms client: again 2
        348 ms server: ack 3
        ",
    );
    assert_eq!(pair.client().info().counters.loss_probes, 1);
    assert_eq!(pair.client().info().counters.timeouts, 0);
}

/// A lost last segment by the plain rules: the timeout (RFC 6298, section 2.4), and a delayed
/// acknowledgement.
#[test]
fn by_the_plain_rules_a_lost_last_segment_takes_a_second() {
    let pair = Pair::new(&rfc(), ms(20)).loses_data(End::Client, &[5]).client_sends(5);
    let pair = pair.runs_for(ms(10_000));
    pair.reads(
        "
        0 ms client: syn
        20 ms server: syn-ack
        40 ms client: ack 0
        40 ms client: data 0
        40 ms client: data 1
        40 ms client: data 2
        40 ms client: data 3
        40 ms client: data 4, lost
        60.02 ms server: ack 2
        60.04 ms server: ack 4
        1080.04 ms client: again 4
        1300.04 ms server: ack 5
        ",
    );
    assert_eq!(pair.client().info().counters.timeouts, 1);
}

/// The whole flight is lost: a probe after two round trips and 2 ms (RFC 8985, section 7.2), whose
/// answer shows the losses; then as many segments as the answers allow (RFC 6937), two for the first
/// in order.
#[test]
fn a_lost_flight_is_recovered_without_a_timeout() {
    let pair = Pair::new(&linux(), ms(20)).loses_data(End::Client, &[1, 2, 3, 4]).client_sends(4);
    let pair = pair.runs_for(ms(10_000));
    pair.reads(
        "
        0 ms client: syn
        20 ms server: syn-ack
        40 ms client: ack 0
        40 ms client: data 0, lost
        40 ms client: data 1, lost
        40 ms client: data 2, lost
        40 ms client: data 3, lost
        128 ms client: again 3
        148 ms server: ack 0 sack 3-4
        168 ms client: again 0
        188 ms server: ack 1 sack 3-4
        208 ms client: again 1
        208 ms client: again 2
        228 ms server: ack 2 sack 3-4
        228.01 ms server: ack 4
        ",
    );
    assert_eq!(pair.client().info().counters.timeouts, 0);
}

/// A lost acknowledgement is made up for by the next one (RFC 9293, section 3.4: they are
/// cumulative); the last one is not: the probe brings a report of its duplicate (RFC 2883).
#[test]
fn a_lost_acknowledgement_costs_nothing_unless_it_is_the_last() {
    let pair = Pair::new(&linux(), ms(20)).loses(End::Server, &[3, 5]).client_sends(4);
    let pair = pair.runs_for(ms(10_000));
    pair.reads(
        "
        0 ms client: syn
        20 ms server: syn-ack
        40 ms client: ack 0
        40 ms client: data 0
        40 ms client: data 1
        40 ms client: data 2
        40 ms client: data 3
        60.01 ms server: ack 1
        60.02 ms server: ack 2, lost
        60.03 ms server: ack 3
        60.04 ms server: ack 4, lost
        328 ms client: again 3
        348 ms server: ack 4 duplicate 3-4
        ",
    );
    assert_eq!(pair.client().info().ssthresh, None);
}

/// The probe is lost as well: the timeout follows, with the window at one segment (RFC 5681, section
/// 3.1). From 328 ms on it waits for 61 ticks again, and 122 after that.
#[test]
fn a_lost_probe_is_followed_by_timeouts() {
    let pair = Pair::new(&linux(), ms(20)).loses_data(End::Client, &[3, 4, 5]).client_sends(3);
    let pair = pair.runs_for(ms(10_000));
    pair.reads(
        "
        0 ms client: syn
        20 ms server: syn-ack
        40 ms client: ack 0
        40 ms client: data 0
        40 ms client: data 1
        40 ms client: data 2, lost
        60.01 ms server: ack 1
        60.02 ms server: ack 2
        328 ms client: again 2, lost
        576 ms client: again 2, lost
        1088 ms client: again 2
        1108 ms server: ack 3
        ",
    );
    let info = pair.client().info();
    assert_eq!((info.counters.loss_probes, info.counters.timeouts), (1, 2));
    assert_eq!((info.cwnd, info.ssthresh), (2, Some(5)));
}
