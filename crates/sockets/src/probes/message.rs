//! Payload of a UDP probe and of its answer, in network order.
//!
//! | bytes | request | answer |
//! |---|---|---|
//! | 0 to 3 | sequence number | the same |
//! | 4 to 7 | 0 | 1 |
//! | 8 to 15 | when it was sent | when it came in at the server |
//! | 16 to 23 | 0 | when the answer went out |
//!
//! Times are nanoseconds on `CLOCK_MONOTONIC` of who writes them. The rest is zeros.

/// The least payload of a UDP probe.
pub(crate) const MIN_UDP_PAYLOAD_BYTES: usize = 24;

/// Writes a request into `payload`, as much of it as there is room for.
pub(super) fn write_request(payload: &mut [u8], seq: u32, sent_ns: u64) {
    put(payload, 0, &seq.to_be_bytes());
    put(payload, 8, &sent_ns.to_be_bytes());
}

/// The sequence number at the beginning of a request, if so much of it is there.
pub(super) fn read_seq(payload: &[u8]) -> Option<u32> {
    payload.first_chunk().map(|seq| u32::from_be_bytes(*seq))
}

/// Turns a request into its answer.
pub(super) fn write_answer(payload: &mut [u8], arrived_ns: u64, answered_ns: u64) {
    put(payload, 4, &1_u32.to_be_bytes());
    put(payload, 8, &arrived_ns.to_be_bytes());
    put(payload, 16, &answered_ns.to_be_bytes());
}

/// Sequence number, and when it came in and was answered; `None` if it is no answer.
pub(super) fn read_answer(payload: &[u8]) -> Option<(u32, u64, u64)> {
    let long = |at: usize| Some(u64::from_be_bytes(*payload.get(at..)?.first_chunk()?));
    let kind: &[u8; 4] = payload.get(4..)?.first_chunk()?;
    (u32::from_be_bytes(*kind) == 1).then_some((read_seq(payload)?, long(8)?, long(16)?))
}

fn put(payload: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(place) = payload.get_mut(at..at + bytes.len()) {
        place.copy_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_tells_what_was_asked_and_when() {
        let mut payload = [0; MIN_UDP_PAYLOAD_BYTES];
        write_request(&mut payload, 77, 1_000);
        assert_eq!(read_seq(&payload), Some(77));
        assert_eq!(read_answer(&payload), None, "a request is no answer");
        write_answer(&mut payload, 2_000, 3_000);
        assert_eq!(read_answer(&payload), Some((77, 2_000, 3_000)));
        assert_eq!(read_answer(&payload[..20]), None);
        assert_eq!(read_seq(&payload[..3]), None);
    }

    #[test]
    fn a_short_payload_takes_what_fits() {
        let mut payload = [9; 6];
        write_request(&mut payload, 1, 1);
        assert_eq!(payload, [0, 0, 0, 1, 9, 9]);
    }
}
