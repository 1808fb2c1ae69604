//! The flow table: the state of each load as both ends report it, and its rows of the record.

use weir_core::{Duration, Time};
use weir_scenario::{Flow, FlowRow, LiveTcp, TcpRow, ThroughputRow};
use weir_sockets::TcpInfo;
use weir_speedtest::protocol::weir::{EndReason, FlowSample, TcpSample};

use crate::loads::Totals;

/// State of one load, as both ends have reported it.
#[derive(Clone, Debug, Default)]
pub(crate) struct FlowState {
    pub asked: bool,
    /// The last that the server told.
    pub last: Option<FlowSample>,
    pub seen_bytes: u64,
    pub seen_wire: u64,
    pub seen_segments: u32,
    pub ended: Option<(Time, EndReason)>,
    pub totals: Option<Totals>,
    pub failed: bool,
}

impl FlowState {
    /// The server received up to `sample`, in packets whose IP and TCP headers are `header` bytes. Tells what
    /// came since the last sample, and in how many segments.
    pub fn arrived(&mut self, t: Time, sample: FlowSample, header: u32) -> (ThroughputRow, u64) {
        let (wire, arrived) = sample.tcp.as_ref().map_or((self.seen_wire, 0), |tcp| {
            let headers = u64::from(tcp.received_segments) * u64::from(header);
            (tcp.received_bytes + headers, tcp.received_segments)
        });
        let row = ThroughputRow {
            t,
            flow: sample.flow,
            bytes: sample.bytes.saturating_sub(self.seen_bytes),
            wire_bytes: wire.saturating_sub(self.seen_wire),
        };
        let segments = arrived.saturating_sub(self.seen_segments);
        self.seen_segments = self.seen_segments.max(arrived);
        self.seen_bytes = self.seen_bytes.max(sample.bytes);
        self.seen_wire = self.seen_wire.max(wire);
        self.last = Some(sample);
        (row, segments.into())
    }

    /// Totals of the flow, as number `flow` of the record.
    pub fn row(&self, flow: u32, spec: &Flow) -> FlowRow {
        let down = spec.direction == weir_scenario::Direction::Down;
        let info = self.totals.and_then(|totals| totals.info);
        let theirs = self.last.as_ref().and_then(|last| last.tcp.as_ref());
        let told =
            if down { theirs.map(Sent::of_server) } else { info.as_ref().map(Sent::of_kernel) };
        let totals = self.totals;
        let delivered =
            if down { totals.map_or(0, |totals| totals.delivered) } else { self.seen_bytes };
        let ended = if down {
            totals.and_then(|totals| totals.ended)
        } else {
            self.ended.map(|(at, _)| at)
        };
        FlowRow {
            flow,
            first_data: totals.and_then(|totals| totals.first_data).filter(|_| delivered > 0),
            delivered_bytes: delivered,
            sent_bytes: told.map(|sent| sent.bytes),
            sent_segments: told.map(|sent| sent.segments),
            retransmitted_bytes: told.map(|sent| sent.bytes_again),
            retransmitted_segments: told.map(|sent| sent.segments_again),
            timeouts: told.and_then(|sent| sent.timeouts),
            loss_probes: None,
            fast_recoveries: None,
            ecn_reductions: None,
            dropped_packets: None,
            dropped_bytes: None,
            marked_packets: None,
            completed: ended.filter(|_| spec.bytes == Some(delivered)),
        }
    }
}

/// What a sender's kernel counted of a load.
#[derive(Clone, Copy)]
struct Sent {
    bytes: u64,
    bytes_again: u64,
    segments: u64,
    segments_again: u64,
    timeouts: Option<u64>,
}

impl Sent {
    fn of_server(tcp: &TcpSample) -> Self {
        Self {
            bytes: tcp.sent_bytes,
            bytes_again: tcp.retransmitted_bytes,
            segments: tcp.sent_bytes.div_ceil(u64::from(tcp.mss.max(1))),
            segments_again: tcp.retransmits,
            timeouts: tcp.timeouts,
        }
    }

    fn of_kernel(info: &TcpInfo) -> Self {
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

#[cfg(test)]
mod tests {
    use weir_scenario::{Direction, Opener, Overrides, TcpSettings};

    use super::*;

    fn flow(direction: Direction) -> Flow {
        Flow {
            name: "load".into(),
            direction,
            host: 0,
            station: 0,
            tunnel: None,
            opened_by: Opener::Client,
            dscp: 0,
            tcp: TcpSettings {
                profile: "linux".into(),
                congestion_control: "cubic".into(),
                overrides: Overrides::default(),
            },
            start_ns: 0,
            stop_ns: 1_000_000_000,
            bytes: None,
        }
    }

    #[test]
    fn what_no_kernel_has_told_is_unknown_and_not_none() {
        for direction in [Direction::Up, Direction::Down] {
            let row = FlowState::default().row(3, &flow(direction));
            let counts = [
                row.sent_bytes,
                row.sent_segments,
                row.retransmitted_bytes,
                row.retransmitted_segments,
                row.timeouts,
            ];
            assert_eq!((row.flow, counts), (3, [None; 5]), "{direction:?}");
        }
    }
}
