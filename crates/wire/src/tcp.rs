//! The TCP header (RFC 9293, section 3.1).

/// Bytes of the header at the start of `transport`, or `None` if it is cut short or its length is
/// below five words.
pub(crate) fn header_len(transport: &[u8]) -> Option<usize> {
    let fixed: &[u8; HEADER] = transport.first_chunk()?;
    let len = usize::from(fixed[DATA_OFFSET] >> 4) * 4;
    (HEADER..=transport.len()).contains(&len).then_some(len)
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
