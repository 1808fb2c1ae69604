//! What every discipline must do, whatever it is: random lists of operations, and after each one the
//! counts balance. A new discipline joins by its line in the registry and its own `examples`.

use std::collections::BTreeMap;

use proptest::prelude::*;
use weir_core::{Dscp, Duration, Ecn, FlowKey, Packet, Protocol, Rate, Time};
use weir_qdisc::{DISCIPLINES, Device, DropReason, DropSink, MarkReason, Port, QueueSpec};

#[derive(Clone, Copy, Debug)]
enum Operation {
    Enqueue { flow: u16, ip_len: u32, tos: u8 },
    Dequeue,
    Wait { nanos: u64 },
}

fn operation() -> impl Strategy<Value = Operation> {
    let tos = prop_oneof![Just(0), Just(0x02), Just(0x08), Just(0x10), Just(0xb8), Just(0xbb)];
    let ip_len = prop_oneof![Just(40u32), Just(1500), 40..=1500u32];
    prop_oneof![
        5 => (0..6u16, ip_len, tos)
            .prop_map(|(flow, ip_len, tos)| Operation::Enqueue { flow, ip_len, tos }),
        3 => Just(Operation::Dequeue),
        2 => (1..30_000_000u64).prop_map(|nanos| Operation::Wait { nanos }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..Default::default() })]

    #[test]
    fn counts_balance_after_every_operation(operations in prop::collection::vec(operation(), 1..300)) {
        for discipline in DISCIPLINES {
            for example in discipline.examples {
                run(example, &operations);
            }
        }
    }

    #[test]
    fn a_packet_passes_as_if_it_was_enqueued_and_dequeued(
        operations in prop::collection::vec(operation(), 1..100),
    ) {
        for discipline in DISCIPLINES {
            for example in discipline.examples {
                compare_passes(example, &operations);
            }
        }
    }
}

/// Lets packets pass on one port where they can, and be enqueued and dequeued on another.
fn compare_passes(spec: &str, operations: &[Operation]) {
    let [mut short, mut long] = [Bench::new(spec), Bench::new(spec)];
    for &operation in operations {
        match operation {
            Operation::Enqueue { flow, ip_len, tos } => {
                let packet = short.packet(flow, ip_len, tos);
                let waits = short.port.backlog().packets > 0;
                if short.port.pass(&packet, short.now) {
                    assert!(!waits, "{spec}: overtakes");
                    short.ledger.arrived += 1;
                    short.ledger.departed += 1;
                    long.enqueue(flow, ip_len, tos);
                    assert!(long.dequeue(), "{spec}: {packet:?} did not pass");
                } else {
                    short.enqueue(flow, ip_len, tos);
                    long.enqueue(flow, ip_len, tos);
                }
            }
            Operation::Dequeue => assert_eq!(short.dequeue(), long.dequeue(), "{spec}"),
            Operation::Wait { nanos } => {
                short.now += Duration::from_nanos(nanos);
                long.now = short.now;
            }
        }
        short.check();
        assert_eq!(short.port.stats(), long.port.stats(), "{spec}");
        assert_eq!(short.port.backlog(), long.port.backlog(), "{spec}");
    }
    assert_eq!(short.port.take_sojourn(), long.port.take_sojourn(), "{spec}");
}

#[test]
fn what_meets_an_empty_fifo_or_fq_codel_passes_and_nothing_overtakes_what_waits() {
    for spec in ["pfifo", "bfifo", "fq_codel"] {
        let mut bench = Bench::new(spec);
        for flow in [0, 1, 0, 2] {
            let packet = bench.packet(flow, 1_500, 0);
            assert!(bench.port.pass(&packet, bench.now), "{spec}: {packet:?}");
        }
        assert_eq!(bench.port.stats().departed.packets, 4, "{spec}");
        bench.enqueue(0, 1_500, 0);
        let packet = bench.packet(1, 1_500, 0);
        assert!(!bench.port.pass(&packet, bench.now), "{spec}: overtakes");
    }
    // It would be dropped at once.
    let mut bench = Bench::new("fq_codel memory_limit 1000b");
    let packet = bench.packet(0, 1_500, 0);
    assert!(!bench.port.pass(&packet, bench.now));
}

#[test]
fn every_discipline_has_examples_and_stands_once() {
    let mut names: Vec<_> = DISCIPLINES.iter().map(|discipline| discipline.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), DISCIPLINES.len());
    for discipline in DISCIPLINES {
        assert!(!discipline.examples.is_empty(), "{} has no example", discipline.name);
    }
}

fn run(spec: &str, operations: &[Operation]) {
    let mut bench = Bench::new(spec);
    for &operation in operations {
        match operation {
            Operation::Enqueue { flow, ip_len, tos } => bench.enqueue(flow, ip_len, tos),
            Operation::Dequeue => {
                bench.dequeue();
            }
            Operation::Wait { nanos } => bench.now += Duration::from_nanos(nanos),
        }
        bench.check();
    }
    bench.drain();
}

/// A port with an honest ledger beside it.
struct Bench {
    spec: String,
    port: Port,
    ledger: Ledger,
    now: Time,
}

/// Where every packet is that was handed in.
#[derive(Default)]
struct Ledger {
    /// How many arrived, copies included; also the next handle.
    arrived: u64,
    inside: BTreeMap<u64, Packet>,
    dropped: [u64; DropReason::ALL.len()],
    marked: [u64; MarkReason::ALL.len()],
    departed: u64,
}

impl DropSink for Ledger {
    fn on_drop(&mut self, packet: Packet, reason: DropReason) {
        assert!(self.inside.remove(&packet.handle).is_some(), "dropped twice: {packet:?}");
        self.dropped[reason as usize] += 1;
    }

    fn on_mark(&mut self, packet: &Packet, reason: MarkReason) {
        assert_eq!(packet.ecn, Ecn::Ce);
        let arrived = self.inside.get_mut(&packet.handle).expect("marked while inside");
        assert!(arrived.ecn.can_mark(), "a sender without ECN was marked");
        arrived.ecn = Ecn::Ce;
        self.marked[reason as usize] += 1;
    }

    fn on_duplicate(&mut self, packet: &Packet) -> u64 {
        let handle = self.arrived;
        self.arrived += 1;
        self.inside.insert(handle, Packet { handle, ..*packet });
        handle
    }
}

impl Bench {
    fn new(spec: &str) -> Self {
        let device = Device { line_rate: Some(Rate::from_mbit(4)), ..Device::default() };
        let qdisc = QueueSpec::parse(spec).and_then(|parsed| parsed.build(&device));
        let qdisc = qdisc.unwrap_or_else(|error| panic!("{spec}: {error}"));
        Self {
            spec: spec.to_owned(),
            port: Port::new(qdisc),
            ledger: Ledger::default(),
            now: Time::from_millis(1),
        }
    }

    /// The next packet to arrive.
    fn packet(&self, flow: u16, ip_len: u32, tos: u8) -> Packet {
        let key = FlowKey {
            src: "10.0.0.1".parse().unwrap(),
            dst: "10.0.1.1".parse().unwrap(),
            sport: 10_000 + flow,
            dport: 5_000 + flow,
            protocol: Protocol::UDP,
        };
        Packet {
            handle: self.ledger.arrived,
            enqueued_at: self.now,
            label: key.label(7),
            len: ip_len + 14,
            flow_id: u32::from(flow),
            dscp: Dscp::from_tos(tos),
            ecn: Ecn::from_tos(tos),
        }
    }

    fn enqueue(&mut self, flow: u16, ip_len: u32, tos: u8) {
        let mut packet = self.packet(flow, ip_len, tos);
        self.ledger.arrived += 1;
        self.ledger.inside.insert(packet.handle, packet);
        self.port.enqueue(&mut packet, self.now, &mut self.ledger);
    }

    fn dequeue(&mut self) -> bool {
        let Some(packet) = self.port.dequeue(self.now, &mut self.ledger) else {
            assert!(
                self.port.wake_at().is_none_or(|wake| wake > self.now),
                "{}: wants to wake at {:?}, now is {}",
                self.spec,
                self.port.wake_at(),
                self.now
            );
            return false;
        };
        let arrived = self.ledger.inside.remove(&packet.handle).expect("leaves once");
        assert_eq!(arrived.ecn, packet.ecn, "{}: an unreported mark", self.spec);
        self.ledger.departed += 1;
        true
    }

    fn check(&self) {
        let stats = self.port.stats();
        let backlog = self.port.backlog();
        let at = &self.spec;
        assert!(stats.balances(backlog), "{at}: {stats:?} with {backlog:?}");
        assert_eq!(stats.arrived.packets, self.ledger.arrived, "{at}: arrived");
        assert_eq!(stats.departed.packets, self.ledger.departed, "{at}: departed");
        assert_eq!(backlog.packets as usize, self.ledger.inside.len(), "{at}: backlog");
        for (reason, count) in stats.dropped.iter().enumerate() {
            assert_eq!(count.packets, self.ledger.dropped[reason], "{at}: drops {reason}");
        }
        assert_eq!(stats.marked, self.ledger.marked, "{at}: marks");
        let mut classes = 0;
        self.port.classes(&mut |class| {
            classes += 1;
            assert!(class.stats.balances(class.backlog), "{at}: class {}", class.name);
        });
    }

    /// Everything leaves in the end: no packet is forgotten, no shaper sleeps for ever.
    fn drain(&mut self) {
        for _ in 0..10_000 {
            while self.dequeue() {
                self.check();
            }
            if self.port.backlog().packets == 0 {
                assert!(self.ledger.inside.is_empty());
                return;
            }
            self.now = self.port.wake_at().expect("packets wait, so there is a time to wake");
        }
        panic!("{}: {:?} never leave", self.spec, self.port.backlog());
    }
}
