//! Headers of all kinds, and what is refused.

use std::net::IpAddr;

use weir_core::{Dscp, ETHERNET_HEADER, Ecn, Protocol};
use weir_packet::craft::{Ip, Tcp, Udp};
use weir_packet::icmp::Echo;
use weir_packet::{
    Fragment, Malformed, Transport, Version, decrement_ttl, ipv4_checksum_ok, parse, set_ecn,
    set_tos, time_exceeded, transport_checksum_ok,
};

/// The IPv4 header that the article on its checksum in Wikipedia has as example: UDP, 115 bytes, from
/// 192.168.0.1 to 192.168.0.199, checksum b861.
const EXAMPLE: [u8; 20] = [
    0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0xb8, 0x61, 0xc0, 0xa8, 0x00, 0x01,
    0xc0, 0xa8, 0x00, 0xc7,
];
const A4: &str = "10.0.0.1:1000";
const B4: &str = "10.0.1.1:2000";
const A6: &str = "[fd00::1]:1000";
const B6: &str = "[fd00::1:1]:2000";

#[test]
fn a_known_ipv4_header_is_read_and_changed() {
    let mut packet = [&EXAMPLE[..], &[0x13, 0x88, 0, 53], &[0; 91]].concat();
    let headers = parse(&packet).unwrap();
    assert_eq!((headers.version, headers.total_len, headers.ttl), (Version::V4, 115, 64));
    assert_eq!(headers.key.src, IpAddr::from([192, 168, 0, 1]));
    assert_eq!(headers.key.dst, IpAddr::from([192, 168, 0, 199]));
    assert_eq!((headers.key.sport, headers.key.dport), (5_000, 53));
    assert_eq!((headers.transport, headers.transport_len()), (Transport::Udp, 8));
    assert_eq!((headers.payload_offset, headers.payload_len()), (28, 87));
    assert!(ipv4_checksum_ok(&packet));

    // Checksums by hand: b861 + 0100 for the TTL, - 03 for CE, - b8 for EF instead.
    assert_eq!(decrement_ttl(&mut packet), Some(63));
    assert_eq!(packet[10..12], [0xb9, 0x61]);
    assert_eq!(set_ecn(&mut packet, Ecn::Ce), Some(Ecn::NotEct));
    assert_eq!(packet[10..12], [0xb9, 0x5e]);
    assert_eq!(set_tos(&mut packet, 0xb8), Some(3));
    assert_eq!(packet[10..12], [0xb8, 0xa9]);
    let changed = parse(&packet).unwrap();
    assert_eq!((changed.ttl, changed.dscp, changed.ecn), (63, Dscp::EF, Ecn::NotEct));
    assert!(ipv4_checksum_ok(&packet));
}

#[test]
fn a_descriptor_has_the_length_that_linux_counts() {
    let packet =
        Tcp { ip: Ip { tos: 0xba, ..Ip::new(A4, B4) }, ..Tcp::new(A4, B4) }.packet(&[0; 1448]);
    let headers = parse(&packet).unwrap();
    let descriptor = headers.packet(7, 8, 9);
    assert_eq!((descriptor.ip_len(), descriptor.len), (1500, 1500 + ETHERNET_HEADER));
    assert_eq!((descriptor.handle, descriptor.flow_id, descriptor.tos()), (7, 8, 0xba));
    assert_eq!(descriptor.label, headers.key.label(9));
}

#[test]
fn ipv6_traffic_class_and_hop_limit_change_in_place() {
    let mut packet = Udp::new(A6, B6).packet(b"abc");
    packet[1] = 0x0f; // Part of the flow label, which must stay.
    assert_eq!(set_tos(&mut packet, 0xb9), Some(0));
    assert_eq!(set_ecn(&mut packet, Ecn::Ce), Some(Ecn::Ect1));
    assert_eq!(packet[..2], [0x6b, 0xbf]);
    assert_eq!(decrement_ttl(&mut packet), Some(63));
    let headers = parse(&packet).unwrap();
    assert_eq!((headers.dscp, headers.ecn, headers.ttl), (Dscp::EF, Ecn::Ce, 63));
    assert!(transport_checksum_ok(&packet, &headers));
}

#[test]
fn a_packet_whose_ttl_ends_stays_as_it_came() {
    for ttl in [0, 1] {
        for (src, dst) in [(A4, B4), (A6, B6)] {
            let packet = Udp { ip: Ip { ttl, ..Ip::new(src, dst) } }.packet(b"");
            let mut same = packet.clone();
            assert_eq!(decrement_ttl(&mut same), None);
            assert_eq!(same, packet);
        }
    }
    assert_eq!(decrement_ttl(&mut [0x55; 40]), None);
    assert_eq!(set_ecn(&mut [], Ecn::Ce), None);
}

#[test]
fn ipv4_options_move_the_transport() {
    let options = (0, vec![7, 7, 4, 0, 0, 0, 0, 0]);
    let tcp = Tcp { ip: Ip { extra: options, ..Ip::new(A4, B4) }, ..Tcp::new(A4, B4) };
    let packet = tcp.packet(b"abc");
    let headers = parse(&packet).unwrap();
    assert_eq!((headers.transport_offset, headers.transport_len()), (28, 32));
    assert_eq!((headers.key.sport, headers.payload_len()), (1_000, 3));
    assert!(ipv4_checksum_ok(&packet) && transport_checksum_ok(&packet, &headers));
}

#[test]
fn padding_behind_the_packet_is_no_part_of_it() {
    let mut packet = Udp::new(A4, B4).packet(b"a");
    packet.extend_from_slice(&[0xff; 17]);
    let headers = parse(&packet).unwrap();
    assert_eq!((headers.total_len, headers.payload_len()), (29, 1));
    assert!(transport_checksum_ok(&packet, &headers));

    // A TCP header that the total length cuts off is none, though its bytes are there as padding.
    let mut cut = Tcp::new(A4, B4).packet(b"abc");
    cut[2..4].copy_from_slice(&39u16.to_be_bytes());
    let shortened = parse(&cut).unwrap();
    assert_eq!((shortened.transport, shortened.payload_len()), (Transport::Other, 19));
    assert_eq!(shortened.key.sport, 1_000);
}

#[test]
fn fragments_have_no_ports_but_know_their_place() {
    let udp = |fragment| Udp { ip: Ip { fragment, ..Ip::new(A4, B4) } }.packet(&[0; 32]);
    let first = parse(&udp(0x2000)).unwrap();
    assert_eq!(first.fragment, Some(Fragment { offset: 0, more: true }));
    let last = parse(&udp(5)).unwrap();
    assert_eq!(last.fragment, Some(Fragment { offset: 40, more: false }));
    assert_eq!(first.key, last.key);
    assert_eq!((first.key.sport, first.transport, first.payload_len()), (0, Transport::Other, 40));
    assert_eq!(parse(&udp(0x4000)).unwrap().fragment, None);
}

#[test]
fn ipv6_extension_headers_are_walked() {
    let hop_by_hop = [60, 0, 5, 2, 0, 0, 1, 0];
    let destination = [43, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let routing = [44, 0, 0, 0, 0, 0, 0, 0];
    let atomic = [6, 0, 0, 0, 0, 0, 0, 9];
    let chain = [&hop_by_hop[..], &destination, &routing, &atomic].concat();
    let tcp = Tcp { ip: Ip { extra: (0, chain), ..Ip::new(A6, B6) }, ..Tcp::new(A6, B6) };
    let packet = tcp.packet(b"abcd");
    let headers = parse(&packet).unwrap();
    assert_eq!((headers.transport_offset, headers.payload_offset), (80, 112));
    assert_eq!((headers.key.protocol, headers.key.dport), (Protocol::TCP, 2_000));
    assert_eq!(headers.fragment, None);
    assert!(transport_checksum_ok(&packet, &headers));
}

#[test]
fn an_ipv6_fragment_header_ends_the_walk() {
    let fragment = vec![17, 0, 0, 41, 0, 0, 0, 9];
    let packet = Udp { ip: Ip { extra: (44, fragment), ..Ip::new(A6, B6) } }.packet(&[0; 16]);
    let headers = parse(&packet).unwrap();
    assert_eq!(headers.fragment, Some(Fragment { offset: 40, more: true }));
    assert_eq!((headers.key.protocol, headers.key.sport), (Protocol::UDP, 0));
    assert_eq!((headers.transport, headers.payload_offset), (Transport::Other, 48));
}

#[test]
fn echoes_have_their_identifier_as_ports_and_errors_have_none() {
    for (src, dst) in [("10.0.0.1", "10.0.1.1"), ("fd00::1", "fd00::2")] {
        let (src, dst): (IpAddr, IpAddr) = (src.parse().unwrap(), dst.parse().unwrap());
        let ping = Echo { reply: false, id: 77, seq: 3, payload: b"abcdefg" };
        let mut packet = [0; 128];
        let len = ping.write(src, dst, 0xb8, &mut packet).unwrap();
        let headers = parse(&packet[..len]).unwrap();
        assert_eq!((headers.key.sport, headers.key.dport, headers.payload_len()), (77, 77, 7));
        assert_eq!(Echo::parse(&packet, &headers), Some(ping));
        assert!(transport_checksum_ok(&packet, &headers));

        let reply = Echo { reply: true, ..ping };
        let mut answer = [0; 128];
        let answer_len = reply.write(dst, src, 0xb8, &mut answer).unwrap();
        let answered = parse(&answer[..answer_len]).unwrap();
        assert_eq!(answered.key, headers.key.reversed());
        assert_eq!(Echo::parse(&answer, &answered), Some(reply));

        let mut error = [0; 1280];
        let error_len = time_exceeded(&packet, &headers, dst, &mut error).unwrap();
        let errored = parse(&error[..error_len]).unwrap();
        assert_eq!((errored.key.sport, errored.key.dport), (0, 0));
        assert_eq!(Echo::parse(&error, &errored), None);
        assert_eq!(ping.write(src, dst, 0, &mut [0; 30]), None);
    }
}

#[test]
fn nobody_answers_to_many_or_about_what_went_to_many() {
    let told = |src: &str, dst: &str| {
        let packet = Udp::new(src, dst).packet(b"");
        let router = if packet[0] >> 4 == 4 { "192.0.2.1" } else { "2001:db8::1" };
        let headers = parse(&packet).unwrap();
        time_exceeded(&packet, &headers, router.parse().unwrap(), &mut [0; 1280]).is_some()
    };
    assert!(told(A4, B4) && told(A6, B6));
    for src in ["224.0.0.1:1", "255.255.255.255:1", "240.0.0.1:1", "0.0.0.0:1", "127.0.0.1:1"] {
        assert!(!told(src, B4), "{src}");
    }
    for dst in ["224.0.0.1:1", "255.255.255.255:1"] {
        assert!(!told(A4, dst), "{dst}");
    }
    for src in ["[::]:1", "[ff02::1]:1"] {
        assert!(!told(src, B6), "{src}");
    }
    assert!(!told(A6, "[ff02::1]:1"));
}

#[test]
fn what_is_refused_is_refused_in_one_sentence() {
    let tcp = Tcp::new(A4, B4).packet(b"abc");
    let changed = |at: usize, to: u8| {
        let mut packet = tcp.clone();
        packet[at] = to;
        parse(&packet).unwrap_err()
    };
    assert_eq!(parse(&[]), Err(Malformed::NotIp));
    assert_eq!(changed(0, 0x55), Malformed::NotIp);
    assert_eq!(parse(&tcp[..19]), Err(Malformed::Truncated { need: 20, have: 19 }));
    assert_eq!(parse(&tcp[..54]), Err(Malformed::Truncated { need: 55, have: 54 }));
    assert_eq!(changed(0, 0x44), Malformed::HeaderLength(16));
    assert_eq!(changed(3, 19), Malformed::TotalLength { total: 19, header: 20 });
    assert_eq!(changed(0, 0x4f), Malformed::TotalLength { total: 55, header: 60 });
    assert_eq!(changed(3, 56).to_string(), "the packet needs 56 bytes, but only 55 are there");

    let v6 = |extra: (u8, Vec<u8>)| {
        parse(&Udp { ip: Ip { extra, ..Ip::new(A6, B6) } }.packet(b"")).unwrap_err()
    };
    assert_eq!(v6((60, vec![17, 9, 0, 0, 0, 0, 0, 0])), Malformed::ExtensionLength(40));
    let many = [60, 0, 1, 4, 0, 0, 0, 0].repeat(12);
    assert_eq!(v6((60, many)), Malformed::TooManyExtensions(10));
    let mut jumbo = Udp::new(A6, B6).packet(b"");
    jumbo[4..7].fill(0);
    assert_eq!(parse(&jumbo), Err(Malformed::Jumbogram));
}

#[test]
fn a_transport_that_lies_is_still_forwarded() {
    let mut packet = Tcp::new(A4, B4).packet(b"");
    packet[32] = 4 << 4; // A data offset of four words.
    assert_eq!(parse(&packet).unwrap().transport, Transport::Other);
    packet[32] = 15 << 4; // One of more than the packet has.
    let headers = parse(&packet).unwrap();
    assert_eq!((headers.transport, headers.key.sport), (Transport::Other, 1_000));
    assert!(!transport_checksum_ok(&packet, &headers));
}
