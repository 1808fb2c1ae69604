//! prio, ets, drr, qfq and hfsc: whose turn it is, in exact orders and shares, and what they do one step before a
//! limit, at it, and after it.

use weir_core::{Dscp, Duration, ETHERNET_HEADER, Ecn, FlowKey, IpVersion, Packet, Protocol, Time};
use weir_qdisc::{Device, DropReason, Ignore, Qdisc, QueueSpec};

const LEN: u32 = 1000;

fn build(spec: &str) -> Box<dyn Qdisc> {
    QueueSpec::parse(spec).and_then(|it| it.build(&Device::default())).unwrap()
}

/// The queue on a port whose full packets have `LEN` bytes.
fn build_narrow(spec: &str) -> Box<dyn Qdisc> {
    let device = Device { mtu: LEN - ETHERNET_HEADER, ..Device::default() };
    QueueSpec::parse(spec).and_then(|it| it.build(&device)).unwrap()
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
        flow_id: u32::from(flow),
        dscp: Dscp::from_tos(tos),
        ecn: Ecn::from_tos(tos),
    }
}

/// The same of IPv6.
fn packet_of_ipv6(flow: u16, tos: u8, len: u32) -> Packet {
    let mut packet = packet(flow, tos, len);
    packet.label.ip_version = IpVersion::V6;
    packet
}

/// The flows of the next packets to leave at time zero, as digits.
fn order(queue: &mut dyn Qdisc, count: usize) -> String {
    let leave = || queue.dequeue(Time::ZERO, &mut Ignore);
    std::iter::from_fn(leave).take(count).map(|it| it.flow_id.to_string()).collect()
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
            queue.enqueue(&packet(flow as u16, 0, len), Time::ZERO, &mut Ignore);
        }
    }
    queue
}

#[test]
fn prio_sends_the_first_band_that_has_a_packet() {
    let mut queue = build("prio bands 3");
    // By the default map: bulk to band 2, best effort to band 1, low delay to band 0.
    for (flow, tos) in [(3, 0x08), (2, 0x00), (1, 0x10), (2, 0xb8), (1, 0x10)] {
        queue.enqueue(&packet(flow, tos, LEN), Time::ZERO, &mut Ignore);
    }
    assert_eq!(queue.peek(Time::ZERO, &mut Ignore).unwrap().flow_id, 1);
    assert_eq!(order(&mut *queue, 2), "11");
    assert_eq!(queue.peek(Time::ZERO, &mut Ignore).unwrap().flow_id, 2);
    queue.enqueue(&packet(1, 0x10, LEN), Time::ZERO, &mut Ignore);
    assert_eq!(order(&mut *queue, 9), "1223", "what was looked at is not held");
}

/// Bulk, best effort and low delay by the TOS byte of IPv4; of IPv6 Linux gives all the priority 0.
#[test]
fn the_traffic_class_of_ipv6_is_no_priority() {
    let orders = |spec: &str| {
        [packet, packet_of_ipv6].map(|of| {
            let mut queue = build(spec);
            for (flow, tos) in [(3, 0x08), (2, 0x00), (1, 0x10)] {
                queue.enqueue(&of(flow, tos, LEN), Time::ZERO, &mut Ignore);
            }
            order(&mut *queue, 3)
        })
    };
    for spec in ["pfifo_fast", "prio", "ets bands 3 strict 3 priomap 1 2 2 2 2 2 0"] {
        assert_eq!(orders(spec), ["123", "321"], "{spec}");
    }
    // The greatest priority first: 6, 2 and 0.
    assert_eq!(orders("skbprio"), ["132", "321"]);
}

#[test]
fn a_band_that_holds_packets_back_lets_lower_ones_send_and_is_woken_for() {
    let mut queue = build_narrow(
        "qdisc add dev e root handle 1: prio bands 3
         qdisc add dev e parent 1:1 tbf rate 1mbit burst 1000 limit 10000",
    );
    for (flow, tos) in [(1, 0x10), (1, 0x10), (2, 0x00)] {
        queue.enqueue(&packet(flow, tos, LEN), Time::ZERO, &mut Ignore);
    }
    assert_eq!(order(&mut *queue, 9), "12");
    // 1000 bytes at 1 Mbit/s.
    assert_eq!(queue.wake_at(), Some(Time::from_millis(8)));
    assert_eq!(queue.dequeue(Time::from_millis(8), &mut Ignore).unwrap().flow_id, 1);
}

#[test]
fn a_filter_without_a_band_means_that_of_priority_zero() {
    let mut queue = build(
        "qdisc add dev e root handle 1: prio bands 3
         filter add dev e parent 1: u32 match ip dport 5001 0xffff flowid 1:9
         filter add dev e parent 1: u32 match ip dport 5002 0xffff flowid 1:1",
    );
    for (flow, tos) in [(1, 0x10), (2, 0x08), (3, 0x00)] {
        queue.enqueue(&packet(flow, tos, LEN), Time::ZERO, &mut Ignore);
    }
    assert_eq!(order(&mut *queue, 9), "213");
}

#[test]
fn ets_serves_strict_bands_first_and_shares_the_rest() {
    let mut queue = build("ets strict 1 quanta 2000 1000 priomap 1 1 2 2 0 0 0");
    // Priorities 6, 0 and 2: bands 0, 1 and 2.
    for _ in 0..4 {
        for (flow, tos) in [(3, 0x08), (2, 0x00), (1, 0x10)] {
            queue.enqueue(&packet(flow, tos, LEN), Time::ZERO, &mut Ignore);
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
        queue.enqueue(&packet(7, 0, LEN), Time::ZERO, &mut Ignore);
        assert_eq!(queue.stats().dropped[DropReason::Unclassified as usize].packets, 1, "{kind}");
        assert_eq!(order(&mut *queue, 9), "1");
        let mut short = build(kind);
        short.enqueue(&packet(7, 0, LEN), Time::ZERO, &mut Ignore);
        assert_eq!(order(&mut *short, 9), "7", "the short form's one class takes everything");
    }
}

#[test]
fn qfq_shares_by_weight_and_never_falls_far_behind_a_fluid() {
    let mut queue = loaded("qfq", &["weight 1", "weight 2", "weight 5"], 400, 1514);
    let mut sent = [0.0; 3];
    for n in 1..=400 {
        let packet = queue.dequeue(Time::ZERO, &mut Ignore).unwrap();
        sent[packet.flow_id as usize - 1] += 1.0;
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
        queue.enqueue(
            &packet(flow, 0, if flow == 1 { 2000 } else { 500 }),
            Time::ZERO,
            &mut Ignore,
        );
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
            queue.enqueue(&packet(1, 0, LEN), Time::ZERO, &mut Ignore);
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
        queue.enqueue(&packet(flow, tos, LEN), Time::ZERO, &mut Ignore);
    }
    // Priority 6 then pushes out the younger of priority 2.
    assert_eq!(order(&mut *queue, 9), "641");
    assert_eq!(queue.stats().dropped[DropReason::Overlimit as usize].packets, 3);
}

#[test]
fn a_band_is_served_from_the_nanosecond_on_at_which_its_queue_lets_go() {
    let mut queue = build_narrow(
        "qdisc add dev e root handle 1: prio bands 3
         qdisc add dev e parent 1:1 tbf rate 1mbit burst 1000 limit 10000",
    );
    for _ in 0..2 {
        queue.enqueue(&packet(1, 0x10, LEN), Time::ZERO, &mut Ignore);
    }
    assert_eq!(order(&mut *queue, 9), "1");
    let early = Time::from_nanos(8_000_000 - 1);
    assert!(queue.peek(early, &mut Ignore).is_none());
    assert_eq!(queue.wake_at(), Some(Time::from_millis(8)), "the first look does not put it off");
    queue.enqueue(&packet(2, 0x00, LEN), early, &mut Ignore);
    assert_eq!(queue.dequeue(early, &mut Ignore).unwrap().flow_id, 2);
    assert_eq!(queue.wake_at(), None, "a packet left: the port asks again by itself");
    assert_eq!(queue.dequeue(Time::from_millis(8), &mut Ignore).unwrap().flow_id, 1);
}

/// Classes 1:1 to 1:3 are the bands. What lies outside, 1:0 and 1:4, means that of priority 0, which is the second.
#[test]
fn a_filter_may_say_the_first_and_the_last_band() {
    let mut queue = build(
        "qdisc add dev e root handle 1: prio bands 3
         filter add dev e parent 1: u32 match ip dport 5001 0xffff flowid 1:0
         filter add dev e parent 1: u32 match ip dport 5002 0xffff flowid 1:1
         filter add dev e parent 1: u32 match ip dport 5003 0xffff flowid 1:3
         filter add dev e parent 1: u32 match ip dport 5004 0xffff flowid 1:4",
    );
    for flow in [3, 4, 1, 2] {
        queue.enqueue(&packet(flow, 0, LEN), Time::ZERO, &mut Ignore);
    }
    assert_eq!(order(&mut *queue, 9), "2413");
}

/// A packet as long as what the class may still send leaves in this turn, one that is longer by a byte in the next.
#[test]
fn a_quantum_is_enough_for_a_packet_of_its_length() {
    let classes = ["quantum 1000", "quantum 1001"];
    for (len, turns) in [(999, "121212"), (1_000, "121212"), (1_001, "212121")] {
        assert_eq!(order(&mut *loaded("drr", &classes, 9, len), 6), turns, "drr with {len}");
        let mut bands = build("ets quanta 1000 1001 priomap 0 1 1");
        for _ in 0..9 {
            for (flow, tos) in [(1, 0x00), (2, 0x08)] {
                bands.enqueue(&packet(flow, tos, len), Time::ZERO, &mut Ignore);
            }
        }
        assert_eq!(order(&mut *bands, 6), turns, "ets with {len}");
    }
}

#[test]
fn a_quantum_below_256_bytes_is_256() {
    for (len, turns) in [(256, "1212"), (257, "2121")] {
        let classes = ["quantum 1", "quantum 257"];
        assert_eq!(order(&mut *loaded("drr", &classes, 9, len), 4), turns, "{len}");
    }
}

#[test]
fn ets_has_sixteen_bands_at_most() {
    let spec = |quanta: usize| {
        let text = format!("ets strict 8 quanta {}", vec!["1000"; quanta].join(" "));
        QueueSpec::parse(&text).and_then(|it| it.build(&Device::default()))
    };
    assert!(spec(8).is_ok());
    let refusal = spec(9).err().unwrap().to_string();
    let expected = "ets: `strict 8` and 9 quanta make 17 bands; write as many `bands` at least, and 16 at most";
    assert_eq!(refusal, expected);
}

/// A class that has sent all it had and comes back waits its turn, with a whole quantum.
#[test]
fn a_drr_class_that_comes_back_goes_to_the_end_with_a_whole_quantum() {
    let mut queue = loaded("drr", &["quantum 1500", "quantum 1000", "quantum 1000"], 0, LEN);
    for flow in [1, 2, 2, 3, 3] {
        queue.enqueue(&packet(flow, 0, LEN), Time::ZERO, &mut Ignore);
    }
    assert_eq!(order(&mut *queue, 2), "12");
    for _ in 0..3 {
        queue.enqueue(&packet(1, 0, LEN), Time::ZERO, &mut Ignore);
    }
    // The 500 bytes left of its first turn are gone: with them it would send two in a row.
    assert_eq!(order(&mut *queue, 9), "312311");
}

/// A strict band that holds packets back leaves the line to those below, and takes it back to the nanosecond.
#[test]
fn a_strict_ets_band_goes_first_once_it_may() {
    let mut queue = build_narrow(
        "qdisc add dev e root handle 1: ets strict 1 quanta 1000 priomap 1 1 1 1 1 1 0
         qdisc add dev e parent 1:1 tbf rate 1mbit burst 1000 limit 10000",
    );
    for (flow, tos) in [(1, 0x10), (1, 0x10), (2, 0x00), (2, 0x00), (2, 0x00)] {
        queue.enqueue(&packet(flow, tos, LEN), Time::ZERO, &mut Ignore);
    }
    assert_eq!(order(&mut *queue, 2), "12");
    let mut at = |nanos: u64| queue.dequeue(Time::from_nanos(nanos), &mut Ignore).unwrap().flow_id;
    assert_eq!((at(8_000_000 - 1), at(8_000_000), at(8_000_000)), (2, 1, 2));
}

/// Two classes of one aggregate take turns of their longest packet: of 500 bytes two fit, of 501 one; what is left
/// over counts in the next turn.
#[test]
fn qfq_classes_send_what_their_longest_packet_allows() {
    let classes = ["maxpkt 1000", "maxpkt 1000"];
    for (len, turns) in [(500, "11221122"), (501, "12112211"), (1_000, "12121212")] {
        assert_eq!(order(&mut *loaded("qfq", &classes, 9, len), 8), turns, "{len}");
    }
}

#[test]
fn qfq_weights_add_up_to_64_times_1024_at_most() {
    let spec = |classes: u16| {
        let mut text = "qdisc add dev e root handle 1: qfq\n".to_owned();
        for id in 1..=classes {
            text += &format!("class add dev e parent 1: classid 1:{id:x} qfq weight 1024\n");
        }
        QueueSpec::parse(&text).and_then(|it| it.build(&Device::default()))
    };
    assert!(spec(64).is_ok());
    let refusal = spec(65).err().unwrap().to_string();
    assert_eq!(refusal, "qfq: the weights add up to 66560; 65536 at most");
}

#[test]
fn disciplines_with_classes_show_each_of_them_with_what_waits_in_it() {
    for (kind, params) in [("drr", ""), ("qfq", ""), ("htb", "rate 1mbit"), ("hfsc", "ls m2 1mbit")]
    {
        let mut queue = loaded(kind, &[params, params], 2, LEN);
        queue.enqueue(&packet(2, 0, LEN), Time::ZERO, &mut Ignore);
        let mut shown = Vec::new();
        queue.classes(&mut |class| shown.push((class.name.to_owned(), class.backlog.packets)));
        assert_eq!(shown, [("1:1".to_owned(), 2), ("1:2".to_owned(), 3)], "{kind}");
    }
    for spec in
        ["prio bands 2 priomap 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1", "ets quanta 1000 1000 priomap 1"]
    {
        let mut queue = build(spec);
        queue.enqueue(&packet(1, 0, LEN), Time::ZERO, &mut Ignore);
        let mut shown = Vec::new();
        queue.classes(&mut |class| shown.push((class.name.to_owned(), class.backlog.packets)));
        assert_eq!(shown.len(), 2, "{spec}: {shown:?}");
        assert_eq!((shown[0].1, shown[1].1), (0, 1), "{spec}");
    }
}

/// When and of which flow packets leave from `start` on, in microseconds, asked at each wake-up and a nanosecond
/// before it.
fn timetable(queue: &mut dyn Qdisc, start: Time, count: usize) -> Vec<(u64, u32)> {
    let mut left = Vec::new();
    let mut now = start;
    while left.len() < count {
        if let Some(packet) = queue.dequeue(now, &mut Ignore) {
            left.push((now.since(start).as_nanos() / 1_000, packet.flow_id));
            continue;
        }
        let wake = queue.wake_at().expect("packets wait");
        assert!(wake > now, "{wake} is not after {now}");
        let early = Time::from_nanos(wake.as_nanos() - 1);
        assert!(queue.dequeue(early, &mut Ignore).is_none(), "a nanosecond before {wake}");
        assert_eq!(queue.wake_at(), Some(wake));
        now = wake;
    }
    left
}

/// `hfsc` with classes 1:1 and on of these curves, class by class for flows 1 and on, in which ten packets of `LEN`
/// bytes of each flow wait from `start` on.
fn hfsc(curves: &[&str], start: Time) -> Box<dyn Qdisc> {
    let mut queue = loaded("hfsc", curves, 0, LEN);
    for _ in 0..10 {
        for flow in 1..=curves.len() {
            queue.enqueue(&packet(flow as u16, 0, LEN), start, &mut Ignore);
        }
    }
    queue
}

/// 1000 bytes take 8 ms at 1 Mbit/s, whether by guarantee or by an upper limit, and 2 ms at 4 Mbit/s.
#[test]
fn hfsc_serves_by_the_curve_to_the_nanosecond() {
    let start = Time::from_millis(1_000);
    let times = |curve: &str| -> Vec<u64> {
        let left = timetable(&mut *hfsc(&[curve], start), start, 8);
        left.into_iter().map(|(at, _)| at / 1_000).collect()
    };
    assert_eq!(times("rt m2 1mbit"), [0, 8, 16, 24, 32, 40, 48, 56]);
    assert_eq!(times("ls m2 10mbit ul m2 1mbit"), [0, 8, 16, 24, 32, 40, 48, 56]);
    // 5000 bytes in the first part.
    assert_eq!(times("rt m1 4mbit d 10ms m2 1mbit"), [0, 2, 4, 6, 8, 10, 18, 26]);
    assert_eq!(times("ls m2 9mbit ul m1 4mbit d 10ms m2 1mbit"), [0, 2, 4, 6, 8, 10, 18, 26]);
    // A curve that gets steeper is served as if its second part were all.
    assert_eq!(times("rt d 10ms m2 1mbit"), [0, 8, 16, 24, 32, 40, 48, 56]);
}

/// Both may be served at once; the second class' packet is due after 2 ms, the first one's after 8.
#[test]
fn hfsc_guarantees_are_kept_in_the_order_of_their_deadlines() {
    let start = Time::from_millis(1_000);
    let mut queue = hfsc(&["rt m2 1mbit", "rt umax 1000 dmax 2ms rate 1mbit"], start);
    let expected = [(0, 2), (0, 1), (2_000, 2), (8_000, 1), (10_000, 2), (16_000, 1), (18_000, 2)];
    assert_eq!(timetable(&mut *queue, start, 7), expected);
}

#[test]
fn hfsc_shares_the_rest_by_the_link_share_curves() {
    let mut queue = hfsc(&["ls m2 1mbit", "ls m2 3mbit"], Time::ZERO);
    assert_eq!(order(&mut *queue, 12), "122212221222");
    // A guarantee counts as part of the share.
    let mut both = hfsc(&["sc m2 1mbit", "ls m2 3mbit"], Time::ZERO);
    assert_eq!(order(&mut *both, 12), "122212221222");
    // A class without a share has its guarantee and nothing else.
    let mut guaranteed = hfsc(&["rt m2 1mbit", "ls m2 3mbit"], Time::ZERO);
    assert_eq!(order(&mut *guaranteed, 20), "12222222222");
    assert_eq!(guaranteed.wake_at(), Some(Time::from_millis(8)));
}
