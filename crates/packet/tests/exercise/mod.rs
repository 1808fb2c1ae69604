//! Everything that can be done with arbitrary bytes, and what must hold then. The fuzz targets and the
//! replay of their corpus share this.

use std::net::IpAddr;

use weir_core::{Ecn, Protocol};
use weir_packet::icmp::Echo;
use weir_packet::{
    Checksum, Coalescer, Fill, Gso, GsoKind, Headers, Limits, Segmenter, Sum, Transport, Version,
    Virtio, complete_checksum, decrement_ttl, ipv4_checksum_ok, parse, parse_head, set_ecn,
    set_tos, time_exceeded, transport_checksum_ok,
};

/// Parses `data` as a packet, and as a virtio header and a packet, and does everything with it.
pub fn parsing(data: &[u8]) {
    edits_without_parsing(data);
    if let Ok(headers) = parse(data) {
        packet(data, &headers);
    }
    let Some((header, rest)) = data.split_first_chunk::<{ Virtio::LEN }>() else { return };
    let virtio = Virtio::parse(header, rest.len());
    if let Ok(virtio) = virtio {
        let again = Virtio::parse(&virtio.to_bytes(), rest.len());
        assert_eq!(again, Ok(virtio));
        if let Checksum::Partial { start, offset } = virtio.checksum {
            complete(rest, start, offset);
        }
    }
    let Ok(headers) = parse(rest) else { return };
    packet(rest, &headers);
    if let Ok(segmenter) =
        virtio.map_err(drop).and_then(|virtio| Segmenter::new(&headers, &virtio).map_err(drop))
    {
        segments(rest, &headers, &segmenter);
    }
    // As if it were a GSO packet, however large its segments.
    let size = u16::from_be_bytes([header[4], header[5]]).max(1);
    if let Some(packet) = as_super_packet(rest, &headers) {
        let segmenter = Segmenter::new(&headers, &virtio_of(&headers, size))
            .expect("virtio header made to fit");
        segments(&packet, &headers, &segmenter);
        there_and_back(&packet, &segmenter);
    }
}

/// Takes a first segment and a recipe for the following ones from `data`, joins what joins, and cuts it
/// again: the segments are the same.
pub fn joining(data: &[u8]) {
    let Some((&[limits, recipes], rest)) = data.split_first_chunk::<2>() else { return };
    let limits = Limits {
        max_len: 1 + usize::from(limits & 0xf) * 5_000,
        max_segments: usize::from(limits >> 4) * 3,
        udp: true,
    };
    let Some(mut coalescer) = Coalescer::start(rest, limits) else { return };
    let headers = parse_head(rest, usize::MAX).expect("a joinable head parses");
    let first = &rest[..headers.payload_offset];
    let mut joined = vec![first.to_vec()];
    let mut done = headers.payload_len();
    // A recipe says how much shorter than the first the next one is, and which byte is changed how.
    for recipe in rest.rchunks_exact(4).take(recipes.into()) {
        let less = usize::from(u16::from_be_bytes([recipe[0] & 0x3f, recipe[1]]));
        let len = headers.payload_len().saturating_sub(less);
        let mut next = following(first, &headers, done, joined.len(), len);
        let at = usize::from(recipe[2]) % next.len();
        next[at] ^= recipe[3];
        if coalescer.push(&next) {
            // The change may have made it longer or shorter.
            done += parse_head(&next, usize::MAX).expect("joined").payload_len();
            joined.push(next);
        } else {
            let full = coalescer.is_done() || coalescer.ip_len() + len > limits.max_len.min(65_535);
            assert!(full || recipe[3] != 0 || len == 0, "a following segment was refused");
        }
    }
    assert_eq!(coalescer.segments(), joined.len());
    cut_gives(&coalescer, &joined, done);
}

/// Checks a packet that parses.
fn packet(bytes: &[u8], headers: &Headers) {
    assert!(headers.transport_offset <= headers.payload_offset);
    assert!(headers.payload_offset <= headers.total_len && headers.total_len <= bytes.len());
    assert_eq!(headers.payload_len() + headers.payload_offset, headers.total_len);
    let descriptor = headers.packet(1, 2, 3);
    assert_eq!(descriptor.ip_len() as usize, headers.total_len);
    assert_eq!(descriptor.tos(), headers.tos());
    let head = &bytes[..headers.total_len.min(headers.payload_offset + 8)];
    assert_eq!(parse_head(head, bytes.len()), Ok(*headers), "the head is enough");
    marks(bytes, headers);
    hop(bytes, headers);
    errors(bytes, headers);
    echo(bytes, headers);
    assert_eq!(headers.tcp_header(bytes).is_some(), headers.transport == Transport::Tcp);
    // Only that it judges anything.
    let _ = transport_checksum_ok(bytes, headers);
}

fn edits_without_parsing(data: &[u8]) {
    let mut bytes = data.to_vec();
    let _ = decrement_ttl(&mut bytes);
    let _ = set_ecn(&mut bytes, Ecn::Ce);
    let _ = set_tos(&mut bytes, 0xff);
    assert_eq!(bytes.len(), data.len());
}

fn marks(bytes: &[u8], headers: &Headers) {
    for ecn in [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce] {
        let mut marked = bytes.to_vec();
        assert_eq!(set_ecn(&mut marked, ecn), Some(headers.ecn));
        assert_eq!(parse(&marked), Ok(Headers { ecn, ..*headers }));
        assert_eq!(ipv4_checksum_ok(bytes), ipv4_checksum_ok(&marked));
        assert!(headers.version == Version::V4 || !ipv4_checksum_ok(bytes));
        assert_eq!(set_tos(&mut marked, headers.tos()), Some(headers.dscp.get() << 2 | ecn.bits()));
        assert_eq!(parse(&marked), Ok(*headers));
    }
}

fn hop(bytes: &[u8], headers: &Headers) {
    let mut next = bytes.to_vec();
    match decrement_ttl(&mut next) {
        Some(ttl) => {
            assert_eq!(ttl, headers.ttl - 1);
            assert_eq!(parse(&next), Ok(Headers { ttl, ..*headers }));
            assert_eq!(ipv4_checksum_ok(bytes), ipv4_checksum_ok(&next));
        }
        None => assert!(headers.ttl <= 1 && next == bytes),
    }
}

fn errors(bytes: &[u8], headers: &Headers) {
    let (router, other): (IpAddr, IpAddr) = match headers.version {
        Version::V4 => ([192, 0, 2, 1].into(), [0; 16].into()),
        Version::V6 => ([0x20; 16].into(), [1; 4].into()),
    };
    let mut out = [0; 1280];
    assert_eq!(time_exceeded(bytes, headers, other, &mut out), None);
    let Some(len) = time_exceeded(bytes, headers, router, &mut out) else { return };
    assert!(len <= if headers.version == Version::V4 { 576 } else { 1280 });
    let error = parse(&out[..len]).expect("an error is a packet");
    assert!(headers.version == Version::V6 || ipv4_checksum_ok(&out));
    assert!(transport_checksum_ok(&out, &error));
    assert_eq!((error.total_len, error.key.dst, error.key.src), (len, headers.key.src, router));
    assert!(bytes.starts_with(&out[error.payload_offset..len]));
    let mut never = [0; 1280];
    assert_eq!(time_exceeded(&out, &error, router, &mut never), None);
}

fn echo(bytes: &[u8], headers: &Headers) {
    let Some(echo) = Echo::parse(bytes, headers) else { return };
    let mut out = vec![0; bytes.len()];
    let key = headers.key;
    let len = echo.write(key.src, key.dst, headers.tos(), &mut out).expect("fits as it did");
    let written = parse(&out[..len]).expect("an echo is a packet");
    assert_eq!(Echo::parse(&out, &written), Some(echo));
    assert!(transport_checksum_ok(&out, &written));
    assert_eq!(written.key, headers.key);
}

fn complete(packet: &[u8], start: u16, offset: u16) {
    let mut whole = packet.to_vec();
    assert_eq!(complete_checksum(&mut whole, start, offset), Ok(()));
    let changed = usize::from(start) + usize::from(offset);
    assert_eq!(
        (&whole[..changed], &whole[changed + 2..]),
        (&packet[..changed], &packet[changed + 2..])
    );
}

fn virtio_of(headers: &Headers, size: u16) -> Virtio {
    let kind = match (headers.transport, headers.version) {
        (Transport::Udp, _) => GsoKind::Udp,
        (_, Version::V4) => GsoKind::TcpV4,
        (_, Version::V6) => GsoKind::TcpV6,
    };
    let offset = if headers.transport == Transport::Udp { 6 } else { 16 };
    Virtio {
        checksum: Checksum::Partial { start: headers.transport_offset as u16, offset },
        gso: Some(Gso { kind, size, ecn: false }),
        hdr_len: 0,
    }
}

/// The packet with a right IP checksum, UDP length and partial checksum; `None` if it cannot be cut.
fn as_super_packet(bytes: &[u8], headers: &Headers) -> Option<Vec<u8>> {
    let at = headers.transport_offset;
    let mut packet = bytes[..headers.total_len].to_vec();
    let covered = headers.total_len - at;
    let field = match headers.transport {
        Transport::Tcp => at + 16,
        Transport::Udp => {
            packet[at + 4..][..2].copy_from_slice(&(covered as u16).to_be_bytes());
            at + 6
        }
        _ => return None,
    };
    if headers.payload_offset > Segmenter::MAX_HEADERS {
        return None;
    }
    let key = &headers.key;
    let pseudo = Sum::pseudo_header(key.src, key.dst, key.protocol, covered as u32).fold();
    packet[field..][..2].copy_from_slice(&pseudo.to_be_bytes());
    if headers.version == Version::V4 {
        packet[10..12].copy_from_slice(&[0; 2]);
        let checksum = Sum::of(&packet[..at]).checksum();
        packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    }
    Some(packet)
}

/// Writes all segments in all ways; where the GSO packet was right, they are.
fn segments(bytes: &[u8], headers: &Headers, segmenter: &Segmenter) {
    let whole = headers.packet(0, 0, 0);
    let mut next = headers.payload_offset;
    let right = as_super_packet(bytes, headers).is_some_and(|right| bytes.starts_with(&right));
    for segment in segmenter.segments() {
        assert_eq!(segment.payload().start, next);
        next = segment.payload().end;
        assert_eq!(segmenter.segment(segment.index), Some(segment));
        let descriptor = segment.packet(&whole, 9);
        assert_eq!(descriptor.ip_len() as usize, segment.ip_len());
        let mut partial = [0; Segmenter::MAX_HEADERS];
        let len = segmenter
            .write_headers(bytes, &segment, WASHED, Fill::Partial, &mut partial)
            .expect("the packet is whole");
        let mut full = [0; Segmenter::MAX_HEADERS];
        assert_eq!(
            segmenter.write_headers(bytes, &segment, WASHED, Fill::Full, &mut full),
            Some(len)
        );
        let written = [&full[..len], &bytes[segment.payload()]].concat();
        let parsed = parse(&written).expect("a segment is a packet");
        assert_eq!((parsed.total_len, parsed.tos()), (written.len(), WASHED));
        let mut completed = [&partial[..len], &bytes[segment.payload()]].concat();
        if let Checksum::Partial { start, offset } = segmenter.partial_checksum() {
            complete_checksum(&mut completed, start, offset).expect("inside");
        }
        assert_eq!(completed, written);
        if right {
            assert!(transport_checksum_ok(&written, &parsed));
            assert!(headers.version == Version::V6 || ipv4_checksum_ok(&written));
        }
    }
    assert_eq!(next, headers.total_len);
    assert_eq!(segmenter.segment(segmenter.count()), None);
    let mut short = vec![0; segmenter.header_len() - 1];
    let first = segmenter.segment(0).expect("there is one");
    assert_eq!(segmenter.write_headers(bytes, &first, WASHED, Fill::Full, &mut short), None);
    assert_eq!(segmenter.write_headers(&[], &first, WASHED, Fill::Full, &mut short), None);
}

/// Segments of a GSO packet join to the same headers.
fn there_and_back(packet: &[u8], segmenter: &Segmenter) {
    let headers = parse(packet).expect("it was one");
    let limits = Limits { max_segments: usize::MAX, udp: true, ..Limits::default() };
    let mut coalescer: Option<Coalescer> = None;
    for segment in segmenter.segments() {
        let mut head = [0; Segmenter::MAX_HEADERS];
        let len = segmenter
            .write_headers(packet, &segment, headers.tos(), Fill::Full, &mut head)
            .expect("the packet is whole");
        match &mut coalescer {
            Some(coalescer) => {
                assert!(coalescer.push(&head[..len]), "segment {} was refused", segment.index);
            }
            none => match Coalescer::start(&head[..len], limits) {
                // Options, SYN and the like.
                None => return,
                some => *none = some,
            },
        }
    }
    let mut out = [0; Coalescer::MAX_HEADERS];
    let coalescer = coalescer.expect("there is a segment");
    let (len, virtio) = coalescer.finish(&mut out).expect("it fits");
    assert_eq!(out[..len], packet[..len]);
    assert_eq!(virtio.gso.is_some(), segmenter.count() > 1);
    assert_eq!(coalescer.ip_len(), headers.total_len);
}

/// The head of the segment that follows `done` bytes of payload in `before` segments.
fn following(first: &[u8], headers: &Headers, done: usize, before: usize, len: usize) -> Vec<u8> {
    let mut next = first.to_vec();
    let total = headers.payload_offset + len;
    let at = headers.transport_offset;
    let add = |bytes: &mut [u8], n: usize| {
        let old = u16::from_be_bytes([bytes[0], bytes[1]]);
        bytes[..2].copy_from_slice(&old.wrapping_add(n as u16).to_be_bytes());
    };
    match headers.version {
        Version::V4 => {
            next[2..4].copy_from_slice(&(total as u16).to_be_bytes());
            add(&mut next[4..], before);
        }
        Version::V6 => next[4..6].copy_from_slice(&((total - 40) as u16).to_be_bytes()),
    }
    if headers.transport == Transport::Udp {
        next[at + 4..][..2].copy_from_slice(&((total - at) as u16).to_be_bytes());
    } else {
        let seq = u32::from_be_bytes([next[at + 4], next[at + 5], next[at + 6], next[at + 7]]);
        next[at + 4..][..4].copy_from_slice(&seq.wrapping_add(done as u32).to_be_bytes());
        next[at + 13] &= !0x80;
    }
    next
}

/// Cuts the joined packet: its segments' heads are those that were joined, but for checksums and
/// meaningless identifications.
fn cut_gives(coalescer: &Coalescer, joined: &[Vec<u8>], payload_len: usize) {
    let mut out = [0; Coalescer::MAX_HEADERS];
    let (header_len, virtio) = coalescer.finish(&mut out).expect("it fits");
    let mut packet = out[..header_len].to_vec();
    packet.resize(header_len + payload_len, 0);
    let headers = parse(&packet).expect("a joined packet is a packet");
    assert_eq!((headers.total_len, headers.payload_offset), (packet.len(), header_len));
    assert!(headers.version == Version::V6 || ipv4_checksum_ok(&packet));
    assert_eq!(Virtio::parse(&virtio.to_bytes(), packet.len()), Ok(virtio));
    if joined.len() == 1 {
        assert_eq!(virtio.gso, None);
        return;
    }
    let segmenter = Segmenter::new(&headers, &virtio).expect("a joined packet can be cut");
    assert_eq!(segmenter.count(), joined.len());
    for (segment, pushed) in segmenter.segments().zip(joined) {
        let mut head = [0; Segmenter::MAX_HEADERS];
        let len = segmenter
            .write_headers(&packet, &segment, headers.tos(), Fill::Partial, &mut head)
            .expect("the packet is whole");
        assert_eq!(without_checksums(&head[..len], &headers), without_checksums(pushed, &headers));
    }
}

fn without_checksums(head: &[u8], headers: &Headers) -> Vec<u8> {
    let mut head = head.to_vec();
    let field = if headers.key.protocol == Protocol::TCP { 16 } else { 6 };
    head[headers.transport_offset + field..][..2].copy_from_slice(&[0; 2]);
    if headers.version == Version::V4 {
        head[10..12].copy_from_slice(&[0; 2]);
        if head[6] & 0x40 != 0 {
            head[4..6].copy_from_slice(&[0; 2]);
        }
    }
    head
}

/// A byte of DSCP and ECN that is not the one a packet came with: default forwarding, marked.
const WASHED: u8 = 0x03;
