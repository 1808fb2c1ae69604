//! Effects of a pause on the congestion window: RFC 5681, section 4.1, RFC 2861 and RFC 7661.

use crate::line::{ack, again, all};
use crate::script::{Script, Setup, linux, ms, ns, rfc};

/// A flow in slow start with a window of 40, of which nothing is in flight any more: it sent last at
/// 100 ms, and its timeout is `rto` ms.
fn idle(setup: Setup, rto: u64) -> Script {
    let mut t = setup.connected();
    t.writes(30).leaves(&all(0..10));
    t.at(ms(100)).arrives(ack(10)).leaves(&all(10..30));
    t.at(ms(200)).arrives(ack(30)).leaves(&[]);
    assert_eq!(t.windows(), (40, None));
    assert_eq!(t.info().rto, ms(rto));
    t
}

/// RFC 5681, section 4.1: "a TCP SHOULD set cwnd to no more than RW before beginning transmission if
/// the TCP has not sent data in an interval exceeding the retransmission timeout", with RW = min (IW,
/// cwnd).
#[test]
fn by_the_rfc_a_pause_of_a_timeout_brings_the_initial_window_back() {
    for (resumes, window) in [(ms(1_100), 40), (ms(1_101), 10)] {
        let mut t = idle(rfc(), 1_000);
        t.at(resumes).writes(40).leaves(&all(30..30 + window));
        assert_eq!(t.windows(), (window, None));
    }
}

/// RFC 2861, section 3.2: Linux halves the window for each timeout of the pause, down to the initial
/// window (`tcp_cwnd_restart`). It counts in ticks of 4 ms.
#[test]
fn in_linux_each_timeout_of_a_pause_halves_the_window() {
    for (resumes, window) in [
        (ms(404) - ns(1), 40),
        (ms(404), 20),
        (ms(704) - ns(1), 20),
        (ms(704), 10),
        (ms(5_000), 10),
    ] {
        let mut t = idle(linux(), 300);
        t.at(resumes).writes(40).leaves(&all(30..30 + window));
        assert_eq!(t.windows(), (window, None), "at {resumes:?}");
    }
}

/// RFC 2861, section 3.1: the threshold remembers three quarters of the old window, so that slow start
/// finds back quickly.
#[test]
fn the_threshold_remembers_the_old_window() {
    let mut t = linux().connected();
    t.writes(30).leaves(&all(0..10));
    t.at(ms(100)).arrives(ack(10)).leaves(&all(10..30));
    // One of the twenty is lost: the window is 20 behind that.
    t.at(ms(200)).arrives(ack(10).sack(&[(11, 30)])).skips();
    t.at(ms(300)).arrives(ack(30)).leaves(&[]);
    assert_eq!(t.windows(), (10, Some(10)));
    for window in 10..20 {
        grow_by_a_window(&mut t, window);
    }
    assert_eq!(t.windows(), (20, Some(10)));
    t.later(ms(1_000)).writes(30).skips();
    assert_eq!(t.windows(), (10, Some(15)));
}

/// A window of `window` segments is sent and acknowledged.
fn grow_by_a_window(t: &mut Script, window: u32) {
    let first = t.next();
    t.writes(window).leaves(&all(first..first + window));
    t.later(ms(100)).arrives(ack(first + window)).leaves(&[]);
}

/// The pause counts from the last segment that left, a retransmission too (`lsndtime` in
/// `tcp_event_data_sent`).
#[test]
fn a_retransmission_ends_a_pause() {
    let mut t = linux().connected();
    t.writes(30).leaves(&all(0..10));
    t.at(ms(100)).arrives(ack(10)).leaves(&all(10..30));
    t.at(ms(200)).arrives(ack(29)).leaves(&[]);
    t.leaves_at(ms(512), &[again(29)]);
    t.at(ms(612)).arrives(ack(30)).leaves(&[]);
    assert_eq!(t.cwnd(), 40);
    // Behind 388 ms the window is halved once; behind 800 ms it would be ten.
    t.at(ms(900)).writes(40).leaves(&all(30..50));
}

/// A flow that sends little, but goes on doing so, keeps its window: each acknowledgement confirms it
/// (`snd_cwnd_stamp` in `tcp_cong_avoid`).
#[test]
fn a_flow_that_sends_little_keeps_its_window() {
    let mut t = idle(linux(), 300);
    for round in 0..30 {
        let first = 30 + 5 * round;
        t.writes(5).leaves(&all(first..first + 5));
        t.later(ms(100)).arrives(ack(first + 5)).leaves(&[]);
        assert_eq!(t.windows(), (40, None));
    }
}

/// RFC 5681, section 4.1 looks at when data was sent, and a pause behind outstanding data is none.
#[test]
fn a_pause_with_data_outstanding_is_none() {
    let mut t = linux()
        .with(|profile| {
            profile.tail_loss_probe = false;
            profile.rto_min = ms(2_000);
        })
        .connected();
    t.writes(30).leaves(&all(0..10));
    t.at(ms(100)).arrives(ack(10)).leaves(&all(10..30));
    t.at(ms(200)).arrives(ack(29)).leaves(&[]);
    assert_eq!(t.cwnd(), 39);
    t.at(ms(2_000)).writes(38).leaves(&all(30..68));
}

/// RFC 2861, section 3.2: a window of which only a part was used for a whole timeout shrinks by half
/// of the rest, but the initial window counts as used (`tcp_cwnd_application_limited`). Here a few
/// segments are in flight for that long, unanswered; the timer itself fires a little later, at 512
/// ms.
#[test]
fn a_window_that_is_not_used_for_a_timeout_shrinks() {
    for (flight, window) in [(1, 25), (13, 27)] {
        let mut t = idle(linux().with(|profile| profile.tail_loss_probe = false), 300);
        t.writes(flight).leaves(&all(30..30 + flight));
        t.at(ms(500) - ns(1)).writes(1).skips();
        assert_eq!(t.windows(), (40, None));
        t.at(ms(500)).writes(1).skips();
        assert_eq!(t.windows(), (window, None));
        t.leaves_at(ms(512), &[again(30)]);
    }
}
