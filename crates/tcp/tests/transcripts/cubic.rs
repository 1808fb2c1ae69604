//! CUBIC: RFC 9438 (`tcp_cubic.c`).

use weir_core::Duration;
use weir_tcp::Profile;

use crate::line::{MSS, ack, again};
use crate::script::{Script, linux, ms, us};

/// Endless data with an initial window of `window`, all of which is in flight.
fn flight_of(window: u32, rtt: Duration) -> Script {
    let change = |profile: &mut Profile| {
        profile.initial_window = window;
        profile.tail_loss_probe = false;
        profile.f_rto = false;
    };
    let mut t = linux().cubic().with(change).rtt(rtt).connected();
    t.writes_on().skips();
    t
}

/// The first segment in flight, `first`, is lost and sent again, which takes two round trips.
fn loses(t: &mut Script, first: u32, rtt: Duration) {
    let next = t.next();
    t.later(rtt).arrives(ack(first).sack(&[(first + 1, next)])).skips();
    t.later(rtt).arrives(ack(next)).skips();
}

/// The window after each of `rounds` round trips, in which everything in flight but one segment is
/// acknowledged at once: without any in flight the curve's clock would stand still.
fn windows_of(t: &mut Script, rtt: Duration, rounds: u32) -> Vec<u32> {
    let mut windows = Vec::new();
    for _ in 0..rounds {
        let last = t.next() - 1;
        t.later(rtt).arrives(ack(last)).skips();
        windows.push(t.cwnd());
    }
    windows
}

/// RFC 9438, section 4.6: "ssthresh = flight_size * beta_cubic", with beta_cubic = 0.7, here 717/1024.
#[test]
fn a_loss_leaves_seven_tenths_of_the_window() {
    for (window, left) in [(10, 7), (20, 14), (50, 35), (100, 70), (900, 630)] {
        let mut t = flight_of(window, ms(100));
        loses(&mut t, 0, ms(100));
        assert_eq!(t.windows(), (left, Some(left)), "of {window}");
    }
}

/// RFC 9438, section 4.2: "W_cubic(t) = C*(t-K)^3 + W_max", with C = 0.4 and K the cubic root of
/// (W_max - cwnd_epoch) / C, here of (100 - 70) / 0.4: 4.2 s. In each round trip the window grows to
/// what the curve will be a round trip later (section 4.4), which Linux rounds up to whole segments.
#[test]
fn the_window_follows_the_cubic_curve() {
    let mut t = flight_of(100, ms(100));
    loses(&mut t, 0, ms(100));
    let windows = windows_of(&mut t, ms(100), 60);
    assert_eq!(windows[..10], [75, 75, 78, 80, 82, 83, 85, 86, 87, 88]);
    assert_eq!(windows[10..20], [90, 91, 92, 92, 93, 94, 95, 96, 96, 97]);
    assert_eq!(windows[20..30], [97, 98, 98, 98, 99, 99, 99, 100, 100, 100]);
    // The plateau of the last maximum, and beyond it the search for a new one (section 4.5).
    assert_eq!(windows[30..54], [100; 24]);
    assert_eq!(windows[54..], [101, 101, 101, 101, 102, 102]);

    let k = f64::cbrt((100.0 - 70.0) / 0.4);
    for (round, &window) in windows.iter().enumerate() {
        let curve = 0.4 * (0.1 * (round + 2) as f64 - k).powi(3) + 100.0;
        assert!((f64::from(window) - curve).abs() < 1.1, "round {round}: {window} for {curve}");
    }
}

/// The window follows RFC 9438's curve with an acknowledgement for each segment, every 1.5 ms.
///
/// The curve is looked at when the window has grown, or after 28 ms (`HZ / 32`), and no more than once a tick
/// of 4 ms (`bictcp_update`).
#[test]
fn the_window_follows_the_curve_segment_by_segment() {
    let mut t = flight_of(100, ms(100));
    loses(&mut t, 0, ms(100));
    t.later(us(98_500));
    let mut windows = Vec::new();
    for acked in 1..=1_000 {
        t.later(us(1_500)).arrives(ack(100 + acked)).skips();
        if acked % 100 == 0 {
            windows.push(t.cwnd());
        }
    }
    assert_eq!(windows, [75, 78, 80, 83, 85, 87, 89, 90, 92, 93]);
}

/// RFC 9438, section 4.3: where Reno would be faster CUBIC keeps its pace: with "alpha_cubic = 3 * (1 -
/// beta_cubic) / (1 + beta_cubic)" that is 0.53 segments a round trip, here from 7 on.
#[test]
fn a_small_window_grows_as_reno_would() {
    let mut t = flight_of(10, ms(40));
    loses(&mut t, 0, ms(40));
    let windows = windows_of(&mut t, ms(40), 20);
    assert_eq!(windows[..10], [8, 8, 8, 8, 9, 9, 10, 10, 11, 11]);
    assert_eq!(windows[10..], [12, 12, 13, 13, 14, 14, 15, 15, 16, 16]);
}

/// RFC 9438, section 4.7, fast convergence: a flow that loses again below its last maximum leaves
/// room for others: "W_max = cwnd * (1 + beta_cubic) / 2". Lost at 80 of 100, the plateau is not 80
/// but 68.
#[test]
fn a_second_loss_below_the_maximum_lowers_the_plateau() {
    let mut t = flight_of(100, ms(100));
    loses(&mut t, 0, ms(100));
    assert_eq!(windows_of(&mut t, ms(100), 4), [75, 75, 78, 80]);
    let first = t.next() - 80;
    loses(&mut t, first, ms(100));
    assert_eq!(t.windows(), (56, Some(56)));
    let windows = windows_of(&mut t, ms(100), 24);
    assert_eq!(windows[..16], [59, 60, 61, 61, 62, 63, 64, 64, 65, 65, 66, 66, 67, 67, 67, 67]);
    assert_eq!(windows[16..], [68; 8]);
}

/// RFC 9438, section 4.8: after a timeout the threshold is 0.7 of the flight, and the curve starts
/// anew with congestion avoidance. Linux forgets the old maximum (`bictcp_reset`): one segment for
/// twenty.
#[test]
fn a_timeout_forgets_the_plateau() {
    let mut t = flight_of(20, ms(100));
    t.leaves_at(ms(320), &[again(0)]);
    assert_eq!(t.windows(), (1, Some(14)));
    // Only the first had been lost: what follows is acknowledged with it, and slow start is over.
    let windows = windows_of(&mut t, ms(100), 12);
    assert_eq!(windows, [14, 14, 15, 16, 17, 17, 18, 19, 20, 21, 22, 23]);
}

/// RFC 9438, section 4.2: "The elapsed time t ... MUST NOT include periods during which cwnd has not
/// been updated due to application-limited behavior": an idle flow comes back where it was on the
/// curve.
#[test]
fn the_curve_waits_for_an_idle_application() {
    let mut t = flight_of(100, ms(100));
    loses(&mut t, 0, ms(100));
    assert_eq!(windows_of(&mut t, ms(100), 4), [75, 75, 78, 80]);
    // The rest is acknowledged, and 150 ms later the application goes on.
    let last = t.next();
    t.stops().later(ms(100)).arrives(ack(last)).leaves(&[]);
    assert_eq!(t.cwnd(), 82);
    t.later(ms(150)).writes_on().skips();
    // On from there, as the test above without the pause: 82, 83, 85, 86.
    assert_eq!(windows_of(&mut t, ms(100), 4), [82, 83, 86, 86]);
}

/// After minutes behind a small receive window the cube of the time is larger than any number; when
/// the window opens the flow grows as fast as it may, by half a window a round trip (RFC 9438,
/// section 4.2: the target is at most 1.5 times the window).
#[test]
fn a_flow_that_waited_for_minutes_grows_by_half_a_round_trip() {
    let large = |profile: &mut Profile| profile.initial_window = 100;
    let setup = linux().cubic().with(large).rtt(ms(1_000)).peer_window(100 * MSS);
    let mut t = setup.connected();
    t.writes_on().skips();
    loses(&mut t, 0, ms(1_000));
    let windows = windows_of(&mut t, ms(1_000), 400);
    assert_eq!((windows[30], windows[399]), (105, 105));
    let last = t.next() - 1;
    t.later(ms(1_000)).arrives(ack(last).window(10_000 * MSS)).skips();
    assert_eq!(windows_of(&mut t, ms(1_000), 3), [158, 236, 354]);
}
