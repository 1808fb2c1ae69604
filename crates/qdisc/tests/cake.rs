//! `cake` as a whole: what its parts cannot show alone, and traps that other code has fallen into.

use weir_core::{Dscp, Duration, Ecn, FlowKey, Packet, Protocol, Time};
use weir_qdisc::{Device, DropReason, Outcome, QueueSpec, replay};

/// A packet every `gap_us` from each of some flows, `(port, source host, DSCP)`.
fn schedule(
    flows: &[(u16, u8, Dscp)],
    gap_us: u64,
    count: u64,
    start: Time,
) -> Vec<(Time, Packet)> {
    let mut arrivals = Vec::new();
    for n in 0..count {
        for (place, &(port, host, dscp)) in flows.iter().enumerate() {
            let key = FlowKey {
                src: std::net::Ipv4Addr::new(10, 0, 0, host).into(),
                dst: "10.0.1.1".parse().unwrap(),
                sport: port,
                dport: 443,
                protocol: Protocol::UDP,
            };
            let at = start + Duration::from_nanos(n * gap_us * 1_000 + place as u64);
            let packet = Packet {
                handle: arrivals.len() as u64,
                enqueued_at: at,
                label: key.label(1),
                len: 1514,
                flow_id: u32::from(port),
                dscp,
                ecn: if port.is_multiple_of(2) { Ecn::Ect0 } else { Ecn::NotEct },
            };
            arrivals.push((at, packet));
        }
    }
    arrivals
}

fn outcome(spec: &str, arrivals: &[(Time, Packet)]) -> Outcome {
    let qdisc = QueueSpec::parse(spec).and_then(|parsed| parsed.build(&Device::default()));
    replay(qdisc.unwrap_or_else(|error| panic!("{spec}: {error}")), arrivals)
}

fn sent_by(outcome: &Outcome, flow_id: u32, until: Time) -> usize {
    let early = outcome.departures.iter().take_while(|(at, _)| *at < until);
    early.filter(|(_, packet)| packet.flow_id == flow_id).count()
}

/// A shadowed variable in an AQM's drop loop sends the old packet and loses newer ones.
#[test]
fn of_a_flow_the_older_are_dropped_and_the_rest_keeps_its_order() {
    let arrivals = schedule(&[(1, 1, Dscp::BE)], 800, 2_000, Time::from_millis(5));
    let outcome = outcome("cake bandwidth 10mbit besteffort flowblind", &arrivals);
    let sent: Vec<u64> = outcome.departures.iter().map(|(_, packet)| packet.handle).collect();
    assert!(sent.is_sorted());
    assert!(outcome.drops.is_sorted_by_key(|(packet, _)| packet.handle));
    assert!(outcome.drops.iter().all(|(_, reason)| *reason == DropReason::TargetExceeded));
    assert_eq!((sent.len(), outcome.drops.len()), (1_849, 151));
    assert_eq!(sent.last(), Some(&1_999), "the last packet of a flow is never dropped");
}

/// A zero that stands for "never" makes the start of a run special.
#[test]
fn a_run_does_not_know_when_it_starts() {
    let flows = [(1, 1, Dscp::BE), (2, 1, Dscp::EF), (3, 2, Dscp::CS1), (4, 3, Dscp::BE)];
    for spec in [
        "cake",
        "cake bandwidth 10mbit memlimit 100kb",
        "cake bandwidth 10mbit diffserv4 ingress ethernet",
        "cake bandwidth 5mbit autorate-ingress besteffort dual-srchost",
    ] {
        let run = |start: Time| {
            let outcome = outcome(spec, &schedule(&flows, 3_000, 400, start));
            let left = outcome.departures.iter();
            let left: Vec<_> = left.map(|(at, packet)| (at.since(start), packet.handle)).collect();
            let gone: Vec<_> =
                outcome.drops.iter().map(|(packet, why)| (packet.handle, *why)).collect();
            (left, gone)
        };
        assert_eq!(run(Time::ZERO), run(Time::from_millis(3_600_000)), "{spec}");
    }
}

#[test]
fn a_tin_has_priority_up_to_its_share_and_no_further() {
    // 10 Mbit/s carry 825.6 packets of 1514 bytes a second; each class offers 2000.
    let flows = [(1, 1, Dscp::EF), (3, 1, Dscp::BE), (5, 1, Dscp::CS1)];
    let start = Time::from_millis(1);
    let arrivals = schedule(&flows, 500, 8_000, start);
    let outcome = outcome("cake bandwidth 10mbit diffserv3 memlimit 100mb", &arrivals);
    let second = |n| start + Duration::from_secs(n);
    let sent =
        |flow_id| sent_by(&outcome, flow_id, second(3)) - sent_by(&outcome, flow_id, second(1));
    // A quarter, a sixteenth, and the rest of 1651.25 packets.
    assert_eq!([sent(1), sent(3), sent(5)], [413, 1_135, 103]);
}

#[test]
fn hosts_share_before_flows_do() {
    // Four flows of one host against one of another.
    let flows = [1, 3, 5, 7].map(|port| (port, 1, Dscp::BE));
    let flows = [&flows[..], &[(9, 2, Dscp::BE)]].concat();
    let arrivals = schedule(&flows, 1_000, 3_000, Time::from_millis(1));
    let share = |mode: &str| {
        let outcome = outcome(&format!("cake bandwidth 10mbit besteffort {mode}"), &arrivals);
        let until = Time::from_millis(2_001);
        let alone = sent_by(&outcome, 9, until);
        let all: usize = (1..=9).map(|flow_id| sent_by(&outcome, flow_id, until)).sum();
        (alone as f64 / all as f64 * 100.0).round()
    };
    assert_eq!(share("flows"), 20.0);
    assert_eq!(share("dual-srchost"), 50.0);
    assert_eq!(share("triple-isolate"), 20.0, "all go to one destination, which has five flows");
    assert_eq!(share("srchost"), 50.0);
    assert_eq!(share("dsthost"), share("flowblind"));
}

#[test]
fn wash_clears_the_code_point_behind_the_tin() {
    let arrivals = schedule(&[(1, 1, Dscp::BE), (2, 1, Dscp::EF)], 500, 50, Time::from_millis(1));
    let washed = outcome("cake bandwidth 10mbit diffserv3 wash", &arrivals);
    let kept = outcome("cake bandwidth 10mbit diffserv3", &arrivals);
    let order = |outcome: &Outcome| -> Vec<(Time, u64)> {
        outcome.departures.iter().map(|(at, packet)| (*at, packet.handle)).collect()
    };
    assert_eq!(order(&washed), order(&kept), "the tins are the same");
    assert!(washed.departures.iter().all(|(_, packet)| packet.dscp == Dscp::BE));
    assert_eq!(kept.departures.iter().filter(|(_, packet)| packet.dscp == Dscp::EF).count(), 50);
    assert_eq!(washed.departures[1].1.ecn, Ecn::Ect0, "ECN is no part of it");
}

#[test]
fn behind_the_bottleneck_dropped_packets_count_as_sent() {
    let arrivals = schedule(&[(1, 1, Dscp::BE)], 600, 3_000, Time::from_millis(1));
    let rate = |ingress: &str| {
        let spec = format!("cake bandwidth 10mbit besteffort flowblind {ingress}");
        let outcome = outcome(&spec, &arrivals);
        let until = Time::from_millis(1_801);
        let dropped = outcome.drops.len();
        (sent_by(&outcome, 1, until), dropped)
    };
    let (egress, ingress) = (rate("egress"), rate("ingress"));
    assert_eq!(egress.0, 1_487, "10 Mbit/s for 1.8 s, whatever is dropped");
    assert!(ingress.0 < egress.0 && ingress.1 > 0, "{ingress:?}");
}
