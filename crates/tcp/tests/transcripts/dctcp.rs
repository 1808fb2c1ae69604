//! DCTCP: RFC 8257, as Linux has it (`net/ipv4/tcp_dctcp.c`).

use weir_core::Ecn;

use crate::ecn::{receiver, sender};
use crate::line::{Line, ack, again, data, syn, syn_ack};
use crate::script::{Setup, linux, ms};

fn dctcp() -> Setup {
    linux().algorithm("dctcp")
}

/// RFC 8257, section 3.1 and 5: it asks for ECN whatever the settings say, and all its packets are ECN-capable,
/// acknowledgements and retransmissions too (`tcp_ca_needs_ecn`).
#[test]
fn it_asks_for_ecn_and_everything_is_ecn_capable() {
    let mut t = dctcp().closed();
    t.connects().leaves(&[syn().ece().cwr().ecn(Ecn::Ect0)]);
    t.at(ms(100)).arrives(syn_ack().ece()).leaves(&[ack(0).ecn(Ecn::Ect0)]);
    t.writes(4).skips();
    t.at(ms(200)).arrives(ack(0).sack(&[(1, 4)])).leaves(&[again(0).ecn(Ecn::Ect0)]);
}

/// A peer without ECN gets Reno, without codepoints (`dctcp_reno`).
#[test]
fn without_ecn_it_is_reno() {
    let mut t = dctcp().closed();
    t.connects().skips();
    t.at(ms(100)).arrives(syn_ack()).leaves(&[ack(0).ecn(Ecn::NotEct)]);
    t.writes_on().skips();
    t.at(ms(200)).arrives(ack(0).sack(&[(1, 10)])).skips();
    assert_eq!(t.info().ssthresh, Some(5));
}

/// RFC 8257, section 3.2: the receiver's echo says of each segment whether it was marked. Where that changes, a
/// delayed acknowledgement leaves first, with the echo of what it acknowledges; then the segment's own.
#[test]
fn each_mark_is_echoed_once() {
    let mut t = receiver(dctcp());
    t.arrives(data(16).ecn(Ecn::Ect0)).leaves(&[]);
    t.arrives(data(17).ecn(Ecn::Ce)).leaves(&[ack(17), ack(18).ece()]);
    t.arrives(data(18).ecn(Ecn::Ce)).leaves(&[]);
    t.arrives(data(19).ecn(Ecn::Ce)).leaves(&[ack(20).ece()]);
    t.arrives(data(20).ecn(Ecn::Ce)).leaves(&[]);
    t.arrives(data(21).ecn(Ecn::Ect0)).leaves(&[ack(21).ece(), ack(22)]);
    t.arrives(data(22).ecn(Ecn::Ect0)).leaves(&[]);
    t.arrives(data(23).ecn(Ecn::Ect0)).leaves(&[ack(24)]);
}

/// RFC 8257, section 3.2: the sender's notice ends no echo, which goes by the marks alone.
#[test]
fn a_notice_ends_no_echo() {
    let mut t = receiver(dctcp());
    t.arrives(data(16).ecn(Ecn::Ce)).leaves(&[ack(17).ece()]);
    t.arrives(data(17).ecn(Ecn::Ce).cwr()).leaves(&[ack(18).ece()]);
    t.arrives(data(18).ecn(Ecn::Ect0)).leaves(&[ack(19)]);
}

/// Ten segments, all marked, and then rounds without marks: the share of marked segments starts at one, and
/// each round trip without takes a sixteenth off (RFC 8257, section 3.3).
#[test]
fn the_window_is_reduced_by_half_the_share_of_marked_segments() {
    let mut t = sender(dctcp());
    t.writes_on().skips();
    // All counts as marked at first, less a sixteenth for the round trip in which nothing was sent: 47 %.
    t.at(ms(200)).arrives(ack(10).ece()).skips();
    assert_eq!(t.info().ssthresh, Some(6));
    t.all_arrive(ms(300), |line| line);
    assert_eq!(t.info().counters.ecn_reductions, 1);
    let mut at = 400;
    while t.cwnd() < 40 {
        t.all_arrive(ms(at), |line| line);
        at += 100;
    }
    let cwnd = t.cwnd();
    t.all_arrive(ms(at), Line::ece);
    let ssthresh = t.info().ssthresh.expect("a reduction");
    // Some 35 round trips without marks leave a tenth of the share, and a twentieth of the window goes.
    let cut = f64::from(cwnd - ssthresh) / f64::from(cwnd);
    assert!((0.02..0.08).contains(&cut), "{ssthresh} of {cwnd} after {at} ms");
}

/// RFC 8257, section 3.5: a loss halves the window, whatever the share of marks.
#[test]
fn a_loss_halves_the_window() {
    let mut t = sender(dctcp());
    t.writes_on().skips();
    for at in (200..1_000).step_by(100) {
        t.all_arrive(ms(at), |line| line);
    }
    let (first, next, cwnd) = (t.next() - t.info().in_flight, t.next(), t.cwnd());
    t.at(ms(1_000)).arrives(ack(first).sack(&[(first + 1, next)])).skips();
    assert_eq!(t.info().ssthresh, Some(cwnd / 2));
}
