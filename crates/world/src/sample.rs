//! Samples: one row type a table of the record, and the sink that takes them while a world runs.

use weir_core::{DropReason, Duration, MarkReason, Time};

/// Takes samples as they come. Rows of one table come in order of time, except that latency rows come
/// when the answer does.
pub trait Sink {
    /// A probe was answered or lost.
    fn latency(&mut self, row: &LatencyRow);
    /// Bytes of a flow arrived.
    fn throughput(&mut self, row: &ThroughputRow);
    /// The state of a flow's sender.
    fn tcp(&mut self, row: &TcpRow);
    /// The state of a queue or class.
    fn queue(&mut self, row: &QueueRow<'_>);
    /// How well a live data path kept its times.
    fn emulator(&mut self, row: &EmulatorRow);
    /// A shaper's rate, state or reason changed.
    fn shaper(&mut self, row: &ShaperRow<'_>);
    /// A speed test ended, or the run did before it.
    fn method(&mut self, row: &MethodRow<'_>);
    /// A flow's totals, once, at the end.
    fn flow(&mut self, row: &FlowRow);
    /// The run has reached `now`. Called often enough for a live view; may end the run.
    fn progress(&mut self, now: Time) -> Verdict;
}

/// Whether a run goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It does.
    Continue,
    /// It ends here; what was measured stays.
    Stop,
}

/// One probe: table `latency`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatencyRow {
    /// When it was sent.
    pub t: Time,
    /// Number of the probe in the scenario.
    pub probe: u32,
    /// Its sequence number.
    pub seq: u32,
    /// Round trip; `None` if it or its answer was lost.
    pub rtt: Option<Duration>,
    /// One way to the server; `None` if it was lost on it.
    pub up: Option<Duration>,
    /// One way back.
    pub down: Option<Duration>,
    /// How much later than planned it was sent; zero in virtual time.
    pub timer_error: Duration,
    /// When a server with a clock of its own had it; `None` where there is one clock.
    pub server: Option<ServerTurn>,
}

/// A server's turn on its own clock, which has another zero and another rate than the run's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerTurn {
    /// When the probe came in, in nanoseconds.
    pub received_ns: u64,
    /// When its answer went out.
    pub sent_ns: u64,
}

/// What arrived of a flow since the last row: table `throughput`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThroughputRow {
    /// End of the interval.
    pub t: Time,
    /// Number of the flow in the scenario.
    pub flow: u32,
    /// Bytes that the application received in order, each once.
    pub bytes: u64,
    /// Bytes of IP packets with data that arrived, headers and repetitions included.
    pub wire_bytes: u64,
}

/// The state of a sender: table `tcp`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpRow {
    /// When.
    pub t: Time,
    /// Number of the flow in the scenario.
    pub flow: u32,
    /// Congestion window, in segments.
    pub cwnd: u32,
    /// Slow start threshold, in segments; `None` before the first congestion.
    pub ssthresh: Option<u32>,
    /// Segments in the network.
    pub in_flight: u32,
    /// Smoothed round trip; `None` before the first.
    pub srtt: Option<Duration>,
    /// Its variation.
    pub rttvar: Duration,
    /// Retransmission timeout.
    pub rto: Duration,
    /// Rate at which data is, or would be, paced, in bit/s.
    pub pacing_rate_bps: u64,
    /// Segments sent again so far.
    pub retransmits: u64,
    /// Expirations of the retransmission timer so far; `None` where the kernel does not count them.
    pub timeouts: Option<u64>,
    /// What a live kernel also tells; `None` in the simulator.
    pub live: Option<LiveTcp>,
}

/// What a live kernel tells of a sender beyond what the simulator has (`TCP_INFO`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveTcp {
    /// Its own estimate of the rate at which data is delivered, in bit/s.
    pub delivery_rate_bps: u64,
    /// Time so far with data to send.
    pub busy: Duration,
    /// Of it, time stalled by the receive window.
    pub receive_window_limited: Duration,
    /// Of it, time stalled by the send buffer.
    pub send_buffer_limited: Duration,
}

/// A queue or one of its classes: table `queue`. Counts are since the last row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QueueRow<'a> {
    /// When.
    pub t: Time,
    /// The hop's name with its direction, such as `up/modem`.
    pub queue: &'a str,
    /// The class, or empty for the whole queue.
    pub class: &'a str,
    /// Packets that wait.
    pub backlog_packets: u32,
    /// Bytes that wait.
    pub backlog_bytes: u64,
    /// Mean sojourn time of the packets that left; `None` for classes and if none left.
    pub sojourn_mean: Option<Duration>,
    /// The longest.
    pub sojourn_max: Option<Duration>,
    /// Packets that left.
    pub departed_packets: u64,
    /// Their bytes, as the queue counts them.
    pub departed_bytes: u64,
    /// Bytes of the line that they occupied, framing included; 0 for classes.
    pub wire_bytes: u64,
    /// Packets dropped, by reason in the order of [`DropReason::ALL`].
    pub dropped: [u64; DropReason::ALL.len()],
    /// Bytes of all packets dropped, as the queue counts them; `None` where it does not count them.
    pub dropped_bytes: Option<u64>,
    /// Packets marked, by reason in the order of [`MarkReason::ALL`].
    pub marked: [u64; MarkReason::ALL.len()],
}

/// How well a live data path kept its times: table `emulator`. It covers the time since the last row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EmulatorRow {
    /// End of the interval.
    pub t: Time,
    /// Packets handed over to the kernel.
    pub packets: u64,
    /// How much later than computed they were handed over: the median.
    pub late_p50: Duration,
    /// The 99th percentile.
    pub late_p99: Duration,
    /// The 99.9th percentile.
    pub late_p999: Duration,
    /// The latest.
    pub late_max: Duration,
    /// Processor time that the data path used.
    pub cpu: Duration,
}

/// A change of a shaper's rate or state: table `shaper`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShaperRow<'a> {
    /// When.
    pub t: Time,
    /// The shaped hop's name with its direction, such as `up/shaper`.
    pub queue: &'a str,
    /// The rate from now on in bit/s; `None` lets everything through.
    pub rate_bps: Option<u64>,
    /// The state from now on.
    pub state: &'static str,
    /// Why, in a word.
    pub reason: &'static str,
    /// Why, as a number.
    pub value: f64,
    /// The number's unit.
    pub unit: &'static str,
}

/// How a speed test went: table `method`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MethodRow<'a> {
    /// Number of the speed test in the scenario.
    pub method: u32,
    /// Its name.
    pub name: &'a str,
    /// Its method, such as `ndt7`.
    pub kind: &'a str,
    /// When it began.
    pub began: Time,
    /// When it ended; `None` if the run ended before.
    pub ended: Option<Time>,
    /// What the official client would show, as JSON; `None` if it did not end.
    pub result: Option<&'a str>,
}

/// A flow's totals: table `flows`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowRow {
    /// Number of the flow in the scenario.
    pub flow: u32,
    /// When data first arrived; `None` if none did.
    pub first_data: Option<Time>,
    /// Bytes that the application received in order, each once.
    pub delivered_bytes: u64,
    /// Bytes of data sent, repetitions included.
    pub sent_bytes: u64,
    /// Data segments sent, repetitions included.
    pub sent_segments: u64,
    /// Bytes sent again.
    pub retransmitted_bytes: u64,
    /// Segments sent again.
    pub retransmitted_segments: u64,
    /// Expirations of the retransmission timer; `None` where the kernel does not count them by flow.
    pub timeouts: Option<u64>,
    /// Tail loss probes; `None` where the kernel does not count them by flow.
    pub loss_probes: Option<u64>,
    /// Entries into fast recovery; likewise.
    pub fast_recoveries: Option<u64>,
    /// Window reductions by ECN; likewise.
    pub ecn_reductions: Option<u64>,
    /// Data packets of the flow that were dropped on the path; `None` where its queues do not tell flows
    /// apart.
    pub dropped_packets: Option<u64>,
    /// IP bytes of the dropped packets; likewise.
    pub dropped_bytes: Option<u64>,
    /// Data packets of the flow that were marked CE on the path; likewise.
    pub marked_packets: Option<u64>,
    /// When everything was delivered, for a flow of fixed size that was.
    pub completed: Option<Time>,
}
