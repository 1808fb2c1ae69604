//! The timestamp that is echoed: RFC 7323, section 4.3 (`tcp_replace_ts_recent`).

use weir_tcp::Profile;

use crate::line::{ack, again, all, data, syn, syn_ack};
use crate::script::{Script, linux, ms, rfc};

/// A receiver by the plain rules: every second segment is acknowledged.
fn receiver() -> Script {
    rfc().accepted()
}

/// RFC 7323, section 3.2: the SYN carries a timestamp, the answer echoes it.
#[test]
fn the_answer_to_a_syn_echoes_its_timestamp() {
    let mut t = linux().closed();
    t.at(ms(3)).listens().arrives(syn().stamp(1)).leaves(&[syn_ack().stamp(3).echo(1)]);
}

/// RFC 7323, section 3.2: the answer to a SYN-ACK echoes its timestamp.
#[test]
fn the_answer_to_a_syn_ack_echoes_its_timestamp() {
    let mut t = linux().closed();
    t.at(ms(3)).connects().leaves(&[syn().stamp(3)]);
    t.at(ms(9)).arrives(syn_ack().stamp(6).echo(3)).leaves(&[ack(0).stamp(9).echo(6)]);
}

/// RFC 7323, section 4.3, (A): with delayed acknowledgements "the receiver SHOULD reply with the
/// TSval field from the earliest unacknowledged segment".
#[test]
fn a_delayed_acknowledgement_echoes_the_earliest_segment() {
    let mut t = receiver();
    t.at(ms(10)).arrives(data(0).stamp(1)).leaves(&[]);
    t.at(ms(20)).arrives(data(1).stamp(2)).leaves(&[ack(2).echo(1)]);
    t.at(ms(30)).arrives(data(2).stamp(3)).leaves(&[]);
    t.leaves_at(ms(230), &[ack(3).echo(3)]);
}

/// (B): "A hole in the sequence space": the echo is that of the last segment that advanced it.
#[test]
fn behind_a_gap_the_echo_stays() {
    let mut t = receiver();
    t.at(ms(10)).arrives(data(0).stamp(1));
    t.at(ms(20)).arrives(data(1).stamp(2)).leaves(&[ack(2).echo(1)]);
    t.at(ms(30)).arrives(data(3).stamp(4)).leaves(&[ack(2).sack(&[(3, 4)]).echo(1)]);
    t.at(ms(40)).arrives(data(4).stamp(5)).leaves(&[ack(2).sack(&[(3, 5)]).echo(1)]);
}

/// (C): "A filled hole": the echo is that of the segment that fills it, though others came before.
#[test]
fn what_fills_a_gap_is_echoed() {
    let mut t = receiver();
    t.at(ms(10)).arrives(data(0).stamp(1));
    t.at(ms(20)).arrives(data(1).stamp(2)).leaves(&[ack(2).echo(1)]);
    t.at(ms(30)).arrives(data(3).stamp(4)).leaves(&[ack(2).sack(&[(3, 4)]).echo(1)]);
    t.at(ms(40)).arrives(data(2).stamp(6)).leaves(&[ack(4).echo(6)]);
}

/// RFC 7323, section 4.3, rule 2: only "If: SEG.TSval >= TS.Recent": an old segment changes nothing.
#[test]
fn an_old_duplicate_does_not_turn_the_echo_back() {
    let mut t = receiver();
    t.at(ms(10)).arrives(data(0).stamp(5));
    t.at(ms(20)).arrives(data(1).stamp(6)).leaves(&[ack(2).echo(5)]);
    t.at(ms(30)).arrives(again(0).stamp(3)).leaves(&[ack(2).duplicate(0, 1).echo(5)]);
    t.at(ms(40)).arrives(again(1).stamp(8)).leaves(&[ack(2).duplicate(1, 2).echo(8)]);
}

/// RFC 7323, section 3.2: once negotiated, the option is in every segment, data too.
#[test]
fn data_carries_timestamps() {
    let mut t = linux().connected();
    t.at(ms(7)).writes(1).leaves(&[data(0).stamp(7).echo(0)]);
    t.at(ms(107)).arrives(ack(1).stamp(57)).leaves(&[]);
    t.at(ms(110)).writes(1).leaves(&[data(1).stamp(110).echo(57)]);
}

/// Of several segments that SACK reports at once the one sent first is measured, in whichever order
/// they are reported (`tcp_sacktag_write_queue` sorts them).
#[test]
fn of_several_reported_segments_the_first_is_measured() {
    let mut t = linux().connected();
    t.writes(3).leaves(&all(0..3));
    t.at(ms(40)).writes(3).leaves(&all(3..6));
    t.at(ms(180)).arrives(ack(0).sack(&[(5, 6), (1, 2)])).skips();
    // 7/8 * 100 + 1/8 * 180.
    assert_eq!(t.info().srtt, Some(ms(110)));
}

/// RFC 7323, section 4.1: an acknowledgement of a retransmission is measured by its echo; one of
/// segments sent once is measured by when they were sent, to the microsecond (`tcp_ack_update_rtt`).
#[test]
fn segments_sent_once_are_measured_without_the_echo() {
    let exact = |profile: &mut Profile| profile.timers = weir_tcp::Timers::Exact;
    let mut t = linux().with(exact).connected();
    t.writes(3).leaves(&all(0..3));
    let late = weir_core::Duration::from_micros(180_008);
    t.at(late).arrives(ack(3).echo(0)).leaves(&[]);
    // 7/8 * 100 ms + 1/8 * 180.008 ms.
    assert_eq!(t.info().srtt, Some(weir_core::Duration::from_micros(110_001)));
}
