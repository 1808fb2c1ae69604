//! What disciplines do one step before a limit, at it, and after it: times to the nanosecond (CoDel's to its tick),
//! sizes to the packet. The figures follow from the parameters, and stand beside each test.

use weir_core::{Dscp, Duration, Ecn, FlowKey, Packet, Protocol, Time};
use weir_qdisc::{Device, DropReason, DropSink, HtbClassParams, MarkReason, Port, SetUp};

/// A port driven by hand, which keeps what was dropped and marked.
struct Bench {
    port: Port,
    seen: Seen,
    sent: u64,
}

#[derive(Default)]
struct Seen {
    drops: Vec<(u64, DropReason)>,
    marks: Vec<u64>,
}

impl DropSink for Seen {
    fn on_drop(&mut self, packet: Packet, reason: DropReason) {
        self.drops.push((packet.handle, reason));
    }

    fn on_mark(&mut self, packet: &Packet, _: MarkReason) {
        self.marks.push(packet.handle);
    }
}

impl Bench {
    fn new(set_up: &str) -> Self {
        let qdisc = SetUp::parse(set_up).and_then(|parsed| parsed.build(&Device::default()));
        let qdisc = qdisc.unwrap_or_else(|error| panic!("{set_up}: {error}"));
        Self { port: Port::new(qdisc), seen: Seen::default(), sent: 0 }
    }

    /// Packet after packet arrives from the same flow, numbered from 0.
    fn arrive(&mut self, count: u64, at: Time, (flow, len): (u16, u32), ecn: Ecn) {
        for _ in 0..count {
            let key = FlowKey {
                src: "10.0.0.1".parse().unwrap(),
                dst: "10.0.1.1".parse().unwrap(),
                sport: 10_000,
                dport: 5_000 + flow,
                protocol: Protocol::UDP,
            };
            let packet = Packet {
                handle: self.sent,
                enqueued_at: at,
                label: key.label(7),
                len,
                flow_id: u32::from(flow),
                dscp: Dscp::BE,
                ecn,
            };
            self.sent += 1;
            self.port.enqueue(packet, at, &mut self.seen);
        }
    }

    fn leaves(&mut self, at: Time) -> Option<u64> {
        self.port.dequeue(at, &mut self.seen).map(|packet| packet.handle)
    }

    /// How many packets were dropped or marked once a packet has left at `at`.
    fn signals_after(&mut self, at: Time) -> usize {
        assert!(self.leaves(at).is_some(), "nothing waits at {at}");
        self.seen.drops.len() + self.seen.marks.len()
    }
}

const fn ticks(count: u64) -> Time {
    Time::from_nanos(count << 10)
}

const fn last_of(tick: u64) -> Time {
    Time::from_nanos(((tick + 1) << 10) - 1)
}

fn at(nanos: u64) -> Time {
    Time::from_nanos(nanos)
}

const FULL: (u16, u32) = (0, 1_514);

/// 5 ms and 100 ms in CoDel's ticks of 1024 ns, rounded down.
const TARGET: u64 = 4_882;
const INTERVAL: u64 = 97_656;

/// All of `codel`, with packets that came at the first tick.
fn codel(set_up: &str, ecn: Ecn) -> Bench {
    let mut bench = Bench::new(set_up);
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
    for (set_up, ecn) in [("codel", Ecn::NotEct), ("codel ecn", Ecn::Ect0), ("fq_codel", Ecn::Ect0)]
    {
        let mut bench = codel(set_up, ecn);
        bench.signals_after(ticks(TARGET));
        let mut now = TARGET + INTERVAL + 1;
        assert_eq!(bench.signals_after(ticks(now)), 1);
        // interval * 65535 / 65536, * 32769 / 65536, and * 36864 / 65536, rounded down.
        for (signals, spacing) in [(2, 97_654), (3, 48_829), (4, 54_931)] {
            now += spacing;
            assert_eq!(bench.signals_after(ticks(now - 1)), signals - 1, "{set_up}: a tick early");
            assert_eq!(bench.signals_after(ticks(now)), signals, "{set_up}: at {spacing}");
            assert_eq!(bench.signals_after(last_of(now)), signals, "{set_up}: once");
        }
        assert_eq!(bench.seen.marks.is_empty(), ecn == Ecn::NotEct, "{set_up}");
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
    for set_up in ["codel limit 5", "pie limit 5", "sfq limit 5 depth 5", "pfifo limit 5"] {
        let mut bench = Bench::new(set_up);
        bench.arrive(5, at(1), FULL, Ecn::NotEct);
        assert_eq!(bench.seen.drops, [], "{set_up}");
        bench.arrive(1, at(1), FULL, Ecn::NotEct);
        assert_eq!(bench.seen.drops.len(), 1, "{set_up}");
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

/// 1600 bytes at 10 Mbit/s are 1.28 ms of tokens, a full packet costs 1.2112 ms: after an idle time two leave, the
/// second into debt, and the third once 1.1424 ms have paid it.
#[test]
fn htbs_bucket_is_as_deep_as_its_burst() {
    let mut bench = Bench::new("htb rate 10mbit burst 1600 cburst 1600");
    let start = Time::from_millis(1_000);
    bench.arrive(4, start, FULL, Ecn::NotEct);
    assert_eq!(
        (bench.leaves(start), bench.leaves(start), bench.leaves(start)),
        (Some(0), Some(1), None)
    );
    let paid = start + Duration::from_nanos(2 * 1_211_200 - 1_280_000);
    assert_eq!(bench.port.wake_at(), Some(paid));
    assert_eq!(bench.leaves(at(paid.as_nanos() - 1)), None);
    assert_eq!(bench.leaves(paid), Some(2));
    assert_eq!(bench.leaves(paid + Duration::from_nanos(1_211_199)), None);
    assert_eq!(bench.leaves(paid + Duration::from_nanos(1_211_200)), Some(3));
}

/// Two classes that may send as long as their parent lends share it by their quanta, turn by turn.
#[test]
fn htbs_classes_borrow_in_turns_of_their_quantum() {
    let mut bench = Bench::new(
        "qdisc add dev eth0 root handle 1: htb
         class add dev eth0 parent 1: classid 1:1 htb rate 10mbit
         class add dev eth0 parent 1:1 classid 1:10 htb rate 8kbit ceil 10mbit quantum 1514
         class add dev eth0 parent 1:1 classid 1:20 htb rate 8kbit ceil 10mbit quantum 4542
         filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dport 5001 0xffff flowid 1:10
         filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dport 5002 0xffff flowid 1:20",
    );
    bench.arrive(400, at(1), (1, 1_514), Ecn::NotEct);
    bench.arrive(400, at(1), (2, 1_514), Ecn::NotEct);
    let mut left = Vec::new();
    let mut now = at(1);
    while left.len() < 200 {
        match bench.leaves(now) {
            Some(packet) => left.push(packet < 400),
            None => now = bench.port.wake_at().expect("packets wait"),
        }
    }
    // What the buckets held at first is used up after a few packets. Then one and three in turn.
    let shares = left[40..].chunks(4).map(|four| four.iter().filter(|&&first| first).count());
    assert_eq!(shares.collect::<Vec<_>>(), [1; 40]);
}

/// Seven levels of classes with others beneath them, and no more. Those lend to one another: the packet that takes the
/// leaf into debt is followed by others, down to the debt of them all.
#[test]
fn htbs_tree_has_eight_levels_with_the_leaves() {
    let chain = |inner: u16| {
        let mut text = format!("qdisc add dev e root handle 1: htb default {}\n", inner + 1);
        for id in 1..=inner + 1 {
            let parent = if id == 1 { "1:".to_owned() } else { format!("1:{}", id - 1) };
            let rate = if id == 1 { "rate 10mbit" } else { "rate 8kbit ceil 10mbit" };
            text += &format!("class add dev e parent {parent} classid 1:{id} htb {rate}\n");
        }
        text
    };
    let refusal = SetUp::parse(&chain(8)).and_then(|it| it.build(&Device::default())).err();
    let expected = "htb: class `1:8` lies too deep: 7 levels are allowed";
    assert_eq!(refusal.expect("it is too deep").to_string(), expected);
    let mut bench = Bench::new(&chain(7));
    let start = Time::from_millis(1_000);
    bench.arrive(20, start, FULL, Ecn::NotEct);
    let mut now = start;
    for packet in 0..20 {
        while bench.leaves(now).is_none() {
            now = bench.port.wake_at().expect("packets wait");
        }
        // 1600 bytes and the debt of a packet ahead of what 10 Mbit/s give.
        let sent = now.since(start).as_nanos();
        assert!(sent <= 1_211_200 * packet, "packet {packet} after {sent} ns");
    }
    assert!(now.since(start).as_nanos() >= 1_211_200 * 17, "not faster than the lender: {now}");
}

fn htb_class(words: &str) -> HtbClassParams {
    let set_up = SetUp::parse(&format!(
        "qdisc add dev e root handle 1: htb
         class add dev e parent 1: classid 1:1 htb {words}"
    ));
    HtbClassParams::read(&set_up.unwrap().classes[0], 10, &Device::default()).unwrap()
}

/// A priority beyond 7 is 7; a burst of 0 is none written, and so 1600 bytes, 12.8 ms at 1 Mbit/s.
#[test]
fn htbs_parameters_have_bounds() {
    let prios = ["prio 6", "prio 7", "prio 8", "prio 9"];
    assert_eq!(prios.map(|prio| htb_class(&format!("rate 1mbit {prio}")).prio), [6, 7, 7, 7]);
    let bursts = ["", "burst 0", "burst 1", "burst 5000"];
    let depths = bursts.map(|burst| htb_class(&format!("rate 1mbit {burst}")).buffer_ns);
    assert_eq!(depths, [12_800_000, 12_800_000, 8_000, 40_000_000]);
}

/// Without a written quantum: the rate in bytes a second by `r2q`, within 1000 and 200000 bytes.
#[test]
fn htbs_quantum_follows_from_the_rate() {
    let quantum = |rate: &str| htb_class(&format!("rate {rate}")).quantum;
    let quanta = ["799kbit", "800kbit", "808kbit", "1mbit", "16mbit", "17mbit"].map(quantum);
    assert_eq!(quanta, [9_987, 10_000, 10_100, 12_500, 200_000, 200_000]);
    assert_eq!(["8kbit", "80kbit", "88kbit"].map(quantum), [1_000, 1_000, 1_100]);
}

/// A class that borrowed has paid the lender, not its own rate: once a more important one wants all there is to borrow,
/// it still has what it is guaranteed, 8 of 10 Mbit/s.
#[test]
fn htbs_class_that_borrowed_keeps_its_guarantee() {
    let mut bench = Bench::new(
        "qdisc add dev eth0 root handle 1: htb
         class add dev eth0 parent 1: classid 1:1 htb rate 10mbit
         class add dev eth0 parent 1:1 classid 1:10 htb rate 8mbit ceil 10mbit prio 1
         class add dev eth0 parent 1:1 classid 1:20 htb rate 1mbit ceil 10mbit prio 0
         filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dport 5001 0xffff flowid 1:10
         filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dport 5002 0xffff flowid 1:20",
    );
    let start = Time::from_millis(1_000);
    bench.arrive(400, start, (1, 1_514), Ecn::NotEct);
    let mut now = start;
    let mut left = Vec::new();
    while left.len() < 320 {
        match bench.leaves(now) {
            Some(packet) => left.push(packet < 400),
            None => now = bench.port.wake_at().expect("packets wait"),
        }
        if left.len() == 200 && bench.sent == 400 {
            // Until now it had all of the line.
            bench.arrive(400, now, (2, 1_514), Ecn::NotEct);
        }
    }
    // What the buckets of the second class hold goes first; then four packets of five are the first one's.
    let of_first = left[220..].iter().filter(|&&first| first).count();
    assert!((79..=81).contains(&of_first), "{of_first} of 100");
}

/// Classes that borrow take turns in the order of their numbers, whichever came first.
#[test]
fn htbs_classes_take_turns_in_the_order_of_their_numbers() {
    let mut text = "qdisc add dev e root handle 1: htb
         class add dev e parent 1: classid 1:1 htb rate 10mbit\n"
        .to_owned();
    for id in 2..=4 {
        text += &format!(
            "class add dev e parent 1:1 classid 1:{id} htb rate 8kbit ceil 10mbit quantum 1514
             filter add dev e parent 1: u32 match ip dport {} 0xffff flowid 1:{id}\n",
            5_000 + id
        );
    }
    for flows in [[2, 3, 4], [4, 3, 2], [3, 4, 2]] {
        let mut bench = Bench::new(&text);
        for flow in flows {
            bench.arrive(100, at(1), (flow, 1_514), Ecn::NotEct);
        }
        let mut left = Vec::new();
        let mut now = at(1);
        while left.len() < 100 {
            match bench.leaves(now) {
                Some(packet) => left.push(flows[packet as usize / 100]),
                None => now = bench.port.wake_at().expect("packets wait"),
            }
        }
        let turns = left[40..].windows(2).filter(|two| two[1] == 2 + (two[0] - 1) % 3);
        assert_eq!(turns.count(), 59, "{flows:?}: {left:?}");
    }
}

/// A packet that leaves nothing of the quantum does not end the turn; one that leaves less than nothing does, and is
/// made up for by the next quantum. So each class begins with one packet and goes on with two.
#[test]
fn htbs_turn_ends_below_nothing() {
    let mut text = "qdisc add dev e root handle 1: htb\n".to_owned();
    for id in 1..=2 {
        text += &format!(
            "class add dev e parent 1: classid 1:{id} htb rate 10mbit burst 100k cburst 100k quantum 3028
             filter add dev e parent 1: u32 match ip dport {} 0xffff flowid 1:{id}\n",
            5_000 + id
        );
    }
    let mut bench = Bench::new(&text);
    let start = Time::from_millis(1_000);
    bench.arrive(10, start, (1, 1_514), Ecn::NotEct);
    bench.arrive(10, start, (2, 1_514), Ecn::NotEct);
    let left: Vec<u64> = (0..10).map(|_| 1 + bench.leaves(start).unwrap() / 10).collect();
    assert_eq!(left, [1, 2, 1, 1, 2, 2, 1, 1, 2, 2]);
}

/// When a class has sent all it had, within its turn or at the end of it, the one with the next number follows.
#[test]
fn htbs_turns_go_on_behind_a_class_that_left() {
    let mut text = "qdisc add dev e root handle 1: htb
         class add dev e parent 1: classid 1:1 htb rate 10mbit\n"
        .to_owned();
    for id in 2..=4 {
        text += &format!(
            "class add dev e parent 1:1 classid 1:{id} htb rate 8kbit ceil 10mbit quantum 4542 prio 1
             filter add dev e parent 1: u32 match ip dport {} 0xffff flowid 1:{id}\n",
            5_000 + id
        );
    }
    // Within their own rates, and borrowing.
    let own = text.replace("rate 8kbit ceil 10mbit", "rate 10mbit burst 1m cburst 1m");
    for (set_up, count) in (21..27).flat_map(|count| [(&own, count), (&text, count)]) {
        let mut bench = Bench::new(set_up);
        for (flow, packets) in [(2, 100), (4, 100), (3, count)] {
            bench.arrive(packets, at(1), (flow, 1_514), Ecn::NotEct);
        }
        let mut left = Vec::new();
        let mut now = at(1);
        while left.len() < 120 {
            match bench.leaves(now) {
                Some(packet) => left.push([2, 4, 3][packet as usize / 100]),
                None => now = bench.port.wake_at().expect("packets wait"),
            }
        }
        let last = left.iter().rposition(|&flow| flow == 3).unwrap();
        assert_eq!(left[last + 1], 4, "{count}: {left:?}");
    }
}

/// The class whose turn it is drops all it has for want of memory, and the other one holds its packet back: nothing
/// leaves, and the class is asked but once.
#[test]
fn htbs_class_that_dropped_all_it_had_gives_its_turn_away() {
    let mut bench = Bench::new(
        "qdisc add dev e root handle 1: htb
         class add dev e parent 1: classid 1:2 htb rate 10mbit burst 1m cburst 1m quantum 9000
         class add dev e parent 1: classid 1:3 htb rate 10mbit burst 1m cburst 1m quantum 9000
         qdisc add dev e parent 1:2 fq_codel flows 1 memory_limit 3000
         qdisc add dev e parent 1:3 tbf rate 1mbit burst 2000 limit 100000
         filter add dev e parent 1: u32 match ip dport 5002 0xffff flowid 1:2
         filter add dev e parent 1: u32 match ip dport 5003 0xffff flowid 1:3",
    );
    let start = Time::from_millis(1_000);
    bench.arrive(2, start, (3, 1_514), Ecn::NotEct);
    assert_eq!((bench.leaves(start), bench.leaves(start)), (Some(0), None));
    // The first one ends a turn, the second begins another.
    bench.arrive(3, start, (2, 100), Ecn::NotEct);
    assert_eq!((bench.leaves(start), bench.leaves(start)), (Some(2), Some(3)));
    // 832 and 2304 bytes of memory.
    bench.arrive(1, start, (2, 1_514), Ecn::NotEct);
    assert_eq!(bench.seen.drops, [(4, DropReason::Overmemory), (5, DropReason::Overmemory)]);
    assert_eq!(bench.leaves(start), None);
    let wake = bench.port.wake_at().expect("the other class has a packet");
    assert_eq!(wake, start + Duration::from_nanos(2 * 12_112_000 - 16_000_000));
    assert_eq!(bench.leaves(wake), Some(1));
}

/// Two classes that borrow for the leaves beneath them take turns too: a round of the leaves of one, and then of the other's.
#[test]
fn htbs_inner_classes_take_turns() {
    let mut text = "qdisc add dev e root handle 1: htb
         class add dev e parent 1: classid 1:1 htb rate 10mbit\n"
        .to_owned();
    for (parent, id) in [(1, 2), (1, 3), (2, 20), (3, 30), (3, 31)] {
        text += &format!(
            "class add dev e parent 1:{parent} classid 1:{id} htb rate 8kbit ceil 10mbit quantum 1514\n"
        );
    }
    for id in [20, 30, 31] {
        let port = 5_000 + id;
        text +=
            &format!("filter add dev e parent 1: u32 match ip dport {port} 0xffff flowid 1:{id}\n");
    }
    let mut bench = Bench::new(&text);
    for flow in [20, 30, 31] {
        bench.arrive(100, at(1), (flow, 1_514), Ecn::NotEct);
    }
    let mut left = Vec::new();
    let mut now = at(1);
    while left.len() < 100 {
        match bench.leaves(now) {
            Some(packet) => left.push(packet / 100),
            None => now = bench.port.wake_at().expect("packets wait"),
        }
    }
    let turns = left[40..].windows(2).filter(|two| two[1] == (two[0] + 1) % 3);
    assert_eq!(turns.count(), 59, "{left:?}");
}

/// A class without tokens that may not borrow waits for its ceiling, whatever the parent has.
#[test]
fn htbs_ceiling_holds_a_class_that_borrows() {
    let mut bench = Bench::new(
        "qdisc add dev eth0 root handle 1: htb default 10
         class add dev eth0 parent 1: classid 1:1 htb rate 100mbit
         class add dev eth0 parent 1:1 classid 1:10 htb rate 1mbit burst 1514 ceil 10mbit cburst 1514",
    );
    let start = Time::from_millis(1_000);
    bench.arrive(50, start, FULL, Ecn::NotEct);
    let mut now = start;
    let mut left = Vec::new();
    while left.len() < 40 {
        if bench.leaves(now).is_none() {
            now = bench.port.wake_at().expect("packets wait");
            let woken_for_nothing = bench.leaves(now).is_none();
            // The parent has a burst to pay off first.
            assert!(!woken_for_nothing || left.len() < 3, "{now}");
            if woken_for_nothing {
                continue;
            }
        }
        left.push(now);
    }
    // One full packet takes 1.2112 ms at 10 Mbit/s.
    assert!(left.windows(2).skip(3).all(|pair| pair[1].since(pair[0]).as_nanos() == 1_211_200));
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
