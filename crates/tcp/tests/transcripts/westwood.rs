//! Westwood+ (`net/ipv4/tcp_westwood.c`).

use crate::line::ack;
use crate::script::{Script, linux, ms};

/// Ten segments a round trip of 100 ms for a while, as the peer's window allows no more.
fn steady() -> (Script, u32) {
    let mut t = linux().algorithm("westwood").peer_window(10_000).connected();
    t.writes_on().skips();
    for round in 1..40 {
        t.all_arrive(ms(100 * round), |line| line);
    }
    let next = t.next();
    (t, next)
}

/// A loss leaves what the path was seen to carry, and not half: ten segments in 100 ms, which is the shortest
/// round trip.
#[test]
fn a_loss_leaves_the_window_that_the_path_carries() {
    let (mut t, next) = steady();
    t.at(ms(4_000)).arrives(ack(next - 10).sack(&[(next - 9, next)])).skips();
    t.all_arrive(ms(4_100), |line| line);
    assert_eq!(t.windows(), (10, Some(10)));
}

/// A timeout starts over with one segment, but slow start ends at the window that the path carried.
#[test]
fn a_timeout_sets_the_threshold_by_what_the_path_carries() {
    let (mut t, _) = steady();
    t.at_in_passing(ms(5_000));
    assert!(t.info().counters.timeouts > 0);
    assert_eq!(t.windows(), (1, Some(10)));
}

/// Before anything is known of the path two segments are left.
#[test]
fn a_loss_at_once_leaves_two_segments() {
    let mut t = linux().algorithm("westwood").connected();
    t.writes_on().skips();
    t.at(ms(100)).arrives(ack(0).sack(&[(1, 10)])).skips();
    t.all_arrive(ms(200), |line| line);
    assert_eq!(t.info().ssthresh, Some(2));
}
