//! Explicit congestion notification: RFC 3168, section 6.1.

use weir_core::Ecn;
use weir_tcp::WindowRule;

use crate::line::{Line, ack, again, all, data, syn, syn_ack};
use crate::script::{Script, Setup, linux, ms, rfc};

fn ecn() -> Setup {
    linux().with(|profile| profile.ecn = true)
}

/// A sender whose peer agreed to ECN; its answer arrives at the start of the script.
pub fn sender(setup: Setup) -> Script {
    let mut t = setup.closed();
    t.connects().leaves(&[syn().ece().cwr()]);
    t.at(ms(100)).arrives(syn_ack().ece()).leaves(&[ack(0)]);
    t
}

/// A receiver that agreed to ECN, behind the start where everything is acknowledged at once.
pub fn receiver(setup: Setup) -> Script {
    let mut t = setup
        .with(|profile| {
            profile.receive_window = WindowRule::Fixed(60_000);
        })
        .closed();
    t.listens().arrives(syn().ece().cwr()).leaves(&[syn_ack().ece()]);
    t.at(ms(100)).arrives(ack(0));
    for number in 0..16 {
        t.arrives(data(number).ecn(Ecn::Ect0)).leaves(&[ack(number + 1)]);
    }
    t
}

/// RFC 3168, section 6.1.1: an "ECN-setup SYN packet" has both flags, an "ECN-setup SYN-ACK packet"
/// only ECE; and "A host MUST NOT set ECT on SYN or SYN-ACK packets".
#[test]
fn the_handshake_agrees_on_ecn() {
    let mut t = ecn().closed();
    t.connects().leaves(&[syn().ece().cwr().ecn(Ecn::NotEct)]);
    t.at(ms(100)).arrives(syn_ack().ece()).leaves(&[ack(0).ecn(Ecn::NotEct)]);
    t.writes(1).leaves(&[data(0).ecn(Ecn::Ect0)]);
}

/// RFC 3168, section 6.1.1, at the side that answers: the SYN-ACK carries ECE only, and no ECT.
#[test]
fn the_answer_agrees_on_ecn() {
    let mut t = ecn().closed();
    t.listens().arrives(syn().ece().cwr()).leaves(&[syn_ack().ece().ecn(Ecn::NotEct)]);
    t.at(ms(100)).arrives(ack(0)).leaves(&[]);
    t.writes(1).leaves(&[data(0).ecn(Ecn::Ect0)]);
}

/// RFC 3168, section 6.1.1: "If a host has received at least one non-ECN-setup SYN or non-ECN-setup
/// SYN-ACK packet, then it SHOULD NOT set ECT on data packets." The same goes for an answer that
/// merely mirrors the flags.
#[test]
fn a_peer_without_ecn_gets_none() {
    for answer in [syn_ack(), syn_ack().ece().cwr()] {
        let mut t = ecn().closed();
        t.connects().leaves(&[syn().ece().cwr()]);
        t.at(ms(100)).arrives(answer).leaves(&[ack(0)]);
        t.writes(1).leaves(&[data(0).ecn(Ecn::NotEct)]);
    }
    for request in [syn(), syn().ece(), syn().cwr()] {
        let mut t = ecn().closed();
        t.listens().arrives(request).leaves(&[syn_ack()]);
        t.at(ms(100)).arrives(ack(0)).leaves(&[]);
        t.writes(1).leaves(&[data(0).ecn(Ecn::NotEct)]);
    }
}

/// Nor does one that asks get it from a host that does not want it.
#[test]
fn a_host_without_ecn_does_not_agree() {
    let mut t = linux().closed();
    t.listens().arrives(syn().ece().cwr()).leaves(&[syn_ack()]);
}

/// RFC 3168, section 6.1.1.1: a SYN that is repeated may go "with CWR and ECE cleared", in case the
/// flags were why the first was lost. Linux does so (`tcp_ecn_clear_syn`), and goes by the answer.
#[test]
fn a_repeated_syn_does_not_ask_again() {
    let mut t = ecn().closed();
    t.connects().leaves(&[syn().ece().cwr()]);
    t.leaves_at(ms(1_024), &[syn()]);
    // The first one was only late.
    t.at(ms(1_030)).arrives(syn_ack().ece().echo(0)).leaves(&[ack(0)]);
    t.writes(1).leaves(&[data(0).ecn(Ecn::Ect0)]);
}

/// A repeated SYN may ask for ECN again: "A host MUST NOT set ECT on data packets unless ... [it] has sent no
/// non-ECN-setup SYN" (RFC 3168, section 6.1.1).
#[test]
fn by_the_plain_rules_a_repeated_syn_asks_again() {
    let mut t = rfc().with(|profile| profile.ecn = true).closed();
    t.connects().leaves(&[syn().ece().cwr()]);
    t.leaves_at(ms(1_000), &[syn().ece().cwr()]);
}

/// RFC 3168, section 6.1.4: pure acknowledgements are not ECN-capable; section 6.1.5: nor are
/// retransmissions.
#[test]
fn acknowledgements_and_retransmissions_are_not_ecn_capable() {
    let mut t = sender(ecn());
    t.writes_on().leaves(&all_ect(0..10));
    t.at(ms(200)).arrives(ack(0).sack(&[(1, 4)]));
    t.leaves(&[again(0).ecn(Ecn::NotEct), data(10).ecn(Ecn::Ect0).cwr()]);
    t.arrives(data(0)).leaves(&[ack(1).ecn(Ecn::NotEct)]);
}

/// RFC 3168, section 6.1.3: "when TCP receives a CE data packet at the destination end-system, the
/// TCP data receiver sets the ECN-Echo flag in the TCP header of the subsequent ACK packet", of each
/// "until it receives a CWR packet". The mark ends the delay of acknowledgements
/// (`tcp_enter_quickack_mode`).
#[test]
fn a_mark_is_echoed_until_the_sender_has_reduced_its_window() {
    let mut t = receiver(ecn());
    t.arrives(data(16).ecn(Ecn::Ce)).leaves(&[ack(17).ece()]);
    t.arrives(data(17).ecn(Ecn::Ect0)).leaves(&[ack(18).ece()]);
    t.arrives(data(18).ecn(Ecn::Ect0)).leaves(&[]);
    t.arrives(data(19).ecn(Ecn::Ce)).leaves(&[ack(20).ece()]);
    // The answer to the sender's notice comes at once (`tcp_ecn_accept_cwr`).
    t.arrives(data(20).ecn(Ecn::Ect0).cwr()).leaves(&[ack(21)]);
    t.arrives(data(21).ecn(Ecn::Ect0)).leaves(&[]);
    t.arrives(data(22).ecn(Ecn::Ect0)).leaves(&[ack(23)]);
}

/// RFC 3168, section 6.1.3: a notice on a segment that is marked itself ends one echo and starts
/// another.
#[test]
fn a_marked_notice_is_echoed_again() {
    let mut t = receiver(ecn());
    t.arrives(data(16).ecn(Ecn::Ce)).leaves(&[ack(17).ece()]);
    t.arrives(data(17).ecn(Ecn::Ce).cwr()).leaves(&[ack(18).ece()]);
}

/// A segment that is not ECN-capable is a retransmission, whose sender waits for an answer: two
/// acknowledgements at once (`__tcp_ecn_check_ce`).
#[test]
fn a_segment_that_is_not_ecn_capable_is_answered_at_once() {
    let mut t = receiver(ecn());
    t.arrives(data(16).ecn(Ecn::NotEct)).leaves(&[ack(17)]);
    t.arrives(data(17).ecn(Ecn::Ect0)).leaves(&[ack(18)]);
    t.arrives(data(18).ecn(Ecn::Ect0)).leaves(&[]);
}

/// RFC 3168, section 6.1.2: the sender reduces its window as for a loss, and "the CWR flag in the TCP
/// header of the first new data packet sent after the window reduction" says so. The reduction is
/// spread over the round trip (RFC 6937): a segment leaves for every second acknowledgement.
#[test]
fn an_echo_halves_the_window_over_a_round_trip() {
    let mut t = sender(ecn());
    t.writes_on().leaves(&all_ect(0..10));
    t.at(ms(200)).arrives(ack(1).ece()).leaves(&[data(10).cwr().ecn(Ecn::Ect0)]);
    assert_eq!(t.info().ssthresh, Some(5));
    t.arrives(ack(2).ece()).leaves(&[]);
    t.arrives(ack(3).ece()).leaves(&[data(11)]);
    t.arrives(ack(4).ece()).leaves(&[]);
    t.arrives(ack(5).ece()).leaves(&[data(12)]);
    t.arrives(ack(6).ece()).leaves(&[]);
    t.arrives(ack(7).ece()).leaves(&[data(13)]);
    t.arrives(ack(8).ece()).leaves(&[]);
    // Five are in flight, as many as the threshold, and so it stays.
    t.arrives(ack(9).ece()).leaves(&[]);
    assert_eq!(t.info().in_flight, 5);
    t.arrives(ack(10).ece()).leaves(&[data(14)]);
    assert_eq!(t.windows(), (5, Some(5)));
    assert_eq!(t.info().counters.ecn_reductions, 1);
    assert_eq!(t.info().counters.segments_retransmitted, 0);
}

/// RFC 3168, section 6.1.2: "TCP should not react to congestion indications more than once every
/// window of data (or more loosely, more than once every round-trip time)".
#[test]
fn the_window_is_reduced_once_a_round_trip() {
    let mut t = sender(ecn());
    t.writes_on().leaves(&all_ect(0..10));
    t.at(ms(200)).arrives(ack(10).ece()).leaves(&[&[data(10).cwr()], &all(11..15)[..]].concat());
    assert_eq!((t.info().ssthresh, t.info().counters.ecn_reductions), (Some(5), 1));
    // Everything up to the reduction is acknowledged, and still the echo is the old one.
    t.at(ms(300)).arrives(ack(10).ece()).leaves(&[]);
    assert_eq!(t.info().counters.ecn_reductions, 1);
    // Beyond it a new echo is a new congestion.
    t.arrives(ack(11).ece()).leaves(&[data(15).cwr()]);
    assert_eq!((t.info().ssthresh, t.info().counters.ecn_reductions), (Some(2), 2));
}

/// RFC 3168, section 6.1.2: without an echo growth goes on after the round trip, from the threshold.
#[test]
fn after_a_reduction_the_window_grows_again() {
    let mut t = sender(ecn());
    t.writes_on().leaves(&all_ect(0..10));
    t.at(ms(200)).arrives(ack(10).ece()).leaves(&[&[data(10).cwr()], &all(11..15)[..]].concat());
    t.at(ms(300));
    t.arrives(ack(11)).leaves(&[data(15)]);
    assert_eq!(t.windows(), (5, Some(5)));
    t.arrives(ack(15)).leaves(&all(16..21));
    assert_eq!(t.windows(), (6, Some(5)));
}

/// RFC 3168, section 6.1.5 and 6.1.2: a timeout is congestion like any other, and the next new
/// segment says that the window was reduced.
#[test]
fn new_data_after_a_timeout_says_that_the_window_was_reduced() {
    let mut t = sender(ecn().with(|profile| profile.tail_loss_probe = false));
    t.writes_on().leaves(&all_ect(0..10));
    t.leaves_at(ms(416), &[again(0).ecn(Ecn::NotEct)]);
    let first = data(10).cwr().ecn(Ecn::Ect0);
    t.at(ms(516)).arrives(ack(1)).leaves(&[first, data(11)]);
}

fn all_ect(numbers: std::ops::Range<u32>) -> Vec<Line> {
    numbers.map(|number| data(number).ecn(Ecn::Ect0)).collect()
}

/// A mark during recovery is congestion for certain: the reduction stays, even if the retransmission
/// turns out to have been needless (`tcp_fastretrans_alert`).
#[test]
fn a_mark_during_recovery_forbids_to_take_it_back() {
    for (mark, windows) in [(false, (10, None)), (true, (5, Some(5)))] {
        let mut t = sender(ecn().with(|profile| profile.timestamps = false));
        t.writes(10).leaves(&all_ect(0..10));
        t.at(ms(200)).arrives(ack(0).sack(&[(1, 9)])).leaves(&[again(0)]);
        let answer = ack(0).sack(&[(1, 10)]);
        t.at(ms(201)).arrives(if mark { answer.ece() } else { answer }).leaves(&[]);
        t.at(ms(300)).arrives(ack(10)).leaves(&[]);
        t.at(ms(301)).arrives(ack(10).duplicate(0, 1)).leaves(&[]);
        assert_eq!(t.windows(), windows, "marked: {mark}");
    }
}

/// The first segment that says that the sender can do ECN may itself be marked.
#[test]
fn a_marked_segment_shows_that_the_sender_can_do_ecn() {
    let mut t = ecn().closed();
    t.listens().arrives(syn().ece().cwr()).leaves(&[syn_ack().ece()]);
    t.at(ms(100)).arrives(ack(0));
    t.arrives(data(0).ecn(Ecn::Ce)).leaves(&[ack(1).ece()]);
    for number in 1..40 {
        t.later(ms(1)).arrives(data(number).ecn(Ecn::NotEct)).leaves(&[ack(number + 1).ece()]);
    }
}
