//! Leaving slow start before a loss: HyStart, as CUBIC has it in Linux (`hystart_update`).
//!
//! That is the form of Ha and Rhee, "Taming the elephants: New TCP slow start" (2011), with its two
//! signs; RFC 9406 describes a successor with the delay sign alone, in section 4.2.

use weir_core::Duration;
use weir_tcp::{Profile, Timers};

use crate::line::{ack, all};
use crate::script::{Script, linux, ms, us};

/// CUBIC with the first ten segments acknowledged after a round trip of `rtt`: 20 are on their way.
fn second_round(rtt: Duration) -> Script {
    let exact = |profile: &mut Profile| profile.timers = Timers::Exact;
    let mut t = linux().cubic().with(exact).rtt(rtt).connected();
    t.writes_on().slow_starts(10, rtt);
    assert_eq!(t.windows(), (20, None));
    t
}

/// Acknowledges the 20 segments under way, and says with which of them slow start ends.
///
/// They are acknowledged one by one, the first after a round trip of `rtt`, the others with `gap` between
/// them.
fn acknowledges(t: &mut Script, rtt: Duration, gap: Duration) -> Option<u32> {
    t.later(rtt);
    (1..=20).find(|nth| {
        if *nth > 1 {
            t.later(gap);
        }
        t.arrives(ack(10 + nth)).skips();
        t.info().ssthresh.is_some()
    })
}

/// RFC 9406, section 4.2: slow start ends "if (currentRoundMinRTT >= (lastRoundMinRTT + RttThresh))",
/// where RttThresh is an eighth of lastRoundMinRTT within bounds, after eight samples. Linux compares
/// with the smallest round trip ever seen, and wants more than an eighth on top.
#[test]
fn a_round_trip_that_grows_by_more_than_an_eighth_ends_slow_start() {
    // The eight before have grown the window as slow start does, the ninth no longer does.
    for (rtt, end, windows) in
        [(us(112_500), None, (40, None)), (us(112_501), Some(9), (28, Some(28)))]
    {
        let mut t = second_round(ms(100));
        assert_eq!(acknowledges(&mut t, rtt, us(0)), end);
        assert_eq!(t.windows(), windows);
    }
}

/// HyStart looks at the smallest sample of the round: one packet that came through fast shows that there is
/// no queue.
#[test]
fn one_short_round_trip_keeps_slow_start_going() {
    let mut t = second_round(ms(100));
    t.at(ms(200)).arrives(ack(11)).skips();
    t.at(ms(240));
    for number in 12..=30 {
        t.arrives(ack(number)).skips();
    }
    assert_eq!(t.windows(), (40, None));
}

/// The eighth is 4 ms at least and 16 ms at most (`HYSTART_DELAY_MIN`, `HYSTART_DELAY_MAX`).
#[test]
fn the_growth_that_counts_lies_between_4_and_16_ms() {
    for (rtt, bound) in [(ms(8), ms(4)), (ms(400), ms(16))] {
        for (growth, end) in [(bound, None), (bound + us(1), Some(9))] {
            let mut t = second_round(rtt);
            assert_eq!(acknowledges(&mut t, rtt + growth, us(0)), end);
        }
    }
}

/// The second sign: acknowledgements that follow one another within 2 ms for longer than half the
/// smallest round trip fill the path (`HYSTART_ACK_TRAIN`): half of 40 ms, and of the millisecond for
/// which offloading may hold them up (`hystart_ack_delay`), 20.5 ms.
#[test]
fn a_train_of_acknowledgements_over_half_a_round_trip_ends_slow_start() {
    let mut t = second_round(ms(40));
    // The twelfth comes 22 ms after the first; the eleven before have grown the window.
    assert_eq!(acknowledges(&mut t, ms(40), us(2_000)), Some(12));
    assert_eq!(t.windows(), (31, Some(31)));
}

/// A pause of more than 2 ms breaks the train of acknowledgements that HyStart looks for.
#[test]
fn a_pause_breaks_the_train() {
    let mut t = second_round(ms(40));
    assert_eq!(acknowledges(&mut t, ms(40), us(2_001)), None);
    assert_eq!(t.windows(), (40, None));
}

/// With pacing acknowledgements are spread anyway: it takes a train over a whole round trip, and the
/// same one is not enough.
#[test]
fn pacing_doubles_the_train() {
    let paced = |profile: &mut Profile| profile.pacing = true;
    let mut t = linux().cubic().with(paced).rtt(ms(40)).connected();
    t.writes(30).skips().at_in_passing(ms(40));
    for number in 1..=10 {
        t.arrives(ack(number)).skips();
    }
    t.at_in_passing(ms(80));
    for number in 11..=30 {
        t.arrives(ack(number)).skips().later(us(2_000));
    }
    assert_eq!(t.info().ssthresh, None);
}

/// Below 16 segments of window HyStart does not look (`hystart_low_window`).
#[test]
fn a_small_window_stays_in_slow_start() {
    let small = |profile: &mut Profile| profile.initial_window = 2;
    let mut t = linux().cubic().with(small).connected();
    t.writes_on().leaves(&all(0..2));
    let (mut acked, mut window) = (0, 2);
    for at in [100, 250, 400] {
        t.at(ms(at));
        for _ in 0..window {
            acked += 1;
            t.arrives(ack(acked)).skips();
        }
        window *= 2;
    }
    assert_eq!(t.windows(), (16, None));
}

/// Behind HyStart there is no curve yet: until the first loss the window grows by one for twenty
/// segments (`bictcp_update`).
#[test]
fn behind_hystart_the_window_grows_by_a_twentieth() {
    let mut t = second_round(ms(100));
    assert_eq!(acknowledges(&mut t, us(112_501), us(0)), Some(9));
    assert_eq!(t.windows(), (28, Some(28)));
    // The one that ended slow start is the first of the twenty.
    for number in 20..38 {
        t.later(us(10)).arrives(ack(number)).skips();
        assert_eq!(t.cwnd(), 28, "up to {number}");
    }
    t.later(us(10)).arrives(ack(38)).skips();
    assert_eq!(t.windows(), (29, Some(28)));
}

/// Reno has no HyStart: RFC 5681 knows only loss.
#[test]
fn reno_stays_in_slow_start() {
    let mut t = linux().connected();
    t.writes_on().slow_starts(10, ms(100));
    assert_eq!(acknowledges(&mut t, ms(190), us(0)), None);
    assert_eq!(t.windows(), (40, None));
}
