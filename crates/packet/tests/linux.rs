//! Comparison with Linux, byte by byte, of what it made of the same packets.
//!
//! `vectors/wire/record.py` says how they were recorded.
//! The kernel forwarded each packet: it took one from the TTL, cut GSO packets, completed checksums,
//! and answered packets that had come too far.

use std::net::IpAddr;

use weir_packet::{
    Checksum, Coalescer, Fill, Limits, Segmenter, Virtio, complete_checksum, decrement_ttl,
    ipv4_checksum_ok, parse, time_exceeded, transport_checksum_ok,
};

/// One packet and what the kernel made of it.
struct Case {
    name: String,
    virtio: Virtio,
    packet: Vec<u8>,
    out: Vec<Vec<u8>>,
    back: Vec<Vec<u8>>,
}

#[test]
fn super_packets_are_cut_as_linux_cuts_them() {
    let mut seen = 0;
    for Case { name, virtio, mut packet, out, .. } in cases() {
        if virtio.gso.is_none() {
            continue;
        }
        assert_eq!(decrement_ttl(&mut packet), Some(63), "{name}");
        let headers = parse(&packet).unwrap();
        let segmenter = Segmenter::new(&headers, &virtio).unwrap();
        assert_eq!(segmenter.count(), out.len(), "{name}");
        for (segment, expected) in segmenter.segments().zip(&out) {
            let mut head = [0; Segmenter::MAX_HEADERS];
            let len = segmenter
                .write_headers(&packet, &segment, headers.tos(), Fill::Full, &mut head)
                .unwrap();
            let written = [&head[..len], &packet[segment.payload()]].concat();
            assert_eq!(&written, expected, "{name}, segment {}", segment.index);
        }
        seen += 1;
    }
    assert_eq!(seen, 7);
}

#[test]
fn segments_that_linux_cut_join_to_the_super_packet_that_it_got() {
    let mut seen = 0;
    for Case { name, virtio, mut packet, out, .. } in cases() {
        if virtio.gso.is_none() {
            continue;
        }
        assert_eq!(decrement_ttl(&mut packet), Some(63));
        let limits = Limits { udp: true, ..Limits::default() };
        let Some(mut coalescer) = Coalescer::start(&out[0], limits) else {
            assert_eq!(name, "tcp4-options");
            continue;
        };
        for segment in &out[1..] {
            assert!(transport_checksum_ok(segment, &parse(segment).unwrap()), "{name}");
            assert!(coalescer.push(segment), "{name}");
        }
        let mut head = [0; Coalescer::MAX_HEADERS];
        let (len, joined) = coalescer.finish(&mut head).unwrap();
        assert_eq!((&head[..len], joined), (&packet[..len], virtio), "{name}");
        seen += 1;
    }
    assert_eq!(seen, 6);
}

#[test]
fn checksums_are_completed_as_linux_completes_them() {
    let mut seen = 0;
    for Case { name, virtio, mut packet, out, .. } in cases() {
        let (Checksum::Partial { start, offset }, None) = (virtio.checksum, virtio.gso) else {
            continue;
        };
        complete_checksum(&mut packet, start, offset).unwrap();
        assert_eq!(decrement_ttl(&mut packet), Some(63));
        assert_eq!(packet, out[0], "{name}");
        assert!(transport_checksum_ok(&packet, &parse(&packet).unwrap()));
        seen += 1;
    }
    assert_eq!(seen, 2);
}

#[test]
fn packets_that_came_too_far_are_answered_as_linux_answers() {
    let mut answered = 0;
    for Case { name, packet, back, .. } in cases() {
        if !name.starts_with("expired") {
            continue;
        }
        let headers = parse(&packet).unwrap();
        assert_eq!(decrement_ttl(&mut packet.clone()), None, "{name}");
        let router: IpAddr =
            if headers.key.src.is_ipv4() { "10.0.0.254" } else { "fd00::fe" }.parse().unwrap();
        let mut out = [0; 1280];
        let ours = time_exceeded(&packet, &headers, router, &mut out).map(|len| &out[..len]);
        assert_eq!(ours.map(comparable), back.first().map(|theirs| comparable(theirs)), "{name}");
        answered += ours.is_some() as u32;
    }
    assert_eq!(answered, 6);
}

/// The packet without what Linux may choose: IPv4 identification, `DF` and with them the checksum;
/// IPv6 flow label.
fn comparable(packet: &[u8]) -> Vec<u8> {
    let mut packet = packet.to_vec();
    if packet[0] >> 4 == 4 {
        assert!(ipv4_checksum_ok(&packet));
        packet[4..7].fill(0);
        packet[10..12].fill(0);
    } else {
        packet[1] &= 0xf0;
        packet[2..4].fill(0);
    }
    packet
}

fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    for line in RECORDING.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split(' ').collect();
        let [name, direction, hex] = words[..] else { panic!("three words: {line}") };
        let bytes: Vec<u8> = hex
            .as_bytes()
            .chunks(2)
            .map(|two| u8::from_str_radix(str::from_utf8(two).unwrap(), 16).unwrap())
            .collect();
        if direction == "in" {
            let (header, packet) = bytes.split_first_chunk().unwrap();
            let virtio = Virtio::parse(&as_here(*header), packet.len()).unwrap();
            let (name, packet) = (name.to_owned(), packet.to_vec());
            cases.push(Case { name, virtio, packet, out: Vec::new(), back: Vec::new() });
            continue;
        }
        let case = cases.last_mut().unwrap();
        assert_eq!(case.name, name);
        if direction == "out" { &mut case.out } else { &mut case.back }.push(bytes);
    }
    cases
}

/// A recorded `struct virtio_net_hdr` as this machine has it: the machine of the recording has the low byte first.
fn as_here(mut header: [u8; Virtio::LEN]) -> [u8; Virtio::LEN] {
    for word in header[2..].as_chunks_mut().0 {
        *word = u16::from_le_bytes(*word).to_ne_bytes();
    }
    header
}

const RECORDING: &str = include_str!("../../../vectors/wire/linux-6.18.txt");
