//! Senders of TCP loads, as their kernels tell of them.

use weir_core::{Duration, Time};
use weir_scenario::{LiveTcp, TcpRow};
use weir_sockets::TcpInfo;
use weir_speedtest::protocol::weir::TcpSample;

/// Counts of a load by the sender's kernel.
#[derive(Clone, Copy)]
pub(crate) struct Sent {
    pub bytes: u64,
    pub bytes_again: u64,
    pub segments: u64,
    pub segments_again: u64,
    pub timeouts: Option<u64>,
}

impl Sent {
    pub fn of_server(tcp: &TcpSample) -> Self {
        Self {
            bytes: tcp.sent_bytes,
            bytes_again: tcp.retransmitted_bytes,
            segments: tcp.sent_bytes.div_ceil(u64::from(tcp.mss.max(1))),
            segments_again: tcp.retransmits,
            timeouts: tcp.timeouts,
        }
    }

    pub fn of_kernel(info: &TcpInfo) -> Self {
        let ((bytes, bytes_again), (segments, segments_again)) =
            (info.sent_bytes(), info.sent_segments());
        Self { bytes, bytes_again, segments, segments_again, timeouts: info.timeouts() }
    }

    /// With what left after the kernel had told: all of `delivered` bytes was sent, in segments of `mss` bytes at most.
    pub fn of_all(self, delivered: u64, mss: u32) -> Self {
        let since = (delivered + self.bytes_again).saturating_sub(self.bytes);
        let segments = self.segments + since.div_ceil(u64::from(mss.max(1)));
        Self { bytes: self.bytes + since, segments, ..self }
    }
}

/// The state of a sender at the server.
pub(crate) fn tcp_row(t: Time, flow: u32, tcp: &TcpSample) -> TcpRow {
    TcpRow {
        t,
        flow,
        cwnd_segments: tcp.cwnd,
        ssthresh_segments: tcp.ssthresh,
        in_flight_segments: tcp.in_flight,
        srtt: tcp.srtt_ns.map(Duration::from_nanos),
        rttvar: Duration::from_nanos(tcp.rttvar_ns),
        rto: Duration::from_nanos(tcp.rto_ns),
        pacing_rate_bps: tcp.pacing_rate_bps,
        retransmits: tcp.retransmits,
        timeouts: tcp.timeouts,
        live: Some(LiveTcp {
            delivery_rate_bps: tcp.delivery_rate_bps,
            busy: Duration::from_nanos(tcp.busy_ns),
            receive_window_limited: Duration::from_nanos(tcp.receive_window_limited_ns),
            send_buffer_limited: Duration::from_nanos(tcp.send_buffer_limited_ns),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kernel tells of a sender a moment before its connection is broken off.
    #[test]
    fn what_arrived_was_sent_though_it_left_after_the_kernel_had_told() {
        let told = Sent {
            bytes: 5_000,
            bytes_again: 1_000,
            segments: 5,
            segments_again: 1,
            timeouts: Some(0),
        };
        for (delivered, bytes, segments) in
            [(0, 5_000, 5), (4_000, 5_000, 5), (4_094, 5_094, 6), (6_001, 7_001, 8)]
        {
            let all = told.of_all(delivered, 1_000);
            assert_eq!((all.bytes, all.segments), (bytes, segments), "{delivered} bytes");
            assert_eq!((all.bytes_again, all.segments_again, all.timeouts), (1_000, 1, Some(0)));
        }
    }
}
