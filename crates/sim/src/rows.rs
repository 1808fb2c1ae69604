//! Rows of the record from what simulated TCP knows.

use weir_core::Time;
use weir_path::FlowDrops;
use weir_scenario::{FlowRow, TcpRow};
use weir_tcp::{Counters, Info};

/// The state of a sender.
pub(crate) const fn tcp_row(t: Time, flow: u32, info: &Info) -> TcpRow {
    TcpRow {
        t,
        flow,
        cwnd_segments: info.cwnd,
        ssthresh_segments: info.ssthresh,
        in_flight_segments: info.in_flight,
        srtt: info.srtt,
        rttvar: info.rttvar,
        rto: info.rto,
        pacing_rate_bps: info.pacing_rate * 8,
        retransmits: info.counters.segments_retransmitted,
        timeouts: Some(info.counters.timeouts),
        live: None,
    }
}

/// A flow's totals: what its sender counted, what became of its packets, and what its receiver has, of which
/// nothing is complete yet.
pub(crate) const fn flow_row(
    flow: u32,
    counters: &Counters,
    drops: FlowDrops,
    (first_data, delivered_bytes): (Option<Time>, u64),
) -> FlowRow {
    drops.added_to(&FlowRow {
        first_data,
        sent_bytes: Some(counters.bytes_sent),
        sent_segments: Some(counters.segments_sent),
        retransmitted_bytes: Some(counters.bytes_retransmitted),
        retransmitted_segments: Some(counters.segments_retransmitted),
        timeouts: Some(counters.timeouts),
        loss_probes: Some(counters.loss_probes),
        fast_recoveries: Some(counters.fast_recoveries),
        ecn_reductions: Some(counters.ecn_reductions),
        ..FlowRow::arrived(flow, first_data, delivered_bytes)
    })
}

/// Counts of two senders together.
pub(crate) const fn sum(a: Counters, b: Counters) -> Counters {
    Counters {
        segments_sent: a.segments_sent + b.segments_sent,
        bytes_sent: a.bytes_sent + b.bytes_sent,
        segments_retransmitted: a.segments_retransmitted + b.segments_retransmitted,
        bytes_retransmitted: a.bytes_retransmitted + b.bytes_retransmitted,
        timeouts: a.timeouts + b.timeouts,
        loss_probes: a.loss_probes + b.loss_probes,
        fast_recoveries: a.fast_recoveries + b.fast_recoveries,
        ecn_reductions: a.ecn_reductions + b.ecn_reductions,
        undos: a.undos + b.undos,
    }
}
