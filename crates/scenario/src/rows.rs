//! The tables of the record, each declared once by its row: columns, units and what they mean.

use weir_core::{DropReason, Duration, MarkReason, Time};

use crate::table::{Row, Table, by_reason, columns, table};

/// All tables of the record.
pub const TABLES: [Table; 10] = [
    FlowRow::TABLE,
    ThroughputRow::TABLE,
    LatencyRow::TABLE,
    TcpRow::TABLE,
    QueueRow::TABLE,
    EmulatorRow::TABLE,
    ShaperRow::TABLE,
    MethodRow::TABLE,
    UdpRow::TABLE,
    TransferRow::TABLE,
];

table! { "latency", "one row a ping", of each Moment:
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct LatencyRow {
        /// When it was sent.
        pub t: Time,
        /// Number of the probe in the scenario.
        pub probe: u32,
        /// Sequence number of the ping.
        pub seq: u32,
        /// Round trip; null if it or its answer was lost.
        pub rtt: Option<Duration>,
        /// One way to the server; null if it was lost on it. It is there if only the answer was lost.
        pub up: Option<Duration>,
        /// One way back; null if it or its answer was lost.
        pub down: Option<Duration>,
        /// How much later than planned it was sent; 0 in virtual time.
        #[since(2)]
        pub timer_error: Duration,
        /// When a server with a clock of its own had it.
        pub server: Option<ServerTurn>,
    }
}

columns! { "server_", since 2:
    /// A server's turn on its own clock, which has another zero and another rate than the run's.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct ServerTurn {
        /// When the server received it, in nanoseconds of the server's own clock; null where there is one clock.
        pub received_ns: u64,
        /// When the server sent the answer, in nanoseconds of its own clock; null where there is one clock.
        pub sent_ns: u64,
    }
}

table! { "throughput", "one row a flow and interval, while the flow runs or still delivers", of each Interval:
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct ThroughputRow {
        /// End of the interval.
        pub t: Time,
        /// Number of the flow in the scenario.
        pub flow: u32,
        /// Bytes that the application received in order, each once.
        pub bytes: u64,
        /// Bytes of IP packets with data that arrived, headers and repetitions included; over real sockets a
        /// repetition of what was there already counts with its headers alone.
        pub wire_bytes: u64,
    }
}

table! { "tcp", "one row a flow and interval, while the flow runs: the sender's state", of each Interval:
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct TcpRow {
        /// When the state was that: the end of the interval.
        pub t: Time,
        /// Number of the flow in the scenario.
        pub flow: u32,
        /// Congestion window.
        pub cwnd_segments: u32,
        /// Slow start threshold; null before the first congestion.
        pub ssthresh_segments: Option<u32>,
        /// Segments in the network.
        pub in_flight_segments: u32,
        /// Smoothed round trip; null before the first.
        pub srtt: Option<Duration>,
        /// Variation of the smoothed round trip.
        pub rttvar: Duration,
        /// Retransmission timeout.
        pub rto: Duration,
        /// Rate at which data is, or would be, paced.
        pub pacing_rate_bps: u64,
        /// Segments sent again so far.
        pub retransmits: u64,
        /// Expirations of the retransmission timer so far; null where the kernel does not count them.
        pub timeouts: Option<u64>,
        /// Values that only a live kernel has.
        pub live: Option<LiveTcp>,
    }
}

columns! { "", since 2:
    /// State of a sender that a live kernel tells (`TCP_INFO`) and the simulator does not have.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct LiveTcp {
        /// The kernel's own estimate of the rate at which data is delivered; null in the simulator.
        pub delivery_rate_bps: u64,
        /// Time so far with data to send; null in the simulator.
        pub busy: Duration,
        /// Time so far stalled by the receive window, within the busy time; null in the simulator.
        pub receive_window_limited: Duration,
        /// Time so far stalled by the send buffer, within the busy time; null in the simulator.
        pub send_buffer_limited: Duration,
    }
}

table! { "queue", "one row a queue and interval, and one a class", of each Interval:
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct QueueRow<'a> {
        /// End of the interval.
        pub t: Time,
        /// Direction and hop, such as `up/modem`.
        pub queue: &'a str,
        /// Class or band; empty for the whole queue.
        pub class: &'a str,
        /// Packets that wait.
        pub backlog_packets: u32,
        /// Bytes that wait.
        pub backlog_bytes: u64,
        /// Mean sojourn time of the packets that left in the interval; null for classes and if none left.
        pub sojourn_mean: Option<Duration>,
        /// Longest sojourn time of the packets that left in the interval; null for classes and if none left.
        pub sojourn_max: Option<Duration>,
        /// Packets that left in the interval.
        pub departed_packets: u64,
        /// Bytes that left in the interval, as the queue counts them (IP + 14).
        pub departed_bytes: u64,
        /// Bytes of the line that what left occupied, framing included; 0 for classes.
        pub wire_bytes: u64,
        /// Bytes of all packets dropped in the interval, as the queue counts them; null where a kernel's queue does not
        /// count them.
        #[since(2)]
        pub dropped_bytes: Option<u64>,
        /// Packets dropped in the interval, by reason.
        pub dropped: Drops,
        /// Packets marked in the interval, by reason.
        pub marked: Marks,
    }
}

by_reason! {
    /// Packets dropped, by reason in the order of [`DropReason::ALL`].
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Drops of DropReason
}

by_reason! {
    /// Packets marked, by reason in the order of [`MarkReason::ALL`].
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Marks of MarkReason
}

table! { "emulator", "one row an interval, where a live data path carries the packets", of each Interval:
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct EmulatorRow {
        /// End of the interval.
        pub t: Time,
        /// Packets handed over to the kernel in the interval.
        pub packets: u64,
        /// How much later than computed they were handed over, with what they waited to be read: the median.
        pub late_p50: Duration,
        /// How much later than computed they were handed over, with what they waited to be read: the 99th percentile.
        pub late_p99: Duration,
        /// How much later than computed they were handed over, with what they waited to be read: the 99.9th percentile.
        pub late_p999: Duration,
        /// How much later than computed they were handed over, with what they waited to be read: the latest.
        pub late_max: Duration,
        /// Processor time that the data path used in the interval.
        pub cpu: Duration,
    }
}

table! { "shaper", "one row a change of a shaper's rate or state", of each Moment:
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct ShaperRow<'a> {
        /// When it changed.
        pub t: Time,
        /// Direction and hop, such as `up/shaper`.
        pub queue: &'a str,
        /// The rate from now on; null lets everything through.
        pub rate_bps: Option<u64>,
        /// The state from now on: `idle`, `loaded`, `probing`, `backing_off`, `stalled`.
        pub state: &'static str,
        /// Why, in a word, such as `delay`.
        pub reason: &'static str,
        /// Why, as a number, such as 3.4.
        pub value: f64,
        /// The number's unit, such as `ms`.
        pub unit: &'static str,
    }
}

table! { "method", "one row a speed test of the scenario, when it ends or the run does", of each Run:
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct MethodRow<'a> {
        /// Number of the speed test in the scenario.
        pub method: u32,
        /// Name of the speed test in the scenario, such as `speed test`.
        pub name: &'a str,
        /// Method of the speed test, such as `ndt7`.
        pub kind: &'a str,
        /// When it began.
        pub began: Time,
        /// When it ended; null if the run ended before.
        pub ended: Option<Time>,
        /// Result as its official client would show it, as JSON text; null if it did not end.
        pub result: Option<&'a str>,
    }
}

table! { "udp", "one row a UDP flow and interval, while the flow runs or still delivers: what its receiver counts", of each Interval:
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct UdpRow {
        /// End of the interval.
        pub t: Time,
        /// Number of the flow in the scenario.
        pub flow: u32,
        /// Packets that arrived in the interval, each once.
        pub received_packets: u64,
        /// Packets found missing in the interval, by the sequence numbers of those that arrived, less those found missing
        /// before that came in it (RFC 3550, A.3): below 0 where more came.
        pub lost_packets: i64,
        /// Mean one-way delay of the packets that arrived; null if none did.
        pub delay_mean: Option<Duration>,
        /// Longest one-way delay of the packets that arrived; null if none did.
        pub delay_max: Option<Duration>,
        /// Interarrival jitter at the end of the interval (RFC 3550, section 6.4.1).
        pub jitter: Duration,
        /// What the receiver's jitter buffer did.
        pub buffer: Option<JitterBufferCounts>,
        /// What the sender did.
        pub sender: Option<UdpSenderCounts>,
    }
}

columns! { "", since 1:
    /// What a jitter buffer did with the packets of an interval.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct JitterBufferCounts {
        /// Packets that arrived too late to be played out; null without a jitter buffer.
        pub late_packets: u64,
        /// Sum over the packets played out of the time from sending to playout; null without a jitter buffer.
        pub playout_sum: Duration,
    }
}

columns! { "", since 1:
    /// What the sender of a UDP flow did in an interval.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct UdpSenderCounts {
        /// Packets sent; null where the sender is on another machine.
        pub sent_packets: u64,
        /// Packets left out, because the sender was more than 100 ms behind; null where it is on another machine.
        pub skipped_packets: u64,
        /// How much later than planned a packet was sent, at most; 0 in virtual time; null where the sender is on another
        /// machine.
        pub late_max: Duration,
    }
}

table! { "transfers", "one row a page, name or segment of a video that an application asked for, when it ended", of each Moment:
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct TransferRow {
        /// When it was wanted.
        pub t: Time,
        /// Number of the flow in the scenario.
        pub flow: u32,
        /// Number of it in the flow, from 0, in the order in which they ended.
        pub seq: u64,
        /// How long it took until all of it was there, or until it ended otherwise.
        pub took: Duration,
        /// How it ended: `done`, `given_up` by the application, `cut` by the flow's stop.
        pub outcome: &'static str,
        /// How long it took until the first byte of the document, answer or segment came; null if none did.
        pub first_byte: Option<Duration>,
        /// Bytes of answers that came, heads and the handshakes of TLS included.
        pub bytes: u64,
        /// DNS queries that were sent for it.
        pub queries: u64,
        /// The state of a video's player.
        pub segment: Option<SegmentState>,
    }
}

columns! { "", since 1:
    /// A segment of a video, and its player when the segment ended.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct SegmentState {
        /// Bitrate of the segment; null for what is no video.
        pub bitrate_bps: u64,
        /// Time that what is loaded will play; null for what is no video.
        pub buffer: Duration,
        /// Time for which the picture stood still since the segment before; null for what is no video.
        pub stalled: Duration,
    }
}

table! { "flows", "one row a flow, at the end", of each Run:
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct FlowRow {
        /// Number of the flow in the scenario.
        pub flow: u32,
        /// When data first arrived; null if none did.
        pub first_data: Option<Time>,
        /// Bytes that the application received in order, each once.
        pub delivered_bytes: u64,
        /// Bytes of data sent, repetitions included; null where the sender's kernel has not told.
        pub sent_bytes: Option<u64>,
        /// Data segments sent, repetitions included; null where the sender's kernel has not told.
        pub sent_segments: Option<u64>,
        /// Bytes sent again; null where the sender's kernel has not told.
        pub retransmitted_bytes: Option<u64>,
        /// Segments sent again; null where the sender's kernel has not told.
        pub retransmitted_segments: Option<u64>,
        /// Expirations of the retransmission timer; null where the kernel does not count them by flow.
        pub timeouts: Option<u64>,
        /// Tail loss probes; null where the kernel does not count them by flow.
        pub loss_probes: Option<u64>,
        /// Entries into fast recovery; null where the kernel does not count them by flow.
        pub fast_recoveries: Option<u64>,
        /// Window reductions by ECN; null where the kernel does not count them by flow.
        pub ecn_reductions: Option<u64>,
        /// Data packets of the flow that were dropped on the path; null where its queues do not tell flows apart.
        pub dropped_packets: Option<u64>,
        /// IP bytes of the dropped packets; null where the queues do not tell flows apart.
        pub dropped_bytes: Option<u64>,
        /// Data packets of the flow that were marked CE on the path; null where its queues do not tell flows apart.
        pub marked_packets: Option<u64>,
        /// When everything was delivered; null unless the flow is of fixed size and all of it was.
        pub completed: Option<Time>,
    }
}

#[cfg(test)]
mod tests {
    use super::{LatencyRow, QueueRow, TABLES};
    use crate::table::{ColumnType, OfEach, Row};

    #[test]
    fn a_column_is_called_by_its_field_and_unit_and_means_what_the_comment_says() {
        let columns = (LatencyRow::TABLE.columns)();
        let names: Vec<_> = columns.iter().map(|column| column.name.as_str()).collect();
        let wanted =
            "t_ns probe seq rtt_ns up_ns down_ns timer_error_ns server_received_ns server_sent_ns";
        assert_eq!(names.join(" "), wanted);
        let rtt = &columns[3];
        assert_eq!((rtt.kind, rtt.nullable, rtt.since), (ColumnType::Integer, true, 1));
        assert_eq!(rtt.meaning, "Round trip; null if it or its answer was lost.");
        assert_eq!((columns[6].nullable, columns[6].since), (false, 2));
        assert_eq!((columns[8].nullable, columns[8].since), (true, 2));
    }

    #[test]
    fn there_is_a_column_for_each_reason() {
        let columns = (QueueRow::TABLE.columns)();
        let dropped: Vec<_> = columns.iter().filter(|one| one.family == Some("dropped")).collect();
        assert_eq!(dropped.len(), weir_core::DropReason::ALL.len());
        assert_eq!(dropped[0].name, "dropped_overlimit");
        let bytes = columns.iter().find(|column| column.name == "dropped_bytes");
        assert_eq!(bytes.map(|column| column.family), Some(None), "bytes are no reason");
    }

    #[test]
    fn what_a_time_is_agrees_with_what_its_column_means() {
        for table in TABLES {
            let columns = (table.columns)();
            let time = columns.iter().find(|column| column.name == "t_ns");
            let meaning = time.map(|column| column.meaning);
            let ends =
                meaning.is_some_and(|one| one.to_lowercase().contains("end of the interval"));
            let found = match (meaning, ends) {
                (None, _) => OfEach::Run,
                (Some(_), false) => OfEach::Moment,
                (Some(_), true) => OfEach::Interval,
            };
            assert_eq!(table.of_each, found, "{}", table.name);
        }
    }

    #[test]
    fn names_are_told_apart_and_meanings_are_sentences() {
        for table in TABLES {
            let columns = (table.columns)();
            for (number, column) in columns.iter().enumerate() {
                let place = format!("{}.{}", table.name, column.name);
                assert!(columns[..number].iter().all(|other| other.name != column.name), "{place}");
                assert!(column.meaning.ends_with('.') && !column.meaning.contains("  "), "{place}");
            }
        }
    }
}
