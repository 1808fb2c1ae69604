//! Payload of a packet of a UDP load, in network order.
//!
//! | bytes | meaning |
//! |---|---|
//! | 0 to 7 | number of the packet, from 0 |
//! | 8 to 15 | when it was sent, in nanoseconds on `CLOCK_MONOTONIC` of its sender |
//!
//! The rest is zeros.

/// The least payload of a packet of a UDP load.
pub(crate) const MIN_UDP_LOAD_BYTES: usize = 16;

/// Writes number and time into `payload`, which has room for them.
pub(super) fn write(payload: &mut [u8], seq: u64, sent_ns: u64) {
    payload[..8].copy_from_slice(&seq.to_be_bytes());
    payload[8..MIN_UDP_LOAD_BYTES].copy_from_slice(&sent_ns.to_be_bytes());
}

/// Number and time of a packet; `None` if it is shorter than they are.
pub(super) fn read(payload: &[u8]) -> Option<(u64, u64)> {
    let long = |at: usize| Some(u64::from_be_bytes(*payload.get(at..)?.first_chunk()?));
    Some((long(0)?, long(8)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_what_is_cut_off_is_nothing() {
        let mut payload = [7; MIN_UDP_LOAD_BYTES + 4];
        write(&mut payload, 1 << 40, u64::MAX);
        assert_eq!(read(&payload), Some((1 << 40, u64::MAX)));
        assert_eq!(payload[MIN_UDP_LOAD_BYTES..], [7; 4]);
        assert_eq!(read(&payload[..MIN_UDP_LOAD_BYTES]), Some((1 << 40, u64::MAX)));
        assert_eq!(read(&payload[..MIN_UDP_LOAD_BYTES - 1]), None);
    }
}
