//! prio, ets, drr and qfq: whose turn it is, in exact orders and shares.

use weir_core::{Dscp, Duration, ETHERNET_HEADER, Ecn, FlowKey, Packet, Protocol, Time};
use weir_qdisc::{Device, DropReason, Ignore, Qdisc, SetUp};

const LEN: u32 = 1000;

fn build(set_up: &str) -> Box<dyn Qdisc> {
    SetUp::parse(set_up).and_then(|it| it.build(&Device::default())).unwrap()
}

/// The same on a port whose full packets have `LEN` bytes.
fn build_narrow(set_up: &str) -> Box<dyn Qdisc> {
    let device = Device { mtu: LEN - ETHERNET_HEADER, ..Device::default() };
    SetUp::parse(set_up).and_then(|it| it.build(&device)).unwrap()
}

/// A packet of `len` bytes of flow `flow`, whose TOS byte is `tos`.
fn packet(flow: u16, tos: u8, len: u32) -> Packet {
    let address = "10.0.0.1".parse().unwrap();
    let (sport, dport, protocol) = (flow, 5000 + flow, Protocol::UDP);
    let key = FlowKey { src: address, dst: address, sport, dport, protocol };
    Packet {
        handle: 0,
        enqueued_at: Time::ZERO,
        label: key.label(1),
        len,
        owner: u32::from(flow),
        dscp: Dscp::from_tos(tos),
        ecn: Ecn::from_tos(tos),
    }
}

/// The flows of the next packets to leave at time zero, as digits.
fn order(queue: &mut dyn Qdisc, count: usize) -> String {
    let leave = || queue.dequeue(Time::ZERO, &mut Ignore);
    std::iter::from_fn(leave).take(count).map(|it| it.owner.to_string()).collect()
}

/// A discipline with classes 1:1 and on of these parameters, class by class for flows 1 and on, in which
/// `count` packets of `len` bytes of each flow wait.
fn loaded(kind: &str, classes: &[&str], count: usize, len: u32) -> Box<dyn Qdisc> {
    let mut text = format!("qdisc add dev e root handle 1: {kind}\n");
    for (params, id) in classes.iter().zip(1..) {
        let port = 5000 + id;
        text += &format!("class add dev e parent 1: classid 1:{id} {kind} {params}\n");
        text +=
            &format!("filter add dev e parent 1: u32 match ip dport {port} 0xffff flowid 1:{id}\n");
    }
    let mut queue = build(&text);
    for _ in 0..count {
        for flow in 1..=classes.len() {
            queue.enqueue(packet(flow as u16, 0, len), Time::ZERO, &mut Ignore);
        }
    }
    queue
}

#[test]
fn prio_sends_the_first_band_that_has_a_packet() {
    let mut queue = build("prio bands 3");
    // By the default map: bulk to band 2, best effort to band 1, low delay to band 0.
    for (flow, tos) in [(3, 0x08), (2, 0x00), (1, 0x10), (2, 0xb8), (1, 0x10)] {
        queue.enqueue(packet(flow, tos, LEN), Time::ZERO, &mut Ignore);
    }
    assert_eq!(queue.peek(Time::ZERO, &mut Ignore).unwrap().owner, 1);
    assert_eq!(order(&mut *queue, 2), "11");
    assert_eq!(queue.peek(Time::ZERO, &mut Ignore).unwrap().owner, 2);
    queue.enqueue(packet(1, 0x10, LEN), Time::ZERO, &mut Ignore);
    assert_eq!(order(&mut *queue, 9), "1223", "what was looked at is not held");
}

#[test]
fn a_band_that_holds_packets_back_lets_lower_ones_send_and_is_woken_for() {
    let mut queue = build_narrow(
        "qdisc add dev e root handle 1: prio bands 3
         qdisc add dev e parent 1:1 tbf rate 1mbit burst 1000 limit 10000",
    );
    for (flow, tos) in [(1, 0x10), (1, 0x10), (2, 0x00)] {
        queue.enqueue(packet(flow, tos, LEN), Time::ZERO, &mut Ignore);
    }
    assert_eq!(order(&mut *queue, 9), "12");
    // 1000 bytes at 1 Mbit/s.
    assert_eq!(queue.wake_at(), Some(Time::from_millis(8)));
    assert_eq!(queue.dequeue(Time::from_millis(8), &mut Ignore).unwrap().owner, 1);
}

#[test]
fn a_filter_without_a_band_means_that_of_priority_zero() {
    let mut queue = build(
        "qdisc add dev e root handle 1: prio bands 3
         filter add dev e parent 1: u32 match ip dport 5001 0xffff flowid 1:9
         filter add dev e parent 1: u32 match ip dport 5002 0xffff flowid 1:1",
    );
    for (flow, tos) in [(1, 0x10), (2, 0x08), (3, 0x00)] {
        queue.enqueue(packet(flow, tos, LEN), Time::ZERO, &mut Ignore);
    }
    assert_eq!(order(&mut *queue, 9), "213");
}

#[test]
fn ets_serves_strict_bands_first_and_shares_the_rest() {
    let mut queue = build("ets strict 1 quanta 2000 1000 priomap 1 1 2 2 0 0 0");
    // Priorities 6, 0 and 2: bands 0, 1 and 2.
    for _ in 0..4 {
        for (flow, tos) in [(3, 0x08), (2, 0x00), (1, 0x10)] {
            queue.enqueue(packet(flow, tos, LEN), Time::ZERO, &mut Ignore);
        }
    }
    assert_eq!(order(&mut *queue, 12), "111132232233");
}

#[test]
fn drr_shares_by_quantum_whatever_the_lengths() {
    let mut queue = loaded("drr", &["quantum 1000", "quantum 3000"], 40, LEN);
    assert_eq!(order(&mut *queue, 12), "122212221222");
    // A class whose packets are longer than its quantum saves up over its turns.
    let mut short = loaded("drr", &["quantum 500", "quantum 1000"], 40, LEN);
    assert_eq!(order(&mut *short, 9), "212212212");
}

#[test]
fn drr_and_qfq_drop_what_no_filter_takes_as_linux_does() {
    for kind in ["drr", "qfq"] {
        let mut queue = loaded(kind, &[""], 1, LEN);
        queue.enqueue(packet(7, 0, LEN), Time::ZERO, &mut Ignore);
        assert_eq!(queue.stats().dropped[DropReason::Unclassified as usize].packets, 1, "{kind}");
        assert_eq!(order(&mut *queue, 9), "1");
        let mut short = build(kind);
        short.enqueue(packet(7, 0, LEN), Time::ZERO, &mut Ignore);
        assert_eq!(order(&mut *short, 9), "7", "the short form's one class takes everything");
    }
}

#[test]
fn qfq_shares_by_weight_and_never_falls_far_behind_a_fluid() {
    let mut queue = loaded("qfq", &["weight 1", "weight 2", "weight 5"], 400, 1514);
    let mut sent = [0.0; 3];
    for n in 1..=400 {
        let packet = queue.dequeue(Time::ZERO, &mut Ignore).unwrap();
        sent[packet.owner as usize - 1] += 1.0;
        for (got, weight) in sent.iter().zip([1.0, 2.0, 5.0]) {
            let behind = f64::from(n) * weight / 8.0 - got;
            assert!(behind < 3.0, "{behind} packets behind at {n}");
        }
    }
    assert_eq!(sent, [49.0, 100.0, 251.0], "50, 100 and 250 but for the packet at the end");
}

#[test]
fn qfq_takes_turns_among_classes_of_one_weight() {
    let mut queue = loaded("qfq", &["", "", ""], 4, 1514);
    assert_eq!(order(&mut *queue, 12), "123123123123");
}

#[test]
fn qfq_raises_the_longest_packet_of_a_class() {
    let mut queue = loaded("qfq", &["maxpkt 512", "maxpkt 512"], 0, LEN);
    for flow in [1, 1, 2, 2, 1] {
        queue.enqueue(packet(flow, 0, if flow == 1 { 2000 } else { 500 }), Time::ZERO, &mut Ignore);
    }
    let mut all: Vec<char> = order(&mut *queue, 9).chars().collect();
    all.sort_unstable();
    assert_eq!(all, ['1', '1', '1', '2', '2'], "all leave");
}

#[test]
fn a_class_that_holds_packets_back_delays_and_loses_nothing() {
    for kind in ["drr", "qfq"] {
        let mut queue = build_narrow(&format!(
            "qdisc add dev e root handle 1: {kind}
             class add dev e parent 1: classid 1:1 {kind}
             qdisc add dev e parent 1:1 tbf rate 1mbit burst 1000 limit 10000
             filter add dev e parent 1: matchall flowid 1:1"
        ));
        for _ in 0..2 {
            queue.enqueue(packet(1, 0, LEN), Time::ZERO, &mut Ignore);
        }
        assert_eq!(order(&mut *queue, 9), "1");
        let wake = queue.wake_at().expect("a packet waits");
        assert_eq!(wake, Time::ZERO + Duration::from_millis(8), "{kind}");
        assert!(queue.dequeue(wake, &mut Ignore).is_some());
    }
}

#[test]
fn skbprio_drops_the_youngest_of_the_lowest_for_a_higher_one() {
    let mut queue = build("skbprio limit 3");
    // Priorities 2, 2, 0, then 4 into the full queue: the 0 goes; then 2: it is the lowest and goes itself.
    for (flow, tos) in [(1, 0x08), (2, 0x08), (3, 0x00), (4, 0x18), (5, 0x08), (6, 0x10)] {
        queue.enqueue(packet(flow, tos, LEN), Time::ZERO, &mut Ignore);
    }
    // Priority 6 then pushes out the younger of priority 2.
    assert_eq!(order(&mut *queue, 9), "641");
    assert_eq!(queue.stats().dropped[DropReason::Overlimit as usize].packets, 3);
}
