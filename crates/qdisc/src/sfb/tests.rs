use weir_core::{Dscp, Ecn, FlowLabel, Seed};

use super::*;
use crate::port::Ignore;

fn sfb(words: &str) -> Sfb {
    Sfb::new(&QueueSpec::parse(&format!("sfb {words}")).unwrap(), &Device::default()).unwrap()
}

fn packet(flow: u32, ecn: Ecn) -> Packet {
    Packet {
        handle: 0,
        enqueued_at: Time::ZERO,
        label: FlowLabel { hash: flow, ..FlowLabel::default() },
        len: 1000,
        flow_id: flow,
        dscp: Dscp::BE,
        ecn,
    }
}

fn dropped(queue: &Sfb, reason: DropReason) -> u64 {
    queue.stats().dropped[reason as usize].packets
}

/// limit, max, target, increment, decrement: what `tc -d qdisc show` prints on Linux 6.12 (0.000503548
/// is 33 of 65535, 4.57771e-05 is 3).
#[test]
fn parameters_are_those_that_tc_shows() {
    let cases = [
        ("", (1000, 25, 20, 33, 3)),
        ("target 10", (1000, 12, 10, 33, 3)),
        ("target 11 max 0", (1000, 14, 11, 33, 3)),
        ("max 30 increment 0.01 decrement 0.001 limit 300", (300, 30, 24, 655, 66)),
    ];
    for (words, expected) in cases {
        let Sfb { limit, max, blue, .. } = sfb(words);
        let shown = (limit, max, blue.target, blue.increment, blue.decrement);
        assert_eq!(shown, expected, "{words}");
    }
    let schedule = sfb("rehash 5000 db 1001").schedule;
    assert_eq!((schedule.rehash, schedule.warm_up), (Some(1_250), Some(251)));
}

/// A flow that never lets go: its bins are full from two packets on, certain at once, and then it
/// lives on the penalty box: 3 packets at once, 10 a second.
#[test]
fn an_unresponsive_flow_is_held_to_its_penalty() {
    let mut queue = sfb("target 2 max 9 increment 1 penalty_burst 3");
    let mut send = |at: Time| {
        queue.enqueue(&packet(7, Ecn::Ect0), at, &mut Ignore);
        (queue.backlog().packets, dropped(&queue, DropReason::Penalty))
    };
    // Two as it likes, three on tokens.
    let first: Vec<_> = (0..7).map(|_| send(Time::from_millis(1_000))).collect();
    assert_eq!(first, [(1, 0), (2, 0), (3, 0), (4, 0), (5, 0), (5, 1), (5, 2)]);
    // 25 jiffies of 10 packets in 250 jiffies make one token.
    assert_eq!(send(Time::from_millis(1_096)), (5, 3));
    // The clock started over with the vain look at 1.096 s.
    assert_eq!(send(Time::from_millis(1_192)), (5, 4));
    assert_eq!(send(Time::from_millis(1_292)), (6, 4));
    assert_eq!(send(Time::from_millis(1_292)), (6, 5));
    // After long the burst is what counts.
    let later: Vec<_> = (0..4).map(|_| send(Time::from_millis(9_000)).0).collect();
    assert_eq!(later, [7, 8, 9, 9]);
    // Another flow is not concerned.
    queue.enqueue(&packet(8, Ecn::NotEct), Time::from_millis(9_000), &mut Ignore);
    assert_eq!(queue.backlog().packets, 10);
}

#[test]
fn bins_and_the_queue_have_limits() {
    let mut queue = sfb("max 3 target 3 limit 5 increment 0");
    for flow in [7, 7, 7, 7, 8, 8, 8] {
        queue.enqueue(&packet(flow, Ecn::NotEct), Time::ZERO, &mut Ignore);
    }
    assert_eq!(dropped(&queue, DropReason::Overlimit), 2, "one of each flow");
    let flows: Vec<_> =
        std::iter::from_fn(|| queue.dequeue(Time::ZERO, &mut Ignore)).map(|p| p.flow_id).collect();
    assert_eq!(flows, [7, 7, 7, 8, 8]);
    assert!(queue.filters.iter().flat_map(|f| f.bins).flatten().all(|bin| bin.packets == 0));
}

/// Below one half packets are marked where that can be; above, twice the excess is dropped even so.
#[test]
fn the_probability_marks_first_and_then_drops() {
    let shares = |probability: f64, ecn: Ecn| {
        let mut queue = sfb("target 1 max 9 increment 0 decrement 0");
        let hash = queue.filters[0].hash(&packet(7, ecn));
        let probability = (probability * 65_535.0) as u16;
        queue.filters[0].bins(hash).for_each(|bin| bin.probability = probability);
        for _ in 0..10_000 {
            queue.enqueue(&packet(7, ecn), Time::ZERO, &mut Ignore);
            queue.dequeue(Time::ZERO, &mut Ignore);
        }
        let marked = queue.stats().marked[MarkReason::Early as usize];
        (dropped(&queue, DropReason::Early) as f64 / 1e4, marked as f64 / 1e4)
    };
    let near = |(dropped, marked): (f64, f64), expected: (f64, f64)| {
        assert!((dropped - expected.0).abs() < 0.015, "{dropped} dropped, not {}", expected.0);
        assert!((marked - expected.1).abs() < 0.015, "{marked} marked, not {}", expected.1);
    };
    near(shares(0.25, Ecn::NotEct), (0.25, 0.0));
    near(shares(0.25, Ecn::Ect0), (0.0, 0.25));
    near(shares(0.75, Ecn::Ect0), (0.5, 0.25));
    near(shares(0.75, Ecn::NotEct), (0.75, 0.0));
}

/// 1 s of service, the last 400 ms of which the other filter hears of unresponsive flows. A queued
/// packet leaves the bins into which it came, though the key is another by then.
#[test]
fn filters_change_places() {
    let mut queue = sfb("rehash 1000 db 400 target 1 max 50 increment 1 penalty_burst 100");
    let keys = [queue.filters[0].key, queue.filters[1].key];
    let mut send = |ms: u64| {
        queue.enqueue(&packet(7, Ecn::NotEct), Time::from_millis(ms), &mut Ignore);
        (queue.serving, queue.warming_up)
    };
    assert_eq!(send(10_000), (0, false));
    assert_eq!(send(10_600), (0, false));
    assert_eq!(send(10_604), (0, true));
    assert_eq!(send(11_000), (0, true));
    assert_eq!(send(11_004), (1, false));
    assert_eq!(send(12_004), (1, true));
    assert_eq!(send(12_008), (0, false));
    assert!(queue.filters[0].key != keys[0] && queue.filters[1].key != keys[1]);
    let in_bins = |sfb: &Sfb| {
        sfb.filters.each_ref().map(|f| f.bins[0].iter().map(|bin| bin.packets).sum::<u16>())
    };
    // The filters heard of packets 1 to 4, 6 and 7, and of 3, 4, 5 and 6.
    assert_eq!(in_bins(&queue), [6, 4]);
    while queue.dequeue(Time::from_millis(13_000), &mut Ignore).is_some() {}
    assert_eq!(in_bins(&queue), [0, 0]);
}

/// Four unresponsive flows spoil at most 4 of 16 bins on each of 8 levels: one flow in 65 000 shares
/// them all.
#[test]
fn a_flow_suffers_only_if_all_its_bins_do() {
    let mut filter = Filter::new(&mut Seed::new(1).stream("test"));
    let blue = Blue { target: 1, increment: CERTAIN, decrement: 0 };
    for flow in 0..4 {
        let hash = filter.hash(&packet(flow, Ecn::NotEct));
        filter.bins(hash).for_each(|bin| bin.packets = 1);
        assert_eq!(filter.arrive(hash, blue).1, CERTAIN);
    }
    let innocent = Blue { target: 100, ..blue };
    for flow in 4..1_000 {
        let hash = filter.hash(&packet(flow, Ecn::NotEct));
        assert_eq!(filter.arrive(hash, innocent).1, 0, "{flow}");
    }
}

/// Packets that unresponsive flows may send at once after a long rest: the tokens of 10 s.
#[test]
fn tokens_of_ten_seconds_come_together_at_most() {
    let mut queue = sfb("target 1 max 60000 increment 1 penalty_rate 10 penalty_burst 200");
    let mut admitted = |at: Time| {
        let before = queue.backlog().packets;
        for _ in 0..300 {
            queue.enqueue(&packet(7, Ecn::NotEct), at, &mut Ignore);
        }
        queue.backlog().packets - before
    };
    // One comes before the flow is known for what it is.
    assert_eq!(admitted(Time::from_millis(1_000)), 201);
    assert_eq!(admitted(Time::from_millis(11_000 - 4)), 99);
    assert_eq!(admitted(Time::from_millis(71_000)), 100);
}

#[test]
fn without_a_penalty_rate_or_a_burst_unresponsive_flows_send_nothing() {
    for none in ["penalty_rate 0 penalty_burst 5", "penalty_rate 5 penalty_burst 0"] {
        let mut queue = sfb(&format!("target 1 max 9 increment 1 {none}"));
        for second in 1..10 {
            queue.enqueue(&packet(7, Ecn::Ect0), Time::from_millis(1_000 * second), &mut Ignore);
        }
        assert_eq!(queue.backlog().packets, 1, "{none}");
    }
}

/// The flows of a class share its bins.
#[test]
fn filters_choose_the_bins() {
    let spec = QueueSpec::parse(
        "qdisc add dev a root handle 1: sfb max 3 target 3 increment 0
         filter add dev a parent 1: u32 match ip sport 10 0xffff flowid 1:5
         filter add dev a parent 1: u32 match ip sport 11 0xffff flowid 1:5
         filter add dev a parent 1: u32 match ip sport 12 0xffff flowid 1:6",
    );
    let mut queue = Sfb::new(&spec.unwrap(), &Device::default()).unwrap();
    for flow in [10, 11, 10, 11, 12, 12, 12, 12, 13] {
        let mut arrival = packet(flow, Ecn::NotEct);
        arrival.label.sport = flow as u16;
        queue.enqueue(&arrival, Time::ZERO, &mut Ignore);
    }
    assert_eq!(dropped(&queue, DropReason::Overlimit), 2, "one of each class");
    assert_eq!(dropped(&queue, DropReason::Unclassified), 1);
    let flows: Vec<_> =
        std::iter::from_fn(|| queue.dequeue(Time::ZERO, &mut Ignore)).map(|p| p.flow_id).collect();
    assert_eq!(flows, [10, 11, 10, 12, 12, 12]);
}

/// At the least probability, one draw in 65536 marks; none drops what can be marked.
#[test]
fn below_one_half_nothing_is_dropped_that_can_be_marked() {
    let mut queue = sfb("target 1 max 9 increment 0 decrement 0");
    let hash = queue.filters[0].hash(&packet(7, Ecn::Ect0));
    queue.filters[0].bins(hash).for_each(|bin| bin.probability = 1);
    for _ in 0..8 << 16 {
        queue.enqueue(&packet(7, Ecn::Ect0), Time::ZERO, &mut Ignore);
        queue.dequeue(Time::ZERO, &mut Ignore);
    }
    let stats = queue.stats();
    assert!(
        stats.marked[MarkReason::Early as usize] > 0,
        "a seed without a draw of 0: take another"
    );
    assert_eq!(stats.dropped[DropReason::Early as usize].packets, 0);
}
