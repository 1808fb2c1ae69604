//! When data is acknowledged: RFC 5681, section 4.2, and what Linux makes of it
//! (`__tcp_ack_snd_check`, `tcp_send_delayed_ack`).

use weir_tcp::{DelayedAck, Profile, WindowRule};

use crate::line::{ack, again, data};
use crate::script::{Script, Setup, linux, ms, ns, rfc, us};

/// A receive window that does not grow, for while it does Linux acknowledges every segment.
fn fixed_window(profile: &mut Profile) {
    profile.receive_window = WindowRule::Fixed(60_000);
}

/// A receiver behind its first 16 segments, which Linux acknowledges one by one.
fn behind_the_start(setup: Setup) -> Script {
    let mut t = setup.with(fixed_window).accepted();
    for number in 0..16 {
        t.arrives(data(number)).leaves(&[ack(number + 1)]);
    }
    t
}

/// RFC 5681, section 4.2 allows to delay; Linux does not at the start, while the sender's window is
/// small: 16 acknowledgements at once (`TCP_MAX_QUICKACKS`), as long as they are worth less than half
/// the window.
#[test]
fn linux_acknowledges_the_first_16_segments_at_once() {
    let mut t = linux().with(fixed_window).accepted();
    for number in 0..16 {
        t.arrives(data(number)).leaves(&[ack(number + 1)]);
    }
    t.arrives(data(16)).leaves(&[]);
    t.arrives(data(17)).leaves(&[ack(18)]);
    t.arrives(data(18)).leaves(&[]);
    t.arrives(data(19)).leaves(&[ack(20)]);
}

/// Linux acknowledges at once up to half the window: five segments of ten, two of none (`tcp_incr_quickack`).
#[test]
fn a_small_window_shortens_the_start() {
    for (window, at_once) in [(10_000, 5), (3_000, 1), (1_999, 2)] {
        let small = |profile: &mut Profile| {
            fixed_window(profile);
            profile.receive_window = WindowRule::Fixed(window);
        };
        let mut t = linux().with(small).accepted();
        for number in 0..at_once {
            t.arrives(data(number)).leaves(&[ack(number + 1)]);
        }
        t.arrives(data(at_once)).leaves(&[]);
        t.arrives(data(at_once + 1)).leaves(&[ack(at_once + 2)]);
    }
}

/// Linux also acknowledges at once while the window that it offers grows, lest the sender not learn
/// of it (`tcp_grow_window`): by two segments each, from half of a fresh buffer of 131072 bytes, less one
/// segment (`tcp_init_buffer_space`), to what it holds beside the segment that just arrived, 70173 bytes
/// of segments of 1000 in 1832 of memory. That is three times; then 16 more.
#[test]
fn a_growing_window_is_acknowledged_at_once() {
    let mut t = linux().accepted();
    for number in 0..19 {
        let offered = (64_536 + 2_000 * (number + 1)).min(70_173);
        t.arrives(data(number)).leaves(&[ack(number + 1).window(offered)]);
        t.later(ms(20));
    }
    t.arrives(data(19)).leaves(&[]);
}

/// RFC 5681, section 4.2: "an ACK SHOULD be generated for at least every second full-sized segment".
#[test]
fn every_second_segment_is_acknowledged() {
    let mut t = behind_the_start(linux());
    for number in [17, 19, 21] {
        t.later(ms(1)).arrives(data(number - 1)).leaves(&[]);
        t.later(ms(1)).arrives(data(number)).leaves(&[ack(number + 1)]);
    }
}

/// A segment that is pushed may be the last one for now, and its sender may wait: Linux acknowledges it as
/// soon as the application has read it (`tcp_measure_rcv_mss`, `__tcp_cleanup_rbuf`). From then on the
/// acknowledgements fall on the ends of bursts.
#[test]
fn a_pushed_segment_is_acknowledged_at_once() {
    let mut t = behind_the_start(linux());
    t.arrives(data(16).pushed(true)).leaves(&[ack(17)]);
    t.arrives(data(17)).leaves(&[]);
    t.arrives(data(18).pushed(true)).leaves(&[ack(19)]);
    t.arrives(data(19)).leaves(&[]);
    t.arrives(data(20)).leaves(&[ack(21)]);
}

/// Small segments add up until they are worth more than a full-sized one (`__tcp_ack_snd_check`).
#[test]
fn small_segments_add_up() {
    let mut t = behind_the_start(linux());
    for first in [16, 19] {
        t.arrives(data(first).len(500)).leaves(&[]);
        t.arrives(data(first + 1).len(500)).leaves(&[]);
        t.arrives(data(first + 2).len(500)).leaves(&[ack(first + 3)]);
    }
}

/// RFC 5681, section 4.2: an acknowledgement "MUST be generated within 500 ms"; Linux waits 40 ms
/// (`TCP_DELACK_MIN`), in ticks of 4 ms of which the wheel waits for the eleventh: between 40 and 44
/// ms.
#[test]
fn a_lone_segment_is_acknowledged_after_40_to_44_ms() {
    for (arrival, fires) in
        [(ms(100), ms(144)), (us(102_500), ms(144)), (ms(104) - ns(1), ms(144)), (ms(104), ms(148))]
    {
        let mut t = behind_the_start(linux());
        t.at(arrival).arrives(data(16)).leaves(&[]);
        t.leaves_at(fires, &[ack(17)]);
    }
}

/// A second small segment does not wait when the delay is all but over (`tcp_send_delayed_ack`): a
/// quarter of the new one, which is half the old one and the 28 ms between the two
/// (`tcp_event_data_recv`), 12 ms.
#[test]
fn near_its_end_the_delay_is_cut_short() {
    for (second, at_once) in [(ms(128) - ns(1), false), (ms(128), true)] {
        let mut t = behind_the_start(linux());
        t.at(ms(100)).arrives(data(16).len(500)).leaves(&[]);
        t.at(second).arrives(data(17).len(500));
        if at_once {
            t.leaves(&[ack(18)]);
        } else {
            t.leaves(&[]).leaves_at(ms(144), &[ack(18)]);
        }
    }
}

/// Each delay that ran out doubles the next, up to the sender's round trip, here 100 ms
/// (`tcp_delack_timer_handler`, `tcp_send_delayed_ack`): the sender is slow anyway.
#[test]
fn a_slow_sender_is_waited_for_longer() {
    let mut t = behind_the_start(linux());
    t.at(ms(100)).arrives(data(16)).leaves(&[]);
    t.leaves_at(ms(144), &[ack(17)]);
    // 80 ms are 20 ticks, and the 21st fires.
    t.at(ms(300)).arrives(data(17)).leaves(&[]);
    t.leaves_at(ms(384), &[ack(18)]);
    // 160 ms would be more than a round trip: 25 ticks.
    t.at(ms(500)).arrives(data(18)).leaves(&[]);
    t.leaves_at(ms(604), &[ack(19)]);
}

/// A fast sender brings the delay of acknowledgements back towards 40 ms.
///
/// It is half of the delay and 20 ms with each segment that follows within 20 ms, in whole ticks
/// (`tcp_event_data_recv`).
#[test]
fn a_fast_sender_shortens_the_delay_again() {
    let mut t = behind_the_start(linux());
    t.at(ms(100)).arrives(data(16)).leaves(&[]);
    t.leaves_at(ms(144), &[ack(17)]);
    t.at(ms(300)).arrives(data(17)).leaves(&[]);
    t.at(ms(310)).arrives(data(18)).leaves(&[ack(19)]);
    // From 80 to 60 and to 48 ms.
    t.at(ms(320)).arrives(data(19)).leaves(&[]);
    t.leaves_at(ms(372), &[ack(20)]);
}

/// A sender that comes back after more than a timeout starts anew, and so do acknowledgements at once
/// (`tcp_event_data_recv`).
#[test]
fn after_a_pause_segments_are_acknowledged_at_once_again() {
    let mut t = behind_the_start(linux());
    t.at(ms(300)).arrives(data(16)).leaves(&[]);
    t.leaves_at(ms(344), &[ack(17)]);
    // The own timeout is 300 ms, 75 ticks: a pause of as much is none yet, one of 76 is.
    t.at(ms(604) - ns(1)).arrives(data(17)).leaves(&[]);
    t.leaves_at(ms(684), &[ack(18)]);
    t.at(ms(904)).arrives(data(18)).leaves(&[ack(19)]);
}

/// Data that leaves takes the acknowledgement along (RFC 9293, section 3.8.6.3), and none follows.
#[test]
fn data_carries_the_acknowledgement() {
    let mut t = behind_the_start(linux());
    t.at(ms(100)).arrives(data(16)).leaves(&[]);
    t.at(ms(110)).writes(1).leaves(&[data(0).acks(17)]);
    assert_eq!(t.timer(), Some(ms(416)), "only the own segment's timer is left");
}

/// Data on its way has a timer of its own, which does not hold the acknowledgement back.
#[test]
fn own_data_on_its_way_does_not_hold_the_acknowledgement_back() {
    let mut t = behind_the_start(linux());
    t.at(ms(100)).writes(1).leaves(&[data(0).acks(16)]);
    t.arrives(data(16)).leaves(&[]);
    t.leaves_at(ms(144), &[ack(17)]);
    t.leaves_at(ms(416), &[again(0).acks(17)]);
}

/// An acknowledgement that is sent at once leaves with data that is released, and not beside it.
#[test]
fn an_acknowledgement_at_once_leaves_with_data_that_is_released() {
    let mut t = linux().with(fixed_window).accepted();
    t.writes(12).leaves(&crate::line::all(0..10));
    t.at(ms(100)).arrives(data(0).acks(1)).leaves(&[data(10).acks(1), data(11).acks(1)]);
}

/// Own data spends no acknowledgement at once unless one is due (`tcp_dec_quickack_mode`). It is no answer, so long
/// after what arrived.
#[test]
fn own_data_does_not_use_up_the_start() {
    let mut t = linux().with(fixed_window).accepted();
    t.arrives(data(0)).leaves(&[ack(1)]);
    t.at(ms(40)).writes(10).leaves(&crate::line::all(0..10));
    for number in 1..16 {
        t.arrives(data(number)).leaves(&[ack(number + 1)]);
    }
    t.arrives(data(16)).leaves(&[]);
}

/// Data that leaves within the delay of an acknowledgement after what arrived is an answer to it
/// (`tcp_event_data_sent`), and the next answer may carry the acknowledgement: segments are not acknowledged one by
/// one any more, even at the start (`tcp_in_quickack_mode`).
#[test]
fn an_answer_ends_acknowledgements_one_by_one() {
    for (answered, quick) in [(ms(40) - ns(1), false), (ms(40), true)] {
        let mut t = linux().with(fixed_window).accepted();
        t.arrives(data(0)).leaves(&[ack(1)]);
        t.at(answered).writes(1).leaves(&[data(0).acks(1)]);
        t.arrives(data(1).acks(1));
        if quick {
            t.leaves(&[ack(2)]);
        } else {
            t.leaves(&[]);
        }
    }
}

/// Where the two ends answer each other, a pushed segment waits for the answer as others do, unless the end of a burst
/// waits already (`ICSK_ACK_PUSHED2` in `__tcp_cleanup_rbuf`).
#[test]
fn an_answer_has_the_ends_of_bursts_wait() {
    let mut t = behind_the_start(linux());
    t.at(ms(100)).arrives(data(16).pushed(true)).leaves(&[ack(17)]);
    t.at(ms(110)).writes(1).leaves(&[data(0).acks(17)]);
    t.at(ms(120)).arrives(data(17).len(300).pushed(true).acks(1)).leaves(&[]);
    t.at(ms(130)).arrives(data(18).len(300).pushed(true).acks(1)).leaves(&[ack(19)]);
    // An answer takes along what waits, and then the end of the next burst is the first again.
    t.at(ms(140)).arrives(data(19).len(300).pushed(true).acks(1)).leaves(&[]);
    t.at(ms(150)).writes(1).leaves(&[data(1).acks(20)]);
    t.at(ms(160)).arrives(data(20).len(300).pushed(true).acks(2)).leaves(&[]);
}

/// A delayed acknowledgement that no answer took along ends that, and the next delay is the least again, not twice
/// as long (`tcp_delack_timer_handler`).
#[test]
fn an_answer_that_does_not_come_is_not_waited_for_again() {
    let mut t = behind_the_start(linux());
    t.at(ms(100)).arrives(data(16)).leaves(&[]);
    t.at(ms(110)).writes(1).leaves(&[data(0).acks(17)]);
    t.at(ms(200)).arrives(data(17).pushed(true).acks(1)).leaves(&[]);
    t.leaves_at(ms(244), &[ack(18)]);
    t.at(ms(300)).arrives(data(18).acks(1)).leaves(&[]);
    t.leaves_at(ms(344), &[ack(19)]);
    t.at(ms(400)).arrives(data(19).pushed(true).acks(1)).leaves(&[ack(20)]);
}

/// A duplicate says that the other end missed an acknowledgement, and what follows is acknowledged one by one again
/// (`tcp_enter_quickack_mode`).
#[test]
fn a_duplicate_ends_waiting_for_answers() {
    let mut t = behind_the_start(linux());
    t.at(ms(100)).arrives(data(16)).leaves(&[]);
    t.at(ms(110)).writes(1).leaves(&[data(0).acks(17)]);
    t.at(ms(120)).arrives(again(3).acks(1)).leaves(&[ack(17).duplicate(3, 4)]);
    t.arrives(data(17).acks(1)).leaves(&[ack(18)]);
}

/// RFC 5681, section 4.2: "Out-of-order data segments SHOULD be acknowledged immediately, in order to
/// accelerate loss recovery", and "the receiver SHOULD send an immediate ACK when it receives a data
/// segment that fills in all or part of a gap".
#[test]
fn gaps_and_what_fills_them_are_acknowledged_at_once() {
    for setup in [linux(), rfc()] {
        let mut t = setup.with(fixed_window).accepted();
        for number in 0..16 {
            t.arrives(data(number));
        }
        t.skips().at(ms(500));
        t.arrives(data(17)).leaves(&[ack(16).sack(&[(17, 18)])]);
        t.arrives(data(19)).leaves(&[ack(16).sack(&[(19, 20), (17, 18)])]);
        t.arrives(data(16)).leaves(&[ack(18).sack(&[(19, 20)])]);
        t.arrives(data(18)).leaves(&[ack(20)]);
    }
}

/// Beyond the first three, Linux holds acknowledgements of data behind a gap back for the twentieth
/// part of the round trip, a millisecond at most (`tcp_comp_sack_delay_ns`), and for the 100 us that it
/// allows its timer to join it with others (`tcp_comp_sack_slack_ns`).
#[test]
fn acknowledgements_behind_a_gap_are_compressed() {
    let mut t = behind_the_start(linux());
    t.at(ms(100));
    for number in 17..20 {
        t.arrives(data(number)).leaves(&[ack(16).sack(&[(17, number + 1)])]);
    }
    t.later(us(10)).arrives(data(20)).leaves(&[]);
    t.later(us(10)).arrives(data(21)).leaves(&[]);
    t.later(us(10)).arrives(data(22)).leaves(&[]);
    t.leaves_at(us(101_110), &[ack(16).sack(&[(17, 23)])]);
    // The next wait starts with the next segment.
    t.at(us(101_500)).arrives(data(23)).leaves(&[]);
    t.leaves_at(us(102_600), &[ack(16).sack(&[(17, 24)])]);
    // What fills the gap is acknowledged at once.
    t.at(ms(103)).arrives(data(24)).leaves(&[]);
    t.at(us(103_100)).arrives(data(16)).leaves(&[ack(25)]);
    t.at(ms(150)).leaves(&[]);
    // The next gap has three acknowledgements at once again.
    for number in 26..29 {
        t.arrives(data(number)).leaves(&[ack(25).sack(&[(26, number + 1)])]);
    }
    t.arrives(data(29)).leaves(&[]);
    t.leaves_at(us(151_100), &[ack(25).sack(&[(26, 30)])]);
}

/// Compression lasts the twentieth part of a short round trip, to the nanosecond: 200.05 us of 4.001 ms, and
/// the slack.
#[test]
fn a_short_round_trip_shortens_the_compression() {
    for (rtt, delay) in [(ms(5), us(250)), (us(4_001), ns(200_050))] {
        let mut t = behind_the_start(linux().rtt(rtt));
        t.at(ms(100));
        for number in 17..20 {
            t.arrives(data(number)).leaves(&[ack(16).sack(&[(17, number + 1)])]);
        }
        t.arrives(data(20)).leaves(&[]);
        t.leaves_at(ms(100) + delay + us(100), &[ack(16).sack(&[(17, 21)])]);
    }
}

/// One acknowledgement stands for 44 at most (`tcp_comp_sack_nr`).
#[test]
fn no_more_than_44_acknowledgements_become_one() {
    let mut t = behind_the_start(linux());
    t.at(ms(100));
    for number in 17..20 {
        t.arrives(data(number)).leaves(&[ack(16).sack(&[(17, number + 1)])]);
    }
    for number in 20..64 {
        t.arrives(data(number)).leaves(&[]);
    }
    t.arrives(data(64)).leaves(&[ack(16).sack(&[(17, 65)])]);
}

/// RFC 1122, section 4.2.3.2: "the delay MUST be less than 0.5 seconds"; 200 ms in the plain profile,
/// and every second segment from the start.
#[test]
fn by_the_rfc_every_second_segment_or_200_ms() {
    let mut t = rfc().accepted();
    t.arrives(data(0)).leaves(&[]);
    t.at(ms(1)).arrives(data(1)).leaves(&[ack(2)]);
    t.at(ms(2)).arrives(data(2)).leaves(&[]);
    t.leaves_at(ms(202), &[ack(3)]);
}

/// The option to acknowledge every segment.
#[test]
fn without_delay_every_segment_is_acknowledged() {
    let mut t = linux().with(|profile| profile.delayed_ack = DelayedAck::Never).accepted();
    for number in 0..40 {
        t.later(ms(1)).arrives(data(number)).leaves(&[ack(number + 1)]);
    }
}

/// RFC 5681, section 4.2, and RFC 2883, section 4: a duplicate is reported at once; and as the sender
/// is in trouble Linux acknowledges the next 16 segments at once, too (`tcp_data_queue`).
#[test]
fn a_duplicate_is_reported_at_once() {
    let mut t = behind_the_start(linux());
    t.at(ms(100)).arrives(again(3)).leaves(&[ack(16).duplicate(3, 4)]);
    for number in 16..31 {
        t.arrives(data(number)).leaves(&[ack(number + 1)]);
    }
    t.arrives(data(31)).leaves(&[]);
}
