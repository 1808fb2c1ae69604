use weir_core::{Dscp, Duration, Ecn, FlowLabel};

use super::*;
use crate::port::Ignore;

fn gred(words: &str) -> Result<Gred, SpecError> {
    Gred::new(&QueueSpec::parse(words)?, &Device::default())
}

fn packet(dscp: u8, ecn: Ecn) -> Packet {
    Packet {
        handle: 0,
        enqueued_at: Time::ZERO,
        label: FlowLabel::default(),
        len: 1000,
        flow_id: 0,
        dscp: Dscp::new(dscp).unwrap(),
        ecn,
    }
}

/// Number, prio, limit, min, max, ewma, Scell_log and the mode, as `tc -d qdisc show` prints them on
/// Linux 6.12.
#[test]
fn parameters_are_those_that_tc_shows() {
    let shown = |words: &str| {
        let gred = gred(words).unwrap();
        let queues = gred.queues.iter().enumerate().filter_map(|(number, queue)| {
            let queue = queue.as_ref()?;
            let (min, max, log, _, cells) = queue.params.as_shown();
            Some((number, queue.priority, queue.limit, min, max, log, cells))
        });
        (gred.averaging, queues.collect::<Vec<_>>())
    };
    assert_eq!(
        shown(
            "qdisc add dev a0 root handle 1: gred setup DPs 3 default 2 grio limit 60000
             qdisc change dev a0 root handle 1: gred limit 120000 min 15000 max 45000 avpkt 1000 \
             burst 25 bandwidth 20mbit DP 0 probability 0.02 prio 1
             qdisc change dev a0 root handle 1: gred vq 1 limit 40000 min 10000 max 30000 avpkt \
             1000 prio 2"
        ),
        (
            Averaging::Rio,
            vec![(0, 1, 60_000, 15_000, 45_000, 4, 13), (1, 2, 40_000, 10_000, 30_000, 3, 13)]
        )
    );
    let common = "limit 100000 min 10000 max 30000 avpkt 1000";
    assert_eq!(
        shown(&format!(
            "gred setup vqs 3 default 2 grio vq 0 {common} vq 2 {common} prio 3 vq 1 {common}"
        )),
        (
            Averaging::Wred,
            vec![
                (0, 8, 100_000, 10_000, 30_000, 3, 13),
                (1, 3, 100_000, 10_000, 30_000, 3, 13),
                (2, 3, 100_000, 10_000, 30_000, 3, 13)
            ]
        )
    );
    assert_eq!(gred("gred setup vqs 3 default 2").unwrap().limit, 1_514_000);
}

#[test]
fn what_tc_refuses_is_refused_in_one_sentence() {
    let common = "limit 100000 min 10000 max 30000 avpkt 1000";
    for (words, expected) in [
        ("gred setup vqs 3 default 3", "gred: `default 3`: write a number below `vqs` 3"),
        ("gred setup vqs 17 default 3", "gred: `vqs 17`: write a number from 1 to 16"),
        (
            "gred setup vqs 3",
            "gred: `default` is required (the virtual queue of packets that name none that there \
             is)",
        ),
        (
            &format!("gred setup vqs 3 default 1 vq 3 {common}"),
            "gred vq: `vq 3`: write a number below `vqs` 3",
        ),
        (
            &format!("gred setup vqs 3 default 1 ecn vq 0 {common} harddrop"),
            "gred vq: `ecn` and `harddrop` stand in `setup` already and hold for all; leave them \
             out here",
        ),
        (
            "gred setup vqs 3 default 1 vq 0 min 1000 max 3000 avpkt 1000",
            "gred vq: `limit 0`: write a size of at least 1 byte",
        ),
        (
            "gred setup vqs 3 default 1 vq 0 limit 9000 min 1000 avpkt 1000",
            "gred vq: `max` is required (average queue from which everything is dropped or \
             marked)",
        ),
    ] {
        assert_eq!(gred(words).err().unwrap().to_string(), expected);
    }
}

/// Three kinds: 0 by default of filters, 1 by a filter, and one that is not there goes to 2.
#[test]
fn filters_name_the_virtual_queue() {
    let vq = |number: u8| {
        format!(
            "qdisc change dev a root handle 1: gred vq {number} limit 90000 min 20000 max 60000 \
             avpkt 1000\n"
        )
    };
    let spec = format!(
        "qdisc add dev a root handle 1: gred setup vqs 3 default 2\n{}{}{}",
        vq(0),
        vq(1),
        vq(2)
    );
    let numbering = |place: &str| {
        format!(
            "filter add dev a {place} u32 match ip tos 0x28 0xfc classid 1:1\n\
             filter add dev a {place} u32 match ip tos 0x30 0xfc classid 1:9\n\
             filter add dev a {place} u32 match ip tos 0x38 0xfc classid 1:12\n"
        )
    };
    for filters in [
        numbering("parent 1:"),
        format!("qdisc add dev a clsact\n{}", numbering("egress protocol ip")),
    ] {
        let gred = gred(&format!("{spec}{filters}")).unwrap();
        let number = |dscp: u8| gred.number_of(&packet(dscp, Ecn::NotEct));
        // 0x12 is 18: only the lowest four bits count, as in Linux.
        assert_eq!([0, 10, 12, 14].map(number), [0, 1, 2, 2], "{filters}");
    }
}

/// Packets of no virtual queue pass through a plain FIFO.
#[test]
fn without_a_default_packets_pass_by() {
    let mut gred = gred("gred setup vqs 2 default 1 limit 3000").unwrap();
    for _ in 0..4 {
        gred.enqueue(&packet(0, Ecn::NotEct), Time::ZERO, &mut Ignore);
    }
    assert_eq!(gred.backlog(), Backlog { packets: 3, bytes: 3000 });
    assert!(gred.dequeue(Time::ZERO, &mut Ignore).is_some());
    assert!(gred.stats().balances(gred.backlog()));
}

/// With RIO a virtual queue feels the averages before it, not those behind it.
#[test]
fn later_virtual_queues_feel_earlier_ones() {
    let forced = |mode: &str, first: u8, then: u8, empties: bool| {
        let words = format!(
            "qdisc add dev a root handle 1: gred setup vqs 2 default 0 {mode}
             qdisc change dev a root handle 1: gred vq 0 prio 1 limit 90000 min 4000 max 4000 \
             avpkt 1000 burst 4
             qdisc change dev a root handle 1: gred vq 1 prio 2 limit 90000 min 4000 max 4000 \
             avpkt 1000 burst 4
             filter add dev a parent 1: u32 match ip tos 0x28 0xfc flowid 1:1"
        );
        let mut gred = gred(&words).unwrap();
        assert_eq!(gred.queues[0].as_ref().unwrap().params.as_shown().2, 1);
        for _ in 0..5 {
            gred.enqueue(&packet(first, Ecn::NotEct), Time::ZERO, &mut Ignore);
        }
        if empties {
            while gred.dequeue(Time::ZERO, &mut Ignore).is_some() {}
        }
        for _ in 0..3 {
            gred.enqueue(&packet(then, Ecn::NotEct), Time::ZERO, &mut Ignore);
        }
        gred.stats().dropped[DropReason::Forced as usize].packets
    };
    // W = 1/2. Five arrivals of the first kind bring its average, kept twice, to 6125; the three of the
    // other bring theirs to 0, 1000 and 2500, and 8000 is the threshold.
    assert_eq!(forced("grio", 0, 10, false), 1);
    assert_eq!(forced("grio", 10, 0, false), 0, "the earlier do not feel the later");
    assert_eq!(forced("", 0, 10, false), 0);
    assert_eq!(forced("grio", 0, 10, true), 0, "an idle one does not weigh");
}

/// WRED: a kind that never came before is judged by the average of the whole.
#[test]
fn equal_priorities_share_one_average() {
    let run = |prio: u8| {
        let words = format!(
            "qdisc add dev a root handle 1: gred setup vqs 2 default 0 grio
             qdisc change dev a root handle 1: gred vq 0 prio 1 limit 90000 min 20000 max 60000 \
             avpkt 1000 burst 20
             qdisc change dev a root handle 1: gred vq 1 prio {prio} limit 90000 min 2000 max 2000 \
             avpkt 1000 burst 2
             filter add dev a parent 1: u32 match ip tos 0x28 0xfc flowid 1:1"
        );
        let mut gred = gred(&words).unwrap();
        for dscp in [0; 40].into_iter().chain([10]) {
            gred.enqueue(&packet(dscp, Ecn::NotEct), Time::ZERO, &mut Ignore);
        }
        gred
    };
    let mut gred = run(1);
    assert_eq!(gred.averaging, Averaging::Wred);
    // Each arrival takes the average over from the one before, whatever its kind. The kind that came
    // once finds one far above its threshold of 2000.
    assert_eq!(gred.stats().dropped[DropReason::Forced as usize].packets, 1);
    // The idle time of all begins when the last packet leaves.
    let mut now = Time::ZERO;
    while gred.dequeue(now, &mut Ignore).is_some() {
        assert_eq!(gred.shared.is_idle(), gred.packets.is_empty());
        now += Duration::from_millis(1);
    }
    assert!(gred.queues.iter().flatten().all(|queue| !queue.state.is_idle()));
    let rio = run(2);
    assert_eq!((rio.averaging, rio.shared.average()), (Averaging::Rio, 0));
}

#[test]
fn marks_and_classes_are_counted_by_virtual_queue() {
    let mut gred = gred(
        "gred setup vqs 1 default 0 ecn \
         vq 0 limit 90000 min 2000 max 2000 avpkt 1000 burst 2",
    )
    .unwrap();
    for _ in 0..12 {
        gred.enqueue(&packet(0, Ecn::Ect0), Time::ZERO, &mut Ignore);
    }
    let mut seen = Vec::new();
    gred.classes(&mut |class| seen.push((class.name.to_owned(), class.stats.total_marked())));
    // The averages are 0, 500, 1250, 2125, and more from there.
    assert_eq!(seen, [("vq 0".to_owned(), 9)]);
}
