//! DualPI2's two queues: who goes where, whose turn it is, what the step marks.

use weir_core::{Dscp, Duration, Ecn, FlowKey, Packet, Protocol, Time};
use weir_qdisc::{Device, DropReason, Ignore, MarkReason, Qdisc, QueueSpec};

/// A discipline with its clock.
struct Bench {
    queue: Box<dyn Qdisc>,
    now: Time,
    next: u64,
}

impl Bench {
    fn new(spec: &str) -> Self {
        let queue = QueueSpec::parse(spec).and_then(|it| it.build(&Device::default())).unwrap();
        Self { queue, now: Time::from_millis(1), next: 0 }
    }

    fn enqueue(&mut self, ecn: Ecn, dport: u16) {
        let address = "10.0.0.1".parse().unwrap();
        let (sport, protocol) = (1, Protocol::UDP);
        let key = FlowKey { src: address, dst: address, sport, dport, protocol };
        let packet = Packet {
            handle: self.next,
            enqueued_at: self.now,
            label: key.label(1),
            len: 1514,
            flow_id: 0,
            dscp: Dscp::BE,
            ecn,
        };
        self.next += 1;
        self.queue.enqueue(&packet, self.now, &mut Ignore);
    }

    fn send(&mut self) -> Option<(u64, Ecn)> {
        let packet = self.queue.dequeue(self.now, &mut Ignore)?;
        Some((packet.handle, packet.ecn))
    }

    fn wait(&mut self, millis: u64) {
        self.now += Duration::from_millis(millis);
    }

    fn marked(&self, reason: MarkReason) -> u64 {
        self.queue.stats().marked[reason as usize]
    }

    fn dropped(&self, reason: DropReason) -> u64 {
        self.queue.stats().dropped[reason as usize].packets
    }
}

#[test]
fn l4s_packets_go_nine_times_out_of_ten_while_classic_ones_wait() {
    let mut bench = Bench::new("dualpi2");
    for _ in 0..40 {
        bench.enqueue(Ecn::NotEct, 1);
    }
    for _ in 0..40 {
        bench.enqueue(Ecn::Ect1, 1);
    }
    let order: String =
        (0..30).map(|_| if bench.send().unwrap().0 < 40 { 'C' } else { 'L' }).collect();
    // The credit starts at 10 % - 90 % of a full packet and a packet of either moves it by the other's
    // weight: 8 x 10 % bring it to nothing, the ninth above it.
    assert_eq!(order, "LLLLLLLLLCLLLLLLLLLCLLLLLLLLLC");
}

#[test]
fn classic_protection_is_a_share() {
    let mut bench = Bench::new("dualpi2 classic_protection 50%");
    for _ in 0..10 {
        bench.enqueue(Ecn::Ect0, 1);
        bench.enqueue(Ecn::Ect1, 1);
    }
    let order: String =
        (0..8).map(|_| if bench.send().unwrap().0.is_multiple_of(2) { 'C' } else { 'L' }).collect();
    assert_eq!(order, "LCLCLCLC");
}

#[test]
fn the_identifier_is_the_lower_ecn_bit_or_either() {
    for (spec, expected) in [("dualpi2", [2, 3, 0, 1]), ("dualpi2 any_ect", [1, 2, 3, 0])] {
        let mut bench = Bench::new(spec);
        for ecn in [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce] {
            bench.enqueue(ecn, 1);
        }
        let order: Vec<u64> = (0..4).map(|_| bench.send().unwrap().0).collect();
        assert_eq!(order, expected, "{spec}");
    }
}

#[test]
fn the_step_marks_what_waited_longer_than_a_millisecond() {
    let mut bench = Bench::new("dualpi2");
    for _ in 0..3 {
        bench.enqueue(Ecn::Ect1, 1);
    }
    assert_eq!(bench.send(), Some((0, Ecn::Ect1)));
    bench.wait(1);
    assert_eq!(bench.send(), Some((1, Ecn::Ect1)), "a millisecond is not longer than one");
    bench.now += Duration::from_nanos(1);
    assert_eq!(bench.send(), Some((2, Ecn::Ce)));
    assert_eq!(bench.marked(MarkReason::Step), 1);
}

#[test]
fn the_step_in_packets_counts_those_left_behind() {
    let mut bench = Bench::new("dualpi2 step_thresh 2p min_qlen_step 1");
    for _ in 0..5 {
        bench.enqueue(Ecn::Ect1, 1);
    }
    let ecn: Vec<Ecn> = (0..5).map(|_| bench.send().unwrap().1).collect();
    // Four wait behind the first, but nothing waited when it came, so that the step does not apply to it.
    assert_eq!(ecn, [Ecn::Ect1, Ecn::Ce, Ecn::Ect1, Ecn::Ect1, Ecn::Ect1]);
}

#[test]
fn a_filter_chooses_for_packets_without_the_identifier() {
    let mut bench = Bench::new(
        "qdisc add dev e root handle 1: dualpi2
         filter add dev e parent 1: prio 1 u32 match ip dport 5 0xffff flowid 1:1
         filter add dev e parent 1: prio 1 u32 match ip dport 6 0xffff flowid 1:2",
    );
    bench.enqueue(Ecn::NotEct, 4);
    bench.enqueue(Ecn::NotEct, 5);
    bench.enqueue(Ecn::NotEct, 6);
    bench.wait(2);
    // The step drops the first of them, which cannot be marked, and leaves the second alone.
    assert_eq!(bench.send(), Some((2, Ecn::NotEct)));
    assert_eq!(bench.dropped(DropReason::Step), 1);
    assert_eq!(bench.send(), Some((0, Ecn::NotEct)));
}

#[test]
fn a_standing_classic_queue_marks_l4s_packets_too() {
    // 500 ms of waiting bring p' far above 1/2 at once: overload.
    for (spec, where_dropped) in [("dualpi2", 0), ("dualpi2 drop_enqueue", 1)] {
        let mut bench = Bench::new(spec);
        for _ in 0..20 {
            bench.enqueue(Ecn::Ect0, 1);
        }
        bench.wait(500);
        assert_eq!(bench.dropped(DropReason::Early), 0);
        bench.enqueue(Ecn::Ect1, 1);
        assert_eq!(bench.dropped(DropReason::Early), where_dropped, "{spec}");
        let sent: Vec<u64> = std::iter::from_fn(|| bench.send()).map(|(id, _)| id).collect();
        // p' is certainty: all are dropped but those that came before, or the last two full packets.
        let expected: Vec<u64> = if where_dropped == 0 { vec![18, 19] } else { (0..20).collect() };
        assert_eq!(sent, expected, "{spec}");
    }
}

#[test]
fn with_overflow_l4s_packets_are_marked_and_never_dropped_by_the_controller() {
    let mut bench = Bench::new("dualpi2 overflow step_thresh 1s");
    for _ in 0..20 {
        bench.enqueue(Ecn::Ect1, 1);
    }
    bench.wait(500);
    let marked = std::iter::from_fn(|| bench.send()).filter(|(_, ecn)| *ecn == Ecn::Ce).count();
    // All but the two that leave less than two full packets behind.
    assert_eq!((marked, bench.dropped(DropReason::Early)), (18, 0));
}

#[test]
fn parameters_are_checked_as_tc_does() {
    let error = |text: &str| {
        let built = QueueSpec::parse(text).and_then(|spec| spec.build(&Device::default()));
        built.err().unwrap_or_else(|| panic!("`{text}` was taken")).to_string()
    };
    assert_eq!(
        error("dualpi2 step_thresh 5q"),
        "dualpi2: `step_thresh 5q`: write a time such as 1ms, or packets such as 5p"
    );
    assert_eq!(
        error("dualpi2 classic_protection 101%"),
        "dualpi2: `classic_protection 101%`: write a number from 0 to 100"
    );
    assert!(error("dualpi2 max_rtt 100ms alpha 1").contains("write either"));
    assert!(error("dualpi2 max_rtt 10ms typical_rtt 20ms").contains("must not exceed"));
    assert!(error("dualpi2 no_split_gso").contains("on its own"));
}
