//! Time that a packet costs in each queue discipline: `make bench-qdiscs`.
//!
//! Nanoseconds for one enqueue and one dequeue with a hundred packets waiting, which come from 1, 100
//! or 10 000 flows in turn; the best of several rounds, on a line of 10 Gbit/s, and how many times what
//! `pfifo` takes. With 10 000 flows every packet meets a flow that has nothing queued.
//!
//! Absolute figures hold for one machine at one hour; compare ratios of one call.

use std::hint::black_box;
use std::time::Instant;

use weir_core::{Dscp, Duration, Ecn, FlowKey, Packet, Protocol, Rate, Time};
use weir_qdisc::{DISCIPLINES, Device, DropReason, DropSink, MarkReason, Port, QueueSpec};

fn main() {
    println!("nanoseconds for one enqueue and dequeue; beside it how many times pfifo");
    print!("{:<16}", "flows");
    for flows in FLOWS {
        print!(" {flows:>14}");
    }
    println!();
    let baseline = FLOWS.map(|flows| cost("pfifo", flows));
    for discipline in DISCIPLINES {
        let spec = SPECS.iter().find(|(name, _)| *name == discipline.name);
        let spec = spec.map_or(discipline.name, |(_, spec)| spec);
        print!("{:<16}", discipline.name);
        for (flows, pfifo) in FLOWS.into_iter().zip(baseline) {
            let cost = cost(spec, flows);
            print!(" {cost:>7.1} {:>5.1}x", cost / pfifo);
        }
        println!();
    }
}

/// Nanoseconds a packet costs in `spec`, the best of [`ROUNDS`].
fn cost(spec: &str, flows: u16) -> f64 {
    let device = Device { line_rate: Some(Rate::from_bps(LINE_BPS)), ..Device::default() };
    let qdisc = QueueSpec::parse(spec).and_then(|parsed| parsed.build(&device));
    let mut bench = Bench {
        port: Port::new(qdisc.unwrap_or_else(|error| panic!("{spec}: {error}"))),
        packets: (0..flows).map(packet).collect(),
        next: 0,
        now: Time::from_nanos(1_000_000_000),
    };
    for _ in 0..BACKLOG {
        bench.enqueue();
    }
    let rounds = (0..ROUNDS).map(|_| {
        let start = Instant::now();
        let left = bench.round();
        let cost = start.elapsed().as_nanos() as f64 / f64::from(PACKETS);
        assert!(left >= PACKETS * 9 / 10, "{spec} lets {left} of {PACKETS} packets go");
        cost
    });
    rounds.fold(f64::INFINITY, f64::min)
}

struct Bench {
    port: Port,
    packets: Vec<Packet>,
    next: usize,
    now: Time,
}

impl Bench {
    /// Sends [`PACKETS`] through; how many left.
    fn round(&mut self) -> u32 {
        let mut left = 0;
        for _ in 0..PACKETS {
            self.enqueue();
            self.now += PACKET_TIME;
            left += u32::from(black_box(self.port.dequeue(self.now, &mut Nobody)).is_some());
        }
        left
    }

    fn enqueue(&mut self) {
        self.port.enqueue(&mut self.packets[self.next], self.now, &mut Nobody);
        self.next = (self.next + 1) % self.packets.len();
    }
}

fn packet(flow: u16) -> Packet {
    let key = FlowKey {
        src: "10.0.0.1".parse().expect("an address"),
        dst: "10.0.1.1".parse().expect("an address"),
        sport: 10_000 + flow,
        dport: 5_000,
        protocol: Protocol::TCP,
    };
    Packet {
        handle: u64::from(flow),
        enqueued_at: Time::ZERO,
        label: key.label(1),
        len: 1514,
        flow_id: u32::from(flow),
        dscp: Dscp::BE,
        ecn: Ecn::Ect0,
    }
}

struct Nobody;

impl DropSink for Nobody {
    fn on_drop(&mut self, _: Packet, _: DropReason) {}
    fn on_mark(&mut self, _: &Packet, _: MarkReason) {}
}

const FLOWS: [u16; 3] = [1, 100, 10_000];
const BACKLOG: u32 = 100;
const PACKETS: u32 = 50_000;
const ROUNDS: u32 = 7;
const LINE_BPS: u64 = 10_000_000_000;
/// 1514 bytes on the line.
const PACKET_TIME: Duration = Duration::from_nanos(1_211);

/// Specs of disciplines that cannot do without parameters, or whose defaults hold packets back.
const SPECS: &[(&str, &str)] = &[
    ("tbf", "tbf rate 10gbit burst 1mb limit 10mb"),
    ("htb", "htb rate 10gbit burst 1mb cburst 1mb pfifo limit 1000"),
    ("red", "red limit 1mb min 300kb max 600kb avpkt 1500"),
    (
        "gred",
        "gred setup vqs 1 default 0 vq 0 limit 1mb min 300kb max 600kb avpkt 1500 bandwidth 10gbit",
    ),
    ("choke", "choke limit 1000 bandwidth 10gbit min 200 max 600"),
    ("hfsc", "hfsc ls rate 10gbit"),
    ("ets", "ets bands 3"),
    ("nfq_codel", "nfq_codel rate 10gbit"),
    ("simple", "simple rate 10gbit"),
    ("simplest", "simplest rate 10gbit"),
    ("piece_of_cake", "piece_of_cake rate 10gbit"),
    ("layer_cake", "layer_cake rate 10gbit"),
    ("skbprio", "skbprio limit 1000"),
];
