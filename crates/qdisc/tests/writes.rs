//! What is written on packets before a discipline sees them: their length (`stab`), priority and mark
//! (`action skbedit`), and what filters and disciplines make of it.

use weir_core::{Dscp, Duration, Ecn, FlowKey, Packet, Protocol, Time};
use weir_qdisc::{Device, DropReason, DropSink, Ignore, MarkReason, Qdisc, QueueSpec};

fn build(spec: &str) -> Box<dyn Qdisc> {
    QueueSpec::parse(spec).and_then(|it| it.build(&Device::default())).unwrap()
}

fn error(spec: &str) -> String {
    match QueueSpec::parse(spec).and_then(|it| it.build(&Device::default())) {
        Ok(_) => panic!("`{spec}` was taken"),
        Err(error) => error.to_string(),
    }
}

/// A TCP packet of `len` bytes to port `dport` with the TOS byte `tos`.
fn packet(dport: u16, tos: u8, len: u32) -> Packet {
    let src = "10.0.0.1".parse().unwrap();
    let dst = "10.0.1.9".parse().unwrap();
    let key = FlowKey { src, dst, sport: 1_000, dport, protocol: Protocol::TCP };
    Packet {
        handle: u64::from(dport) << 32,
        enqueued_at: Time::ZERO,
        label: key.label(1),
        len,
        flow_id: u32::from(dport),
        dscp: Dscp::from_tos(tos),
        ecn: Ecn::from_tos(tos),
    }
}

fn enqueue(queue: &mut dyn Qdisc, packets: &[Packet]) {
    for packet in packets {
        queue.enqueue(packet, Time::ZERO, &mut Ignore);
    }
}

/// When the packets that wait leave, in microseconds.
fn departures(queue: &mut dyn Qdisc) -> Vec<u64> {
    let mut left = Vec::new();
    let mut now = Time::ZERO;
    while left.len() < 100 {
        if queue.dequeue(now, &mut Ignore).is_some() {
            left.push(now.as_nanos() / 1_000);
        } else if let Some(at) = queue.wake_at().filter(|&at| at < Time::from_millis(1_000)) {
            now = at;
        } else {
            break;
        }
    }
    left
}

/// Each packet of 1000 bytes takes 1000 us at 8 Mbit/s; with a size table, what that says. Packets before
/// the last one have spent the bucket of 2000 bytes.
#[test]
fn shapers_count_what_the_size_table_says() {
    let apart = |stab: &str| {
        let mut queue = build(&format!("{stab}tbf rate 8mbit burst 2000 limit 100k"));
        enqueue(&mut *queue, &[packet(1, 0, 1_000); 6]);
        let left = departures(&mut *queue);
        assert_eq!(left.len(), 6);
        left[5] - left[4]
    };
    assert_eq!(apart(""), 1_000);
    assert_eq!(apart("stab overhead 18 "), 1_018);
    assert_eq!(apart("stab overhead -14 "), 986);
    // In slots of 4 bytes 1000 stay 1000: 21 cells of 53 bytes.
    assert_eq!(apart("stab linklayer atm "), 1_113);
    // 1040 bytes: 22 cells.
    assert_eq!(apart("stab linklayer adsl overhead 40 "), 1_166);
    assert_eq!(apart("stab mpu 1400 "), 1_400);
    // 1002 bytes are rounded up to a slot of 16 bytes.
    assert_eq!(apart("stab mpu 64 tsize 128 overhead 2 "), 1_008);
    // The table and the shaper's own overhead add up.
    let own = "htb rate 8mbit burst 1600 overhead 10";
    let mut queue = build(&format!("stab overhead 5 {own}"));
    enqueue(&mut *queue, &[packet(1, 0, 1_000); 4]);
    let left = departures(&mut *queue);
    assert_eq!(left[3] - left[2], 1_015);
}

#[test]
fn the_full_form_has_it_before_the_disciplines_name() {
    let mut queue = build(
        "tc qdisc add dev eth0 root handle 1: stab overhead 40 mpu 64 mtu 2048 tsize 512 linklayer atm \
             htb default 1
         tc class add dev eth0 parent 1: classid 1:1 htb rate 8mbit burst 1600 cburst 1600
         tc qdisc add dev eth0 parent 1:1 handle 10: fq_codel",
    );
    enqueue(&mut *queue, &[packet(1, 0, 1_514); 4]);
    // `mtu 2048` makes slots of 8 bytes: 1554 are 1560, 33 cells.
    assert_eq!(queue.backlog().bytes, 4 * 33 * 53);
    let left = departures(&mut *queue);
    assert_eq!(left[3] - left[2], 33 * 53);
}

/// A drop sink that checks that packets come back as they went in.
#[derive(Default)]
struct CheckingSink {
    dropped: Vec<Packet>,
    marked: Vec<Packet>,
}

impl DropSink for CheckingSink {
    fn on_drop(&mut self, packet: Packet, _: DropReason) {
        self.dropped.push(packet);
    }

    fn on_mark(&mut self, packet: &Packet, _: MarkReason) {
        self.marked.push(*packet);
    }
}

#[test]
fn the_owner_sees_packets_as_they_came() {
    let mut queue = build(
        "qdisc add dev e clsact
         filter add dev e egress matchall action skbedit priority 1:2 mark 7
         qdisc add dev e root handle 1: stab linklayer atm fq_codel limit 3 ce_threshold 1ms",
    );
    let mut sink = CheckingSink::default();
    let packets: Vec<_> = (1..=5).map(|n| packet(n, 2, 100 + u32::from(n))).collect();
    for packet in &packets {
        queue.enqueue(packet, Time::ZERO, &mut sink);
    }
    let late = Time::from_millis(50);
    let looked_at = queue.peek(late, &mut sink).copied().unwrap();
    assert_eq!((looked_at.handle, looked_at.len), (packets[2].handle, 103));
    let mut left = Vec::new();
    while let Some(packet) = queue.dequeue(late, &mut sink) {
        left.push(packet);
    }
    let marked: Vec<_> = packets[2..].iter().map(|p| Packet { ecn: Ecn::Ce, ..*p }).collect();
    assert_eq!(left, marked);
    assert_eq!(sink.dropped, packets[..2]);
    assert_eq!(sink.marked, marked);
    assert!(queue.stats().balances(queue.backlog()));
    // 105 bytes and less are three cells.
    assert_eq!(queue.stats().arrived.bytes, 5 * 159);
}

#[test]
fn copies_have_their_own_originals() {
    let mut queue = build("stab overhead 100 netem duplicate 100%");
    enqueue(&mut *queue, &[packet(1, 0, 500), packet(2, 0, 600)]);
    let mut left = Vec::new();
    while let Some(packet) = queue.dequeue(Time::ZERO, &mut Ignore) {
        left.push((packet.flow_id, packet.len, packet.handle >> 32));
    }
    left.sort_unstable();
    assert_eq!(left, [(1, 500, 1), (1, 500, 1), (2, 600, 2), (2, 600, 2)]);
}

/// The ports to which the packets go, in the order in which they leave.
fn order(spec: &str, packets: &[Packet]) -> Vec<u32> {
    let mut queue = build(spec);
    enqueue(&mut *queue, packets);
    std::iter::from_fn(|| queue.dequeue(Time::ZERO, &mut Ignore)).map(|it| it.flow_id).collect()
}

const WRITE: &str = "qdisc add dev e clsact
    filter add dev e egress protocol ip prio 1 u32 match ip dport 7 0xffff action skbedit priority";

#[test]
fn a_priority_names_the_class_of_the_discipline_that_has_its_major_number() {
    let packets = [packet(5, 0, 100), packet(6, 0, 100), packet(7, 0, 100)];
    let first = |spec: String| order(&spec, &packets)[0];
    // prio and ets: band 1; of another discipline's class, the band of priority 0.
    let prio = "qdisc add dev e root handle 1: prio";
    assert_eq!(first(format!("{WRITE} 1:1\n{prio}")), 7);
    assert_eq!(first(format!("{WRITE} 2:1\n{prio}")), 5);
    assert_eq!(first(format!("{WRITE} 6\n{prio}")), 7);
    assert_eq!(first(format!("{WRITE} 2\n{prio}")), 5);
    assert_eq!(
        first(format!("{WRITE} 1:1\nqdisc add dev e root handle 1: ets bands 3 strict 3")),
        7
    );
    // pfifo_fast: by the number alone.
    assert_eq!(first(format!("{WRITE} 6\nqdisc add dev e root pfifo_fast")), 7);
    // skbprio: the greatest first.
    assert_eq!(first(format!("{WRITE} 3f\nqdisc add dev e root skbprio")), 7);

    let drr = "qdisc add dev e root handle 1: drr
         class add dev e parent 1: classid 1:1 drr
         class add dev e parent 1: classid 1:2 drr
         filter add dev e parent 1: matchall flowid 1:1";
    assert_eq!(order(&format!("{WRITE} 1:2\n{drr}"), &packets), [5, 6, 7]);
    let big = [packet(5, 0, 1_514), packet(6, 0, 1_514), packet(7, 0, 1_514)];
    assert_eq!(order(&format!("{WRITE} 1:2\n{drr}"), &big), [5, 7, 6], "a class of its own");
    assert_eq!(order(&format!("{WRITE} 1:9\n{drr}"), &big), [5, 6, 7], "there is no such class");
    assert_eq!(order(&format!("{WRITE} 2:2\n{drr}"), &big), [5, 6, 7], "nor discipline");
}

#[test]
fn a_priority_names_a_leaf_of_htb_or_the_way_past_it() {
    let htb = "qdisc add dev e root handle 1: htb default 1
         class add dev e parent 1: classid 1:1 htb rate 8mbit burst 1600 cburst 1600
         class add dev e parent 1: classid 1:2 htb rate 8mbit burst 1600 cburst 1600 prio 1
         qdisc add dev e parent 1:1 pfifo limit 1
         qdisc add dev e parent 1:2 pfifo limit 1";
    let left = |priority: &str| {
        let packets = [packet(6, 0, 100), packet(7, 0, 100), packet(7, 0, 100)];
        order(&format!("{WRITE} {priority}\n{htb}"), &packets)
    };
    assert_eq!(left("1:2"), [6, 7]);
    assert_eq!(left("1:1"), [6]);
    assert_eq!(left("1:0"), [7, 7, 6], "straight through");
    assert_eq!(left("1:7"), [6], "no class of it: the default");
}

#[test]
fn flow_queues_take_the_queue_that_a_priority_names() {
    for kind in ["fq_codel flows 4", "fq_pie flows 4"] {
        let two = [packet(7, 0, 1_514), packet(7, 0, 1_514), packet(6, 0, 1_514)];
        let mut queue = build(&format!(
            "qdisc add dev e clsact
             filter add dev e egress prio 1 u32 match ip dport 7 0xffff action skbedit priority 1:1
             filter add dev e egress prio 2 matchall action skbedit priority 1:2
             qdisc add dev e root handle 1: {kind} quantum 1514"
        ));
        enqueue(&mut *queue, &two);
        let left: Vec<_> = std::iter::from_fn(|| queue.dequeue(Time::ZERO, &mut Ignore))
            .map(|packet| packet.flow_id)
            .collect();
        assert_eq!(left, [7, 6, 7], "{kind}");
    }
}

#[test]
fn marks_choose_classes_and_tins() {
    let marked = |mark: &str, spec: &str| {
        let text = format!(
            "qdisc add dev e clsact
             filter add dev e egress matchall action skbedit mark {mark}
             qdisc add dev e root handle 1: prio
             {spec}"
        );
        let mut queue = build(&text);
        enqueue(&mut *queue, &[packet(5, 0, 100)]);
        let mut waiting = Vec::new();
        queue.classes(&mut |class| waiting.push(class.backlog.packets));
        waiting.iter().position(|&packets| packets == 1).unwrap() + 1
    };
    let fw = "filter add dev e parent 1: protocol ip prio 1 handle 6 fw classid 1:3";
    assert_eq!(marked("6", fw), 3);
    assert_eq!(marked("0x16", fw), 2);
    assert_eq!(marked("0x16", "filter add dev e parent 1: handle 0x6/0xf fw classid 1:3"), 3);
    assert_eq!(marked("0xff/0x6", fw), 3, "only the bits of the mask are written");
    assert_eq!(marked("6", "filter add dev e parent 1: u32 match mark 4 0xc flowid 1:1"), 1);

    let tin = |write: &str, cake: &str| {
        let mut queue = build(&format!(
            "qdisc add dev e clsact
             filter add dev e egress matchall action skbedit {write}
             qdisc add dev e root handle 1: {cake}"
        ));
        enqueue(&mut *queue, &[packet(5, 0, 100)]);
        let mut waiting = None;
        queue.classes(&mut |class| {
            if class.backlog.packets == 1 && waiting.is_none() {
                waiting = Some(class.name.to_owned());
            }
        });
        waiting.unwrap()
    };
    // cake_select_tin: in the order in which tins are listed, bulk first.
    let names = ["Bulk", "Best Effort", "Video", "Voice"];
    for (number, name) in (1..).zip(names) {
        let cake = "cake bandwidth 1mbit diffserv4";
        assert!(tin(&format!("priority 1:{number}"), cake).contains(name), "{name}");
        assert!(tin(&format!("mark {number}"), cake).contains("Best Effort"), "not asked");
        let mark = format!("mark {}", number << 4);
        assert!(tin(&mark, &format!("{cake} fwmark 0xf0")).contains(name), "{name}");
    }
    assert!(tin("mark 9", "cake diffserv4 fwmark 0xff").contains("Best Effort"));
}

#[test]
fn flower_says_what_u32_says() {
    let takes = |filter: &str, packet: Packet| {
        let mut queue = build(&format!(
            "qdisc add dev e root handle 1: prio
             filter add dev e parent 1: protocol ip prio 1 flower {filter} classid 1:3"
        ));
        enqueue(&mut *queue, &[packet]);
        let mut waiting = Vec::new();
        queue.classes(&mut |class| waiting.push(class.backlog.packets));
        waiting == [0, 0, 1]
    };
    let [web, voice] = [packet(443, 0, 100), packet(5_004, 0xb8, 100)];
    for (filter, of_web, of_voice) in [
        ("ip_proto tcp", true, true),
        ("ip_proto udp", false, false),
        ("ip_proto 6 dst_port 443", true, false),
        ("ip_proto tcp dst_port 443-444", true, false),
        ("ip_proto tcp dst_port 444-5004", false, true),
        ("ip_proto tcp dst_port 0x1380/0xfff0 src_port 1000", false, true),
        ("ip_tos b8/fc", false, true),
        ("ip_tos 0xb8/0xfc", false, true),
        ("ip_tos 0", true, false),
        ("src_ip 10.0.0.0/24 dst_ip 10.0.1.9", true, true),
        ("dst_ip 10.0.1.8", false, false),
    ] {
        assert_eq!((takes(filter, web), takes(filter, voice)), (of_web, of_voice), "{filter}");
    }
}

#[test]
fn what_has_no_meaning_is_refused_in_a_sentence() {
    let of_filter = |filter: &str| {
        let text = error(&format!(
            "qdisc add dev e root handle 1: prio\nfilter add dev e parent 1: {filter}"
        ));
        text.split_once("`: ").unwrap().1.to_owned()
    };
    assert_eq!(
        of_filter("protocol ip flower dst_port 5 classid 1:1"),
        "`flower dst_port 5`: ports belong to a protocol: write `ip_proto tcp` or another before it"
    );
    assert_eq!(
        of_filter("protocol ip flower ip_proto tcp dst_port 9-7 classid 1:1"),
        "`flower dst_port 9-7`: write PORT, PORT/MASK or a range FIRST-LAST that rises"
    );
    assert_eq!(
        of_filter("flower dst_prt 5 classid 1:1"),
        "`flower dst_prt` is not known: did you mean `dst_port`?"
    );
    assert_eq!(
        of_filter("flower vlan_id 5 classid 1:1"),
        "`flower vlan_id` is not known (known: src_ip, dst_ip, ip_proto, src_port, dst_port, ip_tos)"
    );
    assert_eq!(
        of_filter("matchall action nat egress 10.0.0.1 10.0.0.2"),
        "`action nat` is not known in a filter: `police` and `skbedit` are"
    );
    assert_eq!(of_filter("fw flowid 1:1"), "`fw` needs the mark before it: write `handle MARK fw`");
    assert_eq!(of_filter("matchall flowid x"), "`flowid x`: write a class such as `1:10`");
    assert_eq!(
        of_filter("matchall action skbedit priority 1:1 flowid 1:1"),
        "`skbedit` in a filter of a discipline: write it on the way out, `qdisc add dev DEVICE clsact` and \
         `filter add dev DEVICE egress ...`"
    );
    assert_eq!(
        of_filter("matchall action skbedit queue_mapping 2"),
        "`skbedit queue_mapping` has no meaning here: `priority` and `mark` have"
    );
    assert_eq!(
        of_filter("matchall action skbedit"),
        "`skbedit` needs `priority CLASS` or `mark MARK[/MASK]`"
    );
    let beneath = "`stab` beneath another discipline: that one would count packets in by one length and \
                   out by another; write `stab` at the root";
    assert_eq!(error("htb rate 1mbit stab overhead 4 fq_codel"), beneath);
    assert!(
        error(
            "qdisc add dev e root handle 1: prio\nqdisc add dev e parent 1:1 stab overhead 4 pfifo"
        )
        .ends_with(beneath)
    );
    assert_eq!(
        error("stab linklayer ppp pfifo"),
        "stab: `linklayer ppp`: write one of ethernet, atm, adsl"
    );
    assert_eq!(error("stab pfifo"), "`stab` needs one of mtu, tsize, mpu, overhead, linklayer");
    assert_eq!(
        error("stab overhead 4"),
        "`stab`: write mtu, tsize, mpu, overhead, linklayer and then a queue discipline, such as `stab \
         linklayer atm overhead 40 htb rate 2mbit`"
    );
    assert_eq!(
        error("stab overhead x pfifo"),
        "stab: `overhead x`: write a number from -65535 to 65535"
    );
    assert!(
        error("qdisc add dev e handle ffff: stab mpu 64 ingress")
            .ends_with("`stab` at `ingress`, which queues nothing: write it at the root")
    );
}

/// A silence makes no difference: what was written does not outlive its packet.
#[test]
fn originals_are_forgotten_with_their_packets() {
    let mut queue = build("stab overhead 10 pfifo limit 2");
    let mut now = Time::ZERO;
    for n in 1..=1_000u16 {
        let given = packet(n, 0, 60 + u32::from(n));
        queue.enqueue(&given, now, &mut Ignore);
        assert_eq!(queue.dequeue(now, &mut Ignore), Some(given));
        now += Duration::from_millis(1);
    }
    assert_eq!(queue.backlog().bytes, 0);
}
