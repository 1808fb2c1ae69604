//! What disciplines do one step before a limit, at it, and after it: times to the nanosecond (CoDel's to its tick),
//! sizes to the packet. The figures follow from the parameters, and stand beside each test.

mod bench;
mod htb;

use weir_core::{Duration, Ecn, Time};
use weir_qdisc::DropReason;

use crate::bench::{Bench, FULL, at, last_of, ticks};

/// 5 ms and 100 ms in CoDel's ticks of 1024 ns, rounded down.
const TARGET: u64 = 4_882;
const INTERVAL: u64 = 97_656;

/// All of `codel`, with packets that came at the first tick.
fn codel(spec: &str, ecn: Ecn) -> Bench {
    let mut bench = Bench::new(spec);
    bench.arrive(900, Time::ZERO, FULL, ecn);
    bench
}

#[test]
fn codel_waits_for_more_than_an_interval_at_or_above_its_target() {
    // Below the target until the last nanosecond of tick 4881, at it in 4882: the interval starts there.
    let mut bench = codel("codel", Ecn::NotEct);
    assert_eq!(bench.signals_after(last_of(TARGET - 1)), 0);
    assert_eq!(bench.signals_after(ticks(TARGET)), 0);
    assert_eq!(bench.signals_after(last_of(TARGET + INTERVAL)), 0, "at the end of the interval");
    assert_eq!(bench.signals_after(ticks(TARGET + INTERVAL + 1)), 1, "after it");
    assert_eq!(
        bench.seen.drops,
        [(3, DropReason::TargetExceeded)],
        "the oldest, and the next one leaves"
    );
    assert_eq!(bench.leaves(ticks(TARGET + INTERVAL + 1)), Some(5));
}

#[test]
fn a_sojourn_time_below_the_target_ends_codels_interval() {
    let mut bench = Bench::new("codel");
    bench.arrive(4, Time::ZERO, FULL, Ecn::NotEct);
    bench.arrive(9, ticks(6_000), FULL, Ecn::NotEct);
    for now in [TARGET, 6_001, 6_002, 6_003] {
        assert_eq!(bench.signals_after(ticks(now)), 0);
    }
    // Packet 4 has waited for a tick less than the target.
    assert_eq!(bench.signals_after(ticks(6_000 + TARGET - 1)), 0);
    let anew = 6_000 + TARGET + INTERVAL;
    assert_eq!(bench.signals_after(ticks(6_000 + TARGET)), 0);
    assert_eq!(bench.signals_after(ticks(anew)), 0, "had it not ended, this were a drop");
    assert_eq!(bench.signals_after(ticks(anew + 1)), 1);
}

#[test]
fn codel_leaves_the_last_full_packet_alone() {
    // 1514 bytes behind the one that leaves are not a queue; 1515 are.
    for (behind, drops) in [(1_514, 0), (1_515, 1)] {
        let mut bench = Bench::new("codel");
        bench.arrive(2, Time::ZERO, FULL, Ecn::NotEct);
        bench.arrive(1, Time::ZERO, (0, behind), Ecn::NotEct);
        assert_eq!(bench.signals_after(ticks(TARGET)), 0);
        assert_eq!(bench.signals_after(ticks(TARGET + INTERVAL + 1)), drops, "{behind}");
    }
}

/// The spacing is interval / sqrt(count), with the root as one Newton step from the last one gives it: 1 for the
/// first drop, 1/2 and 9/16 for the next two.
#[test]
fn codels_drops_are_spaced_by_the_root_of_their_count() {
    for (spec, ecn) in [("codel", Ecn::NotEct), ("codel ecn", Ecn::Ect0), ("fq_codel", Ecn::Ect0)] {
        let mut bench = codel(spec, ecn);
        bench.signals_after(ticks(TARGET));
        let mut now = TARGET + INTERVAL + 1;
        assert_eq!(bench.signals_after(ticks(now)), 1);
        // interval * 65535 / 65536, * 32769 / 65536, and * 36864 / 65536, rounded down.
        for (signals, spacing) in [(2, 97_654), (3, 48_829), (4, 54_931)] {
            now += spacing;
            assert_eq!(bench.signals_after(ticks(now - 1)), signals - 1, "{spec}: a tick early");
            assert_eq!(bench.signals_after(ticks(now)), signals, "{spec}: at {spacing}");
            assert_eq!(bench.signals_after(last_of(now)), signals, "{spec}: once");
        }
        assert_eq!(bench.seen.marks.is_empty(), ecn == Ecn::NotEct, "{spec}");
    }
}

/// A queue that is too long again soon after is signalled to at the rate that worked, if that was more than one drop
/// above the rate at which the dropping began.
#[test]
fn codel_takes_up_a_rate_of_more_than_one_further_drop() {
    // The second drop is 97654 ticks after the first, the third 48829 later. With two further drops CoDel begins
    // with a count of 2 and one more step from 36864 / 65536 to its root: 43632 / 65536 of the interval.
    let second = TARGET + INTERVAL + 1 + 97_654;
    for (last_drop, spacing) in [(second, 97_654), (second + 48_829, 65_016)] {
        let mut bench = Bench::new("codel");
        bench.arrive(20, Time::ZERO, FULL, Ecn::NotEct);
        for now in [TARGET, TARGET + INTERVAL + 1, second, last_drop] {
            bench.signals_after(ticks(now));
        }
        while bench.leaves(ticks(last_drop)).is_some() {}
        let drops = bench.seen.drops.len();
        let back = last_drop + 1_000;
        bench.arrive(20, ticks(back), FULL, Ecn::NotEct);
        bench.signals_after(ticks(back + TARGET));
        let entry = back + TARGET + INTERVAL + 1;
        assert_eq!(bench.signals_after(ticks(entry)), drops + 1);
        assert_eq!(bench.signals_after(ticks(entry + spacing - 1)), drops + 1, "{last_drop}");
        assert_eq!(bench.signals_after(ticks(entry + spacing)), drops + 2, "{last_drop}");
    }
}

#[test]
fn codels_late_drops_are_made_up_for_at_once() {
    let mut bench = codel("codel", Ecn::NotEct);
    bench.signals_after(ticks(TARGET));
    bench.signals_after(ticks(TARGET + INTERVAL + 1));
    // Due after 97654, 48829 and 54931 ticks; the third is a tick away.
    assert_eq!(bench.signals_after(ticks(TARGET + INTERVAL + 97_654 + 48_829 + 54_931)), 3);
    let mut marking = codel("codel ecn", Ecn::Ect0);
    marking.signals_after(ticks(TARGET));
    marking.signals_after(ticks(TARGET + INTERVAL + 1));
    let late = ticks(TARGET + INTERVAL + 97_654 + 48_829 + 54_931);
    assert_eq!(
        (marking.signals_after(late), marking.signals_after(late)),
        (2, 3),
        "a mark a packet"
    );
}

/// `ce_threshold` marks what waited longer than it, not as long.
#[test]
fn ce_threshold_is_exceeded_by_a_tick() {
    let mut bench = codel("codel ce_threshold 1ms", Ecn::Ect0);
    assert_eq!(bench.signals_after(last_of(976)), 0);
    assert_eq!(bench.signals_after(ticks(977)), 1);
}

#[test]
fn limits_in_packets_hold_as_many() {
    for spec in ["codel limit 5", "pie limit 5", "sfq limit 5 depth 5", "pfifo limit 5"] {
        let mut bench = Bench::new(spec);
        bench.arrive(5, at(1), FULL, Ecn::NotEct);
        assert_eq!(bench.seen.drops, [], "{spec}");
        bench.arrive(1, at(1), FULL, Ecn::NotEct);
        assert_eq!(bench.seen.drops.len(), 1, "{spec}");
    }
}

#[test]
fn fq_codel_drops_half_of_the_longest_flow_once_it_is_full() {
    let mut bench = Bench::new("fq_codel limit 10");
    bench.arrive(2, at(1), (1, 1_514), Ecn::NotEct);
    bench.arrive(8, at(1), FULL, Ecn::NotEct);
    assert_eq!(bench.seen.drops, []);
    // Nine packets of the longer one: four of them are less than half of its bytes, five are enough.
    bench.arrive(1, at(1), FULL, Ecn::NotEct);
    let dropped: Vec<u64> = bench.seen.drops.iter().map(|drop| drop.0).collect();
    assert_eq!(dropped, [2, 3, 4, 5, 6]);

    // `drop_batch` ends it earlier.
    let mut batched = Bench::new("fq_codel limit 10 drop_batch 2");
    batched.arrive(11, at(1), FULL, Ecn::NotEct);
    assert_eq!(batched.seen.drops, [(0, DropReason::Overlimit), (1, DropReason::Overlimit)]);
}

/// Flow 1 had more packets, but those left. What counts is what waits now, in either direction.
#[test]
fn fq_codels_longest_flow_is_the_one_with_most_packets_left() {
    let dropped_after = |first: u64, leave: u64| -> Vec<u64> {
        let mut bench = Bench::new("fq_codel limit 6 drop_batch 1");
        bench.arrive(first, at(1), (1, 1_514), Ecn::NotEct);
        for _ in 0..leave {
            assert!(bench.leaves(at(1)).is_some());
        }
        let others = 7 - (first - leave);
        bench.arrive(others, at(1), FULL, Ecn::NotEct);
        bench.seen.drops.iter().map(|drop| drop.0).collect()
    };
    assert_eq!(dropped_after(6, 3), [6], "three against four");
    assert_eq!(dropped_after(6, 2), [2], "four against three");
}

/// Packets that left take no memory.
#[test]
fn fq_codels_memory_is_that_of_the_packets_that_wait() {
    let mut bench = Bench::new(&format!("fq_codel memory_limit {} drop_batch 1", 5 * 2_304));
    bench.arrive(5, at(1), FULL, Ecn::NotEct);
    for _ in 0..3 {
        assert!(bench.leaves(at(1)).is_some());
    }
    bench.arrive(3, at(1), FULL, Ecn::NotEct);
    assert_eq!(bench.seen.drops, []);
    bench.arrive(1, at(1), FULL, Ecn::NotEct);
    assert_eq!(bench.seen.drops, [(3, DropReason::Overmemory)]);
}

/// A full packet takes 2304 bytes of memory.
#[test]
fn fq_codels_memory_limit_is_reached_without_a_drop_and_exceeded_with_one() {
    for (limit, drops) in [(5 * 2_304, 0), (5 * 2_304 - 1, 1)] {
        let mut bench = Bench::new(&format!("fq_codel memory_limit {limit} drop_batch 1"));
        bench.arrive(5, at(1), FULL, Ecn::NotEct);
        assert_eq!(bench.seen.drops.len(), drops, "{limit}");
        assert!(bench.seen.drops.iter().all(|drop| drop.1 == DropReason::Overmemory));
    }
}

#[test]
fn cakes_memory_limit_is_reached_without_a_drop_and_exceeded_with_one() {
    for (limit, drops) in [(5 * 2_304, 0), (5 * 2_304 - 1, 1)] {
        let mut bench = Bench::new(&format!("cake bandwidth 1mbit memlimit {limit}"));
        bench.arrive(5, at(1), FULL, Ecn::NotEct);
        assert_eq!(bench.seen.drops.len(), drops, "{limit}");
    }
}

/// What waits of packets of 9014 bytes is never longer than what it may take of memory. A packet of UDP takes 16640
/// bytes.
#[test]
fn jumbo_frames_take_their_memory_too() {
    for (spec, limit) in
        [("fq_codel", "memory_limit"), ("cake", "memlimit"), ("dualpi2", "memlimit")]
    {
        for (packets, memory) in [(3, 4 * 16_640 - 1), (4, 4 * 16_640)] {
            let mut bench = Bench::new(&format!("{spec} {limit} {memory}"));
            bench.arrive(4, at(1), (0, 9_014), Ecn::NotEct);
            let waiting = bench.port.backlog().packets;
            assert!(waiting <= packets, "{spec}: {waiting} in {memory} bytes");
            assert_eq!(waiting == 4, packets == 4, "{spec}: {waiting} in {memory} bytes");
        }
    }
}

/// The drops for want of room count towards CoDel's rate, if CoDel has dropped within 16 intervals; and there is no
/// "within" before it ever has.
#[test]
fn fq_codel_takes_up_its_drop_rate_within_16_intervals() {
    // The schedule after the only drop so far: when it would have been due, and 16 intervals more.
    let first = TARGET + INTERVAL + 1;
    let forgotten = first + 97_654 + 16 * INTERVAL;
    for (entry, spacing) in [(forgotten - 1, 48_829), (forgotten, 97_654)] {
        let mut bench = Bench::new("fq_codel flows 1 limit 100 drop_batch 1 noecn");
        bench.arrive(5, Time::ZERO, FULL, Ecn::NotEct);
        bench.signals_after(ticks(TARGET));
        assert_eq!(bench.signals_after(ticks(first)), 1);
        while bench.leaves(ticks(first)).is_some() {}
        // Empty: out of the dropping state. Two drops for want of room, and then too long a queue again.
        let full = entry - INTERVAL - 1 - TARGET;
        bench.arrive(102, ticks(full), FULL, Ecn::NotEct);
        assert_eq!(bench.seen.drops.len(), 3);
        bench.signals_after(ticks(full + TARGET));
        assert_eq!(bench.signals_after(ticks(entry)), 4);
        assert_eq!(bench.signals_after(ticks(entry + spacing - 1)), 4, "{entry}: too early");
        assert_eq!(bench.signals_after(ticks(entry + spacing)), 5, "{entry}");
    }
}

/// 2000 bytes at 1 Mbit/s: 16 ms, of which a full packet takes 12.112.
#[test]
fn tbf_lets_a_packet_go_once_its_tokens_are_there() {
    let mut bench = Bench::new("tbf rate 1mbit burst 2000 limit 100000");
    let start = Time::from_millis(1_000);
    bench.arrive(3, start, FULL, Ecn::NotEct);
    assert_eq!((bench.leaves(start), bench.leaves(start)), (Some(0), None));
    let enough = start + Duration::from_nanos(2 * 12_112_000 - 16_000_000);
    assert_eq!(bench.leaves(at(enough.as_nanos() - 1)), None);
    assert_eq!(bench.leaves(enough), Some(1));
}

/// A cake at 10 Mbit/s lets the next packet go a nanosecond after the one before is through.
#[test]
fn cakes_schedule_is_a_nanosecond_ahead_of_its_timer() {
    let mut bench = Bench::new("cake bandwidth 10mbit besteffort");
    let start = Time::from_millis(1_000);
    bench.arrive(3, start, FULL, Ecn::NotEct);
    assert_eq!((bench.leaves(start), bench.leaves(start)), (Some(0), None));
    assert_eq!(bench.port.wake_at(), Some(start + Duration::from_nanos(1_211_201)));
    assert_eq!(bench.leaves(start + Duration::from_nanos(1_211_199)), None);
    assert_eq!(bench.leaves(start + Duration::from_nanos(1_211_200)), Some(1));
}

/// Four times what arrives in an interval: at 200 Mbit/s and 100 ms 10 MB, in which 4340 full packets have room.
#[test]
fn cakes_own_memory_limit_follows_from_its_rate() {
    let mut bench = Bench::new("cake bandwidth 200mbit besteffort");
    bench.arrive(4_340, at(1), FULL, Ecn::NotEct);
    assert_eq!(bench.seen.drops, []);
    bench.arrive(1, at(1), FULL, Ecn::NotEct);
    assert_eq!(bench.seen.drops, [(0, DropReason::Overmemory)]);
}

/// A shaper beneath `red` says when to ask again.
#[test]
fn red_wakes_when_what_is_beneath_it_does() {
    let mut bench =
        Bench::new("red limit 400000 avpkt 1000 tbf rate 1mbit burst 2000 limit 100000");
    let start = Time::from_millis(1_000);
    bench.arrive(2, start, FULL, Ecn::NotEct);
    assert_eq!((bench.leaves(start), bench.leaves(start)), (Some(0), None));
    assert_eq!(
        bench.port.wake_at(),
        Some(start + Duration::from_nanos(2 * 12_112_000 - 16_000_000))
    );
}
