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
