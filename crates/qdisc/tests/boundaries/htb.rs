//! `htb`: tokens, turns and levels.

use weir_core::{Duration, Ecn, Time};
use weir_qdisc::{Device, DropReason, HtbClassParams, QueueSpec};

use crate::bench::{Bench, FULL, at};

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
    let refusal = QueueSpec::parse(&chain(8)).and_then(|it| it.build(&Device::default())).err();
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
    let spec = QueueSpec::parse(&format!(
        "qdisc add dev e root handle 1: htb
         class add dev e parent 1: classid 1:1 htb {words}"
    ));
    HtbClassParams::read(&spec.unwrap().classes[0], 10, &Device::default()).unwrap()
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
    for (spec, count) in (21..27).flat_map(|count| [(&own, count), (&text, count)]) {
        let mut bench = Bench::new(spec);
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
