//! The TCP header (RFC 9293, section 3.1).

use weir_core::{SackRanges, TcpFlags, TcpHeader};

use crate::bytes;

/// Bytes of the header at the start of `transport`, or `None` if it is cut short or its length is
/// below five words.
pub(crate) fn header_len(transport: &[u8]) -> Option<usize> {
    let fixed: &[u8; HEADER] = transport.first_chunk()?;
    let len = usize::from(fixed[DATA_OFFSET] >> 4) * 4;
    (HEADER..=transport.len()).contains(&len).then_some(len)
}

/// Parses `header`, a whole TCP header with its options, in front of `payload` bytes.
pub(crate) fn read(header: &[u8], payload: u32) -> Option<TcpHeader> {
    let mut told = TcpHeader {
        seq: bytes::get_u32(header, SEQ)?,
        ack: bytes::get_u32(header, ACK)?,
        flags: TcpFlags::new(bytes::get_u16(header, DATA_OFFSET)?),
        payload,
        ..TcpHeader::default()
    };
    let mut options = header.get(HEADER..)?;
    let mut has_sack = false;
    // As Linux does: the list ends at an option that does not fit, and nothing is made of it.
    while let Some((&kind, behind)) = options.split_first() {
        let len = match (kind, behind.first()) {
            (END, _) | (_, None) => break,
            (NO_OPERATION, _) => 1,
            (_, Some(&len)) => usize::from(len),
        };
        if kind != NO_OPERATION && !(2..=options.len()).contains(&len) {
            break;
        }
        let (option, rest) = options.split_at(len);
        match kind {
            NO_OPERATION | MD5 => {}
            SACK => {
                told.other_options |= len % 8 != 2;
                if !std::mem::replace(&mut has_sack, true) {
                    told.sack = ranges(&option[2..]);
                }
            }
            TIMESTAMPS if len == 10 => {
                let pair = bytes::get_u32(option, 2).zip(bytes::get_u32(option, 6));
                told.timestamps = told.timestamps.or(pair);
            }
            _ => told.other_options = true,
        }
        options = rest;
    }
    Some(told)
}

fn ranges(blocks: &[u8]) -> SackRanges {
    let mut sack = SackRanges::default();
    for block in blocks.chunks_exact(8) {
        if let Some((start, end)) = bytes::get_u32(block, 0).zip(bytes::get_u32(block, 4)) {
            sack.push(start, end);
        }
    }
    sack
}

/// Bytes of a header without options.
pub(crate) const HEADER: usize = 20;
/// Bytes of the longest header.
pub(crate) const MAX_HEADER: usize = 60;
/// Offsets of fields.
pub(crate) const SEQ: usize = 4;
pub(crate) const ACK: usize = 8;
pub(crate) const DATA_OFFSET: usize = 12;
pub(crate) const FLAGS: usize = 13;
pub(crate) const WINDOW: usize = 14;
pub(crate) const CHECKSUM: usize = 16;
pub(crate) const URGENT: usize = 18;
/// Flags.
pub(crate) const FIN: u8 = 0x01;
pub(crate) const SYN: u8 = 0x02;
pub(crate) const RST: u8 = 0x04;
pub(crate) const PSH: u8 = 0x08;
pub(crate) const URG: u8 = 0x20;
pub(crate) const CWR: u8 = 0x80;
/// Kinds of options: RFC 9293, section 3.2; RFC 2018; RFC 7323; RFC 2385.
const END: u8 = 0;
const NO_OPERATION: u8 = 1;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;
const MD5: u8 = 19;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{craft, parse};

    fn told(options: &[u8], flags: u8, payload: usize) -> TcpHeader {
        let tcp = craft::Tcp {
            flags,
            ack: 0x0102_0304,
            options: options.to_vec(),
            ..craft::Tcp::new("10.0.0.1:1", "10.0.1.1:2")
        };
        let packet = tcp.packet(&vec![0; payload]);
        parse(&packet).unwrap().tcp_header(&packet).unwrap()
    }

    #[test]
    fn an_acknowledgement_is_read() {
        let mut options = vec![1, 1, 8, 10, 0, 0, 0, 7, 0, 0, 0, 6, 1, 1, 5, 18];
        for number in [100u32, 200, 300, 400] {
            options.extend(number.to_be_bytes());
        }
        let header = told(&options, 0x50, 0);
        assert_eq!(header.ack, 0x0102_0304);
        assert_eq!(header.flags, TcpFlags::ACK.with(TcpFlags::ECE));
        assert_eq!(header.payload, 0);
        assert_eq!(header.timestamps, Some((7, 6)));
        assert_eq!(header.sack.as_slice(), [(100, 200), (300, 400)]);
        assert!(!header.other_options);
    }

    #[test]
    fn options_that_must_arrive_are_told() {
        let other = |options: &[u8]| told(options, 0x10, 0).other_options;
        assert!(!other(&[]));
        assert!(!other(&[19, 4, 9, 9]), "MD5 says nothing of what was received");
        assert!(other(&[2, 4, 5, 180]), "a maximum segment size");
        assert!(other(&[8, 4, 0, 0]), "timestamps that are cut short");
        assert!(other(&[5, 4, 0, 0]), "half a SACK block");
        assert!(other(&[254, 4, 0, 0]), "an experiment");
        assert!(!other(&[0, 254, 4, 0]), "nothing is read behind the end of the list");
        assert!(!other(&[1, 1, 1, 8]), "no room for a length");
        assert!(!other(&[254, 9, 0, 0]), "a length that does not fit ends the list, as in Linux");
    }

    #[test]
    fn data_is_counted_and_other_packets_have_no_such_header() {
        assert_eq!(told(&[], 0x18, 300).payload, 300);
        let packet = craft::Udp { ip: craft::Ip::new("10.0.0.1:1", "10.0.1.1:2") }.packet(&[0; 30]);
        assert_eq!(parse(&packet).unwrap().tcp_header(&packet), None);
    }
}
