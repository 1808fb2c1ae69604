//! BBR: `net/ipv4/tcp_bbr.c`; Cardwell et al., "BBR: Congestion-Based Congestion Control", ACM Queue 14
//! (2016).
//!
//! The line of most of these tests takes a millisecond for a segment of 1000 bytes, 20 ms away: a rate of
//! 1 MB/s and 40 segments in a round trip. Linux keeps rates in segments per microsecond times 2^24, here
//! 16777, and paces at 99 % of the rate: 989987 bytes a second, 5/4 of which are 1237484 and 3/4 742490.

use weir_core::Duration;

use crate::line::{ack, all, data};
use crate::pair::{End, Pair};
use crate::script::{linux, ms};

const RATE: u64 = 989_987;
const MORE: u64 = 1_237_484;
const LESS: u64 = 742_490;

/// A flow without end over a line of that spacing.
fn over(spacing: Duration) -> Pair {
    Pair::new(&linux().bbr(), ms(20)).with_line(spacing, u64::MAX).client_sends(1_000_000)
}

fn rate_at(pair: &mut Pair, moment: Duration) -> u64 {
    pair.runs_until(moment);
    pair.client().info().pacing_rate
}

/// When the pacing rate changes between `from` and `until`, and what it is then, to a millisecond.
fn changes(pair: &mut Pair, from: u64, until: u64) -> Vec<(u64, u64)> {
    let mut last = rate_at(pair, ms(from));
    let mut found = Vec::new();
    for moment in from + 1..=until {
        let rate = rate_at(pair, ms(moment));
        if rate != last {
            found.push((moment, rate));
            last = rate;
        }
    }
    found
}

/// Before anything is known of the rate: the window in a round trip, times 2/ln 2 (`bbr_high_gain`, 739 of
/// 256): 100 kB/s in 4194 of 2^24, times 2.887 and 0.99. The first ten segments are not paced.
#[test]
fn the_first_rate_is_the_window_in_a_round_trip() {
    let mut t = linux().bbr().connected();
    assert_eq!(t.info().pacing_rate, 285_662);
    t.writes_on().leaves(&all(0..10));
}

/// Startup is paced: the rate of 10 segments in 100 ms is not above the first one, and a pair leaves every
/// 7.0 ms.
///
/// The first pair comes late, and has half of that forgiven.
#[test]
fn startup_is_paced() {
    let mut t = linux().bbr().connected();
    t.writes_on().leaves(&all(0..10));
    t.at(ms(100)).arrives(ack(4)).leaves(&[data(10), data(11)]);
    let rate = t.info().pacing_rate;
    assert_eq!((rate, t.cwnd()), (285_662, 14));
    let pair = Duration::from_nanos(2_000 * 1_000_000_000 / rate);
    t.leaves_at(ms(100) + pair - pair / 2, &[data(12), data(13)]);
    t.leaves_at(ms(100) + pair * 2 - pair / 2, &[data(14), data(15)]);
    t.leaves_at(ms(100) + pair * 3 - pair / 2, &[data(16), data(17)]);
    t.at(ms(150)).leaves(&[]);
}

/// Startup lasts until the rate has not grown by a quarter in three round trips (`bbr_full_bw_cnt`), then
/// the queue is drained at the inverse of its gain (88 of 256), until the 40 segments that the path holds
/// and three bursts of two are under way (`bbr_check_drain`).
#[test]
fn startup_fills_the_pipe_and_drain_empties_the_queue() {
    let mut pair = over(ms(1));
    // 739/256 of the line's rate, and as much of its window and three bursts: 122.
    assert_eq!(rate_at(&mut pair, ms(500)), 2_857_814);
    assert_eq!((pair.client().info().cwnd, pair.client().info().ssthresh), (122, None));
    assert_eq!(rate_at(&mut pair, ms(520)), 340_308);
    assert_eq!(pair.client().info().ssthresh, Some(46));
    assert_eq!(rate_at(&mut pair, ms(624)), 340_308);
    assert_eq!(rate_at(&mut pair, ms(630)), RATE);
    assert_eq!(pair.client().info().in_flight, 47);
}

/// One round trip in eight probes for more, the next one makes up for it as soon as the queue is empty, and
/// six go by at the rate (`bbr_pacing_gain`). The window is twice what the path holds, four segments that
/// came at once and three bursts, and two more in the first phase (`bbr_quantization_budget`).
#[test]
fn eight_phases_follow_one_another() {
    let mut pair = over(ms(1));
    let seen = changes(&mut pair, 1_100, 2_000);
    assert_eq!(
        seen,
        [
            (1_171, MORE),
            (1_223, LESS),
            (1_259, RATE),
            (1_511, MORE),
            (1_563, LESS),
            (1_599, RATE),
            (1_851, MORE),
            (1_903, LESS),
            (1_939, RATE),
        ]
    );
    assert_eq!(pair.client().info().cwnd, 90);
    pair.runs_until(ms(2_200));
    assert_eq!(pair.client().info().cwnd, 92);
}

/// Once the shortest round trip is ten seconds old, four segments are under way for 200 ms and a round
/// trip (`bbr_min_rtt_win_sec`, `bbr_probe_rtt_mode_ms`), and then what was before.
#[test]
fn after_ten_seconds_the_round_trip_is_looked_at() {
    let mut pair = over(ms(1));
    pair.runs_until(ms(10_040));
    assert_eq!(pair.client().info().cwnd, 92);
    for moment in [10_050, 10_150, 10_290] {
        pair.runs_until(ms(moment));
        assert_eq!((pair.client().info().cwnd, rate_at(&mut pair, ms(moment))), (4, RATE));
    }
    assert_eq!(pair.client().info().in_flight, 4);
    // From 10097 ms on no more than four are under way: 200 ms and a tick later the round is over, too.
    pair.runs_until(ms(10_310));
    assert_eq!(pair.client().info().cwnd, 94);
}

/// A loss sets no rate. In the first round trip of recovery what leaves is what arrived, and behind it
/// the window is as before (`bbr_set_cwnd_to_recover_or_restore`).
#[test]
fn a_loss_changes_the_window_for_a_round_trip() {
    let pair = Pair::new(&linux().bbr(), ms(20)).with_line(ms(1), u64::MAX);
    let mut pair = pair.loses_data(End::Client, &[1_000]).client_sends(1_000_000);
    pair.runs_until(ms(1_136));
    assert_eq!((pair.client().info().cwnd, pair.client().info().counters.fast_recoveries), (90, 0));
    pair.runs_until(ms(1_139));
    let info = pair.client().info();
    assert_eq!((info.counters.fast_recoveries, info.cwnd, info.in_flight), (1, 42, 42));
    assert_eq!((info.pacing_rate, info.ssthresh), (RATE, Some(46)));
    pair.runs_until(ms(1_200));
    let later = pair.client().info();
    assert_eq!((later.counters.segments_retransmitted, later.cwnd), (1, 92));
}

/// A queue of 20 segments loses what startup and the first window of drain have too much: 124 segments, and
/// none after that, for a probe makes ten wait.
#[test]
fn a_short_queue_overflows_in_startup_only() {
    let pair = Pair::new(&linux().bbr(), ms(20)).with_line(ms(1), 20);
    let mut pair = pair.client_sends(1_000_000);
    pair.runs_until(ms(1_000));
    assert_eq!(pair.client().info().counters.segments_retransmitted, 124);
    pair.runs_until(ms(9_000));
    let info = pair.client().info();
    assert_eq!((info.counters.segments_retransmitted, info.counters.timeouts), (124, 0));
}

/// After a pause for want of data the rate is the one that is known, whatever phase it fell into
/// (`bbr_cwnd_event`); the window, which was not used, stays (`tcp_slow_start_after_idle_check`).
#[test]
fn after_a_pause_data_leaves_at_the_known_rate() {
    let pair = Pair::new(&linux().bbr(), ms(20)).with_line(ms(1), u64::MAX);
    let mut pair = pair.client_sends(1_130);
    pair.runs_until(ms(1_200));
    assert_eq!(pair.client().info().pacing_rate, MORE);
    pair.runs_until(ms(3_000));
    assert!(pair.client().is_idle());
    let cwnd = pair.client().info().cwnd;
    let pair = pair.client_writes(100);
    assert_eq!((pair.client().info().pacing_rate, pair.client().info().cwnd), (RATE, cwnd));
    assert_eq!(pair.client().info().in_flight, 2);
}

/// Below 1.2 Mbit/s segments leave one by one, above in pairs at least (`bbr_min_tso_segs`).
#[test]
fn slow_flows_send_single_segments() {
    for (spacing, burst) in [(ms(20), 1), (ms(1), 2)] {
        let mut pair = over(spacing);
        pair.runs_until(ms(9_000));
        assert_eq!(pair.largest_burst(ms(8_000)), burst);
    }
}
