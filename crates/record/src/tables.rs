//! The tables of a record: names, columns, units. Numbers carry their unit in the column's name.

use std::path::Path;

use weir_core::{DropReason, Duration, MarkReason, Time};
use weir_world::{
    EmulatorRow, FlowRow, LatencyRow, MethodRow, QueueRow, ShaperRow, TcpRow, ThroughputRow,
};

use crate::table::{Kind, Table};

/// The names of all tables.
pub const TABLES: [&str; 8] =
    ["flows", "throughput", "latency", "tcp", "queue", "emulator", "shaper", "method"];

/// All tables of a record.
#[derive(Debug)]
pub(crate) struct Tables {
    flows: Table,
    throughput: Table,
    latency: Table,
    tcp: Table,
    queue: Table,
    emulator: Table,
    shaper: Table,
    method: Table,
}

impl Tables {
    pub fn new(record: &Path) -> Self {
        use Kind::{Float, Integer, Nullable, NullableText, Text};
        let table = |name: &str, columns: &[(&str, Kind)]| {
            let columns: Vec<_> =
                columns.iter().map(|&(column, kind)| (column.to_owned(), kind)).collect();
            Table::new(record, name, &columns)
        };
        Self {
            flows: table(
                "flows",
                &[
                    ("flow", Integer),
                    ("first_data_ns", Nullable),
                    ("delivered_bytes", Integer),
                    ("sent_bytes", Integer),
                    ("sent_segments", Integer),
                    ("retransmitted_bytes", Integer),
                    ("retransmitted_segments", Integer),
                    ("timeouts", Nullable),
                    ("loss_probes", Nullable),
                    ("fast_recoveries", Nullable),
                    ("ecn_reductions", Nullable),
                    ("dropped_packets", Nullable),
                    ("dropped_bytes", Nullable),
                    ("marked_packets", Nullable),
                    ("completed_ns", Nullable),
                ],
            ),
            throughput: table(
                "throughput",
                &[
                    ("t_ns", Integer),
                    ("flow", Integer),
                    ("bytes", Integer),
                    ("wire_bytes", Integer),
                ],
            ),
            latency: table(
                "latency",
                &[
                    ("t_ns", Integer),
                    ("probe", Integer),
                    ("seq", Integer),
                    ("rtt_ns", Nullable),
                    ("up_ns", Nullable),
                    ("down_ns", Nullable),
                    ("timer_error_ns", Integer),
                    ("server_received_ns", Nullable),
                    ("server_sent_ns", Nullable),
                ],
            ),
            tcp: table(
                "tcp",
                &[
                    ("t_ns", Integer),
                    ("flow", Integer),
                    ("cwnd_segments", Integer),
                    ("ssthresh_segments", Nullable),
                    ("in_flight_segments", Integer),
                    ("srtt_ns", Nullable),
                    ("rttvar_ns", Integer),
                    ("rto_ns", Integer),
                    ("pacing_rate_bps", Integer),
                    ("retransmits", Integer),
                    ("timeouts", Nullable),
                    ("delivery_rate_bps", Nullable),
                    ("busy_ns", Nullable),
                    ("receive_window_limited_ns", Nullable),
                    ("send_buffer_limited_ns", Nullable),
                ],
            ),
            queue: Table::new(record, "queue", &queue_columns()),
            emulator: table(
                "emulator",
                &[
                    ("t_ns", Integer),
                    ("packets", Integer),
                    ("late_p50_ns", Integer),
                    ("late_p99_ns", Integer),
                    ("late_p999_ns", Integer),
                    ("late_max_ns", Integer),
                    ("cpu_ns", Integer),
                ],
            ),
            shaper: table(
                "shaper",
                &[
                    ("t_ns", Integer),
                    ("queue", Text),
                    ("rate_bps", Nullable),
                    ("state", Text),
                    ("reason", Text),
                    ("value", Float),
                    ("unit", Text),
                ],
            ),
            method: table(
                "method",
                &[
                    ("method", Integer),
                    ("name", Text),
                    ("kind", Text),
                    ("began_ns", Integer),
                    ("ended_ns", Nullable),
                    ("result", NullableText),
                ],
            ),
        }
    }

    pub fn each(&mut self) -> [&mut Table; TABLES.len()] {
        let Self { flows, throughput, latency, tcp, queue, emulator, shaper, method } = self;
        [flows, throughput, latency, tcp, queue, emulator, shaper, method]
    }

    pub fn append_flow(&mut self, row: &FlowRow) {
        self.flows.append(|out| {
            out.integer(u64::from(row.flow))
                .nullable(row.first_data.map(Time::as_nanos))
                .integer(row.delivered_bytes)
                .integer(row.sent_bytes)
                .integer(row.sent_segments)
                .integer(row.retransmitted_bytes)
                .integer(row.retransmitted_segments)
                .nullable(row.timeouts)
                .nullable(row.loss_probes)
                .nullable(row.fast_recoveries)
                .nullable(row.ecn_reductions)
                .nullable(row.dropped_packets)
                .nullable(row.dropped_bytes)
                .nullable(row.marked_packets)
                .nullable(row.completed.map(Time::as_nanos));
        });
    }

    pub fn append_throughput(&mut self, row: &ThroughputRow) {
        self.throughput.append(|out| {
            out.integer(row.t.as_nanos())
                .integer(u64::from(row.flow))
                .integer(row.bytes)
                .integer(row.wire_bytes);
        });
    }

    pub fn append_latency(&mut self, row: &LatencyRow) {
        self.latency.append(|out| {
            out.integer(row.t.as_nanos())
                .integer(u64::from(row.probe))
                .integer(u64::from(row.seq))
                .nullable(row.rtt.map(Duration::as_nanos))
                .nullable(row.up.map(Duration::as_nanos))
                .nullable(row.down.map(Duration::as_nanos))
                .integer(row.timer_error.as_nanos())
                .nullable(row.server.map(|server| server.received_ns))
                .nullable(row.server.map(|server| server.sent_ns));
        });
    }

    pub fn append_tcp(&mut self, row: &TcpRow) {
        self.tcp.append(|out| {
            out.integer(row.t.as_nanos())
                .integer(u64::from(row.flow))
                .integer(u64::from(row.cwnd))
                .nullable(row.ssthresh.map(u64::from))
                .integer(u64::from(row.in_flight))
                .nullable(row.srtt.map(Duration::as_nanos))
                .integer(row.rttvar.as_nanos())
                .integer(row.rto.as_nanos())
                .integer(row.pacing_rate_bps)
                .integer(row.retransmits)
                .nullable(row.timeouts)
                .nullable(row.live.map(|live| live.delivery_rate_bps))
                .nullable(row.live.map(|live| live.busy.as_nanos()))
                .nullable(row.live.map(|live| live.receive_window_limited.as_nanos()))
                .nullable(row.live.map(|live| live.send_buffer_limited.as_nanos()));
        });
    }

    pub fn append_emulator(&mut self, row: &EmulatorRow) {
        self.emulator.append(|out| {
            out.integer(row.t.as_nanos())
                .integer(row.packets)
                .integer(row.late_p50.as_nanos())
                .integer(row.late_p99.as_nanos())
                .integer(row.late_p999.as_nanos())
                .integer(row.late_max.as_nanos())
                .integer(row.cpu.as_nanos());
        });
    }

    pub fn append_shaper(&mut self, row: &ShaperRow<'_>) {
        self.shaper.append(|out| {
            out.integer(row.t.as_nanos())
                .text(row.queue)
                .nullable(row.rate_bps)
                .text(row.state)
                .text(row.reason)
                .float(row.value)
                .text(row.unit);
        });
    }

    pub fn append_method(&mut self, row: &MethodRow<'_>) {
        self.method.append(|out| {
            out.integer(u64::from(row.method))
                .text(row.name)
                .text(row.kind)
                .integer(row.began.as_nanos())
                .nullable(row.ended.map(Time::as_nanos))
                .nullable_text(row.result);
        });
    }

    pub fn append_queue(&mut self, row: &QueueRow<'_>) {
        self.queue.append(|out| {
            out.integer(row.t.as_nanos())
                .text(row.queue)
                .text(row.class)
                .integer(u64::from(row.backlog_packets))
                .integer(row.backlog_bytes)
                .nullable(row.sojourn_mean.map(Duration::as_nanos))
                .nullable(row.sojourn_max.map(Duration::as_nanos))
                .integer(row.departed_packets)
                .integer(row.departed_bytes)
                .integer(row.wire_bytes)
                .nullable(row.dropped_bytes);
            for count in row.dropped {
                out.integer(count);
            }
            for count in row.marked {
                out.integer(count);
            }
        });
    }
}

/// The columns of `queue`: one for each reason of drops and marks behind the fixed ones.
fn queue_columns() -> Vec<(String, Kind)> {
    let fixed = [
        ("t_ns", Kind::Integer),
        ("queue", Kind::Text),
        ("class", Kind::Text),
        ("backlog_packets", Kind::Integer),
        ("backlog_bytes", Kind::Integer),
        ("sojourn_mean_ns", Kind::Nullable),
        ("sojourn_max_ns", Kind::Nullable),
        ("departed_packets", Kind::Integer),
        ("departed_bytes", Kind::Integer),
        ("wire_bytes", Kind::Integer),
        ("dropped_bytes", Kind::Nullable),
    ];
    let mut columns: Vec<_> =
        fixed.into_iter().map(|(name, kind)| (name.to_owned(), kind)).collect();
    for reason in DropReason::ALL {
        columns.push((format!("dropped_{}", reason.name()), Kind::Integer));
    }
    for reason in MarkReason::ALL {
        columns.push((format!("marked_{}", reason.name()), Kind::Integer));
    }
    columns
}
