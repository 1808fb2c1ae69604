//! `TCP_INFO` of a TCP socket, under the names of M-Lab's protocols.
//!
//! The layout is that of `struct tcp_info` in Linux' `include/uapi/linux/tcp.h`, to which fields are only
//! ever appended; a field that this kernel does not have is left out.

use serde_json::{Map, Value};

/// The fields of the first `bytes` of a `struct tcp_info`, times in microseconds as the kernel has them.
#[must_use]
pub fn tcp_info(bytes: &[u8]) -> Map<String, Value> {
    let field = |&(name, at, width): &(&str, usize, usize)| {
        let field = bytes.get(at..at + width)?;
        let value = match *field {
            [byte] => u64::from(byte),
            [a, b, c, d] => u64::from(u32::from_ne_bytes([a, b, c, d])),
            // As Go reads it: a signed number. "Unlimited" becomes -1 there, and would fail to be read.
            _ => u64::from_ne_bytes(field.try_into().ok()?).min(i64::MAX as u64),
        };
        Some((name.to_owned(), Value::from(value)))
    };
    FIELDS.iter().filter_map(field).collect()
}

/// Name, offset and width in bytes.
const FIELDS: [(&str, usize, usize); 50] = [
    ("State", 0, 1),
    ("CAState", 1, 1),
    ("Retransmits", 2, 1),
    ("Probes", 3, 1),
    ("Backoff", 4, 1),
    ("Options", 5, 1),
    ("RTO", 8, 4),
    ("ATO", 12, 4),
    ("SndMSS", 16, 4),
    ("RcvMSS", 20, 4),
    ("Unacked", 24, 4),
    ("Sacked", 28, 4),
    ("Lost", 32, 4),
    ("Retrans", 36, 4),
    ("Fackets", 40, 4),
    ("LastDataSent", 44, 4),
    ("LastDataRecv", 52, 4),
    ("LastAckRecv", 56, 4),
    ("PMTU", 60, 4),
    ("RcvSsThresh", 64, 4),
    ("RTT", 68, 4),
    ("RTTVar", 72, 4),
    ("SndSsThresh", 76, 4),
    ("SndCwnd", 80, 4),
    ("AdvMSS", 84, 4),
    ("Reordering", 88, 4),
    ("RcvRTT", 92, 4),
    ("RcvSpace", 96, 4),
    ("TotalRetrans", 100, 4),
    ("PacingRate", 104, 8),
    ("MaxPacingRate", 112, 8),
    ("BytesAcked", 120, 8),
    ("BytesReceived", 128, 8),
    ("SegsOut", 136, 4),
    ("SegsIn", 140, 4),
    ("NotsentBytes", 144, 4),
    ("MinRTT", 148, 4),
    ("DataSegsIn", 152, 4),
    ("DataSegsOut", 156, 4),
    ("DeliveryRate", 160, 8),
    ("BusyTime", 168, 8),
    ("RWndLimited", 176, 8),
    ("SndBufLimited", 184, 8),
    ("Delivered", 192, 4),
    ("DeliveredCE", 196, 4),
    ("BytesSent", 200, 8),
    ("BytesRetrans", 208, 8),
    ("DSackDups", 216, 4),
    ("ReordSeen", 220, 4),
    ("RcvOooPack", 224, 4),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_at_their_place_and_missing_ones_left_out() {
        let mut bytes = [0; 120];
        bytes[68..72].copy_from_slice(&1500_u32.to_ne_bytes());
        bytes[112..120].fill(0xff);
        let info = tcp_info(&bytes);
        assert_eq!(info["RTT"], 1500);
        assert_eq!(info["MaxPacingRate"], i64::MAX);
        assert!(!info.contains_key("BytesAcked"));
        assert!(tcp_info(&[]).is_empty());
    }

    #[test]
    fn fields_do_not_overlap() {
        for pair in FIELDS.windows(2) {
            assert!(pair[0].1 + pair[0].2 <= pair[1].1, "{pair:?}");
        }
    }
}
