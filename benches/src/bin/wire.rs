//! Time that a packet costs as bytes: `cargo run --release -p weir-benches --bin wire`.
//!
//! Nanoseconds a packet, the best of several rounds, for what the live data path does with every
//! packet: read its headers, mark it, take one from its TTL, cut a GSO packet of 64 KB into the
//! headers of 45 segments, and join these again.
//!
//! Absolute figures hold for one machine at one hour; compare ratios of one call.

use std::hint::black_box;
use std::time::Instant;

use weir_core::Ecn;
use weir_packet::craft::Tcp;
use weir_packet::{Coalescer, Fill, Limits, Segmenter, Sum, Virtio, decrement_ttl, parse, set_ecn};

fn main() {
    for (title, src, dst) in [
        ("TCP over IPv4", "10.0.0.1:1000", "10.0.1.1:2000"),
        ("TCP over IPv6", "[fd00::1]:1000", "[fd00::1:1]:2000"),
    ] {
        println!("{title}, nanoseconds a packet");
        single(&Tcp::new(src, dst));
        super_packet(&Tcp::new(src, dst));
    }
}

/// Work that every packet of full size needs.
fn single(tcp: &Tcp) {
    let mut packet = tcp.packet(&[0; MSS]);
    let headers = parse(&packet).expect("crafted");
    report("read its headers", 1, || {
        let _ = black_box(parse(black_box(&packet)));
    });
    report("make its descriptor", 1, || {
        black_box(black_box(&headers).packet(1, 2, 3));
    });
    report("sum up its 1448 bytes of payload", 1, || {
        black_box(Sum::of(black_box(&packet[headers.payload_offset..])));
    });
    let mut mark = Ecn::NotEct;
    report("write a mark", 1, || {
        mark = if mark == Ecn::Ce { Ecn::NotEct } else { Ecn::Ce };
        black_box(set_ecn(black_box(&mut packet), mark));
    });
    report("take one from its TTL", 1, || {
        // IPv4 and IPv6 have it at different places; both bytes are harmless for this.
        packet[7] = 64;
        packet[8] = 64;
        black_box(decrement_ttl(black_box(&mut packet)));
    });
}

/// Work that the segments of a GSO packet need.
fn super_packet(tcp: &Tcp) {
    let (header, packet) = tcp.super_packet(SEGMENTS * MSS, MSS as u16);
    let virtio = Virtio::parse(&header, packet.len()).expect("crafted");
    let headers = parse(&packet).expect("crafted");
    let segmenter = Segmenter::new(&headers, &virtio).expect("crafted");
    let whole = headers.packet(1, 2, 3);
    let mut heads = vec![[0; Coalescer::MAX_HEADERS]; SEGMENTS];

    report("cut: descriptors only", SEGMENTS, || {
        for segment in black_box(&segmenter).segments() {
            black_box(segment.packet(&whole, segment.index as u64));
        }
    });
    for (title, fill) in [
        ("cut: headers, checksum partial", Fill::Partial),
        ("cut: headers, checksum in full", Fill::Full),
    ] {
        report(title, SEGMENTS, || {
            for (segment, head) in segmenter.segments().zip(&mut heads) {
                black_box(segmenter.write_headers(&packet, &segment, 0, fill, head));
            }
        });
    }
    report("join", SEGMENTS, || {
        let mut coalescer =
            Coalescer::start(black_box(&heads[0]), Limits::default()).expect("it can grow");
        for head in &heads[1..] {
            assert!(coalescer.push(black_box(head)), "segments of one GSO packet join");
        }
        let mut out = [0; Coalescer::MAX_HEADERS];
        black_box(coalescer.finish(&mut out));
    });
}

/// Prints the nanoseconds a packet that `work` takes, which handles `packets`.
fn report(title: &str, packets: usize, mut work: impl FnMut()) {
    let calls = CALLS / packets;
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for _ in 0..calls {
            work();
        }
        best = best.min(start.elapsed().as_nanos() as f64 / (calls * packets) as f64);
    }
    println!("  {title:<34} {best:7.1}");
}

/// A full segment with timestamps on a link of 1500 bytes, and how many of them Linux puts together.
const MSS: usize = 1_448;
const SEGMENTS: usize = 45;
/// The best of a few rounds is the least disturbed by what else the machine does.
const ROUNDS: usize = 9;
const CALLS: usize = 450_000;
