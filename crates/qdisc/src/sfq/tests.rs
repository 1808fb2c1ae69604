use weir_core::{Dscp, Ecn, FlowKey, Protocol};

use super::*;
use crate::contract::{MarkReason, Qdisc};
use crate::port::Ignore;

fn sfq(words: &str) -> Result<Peeked<Sfq>, SpecError> {
    made(&QueueSpec::parse(&format!("sfq {words}"))?)
}

fn made(spec: &QueueSpec) -> Result<Peeked<Sfq>, SpecError> {
    Sfq::new(spec, &Device::default()).map(Peeked::new)
}

fn packet(handle: u64, flow: u16, len: u32, ecn: Ecn) -> Packet {
    let key = FlowKey {
        src: "10.0.0.1".parse().unwrap(),
        dst: "10.0.1.1".parse().unwrap(),
        sport: 10_000 + flow,
        dport: 5_000,
        protocol: Protocol::UDP,
    };
    Packet {
        handle,
        enqueued_at: Time::ZERO,
        label: key.label(1),
        len,
        flow_id: u32::from(flow),
        dscp: Dscp::BE,
        ecn,
    }
}

/// Enqueues packets of 1000 bytes, one for each flow named, with handles from 0.
fn fill(queue: &mut Peeked<Sfq>, flows: &[u16]) {
    for (handle, &flow) in flows.iter().enumerate() {
        queue.enqueue(&packet(handle as u64, flow, 1000, Ecn::NotEct), Time::ZERO, &mut Ignore);
    }
}

fn drain(queue: &mut Peeked<Sfq>) -> Vec<u64> {
    std::iter::from_fn(|| queue.dequeue(Time::ZERO, &mut Ignore)).map(|one| one.handle).collect()
}

/// The handles that leave a fresh queue after [`fill`], in order.
fn through(words: &str, flows: &[u16]) -> Vec<u64> {
    let mut queue = sfq(words).unwrap();
    fill(&mut queue, flows);
    drain(&mut queue)
}

/// Limit, depth, flows, divisor and quantum, as `tc -d qdisc show` prints them on Linux 6.12.
#[test]
fn sizes_fit_one_another_as_in_linux() {
    let cases = [
        ("", (127, 127, 128, 1024, 1514)),
        ("limit 30 depth 10 quantum 1514", (30, 10, 30, 1024, 1514)),
        ("depth 200 limit 30000 flows 100000 divisor 256", (30_000, 127, 256, 256, 1514)),
        ("quantum 100", (127, 127, 128, 1024, 256)),
        ("limit 100000", (16_256, 127, 128, 1024, 1514)),
    ];
    for (words, expected) in cases {
        let queue = sfq(words).unwrap();
        let sizes = (
            queue.discipline.limit,
            queue.discipline.depth,
            queue.discipline.flows.len(),
            queue.discipline.buckets.len(),
            queue.discipline.quantum,
        );
        assert_eq!(sizes, expected, "{words}");
    }
    for (words, expected) in [
        ("limit 1", "sfq: `limit 1`: write a number from 2 to 4294967295"),
        ("divisor 100", "sfq: `divisor 100`: write a power of two"),
        (
            "depth 1 flows 1 limit 10",
            "sfq: one flow of one packet is no queue: raise `depth` or `flows`",
        ),
        ("min 8000", "sfq: `min` is about RED on each flow, which needs `redflowlimit`"),
        ("redflowlimit 100000 burst 3", "sfq: `burst 3`: write at least 9, or lower `min` 8333"),
        ("redflowlimit 9000 max 9001", "sfq: `max 9001`: it is above `redflowlimit` 9000"),
        ("redflowlimit 9000 min 80 max 80", "sfq: `min 80`: it is not below `max` 80"),
        ("quantum 2mb", "sfq: `quantum 2097152`: write a size up to 1048576"),
    ] {
        assert_eq!(sfq(words).err().unwrap().to_string(), expected);
    }
}

/// min, max, ewma and probability, as `tc -d qdisc show` prints them on Linux 6.12.
#[test]
fn red_parameters_are_those_that_tc_shows() {
    for (words, expected) in [
        ("redflowlimit 100000 ecn", (8_333, 25_000, 3, 0.02)),
        (
            "redflowlimit 100000 min 8000 max 60000 probability 0.1 harddrop",
            (8_000, 60_000, 6, 0.1),
        ),
    ] {
        let (params, _) = sfq(words).unwrap().discipline.red.unwrap();
        let (min, max, log, probability, _) = params.as_shown();
        assert_eq!((min, max, log), (expected.0, expected.1, expected.2), "{words}");
        assert!((probability - expected.3).abs() < 1e-6, "{words}: {probability}");
    }
}

#[test]
fn flows_take_turns_by_bytes() {
    assert_eq!(through("quantum 1000", &[1, 1, 1, 2, 2, 3]), [0, 3, 5, 1, 4, 2]);
    assert_eq!(through("quantum 2000", &[1, 1, 1, 2, 2, 3]), [0, 1, 3, 4, 5, 2]);
}

/// The longest flow loses its last packet, with `headdrop` its first; a flow of one packet is safe
/// until all are.
#[test]
fn a_full_queue_drops_from_the_longest_flow() {
    assert_eq!(through("limit 4 quantum 1000", &[1, 1, 1, 2, 3]), [0, 3, 4, 1]);
    assert_eq!(through("limit 4 quantum 1000 headdrop", &[1, 1, 1, 2, 3]), [1, 3, 4, 2]);
    // `limit` leaves four flows: a fifth finds none.
    assert_eq!(through("limit 4 depth 1", &[1, 2, 3, 4, 5]), [0, 1, 2, 3]);
    // All flows hold one packet: the flow whose turn it is loses it.
    let mut queue = sfq("limit 4").unwrap();
    fill(&mut queue, &[1, 2, 3, 4]);
    queue.discipline.drop_from_longest(&mut Ignore);
    assert_eq!(drain(&mut queue), [1, 2, 3]);
}

#[test]
fn a_full_flow_drops_its_last_or_its_first() {
    assert_eq!(through("depth 2", &[1, 1, 1]), [0, 1]);
    assert_eq!(through("depth 2 headdrop", &[1, 1, 1]), [1, 2]);
}

/// A flow that loses its first packet for each that comes never holds more than two: the average stays below `min`, and
/// RED drops nothing, however many come.
#[test]
fn red_forgets_the_packets_that_a_full_flow_lost() {
    let mut queue = sfq("depth 2 headdrop redflowlimit 90000 min 3000 max 9000").unwrap();
    for handle in 0..100 {
        queue.enqueue(&packet(handle, 1, 1000, Ecn::NotEct), Time::ZERO, &mut Ignore);
    }
    let dropped = queue.stats().dropped;
    let by_red =
        [DropReason::Early, DropReason::Forced].map(|reason| dropped[reason as usize].packets);
    assert_eq!((dropped[DropReason::Overlimit as usize].packets, by_red), (98, [0, 0]));
    assert_eq!(drain(&mut queue), [98, 99]);
}

/// RED looks at the flow's own backlog, and with `headdrop` marks the packet that leaves first.
#[test]
fn red_marks_within_the_flow() {
    let marking = "redflowlimit 90000 min 2000 max 2001 burst 2 probability 0.5 ecn";
    let marked = |words: &str| {
        let mut queue = sfq(words).unwrap();
        for handle in 0..5 {
            let arrival = packet(handle, 1, 1000, Ecn::Ect0);
            queue.enqueue(&arrival, Time::ZERO, &mut Ignore);
        }
        let marks = queue.stats().marked[MarkReason::Forced as usize];
        let left = std::iter::from_fn(|| queue.dequeue(Time::ZERO, &mut Ignore));
        let ce: Vec<_> = left.filter(|one| one.ecn == Ecn::Ce).map(|one| one.handle).collect();
        (marks, ce)
    };
    // W = 1/2. The first arrival makes the flow; the averages of the others, kept twice, are 1000, 2500,
    // 4250 and 6125, and 4002 is the upper threshold.
    assert_eq!(marked(marking), (2, vec![3, 4]));
    assert_eq!(marked(&format!("{marking} headdrop")), (2, vec![0]));
    let mut queue = sfq(&format!("{marking} harddrop")).unwrap();
    for handle in 0..5 {
        queue.enqueue(&packet(handle, 1, 1000, Ecn::Ect0), Time::ZERO, &mut Ignore);
    }
    assert_eq!(queue.stats().dropped[DropReason::Forced as usize].packets, 2);
}

/// A new key every second from the first packet on. Packets of a flow stay in order.
#[test]
fn perturbation_rehashes_what_waits() {
    let mut queue = sfq("perturb 1 divisor 8 quantum 1000 limit 100").unwrap();
    let start = Time::from_millis(500);
    let key = queue.discipline.key;
    for handle in 0..40u64 {
        let arrival = packet(handle, (handle % 10) as u16, 1000, Ecn::NotEct);
        queue.enqueue(&arrival, start, &mut Ignore);
    }
    assert_eq!(queue.backlog().packets, 40);
    assert!(queue.peek(Time::from_millis(1_499), &mut Ignore).is_some());
    assert_eq!(queue.discipline.key, key);
    let mut left = Vec::new();
    for step in 0..40 {
        let now = Time::from_millis(1_500 + 300 * step);
        left.push(queue.dequeue(now, &mut Ignore).unwrap());
        assert_ne!(queue.discipline.key, key);
        for flow in &queue.discipline.flows {
            let here = |waiting: &Packet| queue.discipline.bucket_of(waiting) == Some(flow.bucket);
            assert!(flow.packets.iter().all(here), "what waits stands where the new key puts it");
        }
        assert_eq!(queue.discipline.perturbation.as_ref().unwrap().due, {
            Some(Time::from_millis(500 + 1_000 * (2 + (300 * step) / 1_000)))
        });
    }
    for flow in 0..10 {
        let mine: Vec<_> =
            left.iter().filter(|one| one.flow_id == flow).map(|p| p.handle).collect();
        assert!(mine.is_sorted(), "{flow}: {mine:?}");
        assert_eq!(mine.len(), 4);
    }
}

/// A filter's class is the bucket; what none takes is dropped, and nothing is rehashed.
#[test]
fn filters_choose_the_flow() {
    let spec = QueueSpec::parse(
        "qdisc add dev a root handle 1: sfq quantum 1000 perturb 1
         filter add dev a parent 1: u32 match ip sport 10001 0xffff flowid 1:5
         filter add dev a parent 1: u32 match ip sport 10002 0xfffe flowid 1:6",
    );
    let mut queue = made(&spec.unwrap()).unwrap();
    fill(&mut queue, &[1, 2, 3, 4, 1]);
    assert_eq!(queue.stats().dropped[DropReason::Unclassified as usize].packets, 1);
    assert_eq!(drain(&mut queue), [0, 1, 4, 2], "2 and 3 share a class");
}
