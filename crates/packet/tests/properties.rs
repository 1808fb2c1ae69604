//! Properties of all packets: cutting and joining undo each other, changes in place keep checksums, and
//! no bytes make anything panic.

mod exercise;

use proptest::prelude::*;
use weir_core::Ecn;
use weir_packet::craft::{Ip, Tcp, Udp};
use weir_packet::{
    Coalescer, Fill, Limits, Segmenter, Sum, Virtio, decrement_ttl, ipv4_checksum_ok, parse,
    set_ecn, transport_checksum_ok,
};

fn ip() -> impl Strategy<Value = Ip> {
    let pair = prop_oneof![
        Just(("10.0.0.1:1000", "10.0.1.1:2000")),
        Just(("203.0.113.255:65535", "255.255.255.254:1")),
        Just(("[fd00::1]:1000", "[2001:db8:ffff::ffff]:2000")),
    ];
    (pair, any::<u8>(), 2..=255u8, any::<u16>(), prop_oneof![Just(0x4000u16), Just(0)]).prop_map(
        |((src, dst), tos, ttl, id, fragment)| Ip { tos, ttl, id, fragment, ..Ip::new(src, dst) },
    )
}

fn tcp() -> impl Strategy<Value = Tcp> {
    let flags = prop::sample::select(vec![0x10u8, 0x18, 0x11, 0x90, 0xd9]);
    let options = (0..=10usize).prop_map(|words| [1, 1, 5, 2].repeat(words));
    (ip(), any::<[u32; 2]>(), flags, any::<u16>(), options).prop_map(
        |(ip, [seq, ack], flags, window, options)| Tcp { ip, seq, ack, flags, window, options },
    )
}

/// Either kind of GSO packet.
fn super_packet() -> impl Strategy<Value = ([u8; Virtio::LEN], Vec<u8>)> {
    let sizes = prop_oneof![(1..4_000usize, 1..3_000u16), (60_000..=65_400usize, 1_200..9_000u16)];
    (tcp(), any::<bool>(), sizes).prop_map(|(tcp, is_udp, (payload, size))| {
        if is_udp {
            Udp { ip: tcp.ip }.super_packet(payload, size)
        } else {
            tcp.super_packet(payload, size)
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..Default::default() })]

    #[test]
    fn cut_and_joined_is_what_it_was((header, packet) in super_packet()) {
        let headers = parse(&packet).unwrap();
        let virtio = Virtio::parse(&header, packet.len()).unwrap();
        let segmenter = Segmenter::new(&headers, &virtio).unwrap();
        let limits = Limits { max_segments: usize::MAX, udp: true, ..Limits::default() };
        let mut coalescer: Option<Coalescer> = None;
        let mut payload = Vec::new();
        for segment in segmenter.segments() {
            let mut head = [0; Segmenter::MAX_HEADERS];
            let len = segmenter.write_headers(&packet, &segment, headers.tos(), Fill::Full, &mut head).unwrap();
            let written = [&head[..len], &packet[segment.payload()]].concat();
            prop_assert!(transport_checksum_ok(&written, &parse(&written).unwrap()));
            payload.extend_from_slice(&packet[segment.payload()]);
            match &mut coalescer {
                Some(coalescer) => prop_assert!(coalescer.push(&written)),
                none => *none = Coalescer::start(&written, limits),
            }
            if coalescer.is_none() {
                // One segment with PSH or FIN: nothing can follow it.
                prop_assert_eq!(segmenter.count(), 1);
                return Ok(());
            }
        }
        let mut head = [0; Coalescer::MAX_HEADERS];
        let (len, joined) = coalescer.unwrap().finish(&mut head).unwrap();
        prop_assert_eq!(&[&head[..len], &payload].concat(), &packet);
        let gso = virtio.gso.filter(|_| segmenter.count() > 1);
        prop_assert_eq!(joined, Virtio { gso, ..virtio });
    }

    #[test]
    fn a_mark_on_one_segment_keeps_it_out(
        (header, packet) in super_packet(), marked in 0..3usize
    ) {
        let headers = parse(&packet).unwrap();
        let segmenter = Segmenter::new(&headers, &Virtio::parse(&header, packet.len()).unwrap()).unwrap();
        prop_assume!(headers.ecn != Ecn::Ce && segmenter.count() > marked && segmenter.count() > 1);
        let limits = Limits { udp: true, ..Limits::default() };
        let head = |index: usize| {
            let mark = if index == marked { Ecn::Ce.bits() } else { 0 };
            let mut head = [0; Segmenter::MAX_HEADERS];
            let segment = segmenter.segment(index).unwrap();
            segmenter.write_headers(&packet, &segment, headers.tos() | mark, Fill::Full, &mut head).unwrap();
            head
        };
        let mut coalescer = Coalescer::start(&head(0), limits).unwrap();
        let mut joined = 1;
        while joined < segmenter.count().min(4) && coalescer.push(&head(joined)) {
            joined += 1;
        }
        prop_assert_eq!(joined, if marked == 0 { 1 } else { marked });
    }

    #[test]
    fn changes_keep_the_checksum_that_a_full_computation_gives(tcp in tcp(), ecn in 0..4u8) {
        let mut packet = tcp.packet(b"abc");
        let _ = decrement_ttl(&mut packet);
        let _ = set_ecn(&mut packet, Ecn::from_tos(ecn));
        let headers = parse(&packet).unwrap();
        let tos = tcp.ip.tos & !3 | ecn;
        let ip = Ip { ttl: tcp.ip.ttl - 1, tos, ..tcp.ip.clone() };
        prop_assert_eq!(&packet, &Tcp { ip, ..tcp.clone() }.packet(b"abc"));
        prop_assert!(tcp.ip.src.is_ipv6() || ipv4_checksum_ok(&packet));
        prop_assert!(transport_checksum_ok(&packet, &headers));
    }

    #[test]
    fn sums_of_pieces_are_sums_of_the_whole(
        bytes in prop::collection::vec(any::<u8>(), 0..300), cuts in any::<[prop::sample::Index; 2]>()
    ) {
        // By the book: words of 16 bits, the last padded, carries added back.
        let mut expected: u32 = bytes
            .chunks(2)
            .map(|two| u32::from(two[0]) << 8 | u32::from(*two.get(1).unwrap_or(&0)))
            .sum();
        while expected > 0xffff {
            expected = (expected & 0xffff) + (expected >> 16);
        }
        prop_assert_eq!(u32::from(Sum::of(&bytes).fold()), expected);
        let mut at = cuts.map(|segmenter| segmenter.index(bytes.len() + 1));
        at.sort_unstable();
        let pieces = Sum::of(&bytes[..at[0]]).bytes(&bytes[at[0]..at[1]]).bytes(&bytes[at[1]..]);
        prop_assert_eq!(u32::from(pieces.fold()), expected);
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), kind in 0..4u8) {
        let mut data = bytes;
        // Otherwise most are no IP at all.
        for at in [0, 10] {
            if let Some(first) = data.get_mut(at) {
                *first = [0x45, 0x60, 0x46, *first][usize::from(kind)];
            }
        }
        exercise::parsing(&data);
        exercise::joining(&data);
    }

    #[test]
    fn packets_cut_short_anywhere_never_panic((header, packet) in super_packet()) {
        let data = [&header[..], &packet[..packet.len().min(300)]].concat();
        for len in 0..=data.len() {
            exercise::parsing(&data[..len]);
            exercise::parsing(data[..len].get(Virtio::LEN..).unwrap_or_default());
        }
    }
}
